//! What a machine needs for building, and how it gets there: packages by apt, where we may.

use std::process::Command;

use anyhow::bail;

use crate::libtorch;
use crate::process::{run, works};

/// A program that must be there.
struct Tool {
    /// What shows that it is there.
    test: (&'static str, &'static [&'static str]),
    /// What has it, on Debian and its descendants.
    package: &'static str,
    /// What it is for.
    purpose: &'static str,
    /// Who needs it.
    need: Need,
}

enum Need {
    Building,
    Testing,
}

const TOOLS: [Tool; 7] = [
    Tool { test: ("cc", &["--version"]), package: "gcc libc6-dev", purpose: "linking", need: Need::Building },
    Tool { test: ("g++", &["--version"]), package: "g++", purpose: "the plugin's VST3 side", need: Need::Building },
    Tool {
        test: ("pkg-config", &["--exists", "alsa", "jack"]),
        package: "pkg-config libasound2-dev libjack-jackd2-dev",
        purpose: "sound and MIDI of the app",
        need: Need::Building,
    },
    Tool {
        test: ("Xvfb", &["-help"]),
        package: "xvfb libx11-6 libx11-xcb1",
        purpose: "opening the plugin's window in tests",
        need: Need::Testing,
    },
    Tool { test: ("ardour7-lua", &["--version"]), package: "ardour", purpose: "a DAW for tests", need: Need::Testing },
    Tool {
        test: ("jackd", &["--version"]),
        package: "jackd2",
        purpose: "a sound server for tests that needs no sound card",
        need: Need::Testing,
    },
    Tool {
        test: ("sh", &["-c", "ls /usr/lib/*/alsa-lib/libasound_module_pcm_jack.so"]),
        package: "libasound2-plugins",
        purpose: "an ALSA device for tests that needs no sound card",
        need: Need::Testing,
    },
];

/// Installs what is missing; with `torch`, for training and for all tests too.
pub fn setup(torch: bool) -> anyhow::Result<()> {
    let needed = TOOLS.iter().filter(|tool| match tool.need {
        Need::Building => true,
        Need::Testing => torch,
    });
    let missing: Vec<&Tool> = needed.filter(|tool| !works(tool.test.0, tool.test.1)).collect();
    if missing.is_empty() {
        println!("system packages: already there");
    } else {
        install(&missing)?;
    }
    if torch {
        libtorch::prepare()?;
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
        bail!("this machine has no apt-get: install what corresponds to `{by_hand}`, then run this again");
    }
    let Some(apt) = apt_get() else {
        bail!("only root may install packages: run `sudo {by_hand}`, then this again");
    };
    run(apt().args(["update", "-q"]))?;
    run(apt().args(["install", "-q", "-y", "--no-install-recommends"]).args(&packages))
}

/// How we may call apt-get, if we may: as root, or by a sudo that asks for no password.
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
    fn a_machine_that_tests_has_a_linker() {
        assert!(works(TOOLS[0].test.0, TOOLS[0].test.1));
        assert!(!works("no-such-program", &[]));
        setup(false).unwrap();
    }
}
