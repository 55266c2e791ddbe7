//! Faults of models and hosts cause no panic, no step and no invalid sample, and every dropout is
//! counted.

use std::f32::consts::FRAC_PI_2;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ondes_engine::instrument::{EventKind, NoteExpression, controller};
use ondes_engine::model::{Activation, Control, Curve, Kind, Method, Model, Op, Tensor};
use ondes_engine::ops::{Affine, Conv1d, ConvTranspose1d};
use ondes_engine::pipeline::{
    Action, ControlId, ControlSource, PERFORMANCE_CONTROLS, PipelineOptions, SessionStart,
    Transport,
};
use ondes_engine::realtime::{
    BlockCommand, Driven, Driver, InvalidOutput, LoadStatus, PlayableModel, Session,
    SessionController, Setup,
};
use ondes_tests::audio_models::method;
use ondes_tests::fake_model::{
    FakeModel, Gate, Host, INJECTED_PANIC, LOUDEST, Wave, load, peak, steepest, wait_until,
};
use ondes_tests::{
    HOP, SAMPLE_RATE, header, node, port, random_splits, random_weights, seeded_rng,
    untrained_instrument,
};
use rand::RngExt;

use crate::exclusive;

/// 5 ms, the step of the worker, so that its steps do not depend on when it wakes.
const BLOCK: usize = 240;
/// Latency of the worker.
const DELAY: usize = 2 * BLOCK;
const WORKER: Driver = Driver::Worker {
    latency: Some(DELAY),
};
/// Blocks for which a model must be in time again before it fades in: 20 ms.
const PROBATION: usize = 4;
const WAVE: Wave = Wave {
    frequency: 0.0041,
    peak: 0.8,
};
const OTHER: Wave = Wave {
    frequency: 0.0067,
    peak: 0.5,
};

/// Returns the samples of an undisturbed wave.
fn undisturbed(wave: Wave, latency: usize, samples: usize) -> Vec<f32> {
    let late = (0..samples as u64).map(|number| number.checked_sub(latency as u64));
    late.map(|number| number.map_or(0.0, |number| wave.at(number)))
        .collect()
}

/// Asserts that the output is no louder or steeper than a wave with fades.
fn assert_smooth(heard: &[f32], wave: Wave) {
    assert!(peak(heard) <= wave.peak);
    let bound = wave.steepest() + wave.peak * FRAC_PI_2 / BLOCK as f32 + 1e-6;
    assert!(
        steepest(heard) <= bound,
        "a step of {}, the bound is {bound}",
        steepest(heard)
    );
}

/// Asserts that `heard` is the wave, except for a gap from block `from` to block `to` with a fade
/// of one block on either side.
fn assert_gap(heard: &[f32], wave: Wave, latency: usize, from: usize, to: usize) {
    let expected = undisturbed(wave, latency, heard.len());
    assert_smooth(heard, wave);
    let (fallen, risen) = ((from + 1) * BLOCK - 1, (to + 1) * BLOCK - 1);
    assert!(
        heard[..from * BLOCK] == expected[..from * BLOCK],
        "disturbed before the gap"
    );
    assert!(
        heard[fallen..to * BLOCK]
            .iter()
            .all(|sample| *sample == 0.0),
        "output in the gap"
    );
    assert!(
        heard[risen..] == expected[risen..],
        "disturbed after the gap, or later than before"
    );
}

/// Returns a model that blocks from sample `at` on while the gate is closed.
fn stalling(gate: &Arc<Gate>, at: &Arc<AtomicU64>) -> FakeModel {
    let (gate, at) = (gate.clone(), at.clone());
    FakeModel::new(WAVE).on_output(move |from, _| {
        if from >= at.load(Ordering::Relaxed) {
            gate.pass();
        }
    })
}

#[test]
fn a_stalled_worker_causes_only_a_gap() {
    let _exclusive = exclusive();
    // The longest stall exceeds the worker's history and its queue.
    for blocks in [1, 2, 5, 37, 450] {
        let (gate, at) = (
            Arc::new(Gate::default()),
            Arc::new(AtomicU64::new(u64::MAX)),
        );
        let mut host = Host::new(stalling(&gate, &at), WORKER, BLOCK);
        assert_eq!(host.session.latency_samples(), DELAY);
        host.play(40);
        for round in 1..=2 {
            // Everything queued is played, so the next two blocks are in time.
            at.store(host.now(), Ordering::Relaxed);
            gate.close();
            host.play(2);
            gate.wait_for_waiter();
            host.controller.set_non_realtime(false);
            host.play(blocks);
            assert_eq!(host.health().dropouts, round * blocks as u64);
            assert!(host.health().queued_samples >= (blocks * BLOCK) as u64);
            host.controller.set_non_realtime(true);
            gate.open();
            host.play(PROBATION + 20);
            let health = host.health();
            assert_eq!(
                (health.dropouts, health.invalid_blocks, health.driven),
                (round * blocks as u64, 0, Driven::Worker)
            );
            assert_eq!(
                (health.latency_samples, host.session.latency_samples()),
                (DELAY, DELAY)
            );
            let end = host.output.len() / BLOCK;
            let (from, to) = (end - PROBATION - 20 - blocks, end - 20);
            if round == 1 {
                assert_gap(&host.output, WAVE, DELAY, from, to);
            } else {
                assert_smooth(&host.output, WAVE);
                let risen = (to + 1) * BLOCK - 1;
                assert!(
                    host.output[risen..] == undisturbed(WAVE, DELAY, host.output.len())[risen..]
                );
            }
        }
    }
}

#[test]
fn a_model_that_starts_late_fades_in() {
    let _exclusive = exclusive();
    for blocks in [1, 3, 50] {
        let (gate, at) = (Arc::new(Gate::default()), Arc::new(AtomicU64::new(0)));
        gate.close();
        let mut host = Host::new(stalling(&gate, &at), WORKER, BLOCK);
        host.controller.set_non_realtime(false);
        host.play(DELAY / BLOCK + blocks);
        gate.wait_for_waiter();
        // It does not count as a dropout before its first block.
        assert_eq!(host.health().dropouts, 0);
        let begun = host.output.len();
        host.controller.set_non_realtime(true);
        gate.open();
        host.play(10);
        assert_eq!(host.health().dropouts, 0);
        assert_smooth(&host.output, WAVE);
        assert!(host.output[..begun].iter().all(|sample| *sample == 0.0));
        let expected = undisturbed(WAVE, DELAY, host.output.len());
        assert!(host.output[begun + BLOCK - 1..] == expected[begun + BLOCK - 1..]);
    }
}

#[test]
fn the_available_part_of_a_block_is_played() {
    let _exclusive = exclusive();
    let (gate, at) = (
        Arc::new(Gate::default()),
        Arc::new(AtomicU64::new(u64::MAX)),
    );
    let mut host = Host::new(stalling(&gate, &at), WORKER, 2 * BLOCK);
    host.play(20);
    // Two worker steps per block, of which one completes.
    at.store(host.now() + BLOCK as u64, Ordering::Relaxed);
    gate.close();
    host.play(1);
    gate.wait_for_waiter();
    let half = host.output.len();
    host.controller.set_non_realtime(false);
    host.play(3);
    assert_eq!(host.health().dropouts, 3);
    host.controller.set_non_realtime(true);
    gate.open();
    host.play(20);
    assert_eq!(host.health().dropouts, 3);
    assert_smooth(&host.output, WAVE);
    let expected = undisturbed(WAVE, DELAY, host.output.len());
    let (fallen, back) = (half + 2 * BLOCK - 1, half + 5 * 2 * BLOCK);
    assert!(host.output[..half + BLOCK] == expected[..half + BLOCK]);
    assert!(
        host.output[fallen..back]
            .iter()
            .all(|sample| *sample == 0.0)
    );
    assert!(host.output[back + BLOCK - 1..] == expected[back + BLOCK - 1..]);
}

#[test]
fn a_slow_model_moves_aside_and_delays_no_other() {
    const SLOW_CALLS: usize = 12;
    let _exclusive = exclusive();
    let (gate, calls) = (Arc::new(Gate::default()), Arc::new(AtomicUsize::new(0)));
    let slow = {
        let (gate, calls) = (gate.clone(), calls.clone());
        FakeModel::new(WAVE).on_output(move |_, out| {
            let begun = Instant::now();
            if calls.fetch_add(1, Ordering::Relaxed) < SLOW_CALLS {
                let ten_times =
                    Duration::from_secs_f64(10.0 * out.len() as f64 / f64::from(SAMPLE_RATE));
                while begun.elapsed() < ten_times {
                    std::hint::spin_loop();
                }
            } else {
                gate.pass();
            }
        })
    };
    gate.close();
    let mut slow = Host::new(slow, WORKER, BLOCK);
    let mut other = Host::new(FakeModel::new(OTHER), WORKER, BLOCK);
    slow.controller.set_non_realtime(false);
    for _ in 0..2 * SLOW_CALLS {
        slow.play(1);
        other.play(1);
    }
    wait_until("the slow model is put aside", || {
        slow.health().driven == Driven::SlowWorker
    });
    assert_eq!(other.health().driven, Driven::Worker);
    // Now it blocks completely. On the same thread, the other one would wait for ever.
    slow.play(1);
    gate.wait_for_waiter();
    other.play(200);
    assert!(other.output == undisturbed(OTHER, DELAY, other.output.len()));
    assert_eq!(other.health().dropouts, 0);
    // On its own thread it plays when it can.
    gate.open();
    slow.controller.set_non_realtime(true);
    slow.play(PROBATION + 10);
    let (heard, expected) = (&slow.output, undisturbed(WAVE, DELAY, slow.output.len()));
    assert_smooth(heard, WAVE);
    assert!(heard[heard.len() - 9 * BLOCK..] == expected[heard.len() - 9 * BLOCK..]);
    assert_eq!(slow.health().driven, Driven::SlowWorker);
}

/// Returns a model that outputs `bad` from sample `from` to `to`, and a record of its starts.
fn non_finite_model(bad: f32, from: u64, to: u64) -> (FakeModel, Arc<Mutex<Vec<SessionStart>>>) {
    let starts = Arc::new(Mutex::new(Vec::new()));
    let kept = starts.clone();
    let double = FakeModel::new(WAVE).with_start(SessionStart {
        at: 0,
        seed: 7,
        transpose: -12.0,
    });
    let double = double.on_open(move |start| kept.lock().expect("nobody panics here").push(*start));
    let double = double.on_output(move |first, out| {
        for (number, sample) in (first..).zip(out) {
            if (from..to).contains(&number) {
                *sample = bad;
            }
        }
    });
    (double, starts)
}

#[test]
fn non_finite_output_is_silenced() {
    let _exclusive = exclusive();
    for (driver, latency) in [(Driver::Inline, 0), (WORKER, DELAY)] {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for (samples, blocks) in [(1, 1), (BLOCK, 1), (BLOCK + 1, 2), (30 * BLOCK, 30)] {
                let from = 40 * BLOCK;
                let (double, starts) = non_finite_model(bad, from as u64, (from + samples) as u64);
                let mut host = Host::new(double, driver, BLOCK);
                host.play(120);
                let health = host.health();
                assert_eq!(
                    (health.dropouts, health.invalid_blocks),
                    (0, blocks as u64),
                    "{driver:?}, {samples} samples of {bad}"
                );
                assert_eq!(host.controller.status(), LoadStatus::Ready);
                let first = 40 + latency / BLOCK;
                assert_gap(
                    &host.output,
                    WAVE,
                    latency,
                    first,
                    first + blocks + PROBATION,
                );
                // The model restarts each time with the same seed and transposition.
                let starts = starts.lock().expect("nobody panics here");
                let again: Vec<_> = starts.iter().filter(|start| start.at > 0).collect();
                assert_eq!(again.len(), blocks);
                for start in again {
                    assert_eq!((start.seed, start.transpose), (7, -12.0), "{driver:?}");
                }
            }
        }
        let (double, _) = non_finite_model(f32::NAN, 0, u64::MAX);
        let mut host = Host::new(double, driver, BLOCK);
        host.play(100);
        assert!(host.output.iter().all(|sample| *sample == 0.0));
        let health = host.health();
        assert_eq!(health.invalid_blocks, (100 - latency / BLOCK) as u64);
        let (first_sample, samples) = (latency as u64, (100 * BLOCK - latency) as u64);
        assert_eq!(
            health.invalid_output,
            Some(InvalidOutput {
                first_sample,
                samples
            })
        );
        let warning = host.controller.warning();
        assert!(
            warning.is_some_and(|warning| warning.contains("invalid numbers")),
            "{driver:?}"
        );
        host.swap(FakeModel::new(OTHER));
        let fresh = host.output.len();
        host.play(10);
        assert!(host.output[fresh..] == undisturbed(OTHER, latency, host.output.len())[fresh..]);
        assert_eq!(host.controller.warning(), None);
    }
}

#[test]
fn runaway_output_is_limited() {
    let _exclusive = exclusive();
    for driver in [Driver::Inline, WORKER] {
        let double = FakeModel::new(Wave { peak: 1e30, ..WAVE });
        let mut host = Host::new(double, driver, BLOCK);
        host.play(20);
        assert!(peak(&host.output) == LOUDEST);
        assert_eq!(host.health().invalid_blocks, 0);
    }
}

/// Place at which a model panics.
#[derive(Clone, Copy, Debug, PartialEq)]
enum PanicSite {
    Sound,
    Command,
    Open,
}

/// Returns a model that panics at a site while `broken` is set.
fn panicking_model(site: PanicSite, broken: &Arc<AtomicBool>) -> FakeModel {
    let check = |here: PanicSite| {
        let broken = broken.clone();
        move || {
            assert!(
                here != site || !broken.load(Ordering::Relaxed),
                "{INJECTED_PANIC}"
            )
        }
    };
    let (sound, command, open) = (
        check(PanicSite::Sound),
        check(PanicSite::Command),
        check(PanicSite::Open),
    );
    FakeModel::new(WAVE)
        .on_output(move |_, _| sound())
        .on_command(move |_| {
            command();
            true
        })
        .on_open(move |_| open())
}

fn turn() -> BlockCommand {
    BlockCommand {
        offset: 3,
        action: Action::Control {
            id: ControlId::new("knob"),
            value: 1.0,
        },
    }
}

#[test]
fn a_panicking_model_affects_no_other() {
    let _exclusive = exclusive();
    for driver in [Driver::Inline, WORKER] {
        for site in [PanicSite::Sound, PanicSite::Command] {
            let broken = Arc::new(AtomicBool::new(false));
            let mut host = Host::new(panicking_model(site, &broken), driver, BLOCK);
            let mut other = Host::new(FakeModel::new(OTHER), WORKER, BLOCK);
            host.play(40);
            other.play(40);
            broken.store(true, Ordering::Relaxed);
            host.process(&[turn()]);
            other.play(1);
            // The session learns of it when the worker has run.
            host.play_until("the host hears of it", |host| {
                matches!(host.controller.status(), LoadStatus::Failed(_))
            });
            let fallen = host.output.len();
            host.play(10);
            other.play(10);
            let LoadStatus::Failed(reason) = host.controller.status() else {
                panic!("{driver:?}: {:?}", host.controller.status())
            };
            assert!(
                reason.starts_with(&format!("the model failed: {INJECTED_PANIC}")),
                "{reason}"
            );
            assert!(
                host.output[fallen..][BLOCK..]
                    .iter()
                    .all(|sample| *sample == 0.0),
                "{driver:?}, {site:?}"
            );
            assert_smooth(&host.output, WAVE);
            // Every function of it is affected, until a model is loaded.
            host.process(&[turn()]);
            host.session.reset();
            host.play(3);
            broken.store(false, Ordering::Relaxed);
            host.swap(FakeModel::new(OTHER));
            let fresh = host.output.len();
            host.play(10);
            other.play(10);
            let expected = undisturbed(OTHER, host.session.latency_samples(), host.output.len());
            assert!(
                host.output[fresh..] == expected[fresh..],
                "{driver:?}, {site:?}"
            );
            assert_eq!(host.controller.status(), LoadStatus::Ready);
            assert!(other.output == undisturbed(OTHER, DELAY, other.output.len()));
            assert_eq!(
                (other.controller.status(), other.health().dropouts),
                (LoadStatus::Ready, 0)
            );
        }
    }
}

#[test]
fn a_model_that_fails_to_start_is_refused() {
    let _exclusive = exclusive();
    for driver in [Driver::Inline, WORKER] {
        let latency = if driver == WORKER { DELAY } else { 0 };
        let mut host = Host::new(FakeModel::new(OTHER), driver, BLOCK);
        host.play(40);
        let broken = Arc::new(AtomicBool::new(true));
        load(&host.controller, panicking_model(PanicSite::Open, &broken));
        host.play_until("it is refused", |host| {
            matches!(host.controller.status(), LoadStatus::Failed(_))
        });
        host.play(40);
        // The previous one plays on.
        assert!(
            host.output == undisturbed(OTHER, latency, host.output.len()),
            "{driver:?}"
        );
        broken.store(false, Ordering::Relaxed);
        host.swap(FakeModel::new(WAVE));
        let fresh = host.output.len();
        host.play(10);
        assert!(
            host.output[fresh..] == undisturbed(WAVE, latency, host.output.len())[fresh..],
            "{driver:?}"
        );
    }
}

#[test]
fn a_model_that_panics_while_it_is_built_is_refused() {
    let _exclusive = exclusive();
    for driver in [Driver::Inline, WORKER, Driver::Auto] {
        let broken = Arc::new(AtomicBool::new(true));
        let model = || {
            let broken = broken.clone();
            FakeModel::new(WAVE)
                .on_build(move || assert!(!broken.load(Ordering::Relaxed), "{INJECTED_PANIC}"))
        };
        let refused = |status| matches!(status, LoadStatus::Failed(reason) if reason.contains(INJECTED_PANIC));
        // By the host's thread, which activates it.
        let controller = SessionController::new();
        controller.set_driver(driver);
        load(&controller, model());
        wait_until("it is known", || controller.status() != LoadStatus::Loading);
        let mut session = controller
            .activate(Setup {
                sample_rate: SAMPLE_RATE,
                max_block: BLOCK,
            })
            .expect("valid");
        assert!(
            refused(controller.status()),
            "{driver:?}: {:?}",
            controller.status()
        );
        let mut block = [1.0; BLOCK];
        session.process(&[], &[], &mut [&mut block]);
        assert_eq!(block, [0.0; BLOCK]);
        // By the loader, while another model plays.
        let mut host = Host::new(FakeModel::new(OTHER), Driver::Inline, BLOCK);
        host.controller.set_driver(driver);
        load(&host.controller, model());
        host.play_until("it is refused", |host| refused(host.controller.status()));
        broken.store(false, Ordering::Relaxed);
        host.swap(model());
        assert_eq!(host.controller.status(), LoadStatus::Ready);
    }
}

#[test]
fn a_model_that_panics_on_restart_stays_silent() {
    let _exclusive = exclusive();
    for (driver, latency) in [(Driver::Inline, 0), (WORKER, DELAY)] {
        let at = 40 * BLOCK as u64;
        let double =
            FakeModel::new(WAVE).on_open(move |start| assert!(start.at < at, "{INJECTED_PANIC}"));
        let double = double.on_output(move |from, out| {
            if from >= at {
                out.fill(f32::NAN);
            }
        });
        let mut host = Host::new(double, driver, BLOCK);
        host.play(60);
        assert!(
            matches!(host.controller.status(), LoadStatus::Failed(_)),
            "{driver:?}: {:?}",
            host.controller.status()
        );
        assert_smooth(&host.output, WAVE);
        let silent = 40 * BLOCK + latency + BLOCK;
        assert!(host.output[silent..].iter().all(|sample| *sample == 0.0));
    }
}

#[test]
fn a_panicked_shared_model_is_not_given_to_new_sessions() {
    let _exclusive = exclusive();
    let broken = Arc::new(AtomicBool::new(false));
    let mut host = Host::new(
        panicking_model(PanicSite::Sound, &broken).with_name("shared"),
        WORKER,
        BLOCK,
    );
    host.play(10);
    broken.store(true, Ordering::Relaxed);
    host.play_until("the host hears of it", |host| {
        matches!(host.controller.status(), LoadStatus::Failed(_))
    });
    broken.store(false, Ordering::Relaxed);
    // The name makes it the same model; the other wave shows that the panicked instance was
    // replaced.
    host.swap(FakeModel::new(OTHER).with_name("shared"));
    let fresh = host.output.len();
    host.play(10);
    assert!(host.output[fresh..] == undisturbed(OTHER, DELAY, host.output.len())[fresh..]);
}

#[test]
fn a_panic_while_loading_is_reported() {
    let _exclusive = exclusive();
    let mut host = Host::new(FakeModel::new(OTHER), Driver::Inline, BLOCK);
    host.controller
        .load(Box::new(|| panic!("{INJECTED_PANIC}")), &[]);
    host.play_until("the host hears of it", |host| {
        matches!(host.controller.status(), LoadStatus::Failed(_))
    });
    host.swap(FakeModel::new(WAVE));
    // A queue larger than any memory.
    host.controller.set_driver(Driver::Worker {
        latency: Some(usize::MAX / 2),
    });
    host.play_until("the host hears of it", |host| {
        host.controller.status() != LoadStatus::Loading
    });
    assert!(matches!(host.controller.status(), LoadStatus::Failed(_)));
    let fresh = host.output.len();
    host.play(10);
    assert!(host.output[fresh..] == undisturbed(WAVE, 0, host.output.len())[fresh..]);
}

/// Instrument in a session, played in blocks of any length.
struct Instrument {
    controller: SessionController,
    session: Session,
}

impl Instrument {
    fn new(model: Model, source: ControlSource, driver: Driver, sample_rate: u32) -> Self {
        let controller = SessionController::new();
        controller.set_driver(driver);
        controller.set_non_realtime(true);
        let options = PipelineOptions {
            source,
            seed: 3,
            ..PipelineOptions::default()
        };
        load(
            &controller,
            PlayableModel::new(Arc::new(model), options).expect("an instrument"),
        );
        wait_until("the model is loaded", || {
            controller.status() == LoadStatus::Ready
        });
        let session = controller
            .activate(Setup {
                sample_rate,
                max_block: 512,
            })
            .expect("a sound setup");
        assert_eq!(controller.status(), LoadStatus::Ready);
        Self {
            controller,
            session,
        }
    }

    /// Plays a block; returns its samples, which are asserted to be finite and limited.
    fn play(&mut self, commands: &[BlockCommand], input: &[f32], frames: usize) -> Vec<f32> {
        let mut sound = vec![f32::NAN; frames];
        let input: &[&[f32]] = if input.is_empty() { &[] } else { &[input] };
        self.session.process(commands, input, &mut [&mut sound]);
        assert!(
            sound.iter().all(|sample| sample.abs() <= LOUDEST),
            "too loud, or no number"
        );
        sound
    }

    /// Asserts that a note sounds.
    fn assert_alive(&mut self) {
        self.play(&[note_on(0, 60)], &[], 512);
        assert!(
            peak(&self.play(&[], &[], 20_000)) > 1e-4,
            "nothing is heard"
        );
        self.play(&[note_off(0, 60)], &[], 512);
    }
}

fn event(offset: usize, kind: EventKind) -> BlockCommand {
    BlockCommand {
        offset,
        action: Action::Play(kind),
    }
}

fn note_on(offset: usize, key: u8) -> BlockCommand {
    event(
        offset,
        EventKind::NoteOn {
            channel: 0,
            key,
            velocity: 0.8,
        },
    )
}

fn note_off(offset: usize, key: u8) -> BlockCommand {
    event(
        offset,
        EventKind::NoteOff {
            channel: 0,
            key,
            velocity: 0.5,
        },
    )
}

const DRIVERS: [Driver; 2] = [
    Driver::Inline,
    Driver::Worker {
        latency: Some(1024),
    },
];

#[test]
fn a_host_may_change_its_sample_rate_while_notes_sound() {
    let _exclusive = exclusive();
    for driver in DRIVERS {
        let mut player = Instrument::new(
            untrained_instrument(1),
            ControlSource::Notes,
            driver,
            48_000,
        );
        for sample_rate in [44_100, 96_000, 8_000, 384_000, 48_000] {
            player.play(&[note_on(5, 60), note_on(9, 64)], &[], 5_000);
            let setup = Setup {
                sample_rate,
                max_block: 300,
            };
            let old = std::mem::replace(
                &mut player.session,
                player.controller.activate(setup).expect("a sound setup"),
            );
            assert_eq!(player.controller.status(), LoadStatus::Ready);
            let new = player
                .controller
                .health()
                .expect("a model plays")
                .latency_samples;
            assert_eq!(player.session.latency_samples(), new);
            // The old session still plays as before.
            let mut old = Instrument {
                controller: player.controller.clone(),
                session: old,
            };
            assert!(peak(&old.play(&[], &[], 5_000)) > 1e-4);
            drop(old);
            player.assert_alive();
            let health = player.controller.health().expect("a model plays");
            assert_eq!(
                (health.dropouts, health.invalid_blocks, health.commands_lost),
                (0, 0, 0)
            );
        }
    }
}

#[test]
fn the_samples_do_not_depend_on_blocks_and_channels() {
    const LENGTH: usize = 40_000;
    let _exclusive = exclusive();
    let notes: Vec<(usize, BlockCommand)> = [(100, 60), (7_000, 64), (7_001, 67), (30_000, 55)]
        .iter()
        .flat_map(|&(at, key)| [(at, note_on(0, key)), (at + 9_000, note_off(0, key))])
        .collect();
    let mut notes = notes;
    notes.sort_by_key(|(at, _)| *at);
    let input: Vec<f32> = (0..LENGTH).map(|n| 0.3 * (n as f32 * 0.04).sin()).collect();
    for source in [ControlSource::Notes, ControlSource::AudioInput] {
        let mut sounds: Vec<(usize, Vec<f32>)> = Vec::new();
        for driver in DRIVERS {
            for seed in 0..3 {
                let mut player = Instrument::new(untrained_instrument(1), source, driver, 48_000);
                let mut random = seeded_rng(seed);
                let mut sound = Vec::new();
                for frames in random_splits(seed, LENGTH, 8192) {
                    let start = sound.len();
                    let here: Vec<BlockCommand> = notes
                        .iter()
                        .filter(|(at, _)| (start..start + frames).contains(at))
                        .map(|(at, command)| BlockCommand {
                            offset: at - start,
                            ..*command
                        })
                        .collect();
                    // A block without samples changes nothing.
                    player.session.process(&[], &[], &mut [&mut []]);
                    player.session.process(&[], &[&[], &[]], &mut []);
                    let left = &input[start..start + frames];
                    // The mean of equal channels is exact if their number is a power of two.
                    let counts = if source == ControlSource::Notes {
                        [0, 2, 6]
                    } else {
                        [1, 2, 4]
                    };
                    let inputs = vec![left; counts[random.random_range(0..3)]];
                    let outs = [1, 2, 6][random.random_range(0..3)];
                    let mut outputs = vec![vec![f32::NAN; frames]; outs];
                    let mut channels: Vec<&mut [f32]> =
                        outputs.iter_mut().map(|output| &mut output[..]).collect();
                    player.session.process(&here, &inputs, &mut channels);
                    // A session of two channels leaves further ones silent.
                    assert!(outputs.iter().take(2).all(|output| *output == outputs[0]));
                    sound.extend_from_slice(&outputs[0]);
                }
                assert!(sound.iter().all(|sample| sample.abs() <= LOUDEST));
                let latency = player.session.latency_samples();
                let (first_latency, first) =
                    sounds.first().unwrap_or(&(latency, sound.clone())).clone();
                let length = LENGTH - latency.max(first_latency);
                let same = sound[latency..][..length] == first[first_latency..][..length];
                assert!(same, "{source:?}, {driver:?}, blocks {seed}");
                sounds.push((latency, sound));
            }
        }
    }
}

#[test]
fn time_advances_for_a_host_without_output() {
    let _exclusive = exclusive();
    let mut player = Instrument::new(
        untrained_instrument(1),
        ControlSource::Notes,
        Driver::Inline,
        48_000,
    );
    let input = [0.1; 3_000];
    player
        .session
        .process(&[note_on(7, 60)], &[&input], &mut []);
    assert!(
        peak(&player.play(&[], &[], 9_000)) > 1e-4,
        "a cue is lost that came when nobody listened"
    );
}

#[test]
fn commands_of_a_block_without_samples_take_effect() {
    let _exclusive = exclusive();
    let mut player = Instrument::new(
        untrained_instrument(1),
        ControlSource::Notes,
        Driver::Inline,
        48_000,
    );
    player.play(&[], &[], 1_000);
    player
        .session
        .process(&[note_on(0, 60)], &[], &mut [&mut []]);
    assert!(
        peak(&player.play(&[], &[], 9_000)) > 1e-4,
        "a note-on is lost"
    );
    player.session.process(&[note_off(0, 60)], &[], &mut []);
    let tail = player.session.tail_samples() + player.session.latency_samples();
    player.play(&[], &[], 48_000 + tail);
    assert!(
        peak(&player.play(&[], &[], 9_000)) < 1e-6,
        "a note-off is lost"
    );
}

#[test]
fn notes_do_not_block_a_model_that_follows_audio() {
    let _exclusive = exclusive();
    for driver in DRIVERS {
        let mut player = Instrument::new(
            untrained_instrument(1),
            ControlSource::AudioInput,
            driver,
            48_000,
        );
        for _ in 0..8 {
            let notes: Vec<BlockCommand> =
                (0..512).map(|n| note_on(n, 40 + (n % 50) as u8)).collect();
            player.play(&notes, &[], 512);
            player.play(&[], &[], 4_800);
        }
        assert_eq!(
            player
                .controller
                .health()
                .expect("a model plays")
                .commands_lost,
            0,
            "{driver:?}"
        );
    }
}

#[test]
fn dropped_commands_are_counted() {
    /// Capacities: the worker's queue, notes in a model, control changes.
    const MAX_COMMANDS: usize = 2048;
    const MOST_EVENTS: usize = 2560;
    const MOST_TURNS: usize = 1024;
    let _exclusive = exclusive();
    for driver in DRIVERS {
        let worker = driver != Driver::Inline;
        let lost = |player: &Instrument| {
            player
                .controller
                .health()
                .expect("a model plays")
                .commands_lost
        };
        let mut player = Instrument::new(
            untrained_instrument(1),
            ControlSource::Notes,
            driver,
            48_000,
        );
        let all_at_once: Vec<BlockCommand> =
            (0..256).map(|key| note_on(17, (key % 128) as u8)).collect();
        player.play(&all_at_once, &[], 512);
        player.play(&[], &[], 4_800);
        assert_eq!(lost(&player), 0);
        let thousands: Vec<BlockCommand> = (0..5_000)
            .map(|n| note_on(n / 10, 40 + (n % 50) as u8))
            .collect();
        player.play(&thousands, &[], 512);
        let expected = (5_000 - if worker { MAX_COMMANDS } else { MOST_EVENTS }) as u64;
        // The worker may have taken some meanwhile.
        assert!(
            lost(&player) <= expected && (worker || lost(&player) == expected),
            "{} lost",
            lost(&player)
        );
        player.play(&[], &[], 4_800);
        let before = lost(&player);
        let turns: Vec<BlockCommand> = (0..3_000)
            .map(|n| {
                let action = Action::Control {
                    id: ControlId::new("brightness"),
                    value: n as f32 / 1_000.0,
                };
                BlockCommand {
                    offset: n / 8,
                    action,
                }
            })
            .collect();
        player.play(&turns, &[], 512);
        let expected = (3_000 - if worker { MAX_COMMANDS } else { MOST_TURNS }) as u64;
        let now = lost(&player) - before;
        assert!(now <= expected && (worker || now == expected), "{now} lost");
        player.play(&[], &[], 4_800);
        let before = lost(&player);
        player.session.reset();
        player.play(
            &[],
            &[],
            9_600 + player.session.tail_samples() + player.session.latency_samples(),
        );
        assert!(
            peak(&player.play(&[], &[], 9_600)) < 1e-6,
            "{driver:?}: something hangs"
        );
        player.assert_alive();
        assert_eq!(lost(&player), before);
        assert_eq!(
            player
                .controller
                .health()
                .expect("a model plays")
                .invalid_blocks,
            0
        );
    }
}

/// Returns a random command, valid or not.
fn random_command(random: &mut impl RngExt) -> BlockCommand {
    let numbers = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        f32::MIN,
        1e-40,
        -1.0,
        0.0,
        0.5,
        1.0,
        2.0,
    ];
    let offsets = [0, 1, 100, 511, 512, 10_000, usize::MAX];
    let offset = offsets[random.random_range(0..offsets.len())];
    let value = numbers[random.random_range(0..numbers.len())];
    let (channel, key) = (random.random_range(0..=255), random.random_range(0..=255));
    let mut names = vec![
        "room",
        "brightness",
        "attack",
        "release",
        "vibrato_rate",
        "vibrato_depth",
        "tempo",
        "position",
        "?",
        "",
    ];
    names.extend(PERFORMANCE_CONTROLS.iter().map(|control| control.name));
    let action = match random.random_range(0..12) {
        0 | 1 => Action::Play(EventKind::NoteOn {
            channel,
            key,
            velocity: value,
        }),
        2 => Action::Play(EventKind::NoteOff {
            channel,
            key,
            velocity: value,
        }),
        3 => Action::Play(EventKind::Bend {
            channel,
            semitones: value,
        }),
        4 => Action::Play(EventKind::Pressure { channel, value }),
        5 => Action::Play(EventKind::PolyPressure {
            channel,
            key,
            value,
        }),
        6 => Action::Play(EventKind::Controller {
            channel,
            number: random.random_range(0..=255),
            value,
        }),
        7 => {
            use NoteExpression::{Expression, Level, Timbre, Tuning, Vibrato};
            let expressions = [Tuning, Level, Timbre, Vibrato, Expression];
            let expression = expressions[random.random_range(0..5)](value);
            Action::Play(EventKind::NoteExpression {
                channel,
                key,
                expression,
            })
        }
        8 => Action::Play(EventKind::Zone {
            manager: channel,
            members: key,
        }),
        9 => Action::Control {
            id: ControlId::new(names[random.random_range(0..names.len())]),
            value,
        },
        _ => {
            let positions = [f64::NAN, f64::INFINITY, f64::MAX, -1e300, -3.5, 0.0, 1e9];
            let position = positions[random.random_range(0..positions.len())];
            Action::Transport(Transport {
                tempo: value,
                position,
                playing: random.random(),
            })
        }
    };
    BlockCommand { offset, action }
}

#[test]
fn invalid_commands_break_nothing() {
    let _exclusive = exclusive();
    for source in [ControlSource::Notes, ControlSource::AudioInput] {
        for driver in DRIVERS {
            for model in [untrained_instrument(1), transport_instrument()] {
                let mut player = Instrument::new(model, source, driver, 44_100);
                let mut random = seeded_rng(11);
                for _ in 0..150 {
                    let commands: Vec<BlockCommand> = (0..random.random_range(0..30))
                        .map(|_| random_command(&mut random))
                        .collect();
                    let frames = random.random_range(0..1_500);
                    let input: Vec<f32> = (0..frames)
                        .map(|n| match random.random_range(0..200) {
                            0 => f32::NAN,
                            1 => f32::INFINITY,
                            2 => f32::MIN,
                            3 => f32::MAX,
                            4 => 1e-42,
                            _ => (n as f32 * 0.05).sin(),
                        })
                        .collect();
                    player.play(&commands, &input, frames);
                }
                let health = player.controller.health().expect("a model plays");
                assert_eq!(player.controller.status(), LoadStatus::Ready);
                assert_eq!((health.dropouts, health.commands_lost), (0, 0));
                if source == ControlSource::Notes {
                    assert_eq!(health.invalid_blocks, 0, "{driver:?}");
                    player.session.reset();
                    let controls =
                        ["room", "brightness", "attack", "release"].map(|name| BlockCommand {
                            offset: 0,
                            action: Action::Control {
                                id: ControlId::new(name),
                                value: 5.0,
                            },
                        });
                    let transport = Transport {
                        tempo: 120.0,
                        position: 0.0,
                        playing: true,
                    };
                    let no_zone = |manager| {
                        event(
                            0,
                            EventKind::Zone {
                                manager,
                                members: 0,
                            },
                        )
                    };
                    let mut calm = vec![no_zone(0), no_zone(15)];
                    calm.extend(controls);
                    calm.push(BlockCommand {
                        offset: 0,
                        action: Action::Transport(transport),
                    });
                    player.play(&calm, &[], 48_000);
                    player.assert_alive();
                }
            }
        }
    }
}

#[test]
fn non_finite_input_counts_as_silence() {
    let _exclusive = exclusive();
    let mut random = seeded_rng(5);
    let clean: Vec<f32> = (0..30_000).map(|n| 0.3 * (n as f32 * 0.04).sin()).collect();
    let holes: Vec<bool> = clean.iter().map(|_| random.random_bool(0.01)).collect();
    let with = |hole: f32| -> Vec<f32> {
        clean
            .iter()
            .zip(&holes)
            .map(|(sample, is_hole)| if *is_hole { hole } else { *sample })
            .collect()
    };
    for driver in DRIVERS {
        let sounds = [0.0, f32::NAN, f32::INFINITY].map(|hole| {
            let mut player = Instrument::new(
                untrained_instrument(1),
                ControlSource::AudioInput,
                driver,
                48_000,
            );
            let sound: Vec<f32> = with(hole)
                .chunks(512)
                .flat_map(|input| player.play(&[], input, input.len()))
                .collect();
            assert_eq!(
                player
                    .controller
                    .health()
                    .expect("a model plays")
                    .invalid_blocks,
                0
            );
            sound
        });
        assert!(peak(&sounds[0]) > 1e-4);
        assert!(sounds[0] == sounds[1] && sounds[0] == sounds[2]);
    }
}

#[test]
fn a_session_can_be_reset_at_any_point() {
    let _exclusive = exclusive();
    for driver in DRIVERS {
        let mut random = seeded_rng(9);
        let mut player = Instrument::new(
            untrained_instrument(1),
            ControlSource::Notes,
            driver,
            48_000,
        );
        player.session.reset();
        for round in 0..12 {
            let keys: Vec<BlockCommand> = (0..random.random_range(1..8))
                .map(|n| note_on(n * 50, 50 + 3 * n as u8))
                .collect();
            let pedal = EventKind::Controller {
                channel: 0,
                number: controller::SUSTAIN,
                value: 1.0,
            };
            player.play(&[event(0, pedal)], &[], 64);
            player.play(&keys, &[], 512);
            let played = random.random_range(0..12_000);
            let sound = player.play(&[], &[], played);
            assert!(
                played < 5_000 || peak(&sound) > 1e-4,
                "round {round}: nothing is heard"
            );
            if round % 3 == 0 {
                player.session.reset();
            }
            player.session.reset();
            // Notes that are cut off fade within 5 ms, rounded up to control frames.
            let fade = 480 + 2 * HOP;
            player.play(
                &[],
                &[],
                fade + player.session.tail_samples() + player.session.latency_samples(),
            );
            let silence = player.play(&[], &[], 4_800);
            assert!(
                peak(&silence) < 1e-6,
                "{driver:?}, round {round}: {} is left",
                peak(&silence)
            );
        }
        player.assert_alive();
    }
}

/// Returns an instrument that outputs `0.5 · tempo / 1000 + position / 100`, held for a hop, times
/// the gain of the note.
fn transport_instrument() -> Model {
    let control = |name: &str, max: f32| Control {
        name: name.into(),
        unit: String::new(),
        min: -max,
        max,
        default: 0.0,
        curve: Curve::Linear,
        description: String::new(),
    };
    let methods = vec![Method {
        name: "synth".into(),
        block: HOP,
        warm_up: 0,
        inputs: ["pitch", "loudness", "tempo", "position"]
            .map(|name| port(name, 1, HOP))
            .to_vec(),
        outputs: vec![port("audio", 1, 1)],
        nodes: vec![
            node(
                "unheard_pitch",
                &["pitch"],
                Op::Affine(Affine {
                    scale: 0.0,
                    offset: 0.0,
                }),
            ),
            node(
                "unheard_loudness",
                &["loudness"],
                Op::Affine(Affine {
                    scale: 0.0,
                    offset: 0.0,
                }),
            ),
            node(
                "beat",
                &["tempo"],
                Op::Affine(Affine {
                    scale: 0.5e-3,
                    offset: 0.0,
                }),
            ),
            node(
                "place",
                &["position"],
                Op::Affine(Affine {
                    scale: 1e-2,
                    offset: 0.0,
                }),
            ),
            node(
                "sum",
                &["unheard_pitch", "unheard_loudness", "beat", "place"],
                Op::Add,
            ),
            node(
                "audio",
                &["sum"],
                Op::ConvTranspose1d(ConvTranspose1d {
                    outputs: 1,
                    kernel: HOP,
                    stride: HOP,
                }),
            ),
        ],
    }];
    let mut weights = random_weights(&methods, 1);
    weights.insert("audio.weight", Tensor::new(&[1, 1, HOP], vec![1.0; HOP]));
    weights.insert("audio.bias", Tensor::new(&[1], vec![0.0]));
    let mut header = header(Kind::Instrument, methods);
    header
        .controls
        .extend([control("tempo", 1_000.0), control("position", 1e6)]);
    Model::new(header, weights).expect("it fits")
}

/// Returns an effect that passes its input, and overflows 4,800 samples after the input exceeded
/// 0.1.
fn overflowing_effect() -> Model {
    let methods = vec![method(
        "forward",
        BLOCK,
        vec![port("in", 1, 1)],
        vec![
            node(
                "past",
                &["in"],
                Op::Conv1d(Conv1d::new(1, 2).dilated(4_800)),
            ),
            node(
                "above",
                &["past"],
                Op::Affine(Affine {
                    scale: 1.0,
                    offset: -0.1,
                }),
            ),
            node("positive", &["above"], Op::Activation(Activation::Relu)),
            node(
                "loud",
                &["positive"],
                Op::Affine(Affine {
                    scale: 1e30,
                    offset: 0.0,
                }),
            ),
            node(
                "louder",
                &["loud"],
                Op::Affine(Affine {
                    scale: 1e30,
                    offset: 0.0,
                }),
            ),
            node("out", &["louder", "in"], Op::Add),
        ],
    )];
    let mut weights = random_weights(&methods, 1);
    weights.insert("past.weight", Tensor::new(&[1, 1, 2], vec![1.0, 0.0]));
    weights.insert("past.bias", Tensor::new(&[1], vec![0.0]));
    Model::new(header(Kind::Effect, methods), weights).expect("it fits")
}

#[test]
fn an_overflowing_effect_is_silenced_and_restarts() {
    let _exclusive = exclusive();
    let quiet = Wave {
        frequency: 0.0041,
        peak: 0.05,
    };
    for driver in [Driver::Inline, WORKER] {
        let playable_model =
            PlayableModel::new(Arc::new(overflowing_effect()), PipelineOptions::default())
                .expect("it plays");
        let mut host = Host::new(playable_model, driver, BLOCK);
        let latency = host.session.latency_samples();
        host.input = Some(quiet);
        host.play(40);
        assert_eq!(host.health().invalid_blocks, 0);
        // A loud input overflows 20 blocks later; the restart clears the rest of its memory.
        host.input = Some(Wave { peak: 0.5, ..quiet });
        host.play(21);
        host.input = Some(quiet);
        host.play(60);
        let health = host.health();
        assert!(
            (1..4).contains(&health.invalid_blocks),
            "{driver:?}: {health:?}"
        );
        let now = host.output.len();
        let expected = |number: usize| quiet.at((number - latency) as u64);
        assert!(
            (now - 20 * BLOCK..now).all(|number| host.output[number] == expected(number)),
            "{driver:?}"
        );
        assert!(
            peak(&host.output) <= 0.5,
            "{driver:?}: {}",
            peak(&host.output)
        );
    }
}

#[test]
fn tempo_and_position_reach_the_model_at_their_sample() {
    const LENGTH: usize = 60_000;
    let _exclusive = exclusive();
    let play = |driver: Driver, transports: &[(usize, Transport)], blocks: &[usize]| {
        let mut player = Instrument::new(
            transport_instrument(),
            ControlSource::Notes,
            driver,
            SAMPLE_RATE,
        );
        let mut sound: Vec<f32> = Vec::new();
        for &frames in blocks {
            let start = sound.len();
            let here = (start..start + frames).contains(&0).then(|| note_on(0, 60));
            let told = transports
                .iter()
                .filter(|(at, _)| (start..start + frames).contains(at));
            let told = told.map(|&(at, song)| BlockCommand {
                offset: at - start,
                action: Action::Transport(song),
            });
            let commands: Vec<BlockCommand> = here.into_iter().chain(told).collect();
            sound.extend(player.play(&commands, &[], frames));
        }
        let latency = player.session.latency_samples();
        sound.split_off(latency)
    };
    let song = |tempo: f32, position: f64, playing: bool| Transport {
        tempo,
        position,
        playing,
    };
    // Measure the gain of the note with a stopped transport.
    let still = play(Driver::Inline, &[(0, song(0.0, 100.0, false))], &[LENGTH]);
    let transports = [
        (0, song(120.0, 0.0, true)),
        (9_601, song(120.0, 64.5, true)),
        (14_399, song(90.0, -2.0, true)),
        (20_000, song(90.0, 7.0, false)),
        // Without transport the model keeps the tempo.
        (24_000, song(f32::NAN, 0.0, true)),
        (33_333, song(240.0, 1_000.0, true)),
        (33_333, song(60.0, 3.0, true)),
        (52_800, song(300.0, 5.0, true)),
    ];
    for driver in DRIVERS {
        for seed in 0..3 {
            let sound = play(driver, &transports, &random_splits(seed, LENGTH, 2_000));
            for (frame, (sound, still)) in sound.chunks(HOP).zip(still.chunks(HOP)).enumerate() {
                let at = frame * HOP;
                let &(since, song) = transports
                    .iter()
                    .rfind(|(since, _)| *since <= at)
                    .expect("from the start");
                if song.tempo.is_nan() {
                    continue;
                }
                let seconds = (at - since) as f64 / f64::from(SAMPLE_RATE);
                let moved = if song.playing {
                    seconds * f64::from(song.tempo) / 60.0
                } else {
                    0.0
                };
                let expected = 0.5e-3 * song.tempo + 1e-2 * (song.position + moved) as f32;
                for (sound, still) in sound.iter().zip(still) {
                    let (sound, gain) = (*sound, *still);
                    assert!(
                        (sound - gain * expected).abs() < 1e-4,
                        "{driver:?}, frame {frame}: {sound}"
                    );
                }
            }
            let loudest = still.iter().copied().fold(0.0, f32::max);
            assert!(loudest > 0.1, "the note is heard: {loudest}");
        }
    }
}
