//! What all tracks come together in: the sum, its fader, the limiter, the meters.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::Meter;
use super::limiter::Limiter;
use super::mix::{Mix, ramp};

/// The master. Only making it allocates.
pub struct Master {
    /// `[channel][frame]`
    sound: [Vec<f32>; 2],
    fader: Arc<Mix>,
    gains: [f32; 2],
    limiter: Limiter,
    meter: Arc<Meter>,
}

impl Master {
    /// A master for a rate in Hz and blocks of at most so many frames.
    #[must_use]
    pub fn new(fader: Arc<Mix>, meter: Arc<Meter>, sample_rate: u32, max_block: usize) -> Self {
        let block = || vec![0.0; max_block];
        let gains = fader.get().gains_heard(false);
        Self { sound: [block(), block()], fader, gains, limiter: Limiter::new(sample_rate), meter }
    }

    /// The most frames of a block.
    #[must_use]
    pub fn max_block(&self) -> usize {
        self.sound[0].len()
    }

    /// Samples by which it is late: those of the limiter.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.limiter.latency_samples()
    }

    /// Factors for left and right, as the fader stands.
    #[must_use]
    pub fn gains(&self) -> [f32; 2] {
        self.gains
    }

    /// A block of so many frames begins.
    pub fn begin(&mut self, frames: usize) {
        self.sound.iter_mut().for_each(|channel| channel[..frames].fill(0.0));
    }

    /// Adds a track: `[channel][frame]`, as long as the block.
    pub fn add(&mut self, track: [&[f32]; 2]) {
        for (sum, track) in self.sound.iter_mut().zip(track) {
            sum.iter_mut().zip(track).for_each(|(sum, sample)| *sum += *sample);
        }
    }

    /// The block is over: the fader, the limiter, the meters.
    pub fn finish(&mut self, frames: usize) {
        let target = self.fader.get().gains_heard(false);
        for ((channel, gain), target) in self.sound.iter_mut().zip(&mut self.gains).zip(target) {
            ramp(&mut channel[..frames], gain, target);
        }
        let [left, right] = &mut self.sound;
        self.limiter.process(&mut left[..frames], &mut right[..frames]);
        for (channel, peak) in self.sound.iter().zip(&self.meter.peaks) {
            let top = channel[..frames].iter().fold(0.0_f32, |top, sample| top.max(sample.abs()));
            peak.fetch_max(top.to_bits(), Relaxed);
        }
        self.meter.reduction.fetch_min(self.limiter.reduction().to_bits(), Relaxed);
    }

    /// What is heard of the block: `[channel][frame]`.
    #[must_use]
    pub fn sound(&self, frames: usize) -> [&[f32]; 2] {
        self.sound.each_ref().map(|channel| &channel[..frames])
    }
}
