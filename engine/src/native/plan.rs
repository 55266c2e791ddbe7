//! From a method to layers and their slots in the arena.

use ondes_kernels::Kernels;

use super::fused::FusedConvNet;
use super::layer::{Layer, LayerContext, TensorSlot};
use crate::model::graph::Shapes;
use crate::model::{Method, Model, ModelError, Shape, limits};

/// A layer with its inputs and its output.
pub(super) struct Step {
    pub layer: Box<dyn Layer>,
    pub inputs: Vec<TensorSlot>,
    pub output: TensorSlot,
    /// Set if the first input is copied to the output before the layer runs, since the layer
    /// updates it.
    pub copies_input: bool,
    pub name: String,
}

/// The steps of a method, and the slots of its ports.
pub(super) struct Plan {
    pub steps: Vec<Step>,
    pub inputs: Vec<TensorSlot>,
    pub outputs: Vec<TensorSlot>,
    /// Length of the arena in values.
    pub arena: usize,
}

impl Plan {
    /// Lays out all values for `streams` streams of up to `blocks` blocks and builds the layers.
    ///
    /// # Errors
    /// Returns [`ModelError::Method`] if the model has no such method, and [`ModelError::Limit`] if
    /// the values would take too much memory.
    pub fn new(
        model: &Model,
        method: &str,
        kernels: Kernels,
        streams: usize,
        blocks: usize,
    ) -> Result<Self, ModelError> {
        let method = model.method(method)?;
        let shapes = method.infer()?;
        let values = method.held_values(&shapes, streams, blocks);
        ModelError::limit(
            format!("what {streams} streams of method {:?} hold", method.name),
            values,
            limits::EXECUTOR_VALUES,
        )?;
        let mut arena = Arena {
            block: method.block,
            copies: streams * blocks,
            length: 0,
        };
        let inputs: Vec<TensorSlot> = shapes.values[..method.inputs.len()]
            .iter()
            .map(|&shape| arena.add(shape))
            .collect();
        if let Some(network) = FusedConvNet::new(
            method,
            &shapes,
            model.weights(),
            streams,
            method.block * blocks,
        ) {
            let output = arena.add(shapes.values[shapes.shown[0]]);
            let step = Step {
                layer: Box::new(network),
                inputs: inputs.clone(),
                output,
                copies_input: false,
                name: method.name.clone(),
            };
            return Ok(Self {
                steps: vec![step],
                inputs,
                outputs: vec![output],
                arena: arena.length,
            });
        }
        let mut slots = inputs.clone();
        let mut steps = Vec::new();
        for index in 0..method.nodes.len() {
            let first_frames = slots[shapes.reads[index][0]].frames;
            let shapes_read: Vec<Shape> = shapes.reads[index]
                .iter()
                .map(|&value| shapes.values[value])
                .collect();
            let context = LayerContext {
                kernels,
                weights: model.weights(),
                node: &method.nodes[index].name,
                inputs: &shapes_read,
                block: method.block,
                sample_rate: model.header().sample_rate,
                streams,
                frames: first_frames * blocks,
            };
            let layer = method.nodes[index].op.operation().layer(&context);
            let step = Step::new(layer, method, &shapes, index, &slots, &mut arena);
            slots.push(step.output);
            steps.push(step);
        }
        let outputs = shapes.shown.iter().map(|&value| slots[value]).collect();
        Ok(Self {
            steps,
            inputs,
            outputs,
            arena: arena.length,
        })
    }
}

impl Step {
    /// Places the output of a node: in the slot of its first input where the layer updates it and
    /// nothing else reads it, else in a slot of its own.
    fn new(
        layer: Box<dyn Layer>,
        method: &Method,
        shapes: &Shapes,
        index: usize,
        slots: &[TensorSlot],
        arena: &mut Arena,
    ) -> Self {
        let ports = method.inputs.len();
        let inputs: Vec<TensorSlot> = shapes.reads[index]
            .iter()
            .map(|&value| slots[value])
            .collect();
        let updates_input = layer.updates_first_input();
        // A step borrows the arena before its output for reading, so the other inputs must come
        // first.
        let in_place = updates_input
            && is_only_reader(shapes, ports, shapes.reads[index][0])
            && inputs[1..]
                .iter()
                .all(|other| other.offset < inputs[0].offset);
        let shape = shapes.values[ports + index];
        let output = if in_place {
            arena.slot_at(inputs[0].offset, shape)
        } else {
            arena.add(shape)
        };
        let name = method.nodes[index].name.clone();
        Self {
            layer,
            inputs,
            output,
            copies_input: updates_input && !in_place,
            name,
        }
    }
}

/// Allocates slots one after another.
struct Arena {
    /// Samples per block.
    block: usize,
    /// Blocks of all streams in the largest step.
    copies: usize,
    /// Values allocated so far.
    length: usize,
}

impl Arena {
    fn slot_at(&self, offset: usize, shape: Shape) -> TensorSlot {
        TensorSlot {
            offset,
            channels: shape.channels,
            frames: self.block / shape.ratio,
        }
    }

    fn add(&mut self, shape: Shape) -> TensorSlot {
        let slot = self.slot_at(self.length, shape);
        self.length += slot.block_values() * self.copies;
        slot
    }
}

/// Returns whether a value belongs to a node, is read once and is no output, so that its reader may
/// overwrite it.
fn is_only_reader(shapes: &Shapes, ports: usize, value: usize) -> bool {
    let readers = shapes
        .reads
        .iter()
        .flatten()
        .filter(|&&read| read == value)
        .count();
    value >= ports && readers == 1 && !shapes.shown.contains(&value)
}
