//! `ondes export`: writes models as files of other programs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ondes_engine::files;
use ondes_engine::model::ModelFileError;
use ondes_engine::model::export::nn_tilde;

use crate::render::output_target::check_not_input;
use crate::{help, open_model, terminal};

const EXAMPLES: &str = "\
Examples:
  ondes export strings --to nn~
  ondes export amp.nam --to nn~ --out externals/amp.ts";

/// Writes a codec, capture or effect as a TorchScript program for nn~ (Max, Pure Data): NAME.ts.
///
/// All methods of the model are written, as 32-bit floats. Controls become attributes.
#[derive(Args)]
#[command(after_help = help::with_models(EXAMPLES))]
pub struct ExportArguments {
    /// Model file, a capture, or a bundled model by its name
    pub file: PathBuf,
    /// Program to export for
    #[arg(long, value_enum)]
    pub to: Target,
    /// File to write [default: FILE with the ending .ts]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print warnings and errors only
    #[arg(short, long)]
    pub quiet: bool,
}

/// Program to export for.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Target {
    /// nn~, and whatever else plays its TorchScript models
    #[value(name = "nn~")]
    NnTilde,
}

/// Exports a model and prints the path of the file.
///
/// # Errors
/// Returns an error if the model cannot be read or exported, or the file cannot be written.
pub fn run(arguments: &ExportArguments) -> anyhow::Result<()> {
    let (model, _) = open_model::find_or(open_model::read, &arguments.file)?;
    let out = arguments
        .out
        .clone()
        .unwrap_or_else(|| arguments.file.with_extension("ts"));
    check_not_input(&out, [arguments.file.as_path()])?;
    let exported = match arguments.to {
        Target::NnTilde => nn_tilde::export(&model),
    };
    let bytes = exported.map_err(|error| ModelFileError {
        path: arguments.file.clone(),
        error,
    })?;
    files::write(&out, &bytes).map_err(|error| ModelFileError {
        path: out.clone(),
        error: error.into(),
    })?;
    if arguments.quiet {
        Ok(())
    } else {
        terminal::print(&out.display().to_string())
    }
}
