//! Blocks of a graph whose values are computed again in the backward pass (Chen, Xu, Zhang &
//! Guestrin, "Training deep nets with sublinear memory cost", 2016).

use std::ops::Range;

use ondes_engine::model::Op;
use ondes_engine::ops::Memory;
use tch::Tensor;

use crate::{Noise, RecurrentState, TorchGraph, TorchWeights};

/// Most blocks of a graph.
const MAX_BLOCKS: usize = 64;

/// Part of a network: its outputs from its inputs. Called once forward and once in the backward
/// pass.
pub type Block = Box<dyn Fn(&[Tensor]) -> Vec<Tensor> + Send>;

/// Computes a block from inputs that it depends on, with the given number of outputs, and its
/// gradients by computing it again.
pub type Checkpoint = fn(block: Block, inputs: &[Tensor], outputs: usize) -> Vec<Tensor>;

impl TorchGraph {
    /// Returns the ranges of nodes that need the least memory: the values that are kept at their
    /// borders, and those of the largest range, which are computed again.
    pub(crate) fn blocks(&self) -> Vec<Range<usize>> {
        let (kept, live) = (self.kept_widths(), self.live_widths());
        let nodes = self.method.nodes.len();
        let mut best = (f64::INFINITY, Vec::new());
        for count in 1..=nodes.min(MAX_BLOCKS) {
            let length = kept[nodes] / count as f64;
            let mut borders = vec![0];
            for block in 1..count {
                // The narrowest place around equal parts.
                let near = |place: &usize| (kept[*place] / length - block as f64).abs() <= 0.5;
                let places = (borders[borders.len() - 1] + 1..nodes).filter(near);
                borders.extend(places.min_by(|a, b| live[*a].total_cmp(&live[*b])));
            }
            borders.push(nodes);
            let largest = borders
                .windows(2)
                .map(|ends| kept[ends[1]] - kept[ends[0]])
                .fold(0.0, f64::max);
            let need = largest + borders.iter().map(|border| live[*border]).sum::<f64>();
            if need < best.0 {
                best = (need, borders);
            }
        }
        best.1.windows(2).map(|ends| ends[0]..ends[1]).collect()
    }

    /// Returns the values per sample that the backward pass of the nodes before each one keeps.
    fn kept_widths(&self) -> Vec<f64> {
        let mut sums = vec![0.0];
        for (index, node) in self.method.nodes.iter().enumerate() {
            // Gradients of sums and views need no values.
            let own = match node.op {
                Op::Add
                | Op::Affine(_)
                | Op::Concat
                | Op::Split(_)
                | Op::Delay(_)
                | Op::Latency(_) => 0.0,
                _ => self.width(self.method.inputs.len() + index),
            };
            sums.push(sums[index] + own);
        }
        sums
    }

    /// Returns the values per sample that nodes before each one compute for it or later ones.
    fn live_widths(&self) -> Vec<f64> {
        let (inputs, nodes) = (self.method.inputs.len(), self.method.nodes.len());
        let mut live = vec![0.0; nodes + 1];
        let mut last = vec![0; inputs + nodes];
        for (node, reads) in self.shapes.reads.iter().enumerate() {
            reads.iter().for_each(|&value| last[value] = node);
        }
        for value in inputs..inputs + nodes {
            let width = self.width(value);
            live[value - inputs + 1..=last[value].max(value - inputs)]
                .iter_mut()
                .for_each(|sum| *sum += width);
        }
        live
    }

    /// Returns the numbers of a value per sample.
    fn width(&self, value: usize) -> f64 {
        let shape = self.shapes.values[value];
        shape.channels as f64 / shape.ratio as f64
    }

    /// Computes some nodes as a block. Only the values that later nodes read are kept.
    pub(crate) fn run_block(
        &self,
        nodes: Range<usize>,
        checkpoint: Checkpoint,
        weights: &TorchWeights,
        values: &mut Vec<Option<Tensor>>,
        noise: Noise,
        state: &mut RecurrentState,
    ) {
        let first = self.method.inputs.len() + nodes.start;
        let last_reads = self.last_reads(nodes.clone());
        let mut read: Vec<usize> = self.shapes.reads[nodes.clone()]
            .iter()
            .flatten()
            .copied()
            .collect();
        read.sort_unstable();
        read.dedup();
        read.retain(|&value| value < first);
        let places = first..first + nodes.len();
        let written: Vec<usize> = places
            .filter(|&value| self.is_read_after(value, nodes.end))
            .collect();
        let owner = |name: &str| {
            name.rsplit_once('.')
                .map_or("", |(node, _)| node)
                .to_owned()
        };
        let own: Vec<String> = self.method.nodes[nodes.clone()]
            .iter()
            .map(|node| node.name.clone())
            .collect();
        let named: Vec<(String, Tensor)> = weights
            .0
            .iter()
            .filter(|(name, _)| own.contains(&owner(name)))
            .map(|(name, weight)| (name.clone(), weight.shallow_clone()))
            .collect();
        let states = self.state_names(nodes.clone());
        let before = RecurrentState::from_tensors(
            state
                .tensors()
                .into_iter()
                .filter(|(name, _)| states.contains(name)),
        );
        let mut inputs: Vec<Tensor> = read
            .iter()
            .map(|&value| values[value].as_ref().expect("in order").shallow_clone())
            .collect();
        inputs.extend(named.iter().map(|(_, weight)| weight.shallow_clone()));
        let names: Vec<String> = named.into_iter().map(|(name, _)| name).collect();
        let (graph, kept, reads, range) =
            (self.clone(), written.clone(), read.clone(), nodes.clone());
        let block = move |inputs: &[Tensor]| {
            let (sounds, weights) = inputs.split_at(reads.len());
            let weights = names
                .iter()
                .cloned()
                .zip(weights.iter().map(Tensor::shallow_clone))
                .collect();
            let mut values: Vec<Option<Tensor>> = Vec::new();
            values.resize_with(first, || None);
            for (&place, sound) in reads.iter().zip(sounds) {
                values[place] = Some(sound.shallow_clone());
            }
            let mut state = before.clone();
            let last_reads = graph.last_reads(range.clone());
            graph.run_nodes(
                range.clone(),
                &TorchWeights(weights),
                &mut values,
                &last_reads,
                noise,
                &mut state,
            );
            let sounds = kept
                .iter()
                .map(|&value| values[value].take().expect("it is read later"));
            sounds
                .chain(state.tensors().into_iter().map(|(_, tensor)| tensor))
                .collect()
        };
        let mut outputs =
            checkpoint(Box::new(block), &inputs, written.len() + states.len()).into_iter();
        values.resize_with(first + nodes.len(), || None);
        for place in written {
            values[place] = outputs.next();
        }
        state
            .0
            .extend(RecurrentState::from_tensors(states.into_iter().zip(outputs)).0);
        for value in read {
            if last_reads[value].is_some() {
                values[value] = None;
            }
        }
    }

    /// Returns the names of the recurrent states of some nodes, as [`RecurrentState::tensors`]
    /// sorts them.
    fn state_names(&self, nodes: Range<usize>) -> Vec<String> {
        let states = self.method.nodes[nodes].iter().flat_map(|node| {
            let count = match node.op.memory() {
                Memory::States { count, .. } => count,
                _ => 0,
            };
            (0..count).map(move |index| format!("{index}/{}", node.name))
        });
        let mut names: Vec<String> = states.collect();
        names.sort();
        names
    }

    /// Returns whether a node from `from` on, or the end of the graph, reads a value.
    fn is_read_after(&self, value: usize, from: usize) -> bool {
        self.shapes.reads[from..]
            .iter()
            .flatten()
            .chain(&self.shapes.shown)
            .any(|&read| read == value)
    }
}
