//! Teaches a network what a device does.
//!
//! The loss is the mean squared error over the power of the training part, which is the error-to-signal ratio that is reported;
//! optionally with a spectral distance of both sounds with their treble raised (Wright & Välimäki, "Perceptual loss function for
//! neural modelling of audio systems", ICASSP 2020). What sees a stretch of the past learns from windows, each with that stretch
//! before it; what remembers learns from streams that go on, with gradients that end where a chunk begins.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use ondes_engine::model::{Method, Model, Training};
use ondes_torch::{Memory, TorchGraph, TorchWeights};
use tch::{Device, Kind, Tensor};

use super::measure::{esr, play};
use super::network::Network;
use super::pair::Pair;
use super::windows::{Batch, Split, Windows};
use crate::checkpoint::{Progress, State};
use crate::config::TrainingConfig;
use crate::distill::Guide;
use crate::loss::SpectralDistance;
use crate::optimiser::AdamW;
use crate::quantise::aware::Grids;
use crate::trainer::{copy, device, own_weights};

/// How much of the treble's raise a sample takes of the one before it: `y[t] = x[t] − 0.95 x[t − 1]`.
const PRE_EMPHASIS: f64 = 0.95;
/// Steps that are timed to find out how many fit into the minutes given, and those before them that are not.
const TIMED_STEPS: u32 = 3;

/// How long to train.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// Rounds through the training part.
    Epochs(u64),
    /// As many rounds as fit, at the pace of the first steps.
    Minutes(f64),
}

/// What to train and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The network.
    pub network: Network,
    /// How long.
    pub length: Length,
    /// Of initial weights and the order of windows.
    pub seed: u64,
    /// Windows per step, or streams side by side.
    pub batch: usize,
    /// Samples of a window, or of a chunk of the streams.
    pub window: usize,
    /// Highest learning rate.
    pub learning_rate: f64,
    /// Share of the spectral distance in the loss; 0 for none.
    pub spectral: f64,
    /// Threads of libtorch; 0 for as many as there are cores.
    pub threads: i32,
    /// `cpu`, `cuda` or `auto`.
    pub device: String,
    /// Where checkpoints are kept.
    pub checkpoint: PathBuf,
}

impl Options {
    /// The usual ones for a network. The chunks of streams are short: a chunk costs what its samples cost, and many small steps
    /// teach far more than a few large ones, even though the gradient then sees only some milliseconds of the past.
    #[must_use]
    pub fn usual(network: impl Into<Network>, checkpoint: PathBuf) -> Self {
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

    /// What the weights depend on besides the pair.
    fn identity(&self) -> String {
        let Self { network, length, seed, batch, window, learning_rate, spectral, .. } = self;
        let network = network.identity();
        format!("{network} {length:?} {seed} {batch} {window} {learning_rate} {spectral}")
    }
}

/// A capture in training.
pub struct Trainer<'a> {
    options: Options,
    pair: &'a Pair,
    split: Split,
    windows: Windows,
    device: Device,
    untrained: Model,
    /// Without a warm-up.
    method: Method,
    graph: TorchGraph,
    guide: Option<Guide>,
    grids: Option<Grids>,
    distance: Option<SpectralDistance>,
    /// Mean square of the training part.
    power: f64,
    trained: Vec<String>,
    state: State,
}

impl<'a> Trainer<'a> {
    /// Cuts the pair and makes an untrained network, or takes the weights of `base`.
    ///
    /// # Errors
    /// When the device cannot be used, or `base` is another network.
    pub fn new(options: Options, pair: &'a Pair, base: Option<&Model>) -> anyhow::Result<Self> {
        let device = device(&options.device)?;
        if options.threads > 0 {
            tch::set_num_threads(options.threads);
        }
        let untrained = options.network.initial(options.seed, pair.rate)?;
        let header = untrained.header();
        if let Some(base) = base {
            ensure!(base.header().methods == header.methods, "the base is a network of another shape");
        }
        let mut method = untrained.method("forward")?.clone();
        let lead = if options.network.is_recurrent() { 0 } else { method.warm_up };
        // What comes before a window is known, and need not be taken to be silence.
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
            state: State { progress: Progress { step: 0, steps, best: None, identity }, weights, best, optimiser },
            options,
            pair,
            split,
            windows,
            device,
            untrained,
            method,
            graph,
            guide: None,
            grids: None,
            power: power.max(1e-12),
        })
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

    /// Learns from what goes on in a teacher, too.
    ///
    /// # Errors
    /// When the network does not show what is compared.
    pub fn follow(&mut self, guide: Guide) -> anyhow::Result<()> {
        self.graph = TorchGraph::new(&guide.showing(&self.method), self.untrained.header().sample_rate)?;
        for (name, matrix) in guide.matrices(self.options.seed, self.device) {
            self.trained.push(name.clone());
            self.state.best.0.insert(name.clone(), matrix.copy());
            self.state.weights.0.insert(name, matrix);
        }
        self.state.optimiser = AdamW::new(&self.state.weights, &training_config(&self.options, 0));
        self.guide = Some(guide);
        Ok(())
    }

    /// Goes on from the last checkpoint.
    ///
    /// # Errors
    /// When there is none or it belongs to another pair or other options.
    pub fn resume(&mut self) -> anyhow::Result<()> {
        self.state.load(&self.options.checkpoint, self.device)?;
        eprintln!("resumed after epoch {} of {}", self.state.progress.step, self.state.progress.steps);
        Ok(())
    }

    /// Steps of an epoch.
    fn steps_per_epoch(&self) -> u64 {
        if self.options.network.is_recurrent() { self.windows.chunks() } else { self.windows.batches() }
    }

    /// Trains to the last epoch; checkpoints after each.
    ///
    /// # Errors
    /// When a checkpoint cannot be written, or what is learnt is no network any more.
    pub fn run(&mut self) -> anyhow::Result<()> {
        for name in &self.trained {
            let weight = self.state.weights.0.get_mut(name).with_context(|| format!("there is no weight {name:?}"))?;
            *weight = weight.set_requires_grad(true);
        }
        let per_epoch = self.steps_per_epoch();
        if self.state.progress.steps == 0 {
            self.state.progress.steps = self.epochs_that_fit(per_epoch);
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
            let kept = self.state.progress.best.is_none_or(|(best, _)| validation < best);
            if kept {
                self.state.progress.best = Some((validation, epoch * per_epoch));
                self.state.best = copy(&self.state.weights);
            }
            self.state.save(&self.options.checkpoint)?;
            let pace = started.0.elapsed().as_secs_f64() / (epoch - started.1) as f64;
            bar.suspend(|| {
                eprintln!(
                    "epoch {epoch:>4}  loss {loss:.5}  validation ESR {validation:.5}{}  {pace:.1} s/epoch, {:.1} x real time  \
                     {:.0} s left",
                    if kept { " (best)" } else { "" },
                    seconds / pace,
                    pace * (epochs - epoch) as f64
                );
            });
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// One round; gives the mean loss.
    fn epoch(&mut self, bar: &ProgressBar, per_epoch: u64) -> anyhow::Result<f64> {
        let epoch = self.state.progress.step;
        let recurrent = self.options.network.is_recurrent();
        let batches: Box<dyn Iterator<Item = Batch>> = if recurrent {
            Box::new(self.windows.streams(epoch, self.device))
        } else {
            Box::new(self.windows.epoch(epoch, self.device))
        };
        let mut memory = Memory::default();
        self.guide.iter_mut().for_each(Guide::forget);
        let mut sum = 0.0;
        for (index, batch) in batches.enumerate() {
            if !recurrent {
                memory = Memory::default();
                self.guide.iter_mut().for_each(Guide::forget);
            }
            let weights = &self.played(&self.state.weights);
            let spectral = self.distance.as_ref().map(|distance| (distance, self.options.spectral));
            let (mut loss, features) = loss(&self.graph, weights, &batch, &mut memory, self.power, spectral);
            if let Some(guide) = &mut self.guide {
                loss += guide.loss(weights, &[batch.dry.shallow_clone()], &features);
            }
            memory.detach();
            // The first chunk of a stream starts from silence where there was sound: it only warms up.
            if !(recurrent && index == 0 && per_epoch > 1) {
                loss.backward();
                let State { optimiser, weights, .. } = &mut self.state;
                optimiser.step(weights, epoch * per_epoch + index as u64);
            }
            let loss = loss.double_value(&[]);
            ensure!(loss.is_finite(), "training has gone astray: try a lower --learning-rate");
            sum += loss;
            bar.set_message(format!("loss {loss:.5}"));
            bar.inc(1);
        }
        Ok(sum / per_epoch as f64)
    }

    /// How many epochs fit into the minutes given, one at the least. What is timed changes no weights.
    fn epochs_that_fit(&mut self, per_epoch: u64) -> u64 {
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
            let memory = &mut Memory::default();
            loss(&self.graph, &self.state.weights, &batch, memory, self.power, None).0.backward();
            self.state.weights.0.values_mut().filter(|weight| weight.grad().defined()).for_each(Tensor::zero_grad);
        }
        let pace = started.elapsed().as_secs_f64() / f64::from(TIMED_STEPS);
        ((60.0 * minutes / (pace * per_epoch as f64)) as u64).max(1)
    }

    /// The error-to-signal ratio on the validation part, as the engine plays it.
    fn validate(&self) -> anyhow::Result<f64> {
        let weights = own_weights(&self.untrained, &self.played(&self.state.weights))?;
        let model = Model::new(self.untrained.header().clone(), weights)?;
        let Split { validation, held_out, .. } = self.split;
        // What it still hears of the training part comes before.
        let from = validation.saturating_sub(model.method("forward")?.warm_up);
        let sound = play(&model, &self.pair.dry[from..held_out])?;
        Ok(esr(&self.pair.wet[validation..held_out], &sound[validation - from..]))
    }

    /// The best network so far, with its provenance in the card.
    ///
    /// # Errors
    /// When its weights are not finite.
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
        Ok(Model::new(header, own_weights(&self.untrained, &self.played(&self.state.best))?)?)
    }

    /// How the pair was split.
    #[must_use]
    pub fn split(&self) -> &Split {
        &self.split
    }
}

/// What the optimiser is told.
fn training_config(options: &Options, steps: u64) -> TrainingConfig {
    TrainingConfig {
        steps,
        learning_rate: options.learning_rate,
        warmup_steps: 20,
        weight_decay: 0.0,
        gradient_norm: 1.0,
        ..TrainingConfig::default()
    }
}

/// The loss, and what is shown besides the sound.
fn loss(
    graph: &TorchGraph,
    weights: &TorchWeights,
    batch: &Batch,
    memory: &mut Memory,
    power: f64,
    spectral: Option<(&SpectralDistance, f64)>,
) -> (Tensor, Vec<Tensor>) {
    let mut shown = graph.go_on(weights, &[batch.dry.shallow_clone()], 0, memory);
    let sound = shown.remove(0).squeeze_dim(1);
    let (samples, length) = (sound.size()[1], batch.wet.size()[1]);
    let sound = sound.narrow(1, samples - length, length);
    let error = (&sound - &batch.wet).square().mean(Kind::Float) / power;
    let loss = match spectral {
        Some((distance, share)) => error + share * distance.between(&brighter(&sound), &brighter(&batch.wet)),
        None => error,
    };
    (loss, shown)
}

fn brighter(sound: &Tensor) -> Tensor {
    let samples = sound.size()[1];
    sound.narrow(1, 1, samples - 1) - PRE_EMPHASIS * sound.narrow(1, 0, samples - 1)
}
