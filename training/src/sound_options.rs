//! What a model learns from and is measured on, on the command line: a folder for instruments, a pair for captures.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use ondes_engine::model::{Kind, Model};
use ondes_training::capture::network::Network;
use ondes_training::capture::pair::Pair;
use ondes_training::capture::trainer::{Length, Options};
use ondes_training::compare::HeldOut;
use ondes_training::config::{Config, NetworkConfig, TrainingConfig};
use ondes_training::evaluate::feature_rate;
use ondes_training::tune::Course;

use crate::number;

/// Where the sound is.
#[derive(Args)]
pub struct Sound {
    /// Folder of audio, for an instrument.
    #[arg(long, conflicts_with_all = ["dry", "wet"])]
    pub data: Option<PathBuf>,
    /// What was played into the device, for a capture.
    #[arg(long, requires = "wet")]
    pub dry: Option<PathBuf>,
    /// What was recorded at its output.
    #[arg(long, requires = "dry")]
    pub wet: Option<PathBuf>,
}

impl Sound {
    /// The pair, brought to a model's rate; what is wrong with it was told when it was captured.
    pub fn pair(&self, model: &Model) -> anyhow::Result<Option<Pair>> {
        let Some((dry, wet)) = self.dry.as_deref().zip(self.wet.as_deref()) else { return Ok(None) };
        Pair::read(dry, wet, model.header().sample_rate).map(Some)
    }

    /// What quality is measured on; `cache` is where what was heard is kept.
    pub fn held_out<'a>(&'a self, cache: &'a Path) -> anyhow::Result<HeldOut<'a>> {
        match (&self.data, self.dry.as_ref().zip(self.wet.as_ref())) {
            (Some(folder), _) => Ok(HeldOut::Recordings(folder, cache)),
            (None, Some((dry, wet))) => Ok(HeldOut::Pair(dry, wet)),
            (None, None) => bail!("either --data, for instruments, or --dry and --wet, for captures, is needed"),
        }
    }
}

/// Where what was heard is kept when nobody says.
pub fn usual_cache() -> PathBuf {
    std::env::temp_dir().join("ondes-features")
}

/// How a model that there is goes on learning.
#[derive(Args)]
#[command(next_help_heading = "Training")]
pub struct Learning {
    /// Steps, for an instrument.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    steps: u64,
    /// Rounds through the pair, for a capture.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    epochs: u64,
    /// Highest learning rate; by default that of a new model for a student, a quarter of it after pruning.
    #[arg(long, value_parser = number::positive)]
    learning_rate: Option<f64>,
    /// Crops or windows per step, or streams side by side of a recurrent capture.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=4096))]
    batch: Option<u16>,
    /// Length of an instrument's crop, seconds, 0.1 to 60.
    #[arg(long, default_value_t = 1.0, value_parser = number::crop)]
    clip_seconds: f64,
    /// Samples of a capture's window.
    #[arg(long, value_parser = clap::value_parser!(u32).range(64..=1_048_576))]
    window: Option<u32>,
    /// Folder of audio that an instrument is only measured on; by default the part of the recordings that decides what is kept.
    #[arg(long)]
    held_out: Option<PathBuf>,
    /// Another seed, other crops and windows.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Threads of libtorch; 0 for as many as there are cores.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(i32).range(0..=256))]
    threads: i32,
    /// `cpu`, `cuda`, or whichever is there.
    #[arg(long, default_value = "auto", value_parser = ["auto", "cpu", "cuda"])]
    device: String,
    /// Folder for what is heard of the recordings, and for checkpoints; by default beside the model that is written.
    #[arg(long)]
    work: Option<PathBuf>,
}

impl Learning {
    /// Seed of crops and windows.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The course for a model of that kind, whose result goes to `out`. With `anew` the model has learnt nothing yet.
    pub fn course<'a>(
        &self,
        model: &Model,
        sound: &Sound,
        pair: Option<&'a Pair>,
        out: &Path,
        anew: bool,
    ) -> anyhow::Result<Course<'a>> {
        let share = if anew { 1.0 } else { 0.25 };
        match model.header().kind {
            Kind::Instrument => {
                let data = sound.data.clone().context("an instrument learns from recordings: --data is needed")?;
                let rate = feature_rate(model)?;
                let usual = TrainingConfig::default();
                let every = (self.steps / 4).max(1);
                let training = TrainingConfig {
                    steps: self.steps,
                    batch: self.batch.map_or(usual.batch, usize::from),
                    clip_seconds: self.clip_seconds,
                    learning_rate: self.learning_rate.unwrap_or(share * usual.learning_rate),
                    warmup_steps: usual.warmup_steps.min(self.steps / 10),
                    validate_every: every,
                    checkpoint_every: every,
                    threads: self.threads,
                    device: self.device.clone(),
                    ..usual
                };
                let card = &model.header().card;
                Ok(Course::Instrument(Box::new(Config {
                    name: card.name.clone(),
                    description: card.description.clone(),
                    author: card.author.clone(),
                    licence: card.licence.clone(),
                    data,
                    held_out: self.held_out.clone(),
                    out: out.to_owned(),
                    work: self.work.clone().unwrap_or_else(|| out.with_extension("work")),
                    seed: self.seed,
                    network: NetworkConfig { sample_rate: rate.sample_rate, hop: rate.hop, ..NetworkConfig::default() },
                    training,
                    performance: model.header().performance.unwrap_or_default(),
                })))
            }
            Kind::Effect => {
                let pair = pair.context("a capture learns from a pair: --dry and --wet are needed")?;
                let network = Network::Given(Box::new(model.clone()));
                let checkpoint = match &self.work {
                    Some(folder) => folder.join("capture.checkpoint"),
                    None => out.with_extension("checkpoint"),
                };
                if let Some(folder) = checkpoint.parent() {
                    let cannot = || format!("{}: cannot be made", folder.display());
                    std::fs::create_dir_all(folder).with_context(cannot)?;
                }
                let usual = Options::usual(network, checkpoint);
                let options = Options {
                    length: Length::Epochs(self.epochs),
                    seed: self.seed,
                    batch: self.batch.map_or(usual.batch, usize::from),
                    window: self.window.map_or(usual.window, |window| window as usize),
                    learning_rate: self.learning_rate.unwrap_or(share * usual.learning_rate),
                    threads: self.threads,
                    device: self.device.clone(),
                    ..usual
                };
                Ok(Course::Capture(Box::new(options), pair))
            }
            kind => bail!("is of kind {}; only instruments and captures can learn on", kind.name()),
        }
    }
}
