//! A small codec for tests.

use std::sync::Arc;

use ondes_engine::model::{
    Card, Control, FORMAT, Header, Kind, Method, Model, Node, Op, Port, Tensor, Weights,
};
use ondes_engine::ops::{Conv1d, ConvTranspose1d};

/// Samples per frame of its latents.
const RATIO: usize = 64;

/// A codec without controls of its own: latent 1 is the mean of 64 samples, latent 2 its opposite;
/// the sum of 0.5 times the first and 0.25 times the second is what is heard of them.
pub(crate) fn codec() -> Arc<Model> {
    codec_with(&[])
}

/// The same with these controls of its own.
pub(crate) fn codec_with(controls: &[Control]) -> Arc<Model> {
    let node = |name: &str, input: &str, op| Node {
        name: name.into(),
        inputs: vec![input.into()],
        op,
    };
    let port = |name: &str, channels, ratio| Port {
        name: name.into(),
        channels,
        ratio,
    };
    let encode = Method {
        name: "encode".into(),
        block: RATIO,
        warm_up: 0,
        inputs: vec![port("in", 1, 1)],
        outputs: vec![port("latents", 2, RATIO)],
        nodes: vec![node(
            "latents",
            "in",
            Op::Conv1d(Conv1d::new(2, RATIO).strided(RATIO)),
        )],
    };
    let decode = Method {
        name: "decode".into(),
        block: RATIO,
        warm_up: 0,
        inputs: vec![port("z", 2, RATIO)],
        outputs: vec![port("audio", 1, 1)],
        nodes: vec![node(
            "audio",
            "z",
            Op::ConvTranspose1d(ConvTranspose1d {
                outputs: 1,
                kernel: RATIO,
                stride: RATIO,
            }),
        )],
    };
    let mut weights = Weights::default();
    for (method, rows) in [
        (&encode, [1.0 / RATIO as f32, -1.0 / RATIO as f32]),
        (&decode, [0.5, 0.25]),
    ] {
        let shapes = method.infer().unwrap();
        for (node, inputs) in method.nodes.iter().zip(shapes.node_inputs()) {
            for spec in node.op.weights(&inputs) {
                let count: usize = spec.shape.iter().product();
                let row = |place: usize| {
                    if count < 2 * RATIO {
                        0.0
                    } else {
                        rows[place * 2 / count]
                    }
                };
                weights.insert(
                    format!("{}.{}", node.name, spec.name),
                    Tensor::new(&spec.shape, (0..count).map(row).collect()),
                );
            }
        }
    }
    let header = Header {
        format: FORMAT,
        kind: Kind::Codec,
        sample_rate: 48_000,
        methods: vec![encode, decode],
        controls: controls.to_vec(),
        variants: Vec::new(),
        oversampling: 1,
        performance: None,
        card: Card {
            name: "Mean".into(),
            ..Card::default()
        },
    };
    Model::new(header, weights).unwrap().into()
}
