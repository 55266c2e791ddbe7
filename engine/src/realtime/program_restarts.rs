//! Restarts of a TorchScript program whose process was lost.

use std::time::{Duration, Instant};

/// Restarts within [`INTERVAL`]; a program that is lost once more stays silent.
const MAX_RESTARTS: usize = 3;
/// Time after which a restart no longer counts.
const INTERVAL: Duration = Duration::from_secs(60);

/// Restarts of the model that plays.
#[derive(Default)]
pub(super) struct ProgramRestarts {
    /// A background job watches the program.
    pub is_running: bool,
    restarts: Vec<Instant>,
}

impl ProgramRestarts {
    /// Forgets the restarts of another model.
    pub fn forget(&mut self) {
        self.restarts.clear();
    }

    /// Counts a restart. Returns false if there were too many.
    pub fn may_restart(&mut self, now: Instant) -> bool {
        self.restarts
            .retain(|then| now.duration_since(*then) < INTERVAL);
        let may_restart = self.restarts.len() < MAX_RESTARTS;
        if may_restart {
            self.restarts.push(now);
        }
        may_restart
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_restarts_a_minute_are_allowed() {
        let mut watch = ProgramRestarts::default();
        let start = Instant::now();
        let mut at = |seconds| watch.may_restart(start + Duration::from_secs(seconds));
        assert_eq!([at(0), at(10), at(20), at(30)], [true, true, true, false]);
        assert_eq!([at(61), at(62), at(71)], [true, false, true]);
        watch.forget();
        assert!(watch.may_restart(start + Duration::from_secs(72)));
    }
}
