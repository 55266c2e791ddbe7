//! Runs a graph block by block for several streams, with the state of each node.

use ondes_engine::model::{Control, Method, ModelError, Op};
use ondes_engine::ops::{Conv1d, Memory};
use tch::{Device, Kind, Tensor};

use crate::graph::TorchGraph;
use crate::ops::attention::attention;
use crate::ops::compute;
use crate::ops::recurrent::recurrent;
use crate::ops::synthesis::{Noise, NoiseRow};
use crate::weights::TorchWeights;

/// A method of a graph with a state for each stream.
pub struct StreamingGraph {
    graph: TorchGraph,
    method: Method,
    weights: TorchWeights,
    /// Kind and device of all tensors.
    options: (Kind, Device),
    /// `[node][state]`, each `[stream, …]`.
    states: Vec<Vec<Tensor>>,
    /// `[node][state]` of one stream after the warm-up, each `[1, …]`.
    initial: Vec<Vec<Tensor>>,
    /// `[stream]`: seed of the noise, and number of blocks since it was set.
    noise: Vec<(u64, u64)>,
}

impl StreamingGraph {
    /// Prepares a method for `streams` streams, with all controls at their defaults; `options` are
    /// kind and device of `weights`.
    ///
    /// # Errors
    /// Returns [`ModelError::Node`] for an oscillator, filtered noise or a pitch, which only the native
    /// executor runs block by block.
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
        let mut initial_states = Vec::new();
        for (node, inputs) in method.nodes.iter().zip(shapes.node_inputs()) {
            let reason =
                "makes or hears sound, which libtorch cannot do block by block; use the native executor"
                    .to_owned();
            let error = || ModelError::Node {
                method: method.name.clone(),
                node: node.name.clone(),
                reason,
            };
            let zeros = |shape: [i64; 3]| Tensor::zeros(shape, options);
            initial_states.push(match node.op.memory() {
                Memory::Sound => return Err(error()),
                Memory::Nothing => Vec::new(),
                Memory::Frames(frames) => {
                    vec![zeros([1, inputs[0].channels as i64, frames as i64])]
                }
                Memory::Attended(frames) => [1, 2]
                    .map(|input| zeros([1, inputs[input].channels as i64, frames as i64]))
                    .into(),
                Memory::States { count, hidden } => {
                    let initial = |name: &str| weights.0.get(&format!("{}.{name}", node.name));
                    let state = |name| match initial(name) {
                        Some(initial) => initial.view([1, 1, hidden as i64]).copy(),
                        None => zeros([1, 1, hidden as i64]),
                    };
                    ["h0", "c0"].into_iter().take(count).map(state).collect()
                }
            });
        }
        let states = initial_states.clone_states();
        let noise = Noise::default()
            .rows(streams as i64)
            .iter()
            .map(|row| (row.seed, 0))
            .collect();
        let mut streaming = Self {
            graph,
            method: method.clone(),
            weights,
            options,
            states,
            initial: initial_states,
            noise,
        };
        streaming.warm_up(controls);
        streaming.initial = streaming.states.clone_states();
        for state in streaming.states.iter_mut().flatten() {
            let mut shape = state.size();
            shape[0] = streams as i64;
            *state = state.expand(shape.as_slice(), false).copy();
        }
        Ok(streaming)
    }

    /// Runs the warm-up on the first stream, with silence and default controls.
    fn warm_up(&mut self, controls: &[Control]) {
        for _ in 0..self.method.warm_up_blocks() {
            let inputs = self.method.inputs.iter().map(|port| {
                let control = controls.iter().find(|control| control.name == port.name);
                let shape = [
                    1,
                    port.channels as i64,
                    (self.method.block / port.ratio) as i64,
                ];
                Tensor::full(
                    shape,
                    f64::from(control.map_or(0.0, |control| control.default)),
                    self.options,
                )
            });
            let inputs: Vec<Tensor> = inputs.collect();
            drop(self.run(&[0], &inputs));
        }
    }

    /// Computes a step from one tensor for each input port, `[stream, channel, frame]`; returns one
    /// for each output port.
    pub fn run(&mut self, streams: &[usize], inputs: &[Tensor]) -> Vec<Tensor> {
        let rows: Vec<i64> = streams.iter().map(|&stream| stream as i64).collect();
        let rows = Tensor::from_slice(&rows).to_device(self.options.1);
        let mut values: Vec<Tensor> = inputs.iter().map(Tensor::shallow_clone).collect();
        let reads = self.graph.shapes().reads.clone();
        for (index, reads) in reads.iter().enumerate() {
            let read: Vec<&Tensor> = reads.iter().map(|&value| &values[value]).collect();
            let before: Vec<Tensor> = self.states[index]
                .iter()
                .map(|state| state.index_select(0, &rows))
                .collect();
            let frames = (self.method.block / self.graph.shapes().values[reads[0]].ratio) as u64;
            let noise = streams.iter().map(|&stream| self.noise[stream]);
            let noise = noise.map(|(seed, blocks)| NoiseRow {
                seed,
                frame: blocks * frames,
            });
            let (value, after) = self.node(index, &read, before, &noise.collect::<Vec<_>>());
            for (state, after) in self.states[index].iter_mut().zip(&after) {
                let _ = state.index_copy_(0, &rows, after);
            }
            values.push(value);
        }
        let blocks = inputs.first().map_or(0, |input| {
            input.size()[2] as usize * self.method.inputs[0].ratio
        });
        for &stream in streams {
            self.noise[stream].1 += (blocks / self.method.block) as u64;
        }
        self.graph
            .shapes()
            .shown
            .iter()
            .map(|&value| values[value].shallow_clone())
            .collect()
    }

    /// Computes a node from its inputs and its state; returns the output and the new state.
    fn node(
        &self,
        index: usize,
        read: &[&Tensor],
        before: Vec<Tensor>,
        noise: &[NoiseRow],
    ) -> (Tensor, Vec<Tensor>) {
        let node = &self.method.nodes[index];
        let weight = |parameter: &str| self.weights.get(&node.name, parameter);
        let x = read[0];
        match (node.op.memory(), &node.op) {
            (Memory::Frames(frames), op) => {
                let past = &before[0];
                let with_past = Tensor::cat(&[past, x], 2);
                let (frames, all) = (frames as i64, with_past.size()[2]);
                let after = with_past.narrow(2, all - frames, frames);
                let value = match *op {
                    Op::Conv1d(Conv1d {
                        stride,
                        dilation,
                        groups,
                        ..
                    }) => with_past.conv1d(
                        weight("weight"),
                        Some(weight("bias")),
                        [stride as i64],
                        [0],
                        [dilation as i64],
                        groups as i64,
                    ),
                    _ => {
                        // As one sequence, of which the past part of the output is dropped.
                        let ratio =
                            self.graph.shapes().values[self.method.inputs.len() + index].ratio;
                        let input_ratio =
                            self.graph.shapes().values[self.graph.shapes().reads[index][0]].ratio;
                        let output = compute(
                            op,
                            &[&with_past],
                            input_ratio,
                            self.graph.sample_rate,
                            &weight,
                            noise,
                        );
                        let past = frames * input_ratio as i64 / ratio as i64;
                        output.narrow(2, past, output.size()[2] - past)
                    }
                };
                (value, vec![after])
            }
            (Memory::States { .. }, op) => {
                let before = before
                    .iter()
                    .map(|state| state.transpose(0, 1).contiguous())
                    .collect();
                let (value, after) = recurrent(op, x, &weight, Some(before));
                (
                    value,
                    after.iter().map(|state| state.transpose(0, 1)).collect(),
                )
            }
            (Memory::Attended(frames), _) => {
                let with_past =
                    [0, 1].map(|state| Tensor::cat(&[&before[state], read[1 + state]], 2));
                let last = |x: &Tensor| x.narrow(2, x.size()[2] - frames as i64, frames as i64);
                let value = attention(x, &with_past[0], &with_past[1], weight("position"));
                (value, with_past.iter().map(last).collect())
            }
            (_, op) => {
                let hop = self.graph.shapes().values[self.graph.shapes().reads[index][0]].ratio;
                {
                    let rate = self.graph.sample_rate;
                    (compute(op, read, hop, rate, &weight, noise), Vec::new())
                }
            }
        }
    }

    /// Resets a stream and seeds its noise.
    pub fn seed(&mut self, stream: usize, seed: u64) {
        self.noise[stream] = (seed, 0);
        for (state, initial) in self
            .states
            .iter_mut()
            .flatten()
            .zip(self.initial.iter().flatten())
        {
            state.narrow(0, stream as i64, 1).copy_(initial);
        }
    }

    /// Returns the bytes of weights and states.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let all = self.weights.0.values().chain(self.states.iter().flatten());
        all.map(|tensor| tensor.numel() * tensor.kind().elt_size_in_bytes())
            .sum()
    }
}

/// Deep copies of states.
trait CloneStates {
    fn clone_states(&self) -> Self;
}

impl CloneStates for Vec<Vec<Tensor>> {
    fn clone_states(&self) -> Self {
        self.iter()
            .map(|states| states.iter().map(Tensor::copy).collect())
            .collect()
    }
}
