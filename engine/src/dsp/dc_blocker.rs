//! Removal of a DC offset.

use std::f64::consts::TAU;

use super::ramp::Ramp;

/// Corner frequency, Hz; 6 dB per octave below.
const CORNER_HZ: f64 = 5.0;
/// Fade time when switched on or off, s.
const FADE_S: f64 = 0.020;

/// First-order high-pass; passes samples unchanged while it is off.
///
/// # Examples
/// ```
/// use ondes_engine::dsp::dc_blocker::DcBlocker;
///
/// let mut blocker = DcBlocker::new(48_000);
/// blocker.set(true);
/// let mut offset = vec![0.5; 48_000];
/// blocker.process(&mut offset);
/// assert!(offset[47_999].abs() < 1e-6);
/// ```
#[derive(Clone)]
pub struct DcBlocker {
    /// Coefficient of the running mean.
    share: f64,
    mean: f64,
    amount: Ramp,
}

impl DcBlocker {
    /// Creates a DC blocker that is off, for a sample rate in Hz.
    #[must_use]
    pub fn new(sample_rate: u32) -> Self {
        let share = 1.0 - (-TAU * CORNER_HZ / f64::from(sample_rate)).exp();
        Self {
            share,
            mean: 0.0,
            amount: Ramp::new(0.0, FADE_S, sample_rate),
        }
    }

    /// Switches it on or off with a fade.
    pub fn set(&mut self, on: bool) {
        self.amount.set_target(if on { 1.0 } else { 0.0 });
    }

    /// Clears all state and completes fades.
    pub fn reset(&mut self) {
        self.mean = 0.0;
        self.amount.finish();
    }

    /// Returns whether samples pass unchanged until it is switched on.
    #[must_use]
    pub fn is_neutral(&self) -> bool {
        self.amount.settled() == Some(0.0)
    }

    /// Filters samples in place.
    pub fn process(&mut self, sound: &mut [f32]) {
        if self.is_neutral() {
            // Starts from 0 when switched on again.
            self.mean = 0.0;
            return;
        }
        for sample in sound {
            // A non-finite value would persist in the mean.
            let input = if sample.is_finite() {
                f64::from(*sample)
            } else {
                0.0
            };
            self.mean += self.share * (input - self.mean);
            *sample -= self.amount.advance() * self.mean as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u32 = 48_000;

    #[test]
    fn offsets_are_removed_and_music_passes() {
        let mut blocker = DcBlocker::new(RATE);
        let tone = |n: usize, hz: f64| (0.3 * (TAU * hz * n as f64 / f64::from(RATE)).sin()) as f32;
        let mut off: Vec<f32> = (0..100).map(|n| 0.2 + tone(n, 40.0)).collect();
        let before = off.clone();
        blocker.process(&mut off);
        assert!(off == before && blocker.is_neutral());
        blocker.set(true);
        let mut sound: Vec<f32> = (0..96_000).map(|n| 0.2 + tone(n, 40.0)).collect();
        for block in sound.chunks_mut(61) {
            blocker.process(block);
        }
        let second = &sound[48_000..];
        let mean = second.iter().sum::<f32>() / 48_000.0;
        assert!(mean.abs() < 1e-5, "{mean}");
        let power = second.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / 48_000.0;
        // A first-order high-pass at 5 Hz attenuates 40 Hz by 0.07 dB.
        assert!(
            (10.0 * (power / 0.045).log10() + 0.0673).abs() < 0.01,
            "{power}"
        );
    }

    #[test]
    fn switching_is_smooth() {
        let mut blocker = DcBlocker::new(RATE);
        let mut sound = vec![0.5_f32; 30_000];
        blocker.set(true);
        blocker.process(&mut sound[..20_000]);
        blocker.set(false);
        blocker.process(&mut sound[20_000..]);
        for pair in sound.windows(2) {
            assert!((pair[0] - pair[1]).abs() < 0.002, "{pair:?}");
        }
        assert_eq!(sound[29_999], 0.5);
    }
}
