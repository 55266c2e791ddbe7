//! The worker: one thread for the whole process that plays all models which are too heavy for a callback.
//!
//! It goes round: every group of sessions that play the same model has its turn of a few milliseconds of sound, stepped as
//! one batch, then the next. A group that cannot keep up with time is put aside, to a thread where it holds up only its like.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use arrayvec::ArrayVec;
use crossbeam_channel::{Receiver, Sender, bounded};
use ondes_kernels::FlushToZero;
use ringbuf::traits::{Consumer, Observer, Producer};
use ringbuf::{HeapCons, HeapProd};

use super::health::Meter;
use super::history::History;
use super::lane::{guard, guard_told, length};
use super::queue::Wire;
use super::trace::{Span, Trace};
use super::{loader, priority};
use crate::executor;
use crate::pipeline::{Cue, Followed, Playable, Start, Turn};

/// Sessions in one batch.
pub const SEATS: usize = 8;
/// Turns per second of sound: each group plays 5 ms, then it is another's turn.
const TURNS_PER_S: usize = 200;
/// So many turns in a row that take longer than the sound they make put a group aside.
const SLOW_TURNS: u32 = 8;
/// Over how long the load is taken.
const SEEN: Duration = Duration::from_millis(250);
/// Messages that may wait.
const INBOX: usize = 256;

/// The worker's end of a lane.
pub(super) struct Seat {
    pub wire: Arc<Wire>,
    pub cues: HeapCons<Cue>,
    pub sound: HeapProd<f32>,
    pub history: Arc<History>,
    /// Whether the model hears the input.
    pub hears: bool,
    /// Number of the next sample to play.
    pub position: u64,
    pub start: Start,
    pub meter: Arc<Meter>,
    /// A cue that the model had no room for.
    pub held: Option<Cue>,
    /// Cues from before the start.
    pub past: Vec<Cue>,
    /// Which lane this is, in a trace.
    pub lane: u32,
    pub input: Vec<f32>,
    pub output: Vec<f32>,
}

/// Sessions that play one model.
pub(super) struct Group {
    name: Option<String>,
    playable: Box<dyn Playable>,
    seats: [Option<Seat>; SEATS],
    sample_rate: u32,
    slow_turns: u32,
}

/// What the worker is told.
pub(super) enum Message {
    /// A session joins: those whose models have equal names, and equal rates, share one.
    Join {
        name: Option<String>,
        sample_rate: u32,
        /// The model, for [`SEATS`] sessions; it is not needed where another session plays it already.
        playable: Box<dyn Playable>,
        seat: Box<Seat>,
    },
    /// A group that another thread has put aside.
    Take(Box<Group>),
}

/// A worker thread as others see it.
#[derive(Clone)]
pub(super) struct Worker {
    pub thread: Thread,
    inbox: Sender<Message>,
}

impl Worker {
    /// Tells the worker; waits while its inbox is full.
    pub fn tell(&self, message: Message) {
        // It only hangs up when the process ends.
        let _ = self.inbox.send(message);
        self.thread.unpark();
    }
}

/// The worker and the thread for what it puts aside.
pub(super) fn workers() -> &'static [Worker; 2] {
    static WORKERS: OnceLock<[Worker; 2]> = OnceLock::new();
    WORKERS.get_or_init(|| {
        // The second first: a thread that a real-time thread makes would be one too.
        let aside = spawn("ondes-aside", None);
        let worker = spawn("ondes-worker", Some(aside.clone()));
        [worker, aside]
    })
}

/// How the worker of this process is doing, and the thread for what it puts aside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workforce {
    /// Sessions that the worker plays.
    pub sessions: usize,
    /// Batches that they make up.
    pub batches: usize,
    /// Share of its time that the worker is busy, lately.
    pub load: f32,
    /// Sessions whose models are too slow for it, and were put aside.
    pub sessions_aside: usize,
    /// Whether the system granted real-time priority; none before the worker was needed.
    pub real_time: Option<bool>,
}

/// Counts of one thread, for whoever asks.
struct Counts {
    sessions: AtomicUsize,
    batches: AtomicUsize,
    load: AtomicU32,
}

impl Counts {
    const fn new() -> Self {
        Self { sessions: AtomicUsize::new(0), batches: AtomicUsize::new(0), load: AtomicU32::new(0) }
    }
}

static WORKER: Counts = Counts::new();
static ASIDE: Counts = Counts::new();

/// How the workers are doing.
#[must_use]
pub fn workforce() -> Workforce {
    Workforce {
        sessions: WORKER.sessions.load(Ordering::Relaxed),
        batches: WORKER.batches.load(Ordering::Relaxed),
        load: f32::from_bits(WORKER.load.load(Ordering::Relaxed)),
        sessions_aside: ASIDE.sessions.load(Ordering::Relaxed),
        real_time: priority::granted(),
    }
}

/// What the workers did lately.
pub fn trace() -> &'static Trace {
    static TRACE: OnceLock<Trace> = OnceLock::new();
    TRACE.get_or_init(Trace::default)
}

fn spawn(name: &'static str, aside: Option<Worker>) -> Worker {
    let (inbox, messages) = bounded(INBOX);
    let thread = std::thread::Builder::new()
        .name(name.into())
        .spawn(move || {
            if aside.is_some() {
                priority::raise(name);
            }
            let _flush = FlushToZero::on();
            let counts = if aside.is_some() { &WORKER } else { &ASIDE };
            Round { groups: Vec::new(), messages, aside, counts }.run();
        })
        .expect("the system lets us have two threads");
    Worker { thread: thread.thread().clone(), inbox }
}

/// All groups of one thread.
struct Round {
    groups: Vec<Group>,
    messages: Receiver<Message>,
    aside: Option<Worker>,
    counts: &'static Counts,
}

impl Round {
    fn run(mut self) {
        let (mut busy, mut since) = (Duration::ZERO, Instant::now());
        loop {
            let begun = Instant::now();
            while let Ok(message) = self.messages.try_recv() {
                self.listen(message);
            }
            let mut worked = false;
            for group in &mut self.groups {
                worked |= group.turn();
            }
            self.tidy();
            busy += begun.elapsed();
            if since.elapsed() > SEEN {
                let load = busy.as_secs_f32() / since.elapsed().as_secs_f32();
                self.counts.load.store(load.to_bits(), Ordering::Relaxed);
                (busy, since) = (Duration::ZERO, Instant::now());
            }
            if !worked && self.messages.is_empty() {
                // Whoever gives us work unparks us, and if that was just now, this returns at once.
                std::thread::park_timeout(Duration::from_millis(100));
            }
        }
    }

    fn listen(&mut self, message: Message) {
        match message {
            Message::Join { name, sample_rate, playable, seat } => {
                let with_room = self.groups.iter_mut().position(|group| {
                    let same = name.is_some() && group.name == name && group.sample_rate == sample_rate;
                    // What broke down is made anew for those who come.
                    let whole = !group.seats.iter().flatten().any(|seat| seat.wire.failed.load(Ordering::Relaxed));
                    same && whole && group.seats.iter().take(group.playable.seats()).any(Option::is_none)
                });
                let index = match with_room {
                    Some(index) => {
                        discard(playable);
                        index
                    }
                    None => {
                        let seats = [const { None }; SEATS];
                        self.groups.push(Group { name, playable, seats, sample_rate, slow_turns: 0 });
                        self.groups.len() - 1
                    }
                };
                self.groups[index].join(*seat);
            }
            Message::Take(group) => self.groups.push(*group),
        }
    }

    /// Lets go what nobody plays any more, puts aside what is too slow, and counts what is left.
    fn tidy(&mut self) {
        let mut index = 0;
        while index < self.groups.len() {
            let group = &mut self.groups[index];
            let empty = group.seats.iter().all(Option::is_none);
            let aside = self.aside.as_ref().filter(|_| group.slow_turns >= SLOW_TURNS);
            if empty {
                discard(self.groups.swap_remove(index).playable);
            } else if let Some(aside) = aside {
                let group = self.groups.swap_remove(index);
                group.seats.iter().flatten().for_each(|seat| seat.meter.put_aside());
                aside.tell(Message::Take(Box::new(group)));
            } else {
                index += 1;
            }
        }
        let sessions = self.groups.iter().flat_map(|group| group.seats.iter().flatten()).count();
        self.counts.sessions.store(sessions, Ordering::Relaxed);
        self.counts.batches.store(self.groups.len(), Ordering::Relaxed);
    }
}

/// Has the loader free a model: that takes longer than others should wait.
fn discard(playable: Box<dyn Playable>) {
    let mut playable = Some(playable);
    loader::ask(Box::new(move || {
        drop(playable.take());
        false
    }));
}

impl Group {
    fn join(&mut self, mut seat: Seat) {
        let Some(place) = self.seats.iter().position(Option::is_none) else { return };
        let Self { playable, .. } = self;
        let past = std::mem::take(&mut seat.past);
        let opened = guard_told(|| {
            playable.open(place, &seat.start);
            for cue in past {
                // What is too much is not remembered.
                let _ = playable.handle(place, cue);
            }
        });
        if let Err(reason) = &opened {
            seat.meter.broke_down(reason);
        }
        seat.wire.failed.store(opened.is_err(), Ordering::Relaxed);
        self.seats[place] = Some(seat);
    }

    /// Plays a few milliseconds for all sessions that have given some. Gives whether there was anything to play.
    fn turn(&mut self) -> bool {
        let Self { playable, seats, sample_rate, .. } = self;
        let quantum = (*sample_rate as usize / TURNS_PER_S).max(1) as u64;
        let mut turns: ArrayVec<Turn<'_>, SEATS> = ArrayVec::new();
        let mut longest = 0;
        for (place, slot) in seats.iter_mut().enumerate() {
            if slot.as_ref().is_some_and(|seat| seat.wire.leaving.load(Ordering::Acquire)) {
                *slot = None;
            }
            let Some(seat) = slot else { continue };
            // Acquire: all input and all cues before this sample are there.
            let given = seat.wire.given.load(Ordering::Acquire);
            // No more than there is room for: what the session is late to take it drops.
            let length = (given.saturating_sub(seat.position).min(quantum) as usize).min(seat.sound.vacant_len());
            if length == 0 || seat.wire.failed.load(Ordering::Relaxed) {
                continue;
            }
            seat.take_cues(&mut **playable, place);
            let Seat { input, output, history, hears, position, .. } = seat;
            if *hears {
                // What is older than all that is remembered counts as silence.
                history.read(*position, &mut input[..length]);
            }
            let input = if *hears { &input[..length] } else { &[] };
            let end = *position + length as u64;
            // What the session has gone without already, nobody will hear.
            let mute = seat.wire.warm.load(Ordering::Relaxed) && end <= seat.wire.taken.load(Ordering::Relaxed);
            longest = longest.max(length);
            turns.push(Turn { seat: place, input, output: &mut output[..length], mute });
        }
        if turns.is_empty() {
            return false;
        }
        let begun = Instant::now();
        let mut followed: ArrayVec<Option<Followed>, SEATS> = ArrayVec::new();
        let done = guard_told(|| {
            playable.process(&mut turns);
            followed.extend(turns.iter().map(|turn| playable.followed(turn.seat)));
        });
        let taken = begun.elapsed();
        let notice = executor::noticed();
        let lengths: ArrayVec<(usize, usize), SEATS> =
            turns.iter().map(|turn| (turn.seat, turn.output.len())).collect();
        drop(turns);
        let sound = length(longest, *sample_rate);
        self.slow_turns = if taken > sound { self.slow_turns + 1 } else { 0 };
        for (index, (place, length)) in lengths.into_iter().enumerate() {
            let Some(seat) = &mut self.seats[place] else { continue };
            seat.meter.step(taken, sound);
            trace().push(Span::since("step", seat.lane, begun, taken));
            if let Some(notice) = &notice {
                seat.meter.set_notice(notice);
            }
            if let Err(reason) = &done {
                // Before the session hears of it, and asks why.
                seat.meter.broke_down(reason);
                seat.wire.failed.store(true, Ordering::Relaxed);
                continue;
            }
            seat.meter.set_followed(followed.get(index).copied().flatten());
            let (playable, meter) = (&self.playable, &seat.meter);
            let seen = guard(|| meter.set_latents(playable.latents(place)));
            seat.wire.failed.fetch_or(seen.is_err(), Ordering::Relaxed);
            seat.position += length as u64;
            seat.sound.push_slice(&seat.output[..length]);
            if seat.output[..length].iter().any(|sample| !sample.is_finite()) {
                // The session will not play this; what comes next begins anew.
                let start = Start { at: seat.position, ..seat.start };
                let playable = &mut self.playable;
                let opened = guard(|| playable.open(place, &start));
                seat.wire.failed.fetch_or(opened.is_err(), Ordering::Relaxed);
            }
            seat.wire.done.store(seat.position, Ordering::Release);
        }
        true
    }
}

impl Seat {
    /// Hands all cues on that have come.
    fn take_cues(&mut self, playable: &mut dyn Playable, place: usize) {
        while let Some(cue) = self.held.take().or_else(|| self.cues.try_pop()) {
            let mut taken = Ok(());
            if let Err(reason) = guard_told(|| taken = playable.handle(place, cue)) {
                self.meter.broke_down(&reason);
                self.wire.failed.store(true, Ordering::Relaxed);
            }
            if taken.is_err() {
                self.held = Some(cue);
                break;
            }
        }
    }
}
