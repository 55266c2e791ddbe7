//! `ondes info`: a model's card, its ports and controls, and what it costs to play.
//!
//! [`facts`] gathers all there is to say, [`cost`] measures what playing takes, [`text`] lays it out for a person.

mod cost;
mod facts;
mod text;

use std::path::PathBuf;

use clap::Args;

use crate::{opening, terminal};

const EXAMPLES: &str = "\
Examples:
  ondes info bowed.ondes
  ondes info amp.nam
  ondes info bowed.ondes --json | jq '.quality'";

/// Shows what a model is, what it can do, how good it is and what it costs to play.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct InfoArguments {
    /// The model file: NAME.ondes, or a capture of another program
    pub model: PathBuf,
    /// Prints one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Prints what there is to say of a model.
///
/// # Errors
/// One line that names the file and what is wrong with it.
pub fn run(arguments: &InfoArguments) -> anyhow::Result<()> {
    let path = &arguments.model;
    let model = opening::open(path)?;
    let with_path = |error: &dyn std::fmt::Display| anyhow::anyhow!("{}: {error}", path.display());
    let file_bytes = std::fs::metadata(path).map_err(|error| with_path(&error))?.len();
    let facts = facts::gather(&model, path, file_bytes).map_err(|error| with_path(&error))?;
    if arguments.json {
        terminal::print(&serde_json::to_string(&facts)?)
    } else {
        terminal::print(text::lay_out(&facts).trim_end())
    }
}
