//! Nothing on the audio thread takes or gives back memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ondes_engine::Kernels;
use ondes_engine::chain::{Chain, Placement, Settings};
use ondes_engine::dsp::cabinet::{Cabinet, Response};
use ondes_engine::model::file;
use ondes_engine::pipeline::{Pipeline, PipelineOptions, Source};
use ondes_engine::realtime::{Driver, Maker, Patch, Remote, Setup, gate};
use ondes_tests::through::{sound, untrained_codec, untrained_effect};
use ondes_tests::traffic::{Habit, Marked, Player, Poor, swap};
use ondes_tests::{bundled_models, in_bytes, random_events, random_splits, untrained_instrument};

thread_local! {
    /// Whether this thread must not allocate now, besides while it is in an audio callback, and how often it did all the same.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    static BROKEN: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, which counts what guarded threads do.
struct Guard;

impl Guard {
    fn note() {
        if GUARDED.get() || gate::is_inside() {
            BROKEN.set(BROKEN.get() + 1);
        }
    }
}

// SAFETY: every call is handed on to the system's allocator as it came; counting touches thread-local cells only, which are
// initialised at compile time and have no destructor, so that counting itself never allocates.
unsafe impl GlobalAlloc for Guard {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::note();
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Self::note();
        // SAFETY: as above; the pointer came from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::note();
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Guard = Guard;

/// How often `work` allocates or frees.
fn allocations(work: impl FnOnce()) -> usize {
    BROKEN.set(0);
    GUARDED.set(true);
    work();
    GUARDED.set(false);
    BROKEN.get()
}

#[test]
fn the_guard_sees_allocations() {
    assert!(allocations(|| drop(std::hint::black_box(vec![1_u8; 100]))) >= 2);
}

#[test]
fn playing_does_not_allocate() {
    let on_bytes = in_bytes(&file::read(&bundled_models()[0]).expect("bundled models are whole"));
    let on_floats = untrained_instrument(1);
    for (model, source) in [(&on_floats, Source::Notes), (&on_floats, Source::Sound), (&on_bytes, Source::Notes)] {
        // 44,099 Hz takes blocks of two seconds.
        for sample_rate in [44_099, 44_100, 48_000, 96_000] {
            let options = PipelineOptions { sample_rate, source, ..PipelineOptions::default() };
            let mut pipeline = Pipeline::new(model, &options).expect("it plays");
            let length = 100_000;
            let events = random_events(4, length as u64);
            let input: Vec<f32> = (0..length).map(|n| 0.3 * (n as f32 * 0.03).sin()).collect();
            let mut output = vec![0.0; length];
            let blocks = random_splits(5, length, 8192);
            let count = allocations(|| {
                let mut start = 0;
                let mut events = events.iter().peekable();
                for &block in &blocks {
                    while let Some(event) = events.next_if(|event| event.at < (start + block) as u64) {
                        assert!(pipeline.handle(*event).is_ok());
                    }
                    assert!(pipeline.set_control("room", 0.5).is_ok());
                    pipeline.process(&input[start..start + block], &mut output[start..start + block]);
                    start += block;
                }
            });
            assert_eq!(count, 0, "{source:?} at {sample_rate} Hz");
        }
    }
}

#[test]
fn sound_goes_through_without_allocations() {
    for (model, knob) in [(untrained_effect(1), "drive"), (untrained_codec(1), "latent2.hold")] {
        // 44,099 Hz takes blocks of two seconds.
        for sample_rate in [44_099, 44_100, 48_000, 96_000, 384_000] {
            let length = if sample_rate == 44_099 { 400_000 } else { 60_000 };
            let options = PipelineOptions { sample_rate, ..PipelineOptions::default() };
            let mut pipeline = Pipeline::new(&model, &options).expect("it plays");
            let input = sound(length, sample_rate);
            let mut output = vec![0.0; length];
            let blocks = random_splits(5, length, 8192);
            let count = allocations(|| {
                let mut start = 0;
                for (index, &block) in blocks.iter().enumerate() {
                    assert!(pipeline.set_control(knob, (index % 2) as f32).is_ok());
                    pipeline.process(&input[start..start + block], &mut output[start..start + block]);
                    start += block;
                }
            });
            assert_eq!(count, 0, "{knob} at {sample_rate} Hz");
            assert!(output.iter().any(|sample| sample.abs() > 1e-3), "{knob} at {sample_rate} Hz: nothing sounds");
        }
    }
}

#[test]
fn what_stands_around_an_oversampled_model_does_not_allocate() {
    const RATE: u32 = 48_000;
    let cabinet = |frames: usize| {
        let taps = (0..frames).map(|n| (-6.0 * n as f32 / frames as f32).exp() * (n as f32 * 0.7).cos());
        let response = Response::new(vec![taps.collect()], RATE).expect("a response");
        Box::new(Cabinet::new(&response, RATE, Kernels::detect()).expect("its own rate"))
    };
    let options = PipelineOptions { oversampling: 4, ..PipelineOptions::default() };
    let mut pipeline = Pipeline::new(&untrained_effect(1), &options).expect("it plays");
    let mut chain = Chain::new(RATE, 8192);
    let input = sound(120_000, RATE);
    let (mut left, mut right) = (input.clone(), input.clone());
    let mut heard = vec![0.0; 8192];
    let mut next = vec![cabinet(90_000), cabinet(300), Box::default()];
    let mut left_behind = Vec::with_capacity(next.len());
    let blocks = random_splits(5, input.len(), 8192);
    let count = allocations(|| {
        let mut start = 0;
        for (index, &block) in blocks.iter().enumerate() {
            let on = index / 8 % 2 == 0;
            let placement = if on { Placement::Before } else { Placement::After };
            let tone = if on { [6.0, -3.0, 12.0] } else { [0.0; 3] };
            let gains_db = if on { [6.0, -6.0] } else { [0.0; 2] };
            let gate_db = on.then_some(-50.0);
            chain.set(&Settings { gate_db, tone, placement, block_dc: on, cabinet: 0.9, gains_db });
            let place = chain.cabinet();
            left_behind.extend(place.leave());
            if place.is_free()
                && let Some(cabinet) = next.pop()
            {
                assert!(place.change(cabinet).is_ok());
            }
            let (left, right) = (&mut left[start..start + block], &mut right[start..start + block]);
            chain.before(&mut [left, right]);
            pipeline.process(left, &mut heard[..block]);
            left.copy_from_slice(&heard[..block]);
            chain.after(left, right);
            start += block;
        }
    });
    assert_eq!((count, next.len()), (0, 0));
    assert!(left.iter().all(|sample| sample.is_finite()) && left.iter().any(|sample| sample.abs() > 1e-3));
}

#[test]
fn resting_and_waking_do_not_allocate() {
    let wind = bundled_models().swap_remove(1);
    let model = file::read(&wind).expect("bundled models are whole");
    let options = PipelineOptions { source: Source::Sound, ..PipelineOptions::default() };
    let mut pipeline = Pipeline::new(&model, &options).expect("it plays");
    let input: Vec<f32> = (0..9_600).map(|n| 0.3 * (n as f32 * 0.03).sin()).collect();
    let mut output = [0.0; 480];
    let mut sounding = [0; 3];
    let count = allocations(|| {
        for (part, sounding) in sounding.iter_mut().enumerate() {
            for block in 0..300 {
                let from = block * 480 % 9_600;
                let input: &[f32] = if part == 1 { &[] } else { &input[from..from + 480] };
                pipeline.process(input, &mut output);
            }
            *sounding = pipeline.sounding();
        }
    });
    assert_eq!((count, sounding), (0, [1, 0, 1]));
}

/// Says when it is enough.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Plays a session on a thread of its own, twice as fast as it sounds, while `meanwhile` does what it likes to it. Gives how
/// often its callbacks allocated or freed.
fn allocations_while(remote: &Remote, setup: Setup, meanwhile: impl FnOnce()) -> usize {
    let session = remote.activate(setup).expect("a sound setup");
    let enough = AtomicBool::new(false);
    let speed = 2.0 * f64::from(setup.sample_rate);
    std::thread::scope(|scope| {
        let audio = scope.spawn(|| {
            // Some blocks are too long for one piece.
            let mut player = Player::new(session, 7, 3 * setup.max_block);
            let begun = Instant::now();
            let mut heard = false;
            while !enough.load(Ordering::Relaxed) {
                heard |= player.play();
                let due = Duration::from_secs_f64(player.position() as f64 / speed);
                std::thread::sleep(due.saturating_sub(begun.elapsed()));
            }
            (BROKEN.get(), heard)
        });
        // Where this panics, the player ends all the same.
        let stop = Stop(&enough);
        meanwhile();
        drop(stop);
        let (broken, heard) = audio.join().expect("the player plays to its end");
        assert!(heard, "a silent session shows nothing");
        broken
    })
}

#[test]
fn sessions_do_not_allocate_while_models_come_and_go() {
    let bundled = bundled_models().into_iter().map(|path| file::read(&path).expect("bundled models are whole"));
    let models: Vec<_> = [untrained_instrument(1), untrained_effect(2), untrained_codec(3)]
        .into_iter()
        .chain(bundled)
        .map(Arc::new)
        .collect();
    for (sample_rate, source, max_block) in [
        (48_000, Source::Notes, 256),
        (44_100, Source::Sound, 64),
        (96_000, Source::Notes, 1024),
        (22_050, Source::Sound, 500),
    ] {
        let options = PipelineOptions { source, voices: Some(4), ..Default::default() };
        let makers = models.iter().map(|model| Patch::new(model.clone(), options).expect("it plays"));
        let makers: Vec<Arc<dyn Maker>> = makers.map(|patch| Arc::new(Marked(patch)) as Arc<dyn Maker>).collect();
        let remote = Remote::new();
        let broken = allocations_while(&remote, Setup { sample_rate, max_block }, || {
            swap(&remote, &makers, 0..6);
            // A host that waits for the worker, and one that plays nothing any more.
            remote.set_patient(true);
            swap(&remote, &makers, 6..7);
            remote.unload();
            std::thread::sleep(Duration::from_millis(300));
        });
        assert_eq!(broken, 0, "{source:?} at {sample_rate} Hz");
    }
}

/// How often callbacks allocate or free in a second of a model with that habit, and how often it made no sound.
fn allocations_of(habit: Habit, driver: Driver) -> (usize, u64) {
    let remote = Remote::new();
    remote.set_driver(driver);
    let broken = allocations_while(&remote, Setup { sample_rate: 48_000, max_block: 256 }, || {
        remote.load(Box::new(move || Ok(Arc::new(Poor(habit)))), &[]);
        std::thread::sleep(Duration::from_secs(1));
    });
    let health = remote.health().expect("a model plays");
    assert!(health.steps.count > 20, "{health:?}");
    (broken, health.faults)
}

#[test]
fn a_model_that_allocates_in_a_callback_is_seen() {
    let allocates: Habit = |turn| drop(std::hint::black_box(vec![0_u8; turn.output.len()]));
    assert!(allocations_of(allocates, Driver::Inline).0 >= 40);
    // There it does no harm.
    assert_eq!(allocations_of(allocates, Driver::Worker { latency: None }), (0, 0));
}

#[test]
fn what_is_no_sound_is_dealt_with_without_allocations() {
    let raves: Habit = |turn| turn.output[0] = if turn.output.len().is_multiple_of(31) { f32::NAN } else { 0.2 };
    for driver in [Driver::Inline, Driver::Worker { latency: None }] {
        let (broken, faults) = allocations_of(raves, driver);
        assert!(broken == 0 && faults > 0, "{driver:?}: {broken} allocations, {faults} faults");
    }
}
