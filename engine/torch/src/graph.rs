//! Runs a method of a model on whole sequences, node by node, from silence or from the state after
//! the previous sequence.

use std::collections::HashMap;
use std::ops::Range;

use ondes_engine::model::{Control, Method, ModelError, Op, graph::Shapes};
use tch::Tensor;

use crate::TorchWeights;
use crate::checkpoint::Checkpoint;
use crate::ops;
use crate::ops::convolution::{convolution, end};
use crate::ops::recurrent::recurrent;
use crate::ops::synthesis::Noise;

/// A method that libtorch runs. All values are `[batch, channels, frames]`.
#[derive(Clone)]
pub struct TorchGraph {
    pub(crate) method: Method,
    pub(crate) shapes: Shapes,
    pub(crate) sample_rate: f64,
    /// `[port]`: constant input during the warm-up.
    defaults: Vec<f32>,
    /// Computes blocks of nodes without keeping their values for the backward pass.
    checkpoint: Option<(Checkpoint, Vec<Range<usize>>)>,
    /// Samples at the end that are output; `None` for all.
    end: Option<usize>,
    /// `[value]`: frames at its end that are computed; `None` for all.
    needs: Vec<Option<i64>>,
}

/// States of recurrent nodes after a sequence, by node name.
#[derive(Debug, Default)]
pub struct RecurrentState(pub(crate) HashMap<String, Vec<Tensor>>);

impl RecurrentState {
    /// Detaches the states, so that gradients end here.
    pub fn detach(&mut self) {
        self.0
            .values_mut()
            .flatten()
            .for_each(|state| *state = state.detach());
    }
}

impl TorchGraph {
    /// Checks the method's shapes. The warm-up gets silence on all inputs unless
    /// [`TorchGraph::with_defaults`] follows.
    ///
    /// # Errors
    /// Returns [`ModelError`] with the first node that does not fit.
    pub fn new(method: &Method, sample_rate: u32) -> Result<Self, ModelError> {
        let shapes = method.infer()?;
        let defaults = vec![0.0; method.inputs.len()];
        let needs = vec![None; shapes.values.len()];
        let sample_rate = f64::from(sample_rate);
        Ok(Self {
            method: method.clone(),
            shapes,
            sample_rate,
            defaults,
            checkpoint: None,
            end: None,
            needs,
        })
    }

    /// Outputs only the last `samples` samples of each sequence, which must be at least as long,
    /// and computes no more than they depend on: what convolutions make of the samples before them
    /// is left out.
    #[must_use]
    pub fn with_end(mut self, samples: usize) -> Self {
        self.needs = self.needs(samples);
        self.end = Some(samples);
        self
    }

    /// Uses the controls' defaults as the input of their ports during the warm-up.
    #[must_use]
    pub fn with_defaults(mut self, controls: &[Control]) -> Self {
        for (port, default) in self.method.inputs.iter().zip(&mut self.defaults) {
            *default = controls
                .iter()
                .find(|control| control.name == port.name)
                .map_or(0.0, |control| control.default);
        }
        self
    }

    /// Computes the nodes in blocks by `checkpoint`, which keeps only their inputs and computes
    /// them again in the backward pass: less memory for a second forward pass.
    #[must_use]
    pub fn with_checkpoint(mut self, checkpoint: Checkpoint) -> Self {
        self.checkpoint = Some((checkpoint, self.blocks()));
        self
    }

    /// Computes all output ports from all input ports, each `[batch, channels, frames]`; the seed
    /// of `noise` is that of the native executor. Ports that are fed back are inputs like others:
    /// they say what came before each block.
    ///
    /// # Panics
    /// Panics if the number of inputs differs from that of the ports, or libtorch refuses their
    /// shapes.
    #[must_use]
    pub fn run(
        &self,
        weights: &TorchWeights,
        inputs: &[Tensor],
        noise: impl Into<Noise>,
    ) -> Vec<Tensor> {
        self.run_with_state(weights, inputs, noise, &mut RecurrentState::default())
    }

    /// Computes as [`TorchGraph::run`] does, with recurrent nodes starting from `state` and storing
    /// their final state there. Other nodes keep no state, so a sequence continues seamlessly only
    /// if they see just the current frame.
    ///
    /// # Panics
    /// Panics as [`TorchGraph::run`] does.
    #[must_use]
    pub fn run_with_state(
        &self,
        weights: &TorchWeights,
        inputs: &[Tensor],
        noise: impl Into<Noise>,
        state: &mut RecurrentState,
    ) -> Vec<Tensor> {
        assert_eq!(
            inputs.len(),
            self.method.inputs.len(),
            "one tensor for each input port"
        );
        let noise = noise.into();
        // The warm-up is prepended to the inputs and removed from the outputs.
        let frames =
            |ratio: usize| (self.method.warm_up_blocks() * self.method.block / ratio) as i64;
        let with_warm_up = inputs
            .iter()
            .zip(&self.method.inputs)
            .zip(&self.defaults)
            .map(|((input, port), &default)| {
                if self.method.warm_up == 0 {
                    return input.shallow_clone();
                }
                let (batch, channels, _) = input.size3().expect("[batch, channels, frames]");
                let shape = [batch, channels, frames(port.ratio)];
                Tensor::cat(
                    &[
                        Tensor::full(shape, f64::from(default), (input.kind(), input.device())),
                        input.shallow_clone(),
                    ],
                    2,
                )
            });
        let mut values: Vec<Option<Tensor>> = with_warm_up.map(Some).collect();
        match &self.checkpoint {
            None => {
                let kept = self.last_reads(0..self.method.nodes.len());
                self.run_nodes(
                    0..self.method.nodes.len(),
                    weights,
                    &mut values,
                    &kept,
                    noise,
                    state,
                );
            }
            Some((checkpoint, blocks)) => {
                for nodes in blocks {
                    self.run_block(
                        nodes.clone(),
                        *checkpoint,
                        weights,
                        &mut values,
                        noise,
                        state,
                    );
                }
            }
        }
        let outputs = self
            .shapes
            .shown
            .iter()
            .zip(&self.method.outputs)
            .map(|(&value, port)| {
                let all = values[value].as_ref().expect("outputs are kept");
                match self.end {
                    Some(samples) => end(all, (samples / port.ratio) as i64),
                    None => all.narrow(2, frames(port.ratio), all.size()[2] - frames(port.ratio)),
                }
            });
        outputs.collect()
    }

    /// Returns for each value the last of the nodes `nodes` that reads it, if nothing after them
    /// does.
    pub(crate) fn last_reads(&self, nodes: Range<usize>) -> Vec<Option<usize>> {
        let count = self.method.inputs.len() + self.method.nodes.len();
        let mut last = vec![None; count];
        for node in nodes.clone() {
            self.shapes.reads[node]
                .iter()
                .for_each(|&value| last[value] = Some(node));
        }
        let later = self.shapes.reads[nodes.end..]
            .iter()
            .flatten()
            .chain(&self.shapes.shown);
        later.for_each(|&value| last[value] = None);
        last
    }

    /// Computes some nodes. Values that nothing reads any more are freed.
    pub(crate) fn run_nodes(
        &self,
        nodes: Range<usize>,
        weights: &TorchWeights,
        values: &mut Vec<Option<Tensor>>,
        last_reads: &[Option<usize>],
        noise: Noise,
        state: &mut RecurrentState,
    ) {
        for index in nodes {
            let (node, reads) = (&self.method.nodes[index], &self.shapes.reads[index]);
            let place = self.method.inputs.len() + index;
            let read: Vec<&Tensor> = reads
                .iter()
                .map(|&value| values[value].as_ref().expect("in order"))
                .collect();
            let hop = self.shapes.values[reads[0]].ratio;
            let weight = |parameter: &str| weights.get(&node.name, parameter);
            let value = match node.op {
                Op::Gru(_) | Op::Lstm(_) => {
                    let before = state.0.remove(&node.name);
                    let (value, after) = recurrent(&node.op, read[0], &weight, before);
                    state.0.insert(node.name.clone(), after);
                    value
                }
                Op::Conv1d(op) => convolution(
                    &op,
                    read[0],
                    weight("weight"),
                    weight("bias"),
                    self.needs[place],
                ),
                _ => {
                    let rows = noise.rows(read[0].size()[0]);
                    match self.needs[place] {
                        None => {
                            ops::compute(&node.op, &read, hop, self.sample_rate, &weight, &rows)
                        }
                        Some(frames) => {
                            let ends: Vec<Tensor> =
                                read.iter().map(|value| end(value, frames)).collect();
                            {
                                let ends: Vec<&Tensor> = ends.iter().collect();
                                ops::compute(&node.op, &ends, hop, self.sample_rate, &weight, &rows)
                            }
                        }
                    }
                }
            };
            values.resize_with(values.len().max(place + 1), || None);
            values[place] = Some(value);
            for &read in reads
                .iter()
                .filter(|&&read| last_reads[read] == Some(index))
            {
                values[read] = None;
            }
        }
    }

    /// Returns the shapes of all values.
    pub(crate) fn shapes(&self) -> &Shapes {
        &self.shapes
    }
}
