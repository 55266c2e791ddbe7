//! Training data: [`prepare()`] analyses folders of recordings once and writes a dataset of Arrow
//! files ([`shard`]); [`store`] opens it, and [`Dataset`] draws random crops. A [`Loader`] cuts
//! [`rows`] of any kind ahead of need. [`pieces`] is the analysis of one recording.

pub mod augmentation;
pub mod bench;
pub mod biquad;
pub mod config;
pub mod crop;
pub mod crops;
pub mod features;
pub mod folds;
pub mod knobs;
pub mod loader;
pub mod pieces;
pub mod playing;
pub mod prepare;
pub mod report;
pub mod rows;
pub mod shard;
pub mod store;
mod upload;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use ondes_engine::media::FILE_EXTENSIONS;

pub use augmentation::Augmentation;
pub use config::{DataConfig, LoaderConfig, RecordingsConfig, WorkersConfig};
pub use crop::Crop;
pub use crops::{CropBatch, Dataset, Subset};
pub use features::{FeatureRate, Features};
pub use folds::{Fold, FoldBy};
pub use knobs::RecordedKnob;
pub use loader::{Loader, LoaderStats};
pub use prepare::{PrepareOptions, prepare, prepare_again};
pub use rows::{RowSource, StepRows, TensorGroup};
pub use shard::{DataFormat, SoundFormat};
pub use store::Recordings;

/// Characters of the hash in the name of a dataset in a work folder.
const NAME_HASH: usize = 12;

/// Opens the recordings of a folder: a dataset of these rates as it is; one of other rates and the
/// audio files of any other folder are prepared in a folder below `cache` first, files with a
/// [high-pass filter](DataFormat::high_pass).
///
/// # Errors
/// Returns an error if a dataset is damaged, or a folder cannot be prepared.
pub fn open_folder(
    folder: &Path,
    cache: &Path,
    rate: FeatureRate,
    high_pass: u16,
) -> anyhow::Result<Recordings> {
    let absolute = folder
        .canonicalize()
        .with_context(|| format!("{}: cannot be read", folder.display()))?;
    let name = absolute
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let prepared = |high_pass: u16| {
        let identity = format!(
            "{} {} {} {high_pass}",
            absolute.display(),
            rate.sample_rate,
            rate.hop
        );
        let hash = &blake3::hash(identity.as_bytes()).to_hex()[..NAME_HASH];
        (
            cache.join(format!("{name}-{hash}")),
            DataFormat {
                rate,
                sound: SoundFormat::default(),
                high_pass,
            },
        )
    };
    if folder.is_dir() && !store::shard_paths(folder)?.is_empty() {
        let recordings = Recordings::open(folder)?;
        let own = recordings.store.format();
        if own.rate == rate {
            return Ok(recordings);
        }
        let (dataset, format) = prepared(own.high_pass);
        prepare_again(&recordings.store, &dataset, &PrepareOptions::new(format))?;
        return Recordings::open(&dataset);
    }
    let (dataset, format) = prepared(high_pass);
    prepare(&[folder.to_owned()], &dataset, &PrepareOptions::new(format))?;
    Recordings::open(&dataset)
}

/// Returns whether a path to recordings is that of a recipe.
#[must_use]
pub fn is_recipe(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
}

/// Lists the audio files below a folder, sorted by path.
///
/// # Errors
/// Returns an error if the folder cannot be read or holds no audio.
pub fn audio_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    let mut visited = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        // Links may lead back to a folder.
        if !folder
            .canonicalize()
            .is_ok_and(|folder| visited.insert(folder))
        {
            continue;
        }
        for entry in std::fs::read_dir(&folder)
            .with_context(|| format!("{}: cannot be read", folder.display()))?
        {
            let path = entry
                .with_context(|| format!("{}: cannot be read", folder.display()))?
                .path();
            let ending = path
                .extension()
                .and_then(|ending| ending.to_str())
                .unwrap_or("")
                .to_lowercase();
            if path.is_dir() {
                folders.push(path);
            } else if FILE_EXTENSIONS.contains(&ending.as_str()) {
                found.push(path);
            }
        }
    }
    if found.is_empty() {
        bail!(
            "{}: holds no audio file ({})",
            folder.display(),
            FILE_EXTENSIONS.join(", ")
        );
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests;
