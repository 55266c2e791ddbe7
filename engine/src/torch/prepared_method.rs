//! A method that libtorch has prepared, in this process or in another one.

use super::error::TorchError;

/// A prepared method. The values of a port are `[stream][frame][channel]`, as many as the request
/// says for this number of streams and blocks.
pub trait PreparedMethod: Send {
    /// Computes a step.
    ///
    /// # Errors
    /// Returns [`TorchError`], one line, if the program or its device fails; the inputs are
    /// unchanged.
    fn run(
        &mut self,
        streams: &[usize],
        blocks: usize,
        inputs: &[&[f32]],
        outputs: &mut [&mut [f32]],
    ) -> Result<(), TorchError>;

    /// Resets a stream's state and sets the seed of its noise.
    fn seed(&mut self, stream: usize, seed: u64);

    /// Returns the bytes of weights, states and buffers.
    fn bytes(&self) -> usize;

    /// Returns the device and, unless it is f32, the precision.
    fn device(&self) -> String;
}
