//! Training of priors, as a task of the trainer.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use anyhow::{Context, ensure};
use ondes_engine::Kernels;
use ondes_engine::executor::{ExecutorOptions, ExecutorSelection};
use ondes_engine::model::{Kind as ModelKind, Measure, Model, Port, file};
use ondes_kernels::FlushToZero;
use ondes_torch::{RecurrentState, TorchGraph, TorchWeights};
use tch::{Device, Kind, Tensor};

use super::calibration;
use super::conditions::{Condition, MeasuredCondition, bars};
use super::config::PriorConfig;
use super::latents::{BarMemory, CropSource, Crops, LatentStream, TrainingCrops, standardized};
use super::likelihood::{Mixture, linear_nats, memoryless_nats};
use super::names::{PRIOR, TEMPERATURE};
use super::{bar_memory, inspect, network};
use crate::data::{
    Augmentation, DataConfig, Dataset, FeatureRate, Loader, LoaderStats, RecordingsConfig,
    RowSource, StepRows, Subset, TensorGroup,
};
use crate::loss::Loss;
use crate::loss::feature_matching::FeatureMatching;
use crate::tasks::control::control;
use crate::trainer::guard::with_fewer_rows;
use crate::trainer::memory;
use crate::trainer::task::{TaskInfo, first_non_finite, model_hash};
use crate::trainer::{Task, Validation};

/// Name of the measure on cards.
pub const NATS: &str = "negative log-likelihood of a frame";
/// Name of the measure of drift on cards.
pub const DEVIATION: &str = "deviation of generated latents";
/// Length of what is generated to measure drift, seconds.
const GENERATED_S: f64 = 60.0;
/// Most crops that are validated; they are spread over the recordings.
const VALIDATION_CROPS: u64 = 64;
/// Outputs of the graph for the mixture; the features for a teacher follow.
const MIXTURE_OUTPUTS: usize = 3;
/// Crops that are validated at once.
const VALIDATION_ROWS: u64 = 8;

/// Training of a prior on the latents of recordings.
pub struct PriorTask {
    config: PriorConfig,
    dataset: Dataset,
    training: Arc<TrainingCrops>,
    loader: Loader<TrainingCrops>,
    validation: CropSource,
    /// Frames of the codec in a group.
    group: usize,
    /// Generator at the start of the run.
    initial: Model,
    graph: TorchGraph,
    /// Nats per frame of two baselines: a linear prediction, and a mixture without memory.
    baselines: [f64; 2],
    /// Feature matching with a larger generator, and its projections.
    features: Option<FeatureMatching>,
    further: BTreeMap<String, Tensor>,
}

impl PriorTask {
    /// Encodes the recordings, and makes an untrained generator or starts from a trained one.
    ///
    /// # Errors
    /// Returns an error if the configuration, the data, the codec or the trained generator cannot
    /// be used.
    pub fn new(config: PriorConfig) -> anyhow::Result<Self> {
        let path = config.from.as_ref().unwrap_or(&config.codec);
        let name = path.display().to_string();
        let named = || name.clone();
        let read = file::read(path)?;
        if config.from.is_some() {
            let known = calibration::uncalibrated(&read)
                .and_then(|known| inspect::with_min_p(&known, config.network.least))
                .and_then(|known| bar_memory::with_bar_memory(known, config.network.recall))
                .with_context(named)?;
            return Self::from_model(known, config, &name);
        }
        let codec = match read.header().kind {
            ModelKind::Generator => inspect::codec_of(&read).with_context(named)?,
            _ => read,
        };
        let rate = FeatureRate::from_encoder(&codec).with_context(named)?;
        let known = Condition::ALL;
        let dataset = dataset(&config, rate)?;
        let [training, validation] =
            streams(&codec, &dataset, &known, config.training.validation_share)?;
        let conditions = training.measured(&known)?;
        let index = |measured: &MeasuredCondition| {
            let index = known.iter().position(|known| *known == measured.condition);
            index.unwrap_or_default() as i64
        };
        let indices: Vec<i64> = conditions.iter().map(index).collect();
        let model = network::untrained(&config, &codec, &training.spreads()?, &conditions);
        let parts = [training, validation].map(|stream| stream.select_conditions(&indices));
        Self::from_streams(model.with_context(named)?, dataset, parts, config, &name)
    }

    /// Encodes the recordings, and starts from a generator whose knobs are not calibrated; `name`
    /// is for errors.
    ///
    /// # Errors
    /// As [`PriorTask::new`].
    pub fn from_model(initial: Model, config: PriorConfig, name: &str) -> anyhow::Result<Self> {
        let named = || name.to_owned();
        let rate = FeatureRate::from_encoder(&initial).with_context(named)?;
        let known = inspect::conditions(&initial).with_context(named)?;
        let dataset = dataset(&config, rate)?;
        let [training, validation] =
            streams(&initial, &dataset, &known, config.training.validation_share)?;
        inspect::ensure_styles(&initial, training.styles.len()).with_context(named)?;
        Self::from_streams(initial, dataset, [training, validation], config, name)
    }

    /// Creates the task of encoded recordings.
    fn from_streams(
        initial: Model,
        dataset: Dataset,
        [training, validation]: [LatentStream; 2],
        config: PriorConfig,
        name: &str,
    ) -> anyhow::Result<Self> {
        let named = || name.to_owned();
        let rate = FeatureRate::from_encoder(&initial).with_context(named)?;
        let graph = inspect::training_graph(&initial).with_context(named)?;
        let spreads = inspect::spreads(&initial).with_context(named)?;
        let group = graph.inputs[0].ratio / rate.hop;
        let length = rate.frames(config.training.clip_seconds) / group;
        let bars = inspect::conditions(&initial)?
            .iter()
            .position(|condition| *condition == Condition::Bars);
        let memory = BarMemory {
            bars: inspect::recalled_bars(&initial).with_context(named)?,
            condition: bars.unwrap_or_default() as i64,
        };
        let sizes = [group, length];
        let source =
            |stream: &LatentStream| CropSource::new(stream, &spreads, &memory, sizes, config.seed);
        let sources = || anyhow::Ok([source(&training)?, source(&validation)?]);
        let [training, validation] =
            sources().with_context(|| config.data.display().to_string())?;
        let components = inspect::components(initial.method(PRIOR)?)?;
        let (learnt, measured) = (training.all(), validation.all());
        let training = Arc::new(TrainingCrops {
            source: training,
            regularization: config.regularization,
        });
        let (rows, queue) = (
            StepRows::new(config.training.batch),
            memory::data_shares(config.training.memory)[1],
        );
        let loader = Loader::new(training.clone(), rows, config.loader.workers, queue);
        let baselines = [
            linear_nats(&learnt, &measured),
            memoryless_nats(&learnt, &measured, components),
        ];
        Ok(Self {
            graph: TorchGraph::new(&graph, rate.sample_rate)?,
            baselines: baselines.map(|nats| nats / group as f64),
            config,
            dataset,
            loader,
            training,
            validation,
            group,
            initial,
            features: None,
            further: BTreeMap::new(),
        })
    }

    /// Adds a feature-matching loss against a larger generator with the same inputs.
    ///
    /// # Errors
    /// Returns an error if the generators have other inputs.
    pub fn set_teacher(
        &mut self,
        teacher: &Model,
        share: f64,
        device: Device,
    ) -> anyhow::Result<()> {
        let [theirs, own] = [teacher, &self.initial].map(inspect::training_graph);
        let (theirs, own) = (theirs.context("the teacher")?, own?);
        ensure!(
            theirs.inputs == own.inputs,
            "teacher and student have other inputs: group, conditions and bars must be equal"
        );
        if let Some(features) = FeatureMatching::between(teacher, &theirs, &own, share, device)? {
            self.graph = TorchGraph::new(&features.with_feature_outputs(&own), self.sample_rate())?;
            self.further = features
                .projections(self.config.seed, Device::Cpu)
                .into_iter()
                .collect();
            self.features = Some(features);
        }
        Ok(())
    }

    /// Returns the inputs of the method [`PRIOR`] for rows of a step, in the order of its ports:
    /// the previous frames are those of the recordings, and the input is not used.
    ///
    /// # Errors
    /// Returns an error if the model has no prior.
    pub fn training_inputs(
        &self,
        step: u64,
        rows: Range<usize>,
        device: Device,
    ) -> anyhow::Result<Vec<Tensor>> {
        let crops = self.training.cut(step, rows)?.to_device(device);
        let known = inspect::training_graph(&self.initial)?;
        let prior = self.initial.method(PRIOR)?;
        let [batch, _, frames] = crops.inputs[0].size()[..] else {
            anyhow::bail!("crops have three dimensions")
        };
        let input = |(index, port): (usize, &Port)| {
            // The first is the previous frame, in both.
            let shown = if index == 0 {
                Some(0)
            } else {
                known.inputs.iter().position(|own| own.name == port.name)
            };
            let frames = frames * (prior.block / port.ratio) as i64;
            let value = if port.name == TEMPERATURE { 1.0 } else { 0.0 };
            match shown {
                Some(index) => crops.inputs[index].shallow_clone(),
                None => Tensor::full(
                    [batch, port.channels as i64, frames],
                    value,
                    (Kind::Float, device),
                ),
            }
        };
        Ok(prior.inputs.iter().enumerate().map(input).collect())
    }

    /// Returns the negative log-likelihood of crops, nats per frame of the codec.
    fn nats(&self, weights: &TorchWeights, crops: &Crops) -> Tensor {
        self.nats_of(self.graph.run(weights, &crops.inputs, 0), crops)
    }

    /// Returns the negative log-likelihood of crops under the outputs of the graph.
    fn nats_of(&self, outputs: Vec<Tensor>, crops: &Crops) -> Tensor {
        let mut outputs = outputs.into_iter();
        let mut next = || outputs.next().expect("the graph shows a mixture");
        let mixture = Mixture {
            logits: next(),
            means: next(),
            scales: next(),
        };
        mixture.nats(&crops.target).mean(Kind::Float) / self.group as f64
    }

    /// Returns the generator with calibrated knobs, and with its likelihood and its drift on the
    /// card.
    ///
    /// # Errors
    /// Returns an error if it cannot be run.
    pub fn finished(&self, model: &Model) -> anyhow::Result<Model> {
        let weights = TorchWeights::new(model.weights(), Device::Cpu);
        let (_, nats) = with_fewer_rows("the validation", VALIDATION_ROWS as usize, |rows| {
            Ok(tch::no_grad(|| {
                self.validation_nats(&weights, Device::Cpu, rows)
            }))
        })?;
        let round = |value: f64| (value * 1e4).round() / 1e4;
        let measure = |name: &str, unit: &str, value: f64, baseline: f64| Measure {
            name: name.into(),
            unit: unit.into(),
            value: round(value),
            baseline: Some(round(baseline)),
        };
        let latents = generated(model, GENERATED_S, self.config.seed)?;
        ensure!(
            latents.isfinite().all().int64_value(&[]) == 1,
            "the prior generates latents that are not finite"
        );
        let spreads = inspect::spreads(model)?;
        let latents = standardized(&latents, &spreads);
        let deviation = latents
            .std_dim(1, false, false)
            .mean(Kind::Float)
            .double_value(&[]);
        let mut header = model.header().clone();
        header.card.quality = vec![
            measure(NATS, "nats", nats, self.baselines[0]),
            measure(DEVIATION, "", deviation, 1.0),
        ];
        let model = model.with_header(header)?;
        calibration::calibrated(&model)
    }

    /// Returns some crops of the validation recordings.
    #[must_use]
    pub fn validation_crops(&self, crops: Range<u64>) -> Crops {
        self.validation.validation(crops)
    }

    /// Returns the nats per frame of the validation recordings, computing up to `rows` crops at
    /// once.
    fn validation_nats(&self, weights: &TorchWeights, device: Device, rows: usize) -> f64 {
        let all = self.validation.disjoint_crops();
        let count = all.min(VALIDATION_CROPS);
        let (mut sum, mut done) = (0.0, 0);
        while done < count {
            let end = (done + VALIDATION_ROWS.min(rows as u64)).min(count);
            let crops = self
                .validation
                .validation((done..end).map(|crop| crop * all / count));
            sum += self
                .nats(weights, &crops.to_device(device))
                .double_value(&[])
                * (end - done) as f64;
            done = end;
        }
        sum / count as f64
    }

    /// Returns the nats per frame of the validation recordings by two baselines: a linear
    /// prediction from the previous frame, and a mixture without memory.
    #[must_use]
    pub fn baselines(&self) -> [f64; 2] {
        self.baselines
    }
}

/// Opens the recordings.
fn dataset(config: &PriorConfig, rate: FeatureRate) -> anyhow::Result<Dataset> {
    Dataset::open(&DataConfig {
        folder: &config.data,
        held_out: None,
        cache: config
            .cache
            .clone()
            .unwrap_or_else(|| config.work.join("features")),
        rate,
        recordings: config.recordings,
        knobs: &BTreeMap::new(),
        augmentation: Augmentation::default(),
        memory: 0,
        validation_share: config.training.validation_share,
        frames: rate.frames(config.training.clip_seconds),
        seed: config.seed,
    })
}

/// Encodes the recordings for training and for validation. If there are too few recordings for
/// both, the end of their concatenation is for validation.
fn streams(
    codec: &Model,
    dataset: &Dataset,
    conditions: &[Condition],
    validation_share: f64,
) -> anyhow::Result<[LatentStream; 2]> {
    let [training, validation] =
        [Subset::Training, Subset::Validation].map(|subset| dataset.recordings(subset));
    let stream = LatentStream::new(codec, training, conditions)?;
    if training.indices == validation.indices {
        let [before, after] = stream.split(validation_share);
        // Without a share, a prior is validated on its training data.
        return Ok(if validation_share > 0.0 {
            [before, after]
        } else {
            [before, stream]
        });
    }
    Ok([stream, LatentStream::new(codec, validation, conditions)?])
}

/// Generates latents as the player does, with all controls at their defaults, `[latent, frame]`.
///
/// # Errors
/// Returns an error if the model has no prior that can be run.
pub fn generated(generator: &Model, seconds: f64, seed: u64) -> anyhow::Result<Tensor> {
    let method = generator.method(PRIOR)?;
    let blocks =
        (seconds * f64::from(generator.header().sample_rate) / method.block as f64).ceil() as usize;
    let options = ExecutorOptions {
        selection: ExecutorSelection::default(),
        kernels: Kernels::detect(),
        allow_fallback: false,
    };
    let mut executor = options.prepare(generator, method, 1, 1)?;
    let sample_rate = generator.header().sample_rate;
    let mut memory = ondes_engine::pipeline::BarMemory::new(method, sample_rate, 1)?;
    executor.seed(0, seed);
    let default = |name: &str| control(generator, name).map_or(0.0, |control| control.default);
    let tempo = f64::from(default(Condition::Bars.control()));
    let block_s = method.block as f64 / f64::from(sample_rate);
    let _flush = FlushToZero::on();
    let mut frames = Vec::new();
    for block in 0..blocks {
        executor.begin(&[0], 1);
        for (index, port) in method.inputs.iter().enumerate() {
            executor
                .input(index)
                .fill(if port.name == Condition::Bars.name() {
                    bars(block as f64 * block_s, tempo)
                } else {
                    default(&port.name)
                });
        }
        memory.begin_block(&mut *executor, &[0]);
        executor.run();
        memory.end_block(&*executor, &[0]);
        frames.extend_from_slice(executor.output(0));
    }
    let latents = method.outputs[0].channels as i64;
    Ok(Tensor::from_slice(&frames)
        .view([-1, latents])
        .transpose(0, 1)
        .contiguous())
}

impl Task for PriorTask {
    type Batch = Crops;

    fn initial(&self) -> &Model {
        &self.initial
    }

    fn further_weights(&self) -> Option<&BTreeMap<String, Tensor>> {
        Some(&self.further)
    }

    fn trained(&self) -> Vec<String> {
        let weights = self
            .initial
            .weights()
            .iter()
            .map(|(name, _)| name.to_owned());
        weights
            .filter(|name| inspect::is_learnt(name))
            .chain(self.further.keys().cloned())
            .collect()
    }

    fn info(&self) -> TaskInfo {
        let (config, seconds) = (&self.config, self.dataset.seconds());
        TaskInfo::from_recordings(&config.name, &config.data, seconds, config.seed)
    }

    fn rows(&self, _step: u64) -> usize {
        self.config.training.batch
    }

    fn loader_stats(&self) -> Option<LoaderStats> {
        Some(self.loader.stats())
    }

    fn set_process(&mut self, rank: usize, size: usize) {
        self.loader.set_process(rank, size);
    }

    fn set_batch(&mut self, rows: usize) {
        self.config.training.batch = rows;
        self.loader.set_batch(rows);
    }

    fn checkpoint_activations(&mut self) {
        self.graph = self.graph.clone().with_checkpoint(memory::checkpoint);
    }

    fn batch(&mut self, step: u64, rows: Range<usize>, device: Device) -> anyhow::Result<Crops> {
        self.loader.take(step, rows, device)
    }

    fn loss(&mut self, weights: &TorchWeights, batch: &Crops) -> Loss {
        let mut outputs = self.graph.run(weights, &batch.inputs, 0);
        let shown = outputs.split_off(MIXTURE_OUTPUTS);
        let nats = self.nats_of(outputs, batch);
        let mut loss = Loss {
            terms: vec![("nats", nats.shallow_clone())],
            total: nats,
        };
        if let Some(features) = &self.features {
            loss.add(
                "features",
                features.loss(
                    weights,
                    &batch.inputs,
                    &shown,
                    &mut RecurrentState::default(),
                ),
            );
        }
        loss
    }

    fn validation_rows(&self) -> usize {
        VALIDATION_ROWS as usize
    }

    fn validate(
        &mut self,
        weights: &TorchWeights,
        device: Device,
        rows: usize,
    ) -> anyhow::Result<Validation> {
        let loss = self.validation_nats(weights, device, rows);
        ensure!(
            loss.is_finite(),
            "the prior computes a likelihood that is not finite"
        );
        let [linear, memoryless] = self.baselines;
        let note = format!("nats a frame; linear {linear:.2}, without memory {memoryless:.2}");
        Ok(Validation {
            loss,
            measure: "validation",
            sounds: None,
            note: Some(note),
        })
    }

    fn first_non_finite(&self, weights: &TorchWeights, batch: &Crops) -> Option<String> {
        let method = inspect::training_graph(&self.initial).ok()?;
        first_non_finite(&method, self.sample_rate(), weights, &batch.inputs)
    }

    fn identity(&self) -> Vec<(String, String)> {
        let PriorConfig {
            seed,
            training,
            recordings,
            regularization,
            ..
        } = &self.config;
        let text =
            |name: &str, value: &dyn std::fmt::Debug| (name.to_owned(), format!("{value:?}"));
        let RecordingsConfig {
            high_pass,
            match_levels,
            held_out_pitch,
            ..
        } = recordings;
        let mut identity = vec![
            text("seed", seed),
            ("initial weights".to_owned(), model_hash(&self.initial)),
            ("data".to_owned(), self.dataset.hash()),
            text("training.batch", &training.batch),
            text("training.clip_seconds", &training.clip_seconds),
            text("training.validation_share", &training.validation_share),
            // As before there were folds.
            (
                "recordings".to_owned(),
                format!(
                    "RecordingsConfig {{ high_pass: {high_pass:?}, match_levels: {match_levels:?}, held_out_pitch: \
                     {held_out_pitch:?} }}"
                ),
            ),
            text("regularization", regularization),
        ];
        identity.extend(recordings.fold_identity());
        identity.extend(
            self.features
                .as_ref()
                .map(|_| text("teacher", &self.further.keys().collect::<Vec<_>>())),
        );
        identity
    }
}
