//! Conversion of samples to integers.

use crate::random::SplitMix64;

/// Rounds samples to integers, optionally with triangular dither.
///
/// The dither spans two quantisation steps and is the same in every run. A sample of 1 becomes the
/// largest integer, NaN becomes 0.
///
/// # Examples
/// ```
/// use ondes_engine::media::Quantizer;
///
/// let mut quantizer = Quantizer::new(16, false);
/// assert_eq!([-1.0, 0.25, 1.0].map(|sample| quantizer.quantize(sample)), [-32_768, 8_192, 32_767]);
/// ```
#[derive(Debug, Clone)]
pub struct Quantizer {
    /// Quantisation steps from 0 to 1.
    scale: f64,
    dither: Option<Dither>,
}

impl Quantizer {
    /// Creates a quantizer to integers of `bits` bits, 2 to 32.
    #[must_use]
    pub fn new(bits: u32, dithered: bool) -> Self {
        let scale = f64::from(bits as i32 - 1).exp2();
        Self {
            scale,
            dither: dithered.then_some(Dither(SplitMix64::new(0x0bde_5eed))),
        }
    }

    /// Quantizes a sample, −1 to 1.
    pub fn quantize(&mut self, sample: f32) -> i32 {
        let sample = if sample.is_nan() {
            0.0
        } else {
            f64::from(sample)
        };
        let noise = self.dither.as_mut().map_or(0.0, Dither::next);
        (sample * self.scale + noise)
            .round()
            .clamp(-self.scale, self.scale - 1.0) as i32
    }
}

/// Triangular dither of two quantisation steps: the mean and the variance of the rounding error
/// become independent of the signal (S. P. Lipshitz, R. A. Wannamaker, J. Vanderkooy, "Quantization
/// and dither", JAES 40(5), 1992).
#[derive(Debug, Clone)]
struct Dither(SplitMix64);

impl Dither {
    /// Returns the next value in quantisation steps, −1 to 1.
    fn next(&mut self) -> f64 {
        let z = self.0.next_u64();
        let unit = |bits: u64| bits as f64 / f64::from(u32::MAX);
        unit(z >> 32) - unit(z & u64::from(u32::MAX))
    }
}
