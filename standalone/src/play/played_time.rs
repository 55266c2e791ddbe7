//! Time played across several openings of the devices.

/// Length of sound played.
#[derive(Debug, Default)]
pub struct PlayedTime {
    /// Seconds before the devices were opened last.
    before_s: f64,
    /// Sample rate since then, Hz; `None` before the first opening.
    sample_rate: Option<u32>,
}

impl PlayedTime {
    /// Starts to count anew for devices that were opened at a sample rate in Hz; the old ones have
    /// played `frames`. Returns the seconds so far.
    pub fn begin(&mut self, frames: u64, sample_rate: u32) -> f64 {
        self.before_s = self.seconds(frames);
        self.sample_rate = Some(sample_rate);
        self.before_s
    }

    /// Returns the seconds so far; the devices have played `frames` since they were opened.
    pub fn seconds(&self, frames: u64) -> f64 {
        self.before_s
            + self
                .sample_rate
                .map_or(0.0, |rate| frames as f64 / f64::from(rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_continues_at_another_rate() {
        let mut played = PlayedTime::default();
        assert_eq!(played.begin(7, 48_000), 0.0);
        assert_eq!(played.seconds(96_000), 2.0);
        assert_eq!(played.begin(96_000, 44_100), 2.0);
        assert_eq!(played.seconds(22_050), 2.5);
    }
}
