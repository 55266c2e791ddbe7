//! How notes are played, whatever the model, and what plays: as a host turns it, heard on the shared object that was built.

mod host;

use std::f64::consts::TAU;

use clack_host::events::event_types::NoteExpressionType;
use host::{Do, EFFECT, Host, INSTRUMENT, energy, json, state};
use ondes_engine::instrument::EventKind;
use ondes_engine::pipeline::{Action, Cue, Ensemble, GLIDE, PLAY_MODE, PipelineOptions, Playable, Turn};
use ondes_processor::library::BUNDLED;

const RATE: usize = 48_000;
const BLOCK: usize = 512;
/// A note and the frequency of it, Hz; the other one has no overtone near it, nor it one of the other's.
const LOW: (u8, f64) = (57, 220.0);
const HIGH: (u8, f64) = (64, 329.63);

/// An instance with these parameters, as a project saves them.
fn open(id: &str, parameters: &[(&str, serde_json::Value)]) -> Host {
    let mut host = Host::new(id);
    let mut saved = json(&host.save());
    saved["params"]["driver"] = serde_json::json!({ "string": "inline" });
    for (id, value) in parameters {
        assert!(!saved["params"][id].is_null(), "{id}");
        saved["params"][id] = value.clone();
    }
    assert!(host.load(&state(&saved)));
    host.set_offline(true);
    host.activate(RATE as f64, BLOCK as u32);
    host
}

/// Power of a sound at a frequency, Hz, where it is a tone.
fn power(sound: &[f32], hz: f64) -> f64 {
    let (mut real, mut imaginary) = (0.0, 0.0);
    for (n, sample) in sound.iter().enumerate() {
        let phase = TAU * hz * n as f64 / RATE as f64;
        // Hann, so that its neighbours are not heard.
        let window = 0.5 - 0.5 * (TAU * n as f64 / sound.len() as f64).cos();
        real += window * f64::from(*sample) * phase.cos();
        imaginary += window * f64::from(*sample) * phase.sin();
    }
    (real * real + imaginary * imaginary) / (sound.len() as f64).powi(2)
}

/// How much more of one note than of another is in a sound, dB.
fn more(sound: &[f32], note: (u8, f64), other: (u8, f64)) -> f64 {
    10.0 * (power(sound, note.1) / power(sound, other.1).max(1e-30)).log10()
}

/// Two notes of half a second that overlap by a second and a half: the low one sounds alone, then both are held, then the low
/// one alone again. Gives the later parts of all three.
fn overlapping(host: &mut Host) -> [Vec<f32>; 3] {
    let todo = [(0, Do::On(LOW.0, 0.8)), (RATE, Do::On(HIGH.0, 0.8)), (2 * RATE, Do::Off(HIGH.0))];
    let sound = host.play(3 * RATE, BLOCK, &todo, None);
    [0, 1, 2].map(|part| sound[part * RATE + RATE / 2..(part + 1) * RATE].to_vec())
}

#[test]
fn notes_share_one_voice_in_mono_and_legato_and_have_their_own_in_poly() {
    for mode in ["model", "poly", "mono", "legato"] {
        let mut host = open(INSTRUMENT, &[("mode", serde_json::json!({ "string": mode }))]);
        let [low, both, again] = overlapping(&mut host);
        assert!(more(&low, LOW, HIGH) > 20.0, "{mode}");
        assert!(more(&again, LOW, HIGH) > 20.0, "{mode}: the note that is held goes on");
        let shared = matches!(mode, "mono" | "legato");
        assert_eq!(more(&both, HIGH, LOW) > 20.0, shared, "{mode}: {}", more(&both, HIGH, LOW));
    }
}

#[test]
fn mono_and_legato_are_the_engines() {
    let todo = [(0, Do::On(LOW.0, 0.8)), (20_000, Do::On(HIGH.0, 0.5)), (30_000, Do::Off(HIGH.0))];
    let on = |key, velocity| EventKind::NoteOn { channel: 0, key, velocity };
    let events = [
        (0, on(LOW.0, 0.8)),
        (20_000, on(HIGH.0, 0.5)),
        (30_000, EventKind::NoteOff { channel: 0, key: HIGH.0, velocity: 0.5 }),
    ];
    let mut played = Vec::new();
    for (mode, number) in [("mono", 2.0), ("legato", 3.0)] {
        let glide = ("glide", serde_json::json!({ "f32": 120.0 }));
        let mut host = open(INSTRUMENT, &[("mode", serde_json::json!({ "string": mode })), glide]);
        let sound = host.play(RATE, BLOCK, &todo, None);
        let mut model = Ensemble::new(&BUNDLED[0].model(), &PipelineOptions::default()).unwrap();
        let turn = |(id, value)| Cue { at: 0, action: Action::Control { id, value } };
        let play = |(at, kind)| Cue { at, action: Action::Play(kind) };
        for cue in [(PLAY_MODE, number), (GLIDE, 120.0)].map(turn).into_iter().chain(events.map(play)) {
            model.handle(0, cue).unwrap();
        }
        let mut expected = vec![0.0; RATE];
        model.process(&mut [Turn { seat: 0, input: &[], output: &mut expected, mute: false }]);
        assert_eq!(sound, expected, "{mode}");
        played.push(sound);
    }
    assert_eq!(played[0][..20_000], played[1][..20_000]);
    assert_ne!(played[0], played[1], "one strikes anew, the other slurs");
}

#[test]
fn glide_is_the_time_of_the_slide() {
    // In the middle of a slide: half-way up in pitch.
    let middle = (0, (LOW.1 * HIGH.1).sqrt());
    for (glide_ms, at_half) in [(0.0, false), (1000.0, true)] {
        let parameters =
            [("mode", serde_json::json!({ "string": "legato" })), ("glide", serde_json::json!({ "f32": glide_ms }))];
        let mut host = open(INSTRUMENT, &parameters);
        host.play(RATE, BLOCK, &[(0, Do::On(LOW.0, 0.8))], None);
        let slide = host.play(RATE, BLOCK, &[(0, Do::On(HIGH.0, 0.8))], None);
        let latency = host.latency();
        let half = &slide[latency + 22_000..latency + 26_000];
        assert_eq!(more(half, middle, HIGH) > 6.0, at_half, "{glide_ms} ms: {}", more(half, middle, HIGH));
        let end = host.play(RATE / 2, BLOCK, &[], None);
        assert!(more(&end, HIGH, middle) > 20.0, "{glide_ms} ms: it arrives");
    }
}

#[test]
fn with_one_voice_the_second_note_takes_over() {
    let mut host = open(INSTRUMENT, &[("voices", serde_json::json!({ "i32": 1 }))]);
    let [low, both, _] = overlapping(&mut host);
    assert!(more(&low, LOW, HIGH) > 20.0);
    assert!(more(&both, HIGH, LOW) > 20.0, "{}", more(&both, HIGH, LOW));
    // Turned while it plays: as many as there are.
    let mut host = open(INSTRUMENT, &[("voices", serde_json::json!({ "i32": 1 }))]);
    host.block(BLOCK, &[(3, Do::Turn("Voices", 0.0))], None);
    let [_, both, _] = overlapping(&mut host);
    assert!(more(&both, HIGH, LOW).abs() < 20.0, "{}", more(&both, HIGH, LOW));
}

#[test]
fn how_notes_are_played_can_be_turned_while_they_sound() {
    let play = |turn: &[(usize, Do)]| {
        let mut todo = vec![(0, Do::On(LOW.0, 0.8)), (RATE / 2, Do::On(HIGH.0, 0.8))];
        todo.extend_from_slice(turn);
        todo.sort_by_key(|(time, _)| *time);
        open(INSTRUMENT, &[]).play(RATE, BLOCK, &todo, None)
    };
    let poly = play(&[]);
    let mono = play(&[(10_001, Do::Turn("Mode", 2.0))]);
    assert_eq!(mono[..RATE / 2], poly[..RATE / 2], "one note is one note");
    assert!(more(&mono[3 * RATE / 4..], HIGH, LOW) > 20.0);
    // In time for the second note only where it comes before it.
    let late = play(&[(RATE / 2 + 1, Do::Turn("Glide", 1.0)), (RATE / 2 + 1, Do::Turn("Mode", 1.0))]);
    assert_eq!(late, poly);
}

#[test]
fn panic_is_silence_from_its_sample_on_each_time_that_it_is_switched_on() {
    const AT: usize = 24_000 + 123;
    const FADE: usize = RATE / 50;
    // In the room as it was learnt, and in the largest.
    for room in [0.5, 1.0] {
        let play = |todo: &[(usize, Do)]| {
            let mut host = open(INSTRUMENT, &[("macro2", serde_json::json!({ "f32": room }))]);
            let todo = [&[(0, Do::On(60, 0.8)), (0, Do::On(67, 0.8))], todo].concat();
            host.play(3 * RATE, BLOCK, &todo, None)
        };
        let plain = play(&[]);
        let (on, off) = (Do::Turn("Panic", 1.0), Do::Turn("Panic", 0.0));
        let sound = play(&[(AT, on.clone()), (RATE, Do::On(64, 0.8)), (2 * RATE, off), (2 * RATE + 17, on)]);
        assert_eq!(sound[..AT], plain[..AT]);
        assert_ne!(sound[AT..AT + 100], plain[AT..AT + 100]);
        let silence = |sound: &[f32]| sound.iter().all(|sample| *sample == 0.0);
        assert!(energy(&plain[AT + FADE..RATE]) > 1e-6 && silence(&sound[AT + FADE..RATE]));
        // It is an event, not a state: what is played next sounds, and switching it off does nothing.
        let next = energy(&sound[RATE + RATE / 2..2 * RATE]);
        assert!(next > 1e-6 && energy(&sound[2 * RATE - 500..2 * RATE + 17]) > 0.1 * next);
        assert!(silence(&sound[2 * RATE + 17 + FADE..]));
    }
}

#[test]
fn an_effect_goes_on_after_a_panic() {
    let input: Vec<f32> = (0..3 * RATE).map(|n| (0.4 * (TAU * 220.0 * n as f64 / RATE as f64).sin()) as f32).collect();
    let plain = open(EFFECT, &[]).play(3 * RATE, BLOCK, &[], Some(&input));
    let sound = open(EFFECT, &[]).play(3 * RATE, BLOCK, &[(RATE, Do::Turn("Panic", 1.0))], Some(&input));
    assert!(sound[RATE + RATE / 50..RATE + RATE / 4].iter().all(|sample| *sample == 0.0));
    assert_eq!(sound[2 * RATE..], plain[2 * RATE..]);
}

#[test]
fn a_note_expression_changes_its_note_alone() {
    let play = |todo: &[(usize, Do)]| {
        let todo = [&[(0, Do::On(LOW.0, 0.8)), (0, Do::On(HIGH.0, 0.8))], todo].concat();
        open(INSTRUMENT, &[]).play(2 * RATE, BLOCK, &todo, None)
    };
    let plain = play(&[]);
    let express = |value| Do::Express(LOW.0, NoteExpressionType::Expression, value);
    let faded = play(&[(RATE / 2, express(0.0))]);
    assert_eq!(faded[..RATE / 2], plain[..RATE / 2]);
    let end = RATE + RATE / 2..;
    assert!(power(&faded[end.clone()], LOW.1) < 1e-4 * power(&plain[end.clone()], LOW.1), "the low note is gone");
    let kept = power(&faded[end.clone()], HIGH.1) / power(&plain[end.clone()], HIGH.1);
    assert!((0.5..2.0).contains(&kept), "the high one is not: {kept}");
    assert_eq!(play(&[(RATE / 2, express(1.0))]), plain, "1 is rest");
    let half = play(&[(RATE / 2, express(0.5))]);
    let left = power(&half[end.clone()], LOW.1) / power(&plain[end], LOW.1);
    assert!((1e-3..0.7).contains(&left), "{left}");
}

#[test]
fn the_side_chain_plays_and_notes_do_again() {
    let input: Vec<f32> = (0..RATE).map(|n| (0.4 * (TAU * 220.0 * n as f64 / RATE as f64).sin()) as f32).collect();
    let note = [(0, Do::On(60, 0.8))];
    let mut host = open(INSTRUMENT, &[]);
    host.play(BLOCK, BLOCK, &[], Some(&input));
    assert!(energy(&host.play(RATE, BLOCK, &[], Some(&input))) < 1e-10, "notes play, and there are none");
    // What plays is chosen anew when the host begins anew, for which it is asked.
    host.block(BLOCK, &[(0, Do::Turn("Played by", 1.0))], Some(&input[..BLOCK]));
    assert!(host.restart_wanted());
    host.deactivate();
    host.activate(RATE as f64, BLOCK as u32);
    host.settle(RATE as f64, BLOCK as u32);
    assert!(host.latency() > 0, "it takes time to hear");
    let followed = host.play(RATE, BLOCK, &[], Some(&input));
    assert!(more(&followed[RATE / 2..], LOW, HIGH) > 20.0, "at the pitch of the sound");
    let silence = host.tail() + RATE;
    host.play(silence, BLOCK, &[], None);
    assert!(energy(&host.play(RATE, BLOCK, &note, None)) < 1e-10, "notes do not play");
    // As the effect does.
    assert_eq!(followed, open(EFFECT, &[]).play(RATE, BLOCK, &[], Some(&input)));

    host.block(BLOCK, &[(0, Do::Turn("Played by", 0.0))], None);
    assert!(host.restart_wanted());
    host.deactivate();
    host.activate(RATE as f64, BLOCK as u32);
    host.settle(RATE as f64, BLOCK as u32);
    assert!(energy(&host.play(RATE, BLOCK, &note, None)) > 1e-6);
}

#[test]
fn how_notes_are_played_is_saved_with_the_project() {
    let saved = [
        ("mode", serde_json::json!({ "string": "legato" })),
        ("glide", serde_json::json!({ "f32": 345.0 })),
        ("voices", serde_json::json!({ "i32": 3 })),
    ];
    let mut one = open(INSTRUMENT, &saved);
    assert_eq!((one.value("Mode"), one.value("Voices")), (3.0, 3.0));
    let text = |host: &mut Host, name| {
        let value = host.value(name);
        host.text(name, value)
    };
    let texts = ["Mode", "Glide", "Voices"].map(|name| text(&mut one, name));
    assert_eq!(texts, ["Legato", "345 ms", "3"]);
    let first = overlapping(&mut one);
    let bytes = one.save();
    let mut two = Host::new(INSTRUMENT);
    assert_eq!(["Mode", "Glide", "Voices"].map(|name| text(&mut two, name)), ["As made"; 3]);
    assert!(two.load(&bytes));
    two.set_offline(true);
    two.activate(RATE as f64, BLOCK as u32);
    assert_eq!(["Mode", "Glide", "Voices"].map(|name| text(&mut two, name)), texts);
    assert_eq!(overlapping(&mut two), first);
    assert_ne!(overlapping(&mut open(INSTRUMENT, &[])), first);
    // Panic is pressed, not saved as sound: a project saved with it on plays.
    let mut host = open(INSTRUMENT, &[("panic", json(&bytes)["params"]["bypass"].clone())]);
    host.block(BLOCK, &[(0, Do::Turn("Panic", 1.0))], None);
    let pressed = host.save();
    let mut other = Host::new(INSTRUMENT);
    assert!(other.load(&pressed));
    other.set_offline(true);
    other.activate(RATE as f64, BLOCK as u32);
    assert_eq!(other.value("Panic"), 1.0);
    assert!(energy(&other.play(RATE / 2, BLOCK, &[(0, Do::On(60, 0.8))], None)) > 1e-6);
}
