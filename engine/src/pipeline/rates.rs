//! From the host's rate to the model's and back, with an exact latency.
//!
//! Everything inside runs in blocks: of a resampler, of the model. What a block makes is all there at once, so a host that asks
//! for few samples at a time would now and then find none. As many samples of silence as the longest such wait lie in front
//! of the sound; they are part of the latency, and no host block of any size ever has to wait.

use std::collections::VecDeque;

use crate::dsp::resample::{ResampleError, StreamResampler};

/// What lies between host and model, in samples at the model's rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inside {
    /// Samples at the host that the model needs beyond the instant it plays, before it can play it.
    pub lookahead: usize,
    /// Samples by which the model's sound is behind the instant it belongs to.
    pub delay: usize,
}

/// Brings sound from the host to the model.
pub(super) struct ToModel(StreamResampler);

/// Brings sound from the model to the host.
pub(super) struct ToHost {
    resampler: StreamResampler,
    /// Samples at the model's rate still to be left out, so that the latency is a whole number of host samples.
    left_out: usize,
    waiting: VecDeque<f32>,
}

/// Both ways and the latency of the whole.
pub(super) struct Rates {
    pub to_model: ToModel,
    pub to_host: ToHost,
    /// Host samples from an event or a sound to what it makes.
    pub latency: usize,
    /// Host samples that the filters of the conversions ring on.
    pub ring: usize,
    /// The most samples at the model's rate that one chunk of input completes.
    pub most_heard: usize,
    /// Host samples of silence that lie in front of the sound.
    wait: usize,
    /// Samples at the model's rate that are left out at the start.
    left_out: usize,
}

impl Rates {
    /// `with_input` says whether the model hears the host's sound, `chunk` how many host samples are asked for at a time.
    pub fn new(
        host: u32,
        model: u32,
        inside: Inside,
        with_input: bool,
        hop: usize,
        chunk: usize,
    ) -> Result<Self, ResampleError> {
        let to_model = StreamResampler::new(host, model)?;
        let to_host = StreamResampler::new(model, host)?;
        let (in_block, in_latency) = match to_model.blocks() {
            _ if !with_input => (0, 0),
            (_, 1) => (0, 0),
            (_, block) => (block, to_model.latency()),
        };
        let out_block = match to_host.blocks() {
            (_, 1) => 0,
            (_, block) => block,
        };
        // Model samples that make a whole number of host samples.
        let unit = (u64::from(model) / gcd(host.into(), model.into())) as usize;
        let delay = inside.delay + in_latency;
        let left_out = delay % unit;
        let to_host_samples = |samples: usize| (samples as u64 * u64::from(host)).div_ceil(u64::from(model)) as usize;
        let wait = to_host_samples(inside.lookahead + in_block + left_out) + out_block;
        // One hop, one block and one chunk more than the wait can be there at the same time.
        let room = wait + to_host_samples(2 * hop) + 2 * out_block + chunk;
        let mut waiting = VecDeque::with_capacity(room);
        waiting.extend(std::iter::repeat_n(0.0, wait));
        let latency = wait + to_host.latency() + to_host_samples(delay - left_out);
        // The filters are symmetric: what is before their middle is behind it, too.
        let ring = to_host_samples(in_latency) + to_host.latency();
        let (taken, given) = to_model.blocks();
        let most_heard = (chunk / taken + 1) * given;
        let to_host = ToHost { resampler: to_host, left_out, waiting };
        Ok(Self { to_model: ToModel(to_model), to_host, latency, ring, most_heard, wait, left_out })
    }

    /// Forgets all sound, as if new.
    pub fn reset(&mut self) {
        self.to_model.0.reset();
        self.to_host.resampler.reset();
        self.to_host.left_out = self.left_out;
        self.to_host.waiting.clear();
        self.to_host.waiting.extend(std::iter::repeat_n(0.0, self.wait));
    }

    /// Host samples after which all block boundaries fall together again, with hops of `hop` samples at the model's rate.
    pub fn period(&self, host: u32, model: u32, hop: usize) -> u64 {
        let block_in = self.to_model.0.blocks().0 as u64;
        let block_out = self.to_host.resampler.blocks().1 as u64;
        let hops = hop as u64 * u64::from(host) / gcd(hop as u64 * u64::from(host), u64::from(model));
        [block_in, block_out, hops].into_iter().fold(1, |a, b| a / gcd(a, b) * b)
    }
}

impl ToModel {
    /// Takes the host's samples and gives those at the model's rate that they complete.
    pub fn push(&mut self, input: &[f32], emit: impl FnMut(&[f32])) {
        self.0.push(input, emit);
    }
}

impl ToHost {
    /// Takes samples at the model's rate.
    pub fn push(&mut self, sound: &[f32]) {
        let skipped = self.left_out.min(sound.len());
        self.left_out -= skipped;
        self.resampler.push(&sound[skipped..], |samples| self.waiting.extend(samples));
    }

    /// Fills `out` with samples at the host's rate. Gives how many were missing: none, as long as the model keeps up.
    pub fn pull(&mut self, out: &mut [f32]) -> usize {
        let there = out.len().min(self.waiting.len());
        let (filled, missing) = out.split_at_mut(there);
        let (front, back) = self.waiting.as_slices();
        let (first, second) = filled.split_at_mut(front.len().min(there));
        first.copy_from_slice(&front[..first.len()]);
        second.copy_from_slice(&back[..second.len()]);
        self.waiting.drain(..there);
        missing.fill(0.0);
        missing.len()
    }
}

pub(super) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
