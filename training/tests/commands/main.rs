//! `ondes-train` as its user runs it.

mod common;
mod documentation;
mod quantise;
mod smaller;
mod training;
