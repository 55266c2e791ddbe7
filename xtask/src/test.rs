//! All tests of all crates.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};

use crate::process::{cargo, root, run, works};
use crate::setup::setup;

/// Prepares what the tests need, libtorch among it, and runs them.
pub fn test() -> anyhow::Result<()> {
    setup(true)?;
    // No silent skips: when a test comes to need a GPU, this line says so where it is skipped.
    if works("nvidia-smi", &["--list-gpus"]) {
        println!("GPU: found, but no test uses one: all run on the CPU, and `cargo xtask gpu-check` checks the GPU");
    } else {
        println!("GPU: none found, and no test needs one: nothing is skipped");
    }
    let screen = Screen::open()?;
    run(cargo().args(["test", "--workspace", "--no-fail-fast"]).env("DISPLAY", &screen.display))?;
    drop(screen);
    interleavings()
}

/// A display that shows nothing to anybody, for the plugin's window.
struct Screen {
    server: Child,
    display: String,
}

impl Screen {
    fn open() -> anyhow::Result<Self> {
        // It finds a free number by itself and says which. Without `-noreset` it refuses who comes just as the last one goes.
        let arguments = ["-displayfd", "1", "-noreset", "-nolisten", "tcp", "-screen", "0", "1280x1024x24"];
        let mut server = Command::new("Xvfb")
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("Xvfb does not start")?;
        let mut number = String::new();
        if let Some(said) = server.stdout.take() {
            BufReader::new(said).read_line(&mut number).context("Xvfb says nothing")?;
        }
        let screen = Self { server, display: format!(":{}", number.trim()) };
        ensure!(!number.trim().is_empty(), "Xvfb ended before it said its display");
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Tries all orders in which threads can meet in the engine's own lock-free code, with loom. It replaces the atomics, so that
/// everything is built anew, beside what else is built.
fn interleavings() -> anyhow::Result<()> {
    let built = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let mut test = cargo();
    test.args(["test", "--package", "ondes-engine", "--lib", "loom_tests"]);
    run(test.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", built.join("loom")))
}
