//! A graph of ours, stepped for several streams.

use ondes_engine::executor::Precision;
use ondes_engine::model::file;
use ondes_engine::torch::Order;
use tch::{Device, Tensor};

use crate::host::Host;
use crate::script::Inference;
use crate::step::Step;
use crate::streaming::Streaming;
use crate::weights::TorchWeights;
use crate::{device, precision};

/// A graph at work.
pub struct Graph {
    streaming: Streaming,
    device: Device,
    precision: Precision,
    /// One for each port.
    inputs: Vec<Host>,
    outputs: Vec<Host>,
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
        let host = |port| Host::new(port, order, device, kind);
        let (inputs, outputs) = (method.inputs.iter().map(host).collect(), method.outputs.iter().map(host).collect());
        Ok(Self { streaming, device, precision: order.precision, inputs, outputs })
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
        let hosts = self.inputs.iter_mut().zip(inputs);
        let inputs: Vec<Tensor> =
            hosts.map(|(host, values)| host.send(values, streams.len())).collect::<Result<_, _>>()?;
        let given = self.streaming.run(streams, &inputs);
        let hosts = self.outputs.iter_mut().zip(&given);
        hosts.zip(outputs).try_for_each(|((host, tensor), values)| host.receive(tensor, values))
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
