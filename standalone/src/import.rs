//! `ondes import`: a capture of another program becomes a model file of ours.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use ondes_engine::model::file;

use crate::{opening, terminal};

const EXAMPLES: &str = "\
Examples:
  ondes import amp.nam
  ondes import pedal.json -o pedals/screamer.ondes";

/// Converts a capture (.nam, or JSON of AIDA-X, RTNeural or Proteus) to NAME.ondes.
///
/// Captures play as they are; converted, they load faster and can be carried on.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct ImportArguments {
    /// The capture
    pub file: PathBuf,
    /// Where to write it; without this, beside the capture under its name
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Converts a capture and prints where it went.
///
/// # Errors
/// One line that names the file and what is wrong with it.
pub fn run(arguments: &ImportArguments) -> anyhow::Result<()> {
    let model = opening::read(&arguments.file)?;
    let out = arguments.out.clone().unwrap_or_else(|| arguments.file.with_extension("ondes"));
    let same = |a: &PathBuf, b: &PathBuf| Some(a.canonicalize().ok()? == b.canonicalize().ok()?);
    if same(&out, &arguments.file) == Some(true) {
        bail!("{}: would be written over itself", out.display());
    }
    file::write(&model, &out)?;
    terminal::print(&out.display().to_string())
}
