//! Circuits to capture. Bundled captures learn from these, so that anyone can reproduce them.
//!
//! A [`Circuit`] is a [`netlist`] of parts that the [`solver`] steps at eight times the sample rate
//! ([`oversample`]); [`device`] models valves, diodes and transistors. [`overdrive`], [`triode`]
//! and [`fuzz`] hold one circuit each, knobs included. The simulation is deterministic and in
//! double precision.

pub mod circuit;
pub mod device;
pub mod fuzz;
pub mod matrix;
pub mod netlist;
pub mod overdrive;
pub mod oversample;
pub mod solver;
#[cfg(test)]
mod tests;
pub mod triode;

pub use circuit::Circuit;

/// Returns the names of the circuits.
#[must_use]
pub fn names() -> &'static [&'static str] {
    &["overdrive", "triode", "fuzz"]
}

/// Returns the circuit of that name.
///
/// # Errors
/// Returns an error that lists the known names if there is no such circuit.
pub fn circuit(name: &str) -> anyhow::Result<Circuit> {
    Ok(match name {
        "overdrive" => overdrive::circuit(),
        "triode" => triode::circuit(),
        "fuzz" => fuzz::circuit(),
        _ => anyhow::bail!(
            "unknown circuit {name:?}; available: {}",
            names().join(", ")
        ),
    })
}
