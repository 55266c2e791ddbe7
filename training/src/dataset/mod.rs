//! Training data: [`features`] analyses files, [`Dataset`] draws random crops from them.

pub mod features;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use indicatif::ProgressBar;
use ondes_engine::media::FILE_EXTENSIONS;
use ondes_engine::random::GOLDEN_GAMMA;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;
use tch::{Device, Tensor};

use crate::config::Config;
pub use features::{FeatureRate, Features};

/// Part of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subset {
    /// Files that the weights are fitted to.
    Training,
    /// Files that select the best weights.
    Validation,
}

/// Analysed files of a folder.
pub struct Dataset {
    training: Vec<Features>,
    validation: Vec<Features>,
    frames: usize,
    seed: u64,
}

/// Batch of crops: controls and the sound that belongs to them.
pub struct CropBatch {
    /// Pitch `[batch, 1, frames]`, semitones.
    pub pitch: Tensor,
    /// Loudness `[batch, 1, frames]`, dB.
    pub loudness: Tensor,
    /// Sound `[batch, frames · hop]`; that of frame `i` ends at the instant that frame `i` describes.
    pub audio: Tensor,
}

impl CropBatch {
    /// Returns the inputs of `synth`: pitch, loudness and a noise level of 1.
    pub fn controls(&self) -> [Tensor; 3] {
        [self.pitch.shallow_clone(), self.loudness.shallow_clone(), self.pitch.ones_like()]
    }
}

impl Dataset {
    /// Analyses all audio files below the configured folder, or opens the cached analyses.
    ///
    /// # Errors
    /// Returns an error if there is no audio, or no file is longer than a crop.
    pub fn open(config: &Config) -> anyhow::Result<Self> {
        let rate = FeatureRate { sample_rate: config.network.sample_rate, hop: config.network.hop };
        let files = load_features(&config.data, &config.work.join("features"), rate)?;
        let frames = config.clip_frames();
        let (long, short): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| file.frames() > frames);
        if long.is_empty() {
            bail!("{}: no file is longer than a crop of {} s", config.data.display(), config.training.clip_seconds);
        }
        if !short.is_empty() {
            eprintln!("{} files are shorter than a crop and are left out", short.len());
        }
        let validation_files =
            ((long.len() as f64 * config.training.validation_share).round() as usize).clamp(0, long.len() - 1);
        // Every n-th file, so that the validation files represent the whole folder.
        let every = long.len().checked_div(validation_files).unwrap_or(usize::MAX);
        let (mut training, mut validation) = (Vec::new(), Vec::new());
        for (index, file) in long.into_iter().enumerate() {
            let is_validation = (index + 1).is_multiple_of(every) && validation.len() < validation_files;
            if is_validation { validation.push(file) } else { training.push(file) }
        }
        Ok(Self { training, validation, frames, seed: config.seed })
    }

    /// Returns the length of the training files, seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.training.iter().map(Features::seconds).sum()
    }

    /// Returns the files of a subset; the training files if there are no validation files.
    #[must_use]
    pub fn files(&self, part: Subset) -> &[Features] {
        match part {
            Subset::Validation if !self.validation.is_empty() => &self.validation,
            _ => &self.training,
        }
    }

    /// Returns a hash of the contents of all files.
    #[must_use]
    pub fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for file in self.training.iter().chain(&self.validation) {
            hasher.update(file.hash.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Returns some of the crops of a step, which depend on the seed, the step and the row only.
    #[must_use]
    pub fn batch(&self, part: Subset, step: u64, rows: Range<usize>, device: Device) -> CropBatch {
        let files = self.files(part);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed ^ step.wrapping_mul(GOLDEN_GAMMA) ^ part as u64);
        let total: usize = files.iter().map(|file| file.frames() - self.frames).sum();
        let (mut pitch, mut loudness, mut audio) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..rows.end {
            let mut position = random.random_range(0..total);
            let file = files.iter().find(|file| {
                let positions = file.frames() - self.frames;
                let found = position < positions;
                if !found {
                    position -= positions;
                }
                found
            });
            let file = file.expect("the position is within the files");
            if row < rows.start {
                continue;
            }
            // The sound of a frame precedes it, so a crop never starts at frame 0.
            let first = position + 1;
            pitch.extend_from_slice(&file.pitch()[first..][..self.frames]);
            loudness.extend_from_slice(&file.loudness()[first..][..self.frames]);
            audio.extend_from_slice(&file.audio()[(first - 1) * file.rate.hop..][..self.frames * file.rate.hop]);
        }
        let size = rows.len() as i64;
        let control = |values: &[f32]| Tensor::from_slice(values).view([size, 1, -1]).to_device(device);
        CropBatch {
            pitch: control(&pitch),
            loudness: control(&loudness),
            audio: Tensor::from_slice(&audio).view([size, -1]).to_device(device),
        }
    }
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
        if !folder.canonicalize().is_ok_and(|folder| visited.insert(folder)) {
            continue;
        }
        for entry in std::fs::read_dir(&folder).with_context(|| format!("{}: cannot be read", folder.display()))? {
            let path = entry.with_context(|| format!("{}: cannot be read", folder.display()))?.path();
            let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("").to_lowercase();
            if path.is_dir() {
                folders.push(path);
            } else if FILE_EXTENSIONS.contains(&ending.as_str()) {
                found.push(path);
            }
        }
    }
    if found.is_empty() {
        bail!("{}: holds no audio file ({})", folder.display(), FILE_EXTENSIONS.join(", "));
    }
    found.sort();
    Ok(found)
}

/// Analyses all audio files below a folder on all cores, or opens the cached analyses.
///
/// # Errors
/// Returns the error of the first file that cannot be decoded or stored.
pub fn load_features(folder: &Path, cache: &Path, rate: FeatureRate) -> anyhow::Result<Vec<Features>> {
    let paths = audio_files(folder)?;
    std::fs::create_dir_all(cache).with_context(|| format!("{}: cannot create the folder", cache.display()))?;
    let progress = ProgressBar::new(paths.len() as u64).with_message("analysing");
    let files = paths
        .par_iter()
        .map(|path| {
            let features = Features::open(path, cache, rate);
            progress.inc(1);
            features
        })
        .collect();
    progress.finish_and_clear();
    files
}
