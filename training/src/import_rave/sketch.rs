//! A graph in the making.

use anyhow::ensure;
use ondes_engine::model::{Node, Op, Tensor, Weights, limits};

use super::archive::Array;
use super::module::Module;

/// Most modules that are looked at: one that is shared counts each time it is used.
const MODULES: usize = 1 << 16;

/// A value of the graph.
#[derive(Clone, Debug)]
pub(super) struct Signal {
    /// Name of its node or port.
    pub name: String,
    pub channels: usize,
    /// Samples per frame.
    pub ratio: usize,
    /// Samples by which it is behind what goes in, where filters count as centred or causal as the file has them.
    pub late: usize,
}

/// The nodes so far, and what was noticed.
#[derive(Default)]
pub(super) struct Sketch {
    pub nodes: Vec<Node>,
    pub weights: Weights,
    /// Filters look into the past only, rather than to both sides.
    pub causal: bool,
    /// Strides of the convolutions, in the order in which they were met.
    pub strides: Vec<usize>,
    /// Noise that was asked for so far.
    noises: u32,
    modules: usize,
    /// Of all weights.
    values: usize,
}

impl Sketch {
    /// An empty one.
    pub fn new(causal: bool) -> Self {
        Self { causal, ..Self::default() }
    }

    /// Adds a node.
    pub fn node(&mut self, name: &str, inputs: &[&Signal], op: Op) -> anyhow::Result<()> {
        ensure!(self.nodes.len() < limits::NODES, "it has more than {} layers", limits::NODES);
        ensure!(self.nodes.iter().all(|node| node.name != name), "two layers are named {name:?}");
        let inputs = inputs.iter().map(|input| input.name.clone()).collect();
        self.nodes.push(Node { name: name.to_owned(), inputs, op });
        Ok(())
    }

    /// Adds a node that leaves channels, ratio and delay of its first input as they are.
    pub fn alike(&mut self, name: &str, inputs: &[&Signal], op: Op) -> anyhow::Result<Signal> {
        self.node(name, inputs, op)?;
        let late = inputs.iter().map(|input| input.late).max().unwrap_or(0);
        Ok(Signal { name: name.to_owned(), late, ..inputs[0].clone() })
    }

    /// Adds a node that makes another number of channels of one input.
    pub fn widened(&mut self, name: &str, input: &Signal, channels: usize, op: Op) -> anyhow::Result<Signal> {
        Ok(Signal { channels, ..self.alike(name, &[input], op)? })
    }

    /// Adds a weight.
    pub fn weight(&mut self, node: &str, parameter: &str, array: Array) -> anyhow::Result<()> {
        // A file can name the values it has again and again.
        self.values += array.data.len();
        ensure!(self.values <= limits::FILE_BYTES / size_of::<f32>(), "it has more weights than a model may have");
        self.weights.insert(format!("{node}.{parameter}"), Tensor::new(&array.shape, array.data));
        Ok(())
    }

    /// A part of the channels.
    pub fn split(&mut self, name: &str, input: &Signal, start: usize, channels: usize) -> anyhow::Result<Signal> {
        self.widened(name, input, channels, Op::Split { start, channels })
    }

    /// So many frames later; the very same where it is none.
    pub fn delayed(&mut self, name: &str, input: &Signal, frames: usize) -> anyhow::Result<Signal> {
        if frames == 0 {
            return Ok(input.clone());
        }
        let later = self.alike(name, &[input], Op::Delay { frames })?;
        Ok(Signal { late: input.late + frames * input.ratio, ..later })
    }

    /// A number for noise that nobody else has.
    pub fn noise_number(&mut self) -> u32 {
        self.noises += 1;
        self.noises
    }

    /// A module is looked at.
    pub fn visit(&mut self, module: &Module<'_>) -> anyhow::Result<()> {
        self.modules += 1;
        ensure!(self.modules <= MODULES, module.error(format_args!("more than {MODULES} modules")));
        Ok(())
    }
}
