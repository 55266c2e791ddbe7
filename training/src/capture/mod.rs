//! Captures of amplifiers and pedals: a network learns what a device makes of a signal, from the signal and a recording of it.
//!
//! In reading order: [`signal`] is what to play through the device; [`pair`] reads it and the recording, [`check`] tells what is
//! wrong with them, [`align`] brings them together; [`architecture`] is what learns, in the sizes that are usual, [`network`]
//! that or what there is already; [`trainer`] teaches it, with the data cut by [`windows`]; [`measure`] tells how well it did,
//! and [`nam`] writes it for other players.

pub mod align;
pub mod architecture;
pub mod check;
pub mod measure;
pub mod nam;
pub mod network;
pub mod pair;
pub mod signal;
#[cfg(test)]
mod tests;
pub mod trainer;
pub mod windows;
