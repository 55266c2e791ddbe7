//! Tapers of potentiometers: the share of the track below the wiper at a position from 0 to 1.

/// Share that remains of an [`audible`] potentiometer at position 0, −30 dB.
const LEAST: f64 = 0.03;

/// Returns the share of an audio taper, which has a tenth of its track in the first half.
pub(super) fn audio(position: f64) -> f64 {
    (81_f64.powf(position) - 1.0) / 80.0
}

/// Returns the share of an audio taper that does not end in silence, which no capture learns from.
pub(super) fn audible(position: f64) -> f64 {
    LEAST + (1.0 - LEAST) * audio(position)
}
