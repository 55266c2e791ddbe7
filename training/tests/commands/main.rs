//! `ondes-train` as its user runs it.

mod common;
mod quantise;
mod smaller;
mod training;
