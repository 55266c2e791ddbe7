//! Training of captures.
//!
//! The loss is the error-to-signal ratio, the mean squared error over the power of the training part; optionally with a
//! spectral distance of the pre-emphasised sounds (Wright & Välimäki, "Perceptual loss function for neural modelling of
//! audio systems", ICASSP 2020). Convolutional networks are trained on windows, each preceded by its receptive field;
//! recurrent networks on continuous streams, with gradients truncated at the start of each chunk.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use ondes_engine::model::{Method, Model, Training};
use ondes_torch::{RecurrentState, TorchGraph, TorchWeights};
use tch::{Device, Kind, Tensor};

use super::measure::{esr, play};
use super::network_source::NetworkSource;
use super::pair::Pair;
use super::windows::{Split, WindowBatch, Windows};
use crate::checkpoint::{Progress, TrainingState};
use crate::config::TrainingConfig;
use crate::fake_quantization::QuantizationGrids;
use crate::feature_matching::FeatureMatching;
use crate::loss::SpectralDistance;
use crate::optimiser::AdamW;
use crate::trainer::{detached_copy, device, model_weights};

/// Coefficient of the pre-emphasis `y[t] = x[t] − 0.95 x[t − 1]`.
const PRE_EMPHASIS: f64 = 0.95;
/// Steps that are timed to convert minutes to epochs, after one that is not.
const TIMED_STEPS: u32 = 3;

/// Length of training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// Number of epochs, passes through the training part.
    Epochs(u64),
    /// As many epochs as fit into these minutes, at the speed of the first steps.
    Minutes(f64),
}

/// Options of a [`CaptureTrainer`].
#[derive(Clone, Debug)]
pub struct CaptureOptions {
    /// Network to train.
    pub network: NetworkSource,
    /// Length of training.
    pub length: Length,
    /// Seed of initial weights and of the order of windows.
    pub seed: u64,
    /// Windows per step, or parallel streams of recurrent networks.
    pub batch: usize,
    /// Samples per window, or per chunk of the streams.
    pub window: usize,
    /// Highest learning rate.
    pub learning_rate: f64,
    /// Weight of the spectral distance in the loss; 0 for none.
    pub spectral: f64,
    /// Threads of libtorch; 0 for one per core.
    pub threads: i32,
    /// `cpu`, `cuda` or `auto`.
    pub device: String,
    /// Path of the checkpoint.
    pub checkpoint: PathBuf,
}

impl CaptureOptions {
    /// Returns the default options of a network. Chunks of streams are short: many small steps learn far more than a
    /// few large ones of equal cost, even though gradients then reach back only a few milliseconds.
    #[must_use]
    pub fn new(network: impl Into<NetworkSource>, checkpoint: PathBuf) -> Self {
        let network = network.into();
        let recurrent = network.is_recurrent();
        Self {
            length: Length::Epochs(100),
            seed: 0,
            batch: if recurrent { 64 } else { 16 },
            window: if recurrent { 256 } else { 8_192 },
            learning_rate: if recurrent { 1e-2 } else { 4e-3 },
            spectral: 0.0,
            threads: 0,
            device: "auto".into(),
            network,
            checkpoint,
        }
    }

    /// Returns everything that the weights depend on besides the pair.
    fn identity(&self) -> String {
        let Self { network, length, seed, batch, window, learning_rate, spectral, .. } = self;
        let network = network.identity();
        format!("{network} {length:?} {seed} {batch} {window} {learning_rate} {spectral}")
    }
}

/// Training run of a capture.
pub struct CaptureTrainer<'a> {
    options: CaptureOptions,
    pair: &'a Pair,
    split: Split,
    windows: Windows,
    device: Device,
    untrained: Model,
    /// `forward` without its warm-up.
    method: Method,
    graph: TorchGraph,
    feature_matching: Option<FeatureMatching>,
    grids: Option<QuantizationGrids>,
    distance: Option<SpectralDistance>,
    /// Mean square of the training part.
    power: f64,
    trained: Vec<String>,
    state: TrainingState,
}

impl<'a> CaptureTrainer<'a> {
    /// Splits the pair and creates an untrained network, or starts from the weights of `base`.
    ///
    /// # Errors
    /// Returns an error if the device cannot be used or `base` has another shape.
    pub fn new(options: CaptureOptions, pair: &'a Pair, base: Option<&Model>) -> anyhow::Result<Self> {
        let device = device(&options.device)?;
        if options.threads > 0 {
            tch::set_num_threads(options.threads);
        }
        let untrained = options.network.initial(options.seed, pair.rate)?;
        let header = untrained.header();
        if let Some(base) = base {
            ensure!(base.header().methods == header.methods, "the base model has another shape");
        }
        let mut method = untrained.method("forward")?.clone();
        let lead = if options.network.is_recurrent() { 0 } else { method.warm_up };
        // The samples before a window are known, so they are not assumed to be silent.
        method.warm_up = 0;
        let graph = TorchGraph::new(&method, header.sample_rate)?;
        let split = Split::new(pair.dry.len(), f64::from(pair.rate));
        let (dry, wet) = (&pair.dry[..split.validation], &pair.wet[..split.validation]);
        let windows = Windows::new(dry, wet, lead, options.window, options.batch, options.seed);
        let initial = base.unwrap_or(&untrained).weights();
        let weights = TorchWeights::new(initial, device);
        let best = TorchWeights::new(initial, device);
        let power = wet.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / wet.len().max(1) as f64;
        let identity = format!("{} {} {}", options.identity(), pair.hash, base.map_or("", Model::content_hash));
        let steps = match options.length {
            Length::Epochs(epochs) => epochs,
            Length::Minutes(_) => 0,
        };
        let optimiser = AdamW::new(&weights, &training_config(&options, 0));
        Ok(Self {
            trained: options.network.trained(),
            distance: (options.spectral > 0.0).then(|| SpectralDistance::new(device)),
            state: TrainingState {
                progress: Progress { step: 0, steps, best: None, identity },
                weights,
                best,
                optimiser,
            },
            options,
            pair,
            split,
            windows,
            device,
            untrained,
            method,
            graph,
            feature_matching: None,
            grids: None,
            power: power.max(1e-12),
        })
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

    /// Adds a feature-matching loss.
    ///
    /// # Errors
    /// Returns an error if the network lacks a layer that the features need.
    pub fn set_feature_matching(&mut self, feature_matching: FeatureMatching) -> anyhow::Result<()> {
        self.graph =
            TorchGraph::new(&feature_matching.with_feature_outputs(&self.method), self.untrained.header().sample_rate)?;
        for (name, matrix) in feature_matching.projections(self.options.seed, self.device) {
            self.trained.push(name.clone());
            self.state.best.0.insert(name.clone(), matrix.copy());
            self.state.weights.0.insert(name, matrix);
        }
        self.state.optimiser = AdamW::new(&self.state.weights, &training_config(&self.options, 0));
        self.feature_matching = Some(feature_matching);
        Ok(())
    }

    /// Resumes from the last checkpoint.
    ///
    /// # Errors
    /// Returns an error if there is none or it belongs to another pair or other options.
    pub fn resume(&mut self) -> anyhow::Result<()> {
        self.state.load(&self.options.checkpoint, self.device)?;
        eprintln!("resumed after epoch {} of {}", self.state.progress.step, self.state.progress.steps);
        Ok(())
    }

    /// Returns the number of steps per epoch.
    fn steps_per_epoch(&self) -> u64 {
        if self.options.network.is_recurrent() { self.windows.chunks() } else { self.windows.batches() }
    }

    /// Trains to the last epoch and writes a checkpoint after each.
    ///
    /// # Errors
    /// Returns an error if a checkpoint cannot be written or training diverges.
    pub fn run(&mut self) -> anyhow::Result<()> {
        for name in &self.trained {
            let weight =
                self.state.weights.0.get_mut(name).with_context(|| format!("the network has no weight {name:?}"))?;
            *weight = weight.set_requires_grad(true);
        }
        let per_epoch = self.steps_per_epoch();
        if self.state.progress.steps == 0 {
            self.state.progress.steps = self.epochs_in_time(per_epoch);
        }
        let epochs = self.state.progress.steps;
        self.state.optimiser.set_config(&training_config(&self.options, epochs * per_epoch));
        let seconds = self.split.validation as f64 / f64::from(self.pair.rate);
        eprintln!(
            "{seconds:.0} s of sound, {} weights, {epochs} epochs of {per_epoch} steps on {:?}",
            self.trained.iter().map(|name| self.state.weights.0[name].numel()).sum::<usize>(),
            self.device
        );
        let style = ProgressStyle::with_template("{elapsed_precise} {bar:32} {pos}/{len} ETA {eta} {msg}")?;
        let bar = ProgressBar::new(epochs * per_epoch).with_style(style);
        bar.set_position(self.state.progress.step * per_epoch);
        bar.reset_eta();
        let started = (Instant::now(), self.state.progress.step);
        while self.state.progress.step < epochs {
            let loss = self.epoch(&bar, per_epoch)?;
            let epoch = self.state.progress.step + 1;
            self.state.progress.step = epoch;
            let validation = self.validate()?;
            let is_best = self.state.progress.best.is_none_or(|(best, _)| validation < best);
            if is_best {
                self.state.progress.best = Some((validation, epoch * per_epoch));
                self.state.best = detached_copy(&self.state.weights);
            }
            self.state.save(&self.options.checkpoint)?;
            let pace = started.0.elapsed().as_secs_f64() / (epoch - started.1) as f64;
            bar.suspend(|| {
                eprintln!(
                    "epoch {epoch:>4}  loss {loss:.5}  validation ESR {validation:.5}{}  {pace:.1} s/epoch, {:.1} x real time  \
                     {:.0} s left",
                    if is_best { " (best)" } else { "" },
                    seconds / pace,
                    pace * (epochs - epoch) as f64
                );
            });
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// Trains for one epoch; returns the mean loss.
    fn epoch(&mut self, bar: &ProgressBar, per_epoch: u64) -> anyhow::Result<f64> {
        let epoch = self.state.progress.step;
        let recurrent = self.options.network.is_recurrent();
        let batches: Box<dyn Iterator<Item = WindowBatch>> = if recurrent {
            Box::new(self.windows.streams(epoch, self.device))
        } else {
            Box::new(self.windows.epoch(epoch, self.device))
        };
        let mut memory = RecurrentState::default();
        self.feature_matching.iter_mut().for_each(FeatureMatching::reset);
        let mut sum = 0.0;
        for (index, batch) in batches.enumerate() {
            if !recurrent {
                memory = RecurrentState::default();
                self.feature_matching.iter_mut().for_each(FeatureMatching::reset);
            }
            let weights = &self.effective_weights(&self.state.weights);
            let spectral = self.distance.as_ref().map(|distance| (distance, self.options.spectral));
            let (mut loss, features) = loss(&self.graph, weights, &batch, &mut memory, self.power, spectral);
            if let Some(feature_matching) = &mut self.feature_matching {
                loss += feature_matching.loss(weights, &[batch.dry.shallow_clone()], &features);
            }
            memory.detach();
            // The first chunk of a stream starts from silence unlike the recording, so it only warms up.
            if !(recurrent && index == 0 && per_epoch > 1) {
                loss.backward();
                let TrainingState { optimiser, weights, .. } = &mut self.state;
                optimiser.step(weights, epoch * per_epoch + index as u64);
            }
            let loss = loss.double_value(&[]);
            ensure!(loss.is_finite(), "training diverged; use a lower --learning-rate");
            sum += loss;
            bar.set_message(format!("loss {loss:.5}"));
            bar.inc(1);
        }
        Ok(sum / per_epoch as f64)
    }

    /// Returns the number of epochs that fit into the given minutes, at least one. Timing changes no weights.
    fn epochs_in_time(&mut self, per_epoch: u64) -> u64 {
        let Length::Minutes(minutes) = self.options.length else { return 1 };
        let recurrent = self.options.network.is_recurrent();
        let mut started = Instant::now();
        for step in 0..=TIMED_STEPS {
            if step == 1 {
                started = Instant::now();
            }
            let batch = if recurrent {
                self.windows.streams(0, self.device).next()
            } else {
                self.windows.epoch(0, self.device).next()
            };
            let Some(batch) = batch else { return 1 };
            let memory = &mut RecurrentState::default();
            loss(&self.graph, &self.state.weights, &batch, memory, self.power, None).0.backward();
            self.state.weights.0.values_mut().filter(|weight| weight.grad().defined()).for_each(Tensor::zero_grad);
        }
        let pace = started.elapsed().as_secs_f64() / f64::from(TIMED_STEPS);
        ((60.0 * minutes / (pace * per_epoch as f64)) as u64).max(1)
    }

    /// Returns the error-to-signal ratio on the validation part, as played by the engine.
    fn validate(&self) -> anyhow::Result<f64> {
        let weights = model_weights(&self.untrained, &self.effective_weights(&self.state.weights))?;
        let model = Model::new(self.untrained.header().clone(), weights)?;
        let Split { validation, held_out, .. } = self.split;
        // The receptive field of the first validation sample lies in the training part.
        let from = validation.saturating_sub(model.method("forward")?.warm_up);
        let sound = play(&model, &self.pair.dry[from..held_out])?;
        Ok(esr(&self.pair.wet[validation..held_out], &sound[validation - from..]))
    }

    /// Returns the best model so far, with the run's data on its card.
    ///
    /// # Errors
    /// Returns an error if its weights are not finite.
    pub fn model(&self) -> anyhow::Result<Model> {
        let (validation_loss, steps) = self.state.progress.best.unwrap_or((f64::MAX, 0));
        let mut header = self.untrained.header().clone();
        header.card.training = Some(Training {
            tool: format!("ondes-train {}", env!("CARGO_PKG_VERSION")),
            corpus: self.pair.name.clone(),
            corpus_seconds: (self.split.validation as f64 / f64::from(self.pair.rate)).round(),
            steps,
            seed: self.options.seed,
            validation_loss,
        });
        Ok(Model::new(header, model_weights(&self.untrained, &self.effective_weights(&self.state.best))?)?)
    }

    /// Returns the split of the pair.
    #[must_use]
    pub fn split(&self) -> &Split {
        &self.split
    }
}

/// Returns the optimiser's configuration.
fn training_config(options: &CaptureOptions, steps: u64) -> TrainingConfig {
    TrainingConfig {
        steps,
        learning_rate: options.learning_rate,
        warmup_steps: 20,
        weight_decay: 0.0,
        gradient_norm: 1.0,
        ..TrainingConfig::default()
    }
}

/// Returns the loss and the network's further outputs.
fn loss(
    graph: &TorchGraph,
    weights: &TorchWeights,
    batch: &WindowBatch,
    memory: &mut RecurrentState,
    power: f64,
    spectral: Option<(&SpectralDistance, f64)>,
) -> (Tensor, Vec<Tensor>) {
    let mut outputs = graph.run_with_state(weights, &[batch.dry.shallow_clone()], 0, memory);
    let sound = outputs.remove(0).squeeze_dim(1);
    let (samples, length) = (sound.size()[1], batch.wet.size()[1]);
    let sound = sound.narrow(1, samples - length, length);
    let error = (&sound - &batch.wet).square().mean(Kind::Float) / power;
    let loss = match spectral {
        Some((distance, share)) => {
            error + share * distance.between(&pre_emphasised(&sound), &pre_emphasised(&batch.wet))
        }
        None => error,
    };
    (loss, outputs)
}

fn pre_emphasised(sound: &Tensor) -> Tensor {
    let samples = sound.size()[1];
    sound.narrow(1, 1, samples - 1) - PRE_EMPHASIS * sound.narrow(1, 0, samples - 1)
}
