//! Moving-coil microphone.

use std::f64::consts::TAU;

use num_complex::Complex64;

/// A microphone before the baffle, facing it.
#[derive(Debug, Clone, Copy)]
pub struct Microphone {
    /// Position from the middle of the baffle, and distance from it, m.
    pub position: [f64; 3],
    /// Corner of its high-pass, Hz, which makes up for the proximity effect.
    pub low_hz: f64,
    /// Resonance of its diaphragm, Hz, and the quality factor.
    pub diaphragm: (f64, f64),
}

impl Microphone {
    /// Returns the response on its axis to a plane wave.
    pub(super) fn response(&self, w: f64) -> Complex64 {
        let s = Complex64::new(0.0, w);
        let low = TAU * self.low_hz;
        let (hz, q) = self.diaphragm;
        let diaphragm = TAU * hz;
        let high_pass = s / (s + low);
        let resonance = diaphragm * diaphragm / (s * s + s * diaphragm / q + diaphragm * diaphragm);
        high_pass * resonance
    }
}
