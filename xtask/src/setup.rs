//! Installs the programs that building and testing need, with apt where permitted.

use std::process::Command;

use anyhow::bail;

use crate::process::{cargo, run, works};

/// A required program.
struct Tool {
    /// Command that succeeds if it is installed.
    probe: (&'static str, &'static [&'static str]),
    /// Packages on Debian and its descendants, separated by spaces.
    package: &'static str,
    /// Purpose, for the message when it is missing.
    purpose: &'static str,
    required_for: Task,
}

/// Task that requires a program.
enum Task {
    Building,
    Testing,
}

const TOOLS: [Tool; 7] = [
    Tool { probe: ("cc", &["--version"]), package: "gcc libc6-dev", purpose: "linking", required_for: Task::Building },
    Tool {
        probe: ("g++", &["--version"]),
        package: "g++",
        purpose: "the plugin's VST3 side",
        required_for: Task::Building,
    },
    Tool {
        probe: ("pkg-config", &["--exists", "alsa", "jack"]),
        package: "pkg-config libasound2-dev libjack-jackd2-dev",
        purpose: "sound and MIDI of the app",
        required_for: Task::Building,
    },
    Tool {
        probe: ("Xvfb", &["-help"]),
        package: "xvfb libx11-6 libx11-xcb1",
        purpose: "opening the plugin's window in tests",
        required_for: Task::Testing,
    },
    Tool {
        probe: ("ardour7-lua", &["--version"]),
        package: "ardour",
        purpose: "a DAW for tests",
        required_for: Task::Testing,
    },
    Tool {
        probe: ("jackd", &["--version"]),
        package: "jackd2",
        purpose: "a sound server for tests that needs no sound card",
        required_for: Task::Testing,
    },
    Tool {
        probe: ("sh", &["-c", "ls /usr/lib/*/alsa-lib/libasound_module_pcm_jack.so"]),
        package: "libasound2-plugins",
        purpose: "an ALSA device for tests that needs no sound card",
        required_for: Task::Testing,
    },
];

/// Installs missing packages; with `torch` also those that training and tests need, and libtorch.
///
/// # Errors
/// A package is missing and cannot be installed by this user, or libtorch cannot be prepared.
pub fn setup(torch: bool) -> anyhow::Result<()> {
    let needed = TOOLS.iter().filter(|tool| match tool.required_for {
        Task::Building => true,
        Task::Testing => torch,
    });
    let missing: Vec<&Tool> = needed.filter(|tool| !works(tool.probe.0, tool.probe.1)).collect();
    if missing.is_empty() {
        println!("system packages: already there");
    } else {
        install(&missing)?;
    }
    if torch {
        // A program of its own: it needs a network stack.
        run(cargo().args(["run", "--quiet", "--package", "ondes-libtorch", "--bin", "prepare-libtorch"]))?;
    }
    Ok(())
}

fn install(tools: &[&Tool]) -> anyhow::Result<()> {
    for tool in tools {
        println!("missing: {} (for {})", tool.package, tool.purpose);
    }
    let packages: Vec<&str> = tools.iter().flat_map(|tool| tool.package.split(' ')).collect();
    let by_hand = format!("apt-get install {}", packages.join(" "));
    if !works("apt-get", &["--version"]) {
        bail!("this machine has no apt-get; install the equivalent of `{by_hand}`, then run this again");
    }
    let Some(apt) = apt_get() else {
        bail!("installing packages needs root: run `sudo {by_hand}`, then run this again");
    };
    run(apt().args(["update", "-q"]))?;
    run(apt().args(["install", "-q", "-y", "--no-install-recommends"]).args(&packages))
}

/// Returns a constructor of apt-get commands, if this user is root or sudo needs no password.
fn apt_get() -> Option<impl Fn() -> Command> {
    let root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
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
        setup(false).unwrap();
    }
}
