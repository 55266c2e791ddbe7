//! Play modes, glide, voices, panic, note expressions and the control source, set by a host.

use std::f64::consts::TAU;

use clack_host::events::event_types::NoteExpressionType;
use ondes_engine::instrument::EventKind;
use ondes_engine::pipeline::{
    Action, GLIDE, PLAY_MODE, PipelineOptions, ProcessRequest, TimedCommand, build_playable,
};
use ondes_player::library::BUNDLED;

use crate::host::{EFFECT, Host, HostEvent, INSTRUMENT, energy, json, state, with_selection};

const RATE: usize = 48_000;
const BLOCK: usize = 512;
/// Key and frequency in Hz. Neither note has an overtone near one of the other's.
const LOW: (u8, f64) = (57, 220.0);
const HIGH: (u8, f64) = (64, 329.63);

/// Returns an active instance that plays the first bundled instrument, with these saved parameter
/// values.
fn open(id: &str, parameters: &[(&str, serde_json::Value)]) -> Host {
    let mut host = Host::new(id);
    let mut saved = json(&host.save());
    saved["params"]["driver"] = serde_json::json!({ "string": "inline" });
    for (id, value) in parameters {
        assert!(!saved["params"][id].is_null(), "{id}");
        saved["params"][id] = value.clone();
    }
    let hash = BUNDLED[0].model().content_hash().to_owned();
    assert!(host.load(&with_selection(
        &state(&saved),
        |selection| selection["model"]["hash"] = hash.into()
    )));
    host.set_offline(true);
    host.activate(RATE as f64, BLOCK as u32);
    host
}

/// Returns the power at a frequency in Hz.
fn power(sound: &[f32], hz: f64) -> f64 {
    let (mut real, mut imaginary) = (0.0, 0.0);
    for (n, sample) in sound.iter().enumerate() {
        let phase = TAU * hz * n as f64 / RATE as f64;
        // Hann window, against leakage from neighbouring frequencies.
        let window = 0.5 - 0.5 * (TAU * n as f64 / sound.len() as f64).cos();
        real += window * f64::from(*sample) * phase.cos();
        imaginary += window * f64::from(*sample) * phase.sin();
    }
    (real * real + imaginary * imaginary) / (sound.len() as f64).powi(2)
}

/// Returns the level of one note relative to another, in dB.
fn level_ratio_db(sound: &[f32], note: (u8, f64), other: (u8, f64)) -> f64 {
    10.0 * (power(sound, note.1) / power(sound, other.1).max(1e-30)).log10()
}

/// Plays the low note, after 1 s the high one as well, and releases the high one after 2 s. Returns
/// the second half of each of the three seconds.
fn overlapping(host: &mut Host) -> [Vec<f32>; 3] {
    let events = [
        (0, HostEvent::NoteOn(LOW.0, 0.8)),
        (RATE, HostEvent::NoteOn(HIGH.0, 0.8)),
        (2 * RATE, HostEvent::NoteOff(HIGH.0)),
    ];
    let sound = host.play(3 * RATE, BLOCK, &events, None);
    [0, 1, 2].map(|part| sound[part * RATE + RATE / 2..(part + 1) * RATE].to_vec())
}

#[test]
fn a_note_off_ends_the_note_with_its_id() {
    let key = LOW.0;
    for [first, second] in [[1, 2], [2, 1]] {
        let mut host = open(INSTRUMENT, &[]);
        let events = [
            (0, HostEvent::NumberedNoteOn(key, 1, 0.8)),
            (RATE / 2, HostEvent::NumberedNoteOn(key, 2, 0.8)),
            (RATE, HostEvent::NumberedNoteOff(key, first)),
            (3 * RATE, HostEvent::NumberedNoteOff(key, second)),
        ];
        let sound = host.play(6 * RATE, BLOCK, &events, None);
        let [one, none] =
            [2 * RATE..3 * RATE, 5 * RATE..6 * RATE].map(|part| power(&sound[part], LOW.1));
        assert!(
            one > 1e3 * none,
            "{first} ends before {second}: {one:e}, {none:e}"
        );
    }
}

#[test]
fn mono_and_legato_share_one_voice() {
    for mode in ["model", "poly", "mono", "legato"] {
        let mut host = open(
            INSTRUMENT,
            &[("mode", serde_json::json!({ "string": mode }))],
        );
        let [low, both, again] = overlapping(&mut host);
        assert!(level_ratio_db(&low, LOW, HIGH) > 20.0, "{mode}");
        assert!(
            level_ratio_db(&again, LOW, HIGH) > 20.0,
            "{mode}: the held note continues"
        );
        let shared = matches!(mode, "mono" | "legato");
        assert_eq!(
            level_ratio_db(&both, HIGH, LOW) > 20.0,
            shared,
            "{mode}: {}",
            level_ratio_db(&both, HIGH, LOW)
        );
    }
}

#[test]
fn mono_and_legato_equal_the_engine() {
    let events = [
        (0, HostEvent::NoteOn(LOW.0, 0.8)),
        (20_000, HostEvent::NoteOn(HIGH.0, 0.5)),
        (30_000, HostEvent::NoteOff(HIGH.0)),
    ];
    let on = |key, velocity| EventKind::NoteOn {
        channel: 0,
        key,
        velocity,
    };
    let engine_events = [
        (0, on(LOW.0, 0.8)),
        (20_000, on(HIGH.0, 0.5)),
        (
            30_000,
            EventKind::NoteOff {
                channel: 0,
                key: HIGH.0,
                velocity: 0.5,
            },
        ),
    ];
    let mut played = Vec::new();
    for (mode, number) in [("mono", 2.0), ("legato", 3.0)] {
        let glide = ("glide", serde_json::json!({ "f32": 120.0 }));
        let mut host = open(
            INSTRUMENT,
            &[("mode", serde_json::json!({ "string": mode })), glide],
        );
        let sound = host.play(RATE, BLOCK, &events, None);
        let mut model = build_playable(&BUNDLED[0].model(), &PipelineOptions::default()).unwrap();
        let set = |(id, value)| TimedCommand {
            at: 0,
            action: Action::Control { id, value },
        };
        let play = |(at, kind)| TimedCommand {
            at,
            action: Action::Play(kind),
        };
        for command in [(PLAY_MODE, number), (GLIDE, 120.0)]
            .map(set)
            .into_iter()
            .chain(engine_events.map(play))
        {
            model.handle(0, command).unwrap();
        }
        let [mut expected, mut right] = [(); 2].map(|()| vec![0.0; RATE]);
        model.process(&mut [ProcessRequest {
            slot: 0,
            input: [&[]; 2],
            output: [&mut expected, &mut right],
            mute: false,
        }]);
        assert_eq!(sound, expected, "{mode}");
        played.push(sound);
    }
    assert_eq!(played[0][..20_000], played[1][..20_000]);
    assert_ne!(played[0], played[1], "mono retriggers, legato does not");
}

#[test]
fn glide_sets_the_slide_time() {
    // The pitch half-way through the slide.
    let middle = (0, (LOW.1 * HIGH.1).sqrt());
    for (glide_ms, at_half) in [(0.0, false), (1000.0, true)] {
        let parameters = [
            ("mode", serde_json::json!({ "string": "legato" })),
            ("glide", serde_json::json!({ "f32": glide_ms })),
        ];
        let mut host = open(INSTRUMENT, &parameters);
        host.play(RATE, BLOCK, &[(0, HostEvent::NoteOn(LOW.0, 0.8))], None);
        let slide = host.play(RATE, BLOCK, &[(0, HostEvent::NoteOn(HIGH.0, 0.8))], None);
        let latency = host.latency();
        let half = &slide[latency + 22_000..latency + 26_000];
        assert_eq!(
            level_ratio_db(half, middle, HIGH) > 6.0,
            at_half,
            "{glide_ms} ms: {}",
            level_ratio_db(half, middle, HIGH)
        );
        let end = host.play(RATE / 2, BLOCK, &[], None);
        assert!(
            level_ratio_db(&end, HIGH, middle) > 20.0,
            "{glide_ms} ms: the slide ends at the high note"
        );
    }
}

#[test]
fn with_one_voice_the_second_note_replaces_the_first() {
    let mut host = open(INSTRUMENT, &[("voices", serde_json::json!({ "i32": 1 }))]);
    let [low, both, _] = overlapping(&mut host);
    assert!(level_ratio_db(&low, LOW, HIGH) > 20.0);
    assert!(
        level_ratio_db(&both, HIGH, LOW) > 20.0,
        "{}",
        level_ratio_db(&both, HIGH, LOW)
    );
    // Changed while playing to the model's own number of voices.
    let mut host = open(INSTRUMENT, &[("voices", serde_json::json!({ "i32": 1 }))]);
    host.block(BLOCK, &[(3, HostEvent::SetParameter("Voices", 0.0))], None);
    let [_, both, _] = overlapping(&mut host);
    assert!(
        level_ratio_db(&both, HIGH, LOW).abs() < 20.0,
        "{}",
        level_ratio_db(&both, HIGH, LOW)
    );
}

#[test]
fn the_play_mode_can_change_while_notes_sound() {
    let play = |turn: &[(usize, HostEvent)]| {
        let mut events = vec![
            (0, HostEvent::NoteOn(LOW.0, 0.8)),
            (RATE / 2, HostEvent::NoteOn(HIGH.0, 0.8)),
        ];
        events.extend_from_slice(turn);
        events.sort_by_key(|(time, _)| *time);
        open(INSTRUMENT, &[]).play(RATE, BLOCK, &events, None)
    };
    let poly = play(&[]);
    let mono = play(&[(10_001, HostEvent::SetParameter("Mode", 2.0))]);
    assert_eq!(
        mono[..RATE / 2],
        poly[..RATE / 2],
        "a single note sounds the same"
    );
    assert!(level_ratio_db(&mono[3 * RATE / 4..], HIGH, LOW) > 20.0);
    // A change after the second note has no effect on it.
    let late = play(&[
        (RATE / 2 + 1, HostEvent::SetParameter("Glide", 2_000.0)),
        (RATE / 2 + 1, HostEvent::SetParameter("Mode", 1.0)),
    ]);
    assert_eq!(late, poly);
}

#[test]
fn panic_silences_from_its_sample_on_each_time_it_is_switched_on() {
    const AT: usize = 24_000 + 123;
    const FADE: usize = RATE / 50;
    // With the default reverb and with the longest.
    for room in [0.5, 1.0] {
        let play = |events: &[(usize, HostEvent)]| {
            let mut host = open(
                INSTRUMENT,
                &[("macro2", serde_json::json!({ "f32": room }))],
            );
            let events = [
                &[
                    (0, HostEvent::NoteOn(60, 0.8)),
                    (0, HostEvent::NoteOn(67, 0.8)),
                ],
                events,
            ]
            .concat();
            host.play(3 * RATE, BLOCK, &events, None)
        };
        let plain = play(&[]);
        let (on, off) = (
            HostEvent::SetParameter("Panic", 1.0),
            HostEvent::SetParameter("Panic", 0.0),
        );
        let sound = play(&[
            (AT, on.clone()),
            (RATE, HostEvent::NoteOn(64, 0.8)),
            (2 * RATE, off),
            (2 * RATE + 17, on),
        ]);
        assert_eq!(sound[..AT], plain[..AT]);
        assert_ne!(sound[AT..AT + 100], plain[AT..AT + 100]);
        let silence = |sound: &[f32]| sound.iter().all(|sample| *sample == 0.0);
        assert!(energy(&plain[AT + FADE..RATE]) > 1e-6 && silence(&sound[AT + FADE..RATE]));
        // Panic is an event: later notes sound, and switching it off has no effect.
        let next = energy(&sound[RATE + RATE / 2..2 * RATE]);
        assert!(next > 1e-6 && energy(&sound[2 * RATE - 500..2 * RATE + 17]) > 0.1 * next);
        assert!(silence(&sound[2 * RATE + 17 + FADE..]));
    }
}

#[test]
fn an_effect_continues_after_a_panic() {
    let input: Vec<f32> = (0..3 * RATE)
        .map(|n| (0.4 * (TAU * 220.0 * n as f64 / RATE as f64).sin()) as f32)
        .collect();
    let plain = open(EFFECT, &[]).play(3 * RATE, BLOCK, &[], Some(&input));
    let sound = open(EFFECT, &[]).play(
        3 * RATE,
        BLOCK,
        &[(RATE, HostEvent::SetParameter("Panic", 1.0))],
        Some(&input),
    );
    assert!(
        sound[RATE + RATE / 50..RATE + RATE / 4]
            .iter()
            .all(|sample| *sample == 0.0)
    );
    assert_eq!(sound[2 * RATE..], plain[2 * RATE..]);
}

#[test]
fn a_note_expression_changes_its_note_alone() {
    let play = |events: &[(usize, HostEvent)]| {
        let events = [
            &[
                (0, HostEvent::NoteOn(LOW.0, 0.8)),
                (0, HostEvent::NoteOn(HIGH.0, 0.8)),
            ],
            events,
        ]
        .concat();
        open(INSTRUMENT, &[]).play(2 * RATE, BLOCK, &events, None)
    };
    let plain = play(&[]);
    let express = |value| HostEvent::NoteExpression(LOW.0, NoteExpressionType::Expression, value);
    let faded = play(&[(RATE / 2, express(0.0))]);
    assert_eq!(faded[..RATE / 2], plain[..RATE / 2]);
    let end = RATE + RATE / 2..;
    assert!(
        power(&faded[end.clone()], LOW.1) < 1e-4 * power(&plain[end.clone()], LOW.1),
        "the low note is gone"
    );
    let kept = power(&faded[end.clone()], HIGH.1) / power(&plain[end.clone()], HIGH.1);
    assert!((0.5..2.0).contains(&kept), "the high note remains: {kept}");
    assert_eq!(
        play(&[(RATE / 2, express(1.0))]),
        plain,
        "1 is the neutral value"
    );
    let half = play(&[(RATE / 2, express(0.5))]);
    let left = power(&half[end.clone()], LOW.1) / power(&plain[end], LOW.1);
    assert!((1e-3..0.7).contains(&left), "{left}");
}

#[test]
fn brightness_changes_the_timbre_of_its_note_alone() {
    let play = |events: &[(usize, HostEvent)]| {
        let events = [
            &[
                (0, HostEvent::NoteOn(LOW.0, 0.8)),
                (0, HostEvent::NoteOn(HIGH.0, 0.8)),
            ],
            events,
        ]
        .concat();
        open(INSTRUMENT, &[]).play(2 * RATE, BLOCK, &events, None)
    };
    let express = |value| {
        (
            RATE / 2,
            HostEvent::NoteExpression(LOW.0, NoteExpressionType::Brightness, value),
        )
    };
    let [plain, dark, bright] = [
        play(&[express(0.5)]),
        play(&[express(0.0)]),
        play(&[express(1.0)]),
    ];
    assert_eq!(plain, play(&[]), "0.5 is the neutral value");
    assert_eq!(bright[..RATE / 2], plain[..RATE / 2]);
    let end = RATE + RATE / 2..;
    // Share of the octave above, which the high note does not have.
    let overtone =
        |sound: &[f32]| power(&sound[end.clone()], 2.0 * LOW.1) / power(&sound[end.clone()], LOW.1);
    let ratios = [&dark, &plain, &bright].map(|sound| overtone(sound));
    assert!(
        1.01 * ratios[0] < ratios[1] && 1.01 * ratios[1] < ratios[2],
        "{ratios:?}"
    );
    let kept = power(&bright[end.clone()], HIGH.1) / power(&dark[end.clone()], HIGH.1);
    assert!((0.5..2.0).contains(&kept), "the high note remains: {kept}");
}

#[test]
fn an_mpe_zone_bends_each_note_by_itself() {
    let midi = |bytes| (0, HostEvent::Midi(bytes));
    // A lower zone of 15 members, whose wheels reach 48 semitones.
    let zone = [[0xB0, 101, 0], [0xB0, 100, 6], [0xB0, 6, 15]];
    let notes = [[0x91, LOW.0, 100], [0x92, HIGH.0, 100]];
    let mut events: Vec<(usize, HostEvent)> = zone.into_iter().chain(notes).map(midi).collect();
    // Five semitones up.
    let wheel: u16 = 8192 + 8192 * 5 / 48;
    events.push((
        RATE / 2,
        HostEvent::Midi([0xE1, (wheel & 0x7F) as u8, (wheel >> 7) as u8]),
    ));
    let sound = open(INSTRUMENT, &[]).play(2 * RATE, BLOCK, &events, None);
    let bent = (0, LOW.1 * (5.0_f64 / 12.0).exp2());
    let (before, after) = (&sound[RATE / 4..RATE / 2], &sound[RATE + RATE / 2..]);
    assert!(level_ratio_db(before, LOW, bent) > 20.0 && level_ratio_db(after, bent, LOW) > 20.0);
    let kept = power(after, HIGH.1) / power(before, HIGH.1);
    assert!(
        (0.1..10.0).contains(&kept),
        "the other note is not bent: {kept}"
    );
}

#[test]
fn the_control_source_switches_between_side_chain_and_notes() {
    let input: Vec<f32> = (0..RATE)
        .map(|n| (0.4 * (TAU * 220.0 * n as f64 / RATE as f64).sin()) as f32)
        .collect();
    let note = [(0, HostEvent::NoteOn(60, 0.8))];
    let mut host = open(INSTRUMENT, &[]);
    host.play(BLOCK, BLOCK, &[], Some(&input));
    assert!(
        energy(&host.play(RATE, BLOCK, &[], Some(&input))) < 1e-10,
        "without notes MIDI mode is silent"
    );
    // A new control source takes effect after a restart, which is requested.
    host.block(
        BLOCK,
        &[(0, HostEvent::SetParameter("Control source", 1.0))],
        Some(&input[..BLOCK]),
    );
    assert!(host.restart_requested());
    host.deactivate();
    host.activate(RATE as f64, BLOCK as u32);
    host.restart_while_requested(RATE as f64, BLOCK as u32);
    assert!(host.latency() > 0, "pitch analysis has latency");
    let followed = host.play(RATE, BLOCK, &[], Some(&input));
    assert!(
        level_ratio_db(&followed[RATE / 2..], LOW, HIGH) > 20.0,
        "follows the side-chain's pitch"
    );
    let silence = host.tail() + RATE;
    host.play(silence, BLOCK, &[], None);
    assert!(
        energy(&host.play(RATE, BLOCK, &note, None)) < 1e-10,
        "notes have no effect"
    );
    // Equal to the effect.
    assert_eq!(
        followed,
        open(EFFECT, &[]).play(RATE, BLOCK, &[], Some(&input))
    );

    host.block(
        BLOCK,
        &[(0, HostEvent::SetParameter("Control source", 0.0))],
        None,
    );
    assert!(host.restart_requested());
    host.deactivate();
    host.activate(RATE as f64, BLOCK as u32);
    host.restart_while_requested(RATE as f64, BLOCK as u32);
    assert!(energy(&host.play(RATE, BLOCK, &note, None)) > 1e-6);
}

#[test]
fn play_mode_glide_and_voices_are_saved() {
    let saved = [
        ("mode", serde_json::json!({ "string": "legato" })),
        ("glide", serde_json::json!({ "f32": 345.0 })),
        ("voices", serde_json::json!({ "i32": 3 })),
    ];
    let mut one = open(INSTRUMENT, &saved);
    assert_eq!((one.value("Mode"), one.value("Voices")), (3.0, 3.0));
    let text = |host: &mut Host, name| {
        let value = host.value(name);
        host.value_to_text(name, value)
    };
    let texts = ["Mode", "Glide", "Voices"].map(|name| text(&mut one, name));
    assert_eq!(texts, ["Legato", "345 ms", "3"]);
    let first = overlapping(&mut one);
    let bytes = one.save();
    let mut two = Host::new(INSTRUMENT);
    assert_eq!(
        ["Mode", "Glide", "Voices"].map(|name| text(&mut two, name)),
        ["Model default"; 3]
    );
    assert!(two.load(&bytes));
    two.set_offline(true);
    two.activate(RATE as f64, BLOCK as u32);
    assert_eq!(
        ["Mode", "Glide", "Voices"].map(|name| text(&mut two, name)),
        texts
    );
    assert_eq!(overlapping(&mut two), first);
    assert_ne!(overlapping(&mut open(INSTRUMENT, &[])), first);
    // A project saved with panic on still plays.
    let mut host = open(
        INSTRUMENT,
        &[("panic", json(&bytes)["params"]["bypass"].clone())],
    );
    host.block(BLOCK, &[(0, HostEvent::SetParameter("Panic", 1.0))], None);
    let pressed = host.save();
    let mut other = Host::new(INSTRUMENT);
    assert!(other.load(&pressed));
    other.set_offline(true);
    other.activate(RATE as f64, BLOCK as u32);
    assert_eq!(other.value("Panic"), 0.0, "it is a moment's");
    assert!(energy(&other.play(RATE / 2, BLOCK, &[(0, HostEvent::NoteOn(60, 0.8))], None)) > 1e-6);
}
