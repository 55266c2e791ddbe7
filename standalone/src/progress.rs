//! Progress bars of renders.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::terminal;

/// Progress bar with the length of sound rendered so far and the speed in times real time. Hidden
/// if standard error is not a terminal, or `quiet` was asked for; removed when dropped.
pub struct RenderProgress {
    bar: ProgressBar,
    unit: ProgressUnit,
    /// Length of sound rendered so far, nanoseconds.
    sound_ns: Arc<AtomicU64>,
}

/// Unit of the bar's length.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProgressUnit {
    /// Nanoseconds of sound.
    Sound,
    Files,
}

impl RenderProgress {
    /// Creates a bar for one file; [`expect`](Self::expect) sets its length.
    pub fn of_sound(quiet: bool) -> Self {
        Self::new(None, ProgressUnit::Sound, quiet)
    }

    /// Creates a bar for `files` files.
    pub fn of_files(files: usize, quiet: bool) -> Self {
        let progress = Self::new(Some(files as u64), ProgressUnit::Files, quiet);
        // Moves the elapsed time on while a long file is rendered.
        progress.bar.enable_steady_tick(Duration::from_millis(100));
        progress
    }

    fn new(length: Option<u64>, unit: ProgressUnit, quiet: bool) -> Self {
        let target = if std::io::stderr().is_terminal() && !quiet {
            ProgressDrawTarget::stderr_with_hz(10)
        } else {
            ProgressDrawTarget::hidden()
        };
        let progress = Self {
            bar: ProgressBar::with_draw_target(length, target),
            unit,
            sound_ns: Arc::default(),
        };
        progress.set_template(match unit {
            ProgressUnit::Sound => "{spinner} {sound}  {speed}",
            ProgressUnit::Files => "{bar:32} {pos}/{len} files  {sound}  {speed}  {eta} left",
        });
        progress
    }

    fn set_template(&self, template: &str) {
        let seconds = |sound_ns: &AtomicU64| sound_ns.load(Ordering::Relaxed) as f64 / 1e9;
        let made = Arc::clone(&self.sound_ns);
        let sound = move |_: &ProgressState, text: &mut dyn std::fmt::Write| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{:.0} s", seconds(&made));
        };
        let made = Arc::clone(&self.sound_ns);
        let speed = move |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            let elapsed = state.elapsed().max(Duration::from_millis(1)).as_secs_f64();
            let _ = write!(text, "{:.0}× real time", seconds(&made) / elapsed);
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar
                .set_style(style.with_key("sound", sound).with_key("speed", speed));
        }
    }

    /// Restarts the elapsed time and sets the expected length in samples at `sample_rate` Hz, if it
    /// is known.
    pub fn expect(&self, samples: Option<u64>, sample_rate: u32) {
        if self.unit == ProgressUnit::Files {
            return;
        }
        self.bar.reset_elapsed();
        if let Some(samples) = samples {
            self.bar.set_length(nanoseconds(samples, sample_rate));
            self.set_template("{bar:32} {percent:>3} %  {sound}  {speed}  {eta} left");
        }
    }

    /// Adds rendered samples at `sample_rate` Hz.
    pub fn advance(&self, samples: u64, sample_rate: u32) {
        let more = nanoseconds(samples, sample_rate);
        let sound_ns = self.sound_ns.fetch_add(more, Ordering::Relaxed) + more;
        if self.unit == ProgressUnit::Sound {
            self.bar.set_position(sound_ns);
        }
    }

    /// Counts a finished file.
    pub fn file_done(&self) {
        self.bar.inc(1);
    }

    /// Hides the bar while `print` runs.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Prints a warning as [`terminal::warn`] does, without disturbing the bar.
    pub fn warn(&self, warning: &str) {
        self.suspend(|| terminal::warn(warning));
    }
}

impl Drop for RenderProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn nanoseconds(samples: u64, sample_rate: u32) -> u64 {
    (samples as f64 * 1e9 / f64::from(sample_rate)) as u64
}
