//! A prepared method: one interface for native and libtorch execution.

use super::feedback::FeedbackExecutor;
use crate::native;

/// A method of a model that libtorch, or a test, steps block by block for several streams at once.
///
/// A step is [`Execute::begin`], filling every [`Execute::input`], [`Execute::run`], and reading
/// [`Execute::output`]. The output of a stream depends only on that stream's input.
pub(crate) trait Execute: Send {
    /// Starts a step of `blocks` blocks for these streams, in this order.
    fn begin(&mut self, streams: &[usize], blocks: usize);

    /// Returns the values of an input port for this step, `[stream][frame][channel]`; the caller
    /// fills all of them.
    fn input(&mut self, port: usize) -> &mut [f32];

    /// Computes the step.
    ///
    /// # Panics
    /// Unwinds with a [`String`] if a TorchScript program fails.
    fn run(&mut self);

    /// Returns the values of an output port after [`Execute::run`], `[stream][frame][channel]`.
    fn output(&self, port: usize) -> &[f32];

    /// Resets a stream's state and sets the seed of its noise.
    fn seed(&mut self, stream: usize, seed: u64);

    /// Returns the bytes of weights, states and buffers.
    fn bytes(&self) -> usize;

    /// Returns the name of the executor and its device, such as `torch cuda:0`.
    fn name(&self) -> String;
}

/// A method of a model, ready to be stepped block by block for several streams at once.
///
/// A step is [`MethodExecutor::begin`], filling every [`MethodExecutor::input`],
/// [`MethodExecutor::run`], and reading [`MethodExecutor::output`]. The output of a stream depends
/// only on that stream's input.
pub struct MethodExecutor(Kind);

/// Native steps are called directly, so that a small network pays for no virtual calls.
enum Kind {
    Native(native::Executor),
    Torch(Box<dyn Execute>),
    Feedback(Box<FeedbackExecutor>),
}

impl From<native::Executor> for MethodExecutor {
    fn from(executor: native::Executor) -> Self {
        Self(Kind::Native(executor))
    }
}

impl MethodExecutor {
    /// Wraps a libtorch executor.
    pub(crate) fn torch(executor: impl Execute + 'static) -> Self {
        Self(Kind::Torch(Box::new(executor)))
    }

    /// Wraps an executor that feeds outputs back.
    pub(super) fn feedback(executor: FeedbackExecutor) -> Self {
        Self(Kind::Feedback(Box::new(executor)))
    }

    /// Starts a step of `blocks` blocks for these streams, in this order.
    ///
    /// # Panics
    /// Panics on an unknown stream or on more blocks than were prepared.
    pub fn begin(&mut self, streams: &[usize], blocks: usize) {
        match &mut self.0 {
            Kind::Native(executor) => executor.begin(streams, blocks),
            Kind::Torch(executor) => executor.begin(streams, blocks),
            Kind::Feedback(executor) => executor.begin(streams, blocks),
        }
    }

    /// Returns the values of an input port for this step, `[stream][frame][channel]`; the caller
    /// fills all of them, except those of a port that is fed back
    /// ([`Method::feedback`](crate::model::Method::feedback)).
    pub fn input(&mut self, port: usize) -> &mut [f32] {
        match &mut self.0 {
            Kind::Native(executor) => executor.input(port),
            Kind::Torch(executor) => executor.input(port),
            Kind::Feedback(executor) => executor.input(port),
        }
    }

    /// Computes the step.
    ///
    /// # Panics
    /// Unwinds with a [`String`] if a TorchScript program fails; native code never unwinds.
    pub fn run(&mut self) {
        match &mut self.0 {
            Kind::Native(executor) => executor.run(),
            Kind::Torch(executor) => executor.run(),
            Kind::Feedback(executor) => executor.run(),
        }
    }

    /// Returns the number of layers that [`MethodExecutor::run_layer`] computes; 1 on libtorch.
    pub(crate) fn layers(&self) -> usize {
        match &self.0 {
            Kind::Native(executor) => executor.layers().count(),
            Kind::Torch(_) => 1,
            Kind::Feedback(executor) => executor.layers(),
        }
    }

    /// Computes one layer of the step; [`MethodExecutor::run`] is all of them in order.
    pub(crate) fn run_layer(&mut self, index: usize) {
        match &mut self.0 {
            Kind::Native(executor) => executor.run_layer(index),
            Kind::Torch(executor) => executor.run(),
            Kind::Feedback(executor) => executor.run_layer(index),
        }
    }

    /// Returns the values of an output port after [`MethodExecutor::run`],
    /// `[stream][frame][channel]`.
    #[must_use]
    pub fn output(&self, port: usize) -> &[f32] {
        match &self.0 {
            Kind::Native(executor) => executor.output(port),
            Kind::Torch(executor) => executor.output(port),
            Kind::Feedback(executor) => executor.output(port),
        }
    }

    /// Resets a stream's state and sets the seed of its noise.
    pub fn seed(&mut self, stream: usize, seed: u64) {
        match &mut self.0 {
            Kind::Native(executor) => executor.seed(stream, seed),
            Kind::Torch(executor) => executor.seed(stream, seed),
            Kind::Feedback(executor) => executor.seed(stream, seed),
        }
    }

    /// Returns the bytes of weights, states and buffers.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Kind::Native(executor) => executor.bytes(),
            Kind::Torch(executor) => executor.bytes(),
            Kind::Feedback(executor) => executor.bytes(),
        }
    }

    /// Returns the name of the executor and its kernels or device, such as `native avx2`.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.0 {
            Kind::Native(executor) => executor.name(),
            Kind::Torch(executor) => executor.name(),
            Kind::Feedback(executor) => executor.inner().name(),
        }
    }

    /// Returns true if a step may allocate or wait, which an audio callback must not.
    #[must_use]
    pub fn may_allocate(&self) -> bool {
        match &self.0 {
            Kind::Native(_) => false,
            Kind::Torch(_) => true,
            Kind::Feedback(executor) => executor.inner().may_allocate(),
        }
    }
}
