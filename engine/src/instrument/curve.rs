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

/// Rises from 0 to 1 for `x` from 0 to 1, steeply at first. In dB, this is linear growth of a
/// sound.
pub(super) fn ease_out(x: f64) -> f64 {
    1.0 - (1.0 - x.clamp(0.0, 1.0)).powi(3)
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
        for shape in [ease_out, raised_cosine, fall] {
            assert!(shape(0.0).abs() < 1e-12);
            assert!((shape(1.0) - 1.0).abs() < 1e-12);
            for i in 0..100 {
                assert!(shape(f64::from(i + 1) / 100.0) > shape(f64::from(i) / 100.0));
            }
        }
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
