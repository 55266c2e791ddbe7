//! Notes of an instrument, as the tests of this folder play them.

use ondes_engine::instrument::{Event, EventKind};
use ondes_engine::model::Model;
use ondes_engine::pipeline::{Pipeline, PipelineOptions};
use ondes_tests::SAMPLE_RATE;

/// Returns a second and a half of keys that are struck together at a sample, from there on, on both
/// channels.
pub fn play_stereo(
    model: &Model,
    keys: &[u8],
    velocity: f32,
    at: u64,
    controls: &[(&str, f32)],
) -> [Vec<f32>; 2] {
    let mut pipeline = Pipeline::new(model, &PipelineOptions::default()).expect("it plays");
    for (name, value) in controls {
        pipeline.set_control(name, *value).expect("it has it");
    }
    for &key in keys {
        let kind = EventKind::NoteOn {
            channel: 0,
            key,
            velocity,
        };
        pipeline.handle(Event { at, kind }).expect("there is room");
    }
    let before = pipeline.latency_samples() + at as usize;
    let mut sound = [(); 2].map(|()| vec![0.0; before + SAMPLE_RATE as usize * 3 / 2]);
    let [left, right] = &mut sound;
    if pipeline.channels() == 2 {
        pipeline.process_stereo([&[]; 2], [left, right]);
    } else {
        pipeline.process(&[], left);
        right.copy_from_slice(left);
    }
    sound.map(|mut channel| channel.split_off(before))
}

/// Returns what both channels of [`play_stereo`] share.
pub fn play(
    model: &Model,
    keys: &[u8],
    velocity: f32,
    at: u64,
    controls: &[(&str, f32)],
) -> Vec<f32> {
    let [left, right] = play_stereo(model, keys, velocity, at, controls);
    let both = left.iter().zip(&right);
    both.map(|(left, right)| 0.5 * (left + right)).collect()
}
