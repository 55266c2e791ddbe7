//! Curve shapes. All are functions of time without state.

use crate::random::{GOLDEN_GAMMA, mix64};

/// Value that approaches its target exponentially.
///
/// Between two changes it has a closed form, so it does not matter when or how often it is
/// evaluated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Smooth {
    from: f64,
    target: f64,
    since: u64,
    tau_samples: f64,
}

impl Smooth {
    pub(super) fn new(value: f64, tau_samples: f64) -> Self {
        Self {
            from: value,
            target: value,
            since: 0,
            tau_samples,
        }
    }

    pub(super) fn at(&self, t: u64) -> f64 {
        let elapsed = t.saturating_sub(self.since) as f64;
        self.target + (self.from - self.target) * (-elapsed / self.tau_samples).exp()
    }

    /// Starts approaching `target` at time `t`.
    pub(super) fn set(&mut self, t: u64, target: f64) {
        self.from = self.at(t);
        self.since = t;
        self.target = target;
    }

    /// Jumps to `target`.
    pub(super) fn snap(&mut self, target: f64) {
        self.from = target;
        self.target = target;
    }
}

/// Exponent of an attack at its duration: ln(1 − 10^(−1/20)), what is left of the way at 1 dB below
/// the end.
pub(super) const ATTACK_RATE: f64 = -2.218_712_2;

/// Level in dB of a sound whose amplitude goes from one level to another exponentially, as those of
/// bowed and blown instruments do. At `x` of 1 an amplitude that began far below is 1 dB below its
/// end.
pub(super) fn approach_db(from_db: f64, to_db: f64, x: f64) -> f64 {
    let way = 1.0 - (ATTACK_RATE * x.max(0.0)).exp();
    let start = 10_f64.powf((from_db - to_db) / 20.0);
    to_db + 20.0 * (start + (1.0 - start) * way).log10()
}

/// Rises from 0 to 1 for `x` from 0 to 1 as half a period of a cosine.
pub(super) fn raised_cosine(x: f64) -> f64 {
    0.5 - 0.5 * (std::f64::consts::PI * x.clamp(0.0, 1.0)).cos()
}

/// Rises from 0 to 1 for `x` from 0 to 1 and continues linearly, with a smooth start. In dB, this
/// is the decay of a released sound.
pub(super) fn fall(x: f64) -> f64 {
    // Share of the initial acceleration.
    const BEND: f64 = 0.15;
    let x = x.max(0.0);
    (1.0 + BEND) * x * x / (x + BEND)
}

/// Returns a slow random drift from −1 to 1, a smooth function of time `t_s` in seconds that
/// depends on `seed`.
pub(super) fn drift(seed: u64, t_s: f64) -> f64 {
    // A slow movement of about 1.5 s, and a faster one of lower amplitude.
    0.7 * lattice(seed, 0.7 * t_s) + 0.3 * lattice(seed ^ 0x5bf0_3635, 3.1 * t_s)
}

/// Value noise: random values at integers, interpolated smoothly.
fn lattice(seed: u64, x: f64) -> f64 {
    let cell = x.max(0.0).floor();
    let a = random(seed, cell as u64);
    let b = random(seed, cell as u64 + 1);
    a + (b - a) * raised_cosine(x - cell)
}

/// Returns a random number from −1 to 1 that depends on `seed` and `index`.
pub(super) fn random(seed: u64, index: u64) -> f64 {
    let bits = mix64(seed.wrapping_add(index.wrapping_add(1).wrapping_mul(GOLDEN_GAMMA)));
    (bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smooth_is_continuous_and_settles() {
        let mut smooth = Smooth::new(0.0, 480.0);
        smooth.set(100, 1.0);
        assert_eq!(smooth.at(100), 0.0);
        assert!((smooth.at(580) - (1.0 - (-1f64).exp())).abs() < 1e-12);
        smooth.set(580, -1.0);
        assert!((smooth.at(580) - (1.0 - (-1f64).exp())).abs() < 1e-12);
        assert!((smooth.at(100_000) + 1.0).abs() < 1e-12);
    }

    #[test]
    fn shapes_are_monotone_between_their_ends() {
        for shape in [raised_cosine, fall] {
            assert!(shape(0.0).abs() < 1e-12);
            assert!((shape(1.0) - 1.0).abs() < 1e-12);
            for i in 0..100 {
                assert!(shape(f64::from(i + 1) / 100.0) > shape(f64::from(i) / 100.0));
            }
        }
    }

    #[test]
    fn amplitudes_approach_their_end_from_both_sides() {
        assert!((approach_db(-60.0, -20.0, 0.0) + 60.0).abs() < 1e-9);
        assert!((approach_db(-120.0, -20.0, 1.0) + 21.0).abs() < 1e-3);
        assert!((approach_db(-120.0, -20.0, 9.0) + 20.0).abs() < 1e-6);
        let level = |x: f64| approach_db(-10.0, -30.0, x);
        assert!((level(0.0) + 10.0).abs() < 1e-9 && (level(9.0) + 30.0).abs() < 1e-3);
        assert!((0..90).all(|n| level(f64::from(n + 1) / 10.0) < level(f64::from(n) / 10.0)));
    }

    #[test]
    fn drift_is_bounded_smooth_and_seeded() {
        let mut differs = false;
        for i in 0..10_000 {
            let t = f64::from(i) * 0.004;
            let here = drift(7, t);
            assert!(here.abs() <= 1.0);
            // Each part changes by at most π/2 · 2 per cell.
            assert!((drift(7, t + 0.004) - here).abs() < 0.004 * (0.7 * 0.7 + 0.3 * 3.1) * 3.2);
            assert_eq!(here, drift(7, t));
            differs |= (here - drift(8, t)).abs() > 0.5;
        }
        assert!(differs);
    }
}
