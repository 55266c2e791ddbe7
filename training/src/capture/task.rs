//! Training of captures, as a task of the trainer.
//!
//! The loss is the error-to-signal ratio, the squared error over the power of the training part, unless other terms are
//! chosen. Convolutional networks are trained on windows, each preceded by its receptive field; recurrent networks on
//! continuous streams, with gradients truncated at the start of each chunk.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::ensure;
use ondes_engine::model::{Method, Model, Training};
use ondes_torch::{RecurrentState, TorchGraph, TorchWeights};
use tch::{Device, Tensor};

use super::measure::{esr, play};
use super::network_source::NetworkSource;
use super::pair::Pair;
use super::windows::{Split, WindowBatch, Windows};
use crate::feature_matching::FeatureMatching;
use crate::loss::{Loss, LossWeights, WeightedLoss};
use crate::trainer::options::device;
use crate::trainer::task::{first_non_finite, model_hash, model_weights};
use crate::trainer::{Clip, Length, Phase, RunFiles, Task, TrainerOptions, Validation};

/// Validation sound for logs, seconds.
const LOGGED_S: f64 = 4.0;

/// Options of a [`CaptureTask`] and its run.
#[derive(Clone, Debug)]
pub struct CaptureOptions {
    /// Network to train.
    pub network: NetworkSource,
    /// Seed of initial weights and of the order of windows.
    pub seed: u64,
    /// Windows per step, or parallel streams of recurrent networks.
    pub batch: usize,
    /// Samples per window, or per chunk of the streams.
    pub window: usize,
    /// Terms of the loss.
    pub loss: LossWeights,
    /// Settings of the trainer.
    pub trainer: TrainerOptions,
}

impl CaptureOptions {
    /// Returns the default options of a network. Chunks of streams are short: many small steps learn far more than a
    /// few large ones of equal cost, even though gradients then reach back only a few milliseconds.
    #[must_use]
    pub fn new(network: impl Into<NetworkSource>, files: RunFiles) -> Self {
        let network = network.into();
        let recurrent = network.is_recurrent();
        let learning_rate = if recurrent { 1e-2 } else { 4e-3 };
        Self {
            seed: 0,
            batch: if recurrent { 64 } else { 16 },
            window: if recurrent { 256 } else { 8_192 },
            loss: LossWeights { esr: 1.0, ..LossWeights::default() },
            trainer: TrainerOptions {
                warmup_steps: 20,
                clip: Clip { norm: 1.0, value: 0.0 },
                // Steps of recurrent networks are many small operations, which threads only slow down.
                threads: i32::from(recurrent),
                ..TrainerOptions::new(Length::Epochs(100), learning_rate, files)
            },
            network,
        }
    }
}

/// A network that learns to sound like a device.
pub struct CaptureTask<'a> {
    options: CaptureOptions,
    pair: &'a Pair,
    split: Split,
    windows: Windows,
    /// Model at the start of the run.
    initial: Model,
    /// `forward` without its warm-up.
    method: Method,
    graph: TorchGraph,
    loss: WeightedLoss,
    feature_matching: Option<FeatureMatching>,
    further: BTreeMap<String, Tensor>,
    /// Windows of the current epoch, with its number.
    starts: (u64, Vec<usize>),
    /// States before the next chunk, and after the current one, by first row.
    memory: BTreeMap<usize, StreamState>,
    pending: BTreeMap<usize, StreamState>,
}

/// States of the network and of a teacher between chunks.
#[derive(Clone, Default)]
struct StreamState {
    network: RecurrentState,
    teacher: RecurrentState,
}

/// Windows of a step.
pub struct CaptureBatch {
    windows: WindowBatch,
    first_row: usize,
    before: StreamState,
}

impl<'a> CaptureTask<'a> {
    /// Splits the pair and creates an untrained network, or starts from the weights of `base`.
    ///
    /// # Errors
    /// Returns an error if the device cannot be used or `base` has another shape.
    pub fn new(options: CaptureOptions, pair: &'a Pair, base: Option<&Model>) -> anyhow::Result<Self> {
        let untrained = options.network.initial(options.seed, pair.rate)?;
        let header = untrained.header().clone();
        let weights = match base {
            Some(base) => {
                ensure!(base.header().methods == header.methods, "the base model has another shape");
                base.weights().clone()
            }
            None => untrained.weights().clone(),
        };
        let initial = Model::new(header, weights)?;
        let mut method = initial.method("forward")?.clone();
        let lead = if options.network.is_recurrent() { 0 } else { method.warm_up };
        // The samples before a window are known, so they are not assumed to be silent.
        method.warm_up = 0;
        let split = Split::new(pair.dry.len(), f64::from(pair.rate));
        let (dry, wet) = (&pair.dry[..split.validation], &pair.wet[..split.validation]);
        Ok(Self {
            graph: TorchGraph::new(&method, pair.rate)?,
            windows: Windows::new(dry, wet, lead, options.window, options.batch, options.seed),
            loss: WeightedLoss::new(options.loss, pair.rate, &[wet], device(&options.trainer.device)?),
            options,
            pair,
            split,
            initial,
            method,
            feature_matching: None,
            further: BTreeMap::new(),
            starts: (u64::MAX, Vec::new()),
            memory: BTreeMap::new(),
            pending: BTreeMap::new(),
        })
    }

    /// Adds a feature-matching loss.
    ///
    /// # Errors
    /// Returns an error if the network lacks a layer that the features need.
    pub fn set_feature_matching(&mut self, feature_matching: FeatureMatching) -> anyhow::Result<()> {
        self.graph = TorchGraph::new(&feature_matching.with_feature_outputs(&self.method), self.pair.rate)?;
        self.further = feature_matching.projections(self.options.seed, Device::Cpu).into_iter().collect();
        self.feature_matching = Some(feature_matching);
        Ok(())
    }

    fn is_recurrent(&self) -> bool {
        self.options.network.is_recurrent()
    }

    fn steps(&self) -> u64 {
        if self.is_recurrent() { self.windows.chunks() } else { self.windows.batches() }
    }

    /// Returns the windows of a step.
    fn window_starts(&mut self, step: u64) -> &[usize] {
        let (epoch, index) = (step / self.steps(), (step % self.steps()) as usize);
        if self.starts.0 != epoch {
            self.starts = (epoch, self.windows.starts(epoch));
        }
        let from = index * self.options.batch;
        &self.starts.1[from..(from + self.options.batch).min(self.starts.1.len())]
    }
}

impl Task for CaptureTask<'_> {
    type Batch = CaptureBatch;

    fn initial(&self) -> &Model {
        &self.initial
    }

    fn further_weights(&self) -> BTreeMap<String, Tensor> {
        self.further.iter().map(|(name, weight)| (name.clone(), weight.shallow_clone())).collect()
    }

    fn phases(&self) -> Vec<Phase> {
        let trained = self.options.network.trained().into_iter().chain(self.further.keys().cloned()).collect();
        vec![Phase { name: "capture", trained }]
    }

    fn describe(&self) -> String {
        self.pair.name.clone()
    }

    fn seconds(&self) -> f64 {
        self.split.validation as f64 / f64::from(self.pair.rate)
    }

    fn sample_rate(&self) -> u32 {
        self.pair.rate
    }

    fn epoch_steps(&self) -> Option<u64> {
        Some(self.steps())
    }

    fn rows(&self, step: u64) -> usize {
        if self.is_recurrent() {
            return self.options.batch;
        }
        let from = (step % self.steps()) as usize * self.options.batch;
        self.options.batch.min(self.windows.count() - from.min(self.windows.count())).max(1)
    }

    fn batch(&mut self, step: u64, rows: Range<usize>, device: Device) -> CaptureBatch {
        let first_row = rows.start;
        let (epoch, chunk) = (step / self.steps(), step % self.steps());
        if self.is_recurrent() {
            let before = if chunk == 0 { None } else { self.memory.get(&first_row) };
            let before = before.cloned().unwrap_or_default();
            return CaptureBatch { windows: self.windows.chunk(epoch, chunk, rows, device), first_row, before };
        }
        let starts = self.window_starts(step)[rows].to_vec();
        CaptureBatch { windows: self.windows.cut(&starts, device), first_row, before: StreamState::default() }
    }

    /// The first chunk of a stream starts from silence unlike the recording, so it only warms up.
    fn learns(&self, step: u64) -> bool {
        !(self.is_recurrent() && step.is_multiple_of(self.steps()) && self.steps() > 1)
    }

    fn loss(&mut self, _phase: usize, weights: &TorchWeights, batch: &CaptureBatch, _step: u64) -> Loss {
        let CaptureBatch { windows, first_row, before } = batch;
        let StreamState { mut network, mut teacher } = before.clone();
        let input = [windows.dry.shallow_clone()];
        let mut outputs = self.graph.run_with_state(weights, &input, 0, &mut network);
        let sound = outputs.remove(0).squeeze_dim(1);
        let (samples, length) = (sound.size()[1], windows.wet.size()[1]);
        let mut loss = self.loss.between(&sound.narrow(1, samples - length, length), &windows.wet);
        if let Some(features) = &self.feature_matching {
            loss.add("features", features.loss(weights, &input, &outputs, &mut teacher));
        }
        network.detach();
        // An optimiser may ask for the loss at other weights; the stream goes on from the first.
        self.pending.entry(*first_row).or_insert(StreamState { network, teacher });
        loss
    }

    fn finish_step(&mut self) {
        self.memory = std::mem::take(&mut self.pending);
    }

    fn state(&self) -> Vec<(String, Tensor)> {
        let named = |(row, state): (&usize, &StreamState)| {
            let states = [("network", state.network.tensors()), ("teacher", state.teacher.tensors())];
            let row = *row;
            states.into_iter().flat_map(move |(whose, tensors)| {
                tensors.into_iter().map(move |(name, tensor)| (format!("{row}/{whose}/{name}"), tensor))
            })
        };
        if self.is_recurrent() { self.memory.iter().flat_map(named).collect() } else { Vec::new() }
    }

    fn set_state(&mut self, state: Vec<(String, Tensor)>) {
        let mut rows: BTreeMap<usize, [Vec<(String, Tensor)>; 2]> = BTreeMap::new();
        for (name, tensor) in state {
            let mut parts = name.splitn(3, '/');
            let row = parts.next().and_then(|row| row.parse().ok());
            if let (Some(row), Some(whose), Some(rest)) = (row, parts.next(), parts.next()) {
                rows.entry(row).or_default()[usize::from(whose == "teacher")].push((rest.to_owned(), tensor));
            }
        }
        let states = rows.into_iter().map(|(row, states)| {
            let [network, teacher] = states.map(RecurrentState::from_tensors);
            (row, StreamState { network, teacher })
        });
        self.memory = states.collect();
        self.pending.clear();
    }

    /// Returns the error-to-signal ratio on the validation part, as played by the engine.
    fn validate(&mut self, weights: &TorchWeights, _device: Device) -> anyhow::Result<Validation> {
        let model = Model::new(self.initial.header().clone(), model_weights(&self.initial, weights)?)?;
        let Split { validation, held_out, .. } = self.split;
        // The receptive field of the first validation sample lies in the training part.
        let from = validation.saturating_sub(model.method("forward")?.warm_up);
        let sound = play(&model, &self.pair.dry[from..held_out])?;
        let (wet, sound) = (&self.pair.wet[validation..held_out], &sound[validation - from..]);
        let logged = ((LOGGED_S * f64::from(self.pair.rate)) as usize).min(wet.len());
        Ok(Validation {
            loss: esr(wet, sound),
            measure: "validation ESR",
            sounds: Some([wet[..logged].to_vec(), sound[..logged].to_vec()]),
        })
    }

    fn first_non_finite(&self, weights: &TorchWeights, batch: &CaptureBatch) -> Option<String> {
        first_non_finite(&self.method, self.pair.rate, weights, &[batch.windows.dry.shallow_clone()])
    }

    fn identity(&self) -> Vec<(String, String)> {
        let CaptureOptions { network, seed, batch, window, loss, .. } = &self.options;
        vec![
            ("network".to_owned(), network.identity()),
            ("seed".to_owned(), seed.to_string()),
            ("batch".to_owned(), batch.to_string()),
            ("window".to_owned(), window.to_string()),
            ("loss".to_owned(), format!("{:?}", loss.terms().collect::<Vec<_>>())),
            ("sound".to_owned(), self.pair.hash.clone()),
            ("initial weights".to_owned(), model_hash(&self.initial)),
        ]
    }

    fn card(&self, steps: u64, validation_loss: f64) -> Training {
        Training {
            tool: format!("ondes-train {}", env!("CARGO_PKG_VERSION")),
            corpus: self.pair.name.clone(),
            corpus_seconds: self.seconds().round(),
            steps,
            seed: self.options.seed,
            validation_loss,
        }
    }
}
