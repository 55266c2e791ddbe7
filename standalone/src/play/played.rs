//! How much was played, however often the devices were opened meanwhile.

/// Seconds of sound.
#[derive(Debug, Default)]
pub struct Played {
    /// Before the devices were opened last.
    before_s: f64,
    /// Hz, since then; none before they were opened for the first time.
    sample_rate: Option<u32>,
}

impl Played {
    /// Devices were opened that play at that rate, Hz; those before have played `frames`. Gives the seconds so far.
    pub fn begin(&mut self, frames: u64, sample_rate: u32) -> f64 {
        self.before_s = self.seconds(frames);
        self.sample_rate = Some(sample_rate);
        self.before_s
    }

    /// All seconds so far, when the devices have played `frames` since they were opened.
    pub fn seconds(&self, frames: u64) -> f64 {
        self.before_s + self.sample_rate.map_or(0.0, |rate| frames as f64 / f64::from(rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_at_another_rate() {
        let mut played = Played::default();
        assert_eq!(played.begin(7, 48_000), 0.0);
        assert_eq!(played.seconds(96_000), 2.0);
        assert_eq!(played.begin(96_000, 44_100), 2.0);
        assert_eq!(played.seconds(22_050), 2.5);
    }
}
