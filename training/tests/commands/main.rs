//! `ondes-train` as its user runs it.

mod audition;
mod circuit;
mod codec;
mod common;
mod distributed;
mod documentation;
mod folds;
mod fuzz;
mod memory;
mod prior;
mod prune_and_distill;
mod quantize;
mod training;
