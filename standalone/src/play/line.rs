//! One line that says how it goes, for a person who plays.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ondes_engine::realtime;

use crate::devices::{Opened, Status};
use crate::rack::limiter::AHEAD_S;
use crate::rig::Rig;
use crate::terminal;

/// The line; where standard error is no terminal, only what a user must know. Gone when dropped.
pub struct Line {
    bar: ProgressBar,
    head: String,
    /// Whether the device was gone when this was looked at last.
    lost: bool,
    /// What was said of models.
    told: Vec<String>,
}

impl Line {
    /// A line for what plays on those devices; `told` was said of models before.
    pub fn new(opened: &Opened, told: Vec<String>) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let target = if terminal { ProgressDrawTarget::stderr_with_hz(10) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        let Opened { host, output, sample_rate, max_block, .. } = opened;
        Self { bar, head: format!("{host} {output}, {sample_rate} Hz, {max_block} frames"), lost: false, told }
    }

    /// Says how it goes; `peaks` are the largest samples of the master since the last time.
    pub fn show(&mut self, rig: &Rig, status: &Status, peaks: [f32; 2]) {
        let level_db = 20.0 * peaks[0].max(peaks[1]).max(1e-5).log10();
        let lost = matches!(status, Status::Lost { .. });
        if std::mem::replace(&mut self.lost, lost) != lost {
            self.bar.suspend(|| match status {
                Status::Lost { device, reason, .. } => {
                    terminal::warn(&format!("{device} is gone: {reason}; it is taken again when it is back"));
                }
                _ => terminal::warn("the sound is back"),
            });
        }
        for (_, track) in rig.console().tracks() {
            let failed = match track.shared.remote.status() {
                realtime::Status::Failed(reason) => Some(reason),
                _ => None,
            };
            for news in failed.into_iter().chain(track.shared.remote.notice()) {
                if !self.told.contains(&news) {
                    self.bar.suspend(|| terminal::warn(&format!("{}: {news}", track.title())));
                    self.told.push(news);
                }
            }
        }
        let text = match status {
            Status::Playing(_) | Status::Opening => {
                let healths: Vec<_> =
                    rig.console().tracks().filter_map(|(_, track)| track.shared.remote.health()).collect();
                let misses = rig.misses();
                let load: f32 = healths.iter().map(|health| health.load).sum();
                let slowest_ms = healths.iter().map(|health| health.latency_ms).fold(0.0, f64::max);
                let latency_ms = slowest_ms + 1e3 * AHEAD_S;
                let sizes =
                    rig.console().tracks().filter_map(|(_, track)| track.shared.remote.variant()).collect::<Vec<_>>();
                let sizes = if sizes.is_empty() { String::new() } else { format!("  size {}", sizes.join(", ")) };
                let recorded = rig.recording().recording.map(|_| "  recording").unwrap_or_default();
                format!(
                    "{}  load {:.0} %  misses {misses}  latency {latency_ms:.1} ms  {level_db:.1} dB{sizes}{recorded}",
                    self.head,
                    100.0 * load
                )
            }
            Status::Lost { device, .. } => format!("{device} is gone"),
            Status::Failed(reason) => reason.clone(),
        };
        self.bar.set_message(text);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
