//! Low-frequency oscillator.

use std::f32::consts::TAU;

/// Slow sine, whose phase goes on when its rate changes.
///
/// # Examples
/// ```
/// use ondes_engine::dsp::lfo::Lfo;
///
/// let mut lfo = Lfo::default();
/// lfo.set_rate(1.0, 4);
/// assert!(lfo.advance().abs() < 1e-6);
/// assert!((lfo.advance() - 1.0).abs() < 1e-6);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Lfo {
    /// Turns, 0 to 1.
    phase: f64,
    step: f64,
}

impl Lfo {
    /// Sets the rate, Hz.
    pub fn set_rate(&mut self, hz: f32, sample_rate: u32) {
        self.step = f64::from(hz) / f64::from(sample_rate);
    }

    /// Returns to the beginning of a turn.
    pub fn reset(&mut self) {
        self.phase = 0.0;
    }

    /// Returns the value, −1 to 1, `turns` after the present phase.
    #[must_use]
    pub fn ahead(&self, turns: f32) -> f32 {
        (TAU * (self.phase as f32 + turns)).sin()
    }

    /// Returns the present value, −1 to 1, and goes on by a sample.
    pub fn advance(&mut self) -> f32 {
        let value = self.ahead(0.0);
        self.phase += self.step;
        self.phase -= self.phase.floor();
        value
    }
}
