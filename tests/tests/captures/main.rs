//! Captures of other programs: what they play is what their architecture computes in f64, and no file does harm.

// Formulas are written with indices, as they are in papers.
#![allow(clippy::needless_range_loop)]

mod accuracy;
mod classics;
mod errors;
mod generate;
mod hostile;
mod played;
mod reference;
mod trained;
