use super::super::event::{NoteExpression, controller};
use super::*;

mod ids;
mod mpe;
mod pedals;
mod random;
mod tuning;

const RATE: f64 = 48_000.0;
const HOP: u32 = 192;

fn steady() -> Performance {
    Performance {
        vibrato_cents: 0.0,
        vibrato_db: 0.0,
        scoop_cents: 0.0,
        life: 0.0,
        ..Performance::default()
    }
}

fn on(at: u64, key: u8) -> Event {
    Event {
        at,
        kind: EventKind::NoteOn {
            channel: 0,
            key,
            velocity: 0.8,
        },
    }
}

fn off(at: u64, key: u8) -> Event {
    Event {
        at,
        kind: EventKind::NoteOff {
            channel: 0,
            key,
            velocity: 0.5,
        },
    }
}

fn control(at: u64, number: u8, value: f32) -> Event {
    Event {
        at,
        kind: EventKind::Controller {
            channel: 0,
            number,
            value,
        },
    }
}

/// Plays events that are queued at once; returns the frames up to `until` as `[frame][slot]`.
fn play(voices: &mut Voices, events: &[Event], until: u64) -> Vec<Vec<VoiceFrame>> {
    for event in events {
        voices.handle(event).unwrap();
    }
    let mut frames = Vec::new();
    for at in (0..until).step_by(HOP as usize) {
        let mut out = vec![VoiceFrame::SILENT; voices.slots()];
        voices.frame(at, &mut out);
        frames.push(out);
    }
    frames
}

fn voices(performance: &Performance, count: usize) -> Voices {
    Voices::new(performance, count, RATE, HOP, 1)
}

fn sounding(frame: &[VoiceFrame]) -> Vec<VoiceFrame> {
    frame.iter().copied().filter(|slot| slot.sounding).collect()
}

#[test]
fn an_onset_shows_at_the_next_frame_with_its_exact_time() {
    for offset in [1u64, 60, 100, 191] {
        let frames = play(&mut voices(&steady(), 8), &[on(1_920 + offset, 60)], 4_000);
        assert!(frames[10].iter().all(|slot| *slot == VoiceFrame::SILENT));
        let first = frames[11][0];
        assert!(first.sounding && first.restarted);
        assert!((first.gain - (192 - offset) as f32 / 192.0).abs() < 1e-6);
        assert!(frames[12][0].sounding && !frames[12][0].restarted);
        assert_eq!(frames[12][0].pitch, 60.0);
    }
    // A note at the time of a frame starts in it: the gain from silence, the model with the
    // loudness of the next frame.
    let frames = play(&mut voices(&steady(), 8), &[on(1_920, 60)], 4_000);
    assert!(frames[10][0].restarted);
    assert_eq!(
        (frames[10][0].gain, frames[10][0].loudness),
        (0.0, frames[11][0].loudness)
    );
    assert!(frames[10][0].loudness > SILENCE_DB && frames[12][0].loudness > frames[11][0].loudness);
}

#[test]
fn a_chord_sounds_and_ends() {
    let mut events: Vec<_> = [48, 60, 64, 67].map(|key| on(500, key)).into();
    events.extend([48, 60, 64, 67].map(|key| off(24_000, key)));
    let mut eight = voices(&steady(), 8);
    let frames = play(&mut eight, &events, 96_000);
    let mut pitches: Vec<_> = sounding(&frames[50])
        .iter()
        .map(|slot| slot.pitch)
        .collect();
    pitches.sort_by(f32::total_cmp);
    assert_eq!(pitches, [48.0, 60.0, 64.0, 67.0]);
    assert!(sounding(frames.last().unwrap()).is_empty());
    assert_eq!(eight.notes_dropped(), 0);
}

#[test]
fn stealing_takes_the_released_then_the_oldest_and_fades_it() {
    let performance = steady();
    let mut events: Vec<_> = (0..4).map(|i| on(u64::from(i) * 4_800, 60 + i)).collect();
    events.push(off(19_000, 62));
    events.push(on(19_300, 70)); // takes 62, just let go
    events.push(on(30_000, 71)); // takes 60, the oldest
    let frames = play(&mut voices(&performance, 4), &events, 48_000);
    let keys = |frame: usize| {
        let mut keys: Vec<_> = frames[frame]
            .iter()
            .filter(|slot| slot.gain == 1.0)
            .map(|slot| slot.pitch.round() as u8)
            .collect();
        keys.sort_unstable();
        keys
    };
    assert_eq!(keys(98), [60, 61, 62, 63]);
    assert_eq!(keys(105), [60, 61, 63, 70]);
    assert_eq!(keys(240), [61, 63, 70, 71]);
}

#[test]
fn a_whole_chord_can_be_replaced_at_once() {
    let mut events: Vec<_> = (0..8).map(|i| on(0, 50 + i)).collect();
    events.extend((0..8).map(|i| on(48_000, 70 + i)));
    let mut eight = voices(&steady(), 8);
    let frames = play(&mut eight, &events, 60_000);
    assert_eq!(sounding(&frames[251]).len(), 16);
    assert_eq!(sounding(&frames[254]).len(), 8);
    assert!(
        frames[254]
            .iter()
            .filter(|slot| slot.sounding)
            .all(|slot| slot.pitch >= 70.0 && slot.gain == 1.0)
    );
    assert_eq!(eight.notes_dropped(), 0);
}

#[test]
fn the_pedal_holds_until_it_rises() {
    let performance = steady();
    let events = [
        on(0, 60),
        control(4_800, controller::SUSTAIN, 1.0),
        off(9_600, 60),
        control(48_000, controller::SUSTAIN, 0.0),
    ];
    let frames = play(&mut voices(&performance, 8), &events, 96_000);
    assert!(frames[249][0].loudness > frames[45][0].loudness - 1.0);
    assert!(frames[270][0].loudness < frames[249][0].loudness - 10.0);
    assert!(!frames[499][0].sounding);
    // Without the pedal the note has ended long before.
    let frames = play(
        &mut voices(&performance, 8),
        &[on(0, 60), off(9_600, 60)],
        96_000,
    );
    assert!(!frames[249][0].sounding);
}

#[test]
fn wheels_reach_their_channel_only_and_snap_before_a_note() {
    let other = Event {
        at: 0,
        kind: EventKind::NoteOn {
            channel: 1,
            key: 72,
            velocity: 0.8,
        },
    };
    let bend = |at, semitones| Event {
        at,
        kind: EventKind::Bend {
            channel: 0,
            semitones,
        },
    };
    let events = [bend(0, 1.0), on(0, 60), other, bend(24_000, -2.0)];
    let frames = play(&mut voices(&steady(), 8), &events, 48_000);
    assert_eq!(frames[1][0].pitch, 61.0);
    assert_eq!(frames[124][0].pitch, 61.0);
    // Smoothed over 12 ms, 3 frames; settled after 60 ms.
    assert!(frames[126][0].pitch < 61.0 && frames[126][0].pitch > 60.0);
    assert!((frames[145][0].pitch - 58.0).abs() < 0.01);
    assert!(
        frames
            .iter()
            .all(|frame| !frame[1].sounding || frame[1].pitch == 72.0)
    );
}

#[test]
fn mod_wheel_sets_the_depth_of_vibrato() {
    let performance = Performance {
        vibrato_wheel_cents: 40.0,
        ..steady()
    };
    let depth = |wheel| {
        let frames = play(
            &mut voices(&performance, 8),
            &[control(0, controller::MOD_WHEEL, wheel), on(0, 60)],
            96_000,
        );
        frames[100..]
            .iter()
            .map(|frame| (frame[0].pitch - 60.0).abs() * 100.0)
            .fold(0.0, f32::max)
    };
    assert_eq!(depth(0.0), 0.0);
    assert!((depth(0.5) - 20.0).abs() < 0.3);
    assert!((depth(1.0) - 40.0).abs() < 0.5);
}

#[test]
fn pressure_and_expression_change_loudness() {
    let poly = Event {
        at: 24_000,
        kind: EventKind::PolyPressure {
            channel: 0,
            key: 60,
            value: 1.0,
        },
    };
    let level = Event {
        at: 24_000,
        kind: EventKind::NoteExpression {
            channel: 0,
            key: 67,
            expression: NoteExpression::Level(-6.0),
        },
    };
    let frames = play(
        &mut voices(&steady(), 8),
        &[on(0, 60), on(0, 67), poly, level],
        48_000,
    );
    let (before, after) = (&frames[124], &frames[160]);
    assert!(after[0].loudness > before[0].loudness + 3.0);
    assert!((after[1].loudness - before[1].loudness + 6.0).abs() < 0.1);
    let frames = play(
        &mut voices(&steady(), 8),
        &[on(0, 60), control(24_000, controller::EXPRESSION, 0.5)],
        48_000,
    );
    assert!((frames[160][0].loudness - frames[124][0].loudness + 12.04).abs() < 0.2);
}

#[test]
fn all_sound_off_all_notes_off_and_reset() {
    let hold = control(0, controller::SUSTAIN, 1.0);
    let frames = play(
        &mut voices(&steady(), 8),
        &[
            hold,
            on(0, 60),
            control(24_000, controller::ALL_SOUND_OFF, 0.0),
        ],
        30_000,
    );
    assert!(frames[125][0].sounding && !frames[128][0].sounding);

    let frames = play(
        &mut voices(&steady(), 8),
        &[on(0, 60), control(24_000, controller::ALL_NOTES_OFF, 0.0)],
        60_000,
    );
    assert!(frames[130][0].sounding && !frames[300][0].sounding);

    let bend = Event {
        at: 0,
        kind: EventKind::Bend {
            channel: 0,
            semitones: 2.0,
        },
    };
    let events = [
        bend,
        hold,
        on(0, 60),
        off(9_600, 60),
        control(24_000, controller::RESET, 0.0),
    ];
    let frames = play(&mut voices(&steady(), 8), &events, 60_000);
    assert!((frames[124][0].pitch - 62.0).abs() < 1e-3);
    assert!((frames[150][0].pitch - 60.0).abs() < 0.01);
    assert!(!frames[300][0].sounding, "reset lifts the pedal");
}

#[test]
fn legato_slurs_on_one_voice_and_returns_to_the_key_below() {
    let performance = Performance {
        mode: PlayMode::Legato,
        glide_ms: 40.0,
        ..steady()
    };
    let events = [on(0, 60), on(24_000, 67), off(48_000, 67), off(72_000, 60)];
    let frames = play(&mut voices(&performance, 8), &events, 120_000);
    assert!(frames.iter().all(|frame| sounding(frame).len() <= 1));
    assert_eq!(frames.iter().filter(|frame| frame[0].restarted).count(), 1);
    assert_eq!(
        (
            frames[124][0].pitch,
            frames[240][0].pitch,
            frames[370][0].pitch
        ),
        (60.0, 67.0, 60.0)
    );
    assert!(frames[128][0].pitch > 60.5 && frames[128][0].pitch < 66.5);
    assert!(frames[374][0].loudness > frames[400][0].loudness + 10.0);
}

#[test]
fn mono_takes_the_voice_over_with_a_new_attack() {
    let performance = Performance {
        mode: PlayMode::Mono,
        attack_ms: 20.0,
        decay_db_per_s: 40.0,
        decay_per_octave: 1.0,
        glide_ms: 40.0,
        scoop_cents: 40.0,
        vibrato_cents: 25.0,
        ..steady()
    };
    let soft = |at, key| Event {
        at,
        kind: EventKind::NoteOn {
            channel: 0,
            key,
            velocity: 0.4,
        },
    };
    let events = [
        soft(0, 60),
        on(24_000, 67),
        off(48_000, 67),
        off(72_000, 60),
    ];
    let frames = play(&mut voices(&performance, 8), &events, 120_000);
    assert!(frames.iter().all(|frame| sounding(frame).len() <= 1));
    assert_eq!(frames.iter().filter(|frame| frame[0].restarted).count(), 1);
    let near = |frame: usize, pitch: f32| (frames[frame][0].pitch - pitch).abs() < 0.45;
    assert!(near(120, 60.0) && near(160, 67.0) && near(280, 60.0));
    // It glides from the current pitch although scoop and vibrato restart: a frame is a tenth of
    // the way.
    for pair in frames[2..370].windows(2) {
        assert!((pair[1][0].pitch - pair[0][0].pitch).abs() < 1.4, "a jump");
    }
    assert!(near(130, 64.5) || near(130, 63.5) || near(130, 65.5));
    // The level continues to the new peak; the first key has a new attack of its own velocity on
    // return.
    let peak = |frames: &[Vec<VoiceFrame>]| {
        frames
            .iter()
            .map(|frame| frame[0].loudness)
            .fold(-99.0, f32::max)
    };
    let (first, second, third) = (
        peak(&frames[..124]),
        peak(&frames[126..249]),
        peak(&frames[256..374]),
    );
    assert!(second > first + 5.0);
    assert!((third - first).abs() < 0.7, "{third} and {first} dB");
    // Legato returns without an attack.
    let mut legato = voices(
        &Performance {
            mode: PlayMode::Legato,
            ..performance
        },
        8,
    );
    let slurred = play(&mut legato, &events, 120_000);
    assert!(frames[265][0].loudness > frames[249][0].loudness + 3.0);
    assert!(slurred[265][0].loudness < slurred[249][0].loudness);
    assert!(sounding(frames.last().unwrap()).is_empty());
}

#[test]
fn mono_without_overlap_does_not_glide() {
    let performance = Performance {
        mode: PlayMode::Mono,
        glide_ms: 400.0,
        release_ms: 2_000.0,
        ..steady()
    };
    let frames = play(
        &mut voices(&performance, 8),
        &[on(0, 60), off(24_000, 60), on(25_000, 67)],
        48_000,
    );
    assert_eq!((frames[130][0].pitch, frames[131][0].pitch), (60.0, 67.0));
    // Another channel has its own voice.
    let other = Event {
        at: 0,
        kind: EventKind::NoteOn {
            channel: 1,
            key: 72,
            velocity: 0.8,
        },
    };
    let frames = play(
        &mut voices(&performance, 8),
        &[on(0, 60), other, on(9_600, 64)],
        48_000,
    );
    let pitches: Vec<_> = sounding(&frames[240])
        .iter()
        .map(|slot| slot.pitch)
        .collect();
    assert_eq!(pitches, [64.0, 72.0]);
}

#[test]
fn settings_apply_in_order_with_notes() {
    // All within one frame: the second note still has its own voice, the third takes that over, and
    // the first is released.
    let mut eight = voices(&steady(), 8);
    eight.handle(&on(0, 60)).unwrap();
    eight.handle(&on(9_610, 64)).unwrap();
    eight
        .set(9_620, Setting::Mode(Some(PlayMode::Mono)))
        .unwrap();
    let frames = play(&mut eight, &[on(9_630, 67)], 48_000);
    assert_eq!(
        (sounding(&frames[50]).len(), sounding(&frames[51]).len()),
        (1, 2)
    );
    assert_eq!(
        sounding(&frames[200])
            .iter()
            .map(|slot| slot.pitch)
            .collect::<Vec<_>>(),
        [67.0]
    );
    // A setting at the start of a session that takes over applies to the earlier notes, which keep
    // their times.
    let mut late = voices(&steady(), 8);
    late.set(48_000, Setting::Mode(Some(PlayMode::Legato)))
        .unwrap();
    late.handle(&on(1_000, 60)).unwrap();
    late.handle(&on(47_500, 72)).unwrap();
    let mut out = vec![VoiceFrame::SILENT; late.slots()];
    late.frame(48_000, &mut out);
    let found = sounding(&out);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].pitch > 60.2 && found[0].pitch < 61.5,
        "{}",
        found[0].pitch
    );
}

#[test]
fn a_change_of_mode_releases_notes_without_keys() {
    for mode in [PlayMode::Mono, PlayMode::Legato] {
        let mut eight = voices(&steady(), 8);
        let pedal = |at, value| control(at, controller::SUSTAIN, value);
        [
            pedal(0, 1.0),
            on(0, 50),
            off(100, 50),
            pedal(150, 0.0),
            on(200, 60),
            on(300, 64),
            on(400, 67),
        ]
        .iter()
        .for_each(|event| eight.handle(event).unwrap());
        eight.set(24_000, Setting::Mode(Some(mode))).unwrap();
        let keys = |frames: &[Vec<VoiceFrame>], frame: usize| {
            sounding(&frames[frame])
                .iter()
                .map(|slot| slot.pitch)
                .collect::<Vec<_>>()
        };
        // Back to the first key, to polyphonic mode, and all keys up.
        let frames = play(&mut eight, &[off(72_000, 67)], 96_000);
        assert_eq!(
            (keys(&frames, 124).len(), keys(&frames, 350)),
            (3, vec![67.0])
        );
        assert_eq!(keys(&frames, 450), [64.0], "{mode:?}");
        eight.set(100_000, Setting::Mode(None)).unwrap();
        for event in [on(100_001, 72), off(120_000, 64), off(120_000, 60)] {
            eight.handle(&event).unwrap();
        }
        let mut out = vec![VoiceFrame::SILENT; eight.slots()];
        let mut at = |at| {
            eight.frame(at, &mut out);
            let mut pitches: Vec<_> = sounding(&out).iter().map(|slot| slot.pitch).collect();
            pitches.sort_by(f32::total_cmp);
            pitches
        };
        assert_eq!(at(110_016), [64.0, 72.0]);
        (120_000..168_000)
            .step_by(HOP as usize)
            .for_each(|t| drop(at(t)));
        assert_eq!(at(168_000), [72.0], "{mode:?}");
    }
}

#[test]
fn fewer_voices_fade_out_surplus_notes() {
    let mut eight = voices(&steady(), 8);
    (0..6).for_each(|i| eight.handle(&on(u64::from(i) * 100, 60 + i)).unwrap());
    eight.set(24_000, Setting::Voices(Some(2))).unwrap();
    eight.handle(&on(30_000, 70)).unwrap();
    eight.set(48_000, Setting::Voices(Some(40))).unwrap();
    let more: Vec<_> = (0..9).map(|i| on(48_100, 71 + i)).collect();
    let frames = play(&mut eight, &more, 72_000);
    let heard = |frame: usize| {
        let full = frames[frame].iter().filter(|slot| slot.gain == 1.0);
        full.map(|slot| slot.pitch.round() as u8)
            .collect::<Vec<_>>()
    };
    assert_eq!(heard(124), [60, 61, 62, 63, 64, 65]);
    // Four fade at once, within 5 ms.
    assert_eq!(
        frames[126]
            .iter()
            .filter(|slot| (0.1..0.5).contains(&slot.gain))
            .count(),
        4
    );
    assert_eq!(heard(128), [64, 65]);
    assert_eq!(heard(200).len(), 2);
    assert!(heard(200).contains(&70));
    assert_eq!(heard(300).len(), 8, "no more than there is room for");
    eight.set(80_000, Setting::Voices(Some(0))).unwrap();
    let mut out = vec![VoiceFrame::SILENT; eight.slots()];
    for at in [80_000, 81_000, 82_000] {
        eight.frame(at, &mut out);
    }
    assert_eq!(sounding(&out).len(), 1, "at least one");
}

#[test]
fn the_current_glide_time_applies() {
    let performance = Performance {
        mode: PlayMode::Legato,
        glide_ms: 0.0,
        ..steady()
    };
    let mut eight = voices(&performance, 8);
    [on(0, 60), on(4_800, 62)]
        .iter()
        .for_each(|event| eight.handle(event).unwrap());
    eight.set(9_600, Setting::GlideMs(Some(100.0))).unwrap();
    eight.handle(&on(9_600, 74)).unwrap();
    eight.set(28_000, Setting::GlideMs(None)).unwrap();
    let frames = play(&mut eight, &[on(28_800, 50)], 48_000);
    assert_eq!((frames[25][0].pitch, frames[26][0].pitch), (62.0, 62.0));
    // About half-way after half the time.
    assert!(
        (frames[62][0].pitch - 67.4).abs() < 0.3,
        "{}",
        frames[62][0].pitch
    );
    assert_eq!((frames[80][0].pitch, frames[151][0].pitch), (74.0, 50.0));
}

#[test]
fn the_same_key_continues_in_its_slot() {
    let events = [on(0, 60), off(24_000, 60), on(25_000, 60), on(48_000, 60)];
    let frames = play(&mut voices(&steady(), 8), &events, 60_000);
    assert_eq!(
        frames
            .iter()
            .flatten()
            .filter(|slot| slot.restarted)
            .count(),
        1
    );
    assert!(
        frames[2..]
            .iter()
            .all(|frame| frame[0].gain == 1.0 && sounding(frame).len() == 1)
    );
}

#[test]
fn a_full_queue_returns_the_event() {
    let mut eight = voices(&steady(), 8);
    let capacity = eight.queue.capacity();
    for _ in 0..QUEUE_EVENTS {
        eight.handle(&on(0, 60)).unwrap();
    }
    assert_eq!(eight.handle(&on(5, 61)), Err(QueueFull(on(5, 61))));
    assert_eq!(eight.queue.capacity(), capacity);
    assert_eq!(
        eight.set(5, Setting::Voices(None)),
        Err(QueueFull(Setting::Voices(None)))
    );
    eight.frame(0, &mut []);
    eight.handle(&on(5, 61)).unwrap();
}

#[test]
fn reset_and_seed_determine_everything() {
    let performance = Performance::default();
    let events = [on(0, 60), on(10_000, 64), off(30_000, 60)];
    let mut first = Voices::new(&performance, 8, RATE, HOP, 5);
    let once = play(&mut first, &events, 60_000);
    first.reset();
    assert_eq!(play(&mut first, &events, 60_000), once);
    assert_eq!(
        play(
            &mut Voices::new(&performance, 8, RATE, HOP, 5),
            &events,
            60_000
        ),
        once
    );
    assert_ne!(
        play(
            &mut Voices::new(&performance, 8, RATE, HOP, 6),
            &events,
            60_000
        ),
        once
    );
}

#[test]
fn restart_equals_a_new_instance() {
    let performance = Performance::default();
    let events = [
        on(0, 60),
        control(5_000, controller::TIMBRE, 1.0),
        on(10_000, 64),
        off(30_000, 60),
    ];
    let fresh = play(
        &mut Voices::new(&performance, 8, RATE, HOP, 6),
        &events,
        60_000,
    );
    let mut reused = Voices::new(&performance, 8, RATE, HOP, 5);
    reused.set_performance(&Performance::plucked());
    reused.set_transposition(3.0);
    for setting in [
        Setting::Mode(Some(PlayMode::Mono)),
        Setting::GlideMs(Some(900.0)),
        Setting::Voices(Some(1)),
    ] {
        reused.set(0, setting).unwrap();
    }
    let zone = Event {
        at: 0,
        kind: EventKind::Zone {
            manager: 0,
            members: 4,
        },
    };
    play(
        &mut reused,
        &[
            zone,
            control(0, controller::SUSTAIN, 1.0),
            on(0, 50),
            on(90_000, 51),
        ],
        80_000,
    );
    reused.restart(6);
    assert_eq!(play(&mut reused, &events, 60_000), fresh);
}

#[test]
fn timbre_changes_brightness_only() {
    let note = |value| Event {
        at: 24_000,
        kind: EventKind::NoteExpression {
            channel: 0,
            key: 67,
            expression: NoteExpression::Timbre(value),
        },
    };
    let events = [on(0, 60), on(0, 67)];
    let rest = play(&mut voices(&steady(), 8), &events, 48_000);
    assert!(rest.iter().flatten().all(|slot| slot.brightness == 0.0));
    let events = [
        on(0, 60),
        on(0, 67),
        control(12_000, controller::TIMBRE, 0.75),
        note(0.0),
    ];
    let frames = play(&mut voices(&steady(), 8), &events, 48_000);
    assert!((frames[124][0].brightness - 6.0).abs() < 0.01);
    assert!((frames[124][1].brightness - 6.0).abs() < 0.01);
    assert!((frames[200][0].brightness - 6.0).abs() < 0.01);
    // −12 dB by the note, +6 dB by the channel, after a few frames.
    assert!((frames[200][1].brightness + 6.0).abs() < 0.01);
    assert!((-5.0..5.0).contains(&frames[127][1].brightness));
    for (frame, rest) in frames.iter().flatten().zip(rest.iter().flatten()) {
        assert_eq!(
            VoiceFrame {
                brightness: 0.0,
                ..*frame
            },
            *rest
        );
    }
}

#[test]
fn the_first_frame_may_be_late() {
    let performance = Performance {
        attack_ms: 20.0,
        release_ms: 20.0,
        ..Performance::plucked()
    };
    let bend = Event {
        at: 100_000,
        kind: EventKind::Bend {
            channel: 0,
            semitones: 3.0,
        },
    };
    // A key is struck again long after its note has decayed without a frame: it starts from
    // silence.
    let mut events = vec![
        on(0, 60),
        on(10_000, 64),
        bend,
        control(110_000, controller::EXPRESSION, 0.5),
        on(900_000, 60),
    ];
    // More notes than slots have started and ended.
    for i in 0..40 {
        let at = 300_000 + 1_000 * i;
        let silence = EventKind::Controller {
            channel: 1,
            number: controller::ALL_SOUND_OFF,
            value: 0.0,
        };
        events.push(Event {
            at,
            kind: EventKind::NoteOn {
                channel: 1,
                key: 70,
                velocity: 0.8,
            },
        });
        events.push(Event {
            at: at + 500,
            kind: silence,
        });
    }
    events.sort_by_key(|event| event.at);
    let whole = play(&mut voices(&performance, 4), &events, 960_000);
    let mut late = voices(&performance, 4);
    for event in &events {
        late.handle(event).unwrap();
    }
    for (index, expected) in whole.iter().enumerate().skip(4_688) {
        let mut out = vec![VoiceFrame::SILENT; late.slots()];
        late.frame(index as u64 * u64::from(HOP), &mut out);
        let (expected, found) = (sounding(expected), sounding(&out));
        assert_eq!(expected.len(), found.len());
        for (expected, found) in expected.iter().zip(&found) {
            assert!(
                (expected.pitch - found.pitch).abs() < 1e-3
                    && (expected.loudness - found.loudness).abs() < 1e-3
            );
            assert_eq!(expected.gain, found.gain);
        }
    }
    assert_eq!(late.notes_dropped(), 0);
}

#[test]
fn any_number_of_notes_may_start_at_once() {
    for mode in [PlayMode::Poly, PlayMode::Mono, PlayMode::Legato] {
        let performance = Performance { mode, ..steady() };
        let burst = |at| {
            (0..=255u8).map(move |i| Event {
                at,
                kind: EventKind::NoteOn {
                    channel: i / 128,
                    key: i % 128,
                    velocity: 0.8,
                },
            })
        };
        let events: Vec<_> = burst(100)
            .chain(burst(24_100))
            .chain(burst(24_100))
            .collect();
        let mut eight = voices(&performance, 8);
        let frames = play(&mut eight, &events, 48_000);
        let voices = if mode == PlayMode::Poly { 8 } else { 2 };
        assert_eq!(
            (sounding(&frames[100]).len(), sounding(&frames[249]).len()),
            (voices, voices)
        );
        for (before, after) in frames.iter().flatten().zip(frames[1..].iter().flatten()) {
            assert!(
                before.gain - after.gain <= 0.8 + 1e-5 && (!after.restarted || before.gain == 0.0)
            );
        }
    }
}

#[test]
fn invalid_events_are_tolerated() {
    let nan = Event {
        at: 0,
        kind: EventKind::NoteOn {
            channel: 0,
            key: 62,
            velocity: f32::NAN,
        },
    };
    // Off without on, an invalid velocity, and a late note-off, which gets the time of its
    // predecessor.
    let events = [
        off(0, 60),
        nan,
        on(9_600, 60),
        off(5_000, 60),
        on(9_600, 61),
    ];
    let frames = play(&mut voices(&steady(), 8), &events, 48_000);
    let last = sounding(frames.last().unwrap());
    assert_eq!((last.len(), last[0].pitch), (1, 61.0));
}

#[test]
fn transposition_shifts_pitch() {
    let mut eight = voices(&steady(), 8);
    eight.set_transposition(-12.0);
    assert_eq!(play(&mut eight, &[on(0, 60)], 9_600)[20][0].pitch, 48.0);
}
