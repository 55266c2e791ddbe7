//! `ondes import`: converts models of other programs to model files.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use ondes_engine::model::import::rave;
use ondes_engine::model::{Model, ModelError, ModelFileError, file};

use crate::{help, open_model, terminal};

const EXAMPLES: &str = "\
Examples:
  ondes import amp.nam
  ondes import pedal.json -o pedals/screamer.ondes
  ondes import vintage.ts -o vintage.ondes";

/// Converts a capture (.nam, or JSON of AIDA-X, RTNeural or Proteus) or a RAVE export (.ts) to
/// NAME.ondes.
///
/// Captures play as they are; converted, they load faster and can be trained further. A converted
/// RAVE export plays without libtorch.
#[derive(Args)]
#[command(after_help = help::with_models(EXAMPLES))]
pub struct ImportArguments {
    /// Capture, TorchScript export of RAVE v1, v2, v3 or BRAVE, or a bundled model by its name, to
    /// have it as a file
    pub file: PathBuf,
    /// Model file to write [default: FILE with the ending .ondes]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Name on the model's card [default: the name in the file, or the file's name]
    #[arg(long)]
    pub name: Option<String>,
    /// Print warnings and errors only
    #[arg(short, long)]
    pub quiet: bool,
}

/// Converts a model and prints the path of the model file.
///
/// # Errors
/// Returns an error if the file cannot be read, is not supported, or the model file cannot be
/// written.
pub fn run(arguments: &ImportArguments) -> anyhow::Result<()> {
    let (mut model, _) = open_model::find_or(|path| read(path, arguments.quiet), &arguments.file)?;
    if let Some(name) = &arguments.name {
        model = renamed(&model, name)?.into();
    }
    let out = arguments
        .out
        .clone()
        .unwrap_or_else(|| arguments.file.with_extension("ondes"));
    let same = |a: &PathBuf, b: &PathBuf| Some(a.canonicalize().ok()? == b.canonicalize().ok()?);
    if same(&out, &arguments.file) == Some(true) {
        bail!(
            "{}: input and output are the same file; choose another --out",
            out.display()
        );
    }
    file::write(&model, &out)?;
    if arguments.quiet {
        Ok(())
    } else {
        terminal::print(&out.display().to_string())
    }
}

/// Reads a capture or RAVE export and prints notes on standard error.
fn read(path: &Path, quiet: bool) -> anyhow::Result<Model> {
    let error = match open_model::read(path) {
        Ok(model) => return Ok(model),
        Err(error) => error,
    };
    // TorchScript, which is not run here.
    let Some(ModelFileError {
        error: ModelError::Program,
        ..
    }) = error.downcast_ref()
    else {
        return Err(error);
    };
    let import = rave::import(path, None)?;
    for note in &import.notes {
        terminal::warn(&format!("{}: {note}", path.display()));
    }
    if !quiet {
        terminal::print_to_stderr(&import.summary())?;
    }
    Ok(import.model)
}

fn renamed(model: &Model, name: &str) -> Result<Model, ModelError> {
    let mut header = model.header().clone();
    header.card.name = name.to_owned();
    model.with_header(header)
}
