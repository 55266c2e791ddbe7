//! Models to compare.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ondes_engine::model::Model;

use crate::compression::variants;

/// Model or variant to compare.
pub struct Candidate {
    /// Name in tables and charts.
    pub name: String,
    /// File that it was read from.
    pub path: PathBuf,
    /// The model.
    pub model: Arc<Model>,
}

/// Returns a model and its variants as candidates.
///
/// # Errors
/// Returns an error if a variant is no valid model.
pub fn candidates(path: &Path, model: &Model) -> anyhow::Result<Vec<Candidate>> {
    let stem = path
        .file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let mut all = Vec::new();
    for variant in &model.header().variants {
        let name = format!("{stem} ({})", variant.name);
        all.push(Candidate {
            name,
            path: path.to_owned(),
            model: Arc::new(variants::extract(model, variant)?),
        });
    }
    all.push(Candidate {
        name: stem,
        path: path.to_owned(),
        model: Arc::new(model.clone()),
    });
    Ok(all)
}
