//! Tells the user that a model sounds only once the host processes audio.

use std::time::{Duration, Instant};

/// Text of the notice.
pub(super) const NOTICE: &str =
    "Loaded. You will hear it when the host's audio engine or transport runs";
/// Time within which a host that runs has processed a block, even one that had suspended the
/// instance.
const WAIT: Duration = Duration::from_secs(1);

const LEAST_WAIT: Duration = Duration::from_millis(50);

/// Waits for the first block after a model was loaded.
#[derive(Default)]
pub(super) struct IdleHost {
    /// The app has no host, and reports missing devices by itself.
    pub(super) is_app: bool,
    /// Samples recorded when the model was loaded, and the time of that.
    loaded: Option<(usize, Instant)>,
}

impl IdleHost {
    /// Begins to wait, after a model was loaded; `recorded` is the number of samples recorded so
    /// far.
    pub(super) fn begin(&mut self, recorded: usize) {
        self.loaded = (!self.is_app).then(|| (recorded, Instant::now()));
    }

    /// Shows the notice if the host has processed nothing within a second, and removes it when the
    /// host does.
    pub(super) fn update(&mut self, recorded: usize, notice: &mut Option<&'static str>) {
        let Some((before, since)) = self.loaded else {
            return;
        };
        if recorded != before {
            self.loaded = None;
            notice.take_if(|notice| *notice == NOTICE);
        } else if since.elapsed() >= WAIT && notice.is_none() {
            *notice = Some(NOTICE);
        }
    }

    /// Ends the wait, after the user has dismissed the notice.
    pub(super) fn end(&mut self) {
        self.loaded = None;
    }

    /// Returns the time after which to update again even if nothing else happens.
    pub(super) fn next_update(&self) -> Option<Duration> {
        // Once the notice is shown, a host that runs removes it within a second.
        self.loaded.map(|(_, since)| {
            WAIT.checked_sub(since.elapsed())
                .unwrap_or(WAIT)
                .max(LEAST_WAIT)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_host_that_processes_nothing_is_reported() {
        let (mut idle, mut notice) = (IdleHost::default(), None);
        idle.update(0, &mut notice);
        assert_eq!(
            (notice, idle.next_update()),
            (None, None),
            "nothing was loaded"
        );
        let mut app = IdleHost {
            is_app: true,
            ..IdleHost::default()
        };
        app.begin(100);
        assert_eq!(app.next_update(), None, "the app has no host");
        idle.begin(100);
        idle.update(100, &mut notice);
        assert!(
            notice.is_none() && idle.next_update().is_some(),
            "too early to tell"
        );
        idle.update(612, &mut notice);
        assert_eq!((notice, idle.next_update()), (None, None), "the host runs");

        idle.loaded = Some((612, Instant::now() - WAIT));
        idle.update(612, &mut notice);
        assert_eq!(notice, Some(NOTICE));
        idle.update(700, &mut notice);
        assert_eq!(
            (notice, idle.next_update()),
            (None, None),
            "the host runs again"
        );

        let mut other = Some("something else");
        idle.loaded = Some((700, Instant::now() - WAIT));
        idle.update(700, &mut other);
        idle.update(800, &mut other);
        assert_eq!(other, Some("something else"), "another notice stays");
    }
}
