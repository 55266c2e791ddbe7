//! Training of captures, as a task of the trainer.
//!
//! The loss is the error-to-signal ratio, the squared error over the power of the training parts,
//! unless other terms are chosen; networks of several sizes have the mean of theirs. Convolutional
//! networks are trained on windows, each preceded by its receptive field; recurrent networks on
//! continuous streams, with gradients truncated at the start of each chunk.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use anyhow::{Context, ensure};
use ondes_engine::model::{Control, Method, Model};
use ondes_torch::{RecurrentState, TorchGraph, TorchWeights};
use tch::{Device, Tensor};

use super::knobs::{settings_or_defaults, with_knobs};
use super::measure::{esr, play_method};
use super::network_source::NetworkSource;
use super::pair::Pair;
use super::windows::{Split, TrainingPart, WindowBatch, WindowOrder, Windows};
use crate::data::{Loader, LoaderStats, StepRows};
use crate::loss::feature_matching::FeatureMatching;
use crate::loss::{Loss, LossWeights, WeightedLoss};
use crate::trainer::memory;
use crate::trainer::options::device;
use crate::trainer::task::{TaskInfo, first_non_finite, model_hash, model_weights};
use crate::trainer::training_config::TrainingConfig;
use crate::trainer::{Length, RunFiles, Task, TrainerOptions, Validation};

/// Validation sound for logs, seconds.
const LOGGED_S: f64 = 4.0;

/// Options of a [`CaptureTask`] and its run.
#[derive(Clone, Debug)]
pub struct CaptureOptions {
    /// Network to train.
    pub network: NetworkSource,
    /// Knobs of the device, in the order of the pairs' settings.
    pub knobs: Vec<Control>,
    /// Seed of initial weights and of the order of windows.
    pub seed: u64,
    /// Windows per step, or parallel streams of recurrent networks.
    pub batch: usize,
    /// Samples per window, or per chunk of the streams.
    pub window: usize,
    /// Threads that cut windows; 0 to start with one and add more while the trainer waits.
    pub workers: usize,
    /// Terms of the loss.
    pub loss: LossWeights,
    /// Settings of the trainer.
    pub trainer: TrainerOptions,
}

impl CaptureOptions {
    /// Returns the default options of a network. Chunks of streams are short: many small steps
    /// learn far more than a few large ones of equal cost, even though gradients then reach back
    /// only a few milliseconds.
    #[must_use]
    pub fn new(network: impl Into<NetworkSource>, files: RunFiles) -> Self {
        let network = network.into();
        let recurrent = network.is_recurrent();
        let learning_rate = if recurrent { 1e-2 } else { 4e-3 };
        Self {
            knobs: Vec::new(),
            seed: 0,
            batch: if recurrent { 64 } else { 16 },
            window: if recurrent { 256 } else { 8_192 },
            workers: 0,
            loss: LossWeights {
                esr: 1.0,
                ..LossWeights::default()
            },
            trainer: TrainerOptions::new(
                Length::Epochs(100),
                TrainingConfig {
                    warmup_steps: 20,
                    gradient_norm: 1.0,
                    // Steps of recurrent networks are many small operations, which threads only
                    // slow down.
                    threads: i32::from(recurrent),
                    ..TrainingConfig::plain(learning_rate)
                },
                files,
            ),
            network,
        }
    }
}

/// Training of a capture on pairs of signal and recording.
pub struct CaptureTask<'a> {
    options: CaptureOptions,
    pairs: &'a [Pair],
    windows: Arc<Windows>,
    loader: Loader<Windows>,
    /// Model at the start of the run.
    initial: Model,
    /// `forward` and other sizes that are trained with it, without their warm-up.
    methods: Vec<Method>,
    graphs: Vec<TorchGraph>,
    loss: WeightedLoss,
    feature_matching: Option<FeatureMatching>,
    further: BTreeMap<String, Tensor>,
    /// States of all streams before the next chunk, and of parts after the current one, by first
    /// row.
    memory: StreamState,
    /// First row of the batch in `memory`.
    memory_row: usize,
    pending: BTreeMap<usize, StreamState>,
}

/// States of the network and of a teacher between chunks.
#[derive(Clone, Default)]
struct StreamState {
    network: RecurrentState,
    teacher: RecurrentState,
}

impl StreamState {
    /// Returns the states of some streams.
    fn rows(&self, rows: &Range<usize>) -> Self {
        let part = |state: &RecurrentState| {
            let narrow = |tensor: &Tensor| {
                tensor
                    .narrow(1, rows.start as i64, rows.len() as i64)
                    .contiguous()
            };
            RecurrentState::from_tensors(
                state
                    .tensors()
                    .iter()
                    .map(|(name, tensor)| (name.clone(), narrow(tensor))),
            )
        };
        Self {
            network: part(&self.network),
            teacher: part(&self.teacher),
        }
    }

    /// Returns the number of streams; 0 without a state.
    fn row_count(&self) -> usize {
        self.network
            .tensors()
            .first()
            .map_or(0, |(_, tensor)| tensor.size()[1] as usize)
    }

    /// Joins the states of parts in their order.
    fn joined(parts: Vec<Self>) -> Self {
        let join = |states: Vec<RecurrentState>| {
            let mut all: BTreeMap<String, Vec<Tensor>> = BTreeMap::new();
            for (name, tensor) in states.iter().flat_map(RecurrentState::tensors) {
                all.entry(name).or_default().push(tensor);
            }
            RecurrentState::from_tensors(
                all.into_iter()
                    .map(|(name, tensors)| (name, Tensor::cat(&tensors, 1))),
            )
        };
        let (network, teacher) = parts
            .into_iter()
            .map(|part| (part.network, part.teacher))
            .unzip();
        Self {
            network: join(network),
            teacher: join(teacher),
        }
    }
}

/// Windows of a step.
pub struct CaptureBatch {
    windows: WindowBatch,
    first_row: usize,
    before: StreamState,
}

impl<'a> CaptureTask<'a> {
    /// Splits the pairs, which have one sample rate, and creates an untrained network, or starts
    /// from the weights of `base`.
    ///
    /// # Errors
    /// Returns an error if the device cannot be used, `base` has another shape or a knob cannot be
    /// one.
    pub fn new(
        options: CaptureOptions,
        pairs: &'a [Pair],
        base: Option<&Model>,
    ) -> anyhow::Result<Self> {
        let rate = pairs.first().context("there is no pair to train on")?.rate;
        let untrained = with_knobs(
            &options.network.initial(options.seed, rate)?,
            &options.knobs,
            options.seed,
        )?;
        let header = untrained.header().clone();
        let weights = match base {
            Some(base) => {
                ensure!(
                    base.header().methods == header.methods,
                    "the base model has another shape"
                );
                base.weights().clone()
            }
            None => untrained.weights().clone(),
        };
        let initial = Model::new(header, weights)?;
        let named = options
            .network
            .methods(&initial)
            .into_iter()
            .map(|name| Ok(initial.method(&name)?.clone()));
        let mut methods = named.collect::<anyhow::Result<Vec<Method>>>()?;
        let warm_up = methods
            .iter()
            .map(|method| method.warm_up)
            .max()
            .unwrap_or(0);
        let order = match options.network.is_recurrent() {
            true => WindowOrder::Streams,
            false => WindowOrder::Random(warm_up),
        };
        // The samples before a window are known, so they are not assumed to be silent.
        methods.iter_mut().for_each(|method| method.warm_up = 0);
        let graph = |method| Ok(TorchGraph::new(method, rate)?.with_end(options.window));
        let graphs = methods.iter().map(graph).collect::<anyhow::Result<_>>()?;
        let part = |pair: &'a Pair| {
            let end = split(pair).validation;
            let settings = settings_or_defaults(&initial, &pair.settings);
            TrainingPart {
                dry: &pair.dry[..end],
                wet: &pair.wet[..end],
                settings,
            }
        };
        let parts: Vec<_> = pairs.iter().map(part).collect();
        let recordings: Vec<&[f32]> = parts.iter().map(|part| part.wet).collect();
        let windows = Arc::new(Windows::new(
            &parts,
            order,
            options.window,
            options.batch,
            options.seed,
        ));
        Ok(Self {
            loader: loader(&options, &windows, windows.rows()),
            windows,
            loss: WeightedLoss::new(
                options.loss,
                rate,
                &recordings,
                device(&options.trainer.training.device)?,
            ),
            options,
            pairs,
            initial,
            methods,
            graphs,
            feature_matching: None,
            further: BTreeMap::new(),
            memory: StreamState::default(),
            memory_row: 0,
            pending: BTreeMap::new(),
        })
    }

    /// Adds a feature-matching loss.
    ///
    /// # Errors
    /// Returns an error if the network lacks a layer that the features need.
    pub fn set_feature_matching(
        &mut self,
        feature_matching: FeatureMatching,
    ) -> anyhow::Result<()> {
        self.graphs[0] = TorchGraph::new(
            &feature_matching.with_feature_outputs(&self.methods[0]),
            self.sample_rate(),
        )?;
        self.further = feature_matching
            .projections(self.options.seed, Device::Cpu)
            .into_iter()
            .collect();
        self.feature_matching = Some(feature_matching);
        Ok(())
    }

    /// Returns the loss of the sizes' outputs against the recording: the mean.
    fn loss_of(&self, outputs: &[Vec<Tensor>], wet: &Tensor) -> Loss {
        let share = 1.0 / outputs.len() as f64;
        let mut sum: Option<Loss> = None;
        for ports in outputs {
            let own = self.loss.between(&without_lead(&ports[0], wet), wet);
            sum = Some(match sum {
                None if outputs.len() == 1 => own,
                before => own.added_to(before, share),
            });
        }
        sum.expect("a capture has a size")
    }

    fn is_recurrent(&self) -> bool {
        self.options.network.is_recurrent()
    }

    fn steps(&self) -> u64 {
        self.windows.steps()
    }
}

impl Task for CaptureTask<'_> {
    type Batch = CaptureBatch;

    fn initial(&self) -> &Model {
        &self.initial
    }

    fn further_weights(&self) -> Option<&BTreeMap<String, Tensor>> {
        Some(&self.further)
    }

    fn trained(&self) -> Vec<String> {
        self.options
            .network
            .trained()
            .into_iter()
            .chain(self.further.keys().cloned())
            .collect()
    }

    fn info(&self) -> TaskInfo {
        let name = match self.pairs {
            [pair] => pair.name.clone(),
            pairs => format!("{} and {} more", pairs[0].name, pairs.len() - 1),
        };
        let samples: usize = self.pairs.iter().map(|pair| split(pair).validation).sum();
        TaskInfo {
            corpus: name.clone(),
            name,
            seconds: samples as f64 / f64::from(self.sample_rate()),
            seed: self.options.seed,
        }
    }

    fn epoch_steps(&self) -> Option<u64> {
        Some(self.steps())
    }

    fn rows(&self, step: u64) -> usize {
        self.loader.rows().count(step)
    }

    fn loader_stats(&self) -> Option<LoaderStats> {
        Some(self.loader.stats())
    }

    fn set_process(&mut self, rank: usize, size: usize) {
        self.loader.set_process(rank, size);
    }

    fn set_batch(&mut self, rows: usize) {
        self.options.batch = rows;
        self.windows = Arc::new(self.windows.with_batch(rows));
        let rows = StepRows {
            process: self.loader.rows().process,
            ..self.windows.rows()
        };
        self.loader = loader(&self.options, &self.windows, rows);
    }

    fn checkpoint_activations(&mut self) {
        for graph in &mut self.graphs {
            *graph = graph.clone().with_checkpoint(memory::checkpoint);
        }
    }

    fn batch(
        &mut self,
        step: u64,
        rows: Range<usize>,
        device: Device,
    ) -> anyhow::Result<CaptureBatch> {
        let first_row = rows.start;
        let before = if self.is_recurrent() && !step.is_multiple_of(self.steps()) {
            self.memory
                .rows(&(rows.start - self.memory_row..rows.end - self.memory_row))
        } else {
            StreamState::default()
        };
        let windows = self.loader.take(step, rows, device)?.expanded();
        Ok(CaptureBatch {
            windows,
            first_row,
            before,
        })
    }

    /// The first chunk of a stream starts from silence unlike the recording, so it only warms up.
    fn learns(&self, step: u64) -> bool {
        !(self.is_recurrent() && step.is_multiple_of(self.steps()) && self.steps() > 1)
    }

    fn loss(&mut self, weights: &TorchWeights, batch: &CaptureBatch) -> Loss {
        let CaptureBatch {
            windows,
            first_row,
            before,
        } = batch;
        let StreamState {
            mut network,
            mut teacher,
        } = before.clone();
        let run =
            |graph: &TorchGraph| graph.run_with_state(weights, &windows.inputs, 0, &mut network);
        let mut outputs: Vec<Vec<Tensor>> = self.graphs.iter().map(run).collect();
        let mut loss = self.loss_of(&outputs, &windows.wet);
        if let Some(features) = &self.feature_matching {
            let shown = outputs[0].split_off(1);
            loss.add(
                "features",
                features.loss(weights, &windows.inputs, &shown, &mut teacher),
            );
        }
        network.detach();
        // An optimiser may ask for the loss at other weights, in other parts; the stream goes on
        // from the first.
        let computed = self
            .pending
            .last_key_value()
            .map_or(0, |(row, state)| row + state.row_count());
        if *first_row >= computed {
            self.pending
                .entry(*first_row)
                .or_insert(StreamState { network, teacher });
        }
        loss
    }

    fn curvature_sample(
        &mut self,
        weights: &TorchWeights,
        batch: &CaptureBatch,
        seed: u64,
    ) -> Option<Tensor> {
        let WindowBatch { inputs, wet } = &batch.windows;
        let mut network = batch.before.network.clone();
        let share = 1.0 / self.graphs.len() as f64;
        let samples = self.graphs.iter().enumerate().filter_map(|(size, graph)| {
            let sound = graph
                .run_with_state(weights, inputs, 0, &mut network)
                .swap_remove(0);
            let sample = self
                .loss
                .curvature_sample(&without_lead(&sound, wet), seed ^ (size as u64) << 56)?;
            Some(sample * share.sqrt())
        });
        samples.reduce(|sum, sample| sum + sample)
    }

    fn restart_step(&mut self) {
        self.pending.clear();
    }

    fn finish_step(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        self.memory_row = pending.keys().next().copied().unwrap_or(0);
        self.memory = StreamState::joined(pending.into_values().collect());
    }

    fn state(&self) -> Vec<(String, Tensor)> {
        let states = [
            ("network", &self.memory.network),
            ("teacher", &self.memory.teacher),
        ];
        let named = |(whose, state): (&str, &RecurrentState)| {
            let tensors = state.tensors().into_iter();
            tensors
                .map(|(name, tensor)| (format!("0/{whose}/{name}"), tensor))
                .collect::<Vec<_>>()
        };
        if self.is_recurrent() {
            states.into_iter().flat_map(named).collect()
        } else {
            Vec::new()
        }
    }

    /// Older checkpoints have a state for each part of a batch, by its first row.
    fn set_state(&mut self, state: Vec<(String, Tensor)>) {
        let mut rows: BTreeMap<usize, [Vec<(String, Tensor)>; 2]> = BTreeMap::new();
        for (name, tensor) in state {
            let mut parts = name.splitn(3, '/');
            let row = parts.next().and_then(|row| row.parse().ok());
            if let (Some(row), Some(whose), Some(rest)) = (row, parts.next(), parts.next()) {
                rows.entry(row).or_default()[usize::from(whose == "teacher")]
                    .push((rest.to_owned(), tensor));
            }
        }
        let parts = rows.into_values().map(|states| {
            let [network, teacher] = states.map(RecurrentState::from_tensors);
            StreamState { network, teacher }
        });
        self.memory = StreamState::joined(parts.collect());
        self.memory_row = 0;
        self.pending.clear();
    }

    /// Returns the error-to-signal ratio on the validation parts, as played by the engine: the mean
    /// over pairs and sizes.
    fn validate(
        &mut self,
        weights: &TorchWeights,
        _device: Device,
        _rows: usize,
    ) -> anyhow::Result<Validation> {
        let model = Model::new(
            self.initial.header().clone(),
            model_weights(&self.initial, weights)?,
        )?;
        let mut errors = Vec::new();
        let mut sounds = None;
        for pair in self.pairs {
            let Split {
                validation,
                held_out,
                ..
            } = split(pair);
            let wet = &pair.wet[validation..held_out];
            for method in &self.methods {
                // The receptive field of the first validation sample lies in the training part.
                let from = validation.saturating_sub(model.method(&method.name)?.warm_up);
                let sound = play_method(
                    &model,
                    &method.name,
                    &pair.settings,
                    &pair.dry[from..held_out],
                )?;
                let sound = &sound[validation - from..];
                errors.push(esr(wet, sound));
                let logged = ((LOGGED_S * f64::from(pair.rate)) as usize).min(wet.len());
                sounds.get_or_insert_with(|| [wet[..logged].to_vec(), sound[..logged].to_vec()]);
            }
        }
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        Ok(Validation {
            loss: mean,
            measure: "validation ESR",
            sounds,
            note: None,
        })
    }

    fn first_non_finite(&self, weights: &TorchWeights, batch: &CaptureBatch) -> Option<String> {
        let first =
            |method| first_non_finite(method, self.sample_rate(), weights, &batch.windows.inputs);
        self.methods.iter().find_map(first)
    }

    fn identity(&self) -> Vec<(String, String)> {
        let CaptureOptions {
            network,
            knobs,
            seed,
            batch,
            window,
            loss,
            ..
        } = &self.options;
        let sound = |pair: &Pair| match &pair.settings[..] {
            [] => pair.hash.clone(),
            settings => format!("{} at {settings:?}", pair.hash),
        };
        let sound: Vec<String> = self.pairs.iter().map(sound).collect();
        let knobs = knobs.iter().map(|knob| {
            (
                format!("knob.{}", knob.name),
                format!("{:?}", (knob.min, knob.max)),
            )
        });
        let others = [
            ("network".to_owned(), network.identity()),
            ("seed".to_owned(), seed.to_string()),
            ("batch".to_owned(), batch.to_string()),
            ("window".to_owned(), window.to_string()),
            (
                "loss".to_owned(),
                format!("{:?}", loss.terms().collect::<Vec<_>>()),
            ),
            ("sound".to_owned(), sound.join(", ")),
            ("initial weights".to_owned(), model_hash(&self.initial)),
        ];
        knobs.chain(others).collect()
    }
}

/// Returns a loader of windows.
fn loader(options: &CaptureOptions, windows: &Arc<Windows>, rows: StepRows) -> Loader<Windows> {
    Loader::new(
        windows.clone(),
        rows,
        options.workers,
        memory::data_shares(options.trainer.training.memory)[1],
    )
}

/// Returns the end of a sound, `[batch, 1, samples]`, as long as the recording, `[batch, samples]`.
fn without_lead(sound: &Tensor, wet: &Tensor) -> Tensor {
    let (sound, length) = (sound.squeeze_dim(1), wet.size()[1]);
    sound.narrow(1, sound.size()[1] - length, length)
}

/// Returns the split of a pair.
fn split(pair: &Pair) -> Split {
    Split::new(pair.dry.len(), f64::from(pair.rate))
}
