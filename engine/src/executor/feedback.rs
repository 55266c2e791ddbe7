//! Methods that receive their own output one block later.

use super::method_executor::{Execute, MethodExecutor};
use crate::model::{Method, ModelError, Port, limits};

/// Runs a method block by block and feeds its outputs back to the input ports named after them
/// ([`PREVIOUS`](crate::model::graph::PREVIOUS)).
pub(crate) struct FeedbackExecutor {
    /// Runs single blocks.
    block: MethodExecutor,
    inputs: Vec<PortBuffer>,
    outputs: Vec<PortBuffer>,
    loops: Vec<Loop>,
    /// Streams and number of blocks of this step.
    active: Vec<usize>,
    blocks: usize,
    /// Most blocks of a step.
    max_blocks: usize,
}

/// Values of a port in a step, `[stream][block][value]`.
struct PortBuffer {
    values: Vec<f32>,
    /// Values of a block of one stream.
    per_block: usize,
}

/// An output that is fed back to an input.
struct Loop {
    input: usize,
    output: usize,
    /// Output of the last block, `[stream][value]`.
    last: Vec<f32>,
}

impl PortBuffer {
    /// Returns the values of a block, for each stream in order.
    fn block(&mut self, block: usize, blocks: usize) -> impl Iterator<Item = &mut [f32]> {
        self.values
            .chunks_exact_mut(self.per_block)
            .skip(block)
            .step_by(blocks)
    }
}

impl FeedbackExecutor {
    /// Wraps an executor of single blocks of a method for up to `streams` streams, and runs up to
    /// `blocks` blocks a step.
    ///
    /// # Errors
    /// Returns [`ModelError::Limit`] if the ports hold too many values.
    pub fn new(
        block: MethodExecutor,
        method: &Method,
        streams: usize,
        blocks: usize,
    ) -> Result<Self, ModelError> {
        let per_block = |port: &Port| method.block / port.ratio * port.channels;
        let ports = method.inputs.iter().chain(&method.outputs);
        let values = ports.map(|port| {
            per_block(port)
                .saturating_mul(streams)
                .saturating_mul(blocks)
        });
        let values = values.fold(0, usize::saturating_add);
        ModelError::limit(
            format!("what method {:?} holds", method.name),
            values,
            limits::EXECUTOR_VALUES,
        )?;
        let buffer = |port: &Port| {
            let per_block = per_block(port);
            PortBuffer {
                values: vec![0.0; per_block * streams * blocks],
                per_block,
            }
        };
        let buffers = |ports: &[Port]| ports.iter().map(buffer).collect();
        let fed_back = |(input, output)| {
            let last = vec![0.0; streams * per_block(&method.outputs[output])];
            Loop {
                input,
                output,
                last,
            }
        };
        Ok(Self {
            block,
            inputs: buffers(&method.inputs),
            outputs: buffers(&method.outputs),
            loops: method.feedback().map(fed_back).collect(),
            active: Vec::with_capacity(streams),
            blocks: 0,
            max_blocks: blocks,
        })
    }

    /// Fills the inputs of a block.
    fn begin_block(&mut self, block: usize) {
        let Self {
            block: executor,
            inputs,
            loops,
            active,
            blocks,
            ..
        } = self;
        executor.begin(active, 1);
        for (port, buffer) in inputs.iter_mut().enumerate() {
            let rows = executor.input(port).chunks_exact_mut(buffer.per_block);
            rows.zip(buffer.block(block, *blocks))
                .for_each(|(row, values)| row.copy_from_slice(values));
        }
        for Loop { input, last, .. } in loops {
            let length = inputs[*input].per_block;
            for (row, stream) in executor
                .input(*input)
                .chunks_exact_mut(length)
                .zip(&*active)
            {
                row.copy_from_slice(&last[stream * length..][..length]);
            }
        }
    }

    /// Takes the outputs of a block.
    fn end_block(&mut self, block: usize) {
        let Self {
            block: executor,
            outputs,
            loops,
            active,
            blocks,
            ..
        } = self;
        for (port, buffer) in outputs.iter_mut().enumerate() {
            let rows = executor.output(port).chunks_exact(buffer.per_block);
            buffer
                .block(block, *blocks)
                .zip(rows)
                .for_each(|(values, row)| values.copy_from_slice(row));
        }
        for Loop { output, last, .. } in loops {
            let length = outputs[*output].per_block;
            for (row, stream) in executor.output(*output).chunks_exact(length).zip(&*active) {
                last[stream * length..][..length].copy_from_slice(row);
            }
        }
    }
}

impl Execute for FeedbackExecutor {
    fn begin(&mut self, streams: &[usize], blocks: usize) {
        self.active.clear();
        self.active.extend_from_slice(streams);
        self.blocks = blocks;
    }

    /// Returns the values of an input port, `[stream][frame][channel]`; those of a port that is fed
    /// back are ignored.
    fn input(&mut self, port: usize) -> &mut [f32] {
        let PortBuffer { values, per_block } = &mut self.inputs[port];
        &mut values[..*per_block * self.blocks * self.active.len()]
    }

    fn run(&mut self) {
        (0..self.blocks * self.block.layer_count()).for_each(|layer| self.run_layer(layer));
    }

    /// Returns the number of layers of the longest step.
    fn layer_count(&self) -> usize {
        self.max_blocks * self.block.layer_count()
    }

    /// Computes one layer, of which each block has as many as the wrapped executor.
    fn run_layer(&mut self, index: usize) {
        let layers = self.block.layer_count();
        let (block, layer) = (index / layers, index % layers);
        if block >= self.blocks {
            return;
        }
        if layer == 0 {
            self.begin_block(block);
        }
        self.block.run_layer(layer);
        if layer + 1 == layers {
            self.end_block(block);
        }
    }

    fn output(&self, port: usize) -> &[f32] {
        let PortBuffer { values, per_block } = &self.outputs[port];
        &values[..per_block * self.blocks * self.active.len()]
    }

    fn seed(&mut self, stream: usize, seed: u64) {
        self.block.seed(stream, seed);
        for Loop { input, last, .. } in &mut self.loops {
            let length = self.inputs[*input].per_block;
            last[stream * length..][..length].fill(0.0);
        }
    }

    fn bytes(&self) -> usize {
        let buffers = self
            .inputs
            .iter()
            .chain(&self.outputs)
            .map(|buffer| buffer.values.len());
        let fed_back = self.loops.iter().map(|fed_back| fed_back.last.len());
        let values = buffers.chain(fed_back).sum::<usize>();
        self.block.bytes() + values * size_of::<f32>()
    }

    fn name(&self) -> String {
        self.block.name()
    }

    fn may_allocate(&self) -> bool {
        self.block.may_allocate()
    }
}
