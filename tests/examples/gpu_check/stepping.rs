//! Methods of models, stepped by an executor.

use ondes_engine::Kernels;
use ondes_engine::executor::{Backend, Device, Execute, Precision, Running};
use ondes_engine::model::{Method, Model};
use ondes_engine::torch;
use ondes_engine::wish::Wish;
use ondes_tests::torchscript::Class;
use rand::RngExt;

/// Prepares a method on libtorch there, in that precision, or for our own code.
pub fn prepare(
    model: &Model,
    method: &str,
    there: Option<(Device, Precision)>,
    streams: usize,
    blocks: usize,
) -> Result<Box<dyn Execute>, String> {
    let executor = if there.is_some() { Backend::Torch } else { Backend::Native };
    let (device, precision) = there.unwrap_or_default();
    let wish = Wish { executor, device, precision };
    let running = Running { wish, kernels: Kernels::detect(), lenient: false };
    let method = model.method(method).map_err(|fault| fault.to_string())?;
    running.prepare(model, method, streams, blocks).map_err(|fault| fault.to_string())
}

/// The model of a TorchScript program that a test makes.
pub fn program(class: &Class) -> Result<Model, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("program.ts");
    std::fs::write(&path, class.bytes()).map_err(|error| error.to_string())?;
    Ok(torch::open(&path).map_err(|error| error.to_string())?.model)
}

/// For each input port of a method the values of a stream for some blocks, `[frame][channel]`.
pub fn inputs(method: &Method, stream: usize, blocks: usize) -> Vec<Vec<f32>> {
    let values = |(number, port): (usize, &ondes_engine::model::Port)| {
        let mut random = ondes_tests::random((100 * stream + number) as u64);
        let count = port.channels * (method.block / port.ratio) * blocks;
        (0..count).map(|_| random.random_range(-0.5..0.5)).collect()
    };
    method.inputs.iter().enumerate().map(values).collect()
}

/// Steps some streams by some blocks, `given[stream][port]` whole; gives what comes out of each at its first port.
pub fn step(executor: &mut dyn Execute, streams: &[usize], blocks: usize, given: &[Vec<Vec<f32>>]) -> Vec<Vec<f32>> {
    executor.begin(streams, blocks);
    for port in 0..given[0].len() {
        let values: Vec<f32> = given.iter().flat_map(|ports| &ports[port]).copied().collect();
        executor.input(port).copy_from_slice(&values);
    }
    executor.run();
    let out = executor.output(0);
    out.chunks(out.len() / streams.len()).map(<[f32]>::to_vec).collect()
}

/// Root mean square of the difference, relative to that of the reference.
pub fn relative_rms(values: &[f32], reference: &[f32]) -> f64 {
    let square = |x: f32| f64::from(x) * f64::from(x);
    let difference: f64 = values.iter().zip(reference).map(|(&a, &b)| square(a - b)).sum();
    let power: f64 = reference.iter().map(|&b| square(b)).sum();
    if values.len() == reference.len() && power > 0.0 { (difference / power).sqrt() } else { f64::INFINITY }
}
