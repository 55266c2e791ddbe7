//! Loss of a codec: spectral distances of the sound and of its bands, and the information in the latents.

use tch::{Device, Kind, Tensor};

use super::config::CodecLossConfig;
use crate::loss::{Loss, SpectralDistance};

/// Transforms of the sound, samples (Caillon & Esling, arXiv:2111.05011). Short ones hear where an attack is.
const SOUND_SCALES: [i64; 5] = [2048, 1024, 512, 256, 128];
/// Transforms of the bands, frames.
const BAND_SCALES: [i64; 3] = [256, 128, 64];

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
        Self { mean: encoded.narrow(1, 0, latents), log_variance: encoded.narrow(1, latents, latents) }
    }

    /// Draws latents from normal noise of their shape (Kingma & Welling, ICLR 2014).
    pub fn drawn(&self, noise: &Tensor) -> Tensor {
        &self.mean + noise * (&self.log_variance * 0.5).exp()
    }

    /// Returns the mean information of each latent, nats a frame, `[latent]`.
    pub fn nats(&self) -> Tensor {
        let nats = (self.mean.square() + self.log_variance.exp() - 1.0 - &self.log_variance) * 0.5;
        nats.mean_dim([0_i64, 2].as_slice(), false, Kind::Float)
    }
}

/// Sound and bands of a decoder, or of a recording.
pub struct BandedSound {
    /// Sound, `[batch, samples]`.
    pub sound: Tensor,
    /// Bands, `[batch, band, frame]`.
    pub bands: Tensor,
}

/// Prepared terms of the loss.
pub struct CodecLoss {
    config: CodecLossConfig,
    sound: SpectralDistance,
    bands: SpectralDistance,
}

impl CodecLoss {
    /// Prepares the terms.
    #[must_use]
    pub fn new(config: CodecLossConfig, device: Device) -> Self {
        let distance = |scales| SpectralDistance::with_scales(scales, device);
        Self { config, sound: distance(&SOUND_SCALES), bands: distance(&BAND_SCALES) }
    }

    /// Returns the loss of a decoded sound; the information counts if a distribution of latents is given.
    #[must_use]
    pub fn between(&self, decoded: &BandedSound, target: &BandedSound, latents: Option<&LatentDistribution>) -> Loss {
        let rows = |bands: &Tensor| bands.flatten(0, 1);
        let sound = self.sound.between(&decoded.sound, &target.sound) * self.config.sound;
        let bands = self.bands.between(&rows(&decoded.bands), &rows(&target.bands)) * self.config.bands;
        let mut loss = Loss { total: &sound + &bands, terms: vec![("sound", sound), ("bands", bands)] };
        if let Some(latents) = latents {
            let nats = latents.nats().clamp_min(self.config.free_nats).sum(Kind::Float);
            loss.add("information", nats * self.config.information);
        }
        loss
    }
}
