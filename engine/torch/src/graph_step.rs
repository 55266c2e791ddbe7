//! A method of a graph, stepped for several streams.

use ondes_engine::executor::Precision;
use ondes_engine::model::file;
use ondes_engine::torch::PrepareRequest;
use tch::{Device, Tensor};

use crate::host::PortMemory;
use crate::script::Inference;
use crate::step::MethodStep;
use crate::streaming::StreamingGraph;
use crate::weights::TorchWeights;
use crate::{device, precision};

/// A prepared method of a graph.
pub struct GraphStep {
    streaming: StreamingGraph,
    device: Device,
    precision: Precision,
    /// `[port]`
    inputs: Vec<PortMemory>,
    outputs: Vec<PortMemory>,
}

impl GraphStep {
    /// Prepares the method of a request from the bytes of a model file.
    ///
    /// # Errors
    /// Returns the reason in one line if the file is invalid or the method cannot be run.
    pub fn new(request: &PrepareRequest, bytes: &[u8]) -> Result<Self, String> {
        let _inference = Inference::begin();
        let text = |error: ondes_engine::model::ModelError| error.to_string();
        let model = file::parse(bytes).map_err(text)?;
        let method = model.method(&request.method.name).map_err(text)?;
        // A generator's place in the bar needs f32, and what is fed back would multiply each
        // rounding.
        let precision = if method.feedback().next().is_some() {
            Precision::F32
        } else {
            request.precision
        };
        let (device, kind) = (device::choose(request.device), precision::kind(precision));
        let weights = TorchWeights::new(model.weights(), device).to_kind(kind);
        let header = model.header();
        let options = (kind, device);
        let streaming = StreamingGraph::new(
            method,
            &header.controls,
            weights,
            header.sample_rate,
            request.streams,
            options,
        )
        .map_err(text)?;
        let memory = |port| PortMemory::new(port, request, device, kind);
        let (inputs, outputs) = (
            method.inputs.iter().map(memory).collect(),
            method.outputs.iter().map(memory).collect(),
        );
        Ok(Self {
            streaming,
            device,
            precision,
            inputs,
            outputs,
        })
    }
}

impl MethodStep for GraphStep {
    fn run(
        &mut self,
        streams: &[usize],
        _blocks: usize,
        inputs: &[&[f32]],
        outputs: &mut [&mut [f32]],
    ) -> Result<(), String> {
        let _inference = Inference::begin();
        let ports = self.inputs.iter_mut().zip(inputs);
        let inputs: Vec<Tensor> = ports
            .map(|(memory, values)| memory.send(values, streams.len()))
            .collect::<Result<_, _>>()?;
        let output = self.streaming.run(streams, &inputs);
        let ports = self.outputs.iter_mut().zip(&output);
        ports
            .zip(outputs)
            .try_for_each(|((memory, tensor), values)| memory.receive(tensor, values))
    }

    fn seed(&mut self, stream: usize, seed: u64) {
        let _inference = Inference::begin();
        self.streaming.seed(stream, seed);
    }

    fn bytes(&self) -> usize {
        self.streaming.bytes()
    }

    fn device(&self) -> String {
        device::name(self.device, self.precision)
    }
}
