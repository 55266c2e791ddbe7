//! The bundled generator: it plays by itself, as `ondes render` does, and keys start and stop it.

use ondes_engine::dsp::level::{db_to_amplitude, max_difference, peak};
use ondes_engine::pipeline::{Pipeline, PipelineOptions};
use ondes_player::library::BUNDLED;

use crate::behaviour::set_inline;
use crate::host::{Host, HostEvent, INSTRUMENT};

/// Sample rate of the bundled generator, Hz.
const RATE: usize = 48_000;
const BLOCK: usize = 128;
/// Samples that it computes at once.
const HOP: usize = 1024;

fn active(preset: &str, block: usize) -> Host {
    let mut host = Host::new(INSTRUMENT);
    assert!(host.load_preset(preset));
    // Whatever the load of the machine.
    set_inline(&mut host);
    host.set_offline(true);
    host.activate(RATE as f64, block as u32);
    host
}

#[test]
fn drums_play_as_rendered() {
    let drums = BUNDLED
        .iter()
        .find(|bundled| bundled.name == "Drums")
        .unwrap()
        .model();
    let mut pipeline = Pipeline::new(
        &drums,
        &PipelineOptions {
            sample_rate: RATE as u32,
            ..Default::default()
        },
    )
    .unwrap();
    let mut rendered = vec![0.0; 3 * RATE];
    pipeline.process(&[], &mut rendered);
    // Of the preset.
    let gain = db_to_amplitude(-2.0);
    rendered.iter_mut().for_each(|sample| *sample *= gain);
    assert!(peak(&rendered[..RATE / 2]) > 0.01, "it begins with a bar");
    assert!(
        pipeline.latency_samples() < 3 * RATE / 1000,
        "{}",
        pipeline.latency_samples()
    );
    // In short blocks the work is spread over those of a hop, ahead of it.
    for block in [HOP, BLOCK] {
        let mut host = active("session-drummer", block);
        assert_eq!(
            host.latency(),
            pipeline.latency_samples(),
            "blocks of {block}"
        );
        let played = host.play(3 * RATE, block, &[], None);
        assert!(
            max_difference(&played, &rendered) < 1e-4 * peak(&rendered),
            "blocks of {block}"
        );
    }
}

#[test]
fn keys_start_and_stop_drums() {
    let mut host = active("keys-start-beats", BLOCK);
    let (down, up) = (RATE, 2 * RATE);
    let notes = [
        (down, HostEvent::NoteOn(60, 0.8)),
        (up, HostEvent::NoteOff(60)),
    ];
    let sound = host.play(3 * RATE, BLOCK, &notes, None);
    assert_eq!(peak(&sound[..down]), 0.0, "no key is held");
    // The first stroke, at the hop after the next.
    assert!(
        peak(&sound[down..down + RATE / 20]) > 0.01,
        "a key starts it"
    );
    assert_eq!(
        peak(&sound[up + RATE / 20..]),
        0.0,
        "no key is held any more"
    );
}

#[test]
fn drums_begin_anew_after_a_reset() {
    let mut host = active("session-drummer", BLOCK);
    // Whole hops, with which it begins.
    let frames = 48 * HOP;
    let first = host.play(frames, BLOCK, &[], None);
    host.reset();
    let again = host.play(frames, BLOCK, &[], None);
    // The next hop was made before the reset. The decoder rings of what was before, and its noise
    // goes on.
    let (first, again) = (&first[RATE / 10..frames - HOP], &again[RATE / 10 + HOP..]);
    assert!(max_difference(first, again) < 1e-2 * peak(first));
}
