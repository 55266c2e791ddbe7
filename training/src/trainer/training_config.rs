//! The table `[training]` of a configuration, and what reads a configuration.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, ensure};
use ondes_engine::files;
use ondes_engine::files::shortened;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::optimizer::OptimizerConfig;
use crate::schedule::ScheduleConfig;
use crate::trainer::{
    AlertsConfig, Clip, Length, Precision, ProfileOptions, RunFiles, TrainerOptions,
};

/// Largest recipe, bytes; far above any real one.
pub(crate) const MAX_BYTES: u64 = 1 << 20;

/// Length and pace of training.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainingConfig {
    /// Optimiser steps.
    pub steps: u64,
    /// Trains for about this time instead of a number of steps.
    pub minutes: Option<f64>,
    /// Crops per step; `"auto"` finds the largest number that fits into memory.
    #[serde(deserialize_with = "batch_rows")]
    pub batch: usize,
    /// Bound on the memory of the process, such as "8G"; by default most of what is free for
    /// tensors of the CPU.
    #[serde(
        deserialize_with = "memory_bytes",
        skip_serializing_if = "Option::is_none"
    )]
    pub memory: Option<u64>,
    /// Computes the network's values again in the backward pass, to need less memory.
    pub checkpoint_activations: bool,
    /// Checkpoints with the lowest validation losses that are kept beside the last one.
    pub keep_best: usize,
    /// Length of a crop, seconds.
    pub clip_seconds: f64,
    /// Highest learning rate.
    pub learning_rate: f64,
    /// Steps from zero to the highest learning rate; the schedule follows.
    pub warmup_steps: u64,
    /// Weight decay of matrices.
    pub weight_decay: f64,
    /// Largest Euclidean norm of the gradient over all weights; longer gradients are clipped. 0 for
    /// no limit.
    pub gradient_norm: f64,
    /// Largest magnitude of an element of the gradient. 0 for no limit.
    pub gradient_value: f64,
    /// Parts that a batch is computed in, one after the other, to need less memory.
    pub accumulate: usize,
    /// Decay rate of the mean of the weights that is validated and kept, such as 0.999; 0 for the
    /// weights themselves.
    pub ema: f64,
    /// Precision of the forward pass: `f32`, `bf16` or `f16`.
    pub precision: Precision,
    /// Share of the files used for validation.
    pub validation_share: f64,
    /// Steps between validations.
    pub validate_every: u64,
    /// Steps between checkpoints.
    pub checkpoint_every: u64,
    /// Steps between lines of the log.
    pub log_every: u64,
    /// Validations without progress after which training stops.
    pub patience: Option<u64>,
    /// Validation loss at which training stops.
    pub stop_at: Option<f64>,
    /// Writes TensorBoard event files to the work folder.
    pub tensorboard: bool,
    /// Threads of libtorch; 0 for one per core.
    pub threads: i32,
    /// `cpu`, `cuda`, `cuda:N`, or `auto`.
    pub device: String,
    /// Measures where the time of a step goes; set on the command line.
    #[serde(skip)]
    pub profile: Option<ProfileOptions>,
    /// Address that metrics are served at; set on the command line.
    #[serde(skip)]
    pub endpoint: Option<SocketAddr>,
}

impl Default for TrainingConfig {
    fn default() -> Self {
        Self {
            steps: 6_000,
            minutes: None,
            batch: 8,
            memory: None,
            checkpoint_activations: false,
            keep_best: 0,
            clip_seconds: 1.0,
            learning_rate: 2e-3,
            warmup_steps: 200,
            weight_decay: 1e-4,
            gradient_norm: 3.0,
            gradient_value: 0.0,
            accumulate: 1,
            ema: 0.0,
            precision: Precision::default(),
            validation_share: 0.1,
            validate_every: 250,
            checkpoint_every: 250,
            log_every: 10,
            patience: None,
            stop_at: None,
            tensorboard: false,
            threads: 0,
            device: "auto".into(),
            profile: None,
            endpoint: None,
        }
    }
}

/// Returns the configuration of a run without a recipe file: paths, and settings as in `recipe`. The result has the name of its file, beside which analysed audio and
/// checkpoints are.
///
/// # Errors
/// Returns an error if a path is not UTF-8.
pub(crate) fn without_recipe<T: DeserializeOwned>(
    recipe: &str,
    model: &[(&str, &Path)],
    data: &Path,
    out: &Path,
) -> anyhow::Result<T> {
    let mut table: toml::Table = recipe.parse()?;
    let name = Path::new(out.file_stem().unwrap_or_default());
    let work = out.with_extension("work");
    let paths = [
        ("data", data),
        ("out", out),
        ("work", &work),
        ("name", name),
    ];
    for (key, path) in paths.iter().chain(model) {
        let text = path
            .to_str()
            .with_context(|| format!("{}: its name is not UTF-8", path.display()))?;
        table.insert((*key).to_owned(), text.into());
    }
    Ok(table.try_into()?)
}

impl TrainingConfig {
    /// Checks the ranges that the trainer does not check itself.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        ensure!(self.steps > 0, "training.steps must be above 0");
        ensure!(
            self.batch == AUTO_BATCH || (1..=4096).contains(&self.batch),
            "training.batch must be 1 to 4096, or \"auto\""
        );
        ensure!(
            (0.1..=60.0).contains(&self.clip_seconds),
            "training.clip_seconds must be 0.1 to 60"
        );
        ensure!(
            (0..=1024).contains(&self.threads),
            "training.threads must be 0 to 1024"
        );
        ensure!(
            (0.0..=0.9).contains(&self.validation_share),
            "training.validation_share must be 0 to 0.9"
        );
        ensure!(
            self.minutes
                .is_none_or(|minutes| minutes > 0.0 && minutes.is_finite()),
            "training.minutes must be above 0"
        );
        Ok(())
    }

    /// Returns the settings of the trainer for a work folder.
    #[must_use]
    pub fn trainer_options(
        &self,
        work: &Path,
        optimizer: &OptimizerConfig,
        schedule: &ScheduleConfig,
        alerts: &AlertsConfig,
    ) -> TrainerOptions {
        let files = RunFiles {
            checkpoint: work.join("checkpoint.safetensors"),
            metrics: work.join("metrics.jsonl"),
            tensorboard: self.tensorboard.then(|| work.join("tensorboard")),
        };
        let length = self
            .minutes
            .map_or(Length::Steps(self.steps), Length::Minutes);
        TrainerOptions {
            warmup_steps: self.warmup_steps,
            weight_decay: self.weight_decay,
            clip: Clip {
                norm: self.gradient_norm,
                value: self.gradient_value,
            },
            accumulate: self.accumulate,
            auto_batch: self.batch == AUTO_BATCH,
            memory: self.memory,
            checkpoint_activations: self.checkpoint_activations,
            keep_best: self.keep_best,
            ema: self.ema,
            precision: self.precision,
            optimizer: optimizer.clone(),
            schedule: schedule.clone(),
            validate_every: Some(self.validate_every),
            checkpoint_every: Some(self.checkpoint_every),
            log_every: self.log_every,
            patience: self.patience,
            stop_at: self.stop_at,
            threads: self.threads,
            device: self.device.clone(),
            profile: self.profile.clone(),
            alerts: alerts.clone(),
            endpoint: self.endpoint,
            ..TrainerOptions::new(length, self.learning_rate, files)
        }
    }
}

/// Number of crops or windows that stands for the largest that fits into memory.
pub const AUTO_BATCH: usize = usize::MAX;

/// Number of rows, or `"auto"`.
#[derive(Deserialize)]
#[serde(untagged)]
enum BatchRows {
    Rows(usize),
    Named(String),
}

/// Reads a number of rows, or `"auto"`.
pub(crate) fn batch_rows<'de, D: serde::Deserializer<'de>>(source: D) -> Result<usize, D::Error> {
    let expected = || serde::de::Error::custom("batch must be a number from 1, or \"auto\"");
    match BatchRows::deserialize(source).map_err(|_| expected())? {
        BatchRows::Rows(rows) => Ok(rows),
        BatchRows::Named(name) => {
            if name == "auto" {
                Ok(AUTO_BATCH)
            } else {
                Err(expected())
            }
        }
    }
}

/// Size in bytes, or as a text such as "8G".
#[derive(Deserialize)]
#[serde(untagged)]
enum Bytes {
    Number(u64),
    Text(String),
}

/// Reads a size in bytes such as "8G".
pub(crate) fn bytes<'de, D: serde::Deserializer<'de>>(source: D) -> Result<u64, D::Error> {
    let expected =
        || serde::de::Error::custom("a size must be a number of bytes, or a text such as \"8G\"");
    match Bytes::deserialize(source).map_err(|_| expected())? {
        Bytes::Number(bytes) => Ok(bytes),
        Bytes::Text(text) => parse_bytes(&text).map_err(serde::de::Error::custom),
    }
}

/// Reads a size in bytes that may be absent.
fn memory_bytes<'de, D: serde::Deserializer<'de>>(source: D) -> Result<Option<u64>, D::Error> {
    bytes(source).map(Some)
}

/// Parses a size such as "8G", "500M" or a number of bytes.
///
/// # Errors
/// Returns what is allowed.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let factor = match text[digits.len()..].trim_end_matches(['B', 'b', 'i']) {
        "" => Some(1.0),
        "k" | "K" => Some(1e3),
        "m" | "M" => Some(1e6),
        "g" | "G" => Some(1e9),
        _ => None,
    };
    let number = digits
        .trim()
        .parse::<f64>()
        .ok()
        .filter(|number| *number > 0.0 && number.is_finite());
    match (number, factor) {
        (Some(number), Some(factor)) => Ok((number * factor) as u64),
        _ => Err(format!(
            "memory {text:?} must be a size such as \"8G\" or \"500M\""
        )),
    }
}

/// Reads a TOML file.
///
/// # Errors
/// Returns an error with the line if the file is missing, is not TOML, or has an unknown key.
pub fn read_toml<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let name = path.display();
    let text = files::read_to_string(path, MAX_BYTES)
        .with_context(|| format!("{name}: cannot be read"))?;
    toml::from_str(&text).map_err(|error| {
        let line = error
            .span()
            .map_or(1, |span| text[..span.start].lines().count().max(1));
        anyhow::anyhow!("{name}: line {line}: {}", shortened(error.message()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(parse_bytes("8G"), Ok(8_000_000_000));
        assert_eq!(parse_bytes("1.5 MB"), Ok(1_500_000));
        assert_eq!(parse_bytes("4096"), Ok(4_096));
        for wrong in ["", "G", "-1G", "8T", "nanG"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
