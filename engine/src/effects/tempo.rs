//! Durations by the tempo of the song.

use super::EffectParameter;

/// Names of durations, beginning with one that the tempo does not say.
const NOTES: [&str; 11] = [
    "Free",
    "1/1",
    "1/2",
    "1/4 dotted",
    "1/4",
    "1/8 dotted",
    "1/4 triplet",
    "1/8",
    "1/8 triplet",
    "1/16",
    "1/32",
];
/// Their lengths, quarter notes.
const QUARTERS: [f32; 11] = [
    0.0,
    4.0,
    2.0,
    1.5,
    1.0,
    0.75,
    2.0 / 3.0,
    0.5,
    1.0 / 3.0,
    0.25,
    0.125,
];
/// Tempi that are followed, quarter notes a minute.
const TEMPI: [f32; 2] = [20.0, 400.0];

/// The parameter that chooses a duration.
pub(super) const SYNC: EffectParameter = EffectParameter::choice("sync", "Sync", &NOTES);

/// Returns the seconds of a choice of [`SYNC`]; `None` if the tempo does not say them.
pub(super) fn seconds(choice: f32, tempo: f32) -> Option<f32> {
    let quarters = QUARTERS[(choice as usize).min(QUARTERS.len() - 1)];
    let [slowest, fastest] = TEMPI;
    (quarters > 0.0).then(|| quarters * 60.0 / tempo.clamp(slowest, fastest))
}
