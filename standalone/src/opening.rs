//! Opening a model file of any format.

use std::path::Path;

use ondes_engine::model::{Model, file};

use crate::terminal;

/// Reads a model, ours or a capture of another program; what was noticed while reading is said on standard error.
///
/// # Errors
/// One line that names the file and what is wrong with it.
pub fn open(path: &Path) -> anyhow::Result<Model> {
    let read = file::open(path)?;
    for note in &read.notes {
        terminal::warn(&format!("{}: {note}", path.display()));
    }
    Ok(read.model)
}
