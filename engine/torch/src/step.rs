//! What the library steps.

/// A method at work for several streams.
pub trait Step: Send {
    /// Steps `blocks` blocks of those streams; one slice for each port, `[stream][frame][channel]`.
    ///
    /// # Errors
    /// One line: it breaks down.
    fn run(
        &mut self,
        streams: &[usize],
        blocks: usize,
        inputs: &[&[f32]],
        outputs: &mut [&mut [f32]],
    ) -> Result<(), String>;

    /// Forgets all that a stream has heard and gives its noise another seed.
    fn seed(&mut self, stream: usize, seed: u64);

    /// Bytes of weights and states.
    fn bytes(&self) -> usize;

    /// Where it computes and, where it is not in f32, in what.
    fn device(&self) -> String;
}
