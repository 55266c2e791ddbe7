//! Envelope of recorded notes: what the table `[performance]` of a recipe needs.

use std::fmt::Write;

use super::features::Features;
use super::shard::quantile;
use super::store::Recordings;

/// Most notes that are measured.
const MAX_NOTES: usize = 500;
/// Longest recording that counts as a single note, seconds.
pub(super) const NOTE_S: f64 = 15.0;
/// Level below a note's loudest part at which it begins and ends, dB.
const ENDS_DB: f32 = 40.0;
/// Level below the loudest part from which a note has been reached, and until which it is held, dB.
const HELD_DB: f32 = 4.0;
/// Fall of the level in the release time of a recipe, dB.
const RELEASE_DB: f32 = 60.0;
/// Range of loudness that velocities need to be heard, dB.
const VELOCITY_RANGE_DB: f32 = 24.0;

/// Medians over the single notes of a collection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Envelope {
    /// Time from the onset to the loudest part, ms.
    pub attack_ms: f32,
    /// Level of the held part relative to the loudest, dB.
    pub sustain_db: f32,
    /// Time in which the level falls by 60 dB after the held part, ms; `None` if no recording has
    /// its release.
    pub release_ms: Option<f32>,
    /// Loudness of the softest and the loudest notes, dB.
    pub loudness_db: (f32, f32),
    /// Lowest and highest pitch, semitones.
    pub pitch: (f32, f32),
}

/// What one note has.
struct Note {
    attack_ms: f32,
    sustain_db: f32,
    release_ms: Option<f32>,
    loudness_db: f32,
}

impl Envelope {
    /// Measures the single notes of a collection; `None` if there are none.
    ///
    /// # Errors
    /// Returns an error if a shard cannot be read or is damaged.
    pub fn measure(recordings: &Recordings) -> anyhow::Result<Option<Self>> {
        let rate = recordings.store.format().rate;
        let all = recordings.store.recordings();
        let is_note = |index: &usize| {
            all[*index].pitch.is_some() && rate.seconds(all[*index].frames) <= NOTE_S
        };
        let single: Vec<usize> = recordings.indices.iter().copied().filter(is_note).collect();
        let every = single.len().div_ceil(MAX_NOTES).max(1);
        let some = recordings.subset(single.iter().copied().step_by(every).collect());
        let notes = some
            .features()
            .filter_map(|features| features.map(|features| note(&features)).transpose());
        let notes = notes.collect::<anyhow::Result<Vec<Note>>>()?;
        if notes.is_empty() {
            return Ok(None);
        }
        let at =
            |value: fn(&Note) -> f32, share| quantile(notes.iter().map(value).collect(), share);
        let releases: Vec<f32> = notes.iter().filter_map(|note| note.release_ms).collect();
        let loudest = at(|note| note.loudness_db, 0.95);
        let pitches = || single.iter().filter_map(|index| all[*index].pitch);
        Ok(Some(Self {
            attack_ms: at(|note| note.attack_ms, 0.5),
            sustain_db: at(|note| note.sustain_db, 0.5),
            release_ms: (!releases.is_empty()).then(|| quantile(releases, 0.5)),
            loudness_db: (
                at(|note| note.loudness_db, 0.05).min(loudest - VELOCITY_RANGE_DB),
                loudest,
            ),
            pitch: (
                pitches().fold(f32::INFINITY, f32::min),
                pitches().fold(f32::NEG_INFINITY, f32::max),
            ),
        }))
    }

    /// Returns it as the table of a recipe.
    #[must_use]
    pub fn recipe(&self) -> String {
        let mut text = "[performance]\n".to_owned();
        let fields = [
            ("attack_ms", Some(self.attack_ms.clamp(0.5, 5e3))),
            ("sustain_db", Some(self.sustain_db.clamp(-60.0, 0.0))),
            (
                "release_ms",
                self.release_ms.map(|release| release.clamp(5.0, 2e4)),
            ),
            (
                "loudness_min_db",
                Some(self.loudness_db.0.clamp(-90.0, -1.0)),
            ),
            (
                "loudness_max_db",
                Some(self.loudness_db.1.clamp(-89.0, 0.0)),
            ),
            ("pitch_low", Some(self.pitch.0.round())),
            (
                "pitch_high",
                Some(self.pitch.1.round().max(self.pitch.0.round() + 1.0)),
            ),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                let _ = writeln!(text, "{name} = {value:.1}");
            }
        }
        text
    }
}

/// Measures one note; `None` if it is nearly silent.
fn note(features: &Features) -> Option<Note> {
    let levels = features.loudness();
    let loudness_db = quantile(levels.to_vec(), 0.9);
    let frame_ms = 1e3 * features.rate.seconds(1) as f32;
    let above = |range_db: f32| move |level: &f32| *level >= loudness_db - range_db;
    let onset = levels.iter().position(above(ENDS_DB))?;
    let reached = onset + levels[onset..].iter().position(above(HELD_DB))?;
    let held = levels.iter().rposition(above(HELD_DB))?;
    let gone = levels[held..]
        .iter()
        .position(|level| *level <= loudness_db - ENDS_DB);
    let release_ms = gone.map(|frames| frames as f32 * frame_ms * RELEASE_DB / (ENDS_DB - HELD_DB));
    let peak = levels[onset..]
        .iter()
        .copied()
        .fold(f32::NEG_INFINITY, f32::max);
    let sustain_db = quantile(levels[reached..=held].to_vec(), 0.5) - peak;
    Some(Note {
        attack_ms: (reached - onset) as f32 * frame_ms,
        sustain_db,
        release_ms,
        loudness_db,
    })
}

#[cfg(test)]
mod tests {
    use ondes_engine::instrument::Performance;

    use super::*;
    use crate::data::FeatureRate;
    use crate::data::features::Row;

    #[test]
    fn notes_tell_their_envelope() {
        let rate = FeatureRate {
            sample_rate: 16_000,
            hop: 160,
        };
        // Rises by 4 dB in each frame of 10 ms, is held, and falls by 2 dB in each.
        let level = |frame: usize| match frame {
            0..20 => -100.0 + 4.0 * frame as f32,
            20..120 => -20.0,
            _ => -20.0 - 2.0 * (frame - 120) as f32,
        };
        let values = Row {
            loudness: (0..150).map(level).collect(),
            ..Row::default()
        };
        let note = note(&Features {
            rate,
            knobs: Default::default(),
            values,
        })
        .expect("a note");
        assert_eq!(
            (note.attack_ms, note.sustain_db, note.loudness_db),
            (90.0, 0.0, -20.0)
        );
        let release = note.release_ms.expect("it is heard");
        assert!((release - 300.0).abs() < 20.0, "{release}");
        let envelope = Envelope {
            attack_ms: 90.0,
            sustain_db: 0.0,
            release_ms: None,
            loudness_db: (-44.0, -20.0),
            pitch: (60.2, 60.4),
        };
        let table: toml::Table = toml::from_str(&envelope.recipe()).expect("TOML");
        let performance: Performance = table["performance"].clone().try_into().expect("settings");
        assert_eq!(performance.validate(), Ok(()));
        assert_eq!(
            (performance.attack_ms, performance.pitch_high),
            (90.0, 61.0)
        );
    }
}
