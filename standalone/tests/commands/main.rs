//! The program `ondes`, run as a user runs it.

mod bad_input;
mod common;
mod info;
mod memory;
mod midi;
mod output;
mod recording;
