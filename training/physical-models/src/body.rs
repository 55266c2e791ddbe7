//! Body of an instrument: a bank of resonances beside a direct path.

use super::filter::{BandPass, OnePole};

/// Resonance of a body.
#[derive(Debug, Clone, Copy)]
pub struct Mode {
    /// Centre frequency, Hz.
    pub hz: f64,
    /// Quality factor: centre frequency over half-power bandwidth.
    pub q: f64,
    /// Gain at the centre, linear; the sign is the mode's phase at the listener.
    pub gain: f64,
}

/// Makes a [`Mode`], for tables.
#[must_use]
pub const fn mode(hz: f64, q: f64, gain: f64) -> Mode {
    Mode { hz, q, gain }
}

/// Parameters of a [`Body`].
#[derive(Debug, Clone, Copy)]
pub struct BodyDesign {
    /// The resonances.
    pub modes: &'static [Mode],
    /// Gain of the direct path, linear.
    pub direct: f64,
    /// Corner below which the direct path falls by 6 dB per octave, Hz: a small plate radiates no
    /// bass.
    pub direct_corner_hz: f64,
    /// Corner above which everything falls by 6 dB per octave, Hz.
    pub roll_off_hz: f64,
}

/// Bank of modal resonators in parallel with a direct path, followed by a gentle roll-off.
///
/// The form is that of Karjalainen & Smith, "Body modeling techniques for string instrument
/// synthesis" (ICMC 1996).
#[derive(Debug, Clone)]
pub struct Body {
    modes: Vec<(BandPass, f64)>,
    direct: f64,
    direct_high_pass: OnePole,
    roll_off: OnePole,
}

impl Body {
    /// Creates a body at rest.
    #[must_use]
    pub fn new(design: &BodyDesign, rate_hz: f64) -> Self {
        Self {
            modes: design
                .modes
                .iter()
                .map(|mode| (BandPass::new(mode.hz, mode.q, rate_hz), mode.gain))
                .collect(),
            direct: design.direct,
            direct_high_pass: OnePole::new(design.direct_corner_hz, rate_hz),
            roll_off: OnePole::new(design.roll_off_hz, rate_hz),
        }
    }

    /// Processes one sample.
    #[inline]
    pub fn process(&mut self, x: f64) -> f64 {
        let mut y = self.direct * self.direct_high_pass.high(x);
        for (mode, gain) in &mut self.modes {
            y += *gain * mode.process(x);
        }
        self.roll_off.low(y)
    }
}

#[cfg(test)]
mod tests {
    use super::{Body, BodyDesign, mode};

    #[test]
    fn a_struck_body_rings_and_then_is_silent_without_dc() {
        const DESIGN: BodyDesign = BodyDesign {
            modes: &[mode(200.0, 20.0, 1.0), mode(450.0, 15.0, 0.7)],
            direct: 0.5,
            direct_corner_hz: 300.0,
            roll_off_hz: 6_000.0,
        };
        let mut body = Body::new(&DESIGN, 48_000.0);
        let out: Vec<f64> = (0..96_000)
            .map(|n| body.process(if n == 0 { 1.0 } else { 0.0 }))
            .collect();
        assert!(out[480..4_800].iter().any(|x| x.abs() > 1e-4));
        assert!(out[95_000..].iter().all(|x| x.abs() < 1e-15));
        assert!(out.iter().sum::<f64>().abs() < 1e-6);
    }
}
