//! State-variable filter.

use std::f64::consts::PI;

/// Highest corner relative to the sample rate.
const MAX_RELATIVE_FREQUENCY: f64 = 0.45;

/// FilterResponse of a filter. Gains are in dB at the centre of a bell and beyond the corner of a shelf.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FilterResponse {
    /// Passes what is below the corner.
    LowPass,
    /// Passes what is above the corner.
    HighPass,
    /// Passes what is around the centre, which it leaves as loud.
    BandPass,
    /// Raises or lowers what is around the centre, dB.
    Bell(f64),
    /// Raises or lowers what is below the corner, dB.
    LowShelf(f64),
    /// Raises or lowers what is above the corner, dB.
    HighShelf(f64),
}

/// Second-order filter by trapezoidal integration, which stays stable while its corner moves (A.
/// Simper, "Linear trapezoidal integrated state variable filter with optimised coefficients", 2013).
///
/// # Examples
/// ```
/// use ondes_engine::dsp::svf::{FilterResponse, Svf};
///
/// let mut filter = Svf::default();
/// filter.set(FilterResponse::LowPass, 500.0, 0.7, 48_000);
/// let heard: Vec<f32> = (0..4_800).map(|_| filter.process(0.5)).collect();
/// assert!((heard[4_799] - 0.5).abs() < 1e-6);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Svf {
    /// Coefficients of the integrators.
    integrators: [f64; 3],
    /// Shares of the input, the band and the low band in the output.
    mix: [f64; 3],
    state: [f64; 2],
}

impl Svf {
    /// Sets response, corner or centre in Hz, and Q. Sound goes on.
    pub fn set(&mut self, response: FilterResponse, hz: f64, quality: f64, sample_rate: u32) {
        let relative = (hz / f64::from(sample_rate)).min(MAX_RELATIVE_FREQUENCY);
        let mut g = (PI * relative).tan();
        let mut k = 1.0 / quality;
        let amplitude = |db: f64| 10.0_f64.powf(db / 40.0);
        self.mix = match response {
            FilterResponse::LowPass => [0.0, 0.0, 1.0],
            FilterResponse::HighPass => [1.0, -k, -1.0],
            FilterResponse::BandPass => [0.0, k, 0.0],
            FilterResponse::Bell(db) => {
                let a = amplitude(db);
                k /= a;
                [1.0, k * (a * a - 1.0), 0.0]
            }
            FilterResponse::LowShelf(db) => {
                let a = amplitude(db);
                g /= a.sqrt();
                [1.0, k * (a - 1.0), a * a - 1.0]
            }
            FilterResponse::HighShelf(db) => {
                let a = amplitude(db);
                g *= a.sqrt();
                [a * a, k * (1.0 - a) * a, 1.0 - a * a]
            }
        };
        let first = 1.0 / (1.0 + g * (g + k));
        self.integrators = [first, g * first, g * g * first];
    }

    /// Returns the gain at a frequency in Hz, dB.
    #[must_use]
    pub fn gain_db(&self, hz: f64, sample_rate: u32) -> f64 {
        let [first, second, _] = self.integrators;
        let g = second / first;
        let k = (1.0 / first - 1.0) / g - g;
        let relative = (hz / f64::from(sample_rate)).min(0.5);
        let w = (PI * relative).tan() / g;
        // The band is s / (s² + k s + 1) and the low band 1 / (s² + k s + 1), at s = i w.
        let [by_input, by_band, by_low] = self.mix;
        let (below_real, below_imaginary) = (1.0 - w * w, k * w);
        let real = by_input * below_real + by_low;
        let imaginary = by_input * below_imaginary + by_band * w;
        let power = (real * real + imaginary * imaginary)
            / (below_real * below_real + below_imaginary * below_imaginary);
        10.0 * power.log10()
    }

    /// Forgets all sound.
    pub fn reset(&mut self) {
        self.state = [0.0; 2];
    }

    /// Filters a sample.
    pub fn process(&mut self, sample: f32) -> f32 {
        let input = f64::from(sample);
        let [a1, a2, a3] = self.integrators;
        let [band, low] = self.state;
        let rest = input - low;
        let band_out = a1 * band + a2 * rest;
        let low_out = low + a2 * band + a3 * rest;
        self.state = [2.0 * band_out - band, 2.0 * low_out - low];
        let [by_input, by_band, by_low] = self.mix;
        (by_input * input + by_band * band_out + by_low * low_out) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the gain of a sine in the steady state, dB.
    fn gain_db(response: FilterResponse, hz: f64) -> f64 {
        let mut filter = Svf::default();
        filter.set(response, 1_000.0, std::f64::consts::FRAC_1_SQRT_2, 48_000);
        let heard: Vec<f64> = (0..48_000)
            .map(|n| f64::from(filter.process((2.0 * PI * hz * f64::from(n) / 48e3).sin() as f32)))
            .collect();
        let power = heard[24_000..].iter().map(|x| x * x).sum::<f64>() / 24e3;
        10.0 * (2.0 * power).log10()
    }

    #[test]
    fn responses_have_their_gains() {
        for (response, hz, expected) in [
            (FilterResponse::LowPass, 100.0, 0.0),
            (FilterResponse::LowPass, 1_000.0, -3.01),
            (FilterResponse::HighPass, 1_000.0, -3.01),
            (FilterResponse::HighPass, 10_000.0, 0.0),
            (FilterResponse::BandPass, 1_000.0, 0.0),
            (FilterResponse::Bell(9.0), 1_000.0, 9.0),
            (FilterResponse::Bell(-9.0), 1_000.0, -9.0),
            (FilterResponse::Bell(9.0), 20.0, 0.0),
            (FilterResponse::LowShelf(6.0), 20.0, 6.0),
            (FilterResponse::LowShelf(6.0), 1_000.0, 3.0),
            (FilterResponse::LowShelf(6.0), 20_000.0, 0.0),
            (FilterResponse::HighShelf(-6.0), 20_000.0, -6.0),
            (FilterResponse::HighShelf(-6.0), 1_000.0, -3.0),
            (FilterResponse::HighShelf(-6.0), 20.0, 0.0),
        ] {
            let found = gain_db(response, hz);
            assert!(
                (found - expected).abs() < 0.1,
                "{response:?} at {hz} Hz: {found} dB"
            );
            let mut filter = Svf::default();
            filter.set(response, 1_000.0, std::f64::consts::FRAC_1_SQRT_2, 48_000);
            let drawn = filter.gain_db(hz, 48_000);
            assert!((drawn - found).abs() < 0.01, "{drawn} for {found} dB");
        }
        assert!(gain_db(FilterResponse::LowPass, 8_000.0) < -34.0);
    }
}
