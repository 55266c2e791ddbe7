//! Models that do as a test tells them, and a host that plays them in lockstep.

use std::f64::consts::TAU;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use ondes_engine::pipeline::{Action, Cue, CueFull, Followed, Playable, Start, Turn};
use ondes_engine::realtime::{BlockCue, Driver, Health, Maker, Remote, Session, Setup, Status};

use crate::SAMPLE_RATE;

/// What a panic that a test causes says: [`hush`] keeps it out of the log.
pub const INJECTED: &str = "injected by a test";
/// Nothing that a test waits for takes so long, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a host may wait between blocks for a model that is being loaded. A loader asks the audio thread several times,
/// and takes one that is silent for much longer for one that does not run.
const PAUSE: Duration = Duration::from_millis(3);

/// A sine of the sample's number: any part of it can be told anywhere.
#[derive(Clone, Copy, Debug)]
pub struct Wave {
    /// Cycles per sample.
    pub frequency: f64,
    /// Amplitude.
    pub peak: f32,
}

impl Wave {
    /// Its sample of that number.
    #[must_use]
    pub fn at(self, number: u64) -> f32 {
        self.peak * (TAU * (self.frequency * number as f64).fract()).sin() as f32
    }

    /// No step from one sample to the next is larger.
    #[must_use]
    pub fn steepest(self) -> f32 {
        self.peak * (TAU * self.frequency) as f32
    }
}

type AtOpen = dyn Fn(&Start) + Send + Sync;
type AtCue = dyn Fn(&Cue) -> bool + Send + Sync;
type AtSound = dyn Fn(u64, &mut [f32]) + Send + Sync;

/// A model that plays a [`Wave`] whatever it is given, and in which anything can go wrong.
pub struct Double {
    script: Arc<Script>,
    name: Option<String>,
    live: Arc<AtomicUsize>,
}

struct Script {
    wave: Wave,
    latency: usize,
    start: Start,
    at_open: Box<AtOpen>,
    at_cue: Box<AtCue>,
    at_sound: Box<AtSound>,
}

impl Double {
    /// One that does nothing wrong.
    #[must_use]
    pub fn new(wave: Wave) -> Self {
        let script = Script {
            wave,
            latency: 0,
            start: Start::default(),
            at_open: Box::new(|_| {}),
            at_cue: Box::new(|_| true),
            at_sound: Box::new(|_, _| {}),
        };
        Self { script: Arc::new(script), name: None, live: Arc::default() }
    }

    fn change(mut self, change: impl FnOnce(&mut Script)) -> Self {
        change(Arc::get_mut(&mut self.script).expect("nothing is made of it yet"));
        self
    }

    /// States that latency, and has it.
    #[must_use]
    pub fn late(self, latency: usize) -> Self {
        self.change(|script| script.latency = latency)
    }

    /// Begins with that seed and transposition.
    #[must_use]
    pub fn starting(self, start: Start) -> Self {
        self.change(|script| script.start = start)
    }

    /// Shares a playable with others of that name.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// Counts in `live` the playables that are there.
    #[must_use]
    pub fn counted(self, live: &Arc<AtomicUsize>) -> Self {
        Self { live: live.clone(), ..self }
    }

    /// Does that whenever a seat is opened.
    #[must_use]
    pub fn at_open(self, work: impl Fn(&Start) + Send + Sync + 'static) -> Self {
        self.change(|script| script.at_open = Box::new(work))
    }

    /// Does that for every cue; gives whether there is room for it.
    #[must_use]
    pub fn at_cue(self, work: impl Fn(&Cue) -> bool + Send + Sync + 'static) -> Self {
        self.change(|script| script.at_cue = Box::new(work))
    }

    /// Does that with the number of the first sample of every sound that was made.
    #[must_use]
    pub fn at_sound(self, work: impl Fn(u64, &mut [f32]) + Send + Sync + 'static) -> Self {
        self.change(|script| script.at_sound = Box::new(work))
    }
}

impl Maker for Double {
    fn make(&self, _sample_rate: u32, seats: usize) -> Result<Box<dyn Playable>, String> {
        self.live.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(Player { script: self.script.clone(), positions: vec![0; seats], live: self.live.clone() }))
    }

    fn name(&self) -> Option<String> {
        self.name.clone()
    }

    fn hears(&self) -> bool {
        false
    }

    fn start(&self) -> Start {
        self.script.start
    }

    fn hardest(&self) -> Vec<Action> {
        Vec::new()
    }

    fn measured_latency(&self, _sample_rate: u32) -> Option<usize> {
        None
    }
}

struct Player {
    script: Arc<Script>,
    /// `[seat]`: number of the next sample.
    positions: Vec<u64>,
    live: Arc<AtomicUsize>,
}

impl Drop for Player {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Playable for Player {
    fn seats(&self) -> usize {
        self.positions.len()
    }

    fn latency_samples(&self) -> usize {
        self.script.latency
    }

    fn tail_samples(&self) -> usize {
        0
    }

    fn open(&mut self, seat: usize, start: &Start) {
        self.positions[seat] = start.at;
        (self.script.at_open)(start);
    }

    fn handle(&mut self, _seat: usize, cue: Cue) -> Result<(), CueFull> {
        if (self.script.at_cue)(&cue) { Ok(()) } else { Err(CueFull(cue)) }
    }

    fn process(&mut self, turns: &mut [Turn<'_>]) {
        let Script { wave, latency, at_sound, .. } = &*self.script;
        for turn in turns {
            let from = self.positions[turn.seat];
            for (number, sample) in (from..).zip(&mut *turn.output) {
                *sample = number.checked_sub(*latency as u64).map_or(0.0, |number| wave.at(number));
            }
            at_sound(from, turn.output);
            self.positions[turn.seat] += turn.output.len() as u64;
        }
    }
}

/// Any model, whose playables are counted.
pub struct Counted {
    maker: Arc<dyn Maker>,
    live: Arc<AtomicUsize>,
}

impl Counted {
    /// Counts in `live` the playables that are there.
    #[must_use]
    pub fn new(maker: Arc<dyn Maker>, live: &Arc<AtomicUsize>) -> Self {
        Self { maker, live: live.clone() }
    }
}

impl Maker for Counted {
    fn make(&self, sample_rate: u32, seats: usize) -> Result<Box<dyn Playable>, String> {
        let playable = self.maker.make(sample_rate, seats)?;
        self.live.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(CountedPlayer { playable, live: self.live.clone() }))
    }

    fn name(&self) -> Option<String> {
        self.maker.name()
    }

    fn hears(&self) -> bool {
        self.maker.hears()
    }

    fn start(&self) -> Start {
        self.maker.start()
    }

    fn hardest(&self) -> Vec<Action> {
        self.maker.hardest()
    }

    /// Not measured: that takes longer than all the rest, and others test it.
    fn measured_latency(&self, _sample_rate: u32) -> Option<usize> {
        None
    }
}

struct CountedPlayer {
    playable: Box<dyn Playable>,
    live: Arc<AtomicUsize>,
}

impl Drop for CountedPlayer {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Playable for CountedPlayer {
    fn seats(&self) -> usize {
        self.playable.seats()
    }

    fn latency_samples(&self) -> usize {
        self.playable.latency_samples()
    }

    fn tail_samples(&self) -> usize {
        self.playable.tail_samples()
    }

    fn open(&mut self, seat: usize, start: &Start) {
        self.playable.open(seat, start);
    }

    fn handle(&mut self, seat: usize, cue: Cue) -> Result<(), CueFull> {
        self.playable.handle(seat, cue)
    }

    fn followed(&self, seat: usize) -> Option<Followed> {
        self.playable.followed(seat)
    }

    fn latents(&self, seat: usize) -> &[f32] {
        self.playable.latents(seat)
    }

    fn process(&mut self, turns: &mut [Turn<'_>]) {
        self.playable.process(turns);
    }
}

/// Where a double waits until the test lets it go on. Open at first.
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody gets through from now on.
    pub fn close(&self) {
        self.state().closed = true;
    }

    /// All who wait go on.
    pub fn open(&self) {
        self.state().closed = false;
        self.opened.notify_all();
    }

    /// Waits until the gate is open.
    ///
    /// # Panics
    /// When nobody opens it, so that a test that has failed holds up no other one.
    pub fn pass(&self) {
        let mut state = self.state();
        state.waiting += 1;
        let waited = self.opened.wait_timeout_while(state, PATIENCE, |state| state.closed);
        let (mut state, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        drop(state);
        assert!(!outcome.timed_out(), "nobody opens the gate");
    }

    /// Whether somebody waits.
    #[must_use]
    pub fn is_waited_at(&self) -> bool {
        let state = self.state();
        state.closed && state.waiting > 0
    }

    /// Waits until somebody waits.
    pub fn await_arrival(&self) {
        wait_until("somebody stands at the gate", || self.is_waited_at());
    }
}

/// Waits for something that must happen sooner or later.
///
/// # Panics
/// When it does not.
pub fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !happened() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Keeps panics that tests cause out of the log.
pub fn hush() {
    static HUSHED: Once = Once::new();
    HUSHED.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if info.payload_as_str() != Some(INJECTED) {
                hook(info);
            }
        }));
    });
}

/// Gives a remote a model to load.
pub fn load(remote: &Remote, maker: impl Maker + 'static) {
    remote.load(Box::new(move || Ok(Arc::new(maker))), &[]);
}

/// A host with one session, in no hurry, which plays mono blocks of one length and keeps what it hears.
pub struct Host {
    /// The session from outside.
    pub remote: Remote,
    /// The session from inside.
    pub session: Session,
    /// All that was heard so far.
    pub heard: Vec<f32>,
    /// What the model hears.
    pub input: Option<Wave>,
    block: usize,
}

impl Host {
    /// Plays a model, in blocks of that length, at 48 kHz.
    ///
    /// # Panics
    /// When the model cannot be played.
    #[must_use]
    pub fn new(maker: impl Maker + 'static, driver: Driver, block: usize) -> Self {
        let remote = Remote::new();
        remote.set_driver(driver);
        remote.set_patient(true);
        load(&remote, maker);
        wait_until("the model is loaded", || remote.status() != Status::Loading);
        assert_eq!(remote.status(), Status::Ready);
        let setup = Setup { sample_rate: SAMPLE_RATE, max_block: block };
        let session = remote.activate(setup).expect("a sound setup");
        assert_eq!(remote.status(), Status::Ready);
        Self { remote, session, heard: Vec::new(), input: None, block }
    }

    /// Samples played so far.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.heard.len() as u64
    }

    /// Plays one block with those cues.
    ///
    /// # Panics
    /// When it is not fit to be heard.
    pub fn cue(&mut self, cues: &[BlockCue]) {
        let start = self.heard.len();
        self.heard.resize(start + self.block, f32::NAN);
        let input: Vec<f32> = self
            .input
            .iter()
            .flat_map(|wave| (start as u64..).take(self.block).map(|number| wave.at(number)))
            .collect();
        let inputs: &[&[f32]] = if input.is_empty() { &[] } else { &[&input] };
        self.session.process(cues, inputs, &mut [&mut self.heard[start..]]);
        assert!(self.heard[start..].iter().all(|sample| sample.abs() <= LOUDEST), "too loud, or no number");
    }

    /// Plays so many blocks.
    pub fn play(&mut self, blocks: usize) {
        (0..blocks).for_each(|_| self.cue(&[]));
    }

    /// Plays on until something happens. Gives how many blocks that took.
    ///
    /// # Panics
    /// When it does not happen.
    pub fn play_until(&mut self, what: &str, mut happened: impl FnMut(&Self) -> bool) -> usize {
        let begun = Instant::now();
        let mut blocks = 0;
        while !happened(self) {
            assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
            self.play(1);
            self.pause();
            blocks += 1;
        }
        blocks
    }

    /// Gives a model that is being loaded some time.
    pub fn pause(&self) {
        let begun = Instant::now();
        while self.remote.status() == Status::Loading && begun.elapsed() < PAUSE {
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Plays on until another model, or the same in another way, is the one that is heard. Loading must have been asked for.
    pub fn take_over(&mut self) {
        self.play_until("the model is loaded", |host| host.remote.status() != Status::Loading);
        assert_eq!(self.remote.status(), Status::Ready);
        // It has arrived: it is adopted with the next block, catches up, and is faded in.
        let fade = (SAMPLE_RATE / 10) as usize;
        self.play(fade.div_ceil(self.block));
    }

    /// Hot swap: loads a model and plays on until it has taken over.
    pub fn swap(&mut self, maker: impl Maker + 'static) {
        load(&self.remote, maker);
        self.take_over();
    }

    /// How the session is doing.
    ///
    /// # Panics
    /// When no model plays.
    #[must_use]
    pub fn health(&self) -> Health {
        self.remote.health().expect("a model plays")
    }
}

/// Nothing that is heard is louder.
pub const LOUDEST: f32 = 16.0;

/// The largest absolute value.
#[must_use]
pub fn peak(samples: &[f32]) -> f32 {
    samples.iter().fold(0.0, |most, sample| most.max(sample.abs()))
}

/// The largest step from one sample to the next; the first comes from silence.
#[must_use]
pub fn steepest(samples: &[f32]) -> f32 {
    let first = samples.first().map_or(0.0, |sample| sample.abs());
    samples.windows(2).fold(first, |most, pair| most.max((pair[1] - pair[0]).abs()))
}
