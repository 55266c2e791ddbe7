//! The audio thread's half of a session: what a host calls for every block.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::atomic::AtomicCell;
use ringbuf::HeapProd;
use ringbuf::traits::{Observer, Producer};

use super::gate;
use super::history::{History, HistoryWriter};
use super::lane::{Block, LOUDEST, Lane};
use super::snapshot::{Snapshot, TURNED};
use super::strain::Strain;
use crate::instrument::{Event, EventKind, Memory, controller};
use crate::pipeline::{Action, ControlId, Cue, Transport};

/// How long one model takes over from another, seconds.
const CROSS_FADE_S: f64 = 0.020;
/// Cues that a model which takes over is told afterwards.
pub(super) const RECENT_CUES: usize = 512;
/// How much input is remembered for a model that takes over and for a worker that is late, seconds.
pub(super) const HISTORY_S: f64 = 2.0;
/// Lanes that may wait to be taken back.
pub(super) const RETIRED: usize = 8;

/// How a host plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Hz, 8,000 to 384,000.
    pub sample_rate: u32,
    /// Samples of the longest block, 1 to 8192; longer ones are taken in pieces.
    pub max_block: usize,
}

/// Something to do within a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockCue {
    /// At which sample of the block.
    pub offset: usize,
    /// What.
    pub action: Action,
}

/// What audio thread, loader and listeners share.
pub(super) struct Link {
    pub setup: Setup,
    /// A model that is ready to take over.
    pub arrival: AtomicCell<Option<Box<Lane>>>,
    /// An empty snapshot that wants to be filled, and one that is.
    pub ask: AtomicCell<Option<Box<Snapshot>>>,
    pub answer: AtomicCell<Option<Box<Snapshot>>>,
    pub history: Arc<History>,
    /// Number of the next sample.
    pub now: AtomicU64,
    /// Which lane is heard; 0 is none.
    pub heard: AtomicU32,
    pub latency: AtomicUsize,
    /// The host is not in a hurry.
    pub patient: AtomicBool,
    /// Count of all cues so far.
    pub cues: AtomicU64,
    pub cues_lost: AtomicU64,
    /// Share of the time of its callbacks that is spent in them, by all that plays there, lately; an `f32`'s bits.
    pub strain: AtomicU32,
    /// The last lane whose model's code broke down, 0 for none: one that is heard, or was to take over.
    pub failed: AtomicU32,
}

/// A model in a host: blocks of any size with cues at any sample go in, sound comes out.
///
/// This half belongs to the audio thread; [`Remote`](super::Remote) is the other one. Nothing here allocates, frees, locks or
/// waits, except that [`Remote::set_patient`](super::Remote::set_patient) makes it wait for a worker, and that a model's code
/// that panics in the callback has its message printed, once.
pub struct Session {
    link: Arc<Link>,
    history: HistoryWriter,
    now: u64,
    lane: Option<Box<Lane>>,
    /// Another model that takes over, and how far it has: samples of the cross-fade.
    next: Option<(Box<Lane>, usize)>,
    /// `[sample of the cross-fade]`: the gain of the one that comes.
    fade: Box<[f32]>,
    retired: HeapProd<Box<Lane>>,
    memory: Memory,
    turned: Vec<(ControlId, f32)>,
    /// The model that they were turned on.
    turned_on: Option<u64>,
    transport: Option<(u64, Transport)>,
    recent: Box<[Cue]>,
    /// Count of all cues so far.
    cues: u64,
    input: Vec<f32>,
    sound: [Vec<f32>; 2],
    strain: Strain,
}

impl Session {
    pub(super) fn new(link: Arc<Link>, retired: HeapProd<Box<Lane>>, lane: Option<Box<Lane>>) -> Option<Self> {
        let fade = (CROSS_FADE_S * f64::from(link.setup.sample_rate)).ceil().max(1.0) as usize;
        let gain = |n: usize| (0.5 - 0.5 * (std::f64::consts::PI * n as f64 / fade as f64).cos()) as f32;
        let nothing = Cue { at: 0, action: Action::Control { id: ControlId::of(""), value: 0.0 } };
        let block = || vec![0.0; link.setup.max_block];
        let session = Self {
            history: link.history.writer()?,
            now: 0,
            next: None,
            fade: (1..=fade).map(gain).collect(),
            retired,
            memory: Memory::new(),
            turned: Vec::with_capacity(TURNED),
            turned_on: lane.as_ref().map(|lane| lane.tag),
            transport: None,
            recent: vec![nothing; RECENT_CUES].into(),
            cues: 0,
            input: block(),
            sound: [block(), block()],
            strain: Strain::new(link.setup.sample_rate),
            lane,
            link,
        };
        session.tell();
        Some(session)
    }

    /// Host samples from a cue or a sound at the input to what it makes at the output. It changes only when another model
    /// has taken over, or another driver.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.lane.as_ref().map_or(0, |lane| lane.latency_samples())
    }

    /// The model that is heard, or begins to be, by the number that [`Remote::load`](super::Remote::load) has given; none while
    /// there is none.
    #[must_use]
    pub fn heard(&self) -> Option<u64> {
        let coming = self.next.as_ref().filter(|(_, faded)| *faded > 0).map(|(lane, _)| lane);
        coming.or(self.lane.as_ref()).map(|lane| lane.tag)
    }

    /// Host samples that still sound after all that drives the sound has ended, latency aside.
    #[must_use]
    pub fn tail_samples(&self) -> usize {
        self.lane.as_ref().map_or(0, |lane| lane.tail_samples())
    }

    /// Plays a block: `input[channel][frame]`, of any number of channels, none for silence; `output[channel][frame]`, which is
    /// filled, the same on every channel. Cues come in the order of their offsets.
    ///
    /// # Panics
    /// When channels differ in length.
    pub fn process(&mut self, cues: &[BlockCue], input: &[&[f32]], output: &mut [&mut [f32]]) {
        gate::enter(|| {
            let out = output.first().map(|channel| channel.len());
            // Time goes on where nobody listens.
            let frames = out.or(input.first().map(|channel| channel.len())).unwrap_or(0);
            assert!(input.iter().all(|channel| channel.len() == frames), "input and output must be equally long");
            assert!(output.iter().all(|channel| channel.len() == frames), "all channels must be equally long");
            self.link.strain.store(self.strain.next(frames).to_bits(), Ordering::Relaxed);
            let mut cues = cues;
            let mut start = 0;
            while start < frames {
                let end = frames.min(start + self.link.setup.max_block);
                // What lies beyond the block still has to happen.
                let here = if end == frames { cues.len() } else { cues.partition_point(|cue| cue.offset < end) };
                let (now, later) = cues.split_at(here);
                self.listen(input, start, end);
                self.block(now, start, end - start);
                for channel in output.iter_mut() {
                    channel[start..end].copy_from_slice(&self.sound[0][..end - start]);
                }
                (cues, start) = (later, end);
            }
            // A block without samples, such as a host sends to hand over cues alone.
            if frames == 0 {
                cues.iter().for_each(|cue| self.take(Cue { at: self.now, action: cue.action }));
            }
        });
    }

    /// Ends all notes at once, on all channels, and puts all wheels to rest.
    pub fn reset(&mut self) {
        gate::enter(|| {
            for channel in 0..16 {
                for number in [controller::ALL_SOUND_OFF, controller::RESET] {
                    self.take(Cue {
                        at: self.now,
                        action: Action::Play(EventKind::Controller { channel, number, value: 0.0 }),
                    });
                }
            }
        });
    }

    /// Mixes the input to one channel and remembers it.
    fn listen(&mut self, input: &[&[f32]], start: usize, end: usize) {
        let mono = &mut self.input[..end - start];
        mono.fill(0.0);
        let gain = 1.0 / input.len().max(1) as f32;
        for channel in input {
            for (sum, sample) in mono.iter_mut().zip(&channel[start..end]) {
                let sane = if sample.is_finite() { *sample } else { 0.0 };
                *sum += gain * sane.clamp(-LOUDEST, LOUDEST);
            }
        }
        self.history.push(mono);
    }

    /// Plays a block of the input into `self.sound[0]`.
    fn block(&mut self, cues: &[BlockCue], start: usize, length: usize) {
        self.answer();
        self.adopt();
        for cue in cues {
            let offset = cue.offset.saturating_sub(start).min(length - 1);
            self.take(Cue { at: self.now + offset as u64, action: cue.action });
        }
        let [sound, arriving] = &mut self.sound;
        let (sound, arriving) = (&mut sound[..length], &mut arriving[..length]);
        let block = Block {
            at: self.now,
            input: &self.input[..length],
            history: &self.link.history,
            patient: self.link.patient.load(Ordering::Relaxed),
        };
        match &mut self.lane {
            Some(lane) => drop(lane.play(&block, sound)),
            None => sound.fill(0.0),
        }
        let (mut over, mut broken) = (false, false);
        if let Some((next, faded)) = &mut self.next {
            let plays = next.play(&block, arriving);
            broken = next.failure.is_some() && *faded == 0;
            // Once it has begun, a cross-fade goes on: a model that is late has its own way to fall silent.
            if !broken && (plays || *faded > 0) {
                let gains = self.fade[*faded..].iter().copied().chain(std::iter::repeat(1.0));
                for ((old, new), gain) in sound.iter_mut().zip(&*arriving).zip(gains) {
                    *old += gain * (new - *old);
                }
                *faded = (*faded + length).min(self.fade.len());
                over = *faded == self.fade.len();
            }
        }
        self.now += length as u64;
        self.link.cues.store(self.cues, Ordering::Relaxed);
        self.link.now.store(self.now, Ordering::Release);
        if over {
            self.take_over();
        }
        if broken && let Some((next, _)) = self.next.take() {
            // It broke down before it was heard: the other one plays on.
            self.link.failed.store(next.number, Ordering::Relaxed);
            self.retire(next);
        } else {
            let newest = self.next.as_ref().map(|(next, _)| next).or(self.lane.as_ref());
            if let Some(lane) = newest.filter(|lane| lane.failure.is_some()) {
                self.link.failed.store(lane.number, Ordering::Relaxed);
            }
        }
    }

    /// The model that came is now the one that is heard.
    fn take_over(&mut self) {
        if let Some((next, _)) = self.next.take() {
            if let Some(old) = self.lane.replace(next) {
                self.retire(old);
            }
            self.tell();
        }
    }

    /// Gives a lane back to the loader.
    fn retire(&mut self, lane: Box<Lane>) {
        // There is room since a lane was adopted that this one makes way for.
        if let Err(lane) = self.retired.try_push(lane) {
            std::mem::forget(lane);
        }
    }

    /// Says which lane is heard, and with which latency.
    fn tell(&self) {
        self.link.heard.store(self.lane.as_ref().map_or(0, |lane| lane.number), Ordering::Relaxed);
        self.link.latency.store(self.latency_samples(), Ordering::Relaxed);
    }

    /// Takes a model that is ready, and tells it what has happened since it was made.
    fn adopt(&mut self) {
        // One that has not been heard yet gives way to a newer one: it may be too slow ever to be heard. Room for both.
        let fading = self.next.as_ref().is_some_and(|(_, faded)| *faded > 0);
        if fading || self.retired.vacant_len() < 2 {
            return;
        }
        let Some(mut lane) = self.link.arrival.take() else { return };
        if !lane.told && self.cues > 0 {
            // It was made while we stood still, and nobody told it what is held and turned: once more.
            return self.retire(lane);
        }
        if let Some((unheard, _)) = self.next.take() {
            self.retire(unheard);
        }
        let new = self.cues.saturating_sub(lane.next_cue).min(self.recent.len() as u64);
        let another = self.turned_on.replace(lane.tag) != Some(lane.tag);
        if another {
            self.turned.clear();
        }
        for count in self.cues - new..self.cues {
            let cue = self.recent[count as usize % self.recent.len()];
            if another {
                self.note_turn(cue.action);
            }
            self.count_lost(lane.handle(cue));
        }
        self.next = Some((lane, 0));
    }

    /// A cue reaches all models at work, and is remembered for those to come.
    fn take(&mut self, cue: Cue) {
        match cue.action {
            Action::Play(kind) => self.memory.note(&Event { at: cue.at, kind }),
            Action::Control { .. } => self.note_turn(cue.action),
            Action::Transport(song) => self.transport = Some((cue.at, song)),
        }
        let place = self.cues as usize % self.recent.len();
        self.recent[place] = cue;
        self.cues += 1;
        let lost = self.lane.as_mut().is_some_and(|lane| !lane.handle(cue));
        let lost_next = self.next.as_mut().is_some_and(|(lane, _)| !lane.handle(cue));
        self.count_lost(!lost);
        self.count_lost(!lost_next);
    }

    /// Remembers where a knob was turned to.
    fn note_turn(&mut self, action: Action) {
        let Action::Control { id, value } = action else { return };
        match self.turned.iter().position(|(turned, _)| *turned == id) {
            Some(place) => self.turned[place].1 = value,
            None if self.turned.len() < TURNED => self.turned.push((id, value)),
            None => {}
        }
    }

    fn count_lost(&self, taken: bool) {
        if !taken {
            self.link.cues_lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Fills a snapshot, where one is asked for.
    fn answer(&mut self) {
        let Some(mut snapshot) = self.link.ask.take() else { return };
        snapshot.now = self.now;
        snapshot.memory.copy_from(&self.memory);
        snapshot.turned.clear();
        snapshot.turned.extend_from_slice(&self.turned);
        (snapshot.tag, snapshot.transport) = (self.turned_on, self.transport);
        snapshot.cues = self.cues;
        snapshot.recent.clear();
        let kept = self.cues.min(self.recent.len() as u64);
        for count in self.cues - kept..self.cues {
            snapshot.recent.push(self.recent[count as usize % self.recent.len()]);
        }
        // Nobody asks twice before taking the answer, so nothing is dropped here.
        if let Some(unread) = self.link.answer.swap(Some(snapshot)) {
            std::mem::forget(unread);
        }
    }
}
