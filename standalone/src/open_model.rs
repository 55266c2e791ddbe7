//! Opening models of any format, and cabinets.

use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use ondes_engine::model::import::ImportedModel;
use ondes_engine::model::{Model, file};
use ondes_engine::torch;
use ondes_player::cabinet::bundled::BundledCabinet;
use ondes_player::library::{BundledModel, FoundModel};

use crate::{help, terminal};

/// Opens a model file, a capture of another program or a TorchScript model, and prints notes about
/// it on standard error. TorchScript models are executed to find their shapes.
///
/// # Errors
/// Returns an error that names the file and what is wrong with it.
pub fn open(path: &Path) -> anyhow::Result<Model> {
    Ok(print_notes(torch::open(path)?, path))
}

/// Same as [`open`], but executes nothing: TorchScript models are refused.
///
/// # Errors
/// Returns an error that names the file and what is wrong with it.
pub fn read(path: &Path) -> anyhow::Result<Model> {
    Ok(print_notes(file::open(path)?, path))
}

fn print_notes(imported: ImportedModel, path: &Path) -> Model {
    for note in &imported.notes {
        terminal::warn(&format!("{}: {note}", path.display()));
    }
    imported.model
}

/// Opens a model file, or finds a bundled model by name (case does not matter).
///
/// # Errors
/// Returns an error if the file cannot be opened, or there is neither a file nor a bundled model of
/// that name.
pub fn find(model: &Path) -> anyhow::Result<FoundModel> {
    find_or(open, model)
}

/// Returns whether a name of the command line means a bundled model: there is one, and no file of
/// that name.
pub fn is_bundled(model: &Path) -> bool {
    BundledModel::named(&model.to_string_lossy()).is_some() && !model.is_file()
}

/// Finds a bundled model by name, or opens a file in another way.
///
/// # Errors
/// As [`find`].
pub fn find_or(
    open: impl Fn(&Path) -> anyhow::Result<Model>,
    model: &Path,
) -> anyhow::Result<FoundModel> {
    let name = model.to_string_lossy();
    let bundled = BundledModel::named(&name);
    match bundled.filter(|_| !model.is_file()) {
        Some(bundled) => Ok((bundled.model(), None)),
        // A bare name rather than a path.
        None if model.extension().is_none()
            && model.components().count() == 1
            && !model.exists() =>
        {
            bail!(
                "{name}: no such file or bundled model; bundled: {}",
                help::model_names().join(", ")
            )
        }
        None => {
            let found = open(model)?;
            Ok((Arc::new(found), Some(model.into())))
        }
    }
}

/// Returns the bundled cabinet of this name; `None` if it names a file.
///
/// # Errors
/// Returns an error if it can only be a name, and there is no bundled cabinet of that name.
pub fn bundled_cabinet(cabinet: &Path) -> anyhow::Result<Option<&'static BundledCabinet>> {
    if cabinet.exists() {
        return Ok(None);
    }
    let name = cabinet.to_string_lossy();
    let found = BundledCabinet::named(&name);
    if found.is_none() && cabinet.extension().is_none() && cabinet.components().count() == 1 {
        bail!(
            "{name}: no such file or bundled cabinet; bundled: {}",
            help::cabinet_names().join(", ")
        )
    }
    Ok(found)
}
