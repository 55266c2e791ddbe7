//! Small untrained models that process audio: an effect and a codec.

use ondes_engine::executor::Execute;
use ondes_engine::model::bars::{BARS, BARS_BEFORE, Recall};
use ondes_engine::model::{Activation, Control, Kind, Method, Model, Node, Op, Port};
use ondes_engine::native::Executor;
use ondes_engine::ops::{Affine, Conv1d, ConvTranspose1d, DrawMixture, Gru, Linear};
use ondes_engine::pipeline::PipelineOptions;

use crate::{header, node, port, random_weights};

/// Samples per step of the effect.
pub const EFFECT_BLOCK: usize = 64;
/// Latents of the codec.
pub const LATENTS: usize = 4;
/// Samples per frame of latents.
pub const RATIO: usize = 64;

/// Creates a method whose output is its last node.
///
/// # Panics
/// If the nodes do not fit together.
#[must_use]
pub fn method(name: &str, block: usize, inputs: Vec<Port>, nodes: Vec<Node>) -> Method {
    let mut method = Method {
        name: name.into(),
        block,
        warm_up: 0,
        inputs,
        outputs: Vec::new(),
        nodes,
    };
    let shape = *method
        .infer()
        .expect("the nodes fit")
        .values
        .last()
        .expect("there are nodes");
    let last = method
        .nodes
        .last()
        .map(|node| node.name.clone())
        .unwrap_or_default();
    method
        .outputs
        .push(port(&last, shape.channels, shape.ratio));
    method
}

fn conv(outputs: usize, kernel: usize, stride: usize, dilation: usize) -> Op {
    Op::Conv1d(
        Conv1d::new(outputs, kernel)
            .strided(stride)
            .dilated(dilation),
    )
}

/// Returns a stack of convolutions after a gain control; its receptive field is
/// [`Method::tail_samples`].
#[must_use]
pub fn effect_methods() -> Vec<Method> {
    let nodes = vec![
        node("driven", &["in", "drive"], Op::Multiply),
        node("first", &["driven"], conv(8, 3, 1, 1)),
        node("bent", &["first"], Op::Activation(Activation::Tanh)),
        node("second", &["bent"], conv(8, 3, 1, 16)),
        node("rounded", &["second"], Op::Activation(Activation::Tanh)),
        node("both", &["bent", "rounded"], Op::Add),
        node("audio", &["both"], conv(1, 5, 1, 1)),
    ];
    vec![method(
        "forward",
        EFFECT_BLOCK,
        vec![port("in", 1, 1), port("drive", 1, 1)],
        nodes,
    )]
}

/// Returns an encoder to four latents at ratio 64, and a decoder. A step takes one frame in the
/// encoder, two in the decoder.
#[must_use]
pub fn codec_methods() -> Vec<Method> {
    let down = vec![
        node("down1", &["in"], conv(8, 8, 4, 1)),
        node("bent1", &["down1"], Op::Activation(Activation::Tanh)),
        node("down2", &["bent1"], conv(8, 8, 4, 1)),
        node("bent2", &["down2"], Op::Activation(Activation::Tanh)),
        node("latents", &["bent2"], conv(LATENTS, 8, 4, 1)),
    ];
    let up = |outputs| {
        Op::ConvTranspose1d(ConvTranspose1d {
            outputs,
            kernel: 8,
            stride: 4,
        })
    };
    let up = vec![
        node("up1", &["z"], up(8)),
        node("round1", &["up1"], Op::Activation(Activation::Tanh)),
        node("up2", &["round1"], up(8)),
        node("round2", &["up2"], Op::Activation(Activation::Tanh)),
        node("audio", &["round2"], up(1)),
    ];
    vec![
        method("encode", RATIO, vec![port("in", 1, 1)], down),
        method("decode", 2 * RATIO, vec![port("z", LATENTS, RATIO)], up),
    ]
}

/// Creates a generator with random weights whose prior draws each frame of latents from a mixture
/// that depends on the frame before, with the control `temperature`.
///
/// # Panics
/// If the methods are invalid.
#[must_use]
pub fn autoregressive_generator(seed: u64) -> Model {
    let nodes = vec![
        node(
            "hidden",
            &["drawn.previous"],
            Op::Linear(Linear { outputs: 9 }),
        ),
        node(
            "walk",
            &["hidden"],
            Op::Gru(Gru {
                hidden: 9,
                initial_state: false,
            }),
        ),
        node("logits", &["walk"], Op::Linear(Linear { outputs: 3 })),
        node(
            "means",
            &["walk"],
            Op::Linear(Linear {
                outputs: 3 * LATENTS,
            }),
        ),
        node(
            "widths",
            &["walk"],
            Op::Linear(Linear {
                outputs: 3 * LATENTS,
            }),
        ),
        node("scales", &["widths"], Op::Activation(Activation::Softplus)),
        node(
            "drawn",
            &["logits", "means", "scales", "temperature"],
            Op::DrawMixture(DrawMixture {
                components: 3,
                least: 0.0,
                number: 1,
            }),
        ),
    ];
    let inputs = vec![
        port("drawn.previous", LATENTS, RATIO),
        port("temperature", 1, RATIO),
    ];
    let mut methods = codec_methods();
    methods[0] = method("prior", RATIO, inputs, nodes);
    model_with(Kind::Generator, methods, &["temperature"], seed)
}

/// Creates a generator as [`autoregressive_generator`] does, whose prior also reads what it has
/// drawn a bar before; its second output shows that.
///
/// # Panics
/// If the methods are invalid.
#[must_use]
pub fn recalling_generator(seed: u64) -> Model {
    let mut methods = autoregressive_generator(seed).header().methods.clone();
    let prior = methods
        .iter_mut()
        .find(|method| method.name == "prior")
        .expect("it has one");
    let before = format!("drawn{BARS_BEFORE}1");
    let channels = Recall::channels(LATENTS);
    prior
        .inputs
        .extend([port(&before, channels, RATIO), port(BARS, 1, RATIO)]);
    prior.nodes.splice(
        ..0,
        [
            node(
                "recalled",
                &[&before],
                Op::Affine(Affine {
                    scale: 1.0,
                    offset: 0.0,
                }),
            ),
            node("read", &["drawn.previous", "recalled"], Op::Concat),
        ],
    );
    prior.nodes[2].inputs = vec!["read".into()];
    prior.outputs.push(port("recalled", channels, RATIO));
    model_with(Kind::Generator, methods, &["temperature"], seed)
}

/// Creates a generator whose latents are those that it hears times the control `listen`.
///
/// # Panics
/// If the methods are invalid.
#[must_use]
pub fn listening_generator(seed: u64) -> Model {
    let inputs = vec![port("heard", LATENTS, RATIO), port("listen", 1, RATIO)];
    let mut methods = codec_methods();
    methods.push(method(
        "prior",
        RATIO,
        inputs,
        vec![node("made", &["heard", "listen"], Op::Multiply)],
    ));
    model_with(Kind::Generator, methods, &["listen"], seed)
}

/// Returns a control from 0 to 4 with default 1.
#[must_use]
pub fn control(name: &str) -> Control {
    Control::linear(name, "", (0.0, 4.0), 1.0, "")
}

/// Creates a model with random weights; `controls` are added to those of [`header`].
///
/// # Panics
/// If the methods are invalid.
#[must_use]
pub fn model_with(kind: Kind, methods: Vec<Method>, controls: &[&str], seed: u64) -> Model {
    let weights = random_weights(&methods, seed);
    let mut header = header(kind, methods);
    header
        .controls
        .extend(controls.iter().map(|name| control(name)));
    Model::new(header, weights).expect("a random model is sound")
}

/// Creates the effect with random weights and the control `drive`.
#[must_use]
pub fn untrained_effect(seed: u64) -> Model {
    model_with(Kind::Effect, effect_methods(), &["drive"], seed)
}

/// Creates the codec with random weights.
#[must_use]
pub fn untrained_codec(seed: u64) -> Model {
    model_with(Kind::Codec, codec_methods(), &[], seed)
}

/// Runs a method once over whole inputs, `[frame][channel]` each, and returns its first output.
///
/// # Panics
/// If the inputs do not match the ports.
#[must_use]
pub fn whole(model: &Model, name: &str, inputs: &[&[f32]]) -> Vec<f32> {
    let method = model.method(name).expect("it is there");
    let port = &method.inputs[0];
    let blocks = inputs[0].len() / port.channels * port.ratio / method.block;
    let kernels = PipelineOptions::default().kernels;
    let mut executor = Executor::new(model, name, kernels, 1, blocks).expect("it is not too long");
    executor.begin(&[0], blocks);
    for (index, values) in inputs.iter().enumerate() {
        executor.input(index).copy_from_slice(values);
    }
    executor.run();
    executor.output(0).to_vec()
}

/// Returns audio that does not repeat: two gliding tones with a changing level.
#[must_use]
pub fn sound(length: usize, sample_rate: u32) -> Vec<f32> {
    let sample = |n: usize| {
        let t = n as f32 / sample_rate as f32;
        let tones = (std::f32::consts::TAU * (200.0 + 300.0 * t) * t).sin()
            + (std::f32::consts::TAU * 1_130.0 * t).sin();
        0.25 * tones * (17.0 * t).sin()
    };
    (0..length).map(sample).collect()
}
