//! Changing models while playing: smooth, complete, and without losing state or memory.

use std::f32::consts::FRAC_PI_2;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ondes_engine::instrument::EventKind;
use ondes_engine::model::{Kind, Model, Op};
use ondes_engine::ops::{Affine, Split};
use ondes_engine::pipeline::{
    Action, ControlId, ControlSource, PipelineOptions, TimedCommand, Transport,
};
use ondes_engine::realtime::{
    BlockCommand, Driven, Driver, LoadError, LoadStatus, ModelFactory, PlayableModel, Session,
    SessionController, Setup,
};
use ondes_tests::audio_models::{EFFECT_BLOCK, untrained_codec, untrained_effect};
use ondes_tests::fake_model::{
    CountedModel, FakeModel, Gate, Host, INJECTED_PANIC, LOUDEST, Wave, load, peak, steepest,
    wait_until,
};
use ondes_tests::{SAMPLE_RATE, instrument_methods, model, node, seeded_rng};
use rand::RngExt;

use crate::exclusive;

const BLOCK: usize = 480;
const WORKER: Driver = Driver::Worker {
    latency: Some(BLOCK),
};
/// Length of a cross-fade in samples.
const CROSS_FADE: usize = 960;
const WAVES: [Wave; 3] = [
    Wave {
        frequency: 0.0041,
        peak: 0.8,
    },
    Wave {
        frequency: 0.0067,
        peak: 0.5,
    },
    Wave {
        frequency: 0.0029,
        peak: 0.7,
    },
];

fn latency(driver: Driver) -> usize {
    if driver == WORKER { BLOCK } else { 0 }
}

/// Returns `true` if the last `count` samples of the output are that wave.
fn plays(host: &Host, wave: Wave, latency: usize, count: usize) -> bool {
    let from = host.output.len() - count;
    let at = |number: usize| wave.at((number - latency) as u64);
    host.output
        .iter()
        .enumerate()
        .skip(from)
        .all(|(number, sample)| *sample == at(number))
}

fn key(offset: usize, key: u8, down: bool) -> BlockCommand {
    let (channel, velocity) = (0, 0.7);
    let kind = if down {
        EventKind::NoteOn {
            channel,
            key,
            velocity,
        }
    } else {
        EventKind::NoteOff {
            channel,
            key,
            velocity,
        }
    };
    BlockCommand {
        offset,
        action: Action::Play(kind),
    }
}

fn turn(name: &str, value: f32) -> BlockCommand {
    BlockCommand {
        offset: 0,
        action: Action::Control {
            id: ControlId::new(name),
            value,
        },
    }
}

/// Returns a small instrument without noise and with few harmonics, so that a step stands out.
fn smooth_instrument(seed: u64) -> Arc<Model> {
    let mut methods = instrument_methods();
    let nodes = &mut methods[0].nodes;
    nodes.retain(|node| !["magnitudes", "air", "audio"].contains(&node.name.as_str()));
    nodes
        .iter_mut()
        .filter(|node| node.name == "distribution")
        .for_each(|node| {
            node.op = Op::Split(Split {
                start: 1,
                channels: 3,
            });
        });
    nodes.push(node(
        "audio",
        &["harmonics"],
        Op::Affine(Affine {
            scale: 0.1,
            offset: 0.0,
        }),
    ));
    Arc::new(model(Kind::Instrument, methods, seed))
}

/// Returns three small instruments with different weights.
fn instruments(source: ControlSource) -> [Arc<dyn ModelFactory>; 3] {
    [1, 2, 3].map(|seed| -> Arc<dyn ModelFactory> {
        let options = PipelineOptions {
            source,
            voices: Some(5),
            seed,
            ..PipelineOptions::default()
        };
        Arc::new(PlayableModel::new(smooth_instrument(seed), options).expect("an instrument"))
    })
}

/// Returns the commands of a block: a held chord, and notes above it that come and go.
fn chord(block: usize) -> Vec<BlockCommand> {
    let mut commands = Vec::new();
    if block == 0 {
        commands.extend([48, 55, 60].map(|held| key(7, held, true)));
    }
    if block.is_multiple_of(23) {
        let note = |count: usize| 64 + (count * 5 % 12) as u8;
        if block > 0 {
            commands.push(key(100, note(block / 23 - 1), false));
        }
        commands.push(key(101, note(block / 23), true));
    }
    commands
}

/// Returns the resident memory of the process in MB; 0 if unknown.
fn resident_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok())
        .map_or(0.0, |kb: f64| kb / 1024.0)
}

#[test]
fn ten_swaps_a_second_for_a_minute() {
    const SECOND: usize = SAMPLE_RATE as usize / BLOCK;
    const SWAPS: usize = 600;
    let _exclusive = exclusive();
    let instruments = instruments(ControlSource::Notes);
    for driver in [Driver::Inline, WORKER] {
        let live = Arc::new(AtomicUsize::new(0));
        let factory = |index: usize| CountedModel::new(instruments[index % 3].clone(), &live);
        // Reference: the instruments without swaps.
        let (mut own_step, mut own_peak) = (0.0_f32, 0.0_f32);
        for index in 0..3 {
            let mut host = Host::new(factory(index), Driver::Offline, BLOCK);
            (0..10 * SECOND).for_each(|block| host.process(&chord(block)));
            (own_step, own_peak) = (
                own_step.max(steepest(&host.output)),
                own_peak.max(peak(&host.output)),
            );
        }
        wait_until("all are gone", || live.load(Ordering::Relaxed) == 0);
        // Two instruments in different phases may differ by twice the peak.
        let bound = 1.1 * own_step + 2.0 * own_peak * FRAC_PI_2 / CROSS_FADE as f32;
        let mut host = Host::new(factory(0), driver, BLOCK);
        let (mut block, mut swaps, mut most, mut step, mut early_mb) = (0, 0, 0, 0.0_f32, 0.0);
        // Ten swaps a second of audio, or fewer on a slow machine: the host plays until all are
        // done.
        while swaps < SWAPS || block < 60 * SECOND {
            if block.is_multiple_of(SECOND / 10)
                && host.controller.status() != LoadStatus::Loading
                && swaps < SWAPS
            {
                assert_eq!(host.controller.status(), LoadStatus::Ready);
                swaps += 1;
                load(&host.controller, factory(swaps));
            }
            // Keep only the last sample of the previous block.
            let now = host.output.len();
            host.process(&chord(block));
            if now > 0 {
                let from = now - 1;
                step = host.output[from..]
                    .windows(2)
                    .fold(step, |most, pair| most.max((pair[1] - pair[0]).abs()));
                assert!(
                    block < SECOND / 2 || peak(&host.output[from..]) > 1e-3 * own_peak,
                    "{driver:?}: a hole"
                );
                assert!(peak(&host.output[from..]) <= 1.5 * own_peak);
                host.output.drain(..from);
            }
            host.pause();
            block += 1;
            most = most.max(live.load(Ordering::Relaxed));
            if block == 10 * SECOND {
                early_mb = resident_mb();
            }
        }
        let grown_mb = resident_mb() - early_mb;
        host.play_until_swapped();
        let health = host.health();
        assert_eq!(
            (health.dropouts, health.invalid_blocks, health.commands_lost),
            (0, 0, 0),
            "{driver:?}"
        );
        assert!(
            step <= bound,
            "{driver:?}: a step of {step}, the bound is {bound}"
        );
        assert!(most <= 8, "{driver:?}: {most} models at once");
        assert!(
            grown_mb < 4.0,
            "{driver:?}: {grown_mb} MB more after a minute"
        );
        wait_until("one is left", || live.load(Ordering::Relaxed) == 1);
        drop(host);
        wait_until("none is left", || live.load(Ordering::Relaxed) == 0);
    }
}

#[test]
fn a_cross_fade_is_smooth() {
    let _exclusive = exclusive();
    for driver in [Driver::Inline, WORKER] {
        let mut host = Host::new(FakeModel::new(WAVES[0]), driver, BLOCK);
        for swap in 1..40 {
            let wave = WAVES[swap % 3];
            host.swap(FakeModel::new(wave));
            assert!(plays(&host, wave, latency(driver), BLOCK));
        }
        let own = WAVES.iter().map(|wave| wave.steepest()).fold(0.0, f32::max);
        let bound = own + (0.8 + 0.7) * FRAC_PI_2 / CROSS_FADE as f32 + 1e-6;
        assert!(
            steepest(&host.output) <= bound,
            "{} > {bound}",
            steepest(&host.output)
        );
        assert!(peak(&host.output) <= 0.8);
        assert_eq!(host.health().dropouts, 0);
    }
}

#[test]
fn effects_and_codecs_take_over_with_their_state() {
    let _exclusive = exclusive();
    let through = |model: Model| {
        PlayableModel::new(Arc::new(model), PipelineOptions::default()).expect("it plays")
    };
    let input = Some(Wave {
        frequency: 0.0113,
        peak: 0.4,
    });
    let alone = |playable_model: PlayableModel, blocks: usize| {
        let mut host = Host::new(playable_model, Driver::Offline, BLOCK);
        host.input = input;
        host.play(blocks);
        let latency = host.session.latency_samples();
        (host.output, latency)
    };
    for driver in [Driver::Inline, WORKER] {
        let mut host = Host::new(through(untrained_codec(1)), driver, BLOCK);
        host.input = input;
        host.play(100);
        // It has processed past input and received control changes before it takes over.
        host.process(&[turn("latent1.scale", 0.5)]);
        host.swap(through(untrained_effect(1)));
        assert_eq!(
            host.session.latency_samples(),
            EFFECT_BLOCK - 1 + latency(driver)
        );
        host.play(20);
        let (expected, own) = alone(through(untrained_effect(1)), host.output.len() / BLOCK);
        let late = host.session.latency_samples() - own;
        let from = host.output.len() - 10 * BLOCK;
        assert!(
            host.output[from..] == expected[from - late..expected.len() - late],
            "{driver:?}"
        );
        // Back, by way of an instrument without notes.
        host.swap(
            PlayableModel::new(smooth_instrument(1), PipelineOptions::default())
                .expect("an instrument"),
        );
        host.play(20);
        assert!(
            host.output[host.output.len() - BLOCK..]
                .iter()
                .all(|sample| *sample == 0.0),
            "{driver:?}"
        );
        host.swap(through(untrained_codec(1)));
        host.play(20);
        let (_, own) = alone(through(untrained_codec(1)), 1);
        assert_eq!(host.session.latency_samples(), own + latency(driver));
        // Its frames may start elsewhere, but its level is the same.
        let level = |sound: &[f32]| sound.iter().map(|x| x * x).sum::<f32>();
        let (before, after) = (
            &host.output[50 * BLOCK..60 * BLOCK],
            &host.output[host.output.len() - 10 * BLOCK..],
        );
        assert!(
            (level(after) / level(before) - 1.0).abs() < 0.1,
            "{driver:?}"
        );
        let health = host.health();
        assert_eq!(
            (health.dropouts, health.invalid_blocks, health.commands_lost),
            (0, 0, 0),
            "{driver:?}"
        );
    }
}

/// Returns the correlation of two signals, −1 to 1, and the level of the first relative to the
/// second in dB.
fn compare(a: &[f32], b: &[f32]) -> (f64, f64) {
    let product = |a: &[f32], b: &[f32]| {
        a.iter()
            .zip(b)
            .map(|(a, b)| f64::from(*a) * f64::from(*b))
            .sum::<f64>()
    };
    let (aa, bb) = (product(a, a), product(b, b));
    (product(a, b) / (aa * bb).sqrt(), 10.0 * (aa / bb).log10())
}

/// As [`compare`], for spectra: phases of oscillators from before the warm-up are not restored.
fn compare_spectra(a: &[f32], b: &[f32]) -> (f64, f64) {
    // Equal power spectra have equal autocorrelations.
    let autocorrelation = |sound: &[f32]| -> Vec<f32> {
        let length = sound.len() - 1_000;
        let at = |lag: usize| {
            sound[..length]
                .iter()
                .zip(&sound[lag..])
                .map(|(a, b)| f64::from(*a) * f64::from(*b))
        };
        (0..1_000).map(|lag| at(lag).sum::<f64>() as f32).collect()
    };
    let (a, b) = (autocorrelation(a), autocorrelation(b));
    (compare(&a, &b).0, 10.0 * f64::from(a[0] / b[0]).log10())
}

#[test]
fn instruments_take_over_with_their_state() {
    let _exclusive = exclusive();
    for driver in [Driver::Inline, WORKER] {
        for source in [ControlSource::Notes, ControlSource::AudioInput] {
            let [first, second, _] = instruments(source);
            let of = |factory: &Arc<dyn ModelFactory>| {
                CountedModel::new(factory.clone(), &Arc::default())
            };
            let input = (source == ControlSource::AudioInput).then_some(Wave {
                frequency: 0.0071,
                peak: 0.3,
            });
            // Notes within the warm-up, and long before it.
            for before in [20, 300] {
                let mut reference = Host::new(of(&second), driver, BLOCK);
                let mut host = Host::new(of(&first), driver, BLOCK);
                (reference.input, host.input) = (input, input);
                // A single note: in a chord, phases matter where harmonics coincide.
                host.process(&[key(7, 57, true)]);
                host.play(before);
                host.swap(of(&second));
                let from = host.output.len();
                host.play(100);
                reference.process(&[key(7, 57, true)]);
                reference.play(host.output.len() / BLOCK - 1);
                let (output, expected) = (&host.output[from..], &reference.output[from..]);
                let compare = if before < 50 {
                    compare
                } else {
                    compare_spectra
                };
                let (likeness, level) = compare(output, expected);
                assert!(
                    likeness > 0.99,
                    "{driver:?}, {source:?} after {before} blocks: {likeness}"
                );
                assert!(
                    level.abs() < 1.0,
                    "{driver:?}, {source:?} after {before} blocks: {level} dB"
                );
            }
        }
    }
}

/// Returns a model that records its commands.
fn recording_model(wave: Wave) -> (FakeModel, Arc<Mutex<Vec<TimedCommand>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let kept = told.clone();
    let double = FakeModel::new(wave).on_command(move |command| {
        kept.lock().expect("nobody panics here").push(*command);
        true
    });
    (double, told)
}

/// Returns the last value of each control.
fn last_values(told: &Mutex<Vec<TimedCommand>>) -> Vec<(ControlId, f32)> {
    let mut knobs: Vec<(ControlId, f32)> = Vec::new();
    for command in told.lock().expect("nobody panics here").iter() {
        if let Action::Control { id, value } = command.action {
            knobs.retain(|(known, _)| *known != id);
            knobs.push((id, value));
        }
    }
    knobs.sort_by_key(|(id, _)| *id);
    knobs
}

fn sorted(knobs: &[(&str, f32)]) -> Vec<(ControlId, f32)> {
    let mut knobs: Vec<_> = knobs
        .iter()
        .map(|&(name, value)| (ControlId::new(name), value))
        .collect();
    knobs.sort_by_key(|(id, _)| *id);
    knobs
}

#[test]
fn control_values_stay_with_the_model() {
    let _exclusive = exclusive();
    let forget = |told: &Mutex<Vec<TimedCommand>>| told.lock().expect("nobody panics here").clear();
    for (driver, other_way) in [
        (Driver::Inline, WORKER),
        (WORKER, Driver::Inline),
        (WORKER, Driver::Offline),
    ] {
        let (first, told) = recording_model(WAVES[0]);
        let mut host = Host::new(first, driver, BLOCK);
        host.process(&[turn("a", 1.0), turn("b", 2.0)]);
        host.process(&[turn("b", 3.0)]);
        host.play(3);
        forget(&told);
        host.controller.set_driver(other_way);
        host.play_until_swapped();
        assert_eq!(
            last_values(&told),
            sorted(&[("a", 1.0), ("b", 3.0)]),
            "{driver:?} to {other_way:?}"
        );
        // Another model starts with the controls passed to `load`.
        let (second, told) = recording_model(WAVES[1]);
        host.controller.load(
            Box::new(move || Ok(Arc::new(second))),
            &[(ControlId::new("c"), 5.0), (ControlId::new("b"), 7.0)],
        );
        host.play_until("it is loaded", |host| {
            host.controller.status() != LoadStatus::Loading
        });
        // From now on, control changes apply to it, even before it plays.
        host.process(&[turn("d", 8.0)]);
        host.process(&[turn("b", 9.0)]);
        host.play_until_swapped();
        let now = sorted(&[("b", 9.0), ("c", 5.0), ("d", 8.0)]);
        assert_eq!(last_values(&told), now);
        forget(&told);
        host.controller.set_driver(driver);
        host.play_until_swapped();
        assert_eq!(last_values(&told), now);
        // A third one starts with its defaults.
        let (third, told) = recording_model(WAVES[2]);
        host.swap(third);
        assert_eq!(last_values(&told), []);
    }
}

#[test]
fn play_mode_and_glide_carry_over() {
    let _exclusive = exclusive();
    let [first, second, _] = instruments(ControlSource::Notes);
    let of = |factory: &Arc<dyn ModelFactory>| CountedModel::new(factory.clone(), &Arc::default());
    for settings in [
        &[("play_mode", 2.0), ("glide", 700.0)][..],
        &[("play_mode", 3.0), ("glide", 0.0)],
        &[("voices", 1.0)],
    ] {
        let turns: Vec<BlockCommand> = settings
            .iter()
            .map(|&(name, value)| turn(name, value))
            .collect();
        let begin = [&turns[..], &[key(7, 57, true)]].concat();
        for another in [false, true] {
            // The same instrument, with or without a swap, holds one key, then another, and gets a
            // third note afterwards.
            let mut reference =
                Host::new(of(if another { &second } else { &first }), WORKER, BLOCK);
            let mut host = Host::new(
                of(&first),
                if another { WORKER } else { Driver::Inline },
                BLOCK,
            );
            host.process(&begin);
            host.play(5);
            host.process(&[key(0, 66, true)]);
            host.play(100);
            if another {
                let factory = of(&second);
                host.controller
                    .load(Box::new(move || Ok(Arc::new(factory))), &sorted(settings));
            } else {
                host.controller.set_driver(WORKER);
            }
            host.play_until_swapped();
            let held = host.output.len();
            host.play(50);
            let struck = host.output.len();
            host.process(&[key(0, 52, true)]);
            host.play(60);
            reference.process(&begin);
            reference.play(5);
            reference.process(&[key(0, 66, true)]);
            reference.play(struck / BLOCK - 7);
            reference.process(&[key(0, 52, true)]);
            reference.play(60);
            for part in [held..struck, struck..host.output.len()] {
                let (likeness, level) =
                    compare_spectra(&host.output[part.clone()], &reference.output[part]);
                // The phases of voices and the moment of the swap differ from run to run.
                assert!(
                    likeness > 0.95 && level.abs() < 1.0,
                    "{settings:?}, {another}: {likeness}, {level} dB"
                );
            }
        }
    }
}

#[test]
fn a_model_built_while_the_host_is_stopped_gets_the_held_notes() {
    let _exclusive = exclusive();
    for driver in [Driver::Inline, WORKER] {
        let (first, told) = recording_model(WAVES[0]);
        let mut host = Host::new(first, driver, BLOCK);
        host.process(&[turn("a", 1.0), key(5, 60, true)]);
        host.play(3);
        told.lock().expect("nobody panics here").clear();
        host.controller.set_driver(Driver::Offline);
        // No audio callback while it is built.
        wait_until("it is made", || {
            host.controller.status() != LoadStatus::Loading
        });
        host.play_until("it takes over", |host| {
            host.health().driven == Driven::Offline
        });
        host.play(1);
        assert!(plays(&host, WAVES[0], 0, BLOCK));
        assert_eq!(last_values(&told), sorted(&[("a", 1.0)]), "{driver:?}");
        let told = told.lock().expect("nobody panics here");
        assert!(told.iter().any(|command| command.at == 5
            && matches!(command.action, Action::Play(EventKind::NoteOn { .. }))));
    }
}

#[test]
fn a_model_that_takes_over_gets_the_song_position() {
    let _exclusive = exclusive();
    for driver in [Driver::Inline, WORKER] {
        for playing in [true, false] {
            let mut host = Host::new(FakeModel::new(WAVES[0]), driver, BLOCK);
            host.play(3);
            let song = Transport {
                tempo: 90.0,
                position: 4.0,
                playing,
            };
            let since = host.now() + 11;
            host.process(&[BlockCommand {
                offset: 11,
                action: Action::Transport(song),
            }]);
            host.play(200);
            let (second, told) = recording_model(WAVES[1]);
            host.swap(second);
            let told = told.lock().expect("nobody panics here");
            let last = told.iter().rev().find_map(|command| match command.action {
                Action::Transport(song) => Some((command.at, song)),
                _ => None,
            });
            let (at, told) = last.expect("the song is told");
            assert_eq!((told.tempo, told.playing), (song.tempo, playing));
            let seconds = at.saturating_sub(since) as f64 / f64::from(SAMPLE_RATE);
            let moved = if playing { seconds * 1.5 } else { 0.0 };
            assert!(
                at >= since && (told.position - song.position - moved).abs() < 1e-9,
                "{told:?} at {at}"
            );
        }
    }
}

#[test]
fn a_failed_load_changes_nothing() {
    let _exclusive = exclusive();
    for driver in [Driver::Inline, WORKER] {
        let mut host = Host::new(FakeModel::new(WAVES[0]), driver, BLOCK);
        host.play(10);
        host.controller.load(
            Box::new(|| Err("the file is a poem".to_owned().into())),
            &[],
        );
        host.play_until("it fails", |host| {
            host.controller.status() != LoadStatus::Loading
        });
        assert_eq!(
            host.controller.status(),
            LoadStatus::Failed("the file is a poem".into())
        );
        host.play(20);
        let all = host.output.len() - latency(driver);
        assert!(plays(&host, WAVES[0], latency(driver), all));
        // The driver of the current model can still be changed.
        host.controller.set_driver(Driver::Offline);
        host.play_until_swapped();
        assert_eq!(
            (host.health().driven, host.controller.status()),
            (Driven::Offline, LoadStatus::Ready)
        );
        assert!(plays(&host, WAVES[0], 0, BLOCK));
    }
}

#[test]
fn the_last_of_several_loads_wins() {
    let _exclusive = exclusive();
    let gate = Arc::new(Gate::default());
    let mut host = Host::new(FakeModel::new(WAVES[0]), Driver::Inline, BLOCK);
    gate.close();
    let live = Arc::new(AtomicUsize::new(0));
    let reads = Arc::new(AtomicUsize::new(0));
    // The first one is slow.
    {
        let (gate, live) = (gate.clone(), live.clone());
        let slow = move || -> Result<Arc<dyn ModelFactory>, LoadError> {
            gate.pass();
            Ok(Arc::new(
                FakeModel::new(WAVES[1]).with_instance_count(&live),
            ))
        };
        host.controller.load(Box::new(slow), &[]);
    }
    gate.wait_for_waiter();
    for _ in 0..5 {
        let (reads, live) = (reads.clone(), live.clone());
        let skipped = move || -> Result<Arc<dyn ModelFactory>, LoadError> {
            reads.fetch_add(1, Ordering::Relaxed);
            Ok(Arc::new(
                FakeModel::new(WAVES[1]).with_instance_count(&live),
            ))
        };
        host.controller.load(Box::new(skipped), &[]);
    }
    host.controller.load(
        Box::new(|| Err("not this one either".to_owned().into())),
        &[],
    );
    load(
        &host.controller,
        FakeModel::new(WAVES[2]).with_instance_count(&live),
    );
    assert_eq!(host.controller.status(), LoadStatus::Loading);
    host.play(3);
    gate.open();
    host.play_until_swapped();
    assert!(plays(&host, WAVES[2], 0, BLOCK));
    assert_eq!(
        reads.load(Ordering::Relaxed),
        0,
        "what nobody waits for is not read"
    );
    wait_until("the others are gone", || live.load(Ordering::Relaxed) == 1);
}

/// Loads the second wave and runs `meanwhile` while it is loaded, or with `while_made` while it is
/// built.
fn load_slowly(host: &mut Host, while_made: bool, meanwhile: impl FnOnce(&mut Host)) {
    let gate = Arc::new(Gate::default());
    gate.close();
    let at_the_gate = gate.clone();
    let loads = move || -> Result<Arc<dyn ModelFactory>, LoadError> {
        if !while_made {
            at_the_gate.pass();
            return Ok(Arc::new(FakeModel::new(WAVES[1])));
        }
        // It is opened while it is built, and again when it plays.
        Ok(Arc::new(
            FakeModel::new(WAVES[1]).on_open(move |_| at_the_gate.pass()),
        ))
    };
    host.controller.load(Box::new(loads), &[]);
    // The loader queries the audio thread before it builds a model.
    host.play_until("it is being loaded", |_| gate.has_waiter());
    meanwhile(host);
    gate.open();
    host.play_until_swapped();
}

#[test]
fn changing_the_driver_keeps_a_pending_load() {
    let _exclusive = exclusive();
    for while_made in [false, true] {
        let mut host = Host::new(FakeModel::new(WAVES[0]), Driver::Inline, BLOCK);
        load_slowly(&mut host, while_made, |host| {
            host.controller.set_driver(WORKER)
        });
        assert!(plays(&host, WAVES[1], BLOCK, BLOCK), "made: {while_made}");
        assert_eq!(
            (host.health().driven, host.session.latency_samples()),
            (Driven::Worker, BLOCK)
        );
    }
}

#[test]
fn a_failed_load_keeps_a_pending_driver_change() {
    let _exclusive = exclusive();
    let gate = Arc::new(Gate::default());
    gate.close();
    let mut host = Host::new(FakeModel::new(WAVES[0]), Driver::Inline, BLOCK);
    let at_the_gate = gate.clone();
    let fails = move || -> Result<Arc<dyn ModelFactory>, LoadError> {
        at_the_gate.pass();
        Err("no such file".to_owned().into())
    };
    host.controller.load(Box::new(fails), &[]);
    host.play_until("it is being loaded", |_| gate.has_waiter());
    host.controller.set_driver(WORKER);
    gate.open();
    host.play_until("it fails", |host| {
        host.controller.status() == LoadStatus::Failed("no such file".into())
    });
    host.play_until("the other way takes over", |host| {
        host.health().driven == Driven::Worker
    });
    host.play(2);
    assert!(plays(&host, WAVES[0], BLOCK, BLOCK));
}

#[test]
fn reactivating_keeps_a_pending_load() {
    let _exclusive = exclusive();
    let setup = Setup {
        sample_rate: 44_100,
        max_block: BLOCK,
    };
    for while_made in [false, true] {
        for first in [true, false] {
            let mut host = Host::new(FakeModel::new(WAVES[0]), Driver::Inline, BLOCK);
            if !first {
                // The session has no model yet.
                host.controller = SessionController::new();
                host.session = host.controller.activate(setup).expect("a sound setup");
            }
            host.output.clear();
            load_slowly(&mut host, while_made, |host| {
                host.session = host.controller.activate(setup).expect("a sound setup");
                host.output.clear();
            });
            assert!(
                plays(&host, WAVES[1], 0, BLOCK),
                "made: {while_made}, first: {first}"
            );
            assert_eq!(host.controller.status(), LoadStatus::Ready);
        }
    }
}

#[test]
fn a_model_survives_reactivation() {
    let _exclusive = exclusive();
    let (first, told) = recording_model(WAVES[0]);
    let controller = SessionController::new();
    assert_eq!(
        (controller.status(), controller.health()),
        (LoadStatus::Empty, None)
    );
    assert!(
        controller
            .activate(Setup {
                sample_rate: 999,
                max_block: 64
            })
            .is_err()
    );
    assert!(
        controller
            .activate(Setup {
                sample_rate: 48_000,
                max_block: 0
            })
            .is_err()
    );
    controller.load(
        Box::new(move || Ok(Arc::new(first))),
        &[(ControlId::new("a"), 4.0)],
    );
    wait_until("it is loaded", || controller.status() == LoadStatus::Ready);
    assert_eq!(controller.health(), None, "nobody plays yet");
    for (sample_rate, max_block) in [(48_000, 512), (44_100, 64), (192_000, 100_000)] {
        told.lock().expect("nobody panics here").clear();
        let mut session = controller
            .activate(Setup {
                sample_rate,
                max_block,
            })
            .expect("a sound setup");
        assert_eq!(controller.status(), LoadStatus::Ready);
        assert_eq!(last_values(&told), sorted(&[("a", 4.0)]));
        let mut sound = vec![f32::NAN; 20_000];
        session.process(&[], &[], &mut [&mut sound]);
        assert!(
            (0..)
                .zip(&sound)
                .all(|(number, sample)| *sample == WAVES[0].at(number))
        );
    }
}

#[test]
fn unloading_fades_to_silence() {
    let _exclusive = exclusive();
    for driver in [Driver::Inline, WORKER] {
        let live = Arc::new(AtomicUsize::new(0));
        let mut host = Host::new(
            FakeModel::new(WAVES[0]).with_instance_count(&live),
            driver,
            BLOCK,
        );
        host.play(10);
        host.controller.unload();
        host.play_until_swapped();
        assert!(
            host.output[host.output.len() - BLOCK..]
                .iter()
                .all(|sample| *sample == 0.0)
        );
        let bound = WAVES[0].steepest() + WAVES[0].peak * FRAC_PI_2 / CROSS_FADE as f32 + 1e-6;
        assert!(steepest(&host.output) <= bound);
        wait_until("it is gone", || live.load(Ordering::Relaxed) == 0);
        host.swap(FakeModel::new(WAVES[1]));
        assert!(plays(&host, WAVES[1], latency(driver), BLOCK));
    }
}

#[test]
fn latency_changes_when_the_new_model_has_taken_over() {
    let _exclusive = exclusive();
    const LATE: [usize; 2] = [37, 1_234];
    for driver in [Driver::Inline, WORKER] {
        let mut host = Host::new(FakeModel::new(WAVES[0]).with_latency(LATE[0]), driver, 96);
        let [old, new] = LATE.map(|late| late + if driver == WORKER { BLOCK } else { 0 });
        host.play(50);
        assert_eq!(host.session.latency_samples(), old);
        load(
            &host.controller,
            FakeModel::new(WAVES[1]).with_latency(LATE[1]),
        );
        host.play_until("it is loaded", |host| {
            host.controller.status() == LoadStatus::Ready
        });
        let mut blocks = 0;
        while host.session.latency_samples() == old {
            assert_eq!(host.health().latency_samples, old);
            host.play(1);
            blocks += 1;
            assert!(blocks < 1_000, "it never takes over");
        }
        assert_eq!(
            (
                host.session.latency_samples(),
                host.health().latency_samples
            ),
            (new, new)
        );
        // The last block still contained some of the old one.
        let end = host.output.len();
        let fading = &host.output[end - CROSS_FADE.min(end)..];
        assert!(
            (0..)
                .zip(fading)
                .any(|(n, sample)| *sample != WAVES[1].at((end - fading.len() + n - new) as u64))
        );
        host.play(20);
        assert!(plays(&host, WAVES[1], new, 20 * 96));
        assert_eq!(host.session.latency_samples(), new);
    }
}

#[test]
fn dropping_a_session_during_a_swap_leaks_nothing() {
    let _exclusive = exclusive();
    for driver in [Driver::Inline, WORKER] {
        for blocks in [0, 1, 2] {
            for keep_remote in [true, false] {
                let live = Arc::new(AtomicUsize::new(0));
                let mut host = Host::new(
                    FakeModel::new(WAVES[0]).with_instance_count(&live),
                    driver,
                    BLOCK,
                );
                host.play(10);
                load(
                    &host.controller,
                    FakeModel::new(WAVES[1]).with_instance_count(&live),
                );
                host.play_until("it is loaded", |host| {
                    host.controller.status() == LoadStatus::Ready
                });
                host.play(blocks);
                let Host {
                    controller,
                    session,
                    ..
                } = host;
                drop(session);
                let kept = keep_remote.then_some(controller);
                wait_until("all are gone", || live.load(Ordering::Relaxed) == 0);
                drop(kept);
            }
        }
    }
}

/// Performs a random operation of a controller.
fn random_operation(
    controller: &SessionController,
    random: &mut impl RngExt,
    live: &Arc<AtomicUsize>,
    instrument: &Arc<dyn ModelFactory>,
) -> Option<Session> {
    match random.random_range(0..12) {
        0..3 => {
            let double = FakeModel::new(WAVES[random.random_range(0..3)]).with_instance_count(live);
            let double = if random.random() {
                double.with_name("shared")
            } else {
                double
            };
            load(controller, double.with_latency(random.random_range(0..100)));
        }
        3 => load(controller, CountedModel::new(instrument.clone(), live)),
        4 => {
            controller.load(
                Box::new(|| Err("no such file".to_owned().into())),
                &[(ControlId::new("a"), 1.0)],
            );
        }
        5 => match random.random_range(0..3) {
            0 => {
                controller.load(Box::new(|| panic!("{INJECTED_PANIC}")), &[]);
            }
            1 => load(
                controller,
                FakeModel::new(WAVES[0])
                    .with_instance_count(live)
                    .on_open(|_| panic!("{INJECTED_PANIC}")),
            ),
            _ => load(
                controller,
                FakeModel::new(WAVES[0])
                    .with_instance_count(live)
                    .on_output(|_, _| panic!("{INJECTED_PANIC}")),
            ),
        },
        6 => controller.unload(),
        7 | 8 => {
            let drivers = [
                Driver::Inline,
                WORKER,
                Driver::Worker { latency: None },
                Driver::Auto,
                Driver::Offline,
            ];
            controller.set_driver(drivers[random.random_range(0..drivers.len())]);
        }
        9 => controller.set_non_realtime(random.random()),
        10 => {
            let sample_rate = [44_100, 48_000, 96_000][random.random_range(0..3)];
            let max_block = random.random_range(1..1_000);
            return controller
                .activate(Setup {
                    sample_rate,
                    max_block,
                })
                .ok();
        }
        _ => {
            let _ = controller.status();
            let _ = controller.health();
        }
    }
    None
}

#[test]
fn concurrent_controllers_never_deadlock() {
    const ROUNDS: usize = 400;
    let _exclusive = exclusive();
    let (finished, outcome) = sync_channel(1);
    let work = move || {
        let controller = SessionController::new();
        let live = Arc::new(AtomicUsize::new(0));
        let [instrument, ..] = instruments(ControlSource::Notes);
        let (sessions, arriving) = channel::<Session>();
        let over = Arc::new(AtomicBool::new(false));
        let audio = {
            let over = over.clone();
            std::thread::spawn(move || {
                let mut random = seeded_rng(1);
                let mut playing: Vec<Session> = Vec::new();
                while !over.load(Ordering::Relaxed) {
                    playing.extend(arriving.try_iter());
                    // The previous session may be processed once more, as hosts do.
                    let old = playing.len().saturating_sub(2);
                    playing.drain(..old);
                    for session in &mut playing {
                        let mut sound = vec![f32::NAN; random.random_range(0..1_500)];
                        let commands = [
                            key(0, random.random_range(40..80), random.random()),
                            turn("brightness", 3.0),
                        ];
                        session.process(&commands, &[], &mut [&mut sound]);
                        assert!(sound.iter().all(|sample| sample.abs() <= LOUDEST));
                        if random.random_range(0..50) == 0 {
                            session.reset();
                        }
                    }
                    std::thread::sleep(Duration::from_micros(300));
                }
            })
        };
        let meddlers: Vec<_> = (0..3)
            .map(|seed| {
                let (controller, live, instrument, sessions) = (
                    controller.clone(),
                    live.clone(),
                    instrument.clone(),
                    sessions.clone(),
                );
                std::thread::spawn(move || {
                    let mut random = seeded_rng(seed);
                    for _ in 0..ROUNDS {
                        if let Some(session) =
                            random_operation(&controller, &mut random, &live, &instrument)
                        {
                            let _ = sessions.send(session);
                        }
                        std::thread::sleep(Duration::from_micros(random.random_range(0..5_000)));
                    }
                })
            })
            .collect();
        meddlers
            .into_iter()
            .for_each(|meddler| meddler.join().expect("nobody panics"));
        wait_until("all is loaded", || {
            controller.status() != LoadStatus::Loading
        });
        over.store(true, Ordering::Relaxed);
        audio.join().expect("the audio thread does not panic");
        // Everything still works.
        controller.set_driver(WORKER);
        controller.set_non_realtime(true);
        load(
            &controller,
            FakeModel::new(WAVES[2]).with_instance_count(&live),
        );
        wait_until("all is loaded", || controller.status() == LoadStatus::Ready);
        let session = controller
            .activate(Setup {
                sample_rate: SAMPLE_RATE,
                max_block: BLOCK,
            })
            .expect("a sound setup");
        let mut host = Host::new(FakeModel::new(WAVES[0]), Driver::Inline, BLOCK);
        (host.session, host.controller) = (session, controller);
        host.play(10);
        assert!(plays(&host, WAVES[2], BLOCK, 9 * BLOCK));
        wait_until("the others are gone", || live.load(Ordering::Relaxed) == 1);
        drop(host);
        wait_until("none is left", || live.load(Ordering::Relaxed) == 0);
        let _ = finished.send(());
    };
    let worker = std::thread::spawn(work);
    let in_time = outcome.recv_timeout(Duration::from_secs(150));
    assert!(
        !matches!(in_time, Err(std::sync::mpsc::RecvTimeoutError::Timeout)),
        "somebody hangs"
    );
    worker.join().expect("nothing broke");
}
