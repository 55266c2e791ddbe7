//! Random crops of recordings, for training.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use ondes_engine::dsp::loudness::FLOOR_DB;
use ondes_engine::model::Header;
use ondes_engine::random::GOLDEN_GAMMA;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;
use tch::{Device, Tensor};

use super::augmentation::Augmentation;
use super::config::DataConfig;
use super::crop::Crop;
use super::open_folder;
use super::rows::{RowSource, TensorGroup, stack};
use super::store::{Reads, Recordings, apply_gain};

/// Largest silence before a recording, as a share of the crop.
const SILENCE_SHARE: f64 = 0.5;
/// Steps and rows of [`Dataset::examples`].
const EXAMPLE_STEPS: u64 = 16;
const EXAMPLE_ROWS: usize = 8;

/// Part of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subset {
    /// Recordings that the weights are fitted to.
    Training,
    /// Recordings that select the best weights.
    Validation,
}

/// Recordings of a subset.
struct Part {
    recordings: Recordings,
    /// Sums of the frames up to and including each recording.
    ends: Vec<usize>,
}

impl Part {
    fn new(recordings: Recordings) -> Self {
        let ends = recordings.iter().scan(0, |sum, recording| {
            *sum += recording.frames;
            Some(*sum)
        });
        Self {
            ends: ends.collect(),
            recordings,
        }
    }

    /// Returns the recording of a position in the store, and the position in it as a share of its
    /// length.
    fn locate(&self, position: usize) -> (usize, f64) {
        let index = self.ends.partition_point(|&end| end <= position);
        let before = if index == 0 { 0 } else { self.ends[index - 1] };
        let share = (position - before) as f64 / (self.ends[index] - before) as f64;
        (self.recordings.indices[index], share)
    }
}

/// Recordings that crops are drawn from.
pub struct Dataset {
    training: Part,
    validation: Part,
    frames: usize,
    seed: u64,
    augmentation: Augmentation,
    all: Recordings,
    held_out: Option<Recordings>,
}

/// Batch of crops: controls and the sound that belongs to them.
pub struct CropBatch {
    /// Pitch `[batch, 1, frames]`, semitones.
    pub pitch: Tensor,
    /// Loudness `[batch, 1, frames]`, dB.
    pub loudness: Tensor,
    /// Sound `[batch, frames · hop]`; that of frame `i` ends at the instant that frame `i`
    /// describes.
    pub audio: Tensor,
    /// Position of each knob that the recordings tell, `[batch, 1, 1]`.
    pub knobs: BTreeMap<String, Tensor>,
}

impl CropBatch {
    /// Stacks crops of equal length.
    pub(crate) fn new<'a>(crops: impl ExactSizeIterator<Item = &'a Crop> + Clone) -> Self {
        let size = crops.len() as i64;
        let stacked = |values: fn(&Crop) -> &[f32]| stack(crops.clone().map(values));
        let names = crops
            .clone()
            .next()
            .into_iter()
            .flat_map(|crop| crop.knobs.keys());
        let knob = |name: &String| {
            let positions: Vec<f32> = crops.clone().map(|crop| crop.knobs[name]).collect();
            Tensor::from_slice(&positions).view([size, 1, 1])
        };
        Self {
            pitch: stacked(|crop| &crop.pitch),
            loudness: stacked(|crop| &crop.loudness),
            audio: stacked(|crop| &crop.audio).squeeze_dim(1),
            knobs: names.map(|name| (name.clone(), knob(name))).collect(),
        }
    }

    /// Returns the inputs of an instrument's `synth`, `[batch, 1, frames]`. A control that the
    /// recordings do not tell is at its default.
    #[must_use]
    pub fn inputs(&self, instrument: &Header) -> Vec<Tensor> {
        let at_default = |name: &str| {
            let control = instrument
                .controls
                .iter()
                .find(|control| control.name == name);
            self.pitch
                .full_like(control.map_or(0.0, |control| f64::from(control.default)))
        };
        let input = |name: &str| match (name, self.knobs.get(name)) {
            ("pitch", _) => self.pitch.shallow_clone(),
            ("loudness", _) => self.loudness.shallow_clone(),
            (_, Some(knob)) => knob.expand_as(&self.pitch).contiguous(),
            (name, None) => at_default(name),
        };
        let ports = instrument
            .method("synth")
            .into_iter()
            .flat_map(|synth| &synth.inputs);
        ports.map(|port| input(&port.name)).collect()
    }
}

impl TensorGroup for CropBatch {
    fn map(self, change: &mut dyn FnMut(Tensor) -> Tensor) -> Self {
        Self {
            pitch: change(self.pitch),
            loudness: change(self.loudness),
            audio: change(self.audio),
            knobs: self
                .knobs
                .into_iter()
                .map(|(name, knob)| (name, change(knob)))
                .collect(),
        }
    }
}

/// Separates the recordings of every `every`-th pitch, in semitones; none at 0.
fn hold_out(all: &Recordings, every: usize) -> anyhow::Result<(Recordings, Option<Recordings>)> {
    if every == 0 {
        return Ok((all.clone(), None));
    }
    let semitone = |index: usize| {
        all.store.recordings()[index]
            .pitch
            .map(|pitch| pitch.round() as i32)
    };
    let pitches: BTreeSet<i32> = all
        .indices
        .iter()
        .filter_map(|&index| semitone(index))
        .collect();
    // From the middle of each group, so that the lowest and the highest pitch are learnt.
    let chosen: BTreeSet<i32> = pitches.into_iter().skip(every / 2).step_by(every).collect();
    let is_chosen = |index: &usize| semitone(*index).is_some_and(|pitch| chosen.contains(&pitch));
    let (held_out, kept): (Vec<usize>, Vec<usize>) =
        all.indices.iter().partition(|index| is_chosen(index));
    ensure!(
        !kept.is_empty() && !held_out.is_empty(),
        "there are too few pitches to hold any out"
    );
    Ok((all.subset(kept), Some(all.subset(held_out))))
}

/// Crops for training.
impl RowSource for Dataset {
    type Row = Crop;
    type Batch = CropBatch;

    fn row(&self, step: u64, row: usize) -> anyhow::Result<Crop> {
        self.crop(Subset::Training, step, row)
    }

    fn joined(&self, rows: &[Arc<Crop>]) -> CropBatch {
        CropBatch::new(rows.iter().map(Arc::as_ref))
    }

    fn row_bytes(&self) -> usize {
        self.frames * (self.training.recordings.store.format().rate.hop + 2) * size_of::<f32>()
    }

    fn reads(&self) -> Reads {
        self.training.recordings.store.reads()
    }
}

/// Prepares a folder, or opens a dataset.
fn open_recordings(config: &DataConfig<'_>, folder: &Path) -> anyhow::Result<Recordings> {
    let recordings = open_folder(
        folder,
        &config.cache,
        config.rate,
        config.recordings.high_pass,
    )?;
    recordings
        .with_knobs(config.knobs)
        .with_context(|| folder.display().to_string())
}

impl Dataset {
    /// Opens all recordings of the configured folder, as loud as they are.
    ///
    /// # Errors
    /// As [`Dataset::open`].
    pub fn recordings_of(config: &DataConfig<'_>) -> anyhow::Result<Recordings> {
        open_recordings(config, config.folder)
    }

    /// Prepares the configured folder, or opens the configured dataset.
    ///
    /// # Errors
    /// Returns an error if there is no audio, or a recording cannot be used.
    pub fn open(config: &DataConfig<'_>) -> anyhow::Result<Self> {
        let open = |folder: &Path| -> anyhow::Result<Recordings> {
            let recordings = open_recordings(config, folder)?;
            Ok(if config.recordings.match_levels() {
                recordings.with_matched_levels()
            } else {
                recordings
            })
        };
        let all = open(config.folder)?;
        all.store.set_cache(config.memory);
        let named = || config.folder.display().to_string();
        let (learnt, held_out) =
            hold_out(&all, config.recordings.held_out_pitch).with_context(named)?;
        let split = match config.recordings.fold {
            Some(fold) => {
                fold.split(&learnt, config.recordings.fold_by)
                    .map(|[training, validation]| {
                        Self::from_parts(&learnt, training, validation, config.frames)
                    })
            }
            None => Self::split(&learnt, config.validation_share, config.frames),
        };
        let split = split.with_context(named)?;
        let held_out = config.held_out.map(open).transpose()?.or(held_out);
        Ok(Self {
            seed: config.seed,
            augmentation: config.augmentation,
            all,
            held_out,
            ..split
        })
    }

    /// Splits recordings into those for training and a share for validation; crops have `frames`
    /// frames.
    ///
    /// # Errors
    /// Returns an error if there is no recording.
    pub fn split(all: &Recordings, validation_share: f64, frames: usize) -> anyhow::Result<Self> {
        let indices: Vec<usize> = all
            .indices
            .iter()
            .copied()
            .filter(|&index| all.store.recordings()[index].frames > 1)
            .collect();
        let count = indices.len();
        if count == 0 {
            bail!("the recordings are empty");
        }
        let validation_files =
            ((count as f64 * validation_share).round() as usize).clamp(0, count - 1);
        // Every n-th file, so that the validation files represent the whole folder.
        let every = count.checked_div(validation_files).unwrap_or(usize::MAX);
        let (mut training, mut validation) = (Vec::new(), Vec::new());
        for (index, recording) in indices.into_iter().enumerate() {
            let is_validation =
                (index + 1).is_multiple_of(every) && validation.len() < validation_files;
            if is_validation {
                validation.push(recording)
            } else {
                training.push(recording)
            }
        }
        Ok(Self::from_parts(all, training, validation, frames))
    }

    fn from_parts(
        all: &Recordings,
        training: Vec<usize>,
        validation: Vec<usize>,
        frames: usize,
    ) -> Self {
        let part = |indices| Part::new(all.subset(indices));
        Self {
            training: part(training),
            validation: part(validation),
            frames,
            seed: 0,
            augmentation: Augmentation::default(),
            all: all.clone(),
            held_out: None,
        }
    }

    fn part(&self, subset: Subset) -> &Part {
        match subset {
            Subset::Validation if !self.validation.recordings.indices.is_empty() => {
                &self.validation
            }
            _ => &self.training,
        }
    }

    /// Returns the length of the training recordings, seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.training.recordings.seconds()
    }

    /// Returns the recordings of a subset; the training recordings if there are none for
    /// validation.
    #[must_use]
    pub fn recordings(&self, subset: Subset) -> &Recordings {
        &self.part(subset).recordings
    }

    /// Returns all recordings.
    #[must_use]
    pub fn all(&self) -> &Recordings {
        &self.all
    }

    /// Returns the recordings to measure quality on: those that are held out, else those for
    /// validation, else those for training.
    #[must_use]
    pub fn measured(&self) -> &Recordings {
        self.held_out
            .as_ref()
            .unwrap_or_else(|| self.recordings(Subset::Validation))
    }

    /// Returns the sound of the first training crops, augmented as in training: an example of what
    /// a loss is relative to.
    ///
    /// # Errors
    /// Returns an error if a shard cannot be read or is damaged.
    pub fn examples(&self) -> anyhow::Result<Vec<Vec<f32>>> {
        let mut sounds = Vec::new();
        for step in 0..EXAMPLE_STEPS {
            let crops = self.batch(Subset::Training, step, 0..EXAMPLE_ROWS, Device::Cpu)?;
            for row in crops.audio.unbind(0) {
                sounds.push(Vec::try_from(row)?);
            }
        }
        Ok(sounds)
    }

    /// Returns the length of a crop, seconds.
    #[must_use]
    pub fn crop_seconds(&self) -> f64 {
        self.training
            .recordings
            .store
            .format()
            .rate
            .seconds(self.frames)
    }

    /// Returns a hash of the format and the contents of all recordings.
    #[must_use]
    pub fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(format!("{:?}", self.training.recordings.store.format()).as_bytes());
        for recording in self
            .training
            .recordings
            .iter()
            .chain(self.validation.recordings.iter())
        {
            hasher.update(recording.source.hash.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Returns some of the crops of a step, which depend on the seed, the step and the row only.
    /// They are cut on all cores.
    ///
    /// # Errors
    /// Returns an error if a shard cannot be read or is damaged.
    pub fn batch(
        &self,
        subset: Subset,
        step: u64,
        rows: Range<usize>,
        device: Device,
    ) -> anyhow::Result<CropBatch> {
        let crops = rows.into_par_iter().map(|row| self.crop(subset, step, row));
        let crops = crops.collect::<anyhow::Result<Vec<Crop>>>()?;
        Ok(CropBatch::new(crops.iter()).to_device(device))
    }

    /// Returns a crop of a step: of a random position, padded with silence where the recording is
    /// shorter. It may begin before the recording, since many begin with an attack, which the
    /// warm-up of a crop would hide.
    ///
    /// # Errors
    /// Returns an error if a shard cannot be read or is damaged.
    pub(super) fn crop(&self, subset: Subset, step: u64, row: usize) -> anyhow::Result<Crop> {
        let part = self.part(subset);
        let seed = self.seed
            ^ step.wrapping_mul(GOLDEN_GAMMA)
            ^ (row as u64).rotate_left(32)
            ^ subset as u64;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut crop = self.draw(part, subset, &mut random)?;
        if subset == Subset::Training {
            if let Some(gain) = self.augmentation.draw_mix(&mut random) {
                let mut other = self.draw(part, subset, &mut random)?;
                apply_gain(gain, &mut other.audio, &mut []);
                crop.audio
                    .iter_mut()
                    .zip(other.audio)
                    .for_each(|(sample, other)| *sample += other);
            }
            self.augmentation.colour(
                &mut crop.audio,
                part.recordings.store.format().rate.sample_rate,
                &mut random,
            );
        }
        Ok(crop)
    }

    /// Draws the position, the pitch and the gain of a crop and reads it.
    fn draw(
        &self,
        part: &Part,
        subset: Subset,
        random: &mut Xoshiro256PlusPlus,
    ) -> anyhow::Result<Crop> {
        let (recording, share) =
            part.locate(random.random_range(0..*part.ends.last().context("no recordings")?));
        let (shift, gain) = match subset {
            Subset::Training => (
                self.augmentation.draw(random),
                self.augmentation.draw_gain(random),
            ),
            Subset::Validation => (0, 0.0),
        };
        let length = part.recordings.store.recordings()[recording].frames;
        // The sound of a frame precedes it, so the controls are those of one frame later.
        let source_frames = self.augmentation.source_frames(self.frames, shift);
        let before = (SILENCE_SHARE * source_frames as f64) as usize;
        let position =
            (share * (before + length).saturating_sub(source_frames + 1) as f64) as usize;
        let mut crop = self.read(
            part,
            recording,
            position as isize - before as isize,
            source_frames,
        )?;
        apply_gain(
            gain + part.recordings.gain(recording),
            &mut crop.audio,
            &mut crop.loudness,
        );
        self.augmentation.apply(
            crop,
            self.frames,
            part.recordings.store.format().rate.hop,
            shift,
        )
    }

    /// Reads `frames` of a recording from the frame `first`, of which those before 0 are silent.
    fn read(
        &self,
        part: &Part,
        recording: usize,
        first: isize,
        frames: usize,
    ) -> anyhow::Result<Crop> {
        let store = &part.recordings.store;
        let (hop, length) = (
            store.format().rate.hop,
            store.recordings()[recording].frames,
        );
        let (silent, first) = (first.min(0).unsigned_abs(), first.max(0).unsigned_abs());
        let mut crop = Crop {
            pitch: Vec::with_capacity(frames + 1),
            loudness: Vec::with_capacity(frames + 1),
            audio: Vec::with_capacity((frames + 1) * hop),
            knobs: part.recordings.knobs(recording),
        };
        crop.loudness.resize(silent, FLOOR_DB);
        crop.audio.resize(silent * hop, 0.0);
        // The frame before the first and the sound of the last one, which are not needed, go
        // afterwards: rows that are not in memory cost more than copies.
        store.read(
            recording,
            first..(first + 1 + frames - silent).min(length),
            |row, frames| {
                crop.audio
                    .extend_from_slice(&row.sound[frames.start * hop..frames.end * hop]);
                crop.pitch.extend_from_slice(&row.pitch[frames.clone()]);
                crop.loudness.extend_from_slice(&row.loudness[frames]);
            },
        )?;
        let first_pitch = crop.pitch.first().copied().unwrap_or_default();
        crop.pitch
            .splice(0..0, std::iter::repeat_n(first_pitch, silent));
        crop.pitch.remove(0);
        crop.loudness.remove(0);
        crop.audio.resize(frames * hop, 0.0);
        crop.pitch
            .resize(frames, crop.pitch.last().copied().unwrap_or_default());
        crop.loudness.resize(frames, FLOOR_DB);
        Ok(crop)
    }
}
