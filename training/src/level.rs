//! Brings instruments and generators to one loudness.

use anyhow::{Context, bail, ensure};
use ebur128::{EbuR128, Mode};
use ondes_engine::dsp::level::{amplitude_to_db_f64, db_to_amplitude_f64, peak};
use ondes_engine::instrument::{Event, EventKind, NATURAL_VELOCITY};
use ondes_engine::model::{Kind, Method, Model, Node, Op, Weights};
use ondes_engine::ops::Affine;
use ondes_engine::pipeline::{Pipeline, PipelineOptions};

use crate::tasks::generator::conditions::Condition;
use crate::tasks::generator::names::CALIBRATED_LOUDNESS;

/// Sample rate, Hz.
const RATE: u32 = 48_000;
/// Length of the notes of an instrument, and of what a generator plays, seconds.
const NOTE_S: f64 = 1.5;
const PIECE_S: f64 = 60.0;
/// Notes that are measured, as shares of the range of pitch.
const NOTES: [f32; 5] = [0.15, 0.3, 0.45, 0.6, 0.75];
/// Chord that must not pass full scale, as semitones above notes at shares of the range, and its
/// velocity.
const CHORD: [u8; 8] = [0, 7, 12, 16, 19, 24, 28, 31];
const CHORD_ROOTS: [f32; 6] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5];
const CHORD_VELOCITY: f32 = 120.0 / 127.0;
/// Highest peak of the chord, or of what a generator plays, dB.
const PEAK_DB: f64 = -0.3;

/// Returns a model with a loudness, LUFS (EBU R 128): of an instrument's notes of the natural velocity,
/// or of what a generator plays by itself. It is less if a chord of eight hard notes, or what the
/// generator plays, would pass full scale then.
///
/// # Errors
/// Returns an error if the model is neither, cannot be played or is silent.
pub fn levelled(model: &Model, lufs: f64) -> anyhow::Result<Model> {
    match model.header().kind {
        Kind::Instrument => levelled_instrument(model, lufs),
        Kind::Generator => {
            let piece = play(model, &[], NATURAL_VELOCITY, PIECE_S)?;
            let mut meter = Meter::new()?;
            meter.add(&piece)?;
            amplified(model, meter.change_db(&piece, lufs)?)
        }
        Kind::Effect | Kind::Codec => bail!("only instruments and generators can be levelled"),
    }
}

fn levelled_instrument(model: &Model, lufs: f64) -> anyhow::Result<Model> {
    let mut header = model.header().clone();
    let performance = header.performance.get_or_insert_default();
    let range = performance.pitch_high - performance.pitch_low;
    let (low, high) = (performance.pitch_low as u8, performance.pitch_high as u8);
    let key = |share: f32| low + (share * range) as u8;
    let mut meter = Meter::new()?;
    for share in NOTES {
        meter.add(&play(model, &[key(share)], NATURAL_VELOCITY, NOTE_S)?)?;
    }
    let mut chords = [Vec::new(), Vec::new()];
    for root in CHORD_ROOTS {
        let keys = CHORD.map(|above| (key(root) + above).min(high));
        let chord = play(model, &keys, CHORD_VELOCITY, NOTE_S)?;
        chords
            .iter_mut()
            .zip(chord)
            .for_each(|(chords, chord)| chords.extend(chord));
    }
    let change = meter.change_db(&chords, lufs)?;
    performance.gain_db = (performance.gain_db + change as f32).clamp(-40.0, 40.0);
    Ok(model.with_header(header)?)
}

/// Meter of the sound that both channels share.
struct Meter(EbuR128);

impl Meter {
    fn new() -> anyhow::Result<Self> {
        Ok(Self(EbuR128::new(1, RATE, Mode::I)?))
    }

    fn add(&mut self, [left, right]: &[Vec<f32>; 2]) -> anyhow::Result<()> {
        let both = left.iter().zip(right);
        let shared: Vec<f32> = both.map(|(left, right)| 0.5 * (left + right)).collect();
        Ok(self.0.add_frames_f32(&shared)?)
    }

    /// Returns the gain from what was measured to a loudness, dB, or less if the loudest sound would
    /// pass full scale.
    fn change_db(&self, loudest: &[Vec<f32>; 2], lufs: f64) -> anyhow::Result<f64> {
        let measured = self.0.loudness_global()?;
        let peak = loudest
            .iter()
            .map(|channel| peak(channel))
            .fold(0.0, f32::max);
        ensure!(measured.is_finite() && peak > 0.0, "the model is silent");
        Ok((lufs - measured).min(PEAK_DB - amplitude_to_db_f64(f64::from(peak))))
    }
}

/// Plays keys together, on both channels.
fn play(model: &Model, keys: &[u8], velocity: f32, seconds: f64) -> anyhow::Result<[Vec<f32>; 2]> {
    let mut pipeline = Pipeline::new(model, &PipelineOptions::default())?;
    for &key in keys {
        let kind = EventKind::NoteOn {
            channel: 0,
            key,
            velocity,
        };
        pipeline.handle(Event { at: 0, kind })?;
    }
    let mut sound = [(); 2].map(|()| vec![0.0; (seconds * f64::from(RATE)) as usize]);
    let [left, right] = &mut sound;
    if pipeline.channels() == 2 {
        pipeline.process_stereo([&[]; 2], [left, right]);
    } else {
        pipeline.process(&[], left);
        right.copy_from_slice(left);
    }
    Ok(sound)
}

/// Returns a generator that is louder by a gain, dB, as if it and its codec had learnt from louder
/// recordings: its decoder amplifies, its encoder attenuates, and its knob for loudness counts from
/// there.
fn amplified(model: &Model, gain_db: f64) -> anyhow::Result<Model> {
    let gain = db_to_amplitude_f64(gain_db) as f32;
    let (mut header, mut weights) = (model.header().clone(), model.weights().clone());
    for method in &mut header.methods {
        match method.name.as_str() {
            "encode" => scale_input(method, 1.0 / gain),
            "decode" => scale_output(method, &mut weights, gain)?,
            _ => {}
        }
        let asked = method
            .nodes
            .iter_mut()
            .find(|node| node.name == CALIBRATED_LOUDNESS);
        if let Some(Node {
            op: Op::Affine(asked),
            ..
        }) = asked
        {
            asked.offset -= asked.scale * gain_db as f32;
            let knob = header
                .controls
                .iter_mut()
                .find(|control| control.name == Condition::Loudness.name());
            if let Some(knob) = knob {
                for value in [&mut knob.min, &mut knob.max, &mut knob.default] {
                    *value += gain_db as f32;
                }
            }
        }
    }
    Ok(Model::new(header, weights)?)
}

/// Puts a gain before the first input of a method.
fn scale_input(method: &mut Method, gain: f32) {
    let input = method.inputs[0].name.clone();
    let scaled = format!("{input}.scaled");
    let is_scaled = |node: &&mut Node| node.name == scaled;
    if let Some(Node {
        op: Op::Affine(affine),
        ..
    }) = method.nodes.iter_mut().find(is_scaled)
    {
        affine.scale *= gain;
        return;
    }
    for name in method.nodes.iter_mut().flat_map(|node| &mut node.inputs) {
        if *name == input {
            name.clone_from(&scaled);
        }
    }
    method.nodes.insert(0, affine(&scaled, &input, gain));
}

/// Puts a gain behind the first output of a method.
fn scale_output(method: &mut Method, weights: &mut Weights, gain: f32) -> anyhow::Result<()> {
    let output = method.outputs[0].name.clone();
    let last = method.nodes.iter_mut().find(|node| node.name == output);
    let last = last.context("its decoder has no sound")?;
    if let Op::Affine(affine) = &mut last.op {
        affine.scale *= gain;
        affine.offset *= gain;
        return Ok(());
    }
    last.name = format!("{output}.unscaled");
    let (before, after) = (format!("{output}."), format!("{}.", last.name));
    let scaled = affine(&output, &last.name, gain);
    method.nodes.push(scaled);
    let mut renamed = Weights::default();
    for (name, tensor) in weights.iter() {
        let own = name.strip_prefix(&before);
        let name = own.map_or(name.to_owned(), |parameter| format!("{after}{parameter}"));
        renamed.insert(name, tensor.clone());
    }
    *weights = renamed;
    Ok(())
}

fn affine(name: &str, input: &str, scale: f32) -> Node {
    Node {
        name: name.to_owned(),
        inputs: vec![input.to_owned()],
        op: Op::Affine(Affine { scale, offset: 0.0 }),
    }
}

#[cfg(test)]
mod tests {
    use ondes_tests::audio_models::autoregressive_generator;
    use ondes_tests::bundled_file;

    use super::*;

    fn peak_of(model: &Model) -> f32 {
        let sound = play(model, &[], NATURAL_VELOCITY, 2.0).expect("it can be played");
        peak(&sound[0])
    }

    #[test]
    fn generators_are_amplified_again_and_again() {
        let model = autoregressive_generator(7);
        let louder = amplified(&model, 12.0).expect("a generator");
        let again = amplified(&louder, -6.0).expect("a generator");
        let nodes = |model: &Model| model.method("decode").expect("a method").nodes.len();
        assert_eq!(nodes(&louder), nodes(&again));
        for (changed, gain_db) in [(&louder, 12.0), (&again, 6.0)] {
            let ratio = f64::from(peak_of(changed) / peak_of(&model));
            let error = amplitude_to_db_f64(ratio) - gain_db;
            assert!(error.abs() < 0.01, "{error}");
        }
    }

    #[test]
    fn a_louder_generator_hears_louder_sounds_and_counts_from_there() {
        let model = ondes_engine::model::file::read(&bundled_file("drums")).expect("it is whole");
        let louder = amplified(&model, 10.0).expect("a generator");
        let knob = |model: &Model| {
            let controls = &model.header().controls;
            controls
                .iter()
                .find(|control| control.name == "loudness")
                .expect("a knob")
                .clone()
        };
        let (before, after) = (knob(&model), knob(&louder));
        assert!((after.default - before.default - 10.0).abs() < 1e-4);
        // The same music, and what it hears is as loud to it.
        let latents = |model: &Model, level: f32| {
            let mut pipeline = Pipeline::new(model, &PipelineOptions::default()).expect("playable");
            pipeline.set_control("listen", 1.0).expect("a knob");
            let input: Vec<f32> = (0..24_000)
                .map(|n| level * (0.05 * n as f32).sin() * (n % 6_000) as f32 / 6_000.0)
                .collect();
            let mut sound = vec![0.0; input.len()];
            pipeline.process(&input, &mut sound);
            pipeline.latents().to_vec()
        };
        let gain = db_to_amplitude_f64(10.0) as f32;
        let (before, after) = (latents(&model, 0.1), latents(&louder, 0.1 * gain));
        assert!(
            before.iter().zip(&after).all(|(a, b)| (a - b).abs() < 0.02),
            "{before:?} {after:?}"
        );
        assert!(before.iter().any(|latent| latent.abs() > 0.1));
    }

    #[test]
    fn captures_are_refused() {
        let model = ondes_engine::model::file::read(&bundled_file("fuzz")).expect("it is whole");
        assert!(levelled(&model, -25.0).is_err());
    }
}
