//! Loss of a codec: the distance of the sound in spectra and loudness, the information in the
//! latents, and the distance of the pitch that the encoder hears.

use tch::{Device, Kind, Tensor};

use super::config::CodecLossConfig;
use super::network::{LOWEST_PITCH, PITCHES, REFERENCE_PITCH};
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

/// Pitch that an encoder hears, and the true one.
pub struct HeardPitch {
    /// Probability of each semitone, `[batch, pitch, frame]`.
    pub probabilities: Tensor,
    /// Their mean, octaves above [`REFERENCE_PITCH`], `[batch, 1, frame]`.
    pub octaves: Tensor,
    /// True pitch, semitones, `[batch, 1, frame]`.
    pub semitones: Tensor,
    /// Weight of each frame, 0 for those in which no pitch can be heard, `[batch, 1, frame]`.
    pub weight: Tensor,
}

impl HeardPitch {
    /// Returns the true pitch as the encoder would tell it, octaves above [`REFERENCE_PITCH`],
    /// `[batch, 1, frame]`.
    pub fn true_octaves(&self) -> Tensor {
        (&self.semitones - f64::from(REFERENCE_PITCH)) / 12.0
    }

    /// Returns the distance from the true pitch: that of the mean in semitones, and the nats of the
    /// two nearest semitones, which share the true pitch. It is the mean over all frames, with a
    /// pitch or without, so that the parts of a batch add up to the whole.
    pub fn distance(&self) -> Tensor {
        let far = (&self.octaves * 12.0 + f64::from(REFERENCE_PITCH) - &self.semitones).abs();
        let position =
            (&self.semitones - LOWEST_PITCH as f64).clamp(0.0, (PITCHES - 1) as f64 - 1e-3);
        let (below, share) = (position.floor(), position.frac());
        let index = below.to_kind(Kind::Int64);
        let nats = |index: &Tensor| -(self.probabilities.gather(1, index, false) + 1e-7).log();
        let nats = nats(&index) * (1.0 - &share) + nats(&(index + 1)) * share;
        let weighted: Tensor = (nats + far) * &self.weight;
        weighted.mean(Kind::Float)
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
    pub fn add_latents(
        &self,
        loss: &mut Loss,
        latents: &LatentDistribution,
        pitch: Option<&HeardPitch>,
    ) {
        let nats = latents
            .nats()
            .clamp_min(self.config.free_nats)
            .mean_dim(0, false, Kind::Float);
        loss.add(
            "information",
            nats.sum(Kind::Float) * self.config.information,
        );
        if let Some(pitch) = pitch {
            loss.add("pitch", pitch.distance() * self.config.pitch);
        }
    }

    /// Adds the loss of the pitch in [tones](super::tones).
    pub fn add_tones(&self, loss: &mut Loss, heard: &HeardPitch) {
        loss.add("tones", heard.distance() * self.config.tones);
    }
}
