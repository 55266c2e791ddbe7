//! Folders of recordings, and settings of the crops that are cut from them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use super::augmentation::Augmentation;
use super::features::FeatureRate;
use super::folds::{Fold, FoldBy};
use super::knobs::RecordedKnob;
use crate::byte_size::bytes;
use crate::check;

/// Selection and filtering of the recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecordingsConfig {
    /// Frequency below which the sound is attenuated, by 12 dB per octave, Hz; 0 for none. Rumble
    /// and DC would be learnt as sound. A dataset has its own.
    pub high_pass: u16,
    /// Plays all recordings equally loud: for sessions of different levels, and for recordings of
    /// one dynamic. If absent, not; for instruments, where the recordings have one dynamic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_levels: Option<bool>,
    /// Holds out every n-th recorded pitch for the final measurement; 0 for none.
    pub held_out_pitch: usize,
    /// Fold to validate on, such as "2/5", instead of `training.validation_share`; `--folds` sets
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fold: Option<Fold>,
    /// Unit that folds divide.
    pub fold_by: FoldBy,
}

impl Default for RecordingsConfig {
    fn default() -> Self {
        Self {
            high_pass: 30,
            match_levels: None,
            held_out_pitch: 0,
            fold: None,
            fold_by: FoldBy::default(),
        }
    }
}

impl RecordingsConfig {
    /// Returns true if all recordings are played equally loud.
    #[must_use]
    pub fn match_levels(&self) -> bool {
        self.match_levels.unwrap_or(false)
    }

    /// Returns the fold for the identity of a run, if there is one: older checkpoints know none.
    pub(crate) fn fold_identity(&self) -> Option<(String, String)> {
        self.fold.map(|fold| {
            (
                "recordings.fold".to_owned(),
                format!("{fold} by {:?}", self.fold_by).to_lowercase(),
            )
        })
    }

    /// Checks the ranges.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        ensure!(
            self.high_pass <= 500,
            "recordings.high_pass must be 0 to 500 Hz"
        );
        ensure!(
            self.held_out_pitch != 1,
            "recordings.held_out_pitch must be 0, or 2 and more"
        );
        Ok(())
    }
}

/// Reading of recordings while training.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoaderConfig {
    /// Threads; 0 to start with one and add more while the trainer waits for data.
    pub workers: usize,
    /// Memory for decoded recordings, bytes, such as "512M".
    #[serde(deserialize_with = "bytes")]
    pub cache: u64,
}

impl Default for LoaderConfig {
    fn default() -> Self {
        Self {
            workers: 0,
            cache: 512_000_000,
        }
    }
}

impl LoaderConfig {
    /// Checks the ranges.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        check_workers(self.workers)
    }
}

/// Threads that cut rows from memory.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkersConfig {
    /// Threads; 0 to start with one and add more while the trainer waits for data.
    pub workers: usize,
}

impl WorkersConfig {
    /// Checks the range.
    pub(crate) fn check(self) -> anyhow::Result<()> {
        check_workers(self.workers)
    }
}

fn check_workers(workers: usize) -> anyhow::Result<()> {
    check::in_range("loader.workers", workers, 0..=256)?;
    Ok(())
}

/// Settings of a [`Dataset`](super::Dataset).
#[derive(Clone, Debug)]
pub struct DataConfig<'a> {
    /// Folder of recordings, or a dataset.
    pub folder: &'a Path,
    /// Recordings to measure quality on; without them, the validation files are used.
    pub held_out: Option<&'a Path>,
    /// Folder for analysed recordings.
    pub cache: PathBuf,
    /// Rates of sound and features.
    pub rate: FeatureRate,
    /// Selection and filtering.
    pub recordings: RecordingsConfig,
    /// Knobs whose positions are known for the recordings.
    pub knobs: &'a BTreeMap<String, RecordedKnob>,
    /// Augmentation of the training crops.
    pub augmentation: Augmentation,
    /// Memory for decoded recordings, bytes.
    pub memory: u64,
    /// Share of the files used for validation.
    pub validation_share: f64,
    /// Frames of a crop.
    pub frames: usize,
    /// Seed of the crops.
    pub seed: u64,
}
