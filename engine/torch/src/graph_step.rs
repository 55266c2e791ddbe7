//! A graph of ours, stepped for several streams.

use ondes_engine::executor::Precision;
use ondes_engine::model::file;
use ondes_engine::torch::Order;
use tch::{Device, Kind, Tensor};

use crate::script::Inference;
use crate::step::{Step, from_frames, to_frames};
use crate::streaming::Streaming;
use crate::weights::TorchWeights;
use crate::{device, precision};

/// A graph at work.
pub struct Graph {
    streaming: Streaming,
    device: Device,
    precision: Precision,
    /// Of all tensors.
    kind: Kind,
    /// Channels of each input.
    channels: Vec<usize>,
}

impl Graph {
    /// Prepares what an order says, out of the bytes of a model file.
    ///
    /// # Errors
    /// One line: the file is damaged, or the method cannot be run here.
    pub fn new(order: &Order, bytes: &[u8]) -> Result<Self, String> {
        let _inference = Inference::begin();
        let told = |fault: ondes_engine::model::Fault| fault.to_string();
        let model = file::parse(bytes).map_err(told)?;
        let method = model.method(&order.method.name).map_err(told)?;
        let (device, kind) = (device::choose(order.device), precision::kind(order.precision));
        let weights = TorchWeights::new(model.weights(), device).to_kind(kind);
        let header = model.header();
        let options = (kind, device);
        let streaming = Streaming::new(method, &header.controls, weights, header.sample_rate, order.streams, options)
            .map_err(told)?;
        let channels: Vec<usize> = method.inputs.iter().map(|port| port.channels).collect();
        Ok(Self { streaming, device, precision: order.precision, kind, channels })
    }
}

impl Step for Graph {
    fn run(
        &mut self,
        streams: &[usize],
        _blocks: usize,
        inputs: &[&[f32]],
        outputs: &mut [&mut [f32]],
    ) -> Result<(), String> {
        let _inference = Inference::begin();
        let tensor = |(values, &channels): (&&[f32], &usize)| {
            from_frames(values, streams.len(), channels).to_device(self.device).to_kind(self.kind)
        };
        let inputs: Vec<Tensor> = inputs.iter().zip(&self.channels).map(tensor).collect();
        let given = self.streaming.run(streams, &inputs);
        given.iter().zip(outputs).try_for_each(|(tensor, values)| to_frames(tensor, values))
    }

    fn seed(&mut self, stream: usize, _seed: u64) {
        let _inference = Inference::begin();
        self.streaming.reset(stream);
    }

    fn bytes(&self) -> usize {
        self.streaming.bytes()
    }

    fn device(&self) -> String {
        device::name(self.device, self.precision)
    }
}
