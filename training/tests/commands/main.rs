//! `ondes-train` as its user runs it.

mod codec;
mod common;
mod distributed;
mod documentation;
mod fuzz;
mod prior;
mod prune_and_distill;
mod quantize;
mod training;
