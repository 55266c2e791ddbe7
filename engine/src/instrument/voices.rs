//! Polyphony: which voice plays which note.

mod slot;

use super::channel::Change;
use super::channels::Channels;
use super::event::{Event, EventKind, controller};
use super::performance_state::PerformanceState;
use super::performance::{Performance, PlayMode, Setting};
use super::voice::{ControlFrame, Hold, NoteStart, SILENCE_DB, Voice};
use super::zone::ChannelSet;
use crate::dsp::noise::stream_seed;
use slot::{Follows, VoiceSlot, SlotState, answering};
use std::collections::VecDeque;
use thiserror::Error;

/// How many events may wait for their frame. A dense second of MIDI over one cable has about a thousand; what a
/// [`PerformanceState`] tells at once may be over twice that.
const QUEUE_EVENTS: usize = 2560;
const _: () = assert!(PerformanceState::MAX_EVENTS < QUEUE_EVENTS);
/// The most voices that may be asked for.
const MOST_VOICES: usize = 64;
/// A second of age weighs as much as this many dB when the voice to be stolen is chosen: of equal ones the oldest goes.
const AGE_DB_PER_S: f64 = 3.0;

/// One slot of polyphony at one frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VoiceFrame {
    /// Whether there is anything to synthesise. The last frame of a note has gain 0 and still sounds, so that its fade can
    /// be played to the end.
    pub sounding: bool,
    /// Another note begins in this slot: the network's state must be reset before this frame. Gain was 0 at the frame
    /// before.
    pub restarted: bool,
    /// Pitch in semitones: MIDI note number, 69 is 440 Hz.
    pub pitch: f32,
    /// A-weighted level in dB.
    pub loudness: f32,
    /// Factor for the slot's sound, 0 … 1; between two frames it goes in a straight line.
    pub gain: f32,
    /// By how much louder the note is to be played than it is heard, in dB; 0 at rest. See [`ControlFrame::brightness`].
    pub brightness: f32,
}

impl VoiceFrame {
    /// A slot in which nothing sounds.
    pub const SILENT: Self =
        Self { sounding: false, restarted: false, pitch: 69.0, loudness: SILENCE_DB, gain: 0.0, brightness: 0.0 };
}

impl Default for VoiceFrame {
    fn default() -> Self {
        Self::SILENT
    }
}

/// An event, or a [`Setting`], for which there is no room: frames have to be taken before more are given.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("more than {QUEUE_EVENTS} events wait for their frame")]
pub struct QueueFull<T = Event>(pub T);

/// What waits for its frame.
#[derive(Clone, Copy, Debug)]
enum Task {
    Play(EventKind),
    Set(Setting),
}

/// The voices of one instrument.
///
/// Events go in with the times at which they happen, frames come out at the times that are asked for; a frame knows the
/// events up to its own time and no later ones, however early they were given. Nothing is allocated after construction.
///
/// There are twice as many slots as voices. A note that has to make room is faded out in its own slot while the new one
/// begins in another, so as many notes can be replaced at once as can sound.
#[derive(Clone, Debug)]
pub struct Voices {
    performance: Performance,
    /// What [`Self::new`] was given.
    first_performance: Performance,
    /// What is set otherwise than the performance says.
    mode: Option<PlayMode>,
    glide_ms: Option<f32>,
    limit: Option<usize>,
    sample_rate: f64,
    hop: u32,
    polyphony: usize,
    seed: u64,
    transposition_semitones: f32,
    slots: Box<[VoiceSlot]>,
    channels: Channels,
    queue: VecDeque<(u64, Task)>,
    /// Time of the last event taken in; time does not run backwards.
    latest: u64,
    notes_dropped: u64,
}

impl Voices {
    /// `voices` (1 … 64) notes at once, at `sample_rate` in Hz, with frames `hop` samples apart. What is random follows from
    /// `seed`.
    pub fn new(performance: &Performance, voices: usize, sample_rate: f64, hop: u32, seed: u64) -> Self {
        let polyphony = voices.clamp(1, MOST_VOICES);
        let slot = VoiceSlot {
            state: SlotState::Free,
            voice: Voice::new(
                performance,
                sample_rate,
                hop,
                NoteStart { at: 0, channel: 0, key: 60, velocity: 0.0, seed: 0 },
            ),
            follows: Follows::Channel,
            unheard: false,
            begun_at: 0,
        };
        Self {
            performance: *performance,
            first_performance: *performance,
            mode: None,
            glide_ms: None,
            limit: None,
            sample_rate,
            hop,
            polyphony,
            seed,
            transposition_semitones: 0.0,
            slots: vec![slot; 2 * polyphony].into_boxed_slice(),
            channels: Channels::new(sample_rate),
            queue: VecDeque::with_capacity(QUEUE_EVENTS),
            latest: 0,
            notes_dropped: 0,
        }
    }

    /// How many slots a frame has.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// How many notes found no slot. That takes more new notes within one fade (5 ms) than there are voices.
    pub fn notes_dropped(&self) -> u64 {
        self.notes_dropped
    }

    /// Shifts the pitch of everything, from the next frame on.
    pub fn set_transposition(&mut self, semitones: f32) {
        self.transposition_semitones = if semitones.is_finite() { semitones } else { 0.0 };
    }

    /// Plays notes that begin from now on differently.
    pub fn set_performance(&mut self, performance: &Performance) {
        let before = self.mode();
        self.performance = *performance;
        self.unite_after(before, self.latest);
    }

    /// Forgets everything that has been played: time may begin again from 0. How it is set stays.
    pub fn reset(&mut self) {
        for slot in &mut self.slots {
            slot.state = SlotState::Free;
        }
        self.channels = Channels::new(self.sample_rate);
        self.queue.clear();
        self.latest = 0;
        self.notes_dropped = 0;
    }

    /// Begins another session: as new, with another seed. How it was set since [`Self::new`] is forgotten too.
    pub fn restart(&mut self, seed: u64) {
        self.reset();
        self.seed = seed;
        self.performance = self.first_performance;
        (self.mode, self.glide_ms, self.limit) = (None, None, None);
        self.transposition_semitones = 0.0;
    }

    /// Takes in an event. Events come in the order of their times; one that is late happens when the one before it did.
    pub fn handle(&mut self, event: &Event) -> Result<(), QueueFull> {
        if self.queue.len() == QUEUE_EVENTS {
            return Err(QueueFull(*event));
        }
        self.latest = self.latest.max(event.at);
        self.queue.push_back((self.latest, Task::Play(event.kind)));
        Ok(())
    }

    /// Changes a setting at time `at`, in its place among the events. Events that are given after it and lie before it keep
    /// their times: what is set at the start of a session counts for the notes that it takes over.
    pub fn set(&mut self, at: u64, setting: Setting) -> Result<(), QueueFull<Setting>> {
        if self.queue.len() == QUEUE_EVENTS {
            return Err(QueueFull(setting));
        }
        self.queue.push_back((self.latest.max(at), Task::Set(setting)));
        Ok(())
    }

    /// The frame at time `at`, in samples, one entry per slot. Returns how many slots sound. Frames are taken in the order
    /// of their times; the first may be at any time, and events before it have happened at their own.
    pub fn frame(&mut self, at: u64, out: &mut [VoiceFrame]) -> usize {
        while let Some(&(when, task)) = self.queue.front()
            && when <= at
        {
            self.queue.pop_front();
            match task {
                Task::Play(kind) => self.apply(when, kind),
                Task::Set(setting) => self.apply_setting(when, setting),
            }
        }
        let mut sounding = 0;
        out.fill(VoiceFrame::SILENT);
        for (slot, out) in self.slots.iter_mut().zip(out) {
            if slot.state == SlotState::Free {
                continue;
            }
            if slot.unheard && slot.voice.has_died_away(at) {
                slot.state = SlotState::Free;
                continue;
            }
            let values = slot.values(at, &self.channels);
            let ControlFrame { pitch, loudness, gain, brightness } = slot.voice.control(at, &values);
            *out = VoiceFrame {
                sounding: true,
                restarted: slot.unheard,
                pitch: pitch + self.transposition_semitones,
                loudness,
                gain,
                brightness,
            };
            sounding += 1;
            slot.unheard = false;
            if slot.voice.is_over(at) {
                slot.state = SlotState::Free;
            }
        }
        sounding
    }

    fn apply(&mut self, t: u64, kind: EventKind) {
        match kind.within_limits() {
            EventKind::NoteOn { channel, key, velocity } => self.note_on(t, channel, key, velocity),
            EventKind::NoteOff { channel, key, .. } => self.note_off(t, channel, key),
            EventKind::Bend { channel, semitones } => {
                let change = self.change(t, channel);
                self.channels[channel].bend(change, f64::from(semitones));
            }
            EventKind::Pressure { channel, value } => {
                let change = self.change(t, channel);
                self.channels[channel].pressure(change, f64::from(value));
            }
            EventKind::PolyPressure { channel, key, value } => {
                for slot in self.answering(channel).filter(|slot| slot.voice.key == key) {
                    slot.voice.set_pressure(t, f64::from(value));
                }
            }
            EventKind::NoteExpression { channel, key, expression } => {
                for slot in self.answering(channel).filter(|slot| slot.voice.key == key) {
                    slot.voice.express(t, expression);
                }
            }
            EventKind::Controller { channel, number, value } => self.controller(t, channel, number, value),
            EventKind::Zone { manager, members } => self.zone(t, manager, members),
        }
    }

    fn apply_setting(&mut self, t: u64, setting: Setting) {
        match setting {
            Setting::Mode(mode) => {
                let before = self.mode();
                self.mode = mode;
                self.unite_after(before, t);
            }
            Setting::GlideMs(glide_ms) => self.glide_ms = glide_ms,
            Setting::Voices(limit) => {
                self.limit = limit;
                for _ in self.polyphony()..self.playing() {
                    if let Some(victim) = self.victim(t) {
                        self.slots[victim].leave(t, &self.channels);
                    }
                }
            }
        }
    }

    /// How notes that overlap are played now.
    fn mode(&self) -> PlayMode {
        self.mode.unwrap_or(self.performance.mode)
    }

    /// Time of the slide between notes that share a voice, ms.
    fn glide_ms(&self) -> f32 {
        self.glide_ms.unwrap_or(self.performance.glide_ms).clamp(0.0, 5e3)
    }

    /// The most notes at once.
    fn polyphony(&self) -> usize {
        self.limit.map_or(self.polyphony, |limit| limit.clamp(1, self.polyphony))
    }

    fn playing(&self) -> usize {
        self.slots.iter().filter(|slot| slot.state == SlotState::Playing).count()
    }

    /// Where notes that had voices of their own now share one: on each channel one of those that are held goes on, that of the
    /// key that went down last, and the others are let go.
    fn unite_after(&mut self, before: PlayMode, t: u64) {
        if before != PlayMode::Poly || self.mode() == PlayMode::Poly {
            return;
        }
        let Self { slots, channels, .. } = self;
        for channel in 0..16 {
            let last = channels[channel].held.last().map(|held| held.key);
            let rank = |slot: &&mut VoiceSlot| (slot.voice.hold, Some(slot.voice.key) == last, slot.begun_at);
            let stays = answering(slots, channel).max_by_key(rank).map(|slot| slot.voice.key);
            for slot in answering(slots, channel).filter(|slot| Some(slot.voice.key) != stays) {
                slot.release(t, channels);
            }
        }
    }

    fn controller(&mut self, t: u64, channel: u8, number: u8, value: f32) {
        let affected = self.channels.zones().affected(channel);
        match number {
            controller::SUSTAIN => {
                self.channels[channel].pedal = value >= 0.5;
                self.release_unheld(t, affected);
            }
            controller::ALL_SOUND_OFF => {
                affected.iter().for_each(|channel| self.channels[channel].held.clear());
                for slot in &mut self.slots {
                    if slot.state == SlotState::Playing && affected.contains(slot.voice.channel) {
                        slot.leave(t, &self.channels);
                    }
                }
            }
            controller::ALL_NOTES_OFF.. => {
                for channel in affected.iter() {
                    self.channels[channel].held.clear();
                    let Self { slots, channels, .. } = self;
                    for slot in answering(slots, channel).filter(|slot| slot.voice.hold == Hold::Key) {
                        slot.let_go(t, channels);
                    }
                }
            }
            controller::RESET => {
                for channel in affected.iter() {
                    let change = self.change(t, channel);
                    self.channels[channel].reset(change);
                    self.channels[channel].pedal = false;
                    for slot in self.answering(channel) {
                        slot.voice.set_pressure(t, 0.0);
                    }
                }
                self.release_unheld(t, affected);
            }
            _ => {
                let change = self.change(t, channel);
                self.channels[channel].controller(change, number, f64::from(value));
            }
        }
    }

    /// Lets notes go that a pedal held which is up by now.
    fn release_unheld(&mut self, t: u64, affected: ChannelSet) {
        let Self { slots, channels, .. } = self;
        for channel in affected.iter().filter(|&channel| !channels.pedal(channel)) {
            for slot in answering(slots, channel).filter(|slot| slot.voice.hold == Hold::Pedal) {
                slot.release(t, channels);
            }
        }
    }

    /// Notes on channels whose place among zones changes are let go, and sound on as they were.
    fn zone(&mut self, t: u64, manager: u8, members: u8) {
        let mut zones = self.channels.zones();
        let Some(changed) = zones.configure(manager, members) else { return };
        for slot in &mut self.slots {
            if slot.state != SlotState::Free && changed.contains(slot.voice.channel) {
                slot.voice.release(t);
                slot.follows = Follows::Nobody(slot.values(t, &self.channels));
            }
        }
        self.channels.set_zones(zones, changed);
    }

    fn note_on(&mut self, t: u64, channel: u8, key: u8, velocity: f32) {
        self.forget_unheard(t);
        let (mode, glide_ms) = (self.mode(), self.glide_ms());
        self.channels[channel].held.press(key, velocity);
        let Self { slots, channels, .. } = self;
        let slot = match mode {
            PlayMode::Poly => answering(slots, channel).find(|slot| slot.voice.key == key),
            PlayMode::Mono | PlayMode::Legato => answering(slots, channel).max_by_key(|slot| slot.firmness()),
        };
        let Some(slot) = slot else { return self.begin(t, channel, key, velocity) };
        match mode {
            PlayMode::Mono if slot.voice.hold != Hold::Nothing => {
                let values = slot.values(t, channels);
                slot.voice.take_over(t, key, velocity, glide_ms, &values);
            }
            PlayMode::Legato if slot.voice.hold != Hold::Nothing => slot.voice.slur(t, key, Some(velocity), glide_ms),
            _ => slot.voice.retrigger(t, key, velocity),
        }
    }

    fn note_off(&mut self, t: u64, channel: u8, key: u8) {
        let (mode, glide_ms) = (self.mode(), self.glide_ms());
        let Self { slots, channels, .. } = self;
        let held = &mut channels[channel].held;
        held.lift(key);
        let below = held.last();
        let this = |slot: &&mut VoiceSlot| slot.voice.key == key && slot.voice.hold == Hold::Key;
        let Some(slot) = answering(slots, channel).find(this) else {
            return;
        };
        match below {
            Some(below) if mode == PlayMode::Mono => {
                let values = slot.values(t, channels);
                slot.voice.take_over(t, below.key, below.velocity, glide_ms, &values);
            }
            Some(below) if mode == PlayMode::Legato => slot.voice.slur(t, below.key, None, glide_ms),
            _ => slot.let_go(t, channels),
        }
    }

    /// Makes room where a note has come and gone without a frame: time may go on for long before the first one.
    fn forget_unheard(&mut self, t: u64) {
        for slot in &mut self.slots {
            if slot.state != SlotState::Free && slot.unheard && slot.voice.has_died_away(t) {
                slot.state = SlotState::Free;
            }
        }
    }

    /// Begins a note in a slot of its own, and makes room for it if need be.
    fn begin(&mut self, t: u64, channel: u8, key: u8, velocity: f32) {
        let free = self.slots.iter().position(|slot| slot.state == SlotState::Free);
        let victim = if self.playing() >= self.polyphony() { self.victim(t) } else { None };
        let place = match (victim, free) {
            // Nobody has heard it yet: there is nothing to fade.
            (Some(victim), _) if self.slots[victim].unheard => Some(victim),
            (Some(victim), Some(_)) => {
                self.slots[victim].leave(t, &self.channels);
                free
            }
            (None, free) => free,
            (Some(_), None) => None,
        };
        let Some(place) = place else {
            self.notes_dropped += 1;
            return;
        };
        // What is random about a note follows from the note: whoever takes over in the middle of it goes on alike.
        let seed = stream_seed(self.seed, t ^ u64::from(key) << 48 ^ u64::from(channel) << 56);
        self.slots[place] = VoiceSlot {
            state: SlotState::Playing,
            voice: Voice::new(
                &self.performance,
                self.sample_rate,
                self.hop,
                NoteStart { at: t, channel, key, velocity, seed },
            ),
            follows: Follows::Channel,
            unheard: true,
            begun_at: t,
        };
    }

    /// The slot that will be missed least: one that was let go, else one that only the pedal holds, else any; among those
    /// the quietest, and of equally quiet ones the oldest.
    fn victim(&self, t: u64) -> Option<usize> {
        let missed = |slot: &VoiceSlot| {
            let age_s = t.saturating_sub(slot.begun_at) as f64 / self.sample_rate;
            (slot.voice.hold, slot.voice.presence_db(t) - AGE_DB_PER_S * age_s)
        };
        let playing = self.slots.iter().enumerate().filter(|(_, slot)| slot.state == SlotState::Playing);
        playing
            .map(|(i, slot)| (i, missed(slot)))
            .min_by(|(_, a), (_, b)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)))
            .map(|(i, _)| i)
    }

    fn answering(&mut self, channel: u8) -> impl Iterator<Item = &mut VoiceSlot> {
        answering(&mut self.slots, channel)
    }

    /// How a wheel of this channel moves: smoothly if anything sounds that follows it.
    fn change(&self, t: u64, channel: u8) -> Change {
        let affected = self.channels.zones().affected(channel);
        let moved = |slot: &VoiceSlot| match slot.follows {
            Follows::Channel => affected.contains(slot.voice.channel),
            Follows::Manager(_) => slot.voice.channel != channel && affected.contains(slot.voice.channel),
            Follows::Nobody(_) => false,
        };
        if self.slots.iter().any(|slot| slot.state != SlotState::Free && moved(slot)) {
            Change::From(t)
        } else {
            Change::Snap
        }
    }
}

#[cfg(test)]
mod tests;
