//! The worker: one thread for the whole process that plays all models which are too heavy for an
//! audio callback.
//!
//! Sessions that play the same model form a group, which is stepped as one batch. The worker gives
//! every group in turn a few milliseconds of sound. A group that cannot keep up with real time
//! moves to a second thread, where it delays only other slow groups.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use arrayvec::ArrayVec;
use crossbeam_channel::{Receiver, Sender, bounded};
use ondes_kernels::FlushToZero;
use ringbuf::traits::{Consumer, Observer, Producer};
use ringbuf::{HeapCons, HeapProd};

use super::background_jobs::run_in_background;
use super::guard::{duration_of, guard_with_reason};
use super::health::InstanceMetrics;
use super::priority;
use super::session_input::{SessionHistory, first_samples};
use super::trace::{Span, Trace};
use super::worker_link::SharedProgress;
use crate::executor;
use crate::pipeline::{
    InputAnalysis, InputChannels, Playable, ProcessRequest, SessionStart, TimedCommand, all_finite,
};

/// Mono sessions in one batch; half as many stereo sessions.
pub const MAX_SESSIONS: usize = 8;
/// Turns per second of sound: each group plays 5 ms before the next one.
const TURNS_PER_S: usize = 200;
/// Consecutive turns slower than real time after which a group moves to the slow worker.
const SLOW_TURNS: u32 = 8;
/// Interval over which the load is averaged.
const LOAD_INTERVAL: Duration = Duration::from_millis(250);
/// Longest time without looking for work.
const IDLE_WAIT: Duration = Duration::from_millis(100);
/// Capacity of a worker's message queue.
const MESSAGES: usize = 256;

/// The worker's end of a session.
pub(super) struct WorkerSlot {
    pub progress: Arc<SharedProgress>,
    pub commands: HeapCons<TimedCommand>,
    /// `[channel]`
    pub output: Vec<HeapProd<f32>>,
    pub history: SessionHistory,
    /// Part of the input that is processed.
    pub channels: InputChannels,
    pub uses_audio_input: bool,
    /// Number of the next sample to process.
    pub position: u64,
    pub start: SessionStart,
    pub metrics: Arc<InstanceMetrics>,
    /// Command that the model had no room for.
    pub deferred_command: Option<TimedCommand>,
    /// Commands from before the start.
    pub past: Vec<TimedCommand>,
    /// Number of the instance, for traces.
    pub instance: u32,
    pub input_buffers: [Vec<f32>; 2],
    pub output_buffers: [Vec<f32>; 2],
}

/// Sessions that play one model as a batch.
pub(super) struct Group {
    key: Option<String>,
    playable: Box<dyn Playable>,
    slots: [Option<WorkerSlot>; MAX_SESSIONS],
    sample_rate: u32,
    slow_turns: u32,
}

/// Message to a worker.
pub(super) enum Message {
    /// Adds a session; sessions with equal keys and equal sample rates share a group.
    Join {
        key: Option<String>,
        sample_rate: u32,
        /// Model with [`MAX_SESSIONS`] slots; unused if the session joins a group.
        playable: Box<dyn Playable>,
        slot: Box<WorkerSlot>,
    },
    /// Moves a group from another worker.
    Take(Box<Group>),
}

/// Handle of a worker thread.
#[derive(Clone)]
pub(super) struct Worker {
    pub thread: Thread,
    messages: Sender<Message>,
}

impl Worker {
    /// Sends a message; waits while the queue is full.
    pub fn send(&self, message: Message) {
        // Fails only when the process ends.
        let _ = self.messages.send(message);
        self.thread.unpark();
    }
}

/// Returns the worker and the slow worker; starts them on first use.
pub(super) fn workers() -> &'static [Worker; 2] {
    static WORKERS: OnceLock<[Worker; 2]> = OnceLock::new();
    WORKERS.get_or_init(|| {
        // The slow worker first: a thread that a real-time thread starts would inherit its
        // priority.
        let slow = spawn("ondes-slow", None);
        let worker = spawn("ondes-worker", Some(slow.clone()));
        [worker, slow]
    })
}

/// Load of the process's workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkerStats {
    /// Sessions on the worker.
    pub sessions: usize,
    /// Batches that they form.
    pub batches: usize,
    /// Recent share of time that the worker is busy.
    pub load: f32,
    /// Sessions on the slow worker.
    pub slow_sessions: usize,
    /// Result of the request for real-time priority; `None` before the worker was needed.
    pub real_time: Option<bool>,
}

/// Counters of one thread.
struct Counters {
    sessions: AtomicUsize,
    batches: AtomicUsize,
    load: AtomicU32,
}

impl Counters {
    const fn new() -> Self {
        Self {
            sessions: AtomicUsize::new(0),
            batches: AtomicUsize::new(0),
            load: AtomicU32::new(0),
        }
    }
}

static WORKER: Counters = Counters::new();
static SLOW_WORKER: Counters = Counters::new();

/// Returns the load of the process's workers.
#[must_use]
pub fn worker_stats() -> WorkerStats {
    WorkerStats {
        sessions: WORKER.sessions.load(Ordering::Relaxed),
        batches: WORKER.batches.load(Ordering::Relaxed),
        load: f32::from_bits(WORKER.load.load(Ordering::Relaxed)),
        slow_sessions: SLOW_WORKER.sessions.load(Ordering::Relaxed),
        real_time: priority::granted(),
    }
}

/// Returns the trace of the workers' recent steps.
pub fn trace() -> &'static Trace {
    static TRACE: OnceLock<Trace> = OnceLock::new();
    TRACE.get_or_init(Trace::default)
}

fn spawn(name: &'static str, slow_worker: Option<Worker>) -> Worker {
    let (sender, messages) = bounded(MESSAGES);
    let thread = std::thread::Builder::new()
        .name(name.into())
        .spawn(move || {
            if slow_worker.is_some() {
                priority::raise(name);
            }
            let _flush = FlushToZero::on();
            let counters = if slow_worker.is_some() {
                &WORKER
            } else {
                &SLOW_WORKER
            };
            WorkerLoop {
                groups: Vec::new(),
                messages,
                slow_worker,
                counters,
            }
            .run();
        })
        .expect("the system can start a thread");
    Worker {
        thread: thread.thread().clone(),
        messages: sender,
    }
}

/// All groups of one thread.
struct WorkerLoop {
    groups: Vec<Group>,
    messages: Receiver<Message>,
    slow_worker: Option<Worker>,
    counters: &'static Counters,
}

impl WorkerLoop {
    fn run(mut self) {
        let (mut busy, mut since) = (Duration::ZERO, Instant::now());
        loop {
            let start = Instant::now();
            while let Ok(message) = self.messages.try_recv() {
                // The model's code is guarded within. A session that is lost here does not catch
                // up, which it reports.
                drop(guard_with_reason(|| self.receive(message)));
            }
            let mut has_worked = false;
            for group in &mut self.groups {
                // The model's code is guarded within the turn; this is for all the rest.
                has_worked |= guard_with_reason(|| group.play_turn())
                    .unwrap_or_else(|reason| group.fail(&reason));
            }
            self.clean_up();
            busy += start.elapsed();
            if since.elapsed() > LOAD_INTERVAL {
                let load = busy.as_secs_f32() / since.elapsed().as_secs_f32();
                self.counters.load.store(load.to_bits(), Ordering::Relaxed);
                (busy, since) = (Duration::ZERO, Instant::now());
            }
            if !has_worked && self.messages.is_empty() {
                // Sessions unpark this thread after each block; one that did so just now makes this
                // return at once.
                std::thread::park_timeout(IDLE_WAIT);
            }
        }
    }

    fn receive(&mut self, message: Message) {
        match message {
            Message::Join {
                key,
                sample_rate,
                playable,
                slot,
            } => {
                let with_room = self
                    .groups
                    .iter()
                    .position(|group| group.accepts(key.as_deref(), sample_rate));
                let index = match with_room {
                    Some(index) => {
                        free_in_background(playable);
                        index
                    }
                    None => {
                        let slots = [const { None }; MAX_SESSIONS];
                        self.groups.push(Group {
                            key,
                            playable,
                            slots,
                            sample_rate,
                            slow_turns: 0,
                        });
                        self.groups.len() - 1
                    }
                };
                self.groups[index].join(*slot);
            }
            Message::Take(group) => self.groups.push(*group),
        }
    }

    /// Frees empty groups, moves slow ones to the slow worker, and counts the others.
    fn clean_up(&mut self) {
        let mut index = 0;
        while index < self.groups.len() {
            let group = &mut self.groups[index];
            let is_empty = group.slots.iter().all(Option::is_none);
            let slow_worker = self
                .slow_worker
                .as_ref()
                .filter(|_| group.slow_turns >= SLOW_TURNS);
            if is_empty {
                free_in_background(self.groups.swap_remove(index).playable);
            } else if let Some(slow_worker) = slow_worker {
                let group = self.groups.swap_remove(index);
                group
                    .slots
                    .iter()
                    .flatten()
                    .for_each(|slot| slot.metrics.set_on_slow_worker());
                slow_worker.send(Message::Take(Box::new(group)));
            } else {
                index += 1;
            }
        }
        let sessions = self
            .groups
            .iter()
            .flat_map(|group| group.slots.iter().flatten())
            .count();
        self.counters.sessions.store(sessions, Ordering::Relaxed);
        self.counters
            .batches
            .store(self.groups.len(), Ordering::Relaxed);
    }
}

/// Frees a model on the background thread: freeing takes longer than other groups should wait.
fn free_in_background(playable: Box<dyn Playable>) {
    let mut playable = Some(playable);
    run_in_background(Box::new(move || {
        drop(playable.take());
        false
    }));
}

/// A processed turn of one slot.
struct PlayedTurn {
    slot: usize,
    samples: usize,
    analysis: Option<InputAnalysis>,
}

impl Group {
    /// Returns true if a session with this key can join. A group with a failed session takes no
    /// more.
    fn accepts(&self, key: Option<&str>, sample_rate: u32) -> bool {
        let is_same =
            key.is_some() && self.key.as_deref() == key && self.sample_rate == sample_rate;
        let has_failed = self
            .slots
            .iter()
            .flatten()
            .any(|slot| slot.progress.has_failed.load(Ordering::Relaxed));
        is_same
            && !has_failed
            && self
                .slots
                .iter()
                .take(self.playable.capacity())
                .any(Option::is_none)
    }

    fn join(&mut self, mut slot: WorkerSlot) {
        let Some(index) = self.slots.iter().position(Option::is_none) else {
            return;
        };
        let Self { playable, .. } = self;
        let past = std::mem::take(&mut slot.past);
        let opened = guard_with_reason(|| {
            playable.open(index, &slot.start);
            for command in past {
                // Commands beyond the queue's capacity are dropped.
                let _ = playable.handle(index, command);
            }
        });
        if let Err(reason) = opened {
            slot.fail(reason);
        }
        self.slots[index] = Some(slot);
    }

    /// Ends all sessions of the group. Returns false: there is nothing more to play.
    fn fail(&mut self, reason: &str) -> bool {
        self.slots
            .iter()
            .flatten()
            .for_each(|slot| slot.fail(reason.to_owned()));
        false
    }

    /// Plays a few milliseconds for all sessions with pending input. Returns false if there were
    /// none.
    fn play_turn(&mut self) -> bool {
        let Self {
            playable,
            slots,
            sample_rate,
            ..
        } = self;
        let max_samples = (*sample_rate as usize / TURNS_PER_S).max(1) as u64;
        let mut requests: ArrayVec<ProcessRequest<'_>, MAX_SESSIONS> = ArrayVec::new();
        let mut longest = 0;
        for (index, entry) in slots.iter_mut().enumerate() {
            if entry
                .as_ref()
                .is_some_and(|slot| slot.progress.is_leaving.load(Ordering::Acquire))
            {
                *entry = None;
            }
            let Some(slot) = entry else { continue };
            if let Some(request) = slot.next_request(&mut **playable, index, max_samples) {
                longest = longest.max(request.samples());
                requests.push(request);
            }
        }
        if requests.is_empty() {
            return false;
        }
        let start = Instant::now();
        let mut played: ArrayVec<PlayedTurn, MAX_SESSIONS> = ArrayVec::new();
        played.extend(requests.iter().map(|request| {
            let (slot, samples) = (request.slot, request.samples());
            PlayedTurn {
                slot,
                samples,
                analysis: None,
            }
        }));
        let result = guard_with_reason(|| {
            playable.process(&mut requests);
            played
                .iter_mut()
                .for_each(|turn| turn.analysis = playable.input_analysis(turn.slot));
        });
        let elapsed = start.elapsed();
        drop(requests);
        let sound = duration_of(longest, *sample_rate);
        self.slow_turns = if elapsed > sound {
            self.slow_turns + 1
        } else {
            0
        };
        let warning = executor::take_warning();
        let is_program_lost = executor::take_program_lost();
        for turn in played {
            let Some(slot) = &mut self.slots[turn.slot] else {
                continue;
            };
            slot.metrics.record_step(elapsed, sound);
            trace().push(Span::since("step", slot.instance, start, elapsed));
            if let Some(warning) = &warning {
                slot.metrics.set_warning(warning);
            }
            match &result {
                Ok(()) => slot.deliver(&mut *self.playable, &turn),
                Err(reason) => {
                    slot.metrics
                        .is_program_lost
                        .store(is_program_lost, Ordering::Relaxed);
                    slot.fail(reason.clone());
                }
            }
        }
        true
    }
}

impl WorkerSlot {
    /// Ends the session: it falls silent and reports the reason.
    fn fail(&self, reason: String) {
        // Before the session sees the failure and asks for the reason.
        self.metrics.set_failure(reason);
        self.progress.has_failed.store(true, Ordering::Release);
    }

    /// Runs the model's code for this session; a panic ends it.
    fn guard<R>(&self, work: impl FnOnce() -> R) -> Option<R> {
        guard_with_reason(work)
            .map_err(|reason| self.fail(reason))
            .ok()
    }

    /// Returns the request for the next turn; `None` without pending input, without room for
    /// output, or after a failure.
    fn next_request(
        &mut self,
        playable: &mut dyn Playable,
        index: usize,
        max_samples: u64,
    ) -> Option<ProcessRequest<'_>> {
        // Acquire: all input and all commands before this sample are visible.
        let input_end = self.progress.input_end.load(Ordering::Acquire);
        // No more than there is room for: the session drops what it takes late.
        let pending = input_end.saturating_sub(self.position).min(max_samples) as usize;
        let vacant = self
            .output
            .iter()
            .map(Observer::vacant_len)
            .min()
            .unwrap_or(0);
        let length = pending.min(vacant);
        if length == 0 || self.progress.has_failed.load(Ordering::Relaxed) {
            return None;
        }
        self.forward_commands(playable, index);
        if self.uses_audio_input {
            self.history.read(
                self.channels,
                self.position,
                &mut self.input_buffers,
                length,
            );
        }
        let end = self.position + length as u64;
        // Output that the session has already gone without is not computed.
        let mute = self.progress.is_warm.load(Ordering::Relaxed)
            && end <= self.progress.played_end.load(Ordering::Relaxed);
        let input_length = if self.uses_audio_input { length } else { 0 };
        let input = self
            .input_buffers
            .each_ref()
            .map(|side| &side[..input_length]);
        let output = first_samples(&mut self.output_buffers, length);
        Some(ProcessRequest {
            slot: index,
            input,
            output,
            mute,
        })
    }

    /// Hands pending commands to the model.
    fn forward_commands(&mut self, playable: &mut dyn Playable, index: usize) {
        while let Some(command) = self
            .deferred_command
            .take()
            .or_else(|| self.commands.try_pop())
        {
            if let Some(Err(_)) = self.guard(|| playable.handle(index, command)) {
                self.deferred_command = Some(command);
                break;
            }
        }
    }

    /// Sends the output of a turn to the session.
    fn deliver(&mut self, playable: &mut dyn Playable, turn: &PlayedTurn) {
        let PlayedTurn {
            slot: index,
            samples,
            analysis,
        } = *turn;
        self.metrics.set_input_analysis(analysis);
        self.guard(|| self.metrics.set_latents(playable.latents(index)));
        self.position += samples as u64;
        let mut is_finite = true;
        for (output, side) in self.output.iter_mut().zip(&self.output_buffers) {
            output.push_slice(&side[..samples]);
            is_finite &= all_finite(&side[..samples]);
        }
        if !is_finite {
            // The session will not play this block; the next one starts from a reset.
            let start = SessionStart {
                at: self.position,
                ..self.start
            };
            self.guard(|| playable.open(index, &start));
        }
        self.progress
            .output_end
            .store(self.position, Ordering::Release);
    }
}
