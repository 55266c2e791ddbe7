//! The steps of a network, all in one call: where channels are few, what a call costs would show.

use super::convolve::{Chain, Convolution};
use super::each::{self, Binary, Unary};
use super::layer::{self, Layer};
use super::places::Places;
use crate::Kernels;
use crate::simd::{Kernel, Simd};

/// A pass over some frames. What it reads and writes are places in a list.
#[derive(Clone, Debug)]
pub enum Step {
    /// Convolutions, with all that happens in their pass.
    Convolve(Chain),
    /// Two of them where channels are few.
    Layer(Layer),
    /// `at[c][t] = operation(at[c][t])`
    Unary {
        /// What is done.
        operation: Unary,
        /// Where.
        at: usize,
    },
    /// `at[c][t] = operation(at[c][t], x[c][t])`
    Binary {
        /// What is done.
        operation: Binary,
        /// The other operand.
        x: usize,
        /// Where.
        at: usize,
    },
}

impl Step {
    /// Convolutions for a few frames at a time, one after the other: what one of them makes, a later one may read at the same
    /// frame, but not later, and none may change what one before it reads at another frame.
    pub fn convolve(convolutions: Vec<Convolution>) -> Self {
        Layer::new(Chain::new(convolutions)).map_or_else(Self::Convolve, Self::Layer)
    }

    /// Memory that its weights take.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Convolve(chain) | Self::Layer(Layer { chain, .. }) => chain.bytes(),
            Self::Unary { .. } | Self::Binary { .. } => 0,
        }
    }
}

struct Run<'a> {
    steps: &'a [Step],
    places: Places<'a>,
    signals: &'a mut [f32],
    frames: usize,
}

impl Kernel for Run<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { mut steps, places, signals, frames } = self;
        while let [step, rest @ ..] = steps {
            let mut rest = rest;
            match *step {
                Step::Layer(ref layer) if layer.fits::<S>() => {
                    let (layers, others) = steps.split_at(1 + layer.alike(rest));
                    layer::run(s, layers, places, signals, frames);
                    rest = others;
                }
                Step::Convolve(ref chain) | Step::Layer(Layer { ref chain, .. }) => {
                    chain.run(s, places, signals, frames);
                }
                Step::Unary { operation, at } => each::then(s, operation, signals, places.rows(at), None, frames),
                Step::Binary { operation, x, at } => {
                    each::with(s, operation, signals, places.rows(x), places.rows(at), frames);
                }
            }
            steps = rest;
        }
    }
}

impl Kernels {
    /// Runs steps over `frames` frames of `signals`, one after the other.
    ///
    /// # Panics
    /// When there is no such place or no such signal, taps have more channels than there are weights for, or whole vectors of
    /// `frames` frames of a row lie outside the slice.
    pub fn run_steps(self, steps: &[Step], places: Places<'_>, signals: &mut [f32], frames: usize) {
        self.run(Run { steps, places, signals, frames });
    }
}
