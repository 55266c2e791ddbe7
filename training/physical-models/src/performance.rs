//! Composition of phrases that together cover every pitch, dynamic and articulation.
//!
//! A network conditioned on pitch and loudness learns only what the corpus covers. Low-discrepancy
//! sequences therefore spread the phrases over range and dynamics; everything else is random.

use rand::{Rng, RngExt};

/// Notes that an instrument can play.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Lowest note, MIDI notes.
    pub midi_low: f64,
    /// Highest note, MIDI notes.
    pub midi_high: f64,
    /// Notes sound while they are driven (bow, breath) rather than decay by themselves (pluck).
    pub sustained: bool,
    /// Deepest vibrato, cents to either side.
    pub vibrato_max_cents: f64,
    /// Time until silence after the last release, seconds, including the room.
    pub tail_s: f64,
}

/// Start of a note.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Onset {
    /// Attack from rest.
    Attack,
    /// Continuation of the previous note; the pitch moves within these seconds.
    Slur(f64),
}

/// Note of a score.
#[derive(Debug, Clone, Copy)]
pub struct Note {
    /// Start, seconds.
    pub onset_s: f64,
    /// End of the bow stroke or breath, or damping of a plucked string, seconds.
    pub release_s: f64,
    /// Pitch, MIDI notes. Seldom a whole number, so that the network also learns the pitches
    /// between.
    pub midi: f64,
    /// Dynamic at the start, the turning point and the end, from 0 (pianissimo) to 1 (fortissimo).
    pub dynamics: [f64; 3],
    /// Position of the turning point, as a fraction of the note.
    pub turn: f64,
    /// Attack time, seconds.
    pub attack_s: f64,
    /// Decay time after the release, seconds.
    pub decay_s: f64,
    /// Attack or slur.
    pub onset: Onset,
    /// Vibrato depth, cents to either side.
    pub vibrato_cents: f64,
    /// Vibrato rate, Hz.
    pub vibrato_hz: f64,
    /// Time until the vibrato starts, seconds.
    pub vibrato_delay_s: f64,
}

impl Note {
    /// Creates a note with an attack, a constant dynamic and no vibrato.
    #[must_use]
    pub fn plain(onset_s: f64, release_s: f64, midi: f64, dynamic: f64) -> Self {
        Self {
            onset_s,
            release_s,
            midi,
            dynamics: [dynamic; 3],
            turn: 0.5,
            attack_s: 0.03,
            decay_s: 0.05,
            onset: Onset::Attack,
            vibrato_cents: 0.0,
            vibrato_hz: 5.0,
            vibrato_delay_s: 0.0,
        }
    }

    /// Returns the dynamic `seconds` after the start.
    #[must_use]
    pub fn dynamic_at(&self, seconds: f64) -> f64 {
        let length = (self.release_s - self.onset_s).max(1e-3);
        let x = (seconds / length).clamp(0.0, 1.0);
        let turn = self.turn.clamp(0.05, 0.95);
        let [start, middle, end] = self.dynamics;
        if x < turn {
            start + (middle - start) * ease(x / turn)
        } else {
            middle + (end - middle) * ease((x - turn) / (1.0 - turn))
        }
    }

    /// Returns the pitch offset of the vibrato `seconds` after the start, cents.
    #[must_use]
    pub fn vibrato_at(&self, seconds: f64) -> f64 {
        const RISE_S: f64 = 0.25;
        let since_s = seconds - self.vibrato_delay_s;
        let depth = self.vibrato_cents * ease((since_s / RISE_S).clamp(0.0, 1.0));
        depth * (std::f64::consts::TAU * self.vibrato_hz * since_s).sin()
    }
}

/// Returns a smooth step from 0 to 1 for `x` in [0, 1].
#[must_use]
pub fn ease(x: f64) -> f64 {
    x * x * (3.0 - 2.0 * x)
}

/// Notes of one recording.
#[derive(Debug, Clone)]
pub struct Score {
    /// Length of the recording, seconds, including silence at both ends.
    pub duration_s: f64,
    /// The notes in the order of their starts.
    pub notes: Vec<Note>,
}

/// Sequence of pitches in a phrase.
#[derive(Debug, Clone, Copy)]
enum Melody {
    Scale,
    Chromatic,
    Arpeggio,
    Leaps,
    Neighbours,
    Repeated,
}

/// Separation of the notes in a phrase.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Articulation {
    Legato,
    Detached,
    Staccato,
    Mixed,
}

/// Golden ratio; fractional parts of its multiples fill [0, 1] as evenly as possible.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// Semitones of the major scale, which contains all modes.
const MAJOR: [i32; 7] = [0, 2, 4, 5, 7, 9, 11];

impl Score {
    /// Composes about `target_s` seconds; `index` selects pitch range and dynamics.
    pub fn compose(style: &Style, target_s: f64, index: usize, rng: &mut impl Rng) -> Self {
        let mut notes = Vec::new();
        let mut at_s = rng.random_range(0.12..0.3);
        let mut phrase = 0;
        let last_release_s = target_s - style.tail_s;
        while at_s < last_release_s - 0.4 {
            // A file has about three phrases; a stride of eight keeps the positions of files apart.
            let place = (index * 8 + phrase) as f64;
            // Equal steps of the dynamic are equal steps in dB; loud phrases are slightly more
            // frequent.
            let level = (place * GOLDEN * GOLDEN).fract().powf(0.75);
            let height = (place * GOLDEN + rng.random_range(0.0..0.05)).fract();
            at_s = compose_phrase(style, at_s, last_release_s, height, level, &mut notes, rng);
            at_s += if rng.random_bool(0.2) {
                rng.random_range(0.45..0.75)
            } else {
                rng.random_range(0.08..0.35)
            };
            phrase += 1;
        }
        let end_s = notes
            .iter()
            .map(|note: &Note| note.release_s)
            .fold(0.0, f64::max);
        Self {
            duration_s: end_s + style.tail_s,
            notes,
        }
    }
}

/// Appends a phrase that starts at `at_s`; returns its end, seconds.
fn compose_phrase(
    style: &Style,
    mut at_s: f64,
    end_s: f64,
    height: f64,
    level: f64,
    notes: &mut Vec<Note>,
    rng: &mut impl Rng,
) -> f64 {
    let melody = pick(
        &[
            Melody::Scale,
            Melody::Chromatic,
            Melody::Arpeggio,
            Melody::Leaps,
            Melody::Leaps,
            Melody::Neighbours,
            Melody::Repeated,
        ],
        rng,
    );
    let articulation = pick(
        &[
            Articulation::Legato,
            Articulation::Legato,
            Articulation::Detached,
            Articulation::Detached,
            // Staccato is rare for instruments whose notes decay by themselves.
            if style.sustained {
                Articulation::Staccato
            } else {
                Articulation::Legato
            },
            Articulation::Mixed,
        ],
        rng,
    );
    // Note lengths from 0.1 to 3 s, uniform on a logarithmic scale; phrases of long notes are
    // shorter.
    let beat_s = 0.11 * (2.6f64 / 0.11).powf(rng.random_range(0.0..1.0));
    let count = ((3.6 / beat_s) as usize).clamp(1, rng.random_range(4..12));
    let pitches = draw_pitches(style, melody, height, count, rng);
    // The phrase moves from its own level to a random one, so that crescendo and diminuendo occur
    // at every level.
    let goal = if rng.random_bool(0.5) {
        rng.random_range(0.0..1.0f64).powf(0.75)
    } else {
        level
    };
    let detune_cents = rng.random_range(-18.0..18.0);
    let vibrato_hz = rng.random_range(4.0..7.0);
    let vibrato_cents = if rng.random_bool(0.35) {
        0.0
    } else {
        rng.random_range(0.1..1.0) * style.vibrato_max_cents
    };
    for (n, pitch) in pitches.iter().enumerate() {
        let length_s = (beat_s * rng.random_range(0.75..1.3))
            .clamp(0.1, 3.0)
            .min(end_s - at_s);
        if length_s < 0.1 {
            break;
        }
        let articulation = match articulation {
            Articulation::Mixed => pick(
                &[
                    Articulation::Legato,
                    Articulation::Detached,
                    Articulation::Staccato,
                ],
                rng,
            ),
            fixed => fixed,
        };
        let gap_s = match articulation {
            Articulation::Staccato => length_s * rng.random_range(0.4..0.6),
            Articulation::Detached => (0.2 * length_s).min(rng.random_range(0.02..0.08)),
            Articulation::Legato | Articulation::Mixed => 0.0,
        };
        let touches = n > 0
            && notes
                .last()
                .is_some_and(|note| at_s - note.release_s < 1e-6);
        let onset = if touches && articulation == Articulation::Legato {
            let slide = rng.random_bool(0.25);
            Onset::Slur(if slide {
                rng.random_range(0.06..0.2f64).min(0.5 * length_s)
            } else {
                rng.random_range(0.015..0.035)
            })
        } else {
            Onset::Attack
        };
        let progress = n as f64 / pitches.len() as f64;
        let around = level + (goal - level) * progress + rng.random_range(-0.12..0.12);
        let dynamics = if onset == Onset::Attack || !style.sustained {
            draw_dynamics(around, length_s, rng)
        } else {
            // A slurred note starts at the dynamic of the previous note's end.
            let from = notes.last().map_or(around, |note| note.dynamics[2]);
            let [_, middle, end] = draw_dynamics(around, length_s, rng);
            [from, middle, end]
        };
        notes.push(Note {
            onset_s: at_s,
            release_s: at_s + length_s - gap_s,
            midi: (pitch + detune_cents / 100.0).clamp(style.midi_low, style.midi_high),
            dynamics,
            turn: rng.random_range(0.2..0.8),
            attack_s: match articulation {
                Articulation::Staccato => rng.random_range(0.008..0.02),
                _ => rng.random_range(0.015..0.09f64).min(0.3 * length_s),
            },
            decay_s: rng.random_range(0.03..0.09),
            onset,
            vibrato_cents: if length_s > 0.25 { vibrato_cents } else { 0.0 },
            vibrato_hz: vibrato_hz * rng.random_range(0.95..1.05),
            vibrato_delay_s: rng.random_range(0.05..0.35f64).min(0.4 * length_s),
        });
        at_s += length_s;
    }
    at_s
}

/// Returns the dynamics of a note around a level: long notes swell, fade or hold; short notes hold.
fn draw_dynamics(around: f64, length_s: f64, rng: &mut impl Rng) -> [f64; 3] {
    let hold = around.clamp(0.0, 1.0);
    if length_s < 0.35 {
        return [hold; 3];
    }
    let other = rng.random_range(0.0..1.0f64).powf(0.75);
    match rng.random_range(0..6) {
        0 => [hold, other, hold],
        1 => [hold, 0.5 * (hold + other), other],
        2 => [0.0, hold.max(0.6), 0.1],
        3 => [hold, hold, (hold - 0.3).max(0.0)],
        _ => [hold; 3],
    }
}

/// Returns `count` pitches; the first is at the fraction `height` of the range.
fn draw_pitches(
    style: &Style,
    melody: Melody,
    height: f64,
    count: usize,
    rng: &mut impl Rng,
) -> Vec<f64> {
    // Half a semitone beyond either end, so that the outermost notes are as likely as the others.
    let (low, high) = (style.midi_low.ceil() as i32, style.midi_high.floor() as i32);
    let start = (f64::from(low) + height * f64::from(high - low + 1)).floor() as i32;
    let root = rng.random_range(0..12);
    let mut direction = if rng.random_bool(0.5) { 1 } else { -1 };
    let mut pitch = start.min(high);
    let mut pitches = Vec::with_capacity(count);
    for n in 0..count {
        if n > 0 {
            let step = match melody {
                Melody::Scale => direction * scale_step(pitch, direction, root),
                Melody::Chromatic => direction,
                Melody::Arpeggio => direction * pick(&[3, 4, 5], rng),
                Melody::Leaps => {
                    let wide = rng.random_range(2..15);
                    if rng.random_bool(0.5) { wide } else { -wide }
                }
                Melody::Neighbours => pick(&[-2, -1, 1, 2], rng),
                Melody::Repeated => 0,
            };
            pitch += step;
            if !(low..=high).contains(&pitch) {
                direction = -direction;
                pitch -= 2 * step;
            }
            pitch = pitch.clamp(low, high);
        }
        pitches.push(f64::from(pitch));
    }
    pitches
}

/// Returns the semitones from `pitch` to the next note of the major scale on `root` in the given
/// direction.
fn scale_step(pitch: i32, direction: i32, root: i32) -> i32 {
    (1..=3)
        .find(|step| MAJOR.contains(&(pitch + direction * step - root).rem_euclid(12)))
        .unwrap_or(1)
}

/// Returns one of `choices`, all equally likely.
fn pick<T: Copy>(choices: &[T], rng: &mut impl Rng) -> T {
    choices[rng.random_range(0..choices.len())]
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};

    use super::{Onset, Score, Style};

    const STYLE: Style = Style {
        midi_low: 43.0,
        midi_high: 88.0,
        sustained: true,
        vibrato_max_cents: 60.0,
        tail_s: 1.0,
    };

    fn scores() -> Vec<Score> {
        (0..60)
            .map(|index| {
                Score::compose(
                    &STYLE,
                    12.0,
                    index,
                    &mut Xoshiro256PlusPlus::seed_from_u64(index as u64),
                )
            })
            .collect()
    }

    #[test]
    fn every_pitch_and_every_dynamic_is_visited() {
        let mut seconds_at_pitch = [0.0f64; 46];
        let mut seconds_at_dynamic = [0.0f64; 10];
        for note in scores().iter().flat_map(|score| &score.notes) {
            let length_s = note.release_s - note.onset_s;
            seconds_at_pitch[(note.midi - STYLE.midi_low).round() as usize] += length_s;
            for n in 0..100 {
                let dynamic = note.dynamic_at(length_s * f64::from(n) / 100.0);
                seconds_at_dynamic[((dynamic * 10.0) as usize).min(9)] += length_s / 100.0;
            }
        }
        assert!(
            seconds_at_pitch.iter().all(|s| *s > 2.5),
            "{seconds_at_pitch:?}"
        );
        assert!(
            seconds_at_dynamic.iter().all(|s| *s > 20.0),
            "{seconds_at_dynamic:?}"
        );
    }

    #[test]
    fn notes_follow_each_other_and_leave_a_tail() {
        for score in scores() {
            assert!(
                (8.0..13.5).contains(&score.duration_s),
                "{}",
                score.duration_s
            );
            for pair in score.notes.windows(2) {
                assert!(pair[0].release_s <= pair[1].onset_s + 1e-9);
                if let Onset::Slur(_) = pair[1].onset {
                    assert!(pair[1].onset_s - pair[0].release_s < 1e-6);
                }
            }
            let last = score.notes.last().expect("a score has notes");
            assert!(score.duration_s - last.release_s > 0.99);
        }
    }
}
