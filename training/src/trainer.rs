//! Training of instruments.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use ondes_engine::model::{Model, Training, Weights};
use ondes_torch::{TorchGraph, TorchWeights};
use tch::{Device, Tensor};

use crate::checkpoint::{Progress, TrainingState};
use crate::config::Config;
use crate::dataset::{CropBatch, Dataset, Features, Subset};
use crate::fake_quantization::QuantizationGrids;
use crate::instrument_teacher::InstrumentTeacher;
use crate::loss::SpectralDistance;
use crate::network;
use crate::optimiser::AdamW;

/// Share of a crop that only warms up: recurrent state and room start from silence, unlike the recording.
const WARM_UP_SHARE: f64 = 0.15;
/// Batches per validation.
const VALIDATION_BATCHES: u64 = 6;

/// Training run of an instrument.
pub struct InstrumentTrainer {
    config: Config,
    dataset: Dataset,
    device: Device,
    /// Model at the start of the run.
    initial: Model,
    synth: TorchGraph,
    room: TorchGraph,
    distance: SpectralDistance,
    teacher: Option<InstrumentTeacher>,
    grids: Option<QuantizationGrids>,
    state: TrainingState,
}

impl InstrumentTrainer {
    /// Analyses the data and makes an untrained instrument.
    ///
    /// # Errors
    /// Returns an error if the configuration, the data or the device cannot be used.
    pub fn new(config: Config) -> anyhow::Result<Self> {
        let untrained = network::untrained(&config)?;
        Self::from_model(untrained, config)
    }

    /// Analyses the data and starts from a model. Of the configuration's network, only sample rate and hop are used,
    /// and must equal the model's.
    ///
    /// # Errors
    /// As [`InstrumentTrainer::new`].
    pub fn from_model(initial: Model, config: Config) -> anyhow::Result<Self> {
        let device = device(&config.training.device)?;
        if config.training.threads > 0 {
            tch::set_num_threads(config.training.threads);
        }
        let dataset = Dataset::open(&config)?;
        let header = initial.header();
        let graph = |name: &str| {
            let graph = TorchGraph::new(initial.method(name)?, header.sample_rate);
            graph.map(|graph| graph.with_defaults(&header.controls))
        };
        let (synth, room) = (graph("synth")?, graph("room")?);
        let weights = TorchWeights::new(initial.weights(), device);
        let best = TorchWeights::new(initial.weights(), device);
        let optimiser = AdamW::new(&weights, &config.training);
        let progress = Progress { step: 0, steps: config.training.steps, best: None, identity: config.identity()? };
        Ok(Self {
            distance: SpectralDistance::new(device),
            config,
            dataset,
            device,
            initial,
            synth,
            room,
            teacher: None,
            grids: None,
            state: TrainingState { progress, weights, best, optimiser },
        })
    }

    /// Returns the validation files; the training files if the validation share is 0.
    #[must_use]
    pub fn validation_files(&self) -> &[Features] {
        self.dataset.files(Subset::Validation)
    }

    /// Returns the training data.
    #[must_use]
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// Keeps weights of matrices that are zero now at zero.
    pub fn keep_zeros(&mut self) {
        self.state.optimiser.keep_zeros(&self.state.weights);
    }

    /// Rounds the weights to these grids in every step, and in the result.
    pub fn round_to(&mut self, grids: QuantizationGrids) {
        self.grids = Some(grids);
    }

    /// Returns the weights that the network computes with.
    fn effective_weights(&self, weights: &TorchWeights) -> TorchWeights {
        self.grids.as_ref().map_or_else(|| weights.shallow_clone(), |grids| grids.rounded(weights))
    }

    /// Adds a teacher.
    ///
    /// # Errors
    /// Returns an error if the network lacks a layer that the teacher's features need.
    pub fn set_teacher(&mut self, teacher: InstrumentTeacher) -> anyhow::Result<()> {
        if let Some(features) = &teacher.features {
            let header = self.initial.header();
            let showing = features.with_feature_outputs(self.initial.method("synth")?);
            self.synth = TorchGraph::new(&showing, header.sample_rate)?.with_defaults(&header.controls);
            for (name, matrix) in features.projections(self.config.seed, self.device) {
                self.state.best.0.insert(name.clone(), matrix.copy());
                self.state.weights.0.insert(name, matrix);
            }
            self.state.optimiser = AdamW::new(&self.state.weights, &self.config.training);
        }
        self.teacher = Some(teacher);
        Ok(())
    }

    fn checkpoint(&self) -> PathBuf {
        self.config.work.join("checkpoint.safetensors")
    }

    /// Resumes from the last checkpoint.
    ///
    /// # Errors
    /// Returns an error if there is none or it belongs to another configuration.
    pub fn resume(&mut self) -> anyhow::Result<()> {
        self.state.load(&self.checkpoint(), self.device)?;
        eprintln!("resumed at step {}", self.state.progress.step);
        Ok(())
    }

    /// Trains to the last step and writes checkpoints.
    ///
    /// # Errors
    /// Returns an error if a checkpoint cannot be written.
    pub fn run(&mut self) -> anyhow::Result<()> {
        let training = self.config.training.clone();
        let work = &self.config.work;
        std::fs::create_dir_all(work).with_context(|| format!("{}: cannot create the folder", work.display()))?;
        eprintln!(
            "{}: {:.0} s of sound, {} weights, {} steps on {:?}",
            self.config.name,
            self.dataset.seconds(),
            self.initial.parameters(),
            training.steps,
            self.device
        );
        let style = ProgressStyle::with_template("{elapsed_precise} {bar:32} {pos}/{len} {per_sec} ETA {eta} {msg}")?;
        let bar = ProgressBar::new(training.steps).with_style(style).with_position(self.state.progress.step);
        bar.reset_eta();
        self.state.weights.0.values_mut().for_each(|weight| *weight = weight.set_requires_grad(true));
        let started = (Instant::now(), self.state.progress.step);
        let mut average: Option<f64> = None;
        while self.state.progress.step < training.steps {
            let step = self.state.progress.step;
            let batch = self.dataset.batch(Subset::Training, step, training.batch, self.device);
            let loss = match &self.teacher {
                None => self.loss(&self.effective_weights(&self.state.weights), &batch, step),
                Some(_) => self.teacher_loss(batch, step),
            };
            loss.backward();
            let TrainingState { optimiser, weights, .. } = &mut self.state;
            let gradient = optimiser.step(weights, step);
            let loss = loss.double_value(&[]);
            let mean = average.map_or(loss, |average| 0.98 * average + 0.02 * loss);
            average = Some(mean);
            bar.set_message(format!("loss {mean:.4} gradient {gradient:.2}"));
            bar.inc(1);
            self.state.progress.step = step + 1;
            let done = self.state.progress.step == training.steps;
            if done || (step + 1).is_multiple_of(training.validate_every) {
                let validation = self.validate();
                let is_best = self.state.progress.best.is_none_or(|(best, _)| validation < best);
                if is_best {
                    self.state.progress.best = Some((validation, step + 1));
                    self.state.best = detached_copy(&self.state.weights);
                }
                let pace = started.0.elapsed().as_secs_f64() / (step + 1 - started.1) as f64;
                bar.suspend(|| {
                    eprintln!(
                        "step {:>6}  loss {mean:.4}  validation {validation:.4}{}  {pace:.3} s/step  {:.0} s left",
                        step + 1,
                        if is_best { " (best)" } else { "" },
                        pace * (training.steps - step - 1) as f64
                    );
                });
            }
            if done || (step + 1).is_multiple_of(training.checkpoint_every) {
                self.state.save(&self.checkpoint())?;
            }
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// Returns the spectral distance of the instrument's output from a batch's audio.
    fn loss(&self, weights: &TorchWeights, batch: &CropBatch, noise_seed: u64) -> Tensor {
        let dry = self.synth.run(weights, &batch.controls(), noise_seed).remove(0);
        self.distance_to(weights, &dry, &batch.audio, noise_seed)
    }

    /// Returns the spectral distance of a dry sound, with the room added, from a target.
    fn distance_to(&self, weights: &TorchWeights, dry: &Tensor, target: &Tensor, noise_seed: u64) -> Tensor {
        let wet = dry + self.room.run(weights, &[dry.shallow_clone()], noise_seed).remove(0);
        let samples = target.size()[1];
        let warm_up = (WARM_UP_SHARE * samples as f64) as i64;
        let after_warm_up = |sound: &Tensor| sound.narrow(1, warm_up, samples - warm_up);
        self.distance.between(&after_warm_up(&wet.squeeze_dim(1)), &after_warm_up(target))
    }

    /// Returns the loss with a teacher: every other batch is augmented and rendered by the teacher.
    fn teacher_loss(&mut self, batch: CropBatch, step: u64) -> Tensor {
        let mut teacher = self.teacher.take().expect("there is a teacher");
        let batch = if step % 2 == 1 { teacher.augmented_batch(batch, step) } else { batch };
        let controls = batch.controls();
        let weights = self.effective_weights(&self.state.weights);
        let mut outputs = self.synth.run(&weights, &controls, step);
        let dry = outputs.remove(0);
        let mut loss = self.distance_to(&weights, &dry, &batch.audio, step);
        if let Some(features) = &mut teacher.features {
            features.reset();
            loss += features.loss(&weights, &controls, &outputs);
        }
        self.teacher = Some(teacher);
        loss
    }

    /// Returns the mean loss over fixed crops of the validation files.
    fn validate(&self) -> f64 {
        let _no_gradients = tch::no_grad_guard();
        let batch = |step| self.dataset.batch(Subset::Validation, step, self.config.training.batch, self.device);
        let weights = self.effective_weights(&self.state.weights);
        let losses = (0..VALIDATION_BATCHES).map(|step| self.loss(&weights, &batch(step), step).double_value(&[]));
        losses.sum::<f64>() / VALIDATION_BATCHES as f64
    }

    /// Returns the best instrument so far, with the run's data on its card.
    ///
    /// # Errors
    /// Returns an error if its weights are not finite.
    pub fn model(&self) -> anyhow::Result<Model> {
        let (validation_loss, steps) = self.state.progress.best.unwrap_or((f64::MAX, self.state.progress.step));
        let mut header = self.initial.header().clone();
        let corpus = self.config.data.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        header.card.training = Some(Training {
            tool: format!("ondes-train {}", env!("CARGO_PKG_VERSION")),
            corpus,
            corpus_seconds: self.dataset.seconds().round(),
            steps,
            seed: self.config.seed,
            validation_loss,
        });
        Ok(Model::new(header, model_weights(&self.initial, &self.effective_weights(&self.state.best))?)?)
    }
}

/// Selects the weights of a model from the trained ones.
pub(crate) fn model_weights(model: &Model, trained: &TorchWeights) -> anyhow::Result<Weights> {
    let mut weights = Weights::default();
    for (name, _) in model.weights().iter() {
        let tensor = trained.0.get(name).with_context(|| format!("the model has no weight {name:?}"))?;
        weights.insert(name, ondes_torch::weights::to_plain(tensor)?);
    }
    Ok(weights)
}

/// Copies weights without their gradients.
pub(crate) fn detached_copy(weights: &TorchWeights) -> TorchWeights {
    TorchWeights(weights.0.iter().map(|(name, weight)| (name.clone(), weight.detach().copy())).collect())
}

/// Parses a device: `cpu`, `cuda`, or `auto` for CUDA if available.
pub(crate) fn device(name: &str) -> anyhow::Result<Device> {
    match name {
        "cpu" => Ok(Device::Cpu),
        "auto" => Ok(Device::cuda_if_available()),
        "cuda" if tch::Cuda::is_available() => Ok(Device::Cuda(0)),
        "cuda" => anyhow::bail!("the device is \"cuda\", but libtorch finds no GPU; use \"auto\" or \"cpu\""),
        other => anyhow::bail!("unknown device {other:?}; available: auto, cpu, cuda"),
    }
}
