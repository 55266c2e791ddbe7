//! A corpus on disk: numbered 24-bit WAV files and `corpus.json`, which says what is played in each.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, ensure};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::performance::{Join, Note};
use super::{FILE_S, OUTPUT_RATE_HZ, Options, Studio, Summary, Take, VERSION, room};

/// Peak of the loudest file, in decibels below full scale.
const PEAK_DB: f64 = -3.0;

/// Files recorded at once, before there is a look at whether the corpus is long enough. It does not depend on the number
/// of threads, or the corpus would.
const BATCH: usize = 8;

/// Full scale of a 24-bit sample.
const FULL_SCALE: f64 = 8_388_607.0;

/// Records the takes, finds their common gain and writes them.
pub(super) fn corpus(
    studio: &Studio,
    options: &Options,
    out: &Path,
    progress: impl Fn(usize, usize) + Sync,
) -> anyhow::Result<Summary> {
    let takes = record(studio, options, progress);
    let peak = takes.iter().flat_map(|take| &take.samples).fold(0.0f32, |peak, x| peak.max(x.abs()));
    ensure!(peak.is_finite() && peak > 0.0, "the model of `{}` has gone astray", options.name);
    let gain = 10f64.powf(PEAK_DB / 20.0) / f64::from(peak);
    takes
        .par_iter()
        .enumerate()
        .try_for_each(|(index, take)| wav(&out.join(file_name(&options.name, index)), &take.samples, gain))?;
    let summary = Summary {
        files: takes.len(),
        notes: takes.iter().map(|take| take.score.notes.len()).sum(),
        seconds: seconds(&takes),
        gain_db: 20.0 * gain.log10(),
    };
    let description = json!({
        "name": options.name,
        "version": VERSION,
        "seed": options.seed,
        "minutes": options.minutes,
        "rate_hz": OUTPUT_RATE_HZ,
        "bits": 24,
        "peak_db": PEAK_DB,
        "gain_db": summary.gain_db,
        "file_s": FILE_S,
        "room": { "length_s": room::LENGTH_S, "wet_db": room::WET_DB },
        "seconds": summary.seconds,
        "files": takes.iter().enumerate().map(|(index, take)| describe(&options.name, index, take)).collect::<Vec<_>>(),
    });
    let path = out.join("corpus.json");
    std::fs::write(&path, serde_json::to_string_pretty(&description)?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(summary)
}

/// Records takes until there are enough, in batches.
fn record(studio: &Studio, options: &Options, progress: impl Fn(usize, usize) + Sync) -> Vec<Take> {
    let goal_s = 60.0 * options.minutes;
    let expected = AtomicUsize::new((goal_s / FILE_S).ceil() as usize);
    let done = AtomicUsize::new(0);
    let mut takes: Vec<Take> = Vec::new();
    while seconds(&takes) < goal_s {
        let from = takes.len();
        let missing = ((goal_s - seconds(&takes)) / FILE_S).ceil() as usize;
        let batch: Vec<Take> = (from..from + missing.clamp(1, BATCH))
            .into_par_iter()
            .map(|index| {
                let take = studio.record(index);
                let now = done.fetch_add(1, Ordering::Relaxed) + 1;
                let total = expected.fetch_max(now, Ordering::Relaxed).max(now);
                progress(now, total);
                take
            })
            .collect();
        takes.extend(batch);
    }
    takes
}

fn seconds(takes: &[Take]) -> f64 {
    takes.iter().map(|take| take.samples.len() as f64 / OUTPUT_RATE_HZ).sum()
}

fn file_name(name: &str, index: usize) -> String {
    format!("{name}-{:04}.wav", index + 1)
}

fn wav(path: &Path, samples: &[f32], gain: f64) -> anyhow::Result<()> {
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: OUTPUT_RATE_HZ as u32,
        bits_per_sample: 24,
        sample_format: hound::SampleFormat::Int,
    };
    let context = || format!("cannot write {}", path.display());
    let mut writer = hound::WavWriter::create(path, spec).with_context(context)?;
    for x in samples {
        let level = (f64::from(*x) * gain).clamp(-1.0, 1.0);
        writer.write_sample((level * FULL_SCALE).round() as i32).with_context(context)?;
    }
    writer.finalize().with_context(context)
}

fn describe(name: &str, index: usize, take: &Take) -> Value {
    json!({
        "file": file_name(name, index),
        // A string: a JSON number would lose the last bits in some readers.
        "seed": format!("{:#018x}", take.seed),
        "seconds": take.samples.len() as f64 / OUTPUT_RATE_HZ,
        "notes": take.score.notes.iter().map(describe_note).collect::<Vec<_>>(),
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
        "slurred": matches!(note.join, Join::Slur(_)),
        "vibrato_cents": rounded(note.vibrato_cents),
        "vibrato_hz": rounded(note.vibrato_hz),
    })
}
