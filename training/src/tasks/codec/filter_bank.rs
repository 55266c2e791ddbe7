//! Cosine-modulated filter bank with nearly perfect reconstruction: splits sound into bands of
//! equal width, each at a fraction of the rate, and joins them again (Nguyen, IEEE Trans. Signal
//! Processing 42(1), 1994).
//!
//! The prototype has 8 taps a band, which is short for a codec: analysis and synthesis together
//! delay the sound by 112 samples with 16 bands. What the bank itself loses, 49 dB below the sound,
//! a ripple of 0.03 dB, is far less than what the latents lose.

use std::f64::consts::PI;

use ondes_engine::dsp::bessel::i0;

/// Taps of the prototype for each band.
const TAPS_PER_BAND: usize = 8;
/// Shape of the prototype's Kaiser window: −75 dB in the stop band.
const KAISER_BETA: f64 = 7.0;
/// Cutoff of the prototype, relative to half the width of a band, that makes the reconstruction
/// error least.
const CUTOFF: f64 = 1.236;

/// A filter bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterBank {
    /// Number of bands, even.
    pub bands: usize,
}

impl FilterBank {
    /// Returns the taps of each filter.
    #[must_use]
    pub fn taps(self) -> usize {
        TAPS_PER_BAND * self.bands
    }

    /// Returns the delay of analysis and synthesis together, samples, besides that of collecting a
    /// frame of the bands.
    #[must_use]
    pub fn delay(self) -> usize {
        self.taps() - self.bands
    }

    /// Returns the weight of the analysis as a convolution with a stride of the number of bands,
    /// `[band][1][tap]`.
    #[must_use]
    pub fn analysis(self) -> Vec<f32> {
        let taps = self.taps();
        let reversed = |band| {
            (0..taps)
                .rev()
                .map(move |tap| self.filter(band, tap, 1.0) as f32)
        };
        (0..self.bands).flat_map(reversed).collect()
    }

    /// Returns the weight of the synthesis as a convolution from bands to the samples of a frame,
    /// in their order, `[sample][band][frame]`.
    #[must_use]
    pub fn synthesis(self) -> Vec<f32> {
        let mut weight = Vec::with_capacity(self.taps() * self.bands);
        for sample in 0..self.bands {
            for band in 0..self.bands {
                for age in (0..TAPS_PER_BAND).rev() {
                    weight.push(
                        (self.bands as f64 * self.filter(band, age * self.bands + sample, -1.0))
                            as f32,
                    );
                }
            }
        }
        weight
    }

    /// Returns the frames that the synthesis reads.
    #[must_use]
    pub fn synthesis_frames(self) -> usize {
        TAPS_PER_BAND
    }

    /// Returns a tap of the analysis filter of a band, or with a `phase` of −1 of the synthesis
    /// filter.
    fn filter(self, band: usize, tap: usize, phase: f64) -> f64 {
        let centred = tap as f64 - (self.taps() - 1) as f64 / 2.0;
        let frequency = (2 * band + 1) as f64 * PI / (2 * self.bands) as f64;
        let quarter = if band.is_multiple_of(2) {
            PI / 4.0
        } else {
            -PI / 4.0
        };
        2.0 * self.prototype(centred) * (frequency * centred + phase * quarter).cos()
    }

    /// Returns a tap of the prototype, a windowed sinc.
    fn prototype(self, centred: f64) -> f64 {
        let cutoff = CUTOFF / (2 * self.bands) as f64;
        let x = PI * cutoff * centred;
        let sinc = if x == 0.0 { 1.0 } else { x.sin() / x };
        let edge = 2.0 * centred / (self.taps() - 1) as f64;
        cutoff * sinc * i0(KAISER_BETA * (1.0 - edge * edge).max(0.0).sqrt()) / i0(KAISER_BETA)
    }
}
