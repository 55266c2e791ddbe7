//! Training of instruments, as a task of the trainer.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use ondes_engine::model::Model;
use ondes_torch::{Noise, RecurrentState, TorchGraph, TorchWeights};
use tch::{Device, Tensor};

use crate::data::{CropBatch, Dataset, Loader, LoaderStats, StepRows, Subset};
use crate::loss::{Loss, WeightedLoss};
use crate::tasks::instrument::config::Config;
use crate::tasks::instrument::network;
use crate::tasks::instrument::teacher::InstrumentTeacher;
use crate::trainer::memory;
use crate::trainer::options::device;
use crate::trainer::task::{TaskInfo, first_non_finite, model_hash, validation_parts};
use crate::trainer::{Task, Validation};

/// Share of a crop that only warms up: recurrent state and room start from silence, unlike the
/// recording.
const WARM_UP_SHARE: f64 = 0.15;
/// Batches per validation.
const VALIDATION_BATCHES: u64 = 6;

/// Training of an instrument on recordings.
pub struct InstrumentTask {
    config: Config,
    dataset: Arc<Dataset>,
    loader: Loader<Dataset>,
    /// Model at the start of the run.
    initial: Model,
    synth: TorchGraph,
    room: TorchGraph,
    loss: WeightedLoss,
    teacher: Option<InstrumentTeacher>,
    /// Projections of the teacher's features.
    further: BTreeMap<String, Tensor>,
}

/// Crops of a step.
pub struct InstrumentBatch {
    crops: CropBatch,
    noise: Noise,
}

impl InstrumentTask {
    /// Analyses the data and makes an untrained instrument.
    ///
    /// # Errors
    /// Returns an error if the configuration, the data or the device cannot be used.
    pub fn new(mut config: Config) -> anyhow::Result<Self> {
        config.fill()?;
        let untrained = network::untrained(&config)?;
        Self::from_model(untrained, config)
    }

    /// Analyses the data and starts from a model. Of the configuration's network, only sample rate
    /// and hop are used, and must equal the model's.
    ///
    /// # Errors
    /// As [`InstrumentTask::new`].
    pub fn from_model(initial: Model, mut config: Config) -> anyhow::Result<Self> {
        config.fill()?;
        let dataset = Arc::new(Dataset::open(&config.data())?);
        let (rows, workers) = (StepRows::new(config.training.batch), config.loader.workers);
        let loader = Loader::new(
            dataset.clone(),
            rows,
            workers,
            memory::data_shares(config.training.memory)[1],
        );
        let header = initial.header();
        let graph = |name: &str| {
            let graph = TorchGraph::new(initial.method(name)?, header.sample_rate);
            graph.map(|graph| graph.with_defaults(&header.controls))
        };
        let (synth, room) = (graph("synth")?, graph("room")?);
        let examples = dataset.examples()?;
        let reference: Vec<&[f32]> = examples.iter().map(Vec::as_slice).collect();
        let loss = WeightedLoss::new(
            config.loss(),
            header.sample_rate,
            &reference,
            device(&config.training.device)?,
        );
        Ok(Self {
            loss,
            config,
            dataset,
            loader,
            initial,
            synth,
            room,
            teacher: None,
            further: BTreeMap::new(),
        })
    }

    /// Returns the configuration, with absent settings filled.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the dataset.
    #[must_use]
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// Adds a teacher.
    ///
    /// # Errors
    /// Returns an error if the network lacks a layer that the teacher's features need.
    pub fn set_teacher(&mut self, teacher: InstrumentTeacher) -> anyhow::Result<()> {
        if let Some(features) = &teacher.features {
            let header = self.initial.header();
            let showing = features.with_feature_outputs(self.initial.method("synth")?);
            self.synth =
                TorchGraph::new(&showing, header.sample_rate)?.with_defaults(&header.controls);
            self.further = features
                .projections(self.config.seed, Device::Cpu)
                .into_iter()
                .collect();
        }
        self.teacher = Some(teacher);
        Ok(())
    }

    /// Returns a dry sound with the room added.
    fn with_room(&self, weights: &TorchWeights, dry: &Tensor, noise: impl Into<Noise>) -> Tensor {
        dry + self
            .room
            .run(weights, &[dry.shallow_clone()], noise)
            .remove(0)
    }

    /// Returns the loss of a dry sound, with the room added, against a target.
    fn loss_to(
        &self,
        weights: &TorchWeights,
        dry: &Tensor,
        target: &Tensor,
        noise: impl Into<Noise>,
    ) -> Loss {
        let wet = self.with_room(weights, dry, noise).squeeze_dim(1);
        self.loss
            .between(&after_warm_up(&wet), &after_warm_up(target))
    }
}

/// Returns a sound, `[batch, samples]`, without the part that warms up.
fn after_warm_up(sound: &Tensor) -> Tensor {
    let samples = sound.size()[1];
    let warm_up = (WARM_UP_SHARE * samples as f64) as i64;
    sound.narrow(1, warm_up, samples - warm_up)
}

impl Task for InstrumentTask {
    type Batch = InstrumentBatch;

    fn initial(&self) -> &Model {
        &self.initial
    }

    fn further_weights(&self) -> Option<&BTreeMap<String, Tensor>> {
        Some(&self.further)
    }

    fn trained(&self) -> Vec<String> {
        let own = self
            .initial
            .weights()
            .iter()
            .map(|(name, _)| name.to_owned());
        own.chain(self.further.keys().cloned()).collect()
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
        self.synth = self.synth.clone().with_checkpoint(memory::checkpoint);
    }

    /// Draws the crops of a step; with a teacher, every other batch is augmented and rendered by
    /// the teacher.
    fn batch(
        &mut self,
        step: u64,
        rows: Range<usize>,
        device: Device,
    ) -> anyhow::Result<InstrumentBatch> {
        let crops = self.loader.take(step, rows.clone(), device)?;
        let crops = match &self.teacher {
            Some(teacher) if step % 2 == 1 => teacher.augmented_batch(crops, step),
            _ => crops,
        };
        Ok(InstrumentBatch {
            crops,
            noise: Noise {
                seed: step,
                first_stream: rows.start as u64,
            },
        })
    }

    fn loss(&mut self, weights: &TorchWeights, batch: &InstrumentBatch) -> Loss {
        let InstrumentBatch { crops, noise } = batch;
        let inputs = crops.inputs(self.initial.header());
        let mut outputs = self.synth.run(weights, &inputs, *noise);
        let dry = outputs.remove(0);
        let mut loss = self.loss_to(weights, &dry, &crops.audio, *noise);
        if let Some(features) = self
            .teacher
            .as_ref()
            .and_then(|teacher| teacher.features.as_ref())
        {
            loss.add(
                "features",
                features.loss(weights, &inputs, &outputs, &mut RecurrentState::default()),
            );
        }
        loss
    }

    fn curvature_sample(
        &mut self,
        weights: &TorchWeights,
        batch: &InstrumentBatch,
        seed: u64,
    ) -> Option<Tensor> {
        let inputs = batch.crops.inputs(self.initial.header());
        let dry = self.synth.run(weights, &inputs, batch.noise).swap_remove(0);
        let wet = self.with_room(weights, &dry, batch.noise).squeeze_dim(1);
        self.loss.curvature_sample(&after_warm_up(&wet), seed)
    }

    fn validation_rows(&self) -> usize {
        self.config.training.batch
    }

    /// Returns the mean loss over fixed crops of the validation files.
    fn validate(
        &mut self,
        weights: &TorchWeights,
        device: Device,
        rows: usize,
    ) -> anyhow::Result<Validation> {
        let mut sum = 0.0;
        let mut sounds = None;
        for (step, rows, share) in
            validation_parts(VALIDATION_BATCHES, self.config.training.batch, rows)
        {
            let noise = Noise {
                seed: step,
                first_stream: rows.start as u64,
            };
            let crops = self.dataset.batch(Subset::Validation, step, rows, device)?;
            let dry = self
                .synth
                .run(weights, &crops.inputs(self.initial.header()), noise)
                .remove(0);
            sum += share
                * self
                    .loss_to(weights, &dry, &crops.audio, noise)
                    .total
                    .double_value(&[]);
            if sounds.is_none() {
                let wet = self.with_room(weights, &dry, noise);
                let first = |sound: &Tensor| {
                    Vec::<f32>::try_from(sound.get(0).view(-1).to_device(Device::Cpu))
                };
                sounds = Some([first(&crops.audio)?, first(&wet)?]);
            }
        }
        Ok(Validation {
            loss: sum / VALIDATION_BATCHES as f64,
            measure: "validation",
            sounds,
            note: None,
        })
    }

    fn first_non_finite(&self, weights: &TorchWeights, batch: &InstrumentBatch) -> Option<String> {
        let method = self.initial.method("synth").ok()?;
        first_non_finite(
            method,
            self.sample_rate(),
            weights,
            &batch.crops.inputs(self.initial.header()),
        )
    }

    fn identity(&self) -> Vec<(String, String)> {
        let Config {
            seed,
            network,
            training,
            ..
        } = &self.config;
        let text =
            |name: &str, value: &dyn std::fmt::Debug| (name.to_owned(), format!("{value:?}"));
        let network = toml::Table::try_from(network).unwrap_or_default();
        let mut identity: Vec<_> = network
            .iter()
            .map(|(name, value)| (format!("network.{name}"), value.to_string()))
            .collect();
        identity.extend([
            text("seed", seed),
            ("initial weights".to_owned(), model_hash(&self.initial)),
            ("data".to_owned(), self.dataset.hash()),
            text("training.batch", &training.batch),
            text(
                "recordings.held_out_pitch",
                &self.config.recordings.held_out_pitch,
            ),
            ("knob".to_owned(), format!("{:?}", self.config.knob)),
            text("augmentation.pitch", &self.config.augmentation.pitch()),
            text("augmentation.gain", &self.config.augmentation.gain()),
            text(
                "recordings.match_levels",
                &self.config.recordings.match_levels(),
            ),
            text("training.clip_seconds", &training.clip_seconds),
            text("training.validation_share", &training.validation_share),
            (
                "loss".to_owned(),
                format!("{:?}", self.config.loss().terms().collect::<Vec<_>>()),
            ),
            text(
                "teacher",
                &self
                    .teacher
                    .as_ref()
                    .map(|_| self.further.keys().collect::<Vec<_>>()),
            ),
        ]);
        identity.extend(self.config.recordings.fold_identity());
        identity
    }
}
