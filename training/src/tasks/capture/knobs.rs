//! Knobs of a captured device: controls that the network reads besides the sound.
//!
//! A network with knobs is a usual one whose nodes that read the sound also read the knobs, scaled
//! to −1 … 1. A convolution that only widens the sound is left as it is, so that fixed knobs are no
//! more than a bias.

use anyhow::ensure;
use ondes_engine::model::{Control, Method, Model, Node, Op, Port, Tensor, Weights};
use ondes_engine::ops::Affine;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// Most knobs of a capture.
pub const MAX_KNOBS: usize = 8;
/// Node that joins sound and knobs.
const JOINED: &str = "with_knobs";

/// Adds knobs to a capture without any, with random weights.
///
/// # Errors
/// Returns an error if a knob's name or range is not possible.
pub fn with_knobs(model: &Model, knobs: &[Control], seed: u64) -> anyhow::Result<Model> {
    if knobs.is_empty() {
        return Ok(model.clone());
    }
    ensure!(
        knobs.len() <= MAX_KNOBS,
        "there are {} knobs; at most {MAX_KNOBS} are possible",
        knobs.len()
    );
    let mut random = Xoshiro256PlusPlus::seed_from_u64(!seed);
    let bound = 1.0 / ((1 + knobs.len()) as f32).sqrt();
    let (mut header, mut weights) = (model.header().clone(), model.weights().clone());
    for method in &mut header.methods {
        let sound = method.inputs[0].name.clone();
        let first = method.nodes.first().map_or("", |node| node.name.as_str());
        let joined = format!(
            "{}{JOINED}",
            first.split_once("array0.").map_or("", |(prefix, _)| prefix)
        );
        for (node, weight) in readers(method) {
            let old = model.weights().iter().find(|(name, _)| *name == weight);
            let Some((_, old)) = old else { continue };
            let values = old.floats();
            let rows = old.shape()[0];
            let mut data = Vec::with_capacity(rows * (1 + knobs.len()));
            for value in &*values {
                data.push(*value);
                data.extend((0..knobs.len()).map(|_| random.random_range(-bound..bound)));
            }
            let mut shape = old.shape().to_vec();
            shape[1] += knobs.len();
            weights.insert(weight, Tensor::new(&shape, data));
            let reads = method.nodes[node]
                .inputs
                .iter_mut()
                .filter(|input| **input == sound);
            reads.for_each(|input| input.clone_from(&joined));
        }
        add_inputs(method, &sound, &joined, knobs);
    }
    header.controls = knobs.to_vec();
    Ok(Model::new(header, weights)?)
}

/// Adds the ports of the knobs and the nodes that scale them and join them with the sound.
fn add_inputs(method: &mut Method, sound: &str, joined: &str, knobs: &[Control]) {
    let mut nodes = Vec::new();
    let mut inputs = vec![sound.to_owned()];
    for (index, knob) in knobs.iter().enumerate() {
        method.inputs.push(Port {
            name: knob.name.clone(),
            channels: 1,
            ratio: 1,
        });
        let name = format!("{joined}.{index}");
        let (scale, offset) = scaling(knob);
        nodes.push(Node {
            name: name.clone(),
            inputs: vec![knob.name.clone()],
            op: Op::Affine(Affine { scale, offset }),
        });
        inputs.push(name);
    }
    nodes.push(Node {
        name: joined.to_owned(),
        inputs,
        op: Op::Concat,
    });
    method.nodes.splice(0..0, nodes);
}

/// Returns the indices of the nodes that read the sound and knobs, with the name of the weight that
/// multiplies them.
fn readers(method: &Method) -> Vec<(usize, String)> {
    let reads = |node: &Node| match node.op {
        Op::Conv1d(_) if node.name.ends_with(".mixin") => Some(format!("{}.weight", node.name)),
        Op::Lstm(_) if node.name == "layer0" => Some(format!("{}.weight_ih", node.name)),
        _ => None,
    };
    method
        .nodes
        .iter()
        .enumerate()
        .filter_map(|(index, node)| Some((index, reads(node)?)))
        .collect()
}

/// Returns scale and offset that bring a knob to −1 … 1.
pub fn scaling(knob: &Control) -> (f32, f32) {
    let scale = 2.0 / (knob.max - knob.min);
    (scale, -1.0 - scale * knob.min)
}

/// Returns the weights of the network without knobs that computes the same at these settings.
#[must_use]
pub fn weights_at(model: &Model, settings: &[f32]) -> Weights {
    let header = model.header();
    let knobs = header.controls.len();
    let mut weights = model.weights().clone();
    if knobs == 0 {
        return weights;
    }
    let scaled = header.controls.iter().zip(settings).map(|(knob, setting)| {
        let (scale, offset) = scaling(knob);
        scale * setting + offset
    });
    let scaled: Vec<f32> = scaled.collect();
    let find = |name: &str| {
        model
            .weights()
            .iter()
            .find(|(other, _)| *other == name)
            .map(|(_, tensor)| tensor)
    };
    for method in &header.methods {
        for (_, weight) in readers(method) {
            let bias = match weight.strip_suffix(".mixin.weight") {
                Some(layer) => format!("{layer}.conv.bias"),
                None => weight.replace("weight_ih", "bias_ih"),
            };
            let (Some(matrix), Some(old)) = (find(&weight), find(&bias)) else {
                continue;
            };
            let (matrix, shape) = (matrix.floats(), matrix.shape());
            let rows = || matrix.chunks_exact(1 + knobs);
            let sum = |row: &[f32]| {
                row[1..]
                    .iter()
                    .zip(&scaled)
                    .map(|(weight, knob)| weight * knob)
                    .sum::<f32>()
            };
            let biases: Vec<f32> = rows()
                .zip(&*old.floats())
                .map(|(row, bias)| bias + sum(row))
                .collect();
            let mut shape = shape.to_vec();
            shape[1] = 1;
            weights.insert(
                weight,
                Tensor::new(&shape, rows().map(|row| row[0]).collect()),
            );
            weights.insert(bias, Tensor::new(old.shape(), biases));
        }
    }
    weights
}

/// Returns the settings of a recording: those that it states, otherwise the defaults of the model's
/// knobs.
#[must_use]
pub fn settings_or_defaults(model: &Model, settings: &[f32]) -> Vec<f32> {
    let controls = &model.header().controls;
    if settings.len() == controls.len() {
        return settings.to_vec();
    }
    controls.iter().map(|control| control.default).collect()
}
