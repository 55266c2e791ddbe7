//! Filters that the instruments share.

use std::f64::consts::{PI, TAU};

/// Recursive states below this become zero, long before they are denormal.
const SILENCE: f64 = 1e-18;

/// Returns `value`, or zero if it is too small to be audible.
#[inline]
#[must_use]
pub fn flush(value: f64) -> f64 {
    if value.abs() < SILENCE { 0.0 } else { value }
}

/// One-pole low-pass with unit gain at DC: `y = (1 - a) x + a y₋₁`.
#[derive(Debug, Clone, Copy, Default)]
pub struct OnePole {
    pole: f64,
    state: f64,
}

impl OnePole {
    /// Creates a filter at rest with its corner at about `corner_hz`.
    #[must_use]
    pub fn new(corner_hz: f64, rate_hz: f64) -> Self {
        Self::with_pole(Self::pole_for(corner_hz, rate_hz))
    }

    /// Creates a filter at rest with a pole in [0, 1).
    #[must_use]
    pub fn with_pole(pole: f64) -> Self {
        Self { pole, state: 0.0 }
    }

    /// Returns the pole for a corner at about `corner_hz`.
    #[must_use]
    pub fn pole_for(corner_hz: f64, rate_hz: f64) -> f64 {
        (-TAU * corner_hz / rate_hz).exp()
    }

    /// Moves the pole and keeps the state.
    pub fn set_pole(&mut self, pole: f64) {
        self.pole = pole;
    }

    /// Processes one sample through the low-pass.
    #[inline]
    pub fn low(&mut self, x: f64) -> f64 {
        self.state = flush(x + self.pole * (self.state - x));
        self.state
    }

    /// Processes one sample through the complementary high-pass, the input minus the low-pass.
    #[inline]
    pub fn high(&mut self, x: f64) -> f64 {
        x - self.low(x)
    }

    /// Returns the phase delay of a filter with this pole at `hz`, samples.
    #[must_use]
    pub fn phase_delay_samples(pole: f64, hz: f64, rate_hz: f64) -> f64 {
        let w = TAU * hz / rate_hz;
        (pole * w.sin()).atan2(1.0 - pole * w.cos()) / w
    }

    /// Returns the gain of a filter with this pole at `hz`.
    #[must_use]
    pub fn gain(pole: f64, hz: f64, rate_hz: f64) -> f64 {
        let w = TAU * hz / rate_hz;
        (1.0 - pole) / (1.0 - 2.0 * pole * w.cos() + pole * pole).sqrt()
    }
}

/// Two-pole band-pass with unit gain at its centre and zeros at DC and half the rate: one mode of a
/// body.
#[derive(Debug, Clone, Copy)]
pub struct BandPass {
    gain: f64,
    a1: f64,
    a2: f64,
    x1: f64,
    x2: f64,
    y1: f64,
    y2: f64,
}

impl BandPass {
    /// Creates a mode at `centre_hz` with the quality factor `q`.
    #[must_use]
    pub fn new(centre_hz: f64, q: f64, rate_hz: f64) -> Self {
        let w = TAU * centre_hz / rate_hz;
        let alpha = w.sin() / (2.0 * q);
        Self {
            gain: alpha / (1.0 + alpha),
            a1: -2.0 * w.cos() / (1.0 + alpha),
            a2: (1.0 - alpha) / (1.0 + alpha),
            x1: 0.0,
            x2: 0.0,
            y1: 0.0,
            y2: 0.0,
        }
    }

    /// Processes one sample.
    #[inline]
    pub fn process(&mut self, x: f64) -> f64 {
        let y = flush(self.gain * (x - self.x2) - self.a1 * self.y1 - self.a2 * self.y2);
        self.x2 = self.x1;
        self.x1 = x;
        self.y2 = self.y1;
        self.y1 = y;
        y
    }
}

/// Taps on each side of the decimator's centre.
const HALF_TAPS: usize = 31;

/// Half-band low-pass (windowed sinc, 63 taps) that keeps every second output.
///
/// Half of the taps are zero by construction. Everything that would alias below 20 kHz at an output
/// rate of 48 kHz is rejected by more than 80 dB.
#[derive(Debug, Clone)]
pub struct Decimator {
    taps: Vec<f64>,
    history: Vec<f64>,
    next: usize,
}

impl Default for Decimator {
    fn default() -> Self {
        let len = 2 * HALF_TAPS + 1;
        let taps = (0..len)
            .map(|n| {
                let k = n as f64 - HALF_TAPS as f64;
                let sinc = if k == 0.0 {
                    0.5
                } else {
                    (PI * k / 2.0).sin() / (PI * k)
                };
                let x = (n as f64 + 1.0) / (len as f64 + 1.0);
                // Blackman window.
                let window = 0.42 - 0.5 * (TAU * x).cos() + 0.08 * (2.0 * TAU * x).cos();
                sinc * window
            })
            .collect();
        Self {
            taps,
            history: vec![0.0; 2 * len],
            next: 0,
        }
    }
}

impl Decimator {
    /// Processes two input samples to one output sample.
    #[inline]
    pub fn process(&mut self, first: f64, second: f64) -> f64 {
        self.push(first);
        self.push(second);
        let len = self.taps.len();
        let window = &self.history[self.next..self.next + len];
        // Taps at even distances from the centre are zero.
        let mut sum = self.taps[HALF_TAPS] * window[HALF_TAPS];
        for k in (1..=HALF_TAPS).step_by(2) {
            sum += self.taps[HALF_TAPS + k] * (window[HALF_TAPS + k] + window[HALF_TAPS - k]);
        }
        sum
    }

    /// Writes each sample twice, so that every window is contiguous.
    #[inline]
    fn push(&mut self, x: f64) {
        let len = self.taps.len();
        self.history[self.next] = x;
        self.history[self.next + len] = x;
        self.next = (self.next + 1) % len;
    }
}

#[cfg(test)]
mod tests {
    use super::{BandPass, Decimator, OnePole};
    use std::f64::consts::TAU;

    fn peak(output: impl Iterator<Item = f64>) -> f64 {
        output.fold(0.0, |peak, x| peak.max(x.abs()))
    }

    #[test]
    fn band_pass_has_unit_gain_at_its_centre_and_none_at_dc() {
        let mut mode = BandPass::new(440.0, 12.0, 48_000.0);
        let tone = (0..48_000).map(|n| (TAU * 440.0 * f64::from(n) / 48_000.0).sin());
        let out: Vec<f64> = tone.map(|x| mode.process(x)).collect();
        assert!((peak(out[24_000..].iter().copied()) - 1.0).abs() < 0.01);
        let mut mode = BandPass::new(440.0, 12.0, 48_000.0);
        let out: Vec<f64> = (0..48_000).map(|_| mode.process(1.0)).collect();
        assert!(out[47_999].abs() < 1e-9);
    }

    #[test]
    fn halver_keeps_the_band_and_rejects_what_would_fold() {
        for (hz, low, high) in [
            (1_000.0, 0.999, 1.001),
            (15_000.0, 0.98, 1.01),
            (34_000.0, 0.0, 1e-3),
        ] {
            let mut decimator = Decimator::default();
            let tone = |n: u32| (TAU * hz * f64::from(n) / 96_000.0).sin();
            let out: Vec<f64> = (0..8_000)
                .map(|n| decimator.process(tone(2 * n), tone(2 * n + 1)))
                .collect();
            let gain = peak(out[200..].iter().copied());
            assert!((low..=high).contains(&gain), "{hz} Hz: {gain}");
        }
    }

    #[test]
    fn one_pole_phase_delay_and_gain_are_those_of_the_filter() {
        let (hz, rate_hz, pole) = (500.0, 48_000.0, 0.7);
        let mut filter = OnePole::with_pole(pole);
        let gain = OnePole::gain(pole, hz, rate_hz);
        let delay = OnePole::phase_delay_samples(pole, hz, rate_hz);
        for n in 0..2_000 {
            let y = filter.low((TAU * hz * f64::from(n) / rate_hz).sin());
            if n > 500 {
                let expected = gain * (TAU * hz * (f64::from(n) - delay) / rate_hz).sin();
                assert!((y - expected).abs() < 1e-9);
            }
        }
    }
}
