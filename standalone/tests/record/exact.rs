//! Every sample is at its position.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ondes::record::{RecordError, Recorder, RecorderSetup, RecordingFormat, Tap};

use crate::common::{Chance, RATE, push, read_float, recorder, sound, until};

/// Pushes random blocks to all taps from `clock` to `end`, like one callback.
fn play(taps: &mut [Tap], chance: &mut Chance, mut clock: u64, end: u64) {
    while clock < end {
        let frames = (1 + chance.below(700)).min((end - clock) as usize);
        for tap in 0..taps.len() {
            push(taps, tap, clock, frames);
        }
        clock += frames as u64;
    }
}

#[test]
fn a_recording_contains_what_was_pushed() {
    for channels in [1, 2, 64] {
        let (folder, mut recorder, mut taps) = recorder(&[channels], 0.5);
        let chance = &mut Chance(channels as u64);
        let mut clock = 1_000_000_007;
        push(&mut taps, 0, clock - 1, 1);
        for take in 0..5 {
            let start = clock + chance.below(9_000) as u64;
            let end = start + [0, 1, 700, 13_000, 70_000][take];
            let path = folder.path().join(format!("{take}.wav"));
            play(&mut taps, chance, clock, start);
            recorder
                .start([(0, path.clone())], RecordingFormat::Float32, false)
                .expect("it starts");
            play(&mut taps, chance, start, end);
            recorder.stop();
            clock = end + 5_000;
            play(&mut taps, chance, end, clock);
            let status = recorder.wait();
            assert_eq!(
                (
                    status.recording,
                    status.finishing,
                    status.dropped,
                    status.error
                ),
                (None, 0, 0, None)
            );
            assert!(
                read_float(&path) == sound(0, channels, start..end),
                "{channels} channels, take {take}"
            );
        }
    }
}

#[test]
fn a_recording_can_start_before_the_first_sample() {
    let (folder, mut recorder, mut taps) = recorder(&[2], 0.0);
    let path = folder.path().join("a.wav");
    recorder
        .start([(0, path.clone())], RecordingFormat::Float32, false)
        .expect("it starts");
    play(&mut taps, &mut Chance(1), 77, 30_000);
    recorder.stop();
    assert_eq!(recorder.wait().error, None);
    assert!(read_float(&path) == sound(0, 2, 77..30_000));
    // Stopped before the first sample.
    let setup = RecorderSetup {
        channels: vec![2],
        ..RecorderSetup::default()
    };
    let (mut recorder, _taps) = Recorder::new(&setup).expect("there is memory");
    let path = folder.path().join("b.wav");
    recorder
        .start([(0, path.clone())], RecordingFormat::Float32, true)
        .expect("it starts");
    recorder.stop();
    assert_eq!(recorder.wait().error, None);
    assert!(read_float(&path).is_empty());
    let nothing =
        recorder.save_preroll([(0, folder.path().join("c.wav"))], RecordingFormat::Float32);
    assert!(matches!(nothing, Err(RecordError::NoSound)));
}

#[test]
fn a_recording_starts_with_the_pre_roll() {
    let (folder, mut recorder, mut taps) = recorder(&[2], 1.0);
    let chance = &mut Chance(3);
    let path = |name: &str| folder.path().join(name);
    let second = u64::from(RATE);
    // As far back as there is sound.
    play(&mut taps, chance, 500, 10_000);
    recorder
        .start([(0, path("a.wav"))], RecordingFormat::Float32, true)
        .expect("it starts");
    play(&mut taps, chance, 10_000, 20_000);
    recorder.stop();
    // The pre-roll is saved while a recording is running.
    play(&mut taps, chance, 20_000, 200_000);
    recorder
        .start([(0, path("b.wav"))], RecordingFormat::Float32, true)
        .expect("it starts");
    play(&mut taps, chance, 200_000, 300_000);
    recorder
        .save_preroll([(0, path("c.wav"))], RecordingFormat::Float32)
        .expect("there is sound");
    play(&mut taps, chance, 300_000, 310_000);
    recorder.stop();
    // And while none is running.
    recorder
        .save_preroll([(0, path("d.wav"))], RecordingFormat::Float32)
        .expect("there is sound");
    let status = recorder.wait();
    assert_eq!((status.dropped, status.error), (0, None));
    let frames = [
        500..20_000,
        200_000 - second..310_000,
        300_000 - second..300_000,
        310_000 - second..310_000,
    ];
    for (name, frames) in ["a.wav", "b.wav", "c.wav", "d.wav"].into_iter().zip(frames) {
        assert!(read_float(&path(name)) == sound(0, 2, frames), "{name}");
    }
}

#[test]
fn tracks_are_in_sync() {
    let (folder, mut recorder, mut taps) = recorder(&[2, 1], 0.1);
    let path = |name: &str, tap: usize| (tap, folder.path().join(format!("{name}{tap}.wav")));
    play(&mut taps, &mut Chance(1), 0, 20_000);
    // In the middle of a callback, when the first tap is ahead.
    push(&mut taps, 0, 20_000, 300);
    recorder
        .start(
            (0..2).map(|tap| path("now", tap)),
            RecordingFormat::Float32,
            false,
        )
        .expect("it starts");
    push(&mut taps, 1, 20_000, 300);
    play(&mut taps, &mut Chance(2), 20_300, 25_300);
    recorder.stop();
    recorder
        .start(
            (0..2).map(|tap| path("past", tap)),
            RecordingFormat::Float32,
            true,
        )
        .expect("it starts");
    play(&mut taps, &mut Chance(2), 25_300, 29_000);
    // In any block lengths.
    push(&mut taps, 0, 29_000, 1_000);
    (0..10).for_each(|block| push(&mut taps, 1, 29_000 + 100 * block, 100));
    recorder.stop();
    let status = recorder.wait();
    assert_eq!((status.dropped, status.error), (0, None));
    for (tap, channels) in [(0, 2), (1, 1)] {
        assert!(read_float(&path("now", tap).1) == sound(tap, channels, 20_300..25_300));
        assert!(read_float(&path("past", tap).1) == sound(tap, channels, 25_300 - 4_800..30_000));
    }
}

/// Here the callback does not wait for anybody.
#[test]
fn a_recording_starts_and_ends_when_requested() {
    let (folder, mut recorder, mut taps) = recorder(&[1, 1], 0.05);
    let (clock, over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Four times real time, in blocks that identify their position.
            while !over.load(Ordering::Relaxed) {
                let now = clock.load(Ordering::Relaxed);
                let block: Vec<f32> = (now..now + 192).map(|frame| frame as f32).collect();
                taps.iter_mut().for_each(|tap| tap.push(now, &[&block]));
                clock.store(now + 192, Ordering::Release);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        until("there is sound", || clock.load(Ordering::Acquire) > 5_000);
        for round in 0..20 {
            let paths = [0, 1].map(|tap| folder.path().join(format!("{round} {tap}.wav")));
            let before_start = clock.load(Ordering::Acquire);
            let preroll = round % 2 == 1;
            recorder
                .start(
                    [(0, paths[0].clone()), (1, paths[1].clone())],
                    RecordingFormat::Float32,
                    preroll,
                )
                .expect("it starts");
            let after_start = clock.load(Ordering::Acquire) + 192;
            std::thread::sleep(Duration::from_millis(7 * round));
            let before_stop = clock.load(Ordering::Acquire);
            recorder.stop();
            let after_stop = clock.load(Ordering::Acquire) + 192;
            let status = recorder.wait();
            assert_eq!((status.dropped, status.error), (0, None));
            let found = read_float(&paths[0]);
            assert!(found == read_float(&paths[1]), "both are the same sound");
            if let (Some(&first), Some(&last)) = (found.first(), found.last()) {
                let past = if preroll { 2_400 } else { 0 };
                assert!(
                    (before_start..=after_start).contains(&(first as u64 + past)),
                    "{first}"
                );
                assert!(
                    (before_stop..=after_stop).contains(&(last as u64 + 1)),
                    "{last}"
                );
                assert!(
                    found.windows(2).all(|pair| pair[1] == pair[0] + 1.0),
                    "without a hole"
                );
            }
        }
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_silent_tap_is_padded() {
    let (folder, mut recorder, mut taps) = recorder(&[1, 1], 0.0);
    let path = |tap: usize| folder.path().join(format!("{tap}.wav"));
    play(&mut taps, &mut Chance(1), 0, 1_000);
    recorder
        .start(
            [(0, path(0)), (1, path(1))],
            RecordingFormat::Float32,
            false,
        )
        .expect("it starts");
    play(&mut taps, &mut Chance(2), 1_000, 2_000);
    push(&mut taps, 0, 2_000, 40_000);
    recorder.stop();
    assert_eq!(recorder.wait().error, None);
    assert!(read_float(&path(0)) == sound(0, 1, 1_000..42_000));
    let mut expected = sound(1, 1, 1_000..2_000);
    expected.resize(41_000, 0.0);
    assert!(read_float(&path(1)) == expected);
}

#[test]
fn dropped_sound_is_silence_and_counted() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let setup = RecorderSetup {
        sample_rate: RATE,
        channels: vec![2],
        preroll_s: 0.0,
        ring_s: 0.01,
    };
    let (mut recorder, mut taps) = Recorder::new(&setup).expect("there is memory");
    let path = folder.path().join("a.wav");
    recorder
        .start([(0, path.clone())], RecordingFormat::Float32, false)
        .expect("it starts");
    // The ring holds 480 frames; a longer block simulates a slow disk.
    push(&mut taps, 0, 50, 10_000);
    assert_eq!(recorder.status().dropped, 9_520);
    until("the ring is taken", || {
        recorder.status().recording == Some(480)
    });
    push(&mut taps, 0, 10_050, 100);
    until("the ring is taken", || {
        recorder.status().recording == Some(10_100)
    });
    // The end of the recording lies in dropped frames.
    push(&mut taps, 0, 10_150, 500);
    recorder.stop();
    let status = recorder.wait();
    assert_eq!((status.dropped, status.error), (9_540, None));
    let mut expected = sound(0, 2, 50..10_650);
    expected[2 * 480..2 * 10_000].fill(0.0);
    expected[2 * 10_580..].fill(0.0);
    assert!(read_float(&path) == expected);
    // Each recording counts its own drops.
    recorder
        .start(
            [(0, folder.path().join("b.wav"))],
            RecordingFormat::Float32,
            false,
        )
        .expect("it starts");
    assert_eq!(recorder.status().dropped, 0);
}

#[test]
fn a_clock_reset_ends_a_recording() {
    let (folder, mut recorder, mut taps) = recorder(&[2, 1], 1.0);
    let path = |name: &str, tap: usize| (tap, folder.path().join(format!("{name}{tap}.wav")));
    let chance = &mut Chance(5);
    recorder
        .start(
            (0..2).map(|tap| path("a", tap)),
            RecordingFormat::Float32,
            false,
        )
        .expect("it starts");
    play(&mut taps, chance, 100_000, 130_000);
    until("the sound is taken", || {
        recorder.status().recording == Some(30_000)
    });
    play(&mut taps, chance, 7, 1_000);
    until("the recording ends", || {
        recorder.status().recording.is_none()
    });
    let error = recorder.wait().error.expect("it is told");
    assert!(
        error.ends_with("a0.wav: the recording ended at a reset of the sample clock"),
        "{error}"
    );
    recorder
        .start(
            (0..2).map(|tap| path("b", tap)),
            RecordingFormat::Float32,
            true,
        )
        .expect("it starts");
    play(&mut taps, chance, 1_000, 2_000);
    recorder.stop();
    assert_eq!(recorder.wait().error, None);
    for (tap, channels) in [(0, 2), (1, 1)] {
        assert!(read_float(&path("a", tap).1) == sound(tap, channels, 100_000..130_000));
        assert!(read_float(&path("b", tap).1) == sound(tap, channels, 7..2_000));
    }
}

#[test]
fn a_dropped_recorder_completes_its_files() {
    let (folder, mut recorder, mut taps) = recorder(&[2], 1.0);
    let path = |name: &str| folder.path().join(name);
    play(&mut taps, &mut Chance(1), 0, 60_000);
    recorder
        .start([(0, path("a.wav"))], RecordingFormat::Float32, true)
        .expect("it starts");
    recorder
        .save_preroll([(0, path("b.wav"))], RecordingFormat::Float32)
        .expect("there is sound");
    play(&mut taps, &mut Chance(1), 60_000, 100_001);
    drop(recorder);
    assert!(read_float(&path("a.wav")) == sound(0, 2, 12_000..100_001));
    assert!(read_float(&path("b.wav")) == sound(0, 2, 12_000..60_000));
    // The taps keep working.
    push(&mut taps, 0, 100_001, 2_000_000);
}

#[test]
fn invalid_setups_are_refused() {
    let usual = RecorderSetup {
        preroll_s: 0.0,
        ..RecorderSetup::default()
    };
    for setup in [
        RecorderSetup {
            sample_rate: 10,
            ..usual.clone()
        },
        RecorderSetup {
            channels: vec![2, 0],
            ..usual.clone()
        },
        RecorderSetup {
            channels: vec![65],
            ..usual.clone()
        },
        RecorderSetup {
            preroll_s: 601.0,
            ..usual.clone()
        },
        RecorderSetup {
            preroll_s: f64::NAN,
            ..usual.clone()
        },
        RecorderSetup {
            ring_s: 0.0,
            ..usual.clone()
        },
    ] {
        assert!(
            matches!(Recorder::new(&setup), Err(RecordError::Limit { .. })),
            "{setup:?}"
        );
    }
}
