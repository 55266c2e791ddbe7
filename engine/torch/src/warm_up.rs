//! What a GPU finds out about a method before anybody hears it.

use ondes_engine::model::Port;
use ondes_engine::torch::Order;
use tch::Cuda;

use crate::step::Step;

/// Lets cuDNN find out, by trying, how to compute each convolution fastest, on silence; what it has found holds afterwards, while
/// nothing is tried any more in the middle of playing. Each number of streams is another shape: powers of two are tried, for
/// others there is cuDNN's own guess. Streams begin anew then.
///
/// # Errors
/// One line: it breaks down, such as for want of memory.
pub fn tune(step: &mut dyn Step, order: &Order) -> Result<(), String> {
    let trying = Trying::begin();
    let mut counts = (0..).map(|power| 1 << power).take_while(|&streams| streams <= order.streams);
    let heard = counts.try_for_each(|streams| hear_silence(step, order, streams));
    drop(trying);
    (0..order.streams).for_each(|stream| step.seed(stream, 0));
    heard
}

/// While it lives, cuDNN tries; it ends also where a step breaks down.
struct Trying;

impl Trying {
    fn begin() -> Self {
        Cuda::cudnn_set_benchmark(true);
        Self
    }
}

impl Drop for Trying {
    fn drop(&mut self) {
        Cuda::cudnn_set_benchmark(false);
    }
}

/// One step of one block for the first streams.
fn hear_silence(step: &mut dyn Step, order: &Order, streams: usize) -> Result<(), String> {
    let silence = |port: &Port| vec![0.0; order.method.block / port.ratio * port.channels * streams];
    let inputs: Vec<Vec<f32>> = order.method.inputs.iter().map(silence).collect();
    let mut outputs: Vec<Vec<f32>> = order.method.outputs.iter().map(silence).collect();
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
    use ondes_engine::torch::{Order, Work};

    use super::tune;
    use crate::graph_step::Graph;
    use crate::step::Step;

    #[test]
    fn nothing_of_it_is_heard() {
        let bytes = std::fs::read(Path::new("../../assets/models/overdrive.ondes")).expect("it is bundled");
        let model = file::parse(&bytes).expect("it is whole");
        let order = Order {
            hash: model.content_hash().into(),
            method: model.header().methods[0].clone(),
            work: Work::Graph,
            sample_rate: 48_000,
            streams: 3,
            blocks: 64,
            device: Device::Cpu,
            precision: Precision::F32,
        };
        let inputs: Vec<Vec<f32>> = order.method.inputs.iter().map(|port| sound(64 * port.channels)).collect();
        let inputs: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
        let played = |tuned: bool| {
            let mut graph = Graph::new(&order, &bytes).expect("it runs");
            if tuned {
                tune(&mut graph, &order).expect("it runs on silence");
            }
            let mut out = vec![0.0; 64 * order.method.block];
            graph.run(&[1], 64, &inputs, &mut [&mut out]).expect("it runs");
            out
        };
        let as_it_is = played(false);
        assert!(as_it_is.iter().any(|sample| sample.abs() > 1e-3));
        assert_eq!(as_it_is, played(true));
    }

    fn sound(length: usize) -> Vec<f32> {
        (0..length).map(|n| 0.3 * (n as f32 * 0.3).sin()).collect()
    }
}
