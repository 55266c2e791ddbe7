//! Sound to learn from: [`features`] hears a file once and keeps what it heard, [`Dataset`] deals out crops of it.

pub mod features;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use indicatif::ProgressBar;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;
use tch::{Device, Tensor};

use crate::config::Config;
pub use features::{FeatureRate, Features};

/// What the files of a folder are split into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What the weights are fitted to.
    Training,
    /// What decides which weights are kept.
    Validation,
}

/// The files of one folder, heard and split.
pub struct Dataset {
    training: Vec<Features>,
    validation: Vec<Features>,
    frames: usize,
    seed: u64,
}

/// Crops: conditions and the sound that belongs to them.
pub struct Batch {
    /// `[batch, 1, frames]`, semitones.
    pub pitch: Tensor,
    /// `[batch, 1, frames]`, dB.
    pub loudness: Tensor,
    /// `[batch, frames · hop]`; the sound of frame `i` ends at the instant that frame `i` describes.
    pub audio: Tensor,
}

impl Batch {
    /// What the ports of a `synth` are fed: pitch, loudness and as much noise as was learnt.
    pub fn controls(&self) -> [Tensor; 3] {
        [self.pitch.shallow_clone(), self.loudness.shallow_clone(), self.pitch.ones_like()]
    }
}

impl Dataset {
    /// Hears all audio files below the configured folder, or finds them heard already.
    ///
    /// # Errors
    /// When there is no audio, or no file is as long as a crop.
    pub fn open(config: &Config) -> anyhow::Result<Self> {
        let rate = FeatureRate { sample_rate: config.network.sample_rate, hop: config.network.hop };
        let files = hear(&config.data, &config.work.join("features"), rate)?;
        let frames = config.clip_frames();
        let (long, short): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| file.frames() > frames);
        if long.is_empty() {
            bail!("{}: no file is longer than a crop of {} s", config.data.display(), config.training.clip_seconds);
        }
        if !short.is_empty() {
            eprintln!("{} files are shorter than a crop and left out", short.len());
        }
        let kept = ((long.len() as f64 * config.training.validation_share).round() as usize).clamp(0, long.len() - 1);
        // Spread over the folder, so that the validation part has something of everything.
        let every = long.len().checked_div(kept).unwrap_or(usize::MAX);
        let (mut training, mut validation) = (Vec::new(), Vec::new());
        for (index, file) in long.into_iter().enumerate() {
            let held = (index + 1).is_multiple_of(every) && validation.len() < kept;
            if held { validation.push(file) } else { training.push(file) }
        }
        Ok(Self { training, validation, frames, seed: config.seed })
    }

    /// Length of the training part, seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.training.iter().map(Features::seconds).sum()
    }

    /// The files of a part; those of the training part where none were set aside for validation.
    #[must_use]
    pub fn files(&self, part: Part) -> &[Features] {
        match part {
            Part::Validation if !self.validation.is_empty() => &self.validation,
            _ => &self.training,
        }
    }

    /// The crops of one step: the same for the same step, whatever was dealt before.
    #[must_use]
    pub fn batch(&self, part: Part, step: u64, size: usize, device: Device) -> Batch {
        let files = self.files(part);
        let mut random =
            Xoshiro256PlusPlus::seed_from_u64(self.seed ^ step.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ part as u64);
        let total: usize = files.iter().map(|file| file.frames() - self.frames).sum();
        let (mut pitch, mut loudness, mut audio) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..size {
            let mut place = random.random_range(0..total);
            let file = files.iter().find(|file| {
                let places = file.frames() - self.frames;
                let here = place < places;
                if !here {
                    place -= places;
                }
                here
            });
            let file = file.expect("the place is within the files");
            // The first frame's sound comes before it, so a crop never starts at frame 0.
            let first = place + 1;
            pitch.extend_from_slice(&file.pitch()[first..][..self.frames]);
            loudness.extend_from_slice(&file.loudness()[first..][..self.frames]);
            audio.extend_from_slice(&file.audio()[(first - 1) * file.rate.hop..][..self.frames * file.rate.hop]);
        }
        let size = size as i64;
        let control = |values: &[f32]| Tensor::from_slice(values).view([size, 1, -1]).to_device(device);
        Batch {
            pitch: control(&pitch),
            loudness: control(&loudness),
            audio: Tensor::from_slice(&audio).view([size, -1]).to_device(device),
        }
    }
}

/// Audio files below a folder, in the order of their names.
///
/// # Errors
/// When the folder cannot be read or holds no audio.
pub fn audio_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    const ENDINGS: [&str; 11] = ["wav", "wave", "flac", "mp3", "ogg", "oga", "aif", "aiff", "m4a", "mp4", "caf"];
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| format!("{}: cannot be read", folder.display()))? {
            let path = entry.with_context(|| format!("{}: cannot be read", folder.display()))?.path();
            let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("").to_lowercase();
            if path.is_dir() {
                folders.push(path);
            } else if ENDINGS.contains(&ending.as_str()) {
                found.push(path);
            }
        }
    }
    if found.is_empty() {
        bail!("{}: holds no audio file ({})", folder.display(), ENDINGS.join(", "));
    }
    found.sort();
    Ok(found)
}

/// Hears all audio files below a folder, on all cores, or finds them heard already.
///
/// # Errors
/// The first file that cannot be decoded or kept.
pub fn hear(folder: &Path, cache: &Path, rate: FeatureRate) -> anyhow::Result<Vec<Features>> {
    let paths = audio_files(folder)?;
    std::fs::create_dir_all(cache).with_context(|| format!("{}: cannot be made", cache.display()))?;
    let progress = ProgressBar::new(paths.len() as u64).with_message("hearing");
    let heard = paths
        .par_iter()
        .map(|path| {
            let features = Features::open(path, cache, rate);
            progress.inc(1);
            features
        })
        .collect();
    progress.finish_and_clear();
    heard
}
