//! The steps of a network, all in one call: where channels are few, what a call costs would show.

use super::Rows;
use super::convolve::Chain;
use super::each::{self, Binary, Unary};
use crate::Kernels;
use crate::simd::{Kernel, Simd};

/// A pass over some frames. Where signals lie is said when it is run, by a list of rows; here are places in that list.
#[derive(Clone, Debug)]
pub enum Step {
    /// Convolutions, with all that happens in their pass.
    Convolve(Chain),
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

struct Run<'a> {
    steps: &'a [Step],
    rows: &'a [Rows],
    signals: &'a mut [f32],
    frames: usize,
}

impl Kernel for Run<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { steps, rows, signals, frames } = self;
        for step in steps {
            match *step {
                Step::Convolve(ref chain) => chain.run(s, rows, signals, frames),
                Step::Unary { operation, at } => each::then(s, operation, signals, rows[at], None, frames),
                Step::Binary { operation, x, at } => each::with(s, operation, signals, rows[x], rows[at], frames),
            }
        }
    }
}

impl Kernels {
    /// Runs steps over `frames` frames of the rows of `signals`, one after the other.
    ///
    /// # Panics
    /// When a place is beyond `rows`, taps have more channels than there are weights for, or whole vectors of `frames` frames
    /// of a row lie outside the slice.
    pub fn run_steps(self, steps: &[Step], rows: &[Rows], signals: &mut [f32], frames: usize) {
        self.run(Run { steps, rows, signals, frames });
    }
}
