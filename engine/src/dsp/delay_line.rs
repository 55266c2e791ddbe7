//! Delay line that can be read between samples.

use super::level::limit_sample;

/// Samples of the past, read at any distance.
///
/// # Examples
/// ```
/// use ondes_engine::dsp::delay_line::DelayLine;
///
/// let mut delay = DelayLine::new(100);
/// (0..50).for_each(|n| delay.push(n as f32));
/// assert_eq!(delay.read(3.0), 46.0);
/// assert!((delay.read(3.5) - 45.5).abs() < 1e-5);
/// ```
#[derive(Clone, Debug)]
pub struct DelayLine {
    ring: Vec<f32>,
    /// Index of the next sample.
    position: usize,
}

impl DelayLine {
    /// Creates a silent line that can be read up to `longest` samples back.
    #[must_use]
    pub fn new(longest: usize) -> Self {
        // The interpolation reads two samples beyond.
        let length = (longest + 4).next_power_of_two();
        Self {
            ring: vec![0.0; length],
            position: 0,
        }
    }

    /// Forgets all samples.
    pub fn reset(&mut self) {
        self.ring.fill(0.0);
    }

    /// Adds a sample. It is limited as [`limit_sample`] says.
    pub fn push(&mut self, sample: f32) {
        self.ring[self.position] = limit_sample(sample);
        self.position = (self.position + 1) & (self.ring.len() - 1);
    }

    /// Returns a sample by its age: 0 is the last one that was pushed.
    #[must_use]
    pub fn at(&self, back: usize) -> f32 {
        self.ring[self.position.wrapping_sub(back + 1) & (self.ring.len() - 1)]
    }

    /// Returns the sound `back` samples before the last sample, at least 1, between two samples by a
    /// cubic curve (Catmull & Rom, "A class of local interpolating splines", 1974).
    #[must_use]
    pub fn read(&self, back: f32) -> f32 {
        let whole = back as usize;
        let share = back - whole as f32;
        if share == 0.0 {
            return self.at(whole);
        }
        let [after, here, next, last] =
            [whole.wrapping_sub(1), whole, whole + 1, whole + 2].map(|back| self.at(back));
        let bend = 0.5 * (3.0 * (here - next) + last - after);
        let slope = after - 2.5 * here + 2.0 * next - 0.5 * last;
        here + share * (0.5 * (next - after) + share * (slope + share * bend))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tone_between_samples_is_the_tone() {
        let tone = |n: f64| (0.2 * n).sin();
        let mut delay = DelayLine::new(64);
        (0..200).for_each(|n| delay.push(tone(f64::from(n)) as f32));
        for step in 10..600 {
            let back = f64::from(step) / 10.0;
            let found = f64::from(delay.read(back as f32));
            assert!((found - tone(199.0 - back)).abs() < 2e-3, "{back}: {found}");
        }
    }
}
