//! Finds the frames of each value that the end of a sequence depends on.

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
                .zip(node.op.earlier_frames())
                .map(|(frames, earlier)| frames + earlier as i64);
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
