//! Reading of recipes.

use std::path::Path;

use anyhow::Context;
use ondes_engine::files;
use ondes_engine::files::shortened;
use serde::de::DeserializeOwned;

/// Largest recipe, bytes; far above any real one.
pub(crate) const MAX_BYTES: u64 = 1 << 20;

/// Reads a TOML file.
///
/// # Errors
/// Returns an error with the line if the file is missing, is not TOML, or has an unknown key.
pub fn read_toml<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let name = path.display();
    let text = files::read_to_string(path, MAX_BYTES)
        .with_context(|| format!("{name}: cannot be read"))?;
    toml::from_str(&text).map_err(|error| {
        let line = error
            .span()
            .map_or(1, |span| text[..span.start].lines().count().max(1));
        anyhow::anyhow!("{name}: line {line}: {}", shortened(error.message()))
    })
}

/// Returns the configuration of a run without a recipe file: paths, and settings as in `recipe`.
/// The result has the name of its file, beside which analysed audio and checkpoints are.
///
/// # Errors
/// Returns an error if a path is not UTF-8.
pub(crate) fn without_recipe<T: DeserializeOwned>(
    recipe: &str,
    model: &[(&str, &Path)],
    data: &Path,
    out: &Path,
) -> anyhow::Result<T> {
    let mut table: toml::Table = recipe.parse()?;
    let name = Path::new(out.file_stem().unwrap_or_default());
    let work = out.with_extension("work");
    let paths = [
        ("data", data),
        ("out", out),
        ("work", &work),
        ("name", name),
    ];
    for (key, path) in paths.iter().chain(model) {
        let text = path
            .to_str()
            .with_context(|| format!("{}: its name is not UTF-8", path.display()))?;
        table.insert((*key).to_owned(), text.into());
    }
    Ok(table.try_into()?)
}
