//! Status line of `ondes play`.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ondes_engine::dsp::level::amplitude_to_db;
use ondes_engine::dsp::limiter::LOOKAHEAD_S;
use ondes_engine::realtime;

use crate::audio_app::AudioApp;
use crate::devices::{AudioStatus, Opened};
use crate::terminal;

/// Status line on a terminal; elsewhere only warnings are printed. Removed when dropped.
pub struct StatusLine {
    bar: ProgressBar,
    head: String,
    /// The device was lost at the last update.
    lost: bool,
    /// Warnings of tracks that were printed already.
    shown_warnings: Vec<String>,
    /// Error of the recording that was printed already.
    shown_recording_error: Option<String>,
}

impl StatusLine {
    /// Creates a line for the opened devices, hidden if `quiet`; `shown_warnings` were printed
    /// before.
    pub fn new(opened: &Opened, shown_warnings: Vec<String>, quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal() && !quiet;
        let target = if terminal {
            ProgressDrawTarget::stderr_with_hz(10)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        let Opened {
            host,
            output,
            sample_rate,
            max_block,
            ..
        } = opened;
        Self {
            bar,
            head: format!("{host} {output}, {sample_rate} Hz, {max_block} frames"),
            lost: false,
            shown_warnings,
            shown_recording_error: None,
        }
    }

    /// Updates the line; `peaks` are those of the master since the last update.
    pub fn show(&mut self, app: &AudioApp, status: &AudioStatus, peaks: [f32; 2]) {
        let level_db = amplitude_to_db(peaks[0].max(peaks[1]).max(1e-5));
        let lost = matches!(status, AudioStatus::Lost { .. });
        if std::mem::replace(&mut self.lost, lost) != lost {
            self.bar.suspend(|| match status {
                AudioStatus::Lost { device, reason, .. } => {
                    terminal::warn(&format!("no sound from {device}: {reason}; trying again"));
                }
                _ => terminal::warn("the device is back"),
            });
        }
        let recording = app.recording();
        if recording.error.is_some() && recording.error != self.shown_recording_error {
            self.shown_recording_error = recording.error;
            self.bar.suspend(|| {
                let error = self.shown_recording_error.as_deref().unwrap_or_default();
                terminal::warn(&format!(
                    "{error}; the recording ends there, and playing goes on"
                ));
            });
        }
        for (_, track) in app.mixer().tracks() {
            let failed = match track.instance.status() {
                realtime::LoadStatus::Failed(reason) => Some(reason),
                _ => None,
            };
            let error = track.error().map(str::to_owned);
            for news in error
                .into_iter()
                .chain(failed)
                .chain(track.instance.session.warning())
            {
                if !self.shown_warnings.contains(&news) {
                    self.bar
                        .suspend(|| terminal::warn(&format!("{}: {news}", track.title())));
                    self.shown_warnings.push(news);
                }
            }
        }
        let text = match status {
            AudioStatus::Playing(_) | AudioStatus::Opening => {
                let healths: Vec<_> = app
                    .mixer()
                    .tracks()
                    .filter_map(|(_, track)| track.instance.session.health())
                    .collect();
                let dropouts = app.dropouts();
                let load: f32 = healths.iter().map(|health| health.load).sum();
                let slowest_ms = healths
                    .iter()
                    .map(|health| health.latency_ms)
                    .fold(0.0, f64::max);
                let latency_ms = slowest_ms + 1e3 * LOOKAHEAD_S;
                let sizes = app
                    .mixer()
                    .tracks()
                    .filter_map(|(_, track)| track.instance.session.variant())
                    .collect::<Vec<_>>();
                let sizes = if sizes.is_empty() {
                    String::new()
                } else {
                    format!("  size {}", sizes.join(", "))
                };
                let recorded = recording
                    .recording
                    .map(|_| "  recording")
                    .unwrap_or_default();
                format!(
                    "{}  load {:.0} %  dropouts {dropouts}  latency {latency_ms:.1} ms  {level_db:.1} dB{sizes}{recorded}",
                    self.head,
                    100.0 * load
                )
            }
            AudioStatus::Lost { device, .. } => format!("no sound from {device}"),
            AudioStatus::Failed(reason) => reason.clone(),
        };
        self.bar.set_message(text);
    }

    /// Removes the line and returns the error of the recording that was printed, if any.
    pub fn finish(mut self) -> Option<String> {
        self.shown_recording_error.take()
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
