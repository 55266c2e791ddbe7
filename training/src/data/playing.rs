//! Measures of the single notes of a collection, from which an instrument's [`Performance`] is made.

use ondes_engine::instrument::{NATURAL_VELOCITY, Performance};

use super::features::Features;
use super::shard::quantile;
use super::store::Recordings;

/// Most notes that are measured.
const MAX_NOTES: usize = 500;
/// Longest recording that counts as a single note, seconds.
pub(crate) const NOTE_S: f64 = 15.0;
/// Level below the sustained one at which a note begins, dB: where those of a keyboard do.
const ONSET_DB: f32 = 30.0;
/// Level below the sustained one at which most of the rise is done, dB.
const RISEN_DB: f32 = 6.0;
/// Smallest and largest swell after the attack, dB.
const SWELL_DB: (f32, f32) = (1.3, 8.0);
/// Level below the sustained one until which a note is held, dB.
const HELD_DB: f32 = 4.0;
/// Level below the sustained one at which a released note has ended, dB.
const ENDS_DB: f32 = 40.0;
/// Fall of the level in the release time, dB.
const RELEASE_DB: f32 = 60.0;
/// Longest release of a note that is not struck, ms: what sounds on is the room's.
const MAX_RELEASE_MS: f32 = 600.0;
/// Time from the onset after which the sound counts as sustained, seconds.
const SETTLED_S: f64 = 0.3;
/// Time in which an accent may stand out, seconds.
const ACCENT_S: f64 = 0.4;
/// Level below the loudest until which the fall of a struck note is measured, dB.
const FADED_DB: f32 = 20.0;
/// Time from the onset in which a struck note is loudest, and length of the beginning whose level it
/// has, seconds.
const STRIKE_S: f64 = 0.1;
const BEGINNING_S: f64 = 0.5;
/// Time after which a struck note falls slowly, seconds, and its largest accent, dB.
const QUICK_S: f32 = 0.6;
const MAX_ACCENT_DB: f32 = 18.0;
/// Time within which struck notes reach their level, ms.
const STRUCK_MS: f32 = 60.0;
/// Range of loudness that velocities need to be heard, dB.
const VELOCITY_RANGE_DB: f32 = 26.0;
/// Rise of treble against bass for each dB, of notes recorded at several dynamics: a double bass has
/// 0.7, a cello 1.0, saxophones 1.6 to 2.
const USUAL_TILT: f32 = 1.0;
/// Width of new instruments, whose recordings are heard in one channel.
pub(crate) const USUAL_WIDTH: f32 = 0.5;
/// Window that separates vibrato from drift, seconds.
const DRIFT_S: f64 = 0.25;
/// Rates of vibrato, Hz.
const VIBRATO_HZ: (f64, f64) = (4.0, 8.0);
/// Correlation with itself a period later from which a movement of the pitch is a vibrato.
const PERIODIC: f64 = 0.6;
/// Limits of the drift of the level, dB: long notes would swell too much.
pub(crate) const LEAST_DRIFT_DB: f32 = 0.2;
pub(crate) const MOST_DRIFT_DB: f32 = 4.0;
/// Movement of the level of a held note, in dB, for a drift of ±1 dB: 5 % to 95 % of its frames.
pub(crate) const RANGE_OF_DRIFT: f32 = 1.1;

/// Measures of one note. Levels are A-weighted, dB.
#[derive(Clone, Debug, PartialEq)]
pub struct NoteMeasures {
    /// First frame of the note, and the last that is held.
    pub held: (usize, usize),
    /// Median pitch, semitones.
    pub pitch: f32,
    /// Level of its sustained part, or of the first half second of a note that falls.
    pub level_db: f32,
    /// Time from the onset until it is within 1 dB of the sustained level, ms.
    pub attack_ms: f32,
    /// Time from the onset until it is within 6 dB of the sustained level, ms.
    pub rise_ms: f32,
    /// Level below the sustained one when an amplitude that approaches it exponentially from the
    /// onset would be 1 dB below, dB.
    pub late_db: f32,
    /// Level of its beginning above the sustained one, dB.
    pub accent_db: f32,
    /// Time in which the level falls by 60 dB once it is released, ms; `None` if the recording ends
    /// before.
    pub release_ms: Option<f32>,
    /// Range of the level while it is held, 5 % to 95 %, dB; `None` if it is short.
    pub range_db: Option<f32>,
    /// Fall of the level while it is held; none if it does not fall all the time.
    pub fall: Option<Fall>,
    /// Half the range of the slow movement of the pitch, cents.
    pub drift_cents: Option<f32>,
    /// Rate, Hz, and depth, ± cents, of its vibrato; of no depth without one.
    pub vibrato: Option<(f32, f32)>,
}

/// Fall of a struck note: quick at first, then slow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fall {
    /// Level of its beginning above that of the slow fall, dB.
    pub accent_db: f32,
    /// Time constant of the quick fall, ms.
    pub quick_ms: f32,
    /// Slow fall, dB/s.
    pub db_per_s: f32,
}

impl Fall {
    /// Measures levels from the loudest on, dB; frames last `frame_s` seconds.
    fn new(levels: &[f32], frame_s: f32) -> Self {
        let settled = (QUICK_S / frame_s) as usize;
        let from = if levels.len() > 2 * settled {
            settled
        } else {
            0
        };
        let slow = slope(&levels[from..]);
        let mean = levels[from..].iter().sum::<f32>() / (levels.len() - from) as f32;
        let middle = (from + levels.len() - 1) as f32 / 2.0;
        let above = |frame: usize| levels[frame] - (mean + slow * (frame as f32 - middle));
        let accent_db = above(0).clamp(0.0, MAX_ACCENT_DB);
        let quick = (0..levels.len()).find(|frame| above(*frame) < accent_db / std::f32::consts::E);
        Self {
            accent_db,
            quick_ms: 1e3 * frame_s * quick.unwrap_or(settled) as f32,
            db_per_s: -slow / frame_s,
        }
    }
}

/// Returns the level of a note's sustained part, or of the first half second of a note that falls,
/// relative to its peak, dB.
#[must_use]
pub fn settled_db(performance: &Performance, velocity: f32) -> f32 {
    let settled_db = performance.sustain_db * velocity;
    if performance.decay_db_per_s == 0.0 {
        return settled_db;
    }
    let middle_s = BEGINNING_S as f32 / 2.0;
    let quick = 1.0 - (-3.0 * middle_s / (performance.decay_ms / 1e3)).exp();
    settled_db * quick - performance.decay_db_per_s * middle_s
}

impl NoteMeasures {
    /// Measures a note; `None` if it is nearly silent or has no pitch.
    #[must_use]
    pub fn new(features: &Features) -> Option<Self> {
        let levels = features.loudness();
        let frames = |seconds: f64| (seconds / features.rate.seconds(1)).round() as usize;
        let frame_s = features.rate.seconds(1) as f32;
        let loud = quantile(levels.to_vec(), 0.9);
        if levels.is_empty() || loud <= ondes_engine::dsp::loudness::FLOOR_DB + ENDS_DB {
            return None;
        }
        let near = levels.iter().copied().filter(|level| *level > loud - 6.0);
        let mut level_db = quantile(near.collect(), 0.5);
        let above_by =
            |level_db: f32, range_db: f32| move |level: &f32| *level >= level_db - range_db;
        let first = levels.iter().position(above_by(level_db, ONSET_DB))?;
        // A struck note falls all the time; a held one only when it is released.
        let strike = levels[first..].iter().take(frames(STRIKE_S)).enumerate();
        let strike = first
            + strike
                .max_by(|a, b| a.1.total_cmp(b.1))
                .map_or(0, |(n, _)| n);
        let faded = levels
            .iter()
            .rposition(above_by(level_db, FADED_DB))
            .unwrap_or(strike);
        let is_long = faded > strike + frames(0.1 + SETTLED_S);
        let falls = is_long && levels[(strike + faded) / 2] < level_db - FADED_DB / 4.0;
        let fall = falls.then(|| Fall::new(&levels[strike..=faded], frame_s));
        if falls {
            let end = (strike + frames(BEGINNING_S)).min(faded);
            level_db = quantile(levels[strike..=end].to_vec(), 0.5);
        }
        let above = |range_db: f32| above_by(level_db, range_db);
        let onset = levels.iter().position(above(ONSET_DB))?;
        let after_onset = |range_db| {
            let frames = levels[onset..].iter().position(above(range_db))?;
            Some(onset + frames)
        };
        let (risen, reached) = (after_onset(RISEN_DB)?, after_onset(HELD_DB)?);
        let arrived = after_onset(1.0)?;
        let rise_ms = 1e3 * (risen - onset) as f32 * frame_s;
        let expected = onset + frames(f64::from(exponential_ms(rise_ms)) / 1e3);
        let late_db = levels.get(expected).map_or(0.0, |level| level_db - level);
        let held = if falls {
            faded
        } else {
            levels.iter().rposition(above(HELD_DB))?
        };
        let gone = levels[held..]
            .iter()
            .position(|level| *level <= level_db - ENDS_DB);
        let release_ms = gone
            .filter(|_| !falls)
            .map(|frames| 1e3 * frames as f32 * frame_s * RELEASE_DB / (ENDS_DB - HELD_DB));

        let settled = onset + frames(SETTLED_S);
        let steady_end = onset + (held.saturating_sub(onset)) * 17 / 20;
        let steady = (steady_end > settled + frames(SETTLED_S)).then_some(settled..steady_end);
        let range_of = |values: Vec<f32>| quantile(values.clone(), 0.95) - quantile(values, 0.05);
        let range_db = steady
            .clone()
            .map(|steady| range_of(levels[steady].to_vec()));
        let first = levels[reached..(reached + frames(ACCENT_S)).min(held + 1)].to_vec();
        let rest = steady.clone().map(|steady| levels[steady].to_vec());
        let accent_db = rest.map_or(0.0, |rest| {
            (quantile(first, 0.8) - quantile(rest, 0.5)).max(0.0)
        });

        let voiced = features.pitch().iter().zip(features.voiced());
        let pitches = voiced.filter(|(_, voiced)| **voiced > 0.5);
        let pitches: Vec<f32> = pitches.map(|(pitch, _)| *pitch).collect();
        if pitches.is_empty() {
            return None;
        }
        let steady_pitch = steady.filter(|steady| {
            let voiced = features.voiced()[steady.clone()].iter();
            voiced.filter(|voiced| **voiced > 0.5).count() * 10 > 9 * steady.len()
        });
        let movement = steady_pitch
            .map(|steady| movement(&features.pitch()[steady], frames(DRIFT_S).max(1), frame_s));
        Some(Self {
            held: (onset, held),
            pitch: quantile(pitches, 0.5),
            level_db,
            attack_ms: 1e3 * (arrived - onset) as f32 * frame_s,
            rise_ms,
            late_db,
            accent_db,
            release_ms,
            range_db,
            fall,
            drift_cents: movement.as_ref().map(|(drift, _)| *drift),
            vibrato: movement.map(|(_, vibrato)| vibrato),
        })
    }
}

/// Returns the time to 1 dB below the end of an amplitude that rises exponentially and is 6 dB below
/// after `rise_ms`, ms.
fn exponential_ms(rise_ms: f32) -> f32 {
    3.2 * rise_ms.max(6.0)
}

/// Returns half the range of the slow part of a pitch curve, and the rate and depth of its vibrato:
/// cents and Hz.
fn movement(pitch: &[f32], window: usize, frame_s: f32) -> (f32, (f32, f32)) {
    let mean = |values: &[f32]| values.iter().sum::<f32>() / values.len() as f32;
    let slow: Vec<f32> = pitch.windows(window).map(mean).collect();
    if slow.is_empty() {
        return (0.0, (0.0, 0.0));
    }
    let drift = 50.0 * (quantile(slow.clone(), 0.95) - quantile(slow.clone(), 0.05));
    let fast: Vec<f64> = slow
        .iter()
        .zip(&pitch[window / 2..])
        .map(|(slow, pitch)| 100.0 * f64::from(pitch - slow))
        .collect();
    let at = |lag: usize| {
        let pairs = fast.iter().zip(fast.get(lag..).unwrap_or_default());
        pairs.map(|(now, later)| now * later).sum::<f64>() / (fast.len() - lag) as f64
    };
    let lag = |hz: f64| (1.0 / hz / f64::from(frame_s)) as usize;
    let lags = lag(VIBRATO_HZ.1).max(1)..=lag(VIBRATO_HZ.0).min(fast.len() / 2);
    let power = at(0);
    let best = lags.max_by(|a, b| at(*a).total_cmp(&at(*b)));
    let vibrato = match best {
        Some(lag) if at(lag) > PERIODIC * power => {
            let rate = 1.0 / (lag as f64 * f64::from(frame_s));
            // What the window leaves of the vibrato in the slow part.
            let turns = std::f64::consts::PI * rate * window as f64 * f64::from(frame_s);
            let depth = (2.0 * power).sqrt() / (1.0 - turns.sin() / turns);
            (rate as f32, depth as f32)
        }
        _ => (0.0, 0.0),
    };
    (drift, vibrato)
}

/// Returns the slope of the regression line, per value.
fn slope(values: &[f32]) -> f32 {
    let count = values.len() as f64;
    let middle = (count - 1.0) / 2.0;
    let moment = |(n, value): (usize, &f32)| (n as f64 - middle) * f64::from(*value);
    let sum: f64 = values.iter().enumerate().map(moment).sum();
    (12.0 * sum / (count * (count * count - 1.0))) as f32
}

/// Measures of the single notes of a collection.
#[derive(Clone, Debug, PartialEq)]
pub struct Playing {
    notes: Vec<NoteMeasures>,
    /// All notes of a pitch are about equally loud.
    has_one_dynamic: bool,
}

impl Playing {
    /// Measures single notes; `None` if there are none. `has_one_dynamic` is what the
    /// [report](super::report::DataReport::has_one_dynamic) says.
    ///
    /// # Errors
    /// Returns an error if a shard cannot be read or is damaged.
    pub fn measure(recordings: &Recordings, has_one_dynamic: bool) -> anyhow::Result<Option<Self>> {
        let rate = recordings.store.format().rate;
        let all = recordings.store.recordings();
        let is_note = |index: &usize| {
            all[*index].pitch.is_some() && rate.seconds(all[*index].frames) <= NOTE_S
        };
        let single: Vec<usize> = recordings.indices.iter().copied().filter(is_note).collect();
        let every = single.len().div_ceil(MAX_NOTES).max(1);
        let some = recordings.subset(single.into_iter().step_by(every).collect());
        let notes = some
            .features()
            .filter_map(|features| features.map(|note| NoteMeasures::new(&note)).transpose());
        let notes = notes.collect::<anyhow::Result<Vec<NoteMeasures>>>()?;
        Ok((!notes.is_empty()).then_some(Self {
            notes,
            has_one_dynamic,
        }))
    }

    /// Returns a quantile of a measure; `None` if no note has it.
    fn at(&self, share: f32, measure: impl Fn(&NoteMeasures) -> Option<f32>) -> Option<f32> {
        let values: Vec<f32> = self.notes.iter().filter_map(measure).collect();
        (!values.is_empty()).then(|| quantile(values, share))
    }

    /// Returns the middle note's measure.
    fn usual(&self, measure: impl Fn(&NoteMeasures) -> Option<f32>) -> Option<f32> {
        self.at(0.5, measure)
    }

    /// Returns whether the notes were struck or plucked, and fall while they are held.
    #[must_use]
    pub fn is_struck(&self) -> bool {
        let falls = |note: &&NoteMeasures| note.fall.is_some() && note.attack_ms < STRUCK_MS;
        2 * self.notes.iter().filter(falls).count() > self.notes.len()
    }

    /// Returns the settings with which an instrument plays notes as they were recorded: those of
    /// [`NATURAL_VELOCITY`] at their level, and softer and louder ones around it.
    #[must_use]
    pub fn performance(&self) -> Performance {
        let is_struck = self.is_struck();
        let usual = if is_struck {
            Performance::plucked()
        } else {
            Performance::default()
        };
        let mut played = Performance {
            release_ms: self
                .usual(|note| note.release_ms)
                .filter(|_| !is_struck)
                .map_or(usual.release_ms, |release| {
                    release.clamp(20.0, MAX_RELEASE_MS)
                }),
            pitch_low: self.at(0.0, |note| Some(note.pitch)).unwrap_or_default(),
            pitch_high: self.at(1.0, |note| Some(note.pitch)).unwrap_or_default(),
            width: USUAL_WIDTH,
            ..usual
        };
        played.pitch_low = played.pitch_low.round().clamp(0.0, 126.0);
        played.pitch_high = played
            .pitch_high
            .round()
            .clamp(played.pitch_low + 1.0, 127.0);
        self.fill_attack(&mut played);
        if is_struck {
            self.fill_decay(&mut played);
        } else {
            let range = self.usual(|note| note.range_db).unwrap_or_default();
            played.humanize_db = (range / RANGE_OF_DRIFT).clamp(LEAST_DRIFT_DB, MOST_DRIFT_DB);
        }
        if let Some(drift) = self.usual(|note| note.drift_cents) {
            played.humanize_cents = drift.clamp(0.5, 20.0);
        }
        self.fill_vibrato(&mut played);
        self.fill_loudness(&mut played);
        played
    }

    /// Sets the attack, and the accent or swell after it.
    fn fill_attack(&self, played: &mut Performance) {
        let usual = |measure: fn(&NoteMeasures) -> f32| {
            self.usual(|note| Some(measure(note))).unwrap_or_default()
        };
        let (rise, arrival) = (usual(|note| note.rise_ms), usual(|note| note.attack_ms));
        let (least, most) = SWELL_DB;
        // At its own duration, the quick part of the rise is nearly done.
        let swell = (usual(|note| note.late_db) - 0.3).min(most);
        let mut attack_ms = arrival;
        played.sustain_db = -usual(|note| note.accent_db).min(12.0);
        if swell >= least {
            // The level first goes to `swell` below the sustained one.
            let share = 10_f32.powf((swell.min(RISEN_DB - 1.0) - RISEN_DB) / 20.0);
            attack_ms = exponential_ms(rise) / 3.2 * 2.2187 / -(1.0 - share).ln();
            let rest = (arrival - attack_ms).max(10.0);
            played.decay_ms = (3.0 * rest / swell.ln()).clamp(20.0, 2e3);
            played.sustain_db = swell / NATURAL_VELOCITY;
        }
        // Hard notes are faster.
        played.attack_ms = (attack_ms * (NATURAL_VELOCITY - 0.5).exp2()).clamp(2.0, 5e3);
    }

    /// Sets the decay of held notes and its change along the pitch.
    fn fill_decay(&self, played: &mut Performance) {
        let points: Vec<(f64, f64)> = self
            .notes
            .iter()
            .filter_map(|note| Some((note.pitch, note.fall?.db_per_s)))
            .filter(|(_, decay)| *decay > 0.5)
            .map(|(pitch, decay)| (f64::from(pitch - 60.0) / 12.0, f64::from(decay).log2()))
            .collect();
        let count = points.len() as f64;
        if points.is_empty() {
            return;
        }
        let mean = |value: fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / count;
        let (octave, decay) = (mean(|point| point.0), mean(|point| point.1));
        let spread: f64 = points.iter().map(|point| (point.0 - octave).powi(2)).sum();
        let shared: f64 = points
            .iter()
            .map(|point| (point.0 - octave) * (point.1 - decay))
            .sum();
        let per_octave = if spread > 0.05 * count {
            shared / spread
        } else {
            0.0
        };
        let per_octave: f64 = per_octave.clamp(-1.0, 1.5);
        played.decay_per_octave = per_octave.exp2() as f32;
        played.decay_db_per_s = (decay - per_octave * octave).exp2().clamp(0.0, 500.0) as f32;
        let fall = |measure: fn(Fall) -> f32| self.usual(|note| note.fall.map(measure));
        let accent_db = fall(|fall| fall.accent_db).unwrap_or_default();
        played.sustain_db = -accent_db / NATURAL_VELOCITY;
        let quick_ms = fall(|fall| fall.quick_ms).unwrap_or_default();
        played.decay_ms = (3.0 * quick_ms).clamp(20.0, 3e3);
    }

    /// Sets the vibrato, if most notes have one.
    fn fill_vibrato(&self, played: &mut Performance) {
        let depth = self.usual(|note| Some(note.vibrato?.1)).unwrap_or_default();
        played.vibrato_cents = depth.min(200.0);
        let rate = self.usual(|note| Some(note.vibrato?.0).filter(|rate| *rate > 0.0));
        if let Some(rate) = rate.filter(|_| depth > 0.0) {
            played.vibrato_hz = rate.clamp(0.1, 15.0);
        }
    }

    /// Sets the levels of velocities and how they colour a note.
    fn fill_loudness(&self, played: &mut Performance) {
        let level = |share| {
            self.at(share, |note| Some(note.level_db))
                .unwrap_or_default()
        };
        let unit = Performance {
            loudness_min_db: 0.0,
            loudness_max_db: 1.0,
            ..*played
        };
        let (low, high) = (level(0.05), level(0.95));
        if self.has_one_dynamic {
            // Levels along the pitch are the instrument's, and the network knows them.
            let natural = level(0.5) - settled_db(played, NATURAL_VELOCITY);
            let share = unit.natural_db();
            played.loudness_min_db = natural - share * VELOCITY_RANGE_DB;
            played.loudness_max_db = natural + (1.0 - share) * VELOCITY_RANGE_DB;
            played.dynamic_tilt = USUAL_TILT;
        } else {
            played.loudness_max_db = high - settled_db(played, 1.0);
            let softest = low - settled_db(played, 0.0);
            played.loudness_min_db = softest.min(played.loudness_max_db - VELOCITY_RANGE_DB);
            played.dynamic_tilt = 0.0;
        }
        played.loudness_max_db = played.loudness_max_db.clamp(-85.0, 0.0);
        played.loudness_min_db = played
            .loudness_min_db
            .clamp(-90.0, played.loudness_max_db - 1.0);
    }

    /// Returns what is measured as the table of a recipe.
    ///
    /// # Errors
    /// Returns an error if the settings are no TOML.
    pub fn recipe(&self) -> anyhow::Result<String> {
        let mut table = toml::Table::try_from(self.performance())?;
        for value in table.iter_mut().map(|(_, value)| value) {
            if let toml::Value::Float(number) = value {
                *number = (*number * 100.0).round() / 100.0;
            }
        }
        Ok(format!("[performance]\n{}", toml::to_string(&table)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::FeatureRate;
    use crate::data::features::Row;

    /// Frames of 10 ms with levels, and a pitch with a vibrato of 20 cents at 5 Hz.
    fn note(frames: usize, level: impl Fn(usize) -> f32) -> Option<NoteMeasures> {
        let pitch = |frame: usize| {
            let turn = std::f32::consts::TAU * 5.0 * frame as f32 / 100.0;
            60.2 + 0.2 * turn.sin()
        };
        let values = Row {
            loudness: (0..frames).map(level).collect(),
            pitch: (0..frames).map(pitch).collect(),
            voiced: vec![1.0; frames],
            ..Row::default()
        };
        NoteMeasures::new(&Features {
            rate: FeatureRate {
                sample_rate: 16_000,
                hop: 160,
            },
            knobs: Default::default(),
            values,
        })
    }

    fn held() -> NoteMeasures {
        // Rises by 4 dB in each frame of 10 ms, is held, and falls by 2 dB in each.
        let note = note(350, |frame| match frame {
            0..20 => -100.0 + 4.0 * frame as f32,
            20..300 => -20.0,
            _ => -20.0 - 2.0 * (frame - 300) as f32,
        });
        note.expect("a note")
    }

    #[test]
    fn a_held_note_tells_how_it_was_played() {
        let note = held();
        assert_eq!((note.attack_ms, note.level_db), (70.0, -20.0));
        assert_eq!((note.accent_db, note.range_db), (0.0, Some(0.0)));
        let release = note.release_ms.expect("it is heard");
        assert!((release - 300.0).abs() < 20.0, "{release}");
        assert_eq!(note.rise_ms, 60.0);
        let (rate, depth) = note.vibrato.expect("it is long");
        assert!((rate - 5.0).abs() < 0.3, "{rate} Hz");
        assert!((depth - 20.0).abs() < 3.0, "{depth} cents");
        let drift = note.drift_cents.expect("it is long");
        assert!(drift < 5.0, "{drift}");
        assert_eq!(note.fall, None);
        assert!(super::tests::note(100, |_| -100.0).is_none(), "silence");
    }

    #[test]
    fn one_dynamic_is_played_at_its_level_by_a_strong_touch() {
        let playing = |has_one_dynamic| Playing {
            notes: vec![held()],
            has_one_dynamic,
        };
        let performance = playing(true).performance();
        assert_eq!(performance.validate(), Ok(()));
        assert!((performance.natural_db() + 20.0).abs() < 0.01);
        assert!(performance.dynamic_tilt > 0.5 && performance.peak_db(0.1) < -35.0);
        assert_eq!(
            (performance.pitch_low, performance.pitch_high),
            (60.0, 61.0)
        );
        assert_eq!(playing(false).performance().dynamic_tilt, 0.0);
        let table: toml::Table =
            toml::from_str(&playing(true).recipe().expect("TOML")).expect("TOML");
        let read: Performance = table["performance"].clone().try_into().expect("settings");
        assert_eq!(read.validate(), Ok(()));
        assert!(
            (60.0..120.0).contains(&read.attack_ms),
            "{}",
            read.attack_ms
        );
    }

    #[test]
    fn a_plucked_note_falls_quickly_and_then_slowly() {
        // 12 dB above a fall of 6 dB/s, with a time constant of 0.15 s.
        let note = note(350, |frame| {
            let seconds = frame as f32 / 100.0;
            let quick = 12.0 * (-seconds / 0.15).exp();
            -30.0 - 6.0 * seconds + quick
        });
        let note = note.expect("a note");
        let fall = note.fall.expect("it falls");
        assert!((fall.accent_db - 12.0).abs() < 1.0, "{fall:?}");
        assert!((fall.quick_ms - 150.0).abs() < 25.0, "{fall:?}");
        assert!((fall.db_per_s - 6.0).abs() < 0.5, "{fall:?}");
        assert_eq!(note.release_ms, None, "it rings");

        // What is played of it is as loud.
        let playing = Playing {
            notes: vec![note.clone()],
            has_one_dynamic: true,
        };
        let played = playing.performance();
        let level = played.natural_db() + settled_db(&played, NATURAL_VELOCITY);
        assert!(
            (level - note.level_db).abs() < 0.1,
            "{level} {}",
            note.level_db
        );
    }

    #[test]
    fn struck_notes_decay_and_high_ones_faster() {
        let struck = |pitch: f32, db_per_s: f32| NoteMeasures {
            pitch,
            ..note(300, |frame| match frame {
                0 => -90.0,
                _ => -10.0 - db_per_s / 100.0 * frame as f32,
            })
            .expect("a note")
        };
        let playing = Playing {
            notes: vec![struck(48.0, 10.0), struck(60.0, 15.0), struck(72.0, 22.5)],
            has_one_dynamic: true,
        };
        assert!(playing.is_struck());
        let performance = playing.performance();
        assert_eq!(performance.validate(), Ok(()));
        assert!((performance.decay_db_per_s - 15.0).abs() < 1.0);
        assert!((performance.decay_per_octave - 1.5).abs() < 0.1);
        assert!(
            !Playing {
                notes: vec![held()],
                ..playing
            }
            .is_struck()
        );
    }
}
