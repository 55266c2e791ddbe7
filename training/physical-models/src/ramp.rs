//! Linear interpolation between control points.

/// Value that moves linearly from one control point to the next.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ramp {
    value: f64,
    step: f64,
    target: f64,
}

impl Ramp {
    /// Sets a target that [`next`](Self::next) reaches in `samples` steps.
    pub fn towards(&mut self, target: f64, samples: usize) {
        self.step = (target - self.value) / samples as f64;
        self.target = target;
    }

    /// Jumps to the target.
    pub fn arrive(&mut self) {
        self.value = self.target;
        self.step = 0.0;
    }

    #[inline]
    pub fn next(&mut self) -> f64 {
        self.value += self.step;
        self.value
    }
}
