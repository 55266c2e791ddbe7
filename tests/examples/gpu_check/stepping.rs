//! Steps methods of models with an executor.

use ondes_engine::Kernels;
use ondes_engine::executor::ExecutorSelection;
use ondes_engine::executor::{Backend, Device, ExecutorOptions, MethodExecutor, Precision};
use ondes_engine::model::{Method, Model};
use ondes_engine::torch;
use ondes_tests::torchscript::Class;
use rand::RngExt;

/// Prepares a method on libtorch with a device and precision, or on the native executor.
pub fn prepare(
    model: &Model,
    method: &str,
    there: Option<(Device, Precision)>,
    streams: usize,
    blocks: usize,
) -> Result<MethodExecutor, String> {
    let backend = if there.is_some() {
        Backend::Torch
    } else {
        Backend::Native
    };
    let (device, precision) = there.unwrap_or_default();
    let executor = ExecutorSelection {
        backend,
        device,
        precision,
    };
    let running = ExecutorOptions {
        selection: executor,
        kernels: Kernels::detect(),
        allow_fallback: false,
    };
    let method = model.method(method).map_err(|fault| fault.to_string())?;
    running
        .prepare(model, method, streams, blocks)
        .map_err(|fault| fault.to_string())
}

/// Opens a TorchScript program as a model.
pub fn program(class: &Class) -> Result<Model, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("program.ts");
    std::fs::write(&path, class.bytes()).map_err(|error| error.to_string())?;
    Ok(torch::open(&path).map_err(|error| error.to_string())?.model)
}

/// Returns random values for each input port of a method, `[frame][channel]`.
pub fn inputs(method: &Method, stream: usize, blocks: usize) -> Vec<Vec<f32>> {
    let values = |(number, port): (usize, &ondes_engine::model::Port)| {
        let mut random = ondes_tests::seeded_rng((100 * stream + number) as u64);
        let count = port.channels * (method.block / port.ratio) * blocks;
        (0..count).map(|_| random.random_range(-0.5..0.5)).collect()
    };
    method.inputs.iter().enumerate().map(values).collect()
}

/// Steps streams by some blocks of `given[stream][port]`; returns the first output of each.
pub fn step(
    executor: &mut MethodExecutor,
    streams: &[usize],
    blocks: usize,
    given: &[Vec<Vec<f32>>],
) -> Vec<Vec<f32>> {
    executor.begin(streams, blocks);
    for port in 0..given[0].len() {
        let values: Vec<f32> = given
            .iter()
            .flat_map(|ports| &ports[port])
            .copied()
            .collect();
        executor.input(port).copy_from_slice(&values);
    }
    executor.run();
    let out = executor.output(0);
    out.chunks(out.len() / streams.len())
        .map(<[f32]>::to_vec)
        .collect()
}

/// Returns the RMS of the difference relative to the reference's.
pub fn relative_rms(values: &[f32], reference: &[f32]) -> f64 {
    let square = |x: f32| f64::from(x) * f64::from(x);
    let difference: f64 = values
        .iter()
        .zip(reference)
        .map(|(&a, &b)| square(a - b))
        .sum();
    let power: f64 = reference.iter().map(|&b| square(b)).sum();
    if values.len() == reference.len() && power > 0.0 {
        (difference / power).sqrt()
    } else {
        f64::INFINITY
    }
}
