//! Guitar cabinets: drivers in a box before a microphone, as impulse responses.
//!
//! [`driver`] solves the voice coil, its suspension and the cone, which breaks up; [`enclosure`] is
//! the air behind it; [`sound_field`] adds up what arrives at a microphone: from every ring of
//! every cone, from the edges of the baffle, and around an open back. All of it is linear, so a
//! cabinet is computed frequency by frequency and transformed into an impulse response. No
//! measurement of a product enters: dimensions and parameters are typical of their kind.

mod air;
pub mod cabinets;
pub mod driver;
pub mod enclosure;
pub mod microphone;
pub mod sound_field;
#[cfg(test)]
mod tests;

use std::f64::consts::TAU;

use anyhow::Context;
use num_complex::Complex64;

use cabinets::{CABINETS, CabinetDesign};
use driver::DriverLoad;
use sound_field::SoundField;

/// Sample rate of the responses, Hz.
pub const RATE_HZ: f64 = 48_000.0;
/// Length of the responses, samples: 43 ms.
pub const LENGTH: usize = 2048;
/// Peak of the responses, so that 24 bits resolve them and nothing clips.
const PEAK: f64 = 0.9;
/// Points of the transform: what the response would alias in time has decayed long before.
const POINTS: usize = 2 * LENGTH;
/// Samples before the sound has reached the microphone, at most: half a metre.
const MAX_FLIGHT: usize = 128;
/// Samples over which the end fades out, so that the response does not end in a step.
const FADE_OUT: usize = 384;
/// Level, relative to the peak, of the first sample that is kept: the time of flight to the
/// microphone is removed, so that the cabinet adds no latency.
const ONSET: f64 = 2e-3;

/// Returns the names of the cabinets.
pub fn names() -> impl Iterator<Item = &'static str> {
    CABINETS.iter().map(|cabinet| cabinet.name)
}

/// Returns the cabinet of that name.
///
/// # Errors
/// Returns an error that lists the known names if there is no such cabinet.
pub fn cabinet(name: &str) -> anyhow::Result<&'static CabinetDesign> {
    let known = || names().collect::<Vec<_>>().join(", ");
    let found = CABINETS.iter().find(|cabinet| cabinet.name == name);
    found.with_context(|| format!("unknown cabinet {name:?}; available: {}", known()))
}

/// Returns the impulse response of a cabinet, [`LENGTH`] samples at [`RATE_HZ`].
#[must_use]
pub fn impulse_response(design: &CabinetDesign) -> Vec<f64> {
    let field = SoundField::new(design);
    let bins: Vec<Complex64> = (0..=POINTS / 2)
        .map(|bin| transfer(design, &field, bin as f64))
        .collect();
    let whole = inverse_transform(&bins);
    let peak = whole
        .iter()
        .fold(0.0, |peak: f64, sample| peak.max(sample.abs()));
    let onset = whole
        .iter()
        .position(|sample| sample.abs() > ONSET * peak)
        .unwrap_or(0)
        .min(MAX_FLIGHT);
    let mut kept: Vec<f64> = whole[onset..onset + LENGTH]
        .iter()
        .map(|sample| PEAK / peak * sample)
        .collect();
    for (step, sample) in kept[LENGTH - FADE_OUT..].iter_mut().enumerate() {
        *sample *= 0.5 + 0.5 * (0.5 * TAU * (step as f64 + 1.0) / FADE_OUT as f64).cos();
    }
    kept
}

/// Returns the pressure at the microphone for 1 V at the amplifier, at a bin of the transform;
/// without a constant factor.
fn transfer(design: &CabinetDesign, field: &SoundField, bin: f64) -> Complex64 {
    // Nothing is radiated at 0 Hz, and half the rate has no phase.
    if bin == 0.0 || bin == (POINTS / 2) as f64 {
        return Complex64::ZERO;
    }
    let w = TAU * bin * RATE_HZ / POINTS as f64;
    let load = DriverLoad {
        box_impedance: design.enclosure.impedance(w),
    };
    let motion = design.driver.motion(w, &load);
    field.pressure(w, &motion)
}

/// Returns the real signal of [`POINTS`] samples with this half spectrum.
fn inverse_transform(bins: &[Complex64]) -> Vec<f64> {
    let turn = TAU / POINTS as f64;
    let unit: Vec<Complex64> = (0..POINTS)
        .map(|n| Complex64::from_polar(1.0, turn * n as f64))
        .collect();
    let sample = |n: usize| -> f64 {
        let bins = bins.iter().enumerate();
        bins.map(|(bin, value)| (value * unit[bin * n % POINTS]).re)
            .sum()
    };
    (0..LENGTH + MAX_FLIGHT).map(sample).collect()
}
