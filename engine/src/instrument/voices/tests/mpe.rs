//! MPE zones: events of a manager apply to its members.

use super::*;

fn zone(manager: u8, members: u8) -> Event {
    Event {
        at: 0,
        kind: EventKind::Zone { manager, members },
    }
}

fn on_channel(at: u64, channel: u8, key: u8) -> Event {
    Event {
        at,
        kind: EventKind::NoteOn {
            channel,
            key,
            velocity: 0.8,
        },
    }
}

fn off_channel(at: u64, channel: u8, key: u8) -> Event {
    Event {
        at,
        kind: EventKind::NoteOff {
            channel,
            key,
            velocity: 0.5,
        },
    }
}

fn bend(at: u64, channel: u8, semitones: f32) -> Event {
    Event {
        at,
        kind: EventKind::Bend { channel, semitones },
    }
}

fn pressure(at: u64, channel: u8, value: f32) -> Event {
    Event {
        at,
        kind: EventKind::Pressure { channel, value },
    }
}

fn turn(at: u64, channel: u8, number: u8, value: f32) -> Event {
    Event {
        at,
        kind: EventKind::Controller {
            channel,
            number,
            value,
        },
    }
}

/// Plays a note on member 1 and one outside the zone, with further events; returns the settled
/// frame of both.
fn settled(more: &[Event]) -> (VoiceFrame, VoiceFrame) {
    let mut events = vec![zone(0, 2), on_channel(0, 1, 60), on_channel(0, 7, 72)];
    events.extend(more);
    let frames = play(&mut voices(&steady(), 8), &events, 48_000);
    (frames[249][0], frames[249][1])
}

#[test]
fn managers_apply_to_their_members() {
    let (rest, outside) = settled(&[]);
    let moved = |more: &[Event]| {
        let (note, other) = settled(more);
        assert_eq!(other, outside);
        note
    };
    let note = moved(&[bend(9_600, 0, 1.5), bend(9_600, 1, -12.0)]);
    assert!((note.pitch - 49.5).abs() < 1e-3);
    // The larger one applies.
    let hard = moved(&[pressure(9_600, 1, 0.8)]).loudness;
    assert!(hard > rest.loudness + 2.0);
    assert!(
        (moved(&[pressure(9_600, 1, 0.8), pressure(9_600, 0, 0.3)]).loudness - hard).abs() < 1e-3
    );
    assert!(
        (moved(&[pressure(9_600, 1, 0.3), pressure(9_600, 0, 0.8)]).loudness - hard).abs() < 1e-3
    );
    // Faders multiply.
    let half = |channel, number| turn(9_600, channel, number, 0.5);
    let note = moved(&[half(0, controller::VOLUME), half(1, controller::VOLUME)]);
    assert!((note.gain - 0.0625).abs() < 1e-4);
    let note = moved(&[
        half(0, controller::EXPRESSION),
        half(1, controller::EXPRESSION),
    ]);
    assert!((note.loudness - rest.loudness + 24.08).abs() < 0.1);
    // Timbre is added and limited.
    let timbre = |channel, value| turn(9_600, channel, controller::TIMBRE, value);
    assert!((moved(&[timbre(0, 0.75), timbre(1, 0.375)]).brightness - 3.0).abs() < 0.01);
    assert!((moved(&[timbre(0, 1.0), timbre(1, 0.8)]).brightness - 12.0).abs() < 0.01);
}

#[test]
fn the_managers_wheel_makes_vibrato() {
    let performance = Performance {
        vibrato_wheel_cents: 40.0,
        ..steady()
    };
    for channel in [0, 1] {
        let events = [
            zone(0, 2),
            turn(0, channel, controller::MOD_WHEEL, 1.0),
            on_channel(0, 1, 60),
        ];
        let frames = play(&mut voices(&performance, 8), &events, 96_000);
        let depth = frames[100..]
            .iter()
            .map(|frame| (frame[0].pitch - 60.0).abs())
            .fold(0.0, f32::max);
        assert!((depth - 0.4).abs() < 0.01);
    }
}

#[test]
fn a_managers_pedal_and_mode_messages_reach_its_members() {
    let pedal = |at, value| turn(at, 0, controller::SUSTAIN, value);
    let start = [zone(0, 2), on_channel(0, 1, 60), on_channel(0, 7, 72)];
    let run = |more: &[Event]| {
        let events: Vec<_> = start.iter().chain(more).copied().collect();
        play(&mut voices(&steady(), 8), &events, 96_000)
    };
    let frames = run(&[
        pedal(4_800, 1.0),
        off_channel(9_600, 1, 60),
        off_channel(9_600, 7, 72),
        pedal(48_000, 0.0),
    ]);
    assert!(frames[249][0].sounding && !frames[249][1].sounding);
    assert!(!frames[499][0].sounding);

    let frames = run(&[turn(24_000, 0, controller::ALL_SOUND_OFF, 0.0)]);
    assert!(!frames[128][0].sounding && frames[128][1].sounding);
    let frames = run(&[turn(24_000, 0, controller::ALL_NOTES_OFF, 0.0)]);
    assert!(frames[130][0].sounding && !frames[300][0].sounding && frames[300][1].sounding);
    // Members do not affect the manager.
    let frames = run(&[turn(24_000, 2, controller::ALL_SOUND_OFF, 0.0)]);
    assert!(frames[499][0].sounding);
    let frames = run(&[bend(0, 1, 3.0), turn(24_000, 0, controller::RESET, 0.0)]);
    assert!(
        (frames[124][0].pitch - 63.0).abs() < 1e-3 && (frames[150][0].pitch - 60.0).abs() < 0.01
    );
}

#[test]
fn a_released_note_keeps_its_bend_while_its_channel_is_reused() {
    let events = [
        zone(0, 2),
        bend(0, 1, 2.0),
        on_channel(0, 1, 60),
        off_channel(24_000, 1, 60),
        bend(25_000, 1, -7.0),
        on_channel(25_000, 1, 67),
        bend(26_000, 0, 1.0),
    ];
    let frames = play(&mut voices(&steady(), 8), &events, 30_000);
    // Neither note slides at the change.
    assert_eq!((frames[134][0].pitch, frames[134][1].pitch), (62.0, 60.0));
    assert_eq!((frames[131][0].pitch, frames[131][1].pitch), (62.0, 60.0));
    // The manager still bends both.
    assert!(
        (frames[154][0].pitch - 63.0).abs() < 0.01 && (frames[154][1].pitch - 61.0).abs() < 0.01
    );
}

#[test]
fn changing_zones_releases_notes_and_resets_wheels() {
    let again = Event {
        at: 24_000,
        ..zone(0, 2)
    };
    let gone = Event {
        at: 48_000,
        ..zone(0, 0)
    };
    let events = [
        zone(0, 2),
        bend(0, 0, 1.0),
        turn(0, 0, controller::VOLUME, 0.5),
        on_channel(0, 1, 60),
        again,
        gone,
    ];
    let frames = play(&mut voices(&steady(), 8), &events, 96_000);
    // Setting up the same zone again changes nothing.
    assert_eq!(frames[249][0].pitch, 61.0);
    // Remaining notes continue without a jump.
    for frame in &frames[250..290] {
        assert_eq!((frame[0].pitch, frame[0].gain), (61.0, 0.25));
    }
    assert!(frames[290][0].loudness < frames[249][0].loudness - 20.0);
    assert!(!frames[499][0].sounding);
    let events = [events.as_slice(), &[on_channel(72_000, 1, 60)]].concat();
    let frames = play(&mut voices(&steady(), 8), &events, 96_000);
    assert_eq!((frames[499][0].pitch, frames[499][0].gain), (60.0, 1.0));
}
