//! Lines of the log of a run.

use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::Context;
use ondes_engine::files;
use serde::{Deserialize, Serialize};

use crate::data::LoaderStats;

/// A line of the log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogLine {
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
    /// Rows of batches per second, since the last line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_per_second: Option<f64>,
    /// Share of the time since the last line that was spent waiting for batches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_wait: Option<f64>,
    /// Memory and processors, now and then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<SystemUsage>,
    /// Counts and times of the threads that read the data, now and then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loader: Option<LoaderStats>,
    /// Warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alert: Option<String>,
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

/// Memory and processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SystemUsage {
    /// Resident memory, bytes; 0 where the system does not say.
    pub memory: u64,
    /// Largest resident memory so far, bytes.
    pub memory_peak: u64,
    /// Cores that the process kept busy since the last such line.
    pub cores: f64,
}

/// Reads a log. The last line may be incomplete and is then left out.
///
/// # Errors
/// Returns an error if the file cannot be read or another line is damaged.
pub fn read(path: &Path) -> anyhow::Result<Vec<LogLine>> {
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
