//! Checks of signal and recording, with advice on what to do.

use ondes_engine::dsp::level::peak;

use super::align::Alignment;
use super::level::rms_db;

/// Shortest usable pair and shortest good one, seconds.
const SHORTEST_S: f64 = 2.0;
const SHORT_S: f64 = 60.0;
/// Full-scale level, and the number of successive samples at it that count as clipping.
const FULL_SCALE: f32 = 0.9995;
const CLIPPED_IN_A_ROW: usize = 3;
/// Share of clipped samples that stops training.
const CLIPPED_SHARE: f64 = 1e-3;
/// Peak below which a sound is silent.
const SILENT: f32 = 1e-4;
/// Noise floor relative to the sound above which a recording is noisy, dB.
const NOISE_DB: f64 = -40.0;
/// Clock drift that stops training, samples.
const DRIFT: f64 = 3.0;
/// Correlation below which the recording is unrelated to the signal.
const UNRELATED_CORRELATION: f64 = 0.03;
/// Shortest dropout, samples of exact zeros, and the least level on both sides of it.
const DROPOUT: usize = 32;
const DROPOUT_EDGE: f32 = 0.01;
/// Difference of lengths that is reported, seconds, and least share of the signal that must have
/// been recorded.
const LENGTHS_S: f64 = 0.5;
const RECORDED_SHARE: f64 = 0.9;

/// Consequence of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Information or advice.
    Note,
    /// Training stops, since the capture would be bad.
    Stop,
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Consequence.
    pub severity: Severity,
    /// Description and advice, one line.
    pub message: String,
}

impl Finding {
    /// Creates a note.
    #[must_use]
    pub fn note(message: String) -> Self {
        Self {
            severity: Severity::Note,
            message,
        }
    }

    /// Creates a finding that stops training.
    #[must_use]
    pub fn stop(message: String) -> Self {
        Self {
            severity: Severity::Stop,
            message,
        }
    }
}

/// Checks each sound by itself: length, silence, clipping.
#[must_use]
pub fn check_sounds(dry: &[f32], wet: &[f32], rate: u32) -> Vec<Finding> {
    let mut findings = Vec::new();
    let rate = f64::from(rate);
    for (sound, name) in [(dry, "the dry signal"), (wet, "the recording")] {
        let seconds = sound.len() as f64 / rate;
        if seconds < SHORTEST_S {
            findings.push(Finding::stop(format!(
                "{name} is too short: {seconds:.1} s; at least {SHORTEST_S:.0} s are needed"
            )));
        } else if peak(sound) < SILENT {
            findings.push(Finding::stop(format!(
                "{name} is silent: check levels and connections"
            )));
        }
    }
    let clipped = clipped(wet);
    let share = clipped as f64 / wet.len().max(1) as f64;
    if clipped > 0 {
        let message = format!(
            "the recording clips at {clipped} samples ({:.2} %): lower the input level and record again",
            100.0 * share
        );
        findings.push(if share > CLIPPED_SHARE {
            Finding::stop(message)
        } else {
            Finding::note(message)
        });
    }
    findings
}

/// Checks two aligned sounds: relation, drift, lengths, noise and dropouts; `lengths` are those
/// before they were cut to equal length.
#[must_use]
pub fn check_alignment(
    dry: &[f32],
    wet: &[f32],
    rate: u32,
    alignment: &Alignment,
    lengths: (usize, usize),
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let rate_hz = f64::from(rate);
    let seconds = |samples: usize| samples as f64 / rate_hz;
    if alignment.correlation < UNRELATED_CORRELATION {
        findings.push(Finding::stop(
            "the recording is unrelated to the dry signal: are these the right files?".into(),
        ));
        return findings;
    }
    let method = if alignment.from_clicks {
        "the clicks"
    } else {
        "cross-correlation"
    };
    let delay = alignment.delay_samples;
    let milliseconds = delay as f64 / rate_hz * 1e3;
    findings.push(Finding::note(format!(
        "the recording is delayed by {delay} samples ({milliseconds:.2} ms), measured by {method}"
    )));
    if alignment.inverted {
        findings.push(Finding::note(
            "the recording has inverted polarity, and so will the capture (--flip inverts it)"
                .into(),
        ));
    }
    if alignment.drift_samples.abs() >= DRIFT {
        findings.push(Finding::stop(format!(
            "the clocks drift apart by {:.0} samples ({:.0} ppm): play and record with one device, or synchronise both",
            alignment.drift_samples.abs(),
            1e6 * alignment.drift_samples.abs() / dry.len().max(1) as f64
        )));
    }
    if (seconds(lengths.0) - seconds(lengths.1)).abs() > LENGTHS_S {
        let message = format!(
            "the dry signal is {:.1} s long, the recording {:.1} s; {:.1} s are used",
            seconds(lengths.0),
            seconds(lengths.1),
            seconds(dry.len())
        );
        let complete = dry.len() as f64 >= RECORDED_SHARE * lengths.0 as f64;
        findings.push(if complete {
            Finding::note(message)
        } else {
            Finding::stop(message + ": was it cut off?")
        });
    }
    if seconds(dry.len()) < SHORT_S {
        findings.push(Finding::note(format!(
            "{:.0} s is a short pair; three minutes give better captures",
            seconds(dry.len())
        )));
    }
    findings.extend(noise_floor(dry, wet, rate_hz));
    if let Some((first, count)) = dropouts(wet) {
        findings.push(Finding::stop(format!(
            "the recording has {count} dropouts, the first at {:.2} s: record again with a longer buffer",
            seconds(first)
        )));
    }
    findings
}

/// Counts the clipped samples.
fn clipped(sound: &[f32]) -> usize {
    let runs = sound.chunk_by(|a, b| (a.abs() >= FULL_SCALE) == (b.abs() >= FULL_SCALE));
    runs.filter(|run| run.len() >= CLIPPED_IN_A_ROW && run[0].abs() >= FULL_SCALE)
        .map(<[f32]>::len)
        .sum()
}

/// Compares the level of the recording during silence of the signal with that of the rest.
fn noise_floor(dry: &[f32], wet: &[f32], rate_hz: f64) -> Option<Finding> {
    let (wait, least) = ((0.15 * rate_hz) as usize, (0.1 * rate_hz) as usize);
    let mut noise = Vec::new();
    let mut at = 0;
    for run in dry.chunk_by(|a, b| (a.abs() < 1e-5) == (b.abs() < 1e-5)) {
        // The decay of the device after the last sound is not noise.
        if run[0].abs() < 1e-5 && run.len() > wait + least {
            noise.extend_from_slice(&wet[at + wait..at + run.len()]);
        }
        at += run.len();
    }
    if noise.is_empty() {
        return None;
    }
    let (floor, level) = (rms_db(&noise), rms_db(wet));
    let message = format!(
        "noise floor {floor:.0} dB, {:.0} dB below the sound",
        level - floor
    );
    Some(Finding::note(if floor - level > NOISE_DB {
        message + ": the recording is noisy, and the capture's error cannot be lower"
    } else {
        message
    }))
}

/// Finds runs of zeros within sound; returns the position of the first and their number.
fn dropouts(sound: &[f32]) -> Option<(usize, usize)> {
    let mut at = 0;
    let mut first = None;
    let mut count = 0;
    for run in sound.chunk_by(|a, b| (*a == 0.0) == (*b == 0.0)) {
        let end = at + run.len();
        let is_sound = |index: Option<usize>| {
            index
                .and_then(|index| sound.get(index))
                .is_some_and(|x| x.abs() > DROPOUT_EDGE)
        };
        if run[0] == 0.0
            && run.len() >= DROPOUT
            && is_sound(at.checked_sub(1))
            && is_sound(Some(end))
        {
            first.get_or_insert(at);
            count += 1;
        }
        at = end;
    }
    first.map(|first| (first, count))
}
