//! Recordings to measure quality on.

use std::path::Path;

use ondes_engine::model::Kind;

use crate::data::{DataConfig, Dataset, FeatureRate, Recordings, Subset, is_recipe, open_folder};
use crate::tasks::codec::CodecConfig;
use crate::tasks::instrument::config::Config;

/// Opens the recordings to measure quality on, and the training recordings if they are known. A
/// folder is measured as a whole; a recipe of an instrument or a codec gives both.
///
/// # Errors
/// Returns an error if a dataset is damaged, a folder cannot be prepared or the recipe is wrong.
pub fn open_measured(
    path: &Path,
    cache: &Path,
    rate: FeatureRate,
    kind: Kind,
) -> anyhow::Result<(Recordings, Option<Recordings>)> {
    if !is_recipe(path) {
        return Ok((open_folder(path, cache, rate, 0)?, None));
    }
    let open = |data: DataConfig<'_>| Dataset::open(&DataConfig { rate, ..data });
    let dataset = match kind {
        Kind::Codec => open(CodecConfig::read(path)?.data())?,
        _ => {
            let mut config = Config::read(path)?;
            config.fill()?;
            open(config.data())?
        }
    };
    Ok((
        dataset.measured().clone(),
        Some(dataset.recordings(Subset::Training).clone()),
    ))
}
