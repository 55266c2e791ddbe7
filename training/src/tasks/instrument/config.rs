//! Configuration of `ondes-train fit`: one TOML file per instrument.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, ensure};
use ondes_engine::instrument::Performance;
use serde::{Deserialize, Serialize};

use super::controls::controls;
use crate::check;
use crate::data::playing::{Playing, USUAL_WIDTH};
use crate::data::report::DataReport;
use crate::data::{
    Augmentation, DataConfig, Dataset, FeatureRate, LoaderConfig, RecordedKnob, RecordingsConfig,
};
use crate::loss::LossWeights;
use crate::optimizer::OptimizerConfig;
use crate::schedule::ScheduleConfig;
use crate::trainer::memory::data_shares;
use crate::trainer::recipe::{Recipe, RecipeTables};
use crate::trainer::recipe_file::read_toml;
use crate::trainer::training_config::TrainingConfig;
use crate::trainer::{AlertsConfig, TrainerOptions};

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
    /// Folder for checkpoints, and for analysed audio without `cache`.
    pub work: PathBuf,
    /// Folder for analysed audio, which several recipes may share; by default in the work folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<PathBuf>,
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
    /// Thresholds of warnings.
    #[serde(default)]
    pub alerts: AlertsConfig,
    /// Terms of the loss; by default the multi-scale spectral distance.
    #[serde(default)]
    pub loss: Option<LossWeights>,
    /// The model may hold the first 120 ms of recorded notes, where they sound better than its own.
    #[serde(default = "yes")]
    pub attacks: bool,
    /// Mapping of notes to pitch and loudness. What is absent is measured, where the recordings are
    /// single notes.
    #[serde(default)]
    pub performance: StatedPerformance,
}

fn yes() -> bool {
    true
}

/// Settings of [`Performance`] by name.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StatedPerformance(toml::Table);

impl StatedPerformance {
    /// States all settings.
    ///
    /// # Errors
    /// Returns an error if they are no TOML.
    pub fn all(performance: &Performance) -> anyhow::Result<Self> {
        Ok(Self(toml::Table::try_from(performance)?))
    }

    /// Returns whether nothing is left to measure.
    fn is_complete(&self) -> bool {
        Self::all(&Performance::default())
            .is_ok_and(|all| all.0.keys().all(|name| self.0.contains_key(name)))
    }

    /// Returns all settings: those that are stated, and others for the rest.
    ///
    /// # Errors
    /// Returns an error if a setting is unknown or out of range.
    pub fn over(&self, others: &Performance) -> anyhow::Result<Performance> {
        let mut table = toml::Table::try_from(others)?;
        table.extend(self.0.clone());
        // Its errors have several lines.
        let all: Performance = table
            .try_into()
            .map_err(|error| anyhow!("{}", error.to_string().trim().replace('\n', " ")))?;
        all.validate()?;
        Ok(all)
    }
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
    /// Finest detail along the pitch that is learnt easily, radians per two octaves. 40 suits
    /// phrases, which have all pitches; less than 10 suits single notes. If absent, 40, or 8 where
    /// the recordings are single notes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pitch_detail: Option<f64>,
    /// Units of each layer that reads pitch or loudness.
    pub input_units: usize,
    /// Units of the recurrent layer.
    pub recurrent_units: usize,
    /// Units of the layer after it.
    pub output_units: usize,
    /// Length of the room's impulse response, seconds. If absent, 0.3, or 0.2 where the recordings
    /// are single notes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room_seconds: Option<f64>,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            sample_rate: 48_000,
            hop: 192,
            harmonics: 80,
            noise_bands: 65,
            pitch_detail: None,
            input_units: 64,
            recurrent_units: 144,
            output_units: 128,
            room_seconds: None,
        }
    }
}

impl NetworkConfig {
    /// Returns the finest detail along the pitch, radians per two octaves.
    #[must_use]
    pub fn pitch_detail(&self) -> f64 {
        self.pitch_detail.unwrap_or(40.0)
    }

    /// Returns the length of the room's impulse response, seconds.
    #[must_use]
    pub fn room_seconds(&self) -> f64 {
        self.room_seconds.unwrap_or(0.3)
    }
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
            cache: None,
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
            attacks: true,
            performance: StatedPerformance::default(),
        }
    }

    /// Reads a configuration and resolves its paths.
    ///
    /// # Errors
    /// Returns an error with the line if the file is missing, is not TOML, has an unknown key, or a
    /// value is out of range.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let mut config: Self = read_toml(path)?;
        config.check().with_context(|| path.display().to_string())?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for path in [&mut config.data, &mut config.out, &mut config.work]
            .into_iter()
            .chain(&mut config.held_out)
            .chain(&mut config.cache)
        {
            *path = folder.join(&path);
        }
        Ok(config)
    }

    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let network = &self.network;
        check::in_range("network.sample_rate", network.sample_rate, 8_000..=192_000)?;
        check::in_range("network.hop", network.hop, 16..=4096)?;
        check::in_range("network.harmonics", network.harmonics, 1..=512)?;
        check::in_range("network.noise_bands", network.noise_bands, 2..=1025)?;
        let units = [
            network.input_units,
            network.recurrent_units,
            network.output_units,
        ];
        ensure!(
            units.iter().all(|units| (1..=4096).contains(units)),
            "units must be 1 to 4096"
        );
        check::in_range("network.room_seconds", network.room_seconds(), 0.001..=10.0)?;
        check::in_range("network.pitch_detail", network.pitch_detail(), 1.0..=200.0)?;
        for (name, knob) in &self.knob {
            let taken = controls(&Performance::default())
                .into_iter()
                .any(|control| control.name == *name);
            ensure!(
                !taken && name != "pitch" && name != "loudness",
                "knob.{name}: every instrument has one of that name"
            );
            knob.control(name)?;
        }
        self.recordings.check()?;
        self.loader.check()?;
        self.training.check()?;
        self.augmentation.check()?;
        self.augmentation.check_timbre()?;
        self.performance()?;
        self.loss().check()?;
        self.trainer_options().check()
    }

    /// Returns how notes are played, with usual settings for those that are absent.
    ///
    /// # Errors
    /// Returns an error if a setting is unknown or out of range.
    pub fn performance(&self) -> anyhow::Result<Performance> {
        let usual = Performance {
            width: USUAL_WIDTH,
            ..Performance::default()
        };
        let all = self.performance.over(&usual);
        all.context("performance")
    }

    /// Fills absent settings depending on the recordings. Single notes have few pitches:
    /// augmentation makes those between, and neighbours share a timbre. If there is one dynamic,
    /// augmentation attenuates it for softer notes.
    ///
    /// # Errors
    /// Returns an error if the recordings cannot be read.
    pub(crate) fn fill(&mut self) -> anyhow::Result<()> {
        let Self {
            network,
            recordings,
            augmentation,
            performance,
            ..
        } = &*self;
        let numbers = [
            network.pitch_detail,
            network.room_seconds,
            augmentation.pitch,
            augmentation.gain,
        ];
        let is_filled = numbers.iter().all(Option::is_some) && recordings.match_levels.is_some();
        if is_filled && performance.is_complete() {
            return Ok(());
        }
        let all = Dataset::recordings_of(&self.data())?;
        let report = DataReport::new(&all)?;
        if report.are_single_notes
            && let Some(playing) = Playing::measure(&all, report.has_one_dynamic())?
        {
            let performance = self.performance.over(&playing.performance())?;
            self.performance = StatedPerformance::all(&performance)?;
        }
        let Self {
            network,
            recordings,
            augmentation,
            ..
        } = self;
        let (pitch, detail, room_seconds) = if report.are_single_notes {
            (1.0, 8.0, 0.2)
        } else {
            (
                augmentation.pitch(),
                network.pitch_detail(),
                network.room_seconds(),
            )
        };
        augmentation.pitch.get_or_insert(pitch);
        network.pitch_detail.get_or_insert(detail);
        network.room_seconds.get_or_insert(room_seconds);
        let has_one_dynamic = report.has_one_dynamic();
        augmentation
            .gain
            .get_or_insert(if has_one_dynamic { 24.0 } else { 0.0 });
        recordings.match_levels.get_or_insert(has_one_dynamic);
        Ok(())
    }

    /// Returns the settings that depend on the recordings, in a line.
    #[must_use]
    pub fn settings(&self) -> String {
        let Self {
            network,
            recordings,
            augmentation,
            ..
        } = self;
        let performance = self.performance().unwrap_or_default();
        format!(
            "settings: augmentation.pitch = {:.1}, augmentation.gain = {:.1}, recordings.match_levels = {}, \
             network.pitch_detail = {:.1}, network.room_seconds = {}\nperformance: {:.0} to {:.0} dB, attack {:.0} ms, \
             release {:.0} ms, vibrato {:.0} cents, treble by {:.1} dB a dB",
            augmentation.pitch(),
            augmentation.gain(),
            recordings.match_levels(),
            network.pitch_detail(),
            network.room_seconds(),
            performance.loudness_min_db,
            performance.loudness_max_db,
            performance.attack_ms,
            performance.release_ms,
            performance.vibrato_cents,
            performance.dynamic_tilt,
        )
    }

    /// Returns the terms of the loss.
    #[must_use]
    pub fn loss(&self) -> LossWeights {
        self.loss.unwrap_or(LossWeights {
            spectral: 1.0,
            ..LossWeights::default()
        })
    }

    /// Returns the settings of the dataset.
    #[must_use]
    pub fn data(&self) -> DataConfig<'_> {
        let rate = FeatureRate {
            sample_rate: self.network.sample_rate,
            hop: self.network.hop,
        };
        DataConfig {
            folder: &self.data,
            held_out: self.held_out.as_deref(),
            cache: self
                .cache
                .clone()
                .unwrap_or_else(|| self.work.join("features")),
            rate,
            recordings: self.recordings,
            knobs: &self.knob,
            augmentation: self.augmentation,
            memory: self.loader.cache.min(data_shares(self.training.memory)[0]),
            validation_share: self.training.validation_share,
            frames: rate.frames(self.training.clip_seconds),
            seed: self.seed,
        }
    }
}

impl Recipe for Config {
    fn tables(&mut self) -> RecipeTables<'_> {
        RecipeTables {
            training: &mut self.training,
            optimizer: &mut self.optimizer,
            schedule: &mut self.schedule,
            alerts: &mut self.alerts,
        }
    }

    fn out(&self) -> &Path {
        &self.out
    }

    fn trainer_options(&self) -> TrainerOptions {
        TrainerOptions::from_recipe(
            &self.work,
            &self.training,
            &self.optimizer,
            &self.schedule,
            &self.alerts,
        )
    }
}

#[cfg(test)]
mod tests {
    use toml::{Table, Value};

    use super::*;
    use crate::tasks::capture::config::CaptureConfig;
    use crate::tasks::codec::CodecConfig;

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
        config.network.pitch_detail = Some(8.0);
        config.network.room_seconds = Some(0.2);
        config.recordings.match_levels = Some(true);
        (config.augmentation.pitch, config.augmentation.gain) = (Some(1.0), Some(24.0));
        config.loss = Some(LossWeights {
            spectral: 1.0,
            ..LossWeights::default()
        });
        let mut table = Table::try_from(&config).expect("TOML");
        table["training"]
            .as_table_mut()
            .expect("a table")
            .insert("memory".into(), Value::from("8G"));
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

    /// A codec with all fields.
    fn codec() -> Table {
        let text =
            "name = \"A\"\ndata = \"a\"\nheld_out = \"b\"\nfrom = \"c\"\nout = \"d\"\nwork = \"e\"";
        let config: CodecConfig = toml::from_str(text).expect("a configuration");
        Table::try_from(&config).expect("TOML")
    }

    /// Puts another value in a field's place.
    type Put<'a> = &'a dyn Fn(Value) -> Table;

    /// Calls `change` with each value of a table and its name, and puts the returned one in its
    /// place.
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
                            with(Value::Array(
                                [&[Value::Table(put(new))], &items[1..]].concat(),
                            ))
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
            std::fs::write(&path, toml::to_string(table).expect("TOML"))
                .expect("it can be written");
            read(&path).err().map(|error| format!("{error:#}"))
        };
        assert_eq!(write(base), None, "{base}");
        let mut fields = 0;
        for_each_field(base, "", &mut |field, value, put| {
            // No field is a list of lists; numbers are finite.
            let list = Value::Array(vec![Value::Array(Vec::new())]);
            let not_finite = value.is_float().then_some(Value::from(f64::NAN));
            for wrong in [Some(list), not_finite].into_iter().flatten() {
                let error = write(&put(wrong.clone()))
                    .unwrap_or_else(|| panic!("{field} = {wrong} is accepted"));
                assert!(
                    error.contains("wrong.toml") && error.lines().count() == 1,
                    "{field} = {wrong}: {error}"
                );
                let name = field.rsplit('.').next().expect("a name");
                assert!(
                    error.contains("line ") || error.contains(name),
                    "{field} = {wrong}: {error}"
                );
            }
            fields += 1;
        });
        fields
    }

    #[test]
    fn each_field_wrong_once_gives_one_line() {
        assert!(check_all(&instrument(), Config::read) > 50);
        assert!(check_all(&capture(), CaptureConfig::read) > 40);
        assert!(check_all(&codec(), CodecConfig::read) > 50);
        for (key, names) in [
            ("optimizer", OptimizerConfig::NAMES.to_vec()),
            ("schedule", ScheduleConfig::NAMES.to_vec()),
        ] {
            for name in names {
                let mut table = instrument();
                let value = match key {
                    "optimizer" => {
                        Value::try_from(OptimizerConfig::named(name).expect("an optimizer"))
                    }
                    _ => Value::try_from(ScheduleConfig::named(name).expect("a schedule")),
                };
                table.insert(key.into(), value.expect("TOML"));
                check_all(&table, Config::read);
            }
        }
    }
}
