//! Graphs: methods, their ports and their nodes.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{ModelError, Op, Shape};

/// Ending of the name of an input port that receives an output of its own method, one block later:
/// `NAME.previous` receives the output `NAME`, and silence in the first block.
///
/// The graph itself has no circle: whoever runs a method on whole sequences, as training does,
/// fills such a port with what came before each block.
/// [`MethodExecutor`](crate::executor::MethodExecutor) feeds it back.
pub const PREVIOUS: &str = ".previous";

/// Named input or output of a method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Name; an output port has the name of the node whose value it exposes.
    pub name: String,
    /// Channels.
    pub channels: usize,
    /// Samples per frame; 1 is audio rate.
    pub ratio: usize,
}

/// Operation in a graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Name of the node and of its value, unique within the method. Its weights are named
    /// `NAME.PARAMETER`; methods whose nodes have equal names share their weights.
    pub name: String,
    /// Names of the input ports and earlier nodes that it reads.
    pub inputs: Vec<String>,
    /// Operation.
    #[serde(flatten)]
    pub op: Op,
}

/// Signal path of a model, such as `synth` (controls to audio) or `forward` (audio to audio).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Method {
    /// Name: `forward`, `encode`, `decode`, `prior`, `synth`, `room`, or that of a variant.
    pub name: String,
    /// Samples per step, a multiple of every ratio in the method.
    pub block: usize,
    /// Samples of silence processed before the first sample, rounded up to whole blocks; streams
    /// start from the resulting state. Silence is 0 at every input, or the default of the control
    /// that feeds it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub warm_up: usize,
    /// Input ports.
    pub inputs: Vec<Port>,
    /// Output ports.
    pub outputs: Vec<Port>,
    /// Nodes in execution order: each follows those it reads. Empty if a program runs the method
    /// ([`Method::is_program`]).
    pub nodes: Vec<Node>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(samples: &usize) -> bool {
    *samples == 0
}

/// Shapes of all values of a method: the input ports, then the nodes.
#[derive(Clone, Debug)]
pub struct Shapes {
    /// Shape of each value.
    pub values: Vec<Shape>,
    /// Indices of the values that each node reads.
    pub reads: Vec<Vec<usize>>,
    /// Index of the value behind each output port.
    pub shown: Vec<usize>,
}

impl Shapes {
    /// Returns the shapes that each node reads, in the order of nodes.
    pub fn node_inputs(&self) -> impl Iterator<Item = Vec<Shape>> + '_ {
        self.reads
            .iter()
            .map(|reads| reads.iter().map(|&value| self.values[value]).collect())
    }
}

impl Method {
    /// Returns whether a program runs the method: it has no nodes, and no output is an input.
    #[must_use]
    pub fn is_program(&self) -> bool {
        let passes = |port: &Port| self.inputs.iter().any(|input| input.name == port.name);
        self.nodes.is_empty() && !self.outputs.is_empty() && !self.outputs.iter().any(passes)
    }

    /// Infers the shapes of all values, and checks that each node fits its inputs.
    ///
    /// # Errors
    /// Returns [`ModelError::Node`] or [`ModelError::Header`] for the first mismatch.
    pub fn infer(&self) -> Result<Shapes, ModelError> {
        let error =
            |reason: String| ModelError::Header(format!("method {:?}: {reason}", self.name));
        if self.block == 0 {
            return Err(error("block is 0".into()));
        }
        let mut values = Vec::new();
        let mut by_name = HashMap::new();
        for port in &self.inputs {
            if port.channels == 0 || port.ratio == 0 || !self.block.is_multiple_of(port.ratio) {
                return Err(error(format!(
                    "input {:?} has {} channels at ratio {} in a block of {}",
                    port.name, port.channels, port.ratio, self.block
                )));
            }
            if by_name.insert(port.name.as_str(), values.len()).is_some() {
                return Err(error(format!("two values are named {:?}", port.name)));
            }
            values.push(Shape {
                channels: port.channels,
                ratio: port.ratio,
            });
        }
        self.check_fed_back()?;
        let mut reads = Vec::new();
        for node in &self.nodes {
            let error = |reason: String| ModelError::Node {
                method: self.name.clone(),
                node: node.name.clone(),
                reason,
            };
            let mut inputs = Vec::new();
            for name in &node.inputs {
                match by_name.get(name.as_str()) {
                    Some(&value) => inputs.push(value),
                    None => {
                        return Err(error(format!(
                            "reads {name:?}, which is not a port or an earlier node"
                        )));
                    }
                }
            }
            let shapes: Vec<Shape> = inputs.iter().map(|&value| values[value]).collect();
            let shape = node.op.infer(&shapes, self.block).map_err(error)?;
            if !self.block.is_multiple_of(shape.ratio) {
                return Err(error(format!(
                    "its ratio {} does not divide the block of {}",
                    shape.ratio, self.block
                )));
            }
            if by_name.insert(node.name.as_str(), values.len()).is_some() {
                return Err(error("another value has the same name".into()));
            }
            values.push(shape);
            reads.push(inputs);
        }
        let mut shown = Vec::new();
        if self.is_program() {
            for port in &self.outputs {
                if port.channels == 0 || port.ratio == 0 || !self.block.is_multiple_of(port.ratio) {
                    return Err(error(format!(
                        "output {:?} has {} channels at ratio {} in a block of {}",
                        port.name, port.channels, port.ratio, self.block
                    )));
                }
                shown.push(values.len());
                values.push(Shape {
                    channels: port.channels,
                    ratio: port.ratio,
                });
            }
            return Ok(Shapes {
                values,
                reads,
                shown,
            });
        }
        for port in &self.outputs {
            let Some(&value) = by_name.get(port.name.as_str()) else {
                return Err(error(format!("output {:?} names no node", port.name)));
            };
            let shape = values[value];
            if (shape.channels, shape.ratio) != (port.channels, port.ratio) {
                return Err(error(format!(
                    "output {:?} says {} channels at ratio {}, its node has {} at {}",
                    port.name, port.channels, port.ratio, shape.channels, shape.ratio
                )));
            }
            shown.push(value);
        }
        Ok(Shapes {
            values,
            reads,
            shown,
        })
    }

    /// Returns the indices of input ports that receive an output of the block before
    /// ([`PREVIOUS`]), each with that of the output port.
    pub fn feedback(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.inputs.iter().enumerate().filter_map(|(input, port)| {
            let name = port.name.strip_suffix(PREVIOUS)?;
            let output = self.outputs.iter().position(|output| output.name == name)?;
            Some((input, output))
        })
    }

    /// Returns the indices of all input ports that receive an output of the method's own.
    pub fn fed_back(&self) -> impl Iterator<Item = usize> + '_ {
        self.feedback()
            .map(|(input, _)| input)
            .chain(self.recalls().map(|recall| recall.input))
    }

    /// Returns an error unless the input ports that receive an output of the method's own fit it.
    fn check_fed_back(&self) -> Result<(), ModelError> {
        for (input, output) in self.feedback() {
            let (input, output) = (&self.inputs[input], &self.outputs[output]);
            if (input.channels, input.ratio) != (output.channels, output.ratio) {
                return Err(ModelError::Header(format!(
                    "method {:?}: input {:?} has {} channels at ratio {}, the output that it receives {} at {}",
                    self.name,
                    input.name,
                    input.channels,
                    input.ratio,
                    output.channels,
                    output.ratio
                )));
            }
        }
        self.check_recalls()
    }

    /// Returns the number of blocks of silence processed before the first sample.
    #[must_use]
    pub fn warm_up_blocks(&self) -> usize {
        self.warm_up.div_ceil(self.block)
    }

    /// Returns the index of the input port called `name`.
    #[must_use]
    pub fn input(&self, name: &str) -> Option<usize> {
        self.inputs.iter().position(|port| port.name == name)
    }

    /// Returns the latency in samples along the slowest path. A control frame takes effect at its
    /// first sample.
    ///
    /// # Panics
    /// If the method is not part of a validated model.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.longest(|op, inputs| op.operation().latency_samples(inputs))
    }

    /// Returns how long the output continues after the input has ended, in samples, without the
    /// latency. Recurrent layers, which never quite forget, count as half a second.
    ///
    /// # Panics
    /// If the method is not part of a validated model.
    #[must_use]
    pub fn tail_samples(&self, sample_rate: u32) -> usize {
        // The input may end anywhere in a frame, and a frame is processed as a whole.
        let shapes = self.infer().expect("a method of a checked model fits");
        let frame = shapes
            .values
            .iter()
            .map(|shape| shape.ratio)
            .max()
            .unwrap_or(1);
        self.longest(|op, inputs| op.operation().tail_samples(inputs, sample_rate)) + frame - 1
    }

    /// Returns the length of the longest path, where each node adds `own` samples.
    fn longest(&self, own: impl Fn(&Op, &[Shape]) -> usize) -> usize {
        let shapes = self.infer().expect("a method of a checked model fits");
        let mut length = vec![0; shapes.values.len()];
        for (node, reads) in shapes.reads.iter().enumerate() {
            let inputs: Vec<Shape> = reads.iter().map(|&value| shapes.values[value]).collect();
            let before = reads.iter().map(|&value| length[value]).max().unwrap_or(0);
            length[self.inputs.len() + node] = own(&self.nodes[node].op, &inputs) + before;
        }
        shapes
            .shown
            .iter()
            .map(|&value| length[value])
            .max()
            .unwrap_or(0)
    }

    /// Returns the number of values that an executor holds for `streams` streams stepped by up to
    /// `blocks` blocks; `shapes` are those of this method.
    pub(crate) fn held_values(&self, shapes: &Shapes, streams: usize, blocks: usize) -> usize {
        let signals = shapes
            .values
            .iter()
            .map(|shape| shape.channels.saturating_mul(self.block / shape.ratio));
        // The size of states does not depend on the number of blocks.
        let signals = signals
            .fold(0, usize::saturating_add)
            .saturating_mul(blocks);
        let states = self.nodes.iter().zip(shapes.node_inputs());
        states
            .map(|(node, inputs)| {
                node.op
                    .operation()
                    .held_frames()
                    .saturating_mul(inputs[0].channels)
            })
            .fold(signals, usize::saturating_add)
            .saturating_mul(streams)
    }

    /// Returns the multiply-adds per second of audio for one stream.
    ///
    /// # Panics
    /// If the method is not part of a validated model.
    #[must_use]
    pub fn multiply_adds_per_second(&self, sample_rate: u32) -> f64 {
        let shapes = self.infer().expect("a method of a checked model fits");
        let nodes = self
            .nodes
            .iter()
            .zip(shapes.node_inputs())
            .zip(&shapes.values[self.inputs.len()..]);
        let per_block: f64 = nodes
            .map(|((node, inputs), output)| node.op.multiply_adds_per_sample(&inputs, *output))
            .sum();
        per_block * f64::from(sample_rate)
    }
}
