//! A graph block by block, for several streams: what each node remembers from one step to the next.

use ondes_engine::model::{Control, ModelError, Method, Op};
use tch::{Device, Kind, Tensor};

use crate::graph::{TorchGraph, recurrent};
use crate::weights::TorchWeights;

/// A method of a graph with a state for each stream.
pub struct Streaming {
    graph: TorchGraph,
    method: Method,
    weights: TorchWeights,
    /// Kind and place of all tensors.
    options: (Kind, Device),
    /// `[node][state]`, each `[stream, …]`.
    states: Vec<Vec<Tensor>>,
    /// The same for one stream that has heard its warm-up.
    rest: Vec<Vec<Tensor>>,
}

/// What a node remembers.
enum Memory {
    Nothing,
    /// So many frames of its input.
    Frames(usize),
    /// The state of a recurrent layer: so many tensors of so many values.
    States(usize, usize),
}

impl Streaming {
    /// For so many streams of a method whose controls rest at their defaults; `options` are kind and place of `weights`.
    ///
    /// # Errors
    /// [`ModelError::Node`] where a node makes sound of its own: such a method runs natively only.
    pub fn new(
        method: &Method,
        controls: &[Control],
        weights: TorchWeights,
        sample_rate: u32,
        streams: usize,
        options: (Kind, Device),
    ) -> Result<Self, ModelError> {
        let graph = TorchGraph::new(method, sample_rate)?;
        let shapes = method.infer()?;
        let mut rest = Vec::new();
        for (node, inputs) in method.nodes.iter().zip(shapes.node_inputs()) {
            let reason = "makes sound of its own, which libtorch does not block by block: it runs natively".to_owned();
            let fault = || ModelError::Node { method: method.name.clone(), node: node.name.clone(), reason };
            let zeros = |shape: [i64; 3]| Tensor::zeros(shape, options);
            rest.push(match memory(&node.op).ok_or_else(fault)? {
                Memory::Nothing => Vec::new(),
                Memory::Frames(frames) => vec![zeros([1, inputs[0].channels as i64, frames as i64])],
                Memory::States(count, hidden) => {
                    let initial = |name: &str| weights.0.get(&format!("{}.{name}", node.name));
                    let state = |name| match initial(name) {
                        Some(initial) => initial.view([1, 1, hidden as i64]).copy(),
                        None => zeros([1, 1, hidden as i64]),
                    };
                    ["h0", "c0"].into_iter().take(count).map(state).collect()
                }
            });
        }
        let states = rest.clone_states();
        let mut streaming = Self { graph, method: method.clone(), weights, options, states, rest };
        streaming.warm_up(controls);
        streaming.rest = streaming.states.clone_states();
        for state in streaming.states.iter_mut().flatten() {
            let mut shape = state.size();
            shape[0] = streams as i64;
            *state = state.expand(shape.as_slice(), false).copy();
        }
        Ok(streaming)
    }

    /// Lets the first stream hear silence.
    fn warm_up(&mut self, controls: &[Control]) {
        for _ in 0..self.method.warm_up_blocks() {
            let inputs = self.method.inputs.iter().map(|port| {
                let knob = controls.iter().find(|control| control.name == port.name);
                let shape = [1, port.channels as i64, (self.method.block / port.ratio) as i64];
                Tensor::full(shape, f64::from(knob.map_or(0.0, |knob| knob.default)), self.options)
            });
            let inputs: Vec<Tensor> = inputs.collect();
            drop(self.run(&[0], &inputs));
        }
    }

    /// A step: one tensor for each input port, `[stream, channel, frame]`; gives one for each output port.
    pub fn run(&mut self, streams: &[usize], inputs: &[Tensor]) -> Vec<Tensor> {
        let rows: Vec<i64> = streams.iter().map(|&stream| stream as i64).collect();
        let rows = Tensor::from_slice(&rows).to_device(self.options.1);
        let mut values: Vec<Tensor> = inputs.iter().map(Tensor::shallow_clone).collect();
        let reads = self.graph.shapes().reads.clone();
        for (index, reads) in reads.iter().enumerate() {
            let read: Vec<&Tensor> = reads.iter().map(|&value| &values[value]).collect();
            let before: Vec<Tensor> = self.states[index].iter().map(|state| state.index_select(0, &rows)).collect();
            let (value, after) = self.node(index, &read, before);
            for (state, after) in self.states[index].iter_mut().zip(&after) {
                let _ = state.index_copy_(0, &rows, after);
            }
            values.push(value);
        }
        self.graph.shapes().shown.iter().map(|&value| values[value].shallow_clone()).collect()
    }

    /// What a node makes of what it reads and remembers, and what it remembers then.
    fn node(&self, index: usize, read: &[&Tensor], before: Vec<Tensor>) -> (Tensor, Vec<Tensor>) {
        let node = &self.method.nodes[index];
        let weight = |parameter: &str| self.weights.get(&node.name, parameter);
        let x = read[0];
        match (memory(&node.op), &node.op) {
            (Some(Memory::Frames(frames)), op) => {
                let past = &before[0];
                let whole = Tensor::cat(&[past, x], 2);
                let (frames, all) = (frames as i64, whole.size()[2]);
                let after = whole.narrow(2, all - frames, frames);
                let value = match *op {
                    Op::Conv1d { stride, dilation, groups, .. } => whole.conv1d(
                        weight("weight"),
                        Some(weight("bias")),
                        [stride as i64],
                        [0],
                        [dilation as i64],
                        groups as i64,
                    ),
                    _ => {
                        // As a whole sequence, of which the past was heard before.
                        let ratio = self.graph.shapes().values[self.method.inputs.len() + index].ratio;
                        let heard = self.graph.shapes().values[self.graph.shapes().reads[index][0]].ratio;
                        let made = self.graph.node(op, &[&whole], heard, &weight, 0);
                        let past = frames * heard as i64 / ratio as i64;
                        made.narrow(2, past, made.size()[2] - past)
                    }
                };
                (value, vec![after])
            }
            (Some(Memory::States(..)), op) => {
                let before = before.iter().map(|state| state.transpose(0, 1).contiguous()).collect();
                let (value, after) = recurrent(op, x, &weight, Some(before));
                (value, after.iter().map(|state| state.transpose(0, 1)).collect())
            }
            (_, op) => {
                let hop = self.graph.shapes().values[self.graph.shapes().reads[index][0]].ratio;
                (self.graph.node(op, read, hop, &weight, 0), Vec::new())
            }
        }
    }

    /// Forgets what a stream has heard.
    pub fn reset(&mut self, stream: usize) {
        for (state, rest) in self.states.iter_mut().flatten().zip(self.rest.iter().flatten()) {
            state.narrow(0, stream as i64, 1).copy_(rest);
        }
    }

    /// Bytes of weights and states.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let all = self.weights.0.values().chain(self.states.iter().flatten());
        all.map(|tensor| tensor.numel() * tensor.kind().elt_size_in_bytes()).sum()
    }
}

/// Copies of states.
trait CloneStates {
    fn clone_states(&self) -> Self;
}

impl CloneStates for Vec<Vec<Tensor>> {
    fn clone_states(&self) -> Self {
        self.iter().map(|states| states.iter().map(Tensor::copy).collect()).collect()
    }
}

/// What a node remembers; none where it makes sound of its own.
fn memory(op: &Op) -> Option<Memory> {
    let frames = |frames: usize| if frames > 0 { Memory::Frames(frames) } else { Memory::Nothing };
    Some(match *op {
        Op::Conv1d { kernel, stride, dilation, .. } => frames((kernel - 1) * dilation + 1 - stride),
        Op::ConvTranspose1d { kernel, stride, .. } => frames(kernel.div_ceil(stride) - 1),
        Op::Convolve { taps } => frames(taps - 1),
        Op::Delay { frames: late } => frames(late),
        Op::Gru { hidden, .. } => Memory::States(1, hidden),
        Op::Lstm { hidden, .. } => Memory::States(2, hidden),
        Op::Harmonic | Op::FilteredNoise | Op::Noise { .. } => return None,
        Op::Linear { .. }
        | Op::LayerNorm
        | Op::Activation(_)
        | Op::Prelu { .. }
        | Op::Snake
        | Op::Gate
        | Op::Film
        | Op::Add
        | Op::Multiply
        | Op::Concat
        | Op::Split { .. }
        | Op::Affine { .. }
        | Op::Latency { .. }
        | Op::Interleave { .. }
        | Op::FlipOddBands
        | Op::ShapedNoise { .. } => Memory::Nothing,
    })
}
