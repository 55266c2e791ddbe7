//! Sample rate and block size of a host.

use crate::dsp::resample::RATES_HZ;

/// Input that is kept for a model that takes over, and for a late worker, in seconds.
pub(super) const HISTORY_S: f64 = 2.0;
/// Longest block that is processed in one piece, in samples.
pub(super) const MAX_BLOCK: usize = 8192;

/// Sample rate and block size of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Sample rate in Hz, 1,000 to 2,000,000.
    pub sample_rate: u32,
    /// Samples of the longest block, at least 1; blocks beyond 8192 samples are split.
    pub max_block: usize,
}

/// Error of a [`Setup`] that cannot be played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// Unsupported sample rate.
    #[error("the host's sample rate is {0} Hz; allowed: 1000 to 2000000 Hz")]
    Rate(u32),
    /// Empty block.
    #[error("the host's longest block is {0} samples; it must be at least 1")]
    Block(usize),
}

impl Setup {
    /// Checks the values and limits the block to [`MAX_BLOCK`].
    pub(super) fn validated(self) -> Result<Self, SetupError> {
        if !RATES_HZ.contains(&self.sample_rate) {
            return Err(SetupError::Rate(self.sample_rate));
        }
        if self.max_block == 0 {
            return Err(SetupError::Block(0));
        }
        Ok(Self {
            max_block: self.max_block.min(MAX_BLOCK),
            ..self
        })
    }

    /// Returns the number of samples of input that are kept: those of [`HISTORY_S`], and at low
    /// rates enough for a worker.
    pub(super) fn history_samples(self) -> usize {
        ((HISTORY_S * f64::from(self.sample_rate)) as usize).max(2 * MAX_BLOCK)
    }
}
