//! Fake models controlled by a test, and a host that plays them block by block.

use std::f64::consts::TAU;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once};
use std::time::{Duration, Instant};

use ondes_engine::pipeline::{
    Action, CommandQueueFull, InputAnalysis, InputChannels, Playable, ProcessRequest, SessionStart,
    TimedCommand,
};
use ondes_engine::realtime::{
    BlockCommand, Driver, Health, LoadError, LoadStatus, ModelFactory, Session, SessionController,
    Setup,
};
use ondes_engine::sync::{lock, recover};

use crate::SAMPLE_RATE;

/// Message of a panic caused by a test; [`silence_injected_panics`] keeps it out of the log.
pub const INJECTED_PANIC: &str = "injected by a test";
/// Time limit for anything that a test waits for, generous enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest pause of a host between blocks while a model loads. The loader queries the audio thread
/// several times, and treats one that does not answer for much longer as stopped.
const PAUSE: Duration = Duration::from_millis(3);

/// Sine as a function of the sample number, so that any part of it can be computed anywhere.
#[derive(Clone, Copy, Debug)]
pub struct Wave {
    /// Cycles per sample.
    pub frequency: f64,
    /// Amplitude.
    pub peak: f32,
}

impl Wave {
    /// Returns the sample with that number.
    #[must_use]
    pub fn at(self, number: u64) -> f32 {
        self.peak * (TAU * (self.frequency * number as f64).fract()).sin() as f32
    }

    /// Returns an upper bound of the step from one sample to the next.
    #[must_use]
    pub fn steepest(self) -> f32 {
        self.peak * (TAU * self.frequency) as f32
    }
}

type OnBuild = dyn Fn() + Send + Sync;
type OnOpen = dyn Fn(&SessionStart) + Send + Sync;
type OnCommand = dyn Fn(&TimedCommand) -> bool + Send + Sync;
type OnOutput = dyn Fn(u64, &mut [f32]) + Send + Sync;

/// Model that plays a [`Wave`] regardless of its input. Callbacks inject faults.
pub struct FakeModel {
    script: Arc<Script>,
    name: Option<String>,
    live: Arc<AtomicUsize>,
}

struct Script {
    wave: Wave,
    latency: usize,
    start: SessionStart,
    on_build: Box<OnBuild>,
    on_open: Box<OnOpen>,
    on_command: Box<OnCommand>,
    on_output: Box<OnOutput>,
}

impl FakeModel {
    /// Creates a model without faults.
    #[must_use]
    pub fn new(wave: Wave) -> Self {
        let script = Script {
            wave,
            latency: 0,
            start: SessionStart::default(),
            on_build: Box::new(|| {}),
            on_open: Box::new(|_| {}),
            on_command: Box::new(|_| true),
            on_output: Box::new(|_, _| {}),
        };
        Self {
            script: Arc::new(script),
            name: None,
            live: Arc::default(),
        }
    }

    fn change(mut self, change: impl FnOnce(&mut Script)) -> Self {
        change(Arc::get_mut(&mut self.script).expect("no instance exists yet"));
        self
    }

    /// Sets the latency that it reports and has, in samples.
    #[must_use]
    pub fn with_latency(self, latency: usize) -> Self {
        self.change(|script| script.latency = latency)
    }

    /// Sets the seed and transposition that it starts with.
    #[must_use]
    pub fn with_start(self, start: SessionStart) -> Self {
        self.change(|script| script.start = start)
    }

    /// Sets the name; models of one name share a playable.
    #[must_use]
    pub fn with_name(self, name: &str) -> Self {
        Self {
            name: Some(name.into()),
            ..self
        }
    }

    /// Counts the existing playables in `live`.
    #[must_use]
    pub fn with_instance_count(self, live: &Arc<AtomicUsize>) -> Self {
        Self {
            live: live.clone(),
            ..self
        }
    }

    /// Calls `work` whenever it is built.
    #[must_use]
    pub fn on_build(self, work: impl Fn() + Send + Sync + 'static) -> Self {
        self.change(|script| script.on_build = Box::new(work))
    }

    /// Calls `work` whenever a slot is opened.
    #[must_use]
    pub fn on_open(self, work: impl Fn(&SessionStart) + Send + Sync + 'static) -> Self {
        self.change(|script| script.on_open = Box::new(work))
    }

    /// Calls `work` for every command; it returns whether the queue has room.
    #[must_use]
    pub fn on_command(self, work: impl Fn(&TimedCommand) -> bool + Send + Sync + 'static) -> Self {
        self.change(|script| script.on_command = Box::new(work))
    }

    /// Calls `work` on every output block, with the number of its first sample.
    #[must_use]
    pub fn on_output(self, work: impl Fn(u64, &mut [f32]) + Send + Sync + 'static) -> Self {
        self.change(|script| script.on_output = Box::new(work))
    }
}

impl ModelFactory for FakeModel {
    fn build(&self, _sample_rate: u32, sessions: usize) -> Result<Box<dyn Playable>, LoadError> {
        (self.script.on_build)();
        self.live.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(Player {
            script: self.script.clone(),
            positions: vec![0; sessions],
            live: self.live.clone(),
        }))
    }

    fn sharing_key(&self) -> Option<String> {
        self.name.clone()
    }

    fn uses_audio_input(&self) -> bool {
        false
    }

    fn start(&self) -> SessionStart {
        self.script.start
    }

    fn worst_case_load(&self) -> Vec<Action> {
        Vec::new()
    }
}

struct Player {
    script: Arc<Script>,
    /// Number of the next sample, by slot.
    positions: Vec<u64>,
    live: Arc<AtomicUsize>,
}

impl Drop for Player {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Playable for Player {
    fn capacity(&self) -> usize {
        self.positions.len()
    }

    fn latency_samples(&self) -> usize {
        self.script.latency
    }

    fn tail_samples(&self) -> usize {
        0
    }

    fn open(&mut self, slot: usize, start: &SessionStart) {
        self.positions[slot] = start.at;
        (self.script.on_open)(start);
    }

    fn handle(&mut self, _seat: usize, command: TimedCommand) -> Result<(), CommandQueueFull> {
        if (self.script.on_command)(&command) {
            Ok(())
        } else {
            Err(CommandQueueFull(command))
        }
    }

    fn process(&mut self, turns: &mut [ProcessRequest<'_>]) {
        let Script {
            wave,
            latency,
            on_output,
            ..
        } = &*self.script;
        for turn in turns {
            let from = self.positions[turn.slot];
            for (number, sample) in (from..).zip(&mut *turn.output[0]) {
                *sample = number
                    .checked_sub(*latency as u64)
                    .map_or(0.0, |number| wave.at(number));
            }
            on_output(from, turn.output[0]);
            self.positions[turn.slot] += turn.samples() as u64;
        }
    }
}

/// Wraps a model and counts its playables.
pub struct CountedModel {
    factory: Arc<dyn ModelFactory>,
    live: Arc<AtomicUsize>,
}

impl CountedModel {
    /// Counts the existing playables in `live`.
    #[must_use]
    pub fn new(factory: Arc<dyn ModelFactory>, live: &Arc<AtomicUsize>) -> Self {
        Self {
            factory,
            live: live.clone(),
        }
    }
}

impl ModelFactory for CountedModel {
    fn build(&self, sample_rate: u32, sessions: usize) -> Result<Box<dyn Playable>, LoadError> {
        let playable = self.factory.build(sample_rate, sessions)?;
        self.live.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(CountedPlayable {
            playable,
            live: self.live.clone(),
        }))
    }

    fn sharing_key(&self) -> Option<String> {
        self.factory.sharing_key()
    }

    fn uses_audio_input(&self) -> bool {
        self.factory.uses_audio_input()
    }

    fn channels(&self) -> InputChannels {
        self.factory.channels()
    }

    fn start(&self) -> SessionStart {
        self.factory.start()
    }

    fn worst_case_load(&self) -> Vec<Action> {
        self.factory.worst_case_load()
    }
}

struct CountedPlayable {
    playable: Box<dyn Playable>,
    live: Arc<AtomicUsize>,
}

impl Drop for CountedPlayable {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Playable for CountedPlayable {
    fn capacity(&self) -> usize {
        self.playable.capacity()
    }

    fn channels(&self) -> usize {
        self.playable.channels()
    }

    fn latency_samples(&self) -> usize {
        self.playable.latency_samples()
    }

    fn tail_samples(&self) -> usize {
        self.playable.tail_samples()
    }

    fn open(&mut self, slot: usize, start: &SessionStart) {
        self.playable.open(slot, start);
    }

    fn handle(&mut self, slot: usize, command: TimedCommand) -> Result<(), CommandQueueFull> {
        self.playable.handle(slot, command)
    }

    fn input_analysis(&self, slot: usize) -> Option<InputAnalysis> {
        self.playable.input_analysis(slot)
    }

    fn latents(&self, slot: usize) -> &[f32] {
        self.playable.latents(slot)
    }

    fn process(&mut self, turns: &mut [ProcessRequest<'_>]) {
        self.playable.process(turns);
    }
}

/// Gate at which a fake model waits until the test opens it; open at first.
#[derive(Default)]
pub struct Gate {
    state: Mutex<GateState>,
    opened: Condvar,
}

#[derive(Default)]
struct GateState {
    closed: bool,
    waiting: usize,
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, GateState> {
        lock(&self.state)
    }

    /// Closes the gate.
    pub fn close(&self) {
        self.state().closed = true;
    }

    /// Opens the gate and wakes all waiting threads.
    pub fn open(&self) {
        self.state().closed = false;
        self.opened.notify_all();
    }

    /// Waits until the gate is open.
    ///
    /// # Panics
    /// If it is not opened within the time limit, so that a failed test does not block others.
    pub fn pass(&self) {
        let mut state = self.state();
        state.waiting += 1;
        let waited = self
            .opened
            .wait_timeout_while(state, PATIENCE, |state| state.closed);
        let (mut state, outcome) = recover(waited);
        state.waiting -= 1;
        drop(state);
        assert!(!outcome.timed_out(), "the gate was not opened in time");
    }

    /// Returns `true` if the gate is closed and a thread waits.
    #[must_use]
    pub fn has_waiter(&self) -> bool {
        let state = self.state();
        state.closed && state.waiting > 0
    }

    /// Waits until a thread waits at the gate.
    pub fn wait_for_waiter(&self) {
        wait_until("a thread waits at the gate", || self.has_waiter());
    }
}

/// Waits until `happened` returns `true`.
///
/// # Panics
/// If it does not within the time limit.
pub fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !happened() {
        assert!(begun.elapsed() < PATIENCE, "timed out waiting until {what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Keeps panics caused by tests out of the log.
pub fn silence_injected_panics() {
    static HUSHED: Once = Once::new();
    HUSHED.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if info.payload_as_str() != Some(INJECTED_PANIC) {
                hook(info);
            }
        }));
    });
}

/// Gives a remote a model to load.
pub fn load(controller: &SessionController, factory: impl ModelFactory + 'static) {
    controller.load(Box::new(move || Ok(Arc::new(factory))), &[]);
}

/// Host with one non-real-time session, which plays mono blocks of one length and records the
/// output.
pub struct Host {
    /// Controller half of the session.
    pub controller: SessionController,
    /// Audio-thread half of the session.
    pub session: Session,
    /// Output so far.
    pub output: Vec<f32>,
    /// Input of the model.
    pub input: Option<Wave>,
    block: usize,
}

impl Host {
    /// Loads a model; plays it in blocks of `block` samples at 48 kHz.
    ///
    /// # Panics
    /// If the model cannot be played.
    #[must_use]
    pub fn new(factory: impl ModelFactory + 'static, driver: Driver, block: usize) -> Self {
        let controller = SessionController::new();
        controller.set_driver(driver);
        controller.set_non_realtime(true);
        load(&controller, factory);
        wait_until("the model is loaded", || {
            controller.status() != LoadStatus::Loading
        });
        assert_eq!(controller.status(), LoadStatus::Ready);
        let setup = Setup {
            sample_rate: SAMPLE_RATE,
            max_block: block,
        };
        let session = controller.activate(setup).expect("a valid setup");
        assert_eq!(controller.status(), LoadStatus::Ready);
        Self {
            controller,
            session,
            output: Vec::new(),
            input: None,
            block,
        }
    }

    /// Returns the number of samples played so far.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.output.len() as u64
    }

    /// Plays one block with `commands`.
    ///
    /// # Panics
    /// If the output is too loud or not finite.
    pub fn process(&mut self, commands: &[BlockCommand]) {
        let start = self.output.len();
        self.output.resize(start + self.block, f32::NAN);
        let input: Vec<f32> = self
            .input
            .iter()
            .flat_map(|wave| {
                (start as u64..)
                    .take(self.block)
                    .map(|number| wave.at(number))
            })
            .collect();
        let inputs: &[&[f32]] = if input.is_empty() { &[] } else { &[&input] };
        self.session
            .process(commands, inputs, &mut [&mut self.output[start..]]);
        assert!(
            self.output[start..]
                .iter()
                .all(|sample| sample.abs() <= LOUDEST),
            "too loud or not finite"
        );
    }

    /// Plays `blocks` blocks.
    pub fn play(&mut self, blocks: usize) {
        (0..blocks).for_each(|_| self.process(&[]));
    }

    /// Plays until `happened` returns `true`. Returns the number of blocks.
    ///
    /// # Panics
    /// If it does not within the time limit.
    pub fn play_until(&mut self, what: &str, mut happened: impl FnMut(&Self) -> bool) -> usize {
        let begun = Instant::now();
        let mut blocks = 0;
        while !happened(self) {
            assert!(begun.elapsed() < PATIENCE, "timed out waiting until {what}");
            self.play(1);
            self.pause();
            blocks += 1;
        }
        blocks
    }

    /// Pauses while a model loads, to give the loader time.
    pub fn pause(&self) {
        let begun = Instant::now();
        while self.controller.status() == LoadStatus::Loading && begun.elapsed() < PAUSE {
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Plays until a requested model, or the same model with another driver, has taken over.
    pub fn play_until_swapped(&mut self) {
        self.play_until("the model is loaded", |host| {
            host.controller.status() != LoadStatus::Loading
        });
        assert_eq!(self.controller.status(), LoadStatus::Ready);
        // It is adopted with the next block, catches up, and is faded in.
        let fade = (SAMPLE_RATE / 10) as usize;
        self.play(fade.div_ceil(self.block));
    }

    /// Loads a model and plays until it has taken over.
    pub fn swap(&mut self, factory: impl ModelFactory + 'static) {
        load(&self.controller, factory);
        self.play_until_swapped();
    }

    /// Returns the session's health.
    ///
    /// # Panics
    /// If no model plays.
    #[must_use]
    pub fn health(&self) -> Health {
        self.controller.health().expect("a model plays")
    }
}

/// Output limit, +24 dBFS.
pub const LOUDEST: f32 = 16.0;

pub use ondes_engine::dsp::level::peak;

/// Returns the largest step from one sample to the next, starting from silence.
#[must_use]
pub fn steepest(samples: &[f32]) -> f32 {
    let first = samples.first().map_or(0.0, |sample| sample.abs());
    samples
        .windows(2)
        .fold(first, |most, pair| most.max((pair[1] - pair[0]).abs()))
}
