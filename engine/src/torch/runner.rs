//! A method that libtorch steps.

use std::panic::resume_unwind;

use super::error::TorchError;
use super::library::Library;
use super::prepare_request::{MethodSource, PrepareRequest, step_values};
use super::prepared_method::PreparedMethod;
use super::program_runner::prepare;
use crate::executor::{Device, Execute, Precision, mark_program_lost};
use crate::model::{Method, Model, ModelError, Port, file, limits};

/// A method of a program or of a graph, prepared in libtorch.
pub struct TorchExecutor {
    prepared: Box<dyn PreparedMethod>,
    method: Method,
    device: String,
    /// `[port]`: buffers for the largest step.
    inputs: Vec<Vec<f32>>,
    outputs: Vec<Vec<f32>>,
    /// Streams in this step.
    active: Vec<usize>,
    /// Blocks in this step.
    blocks: usize,
    max_streams: usize,
    max_blocks: usize,
}

impl TorchExecutor {
    /// Prepares a method for up to `streams` streams and up to `blocks` blocks a step.
    ///
    /// # Errors
    /// Returns [`ModelError::Torch`] if libtorch is missing or cannot run the method,
    /// [`ModelError::Limit`] if the streams need too much memory.
    pub fn new(
        model: &Model,
        method: &Method,
        device: Device,
        precision: Precision,
        streams: usize,
        blocks: usize,
    ) -> Result<Self, ModelError> {
        let values = |port: &Port| step_values(port, method.block, streams, blocks);
        let all = method
            .inputs
            .iter()
            .chain(&method.outputs)
            .map(values)
            .fold(0, usize::saturating_add);
        ModelError::limit(
            format!("what method {:?} holds", method.name),
            all,
            limits::EXECUTOR_VALUES,
        )?;
        let library = Library::get()?;
        if let Device::Cuda(number) = device
            && usize::from(number) >= library.gpus
        {
            return Err(TorchError::Program(format!(
                "there is no {device}: libtorch sees {} GPUs",
                library.gpus
            ))
            .into());
        }
        let request = |hash: &str, source| PrepareRequest {
            hash: hash.into(),
            method: method.clone(),
            source,
            sample_rate: model.header().sample_rate,
            streams,
            blocks,
            device,
            precision,
        };
        let call = |program: &crate::model::Program| program.calls.get(&method.name).cloned();
        let prepared: Box<dyn PreparedMethod> = match model.program() {
            Some(program) => {
                let call = call(program).ok_or_else(|| ModelError::Method(method.name.clone()))?;
                // What was chosen of a program is in the call; its process and its weights are the
                // same.
                let request = request(model.base_hash(), MethodSource::Program(call));
                prepare(
                    &library,
                    &model.header().card.name,
                    &request,
                    &program.bytes,
                )?
            }
            // A graph of ours contains no code.
            None => {
                let request = request(model.content_hash(), MethodSource::Graph);
                Box::new(library.prepare(&request, &file::serialize(model)?)?)
            }
        };
        let buffers = |ports: &[Port]| ports.iter().map(|port| vec![0.0; values(port)]).collect();
        Ok(Self {
            device: prepared.device(),
            prepared,
            inputs: buffers(&method.inputs),
            outputs: buffers(&method.outputs),
            method: method.clone(),
            active: Vec::with_capacity(streams),
            blocks: 0,
            max_streams: streams,
            max_blocks: blocks,
        })
    }

    /// Computes the step.
    ///
    /// # Errors
    /// Returns [`TorchError`] if the program or its device fails; the inputs are unchanged.
    pub fn try_run(&mut self) -> Result<(), TorchError> {
        let values =
            |port: &Port| step_values(port, self.method.block, self.active.len(), self.blocks);
        // Allocation is fine here: libtorch allocates as well.
        let inputs = self.inputs.iter().zip(&self.method.inputs);
        let inputs: Vec<&[f32]> = inputs
            .map(|(buffer, port)| &buffer[..values(port)])
            .collect();
        let outputs = self.outputs.iter_mut().zip(&self.method.outputs);
        let mut outputs: Vec<&mut [f32]> = outputs
            .map(|(buffer, port)| &mut buffer[..values(port)])
            .collect();
        self.prepared
            .run(&self.active, self.blocks, &inputs, &mut outputs)
    }

    /// Returns the number of values of a port in this step.
    fn values(&self, port: &Port) -> usize {
        step_values(port, self.method.block, self.active.len(), self.blocks)
    }
}

impl Execute for TorchExecutor {
    fn begin(&mut self, streams: &[usize], blocks: usize) {
        let is_known = |&stream: &usize| stream < self.max_streams;
        assert!(
            streams.len() <= self.max_streams && streams.iter().all(is_known),
            "unknown stream"
        );
        assert!(blocks <= self.max_blocks, "too many blocks");
        self.active.clear();
        self.active.extend_from_slice(streams);
        self.blocks = blocks;
    }

    fn input(&mut self, port: usize) -> &mut [f32] {
        let values = self.values(&self.method.inputs[port]);
        &mut self.inputs[port][..values]
    }

    fn run(&mut self) {
        if let Err(error) = self.try_run() {
            if matches!(error, TorchError::Lost { .. }) {
                mark_program_lost();
            }
            // Unwinds without a panic message: the program has failed, not this code.
            resume_unwind(Box::new(error.to_string()));
        }
    }

    fn output(&self, port: usize) -> &[f32] {
        &self.outputs[port][..self.values(&self.method.outputs[port])]
    }

    fn seed(&mut self, stream: usize, seed: u64) {
        self.prepared.seed(stream, seed);
    }

    fn bytes(&self) -> usize {
        let buffers: usize = self.inputs.iter().chain(&self.outputs).map(Vec::len).sum();
        self.prepared.bytes() + buffers * size_of::<f32>()
    }

    fn name(&self) -> String {
        format!("torch {}", self.device)
    }
}
