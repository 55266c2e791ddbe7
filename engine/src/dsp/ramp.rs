//! Straight lines between the values of a knob.

/// A value that goes to where it is sent in a straight line, in a fixed time, and arrives exactly.
#[derive(Clone, Copy, Debug)]
pub struct Ramp {
    value: f32,
    target: f32,
    step: f32,
    left: usize,
    length: usize,
}

impl Ramp {
    /// A ramp that rests at `value` and takes `seconds` for every way, at a rate in Hz.
    #[must_use]
    pub fn new(value: f32, seconds: f64, sample_rate: u32) -> Self {
        let length = (seconds * f64::from(sample_rate)).ceil().max(1.0) as usize;
        Self { value, target: value, step: 0.0, left: 0, length }
    }

    /// Sends it on its way, from where it is; it stays on the way that it is on if that leads there.
    pub fn go(&mut self, target: f32) {
        #[expect(clippy::float_cmp, reason = "a target is what somebody said")]
        if self.target != target {
            (self.target, self.left) = (target, self.length);
            self.step = (target - self.value) / self.length as f32;
        }
    }

    /// Goes there at once.
    pub fn jump(&mut self, value: f32) {
        (self.value, self.target, self.left) = (value, value, 0);
    }

    /// Goes at once to where it was sent.
    pub fn arrive(&mut self) {
        self.jump(self.target);
    }

    /// Where it is with the next sample.
    pub fn advance(&mut self) -> f32 {
        if self.left > 0 {
            self.left -= 1;
            self.value = if self.left == 0 { self.target } else { self.value + self.step };
        }
        self.value
    }

    /// Where it stays, if it has arrived.
    #[must_use]
    pub fn rest(&self) -> Option<f32> {
        (self.left == 0).then_some(self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_arrives_exactly_and_never_leaps() {
        let mut ramp = Ramp::new(0.0, 0.010, 48_000);
        ramp.go(0.7);
        let values: Vec<f32> = (0..480).map(|_| ramp.advance()).collect();
        assert!(values.windows(2).all(|pair| (0.0..0.0015).contains(&(pair[1] - pair[0]))));
        assert_eq!((values[479], ramp.rest(), ramp.advance()), (0.7, Some(0.7), 0.7));
    }
}
