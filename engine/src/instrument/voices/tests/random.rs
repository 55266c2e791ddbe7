//! Properties that hold for any performance.

use super::*;
use proptest::prelude::*;

fn any_kind() -> impl Strategy<Value = EventKind> {
    let key = 40u8..60;
    let any_expression = prop_oneof![
        (-2f32..2.0).prop_map(NoteExpression::Tuning),
        (-12f32..12.0).prop_map(NoteExpression::Level),
        (0f32..=1.0).prop_map(NoteExpression::Timbre),
        (0f32..=1.0).prop_map(NoteExpression::Vibrato),
        (0f32..=1.0).prop_map(NoteExpression::Expression),
    ];
    prop_oneof![
        6 => (0u8..3, key.clone(), 0f32..=1.0)
            .prop_map(|(channel, key, velocity)| EventKind::NoteOn { channel, key, velocity }),
        5 => (0u8..3, key.clone()).prop_map(|(channel, key)| EventKind::NoteOff { channel, key, velocity: 0.5 }),
        1 => (0u8..3, -12f32..12.0).prop_map(|(channel, semitones)| EventKind::Bend { channel, semitones }),
        1 => (0u8..3, key.clone(), 0f32..=1.0)
            .prop_map(|(channel, key, value)| EventKind::PolyPressure { channel, key, value }),
        1 => (0u8..3, key, any_expression)
            .prop_map(|(channel, key, expression)| EventKind::NoteExpression { channel, key, expression }),
        1 => (prop::sample::select(vec![0u8, 15]), 0u8..15)
            .prop_map(|(manager, members)| EventKind::Zone { manager, members }),
        2 => (0u8..3, prop::sample::select(vec![1u8, 2, 11, 64, 64, 64, 74, 120, 121, 123]), 0f32..=1.0)
            .prop_map(|(channel, number, value)| EventKind::Controller { channel, number, value }),
    ]
}

fn any_events() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec((0u64..2_000, any_kind()), 0..200).prop_map(|steps| {
        let mut at = 0;
        let place = |(step, kind)| {
            at += step;
            Event { at, kind }
        };
        steps.into_iter().map(place).collect()
    })
}

fn any_performance() -> impl Strategy<Value = Performance> {
    (any::<bool>(), any_mode()).prop_map(|(plucked, mode)| Performance {
        mode,
        ..if plucked {
            Performance::plucked()
        } else {
            Performance::default()
        }
    })
}

fn any_mode() -> impl Strategy<Value = PlayMode> {
    prop::sample::select(vec![PlayMode::Poly, PlayMode::Mono, PlayMode::Legato])
}

fn any_setting() -> impl Strategy<Value = Setting> {
    prop_oneof![
        prop::option::of(any_mode()).prop_map(Setting::Mode),
        prop::option::of(0f32..200.0).prop_map(Setting::GlideMs),
        prop::option::of(1usize..8).prop_map(Setting::Voices),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn settings_leave_no_hanging_notes(
        steps in prop::collection::vec((0u64..2_000, any_kind(), prop::option::of(any_setting())), 0..150),
        performance in any_performance(), count in 1usize..6,
    ) {
        let mut voices = voices(&performance, count);
        let (mut at, mut limit) = (0, count);
        let mut limits = Vec::new();
        for (step, kind, setting) in steps {
            at += step;
            voices.handle(&Event { at, kind }).unwrap();
            if let Some(setting) = setting {
                voices.set(at, setting).unwrap();
                if let Setting::Voices(voices) = setting {
                    limit = voices.map_or(count, |voices| voices.min(count));
                }
            }
            limits.push((at, limit));
        }
        // All keys and pedals go up.
        let end = at + 1;
        for channel in 0..16 {
            let pedal = EventKind::Controller { channel, number: controller::SUSTAIN, value: 0.0 };
            voices.handle(&Event { at: end, kind: pedal }).unwrap();
            for key in 40..60 {
                voices.handle(&Event { at: end, kind: EventKind::NoteOff { channel, key, velocity: 0.5 } }).unwrap();
            }
        }
        let frames = play(&mut voices, &[], end + 96_000);
        let mut before = vec![VoiceFrame::SILENT; voices.slots()];
        for (frame, at) in frames.iter().zip((0..).step_by(HOP as usize)) {
            // Stolen notes take 5 ms to fade, in a slot of their own.
            let allowed = limits.iter().filter(|(when, _)| *when + 600 > at && *when <= at).map(|(_, limit)| *limit);
            let now = limits.iter().rev().find(|(when, _)| *when <= at).map_or(count, |(_, limit)| *limit);
            if allowed.clone().next().is_none() {
                prop_assert!(sounding(frame).len() <= now, "more than {now} at {at}");
            }
            for (before, after) in before.iter().zip(frame) {
                prop_assert!(!after.restarted || before.gain == 0.0);
                prop_assert!(after.sounding || before.gain == 0.0);
            }
            before.clone_from(frame);
        }
        prop_assert_eq!(sounding(frames.last().unwrap()), []);
    }

    #[test]
    fn gain_has_no_jumps_and_restarts_begin_from_silence(
        events in any_events(), performance in any_performance(), count in 1usize..6,
    ) {
        // Volume and expression also change the gain, as slowly; they have their own test.
        let events: Vec<_> = events.into_iter().filter(|event| {
            !matches!(event.kind, EventKind::Controller { number: 2 | 11, .. })
        }).collect();
        let mut voices = voices(&performance, count);
        let frames = play(&mut voices, &events, 400_000);
        for (before, after) in frames.iter().zip(&frames[1..]) {
            prop_assert!(after.iter().filter(|slot| slot.sounding).count() <= 2 * count);
            for (before, after) in before.iter().zip(after) {
                // At most a fade of 5 ms (a frame is 4 ms).
                prop_assert!(before.gain - after.gain <= 0.8 + 1e-5);
                if after.restarted { prop_assert_eq!(before.gain, 0.0); }
                if !after.sounding { prop_assert_eq!(before.gain, 0.0); }
                if after.sounding && !before.sounding { prop_assert!(after.restarted); }
            }
        }
    }

    #[test]
    fn frames_do_not_depend_on_how_events_are_batched(
        events in any_events(), performance in any_performance(), cuts in prop::collection::vec(1u64..20_000, 1..40),
    ) {
        let at_once = play(&mut voices(&performance, 3), &events, 400_000);
        let mut voices = voices(&performance, 3);
        let mut events = events.iter().peekable();
        let mut frames = Vec::new();
        let (mut at, mut end, mut cuts) = (0, 0, cuts.iter().cycle());
        while frames.len() < at_once.len() {
            end += cuts.next().unwrap();
            while let Some(event) = events.next_if(|event| event.at < end) {
                voices.handle(event).unwrap();
            }
            while at < end && frames.len() < at_once.len() {
                let mut out = vec![VoiceFrame::SILENT; voices.slots()];
                voices.frame(at, &mut out);
                frames.push(out);
                at += u64::from(HOP);
            }
        }
        prop_assert_eq!(frames, at_once);
    }

    #[test]
    fn random_events_never_panic(
        kinds in prop::collection::vec((any::<u64>(), any::<u8>(), any::<u8>(), any::<u32>(), 0u8..12), 0..100),
    ) {
        let mut voices = voices(&Performance::default(), 2);
        let mut state = PerformanceState::new();
        let mut out = [VoiceFrame::SILENT; 3];
        for (at, channel, key, bits, which) in kinds {
            let value = f32::from_bits(bits);
            let kind = match which {
                0 | 1 => EventKind::NoteOn { channel, key, velocity: value },
                2 => EventKind::NoteOff { channel, key, velocity: value },
                3 => EventKind::Bend { channel, semitones: value },
                4 => EventKind::PolyPressure { channel, key, value },
                5 => EventKind::Controller { channel, number: key, value },
                6 => EventKind::NoteExpression { channel, key, expression: NoteExpression::Tuning(value) },
                7 => EventKind::NoteExpression { channel, key, expression: NoteExpression::Timbre(value) },
                8 => EventKind::NoteExpression { channel, key, expression: NoteExpression::Vibrato(value) },
                9 => EventKind::NoteExpression { channel, key, expression: NoteExpression::Expression(value) },
                10 => EventKind::Pressure { channel, value },
                _ => EventKind::Zone { manager: channel, members: key },
            };
            let _ = voices.handle(&Event { at, kind });
            let setting = match which {
                0 => Setting::Mode(Some(if key < 128 { PlayMode::Mono } else { PlayMode::Poly })),
                1 => Setting::GlideMs(Some(value)),
                _ => Setting::Voices(Some(key.into())),
            };
            let _ = voices.set(at, setting);
            state.record(&Event { at, kind });
            voices.frame(at >> 1, &mut out);
            let sane = |slot: &VoiceFrame| {
                slot.pitch.is_finite()
                    && slot.loudness.is_finite()
                    && (0.0..=1.0).contains(&slot.gain)
                    && (-12.0..=12.0).contains(&slot.brightness)
            };
            prop_assert!(out.iter().all(sane));
        }
        prop_assert!(state.events().len() <= PerformanceState::MAX_EVENTS);
    }
}
