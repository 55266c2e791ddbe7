//! `ondes info`: a model's card, ports, controls and cost.
//!
//! [`model_info`] gathers the information, [`cost`] measures the cost of playing, [`info_text`]
//! formats both for the terminal.

mod cost;
mod info_text;
mod model_info;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use ondes_engine::panics::contain;
use ondes_player::library::BundledModel;

use crate::program_arguments::ProgramArguments;
use crate::{help, open_model, terminal};

const EXAMPLES: &str = "\
Examples:
  ondes info bowed.ondes
  ondes info amp.nam
  ondes info violin
  ondes info bowed.ondes --json | jq '.quality'";

/// Shows what a model is, what it can do, how good it is and what it costs to play
#[derive(Args)]
#[command(after_help = help::with_models(EXAMPLES))]
pub struct InfoArguments {
    /// Model file, NAME.ondes, a bundled model by its name, a capture of another program or a
    /// TorchScript model
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
    let (model, file) = open_model::find(path)?;
    let model = arguments.program.apply(Arc::unwrap_or_clone(model), path)?;
    let with_path = |error: &dyn std::fmt::Display| anyhow::anyhow!("{}: {error}", path.display());
    let file_bytes = match file {
        Some(file) => std::fs::metadata(file)
            .map_err(|error| with_path(&error))?
            .len(),
        None => BundledModel::named(&path.to_string_lossy())
            .map_or(0, |bundled| bundled.file_bytes() as u64),
    };
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
