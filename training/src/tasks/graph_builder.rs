//! Builder of graphs.

use ondes_engine::model::{Activation, Method, Node, Op, Port};
use ondes_engine::ops::{Affine, Conv1d, Gru, Linear, Split};

/// Nodes of a method under construction. Each function adds a node and returns its name.
#[derive(Default)]
pub(crate) struct GraphBuilder {
    pub nodes: Vec<Node>,
}

impl GraphBuilder {
    /// Adds a node.
    pub fn add(&mut self, name: &str, inputs: &[&str], op: Op) -> String {
        let inputs = inputs.iter().map(|&input| input.to_owned()).collect();
        self.nodes.push(Node {
            name: name.to_owned(),
            inputs,
            op,
        });
        name.to_owned()
    }

    /// Adds a concatenation of channels.
    pub fn concat<S: AsRef<str>>(&mut self, name: &str, inputs: &[S]) -> String {
        let inputs: Vec<&str> = inputs.iter().map(AsRef::as_ref).collect();
        self.add(name, &inputs, Op::Concat)
    }

    /// Adds `scale · input + offset`.
    pub fn affine(&mut self, name: &str, input: &str, scale: f32, offset: f32) -> String {
        self.add(name, &[input], Op::Affine(Affine { scale, offset }))
    }

    /// Adds a linear layer.
    pub fn linear(&mut self, name: &str, input: &str, outputs: usize) -> String {
        self.add(name, &[input], Op::Linear(Linear { outputs }))
    }

    /// Adds a causal convolution without a stride.
    pub fn convolution(
        &mut self,
        name: &str,
        input: &str,
        outputs: usize,
        kernel: usize,
        dilation: usize,
    ) -> String {
        let op = Op::Conv1d(Conv1d::new(outputs, kernel).dilated(dilation));
        self.add(name, &[input], op)
    }

    /// Adds a convolution that reduces the rate by `stride`.
    pub fn strided(
        &mut self,
        name: &str,
        input: &str,
        outputs: usize,
        kernel: usize,
        stride: usize,
    ) -> String {
        let op = Op::Conv1d(Conv1d::new(outputs, kernel).strided(stride));
        self.add(name, &[input], op)
    }

    /// Adds a GRU that starts from zeros.
    pub fn gru(&mut self, name: &str, input: &str, hidden: usize) -> String {
        let op = Op::Gru(Gru {
            hidden,
            initial_state: false,
        });
        self.add(name, &[input], op)
    }

    /// Adds an activation.
    pub fn activation(&mut self, name: &str, input: &str, activation: Activation) -> String {
        self.add(name, &[input], Op::Activation(activation))
    }

    /// Adds some channels of a value.
    pub fn split(&mut self, name: &str, input: &str, start: usize, channels: usize) -> String {
        self.add(name, &[input], Op::Split(Split { start, channels }))
    }

    /// Returns the method of these nodes.
    pub fn into_method(
        self,
        name: &str,
        block: usize,
        inputs: Vec<Port>,
        outputs: Vec<Port>,
    ) -> Method {
        Method {
            name: name.into(),
            block,
            warm_up: 0,
            inputs,
            outputs,
            nodes: self.nodes,
        }
    }
}

/// Returns a port.
pub(crate) fn port(name: &str, channels: usize, ratio: usize) -> Port {
    Port {
        name: name.into(),
        channels,
        ratio,
    }
}
