//! Conversion of notes to bow and breath control.

use super::performance::{Onset, Score, ease};

/// Control points per second; values between them are interpolated linearly.
pub const CONTROL_RATE_HZ: f64 = 2_000.0;

/// Pitch, dynamic and gate of a sustained instrument over time.
#[derive(Debug, Clone)]
pub struct Curves {
    points: Vec<Point>,
}

/// Control point.
#[derive(Debug, Clone, Copy, Default)]
pub struct Point {
    /// Pitch, MIDI notes, with slides and vibrato.
    pub midi: f64,
    /// Dynamic from 0 to 1.
    pub dynamic: f64,
    /// Bow or breath: 0 is lifted off, 1 is playing.
    pub gate: f64,
    /// Accent of an attack: 1 at its start, decaying to 0.
    pub accent: f64,
}

/// Time constant of the accent, seconds.
const ACCENT_S: f64 = 0.03;

/// Time in which pitch and dynamic move from one note to the next attack, seconds, so that a
/// ringing string or tube does not jump.
const CHANGE_S: f64 = 0.01;

impl Curves {
    /// Computes the curves of a score.
    #[must_use]
    pub fn new(score: &Score) -> Self {
        let len = (score.duration_s * CONTROL_RATE_HZ).ceil() as usize + 1;
        let mut points = vec![Point::default(); len];
        let (mut former_midi, mut former_dynamic) = score
            .notes
            .first()
            .map_or((60.0, 0.0), |note| (note.midi, note.dynamics[0]));
        for (n, note) in score.notes.iter().enumerate() {
            let next = score.notes.get(n + 1);
            let held = next.is_some_and(|next| matches!(next.onset, Onset::Slur(_)));
            let from = (note.onset_s * CONTROL_RATE_HZ).round() as usize;
            let until = next.map_or(len, |next| {
                ((next.onset_s * CONTROL_RATE_HZ).round() as usize).min(len)
            });
            // If the next attack comes before the release ends, the gate falls just before it.
            let room_s = next.map_or(f64::INFINITY, |next| next.onset_s - note.release_s);
            let decay_s = note.decay_s.min(0.012 + room_s);
            let release_s = if held {
                f64::INFINITY
            } else {
                note.release_s.min(note.release_s + room_s - decay_s)
            };
            for (k, point) in points.iter_mut().enumerate().take(until).skip(from) {
                let at_s = (k - from) as f64 / CONTROL_RATE_HZ;
                let now_s = note.onset_s + at_s;
                let (glide_s, rise, accent) = match note.onset {
                    Onset::Attack => (
                        CHANGE_S,
                        ease((at_s / note.attack_s).clamp(0.0, 1.0)),
                        (-at_s / ACCENT_S).exp(),
                    ),
                    Onset::Slur(glide_s) => (glide_s, 1.0, 0.0),
                };
                let moved = ease((at_s / glide_s.max(CHANGE_S)).clamp(0.0, 1.0));
                let changed = ease((at_s / CHANGE_S).clamp(0.0, 1.0));
                let dynamic = note.dynamic_at(at_s);
                let fall = 1.0 - ease(((now_s - release_s) / decay_s).clamp(0.0, 1.0));
                *point = Point {
                    midi: former_midi
                        + (note.midi - former_midi) * moved
                        + note.vibrato_at(at_s) / 100.0,
                    dynamic: former_dynamic + (dynamic - former_dynamic) * changed,
                    gate: rise.min(fall),
                    accent,
                };
            }
            let length_s = next.map_or(note.release_s, |next| next.onset_s) - note.onset_s;
            former_midi = note.midi + note.vibrato_at(length_s) / 100.0;
            former_dynamic = note.dynamics[2];
        }
        // Before the first note, pitch and dynamic are already at its values.
        if let Some(first) = score.notes.first() {
            let from = ((first.onset_s * CONTROL_RATE_HZ).round() as usize).min(len);
            for point in &mut points[..from] {
                point.midi = first.midi;
                point.dynamic = first.dynamics[0];
            }
        }
        Self { points }
    }

    /// Returns the control point at `seconds`, interpolated.
    #[must_use]
    pub fn at(&self, seconds: f64) -> Point {
        let position = (seconds * CONTROL_RATE_HZ).clamp(0.0, (self.points.len() - 1) as f64);
        let index = position as usize;
        let x = position - index as f64;
        let a = self.points[index];
        let b = self.points[(index + 1).min(self.points.len() - 1)];
        let mix = |a: f64, b: f64| a + (b - a) * x;
        Point {
            midi: mix(a.midi, b.midi),
            dynamic: mix(a.dynamic, b.dynamic),
            gate: mix(a.gate, b.gate),
            accent: mix(a.accent, b.accent),
        }
    }
}

/// Converts a MIDI pitch to Hz; A4 is 440 Hz.
#[must_use]
pub fn midi_to_hz(midi: f64) -> f64 {
    440.0 * ((midi - 69.0) / 12.0).exp2()
}

#[cfg(test)]
mod tests {
    use super::{Curves, midi_to_hz};
    use crate::performance::{Note, Onset, Score};

    #[test]
    fn a_slur_moves_the_pitch_and_keeps_the_drive() {
        let mut second = Note::plain(0.6, 1.0, 62.0, 0.5);
        second.onset = Onset::Slur(0.03);
        let score = Score {
            duration_s: 1.5,
            notes: vec![Note::plain(0.2, 0.6, 60.0, 0.5), second],
        };
        let curves = Curves::new(&score);
        assert_eq!(curves.at(0.1).gate, 0.0);
        assert_eq!(curves.at(0.4).gate, 1.0);
        assert_eq!(curves.at(0.6).gate, 1.0);
        assert!((curves.at(0.59).midi - 60.0).abs() < 1e-9);
        assert!((curves.at(0.64).midi - 62.0).abs() < 1e-9);
        assert_eq!(curves.at(1.2).gate, 0.0);
        assert!((midi_to_hz(69.0) - 440.0).abs() < 1e-9);
    }
}
