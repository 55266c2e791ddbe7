//! From a method to layers and places in the arena.

use ondes_kernels::Kernels;

use super::layers::{self, Build, Layer};
use super::timewise::Timewise;
use crate::model::graph::Shapes;
use crate::model::{ModelError, Model, Op, limits};

/// Where a value lies: `offset` is scaled for the largest step, so it never moves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub offset: usize,
    pub channels: usize,
    /// Frames per block of the method.
    pub frames: usize,
}

impl Place {
    /// Values of one block of one stream.
    pub fn block_values(self) -> usize {
        self.channels * self.frames
    }
}

/// One layer with the values it reads and makes.
pub(super) struct Step {
    pub layer: Box<dyn Layer>,
    pub reads: Vec<Place>,
    pub makes: Place,
    /// The layer changes what it finds in its output, which must first be a copy of its first input.
    pub copies: bool,
    pub name: String,
}

/// A method ready to be stepped.
pub(super) struct Plan {
    pub steps: Vec<Step>,
    pub inputs: Vec<Place>,
    pub outputs: Vec<Place>,
    /// Values of the arena.
    pub arena: usize,
}

impl Plan {
    /// Lays out all values for `streams` streams of up to `blocks` blocks and builds the layers.
    pub fn new(model: &Model, method: &str, kernels: Kernels, streams: usize, blocks: usize) -> Result<Self, ModelError> {
        let method = model.method(method)?;
        let shapes = method.infer()?;
        let held = limits::executor_values(method, &shapes, streams, blocks);
        ModelError::limit(
            format!("what {streams} streams of method {:?} hold", method.name),
            held,
            limits::EXECUTOR_VALUES,
        )?;
        let mut places: Vec<Place> = Vec::new();
        let mut arena = 0;
        let mut place = |shape: crate::model::Shape| {
            let place = Place { offset: arena, channels: shape.channels, frames: method.block / shape.ratio };
            arena += place.block_values() * streams * blocks;
            place
        };
        let (input_shapes, node_shapes) = shapes.values.split_at(method.inputs.len());
        places.extend(input_shapes.iter().map(|&shape| place(shape)));
        if let Some(network) = Timewise::new(method, &shapes, model.weights(), streams, method.block * blocks) {
            let makes = place(shapes.values[shapes.shown[0]]);
            let name = method.name.clone();
            let steps = vec![Step { layer: Box::new(network), reads: places.clone(), makes, copies: false, name }];
            return Ok(Self { steps, inputs: places, outputs: vec![makes], arena });
        }
        let mut steps = Vec::new();
        for (index, node) in method.nodes.iter().enumerate() {
            let reads: Vec<Place> = shapes.reads[index].iter().map(|&value| places[value]).collect();
            // Where nobody else reads the first input, and the others lie before it, it is changed where it lies.
            let in_place = is_update(&node.op)
                && is_only_reader(&shapes, input_shapes.len(), shapes.reads[index][0])
                && reads[1..].iter().all(|other| other.offset < reads[0].offset);
            let shape = node_shapes[index];
            let makes = if in_place {
                Place { offset: reads[0].offset, channels: shape.channels, frames: method.block / shape.ratio }
            } else {
                place(shape)
            };
            let inputs: Vec<_> = shapes.reads[index].iter().map(|&value| shapes.values[value]).collect();
            let build = Build {
                kernels,
                weights: model.weights(),
                node: &node.name,
                inputs: &inputs,
                block: method.block,
                sample_rate: model.header().sample_rate,
                streams,
                frames: reads[0].frames * blocks,
            };
            steps.push(Step {
                layer: layers::build(&node.op, &build),
                reads,
                makes,
                copies: is_update(&node.op) && !in_place,
                name: node.name.clone(),
            });
            places.push(makes);
        }
        let inputs = places[..input_shapes.len()].to_vec();
        let outputs = shapes.shown.iter().map(|&value| places[value]).collect();
        Ok(Self { steps, inputs, outputs, arena })
    }
}

/// Whether the layer of this op updates its first input rather than filling an output.
fn is_update(op: &Op) -> bool {
    let combines = matches!(
        op,
        Op::LayerNorm
            | Op::Latency { .. }
            | Op::Interleave { .. }
            | Op::FlipOddBands
            | Op::Film
            | Op::Add
            | Op::Multiply
            | Op::Affine { .. }
    );
    combines || op.is_activation()
}

/// Whether a value is a node's, is read once and is not shown: then it may be overwritten by its reader.
fn is_only_reader(shapes: &Shapes, inputs: usize, value: usize) -> bool {
    let readers = shapes.reads.iter().flatten().filter(|&&read| read == value).count();
    value >= inputs && readers == 1 && !shapes.shown.contains(&value)
}
