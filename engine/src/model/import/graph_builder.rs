//! Builder of graphs and their weights.

use super::BLOCK;
use crate::model::{
    Card, Control, FORMAT, Header, Kind, Method, Model, ModelError, Node, Op, Port, Tensor,
    Variant, Weights, limits, validate,
};
use crate::ops::{Conv1d, Linear};

/// Name of the audio input port.
pub(super) const INPUT: &str = "in";

/// Convolution, as a file describes it.
#[derive(Clone, Copy)]
pub(super) struct Conv {
    pub inputs: usize,
    pub outputs: usize,
    pub kernel: usize,
    pub dilation: usize,
    pub groups: usize,
    pub bias: bool,
    /// Number of leading inputs and outputs to use, if not all; requires a single group.
    pub slice: Option<(usize, usize)>,
}

impl Conv {
    /// Convolution with one tap and a bias.
    pub fn pointwise(inputs: usize, outputs: usize) -> Self {
        Self {
            inputs,
            outputs,
            kernel: 1,
            dilation: 1,
            groups: 1,
            bias: true,
            slice: None,
        }
    }
}

/// Convolution with its weights.
pub(super) struct ConvWeights {
    pub conv: Conv,
    /// Weights, `[output][input / groups][tap]`.
    pub weight: Vec<f32>,
    /// Biases, `[output]`.
    pub bias: Vec<f32>,
}

/// Method under construction.
#[derive(Default)]
pub(super) struct GraphBuilder {
    nodes: Vec<Node>,
    weights: Weights,
    /// Prefix of node names.
    prefix: String,
}

impl GraphBuilder {
    /// Creates a builder whose nodes are named `PREFIX.NAME`.
    pub fn named(prefix: &str) -> Self {
        Self {
            prefix: format!("{prefix}."),
            ..Self::default()
        }
    }

    /// Appends `PREFIX.` to the prefix of further nodes; returns the previous prefix.
    pub fn push_prefix(&mut self, prefix: &str) -> String {
        let longer = format!("{}{prefix}.", self.prefix);
        std::mem::replace(&mut self.prefix, longer)
    }

    /// Restores the prefix that [`GraphBuilder::push_prefix`] returned.
    pub fn restore_prefix(&mut self, previous: String) {
        self.prefix = previous;
    }

    /// Adds a node; returns its full name.
    pub fn node(&mut self, name: &str, inputs: &[&str], op: Op) -> Result<String, ModelError> {
        // A small file can list many layers.
        ModelError::limit("the number of nodes", self.nodes.len() + 1, limits::NODES)?;
        let name = format!("{}{name}", self.prefix);
        let inputs = inputs.iter().map(|&input| input.to_owned()).collect();
        self.nodes.push(Node {
            name: name.clone(),
            inputs,
            op,
        });
        Ok(name)
    }

    /// Removes and returns the nodes added so far; weights stay.
    pub fn take_nodes(&mut self) -> Vec<Node> {
        std::mem::take(&mut self.nodes)
    }

    /// Returns all weights.
    pub fn into_weights(self) -> Weights {
        self.weights
    }

    /// Adds a weight to the node with the given full name.
    pub fn weight(&mut self, node: &str, parameter: &str, shape: &[usize], data: Vec<f32>) {
        self.weights
            .insert(format!("{node}.{parameter}"), Tensor::new(shape, data));
    }

    /// Adds a convolution; returns the node's name.
    pub fn conv(
        &mut self,
        name: &str,
        input: &str,
        weights: ConvWeights,
    ) -> Result<String, ModelError> {
        let Conv {
            inputs,
            kernel,
            dilation,
            groups,
            slice,
            ..
        } = weights.conv;
        let outputs = weights.bias.len();
        let name = self.node(
            name,
            &[input],
            Op::Conv1d(
                Conv1d::new(outputs, kernel)
                    .dilated(dilation)
                    .grouped(groups),
            ),
        )?;
        let inputs = slice.map_or(inputs / groups, |(inputs, _)| inputs);
        self.weight(&name, "weight", &[outputs, inputs, kernel], weights.weight);
        self.weight(&name, "bias", &[outputs], weights.bias);
        Ok(name)
    }

    /// Adds a matrix product, `weight [outputs][inputs]`; returns the node's name.
    pub fn linear(
        &mut self,
        name: &str,
        input: &str,
        weight: Vec<f32>,
        bias: Vec<f32>,
    ) -> Result<String, ModelError> {
        let outputs = bias.len();
        let name = self.node(name, &[input], Op::Linear(Linear { outputs }))?;
        self.weight(&name, "weight", &[outputs, weight.len() / outputs], weight);
        self.weight(&name, "bias", &[outputs], bias);
        Ok(name)
    }

    /// Completes the method with the given output node, input ports and sample rate in Hz. Its
    /// warm-up is that of capture players.
    pub fn method(
        self,
        name: &str,
        output: &str,
        ports: Vec<Port>,
        rate: u32,
    ) -> Result<BuiltMethod, ModelError> {
        let recurrent = self
            .nodes
            .iter()
            .any(|node| matches!(node.op, Op::Lstm(_) | Op::Gru(_)));
        let rooms = self
            .nodes
            .iter()
            .any(|node| matches!(node.op, Op::Convolve(_)));
        let block = if rooms { ROOM_BLOCK } else { BLOCK };
        let mut method = Method {
            name: name.into(),
            block,
            warm_up: 0,
            inputs: ports,
            outputs: Vec::new(),
            nodes: self.nodes,
        };
        let shapes = method.infer()?;
        // Validates sizes before they are added up, which could overflow.
        validate::check_method(&method, &shapes)?;
        let shown = method
            .nodes
            .iter()
            .position(|node| node.name == output)
            .map(|node| node + method.inputs.len());
        let shape = shapes.values[shown.unwrap_or(0)];
        method.outputs.push(Port {
            name: output.into(),
            channels: shape.channels,
            ratio: shape.ratio,
        });
        method.warm_up = match (rooms, recurrent) {
            // Silence does not change the state of a convolution.
            (true, _) => 0,
            // Recurrent states never settle exactly; capture players process half a second.
            (_, true) => warm_up(rate).next_multiple_of(block),
            // The whole receptive field.
            _ => method.tail_samples(rate),
        };
        Ok(BuiltMethod {
            method,
            weights: self.weights,
        })
    }
}

/// Returns the warm-up of a recurrent network in samples: half a second.
pub(super) fn warm_up(rate: u32) -> usize {
    rate as usize / 2
}

/// Samples per step of a method with a long impulse response, which is convolved by FFT.
const ROOM_BLOCK: usize = 64;

/// Method with its weights.
pub(super) struct BuiltMethod {
    pub method: Method,
    weights: Weights,
}

/// Properties of a model besides its methods.
pub(super) struct ModelInfo {
    /// Sample rate, Hz.
    pub rate: u32,
    pub card: Card,
    pub controls: Vec<Control>,
    pub variants: Vec<Variant>,
}

/// Returns the audio input port of a capture.
pub(super) fn audio_port(channels: usize) -> Port {
    Port {
        name: INPUT.into(),
        channels,
        ratio: 1,
    }
}

/// Creates an effect from methods.
pub(super) fn model(methods: Vec<BuiltMethod>, info: ModelInfo) -> Result<Model, ModelError> {
    let mut weights = Weights::default();
    let mut all = Vec::new();
    for BuiltMethod {
        method,
        weights: own,
    } in methods
    {
        all.push(method);
        weights.extend(own);
    }
    let ModelInfo {
        rate,
        card,
        controls,
        variants,
    } = info;
    let header = Header {
        format: FORMAT,
        kind: Kind::Effect,
        sample_rate: rate,
        methods: all,
        controls,
        variants,
        oversampling: 1,
        performance: None,
        card,
    };
    Model::new(header, weights)
}
