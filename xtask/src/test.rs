//! Runs all tests of all crates.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};

use crate::instructions;
use crate::pedalboard;
use crate::process::{build_folder, cargo, run, works};
use crate::setup::{Purpose, setup};

/// Installs what the tests need, libtorch included, and runs them.
///
/// # Errors
/// The set-up or a test fails.
pub fn test() -> anyhow::Result<()> {
    setup(Purpose::Testing)?;
    // A test that ever needs a GPU must be reported here when it is skipped.
    if works("nvidia-smi", &["--list-gpus"]) {
        println!("GPU: found, but no test uses it; `cargo xtask gpu-check` checks it");
    } else {
        println!("GPU: none found; no test needs one");
    }
    let display = VirtualDisplay::start()?;
    run(cargo()
        .args(["test", "--workspace", "--no-fail-fast"])
        .env("DISPLAY", &display.name))?;
    // Only Linux has this bundle's layout, and the wheel for all processors.
    if cfg!(target_os = "linux") {
        pedalboard::check()?;
    }
    drop(display);
    instructions::check(false)?;
    check_interleavings()
}

/// Plays the tests of endurance for minutes of sound, in a release build.
///
/// # Errors
/// A test fails.
pub fn soak(minutes: f64, seed: u64) -> anyhow::Result<()> {
    setup(Purpose::Building)?;
    let tests = [
        (
            "ondes",
            "play",
            "soak::eight_tracks_survive_everything_at_once",
        ),
        (
            "ondes-plugin",
            "endurance",
            "random_use_neither_fails_nor_leaks",
        ),
    ];
    for (package, binary, name) in tests {
        let mut test = cargo();
        test.args([
            "test",
            "--release",
            "--package",
            package,
            "--test",
            binary,
            "--",
            "--exact",
            name,
            "--nocapture",
        ]);
        run(test
            .env("ONDES_SOAK_MINUTES", minutes.to_string())
            .env("ONDES_SOAK_SEED", seed.to_string()))?;
    }
    Ok(())
}

/// Virtual X display for the plugin's window; ends when dropped.
struct VirtualDisplay {
    server: Child,
    name: String,
}

impl VirtualDisplay {
    fn start() -> anyhow::Result<Self> {
        // `-displayfd` makes it choose a free number and print it. Without `-noreset` it refuses
        // clients that connect while the last one disconnects.
        let arguments = [
            "-displayfd",
            "1",
            "-noreset",
            "-nolisten",
            "tcp",
            "-screen",
            "0",
            "1280x1024x24",
        ];
        let mut server = Command::new("Xvfb")
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("Xvfb cannot be started")?;
        let mut number = String::new();
        if let Some(stdout) = server.stdout.take() {
            BufReader::new(stdout)
                .read_line(&mut number)
                .context("Xvfb prints no display number")?;
        }
        let display = Self {
            server,
            name: format!(":{}", number.trim()),
        };
        ensure!(
            !number.trim().is_empty(),
            "Xvfb ended before it printed a display number"
        );
        Ok(display)
    }
}

impl Drop for VirtualDisplay {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Checks the engine's lock-free code in all thread interleavings with loom. loom replaces the
/// atomics, so the engine is built again in a folder of its own, without optimisation: the check
/// takes seconds, an optimised build minutes.
fn check_interleavings() -> anyhow::Result<()> {
    let mut test = cargo();
    for package in ["\"*\"", "ondes-kernels"] {
        test.arg("--config")
            .arg(format!("profile.dev.package.{package}.opt-level=0"));
    }
    test.args(["test", "--package", "ondes-engine", "--lib", "loom_tests"]);
    run(test
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", build_folder().join("loom")))
}
