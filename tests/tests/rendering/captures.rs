//! Captures of other programs match their architecture computed in f64, and no file does harm.

// Formulas use indices, as in papers.
#![allow(clippy::needless_range_loop)]

mod accuracy;
mod classics;
mod errors;
pub mod generate;
mod played;
mod reference;
mod trained;
