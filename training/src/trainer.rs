//! The training run: crops in, weights moved, the best kept.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use ondes_engine::model::{Model, Training, Weights};
use ondes_torch::{TorchGraph, TorchWeights};
use tch::{Device, Tensor};

use crate::checkpoint::{Progress, State};
use crate::config::Config;
use crate::dataset::{Batch, Dataset, Features, Part};
use crate::distill::Lesson;
use crate::loss::SpectralDistance;
use crate::network;
use crate::optimiser::AdamW;
use crate::quantise::aware::Grids;

/// Share of a crop that only warms up: memory and room start from silence, while the recording was sounding already.
const LEAD: f64 = 0.15;
/// Batches of one validation.
const VALIDATION_BATCHES: u64 = 6;

/// An instrument in training.
pub struct Trainer {
    config: Config,
    dataset: Dataset,
    device: Device,
    /// With the weights that training began with.
    initial: Model,
    synth: TorchGraph,
    room: TorchGraph,
    distance: SpectralDistance,
    lesson: Option<Lesson>,
    grids: Option<Grids>,
    state: State,
}

impl Trainer {
    /// Hears the data and makes an untrained instrument.
    ///
    /// # Errors
    /// When the configuration, the data or the device cannot be used.
    pub fn new(config: Config) -> anyhow::Result<Self> {
        let untrained = network::untrained(&config)?;
        Self::of(untrained, config)
    }

    /// Hears the data and goes on with an instrument that there is; of the configuration's network only the rate and the hop
    /// matter, and must be its own.
    ///
    /// # Errors
    /// As [`Trainer::new`].
    pub fn of(initial: Model, config: Config) -> anyhow::Result<Self> {
        let device = device(&config.training.device)?;
        if config.training.threads > 0 {
            tch::set_num_threads(config.training.threads);
        }
        let dataset = Dataset::open(&config)?;
        let header = initial.header();
        let graph = |name: &str| {
            let graph = TorchGraph::new(initial.method(name)?, header.sample_rate);
            graph.map(|graph| graph.with_rest(&header.controls))
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
            lesson: None,
            grids: None,
            state: State { progress, weights, best, optimiser },
        })
    }

    /// The files that decided which weights are kept; the training files where none were set aside.
    #[must_use]
    pub fn validation_files(&self) -> &[Features] {
        self.dataset.files(Part::Validation)
    }

    /// The data that it learns from.
    #[must_use]
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// What is zero in a matrix now stays zero.
    pub fn keep_zeros(&mut self) {
        self.state.optimiser.keep_zeros(&self.state.weights);
    }

    /// Weights are played on those grids from now on, and end there.
    pub fn round_to(&mut self, grids: Grids) {
        self.grids = Some(grids);
    }

    /// Weights as they are played.
    fn played(&self, weights: &TorchWeights) -> TorchWeights {
        self.grids.as_ref().map_or_else(|| weights.shallow_clone(), |grids| grids.rounded(weights))
    }

    /// Learns from a teacher, too.
    ///
    /// # Errors
    /// When the network does not show what is compared.
    pub fn follow(&mut self, lesson: Lesson) -> anyhow::Result<()> {
        if let Some(guide) = &lesson.guide {
            let header = self.initial.header();
            let showing = guide.showing(self.initial.method("synth")?);
            self.synth = TorchGraph::new(&showing, header.sample_rate)?.with_rest(&header.controls);
            for (name, matrix) in guide.matrices(self.config.seed, self.device) {
                self.state.best.0.insert(name.clone(), matrix.copy());
                self.state.weights.0.insert(name, matrix);
            }
            self.state.optimiser = AdamW::new(&self.state.weights, &self.config.training);
        }
        self.lesson = Some(lesson);
        Ok(())
    }

    fn checkpoint(&self) -> PathBuf {
        self.config.work.join("checkpoint.safetensors")
    }

    /// Goes on from the last checkpoint.
    ///
    /// # Errors
    /// When there is none or it belongs to another configuration.
    pub fn resume(&mut self) -> anyhow::Result<()> {
        self.state.load(&self.checkpoint(), self.device)?;
        eprintln!("resumed at step {}", self.state.progress.step);
        Ok(())
    }

    /// Trains to the last step; checkpoints on the way.
    ///
    /// # Errors
    /// When a checkpoint cannot be written.
    pub fn run(&mut self) -> anyhow::Result<()> {
        let training = self.config.training.clone();
        let work = &self.config.work;
        std::fs::create_dir_all(work).with_context(|| format!("{}: cannot be made", work.display()))?;
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
            let batch = self.dataset.batch(Part::Training, step, training.batch, self.device);
            let loss = match &self.lesson {
                None => self.loss(&self.played(&self.state.weights), &batch, step),
                Some(_) => self.lesson_loss(batch, step),
            };
            loss.backward();
            let State { optimiser, weights, .. } = &mut self.state;
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
                let kept = self.state.progress.best.is_none_or(|(best, _)| validation < best);
                if kept {
                    self.state.progress.best = Some((validation, step + 1));
                    self.state.best = copy(&self.state.weights);
                }
                let pace = started.0.elapsed().as_secs_f64() / (step + 1 - started.1) as f64;
                bar.suspend(|| {
                    eprintln!(
                        "step {:>6}  loss {mean:.4}  validation {validation:.4}{}  {pace:.3} s/step  {:.0} s left",
                        step + 1,
                        if kept { " (best)" } else { "" },
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

    /// The distance between what the instrument plays and what was heard, from the same pitch and loudness.
    fn loss(&self, weights: &TorchWeights, batch: &Batch, noise_seed: u64) -> Tensor {
        let dry = self.synth.run(weights, &batch.controls(), noise_seed).remove(0);
        self.distance_to(weights, &dry, &batch.audio, noise_seed)
    }

    /// The distance between what is played, once it is in the room, and a sound.
    fn distance_to(&self, weights: &TorchWeights, dry: &Tensor, sound: &Tensor, noise_seed: u64) -> Tensor {
        let wet = dry + self.room.run(weights, &[dry.shallow_clone()], noise_seed).remove(0);
        let samples = sound.size()[1];
        let lead = (LEAD * samples as f64) as i64;
        let heard = |sound: &Tensor| sound.narrow(1, lead, samples - lead);
        self.distance.between(&heard(&wet.squeeze_dim(1)), &heard(sound))
    }

    /// The same with a teacher, who makes every other batch: what it plays to controls that no recording has.
    fn lesson_loss(&mut self, batch: Batch, step: u64) -> Tensor {
        let mut lesson = self.lesson.take().expect("there is a teacher");
        let batch = if step % 2 == 1 { lesson.own_batch(batch, step) } else { batch };
        let controls = batch.controls();
        let weights = self.played(&self.state.weights);
        let mut shown = self.synth.run(&weights, &controls, step);
        let dry = shown.remove(0);
        let mut loss = self.distance_to(&weights, &dry, &batch.audio, step);
        if let Some(guide) = &mut lesson.guide {
            guide.forget();
            loss += guide.loss(&weights, &controls, &shown);
        }
        self.lesson = Some(lesson);
        loss
    }

    /// Mean distance over the same crops of the validation part each time.
    fn validate(&self) -> f64 {
        let _no_gradients = tch::no_grad_guard();
        let batch = |step| self.dataset.batch(Part::Validation, step, self.config.training.batch, self.device);
        let weights = self.played(&self.state.weights);
        let losses = (0..VALIDATION_BATCHES).map(|step| self.loss(&weights, &batch(step), step).double_value(&[]));
        losses.sum::<f64>() / VALIDATION_BATCHES as f64
    }

    /// The best instrument so far, with its provenance in the card.
    ///
    /// # Errors
    /// When its weights are not finite.
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
        Ok(Model::new(header, own_weights(&self.initial, &self.played(&self.state.best))?)?)
    }
}

/// The weights of a model among those that were trained with it.
pub(crate) fn own_weights(model: &Model, trained: &TorchWeights) -> anyhow::Result<Weights> {
    let mut weights = Weights::default();
    for (name, _) in model.weights().iter() {
        let tensor = trained.0.get(name).with_context(|| format!("there is no weight {name:?}"))?;
        weights.insert(name, ondes_torch::weights::to_plain(tensor)?);
    }
    Ok(weights)
}

/// A copy that no gradient reaches.
pub(crate) fn copy(weights: &TorchWeights) -> TorchWeights {
    TorchWeights(weights.0.iter().map(|(name, weight)| (name.clone(), weight.detach().copy())).collect())
}

/// `cpu`, `cuda`, or `auto` for CUDA where there is one.
pub(crate) fn device(name: &str) -> anyhow::Result<Device> {
    match name {
        "cpu" => Ok(Device::Cpu),
        "auto" => Ok(Device::cuda_if_available()),
        "cuda" if tch::Cuda::is_available() => Ok(Device::Cuda(0)),
        "cuda" => anyhow::bail!("training.device is \"cuda\", but libtorch finds no GPU here"),
        other => anyhow::bail!("training.device is {other:?}; it must be auto, cpu or cuda"),
    }
}
