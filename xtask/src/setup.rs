//! Installs the programs that building and testing need, with apt where permitted.

use std::process::Command;

use anyhow::bail;

use crate::process::{cargo, run, works};

/// Task that a command prepares for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Build `ondes render`.
    Rendering,
    /// Build the app and the plugin.
    Building,
    /// Build and run the trainer; also needs libtorch.
    Training,
    /// Run all tests; needs everything.
    Testing,
}

/// A required program.
pub struct Tool {
    /// Command that succeeds if it is installed.
    pub probe: (&'static str, &'static [&'static str]),
    /// Packages on Debian and its descendants, separated by spaces.
    pub package: &'static str,
    /// Use, for the message when it is missing.
    pub used_for: &'static str,
    /// Purposes besides testing that need it.
    pub needed_for: &'static [Purpose],
}

const TOOLS: [Tool; 9] = [
    Tool {
        probe: ("cc", &["--version"]),
        package: "gcc libc6-dev",
        used_for: "linking",
        needed_for: &[Purpose::Rendering, Purpose::Building, Purpose::Training],
    },
    Tool {
        probe: ("g++", &["--version"]),
        package: "g++",
        used_for: "the plugin's VST3 side, and libtorch",
        needed_for: &[Purpose::Building, Purpose::Training],
    },
    Tool {
        probe: ("pkg-config", &["--exists", "jack"]),
        package: "pkg-config libjack-jackd2-dev",
        used_for: "sound and MIDI of the app",
        needed_for: &[Purpose::Building],
    },
    Tool {
        probe: ("Xvfb", &["-help"]),
        package: "xvfb libx11-6 libx11-xcb1",
        used_for: "opening the plugin's window in tests",
        needed_for: &[],
    },
    Tool {
        probe: ("ardour7-lua", &["--version"]),
        package: "ardour",
        used_for: "a DAW for tests",
        needed_for: &[],
    },
    Tool {
        probe: ("python3", &["-m", "pip", "--version"]),
        package: "python3 python3-pip",
        used_for: "pedalboard, a host for tests",
        needed_for: &[],
    },
    Tool {
        probe: ("jackd", &["--version"]),
        package: "jackd2",
        used_for: "a sound server for tests that needs no sound card",
        needed_for: &[],
    },
    Tool {
        probe: (
            "sh",
            &["-c", "ls /usr/lib/*/alsa-lib/libasound_module_pcm_jack.so"],
        ),
        package: "libasound2-plugins",
        used_for: "an ALSA device for tests that needs no sound card",
        needed_for: &[],
    },
    Tool {
        probe: ("valgrind", &["--version"]),
        package: "valgrind",
        used_for: "counting instructions",
        needed_for: &[],
    },
];

/// Installs missing packages, and libtorch for training and testing.
///
/// # Errors
/// A package is missing and cannot be installed by this user, or libtorch cannot be prepared.
pub fn setup(purpose: Purpose) -> anyhow::Result<()> {
    ensure(
        TOOLS
            .iter()
            .filter(|tool| purpose == Purpose::Testing || tool.needed_for.contains(&purpose)),
    )?;
    if matches!(purpose, Purpose::Training | Purpose::Testing) {
        // A program of its own: it needs a network stack.
        run(cargo().args([
            "run",
            "--quiet",
            "--package",
            "ondes-libtorch",
            "--bin",
            "prepare-libtorch",
        ]))?;
    }
    Ok(())
}

/// Installs those of some programs that are missing.
///
/// # Errors
/// A package cannot be installed by this user.
pub fn ensure<'a>(tools: impl IntoIterator<Item = &'a Tool>) -> anyhow::Result<()> {
    let missing: Vec<&Tool> = tools
        .into_iter()
        .filter(|tool| !works(tool.probe.0, tool.probe.1))
        .collect();
    if missing.is_empty() {
        println!("system packages: already there");
        return Ok(());
    }
    install(&missing)
}

fn install(tools: &[&Tool]) -> anyhow::Result<()> {
    for tool in tools {
        println!("missing: {} (for {})", tool.package, tool.used_for);
    }
    let packages: Vec<&str> = tools
        .iter()
        .flat_map(|tool| tool.package.split(' '))
        .collect();
    let by_hand = format!("apt-get install {}", packages.join(" "));
    if !works("apt-get", &["--version"]) {
        bail!(
            "this machine has no apt-get; install the equivalent of `{by_hand}`, then run this again"
        );
    }
    let Some(apt) = apt_get() else {
        bail!("installing packages needs root: run `sudo {by_hand}`, then run this again");
    };
    run(apt().args(["update", "-q"]))?;
    run(apt()
        .args(["install", "-q", "-y", "--no-install-recommends"])
        .args(&packages))
}

/// Returns a constructor of apt-get commands, if this user is root or sudo needs no password.
fn apt_get() -> Option<impl Fn() -> Command> {
    let root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout == b"0\n");
    if !root && !works("sudo", &["-n", "true"]) {
        return None;
    }
    Some(move || {
        let mut command = Command::new(if root { "apt-get" } else { "sudo" });
        if !root {
            command.args(["-n", "apt-get"]);
        }
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_runs_tests_has_a_linker() {
        assert!(works(TOOLS[0].probe.0, TOOLS[0].probe.1));
        assert!(!works("no-such-program", &[]));
        setup(Purpose::Building).unwrap();
    }
}
