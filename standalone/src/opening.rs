//! Opening a model file of any format.

use std::path::Path;

use ondes_engine::model::import::Imported;
use ondes_engine::model::{Model, file};
use ondes_engine::torch;

use crate::terminal;

/// Reads a model, ours, a capture of another program or a TorchScript program, which is run for that; what was noticed while
/// reading is said on standard error.
///
/// # Errors
/// One line that names the file and what is wrong with it.
pub fn open(path: &Path) -> anyhow::Result<Model> {
    Ok(told(torch::open(path)?, path))
}

/// The same, where nothing is run: programs are refused.
///
/// # Errors
/// One line that names the file and what is wrong with it.
pub fn read(path: &Path) -> anyhow::Result<Model> {
    Ok(told(file::open(path)?, path))
}

fn told(read: Imported, path: &Path) -> Model {
    for note in &read.notes {
        terminal::warn(&format!("{}: {note}", path.display()));
    }
    read.model
}
