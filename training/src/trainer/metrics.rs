//! The log of a run: `metrics.jsonl`, one JSON object per line, each written at once.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use ondes_engine::files;
use serde::{Deserialize, Serialize};

use super::callback::{Callback, StepReport, StopReason, ValidationReport};

/// Lines between two with the gradient of each layer.
const LINES_PER_LAYERS: u64 = 10;

/// A line of the log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Line {
    /// Steps that are done.
    pub step: u64,
    /// Training loss, mean over the last steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Terms of the step's loss.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub terms: serde_json::Map<String, serde_json::Value>,
    /// Learning rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Norm of the gradient before clipping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gradient: Option<f64>,
    /// Duration of a step, seconds: the mean since the last line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Norm of the gradient in each layer, as the optimiser saw it.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub layers: serde_json::Map<String, serde_json::Value>,
    /// Validation loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<f64>,
    /// Name of the validation loss.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub measure: String,
    /// Tells whether the validation is the best so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best: Option<bool>,
}

/// Log of a run.
pub struct MetricsLog {
    path: PathBuf,
    file: File,
    every: u64,
    /// Steps and their duration since the last line.
    since: (u64, f64),
}

impl MetricsLog {
    /// Starts a log, or continues one after `first_step`: later lines are removed, since these steps are done again.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn new(path: &Path, first_step: u64, every: u64) -> anyhow::Result<Self> {
        let context = || format!("{}: cannot be written", path.display());
        let kept = if first_step > 0 { read(path).unwrap_or_default() } else { Vec::new() };
        let mut log = Self {
            path: path.to_owned(),
            file: OpenOptions::new().create(true).write(true).truncate(true).open(path).with_context(context)?,
            every,
            since: (0, 0.0),
        };
        kept.iter().filter(|line| line.step <= first_step).try_for_each(|line| log.write(line))?;
        Ok(log)
    }

    fn write(&mut self, line: &Line) -> anyhow::Result<()> {
        let text = serde_json::to_string(line)? + "\n";
        self.file.write_all(text.as_bytes()).with_context(|| format!("{}: cannot be written", self.path.display()))
    }
}

/// Reads a log. The last line may be incomplete and is then left out.
///
/// # Errors
/// Returns an error if the file cannot be read or another line is damaged.
pub fn read(path: &Path) -> anyhow::Result<Vec<Line>> {
    let file = files::open(path).with_context(|| format!("{}: cannot be read", path.display()))?;
    let lines: Vec<String> = BufReader::new(file)
        .lines()
        .collect::<Result<_, _>>()
        .with_context(|| format!("{}: is no log", path.display()))?;
    let count = lines.len();
    let mut read = Vec::with_capacity(count);
    for (index, line) in lines.iter().enumerate() {
        match serde_json::from_str(line) {
            Ok(line) => read.push(line),
            Err(_) if index + 1 == count => {}
            Err(error) => anyhow::bail!("{}: line {}: {error}", path.display(), index + 1),
        }
    }
    Ok(read)
}

impl Callback for MetricsLog {
    fn step_done(&mut self, report: &StepReport<'_>) -> anyhow::Result<()> {
        self.since = (self.since.0 + 1, self.since.1 + report.seconds);
        if !report.step.is_multiple_of(self.every) {
            return Ok(());
        }
        let mut layers = serde_json::Map::new();
        if report.step.is_multiple_of(self.every * LINES_PER_LAYERS) {
            let norms = report.phases.iter().flat_map(|(_, parameters)| parameters.gradient_norms());
            layers.extend(norms.map(|(name, norm)| (name.to_owned(), norm.into())));
        }
        let line = Line {
            step: report.step,
            loss: Some(report.mean_loss),
            terms: report.terms.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect(),
            rate: Some(report.rate),
            gradient: Some(report.gradient).filter(|gradient| gradient.is_finite()),
            seconds: Some(self.since.1 / self.since.0 as f64),
            layers,
            ..Line::default()
        };
        self.since = (0, 0.0);
        self.write(&line)
    }

    fn validated(&mut self, report: &ValidationReport<'_>) -> anyhow::Result<StopReason> {
        let line = Line {
            step: report.step,
            rate: Some(report.rate),
            validation: Some(report.validation.loss),
            measure: report.validation.measure.to_owned(),
            best: Some(report.is_best),
            ..Line::default()
        };
        self.write(&line)?;
        Ok(None)
    }
}
