use super::super::event::NoteChange;
use super::super::performance::{Performance, PlayMode};
use super::super::voices::{VoiceFrame, Voices};
use super::*;
use proptest::prelude::*;

const RATE: f64 = 48_000.0;
const HOP: u32 = 192;

/// Performance without drift and with short releases, which a new instrument reproduces exactly.
fn plain(mode: PlayMode) -> Performance {
    Performance {
        mode,
        attack_ms: 20.0,
        decay_ms: 30.0,
        release_ms: 10.0,
        glide_ms: 30.0,
        vibrato_cents: 0.0,
        vibrato_wheel_cents: 0.0,
        vibrato_db: 0.0,
        scoop_cents: 0.0,
        life: 0.0,
        ..Performance::default()
    }
}

fn on(at: u64, channel: u8, key: u8) -> Event {
    Event {
        at,
        kind: EventKind::NoteOn {
            channel,
            key,
            velocity: 0.8,
        },
    }
}

fn off(at: u64, channel: u8, key: u8) -> Event {
    Event {
        at,
        kind: EventKind::NoteOff {
            channel,
            key,
            velocity: 0.5,
        },
    }
}

fn control(at: u64, channel: u8, number: u8, value: f32) -> Event {
    Event {
        at,
        kind: EventKind::Controller {
            channel,
            number,
            value,
        },
    }
}

fn state_after(events: &[Event]) -> PerformanceState {
    let mut state = PerformanceState::new();
    events.iter().for_each(|event| state.record(event));
    state
}

/// Returns the sounding slots of all frames from `from` to `until`, sorted by pitch.
fn play(
    performance: &Performance,
    events: &[Event],
    from: u64,
    until: u64,
) -> Vec<(u64, Vec<VoiceFrame>)> {
    let mut voices = Voices::new(performance, 64, RATE, HOP, 1);
    for event in events {
        voices.handle(event).unwrap();
    }
    let mut out = vec![VoiceFrame::SILENT; voices.slots()];
    (from..until)
        .step_by(HOP as usize)
        .map(|at| {
            voices.frame(at, &mut out);
            (
                at,
                out.iter().copied().filter(|slot| slot.sounding).collect(),
            )
        })
        .collect()
}

/// Checks that voices restored from the state play on like the original ones.
fn agree(performance: &Performance, events: &[Event], now: u64) -> Result<(), TestCaseError> {
    const SETTLED: u64 = 5_760; // 120 ms
    let until = now + SETTLED + 4_800;
    let told = state_after(events).events();
    prop_assert!(told.is_sorted_by_key(|event| event.at));
    let expected = play(performance, events, 0, until);
    let found = play(performance, &told, now, until);
    let expected = expected.into_iter().filter(|(at, _)| *at >= now);
    for ((at, expected), (found_at, mut found)) in expected.zip(found) {
        prop_assert_eq!(at, found_at);
        if at < now + SETTLED {
            continue;
        }
        prop_assert_eq!(expected.len(), found.len());
        for slot in expected {
            let near = |other: &VoiceFrame| {
                (slot.pitch - other.pitch).abs() < 0.05
                    && (slot.loudness - other.loudness).abs() < 0.5
                    && (slot.brightness - other.brightness).abs() < 0.1
                    && (slot.gain - other.gain).abs() < 0.02
            };
            let Some(index) = found.iter().position(near) else {
                return Err(TestCaseError::fail(format!(
                    "at {at}: {slot:?} is not among {found:?}"
                )));
            };
            found.swap_remove(index);
        }
    }
    Ok(())
}

fn any_note() -> impl Strategy<Value = EventKind> {
    prop_oneof![
        3 => (0u8..3, 40u8..60).prop_map(|(channel, key)| EventKind::NoteOn { channel, key, velocity: 0.8 }),
        2 => (0u8..3, 40u8..60).prop_map(|(channel, key)| EventKind::NoteOff { channel, key, velocity: 0.5 }),
    ]
}

fn any_wheel() -> impl Strategy<Value = EventKind> {
    prop_oneof![
        1 => (0u8..3, -12f32..12.0).prop_map(|(channel, semitones)| EventKind::Bend { channel, semitones }),
        1 => (0u8..3, 0f32..=1.0).prop_map(|(channel, value)| EventKind::Pressure { channel, value }),
        3 => (0u8..3, prop::sample::select(vec![1u8, 2, 7, 11, 64, 64, 64, 64, 74, 120, 121, 123]), 0f32..=1.0)
            .prop_map(|(channel, number, value)| EventKind::Controller { channel, number, value }),
        1 => (prop::sample::select(vec![0u8, 15]), 0u8..15)
            .prop_map(|(manager, members)| EventKind::Zone { manager, members }),
    ]
}

fn any_kind() -> impl Strategy<Value = EventKind> {
    let any_expression = prop_oneof![
        (-12f32..12.0).prop_map(NoteExpression::Tuning),
        (-12f32..12.0).prop_map(NoteExpression::Level),
        (0f32..=1.0).prop_map(NoteExpression::Timbre),
        (0f32..=1.0).prop_map(NoteExpression::Vibrato),
        (0f32..=1.0).prop_map(NoteExpression::Expression),
    ];
    prop_oneof![
        8 => (any_note(), 0.01f32..=1.0).prop_map(|(kind, hard)| match kind {
            EventKind::NoteOn { channel, key, .. } => EventKind::NoteOn { channel, key, velocity: hard },
            other => other,
        }),
        3 => any_wheel(),
        2 => (0u8..3, 40u8..60, any_expression)
            .prop_map(|(channel, key, expression)| EventKind::NoteExpression { channel, key, expression }),
        1 => (0u8..3, 40u8..60, 0f32..=1.0)
            .prop_map(|(channel, key, value)| EventKind::PolyPressure { channel, key, value }),
    ]
}

fn in_time(kind: impl Strategy<Value = EventKind>) -> impl Strategy<Value = Vec<Event>> {
    // Half of them are simultaneous with their predecessor, so that their order matters.
    prop::collection::vec((prop_oneof![Just(0u64), 0u64..2_000], kind), 0..150).prop_map(|steps| {
        let mut at = 0;
        let place = |(step, kind)| {
            at += step;
            Event { at, kind }
        };
        steps.into_iter().map(place).collect()
    })
}

fn after(events: &[Event], gap: u64) -> u64 {
    (events.last().map_or(0, |event| event.at) + gap).next_multiple_of(u64::from(HOP))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn restored_voices_play_the_same(events in in_time(any_kind()), gap in 0u64..20_000) {
        agree(&plain(PlayMode::Poly), &events, after(&events, gap))?;
    }

    #[test]
    fn restored_voices_slur_the_same(
        events in in_time(prop_oneof![4 => any_note(), 1 => any_wheel()]), gap in 0u64..20_000,
    ) {
        agree(&plain(PlayMode::Legato), &events, after(&events, gap))?;
    }

    #[test]
    fn restored_voices_share_a_voice_the_same(
        events in in_time(prop_oneof![4 => any_note(), 1 => any_wheel()]), gap in 0u64..20_000,
    ) {
        agree(&plain(PlayMode::Mono), &events, after(&events, gap))?;
    }

    #[test]
    fn copies_are_equal(before in in_time(any_kind()), events in in_time(any_kind())) {
        let state = state_after(&events);
        let mut copy = state_after(&before);
        let notes = copy.notes.as_ptr();
        copy.copy_from(&state);
        prop_assert_eq!(copy.events(), state.events());
        prop_assert_eq!(copy.notes.as_ptr(), notes);
        // The copy behaves like the original, and like a new one after clearing.
        let mut original = state.clone();
        for event in &before {
            copy.record(event);
            original.record(event);
        }
        prop_assert_eq!(copy.events(), original.events());
        copy.clear();
        before.iter().for_each(|event| copy.record(event));
        prop_assert_eq!(copy.events(), state_after(&before).events());
    }
}

#[test]
fn ended_notes_are_forgotten() {
    let events = [
        on(0, 0, 60),
        off(10, 0, 60),
        control(20, 0, controller::MOD_WHEEL, 1.0),
        control(30, 0, controller::RESET, 0.0),
        control(40, 0, controller::SUSTAIN, 1.0),
        control(50, 0, controller::SUSTAIN, 0.0),
        // No instrument listens to it.
        control(60, 0, 3, 1.0),
        Event {
            at: 70,
            kind: EventKind::Zone {
                manager: 0,
                members: 5,
            },
        },
        Event {
            at: 80,
            kind: EventKind::Zone {
                manager: 0,
                members: 0,
            },
        },
        off(90, 1, 61),
        Event {
            at: 100,
            kind: EventKind::PolyPressure {
                channel: 0,
                key: 60,
                value: 1.0,
            },
        },
    ];
    assert_eq!(state_after(&events).events(), []);
}

#[test]
fn the_pedal_comes_before_the_note_off() {
    let pedal = control(0, 0, controller::SUSTAIN, 0.7);
    let events = [
        pedal,
        on(500, 0, 60),
        control(700, 0, controller::SUSTAIN, 1.0),
        off(900, 0, 60),
    ];
    assert_eq!(state_after(&events).events(), [pedal, events[1], events[3]]);
}

#[test]
fn a_pedal_may_take_over_from_another() {
    let zone = Event {
        at: 0,
        kind: EventKind::Zone {
            manager: 0,
            members: 2,
        },
    };
    let manager = control(400, 0, controller::SUSTAIN, 1.0);
    let events = [
        zone,
        control(100, 1, controller::SUSTAIN, 1.0),
        on(200, 1, 60),
        off(300, 1, 60),
        manager,
        control(500, 1, controller::SUSTAIN, 0.0),
    ];
    assert_eq!(
        state_after(&events).events(),
        [zone, events[2], manager, off(500, 1, 60)]
    );
    agree(&plain(PlayMode::Poly), &events, 19_200).unwrap();
}

#[test]
fn a_reset_takes_pressure_from_notes_and_leaves_volume_and_timbre() {
    let events = [
        on(0, 0, 60),
        Event {
            at: 100,
            kind: EventKind::PolyPressure {
                channel: 0,
                key: 60,
                value: 1.0,
            },
        },
        Event {
            at: 200,
            kind: EventKind::NoteExpression {
                channel: 0,
                key: 60,
                expression: NoteExpression::Tuning(0.3),
            },
        },
        Event {
            at: 300,
            kind: EventKind::Pressure {
                channel: 0,
                value: 1.0,
            },
        },
        control(400, 0, controller::VOLUME, 0.5),
        control(500, 0, controller::TIMBRE, 0.7),
        control(600, 0, controller::RESET, 0.0),
    ];
    assert_eq!(
        state_after(&events).events(),
        [events[0], events[2], events[4], events[5]]
    );
    agree(&plain(PlayMode::Poly), &events, 19_200).unwrap();
}

#[test]
fn the_oldest_of_too_many_notes_is_forgotten() {
    let notes: Vec<_> = (0..400u16)
        .map(|i| on(u64::from(i), (i / 100) as u8, (i % 100) as u8))
        .collect();
    let mut state = state_after(&notes);
    assert_eq!(state.events(), notes[400 - MAX_NOTES..]);
    // New voices accept the largest number of events at once.
    state.record(&Event {
        at: 1_000,
        kind: EventKind::Zone {
            manager: 15,
            members: 3,
        },
    });
    for channel in 0..16 {
        for number in [1, 2, 5, 7, 11, 37, 64, 65, 66, 67, 68, 74] {
            state.record(&control(1_000, channel, number, 1.0));
        }
        state.record(&Event {
            at: 1_000,
            kind: EventKind::Tuning {
                channel,
                semitones: 1.0,
            },
        });
        state.record(&Event {
            at: 1_000,
            kind: EventKind::Bend {
                channel,
                semitones: 1.0,
            },
        });
        state.record(&Event {
            at: 1_000,
            kind: EventKind::Pressure {
                channel,
                value: 1.0,
            },
        });
        for key in 0..100 {
            use NoteExpression::{Expression, Level, Timbre, Tuning, Vibrato};
            state.record(&Event {
                at: 1_000,
                kind: EventKind::PolyPressure {
                    channel,
                    key,
                    value: 1.0,
                },
            });
            for expression in [
                Tuning(1.0),
                Level(1.0),
                Timbre(1.0),
                Vibrato(1.0),
                Expression(0.5),
            ] {
                state.record(&Event {
                    at: 1_000,
                    kind: EventKind::NoteExpression {
                        channel,
                        key,
                        expression,
                    },
                });
            }
            state.record(&off(1_000, channel, key));
        }
    }
    for key in 0..128 {
        state.record(&Event {
            at: 1_000,
            kind: EventKind::KeyPitch {
                key,
                pitch: Some(50.5),
            },
        });
    }
    state.record(&Event {
        at: 1_000,
        kind: EventKind::MasterTuning { semitones: 1.0 },
    });
    state.record(&Event {
        at: 1_000,
        kind: EventKind::MasterVolume { value: 0.5 },
    });
    let events = state.events();
    // All but the lower zone, and a mode of each channel, which would release its keys.
    assert_eq!(events.len(), PerformanceState::MAX_EVENTS - 1 - 16);
    assert!(
        !play(&plain(PlayMode::Poly), &events, 1_152, 1_153)[0]
            .1
            .is_empty()
    );
}

#[test]
fn vibrato_and_drift_continue_in_phase() {
    let performance = Performance {
        release_ms: 10.0,
        ..Performance::default()
    };
    let events = [
        on(0, 0, 48),
        on(3_000, 0, 60),
        off(40_000, 0, 48),
        on(41_111, 0, 64),
    ];
    let now = 96_000;
    let expected = play(&performance, &events, 0, 2 * now);
    let found = play(&performance, &state_after(&events).events(), now, 2 * now);
    let sorted = |frame: &[VoiceFrame]| {
        let mut frame: Vec<_> = frame
            .iter()
            .map(|slot| (slot.pitch, slot.loudness, slot.gain))
            .collect();
        frame.sort_by(|a, b| a.0.total_cmp(&b.0));
        frame
    };
    for ((_, expected), (_, found)) in expected[(now / u64::from(HOP)) as usize..]
        .iter()
        .zip(&found)
    {
        assert_eq!(sorted(expected), sorted(found));
    }
}

#[test]
fn pedals_tunings_and_modes_are_restored() {
    let tuned = Event {
        at: 0,
        kind: EventKind::KeyPitch {
            key: 60,
            pitch: Some(60.5),
        },
    };
    let channel_tuning = Event {
        at: 10,
        kind: EventKind::Tuning {
            channel: 0,
            semitones: 2.0,
        },
    };
    let master = Event {
        at: 20,
        kind: EventKind::MasterTuning { semitones: -1.0 },
    };
    let mono = control(30, 1, controller::MONO, 0.0);
    let sostenuto = control(200, 0, controller::SOSTENUTO, 1.0);
    let events = [
        tuned,
        channel_tuning,
        master,
        mono,
        on(100, 0, 60),
        sostenuto,
        on(300, 0, 64),
        off(400, 0, 60),
        off(500, 0, 64),
        on(600, 1, 70),
        on(700, 1, 72),
        control(800, 1, controller::SOFT, 1.0),
    ];
    let state = state_after(&events);
    let expected = [0, 1, 2, 3, 4, 5, 7, 9, 10, 11].map(|index| events[index]);
    assert_eq!(state.events(), expected);
    agree(&plain(PlayMode::Poly), &events, 19_200).unwrap();
    // The pedal rises; a usual pitch need not be restored.
    let usual = Event {
        at: 1_100,
        kind: EventKind::KeyPitch {
            key: 60,
            pitch: Some(60.0),
        },
    };
    let later = [
        &events[..],
        &[control(1_000, 0, controller::SOSTENUTO, 0.0), usual],
    ]
    .concat();
    let expected = [1, 2, 3, 9, 10, 11].map(|index| events[index]);
    assert_eq!(state_after(&later).events(), expected);
    let reset = Event {
        at: 2_000,
        kind: EventKind::SystemReset,
    };
    assert_eq!(
        state_after(&[&events[..], &[reset]].concat()).events(),
        [tuned]
    );
}

#[test]
fn notes_of_one_key_are_restored_by_their_ids() {
    let note = |at, id, change| Event {
        at,
        kind: EventKind::Note {
            id,
            channel: 0,
            key: 60,
            change,
        },
    };
    let tuning = NoteChange::Expression(NoteExpression::Tuning(3.0));
    let events = [
        note(0, 1, NoteChange::On(0.8)),
        note(100, 2, NoteChange::On(0.8)),
        note(200, 2, tuning),
        note(300, 1, NoteChange::Off(0.5)),
    ];
    assert_eq!(state_after(&events).events(), events[1..3]);
    agree(&plain(PlayMode::Poly), &events, 19_200).unwrap();
    assert_eq!(
        state_after(&[&events[..], &[off(400, 0, 60)]].concat()).events(),
        []
    );
}
