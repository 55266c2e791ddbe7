//! Floating point to integers.

use crate::random::SplitMix64;

/// Rounds samples to integers of a number of bits, with triangular dither where asked for.
///
/// The dither spans two quantisation steps and is the same at every run. A sample of 1 is clamped to the largest number, and
/// what is not a number becomes 0.
#[derive(Debug, Clone)]
pub struct Quantizer {
    /// Steps from 0 to 1.
    scale: f64,
    dither: Option<Dither>,
}

impl Quantizer {
    /// For integers of `bits` (2 to 32) bits.
    #[must_use]
    pub fn new(bits: u32, dithered: bool) -> Self {
        let scale = f64::from(bits as i32 - 1).exp2();
        Self { scale, dither: dithered.then_some(Dither(SplitMix64::new(0x0bde_5eed))) }
    }

    /// The integer for a sample, -1 to 1.
    pub fn quantize(&mut self, sample: f32) -> i32 {
        let sample = if sample.is_nan() { 0.0 } else { f64::from(sample) };
        let noise = self.dither.as_mut().map_or(0.0, Dither::next);
        (sample * self.scale + noise).round().clamp(-self.scale, self.scale - 1.0) as i32
    }
}

/// Triangular noise of two quantisation steps, which makes the error of rounding independent of the sound up to its variance
/// (S. P. Lipshitz, R. A. Wannamaker, J. Vanderkooy, "Quantization and dither", JAES 40(5), 1992).
#[derive(Debug, Clone)]
struct Dither(SplitMix64);

impl Dither {
    /// In steps, -1 to 1.
    fn next(&mut self) -> f64 {
        let z = self.0.next_u64();
        let unit = |bits: u64| bits as f64 / f64::from(u32::MAX);
        unit(z >> 32) - unit(z & u64::from(u32::MAX))
    }
}
