//! Writing of model files.

use std::path::Path;

use anyhow::Context;
use ondes_engine::model::{Model, file};
use ondes_training::trainer::guard::guarded;

/// Creates the folder of a file.
pub fn create_parent(path: &Path) -> anyhow::Result<()> {
    path.parent().map_or(Ok(()), |folder| {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("{}: cannot create the folder", folder.display()))
    })
}

/// Writes a model, creates its folder if need be, and prints the path.
pub fn write(model: &Model, out: &Path) -> anyhow::Result<()> {
    create_parent(out)?;
    file::write(model, out)?;
    println!("{}: written", out.display());
    Ok(())
}

/// Measures a model for its card. The model is written first, so that a failing measurement does
/// not lose it.
pub fn measured<R>(
    model: &Model,
    out: &Path,
    measure: impl FnOnce() -> anyhow::Result<R>,
) -> anyhow::Result<R> {
    create_parent(out)?;
    file::write(model, out)?;
    guarded("the measurement of the quality", measure)
        .with_context(|| format!("{}: is written without its quality", out.display()))
}
