//! Random crops of recordings, for training.

use std::ops::Range;

use anyhow::bail;
use ondes_engine::random::GOLDEN_GAMMA;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;
use tch::{Device, Tensor};

use super::features::{FeatureRate, Features};
use super::open_folder;
use super::store::Recordings;
use crate::config::Config;

/// Part of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subset {
    /// Recordings that the weights are fitted to.
    Training,
    /// Recordings that select the best weights.
    Validation,
}

/// Recordings of a subset that are longer than a crop.
struct Part {
    recordings: Recordings,
    /// Sums of the crop positions up to and including each recording.
    ends: Vec<usize>,
}

impl Part {
    fn new(recordings: Recordings, crop_frames: usize) -> Self {
        let positions = recordings.iter().map(|recording| recording.frames - crop_frames);
        let ends = positions.scan(0, |sum, positions| {
            *sum += positions;
            Some(*sum)
        });
        Self { ends: ends.collect(), recordings }
    }

    /// Returns the recording of a position in the store, and the position in it.
    fn locate(&self, position: usize) -> (usize, usize) {
        let index = self.ends.partition_point(|&end| end <= position);
        let before = if index == 0 { 0 } else { self.ends[index - 1] };
        (self.recordings.indices[index], position - before)
    }
}

/// Recordings that crops are drawn from.
pub struct Dataset {
    training: Part,
    validation: Part,
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

/// Values of one crop.
struct Crop {
    pitch: Vec<f32>,
    loudness: Vec<f32>,
    audio: Vec<f32>,
}

impl Dataset {
    /// Prepares the configured folder, or opens the configured dataset.
    ///
    /// # Errors
    /// Returns an error if there is no audio, or no recording is longer than a crop.
    pub fn open(config: &Config) -> anyhow::Result<Self> {
        let rate = FeatureRate { sample_rate: config.network.sample_rate, hop: config.network.hop };
        let all = open_folder(&config.data, &config.work.join("features"), rate)?;
        let frames = config.clip_frames();
        let mut long = all.clone();
        long.indices.retain(|&index| all.store.recordings()[index].frames > frames);
        let count = long.indices.len();
        if count == 0 {
            bail!("{}: no file is longer than a crop of {} s", config.data.display(), config.training.clip_seconds);
        }
        if count < all.indices.len() {
            eprintln!("{} files are shorter than a crop and are left out", all.indices.len() - count);
        }
        let validation_files = ((count as f64 * config.training.validation_share).round() as usize).clamp(0, count - 1);
        // Every n-th file, so that the validation files represent the whole folder.
        let every = count.checked_div(validation_files).unwrap_or(usize::MAX);
        let (mut training, mut validation) = (Vec::new(), Vec::new());
        for (index, recording) in long.indices.into_iter().enumerate() {
            let is_validation = (index + 1).is_multiple_of(every) && validation.len() < validation_files;
            if is_validation { validation.push(recording) } else { training.push(recording) }
        }
        let part = |indices| Part::new(Recordings { store: all.store.clone(), indices }, frames);
        Ok(Self { training: part(training), validation: part(validation), frames, seed: config.seed })
    }

    fn part(&self, subset: Subset) -> &Part {
        match subset {
            Subset::Validation if !self.validation.recordings.indices.is_empty() => &self.validation,
            _ => &self.training,
        }
    }

    /// Returns the length of the training recordings, seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.training.recordings.seconds()
    }

    /// Returns the recordings of a subset; the training recordings if there are none for validation.
    #[must_use]
    pub fn recordings(&self, subset: Subset) -> &Recordings {
        &self.part(subset).recordings
    }

    /// Reads the recordings of a subset.
    ///
    /// # Errors
    /// Returns an error if a shard cannot be read or is damaged.
    pub fn features(&self, subset: Subset) -> anyhow::Result<Vec<Features>> {
        self.recordings(subset).features().collect()
    }

    /// Returns the sound of the first recordings of a subset, up to a length in seconds.
    ///
    /// # Errors
    /// Returns an error if a shard cannot be read or is damaged.
    pub fn beginning(&self, subset: Subset, seconds: f64) -> anyhow::Result<Vec<Vec<f32>>> {
        let Recordings { store, indices } = self.recordings(subset);
        let rate = store.format().rate;
        let mut left = (seconds * f64::from(rate.sample_rate)) as usize;
        let mut sounds = Vec::new();
        for &index in indices {
            if left == 0 {
                break;
            }
            let (mut sound, frames) = (Vec::new(), store.recordings()[index].frames.min(left.div_ceil(rate.hop)));
            store.read(index, 0..frames, |row, frames| {
                sound.extend_from_slice(&row.sound[frames.start * rate.hop..frames.end * rate.hop]);
            })?;
            sound.truncate(left);
            left -= sound.len();
            sounds.push(sound);
        }
        Ok(sounds)
    }

    /// Returns a hash of the format and the contents of all recordings.
    #[must_use]
    pub fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(format!("{:?}", self.training.recordings.store.format()).as_bytes());
        for recording in self.training.recordings.iter().chain(self.validation.recordings.iter()) {
            hasher.update(recording.source.hash.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Returns some of the crops of a step, which depend on the seed, the step and the row only. They are cut on all
    /// cores.
    ///
    /// # Errors
    /// Returns an error if a shard cannot be read or is damaged.
    pub fn batch(&self, subset: Subset, step: u64, rows: Range<usize>, device: Device) -> anyhow::Result<CropBatch> {
        let part = self.part(subset);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed ^ step.wrapping_mul(GOLDEN_GAMMA) ^ subset as u64);
        let total = *part.ends.last().expect("there is a recording");
        let positions: Vec<usize> = (0..rows.end).map(|_| random.random_range(0..total)).collect();
        let crops = positions[rows].par_iter().map(|&position| self.crop(part, position));
        let crops = crops.collect::<anyhow::Result<Vec<Crop>>>()?;
        let size = crops.len() as i64;
        let stack = |values: fn(&Crop) -> &[f32]| {
            let values: Vec<f32> = crops.iter().flat_map(|crop| values(crop).iter().copied()).collect();
            Tensor::from_slice(&values).view([size, 1, -1]).to_device(device)
        };
        Ok(CropBatch {
            pitch: stack(|crop| &crop.pitch),
            loudness: stack(|crop| &crop.loudness),
            audio: stack(|crop| &crop.audio).squeeze_dim(1),
        })
    }

    fn crop(&self, part: &Part, position: usize) -> anyhow::Result<Crop> {
        let store = &part.recordings.store;
        let hop = store.format().rate.hop;
        let (recording, first) = part.locate(position);
        let mut crop = Crop { pitch: Vec::new(), loudness: Vec::new(), audio: Vec::new() };
        // The sound of a frame precedes it, so the controls are those of one frame later.
        store.read(recording, first..first + self.frames, |row, frames| {
            crop.audio.extend_from_slice(&row.sound[frames.start * hop..frames.end * hop]);
        })?;
        store.read(recording, first + 1..first + 1 + self.frames, |row, frames| {
            crop.pitch.extend_from_slice(&row.pitch[frames.clone()]);
            crop.loudness.extend_from_slice(&row.loudness[frames]);
        })?;
        Ok(crop)
    }
}
