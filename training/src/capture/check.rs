//! What is wrong with a pair, told so that whoever recorded it knows what to do.

use ondes_engine::dsp::level::peak;

use super::align::Alignment;
use super::measure::rms_db;

/// Shortest pair that can be learnt from and shortest that does well, seconds.
const SHORTEST_S: f64 = 2.0;
const SHORT_S: f64 = 60.0;
/// A sample at least this large is at full scale; so many of them in a row are clipped.
const FULL_SCALE: f32 = 0.9995;
const CLIPPED_IN_A_ROW: usize = 3;
/// Share of clipped samples that stops.
const CLIPPED_SHARE: f64 = 1e-3;
/// A peak below this is silence.
const SILENT: f32 = 1e-4;
/// Noise this much below the sound is heard as noise of the capture, dB.
const NOISE_DB: f64 = -40.0;
/// Drift that stops, samples.
const DRIFT: f64 = 3.0;
/// Likeness below which the two have nothing to do with one another.
const STRANGERS: f64 = 0.03;
/// A hole in the recording: so many samples of nothing between sound.
const HOLE: usize = 32;
const HOLE_EDGE: f32 = 0.01;
/// Difference of lengths that is worth a word, seconds, and share of the signal that must have been recorded.
const LENGTHS_S: f64 = 0.5;
const RECORDED_SHARE: f64 = 0.9;

/// Whether training can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Good to know.
    Note,
    /// A capture of this would be bad.
    Stop,
}

/// Something noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether training can go on.
    pub severity: Severity,
    /// What it is and what to do, in one line.
    pub message: String,
}

impl Finding {
    /// Good to know.
    #[must_use]
    pub fn note(message: String) -> Self {
        Self { severity: Severity::Note, message }
    }

    /// A reason not to go on.
    #[must_use]
    pub fn stop(message: String) -> Self {
        Self { severity: Severity::Stop, message }
    }
}

/// What can be told of each sound alone.
#[must_use]
pub fn alone(dry: &[f32], wet: &[f32], rate: u32) -> Vec<Finding> {
    let mut findings = Vec::new();
    let rate = f64::from(rate);
    for (sound, name) in [(dry, "the dry signal"), (wet, "the recording")] {
        let seconds = sound.len() as f64 / rate;
        if seconds < SHORTEST_S {
            findings.push(Finding::stop(format!(
                "{name} is too short: {seconds:.1} s, and {SHORTEST_S:.0} s are the least that can be learnt from"
            )));
        } else if peak(sound) < SILENT {
            findings.push(Finding::stop(format!("{name} is silent: look at its levels and connections")));
        }
    }
    let clipped = clipped(wet);
    let share = clipped as f64 / wet.len().max(1) as f64;
    if clipped > 0 {
        let message = format!(
            "the recording clips at {clipped} samples ({:.2} %): turn the input of the converter down and record again",
            100.0 * share
        );
        findings.push(if share > CLIPPED_SHARE { Finding::stop(message) } else { Finding::note(message) });
    }
    findings
}

/// What can be told of two sounds that were brought together; `lengths` are what they had before they were cut.
#[must_use]
pub fn together(dry: &[f32], wet: &[f32], rate: u32, alignment: &Alignment, lengths: (usize, usize)) -> Vec<Finding> {
    let mut findings = Vec::new();
    let rate_hz = f64::from(rate);
    let seconds = |samples: usize| samples as f64 / rate_hz;
    if alignment.likeness < STRANGERS {
        findings.push(Finding::stop(
            "the recording has nothing to do with the dry signal: are these the right files?".into(),
        ));
        return findings;
    }
    let way = if alignment.blips { "the blips" } else { "cross-correlation" };
    let delay = alignment.delay_samples;
    let milliseconds = delay as f64 / rate_hz * 1e3;
    findings.push(Finding::note(format!("the recording is {delay} samples ({milliseconds:.2} ms) behind, by {way}")));
    if alignment.inverted {
        findings.push(Finding::note(
            "the recording is upside down, as some devices make it; the capture will be too (--flip turns it over)"
                .into(),
        ));
    }
    if alignment.drift_samples.abs() >= DRIFT {
        findings.push(Finding::stop(format!(
            "the two clocks drift apart by {:.0} samples ({:.0} ppm): play and record with one device, or synchronise them",
            alignment.drift_samples.abs(),
            1e6 * alignment.drift_samples.abs() / dry.len().max(1) as f64
        )));
    }
    if (seconds(lengths.0) - seconds(lengths.1)).abs() > LENGTHS_S {
        let message = format!(
            "the dry signal has {:.1} s, the recording {:.1} s; {:.1} s are used",
            seconds(lengths.0),
            seconds(lengths.1),
            seconds(dry.len())
        );
        let whole = dry.len() as f64 >= RECORDED_SHARE * lengths.0 as f64;
        findings.push(if whole { Finding::note(message) } else { Finding::stop(message + ": was it cut off?") });
    }
    if seconds(dry.len()) < SHORT_S {
        findings.push(Finding::note(format!(
            "{:.0} s are little to learn from; three minutes do well",
            seconds(dry.len())
        )));
    }
    findings.extend(noise_floor(dry, wet, rate_hz));
    if let Some((place, count)) = holes(wet) {
        findings.push(Finding::stop(format!(
            "the recording has {count} holes, the first at {:.2} s: record again with a longer buffer",
            seconds(place)
        )));
    }
    findings
}

/// Samples that are clipped.
fn clipped(sound: &[f32]) -> usize {
    let runs = sound.chunk_by(|a, b| (a.abs() >= FULL_SCALE) == (b.abs() >= FULL_SCALE));
    runs.filter(|run| run.len() >= CLIPPED_IN_A_ROW && run[0].abs() >= FULL_SCALE).map(<[f32]>::len).sum()
}

/// The level of the recording where the signal has been silent for a while, against that of the rest.
fn noise_floor(dry: &[f32], wet: &[f32], rate_hz: f64) -> Option<Finding> {
    let (wait, least) = ((0.15 * rate_hz) as usize, (0.1 * rate_hz) as usize);
    let mut noise = Vec::new();
    let mut at = 0;
    for run in dry.chunk_by(|a, b| (a.abs() < 1e-5) == (b.abs() < 1e-5)) {
        // What the device still sounds of what came before is no noise.
        if run[0].abs() < 1e-5 && run.len() > wait + least {
            noise.extend_from_slice(&wet[at + wait..at + run.len()]);
        }
        at += run.len();
    }
    if noise.is_empty() {
        return None;
    }
    let (floor, level) = (rms_db(&noise), rms_db(wet));
    let message = format!("noise floor {floor:.0} dB, {:.0} dB below the sound", level - floor);
    Some(Finding::note(if floor - level > NOISE_DB {
        message + ": that is noisy, and an error below it cannot be reached"
    } else {
        message
    }))
}

/// The first hole and their number: exact silence that begins and ends in the middle of sound.
fn holes(sound: &[f32]) -> Option<(usize, usize)> {
    let mut at = 0;
    let mut first = None;
    let mut count = 0;
    for run in sound.chunk_by(|a, b| (*a == 0.0) == (*b == 0.0)) {
        let end = at + run.len();
        let edge = |place: Option<usize>| place.and_then(|place| sound.get(place)).is_some_and(|x| x.abs() > HOLE_EDGE);
        if run[0] == 0.0 && run.len() >= HOLE && edge(at.checked_sub(1)) && edge(Some(end)) {
            first.get_or_insert(at);
            count += 1;
        }
        at = end;
    }
    first.map(|first| (first, count))
}
