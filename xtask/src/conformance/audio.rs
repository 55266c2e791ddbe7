//! Audio files: ffmpeg and SoX decode them to floats.

use std::path::Path;
use std::process::Command;

use anyhow::Context;

use super::{Kind, quietly};
use crate::setup::Tool;

/// Audio files.
pub const KIND: Kind = Kind {
    name: "audio",
    tools: &[
        Tool {
            probe: ("ffmpeg", &["-version"]),
            package: "ffmpeg",
            used_for: "comparing audio files",
            needed_for: &[],
        },
        Tool {
            probe: ("sox", &["--version"]),
            package: "sox libsox-fmt-all",
            used_for: "comparing audio files",
            needed_for: &[],
        },
    ],
    run_others,
    readers: &["Ondes", "ffmpeg", "SoX"],
};

fn run_others(files: &Path, results: &Path) -> anyhow::Result<()> {
    let entries =
        std::fs::read_dir(files).with_context(|| format!("{}: cannot be read", files.display()))?;
    for entry in entries {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        let result =
            |program: &str| results.join(format!("{}.{program}.wav", name.to_string_lossy()));
        let mut ffmpeg = Command::new("ffmpeg");
        ffmpeg
            .args(["-nostdin", "-v", "quiet", "-i"])
            .arg(&path)
            .args(["-map", "0:a:0", "-c:a", "pcm_f32le", "-y"]);
        quietly(ffmpeg.arg(result("ffmpeg")))?;
        let mut sox = Command::new("sox");
        sox.args(["-V0", "-D"])
            .arg(&path)
            .args(["-t", "wav", "-e", "floating-point", "-b", "32"]);
        quietly(sox.arg(result("sox")))?;
    }
    Ok(())
}
