//! Lets a GPU choose its algorithms for a method before it plays.

use ondes_engine::model::Port;
use ondes_engine::torch::PrepareRequest;
use tch::Cuda;

use crate::step::MethodStep;

/// Runs silence while cuDNN tries which algorithm computes each convolution fastest. The choices
/// stay valid; later steps try nothing. Each number of streams is a shape of its own: powers of two
/// are tried, for others cuDNN guesses. Resets all streams.
///
/// # Errors
/// Returns the reason in one line if a step fails, such as for lack of memory.
pub fn tune(step: &mut dyn MethodStep, request: &PrepareRequest) -> Result<(), String> {
    let benchmark = CudnnBenchmark::enable();
    let mut counts = (0..)
        .map(|power| 1 << power)
        .take_while(|&streams| streams <= request.streams);
    let result = counts.try_for_each(|streams| run_silence(step, request, streams));
    drop(benchmark);
    (0..request.streams).for_each(|stream| step.seed(stream, 0));
    result
}

/// Enables cuDNN's benchmark mode until it is dropped, also by a panic.
struct CudnnBenchmark;

impl CudnnBenchmark {
    fn enable() -> Self {
        Cuda::cudnn_set_benchmark(true);
        Self
    }
}

impl Drop for CudnnBenchmark {
    fn drop(&mut self) {
        Cuda::cudnn_set_benchmark(false);
    }
}

/// Runs one block of silence for the first streams.
fn run_silence(
    step: &mut dyn MethodStep,
    request: &PrepareRequest,
    streams: usize,
) -> Result<(), String> {
    let silence =
        |port: &Port| vec![0.0; request.method.block / port.ratio * port.channels * streams];
    let inputs: Vec<Vec<f32>> = request.method.inputs.iter().map(silence).collect();
    let mut outputs: Vec<Vec<f32>> = request.method.outputs.iter().map(silence).collect();
    let inputs: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
    let mut outputs: Vec<&mut [f32]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    let streams: Vec<usize> = (0..streams).collect();
    step.run(&streams, 1, &inputs, &mut outputs)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ondes_engine::executor::{Device, Precision};
    use ondes_engine::model::file;
    use ondes_engine::torch::{MethodSource, PrepareRequest};

    use super::tune;
    use crate::graph_step::GraphStep;
    use crate::step::MethodStep;

    #[test]
    fn tuning_leaves_no_trace_in_the_output() {
        let bytes =
            std::fs::read(Path::new("../../assets/models/overdrive.ondes")).expect("it is bundled");
        let model = file::parse(&bytes).expect("it is whole");
        let request = PrepareRequest {
            hash: model.content_hash().into(),
            method: model.header().methods[0].clone(),
            source: MethodSource::Graph,
            sample_rate: 48_000,
            streams: 3,
            blocks: 64,
            device: Device::Cpu,
            precision: Precision::F32,
        };
        let inputs: Vec<Vec<f32>> = request
            .method
            .inputs
            .iter()
            .map(|port| sound(64 * port.channels))
            .collect();
        let inputs: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
        let played = |tuned: bool| {
            let mut graph = GraphStep::new(&request, &bytes).expect("it runs");
            if tuned {
                tune(&mut graph, &request).expect("it runs on silence");
            }
            let mut out = vec![0.0; 64 * request.method.block];
            graph
                .run(&[1], 64, &inputs, &mut [&mut out])
                .expect("it runs");
            out
        };
        let untuned = played(false);
        assert!(untuned.iter().any(|sample| sample.abs() > 1e-3));
        assert_eq!(untuned, played(true));
    }

    fn sound(length: usize) -> Vec<f32> {
        (0..length).map(|n| 0.3 * (n as f32 * 0.3).sin()).collect()
    }
}
