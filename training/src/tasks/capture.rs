//! Captures of amplifiers and pedals: networks trained on a signal and a recording of the device
//! playing it.
//!
//! In reading order: [`signal`] generates the signal to play; [`pair`] reads signal and recording,
//! which [`check`] checks and [`align`] aligns; [`architecture`] defines the usual networks, and
//! [`network_source`] selects one of these or an existing model; [`knobs`] makes the device's knobs
//! its controls, and [`knob_positions`] chooses where to record them; [`task`] trains it on
//! [`windows`] of the pairs; [`rest`] removes its constant offset, [`measure`] measures quality,
//! [`aliases`] what folds down, and [`nam`] exports to other players. [`config`] reads all of it from a file.

pub mod aliases;
pub mod align;
pub mod architecture;
pub mod check;
pub mod config;
pub mod knob_positions;
pub mod knobs;
pub mod level;
pub mod measure;
pub mod nam;
pub mod network_source;
pub mod pair;
pub mod rest;
pub mod signal;
pub mod task;
#[cfg(test)]
mod tests;
pub mod windows;
