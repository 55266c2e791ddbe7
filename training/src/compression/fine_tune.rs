//! Training of an existing model: after pruning, with a teacher, or for quantization.

use anyhow::{Context, ensure};
use ondes_engine::model::{Measure, Model};
use ondes_torch::{TorchGraph, TorchWeights};
use tch::{Device, Tensor};

use crate::compression::fake_quantization::QuantizationGrids;
use crate::data::{Dataset, Subset};
use crate::evaluate::evaluate;
use crate::loss::feature_matching::FeatureMatching;
use crate::tasks::capture::measure::compare;
use crate::tasks::capture::network_source::NetworkSource;
use crate::tasks::capture::pair::Pair;
use crate::tasks::capture::task::{CaptureOptions, CaptureTask};
use crate::tasks::capture::windows::Split;
use crate::tasks::codec::principal::{with_own_latents, with_variances};
use crate::tasks::codec::{CodecConfig, CodecTask};
use crate::tasks::generator::calibration::{calibrated, uncalibrated};
use crate::tasks::generator::names::PRIOR;
use crate::tasks::generator::{PriorConfig, PriorTask};
use crate::tasks::instrument::config::Config;
use crate::tasks::instrument::task::InstrumentTask;
use crate::tasks::instrument::teacher::InstrumentTeacher;
use crate::trainer::recipe::Recipe;
use crate::trainer::{Task, Trainer, device};

/// Batches of [`FineTuneJob::play_training_sound`], and crops or windows per batch.
const LISTENING_BATCHES: u64 = 8;
const LISTENING_ROWS: usize = 4;
/// Length of a capture's window without its warm-up, samples.
const LISTENING_WINDOW: usize = 8_192;
/// Share of an instrument's crop that only warms up.
const LISTENING_WARM_UP: f64 = 0.15;

/// Data, length and pace of training.
pub enum FineTuneJob<'a> {
    /// An instrument from recordings. Of the configuration's network, only sample rate and hop are
    /// used.
    Instrument(Box<Config>),
    /// A capture from a pair. The options' network is replaced by the model.
    Capture(Box<CaptureOptions>, &'a Pair),
    /// A codec from recordings. Of the configuration's network, rates, bands and harmonics are
    /// used.
    Codec(Box<CodecConfig>),
    /// The prior of a generator from recordings. The configuration's network and codec are replaced
    /// by the model.
    Generator(Box<PriorConfig>),
}

/// Constraints and additional losses of training.
#[derive(Clone, Copy, Default)]
pub struct FineTuneMode<'a> {
    /// Zeros of matrices stay zero.
    pub keep_zeros: bool,
    /// Teacher and weight of the feature-matching loss.
    pub teacher: Option<(&'a Model, f64)>,
    /// Compressed model whose quantization grids the weights must lie on.
    pub quantized: Option<&'a Model>,
}

impl FineTuneJob<'_> {
    /// Trains a model; returns the weights with the lowest validation loss, also after an
    /// interruption.
    ///
    /// # Errors
    /// Returns an error if the data cannot be used or training diverges.
    pub fn run(&self, model: &Model, mode: FineTuneMode<'_>) -> anyhow::Result<Model> {
        match self {
            Self::Instrument(config) => {
                let mut task = InstrumentTask::from_model(model.clone(), Config::clone(config))?;
                let options = config.trainer_options();
                let device = device(&options.training.device)?;
                if let Some((teacher, share)) = mode.teacher {
                    task.set_teacher(InstrumentTeacher::new(teacher, model, share, device)?)?;
                }
                train(Trainer::new(task, options)?, mode, device)
            }
            Self::Capture(options, pair) => {
                let network = NetworkSource::Given(Box::new(model.clone()));
                let options = CaptureOptions {
                    network,
                    ..CaptureOptions::clone(options)
                };
                let trainer_options = options.trainer.clone();
                let device = device(&trainer_options.training.device)?;
                let mut task = CaptureTask::new(options, std::slice::from_ref(*pair), None)?;
                if let Some((teacher, share)) = mode.teacher
                    && let Some(features) =
                        FeatureMatching::new(teacher, model, "forward", share, device)?
                {
                    task.set_feature_matching(features)?;
                }
                let checkpoint = trainer_options.files.checkpoint.clone();
                let trained = train(Trainer::new(task, trainer_options)?, mode, device)?;
                std::fs::remove_file(&checkpoint)
                    .with_context(|| format!("{}: cannot be removed", checkpoint.display()))?;
                Ok(trained)
            }
            Self::Codec(config) => {
                ensure!(
                    mode.quantized.is_none(),
                    "a codec cannot be trained with rounded weights"
                );
                let mut task =
                    CodecTask::from_model(with_variances(model)?, CodecConfig::clone(config))?;
                let options = config.trainer_options();
                let device = device(&options.training.device)?;
                if let Some((teacher, share)) = mode.teacher {
                    task.set_teacher(teacher, share)?;
                }
                // A prior for the codec, and presets, rely on its latents.
                with_own_latents(&train(Trainer::new(task, options)?, mode, device)?)
            }
            Self::Generator(config) => {
                ensure!(
                    mode.quantized.is_none(),
                    "a generator cannot be trained with rounded weights"
                );
                let mut task = self.prior_task(model, config)?;
                let options = config.trainer_options();
                let device = device(&options.training.device)?;
                if let Some((teacher, share)) = mode.teacher {
                    task.set_teacher(teacher, share, device)?;
                }
                train(Trainer::new(task, options)?, mode, device)
            }
        }
    }

    fn prior_task(&self, model: &Model, config: &PriorConfig) -> anyhow::Result<PriorTask> {
        PriorTask::from_model(uncalibrated(model)?, config.clone(), "the generator")
    }

    /// Completes a trained model that is to be played: calibrates the knobs of a generator.
    ///
    /// # Errors
    /// Returns an error if it cannot be run.
    pub fn completed(&self, model: Model) -> anyhow::Result<Model> {
        match self {
            Self::Generator(_) => calibrated(&model),
            _ => Ok(model),
        }
    }

    /// Measures a model on sound that it is not trained on, the most important measure first: an
    /// instrument on the configuration's held-out recordings or, without any, on the validation
    /// part; a capture on the end of the pair.
    ///
    /// # Errors
    /// Returns an error if the model cannot be played on that sound.
    pub fn measure(&self, model: &Model) -> anyhow::Result<Vec<Measure>> {
        match self {
            Self::Instrument(config) => {
                let dataset = Dataset::open(&config.data())?;
                let training = config
                    .recordings
                    .held_out_pitch
                    .gt(&0)
                    .then(|| dataset.recordings(Subset::Training));
                Ok(evaluate(model, dataset.measured(), training)?.measures())
            }
            Self::Capture(_, pair) => Ok(vec![compare(model, pair)?.held_out]),
            Self::Codec(config) => {
                let dataset = Dataset::open(&config.data())?;
                Ok(evaluate(model, dataset.measured(), None)?.measures())
            }
            Self::Generator(config) => {
                let known = uncalibrated(model)?;
                Ok(self
                    .prior_task(model, config)?
                    .finished(&known)?
                    .header()
                    .card
                    .quality
                    .clone())
            }
        }
    }

    /// Calls `listener` with the inputs of a model's methods, taken from the training sound: the
    /// index of the method, its ports as `[batch, channels, frames]`, and the share of the frames
    /// that only warms up.
    ///
    /// # Errors
    /// Returns an error if the data cannot be used.
    pub fn play_training_sound(
        &self,
        model: &Model,
        mut listener: impl FnMut(usize, &[Tensor], f64),
    ) -> anyhow::Result<()> {
        let device = self.device()?;
        match self {
            Self::Instrument(config) => {
                let dataset = Dataset::open(&config.data())?;
                let synth = model
                    .header()
                    .methods
                    .iter()
                    .position(|method| method.name == "synth");
                let synth = synth.context("the model has no method \"synth\"")?;
                for step in 0..LISTENING_BATCHES {
                    let batch = dataset.batch(Subset::Training, step, 0..LISTENING_ROWS, device)?;
                    listener(synth, &batch.inputs(model.header()), LISTENING_WARM_UP);
                }
                Ok(())
            }
            Self::Capture(_, pair) => play_windows(model, pair, device, listener),
            Self::Codec(config) => play_crops(model, config, device, listener),
            Self::Generator(config) => {
                let task = self.prior_task(model, config)?;
                let prior = model
                    .header()
                    .methods
                    .iter()
                    .position(|method| method.name == PRIOR);
                let prior = prior.context("the model has no method \"prior\"")?;
                for step in 0..LISTENING_BATCHES {
                    listener(
                        prior,
                        &task.training_inputs(step, 0..LISTENING_ROWS, device)?,
                        0.0,
                    );
                }
                Ok(())
            }
        }
    }

    /// Returns the device that training runs on.
    ///
    /// # Errors
    /// Returns an error if the device is unknown or not available.
    pub fn device(&self) -> anyhow::Result<Device> {
        device(match self {
            Self::Instrument(config) => &config.training.device,
            Self::Capture(options, _) => &options.trainer.training.device,
            Self::Codec(config) => &config.training.device,
            Self::Generator(config) => &config.training.device,
        })
    }
}

/// Runs a training with its constraints.
fn train<T: Task>(
    mut trainer: Trainer<T>,
    mode: FineTuneMode<'_>,
    device: Device,
) -> anyhow::Result<Model> {
    if mode.keep_zeros {
        trainer.keep_zeros();
    }
    if let Some(stored) = mode.quantized {
        trainer.round_to(QuantizationGrids::new(stored, device));
    }
    // After an interruption, the best weights so far are better than none.
    trainer.run()?;
    trainer.model()
}

/// Calls `listener` with crops of the recordings for the encoder of a codec, and with their latents
/// for its decoder.
fn play_crops(
    model: &Model,
    config: &CodecConfig,
    device: Device,
    mut listener: impl FnMut(usize, &[Tensor], f64),
) -> anyhow::Result<()> {
    let task = CodecTask::from_model(with_variances(model)?, config.clone())?;
    let encode = model.method("encode")?;
    let graph = TorchGraph::new(encode, model.header().sample_rate)?;
    let weights = TorchWeights::new(model.weights(), device);
    for step in 0..LISTENING_BATCHES {
        let sound = task.training_sound(step, 0..LISTENING_ROWS, device)?;
        let latents = tch::no_grad(|| {
            graph
                .run(&weights, &[sound.shallow_clone()], step)
                .swap_remove(0)
        });
        for (index, method) in model.header().methods.iter().enumerate() {
            let input = if method.inputs == encode.inputs {
                &sound
            } else {
                &latents
            };
            listener(index, std::slice::from_ref(input), LISTENING_WARM_UP);
        }
    }
    Ok(())
}

/// Calls `listener` with windows spread over the training part of a pair, for `forward` and its
/// variants.
fn play_windows(
    model: &Model,
    pair: &Pair,
    device: Device,
    mut listener: impl FnMut(usize, &[Tensor], f64),
) -> anyhow::Result<()> {
    let forward = model.method("forward")?;
    let training = &pair.dry[..Split::new(pair.dry.len(), f64::from(pair.rate)).validation];
    for (index, method) in model.header().methods.iter().enumerate() {
        if method.inputs != forward.inputs {
            continue;
        }
        let length = (LISTENING_WINDOW + method.warm_up).min(training.len());
        let windows = LISTENING_BATCHES as usize * LISTENING_ROWS;
        let start = |window: usize| window * (training.len() - length) / windows;
        for batch in 0..LISTENING_BATCHES as usize {
            let rows = (0..LISTENING_ROWS).flat_map(|row| {
                let start = start(batch * LISTENING_ROWS + row);
                &training[start..start + length]
            });
            let rows: Vec<f32> = rows.copied().collect();
            let rows = Tensor::from_slice(&rows)
                .view([LISTENING_ROWS as i64, 1, -1])
                .to_device(device);
            let knobs = model
                .header()
                .controls
                .iter()
                .map(|knob| rows.full_like(f64::from(knob.default)));
            let inputs: Vec<Tensor> = std::iter::once(rows.shallow_clone()).chain(knobs).collect();
            listener(
                index,
                &inputs,
                method.warm_up.min(length - 1) as f64 / length as f64,
            );
        }
    }
    Ok(())
}
