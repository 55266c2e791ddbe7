//! A network in the making: nodes and their weights.

use super::BLOCK;
use crate::model::{
    Card, Control, FORMAT, ModelError, Header, Kind, Method, Model, Node, Op, Port, Tensor, Variant, Weights, limits, validate,
};

/// The port that sound comes in by.
pub(super) const INPUT: &str = "in";

/// A convolution as a file describes it, with its channels and taps.
#[derive(Clone, Copy)]
pub(super) struct Conv {
    pub inputs: usize,
    pub outputs: usize,
    pub kernel: usize,
    pub dilation: usize,
    pub groups: usize,
    pub bias: bool,
    /// The first so many inputs and outputs are all that is used of it; there is but one group then.
    pub slice: Option<(usize, usize)>,
}

impl Conv {
    /// One tap and a bias.
    pub fn pointwise(inputs: usize, outputs: usize) -> Self {
        Self { inputs, outputs, kernel: 1, dilation: 1, groups: 1, bias: true, slice: None }
    }
}

/// A convolution with its weights.
pub(super) struct ConvWeights {
    pub conv: Conv,
    /// `[output][input / groups][tap]`
    pub weight: Vec<f32>,
    /// `[output]`
    pub bias: Vec<f32>,
}

/// A method in the making.
#[derive(Default)]
pub(super) struct GraphBuilder {
    nodes: Vec<Node>,
    weights: Weights,
    /// Put before the names of nodes.
    prefix: String,
}

impl GraphBuilder {
    /// A sketch whose nodes are named `PREFIX.NAME`.
    pub fn named(prefix: &str) -> Self {
        Self { prefix: format!("{prefix}."), ..Self::default() }
    }

    /// Names the nodes that follow `PREFIX.NAME`; gives what they were named before.
    pub fn rename(&mut self, prefix: &str) -> String {
        let longer = format!("{}{prefix}.", self.prefix);
        std::mem::replace(&mut self.prefix, longer)
    }

    /// Ends what [`GraphBuilder::rename`] began.
    pub fn rename_back(&mut self, before: String) {
        self.prefix = before;
    }

    /// Adds a node; gives its whole name, which others read it by.
    pub fn node(&mut self, name: &str, inputs: &[&str], op: Op) -> Result<String, ModelError> {
        // A list of layers in a small file can be long.
        ModelError::limit("the number of nodes", self.nodes.len() + 1, limits::NODES)?;
        let name = format!("{}{name}", self.prefix);
        let inputs = inputs.iter().map(|&input| input.to_owned()).collect();
        self.nodes.push(Node { name: name.clone(), inputs, op });
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

    /// Adds a weight to a node, by its whole name.
    pub fn weight(&mut self, node: &str, parameter: &str, shape: &[usize], data: Vec<f32>) {
        self.weights.insert(format!("{node}.{parameter}"), Tensor::new(shape, data));
    }

    /// Adds a convolution.
    pub fn conv(&mut self, name: &str, input: &str, weights: ConvWeights) -> Result<String, ModelError> {
        let Conv { inputs, kernel, dilation, groups, slice, .. } = weights.conv;
        let outputs = weights.bias.len();
        let name = self.node(name, &[input], Op::Conv1d { outputs, kernel, stride: 1, dilation, groups })?;
        let inputs = slice.map_or(inputs / groups, |(inputs, _)| inputs);
        self.weight(&name, "weight", &[outputs, inputs, kernel], weights.weight);
        self.weight(&name, "bias", &[outputs], weights.bias);
        Ok(name)
    }

    /// Adds a matrix product, `weight [outputs][inputs]`.
    pub fn linear(&mut self, name: &str, input: &str, weight: Vec<f32>, bias: Vec<f32>) -> Result<String, ModelError> {
        let outputs = bias.len();
        let name = self.node(name, &[input], Op::Linear { outputs })?;
        self.weight(&name, "weight", &[outputs, weight.len() / outputs], weight);
        self.weight(&name, "bias", &[outputs], bias);
        Ok(name)
    }

    /// Ends the method, which shows `output` and has those ports, at that rate in Hz; it warms up as players of captures do.
    pub fn method(self, name: &str, output: &str, ports: Vec<Port>, rate: u32) -> Result<BuiltMethod, ModelError> {
        let recurrent = self.nodes.iter().any(|node| matches!(node.op, Op::Lstm { .. } | Op::Gru { .. }));
        let rooms = self.nodes.iter().any(|node| matches!(node.op, Op::Convolve { .. }));
        let block = if rooms { ROOM_BLOCK } else { BLOCK };
        let mut method =
            Method { name: name.into(), block, warm_up: 0, inputs: ports, outputs: Vec::new(), nodes: self.nodes };
        let shapes = method.infer()?;
        // Before anything is summed up that a file could make overflow.
        validate::check_method(&method, &shapes)?;
        let shown = method.nodes.iter().position(|node| node.name == output).map(|node| node + method.inputs.len());
        let shape = shapes.values[shown.unwrap_or(0)];
        method.outputs.push(Port { name: output.into(), channels: shape.channels, ratio: shape.ratio });
        method.warm_up = match (rooms, recurrent) {
            // Silence leaves it as it was.
            (true, _) => 0,
            // It never quite forgets; half a second is what players wait for.
            (_, true) => (rate as usize / 2).next_multiple_of(block),
            // All that it can hear.
            _ => method.tail_samples(rate),
        };
        Ok(BuiltMethod { method, weights: self.weights })
    }
}

/// Samples per step of a method with a long impulse response, which a transform needs.
const ROOM_BLOCK: usize = 64;

/// A method with its weights.
pub(super) struct BuiltMethod {
    pub method: Method,
    weights: Weights,
}

/// What the model is besides its methods.
pub(super) struct ModelInfo {
    /// Hz.
    pub rate: u32,
    pub card: Card,
    pub controls: Vec<Control>,
    pub variants: Vec<Variant>,
}

/// The sound port of a capture.
pub(super) fn sound_port(channels: usize) -> Port {
    Port { name: INPUT.into(), channels, ratio: 1 }
}

/// The effect of those methods.
pub(super) fn model(methods: Vec<BuiltMethod>, frame: ModelInfo) -> Result<Model, ModelError> {
    let mut weights = Weights::default();
    let mut all = Vec::new();
    for BuiltMethod { method, weights: own } in methods {
        all.push(method);
        weights.extend(own);
    }
    let ModelInfo { rate, card, controls, variants } = frame;
    let header = Header {
        format: FORMAT,
        kind: Kind::Effect,
        sample_rate: rate,
        methods: all,
        controls,
        variants,
        performance: None,
        card,
    };
    Model::new(header, weights)
}
