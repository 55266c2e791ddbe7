//! Conditions that a generator follows: the position in the bar, if the names of the recordings tell their tempo, their style, if
//! they are in several folders, and knobs for two quantities that are measured in recordings, onsets a second and loudness.
//!
//! A frame is measured with the seconds around it, so that a knob sets a tendency and leaves the moments to the prior.

use std::collections::BTreeSet;

use ondes_engine::pipeline::bars_after;
use tch::{Device, Kind, Tensor};

use crate::data::Features;
use crate::loss::power_spectrum;

/// Length of the surroundings of a frame, seconds.
const SURROUNDINGS_S: f64 = 2.0;
/// Length of the spectra in which onsets are sought and time between them, seconds: of the usual 1024 samples at 44.1 kHz,
/// and half a hop of Böck, Krebs & Schedl, "Evaluating the online capabilities of onset detection methods", ISMIR 2012.
const SPECTRUM_S: f64 = 0.023;
const STEP_S: f64 = 0.005;
/// Compression of amplitudes before they are compared, as a factor within a logarithm of 1 + x.
const COMPRESSION: f64 = 1_000.0;
/// Rise of the compressed spectrum, mean over its bins, that is an onset, besides that of noise: so many times the mean
/// rise around it, within this time to both sides, seconds.
const RISE: f32 = 0.08;
const RISE_OF_NOISE: f32 = 2.0;
const AROUND_S: f64 = 0.1;
/// Time in which an onset is the largest rise, to both sides, seconds.
const ALONE_S: f64 = 0.03;
/// Time before an onset that the spectrum is compared with, seconds.
const BEFORE_S: f64 = 0.02;

/// Returns the tempo in the name of a recording, such as `groove 96bpm.wav` or `96.5 BPM`, beats a minute.
#[must_use]
pub fn tempo_in_name(name: &str) -> Option<f32> {
    let name = name.to_lowercase();
    let before = name[..name.rfind("bpm")?].trim_end_matches([' ', '_', '-']);
    let start = before.rfind(|letter: char| !letter.is_ascii_digit() && letter != '.').map_or(0, |at| at + 1);
    before[start..].parse().ok().filter(|tempo| (20.0..=400.0).contains(tempo))
}

/// Returns the styles of recordings with these paths: the folders that they are in, in order; none if one is in no folder, or all
/// are in the same.
#[must_use]
pub fn styles<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let folders: Option<BTreeSet<&str>> = names.map(|name| name.split_once('/').map(|(folder, _)| folder)).collect();
    let several = folders.filter(|folders| folders.len() > 1).unwrap_or_default();
    several.into_iter().map(ToOwned::to_owned).collect()
}

/// Tempo and style of a recording, as its path tells them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Named {
    /// Tempo, beats a minute.
    pub tempo: Option<f32>,
    /// Index of the style.
    pub style: Option<usize>,
}

impl Named {
    /// Reads a path, of recordings with these [`styles`].
    #[must_use]
    pub fn new(name: &str, styles: &[String]) -> Self {
        let folder = name.split('/').next().unwrap_or_default();
        Self { tempo: tempo_in_name(name), style: styles.iter().position(|style| style == folder) }
    }
}

/// Returns the position in four bars, 0 to 4, after some seconds at a tempo in beats a minute; as the player computes it.
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

    /// Tells whether a knob sets what is measured in the sound.
    #[must_use]
    pub fn is_heard(self) -> bool {
        matches!(self, Self::Density | Self::Loudness)
    }

    /// Measures a recording; one value for each of its frames. Bars are those of a recording that begins with one and whose
    /// tempo is known, `late` samples before a frame begins.
    #[must_use]
    pub fn measure(self, recording: &Features, named: Named, late: usize) -> Vec<f32> {
        let rate = recording.rate;
        let frames = recording.frames();
        let around = (SURROUNDINGS_S * f64::from(rate.sample_rate) / rate.hop as f64) as usize;
        match self {
            Self::Density => {
                let mut counts = vec![0.0_f32; frames];
                for onset in onsets(recording.audio(), f64::from(rate.sample_rate)) {
                    counts[(onset / rate.hop).min(frames - 1)] += 1.0;
                }
                // Beyond the ends it goes on as within.
                let per_second = rate.sample_rate as f32 / rate.hop as f32;
                means_around(&counts, around).map(|mean| mean * per_second).collect()
            }
            Self::Loudness => {
                let powers: Vec<f32> = recording.loudness().iter().map(|db| 10.0_f32.powf(db / 10.0)).collect();
                means_around(&powers, around).map(|power| 10.0 * power.log10()).collect()
            }
            Self::Bars => {
                let tempo = f64::from(named.tempo.unwrap_or(0.0));
                let seconds = |frame: usize| ((frame * rate.hop) as f64 - late as f64) / f64::from(rate.sample_rate);
                (0..frames).map(|frame| bars(seconds(frame), tempo)).collect()
            }
            Self::Style => vec![named.style.unwrap_or(0) as f32; frames],
        }
    }
}

/// Returns the mean of each value and those around it, within the ends.
fn means_around(values: &[f32], around: usize) -> impl Iterator<Item = f32> {
    let mut sums = vec![0.0_f64];
    values.iter().for_each(|value| sums.push(sums[sums.len() - 1] + f64::from(*value)));
    let count = values.len();
    (0..count).map(move |index| {
        let (first, end) = (index.saturating_sub(around / 2), (index + around / 2 + 1).min(count));
        ((sums[end] - sums[first]) / (end - first) as f64) as f32
    })
}

/// Returns the samples at which sounds begin: where the spectrum rises most (Böck & Widmer, "Maximum filter vibrato
/// suppression for onset detection", DAFx 2013, without the filter).
#[must_use]
pub fn onsets(sound: &[f32], sample_rate: f64) -> Vec<usize> {
    let samples = |seconds: f64| (seconds * sample_rate).round().max(1.0) as i64;
    let (length, step) = (samples(SPECTRUM_S), samples(STEP_S));
    let steps = |seconds: f64| (seconds / STEP_S).round() as usize;
    let window = Tensor::hann_window(length, (Kind::Float, Device::Cpu));
    let padded = Tensor::from_slice(sound).view([1, -1]).constant_pad_nd([length, 0]);
    let amplitudes = power_spectrum(&padded, length, step, &window).squeeze_dim(0).sqrt() * (2.0 / length as f64);
    let spectrum = (amplitudes * COMPRESSION).log1p();
    let (frames, before) = (spectrum.size()[1], steps(BEFORE_S) as i64);
    if frames <= before {
        return Vec::new();
    }
    let rise = spectrum.narrow(1, before, frames - before) - spectrum.narrow(1, 0, frames - before);
    let rise = rise.clamp_min(0.0).mean_dim([0_i64].as_slice(), false, Kind::Float);
    let rise = Vec::<f32>::try_from(&rise).expect("a vector of numbers");
    let usual: Vec<f32> = means_around(&rise, 2 * steps(AROUND_S)).collect();
    let alone = steps(ALONE_S);
    let is_onset = |&index: &usize| {
        let (first, end) = (index.saturating_sub(alone), (index + alone + 1).min(rise.len()));
        let is_first_largest = rise[first..index].iter().all(|other| *other < rise[index])
            && rise[index..end].iter().all(|other| *other <= rise[index]);
        rise[index] > RISE + RISE_OF_NOISE * usual[index] && is_first_largest
    };
    let begins = |index: usize| ((index as i64 + before) * step - length / 2).clamp(0, sound.len() as i64 - 1) as usize;
    (0..rise.len()).filter(is_onset).map(begins).collect()
}
