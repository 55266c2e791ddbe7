//! The table `[training]` of recipes, and the flags that override it.

use std::net::SocketAddr;

use anyhow::{Context, ensure};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::parameters::Clip;
use super::precision::Precision;
use super::profile::ProfileOptions;
use crate::byte_size::{parse_bytes, some_bytes};
use crate::check;
use crate::value_parser;

/// Length of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// Steps.
    Steps(u64),
    /// Passes through the data; steps where crops are drawn at random.
    Epochs(u64),
    /// As many steps as fit into these minutes, at the speed of the first.
    Minutes(f64),
}

/// Length and pace of training.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainingConfig {
    /// Optimiser steps.
    pub steps: u64,
    /// Trains for about this time instead of a number of steps.
    pub minutes: Option<f64>,
    /// Crops per step; `"auto"` finds the largest number that fits into memory.
    #[serde(deserialize_with = "batch_rows", serialize_with = "write_batch")]
    pub batch: usize,
    /// Bound on the memory of the process, such as "8G"; by default most of what is free for
    /// tensors of the CPU.
    #[serde(
        deserialize_with = "some_bytes",
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
    /// Steps between validations; of captures by default an epoch.
    pub validate_every: Option<u64>,
    /// Steps between checkpoints; of captures by default an epoch.
    pub checkpoint_every: Option<u64>,
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
            validate_every: Some(250),
            checkpoint_every: Some(250),
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

impl TrainingConfig {
    /// Checks the ranges that the trainer does not check itself.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        check::not_zero("training.steps", self.steps)?;
        check_batch(self.batch)?;
        check::in_range("training.clip_seconds", self.clip_seconds, 0.1..=60.0)?;
        check::in_range("training.threads", self.threads, 0..=1024)?;
        check::in_range(
            "training.validation_share",
            self.validation_share,
            0.0..=0.9,
        )?;
        if let Some(minutes) = self.minutes {
            check::positive("training.minutes", minutes)?;
        }
        Ok(())
    }

    /// Returns settings without warm-up, decay and limits of the gradient, with a validation and a
    /// checkpoint per epoch.
    #[must_use]
    pub fn plain(learning_rate: f64) -> Self {
        Self {
            learning_rate,
            warmup_steps: 0,
            weight_decay: 0.0,
            gradient_norm: 0.0,
            validate_every: None,
            checkpoint_every: None,
            ..Self::default()
        }
    }

    /// Replaces the settings that are overridden, but for those of captures alone.
    ///
    /// # Errors
    /// Returns an error if a number is too large for TOML.
    pub fn override_with(&mut self, overrides: &TrainingOverrides) -> anyhow::Result<()> {
        let overrides = TrainingOverrides {
            epochs: None,
            window: None,
            ..overrides.clone()
        };
        let mut table = toml::Table::try_from(&*self)?;
        table.extend(toml::Table::try_from(&overrides)?);
        *self = Self {
            profile: self.profile.take(),
            endpoint: self.endpoint,
            // Absent is another choice than the default, which a table without them gives.
            validate_every: overrides.validate_every.or(self.validate_every),
            checkpoint_every: overrides.checkpoint_every.or(self.checkpoint_every),
            ..table.try_into().context("training")?
        };
        Ok(())
    }

    /// Returns the length of a run: minutes if they are set, otherwise steps.
    #[must_use]
    pub fn length(&self) -> Length {
        self.minutes
            .map_or(Length::Steps(self.steps), Length::Minutes)
    }

    /// Returns the limits of the gradient.
    #[must_use]
    pub fn clip(&self) -> Clip {
        Clip {
            norm: self.gradient_norm,
            value: self.gradient_value,
        }
    }
}

/// Settings of `[training]` that may be absent: in recipes of captures, and on the command line.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainingOverrides {
    /// Passes through the recordings.
    #[arg(skip)]
    pub epochs: Option<u64>,
    /// Trains for about this time instead.
    #[arg(skip)]
    pub minutes: Option<f64>,
    /// Windows per step, or parallel streams of recurrent networks; `"auto"` finds the largest
    /// number that fits.
    #[arg(skip)]
    #[serde(
        deserialize_with = "some_batch_rows",
        serialize_with = "write_some_batch"
    )]
    pub batch: Option<usize>,
    /// Samples per window, or per chunk of the streams.
    #[arg(skip)]
    pub window: Option<usize>,
    /// Highest learning rate.
    #[arg(skip)]
    pub learning_rate: Option<f64>,
    /// Steps from zero to the highest learning rate.
    #[arg(skip)]
    pub warmup_steps: Option<u64>,
    /// Weight decay of matrices.
    #[arg(skip)]
    pub weight_decay: Option<f64>,
    /// Largest norm of the gradient.
    #[arg(skip)]
    pub gradient_norm: Option<f64>,
    /// Largest magnitude of an element of the gradient.
    #[arg(skip)]
    pub gradient_value: Option<f64>,
    /// Steps between validations.
    #[arg(skip)]
    pub validate_every: Option<u64>,
    /// Steps between checkpoints.
    #[arg(skip)]
    pub checkpoint_every: Option<u64>,
    /// Steps between lines of the log.
    #[arg(skip)]
    pub log_every: Option<u64>,
    /// Computes each batch in this many parts, one after the other, to need less memory.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=4096).map(usize::from))]
    pub accumulate: Option<usize>,
    /// Bound on the memory of the process, such as 8G: program, recordings in memory, and tensors
    /// of the CPU. Batches that need more are computed in parts. On macOS the program does not
    /// count; on Windows tensors are not bounded.
    #[arg(long, value_parser = parse_bytes)]
    #[serde(deserialize_with = "some_bytes")]
    pub memory: Option<u64>,
    /// Computes the network's values again in the backward pass: half the memory for a third more
    /// time.
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub checkpoint_activations: bool,
    /// Keeps the checkpoints of so many best validations beside the last one.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1000).map(usize::from))]
    pub keep_best: Option<usize>,
    /// Precision of the forward pass [default: f32].
    #[arg(long, value_parser = PossibleValuesParser::new(Precision::NAMES).try_map(|name| Precision::named(&name).ok_or("unknown")))]
    pub precision: Option<Precision>,
    /// Decay rate of the mean of the weights that is validated and kept, such as 0.999.
    #[arg(long, value_parser = value_parser::decay)]
    pub ema: Option<f64>,
    /// Stops after this many validations without progress.
    #[arg(long, value_name = "VALIDATIONS", value_parser = clap::value_parser!(u64).range(1..))]
    pub patience: Option<u64>,
    /// Stops at this validation loss.
    #[arg(long, value_name = "LOSS", value_parser = value_parser::positive)]
    pub stop_at: Option<f64>,
    /// Writes TensorBoard event files: scalars, histograms, spectrograms and sound.
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tensorboard: bool,
    /// Threads of libtorch; 0 for one with recurrent captures, otherwise one per core.
    #[arg(long, value_parser = clap::value_parser!(i32).range(0..=256))]
    pub threads: Option<i32>,
    /// Device: auto, cpu, cuda or cuda:N; auto selects CUDA if available.
    #[arg(long)]
    pub device: Option<String>,
}

/// Number of crops or windows that stands for the largest that fits into memory.
pub const AUTO_BATCH: usize = usize::MAX;

/// Parses a number of rows, 1 to 4096, or `auto`.
///
/// # Errors
/// Returns what is allowed.
pub fn parse_batch(text: &str) -> Result<usize, String> {
    let rows = text.parse().ok().filter(|rows| (1..=4096).contains(rows));
    rows.or((text == "auto").then_some(AUTO_BATCH))
        .ok_or_else(|| "must be 1 to 4096, or auto".to_owned())
}

/// Checks a number of rows.
pub(crate) fn check_batch(rows: usize) -> anyhow::Result<()> {
    ensure!(
        rows == AUTO_BATCH || (1..=4096).contains(&rows),
        "training.batch must be 1 to 4096, or \"auto\""
    );
    Ok(())
}

/// Number of rows, or `"auto"`.
#[derive(Deserialize)]
#[serde(untagged)]
enum BatchRows {
    Rows(usize),
    Named(String),
}

/// Reads a number of rows, or `"auto"`.
fn batch_rows<'de, D: Deserializer<'de>>(source: D) -> Result<usize, D::Error> {
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

/// Reads a number of rows, or `"auto"`, that may be absent.
fn some_batch_rows<'de, D: Deserializer<'de>>(source: D) -> Result<Option<usize>, D::Error> {
    batch_rows(source).map(Some)
}

/// Writes a number of rows, or `"auto"`.
fn write_batch<S: Serializer>(rows: &usize, sink: S) -> Result<S::Ok, S::Error> {
    match *rows {
        AUTO_BATCH => sink.serialize_str("auto"),
        rows => rows.serialize(sink),
    }
}

/// Writes a number of rows, or `"auto"`, if there is one.
fn write_some_batch<S: Serializer>(rows: &Option<usize>, sink: S) -> Result<S::Ok, S::Error> {
    match rows {
        Some(rows) => write_batch(rows, sink),
        None => sink.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_leave_what_they_do_not_name() {
        for every in [None, Some(7)] {
            let own = TrainingConfig {
                validate_every: every,
                checkpoint_every: every,
                minutes: Some(3.0),
                ..TrainingConfig::plain(0.5)
            };
            let mut config = own.clone();
            let none = TrainingOverrides::default();
            config.override_with(&none).expect("it has a form in TOML");
            assert_eq!(format!("{config:?}"), format!("{own:?}"));
            let overrides = TrainingOverrides {
                checkpoint_every: Some(9),
                ..none
            };
            config.override_with(&overrides).expect("as above");
            assert_eq!(
                (config.validate_every, config.checkpoint_every),
                (every, Some(9))
            );
        }
    }
}
