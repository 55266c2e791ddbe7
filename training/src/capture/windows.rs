//! Split of a pair into training, validation and held-out parts, and windows of the training part.

use std::ops::Range;

use ondes_engine::random::GOLDEN_GAMMA;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use tch::{Device, Tensor};

/// Longest held-out part, seconds; more would be worth more for training.
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
        Self { validation: held_out - held_out_samples / 2, held_out, end: samples }
    }
}

/// Batch of windows: inputs `[batch, 1, lead + samples]` and target `[batch, samples]`.
pub struct WindowBatch {
    /// Sound, then each knob.
    pub inputs: Vec<Tensor>,
    /// Target for the end of the inputs.
    pub wet: Tensor,
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

/// Windows of the training parts, in a different order in each epoch.
pub struct Windows {
    /// Signals, each after `lead` samples of silence.
    dry: Vec<f32>,
    /// Recordings.
    wet: Vec<f32>,
    /// Starts of the recordings in `wet`, and the end.
    borders: Vec<usize>,
    /// `[recording][knob]`
    settings: Vec<Vec<f32>>,
    lead: usize,
    length: usize,
    batch: usize,
    seed: u64,
}

impl Windows {
    /// Cuts training parts into windows of `length` samples, `batch` at a time, each after `lead` samples of warm-up.
    #[must_use]
    pub fn new(parts: &[TrainingPart<'_>], lead: usize, length: usize, batch: usize, seed: u64) -> Self {
        let (mut dry, mut wet, mut borders) = (Vec::new(), Vec::new(), vec![0]);
        for part in parts {
            // Silence before the start.
            dry.resize(dry.len() + lead, 0.0);
            dry.extend_from_slice(part.dry);
            wet.extend_from_slice(part.wet);
            borders.push(wet.len());
        }
        let shortest = parts.iter().map(|part| part.wet.len()).min().unwrap_or(0);
        let settings = parts.iter().map(|part| part.settings.clone()).collect();
        Self { dry, wet, borders, settings, lead, length: length.min(shortest / 2).max(1), batch, seed }
    }

    /// Changes the number of windows per batch, or of streams.
    pub fn set_batch(&mut self, batch: usize) {
        self.batch = batch;
    }

    /// Returns the number of windows of a recording; the random offset of the first leaves out less than one.
    fn count_in(&self, recording: usize) -> usize {
        let samples = self.borders[recording + 1] - self.borders[recording];
        (samples.saturating_sub(self.length) / self.length).max(1)
    }

    /// Returns the number of windows per epoch.
    #[must_use]
    pub fn count(&self) -> usize {
        (0..self.settings.len()).map(|recording| self.count_in(recording)).sum()
    }

    /// Returns the number of batches per epoch.
    #[must_use]
    pub fn batches(&self) -> u64 {
        self.count().div_ceil(self.batch) as u64
    }

    /// Returns the start of each window of an epoch, in random order.
    #[must_use]
    pub fn starts(&self, epoch: u64) -> Vec<usize> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed ^ (epoch + 1).wrapping_mul(GOLDEN_GAMMA));
        let offset = random.random_range(0..self.length);
        let windows = |recording: usize| {
            let first = self.borders[recording] + offset;
            (0..self.count_in(recording)).map(move |window| first + window * self.length)
        };
        let mut starts: Vec<usize> = (0..self.settings.len()).flat_map(windows).collect();
        starts.shuffle(&mut random);
        starts
    }

    /// Returns the recording that contains a sample.
    fn recording_at(&self, sample: usize) -> usize {
        self.borders.partition_point(|border| *border <= sample) - 1
    }

    /// Returns the batch of windows with these starts.
    #[must_use]
    pub fn cut(&self, starts: &[usize], device: Device) -> WindowBatch {
        let rows = starts.len() as i64;
        let length = self.lead + self.length;
        let (mut dry, mut wet) = (Vec::with_capacity(starts.len() * length), Vec::new());
        for &start in starts {
            let from = start + self.lead * self.recording_at(start);
            dry.extend_from_slice(&self.dry[from..from + length]);
            wet.extend_from_slice(&self.wet[start..start + self.length]);
        }
        let mut inputs = vec![Tensor::from_slice(&dry).view([rows, 1, -1]).to_device(device)];
        for knob in 0..self.knobs() {
            let positions = starts.iter().map(|&start| self.settings[self.recording_at(start)][knob]);
            let positions: Vec<f32> = positions.collect();
            let shape = [rows, 1, length as i64];
            inputs.push(Tensor::from_slice(&positions).view([rows, 1, 1]).to_device(device).expand(shape, false));
        }
        WindowBatch { inputs, wet: Tensor::from_slice(&wet).view([rows, -1]).to_device(device) }
    }

    fn knobs(&self) -> usize {
        self.settings.first().map_or(0, Vec::len)
    }

    /// Returns some of the parallel streams at a chunk of an epoch. The training parts are `batch` streams, cut along
    /// time, for recurrent networks; they start at a random offset in each epoch and wrap around at the end.
    #[must_use]
    pub fn chunk(&self, epoch: u64, chunk: u64, streams: Range<usize>, device: Device) -> WindowBatch {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed ^ (epoch + 1).wrapping_mul(GOLDEN_GAMMA));
        let samples = self.wet.len();
        let offset = random.random_range(0..samples);
        let apart = samples / self.batch;
        let rows = streams.len() as i64;
        let places: Vec<usize> = streams
            .flat_map(|stream| {
                let start = offset + stream * apart + chunk as usize * self.length;
                (start..start + self.length).map(|sample| sample % samples)
            })
            .collect();
        let gather = |value: &dyn Fn(usize) -> f32, shape: &[i64]| {
            let values: Vec<f32> = places.iter().map(|&place| value(place)).collect();
            Tensor::from_slice(&values).view(shape).to_device(device)
        };
        let mut inputs = vec![gather(&|place| self.dry[place], &[rows, 1, -1])];
        let positions = |knob: usize| gather(&|place| self.settings[self.recording_at(place)][knob], &[rows, 1, -1]);
        inputs.extend((0..self.knobs()).map(positions));
        WindowBatch { inputs, wet: gather(&|place| self.wet[place], &[rows, -1]) }
    }

    /// Returns the number of batches per epoch of streams.
    #[must_use]
    pub fn chunks(&self) -> u64 {
        (self.wet.len() / self.batch / self.length).max(1) as u64
    }
}
