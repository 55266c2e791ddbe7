//! Graph of a codec: a filter bank, an encoder of causal convolutions to the latents, and its
//! mirror image.
//!
//! A codec with harmonics hears the pitch as well, as a latent of its own, and adds harmonics of
//! exactly that pitch to what the convolutions make: they would need far longer training to keep a
//! phase from one frame to the next.

use ondes_engine::model::{
    Activation, Card, Distribution, FORMAT, Header, Kind, Method, Model, ModelError, Node, Op,
    Port, Tensor, Weights,
};
use ondes_engine::ops::{
    Conv1d, ConvTranspose1d, Delay, Interleave, Latency, Noise, Pitch, ShapedNoise, Split,
};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::config::{CodecConfig, CodecNetworkConfig};
use super::filter_bank::FilterBank;
use crate::tasks::graph_builder::{GraphBuilder, port};

/// Name of the latents: a node of the encoder, and the port between the methods.
pub const LATENTS: &str = "latents";
/// Node of an encoder in training that outputs means and log variances of the latents.
pub const DISTRIBUTION: &str = "encoder.distribution";
/// Node of an encoder in training that outputs normal noise of the latents' shape.
pub const DRAW: &str = "encoder.draw";
/// Node of an encoder that outputs the latents without the pitch.
pub const MEANS: &str = "encoder.means";
/// Node of an encoder that outputs the pitch, semitones.
const SEMITONES: &str = "encoder.semitones";
/// Node of an encoder that outputs the pitch, octaves above [`REFERENCE_PITCH`].
const PITCH: &str = "encoder.pitch";
/// First node of the decoder.
pub const DECODER_INPUT: &str = "decoder.input";
/// Prefixes of weights that are not learnt: of the filter bank, and of the scale of the pitch.
pub const FIXED: [&str; 2] = ["filter_bank", "pitch_scale"];

/// Pitch whose latent is 0, semitones.
const REFERENCE_PITCH: f32 = 69.0;
/// Latent of the pitch for each semitone.
const OCTAVES_PER_SEMITONE: f32 = 1.0 / 12.0;

/// Dilations of the residual layers of a stage (van den Oord et al., 2016).
const ENCODER_DILATIONS: [usize; 2] = [1, 3];
const DECODER_DILATIONS: [usize; 3] = [1, 3, 9];
/// Gains at which the encoder sees the bands, so that it tells quiet sounds from silence, and loud
/// ones from each other.
const VIEWS: [f32; 3] = [1.0, 10.0, 100.0];
/// Taps of the first layer of the encoder and the last of the decoder.
const OUTER_KERNEL: usize = 7;
/// Taps of the other layers without a stride.
const KERNEL: usize = 3;
/// Slope of the activation below zero.
const SLOPE: f32 = 0.2;
/// Offset of the noise's magnitudes, so that it is quiet before training (Caillon & Esling,
/// arXiv:2111.05011).
const NOISE_OFFSET: f32 = -5.0;
/// Offset of the logarithm of the harmonics' amplitude: they begin at −28 dB.
const AMPLITUDE_OFFSET: f32 = -1.5;
/// Number of the decoder's noise, and of the encoder's in training.
const NOISE_NUMBER: u32 = 1;
const DRAW_NUMBER: u32 = 2;
/// Scale of the initial weights of a residual layer's last convolution, so that deep networks begin
/// as shallow ones.
const RESIDUAL_SCALE: f32 = 0.3;
/// Scale of the initial weights of the layers that make latents, wave and noise.
const OUTPUT_SCALE: f32 = 0.3;
/// Initial logarithm of the latents' variance: small, so that the decoder can rely on them from the
/// first step.
pub const LOG_VARIANCE: f32 = -4.0;

/// Creates an untrained codec.
///
/// # Errors
/// Returns an error if the sizes make no valid model.
pub fn untrained(config: &CodecConfig) -> Result<Model, ModelError> {
    let network = &config.network;
    let bank = FilterBank {
        bands: network.bands,
    };
    let (encode, decode) = (encoder(network, bank), decoder(network, bank));
    let forward = Method {
        name: "forward".into(),
        nodes: encode.nodes.iter().chain(&decode.nodes).cloned().collect(),
        outputs: decode.outputs.clone(),
        ..encode.clone()
    };
    let methods = vec![encode, decode, forward];
    let weights = initial_weights(&methods[..2], bank, config.seed)?;
    let header = Header {
        format: FORMAT,
        kind: Kind::Codec,
        sample_rate: network.sample_rate,
        methods,
        controls: Vec::new(),
        variants: Vec::new(),
        oversampling: 1,
        performance: None,
        card: Card {
            name: config.name.clone(),
            description: config.description.clone(),
            author: config.author.clone(),
            licence: config.licence.clone(),
            ..Card::default()
        },
    };
    Model::new(header, weights)
}

/// Returns the sizes of a codec of [`untrained`].
///
/// # Errors
/// Returns an error if it is none.
pub fn sizes(codec: &Model) -> anyhow::Result<CodecNetworkConfig> {
    let methods = [codec.method("encode")?, codec.method("decode")?];
    let nodes = || methods.into_iter().flat_map(|method| &method.nodes);
    let find = |name: &str| nodes().find(|node| node.name == name).map(|node| &node.op);
    let outputs = |name: &str| match find(name) {
        Some(Op::Conv1d(Conv1d { outputs, .. })) => Ok(*outputs),
        Some(Op::Split(Split { channels, .. })) => Ok(*channels),
        _ => {
            anyhow::bail!("its network is none that `ondes-train codec` trains: there is no {name}")
        }
    };
    let stride = |stage: usize| match find(&format!("encoder.{stage}.down"))? {
        Op::Conv1d(Conv1d { stride, .. }) => Some(*stride),
        _ => None,
    };
    Ok(CodecNetworkConfig {
        sample_rate: codec.header().sample_rate,
        bands: outputs("filter_bank.analysis")?,
        channels: outputs("encoder.input")?,
        ratios: (0..).map_while(stride).collect(),
        latents: outputs(MEANS)?,
        noise_bands: outputs("decoder.noise.shape")? / outputs("filter_bank.analysis")?,
        harmonics: outputs("decoder.harmonics.distribution").unwrap_or(0),
    })
}

/// Returns `method` with other outputs: values of its nodes.
///
/// # Errors
/// Returns an error if there is no such node.
pub fn showing(method: &Method, nodes: &[&str]) -> Result<Method, ModelError> {
    let shapes = method.infer()?;
    let port = |name: &&str| {
        let index = method.nodes.iter().position(|node| node.name == **name);
        let index = index
            .ok_or_else(|| ModelError::Header(format!("{} has no node {name:?}", method.name)))?;
        let shape = shapes.values[method.inputs.len() + index];
        Ok(Port {
            name: (*name).to_owned(),
            channels: shape.channels,
            ratio: shape.ratio,
        })
    };
    Ok(Method {
        outputs: nodes.iter().map(port).collect::<Result<_, ModelError>>()?,
        ..method.clone()
    })
}

/// Returns the part of the encoder that is trained: it shows distribution and normal noise.
///
/// # Errors
/// Returns an error if the model is no codec of [`untrained`].
pub fn training_encoder(model: &Model) -> Result<Method, ModelError> {
    let mut encode = model.method("encode")?.clone();
    let is_heard = encode.nodes.iter().any(|node| node.name == PITCH);
    let latents = encode.outputs[0].channels - usize::from(is_heard);
    let noise = Op::Noise(Noise {
        channels: latents,
        distribution: Distribution::Normal,
        number: DRAW_NUMBER,
    });
    encode.nodes.push(Node {
        name: DRAW.into(),
        inputs: vec![DISTRIBUTION.into()],
        op: noise,
    });
    let mut trained = showing(&encode, &[DISTRIBUTION, DRAW])?;
    let others = [SEMITONES, PITCH, LATENTS];
    trained.nodes.retain(|node| !others.contains(&&*node.name));
    Ok(trained)
}

/// Returns pitches as they are among the latents, from semitones.
pub fn octaves(semitones: &tch::Tensor) -> tch::Tensor {
    (semitones - f64::from(REFERENCE_PITCH)) * f64::from(OCTAVES_PER_SEMITONE)
}

fn encoder(network: &CodecNetworkConfig, bank: FilterBank) -> Method {
    let mut builder = CodecBuilder::new("encoder.activation");
    let graph = &mut builder.graph;
    let analysis = "filter_bank.analysis";
    let bands = graph.strided(analysis, "in", bank.bands, bank.taps(), bank.bands);
    let bands = graph.add("encoder.bands", &[&bands], Op::FlipOddBands);
    let mut channels = network.channels;
    let views = VIEWS.map(|gain| builder.limited(&bands, gain));
    let graph = &mut builder.graph;
    let views = graph.concat("encoder.views", &views);
    let mut value = graph.convolution("encoder.input", &views, channels, OUTER_KERNEL, 1);
    for (stage, &ratio) in network.ratios.iter().enumerate() {
        for dilation in ENCODER_DILATIONS {
            let name = format!("encoder.{stage}.{dilation}");
            value = builder.residual(&name, &value, channels, dilation);
        }
        channels *= 2;
        let active = builder.active(&value);
        let down = format!("encoder.{stage}.down");
        value = builder
            .graph
            .strided(&down, &active, channels, 2 * ratio, ratio);
    }
    let active = builder.active(&value);
    let mut graph = builder.graph;
    let distribution = graph.convolution(DISTRIBUTION, &active, 2 * network.latents, KERNEL, 1);
    let mut latents = vec![graph.split(MEANS, &distribution, 0, network.latents)];
    if network.harmonics > 0 {
        let hop = network.hop();
        let semitones = graph.add(SEMITONES, &["in"], Op::Pitch(Pitch { hop }));
        let offset = -REFERENCE_PITCH * OCTAVES_PER_SEMITONE;
        latents.push(graph.affine(PITCH, &semitones, OCTAVES_PER_SEMITONE, offset));
    }
    graph.concat(LATENTS, &latents);
    let latents = port(LATENTS, network.latent_channels(), network.hop());
    graph.into_method(
        "encode",
        network.hop(),
        vec![port("in", 1, 1)],
        vec![latents],
    )
}

fn decoder(network: &CodecNetworkConfig, bank: FilterBank) -> Method {
    let mut builder = CodecBuilder::new("decoder.activation");
    let mut channels = network.channels << network.ratios.len();
    let mut frame = network.hop();
    let mut harmonics = None;
    let mut value = builder
        .graph
        .convolution(DECODER_INPUT, LATENTS, channels, KERNEL, 1);
    let active = builder.active(&value);
    let magnitudes = bank.bands * network.noise_bands;
    let shape = "decoder.noise.shape";
    let shape = builder
        .graph
        .convolution(shape, &active, magnitudes, KERNEL, 1);
    for (stage, &ratio) in network.ratios.iter().enumerate().rev() {
        channels /= 2;
        let active = builder.active(&value);
        let up = Op::ConvTranspose1d(ConvTranspose1d {
            outputs: channels,
            kernel: 2 * ratio,
            stride: ratio,
        });
        value = builder
            .graph
            .add(&format!("decoder.{stage}.up"), &[&active], up);
        for dilation in DECODER_DILATIONS {
            let name = format!("decoder.{stage}.{dilation}");
            value = builder.residual(&name, &value, channels, dilation);
        }
        frame /= ratio;
        // An oscillator is a frame late, which must not be more than the filter bank is.
        if network.harmonics > 0 && harmonics.is_none() && frame <= bank.delay() {
            harmonics = Some(harmonic_sound(&mut builder, network, bank, &value, frame));
        }
    }
    let active = builder.active(&value);
    let mut graph = builder.graph;
    // A wave and its amplitude, each in its own band.
    let wave = graph.convolution("decoder.wave", &active, 2 * bank.bands, OUTER_KERNEL, 1);
    let wave = graph.add("decoder.wave.gated", &[&wave], Op::Gate);
    let noise = band_noise(&mut graph, network, bank, &shape);
    let bands = graph.add("decoder.bands", &[&wave, &noise], Op::Add);
    let bands = graph.add("decoder.bands.flipped", &[&bands], Op::FlipOddBands);
    let frames = bank.synthesis_frames();
    let samples = graph.convolution("filter_bank.synthesis", &bands, bank.bands, frames, 1);
    let interleave = Op::Interleave(Interleave { factor: bank.bands });
    let sound = graph.add("filter_bank.sound", &[&samples], interleave);
    let samples = bank.delay();
    let sound = graph.add(
        "filter_bank.aligned",
        &[&sound],
        Op::Latency(Latency { samples }),
    );
    match harmonics {
        Some(harmonics) => graph.add("out", &[&sound, &harmonics], Op::Add),
        None => graph.affine("out", &sound, 1.0, 0.0),
    };
    let latents = port(LATENTS, network.latent_channels(), network.hop());
    graph.into_method(
        "decode",
        network.hop(),
        vec![latents],
        vec![port("out", 1, 1)],
    )
}

/// Adds noise with the magnitudes `shape` in each band.
fn band_noise(
    graph: &mut GraphBuilder,
    network: &CodecNetworkConfig,
    bank: FilterBank,
    shape: &str,
) -> String {
    let hop = network.hop() / bank.bands;
    let shape = graph.affine("decoder.noise.offset", shape, 1.0, NOISE_OFFSET);
    let magnitudes = "decoder.noise.magnitudes";
    let shape = graph.activation(magnitudes, &shape, Activation::ExpSigmoid);
    let white = Op::Noise(Noise {
        channels: bank.bands * hop,
        distribution: Distribution::Uniform,
        number: NOISE_NUMBER,
    });
    let white = graph.add("decoder.noise.white", &[&shape], white);
    let shaped = Op::ShapedNoise(ShapedNoise {
        bands: network.noise_bands,
        hop,
    });
    graph.add("decoder.noise", &[&shape, &white], shaped)
}

/// Adds harmonics of the pitch among the latents, whose levels are learnt; returns their sound,
/// delayed as that of the filter bank. `value` has frames of `frame` samples.
fn harmonic_sound(
    builder: &mut CodecBuilder,
    network: &CodecNetworkConfig,
    bank: FilterBank,
    value: &str,
    frame: usize,
) -> String {
    let graph = &mut builder.graph;
    let pitch = graph.split("decoder.pitch", LATENTS, network.latents, 1);
    let stride = network.hop() / frame;
    let hold = Op::ConvTranspose1d(ConvTranspose1d {
        outputs: 1,
        kernel: stride,
        stride,
    });
    let pitch = graph.add("pitch_scale.hold", &[&pitch], hold);
    let (scale, semitones) = (1.0 / OCTAVES_PER_SEMITONE, "decoder.pitch.semitones");
    let pitch = graph.affine(semitones, &pitch, scale, REFERENCE_PITCH);
    let active = builder.active(value);
    let graph = &mut builder.graph;
    let name = |part: &str| format!("decoder.harmonics.{part}");
    let count = 1 + network.harmonics;
    let levels = graph.convolution(&name("levels"), &active, count, KERNEL, 1);
    let levels = graph.activation(&name("positive"), &levels, Activation::ExpSigmoid);
    let amplitude = graph.split(&name("amplitude"), &levels, 0, 1);
    let distribution = graph.split(&name("distribution"), &levels, 1, network.harmonics);
    let inputs = [&*pitch, &amplitude, &distribution];
    let sound = graph.add(&name("sound"), &inputs, Op::Harmonic);
    let samples = bank.delay() - frame;
    let sound = graph.add(
        &name("delayed"),
        &[&sound],
        Op::Delay(Delay { frames: samples }),
    );
    graph.add(
        &name("aligned"),
        &[&sound],
        Op::Latency(Latency { samples }),
    )
}

/// Graph of a codec under construction.
struct CodecBuilder {
    graph: GraphBuilder,
    /// Prefix of the names of activations, which are numbered.
    activations: &'static str,
}

impl CodecBuilder {
    fn new(activations: &'static str) -> Self {
        Self {
            graph: GraphBuilder::default(),
            activations,
        }
    }

    /// Adds the activation.
    fn active(&mut self, input: &str) -> String {
        let name = format!("{}.{}", self.activations, self.graph.nodes.len());
        let activation = Activation::LeakyRelu { slope: SLOPE };
        self.graph.activation(&name, input, activation)
    }

    /// Adds the bands after a gain, limited to −1..1.
    fn limited(&mut self, bands: &str, gain: f32) -> String {
        let name = format!("encoder.views.{gain}");
        let loud = self.graph.affine(&format!("{name}.gain"), bands, gain, 0.0);
        self.graph.activation(&name, &loud, Activation::Tanh)
    }

    /// Adds a residual layer: two convolutions, the first dilated.
    fn residual(&mut self, name: &str, input: &str, channels: usize, dilation: usize) -> String {
        let active = self.active(input);
        let (wide, point) = (format!("{name}.wide"), format!("{name}.point"));
        let wide = self
            .graph
            .convolution(&wide, &active, channels, KERNEL, dilation);
        let active = self.active(&wide);
        let point = self.graph.convolution(&point, &active, channels, 1, 1);
        self.graph.add(name, &[input, &point], Op::Add)
    }
}

/// Draws initial weights that keep the variance of what goes through (He et al., ICCV 2015).
fn initial_weights(methods: &[Method], bank: FilterBank, seed: u64) -> Result<Weights, ModelError> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut weights = Weights::default();
    for method in methods {
        let shapes = method.infer()?;
        for (node, inputs) in method.nodes.iter().zip(shapes.node_inputs()) {
            let scale = match node.name.as_str() {
                DISTRIBUTION
                | "decoder.wave"
                | "decoder.noise.shape"
                | "decoder.harmonics.levels" => OUTPUT_SCALE,
                name if name.ends_with(".point") => RESIDUAL_SCALE,
                _ => 1.0,
            };
            for spec in node.op.weights(&inputs) {
                let count: usize = spec.shape.iter().product();
                let taps = match node.op {
                    Op::ConvTranspose1d(ConvTranspose1d { kernel, stride, .. }) => {
                        inputs[0].channels * kernel / stride
                    }
                    _ => spec.shape[1..].iter().product(),
                };
                let bound = scale * (6.0 / ((1.0 + SLOPE * SLOPE) * taps.max(1) as f32)).sqrt();
                let values = match (node.name.as_str(), spec.name) {
                    ("filter_bank.analysis", "weight") => bank.analysis(),
                    ("filter_bank.synthesis", "weight") => bank.synthesis(),
                    ("pitch_scale.hold", "weight") => vec![1.0; count],
                    ("decoder.harmonics.levels", "bias") => (0..count)
                        .map(|level| if level == 0 { AMPLITUDE_OFFSET } else { 0.0 })
                        .collect(),
                    (DISTRIBUTION, "bias") => (0..count)
                        .map(|index| if index < count / 2 { 0.0 } else { LOG_VARIANCE })
                        .collect(),
                    (_, "bias") => vec![0.0; count],
                    _ => (0..count)
                        .map(|_| random.random_range(-bound..bound))
                        .collect(),
                };
                weights.insert(
                    format!("{}.{}", node.name, spec.name),
                    Tensor::new(&spec.shape, values),
                );
            }
        }
    }
    Ok(weights)
}
