//! Random performance: one thread plays a session with random commands, another keeps loading
//! models and changing drivers.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ondes_engine::instrument::{EventKind, NoteExpression, controller};
use ondes_engine::pipeline::{
    Action, CommandQueueFull, ControlId, InputAnalysis, Playable, ProcessRequest, SessionStart,
    TimedCommand,
};
use ondes_engine::realtime::{
    BlockCommand, Driver, LoadError, LoadStatus, ModelFactory, Session, SessionController,
};
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;

use crate::seeded_rng;

/// All drivers that never make the host wait for a worker.
pub const DRIVERS: [Driver; 5] = [
    Driver::Inline,
    Driver::Worker { latency: None },
    Driver::Offline,
    Driver::Worker {
        latency: Some(3000),
    },
    Driver::Auto,
];
/// Upper bound of the commands in a block, exclusive.
const MAX_COMMANDS: usize = 8;
/// Time limit for a model to take over, generous enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Audio thread of a host. It does not allocate or make system calls itself while playing.
pub struct RandomPlayer {
    session: Session,
    random: Xoshiro256PlusPlus,
    commands: Vec<BlockCommand>,
    input: Vec<f32>,
    output: [Vec<f32>; 2],
    position: usize,
}

impl RandomPlayer {
    /// Plays `session` in blocks of 1 to `longest` samples.
    #[must_use]
    pub fn new(session: Session, seed: u64, longest: usize) -> Self {
        Self {
            session,
            random: seeded_rng(seed),
            commands: Vec::with_capacity(MAX_COMMANDS),
            input: vec![0.0; longest],
            output: [vec![0.0; longest], vec![0.0; longest]],
            position: 0,
        }
    }

    /// Returns the number of samples played so far.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Plays a block with commands at random samples, or sometimes ends all notes. Returns `true`
    /// if the output is not silent.
    pub fn play(&mut self) -> bool {
        let longest = self.random.random_range(1..=self.input.len());
        let length = self.random.random_range(1..=longest);
        self.commands.clear();
        for _ in 0..self.random.random_range(0..MAX_COMMANDS) {
            let action = any_action(&mut self.random);
            self.commands.push(BlockCommand {
                offset: self.random.random_range(0..length),
                action,
            });
        }
        self.commands.sort_unstable_by_key(|command| command.offset);
        if self.random.random_bool(0.01) {
            self.session.reset();
        }
        for (n, sample) in (self.position..).zip(&mut self.input[..length]) {
            *sample = 0.3 * (n as f32 * 0.03).sin() * (n as f32 * 5e-5).sin();
        }
        self.position += length;
        let input = &self.input[..length];
        let [left, right] = &mut self.output;
        self.session.process(
            &self.commands,
            &[input, input],
            &mut [&mut left[..length], &mut right[..length]],
        );
        left[..length].iter().any(|sample| *sample != 0.0)
    }
}

fn any_action(random: &mut Xoshiro256PlusPlus) -> Action {
    let (channel, key) = (0, random.random_range(45..85));
    let value = random.random_range(0.0..1.0);
    Action::Play(match random.random_range(0..8) {
        0 | 1 => EventKind::NoteOn {
            channel,
            key,
            velocity: value,
        },
        2 | 3 => EventKind::NoteOff {
            channel,
            key,
            velocity: value,
        },
        4 => EventKind::Bend {
            channel,
            semitones: 4.0 * value - 2.0,
        },
        5 => EventKind::Controller {
            channel,
            number: controller::MOD_WHEEL,
            value,
        },
        6 => EventKind::NoteExpression {
            channel,
            key,
            expression: NoteExpression::Expression(value),
        },
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
            return Action::Control {
                id: ControlId::new(name),
                value: most * value,
            };
        }
    })
}

/// Number of models made so far, and the difference in reported latency between one and the next.
static MODEL_COUNT: AtomicU64 = AtomicU64::new(0);
const LATENCY_STEP: usize = 1_000_000;

/// Factory whose models can be told apart by their reported latency: the n-th adds n million
/// samples.
pub struct MarkedModel<M>(pub M);

struct MarkedPlayable {
    playable: Box<dyn Playable>,
    mark: usize,
}

impl<M: ModelFactory> ModelFactory for MarkedModel<M> {
    fn build(&self, sample_rate: u32, sessions: usize) -> Result<Box<dyn Playable>, LoadError> {
        let playable = self.0.build(sample_rate, sessions)?;
        let mark = LATENCY_STEP * (MODEL_COUNT.fetch_add(1, Ordering::Relaxed) as usize + 1);
        Ok(Box::new(MarkedPlayable { playable, mark }))
    }

    fn sharing_key(&self) -> Option<String> {
        self.0.sharing_key()
    }

    fn uses_audio_input(&self) -> bool {
        self.0.uses_audio_input()
    }

    fn start(&self) -> SessionStart {
        self.0.start()
    }

    fn worst_case_load(&self) -> Vec<Action> {
        self.0.worst_case_load()
    }
}

impl Playable for MarkedPlayable {
    fn capacity(&self) -> usize {
        self.playable.capacity()
    }

    fn channels(&self) -> usize {
        self.playable.channels()
    }

    fn latency_samples(&self) -> usize {
        self.playable.latency_samples() + self.mark
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

/// Action of a [`MisbehavingModel`] in each block.
pub type Misbehaviour = fn(&mut ProcessRequest<'_>);

/// Model that outputs a constant 0.1 and then applies its [`Misbehaviour`].
#[derive(Clone, Copy)]
pub struct MisbehavingModel(pub Misbehaviour);

impl Playable for MisbehavingModel {
    fn capacity(&self) -> usize {
        8
    }

    fn latency_samples(&self) -> usize {
        0
    }

    fn tail_samples(&self) -> usize {
        0
    }

    fn open(&mut self, _seat: usize, _start: &SessionStart) {}

    fn handle(&mut self, _seat: usize, _cue: TimedCommand) -> Result<(), CommandQueueFull> {
        Ok(())
    }

    fn process(&mut self, turns: &mut [ProcessRequest<'_>]) {
        for turn in turns {
            turn.output[0].fill(0.1);
            self.0(turn);
        }
    }
}

impl ModelFactory for MisbehavingModel {
    fn build(&self, _sample_rate: u32, _seats: usize) -> Result<Box<dyn Playable>, LoadError> {
        Ok(Box::new(*self))
    }

    fn sharing_key(&self) -> Option<String> {
        None
    }

    fn uses_audio_input(&self) -> bool {
        false
    }

    fn start(&self) -> SessionStart {
        SessionStart::default()
    }

    fn worst_case_load(&self) -> Vec<Action> {
        Vec::new()
    }
}

/// Loads marked models while the session plays. Each round changes model and driver together, then
/// the driver alone, and waits for both to take over.
///
/// # Panics
/// If one does not within the time limit.
pub fn swap(
    controller: &SessionController,
    factories: &[Arc<dyn ModelFactory>],
    rounds: Range<usize>,
) {
    for round in rounds {
        let factory = &factories[round % factories.len()];
        let load = || {
            let factory = factory.clone();
            controller.load(
                Box::new(move || Ok(factory)),
                &[(ControlId::new("room"), 0.5)],
            );
        };
        wait_for_swap(controller, &|| {
            controller.set_driver(DRIVERS[round % DRIVERS.len()]);
            // Superseded requests need not be awaited.
            (0..1 + round % 3).for_each(|_| load());
        });
        wait_for_swap(controller, &|| {
            controller.set_driver(DRIVERS[(round + 1) % DRIVERS.len()])
        });
    }
}

/// Requests a change and waits until the new model instance plays.
fn wait_for_swap(controller: &SessionController, ask: &dyn Fn()) {
    let before = MODEL_COUNT.load(Ordering::Relaxed) as usize;
    ask();
    let asked = Instant::now();
    let heard = || {
        controller
            .health()
            .map_or(0, |health| health.latency_samples / LATENCY_STEP)
    };
    while heard() <= before || controller.status() == LoadStatus::Loading {
        assert!(
            !matches!(controller.status(), LoadStatus::Failed(_)),
            "{:?}",
            controller.status()
        );
        assert!(
            asked.elapsed() < PATIENCE,
            "{:?} does not play: {:?}",
            controller.status(),
            controller.health()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}
