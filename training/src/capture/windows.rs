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

/// Batch of windows: input `[batch, 1, lead + samples]` and target `[batch, samples]`.
pub struct WindowBatch {
    /// Input.
    pub dry: Tensor,
    /// Target for the end of the input.
    pub wet: Tensor,
}

/// Windows of the training part, in a different order in each epoch.
pub struct Windows {
    dry: Vec<f32>,
    wet: Vec<f32>,
    lead: usize,
    length: usize,
    batch: usize,
    seed: u64,
}

impl Windows {
    /// Cuts a training part into windows of `length` samples, `batch` at a time, each after `lead` samples of warm-up.
    #[must_use]
    pub fn new(dry: &[f32], wet: &[f32], lead: usize, length: usize, batch: usize, seed: u64) -> Self {
        // Silence before the start.
        let dry = [vec![0.0; lead], dry.to_vec()].concat();
        let length = length.min(wet.len() / 2).max(1);
        Self { dry, wet: wet.to_vec(), lead, length, batch, seed }
    }

    /// Returns the number of windows per epoch; the random offset of the first leaves out less than one.
    #[must_use]
    pub fn count(&self) -> usize {
        ((self.wet.len() - self.length) / self.length).max(1)
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
        let mut starts: Vec<usize> = (0..self.count()).map(|window| offset + window * self.length).collect();
        starts.shuffle(&mut random);
        starts
    }

    /// Returns the batch of windows with these starts.
    #[must_use]
    pub fn cut(&self, starts: &[usize], device: Device) -> WindowBatch {
        let gather = |sound: &[f32], length: usize| -> Vec<f32> {
            starts.iter().flat_map(|&start| &sound[start..start + length]).copied().collect()
        };
        let rows = starts.len() as i64;
        let dry = Tensor::from_slice(&gather(&self.dry, self.lead + self.length)).view([rows, 1, -1]);
        let wet = Tensor::from_slice(&gather(&self.wet, self.length)).view([rows, -1]);
        WindowBatch { dry: dry.to_device(device), wet: wet.to_device(device) }
    }

    /// Returns some of the parallel streams at a chunk of an epoch. The training part is `batch` streams, cut along
    /// time, for recurrent networks; they start at a random offset in each epoch and wrap around at the end.
    #[must_use]
    pub fn chunk(&self, epoch: u64, chunk: u64, streams: Range<usize>, device: Device) -> WindowBatch {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed ^ (epoch + 1).wrapping_mul(GOLDEN_GAMMA));
        let offset = random.random_range(0..self.wet.len());
        let apart = self.wet.len() / self.batch;
        let gather = |sound: &[f32]| -> Vec<f32> {
            let mut gathered = Vec::with_capacity(streams.len() * self.length);
            for stream in streams.clone() {
                let start = (offset + stream * apart + chunk as usize * self.length) % sound.len();
                let first = self.length.min(sound.len() - start);
                gathered.extend_from_slice(&sound[start..start + first]);
                gathered.extend_from_slice(&sound[..self.length - first]);
            }
            gathered
        };
        let rows = streams.len() as i64;
        WindowBatch {
            dry: Tensor::from_slice(&gather(&self.dry[self.lead..])).view([rows, 1, -1]).to_device(device),
            wet: Tensor::from_slice(&gather(&self.wet)).view([rows, -1]).to_device(device),
        }
    }

    /// Returns the number of batches per epoch of streams.
    #[must_use]
    pub fn chunks(&self) -> u64 {
        (self.wet.len() / self.batch / self.length).max(1) as u64
    }
}
