//! The program `ondes`, run as a user runs it.

mod bad_input;
mod batch;
mod bench;
mod captures;
mod chain;
mod common;
mod documentation;
mod export;
mod fuzz;
mod generator;
mod info;
mod interruption;
mod invalid_numbers;
mod memory;
mod midi;
mod normalize;
mod output;
mod rave;
mod recording;
mod session;
#[cfg(feature = "download")]
mod setup_torch;
mod shell;
mod stereo;
mod torch;
mod trust;
