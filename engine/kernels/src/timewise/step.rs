//! The steps of a network, all in one call: where channels are few, what a call costs would show.

use super::convolve::{Chain, Convolution};
use super::each::{self, Binary, Unary};
use super::layer::Layers;
use super::places::{Place, Places};
use crate::Kernels;
use crate::simd::{Kernel, Simd};

/// A pass over some frames. What it reads and writes are places in a list.
#[derive(Clone, Debug)]
pub enum Step {
    /// Convolutions for a few frames at a time, one after the other: what one of them makes, a later one may read at the same
    /// frame, but not later, and none may change what one before it reads at another frame.
    Convolve(Vec<Convolution>),
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

/// Steps in the order in which they are run.
#[derive(Clone, Debug)]
pub struct Steps {
    places: Vec<Place>,
    passes: Vec<Pass>,
}

/// Steps as they are run.
#[derive(Clone, Debug)]
enum Pass {
    Convolve(Chain),
    Layers(Layers),
    Unary { operation: Unary, at: usize },
    Binary { operation: Binary, x: usize, at: usize },
}

impl Steps {
    /// These steps, on the places of this list.
    ///
    /// # Panics
    /// When there is no such place, if not here, when they are run.
    pub fn new(places: Vec<Place>, steps: impl IntoIterator<Item = Step>) -> Self {
        let mut passes: Vec<Pass> = Vec::new();
        for step in steps {
            let pass = match step {
                Step::Convolve(convolutions) => match Layers::new(&places, &convolutions) {
                    Some(layers) => Pass::Layers(layers),
                    None => Pass::Convolve(Chain::new(convolutions)),
                },
                Step::Unary { operation, at } => Pass::Unary { operation, at },
                Step::Binary { operation, x, at } => Pass::Binary { operation, x, at },
            };
            match (passes.last_mut(), pass) {
                (Some(Pass::Layers(layers)), Pass::Layers(next)) if layers.width() == next.width() => {
                    layers.append(next);
                }
                (_, pass) => passes.push(pass),
            }
        }
        Self { places, passes }
    }

    /// Memory that their weights take.
    pub fn bytes(&self) -> usize {
        let bytes = |pass: &Pass| match pass {
            Pass::Convolve(chain) => chain.bytes(),
            Pass::Layers(layers) => layers.bytes(),
            Pass::Unary { .. } | Pass::Binary { .. } => 0,
        };
        self.passes.iter().map(bytes).sum()
    }
}

struct Run<'a> {
    passes: &'a [Pass],
    places: Places<'a>,
    signals: &'a mut [f32],
    frames: usize,
}

impl Kernel for Run<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { passes, places, signals, frames } = self;
        for pass in passes {
            match *pass {
                Pass::Convolve(ref chain) => chain.run(s, places, signals, frames),
                Pass::Layers(ref layers) => layers.run(s, places.now, signals, frames),
                Pass::Unary { operation, at } => {
                    each::then(s, operation, signals, places.rows(at), None, frames);
                    places.close(at, signals, frames);
                }
                Pass::Binary { operation, x, at } => {
                    each::with(s, operation, signals, places.rows(x), places.rows(at), frames);
                    places.close(at, signals, frames);
                }
            }
        }
    }
}

impl Kernels {
    /// Runs steps over `frames` frames of `signals`, one after the other, where each signal stands `now`. Of what lies in a ring, no
    /// more frames than lie behind its end as well.
    ///
    /// # Panics
    /// When there is no such signal, taps have more channels than there are weights for, or whole vectors of `frames` frames of a
    /// row lie outside the slice.
    pub fn run_steps(self, steps: &Steps, now: &[usize], signals: &mut [f32], frames: usize) {
        let Steps { places, passes } = steps;
        self.run(Run { passes, places: Places { list: places, now }, signals, frames });
    }
}
