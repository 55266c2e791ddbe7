//! Configuration of `ondes-train fit`: one TOML file per instrument.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use ondes_engine::files;
use ondes_engine::files::shortened;
use ondes_engine::instrument::Performance;
use serde::{Deserialize, Serialize};

use crate::data::{Augmentation, RecordedKnob};
use crate::loss::LossWeights;
use crate::network;
use crate::optimizer::OptimizerConfig;
use crate::schedule::ScheduleConfig;
use crate::trainer::{AlertsConfig, Clip, Length, Precision, ProfileOptions, RunFiles, TrainerOptions};

/// Largest recipe, bytes; far above any real one.
pub(crate) const MAX_BYTES: u64 = 1 << 20;

/// Configuration of a training run. Paths are relative to the file's folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Name of the instrument.
    pub name: String,
    /// Description for the card, one or two sentences.
    #[serde(default)]
    pub description: String,
    /// Author, for the card.
    #[serde(default)]
    pub author: String,
    /// Licence for the card, an SPDX expression.
    #[serde(default)]
    pub licence: String,
    /// Folder of training audio.
    pub data: PathBuf,
    /// Folder of audio to measure quality on; without one, the validation files are used.
    #[serde(default)]
    pub held_out: Option<PathBuf>,
    /// Model file to write.
    pub out: PathBuf,
    /// Folder for analysed audio and checkpoints.
    pub work: PathBuf,
    /// Seed of initial weights, crops and noise.
    #[serde(default)]
    pub seed: u64,
    /// Sizes of the network.
    #[serde(default)]
    pub network: NetworkConfig,
    /// Selection and filtering of the recordings.
    #[serde(default)]
    pub recordings: RecordingsConfig,
    /// Knobs of the instrument, by name.
    #[serde(default)]
    pub knob: BTreeMap<String, RecordedKnob>,
    /// Augmentation of the training crops.
    #[serde(default)]
    pub augmentation: Augmentation,
    /// Reading of the recordings.
    #[serde(default)]
    pub loader: LoaderConfig,
    /// Length and pace of training.
    #[serde(default)]
    pub training: TrainingConfig,
    /// Optimiser.
    #[serde(default)]
    pub optimizer: OptimizerConfig,
    /// Schedule of the learning rate.
    #[serde(default)]
    pub schedule: ScheduleConfig,
    /// Thresholds of warnings about speed.
    #[serde(default)]
    pub alerts: AlertsConfig,
    /// Terms of the loss; by default the multi-scale spectral distance.
    #[serde(default)]
    pub loss: Option<LossWeights>,
    /// Mapping of notes to pitch and loudness.
    #[serde(default)]
    pub performance: Performance,
}

/// Sizes of an instrument's network.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkConfig {
    /// Sample rate, Hz.
    pub sample_rate: u32,
    /// Samples per control frame.
    pub hop: usize,
    /// Harmonics of the oscillator.
    pub harmonics: usize,
    /// Bands of the noise filter.
    pub noise_bands: usize,
    /// Finest detail along the pitch that is learnt easily, radians per two octaves. 40 suits recordings of all pitches,
    /// less than 10 those of every third.
    pub pitch_detail: f64,
    /// Units of each layer that reads pitch or loudness.
    pub input_units: usize,
    /// Units of the recurrent layer.
    pub recurrent_units: usize,
    /// Units of the layer after it.
    pub output_units: usize,
    /// Length of the room's impulse response, seconds.
    pub room_seconds: f64,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            sample_rate: 48_000,
            hop: 192,
            harmonics: 80,
            noise_bands: 65,
            pitch_detail: 40.0,
            input_units: 64,
            recurrent_units: 144,
            output_units: 128,
            room_seconds: 0.3,
        }
    }
}

/// Selection and filtering of the recordings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecordingsConfig {
    /// Frequency below which the sound is attenuated, by 12 dB per octave, Hz; 0 for none. A dataset has its own.
    pub high_pass: u16,
    /// Plays all recordings equally loud: for sessions of different levels, and for recordings of one dynamic.
    pub match_levels: bool,
    /// Interval, in recorded pitches, of those that are not learnt but measured at the end; 0 for none.
    pub held_out_pitch: usize,
}

/// Reading of recordings while training.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoaderConfig {
    /// Threads; 0 to start with one and add more while the trainer waits for data.
    pub workers: usize,
    /// Memory for decoded recordings, bytes, such as "512M".
    #[serde(deserialize_with = "bytes")]
    pub cache: u64,
}

impl Default for LoaderConfig {
    fn default() -> Self {
        Self { workers: 0, cache: 512_000_000 }
    }
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
    #[serde(deserialize_with = "batch_rows")]
    pub batch: usize,
    /// Bound on the memory of the process on the CPU, such as "8G"; by default most of what is free.
    #[serde(deserialize_with = "memory_bytes", skip_serializing_if = "Option::is_none")]
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
    /// Largest Euclidean norm of the gradient over all weights; longer gradients are clipped. 0 for no limit.
    pub gradient_norm: f64,
    /// Largest magnitude of an element of the gradient. 0 for no limit.
    pub gradient_value: f64,
    /// Parts that a batch is computed in, one after the other, to need less memory.
    pub accumulate: usize,
    /// Decay rate of the mean of the weights that is validated and kept, such as 0.999; 0 for the weights themselves.
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
fn bytes<'de, D: serde::Deserializer<'de>>(source: D) -> Result<u64, D::Error> {
    let expected = || serde::de::Error::custom("a size must be a number of bytes, or a text such as \"8G\"");
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
    let number = digits.trim().parse::<f64>().ok().filter(|number| *number > 0.0 && number.is_finite());
    match (number, factor) {
        (Some(number), Some(factor)) => Ok((number * factor) as u64),
        _ => Err(format!("memory {text:?} must be a size such as \"8G\" or \"500M\"")),
    }
}

/// Reads a TOML file.
///
/// # Errors
/// Returns an error with the line if the file is missing, is not TOML, or has an unknown key.
pub fn read_toml<T: serde::de::DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let name = path.display();
    let text = files::read_to_string(path, MAX_BYTES).with_context(|| format!("{name}: cannot be read"))?;
    toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
        anyhow::anyhow!("{name}: line {line}: {}", shortened(error.message()))
    })
}

impl Config {
    /// Returns the defaults for a folder of recordings, a model file to write and a work folder.
    #[must_use]
    pub fn new(data: PathBuf, out: PathBuf, work: PathBuf) -> Self {
        Self {
            name: String::new(),
            description: String::new(),
            author: String::new(),
            licence: String::new(),
            data,
            held_out: None,
            out,
            work,
            seed: 0,
            network: NetworkConfig::default(),
            recordings: RecordingsConfig::default(),
            knob: BTreeMap::new(),
            augmentation: Augmentation::default(),
            loader: LoaderConfig::default(),
            training: TrainingConfig::default(),
            optimizer: OptimizerConfig::default(),
            schedule: ScheduleConfig::default(),
            alerts: AlertsConfig::default(),
            loss: None,
            performance: Performance::default(),
        }
    }

    /// Reads a configuration and resolves its paths.
    ///
    /// # Errors
    /// Returns an error with the line if the file is missing, is not TOML, has an unknown key, or a value is out of
    /// range.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let mut config: Self = read_toml(path)?;
        config.check().with_context(|| path.display().to_string())?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for path in [&mut config.data, &mut config.out, &mut config.work].into_iter().chain(&mut config.held_out) {
            *path = folder.join(&path);
        }
        Ok(config)
    }

    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let (network, training) = (&self.network, &self.training);
        ensure!((8_000..=192_000).contains(&network.sample_rate), "network.sample_rate must be 8000 to 192000");
        ensure!((16..=4096).contains(&network.hop), "network.hop must be 16 to 4096");
        ensure!((1..=512).contains(&network.harmonics), "network.harmonics must be 1 to 512");
        ensure!((2..=1025).contains(&network.noise_bands), "network.noise_bands must be 2 to 1025");
        let units = [network.input_units, network.recurrent_units, network.output_units];
        ensure!(units.iter().all(|units| (1..=4096).contains(units)), "units must be 1 to 4096");
        ensure!((0.001..=10.0).contains(&network.room_seconds), "network.room_seconds must be 0.001 to 10");
        ensure!(training.steps > 0, "training.steps must be above 0");
        ensure!(
            training.batch == AUTO_BATCH || (1..=4096).contains(&training.batch),
            "training.batch must be 1 to 4096, or \"auto\""
        );
        ensure!((0.1..=60.0).contains(&training.clip_seconds), "training.clip_seconds must be 0.1 to 60");
        ensure!((0..=1024).contains(&training.threads), "training.threads must be 0 to 1024");
        ensure!((0.0..=0.9).contains(&training.validation_share), "training.validation_share must be 0 to 0.9");
        ensure!(
            training.minutes.is_none_or(|minutes| minutes > 0.0 && minutes.is_finite()),
            "training.minutes must be above 0"
        );
        ensure!((0..=256).contains(&self.loader.workers), "loader.workers must be 0 to 256");
        ensure!(self.recordings.high_pass <= 500, "recordings.high_pass must be 0 to 500 Hz");
        ensure!(self.recordings.held_out_pitch != 1, "recordings.held_out_pitch must be 0, or 2 and more");
        ensure!((1.0..=200.0).contains(&network.pitch_detail), "network.pitch_detail must be 1 to 200");
        for (name, knob) in &self.knob {
            let taken = network::controls(&self.performance).into_iter().any(|control| control.name == *name);
            ensure!(
                !taken && name != "pitch" && name != "loudness",
                "knob.{name}: every instrument has one of that name"
            );
            knob.control(name)?;
        }
        self.augmentation.check()?;
        self.performance.validate().context("performance")?;
        self.loss().check()?;
        self.trainer_options().check()
    }

    /// Returns the terms of the loss.
    #[must_use]
    pub fn loss(&self) -> LossWeights {
        self.loss.unwrap_or(LossWeights { spectral: 1.0, ..LossWeights::default() })
    }

    /// Returns the settings of the trainer.
    #[must_use]
    pub fn trainer_options(&self) -> TrainerOptions {
        let training = &self.training;
        let files = RunFiles {
            checkpoint: self.work.join("checkpoint.safetensors"),
            metrics: self.work.join("metrics.jsonl"),
            tensorboard: training.tensorboard.then(|| self.work.join("tensorboard")),
        };
        let length = training.minutes.map_or(Length::Steps(training.steps), Length::Minutes);
        TrainerOptions {
            warmup_steps: training.warmup_steps,
            weight_decay: training.weight_decay,
            clip: Clip { norm: training.gradient_norm, value: training.gradient_value },
            accumulate: training.accumulate,
            auto_batch: training.batch == AUTO_BATCH,
            memory: training.memory,
            checkpoint_activations: training.checkpoint_activations,
            keep_best: training.keep_best,
            ema: training.ema,
            precision: training.precision,
            optimizer: self.optimizer.clone(),
            schedule: self.schedule.clone(),
            validate_every: Some(training.validate_every),
            checkpoint_every: Some(training.checkpoint_every),
            log_every: training.log_every,
            patience: training.patience,
            stop_at: training.stop_at,
            threads: training.threads,
            device: training.device.clone(),
            profile: training.profile.clone(),
            alerts: self.alerts,
            endpoint: training.endpoint,
            ..TrainerOptions::new(length, training.learning_rate, files)
        }
    }

    /// Returns the number of frames of a crop.
    #[must_use]
    pub fn clip_frames(&self) -> usize {
        (self.training.clip_seconds * f64::from(self.network.sample_rate) / self.network.hop as f64).ceil() as usize
    }
}

#[cfg(test)]
mod tests {
    use toml::{Table, Value};

    use super::*;
    use crate::capture::config::CaptureConfig;

    /// An instrument with all fields.
    fn instrument() -> Table {
        let text = r#"
            name = "A"
            data = "a"
            held_out = "b"
            out = "c"
            work = "d"
            [loss]
            [knob.vowel]
            positions = { oh = 0.0, ah = 1.0 }
            default = 1.0
        "#;
        let mut config: Config = toml::from_str(text).expect("a configuration");
        config.training.minutes = Some(1.0);
        config.training.patience = Some(1);
        config.training.stop_at = Some(1.0);
        config.loss = Some(LossWeights { spectral: 1.0, ..LossWeights::default() });
        let mut table = Table::try_from(&config).expect("TOML");
        table["training"].as_table_mut().expect("a table").insert("memory".into(), Value::from("8G"));
        table
    }

    /// A capture with all fields.
    fn capture() -> Table {
        let text = r#"
            size = "nano"
            from = "a"
            out = "b"
            nam = "c"
            [[pair]]
            dry = "d"
            wet = "e"
            flip = true
            knobs = { Gain = 0.0 }
            [[pair]]
            dry = "d"
            wet = "e"
            knobs = { Gain = 1.0 }
            [knob.Gain]
            min = 0.0
            max = 1.0
            default = 0.5
            unit = "dB"
            description = "f"
            [training]
            epochs = 1
            minutes = 1.0
            batch = 4
            window = 64
            memory = "8G"
            checkpoint_activations = true
            keep_best = 1
            learning_rate = 1e-3
            warmup_steps = 1
            weight_decay = 0.0
            gradient_norm = 1.0
            gradient_value = 1.0
            accumulate = 1
            ema = 0.0
            precision = "f32"
            validate_every = 1
            checkpoint_every = 1
            log_every = 1
            patience = 1
            stop_at = 1.0
            tensorboard = true
            threads = 1
            device = "cpu"
            [loss]
            esr = 1.0
            [card]
            input_dbu = 1.0
            output_dbu = 1.0
            [card.gear]
            make = "g"
        "#;
        let config: CaptureConfig = toml::from_str(text).expect("a configuration");
        Table::try_from(&config).expect("TOML")
    }

    /// Puts another value in a field's place.
    type Put<'a> = &'a dyn Fn(Value) -> Table;

    /// Calls `change` with each value of a table and its name, and puts the returned one in its place.
    fn for_each_field(table: &Table, path: &str, change: &mut dyn FnMut(&str, &Value, Put<'_>)) {
        for (name, value) in table {
            let path = format!("{path}{name}");
            let with = |new: Value| {
                let mut table = table.clone();
                table.insert(name.clone(), new);
                table
            };
            match value {
                Value::Table(inner) => {
                    for_each_field(inner, &format!("{path}."), &mut |path, value, put| {
                        change(path, value, &|new| with(Value::Table(put(new))));
                    });
                    // A field that there is not.
                    change(&format!("{path}.colour"), value, &|_| {
                        let mut inner = inner.clone();
                        inner.insert("colour".into(), Value::from("blue"));
                        with(Value::Table(inner))
                    });
                }
                Value::Array(items) if items.iter().all(Value::is_table) && !items.is_empty() => {
                    let first = items[0].as_table().expect("a table");
                    for_each_field(first, &format!("{path}."), &mut |path, value, put| {
                        change(path, value, &|new| {
                            with(Value::Array([&[Value::Table(put(new))], &items[1..]].concat()))
                        });
                    });
                }
                value => change(&path, value, &with),
            }
        }
    }

    fn check_all<T>(base: &Table, read: fn(&Path) -> anyhow::Result<T>) -> usize {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("wrong.toml");
        let write = |table: &Table| {
            std::fs::write(&path, toml::to_string(table).expect("TOML")).expect("it can be written");
            read(&path).err().map(|error| format!("{error:#}"))
        };
        assert_eq!(write(base), None, "{base}");
        let mut fields = 0;
        for_each_field(base, "", &mut |field, value, put| {
            // No field is a list of lists; numbers are finite.
            let list = Value::Array(vec![Value::Array(Vec::new())]);
            let not_finite = value.is_float().then_some(Value::from(f64::NAN));
            for wrong in [Some(list), not_finite].into_iter().flatten() {
                let error = write(&put(wrong.clone())).unwrap_or_else(|| panic!("{field} = {wrong} is accepted"));
                assert!(error.contains("wrong.toml") && error.lines().count() == 1, "{field} = {wrong}: {error}");
                let name = field.rsplit('.').next().expect("a name");
                assert!(error.contains("line ") || error.contains(name), "{field} = {wrong}: {error}");
            }
            fields += 1;
        });
        fields
    }

    #[test]
    fn each_field_wrong_once_gives_one_line() {
        assert!(check_all(&instrument(), Config::read) > 50);
        assert!(check_all(&capture(), CaptureConfig::read) > 40);
        for (key, names) in
            [("optimizer", OptimizerConfig::NAMES.to_vec()), ("schedule", ScheduleConfig::NAMES.to_vec())]
        {
            for name in names {
                let mut table = instrument();
                let value = match key {
                    "optimizer" => Value::try_from(OptimizerConfig::named(name).expect("an optimizer")),
                    _ => Value::try_from(ScheduleConfig::named(name).expect("a schedule")),
                };
                table.insert(key.into(), value.expect("TOML"));
                check_all(&table, Config::read);
            }
        }
    }

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
