//! Runs both executors on the same inputs.

use std::sync::Once;

use ondes_engine::Kernels;
use ondes_engine::executor::Execute;
use ondes_engine::model::Model;
use ondes_engine::native::Executor;
use ondes_torch::{TorchGraph, TorchWeights};

/// Values of one input port, `[stream][frame][channel]`.
pub type PortValues = Vec<f32>;

/// Runs a method natively, all blocks in one step, for `streams` streams; returns output 0.
pub fn native(
    model: &Model,
    method: &str,
    kernels: Kernels,
    streams: usize,
    blocks: usize,
    inputs: &[PortValues],
) -> Vec<f32> {
    let mut executor =
        Executor::new(model, method, kernels, streams, blocks).expect("the method is there");
    let order: Vec<usize> = (0..streams).collect();
    executor.begin(&order, blocks);
    for (port, values) in inputs.iter().enumerate() {
        executor.input(port).copy_from_slice(values);
    }
    executor.run();
    executor.output(0).to_vec()
}

/// Discards the first run in a process: libtorch 2.11 (two threads on a busy Intel Xeon) was off by
/// 4e-5 in a few of a hundred first runs, and by the usual 1e-6 in later ones.
static FIRST_RUN: Once = Once::new();

/// Runs a method on libtorch; returns output 0 as `[stream][frame][channel]`.
pub fn torch(model: &Model, method: &str, streams: usize, inputs: &[PortValues]) -> Vec<f32> {
    let method = model.method(method).expect("the method is there");
    let graph = TorchGraph::new(method, model.header().sample_rate).expect("the method fits");
    let graph = graph.with_defaults(&model.header().controls);
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
    FIRST_RUN.call_once(|| drop(graph.run(&weights, &inputs, 0)));
    let output = graph
        .run(&weights, &inputs, 0)
        .remove(0)
        .transpose(1, 2)
        .contiguous()
        .view(-1);
    Vec::<f32>::try_from(&output).expect("a flat tensor")
}

/// Returns the RMS of the difference, relative to that of the reference.
pub fn relative_rms(values: &[f32], reference: &[f32]) -> f64 {
    assert_eq!(values.len(), reference.len());
    let square = |x: f32| f64::from(x) * f64::from(x);
    let difference: f64 = values
        .iter()
        .zip(reference)
        .map(|(&a, &b)| square(a - b))
        .sum();
    let power: f64 = reference.iter().map(|&b| square(b)).sum();
    assert!(power > 0.0, "the reference is silent");
    (difference / power).sqrt()
}
