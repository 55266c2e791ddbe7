//! Conditions that a generator follows: the position in the bar, if the names of the recordings
//! tell their tempo, their style, if they are in several folders, and knobs for two quantities that
//! are measured in recordings, onsets a second and loudness.
//!
//! Measurements are smoothed over some seconds, so that a knob sets a tendency and leaves single
//! events to the prior.

use std::collections::BTreeSet;

use ondes_engine::dsp::level::moving_mean;
use ondes_engine::dsp::onsets::onsets;
use ondes_engine::pipeline::bars_after;

use crate::data::Features;

/// Length of the window that measurements are smoothed with, seconds.
const SMOOTHING_S: f64 = 2.0;

/// Returns the tempo in the name of a recording, such as `groove 96bpm.wav` or `96.5 BPM`, beats a
/// minute.
#[must_use]
pub fn tempo_in_path(name: &str) -> Option<f32> {
    let name = name.to_lowercase();
    let before = name[..name.rfind("bpm")?].trim_end_matches([' ', '_', '-']);
    let start = before
        .rfind(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .map_or(0, |at| at + 1);
    before[start..]
        .parse()
        .ok()
        .filter(|tempo| (20.0..=400.0).contains(tempo))
}

/// Returns the styles of recordings with these paths: the names of their folders, sorted. Empty if
/// a recording is in no folder, or all are in one.
#[must_use]
pub fn styles<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let folders: Option<BTreeSet<&str>> = names
        .map(|name| name.split_once('/').map(|(folder, _)| folder))
        .collect();
    let several = folders
        .filter(|folders| folders.len() > 1)
        .unwrap_or_default();
    several.into_iter().map(ToOwned::to_owned).collect()
}

/// Tempo and style of a recording, parsed from its path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathInfo {
    /// Tempo, beats a minute.
    pub tempo: Option<f32>,
    /// Index of the style.
    pub style: Option<usize>,
}

impl PathInfo {
    /// Parses a path; `styles` are those of all recordings.
    #[must_use]
    pub fn new(name: &str, styles: &[String]) -> Self {
        let folder = name.split('/').next().unwrap_or_default();
        Self {
            tempo: tempo_in_path(name),
            style: styles.iter().position(|style| style == folder),
        }
    }
}

/// Returns the position in four bars, 0 to 4, after some seconds at a tempo in beats a minute, as
/// the player does.
#[must_use]
pub fn bars(seconds: f64, tempo: f64) -> f32 {
    bars_after(seconds * tempo / 60.0)
}

/// A condition that a prior may depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Onsets a second.
    Density,
    /// A-weighted level, dB.
    Loudness,
    /// Position in four bars of four beats, 0 to 4.
    Bars,
    /// Index of the style.
    Style,
}

impl Condition {
    /// All conditions.
    pub const ALL: [Self; 4] = [Self::Density, Self::Loudness, Self::Bars, Self::Style];

    /// Returns the name of the port.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Density => "density",
            Self::Loudness => "loudness",
            Self::Bars => "bars",
            Self::Style => "style",
        }
    }

    /// Returns the name of the control.
    #[must_use]
    pub fn control(self) -> &'static str {
        match self {
            Self::Bars => "tempo",
            _ => self.name(),
        }
    }

    /// Returns the unit of the control.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Density => "onsets/s",
            Self::Loudness => "dB",
            Self::Bars => "BPM",
            Self::Style => "",
        }
    }

    /// Returns the description of the control.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Density => "How many sounds begin in a second.",
            Self::Loudness => "How loud the model plays.",
            Self::Bars => "Tempo of the bars; the tempo of the host's song replaces it.",
            Self::Style => "Which of the learnt styles the model plays",
        }
    }

    /// Tells whether the condition is measured in the sound.
    #[must_use]
    pub fn is_measured_in_sound(self) -> bool {
        matches!(self, Self::Density | Self::Loudness)
    }

    /// Measures a recording, one value per frame. Positions in bars are those `late` samples before
    /// each frame, of a recording of known tempo that begins with a bar.
    #[must_use]
    pub fn measure(self, recording: &Features, named: PathInfo, late: usize) -> Vec<f32> {
        let rate = recording.rate;
        let frames = recording.frames();
        let around = (SMOOTHING_S * f64::from(rate.sample_rate) / rate.hop as f64) as usize;
        match self {
            Self::Density => {
                let mut counts = vec![0.0_f32; frames];
                for onset in onsets(recording.audio(), f64::from(rate.sample_rate)) {
                    counts[(onset / rate.hop).min(frames - 1)] += 1.0;
                }
                let per_second = rate.sample_rate as f32 / rate.hop as f32;
                moving_mean(&counts, around)
                    .map(|mean| mean * per_second)
                    .collect()
            }
            Self::Loudness => {
                let powers: Vec<f32> = recording
                    .loudness()
                    .iter()
                    .map(|db| 10.0_f32.powf(db / 10.0))
                    .collect();
                moving_mean(&powers, around)
                    .map(|power| 10.0 * power.log10())
                    .collect()
            }
            Self::Bars => {
                let tempo = f64::from(named.tempo.unwrap_or(0.0));
                let seconds = |frame: usize| {
                    ((frame * rate.hop) as f64 - late as f64) / f64::from(rate.sample_rate)
                };
                (0..frames)
                    .map(|frame| bars(seconds(frame), tempo))
                    .collect()
            }
            Self::Style => vec![named.style.unwrap_or(0) as f32; frames],
        }
    }
}

/// Mean and standard deviation of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Mean.
    pub mean: f32,
    /// Standard deviation, above 0.
    pub deviation: f32,
}

impl Spread {
    /// Mean 0 and deviation 1.
    pub const UNIT: Self = Self {
        mean: 0.0,
        deviation: 1.0,
    };
}

/// Condition, and its values in the recordings.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredCondition {
    /// Measured quantity.
    pub condition: Condition,
    /// Mean and deviation.
    pub spread: Spread,
    /// Range of the knob.
    pub range: (f32, f32),
    /// Names of its positions, if it has some.
    pub names: Vec<String>,
}
