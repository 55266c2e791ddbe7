//! Linear smoothing of parameters.

/// Value that approaches its target linearly in a fixed time and reaches it exactly.
///
/// # Examples
/// ```
/// use ondes_engine::dsp::ramp::Ramp;
///
/// let mut gain = Ramp::new(0.0, 0.5, 8);
/// gain.set_target(1.0);
/// let values: Vec<f32> = (0..5).map(|_| gain.advance()).collect();
/// assert_eq!(values, [0.25, 0.5, 0.75, 1.0, 1.0]);
/// assert_eq!(gain.settled(), Some(1.0));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ramp {
    value: f32,
    target: f32,
    step: f32,
    left: usize,
    length: usize,
}

impl Ramp {
    /// Creates a ramp at rest at `value`, whose changes take `seconds` at a sample rate in Hz.
    #[must_use]
    pub fn new(value: f32, seconds: f64, sample_rate: u32) -> Self {
        let length = (seconds * f64::from(sample_rate)).ceil().max(1.0) as usize;
        Self {
            value,
            target: value,
            step: 0.0,
            left: 0,
            length,
        }
    }

    /// Sets the target. A ramp that is already on its way there continues unchanged.
    pub fn set_target(&mut self, target: f32) {
        #[expect(clippy::float_cmp, reason = "an equal target is the same target")]
        if self.target != target {
            (self.target, self.left) = (target, self.length);
            self.step = (target - self.value) / self.length as f32;
        }
    }

    /// Sets the value without a ramp.
    pub fn jump(&mut self, value: f32) {
        (self.value, self.target, self.left) = (value, value, 0);
    }

    /// Completes the current change.
    pub fn finish(&mut self) {
        self.jump(self.target);
    }

    /// Advances by one sample and returns the value.
    pub fn advance(&mut self) -> f32 {
        if self.left > 0 {
            self.left -= 1;
            self.value = if self.left == 0 {
                self.target
            } else {
                self.value + self.step
            };
        }
        self.value
    }

    /// Returns the value that it approaches or has.
    #[must_use]
    pub fn target(&self) -> f32 {
        self.target
    }

    /// Returns the value if the ramp is at rest.
    #[must_use]
    pub fn settled(&self) -> Option<f32> {
        (self.left == 0).then_some(self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_reached_exactly_without_steps() {
        let mut ramp = Ramp::new(0.0, 0.010, 48_000);
        ramp.set_target(0.7);
        let values: Vec<f32> = (0..480).map(|_| ramp.advance()).collect();
        assert!(
            values
                .windows(2)
                .all(|pair| (0.0..0.0015).contains(&(pair[1] - pair[0])))
        );
        assert_eq!(
            (values[479], ramp.settled(), ramp.advance()),
            (0.7, Some(0.7), 0.7)
        );
    }
}
