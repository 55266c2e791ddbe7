//! Audio files: ffmpeg and SoX decode them to floats.

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde_json::Value;

use super::Kind;
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
    table,
};

fn run_others(files: &Path, results: &Path) -> anyhow::Result<()> {
    let entries = std::fs::read_dir(files).with_context(|| format!("{}: cannot be read", files.display()))?;
    for entry in entries {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        let result = |program: &str| results.join(format!("{}.{program}.wav", name.to_string_lossy()));
        let mut ffmpeg = Command::new("ffmpeg");
        ffmpeg.args(["-nostdin", "-v", "quiet", "-i"]).arg(&path).args(["-map", "0:a:0", "-c:a", "pcm_f32le", "-y"]);
        quietly(ffmpeg.arg(result("ffmpeg")))?;
        let mut sox = Command::new("sox");
        sox.args(["-V0", "-D"]).arg(&path).args(["-t", "wav", "-e", "floating-point", "-b", "32"]);
        quietly(sox.arg(result("sox")))?;
    }
    Ok(())
}

/// Runs a program that may refuse a file.
fn quietly(command: &mut Command) -> anyhow::Result<()> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().with_context(|| format!("{}: cannot be started", command.get_program().to_string_lossy()))?;
    Ok(())
}

fn table(lines: &[Value]) -> anyhow::Result<String> {
    let mut table = "| file | content | Ondes | ffmpeg | SoX |\n|---|---|---|---|---|\n".to_owned();
    for line in lines {
        let (Some(file), Some(what), Some(readers)) =
            (line["file"].as_str(), line["what"].as_str(), line["readers"].as_array())
        else {
            bail!("a line of the table is incomplete: {line}");
        };
        write!(table, "| `{file}` | {what} |")?;
        for reader in readers {
            write!(table, " {} |", reader.as_str().unwrap_or_default())?;
        }
        table.push('\n');
    }
    Ok(table)
}
