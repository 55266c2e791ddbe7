//! Sostenuto, soft and legato pedals, portamento, and mono and poly mode.

use super::*;

fn at(seconds: f64) -> u64 {
    (seconds * RATE) as u64
}

fn frame(frames: &[Vec<VoiceFrame>], seconds: f64) -> Vec<VoiceFrame> {
    sounding(&frames[(at(seconds) / u64::from(HOP)) as usize])
}

fn pitches(frames: &[Vec<VoiceFrame>], seconds: f64) -> Vec<f32> {
    let mut pitches: Vec<f32> = frame(frames, seconds)
        .iter()
        .map(|slot| slot.pitch)
        .collect();
    pitches.sort_by(f32::total_cmp);
    pitches
}

/// Performance whose notes end soon after their release.
fn short() -> Performance {
    Performance {
        release_ms: 20.0,
        ..steady()
    }
}

#[test]
fn sostenuto_holds_the_keys_that_are_down() {
    let pedal = |seconds, value| control(at(seconds), controller::SOSTENUTO, value);
    let events = [
        on(0, 60),
        pedal(0.1, 1.0),
        on(at(0.2), 64),
        // Pressed harder, it does not take hold of more keys.
        pedal(0.25, 0.8),
        off(at(0.3), 60),
        off(at(0.3), 64),
        pedal(0.8, 0.2),
    ];
    let frames = play(&mut voices(&short(), 8), &events, at(1.2));
    assert_eq!(
        [0.25, 0.7, 1.1].map(|seconds| pitches(&frames, seconds)),
        [vec![60.0, 64.0], vec![60.0], vec![]]
    );
    // The sustain pedal holds all, and leaves those of the sostenuto pedal.
    let sustain = |seconds, value| control(at(seconds), controller::SUSTAIN, value);
    let events = [
        &events[..4],
        &[sustain(0.28, 1.0)],
        &events[4..6],
        &[sustain(0.5, 0.0)],
        &events[6..],
    ]
    .concat();
    let frames = play(&mut voices(&short(), 8), &events, at(1.2));
    let heard = [0.4, 0.7, 1.1].map(|seconds| pitches(&frames, seconds));
    assert_eq!(heard, [vec![60.0, 64.0], vec![60.0], vec![]]);
    // A key that is struck again keeps its damper up; all notes off leaves the pedal's notes, a
    // reset does not.
    for (number, left) in [(controller::ALL_NOTES_OFF, 1), (controller::RESET, 0)] {
        let events = [
            on(0, 60),
            pedal(0.1, 1.0),
            off(at(0.2), 60),
            on(at(0.3), 60),
            off(at(0.4), 60),
            control(at(0.6), number, 0.0),
        ];
        let frames = play(&mut voices(&short(), 8), &events, at(1.2));
        assert_eq!(
            [0.5, 1.1].map(|seconds| frame(&frames, seconds).len()),
            [1, left]
        );
    }
}

#[test]
fn the_soft_pedal_softens_new_notes() {
    let loudness = |events: &[Event]| {
        frame(&play(&mut voices(&steady(), 8), events, at(1.0)), 0.9)[0].loudness
    };
    let pedal = |seconds, value| control(at(seconds), controller::SOFT, value);
    let plain = loudness(&[on(0, 60)]);
    let softer = Event {
        at: 0,
        kind: EventKind::NoteOn {
            channel: 0,
            key: 60,
            velocity: 0.8 * 2.0 / 3.0,
        },
    };
    assert_eq!(loudness(&[pedal(0.0, 1.0), on(0, 60)]), loudness(&[softer]));
    assert!(loudness(&[softer]) < plain - 3.0);
    assert_eq!(
        loudness(&[pedal(0.0, 1.0), pedal(0.0, 0.0), on(0, 60)]),
        plain
    );
    assert_eq!(
        loudness(&[
            pedal(0.0, 1.0),
            control(0, controller::RESET, 0.0),
            on(0, 60)
        ]),
        plain
    );
    assert_eq!(
        loudness(&[on(0, 60), pedal(0.1, 1.0)]),
        plain,
        "sounding notes stay"
    );
}

#[test]
fn portamento_glides_from_the_previous_note() {
    let time = control(0, controller::PORTAMENTO_TIME, 80.0 / 127.0);
    let switch = |seconds, value| control(at(seconds), controller::PORTAMENTO, value);
    let events = [
        time,
        switch(0.0, 1.0),
        on(0, 60),
        off(at(1.0), 60),
        on(at(1.0), 72),
    ];
    let frames = play(&mut voices(&short(), 8), &events, at(3.0));
    // An octave takes a third of 4.2 s.
    assert_eq!(pitches(&frames, 0.9), [60.0]);
    let glide = [1.1, 1.7, 2.3, 2.5].map(|seconds| pitches(&frames, seconds)[0]);
    assert!(glide[0] > 60.0 && glide[0] < 60.5, "{glide:?}");
    assert!((glide[1] - 66.0).abs() < 0.1, "{glide:?}");
    assert!(glide[2] < 72.0 && glide[3] == 72.0, "{glide:?}");
    // Off, after a reset, and for a first note there is no glide.
    for events in [
        vec![time, on(0, 60), off(at(1.0), 60), on(at(1.0), 72)],
        [&events[..4], &[switch(1.0, 0.0), events[4]]].concat(),
        [
            &events[..4],
            &[control(at(1.0), controller::RESET, 0.0), events[4]],
        ]
        .concat(),
        vec![time, switch(0.0, 1.0), on(at(1.0), 72)],
    ] {
        let frames = play(&mut voices(&short(), 8), &events, at(2.0));
        assert_eq!(pitches(&frames, 1.1), [72.0]);
    }
    // A shared voice glides in the same time.
    for mode in [PlayMode::Mono, PlayMode::Legato] {
        let performance = Performance { mode, ..short() };
        let events = [time, switch(0.0, 1.0), on(0, 60), on(at(1.0), 72)];
        let frames = play(&mut voices(&performance, 8), &events, at(3.0));
        assert!((pitches(&frames, 1.7)[0] - 66.0).abs() < 0.1);
        assert_eq!(pitches(&frames, 2.5), [72.0]);
    }
}

#[test]
fn portamento_control_glides_from_a_key() {
    let time = control(0, controller::PORTAMENTO_TIME, 80.0 / 127.0);
    let source = |seconds| control(at(seconds), controller::PORTAMENTO_CONTROL, 48.0 / 127.0);
    // From a key that does not sound, once.
    let events = [
        time,
        source(0.0),
        on(0, 60),
        off(at(2.0), 60),
        on(at(2.0), 72),
    ];
    let frames = play(&mut voices(&short(), 8), &events, at(3.0));
    assert!((pitches(&frames, 0.7)[0] - 54.0).abs() < 0.1);
    assert_eq!(pitches(&frames, 2.1), [72.0]);
    // The note of a key that is held slides itself.
    let events = [
        time,
        on(0, 48),
        source(1.0),
        on(at(1.0), 60),
        off(at(3.0), 48),
        off(at(3.5), 60),
    ];
    let frames = play(&mut voices(&short(), 8), &events, at(4.0));
    assert!((pitches(&frames, 1.7)[0] - 54.0).abs() < 0.1);
    assert_eq!(
        [2.9, 3.4, 3.9].map(|seconds| pitches(&frames, seconds)),
        [vec![60.0], vec![60.0], vec![]]
    );
}

#[test]
fn the_legato_pedal_slurs() {
    let pedal = |seconds, value| control(at(seconds), controller::LEGATO, value);
    let events = [
        pedal(0.0, 1.0),
        on(0, 60),
        on(at(0.3), 64),
        off(at(0.6), 64),
        off(at(0.9), 60),
        pedal(1.1, 0.0),
    ];
    let performance = Performance {
        glide_ms: 0.0,
        ..short()
    };
    let frames = play(&mut voices(&performance, 8), &events, at(1.2));
    assert_eq!(
        [0.2, 0.5, 0.8, 1.1].map(|seconds| pitches(&frames, seconds)),
        [vec![60.0], vec![64.0], vec![60.0], vec![]]
    );
    // It goes down on a chord: the last key stays.
    let events = [
        on(0, 60),
        on(at(0.1), 64),
        pedal(0.3, 1.0),
        pedal(0.6, 0.0),
        on(at(0.7), 67),
    ];
    let frames = play(&mut voices(&performance, 8), &events, at(1.0));
    assert_eq!(
        [0.2, 0.5, 0.9].map(|seconds| pitches(&frames, seconds)),
        [vec![60.0, 64.0], vec![64.0], vec![64.0, 67.0]]
    );
}

#[test]
fn mode_messages_choose_one_voice_or_several() {
    let message = |seconds, number| control(at(seconds), number, 0.0);
    let performance = Performance {
        glide_ms: 0.0,
        ..short()
    };
    let chord = |seconds: f64| [on(at(seconds), 60), on(at(seconds + 0.1), 64)];
    let events = [
        &[message(0.0, controller::MONO)],
        &chord(0.0)[..],
        &[message(0.3, controller::POLY)],
        &chord(0.5),
    ]
    .concat();
    let frames = play(&mut voices(&performance, 8), &events, at(1.0));
    let heard = [0.2, 0.45, 0.9].map(|seconds| pitches(&frames, seconds));
    assert_eq!(heard, [vec![64.0], vec![], vec![60.0, 64.0]]);
    // Other channels stay as they are, and the user's own setting wins.
    let other = Event {
        at: 0,
        kind: EventKind::Controller {
            channel: 1,
            number: controller::MONO,
            value: 0.0,
        },
    };
    let frames = play(
        &mut voices(&performance, 8),
        &[&[other][..], &chord(0.0)].concat(),
        at(0.3),
    );
    assert_eq!(pitches(&frames, 0.2).len(), 2);
    let mut poly = voices(&performance, 8);
    poly.set(0, Setting::Mode(Some(PlayMode::Poly))).unwrap();
    let frames = play(
        &mut poly,
        &[&[message(0.0, controller::MONO)], &chord(0.0)[..]].concat(),
        at(0.3),
    );
    assert_eq!(pitches(&frames, 0.2).len(), 2);
}

#[test]
fn a_note_of_no_length_is_as_short_as_a_staccato() {
    for performance in [steady(), Performance::plucked()] {
        let loudest = |length: f64| {
            let frames = play(
                &mut voices(&performance, 8),
                &[on(at(0.1), 60), off(at(0.1 + length), 60)],
                at(4.0),
            );
            assert!(
                frames
                    .last()
                    .is_some_and(|frame| sounding(frame).is_empty()),
                "it ends"
            );
            frames
                .iter()
                .flatten()
                .filter(|slot| slot.sounding)
                .map(|slot| slot.loudness)
                .fold(-200.0, f32::max)
        };
        let shortest = loudest(0.0);
        assert!(shortest > -60.0, "{shortest}");
        assert_eq!(loudest(0.01), shortest);
        assert!(loudest(0.05) >= shortest);
    }
}
