//! Training of codecs, as a task of the trainer.

use std::ops::Range;
use std::sync::Arc;

use anyhow::{Context, ensure};
use ondes_engine::model::{Model, Training, file};
use ondes_torch::{Noise, TorchGraph, TorchWeights};
use tch::{Device, Tensor};

use super::config::CodecConfig;
use super::filter_bank::FilterBank;
use super::loss::{BandedSound, CodecLoss, LatentDistribution};
use super::network::{self, DECODER_BANDS, FILTER_BANK};
use super::principal;
use crate::data::{Dataset, Loader, LoaderStats, Subset};
use crate::distributed::rows_of;
use crate::loss::Loss;
use crate::trainer::memory;
use crate::trainer::options::device;
use crate::trainer::task::{first_non_finite, model_hash};
use crate::trainer::{Phase, Task, Validation};

/// Batches per validation.
const VALIDATION_BATCHES: u64 = 6;

/// A codec that learns from recordings.
pub struct CodecTask {
    config: CodecConfig,
    dataset: Arc<Dataset>,
    loader: Loader,
    /// Index of this process, and number of processes.
    process: (usize, usize),
    /// Model at the start of the run, with the distribution of its latents.
    initial: Model,
    encoder: TorchGraph,
    decoder: TorchGraph,
    /// Delay of the decoded sound, samples.
    delay: i64,
    loss: CodecLoss,
}

/// Crops of a step.
pub struct CodecBatch {
    /// Sound, `[batch, 1, samples]`.
    sound: Tensor,
    noise: Noise,
}

impl CodecTask {
    /// Analyses the data, and makes an untrained codec or starts from a trained one.
    ///
    /// # Errors
    /// Returns an error if the configuration, the data, the trained codec or the device cannot be used.
    pub fn new(config: CodecConfig) -> anyhow::Result<Self> {
        let untrained = network::untrained(&config)?;
        let initial = match &config.from {
            None => untrained,
            Some(path) => principal::in_training(&file::read(path)?, &untrained)
                .with_context(|| format!("{}: cannot be trained further", path.display()))?,
        };
        let dataset = Arc::new(Dataset::open(&config.data())?);
        let rate = initial.header().sample_rate;
        let decode = network::showing(initial.method("decode")?, &[DECODER_BANDS, "out"])?;
        Ok(Self {
            loader: Loader::new(dataset.clone(), config.loader.workers),
            dataset,
            process: (0, 1),
            encoder: TorchGraph::new(&network::training_encoder(&initial)?, rate)?,
            decoder: TorchGraph::new(&decode, rate)?,
            delay: FilterBank { bands: config.network.bands }.delay() as i64,
            loss: CodecLoss::new(config.loss, device(&config.training.device)?),
            initial,
            config,
        })
    }

    /// Returns the dataset.
    #[must_use]
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// Encodes a batch: its bands, its latents, and noise of their shape.
    fn encoded(&self, weights: &TorchWeights, batch: &CodecBatch) -> (Tensor, LatentDistribution, Tensor) {
        let mut outputs = self.encoder.run(weights, &[batch.sound.shallow_clone()], batch.noise).into_iter();
        let mut next = || outputs.next().expect("the encoder shows three values");
        let (bands, encoded, noise) = (next(), next(), next());
        (bands, LatentDistribution::new(&encoded), noise)
    }

    /// Decodes latents; the sound is aligned with that of the batch by [`CodecTask::target`].
    fn decoded(&self, weights: &TorchWeights, latents: Tensor, noise: Noise) -> BandedSound {
        let mut outputs = self.decoder.run(weights, &[latents], noise);
        let sound = outputs.swap_remove(1).squeeze_dim(1);
        BandedSound { sound: sound.narrow(1, self.delay, sound.size()[1] - self.delay), bands: outputs.remove(0) }
    }

    /// Returns what the decoder should make.
    fn target(&self, batch: &CodecBatch, bands: Tensor) -> BandedSound {
        let sound = batch.sound.squeeze_dim(1);
        BandedSound { sound: sound.narrow(1, 0, sound.size()[1] - self.delay), bands: bands.detach() }
    }

    /// Draws crops of a subset.
    fn crops(&self, subset: Subset, step: u64, device: Device) -> anyhow::Result<CodecBatch> {
        let crops = self.dataset.batch(subset, step, 0..self.config.training.batch, device)?;
        Ok(CodecBatch { sound: crops.audio.unsqueeze(1), noise: step.into() })
    }

    /// Returns means of the latents of the training crops of some steps, `[latent, frame]`.
    ///
    /// # Errors
    /// Returns an error if the data cannot be read.
    pub fn latents(&self, weights: &TorchWeights, steps: Range<u64>, device: Device) -> anyhow::Result<Tensor> {
        let _no_grad = tch::no_grad_guard();
        let means = steps.map(|step| {
            let (_, latents, _) = self.encoded(weights, &self.crops(Subset::Training, step, device)?);
            anyhow::Ok(latents.mean.transpose(0, 1).flatten(1, 2))
        });
        Ok(Tensor::cat(&means.collect::<anyhow::Result<Vec<_>>>()?, 1))
    }
}

impl Task for CodecTask {
    type Batch = CodecBatch;

    fn initial(&self) -> &Model {
        &self.initial
    }

    fn phases(&self) -> Vec<Phase> {
        let weights = self.initial.weights().iter().map(|(name, _)| name.to_owned());
        let trained = weights.filter(|name| !name.starts_with(FILTER_BANK));
        vec![Phase { name: "codec", trained: trained.collect() }]
    }

    fn describe(&self) -> String {
        self.config.name.clone()
    }

    fn seconds(&self) -> f64 {
        self.dataset.seconds()
    }

    fn sample_rate(&self) -> u32 {
        self.initial.header().sample_rate
    }

    fn epoch_steps(&self) -> Option<u64> {
        None
    }

    fn rows(&self, _step: u64) -> usize {
        self.config.training.batch
    }

    fn loader_stats(&self) -> Option<LoaderStats> {
        Some(self.loader.stats())
    }

    fn set_process(&mut self, rank: usize, size: usize) {
        self.process = (rank, size);
    }

    fn set_batch(&mut self, rows: usize) {
        self.config.training.batch = rows;
    }

    fn checkpoint_activations(&mut self) {
        for graph in [&mut self.encoder, &mut self.decoder] {
            *graph = graph.clone().with_checkpoint(memory::checkpoint);
        }
    }

    fn batch(&mut self, step: u64, rows: Range<usize>, device: Device) -> anyhow::Result<CodecBatch> {
        let (rank, size) = self.process;
        let own = rows_of(rank, size, self.config.training.batch);
        let crops = self.loader.take(step, rows.clone(), own, device)?;
        let noise = Noise { seed: step, first_stream: rows.start as u64 };
        Ok(CodecBatch { sound: crops.audio.unsqueeze(1), noise })
    }

    fn loss(&mut self, _phase: usize, weights: &TorchWeights, batch: &CodecBatch, _step: u64) -> Loss {
        let (bands, latents, noise) = self.encoded(weights, batch);
        let decoded = self.decoded(weights, latents.drawn(&noise), batch.noise);
        self.loss.between(&decoded, &self.target(batch, bands), Some(&latents))
    }

    /// Returns the mean loss over fixed crops of the validation files, without that of the information.
    fn validate(&mut self, weights: &TorchWeights, device: Device) -> anyhow::Result<Validation> {
        let (mut sum, mut nats) = (0.0, Vec::new());
        let mut sounds = None;
        for step in 0..VALIDATION_BATCHES {
            let batch = self.crops(Subset::Validation, step, device)?;
            let (bands, latents, _) = self.encoded(weights, &batch);
            let decoded = self.decoded(weights, latents.mean.shallow_clone(), batch.noise);
            let target = self.target(&batch, bands);
            sum += self.loss.between(&decoded, &target, None).total.double_value(&[]);
            nats.push(latents.nats());
            if step == 0 {
                let first = |sound: &Tensor| Vec::<f32>::try_from(sound.get(0).view(-1).to_device(Device::Cpu));
                sounds = Some([first(&target.sound)?, first(&decoded.sound)?]);
            }
        }
        let nats = Vec::<f32>::try_from(
            (Tensor::stack(&nats, 0).mean_dim(0, false, tch::Kind::Float)).to_device(Device::Cpu),
        )?;
        let note =
            format!("{:.1} nats in {} latents", nats.iter().sum::<f32>(), carrying(&nats, self.config.loss.free_nats));
        let loss = sum / VALIDATION_BATCHES as f64;
        Ok(Validation { loss, measure: "validation", sounds, note: Some(note) })
    }

    fn first_non_finite(&self, weights: &TorchWeights, batch: &CodecBatch) -> Option<String> {
        let method = self.initial.method("forward").ok()?;
        first_non_finite(method, self.sample_rate(), weights, &[batch.sound.shallow_clone()])
    }

    fn identity(&self) -> Vec<(String, String)> {
        let CodecConfig { seed, network, training, recordings, augmentation, loss, .. } = &self.config;
        let text = |name: &str, value: &dyn std::fmt::Debug| (name.to_owned(), format!("{value:?}"));
        vec![
            text("network", network),
            text("seed", seed),
            ("initial weights".to_owned(), model_hash(&self.initial)),
            ("data".to_owned(), self.dataset.hash()),
            text("training.batch", &training.batch),
            text("recordings.match_levels", &recordings.match_levels),
            text("recordings.held_out_pitch", &recordings.held_out_pitch),
            text("augmentation.pitch", &augmentation.pitch),
            text("augmentation.gain", &augmentation.gain),
            text("training.clip_seconds", &training.clip_seconds),
            text("training.validation_share", &training.validation_share),
            text("loss", loss),
        ]
    }

    fn card(&self, steps: u64, validation_loss: f64) -> Training {
        let corpus = self.config.data.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Training {
            tool: format!("ondes-train {}", env!("CARGO_PKG_VERSION")),
            corpus,
            corpus_seconds: self.dataset.seconds().round(),
            steps,
            seed: self.config.seed,
            validation_loss,
        }
    }
}

/// Returns how many latents carry more than the information that is free.
fn carrying(nats: &[f32], free: f64) -> usize {
    nats.iter().filter(|nats| f64::from(**nats) > free + 0.05).count()
}

impl CodecTask {
    /// Returns the codec to play: latents in the order of their variance, without what only training needs.
    ///
    /// # Errors
    /// Returns an error if the data cannot be read, or the latents are not finite.
    pub fn finished(&self, model: &Model) -> anyhow::Result<Model> {
        let device = device(&self.config.training.device)?;
        let weights = TorchWeights::new(model.weights(), device);
        let latents = self.latents(&weights, 0..principal::BATCHES, device)?;
        ensure!(latents.isfinite().all().int64_value(&[]) == 1, "the latents are not finite");
        principal::finished(model, &latents)
    }
}
