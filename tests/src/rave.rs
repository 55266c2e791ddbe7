//! RAVE networks with random weights, as TorchScript archives. Modules, attributes and parameters
//! have the names of RAVE's exports (acids-ircam/RAVE and acids-ircam/cached_conv); the sources are
//! ours.
//!
//! A [`Recipe`] describes the network. `convolutions` and `modules` build the small parts,
//! `encoder`, `decoder` and `bank` combine them.

mod bank;
mod convolutions;
mod decoder;
mod encoder;
mod modules;
pub mod script;

use ondes_engine::model::Tensor;
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;

use self::script::{Attribute, Module, Script};
use crate::seeded_rng;

/// Generation of RAVE's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// Batch norms in the encoder, stacks of residual blocks and a loudness branch in the decoder;
    /// also BRAVE.
    V1,
    /// Residual dilated units on both sides.
    V2,
    /// As V2, with Snake and untrained adaptive instance norms.
    V3,
}

/// Description of a network.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Generation of the blocks.
    pub generation: Generation,
    /// Number of bands of the filter bank.
    pub bands: usize,
    /// Strides of the encoder.
    pub ratios: Vec<usize>,
    /// Number of channels of the first layer.
    pub capacity: usize,
    /// Number of latents.
    pub latents: usize,
    /// Number of latents that the export shows.
    pub seen: usize,
    /// Dilations of the units, by rate.
    pub dilations: Vec<Vec<usize>>,
    /// Adds a noise branch beside the waveform.
    pub noise: bool,
    /// Uses causal filters.
    pub causal: bool,
    /// Uses cached convolutions.
    pub streaming: bool,
}

impl Recipe {
    /// Returns RAVE's configuration `v2`, 31.5 million weights.
    #[must_use]
    pub fn v2() -> Self {
        Self {
            generation: Generation::V2,
            bands: 16,
            ratios: vec![4, 4, 4, 2],
            capacity: 96,
            latents: 128,
            seen: 16,
            dilations: vec![vec![1, 3, 9], vec![1, 3, 9], vec![1, 3, 9], vec![1, 3]],
            noise: false,
            causal: false,
            streaming: true,
        }
    }

    /// Returns BRAVE (Caspe et al., arXiv:2503.11562): the blocks of v1, causal, ratio 128.
    #[must_use]
    pub fn brave() -> Self {
        Self {
            generation: Generation::V1,
            ratios: vec![2, 2, 2, 1],
            capacity: 64,
            dilations: [3, 9, 27, 45, 63]
                .map(|dilation| vec![dilation, 1])
                .to_vec(),
            causal: true,
            ..Self::v2()
        }
    }

    /// Returns RAVE's configuration `v1`.
    #[must_use]
    pub fn v1() -> Self {
        Self {
            generation: Generation::V1,
            capacity: 64,
            dilations: [1, 3, 5].map(|dilation| vec![dilation, 1]).to_vec(),
            noise: true,
            ..Self::v2()
        }
    }

    /// Returns it with few channels and latents.
    #[must_use]
    pub fn small(self) -> Self {
        Self {
            capacity: 6,
            latents: 12,
            seen: 4,
            ..self
        }
    }

    /// Returns the samples per frame of latents.
    #[must_use]
    pub fn ratio(&self) -> usize {
        self.bands * self.ratios.iter().product::<usize>()
    }

    /// Builds the export. Returns it with the delays of `encode` and `decode` in samples, as
    /// `cached_conv` counts them.
    #[must_use]
    pub fn export(&self, seed: u64) -> (Module, [usize; 2]) {
        let mut builder = ModuleBuilder {
            recipe: self,
            script: Script::default(),
            random: seeded_rng(seed),
        };
        builder.export()
    }
}

/// Module and the delay of its output in frames.
struct DelayedModule {
    module: Module,
    late: usize,
}

const CONVS: &str = "cached_conv.convs";
const BLOCKS: &str = "rave.blocks";
const FORWARD: &str = "forward(x: Tensor) -> Tensor:";

struct ModuleBuilder<'a> {
    recipe: &'a Recipe,
    script: Script,
    random: Xoshiro256PlusPlus,
}

impl ModuleBuilder<'_> {
    fn values(&mut self, shape: &[usize], bound: f64) -> Tensor {
        let bound = bound as f32;
        let count = shape.iter().product();
        Tensor::new(
            shape,
            (0..count)
                .map(|_| self.random.random_range(-bound..bound))
                .collect(),
        )
    }

    /// Creates weights that keep the level of the input.
    fn weight(&mut self, shape: &[usize], inputs: usize) -> Attribute {
        Attribute::Parameter(self.values(shape, (3.0 / inputs as f64).sqrt()))
    }

    fn export(&mut self) -> (Module, [usize; 2]) {
        let Recipe { latents, seen, .. } = *self.recipe;
        let ratio = self.recipe.ratio() as i64;
        let (bank, bank_late) = self.bank();
        let (encoder, encoder_late) = self.encoder(bank_late[0]);
        let (decoder, decoder_late) = self.decoder();
        let pca = self.values(&[latents, latents], (3.0 / latents as f64).sqrt());
        let mean = self.values(&[latents], 0.5);
        let seen_count = seen as i64;
        let attributes = vec![
            ("latent_pca", Attribute::Buffer(pca)),
            ("latent_mean", Attribute::Buffer(mean)),
            (
                "encode_params",
                Attribute::Counts(vec![1, 1, seen_count, ratio]),
            ),
            (
                "decode_params",
                Attribute::Counts(vec![seen_count, ratio, 1, 1]),
            ),
            ("forward_params", Attribute::Counts(vec![1, 1, 1, 1])),
            ("sr", Attribute::Int(44_100)),
            ("resampler", Attribute::None),
            ("spectrogram", Attribute::None),
            ("input_mode", Attribute::Text("pqmf")),
            ("output_mode", Attribute::Text("pqmf")),
            ("n_channels", Attribute::Int(1)),
            ("target_channels", Attribute::Int(1)),
            ("full_latent_size", Attribute::Int(latents as i64)),
            ("latent_size", Attribute::Int(seen as i64)),
            ("pqmf", Attribute::Module(bank)),
            ("encoder", Attribute::Module(encoder)),
            ("decoder", Attribute::Module(decoder)),
        ];
        let encode = format!(
            "pqmf = self.pqmf\nencoder = self.encoder\ny = (encoder).forward((pqmf).forward(x, ), )\n\
             z = (encoder).reparametrize(y, )\nmean = torch.unsqueeze(self.latent_mean, -1)\n\
             pca = torch.unsqueeze(self.latent_pca, -1)\n\
             turned = torch.conv1d(torch.sub(z, mean, alpha=1), pca, None, [1], [0], [1], 1)\n\
             return torch.slice(turned, 1, 0, {seen}, 1)"
        );
        let decode = format!(
            "noise = torch.randn([torch.size(x, 0), {left}, torch.size(x, 2)], dtype=None, layout=None, device=None, pin_memory=None)\n\
             joined = torch.cat([x, noise], 1)\npca = torch.unsqueeze(torch.t(self.latent_pca), -1)\n\
             mean = torch.unsqueeze(self.latent_mean, -1)\n\
             z = torch.add(torch.conv1d(joined, pca, None, [1], [0], [1], 1), mean, alpha=1)\n\
             decoder = self.decoder\npqmf = self.pqmf\nreturn (pqmf).inverse((decoder).forward(z, ), )",
            left = latents - seen,
        );
        let methods = [
            (FORWARD, "return (self).decode((self).encode(x, ), )"),
            ("encode(x: Tensor) -> Tensor:", &*encode),
            ("decode(x: Tensor) -> Tensor:", &*decode),
        ];
        let module = self.script.module(
            "scripts.export",
            "VariationalScriptedRAVE",
            attributes,
            &[],
            &methods,
        );
        (module, [encoder_late, bank_late[1] + decoder_late])
    }
}
