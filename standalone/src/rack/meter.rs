//! Figures that the audio thread publishes.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Levels and counters of the master bus.
#[derive(Debug)]
pub struct MasterMeter {
    /// `[channel]`: peak since the last call of [`MasterMeter::peaks`], as bits of `f32`.
    pub(super) peaks: [AtomicU32; 2],
    pub(super) reduction: AtomicU32,
    pub(super) frames: AtomicU64,
    pub(super) lost_messages: AtomicU64,
}

impl Default for MasterMeter {
    fn default() -> Self {
        Self {
            peaks: [AtomicU32::new(0), AtomicU32::new(0)],
            reduction: AtomicU32::new(1.0_f32.to_bits()),
            frames: AtomicU64::new(0),
            lost_messages: AtomicU64::new(0),
        }
    }
}

impl MasterMeter {
    /// Returns the peak of each channel since the last call.
    pub fn peaks(&self) -> [f32; 2] {
        [0, 1].map(|channel: usize| f32::from_bits(self.peaks[channel].swap(0, Relaxed)))
    }

    /// Returns the limiter's smallest gain since the last call; 1 if it did not act.
    pub fn reduction(&self) -> f32 {
        f32::from_bits(self.reduction.swap(1.0_f32.to_bits(), Relaxed))
    }

    /// Returns the number of frames played since the devices were opened.
    pub fn frames(&self) -> u64 {
        self.frames.load(Relaxed)
    }

    /// Resets the frame counter and returns its last value.
    pub fn restart(&self) -> u64 {
        self.frames.swap(0, Relaxed)
    }

    /// Returns the number of MIDI messages dropped since a block had too many.
    pub fn lost_messages(&self) -> u64 {
        self.lost_messages.load(Relaxed)
    }
}
