//! Tunings of the keys, from files of Scala.
//!
//! Scala's own rules (<https://www.huygens-fokker.org/scala/scl_format.html>,
//! `…/help.htm#mappings`) are simple, and its archive of scales does not always keep them, so that
//! this reader is lenient: descriptions may be empty and in any encoding, and further lines are
//! ignored.

use super::event::EventKind;
use crate::files;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Number of keys.
const KEYS: usize = 128;
/// Largest file; those of the archive have up to 50 kB.
const MAX_BYTES: u64 = 1 << 20;
/// Most notes of a scale.
const MAX_NOTES: usize = 10_000;
/// Pitches of notes in semitones, beyond what can be heard.
const PITCH_RANGE: std::ops::RangeInclusive<f64> = -60.0..=168.0;
/// Key, and pitch in Hz, of a scale's first note without a keyboard map: middle C.
const MIDDLE_C: (i64, f64) = (60, 261.625_565_300_598_6);

/// Pitch of each key.
///
/// # Examples
/// ```
/// use ondes_engine::instrument::KeyTuning;
///
/// let pythagorean = "! fifth.scl\n!\nFifths and octaves\n 2\n!\n 3/2\n 1200.0\n";
/// let tuning = KeyTuning::parse(pythagorean.as_bytes(), None)?;
/// assert_eq!(tuning.pitch(62), Some(72.0));
/// assert!((tuning.pitch(61).unwrap() - 67.01955).abs() < 1e-4);
/// # Ok::<(), ondes_engine::instrument::ScaleError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyTuning([Option<f32>; KEYS]);

/// Error in a file of Scala, with its path.
#[derive(Debug, Error)]
#[error("{}: {reason}", path.display())]
pub struct ScaleFileError {
    /// Path of the file.
    pub path: PathBuf,
    /// Reason.
    #[source]
    pub reason: ScaleError,
}

/// Error in the content of a scale or a keyboard map.
#[derive(Debug, Error)]
pub enum ScaleError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The file ends too early.
    #[error("not a {format}: {missing} is missing")]
    Missing {
        /// Expected kind of file.
        format: &'static str,
        /// Missing part.
        missing: &'static str,
    },
    /// A line has another content.
    #[error("line {line}: {found:?} is not {expected}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// Its content, shortened.
        found: String,
        /// Expected content.
        expected: &'static str,
    },
    /// There are fewer notes than stated.
    #[error("the scale has {found} notes, not the {stated} that it states")]
    Notes {
        /// Number of notes.
        found: usize,
        /// Stated number.
        stated: usize,
    },
    /// The key whose frequency is given has no note of the scale.
    #[error("key {0}, whose frequency is given, is not mapped to a note")]
    UnmappedReference(i64),
}

impl Default for KeyTuning {
    /// Returns equal temperament with A4 at 440 Hz.
    fn default() -> Self {
        Self(std::array::from_fn(|key| Some(key as f32)))
    }
}

impl KeyTuning {
    /// Reads a scale (`.scl`) and a keyboard map (`.kbm`). Without a map, middle C has its usual
    /// pitch and the scale's first note.
    ///
    /// # Errors
    /// Returns [`ScaleFileError`] with the path of the file that cannot be read.
    pub fn read(scale: &Path, keyboard_map: Option<&Path>) -> Result<Self, ScaleFileError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |reason: ScaleError| ScaleFileError { path, reason }
        };
        let read = |path: &Path| {
            files::read(path, MAX_BYTES)
                .map_err(ScaleError::from)
                .map_err(at(path))
        };
        let notes = Scale::parse(&read(scale)?).map_err(at(scale))?;
        match keyboard_map {
            Some(path) => {
                let map = KeyboardMap::parse(&read(path)?).map_err(at(path))?;
                notes.tune(&map).map_err(at(path))
            }
            None => notes.tune(&KeyboardMap::default()).map_err(at(scale)),
        }
    }

    /// Parses the content of a scale and of a keyboard map.
    ///
    /// # Errors
    /// Returns [`ScaleError`] if one of them is invalid.
    pub fn parse(scale: &[u8], keyboard_map: Option<&[u8]>) -> Result<Self, ScaleError> {
        let map = keyboard_map.map_or(Ok(KeyboardMap::default()), KeyboardMap::parse)?;
        Scale::parse(scale)?.tune(&map)
    }

    /// Returns the pitch of a key in semitones, 69 for 440 Hz; `None` if the key is silent.
    #[must_use]
    pub fn pitch(&self, key: u8) -> Option<f32> {
        self.0[usize::from(key & 127)]
    }

    /// Iterates over the events that tune an instrument.
    pub fn events(&self) -> impl Iterator<Item = EventKind> + '_ {
        (0..)
            .zip(self.0)
            .map(|(key, pitch)| EventKind::KeyPitch { key, pitch })
    }
}

/// Notes of a scale above the first, in cents; the last one is the octave, or what repeats instead.
struct Scale(Vec<f64>);

impl Scale {
    fn parse(text: &[u8]) -> Result<Self, ScaleError> {
        const FORMAT: &str = "Scala scale";
        let text = String::from_utf8_lossy(text);
        let mut lines = Lines::new(&text, FORMAT);
        // The description may be empty.
        lines.next_line("its description")?;
        let stated = lines.number(
            "its number of notes",
            "a number of notes",
            |count: usize| (1..=MAX_NOTES).contains(&count),
        )?;
        let mut notes = Vec::with_capacity(stated);
        while notes.len() < stated {
            let Some((line, content)) = lines.next_content() else {
                return Err(ScaleError::Notes {
                    found: notes.len(),
                    stated,
                });
            };
            let expected = "a ratio, such as 3/2, or cents, such as 701.955";
            notes.push(parse_interval(content).ok_or_else(|| invalid(line, content, expected))?);
        }
        Ok(Self(notes))
    }

    /// Returns a note in cents above the first.
    fn cents(&self, degree: i64) -> f64 {
        let count = self.0.len() as i64;
        let period = self.0.last().copied().unwrap_or_default();
        let above = match degree.rem_euclid(count) {
            0 => 0.0,
            note => self.0[note as usize - 1],
        };
        degree.div_euclid(count) as f64 * period + above
    }

    fn tune(&self, map: &KeyboardMap) -> Result<KeyTuning, ScaleError> {
        let (reference, frequency_hz) = map.reference;
        let cents = |key: i64| {
            map.degree(key, self.0.len())
                .map(|degree| self.cents(degree))
        };
        let reference_cents = cents(reference).ok_or(ScaleError::UnmappedReference(reference))?;
        let reference_pitch = 69.0 + 12.0 * (frequency_hz / 440.0).log2();
        let pitch = |key: usize| {
            let number = key as i64;
            if !map.keys.contains(&number) {
                return Some(key as f32);
            }
            let pitch = reference_pitch + (cents(number)? - reference_cents) / 100.0;
            PITCH_RANGE.contains(&pitch).then_some(pitch as f32)
        };
        Ok(KeyTuning(std::array::from_fn(pitch)))
    }
}

/// Notes of the keys.
struct KeyboardMap {
    /// Keys that are tuned; others keep their usual pitch.
    keys: std::ops::RangeInclusive<i64>,
    /// Key of the scale's first note.
    middle: i64,
    /// Key whose frequency is given, and that in Hz.
    reference: (i64, f64),
    /// Note of the scale at which the map repeats; 0 for that at which the scale does.
    octave: i64,
    /// Notes of the keys from the middle one on, which repeat; none means one after the other.
    notes: Vec<Option<i64>>,
}

impl Default for KeyboardMap {
    fn default() -> Self {
        Self {
            keys: 0..=127,
            middle: MIDDLE_C.0,
            reference: MIDDLE_C,
            octave: 0,
            notes: Vec::new(),
        }
    }
}

impl KeyboardMap {
    fn parse(text: &[u8]) -> Result<Self, ScaleError> {
        const FORMAT: &str = "keyboard map of Scala";
        let text = String::from_utf8_lossy(text);
        let mut lines = Lines::new(&text, FORMAT);
        let is_key = |key: i64| (0..=127).contains(&key);
        let size = lines.number("its size", "a size of a map", |size: usize| {
            size <= MAX_NOTES
        })?;
        let first = lines.number("its first key", "a key", is_key)?;
        let last = lines.number("its last key", "a key", is_key)?;
        let middle = lines.number("its middle key", "a key", |key: i64| {
            key.unsigned_abs() < 1_000
        })?;
        let reference = lines.number("its reference key", "a key", |key: i64| {
            key.unsigned_abs() < 1_000
        })?;
        let frequency_hz = lines.number(
            "the frequency of its reference key",
            "a frequency in Hz",
            |hz: f64| hz > 0.0 && hz < 1e6,
        )?;
        let octave = match lines.next_content() {
            // Some maps end before it, which matters only to those that are not empty.
            None if size == 0 => 0,
            None => return Err(lines.missing("its octave")),
            Some((line, content)) => {
                let octave = first_word(content)
                    .parse()
                    .ok()
                    .filter(|octave: &i64| octave.unsigned_abs() < 100_000);
                octave.ok_or_else(|| invalid(line, content, "a note of the scale"))?
            }
        };
        let mut notes = Vec::with_capacity(size);
        while notes.len() < size {
            // Missing lines are keys without a note.
            let Some((line, content)) = lines.next_content() else {
                break;
            };
            notes.push(match first_word(content) {
                "x" | "X" => None,
                note => {
                    let note = note
                        .parse()
                        .ok()
                        .filter(|note: &i64| note.unsigned_abs() < 100_000);
                    Some(note.ok_or_else(|| invalid(line, content, "a note of the scale, or x"))?)
                }
            });
        }
        notes.resize(size, None);
        Ok(Self {
            keys: first..=last,
            middle,
            reference: (reference, frequency_hz),
            octave,
            notes,
        })
    }

    /// Returns the note of a key in a scale of `count` notes; `None` if it has none.
    fn degree(&self, key: i64, count: usize) -> Option<i64> {
        let steps = key - self.middle;
        if self.notes.is_empty() {
            return Some(steps);
        }
        let size = self.notes.len() as i64;
        let octave = if self.octave == 0 {
            count as i64
        } else {
            self.octave
        };
        Some(self.notes[steps.rem_euclid(size) as usize]? + steps.div_euclid(size) * octave)
    }
}

/// Lines of a file without comments.
struct Lines<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    format: &'static str,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str, format: &'static str) -> Self {
        Self {
            lines: text.trim_start_matches('\u{FEFF}').lines().enumerate(),
            format,
        }
    }

    fn missing(&self, missing: &'static str) -> ScaleError {
        ScaleError::Missing {
            format: self.format,
            missing,
        }
    }

    /// Returns the next line, which may be empty, with its number.
    fn next_line(&mut self, missing: &'static str) -> Result<(usize, &'a str), ScaleError> {
        let next = self.lines.find(|(_, line)| !line.starts_with('!'));
        next.map(|(index, line)| (index + 1, line.trim()))
            .ok_or(self.missing(missing))
    }

    /// Returns the next line that is not empty.
    fn next_content(&mut self) -> Option<(usize, &'a str)> {
        let mut lines = std::iter::from_fn(|| self.next_line("").ok());
        lines.find(|(_, line)| !line.is_empty())
    }

    /// Parses the next line that is not empty.
    fn number<T: std::str::FromStr + Copy>(
        &mut self,
        missing: &'static str,
        expected: &'static str,
        is_valid: impl Fn(T) -> bool,
    ) -> Result<T, ScaleError> {
        let (line, content) = self.next_content().ok_or(self.missing(missing))?;
        let number = first_word(content)
            .parse()
            .ok()
            .filter(|number| is_valid(*number));
        number.ok_or_else(|| invalid(line, content, expected))
    }
}

fn first_word(line: &str) -> &str {
    line.split_whitespace().next().unwrap_or_default()
}

fn invalid(line: usize, content: &str, expected: &'static str) -> ScaleError {
    ScaleError::Line {
        line,
        found: content
            .chars()
            .filter(|c| !c.is_control())
            .take(40)
            .collect(),
        expected,
    }
}

/// Parses an interval, a ratio or, with a point, cents; text may follow. Returns cents.
fn parse_interval(line: &str) -> Option<f64> {
    let is_part =
        |c: char| matches!(c, '0'..='9' | '.' | '/' | '+' | '-') || c.is_ascii_whitespace();
    let number = &line[..line.find(|c| !is_part(c)).unwrap_or(line.len())];
    let cents = match number.split_once('/') {
        Some((above, below)) => {
            let above: f64 = above.trim().parse().ok()?;
            let below: f64 = first_word(below).parse().ok()?;
            1_200.0 * (above / below).log2()
        }
        None => match first_word(number) {
            word if word.contains('.') => word.parse().ok()?,
            word => 1_200.0 * word.parse::<f64>().ok()?.log2(),
        },
    };
    (cents.abs() < 1e6).then_some(cents)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEANTONE: &str = "! meanquar.scl\n!\n1/4-comma meantone scale. Pietro Aaron's temperament (1523)\n 12\n!\n \
        76.04900\n 193.15686\n 310.26471\n 5/4\n 503.42157\n 579.47057\n 696.57843\n 25/16\n 889.73529\n 1006.84314\n \
        1082.89214\n 2/1\n";

    fn pitch(tuning: &KeyTuning, key: u8) -> f64 {
        f64::from(tuning.pitch(key).expect("a mapped key"))
    }

    #[test]
    fn a_scale_begins_at_middle_c() {
        let tuning = KeyTuning::parse(MEANTONE.as_bytes(), None).unwrap();
        assert!((pitch(&tuning, 60) - 60.0).abs() < 1e-5);
        assert!((pitch(&tuning, 64) - 63.863_137).abs() < 1e-5);
        assert!((pitch(&tuning, 67) - 66.965_784_3).abs() < 1e-5);
        assert!((pitch(&tuning, 48) - 48.0).abs() < 1e-5);
        assert!((pitch(&tuning, 59) - 58.828_921_4).abs() < 1e-5);
        let equal = KeyTuning::parse(b"\n1\n100.", None).unwrap();
        assert!((0..128).all(|key| (equal.pitch(key).unwrap() - f32::from(key)).abs() < 1e-4));
        assert_eq!(KeyTuning::default().pitch(69), Some(69.0));
    }

    #[test]
    fn a_map_places_the_scale() {
        // Only white keys, A4 at 432 Hz.
        let map = "! white.kbm\n12\n0\n120\n60\n69\n432.0\n7\n0\nx\n1\nx\n2\n3\nx\n4\nx\n5\nx\n6\n";
        let just = "Just\n7\n9/8\n5/4\n4/3\n3/2\n5/3\n15/8\n2\n";
        let tuning = KeyTuning::parse(just.as_bytes(), Some(map.as_bytes())).unwrap();
        assert!((pitch(&tuning, 69) - 68.682_337).abs() < 1e-4);
        assert!((pitch(&tuning, 81) - 80.682_337).abs() < 1e-4);
        assert!((pitch(&tuning, 60) - (68.682_337 - 8.843_587)).abs() < 1e-4);
        assert_eq!(tuning.pitch(61), None);
        assert_eq!(
            tuning.pitch(121),
            Some(121.0),
            "keys that are not tuned keep their pitch"
        );
        // No map, one note a key, as in the default of Scala.
        let linear = "0\n0\n127\n69\n69\n440\n0\n";
        let tuning = KeyTuning::parse(MEANTONE.as_bytes(), Some(linear.as_bytes())).unwrap();
        assert!((pitch(&tuning, 69) - 69.0).abs() < 1e-5);
        assert!((pitch(&tuning, 73) - (69.0 + 3.863_137)).abs() < 1e-5);
    }

    #[test]
    fn files_of_the_archive_are_read() {
        let latin =
            b"! \xe9.scl\r\n!\r\n\r\n 3\r\n!\r\n 3 / 2 (fifth)\r\n 4294967297/3000000000 E\\\r\n-5.0\r\n 7/4\r\n";
        let tuning = KeyTuning::parse(latin, None).unwrap();
        assert!((pitch(&tuning, 61) - 67.019_55).abs() < 1e-4);
        assert!((pitch(&tuning, 62) - 66.211_97).abs() < 1e-3);
        assert!((pitch(&tuning, 63) - 59.95).abs() < 1e-4);
    }

    #[test]
    fn errors_name_the_line() {
        let error = |scale: &str, map: Option<&str>| {
            KeyTuning::parse(scale.as_bytes(), map.map(str::as_bytes))
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            error("", None),
            "not a Scala scale: its description is missing"
        );
        assert_eq!(
            error("a\n", None),
            "not a Scala scale: its number of notes is missing"
        );
        assert_eq!(
            error("a\nb\n", None),
            "line 2: \"b\" is not a number of notes"
        );
        assert_eq!(
            error("a\n0\n", None),
            "line 2: \"0\" is not a number of notes"
        );
        assert_eq!(
            error("a\n2\n3/2\n", None),
            "the scale has 1 notes, not the 2 that it states"
        );
        for bad in ["fifth", "3/0", "-3/2", "0", "1/", "..", "nan"] {
            let expected = "is not a ratio, such as 3/2, or cents, such as 701.955";
            assert_eq!(
                error(&format!("a\n1\n{bad}\n"), None),
                format!("line 3: {bad:?} {expected}")
            );
        }
        let map = Some("1\n0\n127\n60\n61\n440.0\n2\nx\n");
        assert_eq!(
            error(MEANTONE, map),
            "key 61, whose frequency is given, is not mapped to a note"
        );
        assert_eq!(
            error(MEANTONE, Some("0\n0\n127\n60\n")),
            "not a keyboard map of Scala: its reference key is missing"
        );
        assert_eq!(
            error(MEANTONE, Some("0\n0\n128\n")),
            "line 3: \"128\" is not a key"
        );
    }
}
