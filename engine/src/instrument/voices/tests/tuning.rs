//! Tunings of keys, channels and all channels, master volume and the reset of everything.

use super::*;

fn event(at: u64, kind: EventKind) -> Event {
    Event { at, kind }
}

/// Returns pitch and gain of the first note, 0.3 s after the last event.
fn last(events: &[Event]) -> (f32, f32) {
    let until = events.last().unwrap().at + 14_400;
    let frames = play(&mut voices(&steady(), 8), events, until);
    let slot = sounding(frames.last().unwrap())[0];
    (slot.pitch, slot.gain)
}

#[test]
fn tunings_add_up() {
    let channel = event(
        0,
        EventKind::Tuning {
            channel: 0,
            semitones: 0.5,
        },
    );
    let other = event(
        0,
        EventKind::Tuning {
            channel: 1,
            semitones: 5.0,
        },
    );
    let master = event(0, EventKind::MasterTuning { semitones: -2.0 });
    let bend = event(
        0,
        EventKind::Bend {
            channel: 0,
            semitones: 0.25,
        },
    );
    assert_eq!(last(&[channel, other, master, bend, on(100, 60)]).0, 58.75);
    // They reach a note that sounds, smoothly.
    let frames = play(
        &mut voices(&steady(), 8),
        &[
            on(0, 60),
            event(9_600, EventKind::MasterTuning { semitones: 2.0 }),
        ],
        19_200,
    );
    let pitch = |frame: usize| sounding(&frames[frame])[0].pitch;
    assert!(
        pitch(50) == 60.0
            && pitch(51) > 60.0
            && pitch(51) < 61.0
            && (pitch(99) - 62.0).abs() < 1e-3
    );
    // A reset of controllers leaves tunings.
    let reset = control(0, controller::RESET, 0.0);
    assert_eq!(last(&[channel, master, bend, reset, on(100, 60)]).0, 58.5);
}

#[test]
fn master_volume_is_a_fader() {
    let volume = |value| event(0, EventKind::MasterVolume { value });
    assert_eq!(last(&[volume(0.5), on(100, 60)]).1, 0.25);
    assert_eq!(
        last(&[
            volume(0.5),
            control(0, controller::VOLUME, 0.5),
            on(100, 60)
        ])
        .1,
        0.0625
    );
    assert_eq!(last(&[volume(f32::NAN), on(100, 60)]).1, 1.0);
}

#[test]
fn keys_have_their_own_pitches() {
    let pitch = |at, key, pitch| event(at, EventKind::KeyPitch { key, pitch });
    assert_eq!(last(&[pitch(0, 60, Some(59.5)), on(100, 60)]).0, 59.5);
    assert_eq!(last(&[pitch(0, 61, Some(59.5)), on(100, 60)]).0, 60.0);
    assert_eq!(
        last(&[on(0, 60), pitch(100, 60, Some(59.5))]).0,
        60.0,
        "a sounding note keeps its pitch"
    );
    let frames = play(
        &mut voices(&steady(), 8),
        &[pitch(0, 60, None), on(100, 60)],
        4_800,
    );
    assert!(
        frames.iter().flatten().all(|slot| !slot.sounding),
        "a key without a pitch is silent"
    );
    // Notes that share a voice glide between the pitches, also back to a held key.
    let performance = Performance {
        mode: PlayMode::Legato,
        glide_ms: 10.0,
        ..steady()
    };
    let events = [
        pitch(0, 60, Some(59.5)),
        pitch(0, 64, Some(63.25)),
        on(0, 60),
        on(9_600, 64),
        off(19_200, 64),
    ];
    let frames = play(&mut voices(&performance, 8), &events, 28_800);
    let heard = [49, 99, 149].map(|frame: usize| sounding(&frames[frame])[0].pitch);
    assert_eq!(heard, [59.5, 63.25, 59.5]);
}

#[test]
fn a_system_reset_silences_and_resets() {
    let events = [
        event(
            0,
            EventKind::Tuning {
                channel: 0,
                semitones: 0.5,
            },
        ),
        event(0, EventKind::MasterTuning { semitones: -2.0 }),
        event(0, EventKind::MasterVolume { value: 0.5 }),
        control(0, controller::VOLUME, 0.5),
        control(0, controller::SUSTAIN, 1.0),
        control(0, controller::MONO, 0.0),
        on(0, 60),
        event(9_600, EventKind::SystemReset),
        on(19_200, 62),
        on(19_200, 65),
        off(28_800, 65),
    ];
    let performance = Performance {
        release_ms: 20.0,
        ..steady()
    };
    let frames = play(&mut voices(&performance, 8), &events, 48_000);
    assert!(sounding(&frames[60]).is_empty());
    let heard = sounding(&frames[140]);
    assert_eq!(
        heard
            .iter()
            .map(|slot| (slot.pitch, slot.gain))
            .collect::<Vec<_>>(),
        [(62.0, 1.0), (65.0, 1.0)]
    );
    assert_eq!(sounding(frames.last().unwrap()).len(), 1, "the pedal is up");
}
