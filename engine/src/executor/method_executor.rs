//! A prepared method: one interface for native and libtorch execution.

/// A method of a model, ready to be stepped block by block for several streams at once.
///
/// A step is [`begin`](Self::begin), filling every [`input`](Self::input), [`run`](Self::run), and
/// reading [`output`](Self::output). The output of a stream depends only on that stream's input.
pub trait Execute: Send {
    /// Starts a step of `blocks` blocks for these streams, in this order.
    ///
    /// # Panics
    /// Panics on an unknown stream or on more blocks than were prepared.
    fn begin(&mut self, streams: &[usize], blocks: usize);

    /// Returns the values of an input port for this step, `[stream][frame][channel]`; the caller
    /// fills all of them, except those of a port that is fed back
    /// ([`Method::feedback`](crate::model::Method::feedback)).
    fn input(&mut self, port: usize) -> &mut [f32];

    /// Computes the step.
    ///
    /// # Panics
    /// Unwinds with a [`String`] if a TorchScript program fails; native code never unwinds.
    fn run(&mut self);

    /// Returns the number of layers that [`run_layer`](Self::run_layer) computes; 1 on libtorch.
    fn layer_count(&self) -> usize {
        1
    }

    /// Computes one layer of the step; [`run`](Self::run) is all of them in order.
    fn run_layer(&mut self, _index: usize) {
        self.run();
    }

    /// Returns the values of an output port after [`run`](Self::run), `[stream][frame][channel]`.
    fn output(&self, port: usize) -> &[f32];

    /// Resets a stream's state and sets the seed of its noise; equal seeds give equal noise.
    fn seed(&mut self, stream: usize, seed: u64);

    /// Returns the bytes of weights, states and buffers.
    fn bytes(&self) -> usize;

    /// Returns the name of the executor and its kernels or device, such as `native avx2` or
    /// `torch cuda:0`.
    fn name(&self) -> String;

    /// Returns true if a step may allocate or wait, which an audio callback must not.
    fn may_allocate(&self) -> bool {
        true
    }
}

/// Any executor of a method.
pub type MethodExecutor = Box<dyn Execute>;
