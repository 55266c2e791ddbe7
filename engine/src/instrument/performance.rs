//! Performance settings of an instrument.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Handling of overlapping notes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlayMode {
    /// Each note has its own voice.
    #[default]
    Poly,
    /// One voice per channel: an overlapping note takes over the voice with a new attack, and so
    /// does the remaining held note when it ends.
    Mono,
    /// One voice per channel: an overlapping note is slurred, and so is the return to the remaining
    /// held note.
    Legato,
}

/// Setting that can be changed while notes sound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Setting {
    /// Handling of overlapping notes; `None` for [`Performance::mode`].
    Mode(Option<PlayMode>),
    /// Duration of glides between notes that share a voice, in ms (0 to 5 000); `None` for
    /// [`Performance::glide_ms`].
    GlideMs(Option<f32>),
    /// Most simultaneous notes, at least 1; `None` for as many as there are voices.
    Voices(Option<usize>),
}

/// Velocity of a note that is played as recordings of one dynamic are: a strong touch.
pub const NATURAL_VELOCITY: f32 = 100.0 / 127.0;

/// Settings that turn notes into curves of pitch and loudness. Part of a model file's header.
///
/// Loudness is the A-weighted level in dB, on the scale of the model's training data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Performance {
    /// Duration from the onset until the level is 1 dB below its peak, at medium velocity, in ms
    /// (0.5 to 5 000). Hard notes are faster, soft ones slower.
    pub attack_ms: f32,
    /// Duration in which the level goes from peak to sustain, in ms (1 to 20 000).
    pub decay_ms: f32,
    /// Sustain level of a note of full velocity relative to its peak, in dB (−60 to 12): below 0 an
    /// accent, above a swell after the attack. Softer notes have proportionally less of either.
    pub sustain_db: f32,
    /// Decay of a held middle C, in dB/s (0 to 500): 0 for blown and bowed instruments.
    pub decay_db_per_s: f32,
    /// Factor of `decay_db_per_s` per octave upwards (0.25 to 4): high strings decay faster.
    pub decay_per_octave: f32,
    /// Duration in which the level falls by 60 dB after the release, in ms (5 to 20 000).
    pub release_ms: f32,
    /// Peak level of the softest note, in dB (−90 to 0).
    pub loudness_min_db: f32,
    /// Peak level of the hardest note, in dB (−90 to 0), above `loudness_min_db`.
    pub loudness_max_db: f32,
    /// Exponent of velocity between the two (0.2 to 5): below 1, medium velocities are louder.
    pub velocity_curve: f32,
    /// Increase of loudness at full aftertouch, in dB (0 to 24).
    pub pressure_db: f32,
    /// Rate of vibrato, in Hz (0.1 to 15).
    pub vibrato_hz: f32,
    /// Depth of the natural vibrato of a long note, ± cents (0 to 200).
    pub vibrato_cents: f32,
    /// Depth of vibrato at full modulation wheel, ± cents (0 to 400).
    pub vibrato_wheel_cents: f32,
    /// Time after the onset at which the natural vibrato reaches half its depth, in ms (0 to 10
    /// 000).
    pub vibrato_delay_ms: f32,
    /// Modulation of loudness at the deepest vibrato, ± dB (0 to 12).
    pub vibrato_db: f32,
    /// Start of a note below its pitch, in cents (−200 to 200).
    pub scoop_cents: f32,
    /// Slow random drift of pitch, ± cents (0 to 50).
    pub humanize_cents: f32,
    /// Slow random drift of loudness, ± dB (0 to 6).
    pub humanize_db: f32,
    /// Factor of both drifts and of the variations of vibrato (0 to 2); 0 plays without any.
    #[serde(skip_serializing_if = "is_neutral_life")]
    pub life: f32,
    /// Rise of treble against bass for each dB by which a note is played louder than
    /// [`Self::natural_db`], dB (0 to 3), made by a filter. For networks that have learnt one dynamic; 0 for those that know several.
    #[serde(skip_serializing_if = "is_zero")]
    pub dynamic_tilt: f32,
    /// Rise of treble against bass at the onset, which fades with the attack, dB (−24 to 24), made by
    /// a filter: the bite of a bow, or the slow speech of a flute.
    #[serde(skip_serializing_if = "is_zero")]
    pub attack_tilt_db: f32,
    /// Gain of the output, in dB (−40 to 40): for recordings that are softer than other
    /// instruments.
    #[serde(skip_serializing_if = "is_zero")]
    pub gain_db: f32,
    /// Level of what only one channel has relative to what both share (0 to 1): 0 is mono, at 1
    /// they are not correlated. Their sum stays the same.
    #[serde(skip_serializing_if = "is_zero")]
    pub width: f32,
    /// Lowest pitch in the training data, in semitones (MIDI note number, 0 to 127).
    pub pitch_low: f32,
    /// Highest pitch in the training data, in semitones (MIDI note number, 0 to 127), above
    /// `pitch_low`.
    pub pitch_high: f32,
    /// Recommended number of voices (1 to 64).
    pub polyphony: u8,
    /// Handling of overlapping notes.
    pub mode: PlayMode,
    /// Duration of glides between notes that share a voice, in ms (0 to 5 000).
    pub glide_ms: f32,
}

// Files from before there were these settings keep their checksums.
fn is_neutral_life(life: &f32) -> bool {
    *life == 1.0
}

fn is_zero(setting: &f32) -> bool {
    *setting == 0.0
}

/// Settings of a bowed or blown instrument with a wide range.
impl Default for Performance {
    fn default() -> Self {
        Self {
            attack_ms: 70.0,
            decay_ms: 180.0,
            sustain_db: -3.0,
            decay_db_per_s: 0.0,
            decay_per_octave: 1.0,
            release_ms: 280.0,
            loudness_min_db: -55.0,
            loudness_max_db: -20.0,
            velocity_curve: 0.8,
            pressure_db: 6.0,
            vibrato_hz: 5.4,
            vibrato_cents: 12.0,
            vibrato_wheel_cents: 40.0,
            vibrato_delay_ms: 450.0,
            vibrato_db: 1.5,
            scoop_cents: 15.0,
            humanize_cents: 3.0,
            humanize_db: 0.6,
            life: 1.0,
            dynamic_tilt: 0.0,
            attack_tilt_db: 0.0,
            gain_db: 0.0,
            width: 0.0,
            pitch_low: 28.0,
            pitch_high: 96.0,
            polyphony: 8,
            mode: PlayMode::Poly,
            glide_ms: 60.0,
        }
    }
}

/// Error in [`Performance`] settings.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PerformanceError {
    /// A field is out of range or not a number.
    #[error("performance: {field} is {value}, expected {min} to {max}")]
    OutOfRange {
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        value: f32,
        /// Smallest allowed value.
        min: f32,
        /// Largest allowed value.
        max: f32,
    },
    /// The lower end of a range is not below its upper end.
    #[error("performance: {low} is not below {high}")]
    Inverted {
        /// Field of the lower end.
        low: &'static str,
        /// Field of the upper end.
        high: &'static str,
    },
}

impl Performance {
    /// Returns whether no setting is a NaN or an infinity, such as a number in a file that
    /// overflows.
    pub(crate) fn is_finite(&self) -> bool {
        // JSON has null for these.
        let settings = serde_json::to_value(self)
            .ok()
            .and_then(|settings| settings.as_object().cloned());
        settings.is_some_and(|settings| settings.values().all(|value| !value.is_null()))
    }

    /// Returns settings of a struck or plucked instrument: fast attack, natural decay, damped on
    /// release.
    pub fn plucked() -> Self {
        Self {
            attack_ms: 3.0,
            decay_ms: 60.0,
            sustain_db: -4.0,
            decay_db_per_s: 14.0,
            decay_per_octave: 1.7,
            release_ms: 350.0,
            velocity_curve: 1.0,
            pressure_db: 0.0,
            vibrato_cents: 0.0,
            vibrato_db: 0.0,
            scoop_cents: 0.0,
            humanize_cents: 1.5,
            humanize_db: 0.2,
            polyphony: 16,
            ..Self::default()
        }
    }

    /// Validates all fields.
    ///
    /// # Errors
    /// Returns [`PerformanceError`] for the first invalid field.
    pub fn validate(&self) -> Result<(), PerformanceError> {
        let ranges = [
            ("attack_ms", self.attack_ms, 0.5, 5e3),
            ("decay_ms", self.decay_ms, 1.0, 2e4),
            ("sustain_db", self.sustain_db, -60.0, 12.0),
            ("decay_db_per_s", self.decay_db_per_s, 0.0, 500.0),
            ("decay_per_octave", self.decay_per_octave, 0.25, 4.0),
            ("release_ms", self.release_ms, 5.0, 2e4),
            ("loudness_min_db", self.loudness_min_db, -90.0, 0.0),
            ("loudness_max_db", self.loudness_max_db, -90.0, 0.0),
            ("velocity_curve", self.velocity_curve, 0.2, 5.0),
            ("pressure_db", self.pressure_db, 0.0, 24.0),
            ("vibrato_hz", self.vibrato_hz, 0.1, 15.0),
            ("vibrato_cents", self.vibrato_cents, 0.0, 200.0),
            ("vibrato_wheel_cents", self.vibrato_wheel_cents, 0.0, 400.0),
            ("vibrato_delay_ms", self.vibrato_delay_ms, 0.0, 1e4),
            ("vibrato_db", self.vibrato_db, 0.0, 12.0),
            ("scoop_cents", self.scoop_cents, -200.0, 200.0),
            ("humanize_cents", self.humanize_cents, 0.0, 50.0),
            ("humanize_db", self.humanize_db, 0.0, 6.0),
            ("life", self.life, 0.0, 2.0),
            ("dynamic_tilt", self.dynamic_tilt, 0.0, 3.0),
            ("attack_tilt_db", self.attack_tilt_db, -24.0, 24.0),
            ("gain_db", self.gain_db, -40.0, 40.0),
            ("width", self.width, 0.0, 1.0),
            ("pitch_low", self.pitch_low, 0.0, 127.0),
            ("pitch_high", self.pitch_high, 0.0, 127.0),
            ("polyphony", f32::from(self.polyphony), 1.0, 64.0),
            ("glide_ms", self.glide_ms, 0.0, 5e3),
        ];
        for (field, value, min, max) in ranges {
            // NaN is in no range.
            if !(min..=max).contains(&value) {
                return Err(PerformanceError::OutOfRange {
                    field,
                    value,
                    min,
                    max,
                });
            }
        }
        let pairs = [
            (
                "loudness_min_db",
                self.loudness_min_db,
                "loudness_max_db",
                self.loudness_max_db,
            ),
            ("pitch_low", self.pitch_low, "pitch_high", self.pitch_high),
        ];
        for (low, low_value, high, high_value) in pairs {
            if low_value >= high_value {
                return Err(PerformanceError::Inverted { low, high });
            }
        }
        Ok(())
    }

    /// Returns whether a pitch in semitones is within the range of the training data. Notes outside
    /// are played all the same.
    pub fn has_learnt(&self, pitch: f32) -> bool {
        (self.pitch_low..=self.pitch_high).contains(&pitch)
    }

    /// Returns whether a filter changes the balance of treble and bass.
    pub(crate) fn is_tilted(&self) -> bool {
        self.dynamic_tilt != 0.0 || self.attack_tilt_db != 0.0
    }

    /// Returns how much treble is raised against bass in a note that is played at a level in dB,
    /// after its attack, in dB.
    pub(crate) fn tilt_db(&self, level_db: f32) -> f32 {
        self.dynamic_tilt * (level_db - self.natural_db())
    }

    /// Returns the level at which notes sound as they were recorded, in dB: the peak level of a
    /// note of [`NATURAL_VELOCITY`].
    pub fn natural_db(&self) -> f32 {
        self.peak_db(NATURAL_VELOCITY)
    }

    /// Returns the peak level of a note in dB; velocity is 0 to 1.
    pub fn peak_db(&self, velocity: f32) -> f32 {
        const SOFTEST: f32 = 1.0 / 127.0;
        let rise = ((velocity - SOFTEST) / (1.0 - SOFTEST))
            .clamp(0.0, 1.0)
            .powf(self.velocity_curve);
        self.loudness_min_db + (self.loudness_max_db - self.loudness_min_db) * rise
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_valid() {
        Performance::default().validate().unwrap();
        Performance::plucked().validate().unwrap();
    }

    #[test]
    fn velocity_spans_the_range_monotonically() {
        let performance = Performance::default();
        assert_eq!(
            performance.peak_db(1.0 / 127.0),
            performance.loudness_min_db
        );
        assert_eq!(performance.peak_db(1.0), performance.loudness_max_db);
        for v in 1..127 {
            assert!(
                performance.peak_db(v as f32 / 127.0) < performance.peak_db((v + 1) as f32 / 127.0)
            );
        }
    }

    #[test]
    fn limits_are_checked() {
        let nan = Performance {
            release_ms: f32::NAN,
            ..Default::default()
        };
        assert!(matches!(
            nan.validate(),
            Err(PerformanceError::OutOfRange {
                field: "release_ms",
                ..
            })
        ));
        let slow = Performance {
            attack_ms: 1e9,
            ..Default::default()
        };
        assert_eq!(
            slow.validate().unwrap_err().to_string(),
            "performance: attack_ms is 1000000000, expected 0.5 to 5000"
        );
        let flat = Performance {
            pitch_low: 60.0,
            pitch_high: 60.0,
            ..Default::default()
        };
        assert!(matches!(
            flat.validate(),
            Err(PerformanceError::Inverted {
                low: "pitch_low",
                ..
            })
        ));
    }

    #[test]
    fn header_round_trip_and_defaults() {
        let performance = Performance {
            mode: PlayMode::Legato,
            ..Performance::plucked()
        };
        let json = serde_json::to_string(&performance).unwrap();
        assert_eq!(
            serde_json::from_str::<Performance>(&json).unwrap(),
            performance
        );
        assert_eq!(
            serde_json::from_str::<Performance>("{}").unwrap(),
            Performance::default()
        );
        assert!(serde_json::from_str::<Performance>(r#"{"atack_ms": 3}"#).is_err());
    }
}
