//! Captures of amplifiers and pedals: networks trained on a signal and a recording of the device playing it.
//!
//! In reading order: [`signal`] generates the signal to play; [`pair`] reads signal and recording, which [`check`]
//! checks and [`align`] aligns; [`architecture`] defines the usual networks, and [`network_source`] selects one of
//! these or an existing model; [`task`] trains it on [`windows`] of the pair; [`measure`] measures quality, and
//! [`nam`] exports to other players.

pub mod align;
pub mod architecture;
pub mod check;
pub mod level;
pub mod measure;
pub mod nam;
pub mod network_source;
pub mod pair;
pub mod signal;
pub mod task;
#[cfg(test)]
mod tests;
pub mod windows;
