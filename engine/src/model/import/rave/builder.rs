//! Graph of a codec under construction.

use super::archive::TensorData;
use super::module::Module;
use crate::model::import::graph_builder::GraphBuilder;
use crate::model::{ModelError, Node, Op, Weights, limits};
use crate::ops::{Delay, Split};

/// Most modules that are visited; a shared module counts each time it is used.
const MODULES: usize = 1 << 16;

/// Value of the graph.
#[derive(Clone, Debug)]
pub(super) struct Signal {
    /// Name of its node or port.
    pub name: String,
    pub channels: usize,
    /// Samples per frame.
    pub ratio: usize,
    /// Delay against the input, samples; filters count as centred or causal, as the export has
    /// them.
    pub latency: usize,
}

/// [`GraphBuilder`] that tracks channels, ratio and latency of each value.
pub(super) struct CodecBuilder {
    graph: GraphBuilder,
    /// Filters are causal rather than centred.
    pub causal: bool,
    /// Strides of the convolutions, in the order of the graph.
    pub strides: Vec<usize>,
    /// Number of noise sources so far.
    noise_sources: u32,
    /// Number of modules visited so far.
    modules: usize,
    /// Number of weight values so far.
    values: usize,
}

impl CodecBuilder {
    pub fn new(causal: bool) -> Self {
        Self {
            graph: GraphBuilder::default(),
            causal,
            strides: Vec::new(),
            noise_sources: 0,
            modules: 0,
            values: 0,
        }
    }

    /// Removes and returns the nodes added so far; weights stay.
    pub fn take_nodes(&mut self) -> Vec<Node> {
        self.graph.take_nodes()
    }

    /// Returns all weights.
    pub fn into_weights(self) -> Weights {
        self.graph.into_weights()
    }

    /// Adds a node.
    pub fn node(&mut self, name: &str, inputs: &[&Signal], op: Op) -> Result<(), ModelError> {
        let inputs: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
        self.graph.node(name, &inputs, op).map(drop)
    }

    /// Adds a node whose output has the channels and ratio of its first input.
    pub fn same_shape(
        &mut self,
        name: &str,
        inputs: &[&Signal],
        op: Op,
    ) -> Result<Signal, ModelError> {
        self.node(name, inputs, op)?;
        let latency = inputs.iter().map(|input| input.latency).max().unwrap_or(0);
        Ok(Signal {
            name: name.to_owned(),
            latency,
            ..inputs[0].clone()
        })
    }

    /// Adds a node that changes the number of channels.
    pub fn with_channels(
        &mut self,
        name: &str,
        input: &Signal,
        channels: usize,
        op: Op,
    ) -> Result<Signal, ModelError> {
        Ok(Signal {
            channels,
            ..self.same_shape(name, &[input], op)?
        })
    }

    /// Adds a weight.
    pub fn weight(
        &mut self,
        node: &str,
        parameter: &str,
        tensor: TensorData,
    ) -> Result<(), ModelError> {
        // A small file can use the same stored values many times.
        self.values += tensor.values.len();
        ModelError::limit(
            "the number of weights",
            self.values,
            limits::FILE_BYTES / size_of::<f32>(),
        )?;
        self.graph
            .weight(node, parameter, &tensor.shape, tensor.values);
        Ok(())
    }

    /// Selects a range of channels.
    pub fn split(
        &mut self,
        name: &str,
        input: &Signal,
        start: usize,
        channels: usize,
    ) -> Result<Signal, ModelError> {
        self.with_channels(name, input, channels, Op::Split(Split { start, channels }))
    }

    /// Delays a signal by `frames`; adds no node if that is 0.
    pub fn delayed(
        &mut self,
        name: &str,
        input: &Signal,
        frames: usize,
    ) -> Result<Signal, ModelError> {
        if frames == 0 {
            return Ok(input.clone());
        }
        let delayed = self.same_shape(name, &[input], Op::Delay(Delay { frames }))?;
        Ok(Signal {
            latency: input.latency + frames * input.ratio,
            ..delayed
        })
    }

    /// Returns an unused number for a noise source, so that no two sources are correlated.
    pub fn noise_number(&mut self) -> u32 {
        self.noise_sources += 1;
        self.noise_sources
    }

    /// Counts a visited module; fails above the limit, which a damaged file can exceed by nesting a
    /// module in itself.
    pub fn visit(&mut self, module: &Module<'_>) -> Result<(), ModelError> {
        self.modules += 1;
        if self.modules > MODULES {
            return Err(module.error(format_args!("more than {MODULES} modules")));
        }
        Ok(())
    }
}
