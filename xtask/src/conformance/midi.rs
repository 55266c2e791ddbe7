//! MIDI files: FluidSynth hands over its events, TiMidity++ writes them into a MIDI file.

use std::path::Path;
use std::process::Command;

use anyhow::Context;

use super::{Kind, quietly};
use crate::process::run;
use crate::setup::Tool;

/// MIDI files.
pub const KIND: Kind = Kind {
    name: "midi",
    tools: &[
        Tool {
            probe: ("fluidsynth", &["--version"]),
            package: "fluidsynth",
            used_for: "comparing MIDI files",
            needed_for: &[],
        },
        Tool {
            probe: ("timidity", &["--version"]),
            package: "timidity",
            used_for: "comparing MIDI files",
            needed_for: &[],
        },
    ],
    run_others,
    readers: &["Ondes", "FluidSynth", "TiMidity++"],
};

/// Times that TiMidity++ may take; it does not stop reading where time has no length.
const TIMEOUT_S: &str = "10";

fn run_others(files: &Path, results: &Path) -> anyhow::Result<()> {
    run(Command::new("python3")
        .arg(files.join("fluidsynth.py"))
        .args([files, results]))?;
    let entries =
        std::fs::read_dir(files).with_context(|| format!("{}: cannot be read", files.display()))?;
    for entry in entries {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        if path.extension().is_some_and(|extension| extension == "mid") {
            let result = results.join(format!("{}.timidity.mid", name.to_string_lossy()));
            // It reads files without sound, so that no patches are needed.
            let mut timidity = Command::new("timeout");
            quietly(
                timidity
                    .args([TIMEOUT_S, "timidity", "-Om", "-o"])
                    .arg(result)
                    .arg(path),
            )?;
        }
    }
    Ok(())
}
