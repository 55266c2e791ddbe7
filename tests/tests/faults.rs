//! Whatever a model or a host does wrong: no panic, no step, no number that is none, and every miss is counted.

use std::f32::consts::FRAC_PI_2;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ondes_engine::instrument::{EventKind, NoteExpression, controller};
use ondes_engine::model::{Control, Curve, Kind, Method, Model, Op, Tensor};
use ondes_engine::pipeline::{Action, ControlId, PLAYING_CONTROLS, PipelineOptions, Source, Start, Transport};
use ondes_engine::realtime::{BlockCue, Driven, Driver, Patch, Remote, Session, Setup, Status};
use ondes_tests::doubles::{Double, Gate, Host, INJECTED, LOUDEST, Wave, hush, load, peak, steepest, wait_until};
use ondes_tests::through::method;
use ondes_tests::{HOP, SAMPLE_RATE, header, node, port, random, random_splits, random_weights, untrained_instrument};
use rand::RngExt;

/// 5 ms, which is also the worker's turn: where turns begin and end does not depend on when it wakes.
const BLOCK: usize = 240;
/// What a worker has in hand.
const DELAY: usize = 2 * BLOCK;
const WORKER: Driver = Driver::Worker { latency: Some(DELAY) };
/// Blocks for which a model must be in time again before it is heard: 20 ms.
const PROBATION: usize = 4;
const WAVE: Wave = Wave { frequency: 0.0041, peak: 0.8 };
const OTHER: Wave = Wave { frequency: 0.0067, peak: 0.5 };

/// There is one worker in a process, and these tests stall it: one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    hush();
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a wave sounds like that nobody disturbs.
fn undisturbed(wave: Wave, latency: usize, samples: usize) -> Vec<f32> {
    let late = (0..samples as u64).map(|number| number.checked_sub(latency as u64));
    late.map(|number| number.map_or(0.0, |number| wave.at(number))).collect()
}

/// Nothing is louder or steeper than a wave that now and then falls to silence or rises from it.
fn assert_smooth(heard: &[f32], wave: Wave) {
    assert!(peak(heard) <= wave.peak);
    let bound = wave.steepest() + wave.peak * FRAC_PI_2 / BLOCK as f32 + 1e-6;
    assert!(steepest(heard) <= bound, "a step of {}, the bound is {bound}", steepest(heard));
}

/// `heard` is the wave but for a gap from block `from` to block `to`, a block of falling before and one of rising after.
fn assert_gap(heard: &[f32], wave: Wave, latency: usize, from: usize, to: usize) {
    let expected = undisturbed(wave, latency, heard.len());
    assert_smooth(heard, wave);
    let (fallen, risen) = ((from + 1) * BLOCK - 1, (to + 1) * BLOCK - 1);
    assert!(heard[..from * BLOCK] == expected[..from * BLOCK], "disturbed before the gap");
    assert!(heard[fallen..to * BLOCK].iter().all(|sample| *sample == 0.0), "sound in the gap");
    assert!(heard[risen..] == expected[risen..], "disturbed after the gap, or later than before");
}

/// A model that stands still at sample `at` while the gate is closed.
fn stalling(gate: &Arc<Gate>, at: &Arc<AtomicU64>) -> Double {
    let (gate, at) = (gate.clone(), at.clone());
    Double::new(WAVE).at_sound(move |from, _| {
        if from >= at.load(Ordering::Relaxed) {
            gate.pass();
        }
    })
}

#[test]
fn a_stalled_worker_is_a_gap_and_nothing_else() {
    let _alone = alone();
    // The longest is more than the worker's history and all that its queue holds.
    for blocks in [1, 2, 5, 37, 450] {
        let (gate, at) = (Arc::new(Gate::default()), Arc::new(AtomicU64::new(u64::MAX)));
        let mut host = Host::new(stalling(&gate, &at), WORKER, BLOCK);
        assert_eq!(host.session.latency_samples(), DELAY);
        host.play(40);
        for round in 1..=2 {
            // All that was given is played: the next two blocks are in time.
            at.store(host.now(), Ordering::Relaxed);
            gate.close();
            host.play(2);
            gate.await_arrival();
            host.remote.set_patient(false);
            host.play(blocks);
            assert_eq!(host.health().misses, round * blocks as u64);
            assert!(host.health().queued_samples >= (blocks * BLOCK) as u64);
            host.remote.set_patient(true);
            gate.open();
            host.play(PROBATION + 20);
            let health = host.health();
            assert_eq!((health.misses, health.faults, health.driven), (round * blocks as u64, 0, Driven::Worker));
            assert_eq!((health.latency_samples, host.session.latency_samples()), (DELAY, DELAY));
            let end = host.heard.len() / BLOCK;
            let (from, to) = (end - PROBATION - 20 - blocks, end - 20);
            if round == 1 {
                assert_gap(&host.heard, WAVE, DELAY, from, to);
            } else {
                assert_smooth(&host.heard, WAVE);
                let risen = (to + 1) * BLOCK - 1;
                assert!(host.heard[risen..] == undisturbed(WAVE, DELAY, host.heard.len())[risen..]);
            }
        }
    }
}

#[test]
fn a_model_that_begins_late_fades_in() {
    let _alone = alone();
    for blocks in [1, 3, 50] {
        let (gate, at) = (Arc::new(Gate::default()), Arc::new(AtomicU64::new(0)));
        gate.close();
        let mut host = Host::new(stalling(&gate, &at), WORKER, BLOCK);
        host.remote.set_patient(false);
        host.play(DELAY / BLOCK + blocks);
        gate.await_arrival();
        // It was not expected before it was there once.
        assert_eq!(host.health().misses, 0);
        let begun = host.heard.len();
        host.remote.set_patient(true);
        gate.open();
        host.play(10);
        assert_eq!(host.health().misses, 0);
        assert_smooth(&host.heard, WAVE);
        assert!(host.heard[..begun].iter().all(|sample| *sample == 0.0));
        let expected = undisturbed(WAVE, DELAY, host.heard.len());
        assert!(host.heard[begun + BLOCK - 1..] == expected[begun + BLOCK - 1..]);
    }
}

#[test]
fn a_block_that_is_there_in_part_is_played_in_part() {
    let _alone = alone();
    let (gate, at) = (Arc::new(Gate::default()), Arc::new(AtomicU64::new(u64::MAX)));
    let mut host = Host::new(stalling(&gate, &at), WORKER, 2 * BLOCK);
    host.play(20);
    // With two turns to a block: one of them is made.
    at.store(host.now() + BLOCK as u64, Ordering::Relaxed);
    gate.close();
    host.play(1);
    gate.await_arrival();
    let half = host.heard.len();
    host.remote.set_patient(false);
    host.play(3);
    assert_eq!(host.health().misses, 3);
    host.remote.set_patient(true);
    gate.open();
    host.play(20);
    assert_eq!(host.health().misses, 3);
    assert_smooth(&host.heard, WAVE);
    let expected = undisturbed(WAVE, DELAY, host.heard.len());
    let (fallen, back) = (half + 2 * BLOCK - 1, half + 5 * 2 * BLOCK);
    assert!(host.heard[..half + BLOCK] == expected[..half + BLOCK]);
    assert!(host.heard[fallen..back].iter().all(|sample| *sample == 0.0));
    assert!(host.heard[back + BLOCK - 1..] == expected[back + BLOCK - 1..]);
}

#[test]
fn a_slow_model_is_put_aside_and_holds_up_nobody() {
    const SLOW_CALLS: usize = 12;
    let _alone = alone();
    let (gate, calls) = (Arc::new(Gate::default()), Arc::new(AtomicUsize::new(0)));
    let slow = {
        let (gate, calls) = (gate.clone(), calls.clone());
        Double::new(WAVE).at_sound(move |_, out| {
            let begun = Instant::now();
            if calls.fetch_add(1, Ordering::Relaxed) < SLOW_CALLS {
                let ten_times = Duration::from_secs_f64(10.0 * out.len() as f64 / f64::from(SAMPLE_RATE));
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
    let mut other = Host::new(Double::new(OTHER), WORKER, BLOCK);
    slow.remote.set_patient(false);
    for _ in 0..2 * SLOW_CALLS {
        slow.play(1);
        other.play(1);
    }
    wait_until("the slow model is put aside", || slow.health().driven == Driven::Aside);
    assert_eq!(other.health().driven, Driven::Worker);
    // Now it stands still altogether. On the same thread, the other one would wait for ever.
    slow.play(1);
    gate.await_arrival();
    other.play(200);
    assert!(other.heard == undisturbed(OTHER, DELAY, other.heard.len()));
    assert_eq!(other.health().misses, 0);
    // And where it is, it plays when it can.
    gate.open();
    slow.remote.set_patient(true);
    slow.play(PROBATION + 10);
    let (heard, expected) = (&slow.heard, undisturbed(WAVE, DELAY, slow.heard.len()));
    assert_smooth(heard, WAVE);
    assert!(heard[heard.len() - 9 * BLOCK..] == expected[heard.len() - 9 * BLOCK..]);
    assert_eq!(slow.health().driven, Driven::Aside);
}

/// A model whose samples from `from` to `to` are no numbers, and how it was begun every time.
fn insane(bad: f32, from: u64, to: u64) -> (Double, Arc<Mutex<Vec<Start>>>) {
    let starts = Arc::new(Mutex::new(Vec::new()));
    let kept = starts.clone();
    let double = Double::new(WAVE).starting(Start { at: 0, seed: 7, transpose: -12.0 });
    let double = double.at_open(move |start| kept.lock().expect("nobody panics here").push(*start));
    let double = double.at_sound(move |first, out| {
        for (number, sample) in (first..).zip(out) {
            if (from..to).contains(&number) {
                *sample = bad;
            }
        }
    });
    (double, starts)
}

#[test]
fn what_is_no_number_is_not_heard() {
    let _alone = alone();
    for (driver, latency) in [(Driver::Inline, 0), (WORKER, DELAY)] {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for (samples, blocks) in [(1, 1), (BLOCK, 1), (BLOCK + 1, 2), (30 * BLOCK, 30)] {
                let from = 40 * BLOCK;
                let (double, starts) = insane(bad, from as u64, (from + samples) as u64);
                let mut host = Host::new(double, driver, BLOCK);
                host.play(120);
                let health = host.health();
                assert_eq!(
                    (health.misses, health.faults),
                    (0, blocks as u64),
                    "{driver:?}, {samples} samples of {bad}"
                );
                assert_eq!(host.remote.status(), Status::Ready);
                let first = 40 + latency / BLOCK;
                assert_gap(&host.heard, WAVE, latency, first, first + blocks + PROBATION);
                // The model began anew each time, as the same one.
                let starts = starts.lock().expect("nobody panics here");
                let again: Vec<_> = starts.iter().filter(|start| start.at > 0).collect();
                assert_eq!(again.len(), blocks);
                for start in again {
                    assert_eq!((start.seed, start.transpose), (7, -12.0), "{driver:?}");
                }
            }
        }
        let (double, _) = insane(f32::NAN, 0, u64::MAX);
        let mut host = Host::new(double, driver, BLOCK);
        host.play(100);
        assert!(host.heard.iter().all(|sample| *sample == 0.0));
        assert_eq!(host.health().faults, (100 - latency / BLOCK) as u64);
        host.swap(Double::new(OTHER));
        let fresh = host.heard.len();
        host.play(10);
        assert!(host.heard[fresh..] == undisturbed(OTHER, latency, host.heard.len())[fresh..]);
    }
}

#[test]
fn what_runs_away_is_held() {
    let _alone = alone();
    for driver in [Driver::Inline, WORKER] {
        let double = Double::new(Wave { peak: 1e30, ..WAVE });
        let mut host = Host::new(double, driver, BLOCK);
        host.play(20);
        assert!(peak(&host.heard) == LOUDEST);
        assert_eq!(host.health().faults, 0);
    }
}

/// Where a model's code breaks down.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Where {
    Sound,
    Cue,
    Open,
}

/// A model that panics at a place while `broken`.
fn fragile(place: Where, broken: &Arc<AtomicBool>) -> Double {
    let check = |here: Where| {
        let broken = broken.clone();
        move || assert!(here != place || !broken.load(Ordering::Relaxed), "{INJECTED}")
    };
    let (sound, cue, open) = (check(Where::Sound), check(Where::Cue), check(Where::Open));
    Double::new(WAVE)
        .at_sound(move |_, _| sound())
        .at_cue(move |_| {
            cue();
            true
        })
        .at_open(move |_| open())
}

fn turn() -> BlockCue {
    BlockCue { offset: 3, action: Action::Control { id: ControlId::of("knob"), value: 1.0 } }
}

#[test]
fn a_model_that_breaks_down_does_so_alone() {
    let _alone = alone();
    for driver in [Driver::Inline, WORKER] {
        for place in [Where::Sound, Where::Cue] {
            let broken = Arc::new(AtomicBool::new(false));
            let mut host = Host::new(fragile(place, &broken), driver, BLOCK);
            let mut other = Host::new(Double::new(OTHER), WORKER, BLOCK);
            host.play(40);
            other.play(40);
            broken.store(true, Ordering::Relaxed);
            host.cue(&[turn()]);
            other.play(1);
            // Its end of the queue hears of it when the worker gets there.
            host.play_until("the host hears of it", |host| matches!(host.remote.status(), Status::Failed(_)));
            let fallen = host.heard.len();
            host.play(10);
            other.play(10);
            let Status::Failed(reason) = host.remote.status() else { panic!("{driver:?}: {:?}", host.remote.status()) };
            // The audio thread has no time to hear why.
            let why = if driver == WORKER { INJECTED } else { "panicked" };
            assert!(reason.contains(why), "{reason}");
            assert!(host.heard[fallen..][BLOCK..].iter().all(|sample| *sample == 0.0), "{driver:?}, {place:?}");
            assert_smooth(&host.heard, WAVE);
            // In all its functions, for ever.
            host.cue(&[turn()]);
            host.session.reset();
            host.play(3);
            broken.store(false, Ordering::Relaxed);
            host.swap(Double::new(OTHER));
            let fresh = host.heard.len();
            host.play(10);
            other.play(10);
            let expected = undisturbed(OTHER, host.session.latency_samples(), host.heard.len());
            assert!(host.heard[fresh..] == expected[fresh..], "{driver:?}, {place:?}");
            assert_eq!(host.remote.status(), Status::Ready);
            assert!(other.heard == undisturbed(OTHER, DELAY, other.heard.len()));
            assert_eq!((other.remote.status(), other.health().misses), (Status::Ready, 0));
        }
    }
}

#[test]
fn a_model_that_cannot_even_begin_is_refused() {
    let _alone = alone();
    for driver in [Driver::Inline, WORKER] {
        let latency = if driver == WORKER { DELAY } else { 0 };
        let mut host = Host::new(Double::new(OTHER), driver, BLOCK);
        host.play(40);
        let broken = Arc::new(AtomicBool::new(true));
        load(&host.remote, fragile(Where::Open, &broken));
        host.play_until("it is refused", |host| matches!(host.remote.status(), Status::Failed(_)));
        host.play(40);
        // The one before it plays on.
        assert!(host.heard == undisturbed(OTHER, latency, host.heard.len()), "{driver:?}");
        broken.store(false, Ordering::Relaxed);
        host.swap(Double::new(WAVE));
        let fresh = host.heard.len();
        host.play(10);
        assert!(host.heard[fresh..] == undisturbed(WAVE, latency, host.heard.len())[fresh..], "{driver:?}");
    }
}

#[test]
fn a_model_that_breaks_down_again_when_it_begins_anew_is_silent() {
    let _alone = alone();
    for (driver, latency) in [(Driver::Inline, 0), (WORKER, DELAY)] {
        let at = 40 * BLOCK as u64;
        let double = Double::new(WAVE).at_open(move |start| assert!(start.at < at, "{INJECTED}"));
        let double = double.at_sound(move |from, out| {
            if from >= at {
                out.fill(f32::NAN);
            }
        });
        let mut host = Host::new(double, driver, BLOCK);
        host.play(60);
        assert!(matches!(host.remote.status(), Status::Failed(_)), "{driver:?}: {:?}", host.remote.status());
        assert_smooth(&host.heard, WAVE);
        let silent = 40 * BLOCK + latency + BLOCK;
        assert!(host.heard[silent..].iter().all(|sample| *sample == 0.0));
    }
}

#[test]
fn a_broken_model_that_others_play_too_is_not_given_to_newcomers() {
    let _alone = alone();
    let broken = Arc::new(AtomicBool::new(false));
    let mut host = Host::new(fragile(Where::Sound, &broken).named("shared"), WORKER, BLOCK);
    host.play(10);
    broken.store(true, Ordering::Relaxed);
    host.play_until("the host hears of it", |host| matches!(host.remote.status(), Status::Failed(_)));
    broken.store(false, Ordering::Relaxed);
    // By its name it is the same model; by its sound we know whether what broke down plays on.
    host.swap(Double::new(OTHER).named("shared"));
    let fresh = host.heard.len();
    host.play(10);
    assert!(host.heard[fresh..] == undisturbed(OTHER, DELAY, host.heard.len())[fresh..]);
}

#[test]
fn loading_that_breaks_down_is_told() {
    let _alone = alone();
    let mut host = Host::new(Double::new(OTHER), Driver::Inline, BLOCK);
    host.remote.load(Box::new(|| panic!("{INJECTED}")), &[]);
    host.play_until("the host hears of it", |host| matches!(host.remote.status(), Status::Failed(_)));
    host.swap(Double::new(WAVE));
    // A queue that no machine has room for.
    host.remote.set_driver(Driver::Worker { latency: Some(usize::MAX / 2) });
    host.play_until("the host hears of it", |host| host.remote.status() != Status::Loading);
    assert!(matches!(host.remote.status(), Status::Failed(_)));
    let fresh = host.heard.len();
    host.play(10);
    assert!(host.heard[fresh..] == undisturbed(WAVE, 0, host.heard.len())[fresh..]);
}

/// An instrument in a session, played in any blocks.
struct Instrument {
    remote: Remote,
    session: Session,
}

impl Instrument {
    fn new(model: Model, source: Source, driver: Driver, sample_rate: u32) -> Self {
        let remote = Remote::new();
        remote.set_driver(driver);
        remote.set_patient(true);
        let options = PipelineOptions { source, seed: 3, ..PipelineOptions::default() };
        load(&remote, Patch::new(Arc::new(model), options).expect("an instrument"));
        wait_until("the model is loaded", || remote.status() == Status::Ready);
        let session = remote.activate(Setup { sample_rate, max_block: 512 }).expect("a sound setup");
        assert_eq!(remote.status(), Status::Ready);
        Self { remote, session }
    }

    /// Plays a block; gives its sound, which is fit to be heard.
    fn play(&mut self, cues: &[BlockCue], input: &[f32], frames: usize) -> Vec<f32> {
        let mut sound = vec![f32::NAN; frames];
        let input: &[&[f32]] = if input.is_empty() { &[] } else { &[input] };
        self.session.process(cues, input, &mut [&mut sound]);
        assert!(sound.iter().all(|sample| sample.abs() <= LOUDEST), "too loud, or no number");
        sound
    }

    /// A note is heard.
    fn assert_alive(&mut self) {
        self.play(&[note_on(0, 60)], &[], 512);
        assert!(peak(&self.play(&[], &[], 20_000)) > 1e-4, "nothing is heard");
        self.play(&[note_off(0, 60)], &[], 512);
    }
}

fn event(offset: usize, kind: EventKind) -> BlockCue {
    BlockCue { offset, action: Action::Play(kind) }
}

fn note_on(offset: usize, key: u8) -> BlockCue {
    event(offset, EventKind::NoteOn { channel: 0, key, velocity: 0.8 })
}

fn note_off(offset: usize, key: u8) -> BlockCue {
    event(offset, EventKind::NoteOff { channel: 0, key, velocity: 0.5 })
}

const DRIVERS: [Driver; 2] = [Driver::Inline, Driver::Worker { latency: Some(1024) }];

#[test]
fn a_host_may_change_its_rate_while_notes_sound() {
    let _alone = alone();
    for driver in DRIVERS {
        let mut player = Instrument::new(untrained_instrument(1), Source::Notes, driver, 48_000);
        for sample_rate in [44_100, 96_000, 8_000, 384_000, 48_000] {
            player.play(&[note_on(5, 60), note_on(9, 64)], &[], 5_000);
            let setup = Setup { sample_rate, max_block: 300 };
            let old = std::mem::replace(&mut player.session, player.remote.activate(setup).expect("a sound setup"));
            assert_eq!(player.remote.status(), Status::Ready);
            let new = player.remote.health().expect("a model plays").latency_samples;
            assert_eq!(player.session.latency_samples(), new);
            // The old one, if anybody asks it, plays what it played.
            let mut old = Instrument { remote: player.remote.clone(), session: old };
            assert!(peak(&old.play(&[], &[], 5_000)) > 1e-4);
            drop(old);
            player.assert_alive();
            let health = player.remote.health().expect("a model plays");
            assert_eq!((health.misses, health.faults, health.cues_lost), (0, 0, 0));
        }
    }
}

#[test]
fn blocks_and_channels_of_any_number_sound_the_same() {
    const LENGTH: usize = 40_000;
    let _alone = alone();
    let notes: Vec<(usize, BlockCue)> = [(100, 60), (7_000, 64), (7_001, 67), (30_000, 55)]
        .iter()
        .flat_map(|&(at, key)| [(at, note_on(0, key)), (at + 9_000, note_off(0, key))])
        .collect();
    let mut notes = notes;
    notes.sort_by_key(|(at, _)| *at);
    let input: Vec<f32> = (0..LENGTH).map(|n| 0.3 * (n as f32 * 0.04).sin()).collect();
    for source in [Source::Notes, Source::Sound] {
        let mut sounds: Vec<(usize, Vec<f32>)> = Vec::new();
        for driver in DRIVERS {
            for seed in 0..3 {
                let mut player = Instrument::new(untrained_instrument(1), source, driver, 48_000);
                let mut random = random(seed);
                let mut sound = Vec::new();
                for frames in random_splits(seed, LENGTH, 8192) {
                    let start = sound.len();
                    let here: Vec<BlockCue> = notes
                        .iter()
                        .filter(|(at, _)| (start..start + frames).contains(at))
                        .map(|(at, cue)| BlockCue { offset: at - start, ..*cue })
                        .collect();
                    // Nobody hears a block of no length, and it changes nothing.
                    player.session.process(&[], &[], &mut [&mut []]);
                    player.session.process(&[], &[&[], &[]], &mut []);
                    let left = &input[start..start + frames];
                    // Of a power of two of equal channels the mix is exactly one of them.
                    let counts = if source == Source::Notes { [0, 2, 6] } else { [1, 2, 4] };
                    let inputs = vec![left; counts[random.random_range(0..3)]];
                    let outs = [1, 2, 6][random.random_range(0..3)];
                    let mut outputs = vec![vec![f32::NAN; frames]; outs];
                    let mut channels: Vec<&mut [f32]> = outputs.iter_mut().map(|output| &mut output[..]).collect();
                    player.session.process(&here, &inputs, &mut channels);
                    assert!(outputs.iter().all(|output| *output == outputs[0]));
                    sound.extend_from_slice(&outputs[0]);
                }
                assert!(sound.iter().all(|sample| sample.abs() <= LOUDEST));
                let latency = player.session.latency_samples();
                let (first_latency, first) = sounds.first().unwrap_or(&(latency, sound.clone())).clone();
                let length = LENGTH - latency.max(first_latency);
                let same = sound[latency..][..length] == first[first_latency..][..length];
                assert!(same, "{source:?}, {driver:?}, blocks {seed}");
                sounds.push((latency, sound));
            }
        }
    }
}

#[test]
fn time_goes_on_for_a_host_that_has_no_output() {
    let _alone = alone();
    let mut player = Instrument::new(untrained_instrument(1), Source::Notes, Driver::Inline, 48_000);
    let input = [0.1; 3_000];
    player.session.process(&[note_on(7, 60)], &[&input], &mut []);
    assert!(peak(&player.play(&[], &[], 9_000)) > 1e-4, "a cue is lost that came when nobody listened");
}

#[test]
fn cues_of_a_block_without_length_happen() {
    let _alone = alone();
    let mut player = Instrument::new(untrained_instrument(1), Source::Notes, Driver::Inline, 48_000);
    player.play(&[], &[], 1_000);
    player.session.process(&[note_on(0, 60)], &[], &mut [&mut []]);
    assert!(peak(&player.play(&[], &[], 9_000)) > 1e-4, "a note-on is lost");
    player.session.process(&[note_off(0, 60)], &[], &mut []);
    let tail = player.session.tail_samples() + player.session.latency_samples();
    player.play(&[], &[], 48_000 + tail);
    assert!(peak(&player.play(&[], &[], 9_000)) < 1e-6, "a note-off is lost");
}

#[test]
fn notes_for_a_model_that_a_sound_plays_hold_nothing_up() {
    let _alone = alone();
    for driver in DRIVERS {
        let mut player = Instrument::new(untrained_instrument(1), Source::Sound, driver, 48_000);
        for _ in 0..8 {
            let notes: Vec<BlockCue> = (0..512).map(|n| note_on(n, 40 + (n % 50) as u8)).collect();
            player.play(&notes, &[], 512);
            player.play(&[], &[], 4_800);
        }
        assert_eq!(player.remote.health().expect("a model plays").cues_lost, 0, "{driver:?}");
    }
}

#[test]
fn cues_for_which_there_is_no_room_are_counted() {
    /// On their way to a worker; of notes in a model; of turns of knobs.
    const MOST_CUES: usize = 2048;
    const MOST_EVENTS: usize = 2560;
    const MOST_TURNS: usize = 1024;
    let _alone = alone();
    for driver in DRIVERS {
        let worker = driver != Driver::Inline;
        let lost = |player: &Instrument| player.remote.health().expect("a model plays").cues_lost;
        let mut player = Instrument::new(untrained_instrument(1), Source::Notes, driver, 48_000);
        let all_at_once: Vec<BlockCue> = (0..256).map(|key| note_on(17, (key % 128) as u8)).collect();
        player.play(&all_at_once, &[], 512);
        player.play(&[], &[], 4_800);
        assert_eq!(lost(&player), 0);
        let thousands: Vec<BlockCue> = (0..5_000).map(|n| note_on(n / 10, 40 + (n % 50) as u8)).collect();
        player.play(&thousands, &[], 512);
        let expected = (5_000 - if worker { MOST_CUES } else { MOST_EVENTS }) as u64;
        // A worker may have taken some meanwhile.
        assert!(lost(&player) <= expected && (worker || lost(&player) == expected), "{} lost", lost(&player));
        player.play(&[], &[], 4_800);
        let before = lost(&player);
        let turns: Vec<BlockCue> = (0..3_000)
            .map(|n| {
                let action = Action::Control { id: ControlId::of("brightness"), value: n as f32 / 1_000.0 };
                BlockCue { offset: n / 8, action }
            })
            .collect();
        player.play(&turns, &[], 512);
        let expected = (3_000 - if worker { MOST_CUES } else { MOST_TURNS }) as u64;
        let now = lost(&player) - before;
        assert!(now <= expected && (worker || now == expected), "{now} lost");
        player.play(&[], &[], 4_800);
        let before = lost(&player);
        player.session.reset();
        player.play(&[], &[], 9_600 + player.session.tail_samples() + player.session.latency_samples());
        assert!(peak(&player.play(&[], &[], 9_600)) < 1e-6, "{driver:?}: something hangs");
        player.assert_alive();
        assert_eq!(lost(&player), before);
        assert_eq!(player.remote.health().expect("a model plays").faults, 0);
    }
}

/// Anything that a confused host might say.
fn nonsense(random: &mut impl RngExt) -> BlockCue {
    let numbers = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 1e-40, -1.0, 0.0, 0.5, 1.0, 2.0];
    let offsets = [0, 1, 100, 511, 512, 10_000, usize::MAX];
    let offset = offsets[random.random_range(0..offsets.len())];
    let value = numbers[random.random_range(0..numbers.len())];
    let (channel, key) = (random.random_range(0..=255), random.random_range(0..=255));
    let mut names =
        vec!["room", "brightness", "attack", "release", "vibrato_rate", "vibrato_depth", "tempo", "position", "?", ""];
    names.extend(PLAYING_CONTROLS.iter().map(|control| control.name));
    let action = match random.random_range(0..12) {
        0 | 1 => Action::Play(EventKind::NoteOn { channel, key, velocity: value }),
        2 => Action::Play(EventKind::NoteOff { channel, key, velocity: value }),
        3 => Action::Play(EventKind::Bend { channel, semitones: value }),
        4 => Action::Play(EventKind::Pressure { channel, value }),
        5 => Action::Play(EventKind::PolyPressure { channel, key, value }),
        6 => Action::Play(EventKind::Controller { channel, number: random.random_range(0..=255), value }),
        7 => {
            use NoteExpression::{Expression, Level, Timbre, Tuning, Vibrato};
            let expressions = [Tuning, Level, Timbre, Vibrato, Expression];
            let expression = expressions[random.random_range(0..5)](value);
            Action::Play(EventKind::Note { channel, key, expression })
        }
        8 => Action::Play(EventKind::Zone { manager: channel, members: key }),
        9 => Action::Control { id: ControlId::of(names[random.random_range(0..names.len())]), value },
        _ => {
            let positions = [f64::NAN, f64::INFINITY, f64::MAX, -1e300, -3.5, 0.0, 1e9];
            let position = positions[random.random_range(0..positions.len())];
            Action::Transport(Transport { tempo: value, position, playing: random.random() })
        }
    };
    BlockCue { offset, action }
}

#[test]
fn a_confused_host_breaks_nothing() {
    let _alone = alone();
    for source in [Source::Notes, Source::Sound] {
        for driver in DRIVERS {
            for model in [untrained_instrument(1), song_meter()] {
                let mut player = Instrument::new(model, source, driver, 44_100);
                let mut random = random(11);
                for _ in 0..150 {
                    let cues: Vec<BlockCue> = (0..random.random_range(0..30)).map(|_| nonsense(&mut random)).collect();
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
                    player.play(&cues, &input, frames);
                }
                let health = player.remote.health().expect("a model plays");
                assert_eq!(player.remote.status(), Status::Ready);
                assert_eq!((health.misses, health.cues_lost), (0, 0));
                if source == Source::Notes {
                    assert_eq!(health.faults, 0, "{driver:?}");
                    player.session.reset();
                    let controls = ["room", "brightness", "attack", "release"].map(|name| BlockCue {
                        offset: 0,
                        action: Action::Control { id: ControlId::of(name), value: 5.0 },
                    });
                    let transport = Transport { tempo: 120.0, position: 0.0, playing: true };
                    let no_zone = |manager| event(0, EventKind::Zone { manager, members: 0 });
                    let mut calm = vec![no_zone(0), no_zone(15)];
                    calm.extend(controls);
                    calm.push(BlockCue { offset: 0, action: Action::Transport(transport) });
                    player.play(&calm, &[], 48_000);
                    player.assert_alive();
                }
            }
        }
    }
}

#[test]
fn what_is_no_number_in_the_input_counts_as_silence() {
    let _alone = alone();
    let mut random = random(5);
    let clean: Vec<f32> = (0..30_000).map(|n| 0.3 * (n as f32 * 0.04).sin()).collect();
    let holes: Vec<bool> = clean.iter().map(|_| random.random_bool(0.01)).collect();
    let with = |hole: f32| -> Vec<f32> {
        clean.iter().zip(&holes).map(|(sample, is_hole)| if *is_hole { hole } else { *sample }).collect()
    };
    for driver in DRIVERS {
        let sounds = [0.0, f32::NAN, f32::INFINITY].map(|hole| {
            let mut player = Instrument::new(untrained_instrument(1), Source::Sound, driver, 48_000);
            let sound: Vec<f32> =
                with(hole).chunks(512).flat_map(|input| player.play(&[], input, input.len())).collect();
            assert_eq!(player.remote.health().expect("a model plays").faults, 0);
            sound
        });
        assert!(peak(&sounds[0]) > 1e-4);
        assert!(sounds[0] == sounds[1] && sounds[0] == sounds[2]);
    }
}

#[test]
fn a_session_can_be_reset_at_any_point() {
    let _alone = alone();
    for driver in DRIVERS {
        let mut random = random(9);
        let mut player = Instrument::new(untrained_instrument(1), Source::Notes, driver, 48_000);
        player.session.reset();
        for round in 0..12 {
            let keys: Vec<BlockCue> =
                (0..random.random_range(1..8)).map(|n| note_on(n * 50, 50 + 3 * n as u8)).collect();
            let pedal = EventKind::Controller { channel: 0, number: controller::SUSTAIN, value: 1.0 };
            player.play(&[event(0, pedal)], &[], 64);
            player.play(&keys, &[], 512);
            let played = random.random_range(0..12_000);
            let sound = player.play(&[], &[], played);
            assert!(played < 5_000 || peak(&sound) > 1e-4, "round {round}: nothing is heard");
            if round % 3 == 0 {
                player.session.reset();
            }
            player.session.reset();
            // Notes that are cut off fade in 5 ms, which a frame or two may prolong.
            let fade = 480 + 2 * HOP;
            player.play(&[], &[], fade + player.session.tail_samples() + player.session.latency_samples());
            let silence = player.play(&[], &[], 4_800);
            assert!(peak(&silence) < 1e-6, "{driver:?}, round {round}: {} is left", peak(&silence));
        }
        player.assert_alive();
    }
}

/// An instrument whose sound is `0.5 · tempo / 1000 + position / 100`, held for a hop, under the gain of the note.
fn song_meter() -> Model {
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
        inputs: ["pitch", "loudness", "tempo", "position"].map(|name| port(name, 1, HOP)).to_vec(),
        outputs: vec![port("audio", 1, 1)],
        nodes: vec![
            node("unheard_pitch", &["pitch"], Op::Affine { scale: 0.0, offset: 0.0 }),
            node("unheard_loudness", &["loudness"], Op::Affine { scale: 0.0, offset: 0.0 }),
            node("beat", &["tempo"], Op::Affine { scale: 0.5e-3, offset: 0.0 }),
            node("place", &["position"], Op::Affine { scale: 1e-2, offset: 0.0 }),
            node("sum", &["unheard_pitch", "unheard_loudness", "beat", "place"], Op::Add),
            node("audio", &["sum"], Op::ConvTranspose1d { outputs: 1, kernel: HOP, stride: HOP }),
        ],
    }];
    let mut weights = random_weights(&methods, 1);
    weights.insert("audio.weight", Tensor::new(&[1, 1, HOP], vec![1.0; HOP]));
    weights.insert("audio.bias", Tensor::new(&[1], vec![0.0]));
    let mut header = header(Kind::Instrument, methods);
    header.controls.extend([control("tempo", 1_000.0), control("position", 1e6)]);
    Model::new(header, weights).expect("it fits")
}

/// An effect that lets everything through, and is loud beyond all numbers 4,800 samples after its input was above 0.1.
fn overflowing() -> Model {
    let methods = vec![method(
        "forward",
        BLOCK,
        vec![port("in", 1, 1)],
        vec![
            node("past", &["in"], Op::Conv1d { outputs: 1, kernel: 2, stride: 1, dilation: 4_800, groups: 1 }),
            node("above", &["past"], Op::Affine { scale: 1.0, offset: -0.1 }),
            node("positive", &["above"], Op::Relu),
            node("loud", &["positive"], Op::Affine { scale: 1e30, offset: 0.0 }),
            node("louder", &["loud"], Op::Affine { scale: 1e30, offset: 0.0 }),
            node("out", &["louder", "in"], Op::Add),
        ],
    )];
    let mut weights = random_weights(&methods, 1);
    weights.insert("past.weight", Tensor::new(&[1, 1, 2], vec![1.0, 0.0]));
    weights.insert("past.bias", Tensor::new(&[1], vec![0.0]));
    Model::new(header(Kind::Effect, methods), weights).expect("it fits")
}

#[test]
fn an_effect_that_overflows_falls_silent_and_begins_anew() {
    let _alone = alone();
    let quiet = Wave { frequency: 0.0041, peak: 0.05 };
    for driver in [Driver::Inline, WORKER] {
        let patch = Patch::new(Arc::new(overflowing()), PipelineOptions::default()).expect("it plays");
        let mut host = Host::new(patch, driver, BLOCK);
        let latency = host.session.latency_samples();
        host.input = Some(quiet);
        host.play(40);
        assert_eq!(host.health().faults, 0);
        // What is loud breaks it 20 blocks later, and by beginning anew it forgets the rest.
        host.input = Some(Wave { peak: 0.5, ..quiet });
        host.play(21);
        host.input = Some(quiet);
        host.play(60);
        let health = host.health();
        assert!((1..4).contains(&health.faults), "{driver:?}: {health:?}");
        let now = host.heard.len();
        let expected = |number: usize| quiet.at((number - latency) as u64);
        assert!((now - 20 * BLOCK..now).all(|number| host.heard[number] == expected(number)), "{driver:?}");
        assert!(peak(&host.heard) <= 0.5, "{driver:?}: {}", peak(&host.heard));
    }
}

#[test]
fn tempo_and_position_reach_the_model_at_their_sample() {
    const LENGTH: usize = 60_000;
    let _alone = alone();
    let play = |driver: Driver, transports: &[(usize, Transport)], blocks: &[usize]| {
        let mut player = Instrument::new(song_meter(), Source::Notes, driver, SAMPLE_RATE);
        let mut sound: Vec<f32> = Vec::new();
        for &frames in blocks {
            let start = sound.len();
            let here = (start..start + frames).contains(&0).then(|| note_on(0, 60));
            let told = transports.iter().filter(|(at, _)| (start..start + frames).contains(at));
            let told = told.map(|&(at, song)| BlockCue { offset: at - start, action: Action::Transport(song) });
            let cues: Vec<BlockCue> = here.into_iter().chain(told).collect();
            sound.extend(player.play(&cues, &[], frames));
        }
        let latency = player.session.latency_samples();
        sound.split_off(latency)
    };
    let song = |tempo: f32, position: f64, playing: bool| Transport { tempo, position, playing };
    // The gain of the note, by a song that stands still.
    let still = play(Driver::Inline, &[(0, song(0.0, 100.0, false))], &[LENGTH]);
    let transports = [
        (0, song(120.0, 0.0, true)),
        (9_601, song(120.0, 64.5, true)),
        (14_399, song(90.0, -2.0, true)),
        (20_000, song(90.0, 7.0, false)),
        // No song at all: the model keeps the tempo.
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
                let &(since, song) = transports.iter().rfind(|(since, _)| *since <= at).expect("from the start");
                if song.tempo.is_nan() {
                    continue;
                }
                let seconds = (at - since) as f64 / f64::from(SAMPLE_RATE);
                let moved = if song.playing { seconds * f64::from(song.tempo) / 60.0 } else { 0.0 };
                let expected = 0.5e-3 * song.tempo + 1e-2 * (song.position + moved) as f32;
                for (sound, still) in sound.iter().zip(still) {
                    let (sound, gain) = (*sound, *still);
                    assert!((sound - gain * expected).abs() < 1e-4, "{driver:?}, frame {frame}: {sound}");
                }
            }
            let loudest = still.iter().copied().fold(0.0, f32::max);
            assert!(loudest > 0.1, "the note is heard: {loudest}");
        }
    }
}
