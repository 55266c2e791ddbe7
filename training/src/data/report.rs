//! Summary of a collection of recordings: pitches, dynamics and gaps.

use std::collections::BTreeMap;
use std::fmt::Write;

use ondes_canvas::{Align, Canvas, Colour};

use super::playing::NOTE_S;
use super::shard::quantile;
use super::store::Recordings;
use ondes_canvas::axis::{Axis, label};

/// Minutes below which an instrument is poor.
const FEW_MINUTES: f64 = 10.0;
/// Difference of the notes of a pitch below which there is one dynamic, dB: 2 to 3 dB where a pitch
/// was played on several strings, 5 dB where soft and loud.
const ONE_DYNAMIC_DB: f32 = 4.0;
/// Share of the pitches with several notes below which these tell nothing.
const FEW_SEVERAL: f64 = 0.1;
/// Semitones without a recording that are a gap.
const GAP: i32 = 3;
/// Share of frames with a pitch below which the sound is hardly an instrument's.
const FEW_VOICED: f64 = 0.3;
/// Most recordings that are read, to tell single notes from phrases.
const MEASURED: usize = 50;
/// Largest distance from the median pitch of a single note, semitones, and share of its frames that
/// keep to it.
const NOTE_SEMITONES: f32 = 0.7;
const NOTE_SHARE: f64 = 0.8;
const SIZE: (usize, usize) = (1_200, 700);
const PLOT: [f32; 4] = [90.0, 80.0, 1_150.0, 600.0];
const BACKGROUND: Colour = [250, 249, 246];
const GRID: Colour = [222, 219, 212];
const INK: Colour = [44, 42, 50];
const FAINT: Colour = [120, 116, 126];
const POINT: Colour = [52, 108, 164];

/// Pitches and dynamics of a collection.
#[derive(Clone, Debug, PartialEq)]
pub struct DataReport {
    /// Number of recordings.
    pub recordings: usize,
    /// Length, seconds.
    pub seconds: f64,
    /// Share of the frames with a pitch.
    pub voiced: f64,
    /// Pitch in semitones and level in dB of each recording with a pitch.
    pub points: Vec<(f32, f32)>,
    /// Most of the recordings are single notes, not phrases.
    pub are_single_notes: bool,
}

impl DataReport {
    /// Collects what the index of the dataset tells, and reads some of the recordings.
    ///
    /// # Errors
    /// Returns an error if a shard cannot be read or is damaged.
    pub fn new(recordings: &Recordings) -> anyhow::Result<Self> {
        let frames: usize = recordings.iter().map(|recording| recording.frames).sum();
        let voiced: usize = recordings.iter().map(|recording| recording.voiced).sum();
        Ok(Self {
            recordings: recordings.indices.len(),
            seconds: recordings.seconds(),
            voiced: voiced as f64 / frames.max(1) as f64,
            points: recordings
                .iter()
                .filter_map(|recording| Some((recording.pitch?, recording.loudness)))
                .collect(),
            are_single_notes: are_single_notes(recordings)?,
        })
    }

    /// Returns true if single notes of a pitch are about equally loud, in the median of the pitches
    /// with several notes. Phrases have many levels of their own.
    #[must_use]
    pub fn has_one_dynamic(&self) -> bool {
        let levels = self.levels();
        let several: Vec<f32> = levels
            .values()
            .map(|(low, high)| high - low)
            .filter(|span| *span > 0.0)
            .collect();
        let tell_nothing = several.len() as f64 <= FEW_SEVERAL * levels.len() as f64;
        self.are_single_notes && (tell_nothing || quantile(several, 0.5) < ONE_DYNAMIC_DB)
    }

    /// Returns the lowest and the highest level at each semitone.
    fn levels(&self) -> BTreeMap<i32, (f32, f32)> {
        let mut levels = BTreeMap::new();
        for &(pitch, level) in &self.points {
            let (low, high) = levels.entry(pitch.round() as i32).or_insert((level, level));
            (*low, *high) = (low.min(level), high.max(level));
        }
        levels
    }

    /// Returns a summary in a line, then a line for each limitation for instruments.
    #[must_use]
    pub fn text(&self) -> String {
        let levels = self.levels();
        let mut text = format!(
            "{} recordings, {:.1} minutes",
            self.recordings,
            self.seconds / 60.0
        );
        let (Some((&lowest, _)), Some((&highest, _))) =
            (levels.first_key_value(), levels.last_key_value())
        else {
            return text + "\nno recording has a pitch: expect noise";
        };
        let quietest = self
            .points
            .iter()
            .map(|point| point.1)
            .fold(f32::INFINITY, f32::min);
        let loudest = self
            .points
            .iter()
            .map(|point| point.1)
            .fold(f32::NEG_INFINITY, f32::max);
        let _ = write!(
            text,
            "; {} pitches from {} to {}; {quietest:.0} to {loudest:.0} dB",
            levels.len(),
            note_name(lowest),
            note_name(highest)
        );
        let pitches: Vec<i32> = levels.keys().copied().collect();
        let gaps: Vec<String> = pitches
            .windows(2)
            .filter(|pair| pair[1] - pair[0] >= GAP)
            .map(|pair| format!("{} and {}", note_name(pair[0]), note_name(pair[1])))
            .collect();
        if !gaps.is_empty() {
            let _ = write!(
                text,
                "\nno recording between {}: expect notes there to be dull or uneven",
                gaps.join(", ")
            );
        }
        if self.has_one_dynamic() {
            text += "\none dynamic: expect the timbre of soft and loud notes to be alike";
        }
        if self.seconds < 60.0 * FEW_MINUTES {
            text += "\nless than ten minutes: expect the room to be learnt poorly";
        }
        if self.voiced < FEW_VOICED {
            let _ = write!(
                text,
                "\nonly {:.0} % of the sound has a pitch",
                100.0 * self.voiced
            );
        }
        text
    }

    /// Draws the level of each recording against its pitch.
    #[must_use]
    pub fn draw(&self) -> Canvas {
        let mut canvas = Canvas::new(SIZE.0, SIZE.1, BACKGROUND);
        let [left, top, right, bottom] = PLOT;
        let x = Axis::linear(
            self.points.iter().map(|point| f64::from(point.0)),
            (left, right),
        );
        let y = Axis::linear(
            self.points.iter().map(|point| f64::from(point.1)),
            (bottom, top),
        );
        for tick in x.ticks() {
            let at = x.pixel(tick);
            canvas.line([[at, top], [at, bottom]], 1.0, GRID);
            let name = if tick.fract() == 0.0 {
                note_name(tick as i32)
            } else {
                label(tick)
            };
            canvas.text(&name, [at, bottom + 24.0], 16.0, Align::Centre, FAINT);
        }
        for tick in y.ticks() {
            let at = y.pixel(tick);
            canvas.line([[left, at], [right, at]], 1.0, GRID);
            canvas.text(
                &label(tick),
                [left - 10.0, at + 5.0],
                16.0,
                Align::Right,
                FAINT,
            );
        }
        for &(pitch, level) in &self.points {
            canvas.disc(
                [x.pixel(f64::from(pitch)), y.pixel(f64::from(level))],
                5.0,
                POINT,
            );
        }
        canvas.text(
            "Level of each recording, dB, against its pitch",
            [left, 44.0],
            22.0,
            Align::Left,
            INK,
        );
        canvas
    }
}

/// Returns true if most of some recordings are short and keep to a pitch. Longer ones are not read,
/// whatever their length.
fn are_single_notes(recordings: &Recordings) -> anyhow::Result<bool> {
    let every = recordings.indices.len().div_ceil(MEASURED).max(1);
    let (mut voiced, mut single) = (0, 0);
    for &index in recordings.indices.iter().step_by(every) {
        let recording = &recordings.store.recordings()[index];
        let Some(median) = recording.pitch else {
            continue;
        };
        voiced += 1;
        if recordings.store.format().rate.seconds(recording.frames) > NOTE_S {
            continue;
        }
        let features = recordings.store.features(index)?;
        let is_near = |(pitch, _): &(&f32, &f32)| (**pitch - median).abs() <= NOTE_SEMITONES;
        let with_pitch = || {
            features
                .pitch()
                .iter()
                .zip(features.voiced())
                .filter(|(_, voiced)| **voiced > 0.5)
        };
        single += usize::from(
            with_pitch().filter(is_near).count() as f64 >= NOTE_SHARE * with_pitch().count() as f64,
        );
    }
    Ok(2 * single > voiced)
}

/// Returns the name of a note, 60 is C4.
fn note_name(semitone: i32) -> String {
    const NAMES: [&str; 12] = [
        "C", "C#", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B",
    ];
    format!(
        "{}{}",
        NAMES[semitone.rem_euclid(12) as usize],
        semitone.div_euclid(12) - 1
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_told_in_a_line_each() {
        let single = |pitch: f32, level: f32| (pitch, level);
        let points = vec![
            single(58.1, -20.0),
            single(59.0, -22.0),
            single(65.0, -19.0),
            single(65.2, -20.0),
        ];
        let report = DataReport {
            recordings: 4,
            seconds: 40.0,
            voiced: 0.8,
            points,
            are_single_notes: true,
        };
        let text = report.text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "4 recordings, 0.7 minutes; 3 pitches from Bb3 to F4; -22 to -19 dB"
        );
        assert!(
            lines[1].starts_with("no recording between B3 and F4")
                && lines[2].starts_with("one dynamic"),
            "{text}"
        );
        assert!(
            lines[3].starts_with("less than ten minutes") && lines.len() == 4,
            "{text}"
        );
        let rich = (0..24)
            .flat_map(|note| [(48.0 + note as f32, -40.0), (48.0 + note as f32, -18.0)])
            .collect();
        let report = DataReport {
            recordings: 48,
            seconds: 700.0,
            voiced: 0.8,
            points: rich,
            are_single_notes: true,
        };
        assert_eq!(report.text().lines().count(), 1, "{}", report.text());
        // Notes of a pitch that differ by `usual` dB, and by 9 dB at every fifth pitch, as on
        // another string.
        let spread = |usual: f32| {
            let note = |note: usize| {
                [0.0, if note.is_multiple_of(5) { 9.0 } else { usual }].map(|db| (note as f32, db))
            };
            DataReport {
                points: (0..30).flat_map(note).collect(),
                ..report.clone()
            }
        };
        assert!(spread(2.5).has_one_dynamic() && !spread(5.0).has_one_dynamic());
        assert!(
            !DataReport {
                are_single_notes: false,
                ..spread(2.5)
            }
            .has_one_dynamic(),
            "phrases"
        );
        let folder = tempfile::tempdir().expect("a folder");
        let chart = folder.path().join("notes.png");
        report.draw().write_png(&chart).expect("it is written");
        assert!(
            std::fs::read(&chart)
                .expect("a file")
                .starts_with(b"\x89PNG")
        );
        assert!(
            DataReport {
                recordings: 1,
                seconds: 9.0,
                voiced: 0.0,
                points: vec![],
                are_single_notes: false
            }
            .text()
            .contains("no recording has")
        );
    }
}
