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
    Affine, Conv1d, ConvTranspose1d, Delay, Interleave, Latency, Linear, Noise, ShapedNoise, Split,
};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::config::{CodecConfig, CodecNetworkConfig};
use super::filter_bank::FilterBank;

/// Name of the latents: a node of the encoder, and the port between the methods.
pub const LATENTS: &str = "latents";
/// Node of an encoder in training that outputs means and log variances of the latents.
pub const DISTRIBUTION: &str = "encoder.distribution";
/// Node of an encoder in training that outputs normal noise of the latents' shape.
pub const DRAW: &str = "encoder.draw";
/// Node of an encoder that outputs the latents without the pitch.
pub const MEANS: &str = "encoder.means";
/// Node of an encoder that outputs the probability of each semitone from [`LOWEST_PITCH`] on.
pub const PITCH_PROBABILITIES: &str = "encoder.pitch.probabilities";
/// Node of an encoder that outputs the pitch, octaves above [`REFERENCE_PITCH`].
pub const PITCH: &str = "pitch_scale.mean";
/// First node of the decoder.
pub const DECODER_INPUT: &str = "decoder.input";
/// Prefixes of weights that are not learnt: of the filter bank, and of the scale of the pitch.
pub const FIXED: [&str; 2] = ["filter_bank", "pitch_scale"];

/// Lowest pitch that an encoder hears, semitones: 33 Hz.
pub const LOWEST_PITCH: usize = 24;
/// Pitches that an encoder hears, a semitone apart, up to 4.2 kHz.
pub const PITCHES: usize = 85;
/// Pitch whose latent is 0, semitones.
pub const REFERENCE_PITCH: f32 = 69.0;
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

/// Returns the encoder as it is trained: it shows distribution and normal noise, and if it hears
/// the pitch, the probabilities of the semitones and their mean.
///
/// # Errors
/// Returns an error if the model is no codec of [`untrained`].
pub fn training_encoder(model: &Model) -> Result<Method, ModelError> {
    let mut encode = model.method("encode")?.clone();
    let hears_pitch = encode.nodes.iter().any(|node| node.name == PITCH);
    let latents = encode.outputs[0].channels - usize::from(hears_pitch);
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
    let shown = [DISTRIBUTION, DRAW, PITCH_PROBABILITIES, PITCH];
    showing(&encode, if hears_pitch { &shown } else { &shown[..2] })
}

/// Returns the part of an encoder that hears the pitch: the probabilities of the semitones, and
/// their mean.
///
/// # Errors
/// Returns an error if the model hears no pitch.
pub fn pitch_encoder(model: &Model) -> Result<Method, ModelError> {
    showing(model.method("encode")?, &[PITCH_PROBABILITIES, PITCH])
}

fn encoder(network: &CodecNetworkConfig, bank: FilterBank) -> Method {
    let mut nodes = Nodes {
        activations: "encoder.activation",
        ..Nodes::default()
    };
    let analysis = Op::Conv1d(Conv1d::new(bank.bands, bank.taps()).strided(bank.bands));
    let bands = nodes.add("filter_bank.analysis", &["in"], analysis);
    let bands = nodes.add("encoder.bands", &[&bands], Op::FlipOddBands);
    let mut channels = network.channels;
    let views: Vec<String> = VIEWS
        .iter()
        .map(|&gain| nodes.limited(&bands, gain))
        .collect();
    let views = nodes.add(
        "encoder.views",
        &views.iter().map(String::as_str).collect::<Vec<_>>(),
        Op::Concat,
    );
    let mut value = nodes.convolution("encoder.input", &views, channels, OUTER_KERNEL, 1);
    for (stage, &ratio) in network.ratios.iter().enumerate() {
        for dilation in ENCODER_DILATIONS {
            value = nodes.residual(
                &format!("encoder.{stage}.{dilation}"),
                &value,
                channels,
                dilation,
            );
        }
        channels *= 2;
        let active = nodes.active(&value);
        let down = Op::Conv1d(Conv1d::new(channels, 2 * ratio).strided(ratio));
        value = nodes.add(&format!("encoder.{stage}.down"), &[&active], down);
    }
    let active = nodes.active(&value);
    let distribution = nodes.convolution(DISTRIBUTION, &active, 2 * network.latents, KERNEL, 1);
    let means = nodes.add(
        MEANS,
        &[&distribution],
        Op::Split(Split {
            start: 0,
            channels: network.latents,
        }),
    );
    let mut latents = vec![means];
    if network.harmonics > 0 {
        let evidence = nodes.convolution("encoder.pitch", &active, PITCHES, KERNEL, 1);
        let probabilities = nodes.add(PITCH_PROBABILITIES, &[&evidence], Op::Softmax);
        latents.push(nodes.add(PITCH, &[&probabilities], Op::Linear(Linear { outputs: 1 })));
    }
    nodes.add(
        LATENTS,
        &latents.iter().map(String::as_str).collect::<Vec<_>>(),
        Op::Concat,
    );
    nodes.method(
        "encode",
        network,
        ("in", 1, 1),
        (LATENTS, network.latent_channels(), network.hop()),
    )
}

fn decoder(network: &CodecNetworkConfig, bank: FilterBank) -> Method {
    let mut nodes = Nodes {
        activations: "decoder.activation",
        ..Nodes::default()
    };
    let mut channels = network.channels << network.ratios.len();
    let mut frame = network.hop();
    let mut harmonics = None;
    let mut value = nodes.convolution(DECODER_INPUT, LATENTS, channels, KERNEL, 1);
    let active = nodes.active(&value);
    let shape = nodes.convolution(
        "decoder.noise.shape",
        &active,
        bank.bands * network.noise_bands,
        KERNEL,
        1,
    );
    for (stage, &ratio) in network.ratios.iter().enumerate().rev() {
        channels /= 2;
        let active = nodes.active(&value);
        let up = Op::ConvTranspose1d(ConvTranspose1d {
            outputs: channels,
            kernel: 2 * ratio,
            stride: ratio,
        });
        value = nodes.add(&format!("decoder.{stage}.up"), &[&active], up);
        for dilation in DECODER_DILATIONS {
            value = nodes.residual(
                &format!("decoder.{stage}.{dilation}"),
                &value,
                channels,
                dilation,
            );
        }
        frame /= ratio;
        // An oscillator is a frame late, which must not be more than the filter bank is.
        if network.harmonics > 0 && harmonics.is_none() && frame <= bank.delay() {
            harmonics = Some(harmonic_sound(&mut nodes, network, bank, &value, frame));
        }
    }
    let active = nodes.active(&value);
    // A wave and its amplitude, each in its own band.
    let wave = nodes.convolution("decoder.wave", &active, 2 * bank.bands, OUTER_KERNEL, 1);
    let wave = nodes.add("decoder.wave.gated", &[&wave], Op::Gate);
    let frames = network.hop() / bank.bands;
    let shape = nodes.add(
        "decoder.noise.offset",
        &[&shape],
        Op::Affine(Affine {
            scale: 1.0,
            offset: NOISE_OFFSET,
        }),
    );
    let shape = nodes.add(
        "decoder.noise.magnitudes",
        &[&shape],
        Op::Activation(Activation::ExpSigmoid),
    );
    let channels = bank.bands * frames;
    let white = Op::Noise(Noise {
        channels,
        distribution: Distribution::Uniform,
        number: NOISE_NUMBER,
    });
    let white = nodes.add("decoder.noise.white", &[&shape], white);
    let shaped = Op::ShapedNoise(ShapedNoise {
        bands: network.noise_bands,
        hop: frames,
    });
    let noise = nodes.add("decoder.noise", &[&shape, &white], shaped);
    let bands = nodes.add("decoder.bands", &[&wave, &noise], Op::Add);
    let bands = nodes.add("decoder.bands.flipped", &[&bands], Op::FlipOddBands);
    let samples = nodes.convolution(
        "filter_bank.synthesis",
        &bands,
        bank.bands,
        bank.synthesis_frames(),
        1,
    );
    let sound = nodes.add(
        "filter_bank.sound",
        &[&samples],
        Op::Interleave(Interleave { factor: bank.bands }),
    );
    let sound = nodes.add(
        "filter_bank.aligned",
        &[&sound],
        Op::Latency(Latency {
            samples: bank.delay(),
        }),
    );
    let parts = [Some(sound), harmonics]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>();
    match &parts[..] {
        [sound] => nodes.add(
            "out",
            &[sound],
            Op::Affine(Affine {
                scale: 1.0,
                offset: 0.0,
            }),
        ),
        parts => nodes.add(
            "out",
            &parts.iter().map(String::as_str).collect::<Vec<_>>(),
            Op::Add,
        ),
    };
    nodes.method(
        "decode",
        network,
        (LATENTS, network.latent_channels(), network.hop()),
        ("out", 1, 1),
    )
}

/// Adds harmonics of the pitch among the latents, whose levels are learnt; returns their sound, as
/// late as that of the filter bank. `value` has frames of `frame` samples.
fn harmonic_sound(
    nodes: &mut Nodes,
    network: &CodecNetworkConfig,
    bank: FilterBank,
    value: &str,
    frame: usize,
) -> String {
    let pitch = nodes.add(
        "decoder.pitch",
        &[LATENTS],
        Op::Split(Split {
            start: network.latents,
            channels: 1,
        }),
    );
    let stride = network.hop() / frame;
    let hold = Op::ConvTranspose1d(ConvTranspose1d {
        outputs: 1,
        kernel: stride,
        stride,
    });
    let pitch = nodes.add("pitch_scale.hold", &[&pitch], hold);
    let semitones = Op::Affine(Affine {
        scale: 1.0 / OCTAVES_PER_SEMITONE,
        offset: REFERENCE_PITCH,
    });
    let pitch = nodes.add("decoder.pitch.semitones", &[&pitch], semitones);
    let active = nodes.active(value);
    let levels = nodes.convolution(
        "decoder.harmonics.levels",
        &active,
        1 + network.harmonics,
        KERNEL,
        1,
    );
    let levels = nodes.add(
        "decoder.harmonics.positive",
        &[&levels],
        Op::Activation(Activation::ExpSigmoid),
    );
    let amplitude = nodes.add(
        "decoder.harmonics.amplitude",
        &[&levels],
        Op::Split(Split {
            start: 0,
            channels: 1,
        }),
    );
    let distribution = Op::Split(Split {
        start: 1,
        channels: network.harmonics,
    });
    let distribution = nodes.add("decoder.harmonics.distribution", &[&levels], distribution);
    let sound = nodes.add(
        "decoder.harmonics.sound",
        &[&pitch, &amplitude, &distribution],
        Op::Harmonic,
    );
    let late = bank.delay() - frame;
    let sound = nodes.add(
        "decoder.harmonics.delayed",
        &[&sound],
        Op::Delay(Delay { frames: late }),
    );
    nodes.add(
        "decoder.harmonics.aligned",
        &[&sound],
        Op::Latency(Latency { samples: late }),
    )
}

/// Nodes of a method under construction.
#[derive(Default)]
struct Nodes {
    nodes: Vec<Node>,
    /// Prefix of the names of activations, which are numbered.
    activations: &'static str,
}

impl Nodes {
    fn add(&mut self, name: &str, inputs: &[&str], op: Op) -> String {
        let inputs = inputs.iter().map(|&input| input.to_owned()).collect();
        self.nodes.push(Node {
            name: name.to_owned(),
            inputs,
            op,
        });
        name.to_owned()
    }

    fn convolution(
        &mut self,
        name: &str,
        input: &str,
        outputs: usize,
        kernel: usize,
        dilation: usize,
    ) -> String {
        self.add(
            name,
            &[input],
            Op::Conv1d(Conv1d::new(outputs, kernel).dilated(dilation)),
        )
    }

    fn active(&mut self, input: &str) -> String {
        let name = format!("{}.{}", self.activations, self.nodes.len());
        self.add(
            &name,
            &[input],
            Op::Activation(Activation::LeakyRelu { slope: SLOPE }),
        )
    }

    /// Adds the bands after a gain, limited to −1..1.
    fn limited(&mut self, bands: &str, gain: f32) -> String {
        let loud = self.add(
            &format!("encoder.views.{gain}.gain"),
            &[bands],
            Op::Affine(Affine {
                scale: gain,
                offset: 0.0,
            }),
        );
        self.add(
            &format!("encoder.views.{gain}"),
            &[&loud],
            Op::Activation(Activation::Tanh),
        )
    }

    fn residual(&mut self, name: &str, input: &str, channels: usize, dilation: usize) -> String {
        let active = self.active(input);
        let wide = self.convolution(&format!("{name}.wide"), &active, channels, KERNEL, dilation);
        let active = self.active(&wide);
        let point = self.convolution(&format!("{name}.point"), &active, channels, 1, 1);
        self.add(name, &[input, &point], Op::Add)
    }

    fn method(
        self,
        name: &str,
        network: &CodecNetworkConfig,
        from: (&str, usize, usize),
        to: (&str, usize, usize),
    ) -> Method {
        let port = |(name, channels, ratio): (&str, usize, usize)| Port {
            name: name.into(),
            channels,
            ratio,
        };
        let (inputs, outputs) = (vec![port(from)], vec![port(to)]);
        Method {
            name: name.into(),
            block: network.hop(),
            warm_up: 0,
            inputs,
            outputs,
            nodes: self.nodes,
        }
    }
}

/// Returns the latent of the pitch for a semitone above [`LOWEST_PITCH`].
fn octaves(semitone: usize) -> f32 {
    ((LOWEST_PITCH + semitone) as f32 - REFERENCE_PITCH) * OCTAVES_PER_SEMITONE
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
                    (PITCH, "weight") => (0..count).map(octaves).collect(),
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
