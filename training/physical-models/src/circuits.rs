//! Circuits to capture. Bundled captures learn from these, so that anyone can reproduce them.
//!
//! A [`Circuit`] has knobs and builds a [`netlist`] of parts from their positions, which the [`solver`]
//! steps at eight times the sample rate ([`oversample`]); [`device`] models valves, diodes and
//! transistors. Each circuit has a file of its own; stages that several share are in `valve`,
//! `soft_clip` and `two_transistors`. The simulation is deterministic and in double precision.
//!
//! Stages that hardly load each other are netlists of their own, solved one after the other: each
//! drives the next without resistance, and carries the next one's input as its load. Pedals have no
//! volume knob, which would only scale their output.

mod breakup;
pub mod circuit;
mod clean;
mod crunch;
pub mod device;
mod distortion;
mod fuzz;
mod germanium_fuzz;
mod lead;
pub mod matrix;
pub mod netlist;
mod octave_fuzz;
mod overdrive;
pub mod oversample;
mod soft_clip;
pub mod solver;
mod taper;
#[cfg(test)]
mod tests;
mod treble_booster;
mod triode;
mod two_transistors;
mod valve;
mod warm_overdrive;

use anyhow::Context;

pub use circuit::{Circuit, Knob, Positions, SCALE};

/// All circuits: amplifiers from clean to lead, then pedals.
pub const ALL: [Circuit; 12] = [
    clean::CIRCUIT,
    breakup::CIRCUIT,
    crunch::CIRCUIT,
    lead::CIRCUIT,
    triode::CIRCUIT,
    treble_booster::CIRCUIT,
    overdrive::CIRCUIT,
    warm_overdrive::CIRCUIT,
    distortion::CIRCUIT,
    fuzz::CIRCUIT,
    germanium_fuzz::CIRCUIT,
    octave_fuzz::CIRCUIT,
];

/// Returns the names of the circuits.
#[must_use]
pub fn names() -> [&'static str; ALL.len()] {
    ALL.map(|circuit| circuit.name)
}

/// Returns the circuit of that name.
///
/// # Errors
/// Returns an error that lists the known names if there is no such circuit.
pub fn circuit(name: &str) -> anyhow::Result<Circuit> {
    let found = ALL.into_iter().find(|circuit| circuit.name == name);
    found.with_context(|| {
        format!(
            "unknown circuit {name:?}; available: {}",
            names().join(", ")
        )
    })
}
