//! `ondes info`: a model's card, ports, controls and cost.
//!
//! [`model_info`] gathers the information, [`cost`] measures the cost of playing, [`info_text`] formats both for the
//! terminal.

mod cost;
mod info_text;
mod model_info;

use std::path::PathBuf;

use clap::Args;
use ondes_engine::panics::contain;

use crate::program_arguments::ProgramArguments;
use crate::{open_model, terminal};

const EXAMPLES: &str = "\
Examples:
  ondes info bowed.ondes
  ondes info amp.nam
  ondes info bowed.ondes --json | jq '.quality'";

/// Shows what a model is, what it can do, how good it is and what it costs to play
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct InfoArguments {
    /// Model file, NAME.ondes, a capture of another program or a TorchScript model
    pub model: PathBuf,
    /// Method and settings of a TorchScript model.
    #[command(flatten)]
    pub program: ProgramArguments,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Prints the information about a model.
///
/// # Errors
/// Returns an error that names the file and what is wrong with it.
pub fn run(arguments: &InfoArguments) -> anyhow::Result<()> {
    let path = &arguments.model;
    let model = arguments.program.apply(open_model::open(path)?, path)?;
    let with_path = |error: &dyn std::fmt::Display| anyhow::anyhow!("{}: {error}", path.display());
    let file_bytes = std::fs::metadata(path).map_err(|error| with_path(&error))?.len();
    // A TorchScript model may fail while it is measured.
    let gathered = contain(|| model_info::gather(&model, path, file_bytes));
    let info = gathered
        .map_err(|reason| with_path(&format!("the model failed: {reason}")))?
        .map_err(|error| with_path(&error))?;
    if arguments.json {
        terminal::print(&serde_json::to_string(&info)?)
    } else {
        terminal::print(info_text::format(&info).trim_end())
    }
}
