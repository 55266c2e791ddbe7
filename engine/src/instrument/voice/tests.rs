use super::*;
use proptest::prelude::*;

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

fn begin(performance: &Performance, at: u64, key: u8, velocity: f32, seed: u64) -> Voice {
    Voice::new(
        performance,
        RATE,
        HOP,
        NoteStart {
            at,
            channel: 0,
            key,
            pitch: f64::from(key),
            velocity,
            seed,
        },
    )
}

fn note(performance: &Performance, key: u8, velocity: f32) -> Voice {
    begin(performance, 0, key, velocity, 1)
}

fn at_ms(ms: f64) -> u64 {
    (ms * RATE / 1e3) as u64
}

#[test]
fn attack_rises_to_the_peak_then_settles() {
    let performance = steady();
    let voice = note(&performance, 60, 0.5);
    let peak = f64::from(performance.peak_db(0.5));
    assert!((voice.level_db(0) - (peak - ONSET_DB)).abs() < 1e-9);
    let mut last = f64::NEG_INFINITY;
    for t in (0..at_ms(70.0)).step_by(48) {
        assert!(voice.level_db(t) > last);
        last = voice.level_db(t);
    }
    assert!((voice.level_db(at_ms(70.0)) - (peak - 1.0)).abs() < 0.05);
    // It still rises a little while it settles.
    last = f64::INFINITY;
    for t in (at_ms(140.0)..at_ms(1_000.0)).step_by(192) {
        assert!(voice.level_db(t) < last);
        last = voice.level_db(t);
    }
    // Half the accent at half velocity.
    assert!((last - (peak + 0.5 * f64::from(performance.sustain_db))).abs() < 0.01);
}

#[test]
fn hard_notes_speak_faster_and_louder() {
    let performance = steady();
    let (soft, hard) = (note(&performance, 60, 0.1), note(&performance, 60, 1.0));
    let left = |voice: &Voice| voice.attack.peak_db - voice.level_db(at_ms(20.0));
    assert!(left(&hard) + 1.0 < left(&soft));
    assert!(hard.level_db(at_ms(500.0)) > soft.level_db(at_ms(500.0)) + 20.0);
}

#[test]
fn release_falls_60_db_in_its_time() {
    for hold_ms in [20.0, 300.0] {
        let performance = steady();
        let mut voice = note(&performance, 60, 0.8);
        let off = at_ms(hold_ms);
        voice.release(off);
        let from = voice.level_db(off);
        let mut last = from + 1e-9;
        for t in (off..off + at_ms(400.0)).step_by(48) {
            assert!(voice.level_db(t) < last);
            last = voice.level_db(t);
        }
        let end = off + at_ms(f64::from(performance.release_ms));
        assert!((voice.level_db(end) - (from - 60.0)).abs() < 1e-3);
        // A second release has no effect.
        voice.release(end);
        assert!((voice.level_db(end) - (from - 60.0)).abs() < 1e-3);
    }
}

#[test]
fn plucked_notes_decay_and_higher_ones_faster() {
    let performance = Performance {
        sustain_db: 0.0,
        ..Performance::plucked()
    };
    let slope = |key| {
        let voice = note(&performance, key, 0.7);
        voice.level_db(at_ms(500.0)) - voice.level_db(at_ms(1_500.0))
    };
    assert!((slope(60) - 14.0).abs() < 1e-4);
    assert!((slope(72) - 14.0 * 1.7).abs() < 1e-4);
    assert!((slope(48) - 14.0 / 1.7).abs() < 1e-4);
    // Damped by the release: far faster than the natural decay.
    let mut voice = note(&performance, 60, 0.7);
    voice.release(at_ms(500.0));
    assert!(voice.level_db(at_ms(500.0)) - voice.level_db(at_ms(700.0)) > 25.0);
}

#[test]
fn a_note_ends_in_silence() {
    for performance in [
        steady(),
        Performance {
            decay_db_per_s: 30.0,
            ..Performance::plucked()
        },
    ] {
        let mut voice = note(&performance, 60, 0.8);
        let mut gain = 0.0;
        let mut over_at = None;
        for t in (0..at_ms(6_000.0)).step_by(HOP as usize) {
            if t >= at_ms(1_000.0) && performance.decay_db_per_s == 0.0 && voice.release.is_none() {
                voice.release(t);
            }
            let frame = voice.control(t, &ChannelValues::REST);
            assert!((frame.gain - gain).abs() <= 1.0 + 1e-6);
            if frame.gain < gain {
                assert!(
                    frame.loudness <= -79.0,
                    "a fade at {} dB would be heard",
                    frame.loudness
                );
                assert!(gain - frame.gain <= 0.2 + 1e-5);
            }
            gain = frame.gain;
            if voice.is_over(t) {
                over_at = Some(t);
                break;
            }
        }
        assert_eq!(gain, 0.0);
        assert!(over_at.is_some_and(|t| t > at_ms(900.0)));
    }
}

#[test]
fn stolen_notes_fade_in_5_ms() {
    let mut voice = note(&steady(), 60, 0.8);
    let at = at_ms(500.0);
    voice.steal(at);
    for ms in 0..=6 {
        let expected = (1.0 - f64::from(ms) / 5.0).max(0.0) as f32;
        assert!(
            (voice
                .control(at + at_ms(f64::from(ms)), &ChannelValues::REST)
                .gain
                - expected)
                .abs()
                < 1e-6
        );
    }
    assert!(voice.is_over(at + at_ms(5.0)));
}

/// Returns a frame without what only a recorded attack needs.
fn heard(frame: ControlFrame) -> ControlFrame {
    ControlFrame {
        stroke: None,
        strike_db: 0.0,
        strike_gain: 0.0,
        ..frame
    }
}

#[test]
fn retrigger_continues_the_level_and_slur_the_pitch() {
    let mut voice = note(&steady(), 60, 0.9);
    voice.release(at_ms(500.0));
    let t = at_ms(560.0);
    let before = voice.control(t, &ChannelValues::REST);
    voice.retrigger(t, 60, 60.0, 0.5);
    let after = voice.control(t, &ChannelValues::REST);
    assert_eq!(heard(before), heard(after));
    assert_eq!(after.gain, 1.0);
    assert_eq!(after.stroke.map(|stroke| stroke.age), Some(0));

    let t = at_ms(1_000.0);
    let before = voice.control(t, &ChannelValues::REST);
    voice.slur(t, (67, 67.0), Some(0.6), 50.0);
    let after = voice.control(t, &ChannelValues::REST);
    assert_eq!(heard(after), heard(before));
    assert_eq!(after.stroke, None, "a slur has no stroke");
    let mut last = before.pitch;
    for ms in 1..=50 {
        let pitch = voice
            .control(t + at_ms(f64::from(ms)), &ChannelValues::REST)
            .pitch;
        assert!(pitch > last);
        last = pitch;
    }
    assert_eq!(last, 67.0);
}

/// Returns the rate, from the mean distance of upward zero crossings of `pitch - key`, and the
/// largest excursion in cents.
fn measure_vibrato(voice: &mut Voice, values: &ChannelValues, from_ms: f64) -> (f64, f64) {
    let key = f32::from(voice.key);
    let (mut first, mut last, mut count, mut depth) = (None, 0, 0, 0f32);
    let mut before = 0.0;
    for t in (at_ms(from_ms)..at_ms(from_ms + 4_000.0)).step_by(48) {
        let offset = voice.control(t, values).pitch - key;
        depth = depth.max(offset.abs());
        if before < 0.0 && offset >= 0.0 {
            first.get_or_insert(t);
            last = t;
            count += 1;
        }
        before = offset;
    }
    let rate = f64::from(count - 1) * RATE / (last - first.unwrap()) as f64;
    (rate, f64::from(depth) * 100.0)
}

#[test]
fn vibrato_has_its_rate_and_depth() {
    let performance = Performance {
        vibrato_cents: 12.0,
        vibrato_wheel_cents: 40.0,
        ..steady()
    };
    let mut voice = note(&performance, 60, 0.8);
    let (rate, depth) = measure_vibrato(&mut voice, &ChannelValues::REST, 1_000.0);
    assert!((rate - 5.4).abs() < 0.01);
    assert!((depth - 12.0).abs() < 0.1);
    for (wheel, expected) in [(0.5, 26.0), (1.0, 40.0)] {
        let values = ChannelValues {
            wheel,
            ..ChannelValues::REST
        };
        let (_, depth) = measure_vibrato(&mut voice, &values, 1_000.0);
        assert!((depth - expected).abs() < 0.2, "{depth}");
    }
    // Natural vibrato is delayed, that of the wheel is not.
    let depth_by = |voice: &mut Voice, values: &ChannelValues| {
        (0..at_ms(220.0))
            .step_by(48)
            .map(|t| (voice.control(t, values).pitch - 60.0).abs())
            .fold(0.0, f32::max)
    };
    assert!(depth_by(&mut voice, &ChannelValues::REST) < 0.001);
    assert!(
        depth_by(
            &mut voice,
            &ChannelValues {
                wheel: 1.0,
                ..ChannelValues::REST
            }
        ) > 0.3
    );
}

#[test]
fn vibrato_of_living_notes_differs_and_wanders() {
    let performance = Performance {
        vibrato_cents: 12.0,
        humanize_cents: 0.0,
        life: 1.0,
        ..steady()
    };
    let vibratos: Vec<(f64, f64)> = (0..20)
        .map(|seed| {
            let mut voice = begin(&performance, 0, 60, 0.8, seed);
            measure_vibrato(&mut voice, &ChannelValues::REST, 1_000.0)
        })
        .collect();
    for (rate, depth) in &vibratos {
        assert!((rate - 5.4).abs() < 0.6, "{rate} Hz");
        assert!((8.0..18.0).contains(depth), "{depth} cents");
    }
    let spread = |value: fn(&(f64, f64)) -> f64| {
        let (low, high) = (f64::MAX, f64::MIN);
        let range = vibratos.iter().map(value);
        let (low, high) = range.fold((low, high), |(low, high), x| (low.min(x), high.max(x)));
        high - low
    };
    assert!(spread(|vibrato| vibrato.0) > 0.2 && spread(|vibrato| vibrato.1) > 1.0);
}

#[test]
fn scoop_starts_below_and_arrives() {
    let mut voice = note(
        &Performance {
            scoop_cents: 30.0,
            ..steady()
        },
        60,
        0.8,
    );
    assert!((voice.control(0, &ChannelValues::REST).pitch - 59.7).abs() < 1e-4);
    assert!((voice.control(at_ms(300.0), &ChannelValues::REST).pitch - 60.0).abs() < 1e-3);
}

#[test]
fn drift_is_seeded_and_bounded() {
    let performance = Performance {
        humanize_cents: 5.0,
        humanize_db: 1.0,
        life: 1.0,
        ..steady()
    };
    let run = |seed| {
        let mut voice = begin(&performance, 0, 60, 0.8, seed);
        (0..2_000)
            .map(|i| voice.control(i * 192, &ChannelValues::REST))
            .collect::<Vec<_>>()
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
    assert!(
        run(3)
            .iter()
            .all(|frame| (frame.pitch - 60.0).abs() <= 0.05 + 1e-4)
    );
    assert!(run(3).iter().any(|frame| (frame.pitch - 60.0).abs() > 0.02));
}

#[test]
fn faders_follow_their_law() {
    let mut voice = note(&steady(), 60, 0.8);
    let t = at_ms(800.0);
    let rest = voice.control(t, &ChannelValues::REST);
    let half = voice.control(
        t,
        &ChannelValues {
            expression: 0.5,
            ..ChannelValues::REST
        },
    );
    assert!((rest.loudness - half.loudness - 12.04).abs() < 0.01);
    assert_eq!(half.gain, 1.0);
    let quiet = voice.control(
        t,
        &ChannelValues {
            volume: 0.5,
            ..ChannelValues::REST
        },
    );
    assert_eq!((quiet.loudness, quiet.gain), (rest.loudness, 0.25));
    let shut = voice.control(
        t,
        &ChannelValues {
            expression: 0.0,
            ..ChannelValues::REST
        },
    );
    assert_eq!((shut.loudness, shut.gain), (SILENCE_DB, 0.0));
    // A held note does not end by closing the fader.
    assert!(!voice.is_over(t + at_ms(1_000.0)));
    let pressed = voice.control(
        t,
        &ChannelValues {
            pressure: 1.0,
            ..ChannelValues::REST
        },
    );
    assert!((pressed.loudness - rest.loudness - 6.0).abs() < 1.5);
}

#[test]
fn note_expression_moves_its_note() {
    let mut voice = note(&steady(), 60, 0.5);
    let t = at_ms(800.0);
    let rest = voice.control(t, &ChannelValues::REST);
    voice.express(t, NoteExpression::Tuning(0.5));
    voice.express(t, NoteExpression::Level(-6.0));
    let moved = voice.control(t + at_ms(120.0), &ChannelValues::REST);
    assert!((moved.pitch - rest.pitch - 0.5).abs() < 1e-3);
    assert!((rest.loudness - moved.loudness - 6.0).abs() < 0.05);
    voice.express(t, NoteExpression::Timbre(1.0));
    let bright = voice.control(t + at_ms(120.0), &ChannelValues::REST);
    assert!((bright.brightness - TIMBRE_RANGE_DB).abs() < 0.01);
    // The sum of both is limited.
    let both = voice.control(
        t + at_ms(120.0),
        &ChannelValues {
            timbre: 1.0,
            ..ChannelValues::REST
        },
    );
    assert_eq!(both.brightness, TIMBRE_RANGE_DB);
    // Expression at the onset is immediate.
    let mut voice = note(&steady(), 60, 0.5);
    voice.express(0, NoteExpression::Tuning(0.5));
    assert_eq!(voice.control(0, &ChannelValues::REST).pitch, 60.5);
}

#[test]
fn expression_can_be_set_per_note() {
    let performance = Performance {
        loudness_max_db: -10.0,
        ..steady()
    };
    let t = at_ms(800.0);
    let heard = |own: f32, expression| {
        let mut voice = note(&performance, 60, 0.5);
        voice.express(0, NoteExpression::Expression(own));
        voice.control(
            t,
            &ChannelValues {
                expression,
                ..ChannelValues::REST
            },
        )
    };
    // Both have the same law, and together they act as their product.
    for (own, channel) in [
        (0.5, 1.0),
        (0.5, 0.5),
        (1.0, 0.25),
        (1.0 / 64.0, 1.0),
        (0.25, 0.125),
        (0.0, 1.0),
        (1.0, 1.0),
    ] {
        let (both, pedal) = (heard(own, channel), heard(1.0, f64::from(own) * channel));
        assert!(
            (both.loudness - pedal.loudness).abs() < 1e-4 && (both.gain - pedal.gain).abs() < 1e-6
        );
        assert_eq!(
            (both.pitch, both.brightness),
            (pedal.pitch, pedal.brightness)
        );
    }
    assert!((heard(1.0, 1.0).loudness - heard(0.5, 1.0).loudness - 12.04).abs() < 0.01);
    assert_eq!(heard(0.0, 1.0).gain, 0.0);
    // It moves smoothly during a note and is neutral for the next note on the voice.
    let mut voice = note(&performance, 60, 0.5);
    let rest = voice.control(t, &ChannelValues::REST).loudness;
    voice.express(t, NoteExpression::Expression(0.5));
    let moved =
        |voice: &mut Voice, ms| voice.control(t + at_ms(ms), &ChannelValues::REST).loudness - rest;
    assert_eq!(moved(&mut voice, 0.0), 0.0);
    assert!((-9.0..-1.0).contains(&moved(&mut voice, 8.0)));
    assert!((moved(&mut voice, 100.0) + 12.04).abs() < 0.05);
    voice.retrigger(t + at_ms(100.0), 60, 60.0, 0.5);
    assert!(moved(&mut voice, 900.0).abs() < 0.01);
}

#[test]
fn vibrato_can_be_set_per_note() {
    let performance = Performance {
        vibrato_cents: 0.0,
        vibrato_wheel_cents: 40.0,
        ..steady()
    };
    let mut voice = note(&performance, 60, 0.8);
    voice.express(0, NoteExpression::Vibrato(0.5));
    for (wheel, expected) in [(0.0, 20.0), (0.3, 20.0), (1.0, 40.0)] {
        let (_, depth) = measure_vibrato(
            &mut voice,
            &ChannelValues {
                wheel,
                ..ChannelValues::REST
            },
            1_000.0,
        );
        assert!((depth - expected).abs() < 0.2, "{depth}");
    }
}

proptest! {
    #[test]
    fn every_frame_is_within_limits(
        key in 0u8..128, velocity in 0f32..=1.0, seed: u64, release_ms in 0f64..3_000.0,
        wheel in 0f64..=1.0, pressure in 0f64..=1.0, expression in 0f64..=1.0, volume in 0f64..=1.0, plucked: bool,
    ) {
        let performance = if plucked { Performance::plucked() } else { Performance::default() };
        let mut voice = begin(&performance, 77, key, velocity, seed);
        let values = ChannelValues { bend: 0.0, wheel, pressure, expression, volume, timbre: 0.0 };
        for t in (0..at_ms(4_000.0)).step_by(HOP as usize) {
            if t >= at_ms(release_ms) { voice.release(t); }
            let frame = voice.control(t, &values);
            prop_assert!((SILENCE_DB..=performance.loudness_max_db + 3.0).contains(&frame.loudness));
            prop_assert!((0.0..=1.0).contains(&frame.gain));
            prop_assert!((frame.pitch - f32::from(key)).abs() < 0.7);
        }
    }
}
