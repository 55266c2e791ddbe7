//! How far a render is, for a person who waits for it.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// A progress bar in samples, with the speed in times real time. Nothing where standard error is no terminal; gone when
/// dropped.
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar for `samples` at `sample_rate` in Hz; without a number of samples it shows only how far it is.
    pub fn new(samples: Option<u64>, sample_rate: u32) -> Self {
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr_with_hz(10)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(samples, target);
        let template = match samples {
            Some(_) => "{bar:32} {percent:>3} %  {sound}  {speed}  {eta} left",
            None => "{spinner} {sound}  {speed}",
        };
        let rate = f64::from(sample_rate);
        let seconds = move |state: &ProgressState| state.pos() as f64 / rate;
        let sound = move |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            // Writing to a string does not fail.
            let _ = write!(text, "{:.0} s", seconds(state));
        };
        let speed = move |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            let elapsed = state.elapsed().max(Duration::from_millis(1)).as_secs_f64();
            let _ = write!(text, "{:.0}× real time", seconds(state) / elapsed);
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.with_key("sound", sound).with_key("speed", speed));
        }
        Self(bar)
    }

    /// Shows how many samples are done.
    pub fn show(&self, samples: u64) {
        self.0.set_position(samples);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
