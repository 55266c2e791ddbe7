//! The pair, cut for training: what is learnt from, what decides, what only measures; and the windows of one epoch.

use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use tch::{Device, Tensor};

/// Longest held-out part, seconds: enough to judge by, and the rest is worth more to learn from.
const HELD_OUT_S: f64 = 16.0;
/// The most of a pair that is held out.
const HELD_OUT_SHARE: f64 = 0.1;

/// A pair split by time: training, then validation, then what is held out, at its end.
pub struct Split {
    /// First sample of the validation part.
    pub validation: usize,
    /// First sample of the held-out part.
    pub held_out: usize,
    /// Samples of the pair.
    pub end: usize,
}

impl Split {
    /// For a pair of that many samples.
    #[must_use]
    pub fn new(samples: usize, rate_hz: f64) -> Self {
        let held = (HELD_OUT_SHARE * samples as f64).min(HELD_OUT_S * rate_hz) as usize;
        let held_out = samples - held;
        Self { validation: held_out - held / 2, held_out, end: samples }
    }
}

/// A batch: `[batch, 1, lead + samples]` of the input, `[batch, samples]` of what it became.
pub struct Batch {
    /// What goes in.
    pub dry: Tensor,
    /// What comes out at the end of it.
    pub wet: Tensor,
}

/// Windows of the training part in an order of their own for each epoch.
pub struct Windows {
    dry: Vec<f32>,
    wet: Vec<f32>,
    lead: usize,
    length: usize,
    batch: usize,
    seed: u64,
}

impl Windows {
    /// Of a training part: windows of `length` samples, `batch` at a time, each after `lead` samples that only warm up.
    #[must_use]
    pub fn new(dry: &[f32], wet: &[f32], lead: usize, length: usize, batch: usize, seed: u64) -> Self {
        // Before the beginning there is silence.
        let dry = [vec![0.0; lead], dry.to_vec()].concat();
        let length = length.min(wet.len() / 2).max(1);
        Self { dry, wet: wet.to_vec(), lead, length, batch, seed }
    }

    /// Windows of an epoch; the offset of the first one leaves out less than one of them.
    fn count(&self) -> usize {
        (self.wet.len() - self.length) / self.length
    }

    /// Batches of an epoch.
    #[must_use]
    pub fn batches(&self) -> u64 {
        self.count().div_ceil(self.batch).max(1) as u64
    }

    /// Where the windows of an epoch begin, in its order.
    #[must_use]
    pub fn starts(&self, epoch: u64) -> Vec<usize> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed ^ (epoch + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let offset = random.random_range(0..self.length);
        let mut starts: Vec<usize> = (0..self.count().max(1)).map(|window| offset + window * self.length).collect();
        starts.shuffle(&mut random);
        starts
    }

    /// The batch of windows that begin there.
    #[must_use]
    pub fn cut(&self, starts: &[usize], device: Device) -> Batch {
        let gather = |sound: &[f32], length: usize| -> Vec<f32> {
            starts.iter().flat_map(|&start| &sound[start..start + length]).copied().collect()
        };
        let rows = starts.len() as i64;
        let dry = Tensor::from_slice(&gather(&self.dry, self.lead + self.length)).view([rows, 1, -1]);
        let wet = Tensor::from_slice(&gather(&self.wet, self.length)).view([rows, -1]);
        Batch { dry: dry.to_device(device), wet: wet.to_device(device) }
    }

    /// The batches of an epoch.
    pub fn epoch(&self, epoch: u64, device: Device) -> impl Iterator<Item = Batch> + '_ {
        let starts = self.starts(epoch);
        let batch = self.batch;
        (0..starts.len().div_ceil(batch)).map(move |index| {
            let from = index * batch;
            self.cut(&starts[from..(from + batch).min(starts.len())], device)
        })
    }

    /// For what remembers by a state: the training part as `batch` streams side by side, cut along time. Each epoch's streams
    /// begin elsewhere; a stream that comes to the end goes on at the beginning.
    pub fn streams(&self, epoch: u64, device: Device) -> impl Iterator<Item = Batch> + '_ {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed ^ (epoch + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let offset = random.random_range(0..self.wet.len());
        let apart = self.wet.len() / self.batch;
        let dry = &self.dry[self.lead..];
        (0..self.chunks()).map(move |chunk| {
            let gather = |sound: &[f32]| -> Vec<f32> {
                let sample = |stream: usize, at: usize| {
                    sound[(offset + stream * apart + chunk as usize * self.length + at) % sound.len()]
                };
                (0..self.batch).flat_map(|stream| (0..self.length).map(move |at| sample(stream, at))).collect()
            };
            let rows = self.batch as i64;
            Batch {
                dry: Tensor::from_slice(&gather(dry)).view([rows, 1, -1]).to_device(device),
                wet: Tensor::from_slice(&gather(&self.wet)).view([rows, -1]).to_device(device),
            }
        })
    }

    /// Batches of an epoch of streams.
    #[must_use]
    pub fn chunks(&self) -> u64 {
        (self.wet.len() / self.batch / self.length).max(1) as u64
    }
}
