//! Stepping a plan.

use ondes_kernels::{FlushToZero, Kernels};

use super::layers::Io;
use super::plan::Plan;
use crate::model::{ModelError, Method, Model};

/// A method of a model, ready to be stepped block by block for several streams at once.
///
/// A step goes: [`Executor::begin`] names the streams and the number of blocks, [`Executor::input`] is filled,
/// [`Executor::run`] computes, [`Executor::output`] is read. Nothing after [`Executor::new`] allocates.
pub struct Executor {
    kernels: Kernels,
    plan: Plan,
    arena: Vec<f32>,
    streams: usize,
    max_blocks: usize,
    active: Vec<usize>,
    blocks: usize,
}

impl Executor {
    /// Prepares `method` for up to `streams` streams and up to `max_blocks` blocks a step.
    ///
    /// # Errors
    /// [`ModelError::Method`] when the model has no such method, [`ModelError::Limit`] when so many streams would hold too much.
    ///
    /// # Panics
    /// When `streams` or `max_blocks` is 0.
    pub fn new(
        model: &Model,
        method: &str,
        kernels: Kernels,
        streams: usize,
        max_blocks: usize,
    ) -> Result<Self, ModelError> {
        assert!(streams > 0 && max_blocks > 0, "a step needs a stream and a block");
        if model.program().is_some() {
            return Err(ModelError::Program);
        }
        let plan = Plan::new(model, method, kernels, streams, max_blocks)?;
        let arena = vec![0.0; plan.arena];
        let active = Vec::with_capacity(streams);
        let mut executor = Self { kernels, plan, arena, streams, max_blocks, active, blocks: 0 };
        executor.warm_up(model, model.method(method)?);
        Ok(executor)
    }

    /// Lets one stream hear silence; all of them start from where that leads.
    fn warm_up(&mut self, model: &Model, method: &Method) {
        let controls = &model.header().controls;
        let rest = |name: &str| controls.iter().find(|control| control.name == name).map_or(0.0, |knob| knob.default);
        let mut blocks = method.warm_up_blocks();
        if blocks == 0 {
            return;
        }
        // As where it will be played, whoever makes it.
        let _flush = FlushToZero::on();
        while blocks > 0 {
            let count = blocks.min(self.max_blocks);
            self.begin(&[0], count);
            for (index, port) in method.inputs.iter().enumerate() {
                self.input(index).fill(rest(&port.name));
            }
            self.run();
            blocks -= count;
        }
        self.plan.steps.iter_mut().for_each(|step| step.layer.settle());
    }

    /// Name of the executor and of its kernels, such as `native avx2`; with `, int8 avx_vnni` where some products are computed
    /// on bytes, and by what.
    #[must_use]
    pub fn name(&self) -> String {
        let in_bytes = if self.plan.steps.iter().any(|step| step.layer.in_bytes()) {
            format!(", int8 {}", self.kernels.int8_name())
        } else {
            String::new()
        };
        format!("native {}{in_bytes}", self.kernels.name())
    }

    /// Bytes of the arena, of all states and of the packed weights.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.arena.len() * size_of::<f32>() + self.plan.steps.iter().map(|step| step.layer.bytes()).sum::<usize>()
    }

    /// Forgets all that a stream has heard, as if it were new: it has heard the silence of its warm-up, if any. Noise goes on
    /// instead of starting again, so that notes differ.
    pub fn reset(&mut self, stream: usize) {
        for step in &mut self.plan.steps {
            step.layer.reset(stream);
        }
    }

    /// Forgets all that a stream has heard and gives its noise another seed. Streams of equal seeds sound alike.
    pub fn seed(&mut self, stream: usize, seed: u64) {
        for step in &mut self.plan.steps {
            step.layer.seed(stream, seed);
        }
        self.reset(stream);
    }

    /// Starts a step of `blocks` blocks for those streams, in that order.
    ///
    /// # Panics
    /// When a stream is named that was not prepared, or too many blocks or streams.
    pub fn begin(&mut self, streams: &[usize], blocks: usize) {
        assert!(streams.len() <= self.streams && streams.iter().all(|&stream| stream < self.streams), "unknown stream");
        assert!(blocks <= self.max_blocks, "too many blocks");
        self.active.clear();
        self.active.extend_from_slice(streams);
        self.blocks = blocks;
    }

    /// The values of an input port for this step, `[stream][frame][channel]`, to be filled whole.
    pub fn input(&mut self, port: usize) -> &mut [f32] {
        let place = self.plan.inputs[port];
        let length = place.block_values() * self.blocks * self.active.len();
        &mut self.arena[place.offset..][..length]
    }

    /// Computes the step.
    pub fn run(&mut self) {
        for index in 0..self.plan.steps.len() {
            self.run_step(index);
        }
    }

    /// Computes one node of the step: for measuring what each costs. [`Executor::run`] is all of them in order.
    pub fn run_step(&mut self, index: usize) {
        let step = &mut self.plan.steps[index];
        let count = self.blocks * self.active.len();
        // Values lie in the order in which they are made, so all that a layer reads lies before what it makes.
        let makes = step.makes;
        let (before, rest) = self.arena.split_at_mut(makes.offset);
        let (output, _) = rest.split_at_mut(makes.block_values() * count);
        if step.copies {
            output.copy_from_slice(&before[step.reads[0].offset..][..output.len()]);
        }
        let frames = step.reads[0].frames * self.blocks;
        let io = Io { arena: before, reads: &step.reads, output, streams: &self.active, blocks: self.blocks, frames };
        step.layer.run(self.kernels, io);
    }

    /// Names of the nodes in the order in which they run.
    pub fn steps(&self) -> impl Iterator<Item = &str> {
        self.plan.steps.iter().map(|step| step.name.as_str())
    }

    /// Those of them some of whose products are computed on bytes.
    pub fn steps_in_bytes(&self) -> impl Iterator<Item = &str> {
        self.plan.steps.iter().filter(|step| step.layer.in_bytes()).map(|step| step.name.as_str())
    }

    /// The values of an output port after [`Executor::run`], `[stream][frame][channel]`.
    #[must_use]
    pub fn output(&self, port: usize) -> &[f32] {
        let place = self.plan.outputs[port];
        &self.arena[place.offset..][..place.block_values() * self.blocks * self.active.len()]
    }
}
