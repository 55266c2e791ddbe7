//! Measurement and correction of an instrument's tuning.
//!
//! A bow or reed shifts the pitch of its resonator by an amount that depends on both. Each
//! instrument plays a grid of steady tones before a corpus is made, and stores the errors.

use std::f64::consts::TAU;

use rayon::prelude::*;

use super::curves::midi_to_hz;

/// Distance of the measured pitches, semitones.
const STEP_SEMITONES: f64 = 3.0;

/// Measured dynamics.
const DYNAMICS: [f64; 4] = [0.0, 0.33, 0.67, 1.0];

/// Rounds of measurement; each applies the corrections of the previous rounds.
const ROUNDS: usize = 3;

/// Pitch corrections over pitch and dynamic, cents.
#[derive(Debug, Clone)]
pub struct Tuning {
    midi_low: f64,
    rows: Vec<[f64; DYNAMICS.len()]>,
}

impl Tuning {
    /// Returns corrections of zero.
    #[must_use]
    pub fn none() -> Self {
        Self {
            midi_low: 0.0,
            rows: vec![[0.0; DYNAMICS.len()]],
        }
    }

    /// Measures an instrument from `midi_low` to `midi_high`. `tone(midi, dynamic, tuning)` returns
    /// a steady tone at `rate_hz` without its attack.
    pub fn measure(
        midi_low: f64,
        midi_high: f64,
        rate_hz: f64,
        tone: impl Fn(f64, f64, &Self) -> Vec<f32> + Sync,
    ) -> Self {
        let count = ((midi_high - midi_low) / STEP_SEMITONES).ceil() as usize + 1;
        let mut tuning = Self {
            midi_low,
            rows: vec![[0.0; DYNAMICS.len()]; count],
        };
        for _ in 0..ROUNDS {
            let errors: Vec<[f64; DYNAMICS.len()]> = (0..count)
                .into_par_iter()
                .map(|row| {
                    let midi = midi_low + row as f64 * STEP_SEMITONES;
                    DYNAMICS.map(|dynamic| {
                        error_cents(&tone(midi, dynamic, &tuning), midi_to_hz(midi), rate_hz)
                    })
                })
                .collect();
            for (row, error) in tuning.rows.iter_mut().zip(errors) {
                for (correction, error) in row.iter_mut().zip(error) {
                    *correction -= error;
                }
            }
        }
        tuning
    }

    /// Returns the correction to add to a pitch, cents.
    #[must_use]
    pub fn correction_cents(&self, midi: f64, dynamic: f64) -> f64 {
        let (row, x) = place((midi - self.midi_low) / STEP_SEMITONES, self.rows.len());
        let (column, y) = place(dynamic * (DYNAMICS.len() - 1) as f64, DYNAMICS.len());
        let next_row = &self.rows[(row + 1).min(self.rows.len() - 1)];
        let next_column = (column + 1).min(DYNAMICS.len() - 1);
        let row = &self.rows[row];
        let near = row[column] + (row[next_column] - row[column]) * y;
        let far = next_row[column] + (next_row[next_column] - next_row[column]) * y;
        near + (far - near) * x
    }
}

/// Returns index and fraction of a position on an axis of `len` points.
fn place(position: f64, len: usize) -> (usize, f64) {
    let position = position.clamp(0.0, (len - 1) as f64);
    (position as usize, position.fract())
}

/// Returns the distance of a steady tone's fundamental above `hz`, cents, from its phase advance
/// between two windows.
///
/// The windows are two periods apart, so errors beyond 380 cents are ambiguous.
#[must_use]
pub fn error_cents(tone: &[f32], hz: f64, rate_hz: f64) -> f64 {
    let hop = (2.0 * rate_hz / hz).round() as usize;
    let Some(len) = tone.len().checked_sub(hop).filter(|len| *len > hop) else {
        return 0.0;
    };
    // A silent model has no pitch to correct.
    if tone.iter().all(|x| x.abs() < 1e-6) {
        return 0.0;
    }
    let phase = |start: usize| {
        let (mut re, mut im) = (0.0, 0.0);
        for (n, x) in tone[start..start + len].iter().enumerate() {
            let window = 0.5 - 0.5 * (TAU * (n as f64 + 0.5) / len as f64).cos();
            let angle = TAU * hz * (start + n) as f64 / rate_hz;
            re += window * f64::from(*x) * angle.cos();
            im -= window * f64::from(*x) * angle.sin();
        }
        im.atan2(re)
    };
    let turn = (phase(hop) - phase(0)) / TAU;
    let offset_hz = (turn - turn.round()) * rate_hz / hop as f64;
    1200.0 * (1.0 + offset_hz / hz).log2()
}

#[cfg(test)]
mod tests {
    use super::{TAU, Tuning, error_cents};
    use crate::curves::midi_to_hz;

    fn tone(hz: f64) -> Vec<f32> {
        (0..9_600)
            .map(|n| {
                let angle = TAU * hz * f64::from(n) / 48_000.0;
                (angle.sin() + 0.5 * (2.0 * angle).sin()) as f32
            })
            .collect()
    }

    #[test]
    fn errors_are_measured_to_a_fraction_of_a_cent() {
        for cents in [-80.0, -7.0, 0.0, 3.0, 60.0] {
            let got = error_cents(&tone(330.0 * f64::exp2(cents / 1200.0)), 330.0, 48_000.0);
            assert!((got - cents).abs() < 0.2, "{got} for {cents}");
        }
    }

    #[test]
    fn a_mistuned_instrument_is_corrected() {
        let pull_cents = |midi: f64, dynamic: f64| 0.5 * (midi - 60.0) - 10.0 * dynamic;
        let tuning = Tuning::measure(50.0, 80.0, 48_000.0, |midi, dynamic, tuning| {
            let asked = midi + tuning.correction_cents(midi, dynamic) / 100.0;
            tone(midi_to_hz(asked + pull_cents(midi, dynamic) / 100.0))
        });
        for (midi, dynamic) in [(50.0, 0.0), (61.5, 0.5), (79.0, 1.0)] {
            let left = tuning.correction_cents(midi, dynamic) + pull_cents(midi, dynamic);
            assert!(left.abs() < 0.5, "{left} cents at {midi}");
        }
    }
}
