//! A session in use: one thread plays it at random, another keeps loading models and choosing drivers.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ondes_engine::instrument::{EventKind, NoteExpression, controller};
use ondes_engine::pipeline::{Action, ControlId, Cue, CueFull, Followed, Playable, Start, Turn};
use ondes_engine::realtime::{BlockCue, Driver, Maker, Remote, Session, Status};
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;

use crate::random;

/// All drivers that do not make a host wait for a worker.
pub const DRIVERS: [Driver; 5] = [
    Driver::Inline,
    Driver::Worker { latency: None },
    Driver::Offline,
    Driver::Worker { latency: Some(3000) },
    Driver::Auto,
];
/// More cues than a block gets.
const MOST_CUES: usize = 8;
/// How long a model may take to be heard, on a machine with other things to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// A host's audio thread. Playing neither allocates nor asks the system for anything, as far as it is up to the player.
pub struct Player {
    session: Session,
    random: Xoshiro256PlusPlus,
    cues: Vec<BlockCue>,
    input: Vec<f32>,
    output: [Vec<f32>; 2],
    position: usize,
}

impl Player {
    /// Will play in blocks of 1 … `longest`.
    #[must_use]
    pub fn new(session: Session, seed: u64, longest: usize) -> Self {
        Self {
            session,
            random: random(seed),
            cues: Vec::with_capacity(MOST_CUES),
            input: vec![0.0; longest],
            output: [vec![0.0; longest], vec![0.0; longest]],
            position: 0,
        }
    }

    /// Samples played so far.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Plays a block with cues at random samples, or now and then ends all notes. Gives whether anything was heard.
    pub fn play(&mut self) -> bool {
        let longest = self.random.random_range(1..=self.input.len());
        let length = self.random.random_range(1..=longest);
        self.cues.clear();
        for _ in 0..self.random.random_range(0..MOST_CUES) {
            let action = any_action(&mut self.random);
            self.cues.push(BlockCue { offset: self.random.random_range(0..length), action });
        }
        self.cues.sort_unstable_by_key(|cue| cue.offset);
        if self.random.random_bool(0.01) {
            self.session.reset();
        }
        for (n, sample) in (self.position..).zip(&mut self.input[..length]) {
            *sample = 0.3 * (n as f32 * 0.03).sin() * (n as f32 * 5e-5).sin();
        }
        self.position += length;
        let input = &self.input[..length];
        let [left, right] = &mut self.output;
        self.session.process(&self.cues, &[input, input], &mut [&mut left[..length], &mut right[..length]]);
        left[..length].iter().any(|sample| *sample != 0.0)
    }
}

fn any_action(random: &mut Xoshiro256PlusPlus) -> Action {
    let (channel, key) = (0, random.random_range(45..85));
    let value = random.random_range(0.0..1.0);
    Action::Play(match random.random_range(0..8) {
        0 | 1 => EventKind::NoteOn { channel, key, velocity: value },
        2 | 3 => EventKind::NoteOff { channel, key, velocity: value },
        4 => EventKind::Bend { channel, semitones: 4.0 * value - 2.0 },
        5 => EventKind::Controller { channel, number: controller::MOD_WHEEL, value },
        6 => EventKind::Note { channel, key, expression: NoteExpression::Expression(value) },
        _ => {
            let knobs = [
                "room",
                "brightness",
                "vibrato_depth",
                "play_mode",
                "glide",
                "voices",
                "drive",
                "latent1.scale",
                "latent2.offset",
                "latent3.hold",
            ];
            let most = [1.0, 1.0, 1.0, 3.0, 90.0, 6.0, 2.0, 4.0, 1.0, 1.0];
            let index = random.random_range(0..knobs.len());
            let (name, most) = (knobs[index], most[index]);
            return Action::Control { id: ControlId::of(name), value: most * value };
        }
    })
}

/// How many models the loaders made, and by how much each seems later than the one before.
static MADE: AtomicU64 = AtomicU64::new(0);
const APART: usize = 1_000_000;

/// A maker whose models can be told apart when they are heard: the n-th states n million samples of latency too much.
pub struct Marked<M>(pub M);

struct MarkedPlayable {
    playable: Box<dyn Playable>,
    mark: usize,
}

impl<M: Maker> Maker for Marked<M> {
    fn make(&self, sample_rate: u32, seats: usize) -> Result<Box<dyn Playable>, String> {
        let playable = self.0.make(sample_rate, seats)?;
        let mark = APART * (MADE.fetch_add(1, Ordering::Relaxed) as usize + 1);
        Ok(Box::new(MarkedPlayable { playable, mark }))
    }

    fn name(&self) -> Option<String> {
        self.0.name()
    }

    fn hears(&self) -> bool {
        self.0.hears()
    }

    fn start(&self) -> Start {
        self.0.start()
    }

    fn hardest(&self) -> Vec<Action> {
        self.0.hardest()
    }

    fn measured_latency(&self, _sample_rate: u32) -> Option<usize> {
        None
    }
}

impl Playable for MarkedPlayable {
    fn seats(&self) -> usize {
        self.playable.seats()
    }

    fn latency_samples(&self) -> usize {
        self.playable.latency_samples() + self.mark
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

/// What a [`Poor`] model does in each turn.
pub type Habit = fn(&mut Turn<'_>);

/// A model with a bad habit: it sounds at a constant 0.1 until that is done to it.
#[derive(Clone, Copy)]
pub struct Poor(pub Habit);

impl Playable for Poor {
    fn seats(&self) -> usize {
        8
    }

    fn latency_samples(&self) -> usize {
        0
    }

    fn tail_samples(&self) -> usize {
        0
    }

    fn open(&mut self, _seat: usize, _start: &Start) {}

    fn handle(&mut self, _seat: usize, _cue: Cue) -> Result<(), CueFull> {
        Ok(())
    }

    fn process(&mut self, turns: &mut [Turn<'_>]) {
        for turn in turns {
            turn.output.fill(0.1);
            self.0(turn);
        }
    }
}

impl Maker for Poor {
    fn make(&self, _sample_rate: u32, _seats: usize) -> Result<Box<dyn Playable>, String> {
        Ok(Box::new(*self))
    }

    fn name(&self) -> Option<String> {
        None
    }

    fn hears(&self) -> bool {
        false
    }

    fn start(&self) -> Start {
        Start::default()
    }

    fn hardest(&self) -> Vec<Action> {
        Vec::new()
    }

    fn measured_latency(&self, _sample_rate: u32) -> Option<usize> {
        None
    }
}

/// Keeps loading marked models while the session plays, each round for another driver, and twice: once a model and a driver,
/// once the driver alone. Waits until each of them is heard.
///
/// # Panics
/// When one is not.
pub fn swap(remote: &Remote, makers: &[Arc<dyn Maker>], rounds: Range<usize>) {
    for round in rounds {
        let maker = &makers[round % makers.len()];
        let load = || {
            let maker = maker.clone();
            remote.load(Box::new(move || Ok(maker)), &[(ControlId::of("room"), 0.5)]);
        };
        swapped(remote, &|| {
            remote.set_driver(DRIVERS[round % DRIVERS.len()]);
            // Some are not waited for.
            (0..1 + round % 3).for_each(|_| load());
        });
        swapped(remote, &|| remote.set_driver(DRIVERS[(round + 1) % DRIVERS.len()]));
    }
}

/// Asks for another lane and waits until it is heard.
fn swapped(remote: &Remote, ask: &dyn Fn()) {
    let before = MADE.load(Ordering::Relaxed) as usize;
    ask();
    let asked = Instant::now();
    let heard = || remote.health().map_or(0, |health| health.latency_samples / APART);
    while heard() <= before || remote.status() == Status::Loading {
        assert!(!matches!(remote.status(), Status::Failed(_)), "{:?}", remote.status());
        assert!(asked.elapsed() < PATIENCE, "{:?} is not heard: {:?}", remote.status(), remote.health());
        std::thread::sleep(Duration::from_millis(5));
    }
}
