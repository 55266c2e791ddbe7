//! The log of a run: `metrics.jsonl`, one JSON object per line, each written at once.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;

use super::alerts::{Alert, Alerts};
use super::callback::{Callback, StepReport, StopReason, ValidationReport};
use super::endpoint::Endpoint;
use super::log_line::{LogLine, SystemUsage, read};
use super::options::TrainerOptions;
use super::resource_usage::ResourceUsage;

/// Lines between two with the gradient of each layer, memory and the state of the loader.
const LINES_PER_DETAILS: u64 = 10;

/// Log of a run.
pub struct MetricsLog {
    path: PathBuf,
    file: File,
    every: u64,
    since: Since,
    /// Time and processor time of the last line with [`SystemUsage`].
    usage: (Instant, ResourceUsage),
    alerts: Alerts,
    endpoint: Option<Endpoint>,
}

/// Sums since the last line.
#[derive(Default)]
struct Since {
    steps: u64,
    rows: usize,
    seconds: f64,
    data_seconds: f64,
}

impl MetricsLog {
    /// Starts a log, or continues one after `first_step`: later lines are removed, since these
    /// steps are done again.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn new(first_step: u64, options: &TrainerOptions) -> anyhow::Result<Self> {
        let path = &options.files.metrics;
        let context = || format!("{}: cannot be written", path.display());
        let kept = if first_step > 0 {
            read(path).unwrap_or_default()
        } else {
            Vec::new()
        };
        let mut log = Self {
            path: path.clone(),
            file: OpenOptions::new()
                .create(true)
                .write(true)
                .truncate(true)
                .open(path)
                .with_context(context)?,
            every: options.training.log_every,
            since: Since::default(),
            usage: (Instant::now(), ResourceUsage::now()),
            alerts: Alerts::new(options.alerts.clone()),
            endpoint: options.training.endpoint.map(Endpoint::new).transpose()?,
        };
        if let Some(address) = log.endpoint.as_ref().and_then(Endpoint::address) {
            eprintln!("metrics are at http://{address}/metrics");
        }
        kept.iter()
            .filter(|line| line.step <= first_step)
            .try_for_each(|line| log.write(line))?;
        Ok(log)
    }

    /// Returns memory now, and the cores that were busy since the last call.
    fn system_usage(&mut self) -> SystemUsage {
        let (now, used) = (Instant::now(), ResourceUsage::now());
        let (then, before) = std::mem::replace(&mut self.usage, (now, used));
        let cores = (used.cpu_seconds - before.cpu_seconds) / (now - then).as_secs_f64().max(1e-9);
        SystemUsage {
            memory: used.bytes,
            memory_peak: used.peak_bytes,
            cores,
        }
    }

    /// Prints and writes warnings, and runs their command.
    fn warn(&mut self, alerts: Vec<Alert>) -> anyhow::Result<()> {
        for alert in alerts {
            eprintln!("warning: {}", alert.text);
            if let Some(command) = self.alerts.command() {
                alert.run(command, &self.path)?;
            }
            self.write(&LogLine {
                step: alert.step,
                alert: Some(alert.text),
                ..LogLine::default()
            })?;
        }
        Ok(())
    }

    fn write(&mut self, line: &LogLine) -> anyhow::Result<()> {
        self.endpoint
            .iter()
            .for_each(|endpoint| endpoint.publish(line));
        let text = serde_json::to_string(line)? + "\n";
        self.file
            .write_all(text.as_bytes())
            .with_context(|| format!("{}: cannot be written", self.path.display()))
    }
}

impl Since {
    fn add(&mut self, report: &StepReport<'_>) {
        self.steps += 1;
        self.rows += report.rows;
        self.seconds += report.seconds;
        self.data_seconds += report.data_seconds;
    }
}

impl Callback for MetricsLog {
    fn step_done(&mut self, report: &StepReport<'_>) -> anyhow::Result<()> {
        self.since.add(report);
        let alerts = self.alerts.check_gradient(report.step, report.gradient);
        self.warn(alerts)?;
        if !report.step.is_multiple_of(self.every) {
            return Ok(());
        }
        let since = std::mem::take(&mut self.since);
        let (mut layers, mut system, mut loader) = (serde_json::Map::new(), None, None);
        if report.step.is_multiple_of(self.every * LINES_PER_DETAILS) {
            let norms = report.parameters.gradient_norms();
            layers.extend(
                norms
                    .into_iter()
                    .map(|(name, norm)| (name.to_owned(), norm.into())),
            );
            loader = (report.loader)();
            system = Some(self.system_usage());
        }
        let line = LogLine {
            step: report.step,
            loss: Some(report.mean_loss),
            terms: report
                .terms
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).into()))
                .collect(),
            rate: Some(report.rate),
            gradient: Some(report.gradient).filter(|gradient| gradient.is_finite()),
            seconds: Some(since.seconds / since.steps as f64),
            rows_per_second: Some(since.rows as f64 / since.seconds.max(1e-9)),
            data_wait: Some(since.data_seconds / since.seconds.max(1e-9)),
            system,
            loader,
            layers,
            ..LogLine::default()
        };
        self.write(&line)?;
        let alerts = self.alerts.check(&line, ResourceUsage::now().bytes);
        self.warn(alerts)
    }

    fn validated(&mut self, report: &ValidationReport<'_>) -> anyhow::Result<StopReason> {
        let line = LogLine {
            step: report.step,
            rate: Some(report.rate),
            validation: Some(report.validation.loss),
            measure: report.validation.measure.to_owned(),
            best: Some(report.is_best),
            ..LogLine::default()
        };
        self.write(&line)?;
        let alerts = self
            .alerts
            .check_validation(report.step, report.validation.loss);
        self.warn(alerts)?;
        Ok(None)
    }
}
