//! Training of codecs, as a task of the trainer.

use std::ops::Range;
use std::sync::Arc;

use anyhow::{Context, ensure};
use ondes_engine::dsp::level::db_to_amplitude_f64;
use ondes_engine::model::{Model, file};
use ondes_torch::{Noise, TorchGraph, TorchWeights};
use tch::{Device, Tensor};

use super::config::CodecConfig;
use super::filter_bank::FilterBank;
use super::loss::{CodecLoss, LatentDistribution};
use super::network::{self, FIXED};
use super::principal;
use crate::data::{CropBatch, Dataset, Loader, LoaderStats, StepRows, Subset};
use crate::loss::Loss;
use crate::trainer::guard::with_fewer_rows;
use crate::trainer::memory;
use crate::trainer::options::device;
use crate::trainer::task::{TaskInfo, first_non_finite, model_hash, validation_parts};
use crate::trainer::{Task, Validation};

/// A-weighted loudness of the loudest recordings in training. A quiet recording would teach a codec
/// for quiet sounds.
const LOUDEST_DB: f64 = -18.0;
/// Batches per validation.
const VALIDATION_BATCHES: u64 = 6;
/// Crops that the variance of a teacher's latents is measured on, and its least value.
const TEACHER_ROWS: usize = 32;
const MIN_VARIANCE: f64 = 1e-6;

/// Training of a codec on recordings.
pub struct CodecTask {
    config: CodecConfig,
    dataset: Arc<Dataset>,
    loader: Loader<Dataset>,
    /// Model at the start of the run, with the distribution of its latents.
    initial: Model,
    encoder: TorchGraph,
    decoder: TorchGraph,
    /// Gain of all recordings, dB, that makes the loudest ones as loud as most music.
    gain: f64,
    /// Delay of the decoded sound, samples.
    delay: i64,
    loss: CodecLoss,
    teacher: Option<CodecTeacher>,
}

/// Larger codec whose latents are learnt.
struct CodecTeacher {
    graph: TorchGraph,
    weights: TorchWeights,
    /// Variance of each latent, `[1, latent, 1]`.
    variance: Tensor,
    /// Number of latents without the pitch.
    latents: i64,
    /// Weight of the loss.
    share: f64,
}

impl CodecTeacher {
    /// Returns the latents of a batch, without the pitch, `[batch, latent, frame]`.
    fn latents(&self, batch: &CodecBatch) -> Tensor {
        let inputs = [batch.sound.shallow_clone()];
        let all = tch::no_grad(|| {
            self.graph
                .run(&self.weights, &inputs, batch.noise)
                .swap_remove(0)
        });
        all.narrow(1, 0, self.latents)
    }

    /// Returns the mean squared distance of a student's latents, relative to the variance of the
    /// teacher's.
    fn distance(&self, batch: &CodecBatch, student: &Tensor) -> Tensor {
        let squares = (student - self.latents(batch)).square() / &self.variance;
        squares.mean(tch::Kind::Float) * self.share
    }
}

/// Crops of a step.
pub struct CodecBatch {
    /// Sound, `[batch, 1, samples]`.
    sound: Tensor,
    /// Pitch, semitones, `[batch, 1, frame]`.
    pitch: Tensor,
    noise: Noise,
}

impl CodecBatch {
    /// Returns sound and pitch.
    #[cfg(test)]
    pub(super) fn tensors(&self) -> [Tensor; 2] {
        [&self.sound, &self.pitch].map(Tensor::shallow_clone)
    }

    /// Turns crops up by a gain, dB.
    fn new(crops: CropBatch, gain: f64, noise: Noise) -> Self {
        Self {
            sound: crops.audio.unsqueeze(1) * db_to_amplitude_f64(gain),
            pitch: crops.pitch,
            noise,
        }
    }
}

/// Output of the encoder in training.
struct Encoded {
    latents: LatentDistribution,
    /// Normal noise of the shape of the latents.
    noise: Tensor,
}

impl CodecTask {
    /// Analyses the data, and makes an untrained codec or starts from a trained one.
    ///
    /// # Errors
    /// Returns an error if the configuration, the data, the trained codec or the device cannot be
    /// used.
    pub fn new(config: CodecConfig) -> anyhow::Result<Self> {
        let untrained = network::untrained(&config)?;
        let Some(path) = &config.from else {
            return Self::from_model(untrained, config);
        };
        let known = file::read(path)?;
        // A pruned codec has other sizes than any recipe makes.
        let is_own = network::sizes(&known).is_ok_and(|sizes| sizes == config.network);
        let initial = principal::in_training(&known, &untrained).or_else(|error| {
            if is_own {
                principal::with_variances(&known)
            } else {
                Err(error)
            }
        });
        let initial =
            initial.with_context(|| format!("{}: cannot be trained further", path.display()))?;
        Self::from_model(initial, config)
    }

    /// Analyses the data, and starts from a codec in training. Of the configuration's network,
    /// rates, bands and harmonics are used, and must be the codec's.
    ///
    /// # Errors
    /// As [`CodecTask::new`].
    pub fn from_model(initial: Model, config: CodecConfig) -> anyhow::Result<Self> {
        let dataset = Arc::new(Dataset::open(&config.data())?);
        let gain = LOUDEST_DB - f64::from(dataset.recordings(Subset::Training).loudest());
        let rate = initial.header().sample_rate;
        let batch = StepRows::new(config.training.batch);
        Ok(Self {
            loader: Loader::new(
                dataset.clone(),
                batch,
                config.loader.workers,
                memory::data_shares(config.training.memory)[1],
            ),
            encoder: TorchGraph::new(&network::training_encoder(&initial)?, rate)?,
            decoder: TorchGraph::new(initial.method("decode")?, rate)?,
            gain,
            delay: FilterBank {
                bands: config.network.bands,
            }
            .delay() as i64,
            loss: CodecLoss::new(
                config.loss,
                rate,
                &louder(dataset.examples()?, gain),
                device(&config.training.device)?,
            ),
            initial,
            dataset,
            teacher: None,
            config,
        })
    }

    /// Adds a teacher, whose latents are learnt.
    ///
    /// # Errors
    /// Returns an error if the teacher has other latents, or its latents cannot be computed.
    pub fn set_teacher(&mut self, teacher: &Model, share: f64) -> anyhow::Result<()> {
        let device = device(&self.config.training.device)?;
        let encode = teacher.method("encode").context("the teacher")?;
        let (theirs, own) = (
            &encode.outputs[0],
            &self.initial.method("encode")?.outputs[0],
        );
        let rates = (teacher.header().sample_rate, self.sample_rate());
        ensure!(
            (theirs.channels, theirs.ratio) == (own.channels, own.ratio) && rates.0 == rates.1,
            "the teacher has {} latents of {} samples at {} Hz, the student {} of {} at {} Hz; they must be equal",
            theirs.channels,
            theirs.ratio,
            rates.0,
            own.channels,
            own.ratio,
            rates.1
        );
        let graph = TorchGraph::new(encode, rates.0)?;
        let mut teacher = CodecTeacher {
            graph,
            weights: TorchWeights::new(teacher.weights(), device),
            variance: Tensor::ones([1], (tch::Kind::Float, device)),
            latents: own.channels as i64 - i64::from(self.config.network.harmonics > 0),
            share,
        };
        let crops = self.crops(Subset::Training, 0, 0..TEACHER_ROWS, device)?;
        let latents = teacher.latents(&crops);
        teacher.variance = latents
            .var_dim([0_i64, 2].as_slice(), true, true)
            .clamp_min(MIN_VARIANCE);
        self.teacher = Some(teacher);
        Ok(())
    }

    /// Returns sound as the network hears it, `[batch, 1, samples]`, of the training recordings.
    ///
    /// # Errors
    /// Returns an error if the data cannot be read.
    pub fn training_sound(
        &self,
        step: u64,
        rows: Range<usize>,
        device: Device,
    ) -> anyhow::Result<Tensor> {
        Ok(self.crops(Subset::Training, step, rows, device)?.sound)
    }

    /// Returns the dataset.
    #[must_use]
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    fn encoded(&self, weights: &TorchWeights, batch: &CodecBatch) -> Encoded {
        let mut outputs = self
            .encoder
            .run(weights, &[batch.sound.shallow_clone()], batch.noise)
            .into_iter();
        let distribution = outputs.next().expect("the encoder shows a distribution");
        let noise = outputs.next().expect("the encoder shows noise");
        Encoded {
            latents: LatentDistribution::new(&distribution),
            noise,
        }
    }

    /// Decodes latents of a batch, and the true pitch if the codec has harmonics, `[batch, samples]`;
    /// the sound is aligned with that of the batch by [`CodecTask::target`].
    fn decoded(&self, weights: &TorchWeights, latents: &Tensor, batch: &CodecBatch) -> Tensor {
        let latents = match self.config.network.harmonics {
            0 => latents.shallow_clone(),
            _ => Tensor::cat(&[latents, &network::octaves(&batch.pitch)], 1),
        };
        let sound = self
            .decoder
            .run(weights, &[latents], batch.noise)
            .swap_remove(0)
            .squeeze_dim(1);
        sound.narrow(1, self.delay, sound.size()[1] - self.delay)
    }

    /// Returns the target of the decoder, `[batch, samples]`.
    fn target(&self, batch: &CodecBatch) -> Tensor {
        let sound = batch.sound.squeeze_dim(1);
        sound.narrow(1, 0, sound.size()[1] - self.delay)
    }

    /// Draws rows of the crops of a subset.
    fn crops(
        &self,
        subset: Subset,
        step: u64,
        rows: Range<usize>,
        device: Device,
    ) -> anyhow::Result<CodecBatch> {
        let noise = Noise {
            seed: step,
            first_stream: rows.start as u64,
        };
        Ok(CodecBatch::new(
            self.dataset.batch(subset, step, rows, device)?,
            self.gain,
            noise,
        ))
    }

    /// Returns means of the latents of the training crops of some steps, `[latent, frame]`,
    /// computing up to `rows` crops at once.
    ///
    /// # Errors
    /// Returns an error if the data cannot be read.
    pub fn latents(
        &self,
        weights: &TorchWeights,
        steps: Range<u64>,
        device: Device,
        rows: usize,
    ) -> anyhow::Result<Tensor> {
        let _no_grad = tch::no_grad_guard();
        let parts = validation_parts(steps.end - steps.start, self.config.training.batch, rows);
        let means = parts.map(|(step, rows, _)| {
            let crops = self.crops(Subset::Training, steps.start + step, rows, device)?;
            let encoded = self.encoded(weights, &crops);
            anyhow::Ok(encoded.latents.mean.transpose(0, 1).flatten(1, 2))
        });
        Ok(Tensor::cat(&means.collect::<anyhow::Result<Vec<_>>>()?, 1))
    }
}

impl Task for CodecTask {
    type Batch = CodecBatch;

    fn initial(&self) -> &Model {
        &self.initial
    }

    fn trained(&self) -> Vec<String> {
        let weights = self
            .initial
            .weights()
            .iter()
            .map(|(name, _)| name.to_owned());
        let trained = weights.filter(|name| !FIXED.iter().any(|fixed| name.starts_with(fixed)));
        trained.collect()
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
        for graph in [&mut self.encoder, &mut self.decoder] {
            *graph = graph.clone().with_checkpoint(memory::checkpoint);
        }
    }

    fn batch(
        &mut self,
        step: u64,
        rows: Range<usize>,
        device: Device,
    ) -> anyhow::Result<CodecBatch> {
        let noise = Noise {
            seed: step,
            first_stream: rows.start as u64,
        };
        let crops = self.loader.take(step, rows, device)?;
        Ok(CodecBatch::new(crops, self.gain, noise))
    }

    fn loss(&mut self, weights: &TorchWeights, batch: &CodecBatch) -> Loss {
        let Encoded { latents, noise } = self.encoded(weights, batch);
        let decoded = self.decoded(weights, &latents.drawn(&noise), batch);
        let mut loss = self.loss.between(&decoded, &self.target(batch));
        self.loss.add_latents(&mut loss, &latents);
        if let Some(teacher) = &self.teacher {
            loss.add("teacher", teacher.distance(batch, &latents.mean));
        }
        loss
    }

    fn validation_rows(&self) -> usize {
        self.config.training.batch
    }

    /// Returns the mean loss over fixed crops of the validation files, without that of the
    /// information.
    fn validate(
        &mut self,
        weights: &TorchWeights,
        device: Device,
        rows: usize,
    ) -> anyhow::Result<Validation> {
        let (mut sum, mut nats) = (0.0, Vec::new());
        let mut sounds = None;
        for (step, rows, share) in
            validation_parts(VALIDATION_BATCHES, self.config.training.batch, rows)
        {
            let batch = self.crops(Subset::Validation, step, rows, device)?;
            let Encoded { latents, .. } = self.encoded(weights, &batch);
            let decoded = self.decoded(weights, &latents.mean, &batch);
            let target = self.target(&batch);
            sum += share * self.loss.between(&decoded, &target).total.double_value(&[]);
            nats.push(latents.nats());
            if sounds.is_none() {
                let first = |sound: &Tensor| {
                    Vec::<f32>::try_from(sound.get(0).view(-1).to_device(Device::Cpu))
                };
                sounds = Some([first(&target)?, first(&decoded)?]);
            }
        }
        let nats = Vec::<f32>::try_from(
            (Tensor::cat(&nats, 0).mean_dim(0, false, tch::Kind::Float)).to_device(Device::Cpu),
        )?;
        let note = format!(
            "{:.1} nats in {} latents",
            nats.iter().sum::<f32>(),
            carrying(&nats, self.config.loss.free_nats)
        );
        let loss = sum / VALIDATION_BATCHES as f64;
        Ok(Validation {
            loss,
            measure: "validation",
            sounds,
            note: Some(note),
        })
    }

    fn first_non_finite(&self, weights: &TorchWeights, batch: &CodecBatch) -> Option<String> {
        let method = self.initial.method("forward").ok()?;
        first_non_finite(
            method,
            self.sample_rate(),
            weights,
            &[batch.sound.shallow_clone()],
        )
    }

    fn identity(&self) -> Vec<(String, String)> {
        let CodecConfig {
            seed,
            network,
            training,
            recordings,
            augmentation,
            loss,
            ..
        } = &self.config;
        let text =
            |name: &str, value: &dyn std::fmt::Debug| (name.to_owned(), format!("{value:?}"));
        let mut identity = vec![
            text("network", network),
            text("seed", seed),
            ("initial weights".to_owned(), model_hash(&self.initial)),
            ("data".to_owned(), self.dataset.hash()),
            text("training.batch", &training.batch),
            text("recordings.match_levels", &recordings.match_levels()),
            text("recordings.held_out_pitch", &recordings.held_out_pitch),
            text("augmentation.pitch", &augmentation.pitch()),
            text("augmentation.gain", &augmentation.gain()),
            text("augmentation.equalizer", &augmentation.equalizer),
            text("augmentation.noise", &augmentation.noise),
            text("training.clip_seconds", &training.clip_seconds),
            text("training.validation_share", &training.validation_share),
            text("loss", loss),
        ];
        // Older checkpoints know no mixing, and go on without it.
        identity.extend(recordings.fold_identity());
        identity.extend(
            self.teacher
                .as_ref()
                .map(|teacher| text("teacher", &teacher.share)),
        );
        identity
            .extend((augmentation.mix > 0.0).then(|| text("augmentation.mix", &augmentation.mix)));
        identity
    }
}

/// Turns sounds up by a gain, dB.
fn louder(mut sounds: Vec<Vec<f32>>, gain: f64) -> Vec<Vec<f32>> {
    let factor = db_to_amplitude_f64(gain) as f32;
    sounds
        .iter_mut()
        .flatten()
        .for_each(|sample| *sample *= factor);
    sounds
}

/// Returns the number of latents with more information than the free nats.
fn carrying(nats: &[f32], free: f64) -> usize {
    nats.iter()
        .filter(|nats| f64::from(**nats) > free + 0.05)
        .count()
}

impl CodecTask {
    /// Returns the codec to play: latents in the order of their variance, without what only
    /// training needs.
    ///
    /// # Errors
    /// Returns an error if the data cannot be read, or the latents are not finite.
    pub fn finished(&self, model: &Model) -> anyhow::Result<Model> {
        let device = device(&self.config.training.device)?;
        let weights = TorchWeights::new(model.weights(), device);
        let (_, latents) = with_fewer_rows(
            "the order of the latents",
            self.config.training.batch,
            |rows| self.latents(&weights, 0..principal::BATCHES, device, rows),
        )?;
        ensure!(
            latents.isfinite().all().int64_value(&[]) == 1,
            "the latents are not finite"
        );
        principal::finished(model, &latents)
    }
}
