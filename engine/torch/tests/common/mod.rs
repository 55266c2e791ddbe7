//! Random models and inputs, and what both executors make of them.

use ondes_engine::Kernels;
use ondes_engine::model::{Card, FORMAT, Header, Kind, Method, Model, Node, Op, Port, Tensor, Weights};
use ondes_engine::native::Executor;
use ondes_torch::{TorchGraph, TorchWeights};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

pub const SAMPLE_RATE: u32 = 48_000;

pub fn random(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

pub fn port(name: &str, channels: usize, ratio: usize) -> Port {
    Port { name: name.into(), channels, ratio }
}

/// A method of one node, whose output is named `y`.
pub fn single(op: Op, inputs: &[Port], block: usize) -> Method {
    let node = Node { name: "y".into(), inputs: inputs.iter().map(|port| port.name.clone()).collect(), op };
    let mut method =
        Method { name: "forward".into(), block, inputs: inputs.to_vec(), outputs: Vec::new(), nodes: vec![node] };
    let shape = *method.infer().expect("the node fits").values.last().expect("there is a node");
    method.outputs.push(port("y", shape.channels, shape.ratio));
    method
}

/// A model of that method with random weights.
pub fn model(method: Method, seed: u64) -> Model {
    let mut random = random(seed);
    let mut weights = Weights::default();
    let shapes = method.infer().expect("the method fits");
    for (node, inputs) in method.nodes.iter().zip(shapes.node_inputs()) {
        for spec in node.op.weights(&inputs) {
            let count = spec.shape.iter().product();
            let bound = if spec.name == "alpha" { 2.0 } else { 0.3 };
            let data = (0..count).map(|_| random.random_range(-bound..bound)).collect();
            weights.insert(format!("{}.{}", node.name, spec.name), Tensor::new(&spec.shape, data));
        }
    }
    let header = Header {
        format: FORMAT,
        kind: Kind::Effect,
        sample_rate: SAMPLE_RATE,
        methods: vec![method],
        controls: Vec::new(),
        performance: None,
        card: Card::default(),
    };
    Model::new(header, weights).expect("a random model is sound")
}

/// Values of one input port, `[stream][frame][channel]`.
pub type PortValues = Vec<f32>;

/// Runs a method natively, all blocks in one step, for `streams` streams; the values of output 0.
pub fn native(
    model: &Model,
    method: &str,
    kernels: Kernels,
    streams: usize,
    blocks: usize,
    inputs: &[PortValues],
) -> Vec<f32> {
    let mut executor = Executor::new(model, method, kernels, streams, blocks).expect("the method is there");
    let order: Vec<usize> = (0..streams).collect();
    executor.begin(&order, blocks);
    for (port, values) in inputs.iter().enumerate() {
        executor.input(port).copy_from_slice(values);
    }
    executor.run();
    executor.output(0).to_vec()
}

/// Runs a method on libtorch; the values of output 0 as `[stream][frame][channel]`.
pub fn torch(model: &Model, method: &str, streams: usize, inputs: &[PortValues]) -> Vec<f32> {
    let method = model.method(method).expect("the method is there");
    let graph = TorchGraph::new(method, model.header().sample_rate).expect("the method fits");
    let weights = TorchWeights::new(model.weights(), tch::Device::Cpu);
    let inputs: Vec<tch::Tensor> = inputs
        .iter()
        .zip(&method.inputs)
        .map(|(values, port)| {
            tch::Tensor::from_slice(values)
                .view([streams as i64, -1, port.channels as i64])
                .transpose(1, 2)
                .contiguous()
        })
        .collect();
    let output = graph.run(&weights, &inputs, 0).remove(0).transpose(1, 2).contiguous().view(-1);
    Vec::<f32>::try_from(&output).expect("a flat tensor")
}

/// Root mean square of the difference, relative to that of the reference.
pub fn relative_rms(values: &[f32], reference: &[f32]) -> f64 {
    assert_eq!(values.len(), reference.len());
    let square = |x: f32| f64::from(x) * f64::from(x);
    let difference: f64 = values.iter().zip(reference).map(|(&a, &b)| square(a - b)).sum();
    let power: f64 = reference.iter().map(|&b| square(b)).sum();
    assert!(power > 0.0, "the reference is silent");
    (difference / power).sqrt()
}
