//! Split of a pair into training, validation and held-out parts, and windows of the training part.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use ondes_engine::random::GOLDEN_GAMMA;
use ondes_engine::sync::lock;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use tch::Tensor;

use crate::data::rows::stack;
use crate::data::{RowSource, StepRows, TensorGroup};

/// Longest held-out part, seconds; the rest is for training.
const HELD_OUT_S: f64 = 16.0;
/// Largest held-out share of a pair.
const HELD_OUT_SHARE: f64 = 0.1;

/// Split of a pair by time: training, then validation, then the held-out part.
pub struct Split {
    /// First sample of the validation part.
    pub validation: usize,
    /// First sample of the held-out part.
    pub held_out: usize,
    /// Length of the pair, samples.
    pub end: usize,
}

impl Split {
    /// Splits a pair of that many samples.
    #[must_use]
    pub fn new(samples: usize, rate_hz: f64) -> Self {
        let held_out_samples = (HELD_OUT_SHARE * samples as f64).min(HELD_OUT_S * rate_hz) as usize;
        let held_out = samples - held_out_samples;
        Self {
            validation: held_out - held_out_samples / 2,
            held_out,
            end: samples,
        }
    }
}

/// Batch of windows: inputs `[batch, 1, lead + samples]` and target `[batch, samples]`. A constant
/// knob has one sample.
pub struct WindowBatch {
    /// Sound, then each knob.
    pub inputs: Vec<Tensor>,
    /// Target for the end of the inputs.
    pub wet: Tensor,
}

impl TensorGroup for WindowBatch {
    fn map(self, change: &mut dyn FnMut(Tensor) -> Tensor) -> Self {
        Self {
            inputs: self.inputs.into_iter().map(&mut *change).collect(),
            wet: change(self.wet),
        }
    }
}

impl WindowBatch {
    /// Returns the batch with knobs as long as the sound.
    #[must_use]
    pub fn expanded(mut self) -> Self {
        let shape = self.inputs[0].size();
        self.inputs
            .iter_mut()
            .for_each(|input| *input = input.expand(&shape, false));
        self
    }
}

/// Window of a recording, or chunk of a stream.
pub struct Window {
    /// Signal.
    dry: Vec<f32>,
    /// Recording of its end.
    wet: Vec<f32>,
    /// `[knob]`: position, or positions at each sample.
    settings: Vec<Vec<f32>>,
}

/// Training part of a recording.
pub struct TrainingPart<'a> {
    /// Signal.
    pub dry: &'a [f32],
    /// Recording.
    pub wet: &'a [f32],
    /// Positions of the knobs.
    pub settings: Vec<f32>,
}

/// Order in which training parts are learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowOrder {
    /// Windows, each after this many samples of warm-up, in a different order in each epoch.
    Random(usize),
    /// Parallel streams, cut along time, for recurrent networks. They start at a random offset in
    /// each epoch and wrap around at the end.
    Streams,
}

/// Sound of all training parts.
struct Sound {
    /// Signals, each after silence for the warm-up.
    dry: Vec<f32>,
    /// Recordings.
    wet: Vec<f32>,
    /// Starts of the recordings in `wet`, and the end.
    borders: Vec<usize>,
    /// `[recording][knob]`
    settings: Vec<Vec<f32>>,
}

/// Windows of the training parts.
pub struct Windows {
    sound: Arc<Sound>,
    order: WindowOrder,
    length: usize,
    batch: usize,
    seed: u64,
    /// Starts of the windows of the latest epochs.
    epochs: Mutex<BTreeMap<u64, Arc<[usize]>>>,
}

impl Windows {
    /// Cuts training parts into windows of `length` samples, `batch` at a time.
    #[must_use]
    pub fn new(
        parts: &[TrainingPart<'_>],
        order: WindowOrder,
        length: usize,
        batch: usize,
        seed: u64,
    ) -> Self {
        let (mut dry, mut wet, mut borders) = (Vec::new(), Vec::new(), vec![0]);
        for part in parts {
            // Silence before the start.
            dry.resize(dry.len() + order.lead(), 0.0);
            dry.extend_from_slice(part.dry);
            wet.extend_from_slice(part.wet);
            borders.push(wet.len());
        }
        let shortest = parts.iter().map(|part| part.wet.len()).min().unwrap_or(0);
        let settings = parts.iter().map(|part| part.settings.clone()).collect();
        let sound = Arc::new(Sound {
            dry,
            wet,
            borders,
            settings,
        });
        Self {
            sound,
            order,
            length: length.min(shortest / 2).max(1),
            batch,
            seed,
            epochs: Mutex::default(),
        }
    }

    /// Returns the same windows with another number of them per batch, or of streams.
    #[must_use]
    pub fn with_batch(&self, batch: usize) -> Self {
        Self {
            sound: self.sound.clone(),
            batch,
            epochs: Mutex::default(),
            ..*self
        }
    }

    /// Returns the rows of each step.
    #[must_use]
    pub fn rows(&self) -> StepRows {
        let epoch = (self.order != WindowOrder::Streams).then(|| self.count());
        StepRows {
            epoch,
            ..StepRows::new(self.batch)
        }
    }

    /// Returns the number of steps of an epoch.
    #[must_use]
    pub fn steps(&self) -> u64 {
        match self.order {
            WindowOrder::Random(_) => self.count().div_ceil(self.batch) as u64,
            WindowOrder::Streams => (self.sound.wet.len() / self.batch / self.length).max(1) as u64,
        }
    }

    /// Returns the number of windows of a recording; the random offset of the first leaves out less
    /// than one.
    fn count_in(&self, recording: usize) -> usize {
        let borders = &self.sound.borders;
        let samples = borders[recording + 1] - borders[recording];
        (samples.saturating_sub(self.length) / self.length).max(1)
    }

    /// Returns the number of windows of an epoch.
    fn count(&self) -> usize {
        (0..self.sound.settings.len())
            .map(|recording| self.count_in(recording))
            .sum()
    }

    fn random(&self, epoch: u64) -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(self.seed ^ (epoch + 1).wrapping_mul(GOLDEN_GAMMA))
    }

    /// Returns the start of each window of an epoch, in random order.
    fn starts(&self, epoch: u64) -> Arc<[usize]> {
        let mut epochs = lock(&self.epochs);
        // Threads are at most at the end of one epoch and the start of the next.
        epochs.retain(|known, _| known.abs_diff(epoch) <= 1);
        let starts = epochs.entry(epoch).or_insert_with(|| {
            let mut random = self.random(epoch);
            let offset = random.random_range(0..self.length);
            let windows = |recording: usize| {
                let first = self.sound.borders[recording] + offset;
                (0..self.count_in(recording)).map(move |window| first + window * self.length)
            };
            let mut starts: Vec<usize> = (0..self.sound.settings.len()).flat_map(windows).collect();
            starts.shuffle(&mut random);
            starts.into()
        });
        starts.clone()
    }

    /// Returns the window that starts at a sample of the recordings.
    fn window(&self, start: usize, lead: usize) -> Window {
        let sound = &self.sound;
        let recording = sound.recording_at(start);
        let from = start + lead * recording;
        Window {
            dry: sound.dry[from..from + lead + self.length].to_vec(),
            wet: sound.wet[start..start + self.length].to_vec(),
            settings: sound.settings[recording]
                .iter()
                .map(|position| vec![*position])
                .collect(),
        }
    }

    /// Returns a stream at a chunk of an epoch.
    fn chunk(&self, epoch: u64, chunk: u64, stream: usize) -> Window {
        let sound = &self.sound;
        let samples = sound.wet.len();
        let start = self.random(epoch).random_range(0..samples)
            + stream * (samples / self.batch)
            + chunk as usize * self.length;
        let gathered = |value: &dyn Fn(usize) -> f32| -> Vec<f32> {
            (start..start + self.length)
                .map(|sample| value(sample % samples))
                .collect()
        };
        let knobs = sound.settings.first().map_or(0, Vec::len);
        let positions =
            |knob: usize| gathered(&|sample| sound.settings[sound.recording_at(sample)][knob]);
        Window {
            dry: gathered(&|sample| sound.dry[sample]),
            wet: gathered(&|sample| sound.wet[sample]),
            settings: (0..knobs).map(positions).collect(),
        }
    }
}

impl WindowOrder {
    /// Returns the samples of warm-up before a window.
    fn lead(self) -> usize {
        match self {
            Self::Random(lead) => lead,
            Self::Streams => 0,
        }
    }
}

impl Sound {
    /// Returns the recording that contains a sample.
    fn recording_at(&self, sample: usize) -> usize {
        self.borders.partition_point(|border| *border <= sample) - 1
    }
}

impl RowSource for Windows {
    type Row = Window;
    type Batch = WindowBatch;

    fn row(&self, step: u64, row: usize) -> anyhow::Result<Window> {
        let (epoch, index) = (step / self.steps(), step % self.steps());
        Ok(match self.order {
            WindowOrder::Random(lead) => {
                self.window(self.starts(epoch)[index as usize * self.batch + row], lead)
            }
            WindowOrder::Streams => self.chunk(epoch, index, row),
        })
    }

    fn joined(&self, rows: &[Arc<Window>]) -> WindowBatch {
        let knobs = rows.first().map_or(0, |row| row.settings.len());
        let knob = |knob: usize| stack(rows.iter().map(|row| row.settings[knob].as_slice()));
        let sound = stack(rows.iter().map(|row| row.dry.as_slice()));
        WindowBatch {
            inputs: std::iter::once(sound).chain((0..knobs).map(knob)).collect(),
            wet: stack(rows.iter().map(|row| row.wet.as_slice())).squeeze_dim(1),
        }
    }

    fn row_bytes(&self) -> usize {
        let knobs = self.sound.settings.first().map_or(0, Vec::len);
        let positions = if self.order == WindowOrder::Streams {
            knobs * self.length
        } else {
            knobs
        };
        (self.order.lead() + 2 * self.length + positions) * size_of::<f32>()
    }
}
