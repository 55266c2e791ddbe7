//! Codec of a RAVE export: filter bank, encoder, latents, decoder, filter bank.

use std::path::Path;

use super::archive::TensorData;
use super::builder::{CodecBuilder, Signal};
use super::error::RaveError;
use super::module::{Module, TorchFile};
use crate::model::{
    Activation, Card, Distribution, FORMAT, Header, Kind, Method, Model, ModelError,
    ModelFileError, Node, Op, Port, limits,
};
use crate::ops::{Affine, CodeSum, Conv1d, Interleave, Latency, Linear, NearestCodes, Noise};

/// Sample rate of RAVE's configurations, assumed for exports that do not state theirs, Hz.
const DEFAULT_RATE: i64 = 44_100;
/// Name of the node and port of the latents.
const LATENTS: &str = "latents";

/// Imported RAVE export.
#[derive(Debug)]
pub struct RaveImport {
    /// Codec with the methods `encode`, `decode` and `forward`.
    pub model: Model,
    /// Configuration recovered from the modules.
    pub configuration: Configuration,
    /// Parts that are left out and values that are assumed, one line each.
    pub notes: Vec<String>,
}

impl RaveImport {
    /// Describes configuration, size and latency in two lines.
    #[must_use]
    pub fn summary(&self) -> String {
        let header = self.model.header();
        let latency: usize = header.methods[..2]
            .iter()
            .map(Method::latency_samples)
            .sum();
        let latency_ms = latency as f64 * 1000.0 / f64::from(header.sample_rate);
        let weights = self.model.parameters() as f64 / 1e6;
        format!(
            "{}\n{weights:.1} million weights, latency {latency} samples ({latency_ms:.0} ms)",
            self.configuration
        )
    }
}

/// Configuration of a RAVE model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// `RAVE v1`, `RAVE v2` or `RAVE v3`; BRAVE is a RAVE v1.
    pub architecture: &'static str,
    /// Channels of its sound.
    pub channels: usize,
    /// Bands of its filter bank for each channel; 1 for none.
    pub bands: usize,
    /// Strides of the encoder.
    pub ratios: Vec<usize>,
    /// Channels of the encoder's first layer.
    pub capacity: usize,
    /// Latents of the model's port: the principal components with the highest variance.
    pub latents: usize,
    /// All latents; those beyond [`latents`](Self::latents) are filled with noise.
    pub all_latents: usize,
    /// Filters are causal rather than centred.
    pub causal: bool,
    /// The export uses cached convolutions.
    pub streaming: bool,
}

impl std::fmt::Display for Configuration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ratios: Vec<String> = self.ratios.iter().map(usize::to_string).collect();
        write!(
            f,
            "{}, {}{} bands, ratios {}, capacity {}, {} of {} latents, {} filters, {} export",
            self.architecture,
            if self.channels == 1 {
                String::new()
            } else {
                format!("{} channels of ", self.channels)
            },
            self.bands,
            ratios.join("\u{b7}"),
            self.capacity,
            self.latents,
            self.all_latents,
            if self.causal { "causal" } else { "centred" },
            if self.streaming {
                "streaming"
            } else {
                "offline"
            },
        )
    }
}

/// Imports a RAVE export. The model is named `name`, or like the file if that is `None`.
///
/// # Errors
/// Returns [`ModelFileError`] if the file cannot be read or holds anything that is not supported;
/// the error names the module.
pub fn import(path: &Path, name: Option<&str>) -> Result<RaveImport, ModelFileError> {
    let stem = || {
        path.file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    read(path, name.map_or_else(stem, str::to_owned)).map_err(ModelFileError::at(path))
}

fn read(path: &Path, name: String) -> Result<RaveImport, ModelError> {
    let file = TorchFile::open(path)?;
    let root = file.root();
    let mut notes = Vec::new();
    check_supported(&root, &mut notes)?;
    let sample_rate = sample_rate(&root, &mut notes)?;
    let bank = filter_bank(&root)?;
    let encoder = root.child("encoder")?;
    let first = match &bank {
        Some(bank) => bank.child("forward_conv")?,
        None => encoder.child("encoder")?.child("net")?.child("0")?,
    };
    let streaming = first.class() == "CachedConv1d";
    let causal = match first.maybe_pair("_pad") {
        Some((_, right)) => right == 0,
        None => first.count("cumulative_delay")? == 0,
    };
    let mut builder = CodecBuilder::new(causal);

    let channels = channels(&root)?;
    let input = Signal {
        name: "in".into(),
        channels,
        ratio: 1,
        latency: 0,
    };
    let coded = builder.encode(&root, bank.as_ref(), &input)?;
    let encode_nodes = builder.take_nodes();
    let (latents, all_latents) = (coded.latents, coded.all);
    let latent_input = Signal {
        latency: 0,
        ..latents.clone()
    };
    let output = builder.decode(&root, bank.as_ref(), &latent_input, all_latents, channels)?;
    let decode_nodes = builder.take_nodes();

    let configuration = Configuration {
        architecture: architecture(&encoder, &encode_nodes)?,
        channels,
        bands: coded.bands,
        ratios: coded.ratios,
        capacity: capacity(&encode_nodes),
        latents: latents.channels,
        all_latents,
        causal,
        streaming,
    };
    // FlipOddBands needs an even number of frames per block.
    let block = if latents.ratio.is_multiple_of(2 * coded.band_ratio) {
        latents.ratio
    } else {
        2 * latents.ratio
    };
    let port = |signal: &Signal| Port {
        name: signal.name.clone(),
        channels: signal.channels,
        ratio: signal.ratio,
    };
    let method = |name: &str, from: &Signal, to: &Signal, nodes: Vec<Node>| Method {
        name: name.into(),
        block,
        warm_up: 0,
        inputs: vec![port(from)],
        outputs: vec![port(to)],
        nodes,
    };
    let forward_nodes = encode_nodes.iter().chain(&decode_nodes).cloned().collect();
    let methods = vec![
        method("encode", &input, &latents, encode_nodes),
        method("decode", &latent_input, &output, decode_nodes),
        method("forward", &input, &output, forward_nodes),
    ];
    let header = Header {
        format: FORMAT,
        kind: Kind::Codec,
        sample_rate,
        methods,
        controls: Vec::new(),
        variants: Vec::new(),
        oversampling: 1,
        performance: None,
        card: Card {
            name,
            description: description(path, &configuration)?,
            ..Card::default()
        },
    };
    Ok(RaveImport {
        model: Model::new(header, builder.into_weights())?,
        configuration,
        notes,
    })
}

/// Fails if the export uses a feature that is not supported; adds notes on those that can be left
/// out.
fn check_supported(root: &Module<'_>, notes: &mut Vec<String>) -> Result<(), ModelError> {
    for name in ["pqmf", "encoder", "decoder"] {
        if root.maybe_child(name).is_none() {
            return Err(RaveError::NotRave(name).into());
        }
    }
    let encoder = root.child("encoder")?;
    encoder.ensure(
        ["VariationalEncoder", "WasserteinEncoder", "DiscreteEncoder"].contains(&encoder.class()),
        "this kind of encoder is not supported; libtorch can play the file as a program",
    )?;
    root.ensure(
        root.maybe_child("spectrogram").is_none(),
        "a spectrogram is not supported",
    )?;
    for name in ["input_mode", "output_mode"] {
        let mode = root.maybe_text(name).unwrap_or("pqmf");
        root.ensure(
            mode == "pqmf",
            format_args!("an {name} of {mode:?} is not supported"),
        )?;
    }
    let channels = root.maybe_int("n_channels").unwrap_or(1);
    let written = root.maybe_int("target_channels").unwrap_or(channels);
    root.ensure(
        written >= channels,
        format_args!("{written} of {channels} channels are not supported"),
    )?;
    if root.is_set("stereo") || written > channels {
        notes.push(
            "only the model's own channels are imported; the others differ by noise only".into(),
        );
    }
    if root.is_set("_has_prior") {
        notes.push("the prior is not imported".into());
    }
    Ok(())
}

/// Returns the number of channels of the sound.
fn channels(root: &Module<'_>) -> Result<usize, ModelError> {
    match root.maybe_int("n_channels").unwrap_or(1) {
        channels @ 1..=2 => Ok(channels as usize),
        channels => Err(root.error(format_args!("{channels} channels are not supported"))),
    }
}

fn sample_rate(root: &Module<'_>, notes: &mut Vec<String>) -> Result<u32, ModelError> {
    let rate = root.maybe_int("sr").unwrap_or_else(|| {
        notes.push(format!(
            "the export does not state its sample rate; {DEFAULT_RATE} Hz is assumed"
        ));
        DEFAULT_RATE
    });
    u32::try_from(rate).map_err(|_| root.error(format_args!("a sample rate of {rate} Hz")))
}

/// Returns the filter bank; `None` if it has only one band.
fn filter_bank<'a>(root: &Module<'a>) -> Result<Option<Module<'a>>, ModelError> {
    let bank = root.child("pqmf")?;
    bank.ensure(
        bank.class() == "CachedPQMF",
        "this kind of filter bank is not known",
    )?;
    Ok((bank.maybe_int("n_band") != Some(1)).then_some(bank))
}

/// Returns the channels of noise that an encoder adds for the decoder.
fn noise_channels(encoder: &Module<'_>) -> Result<usize, ModelError> {
    let noise = usize::try_from(encoder.maybe_int("noise_augmentation").unwrap_or(0));
    noise.map_err(|_| encoder.error("its noise_augmentation is negative"))
}

/// Returns the codebooks of a discrete encoder, `[codebook][code][channel]`.
fn codebook(encoder: &Module<'_>) -> Result<TensorData, ModelError> {
    let quantizer = encoder.child("rvq")?;
    let layers = quantizer.child("layers")?.children();
    let mut shape = Vec::new();
    let mut values = Vec::new();
    for layer in &layers {
        for name in ["project_in", "project_out"] {
            let is_identity = layer
                .maybe_child(name)
                .is_none_or(|module| module.class() == "Identity");
            layer.ensure(is_identity, format_args!("its {name} is not supported"))?;
        }
        let entries = layer.child("_codebook")?.tensor("embed")?;
        layer.ensure(
            entries.shape.len() == 2 && (shape.is_empty() || shape == entries.shape),
            format_args!("its codebook has the shape {:?}", entries.shape),
        )?;
        ModelError::limit(
            "the number of weights",
            values.len() + entries.values.len(),
            limits::FILE_BYTES / size_of::<f32>(),
        )?;
        shape = entries.shape;
        values.extend(entries.values);
    }
    quantizer.ensure(!layers.is_empty(), "it has no codebooks")?;
    Ok(TensorData::new(&[layers.len(), shape[0], shape[1]], values))
}

fn architecture(encoder: &Module<'_>, nodes: &[Node]) -> Result<&'static str, ModelError> {
    let inner = encoder.child("encoder")?;
    Ok(match inner.class() {
        "Encoder" => "RAVE v1",
        _ if nodes.iter().any(|node| node.op == Op::Snake) => "RAVE v3",
        _ => "RAVE v2",
    })
}

/// Returns the channels of the encoder's first convolution.
fn capacity(nodes: &[Node]) -> usize {
    let outputs = |node: &Node| match node.op {
        Op::Conv1d(Conv1d { outputs, .. }) if node.name.starts_with("encoder.") => Some(outputs),
        _ => None,
    };
    nodes.iter().find_map(outputs).unwrap_or(0)
}

fn description(path: &Path, configuration: &Configuration) -> Result<String, ModelError> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(crate::files::open(path)?)?;
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    Ok(format!(
        "{configuration}; imported from {name}, BLAKE3 {}.",
        hasher.finalize().to_hex()
    ))
}

/// Latents of an encoder, and what its parts are.
struct Encoded {
    latents: Signal,
    /// Latents that the decoder takes; those beyond the ones above are noise.
    all: usize,
    /// Bands for each channel.
    bands: usize,
    /// Samples per frame of the bands.
    band_ratio: usize,
    /// Strides of the encoder.
    ratios: Vec<usize>,
}

impl CodecBuilder {
    /// Adds the way from sound to latents.
    fn encode(
        &mut self,
        root: &Module<'_>,
        bank: Option<&Module<'_>>,
        input: &Signal,
    ) -> Result<Encoded, ModelError> {
        let channels = input.channels;
        let mut signal = input.clone();
        let unchanged = |_: &mut TensorData, _: &mut TensorData| Ok(());
        if let Some(resampler) = root.maybe_child("resampler") {
            signal = self.convolution_with(
                &resampler.child("downsample")?,
                &signal,
                channels,
                unchanged,
            )?;
        }
        if let Some(bank) = bank {
            signal =
                self.convolution_with(&bank.child("forward_conv")?, &signal, channels, unchanged)?;
            signal = self.same_shape("pqmf.forward", &[&signal], Op::FlipOddBands)?;
        }
        let (bands, band_ratio) = (signal.channels / channels, signal.ratio);
        root.ensure(
            channels == 1 || bands.is_multiple_of(2),
            format_args!("{bands} bands of {channels} channels"),
        )?;
        let strides_before = self.strides.len();
        let encoder = root.child("encoder")?;
        let signal = self.module(&encoder, &signal)?;
        let ratios = self.strides.split_off(strides_before);
        let (components, all) = match encoder.class() {
            "VariationalEncoder" => self.variational(root, &encoder, &signal)?,
            "DiscreteEncoder" => (
                self.nearest_codes(&encoder, &signal)?,
                signal.channels + noise_channels(&encoder)?,
            ),
            // Latents as the encoder makes them (Tolstikhin et al., ICLR 2018), and noise for the
            // decoder.
            _ => (signal.clone(), signal.channels + noise_channels(&encoder)?),
        };
        let latents = self.same_shape(
            LATENTS,
            &[&components],
            Op::Latency(Latency {
                samples: components.latency,
            }),
        )?;
        Ok(Encoded {
            latents,
            all,
            bands,
            band_ratio,
            ratios,
        })
    }

    /// Adds the sampling of latents and their principal components; returns those that are kept,
    /// and the number of all.
    fn variational(
        &mut self,
        root: &Module<'_>,
        encoder: &Module<'_>,
        signal: &Signal,
    ) -> Result<(Signal, usize), ModelError> {
        let (pca, mean) = (root.tensor("latent_pca")?, root.tensor("latent_mean")?);
        let all = mean.values.len();
        root.ensure(
            all > 0 && mean.shape == [all] && pca.shape == [all, all],
            format_args!(
                "latent_pca and latent_mean have the shapes {:?} and {:?}",
                pca.shape, mean.shape
            ),
        )?;
        encoder.ensure(
            signal.channels == 2 * all,
            format_args!("it makes {} values for {all} latents", signal.channels),
        )?;
        // The encoder outputs means and scales, from which latents are sampled (Kingma & Welling,
        // ICLR 2014).
        let means = self.split("encoder.mean", signal, 0, all)?;
        let scale = self.split("encoder.scale", signal, all, all)?;
        let scale = self.same_shape(
            "encoder.scale.softplus",
            &[&scale],
            Op::Activation(Activation::Softplus),
        )?;
        let deviation = self.same_shape(
            "encoder.deviation",
            &[&scale],
            Op::Affine(Affine {
                scale: 1.0,
                offset: 1e-4,
            }),
        )?;
        let noise = self.normal_noise("encoder.noise", &means, all)?;
        let scaled_noise = self.same_shape("encoder.drawn", &[&noise, &deviation], Op::Multiply)?;
        let sample = self.same_shape("encoder.sample", &[&scaled_noise, &means], Op::Add)?;

        let kept = root
            .tensor("encode_params")?
            .values
            .get(2)
            .map_or(0, |&count| count as usize);
        root.ensure(
            (1..=all).contains(&kept),
            format_args!("encode_params asks for {kept} of {all} latents"),
        )?;
        let weight = pca.values[..kept * all].to_vec();
        let product = |row: &[f32]| {
            row.iter()
                .zip(&mean.values)
                .map(|(a, b)| f64::from(*a) * f64::from(*b))
                .sum::<f64>()
        };
        let bias = weight
            .chunks_exact(all)
            .map(|row| -product(row) as f32)
            .collect();
        let components = self.with_channels(
            "latent_pca",
            &sample,
            kept,
            Op::Linear(Linear { outputs: kept }),
        )?;
        self.weight(
            "latent_pca",
            "weight",
            TensorData::new(&[kept, all], weight),
        )?;
        self.weight("latent_pca", "bias", TensorData::new(&[kept], bias))?;
        Ok((components, all))
    }

    /// Adds the residual vector quantization of a discrete encoder; returns the codes.
    fn nearest_codes(
        &mut self,
        encoder: &Module<'_>,
        signal: &Signal,
    ) -> Result<Signal, ModelError> {
        let codebook = codebook(encoder)?;
        let [codebooks, codes, channels] = codebook.shape[..] else {
            unreachable!("a codebook has three dimensions")
        };
        encoder.ensure(
            channels == signal.channels,
            format_args!(
                "its codes have {channels} channels, its values {}",
                signal.channels
            ),
        )?;
        let nearest = self.with_channels(
            "encoder.codes",
            signal,
            codebooks,
            Op::NearestCodes(NearestCodes { codebooks, codes }),
        )?;
        self.weight("encoder.codes", "codebook", codebook)?;
        Ok(nearest)
    }

    /// Adds the sum of the entries that codes name.
    fn code_sum(&mut self, encoder: &Module<'_>, signal: &Signal) -> Result<Signal, ModelError> {
        let codebook = codebook(encoder)?;
        let [_, codes, channels] = codebook.shape[..] else {
            unreachable!("a codebook has three dimensions")
        };
        let sum = self.with_channels(
            "decoder.codes",
            signal,
            channels,
            Op::CodeSum(CodeSum { codes, channels }),
        )?;
        self.weight("decoder.codes", "codebook", codebook)?;
        Ok(sum)
    }

    /// Adds the way from latents to sound of so many channels.
    fn decode(
        &mut self,
        root: &Module<'_>,
        bank: Option<&Module<'_>>,
        latents: &Signal,
        all: usize,
        channels: usize,
    ) -> Result<Signal, ModelError> {
        let mut signal = latents.clone();
        let encoder = root.child("encoder")?;
        if encoder.class() == "DiscreteEncoder" {
            signal = self.code_sum(&encoder, &signal)?;
        }
        if signal.channels < all {
            let noise = self.normal_noise("decoder.noise", &signal, all - signal.channels)?;
            self.node("decoder.all_latents", &[&signal, &noise], Op::Concat)?;
            signal = Signal {
                name: "decoder.all_latents".into(),
                channels: all,
                ..signal
            };
        }
        if encoder.class() == "VariationalEncoder" {
            let (pca, mean) = (root.tensor("latent_pca")?, root.tensor("latent_mean")?);
            let transposed = (0..all * all)
                .map(|index| pca.values[index % all * all + index / all])
                .collect();
            signal = self.with_channels(
                "latent_pca.back",
                &signal,
                all,
                Op::Linear(Linear { outputs: all }),
            )?;
            self.weight(
                "latent_pca.back",
                "weight",
                TensorData::new(&[all, all], transposed),
            )?;
            self.weight("latent_pca.back", "bias", mean)?;
        }
        signal = self.module(&root.child("decoder")?, &signal)?;
        if let Some(bank) = bank {
            signal = self.synthesis(bank, &signal, channels)?;
        }
        if let Some(resampler) = root.maybe_child("resampler") {
            let unchanged = |_: &mut TensorData, _: &mut TensorData| Ok(());
            let filters = resampler.child("upsample")?;
            let phases = self.convolution_with(&filters, &signal, channels, unchanged)?;
            signal = self.interleaved("resampler.samples", &filters, &phases, channels)?;
        }
        root.ensure(
            (signal.channels, signal.ratio) == (channels, 1),
            format_args!(
                "it ends in {} channels, one frame for {} samples",
                signal.channels, signal.ratio
            ),
        )?;
        self.same_shape(
            "out",
            &[&signal],
            Op::Latency(Latency {
                samples: signal.latency,
            }),
        )
    }

    fn normal_noise(
        &mut self,
        name: &str,
        input: &Signal,
        channels: usize,
    ) -> Result<Signal, ModelError> {
        let number = self.noise_number();
        self.with_channels(
            name,
            input,
            channels,
            Op::Noise(Noise {
                channels,
                distribution: Distribution::Normal,
                number,
            }),
        )
    }

    /// Adds the synthesis filter bank of each channel. Its filters output the samples of a frame in
    /// reverse order.
    fn synthesis(
        &mut self,
        bank: &Module<'_>,
        input: &Signal,
        channels: usize,
    ) -> Result<Signal, ModelError> {
        let factor = input.channels / channels;
        let flipped = self.same_shape("pqmf.inverse", &[input], Op::FlipOddBands)?;
        let filters = bank.child("inverse_conv")?;
        let samples = self.convolution_with(&filters, &flipped, channels, |weight, bias| {
            let row = weight.values.len() / bias.values.len();
            let rows = weight.values.chunks_exact(row).rev().flatten();
            weight.values = rows.map(|value| value * factor as f32).collect();
            bias.values.reverse();
            bias.values
                .iter_mut()
                .for_each(|value| *value *= factor as f32);
            Ok(())
        })?;
        self.interleaved("pqmf.samples", &filters, &samples, channels)
    }

    /// Adds nodes that put the samples of each channel, which filters compute side by side, one
    /// after another.
    fn interleaved(
        &mut self,
        name: &str,
        filters: &Module<'_>,
        samples: &Signal,
        channels: usize,
    ) -> Result<Signal, ModelError> {
        let factor = samples.channels / channels;
        filters.ensure(
            factor * channels == samples.channels
                && factor > 0
                && samples.ratio.is_multiple_of(factor),
            format_args!(
                "it makes {} samples of {channels} channels",
                samples.channels
            ),
        )?;
        let ratio = samples.ratio / factor;
        if channels == 1 {
            self.node(name, &[samples], Op::Interleave(Interleave { factor }))?;
            return Ok(Signal {
                name: name.to_owned(),
                channels,
                ratio,
                ..samples.clone()
            });
        }
        let mut separate = Vec::new();
        for channel in 0..channels {
            let own = self.split(
                &format!("{name}.{channel}.phases"),
                samples,
                channel * factor,
                factor,
            )?;
            let name = format!("{name}.{channel}");
            self.node(&name, &[&own], Op::Interleave(Interleave { factor }))?;
            separate.push(Signal {
                name,
                channels: 1,
                ratio,
                ..own
            });
        }
        self.node(name, &separate.iter().collect::<Vec<_>>(), Op::Concat)?;
        Ok(Signal {
            name: name.to_owned(),
            channels,
            ratio,
            ..samples.clone()
        })
    }
}
