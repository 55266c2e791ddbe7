//! A method that the library steps, of a program or of a graph.

/// A prepared method.
pub trait MethodStep {
    /// Computes a step; the values of a port are `[stream][frame][channel]`.
    ///
    /// # Errors
    /// Returns the reason in one line if the method fails.
    fn run(
        &mut self,
        streams: &[usize],
        blocks: usize,
        inputs: &[&[f32]],
        outputs: &mut [&mut [f32]],
    ) -> Result<(), String>;

    /// Resets a stream's state and sets the seed of its noise.
    fn seed(&mut self, stream: usize, seed: u64);

    /// Returns the bytes of weights and states.
    fn bytes(&self) -> usize;

    /// Returns the device and, unless it is f32, the precision.
    fn device(&self) -> String;
}
