//! Audio files. All hold the same signal, and their answers say where in the file it is.

use std::f64::consts::TAU;
use std::path::{Path, PathBuf};

use ondes_engine::media::Decoder;
use serde_json::{Value, json};

/// Largest delay that is looked for, frames.
const MAX_DELAY: i64 = 3_000;
/// Largest error of a signal that is still the right one, dB: half of its level.
const MAX_ERROR_DB: f64 = -6.0;
/// Least distance of a file's error to that of another reader to call them different, dB.
const SAME_ERROR_DB: f64 = 3.0;

/// Right answer for a file.
#[derive(Debug)]
pub struct Answer {
    /// Name of the file.
    pub file: String,
    /// Oddity.
    pub what: String,
    /// Expected result of reading it.
    pub expected: Expected,
}

/// Expected result of reading a file.
#[derive(Debug)]
pub enum Expected {
    /// Sound.
    Sound(Signal),
    /// An error with this text.
    Refused(String),
}

/// The signal in a file.
#[derive(Debug, Clone)]
pub struct Signal {
    /// Sample rate, Hz.
    pub rate: u32,
    /// Number of channels.
    pub channels: usize,
    /// Length of the sound, frames.
    pub frames: usize,
    /// Frames before the signal.
    pub delay: usize,
    /// Length of the signal, frames.
    length: usize,
    /// Times that it is repeated.
    repeats: usize,
    /// Largest error, dB of the signal's level.
    pub error_db: f64,
}

/// Sound as a reader decodes it.
pub struct Sound {
    /// Sample rate, Hz.
    pub rate: u32,
    /// Samples, `[channel][frame]`.
    pub channels: Vec<Vec<f32>>,
    /// The reader warned of an early end or of invalid samples.
    pub warned: bool,
}

/// Comparison of a sound with the signal that it should be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Sample rate, Hz.
    pub rate: u32,
    /// Number of channels.
    pub channels: usize,
    /// Length, frames.
    pub frames: usize,
    /// Frames before the signal; negative if its start is missing.
    pub delay: i64,
    /// Error, dB of the signal's level.
    pub error_db: f64,
}

/// Reads the answers beside the files of a folder.
///
/// # Panics
/// If they are missing or not valid.
#[must_use]
pub fn answers(folder: &Path) -> Vec<Answer> {
    super::answers::<Value>(folder).iter().map(answer).collect()
}

fn answer(entry: &Value) -> Answer {
    let text = |key: &str| entry[key].as_str().map(str::to_owned);
    let number = |key: &str| entry[key].as_u64().map(|number| number as usize);
    let file = text("file").expect("an answer names its file");
    let expected = text("refused").map_or_else(
        || {
            let (frames, delay) = (
                number("frames").expect("frames"),
                number("delay").unwrap_or(0),
            );
            let repeats = number("repeats").unwrap_or(1);
            Expected::Sound(Signal {
                rate: number("rate").expect("a rate") as u32,
                channels: number("channels").expect("channels"),
                frames,
                delay,
                length: number("signal").unwrap_or((frames - delay) / repeats),
                repeats,
                error_db: entry["error_db"].as_f64().expect("an error"),
            })
        },
        Expected::Refused,
    );
    Answer {
        file,
        what: text("what").expect("an answer says what is odd"),
        expected,
    }
}

/// Decodes a file with Ondes.
///
/// # Errors
/// Returns the message of the decoder.
pub fn decode(path: &Path) -> Result<Sound, String> {
    let mut decoder = Decoder::open(path).map_err(|error| error.to_string())?;
    let mut channels = vec![Vec::new(); decoder.channels()];
    let mut block = Vec::new();
    while decoder
        .next(&mut block)
        .map_err(|error| error.to_string())?
    {
        channels
            .iter_mut()
            .zip(&block)
            .for_each(|(all, block)| all.extend_from_slice(block));
    }
    let warned = decoder.truncated() || decoder.replaced() > 0;
    Ok(Sound {
        rate: decoder.sample_rate(),
        channels,
        warned,
    })
}

impl Signal {
    /// Returns a channel of the signal: a swept sine, higher and softer channel by channel.
    fn channel(&self, channel: usize) -> Vec<f64> {
        let sample = |n: usize| {
            let time = (n % self.length) as f64 / f64::from(self.rate);
            let phase = 300.0 * (1.0 + channel as f64 / 3.0) * time + 2_000.0 * time * time;
            0.6 / (1.0 + channel as f64 / 4.0) * (TAU * phase).sin()
        };
        (0..self.length * self.repeats).map(sample).collect()
    }

    /// Finds the signal in a sound.
    #[must_use]
    pub fn measure(&self, sound: &Sound) -> Measured {
        let reference: Vec<Vec<f64>> = (0..sound.channels.len())
            .map(|channel| self.channel(channel))
            .collect();
        let error = |delay: i64| error_db(&sound.channels, &reference, delay);
        let expected = (self.delay as i64, error(self.delay as i64));
        let (delay, error_db) = if expected.1 <= MAX_ERROR_DB {
            expected
        } else {
            let all = (-MAX_DELAY..=MAX_DELAY).map(|delay| (delay, error(delay)));
            all.fold(
                expected,
                |best, next| if next.1 < best.1 { next } else { best },
            )
        };
        let frames = sound.channels.first().map_or(0, Vec::len);
        Measured {
            rate: sound.rate,
            channels: sound.channels.len(),
            frames,
            delay,
            error_db,
        }
    }

    /// Checks a sound.
    ///
    /// # Errors
    /// Says what differs.
    pub fn check(&self, found: Measured) -> Result<(), String> {
        let expected = (self.rate, self.channels, self.frames, self.delay as i64);
        let similar = (found.rate, found.channels, found.frames, found.delay) == expected;
        if similar && found.error_db <= self.error_db {
            return Ok(());
        }
        Err(format!(
            "{found:?}; expected (rate, channels, frames, delay) {expected:?} within {} dB",
            self.error_db
        ))
    }
}

/// Returns the level of the difference, dB of the reference's; 0 dB or more if they have nothing in
/// common.
fn error_db(sound: &[Vec<f32>], reference: &[Vec<f64>], delay: i64) -> f64 {
    let (mut difference, mut level) = (0.0, 0.0);
    for (sound, reference) in sound.iter().zip(reference) {
        for (n, expected) in (delay..).zip(reference) {
            let found = usize::try_from(n)
                .ok()
                .and_then(|n| sound.get(n))
                .copied()
                .unwrap_or(0.0);
            difference += (f64::from(found) - expected).powi(2);
            level += expected.powi(2);
        }
    }
    if level == 0.0 || !difference.is_finite() {
        0.0
    } else {
        10.0 * (difference / level).max(1e-20).log10()
    }
}

/// Reads a file as Ondes and, from sounds that other programs have decoded into WAV files, as these
/// do; returns a line of the table as JSON: name, oddity and what each reader makes of it.
#[must_use]
pub fn compare(folder: &Path, answer: &Answer, others: &[PathBuf]) -> Value {
    let read = |path: &Path| decode(path).map(|sound| (sound.warned, sound));
    let ours = read(&folder.join(&answer.file));
    let (expected, mut readers) = match &answer.expected {
        Expected::Refused(_) => (
            None,
            vec![ours.map_or_else(
                |message| json!(super::refusal(&message)),
                |_| json!("plays"),
            )],
        ),
        Expected::Sound(signal) => {
            let text = ours.map_or_else(
                |message| json!(super::refusal(&message)),
                |(warned, sound)| {
                    let found = signal.measure(&sound);
                    json!(format!(
                        "{}{}",
                        describe(signal, found),
                        if warned { ", with a warning" } else { "" }
                    ))
                },
            );
            (Some(signal), vec![text])
        }
    };
    readers.extend(others.iter().map(|path| match (read(path), expected) {
        (Err(_), _) => json!("refuses"),
        (Ok((_, sound)), Some(signal)) => json!(describe(signal, signal.measure(&sound))),
        (Ok(_), None) => json!("plays"),
    }));
    json!({ "file": answer.file, "what": answer.what, "readers": readers })
}

/// Describes a sound: `exact`, or what differs from the answer.
fn describe(signal: &Signal, found: Measured) -> String {
    let mut words = Vec::new();
    if found.error_db > MAX_ERROR_DB.max(signal.error_db) {
        return "wrong sound".to_owned();
    }
    if found.rate != signal.rate {
        words.push(format!("{} Hz", found.rate));
    }
    if found.channels != signal.channels {
        words.push(format!("{} channels", found.channels));
    }
    if found.delay != 0 {
        words.push(format!("{} late", found.delay));
    }
    match found.frames as i64
        - (signal.delay + signal.length * signal.repeats) as i64
        - (found.delay - signal.delay as i64)
    {
        0 => (),
        more @ 1.. => words.push(format!("{more} more")),
        less => words.push(format!("{} fewer", -less)),
    }
    if found.error_db > signal.error_db + SAME_ERROR_DB {
        words.push(format!("error {:.0} dB", found.error_db));
    }
    if words.is_empty() {
        "exact".to_owned()
    } else {
        words.join(", ")
    }
}
