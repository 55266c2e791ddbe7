//! A method that the library steps.

use std::panic::resume_unwind;

use super::library::{Library, Made, TorchError};
use super::order::{Order, Work};
use crate::executor::{Device, Execute, Precision};
use crate::model::{Fault, Method, Model, Port, file, limits};

/// A method of a program, or of a graph, at work in libtorch. See [`Execute`].
pub struct Runner {
    made: Made,
    method: Method,
    device: String,
    /// `[port]`, each as long as the largest step.
    inputs: Vec<Vec<f32>>,
    outputs: Vec<Vec<f32>>,
    /// Streams of this step.
    active: Vec<usize>,
    /// Blocks of this step.
    blocks: usize,
    most: (usize, usize),
}

impl Runner {
    /// Prepares a method for up to `streams` streams and up to `blocks` blocks a step.
    ///
    /// # Errors
    /// [`Fault::Torch`] when libtorch is not there or cannot run it, [`Fault::Limit`] when so many streams would hold too much.
    pub fn new(
        model: &Model,
        method: &Method,
        device: Device,
        precision: Precision,
        streams: usize,
        blocks: usize,
    ) -> Result<Self, Fault> {
        let values =
            |port: &Port| port.channels.saturating_mul(method.block / port.ratio).saturating_mul(streams * blocks);
        let all = method.inputs.iter().chain(&method.outputs).map(values).fold(0, usize::saturating_add);
        Fault::limit(format!("what method {:?} holds", method.name), all, limits::EXECUTOR_VALUES)?;
        let library = Library::get()?;
        if let Device::Cuda(number) = device
            && usize::from(number) >= library.gpus
        {
            return Err(
                TorchError::Program(format!("there is no {device}: libtorch sees {} GPUs", library.gpus)).into()
            );
        }
        let order = |work| Order {
            hash: model.content_hash().into(),
            method: method.clone(),
            work,
            sample_rate: model.header().sample_rate,
            streams,
            blocks,
            device,
            precision,
        };
        let call = |program: &crate::model::Program| program.calls.get(&method.name).cloned();
        let made = match model.program() {
            Some(program) => {
                let call = call(program).ok_or_else(|| Fault::Method(method.name.clone()))?;
                library.make(&order(Work::Program(call)), &program.bytes)?
            }
            None => library.make(&order(Work::Graph), &file::serialize(model)?)?,
        };
        let room = |ports: &[Port]| ports.iter().map(|port| vec![0.0; values(port)]).collect();
        Ok(Self {
            device: made.device(),
            made,
            inputs: room(&method.inputs),
            outputs: room(&method.outputs),
            method: method.clone(),
            active: Vec::with_capacity(streams),
            blocks: 0,
            most: (streams, blocks),
        })
    }

    /// Computes the step.
    ///
    /// # Errors
    /// [`TorchError`] when the program breaks down, or its device; the inputs are as they were.
    pub fn try_run(&mut self) -> Result<(), TorchError> {
        // As many as in a method at most; the library takes memory anyway.
        let inputs: Vec<*const f32> = self.inputs.iter().map(|values| values.as_ptr()).collect();
        let outputs: Vec<*mut f32> = self.outputs.iter_mut().map(|values| values.as_mut_ptr()).collect();
        self.made.run(&self.active, self.blocks, &inputs, &outputs)
    }

    /// Values of a port in this step.
    fn values(&self, port: &Port) -> usize {
        port.channels * (self.method.block / port.ratio) * self.blocks * self.active.len()
    }
}

impl Execute for Runner {
    fn begin(&mut self, streams: &[usize], blocks: usize) {
        let (most_streams, most_blocks) = self.most;
        assert!(streams.len() <= most_streams && streams.iter().all(|&stream| stream < most_streams), "unknown stream");
        assert!(blocks <= most_blocks, "too many blocks");
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
            // Unwinds without the words of a panic: nothing here is wrong, the program is.
            resume_unwind(Box::new(error.to_string()));
        }
    }

    fn output(&self, port: usize) -> &[f32] {
        &self.outputs[port][..self.values(&self.method.outputs[port])]
    }

    fn seed(&mut self, stream: usize, seed: u64) {
        self.made.seed(stream, seed);
    }

    fn bytes(&self) -> usize {
        let buffers: usize = self.inputs.iter().chain(&self.outputs).map(Vec::len).sum();
        self.made.bytes() + buffers * size_of::<f32>()
    }

    fn name(&self) -> String {
        format!("torch {}", self.device)
    }

    fn may_allocate(&self) -> bool {
        true
    }
}
