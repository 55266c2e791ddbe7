//! How far a render is, for a person who waits for it.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::terminal;

/// A progress bar with the sound made so far and the speed in times real time. Nothing where standard error is no terminal;
/// gone when dropped.
pub struct Progress {
    bar: ProgressBar,
    counts: Counts,
    /// Sound made so far.
    sound_ns: Arc<AtomicU64>,
}

/// What the bar measures.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counts {
    /// Nanoseconds of sound.
    Sound,
    Files,
}

impl Progress {
    /// A bar for one file, as long as [`expect`](Self::expect) says.
    pub fn of_sound() -> Self {
        Self::new(None, Counts::Sound)
    }

    /// A bar for so many files.
    pub fn of_files(files: usize) -> Self {
        let progress = Self::new(Some(files as u64), Counts::Files);
        // Files may be long, and time goes on.
        progress.bar.enable_steady_tick(Duration::from_millis(100));
        progress
    }

    fn new(length: Option<u64>, counts: Counts) -> Self {
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr_with_hz(10)
        } else {
            ProgressDrawTarget::hidden()
        };
        let progress = Self { bar: ProgressBar::with_draw_target(length, target), counts, sound_ns: Arc::default() };
        progress.lay_out(match counts {
            Counts::Sound => "{spinner} {sound}  {speed}",
            Counts::Files => "{bar:32} {pos}/{len} files  {sound}  {speed}  {eta} left",
        });
        progress
    }

    fn lay_out(&self, template: &str) {
        let seconds = |sound_ns: &AtomicU64| sound_ns.load(Ordering::Relaxed) as f64 / 1e9;
        let made = Arc::clone(&self.sound_ns);
        let sound = move |_: &ProgressState, text: &mut dyn std::fmt::Write| {
            // Writing to a string does not fail.
            let _ = write!(text, "{:.0} s", seconds(&made));
        };
        let made = Arc::clone(&self.sound_ns);
        let speed = move |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            let elapsed = state.elapsed().max(Duration::from_millis(1)).as_secs_f64();
            let _ = write!(text, "{:.0}× real time", seconds(&made) / elapsed);
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.with_key("sound", sound).with_key("speed", speed));
        }
    }

    /// Playing begins, and will take about so many samples at that rate in Hz, if that is known.
    pub fn expect(&self, samples: Option<u64>, sample_rate: u32) {
        if self.counts == Counts::Files {
            return;
        }
        self.bar.reset_elapsed();
        if let Some(samples) = samples {
            self.bar.set_length(nanoseconds(samples, sample_rate));
            self.lay_out("{bar:32} {percent:>3} %  {sound}  {speed}  {eta} left");
        }
    }

    /// So many more samples are done.
    pub fn advance(&self, samples: u64, sample_rate: u32) {
        let more = nanoseconds(samples, sample_rate);
        let sound_ns = self.sound_ns.fetch_add(more, Ordering::Relaxed) + more;
        if self.counts == Counts::Sound {
            self.bar.set_position(sound_ns);
        }
    }

    /// One more file is done.
    pub fn file_done(&self) {
        self.bar.inc(1);
    }

    /// Lets something be printed without the bar in its way.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// As [`terminal::warn`].
    pub fn warn(&self, warning: &str) {
        self.aside(|| terminal::warn(warning));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn nanoseconds(samples: u64, sample_rate: u32) -> u64 {
    (samples as f64 * 1e9 / f64::from(sample_rate)) as u64
}
