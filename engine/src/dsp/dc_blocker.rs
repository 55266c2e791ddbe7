//! What a model adds to all samples alike, taken away again.

use std::f64::consts::TAU;

use super::ramp::Ramp;

/// Below this frequency, Hz, everything falls by 6 dB per octave.
const CORNER_HZ: f64 = 5.0;
/// Time in which it comes in and goes out, s.
const FADE_S: f64 = 0.020;

/// A high-pass of the first order; while it is off samples pass as they are.
pub struct DcBlocker {
    /// Share of the way to the present sample that the mean goes.
    share: f64,
    mean: f64,
    amount: Ramp,
}

impl DcBlocker {
    /// One that is off, at a rate in Hz.
    #[must_use]
    pub fn new(sample_rate: u32) -> Self {
        let share = 1.0 - (-TAU * CORNER_HZ / f64::from(sample_rate)).exp();
        Self { share, mean: 0.0, amount: Ramp::new(0.0, FADE_S, sample_rate) }
    }

    /// On or off.
    pub fn set(&mut self, on: bool) {
        self.amount.go(if on { 1.0 } else { 0.0 });
    }

    /// Forgets all that it has heard, and is at once as it was set to be.
    pub fn reset(&mut self) {
        self.mean = 0.0;
        self.amount.arrive();
    }

    /// Whether samples pass as they are until somebody switches it on.
    #[must_use]
    pub fn is_neutral(&self) -> bool {
        self.amount.rest() == Some(0.0)
    }

    /// Filters the next samples.
    pub fn process(&mut self, sound: &mut [f32]) {
        if self.is_neutral() {
            // It begins anew when it is needed.
            self.mean = 0.0;
            return;
        }
        for sample in sound {
            // What is no number would stay for ever.
            let heard = if sample.is_finite() { f64::from(*sample) } else { 0.0 };
            self.mean += self.share * (heard - self.mean);
            *sample -= self.amount.advance() * self.mean as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u32 = 48_000;

    #[test]
    fn an_offset_goes_and_music_stays() {
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
        // A high-pass at 5 Hz takes 0.07 dB at 40 Hz.
        assert!((10.0 * (power / 0.045).log10() + 0.0673).abs() < 0.01, "{power}");
    }

    #[test]
    fn it_comes_and_goes_without_a_click() {
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
