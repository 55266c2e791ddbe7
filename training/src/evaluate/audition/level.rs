//! Brings instruments to one level.

use anyhow::Context;
use ebur128::{EbuR128, Mode};
use ondes_engine::instrument::{Event, EventKind, NATURAL_VELOCITY};
use ondes_engine::model::Model;
use ondes_engine::pipeline::{Pipeline, PipelineOptions};

/// Sample rate, Hz, and length of the notes, seconds.
const RATE: u32 = 48_000;
const NOTE_S: f32 = 1.5;
/// Notes that are measured, as shares of the range of pitch.
const NOTES: [f32; 5] = [0.15, 0.3, 0.45, 0.6, 0.75];
/// Chord that must not pass full scale, as semitones above notes at shares of the range, and its
/// velocity.
const CHORD: [u8; 8] = [0, 7, 12, 16, 19, 24, 28, 31];
const CHORD_ROOTS: [f32; 6] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5];
const CHORD_VELOCITY: f32 = 120.0 / 127.0;
/// Highest peak of the chord, dB.
const PEAK_DB: f64 = -0.3;

/// Returns the instrument with a gain at which notes of the natural velocity have a loudness, LUFS
/// (EBU R 128), or less if a chord of eight hard notes would pass full scale then.
///
/// # Errors
/// Returns an error if the model is no instrument, cannot be played or is silent.
pub fn levelled(model: &Model, lufs: f64) -> anyhow::Result<Model> {
    let mut header = model.header().clone();
    let performance = header
        .performance
        .as_mut()
        .context("only instruments can be levelled")?;
    let range = performance.pitch_high - performance.pitch_low;
    let (low, high) = (performance.pitch_low as u8, performance.pitch_high as u8);
    let key = |share: f32| low + (share * range) as u8;
    let mut meter = EbuR128::new(1, RATE, Mode::I)?;
    for share in NOTES {
        let [left, right] = play(model, &[key(share)], NATURAL_VELOCITY)?;
        let both = left.iter().zip(&right);
        let shared: Vec<f32> = both.map(|(left, right)| 0.5 * (left + right)).collect();
        meter.add_frames_f32(&shared)?;
    }
    let mut peak = 0.0_f32;
    for root in CHORD_ROOTS {
        let keys = CHORD.map(|above| (key(root) + above).min(high));
        let sound = play(model, &keys, CHORD_VELOCITY)?;
        let samples = sound.iter().flatten();
        peak = samples.fold(peak, |peak, sample| peak.max(sample.abs()));
    }
    let measured = meter.loudness_global()?;
    anyhow::ensure!(measured.is_finite() && peak > 0.0, "the model is silent");
    let change = (lufs - measured).min(PEAK_DB - 20.0 * f64::from(peak).log10());
    performance.gain_db = (performance.gain_db + change as f32).clamp(-40.0, 40.0);
    Ok(model.with_header(header)?)
}

/// Plays keys together, on both channels.
fn play(model: &Model, keys: &[u8], velocity: f32) -> anyhow::Result<[Vec<f32>; 2]> {
    let mut pipeline = Pipeline::new(model, &PipelineOptions::default())?;
    for &key in keys {
        let kind = EventKind::NoteOn {
            channel: 0,
            key,
            velocity,
        };
        pipeline.handle(Event { at: 0, kind })?;
    }
    let mut sound = [(); 2].map(|()| vec![0.0; (NOTE_S * RATE as f32) as usize]);
    let [left, right] = &mut sound;
    if pipeline.channels() == 2 {
        pipeline.process_stereo([&[]; 2], [left, right]);
    } else {
        pipeline.process(&[], left);
        right.copy_from_slice(left);
    }
    Ok(sound)
}
