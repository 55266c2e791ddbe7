//! Master bus: sum of all tracks, fader, limiter, meters.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use ondes_engine::dsp::level::peak;
use ondes_engine::dsp::limiter::Limiter;

use super::fader::{Fader, ramp};
use super::meter::MasterMeter;

/// Master bus. Allocates only on construction.
pub struct Master {
    /// `[channel][frame]`.
    sound: [Vec<f32>; 2],
    fader: Arc<Fader>,
    gains: [f32; 2],
    limiter: Limiter,
    meter: Arc<MasterMeter>,
}

impl Master {
    /// Creates a master bus for a sample rate in Hz and blocks of at most `max_block` frames.
    #[must_use]
    pub fn new(
        fader: Arc<Fader>,
        meter: Arc<MasterMeter>,
        sample_rate: u32,
        max_block: usize,
    ) -> Self {
        let block = || vec![0.0; max_block];
        let gains = fader.get().gains_heard(false);
        Self {
            sound: [block(), block()],
            fader,
            gains,
            limiter: Limiter::new(sample_rate),
            meter,
        }
    }

    /// Returns the largest block length, frames.
    #[must_use]
    pub fn max_block(&self) -> usize {
        self.sound[0].len()
    }

    /// Returns the latency of the limiter in samples.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.limiter.latency_samples()
    }

    /// Returns the present gains of left and right.
    #[must_use]
    pub fn gains(&self) -> [f32; 2] {
        self.gains
    }

    /// Starts a block: clears the sum.
    pub fn begin(&mut self, frames: usize) {
        self.sound
            .iter_mut()
            .for_each(|channel| channel[..frames].fill(0.0));
    }

    /// Adds a track, `[channel][frame]`, as long as the block.
    pub fn add(&mut self, track: [&[f32]; 2]) {
        for (sum, track) in self.sound.iter_mut().zip(track) {
            sum.iter_mut()
                .zip(track)
                .for_each(|(sum, sample)| *sum += *sample);
        }
    }

    /// Finishes a block: applies fader and limiter, updates the meters.
    pub fn finish(&mut self, frames: usize) {
        let target = self.fader.get().gains_heard(false);
        for ((channel, gain), target) in self.sound.iter_mut().zip(&mut self.gains).zip(target) {
            ramp(&mut channel[..frames], gain, target);
        }
        let [left, right] = &mut self.sound;
        self.limiter
            .process(&mut left[..frames], &mut right[..frames]);
        for (channel, highest) in self.sound.iter().zip(&self.meter.peaks) {
            let top = peak(&channel[..frames]);
            highest.fetch_max(top.to_bits(), Relaxed);
        }
        self.meter
            .reduction
            .fetch_min(self.limiter.reduction().to_bits(), Relaxed);
    }

    /// Returns the output of the block, `[channel][frame]`.
    #[must_use]
    pub fn sound(&self, frames: usize) -> [&[f32]; 2] {
        self.sound.each_ref().map(|channel| &channel[..frames])
    }
}
