//! Meters, samples and spectrum of the input or the output.

use ondes_player::monitor::MeterLevel;

use super::spectrum::SAMPLES;
use crate::panels::{meters, scope};
use crate::view::SignalView;

/// Samples of the waveform.
const WAVE: usize = 2048;

/// Meters, samples and spectrum of a signal.
pub(super) struct SignalData {
    pub levels: Vec<MeterLevel>,
    pub samples: Vec<f32>,
    pub spectrum_db: Vec<f32>,
}

impl SignalData {
    /// Creates a silent signal.
    pub fn new() -> Self {
        Self {
            levels: Vec::new(),
            samples: vec![0.0; SAMPLES],
            spectrum_db: Vec::new(),
        }
    }

    /// Returns whether meters or curves show the signal.
    pub fn is_visible(&self) -> bool {
        self.levels
            .iter()
            .any(|level| level.peak_db > meters::FLOOR_DB)
            || self.spectrum_db.iter().any(|db| *db > scope::FLOOR_DB)
    }

    /// Returns the largest sample.
    pub fn peak(&self) -> f32 {
        self.samples
            .iter()
            .fold(0.0, |peak, sample| sample.abs().max(peak))
    }

    /// Returns what is drawn.
    pub fn view(&self) -> SignalView<'_> {
        let wave = &self.samples[SAMPLES - WAVE..];
        SignalView {
            levels: &self.levels,
            wave,
            spectrum_db: &self.spectrum_db,
        }
    }
}
