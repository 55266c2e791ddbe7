//! Offline conversion to a higher sample rate and back.
//!
//! Both directions use one linear-phase filter: a windowed sinc that passes up to 0.417 of the low
//! rate (20 kHz at 48 kHz) and attenuates everything above 0.583 of it by 100 dB (Kaiser & Schafer,
//! "On the use of the I0-sinh window for spectrum analysis", 1980). It is centred, so there is no
//! delay.

use std::f64::consts::PI;

/// Reach of the filter to either side, samples of the low rate.
const REACH: usize = 20;
/// Kaiser's β for 100 dB.
const BETA: f64 = 10.06;

/// Converter between a rate and an integer multiple of it.
pub struct Oversampler {
    factor: usize,
    /// `2 · REACH · factor + 1` taps that sum to 1.
    taps: Vec<f64>,
}

impl Oversampler {
    /// Creates a converter for a factor.
    #[must_use]
    pub fn new(factor: usize) -> Self {
        let half = (REACH * factor) as f64;
        let tap = |n: usize| {
            let at = n as f64 - half;
            let x = PI * at / factor as f64;
            let sinc = if at == 0.0 { 1.0 } else { x.sin() / x };
            sinc * bessel(BETA * (1.0 - (at / half).powi(2)).max(0.0).sqrt())
        };
        let mut taps: Vec<f64> = (0..=2 * REACH * factor).map(tap).collect();
        let sum: f64 = taps.iter().sum();
        taps.iter_mut().for_each(|tap| *tap /= sum);
        Self { factor, taps }
    }

    /// Returns `factor` times as many samples.
    #[must_use]
    pub fn up(&self, input: &[f32]) -> Vec<f64> {
        let (factor, half) = (self.factor, REACH * self.factor);
        if factor == 1 {
            return input.iter().map(|&x| f64::from(x)).collect();
        }
        let sample = |n: usize| {
            let first = (n + factor - 1).saturating_sub(half) / factor;
            let last = ((n + half) / factor).min(input.len() - 1);
            let tap = |place: usize| {
                self.taps
                    .get(n + half - place * factor)
                    .copied()
                    .unwrap_or(0.0)
            };
            factor as f64
                * (first..=last)
                    .map(|place| tap(place) * f64::from(input[place]))
                    .sum::<f64>()
        };
        (0..input.len() * factor).map(sample).collect()
    }

    /// Returns the first `length` samples at the low rate.
    #[must_use]
    pub fn down(&self, input: &[f64], length: usize) -> Vec<f32> {
        let (factor, half) = (self.factor, REACH * self.factor);
        if factor == 1 {
            return input.iter().map(|&x| x as f32).collect();
        }
        let sample = |n: usize| {
            let centre = n * factor;
            let first = centre.saturating_sub(half);
            let last = (centre + half).min(input.len() - 1);
            (first..=last)
                .map(|place| self.taps[place + half - centre] * input[place])
                .sum::<f64>() as f32
        };
        (0..length).map(sample).collect()
    }
}

/// Computes the modified Bessel function of the first kind and order zero.
fn bessel(x: f64) -> f64 {
    let mut term = 1.0;
    let mut sum = 1.0;
    for n in 1..60 {
        term *= (x / (2.0 * f64::from(n))).powi(2);
        sum += term;
    }
    sum
}
