//! Losses as weighted terms. Sounds are `[batch, samples]`; every term is a scalar that is 0 for
//! equal sounds.

mod a_weighting;
pub mod feature_matching;
mod loudness;
mod mel;
mod power_spectrum;
pub(crate) mod random_signs;
mod spectral;
mod stft;
#[cfg(test)]
mod tests;
mod waveform;

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use crate::loss::random_signs::random_signs;
use a_weighting::AWeighting;
pub(crate) use loudness::LoudnessDistance;
use mel::MelDistance;
pub use mel::MelSpectrum;
pub(crate) use power_spectrum::power_spectrum;
pub use spectral::SpectralDistance;
use stft::MultiResolutionStft;
use waveform::{mean_absolute, mean_offset, mean_square, pre_emphasised};

/// Least reference power, so that silence is no division by zero.
const MIN_POWER: f64 = 1e-12;

/// Weights of the terms, the table `[loss]` of a configuration; 0 leaves a term out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LossWeights {
    /// Error-to-signal ratio: squared error over the power of the training sound.
    pub esr: f64,
    /// Mean squared error.
    pub mse: f64,
    /// Mean absolute error.
    pub l1: f64,
    /// Error-to-signal ratio after the pre-emphasis `y[t] = x[t] − 0.95 x[t − 1]`.
    pub pre_emphasis: f64,
    /// Error-to-signal ratio after A-weighting.
    pub a_weighting: f64,
    /// Multi-resolution STFT: spectral convergence and log magnitude.
    pub stft: f64,
    /// The same on four bands of equal width.
    pub band_stft: f64,
    /// Logarithmic mel spectrum.
    pub mel: f64,
    /// A-weighted level of short frames, in units of 10 dB.
    pub loudness: f64,
    /// Squared difference of the means, over the power of the training sound.
    pub dc: f64,
    /// Multi-scale spectral distance.
    pub spectral: f64,
    /// The same after the pre-emphasis.
    pub spectral_pre_emphasis: f64,
}

impl LossWeights {
    /// Returns the terms in use with their weights.
    pub fn terms(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let all = [
            ("esr", self.esr),
            ("mse", self.mse),
            ("l1", self.l1),
            ("pre_emphasis", self.pre_emphasis),
            ("a_weighting", self.a_weighting),
            ("stft", self.stft),
            ("band_stft", self.band_stft),
            ("mel", self.mel),
            ("loudness", self.loudness),
            ("dc", self.dc),
            ("spectral", self.spectral),
            ("spectral_pre_emphasis", self.spectral_pre_emphasis),
        ];
        all.into_iter().filter(|(_, weight)| *weight != 0.0)
    }

    /// Checks the weights.
    ///
    /// # Errors
    /// Returns an error that names the first weight below 0, or says that all are 0.
    pub fn check(&self) -> anyhow::Result<()> {
        for (name, weight) in self.terms() {
            ensure!(
                weight > 0.0 && weight.is_finite(),
                "loss.{name} must be 0 or above"
            );
        }
        ensure!(
            self.terms().next().is_some(),
            "loss must have a term with a weight above 0"
        );
        Ok(())
    }
}

/// Loss of a batch.
pub struct Loss {
    /// Weighted sum of the terms.
    pub total: Tensor,
    /// Terms with their weights applied.
    pub terms: Vec<(&'static str, Tensor)>,
}

impl Loss {
    /// Adds a term.
    pub fn add(&mut self, name: &'static str, term: Tensor) {
        self.total = &self.total + &term;
        self.terms.push((name, term));
    }

    /// Returns a sum of losses with this one added by a weight.
    pub(crate) fn added_to(self, sum: Option<Self>, weight: f64) -> Self {
        let own = Self {
            total: self.total * weight,
            terms: self
                .terms
                .into_iter()
                .map(|(name, term)| (name, term * weight))
                .collect(),
        };
        let Some(sum) = sum else { return own };
        Self {
            total: sum.total + own.total,
            terms: sum.terms.into_iter().chain(own.terms).collect(),
        }
    }
}

/// Prepared terms.
pub struct WeightedLoss {
    weights: LossWeights,
    /// Powers of the training sound: as it is, pre-emphasised, A-weighted.
    power: f64,
    emphasised_power: f64,
    weighted_power: f64,
    a_weighting: Option<AWeighting>,
    stft: MultiResolutionStft,
    mel: Option<MelDistance>,
    loudness: Option<LoudnessDistance>,
    spectral: Option<SpectralDistance>,
    spectral_pre_emphasis: Option<SpectralDistance>,
}

impl WeightedLoss {
    /// Prepares the terms for a sample rate. Ratios are relative to the power of `training_sound`.
    #[must_use]
    pub fn new(
        weights: LossWeights,
        sample_rate: u32,
        training_sound: &[&[f32]],
        device: Device,
    ) -> Self {
        let rate = f64::from(sample_rate);
        let samples = training_sound
            .iter()
            .map(|part| part.len())
            .sum::<usize>()
            .max(1) as f64;
        let mean = |energy: f64| (energy / samples).max(MIN_POWER);
        let square = |x: f32| f64::from(x).powi(2);
        let energy = |part: &&[f32]| part.iter().map(|x| square(*x)).sum::<f64>();
        let emphasised = |part: &&[f32]| -> f64 {
            part.windows(2)
                .map(|pair| square(pair[1] - waveform::PRE_EMPHASIS as f32 * pair[0]))
                .sum()
        };
        let emphasised_sound = || -> Vec<Vec<f32>> {
            let pairs = training_sound.iter().map(|part| part.windows(2));
            pairs
                .map(|pairs| {
                    pairs
                        .map(|pair| pair[1] - waveform::PRE_EMPHASIS as f32 * pair[0])
                        .collect()
                })
                .collect()
        };
        let a_weighting = (weights.a_weighting > 0.0).then(|| AWeighting::new(rate));
        Self {
            power: mean(training_sound.iter().map(energy).sum()),
            emphasised_power: mean(training_sound.iter().map(emphasised).sum()),
            weighted_power: a_weighting.as_ref().map_or(1.0, |filter| {
                mean(training_sound.iter().map(|part| filter.energy(part)).sum())
            }),
            a_weighting,
            stft: MultiResolutionStft::new(device),
            mel: (weights.mel > 0.0).then(|| MelDistance::new(rate, device)),
            loudness: (weights.loudness > 0.0).then(|| LoudnessDistance::new(rate, device)),
            spectral: (weights.spectral > 0.0)
                .then(|| SpectralDistance::new(device).relative_to(training_sound)),
            spectral_pre_emphasis: (weights.spectral_pre_emphasis > 0.0)
                .then(|| SpectralDistance::new(device).relative_to(&emphasised_sound())),
            weights,
        }
    }

    /// Returns the loss of a sound, `[batch, samples]`.
    ///
    /// # Panics
    /// Panics if the sounds have different shapes.
    #[must_use]
    pub fn between(&self, sound: &Tensor, target: &Tensor) -> Loss {
        let terms = self
            .weights
            .terms()
            .map(|(name, weight)| (name, self.term(name, sound, target) * weight));
        let terms: Vec<_> = terms.collect();
        let total = terms
            .iter()
            .map(|(_, term)| term.shallow_clone())
            .reduce(|sum, term| sum + term);
        Loss {
            total: total.unwrap_or_else(|| Tensor::zeros([], (Kind::Float, sound.device()))),
            terms,
        }
    }

    /// Returns a random scalar whose gradient, squared, has as its mean the diagonal of the
    /// Gauss-Newton matrix of the terms `esr`, `mse` and `pre_emphasis`; `None` if none of them is
    /// in use.
    ///
    /// It is the Gauss-Newton-Bartlett estimate for a squared error `w / n Σ (yᵢ − tᵢ)²` of outputs
    /// `y`, with targets `t` at random signs `u` around them: `√(2 w / n) Σ uᵢ yᵢ`.
    #[must_use]
    pub fn curvature_sample(&self, sound: &Tensor, seed: u64) -> Option<Tensor> {
        let sample = |residual: Tensor, weight: f64, term: u64| {
            let signs = random_signs(&residual, seed ^ term << 62);
            (&residual * signs).sum(Kind::Float) * (2.0 * weight / residual.numel() as f64).sqrt()
        };
        let samples = self
            .weights
            .terms()
            .filter_map(|(name, weight)| match name {
                "esr" => Some(sample(sound.shallow_clone(), weight / self.power, 0)),
                "mse" => Some(sample(sound.shallow_clone(), weight, 1)),
                "pre_emphasis" => Some(sample(
                    pre_emphasised(sound),
                    weight / self.emphasised_power,
                    2,
                )),
                _ => None,
            });
        samples.reduce(|sum, sample| sum + sample)
    }

    fn term(&self, name: &str, sound: &Tensor, target: &Tensor) -> Tensor {
        match name {
            "esr" => mean_square(sound, target) / self.power,
            "mse" => mean_square(sound, target),
            "l1" => mean_absolute(sound, target),
            "pre_emphasis" => {
                mean_square(&pre_emphasised(sound), &pre_emphasised(target)) / self.emphasised_power
            }
            "a_weighting" => {
                let filter = self.a_weighting.as_ref().expect("prepared with its weight");
                filter.mean_square(&(sound - target)) / self.weighted_power
            }
            "stft" => self.stft.between(sound, target),
            "band_stft" => self.stft.between_bands(sound, target),
            "mel" => self
                .mel
                .as_ref()
                .expect("prepared with its weight")
                .between(sound, target),
            "loudness" => self
                .loudness
                .as_ref()
                .expect("prepared with its weight")
                .between(sound, target),
            "dc" => mean_offset(sound, target).square().mean(Kind::Float) / self.power,
            "spectral" => self
                .spectral
                .as_ref()
                .expect("prepared with its weight")
                .between(sound, target),
            "spectral_pre_emphasis" => {
                let spectral = self
                    .spectral_pre_emphasis
                    .as_ref()
                    .expect("prepared with its weight");
                spectral.between(&pre_emphasised(sound), &pre_emphasised(target))
            }
            _ => unreachable!("the names are those of the terms"),
        }
    }
}
