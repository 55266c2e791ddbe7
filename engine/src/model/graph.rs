//! Methods, ports and nodes: a network written down once.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{ModelError, Op};

/// A named input or output of a method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Name; an output port is named like the node it shows.
    pub name: String,
    /// Values per frame.
    pub channels: usize,
    /// One frame per `ratio` samples; 1 is audio.
    pub ratio: usize,
}

/// One step of a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Name of the node and of its value, unique within the method. Its weights are named `NAME.PARAMETER`; methods whose
    /// nodes share a name share weights.
    pub name: String,
    /// Names of input ports or of earlier nodes.
    pub inputs: Vec<String>,
    /// What it computes.
    #[serde(flatten)]
    pub op: Op,
}

/// Something a model can do, such as `synth` (controls to audio) or `forward` (audio to audio).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Method {
    /// `forward`, `encode`, `decode`, `prior`, `synth` or `room`.
    pub name: String,
    /// Samples per step: a multiple of every ratio in the method.
    pub block: usize,
    /// Samples of silence that it has heard before its first sample: the state that it starts from is the one it is in then.
    /// Silence is 0 on every input, and the default on one that a control feeds. Rounded up to whole blocks.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub warm_up: usize,
    /// What is fed in.
    pub inputs: Vec<Port>,
    /// What comes out.
    pub outputs: Vec<Port>,
    /// The network, each node after those it reads; none where the method is one of a program ([`Method::is_program`]).
    pub nodes: Vec<Node>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(samples: &usize) -> bool {
    *samples == 0
}

/// Channels and ratio of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Values per frame.
    pub channels: usize,
    /// One frame per `ratio` samples.
    pub ratio: usize,
}

/// The shapes of all values of a method: the input ports, then the nodes.
#[derive(Clone, Debug)]
pub struct Shapes {
    /// One per value.
    pub values: Vec<Shape>,
    /// For each node the values it reads.
    pub reads: Vec<Vec<usize>>,
    /// For each output port the value it shows.
    pub shown: Vec<usize>,
}

impl Shapes {
    /// The shapes that each node reads, in the order of nodes.
    pub fn node_inputs(&self) -> impl Iterator<Item = Vec<Shape>> + '_ {
        self.reads.iter().map(|reads| reads.iter().map(|&value| self.values[value]).collect())
    }
}

impl Method {
    /// Whether it is code and no graph: it has no nodes, and what it gives is none of its inputs.
    #[must_use]
    pub fn is_program(&self) -> bool {
        let passes = |port: &Port| self.inputs.iter().any(|input| input.name == port.name);
        self.nodes.is_empty() && !self.outputs.is_empty() && !self.outputs.iter().any(passes)
    }

    /// Follows the nodes and checks that each fits those it reads.
    ///
    /// # Errors
    /// [`ModelError::Node`] or [`ModelError::Header`] with the first thing that does not fit.
    pub fn infer(&self) -> Result<Shapes, ModelError> {
        let error = |reason: String| ModelError::Header(format!("method {:?}: {reason}", self.name));
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
            values.push(Shape { channels: port.channels, ratio: port.ratio });
        }
        let mut reads = Vec::new();
        for node in &self.nodes {
            let error = |reason: String| ModelError::Node { method: self.name.clone(), node: node.name.clone(), reason };
            let mut inputs = Vec::new();
            for name in &node.inputs {
                match by_name.get(name.as_str()) {
                    Some(&value) => inputs.push(value),
                    None => return Err(error(format!("reads {name:?}, which no port or earlier node is named"))),
                }
            }
            let shapes: Vec<Shape> = inputs.iter().map(|&value| values[value]).collect();
            let shape = node.op.infer(&shapes, self.block).map_err(error)?;
            if !self.block.is_multiple_of(shape.ratio) {
                return Err(error(format!("its ratio {} does not divide the block of {}", shape.ratio, self.block)));
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
                values.push(Shape { channels: port.channels, ratio: port.ratio });
            }
            return Ok(Shapes { values, reads, shown });
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
        Ok(Shapes { values, reads, shown })
    }

    /// Blocks of silence that it has heard before its first sample.
    #[must_use]
    pub fn warm_up_blocks(&self) -> usize {
        self.warm_up.div_ceil(self.block)
    }

    /// The port of that name among the inputs.
    #[must_use]
    pub fn input(&self, name: &str) -> Option<usize> {
        self.inputs.iter().position(|port| port.name == name)
    }

    /// Samples by which what comes out is behind what goes in, along the slowest path; a control frame stands for the
    /// instant at its start.
    ///
    /// # Panics
    /// When the method is not part of a checked model.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.longest(Op::latency_samples)
    }

    /// Samples for which sound still comes out after all that goes in has ended, latency aside, at that rate in Hz
    /// ([`Op::tail_samples`]).
    ///
    /// # Panics
    /// When the method is not part of a checked model.
    #[must_use]
    pub fn tail_samples(&self, sample_rate: u32) -> usize {
        // The end may lie anywhere in a frame, and a frame is heard to its end.
        let shapes = self.infer().expect("a method of a checked model fits");
        let frame = shapes.values.iter().map(|shape| shape.ratio).max().unwrap_or(1);
        self.longest(|op, inputs| op.tail_samples(inputs, sample_rate)) + frame - 1
    }

    /// The longest path through the network, where each op adds so many samples.
    fn longest(&self, own: impl Fn(&Op, &[Shape]) -> usize) -> usize {
        let shapes = self.infer().expect("a method of a checked model fits");
        let mut length = vec![0; shapes.values.len()];
        for (node, reads) in shapes.reads.iter().enumerate() {
            let inputs: Vec<Shape> = reads.iter().map(|&value| shapes.values[value]).collect();
            let before = reads.iter().map(|&value| length[value]).max().unwrap_or(0);
            length[self.inputs.len() + node] = own(&self.nodes[node].op, &inputs) + before;
        }
        shapes.shown.iter().map(|&value| length[value]).max().unwrap_or(0)
    }

    /// Multiply-adds per second of sound at that rate, for one stream.
    ///
    /// # Panics
    /// When the method is not part of a checked model.
    #[must_use]
    pub fn multiply_adds_per_second(&self, sample_rate: u32) -> f64 {
        let shapes = self.infer().expect("a method of a checked model fits");
        let nodes = self.nodes.iter().zip(shapes.node_inputs()).zip(&shapes.values[self.inputs.len()..]);
        let per_block: f64 =
            nodes.map(|((node, inputs), output)| node.op.multiply_adds_per_sample(&inputs, *output)).sum();
        per_block * f64::from(sample_rate)
    }
}
