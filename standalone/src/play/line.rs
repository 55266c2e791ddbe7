//! One line that says how it goes, for a person who plays.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::devices::{Opened, Status};
use crate::rig::Rig;

/// The line; nothing where standard error is no terminal, and gone when dropped.
pub struct Line {
    bar: ProgressBar,
    head: String,
}

impl Line {
    /// A line for what plays on those devices.
    pub fn new(opened: &Opened) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let target = if terminal { ProgressDrawTarget::stderr_with_hz(10) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        let Opened { host, output, sample_rate, max_block, .. } = opened;
        Self { bar, head: format!("{host} {output}, {sample_rate} Hz, {max_block} frames") }
    }

    /// Says how it goes; `peaks` are the largest samples of the master since the last time.
    pub fn show(&self, rig: &Rig, peaks: [f32; 2]) {
        let level_db = 20.0 * peaks[0].max(peaks[1]).max(1e-5).log10();
        let text = match rig.status() {
            Status::Playing(_) | Status::Opening => {
                let console = rig.console();
                let healths: Vec<_> = console.tracks().filter_map(|(_, track)| track.shared.remote.health()).collect();
                let load: f32 = healths.iter().map(|health| health.load).sum();
                let misses: u64 = healths.iter().map(|health| health.misses).sum::<u64>() + rig.xruns();
                let latency_ms = healths.iter().map(|health| health.latency_ms).fold(0.0, f64::max);
                let recorded = rig.recording().recording.map(|_| "  recording").unwrap_or_default();
                format!(
                    "{}  load {:.0} %  misses {misses}  latency {latency_ms:.1} ms  {level_db:.1} dB{recorded}",
                    self.head,
                    100.0 * load
                )
            }
            Status::Lost { device, reason, .. } => {
                format!("{device} is gone ({reason}); it is taken again when it is back")
            }
            Status::Failed(reason) => reason,
        };
        self.bar.set_message(text);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
