//! Progress on standard error: a bar on a terminal, otherwise a line every few seconds.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::callback::{Callback, StepReport, StopReason, ValidationReport};

/// Interval of lines without a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Progress of a run.
pub struct ProgressDisplay {
    bar: Option<ProgressBar>,
    first_step: u64,
    steps: u64,
    /// Steps of an epoch, and seconds of sound in it.
    epoch: Option<(u64, f64)>,
    /// Duration of the steps, and the wait for data in it, seconds.
    steps_seconds: f64,
    data_seconds: f64,
    started: Instant,
    last_line: Instant,
}

impl ProgressDisplay {
    /// Starts the display at a step.
    ///
    /// # Errors
    /// Returns an error if the bar has no valid style.
    pub fn new(first_step: u64, steps: u64, epoch: Option<(u64, f64)>) -> anyhow::Result<Self> {
        let bar = if std::io::stderr().is_terminal() {
            let style = ProgressStyle::with_template(
                "{elapsed_precise} {bar:32} {pos}/{len} {per_sec} ETA {eta} {msg}",
            )?;
            let bar = ProgressBar::new(steps)
                .with_style(style)
                .with_position(first_step);
            bar.reset_eta();
            Some(bar)
        } else {
            None
        };
        let now = Instant::now();
        Ok(Self {
            bar,
            first_step,
            steps,
            epoch,
            steps_seconds: 0.0,
            data_seconds: 0.0,
            started: now,
            last_line: now,
        })
    }

    /// Returns the mean duration of a step, validations included, seconds.
    fn pace(&self, step: u64) -> f64 {
        self.started.elapsed().as_secs_f64() / (step - self.first_step).max(1) as f64
    }

    fn print(&mut self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
        self.last_line = Instant::now();
    }
}

impl Callback for ProgressDisplay {
    fn step_done(&mut self, report: &StepReport<'_>) -> anyhow::Result<()> {
        self.steps_seconds += report.seconds;
        self.data_seconds += report.data_seconds;
        let wait = 100.0 * self.data_seconds / self.steps_seconds.max(1e-9);
        if let Some(bar) = &self.bar {
            bar.set_message(format!(
                "loss {:.5} gradient {:.2} data wait {wait:.1} %",
                report.mean_loss, report.gradient
            ));
            bar.set_position(report.step);
        } else if self.last_line.elapsed() >= LINE_INTERVAL {
            let pace = self.pace(report.step);
            self.print(&format!(
                "step {:>6} of {}  loss {:.5}  {pace:.3} s/step  data wait {wait:.1} %  {:.0} s left",
                report.step,
                self.steps,
                report.mean_loss,
                pace * self.steps.saturating_sub(report.step) as f64
            ));
        }
        Ok(())
    }

    fn validated(&mut self, report: &ValidationReport<'_>) -> anyhow::Result<StopReason> {
        let pace = self.pace(report.step);
        let (position, pace_text) = match self.epoch {
            Some((steps, seconds)) => {
                let epoch = pace * steps as f64;
                let position = format!("epoch {:>4}", report.step / steps);
                (
                    position,
                    format!(
                        "{epoch:.1} s/epoch, {:.1} x real time",
                        seconds / epoch.max(1e-9)
                    ),
                )
            }
            None => (
                format!("step {:>6}", report.step),
                format!("{pace:.3} s/step"),
            ),
        };
        let note = report
            .validation
            .note
            .as_ref()
            .map_or_else(String::new, |note| format!("  {note}"));
        self.print(&format!(
            "{position}  loss {:.5}  {} {:.5}{}{note}  {pace_text}  {:.0} s left",
            report.mean_loss,
            report.validation.measure,
            report.validation.loss,
            if report.is_best { " (best)" } else { "" },
            pace * self.steps.saturating_sub(report.step) as f64
        ));
        Ok(None)
    }

    fn finished(&mut self) -> anyhow::Result<()> {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
        Ok(())
    }
}
