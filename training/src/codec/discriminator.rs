//! Discriminators, which learn to tell decoded sound from recordings, and so tell the decoder what is wrong with it.
//!
//! Two-dimensional networks on complex spectra are usual (Caillon & Esling, arXiv:2111.05011; Kumar et al.,
//! arXiv:2306.06546), and five times as slow on a CPU as these: convolutions along time over the bands of the filter
//! bank, which hear phases, and over spectra whose bins are channels.

use std::collections::BTreeMap;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use tch::{Device, Kind, Tensor};

use super::filter_bank::FilterBank;
use crate::loss::SpectralDistance;

/// Prefix of the discriminators' weights.
const PREFIX: &str = "discriminator";
/// Slope of the activation below zero.
const SLOPE: f64 = 0.2;
/// Seed of the initial weights beside that of the run.
const SEED: u64 = 0x6469_7363;
/// Lengths of the Fourier transforms, samples, of the discriminators of spectra.
const SPECTRA: [i64; 2] = [1024, 256];

/// Magnitude below which spectra count as silent.
const FLOOR: f64 = 1e-4;

/// Convolution along time: outputs, taps, stride, groups.
type Layer = (i64, i64, i64, i64);

/// Layers on the bands.
const BAND_LAYERS: [Layer; 4] = [(64, 15, 1, 1), (128, 15, 4, 4), (256, 15, 4, 8), (1, 3, 1, 1)];
/// Layers on spectra.
const SPECTRUM_LAYERS: [Layer; 4] = [(128, 3, 1, 1), (128, 5, 2, 1), (128, 5, 2, 1), (1, 3, 1, 1)];

/// Network of a discriminator: a name, the channels of its input, and its layers.
struct Network {
    name: String,
    inputs: i64,
    layers: [Layer; 4],
}

/// All discriminators.
pub struct Discriminators {
    networks: Vec<Network>,
    /// Filters of the bands, `[band, 1, tap]`.
    analysis: Tensor,
    spectra: SpectralDistance,
}

/// Values of a discriminator: those of each layer, the last of which is its judgement: above 0 for recordings.
type Judgement = Vec<Tensor>;

impl Discriminators {
    /// Prepares discriminators of the bands of a filter bank and of spectra.
    #[must_use]
    pub fn new(bank: FilterBank, device: Device) -> Self {
        let spectra = SPECTRA.map(|length| Network {
            name: format!("{PREFIX}.spectrum{length}"),
            inputs: length / 2 + 1,
            layers: SPECTRUM_LAYERS,
        });
        let bands = Network { name: format!("{PREFIX}.bands"), inputs: bank.bands as i64, layers: BAND_LAYERS };
        Self {
            networks: std::iter::once(bands).chain(spectra).collect(),
            analysis: Tensor::from_slice(&bank.analysis()).view([bank.bands as i64, 1, -1]).to_device(device),
            spectra: SpectralDistance::with_scales(&SPECTRA, device),
        }
    }

    /// Draws initial weights (He et al., ICCV 2015).
    #[must_use]
    pub fn initial_weights(&self, seed: u64) -> BTreeMap<String, Tensor> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ SEED);
        let mut weights = BTreeMap::new();
        for Network { name, inputs, layers } in &self.networks {
            let mut channels = *inputs;
            for (index, (outputs, taps, _, groups)) in layers.iter().enumerate() {
                let shape = [*outputs, channels / groups, *taps];
                let bound = (6.0 / ((1.0 + SLOPE * SLOPE) * (shape[1] * taps) as f64)).sqrt();
                let count = shape.iter().product::<i64>();
                let values: Vec<f32> = (0..count).map(|_| random.random_range(-bound..bound) as f32).collect();
                weights.insert(format!("{name}.{index}.weight"), Tensor::from_slice(&values).view(shape));
                weights.insert(format!("{name}.{index}.bias"), Tensor::zeros([*outputs], (Kind::Float, Device::Cpu)));
                channels = *outputs;
            }
        }
        weights
    }

    /// Judges sounds, `[batch, samples]`.
    pub fn judge(&self, weights: &BTreeMap<String, Tensor>, sound: &Tensor) -> Vec<Judgement> {
        let stride = [self.analysis.size()[0]];
        let bands = sound.unsqueeze(1).conv1d(&self.analysis, None::<Tensor>, stride, [0], [1], 1);
        let spectra = self.spectra.spectra(sound).into_iter().map(|spectrum| (spectrum + FLOOR).log());
        let inputs = std::iter::once(bands).chain(spectra);
        let slope = Tensor::from(SLOPE as f32).to_device(sound.device());
        let judged = self.networks.iter().zip(inputs).map(|(network, input)| {
            let mut values: Judgement = Vec::new();
            for (index, (_, taps, stride, groups)) in network.layers.iter().enumerate() {
                let weight = |parameter: &str| &weights[&format!("{}.{index}.{parameter}", network.name)];
                let before = values.last().map_or_else(|| input.shallow_clone(), |value| value.prelu(&slope));
                let bias = Some(weight("bias"));
                values.push(before.conv1d(weight("weight"), bias, [*stride], [taps / 2], [1], *groups));
            }
            values
        });
        judged.collect()
    }
}

/// Returns the loss of the discriminators (Lim & Ye, arXiv:1705.02894): how far judgements are from 1 for recordings, and
/// from −1 for decoded sound.
pub fn discriminator_loss(decoded: &[Judgement], recorded: &[Judgement]) -> Tensor {
    let hinge = |judgements: &[Judgement], sign: f64| {
        mean(judgements.iter().map(|values| (last(values) * -sign + 1.0).relu().mean(Kind::Float)))
    };
    hinge(recorded, 1.0) + hinge(decoded, -1.0)
}

/// Returns the loss of a decoder that wants to be taken for a recording.
pub fn decoder_loss(decoded: &[Judgement]) -> Tensor {
    mean(decoded.iter().map(|values| -last(values).mean(Kind::Float)))
}

/// Returns the mean distance of the layers' values from those for the recording, relative to these (Kumar et al.,
/// NeurIPS 2019).
pub fn feature_distance(decoded: &[Judgement], recorded: &[Judgement]) -> Tensor {
    mean(decoded.iter().zip(recorded).map(|(decoded, recorded)| {
        let layers = decoded.iter().zip(recorded).take(decoded.len() - 1);
        mean(layers.map(|(decoded, recorded)| {
            let recorded = recorded.detach();
            (decoded - &recorded).abs().mean(Kind::Float) / recorded.abs().mean(Kind::Float)
        }))
    }))
}

fn last(values: &Judgement) -> &Tensor {
    values.last().expect("a discriminator has layers")
}

fn mean(values: impl ExactSizeIterator<Item = Tensor>) -> Tensor {
    let count = values.len();
    values.reduce(|sum, value| sum + value).expect("there are values") / count as f64
}
