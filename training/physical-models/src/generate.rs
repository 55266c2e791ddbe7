//! Corpora on disk: numbered 24-bit WAV files and `corpus.json`, which lists the notes of each.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, ensure};
use ondes_engine::dsp::level::{amplitude_to_db_f64, db_to_amplitude_f64, peak};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::instrument::OUTPUT_RATE_HZ;
use super::performance::{Note, Onset};
use super::recorder::{RECORDING_S, Recorder, Recording};
use super::room;

/// Version of the physical models; changes whenever the same seed gives other samples.
const VERSION: u32 = 3;

/// Peak of the loudest file, dB below full scale.
pub(super) const PEAK_DB: f64 = -3.0;

/// Files recorded at once, before the length of the corpus is checked. Independent of the number of
/// threads, so that the corpus is too.
const BATCH: usize = 8;

/// Full scale of a 24-bit sample.
const FULL_SCALE: f64 = 8_388_607.0;

/// Longest corpus, minutes.
pub(super) const MAX_MINUTES: f64 = 600.0;

/// Options of [`generate`].
#[derive(Debug, Clone)]
pub struct CorpusOptions {
    /// One of [`names`](super::names).
    pub name: String,
    /// Length of the corpus, minutes; the last file may exceed it by a few seconds.
    pub minutes: f64,
    /// Seed of everything random.
    pub seed: u64,
}

/// Result of [`generate`].
#[derive(Debug, Clone, PartialEq)]
pub struct CorpusSummary {
    /// Number of files.
    pub files: usize,
    /// Number of notes in them.
    pub notes: usize,
    /// Their total length, seconds.
    pub seconds: f64,
    /// Gain that was applied to all of them, dB.
    pub gain_db: f64,
}

/// Generates a corpus in the folder `out`. `progress` is called with the number of finished files
/// and of all files.
///
/// # Errors
/// Returns an error if the name or length is invalid or a file cannot be written.
pub fn generate(
    options: &CorpusOptions,
    out: &Path,
    progress: impl Fn(usize, usize) + Sync,
) -> anyhow::Result<CorpusSummary> {
    let minutes = options.minutes;
    ensure!(
        minutes > 0.0 && minutes <= MAX_MINUTES,
        "a corpus of {minutes} minutes; must be above 0 and at most {MAX_MINUTES}"
    );
    let recorder = Recorder::new(&options.name, options.seed)?;
    std::fs::create_dir_all(out)
        .with_context(|| format!("{}: cannot create the folder", out.display()))?;
    let recordings = record(&recorder, minutes, progress);
    let peak = recordings
        .iter()
        .map(|recording| peak(&recording.samples))
        .fold(0.0, f32::max);
    ensure!(
        peak.is_finite() && peak > 0.0,
        "the model of {:?} diverged: its peak is {peak}",
        options.name
    );
    let gain = db_to_amplitude_f64(PEAK_DB) / f64::from(peak);
    recordings
        .par_iter()
        .enumerate()
        .try_for_each(|(index, recording)| {
            write_wav(
                &out.join(file_name(&options.name, index)),
                &recording.samples,
                gain,
            )
        })?;
    let summary = CorpusSummary {
        files: recordings.len(),
        notes: recordings
            .iter()
            .map(|recording| recording.score.notes.len())
            .sum(),
        seconds: seconds(&recordings),
        gain_db: amplitude_to_db_f64(gain),
    };
    let path = out.join("corpus.json");
    std::fs::write(
        &path,
        serde_json::to_string_pretty(&describe(options, &summary, &recordings))?,
    )
    .with_context(|| format!("{}: cannot be written", path.display()))?;
    Ok(summary)
}

/// Makes recordings in batches until the corpus is long enough.
fn record(
    recorder: &Recorder,
    minutes: f64,
    progress: impl Fn(usize, usize) + Sync,
) -> Vec<Recording> {
    let goal_s = 60.0 * minutes;
    let expected = AtomicUsize::new((goal_s / RECORDING_S).ceil() as usize);
    let done = AtomicUsize::new(0);
    let mut recordings: Vec<Recording> = Vec::new();
    while seconds(&recordings) < goal_s {
        let from = recordings.len();
        let missing = ((goal_s - seconds(&recordings)) / RECORDING_S).ceil() as usize;
        let batch: Vec<Recording> = (from..from + missing.clamp(1, BATCH))
            .into_par_iter()
            .map(|index| {
                let recording = recorder.record(index);
                let now = done.fetch_add(1, Ordering::Relaxed) + 1;
                let total = expected.fetch_max(now, Ordering::Relaxed).max(now);
                progress(now, total);
                recording
            })
            .collect();
        recordings.extend(batch);
    }
    recordings
}

fn seconds(recordings: &[Recording]) -> f64 {
    recordings
        .iter()
        .map(|recording| recording.samples.len() as f64 / OUTPUT_RATE_HZ)
        .sum()
}

fn file_name(name: &str, index: usize) -> String {
    format!("{name}-{:04}.wav", index + 1)
}

pub(super) fn write_wav(path: &Path, samples: &[f32], gain: f64) -> anyhow::Result<()> {
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: OUTPUT_RATE_HZ as u32,
        bits_per_sample: 24,
        sample_format: hound::SampleFormat::Int,
    };
    let context = || format!("{}: cannot be written", path.display());
    let mut writer = hound::WavWriter::create(path, spec).with_context(context)?;
    for x in samples {
        let level = (f64::from(*x) * gain).clamp(-1.0, 1.0);
        writer
            .write_sample((level * FULL_SCALE).round() as i32)
            .with_context(context)?;
    }
    writer.finalize().with_context(context)
}

/// Returns the content of `corpus.json`.
fn describe(options: &CorpusOptions, summary: &CorpusSummary, recordings: &[Recording]) -> Value {
    let files = recordings.iter().enumerate();
    json!({
        "name": options.name,
        "version": VERSION,
        "seed": options.seed,
        "minutes": options.minutes,
        "rate_hz": OUTPUT_RATE_HZ,
        "bits": 24,
        "peak_db": PEAK_DB,
        "gain_db": summary.gain_db,
        "file_s": RECORDING_S,
        "room": { "length_s": room::LENGTH_S, "wet_db": room::WET_DB },
        "seconds": summary.seconds,
        "files": files.map(|(index, recording)| describe_file(&options.name, index, recording)).collect::<Vec<_>>(),
    })
}

fn describe_file(name: &str, index: usize, recording: &Recording) -> Value {
    json!({
        "file": file_name(name, index),
        // A string, since JSON numbers of 64 bits lose precision in some readers.
        "seed": format!("{:#018x}", recording.seed),
        "seconds": recording.samples.len() as f64 / OUTPUT_RATE_HZ,
        "notes": recording.score.notes.iter().map(describe_note).collect::<Vec<_>>(),
    })
}

fn describe_note(note: &Note) -> Value {
    let rounded = |x: f64| (x * 1e4).round() / 1e4;
    json!({
        "onset_s": rounded(note.onset_s),
        "release_s": rounded(note.release_s),
        "midi": rounded(note.midi),
        "velocity": rounded(note.dynamics[0]),
        "dynamics": note.dynamics.map(rounded),
        "slurred": matches!(note.onset, Onset::Slur(_)),
        "vibrato_cents": rounded(note.vibrato_cents),
        "vibrato_hz": rounded(note.vibrato_hz),
    })
}
