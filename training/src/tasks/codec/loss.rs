//! Loss of a codec: the distance of the sound in spectra and loudness, and the information in the
//! latents.

use tch::{Device, Kind, Tensor};

use super::config::CodecLossConfig;
use crate::loss::{Loss, LoudnessDistance, SpectralDistance};

/// Window lengths of the spectral distance, samples (Caillon & Esling, arXiv:2111.05011). Short
/// ones resolve attacks, long ones pitch.
const SCALES: [i64; 6] = [4096, 2048, 1024, 512, 256, 128];

/// Means and logarithms of variances of the latents, each `[batch, latent, frame]`.
pub struct LatentDistribution {
    /// Means.
    pub mean: Tensor,
    /// Natural logarithms of the variances.
    pub log_variance: Tensor,
}

impl LatentDistribution {
    /// Splits the output of an encoder, means before log variances.
    #[must_use]
    pub fn new(encoded: &Tensor) -> Self {
        let latents = encoded.size()[1] / 2;
        Self {
            mean: encoded.narrow(1, 0, latents),
            log_variance: encoded.narrow(1, latents, latents),
        }
    }

    /// Draws latents from normal noise of their shape (Kingma & Welling, ICLR 2014).
    pub fn drawn(&self, noise: &Tensor) -> Tensor {
        &self.mean + noise * (&self.log_variance * 0.5).exp()
    }

    /// Returns the mean information of each latent, nats a frame, `[batch, latent]`.
    pub fn nats(&self) -> Tensor {
        let nats = (self.mean.square() + self.log_variance.exp() - 1.0 - &self.log_variance) * 0.5;
        nats.mean_dim(2, false, Kind::Float)
    }
}

/// Prepared terms of the loss.
pub struct CodecLoss {
    config: CodecLossConfig,
    sound: SpectralDistance,
    loudness: LoudnessDistance,
}

impl CodecLoss {
    /// Prepares the terms. Spectral differences are relative to the level of `examples`.
    #[must_use]
    pub fn new(
        config: CodecLossConfig,
        sample_rate: u32,
        examples: &[Vec<f32>],
        device: Device,
    ) -> Self {
        Self {
            config,
            sound: SpectralDistance::with_scales(&SCALES, device).relative_to(examples),
            loudness: LoudnessDistance::new(f64::from(sample_rate), device),
        }
    }

    /// Returns the loss of a decoded sound, `[batch, samples]`.
    #[must_use]
    pub fn between(&self, decoded: &Tensor, target: &Tensor) -> Loss {
        let sound = self.sound.between(decoded, target);
        let mut loss = Loss {
            total: sound.shallow_clone(),
            terms: vec![("sound", sound)],
        };
        if self.config.loudness > 0.0 {
            loss.add(
                "loudness",
                self.loudness.between(decoded, target) * self.config.loudness,
            );
        }
        loss
    }

    /// Adds what the latents cost.
    pub fn add_latents(&self, loss: &mut Loss, latents: &LatentDistribution) {
        let nats = latents
            .nats()
            .clamp_min(self.config.free_nats)
            .mean_dim(0, false, Kind::Float);
        loss.add(
            "information",
            nats.sum(Kind::Float) * self.config.information,
        );
    }
}
