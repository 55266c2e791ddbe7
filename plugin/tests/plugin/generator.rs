//! The bundled generator: it plays by itself, as `ondes render` does, and keys start and stop it.

use ondes_engine::dsp::level::{db_to_amplitude, max_difference, peak};
use ondes_engine::pipeline::{Pipeline, PipelineOptions};
use ondes_processor::library::BUNDLED;

use crate::behaviour::set_inline;
use crate::host::{Host, HostEvent, INSTRUMENT};

/// Sample rate of the bundled generator, Hz.
const RATE: usize = 48_000;
const BLOCK: usize = 128;

fn active(preset: &str, is_offline: bool) -> Host {
    let mut host = Host::new(INSTRUMENT);
    assert!(host.load_preset(preset));
    // Whatever the load of the machine.
    set_inline(&mut host);
    host.set_offline(is_offline);
    host.activate(RATE as f64, BLOCK as u32);
    host
}

#[test]
fn drums_play_at_once_and_as_rendered() {
    let mut host = active("session-drummer", true);
    let latency = host.latency();
    assert!(latency < 3 * RATE / 1000, "{latency}");
    let played = host.play(3 * RATE, BLOCK, &[], None);
    let drums = BUNDLED.iter().find(|bundled| bundled.name == "Drums").unwrap().model();
    let mut pipeline =
        Pipeline::new(&drums, &PipelineOptions { sample_rate: RATE as u32, ..Default::default() }).unwrap();
    assert_eq!(latency, pipeline.latency_samples());
    let mut rendered = vec![0.0; 3 * RATE];
    pipeline.process(&[], &mut rendered);
    // Of the preset.
    let gain = db_to_amplitude(6.0);
    rendered.iter_mut().for_each(|sample| *sample *= gain);
    assert!(peak(&rendered[..RATE / 2]) > 0.01, "it begins with a bar");
    assert!(max_difference(&played, &rendered) < 1e-4 * peak(&rendered));
}

#[test]
fn drums_in_real_time_sound_as_offline_one_hop_later() {
    const HOP: usize = 1024;
    let play = |is_offline| {
        let mut host = active("session-drummer", is_offline);
        (host.latency(), host.play(RATE, BLOCK, &[], None))
    };
    let ((latency, offline), (later, real_time)) = (play(true), play(false));
    assert_eq!(later, latency + HOP, "the work is not spread over blocks");
    assert!(max_difference(&real_time[HOP..], &offline[..RATE - HOP]) < 1e-6 * peak(&offline));
}

#[test]
fn keys_start_and_stop_drums() {
    let mut host = active("keys-start-beats", true);
    let (down, up) = (RATE, 2 * RATE);
    let notes = [(down, HostEvent::NoteOn(60, 0.8)), (up, HostEvent::NoteOff(60))];
    let sound = host.play(3 * RATE, BLOCK, &notes, None);
    assert_eq!(peak(&sound[..down]), 0.0, "no key is held");
    // The first stroke, at the next block of the model of 21 ms, after its latency.
    assert!(peak(&sound[down..down + RATE / 20]) > 0.01, "a key starts it");
    assert_eq!(peak(&sound[up + RATE / 20..]), 0.0, "no key is held any more");
}

#[test]
fn drums_begin_anew_after_a_reset() {
    let mut host = active("session-drummer", true);
    // Whole blocks of the model, with which it begins.
    let frames = 48 * 1024;
    let first = host.play(frames, BLOCK, &[], None);
    host.reset();
    let again = host.play(frames, BLOCK, &[], None);
    // The decoder rings of what was before, and its noise goes on.
    let (first, again) = (&first[RATE / 10..], &again[RATE / 10..]);
    assert!(max_difference(first, again) < 1e-2 * peak(first));
}
