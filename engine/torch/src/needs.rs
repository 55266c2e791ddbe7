//! Finds the frames of each value that the end of a sequence depends on.

use ondes_engine::model::Op;

use crate::TorchGraph;

impl TorchGraph {
    /// Returns for each value how many frames at its end the last `samples` samples of the outputs
    /// depend on; `None` for all of them.
    pub(crate) fn needs(&self, samples: usize) -> Vec<Option<i64>> {
        let (inputs, shapes) = (self.method.inputs.len(), self.shapes());
        // Values that nothing reads are computed all the same.
        let mut needs = vec![Some(1); shapes.values.len()];
        let raise = |needs: &mut Vec<Option<i64>>, value: usize, frames: Option<i64>| {
            needs[value] = needs[value]
                .zip(frames)
                .map(|(known, frames)| known.max(frames));
        };
        for &value in &shapes.shown {
            raise(
                &mut needs,
                value,
                Some((samples / shapes.values[value].ratio) as i64),
            );
        }
        for (index, node) in self.method.nodes.iter().enumerate().rev() {
            let read = needs[inputs + index]
                .zip(earlier_frames(&node.op))
                .map(|(frames, earlier)| frames + earlier);
            if read.is_none() {
                needs[inputs + index] = None;
            }
            shapes.reads[index]
                .iter()
                .for_each(|&value| raise(&mut needs, value, read));
        }
        needs
    }
}

/// Returns how many frames before a frame of its input a node's frame depends on; `None` if on all
/// of them, or on the frame's place in the sequence.
fn earlier_frames(op: &Op) -> Option<i64> {
    match *op {
        Op::Conv1d {
            kernel,
            stride: 1,
            dilation,
            ..
        } => Some(((kernel - 1) * dilation) as i64),
        Op::Linear { .. }
        | Op::LayerNorm
        | Op::Softmax
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
        | Op::Latency { .. } => Some(0),
        _ => None,
    }
}
