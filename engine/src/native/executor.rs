//! Runs a plan step by step.

use ondes_kernels::{FlushToZero, Kernels};

use super::layer::Io;
use super::plan::{Plan, Step};
use crate::executor::Execute;
use crate::model::{Method, Model, ModelError};

/// A method of a model, ready to be run block by block for several streams at once.
///
/// Each step: [`Executor::begin`] names the streams and the number of blocks, [`Executor::input`]
/// is filled, [`run`](Execute::run) computes and [`Executor::output`] is read. Only [`Executor::new`]
/// allocates.
///
/// ```
/// use ondes_engine::Kernels;
/// use ondes_engine::model::{Activation, Card, FORMAT, Header, Kind, Method, Model, Node, Op, Port, Weights};
/// use ondes_engine::executor::Execute;
/// use ondes_engine::native::Executor;
///
/// let port = |name: &str| Port { name: name.into(), channels: 1, ratio: 1 };
/// let node = Node { name: "y".into(), inputs: vec!["x".into()], op: Op::Activation(Activation::Relu) };
/// let header = Header {
///     format: FORMAT,
///     kind: Kind::Effect,
///     sample_rate: 48_000,
///     methods: vec![Method {
///         name: "forward".into(),
///         block: 4,
///         warm_up: 0,
///         inputs: vec![port("x")],
///         outputs: vec![port("y")],
///         nodes: vec![node],
///     }],
///     controls: Vec::new(),
///     performance: None,
///     card: Card::default(),
///     variants: Vec::new(),
///     oversampling: 1,
/// };
/// let model = Model::new(header, Weights::default())?;
///
/// let mut executor = Executor::new(&model, "forward", Kernels::detect(), 1, 1)?;
/// executor.begin(&[0], 1);
/// executor.input(0).copy_from_slice(&[-1.0, 0.0, 0.5, 2.0]);
/// executor.run();
/// assert_eq!(executor.output(0), [0.0, 0.0, 0.5, 2.0]);
/// # Ok::<(), ondes_engine::model::ModelError>(())
/// ```
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
    /// Compiles `method` for up to `streams` streams and up to `max_blocks` blocks per step.
    ///
    /// # Errors
    /// Returns [`ModelError::Method`] if the model has no such method, [`ModelError::Program`] if
    /// it is a TorchScript program, and [`ModelError::Limit`] if the streams would take too much
    /// memory.
    ///
    /// # Panics
    /// If `streams` or `max_blocks` is 0.
    pub fn new(
        model: &Model,
        method: &str,
        kernels: Kernels,
        streams: usize,
        max_blocks: usize,
    ) -> Result<Self, ModelError> {
        assert!(
            streams > 0 && max_blocks > 0,
            "a step needs a stream and a block"
        );
        if model.program().is_some() {
            return Err(ModelError::Program);
        }
        let plan = Plan::new(model, method, kernels, streams, max_blocks)?;
        let arena = vec![0.0; plan.arena];
        let active = Vec::with_capacity(streams);
        let mut executor = Self {
            kernels,
            plan,
            arena,
            streams,
            max_blocks,
            active,
            blocks: 0,
        };
        executor.warm_up(model, model.method(method)?);
        Ok(executor)
    }

    /// Runs one stream on silence and makes its state the initial state of all streams.
    fn warm_up(&mut self, model: &Model, method: &Method) {
        let controls = &model.header().controls;
        let silence = |port: &str| {
            controls
                .iter()
                .find(|control| control.name == port)
                .map_or(0.0, |control| control.default)
        };
        let mut blocks = method.warm_up_blocks();
        if blocks == 0 {
            return;
        }
        // As on the audio thread, so that the state does not depend on the thread that builds the
        // executor.
        let _flush = FlushToZero::on();
        while blocks > 0 {
            let count = blocks.min(self.max_blocks);
            self.begin(&[0], count);
            for (index, port) in method.inputs.iter().enumerate() {
                self.input(index).fill(silence(&port.name));
            }
            self.run();
            blocks -= count;
        }
        self.plan
            .steps
            .iter_mut()
            .for_each(|step| step.layer.capture_initial_state());
    }

    /// Returns a stream to its initial state, after the warm-up if the method has one. Noise
    /// continues instead of starting again, so that repeated notes differ.
    pub fn reset(&mut self, stream: usize) {
        for step in &mut self.plan.steps {
            step.layer.reset(stream);
        }
    }

    /// Sets the phase of a stream's oscillators in cycles.
    pub fn set_phase(&mut self, stream: usize, cycles: f64) {
        for step in &mut self.plan.steps {
            step.layer.set_phase(stream, cycles);
        }
    }

    /// Returns the names of the layers in the order in which they run.
    pub fn layers(&self) -> impl Iterator<Item = &str> {
        self.plan.steps.iter().map(|step| step.name.as_str())
    }

    /// Returns the names of the layers that compute some products in eight bits.
    pub fn int8_layers(&self) -> impl Iterator<Item = &str> {
        self.plan
            .steps
            .iter()
            .filter(|step| step.layer.uses_int8())
            .map(|step| step.name.as_str())
    }
}

impl Execute for Executor {
    fn begin(&mut self, streams: &[usize], blocks: usize) {
        assert!(
            streams.len() <= self.streams && streams.iter().all(|&stream| stream < self.streams),
            "unknown stream"
        );
        assert!(blocks <= self.max_blocks, "too many blocks");
        self.active.clear();
        self.active.extend_from_slice(streams);
        self.blocks = blocks;
    }

    fn input(&mut self, port: usize) -> &mut [f32] {
        let slot = self.plan.inputs[port];
        let length = slot.block_values() * self.blocks * self.active.len();
        &mut self.arena[slot.offset..][..length]
    }

    fn run(&mut self) {
        for index in 0..self.plan.steps.len() {
            self.run_layer(index);
        }
    }

    fn run_layer(&mut self, index: usize) {
        let Step {
            layer,
            inputs,
            output,
            copies_input,
            ..
        } = &mut self.plan.steps[index];
        let count = self.blocks * self.active.len();
        // Slots are allocated in the order of the steps, so all inputs come before the output.
        let (before, rest) = self.arena.split_at_mut(output.offset);
        let (output, _) = rest.split_at_mut(output.block_values() * count);
        if *copies_input {
            output.copy_from_slice(&before[inputs[0].offset..][..output.len()]);
        }
        let frames = inputs[0].frames * self.blocks;
        layer.run(
            self.kernels,
            Io {
                arena: before,
                inputs,
                output,
                streams: &self.active,
                blocks: self.blocks,
                frames,
            },
        );
    }

    fn output(&self, port: usize) -> &[f32] {
        let slot = self.plan.outputs[port];
        &self.arena[slot.offset..][..slot.block_values() * self.blocks * self.active.len()]
    }

    fn seed(&mut self, stream: usize, seed: u64) {
        for step in &mut self.plan.steps {
            step.layer.seed(stream, seed);
        }
        self.reset(stream);
    }

    fn bytes(&self) -> usize {
        self.arena.len() * size_of::<f32>()
            + self
                .plan
                .steps
                .iter()
                .map(|step| step.layer.bytes())
                .sum::<usize>()
    }

    /// Returns the kernels, and those of eight bits if some products are computed in them:
    /// `native avx2, int8 avx_vnni`.
    fn name(&self) -> String {
        let name = format!("native {}", self.kernels.name());
        if self.plan.steps.iter().any(|step| step.layer.uses_int8()) {
            format!("{name}, int8 {}", self.kernels.int8_name())
        } else {
            name
        }
    }

    fn layer_count(&self) -> usize {
        self.plan.steps.len()
    }

    fn may_allocate(&self) -> bool {
        false
    }
}
