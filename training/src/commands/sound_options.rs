//! Options for training and test sound, and for further training of a model.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use ondes_engine::model::{Kind, Model};
use ondes_training::compare::HeldOut;
use ondes_training::compression::fine_tune::FineTuneJob;
use ondes_training::data::is_recipe;
use ondes_training::evaluate::feature_rate;
use ondes_training::optimizer::OptimizerConfig;
use ondes_training::schedule::ScheduleConfig;
use ondes_training::tasks::capture::network_source::NetworkSource;
use ondes_training::tasks::capture::pair::Pair;
use ondes_training::tasks::capture::task::CaptureOptions;
use ondes_training::tasks::codec::CodecConfig;
use ondes_training::tasks::codec::network::sizes;
use ondes_training::tasks::generator::PriorConfig;
use ondes_training::tasks::instrument::config::{Config, NetworkConfig, StatedPerformance};
use ondes_training::trainer::recipe::Recipe;
use ondes_training::trainer::training_config::TrainingConfig;
use ondes_training::trainer::{Length, RunFiles};

use crate::commands::trainer_arguments::TrainerArguments;
use crate::commands::write_model::create_parent;
use ondes_training::value_parser;

/// Options for sound.
#[derive(Args)]
pub struct SoundOptions {
    /// Folder of audio, or recipe of an instrument, a codec or a generator with its held-out
    /// pitches and knobs, or of a capture with its pairs.
    #[arg(long, conflicts_with_all = ["dry", "wet"])]
    pub data: Option<PathBuf>,
    /// Signal that was played into the device, for a capture.
    #[arg(long, requires = "wet")]
    pub dry: Option<PathBuf>,
    /// Recording at the device's output.
    #[arg(long, requires = "dry")]
    pub wet: Option<PathBuf>,
}

impl SoundOptions {
    /// Reads the pair at a model's sample rate, without printing its findings.
    pub fn pair(&self, model: &Model) -> anyhow::Result<Option<Pair>> {
        let Some((dry, wet)) = self.dry.as_deref().zip(self.wet.as_deref()) else {
            return Ok(None);
        };
        Pair::read(dry, wet, model.header().sample_rate).map(Some)
    }

    /// Returns the sound to measure quality on, with analysed audio in the folder `cache`.
    pub fn held_out<'a>(&'a self, cache: &'a Path) -> anyhow::Result<HeldOut<'a>> {
        match (&self.data, self.dry.as_ref().zip(self.wet.as_ref())) {
            (Some(folder), _) => Ok(HeldOut::Recordings(folder, cache)),
            (None, Some((dry, wet))) => Ok(HeldOut::Pair(dry, wet)),
            (None, None) => bail!("use --data for instruments, or --dry and --wet for captures"),
        }
    }
}

/// Returns the default folder for analysed audio.
pub fn default_cache() -> PathBuf {
    std::env::temp_dir().join("ondes-features")
}

/// Options for further training of a model.
#[derive(Args)]
#[command(next_help_heading = "Training")]
pub struct FineTuneOptions {
    /// Steps, for all but a capture.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    steps: u64,
    /// Passes through the pair, for a capture.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    epochs: u64,
    /// Highest learning rate [default: that of a new model for students, a quarter of it
    /// otherwise].
    #[arg(long, value_parser = value_parser::positive)]
    learning_rate: Option<f64>,
    /// Crops or windows per step, or parallel streams of a recurrent capture.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=4096))]
    batch: Option<u16>,
    /// Length of a crop, seconds, 0.1 to 60 [default: 1, of codecs and generators that of their
    /// recipe].
    #[arg(long, value_parser = value_parser::crop_seconds)]
    clip_seconds: Option<f64>,
    /// Samples per window of a capture.
    #[arg(long, value_parser = clap::value_parser!(u32).range(64..=1_048_576))]
    window: Option<u32>,
    /// Folder of audio to measure an instrument on [default: the validation part of the
    /// recordings].
    #[arg(long)]
    held_out: Option<PathBuf>,
    /// Seed of crops and windows.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    trainer: TrainerArguments,
    /// Folder for analysed audio and checkpoints [default: beside the output file].
    #[arg(long)]
    work: Option<PathBuf>,
}

impl FineTuneOptions {
    /// Returns the seed of crops and windows.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    fn work(&self, out: &Path) -> PathBuf {
        self.work
            .clone()
            .unwrap_or_else(|| out.with_extension("work"))
    }

    /// Sets length and pace; the learning rate is `share` of a new model's.
    fn pace(&self, training: &mut TrainingConfig, share: f64) {
        let every = (self.steps / 4).max(1);
        training.steps = self.steps;
        training.minutes = None;
        training.batch = self.batch.map_or(training.batch, usize::from);
        training.clip_seconds = self.clip_seconds.unwrap_or(training.clip_seconds);
        training.learning_rate = self.learning_rate.unwrap_or(share * training.learning_rate);
        training.warmup_steps = training.warmup_steps.min(self.steps / 10);
        (training.validate_every, training.checkpoint_every) = (Some(every), Some(every));
    }

    /// Returns the training of a model whose result is written to `out`. `untrained` selects the
    /// learning rate of a new model.
    pub fn job<'a>(
        &self,
        model: &Model,
        sound: &SoundOptions,
        pair: Option<&'a Pair>,
        out: &Path,
        untrained: bool,
    ) -> anyhow::Result<FineTuneJob<'a>> {
        let share = if untrained { 1.0 } else { 0.25 };
        let data = |kind: &str| {
            let missing = || format!("{kind} is trained on recordings; use --data");
            sound.data.as_deref().with_context(missing)
        };
        Ok(match model.header().kind {
            Kind::Instrument => {
                let config = self.instrument(model, data("an instrument")?, out, share)?;
                FineTuneJob::Instrument(Box::new(config))
            }
            Kind::Effect => {
                let pair = pair.context("a capture is trained on a pair; use --dry and --wet")?;
                FineTuneJob::Capture(Box::new(self.capture(model, out, share)?), pair)
            }
            Kind::Codec => {
                let config = self.codec(model, data("a codec")?, out, share)?;
                FineTuneJob::Codec(Box::new(config))
            }
            Kind::Generator => {
                let config = self.generator(model, data("a generator")?, out, share)?;
                FineTuneJob::Generator(Box::new(config))
            }
        })
    }

    fn instrument(
        &self,
        model: &Model,
        data: &Path,
        out: &Path,
        share: f64,
    ) -> anyhow::Result<Config> {
        let rate = feature_rate(model)?;
        let mut training = TrainingConfig::default();
        self.pace(&mut training, share);
        let card = &model.header().card;
        let work = self.work(out);
        let recipe = if is_recipe(data) {
            Config {
                work,
                out: out.to_owned(),
                ..Config::read(data)?
            }
        } else {
            Config::new(data.to_owned(), out.to_owned(), work)
        };
        let mut config = Config {
            name: card.name.clone(),
            description: card.description.clone(),
            author: card.author.clone(),
            licence: card.licence.clone(),
            held_out: self.held_out.clone().or(recipe.held_out.clone()),
            seed: self.seed,
            network: NetworkConfig {
                sample_rate: rate.sample_rate,
                hop: rate.hop,
                ..NetworkConfig::default()
            },
            training,
            performance: StatedPerformance::all(&model.header().performance.unwrap_or_default())?,
            optimizer: OptimizerConfig::default(),
            schedule: ScheduleConfig::default(),
            ..recipe
        };
        self.trainer.apply(config.tables())?;
        Ok(config)
    }

    fn capture(&self, model: &Model, out: &Path, share: f64) -> anyhow::Result<CaptureOptions> {
        let network = NetworkSource::Given(Box::new(model.clone()));
        let checkpoint = match &self.work {
            Some(folder) => folder.join("capture.checkpoint"),
            None => out.with_extension("checkpoint"),
        };
        create_parent(&checkpoint)?;
        let mut options = CaptureOptions::new(network, RunFiles::beside(checkpoint));
        options.seed = self.seed;
        options.batch = self.batch.map_or(options.batch, usize::from);
        options.window = self.window.map_or(options.window, |window| window as usize);
        let trainer = &mut options.trainer;
        trainer.length = Length::Epochs(self.epochs);
        let rate = &mut trainer.training.learning_rate;
        *rate = self.learning_rate.unwrap_or(share * *rate);
        self.trainer.apply_to_capture(trainer)?;
        Ok(options)
    }

    fn codec(
        &self,
        model: &Model,
        data: &Path,
        out: &Path,
        share: f64,
    ) -> anyhow::Result<CodecConfig> {
        let network = sizes(model)?;
        let recipe = if is_recipe(data) {
            CodecConfig::read(data)?
        } else {
            CodecConfig::new(network.clone(), data, out)?
        };
        let mut config = CodecConfig {
            network,
            from: None,
            out: out.to_owned(),
            work: self.work(out),
            name: model.header().card.name.clone(),
            held_out: self.held_out.clone().or(recipe.held_out.clone()),
            seed: self.seed,
            ..recipe
        };
        self.pace(&mut config.training, share);
        self.trainer.apply(config.tables())?;
        Ok(config)
    }

    fn generator(
        &self,
        model: &Model,
        data: &Path,
        out: &Path,
        share: f64,
    ) -> anyhow::Result<PriorConfig> {
        let recipe = if is_recipe(data) {
            PriorConfig::read(data)?
        } else {
            PriorConfig::new(data, out)?
        };
        let mut config = PriorConfig {
            from: None,
            out: out.to_owned(),
            work: self.work(out),
            name: model.header().card.name.clone(),
            seed: self.seed,
            ..recipe
        };
        self.pace(&mut config.training, share);
        self.trainer.apply(config.tables())?;
        Ok(config)
    }
}
