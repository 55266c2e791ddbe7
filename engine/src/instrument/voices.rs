//! Polyphony: which voice plays which note.

use super::channel::{Change, Channel};
use super::event::{Event, EventKind, controller};
use super::performance::{Performance, PlayMode};
use super::voice::{ControlFrame, Hold, Note, SILENCE_DB, Voice};
use std::collections::VecDeque;
use thiserror::Error;

/// How many events may wait for their frame. A dense second of MIDI over one cable has about a thousand.
const QUEUE_EVENTS: usize = 1024;
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
}

impl VoiceFrame {
    /// A slot in which nothing sounds.
    pub const SILENT: Self = Self { sounding: false, restarted: false, pitch: 69.0, loudness: SILENCE_DB, gain: 0.0 };
}

impl Default for VoiceFrame {
    fn default() -> Self {
        Self::SILENT
    }
}

/// An event for which there is no room: frames have to be taken before more events are given.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("more than {QUEUE_EVENTS} events wait for their frame")]
pub struct QueueFull(pub Event);

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
    sample_rate: f64,
    hop: u32,
    polyphony: usize,
    seed: u64,
    transposition_semitones: f32,
    slots: Box<[Slot]>,
    channels: [Channel; 16],
    queue: VecDeque<Event>,
    /// Time of the last event taken in; time does not run backwards.
    latest: u64,
    notes_begun: u64,
    notes_dropped: u64,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    state: SlotState,
    voice: Voice,
    /// No frame has shown this note yet.
    unheard: bool,
    begun_at: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotState {
    Free,
    Playing,
    /// Fading out, to be free when a frame has shown gain 0.
    Leaving,
}

impl Voices {
    /// `voices` (1 … 64) notes at once, at `sample_rate` in Hz, with frames `hop` samples apart. What is random follows from
    /// `seed`.
    pub fn new(performance: &Performance, voices: usize, sample_rate: f64, hop: u32, seed: u64) -> Self {
        let polyphony = voices.clamp(1, MOST_VOICES);
        let slot = Slot {
            state: SlotState::Free,
            voice: Voice::new(
                performance,
                sample_rate,
                hop,
                Note { at: 0, channel: 0, key: 60, velocity: 0.0, seed: 0 },
            ),
            unheard: false,
            begun_at: 0,
        };
        Self {
            performance: *performance,
            sample_rate,
            hop,
            polyphony,
            seed,
            transposition_semitones: 0.0,
            slots: vec![slot; 2 * polyphony].into_boxed_slice(),
            channels: [Channel::new(sample_rate); 16],
            queue: VecDeque::with_capacity(QUEUE_EVENTS),
            latest: 0,
            notes_begun: 0,
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
        self.performance = *performance;
    }

    /// Forgets everything that has been played, as if new: time may begin again from 0.
    pub fn reset(&mut self) {
        for slot in &mut self.slots {
            slot.state = SlotState::Free;
        }
        self.channels = [Channel::new(self.sample_rate); 16];
        self.queue.clear();
        self.latest = 0;
        self.notes_begun = 0;
        self.notes_dropped = 0;
    }

    /// Takes in an event. Events come in the order of their times; one that is late happens when the one before it did.
    pub fn handle(&mut self, event: &Event) -> Result<(), QueueFull> {
        if self.queue.len() == QUEUE_EVENTS {
            return Err(QueueFull(*event));
        }
        self.latest = self.latest.max(event.at);
        self.queue.push_back(Event { at: self.latest, kind: event.kind });
        Ok(())
    }

    /// The frame at time `at`, in samples, one entry per slot. Returns how many slots sound. Frames are taken in the order
    /// of their times.
    pub fn frame(&mut self, at: u64, out: &mut [VoiceFrame]) -> usize {
        while let Some(&event) = self.queue.front()
            && event.at <= at
        {
            self.queue.pop_front();
            self.apply(event.at, event.kind);
        }
        let mut sounding = 0;
        out.fill(VoiceFrame::SILENT);
        for (slot, out) in self.slots.iter_mut().zip(out) {
            if slot.state == SlotState::Free {
                continue;
            }
            let values = self.channels[usize::from(slot.voice.channel)].values(at);
            let ControlFrame { pitch, loudness, gain } = slot.voice.control(at, &values);
            *out = VoiceFrame {
                sounding: true,
                restarted: slot.unheard,
                pitch: pitch + self.transposition_semitones,
                loudness,
                gain,
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
        let channel = kind.channel() & 15;
        let change = self.change(t, channel);
        match kind {
            EventKind::NoteOn { key, velocity, .. } => match unit(velocity) {
                0.0 => self.note_off(t, channel, key & 127),
                velocity => self.note_on(t, channel, key & 127, velocity),
            },
            EventKind::NoteOff { key, .. } => self.note_off(t, channel, key & 127),
            EventKind::Bend { semitones, .. } => {
                self.channel(channel).bend(change, f64::from(finite(semitones)));
            }
            EventKind::Pressure { value, .. } => {
                self.channel(channel).pressure(change, f64::from(unit(value)));
            }
            EventKind::PolyPressure { key, value, .. } => {
                for voice in self.playing(channel).filter(|voice| voice.key == key) {
                    voice.set_pressure(t, f64::from(unit(value)));
                }
            }
            EventKind::Note { key, expression, .. } => {
                use super::event::NoteExpression::{Level, Tuning};
                let expression = match expression {
                    Tuning(semitones) => Tuning(finite(semitones)),
                    Level(db) => Level(finite(db)),
                };
                for voice in self.playing(channel).filter(|voice| voice.key == key) {
                    voice.express(t, expression);
                }
            }
            EventKind::Controller { number, value, .. } => self.controller(t, channel, number, unit(value)),
        }
    }

    fn controller(&mut self, t: u64, channel: u8, number: u8, value: f32) {
        match number {
            controller::SUSTAIN => self.pedal(t, channel, value >= 0.5),
            controller::ALL_SOUND_OFF => {
                self.channel(channel).held.clear();
                for slot in &mut self.slots {
                    if slot.state == SlotState::Playing && slot.voice.channel == channel {
                        slot.leave(t);
                    }
                }
            }
            controller::ALL_NOTES_OFF.. => {
                self.channel(channel).held.clear();
                let pedal = self.channel(channel).pedal;
                for voice in self.playing(channel).filter(|voice| voice.hold == Hold::Key) {
                    voice.let_go(t, pedal);
                }
            }
            controller::RESET => {
                let change = self.change(t, channel);
                self.channel(channel).reset(change);
                self.pedal(t, channel, false);
                for voice in self.playing(channel) {
                    voice.set_pressure(t, 0.0);
                }
            }
            _ => {
                let change = self.change(t, channel);
                self.channel(channel).controller(change, number, f64::from(value));
            }
        }
    }

    fn pedal(&mut self, t: u64, channel: u8, down: bool) {
        self.channel(channel).pedal = down;
        if !down {
            for voice in self.playing(channel).filter(|voice| voice.hold == Hold::Pedal) {
                voice.release(t);
            }
        }
    }

    fn note_on(&mut self, t: u64, channel: u8, key: u8, velocity: f32) {
        let mode = self.performance.mode;
        self.channel(channel).held.press(key);
        let same = self.playing(channel).find(|voice| mode == PlayMode::Legato || voice.key == key);
        match same {
            Some(voice) if mode == PlayMode::Legato && voice.hold != Hold::Nothing => {
                voice.slur(t, key, Some(velocity));
            }
            Some(voice) => voice.retrigger(t, key, velocity),
            None => self.begin(t, channel, key, velocity),
        }
    }

    fn note_off(&mut self, t: u64, channel: u8, key: u8) {
        let legato = self.performance.mode == PlayMode::Legato;
        let state = self.channel(channel);
        state.held.lift(key);
        let (pedal, below) = (state.pedal, state.held.last());
        let Some(voice) = self.playing(channel).find(|voice| voice.key == key && voice.hold == Hold::Key) else {
            return;
        };
        match below {
            Some(below) if legato => voice.slur(t, below, None),
            _ => voice.let_go(t, pedal),
        }
    }

    /// Begins a note in a slot of its own, and makes room for it if need be.
    fn begin(&mut self, t: u64, channel: u8, key: u8, velocity: f32) {
        let playing = self.slots.iter().filter(|slot| slot.state == SlotState::Playing).count();
        let free = self.slots.iter().position(|slot| slot.state == SlotState::Free);
        let victim = if playing >= self.polyphony { self.victim(t) } else { None };
        let place = match (victim, free) {
            // Nobody has heard it yet: there is nothing to fade.
            (Some(victim), _) if self.slots[victim].unheard => Some(victim),
            (Some(victim), Some(_)) => {
                self.slots[victim].leave(t);
                free
            }
            (None, free) => free,
            (Some(_), None) => None,
        };
        let Some(place) = place else {
            self.notes_dropped += 1;
            return;
        };
        self.notes_begun += 1;
        let seed = self.seed.wrapping_add(self.notes_begun.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        self.slots[place] = Slot {
            state: SlotState::Playing,
            voice: Voice::new(
                &self.performance,
                self.sample_rate,
                self.hop,
                Note { at: t, channel, key, velocity, seed },
            ),
            unheard: true,
            begun_at: t,
        };
    }

    /// The slot that will be missed least: one that was let go, else one that only the pedal holds, else any; among those
    /// the quietest, and of equally quiet ones the oldest.
    fn victim(&self, t: u64) -> Option<usize> {
        let missed = |slot: &Slot| {
            let age_s = t.saturating_sub(slot.begun_at) as f64 / self.sample_rate;
            let rank = match slot.voice.hold {
                Hold::Nothing => 0,
                Hold::Pedal => 1,
                Hold::Key => 2,
            };
            (rank, slot.voice.presence_db(t) - AGE_DB_PER_S * age_s)
        };
        let playing = self.slots.iter().enumerate().filter(|(_, slot)| slot.state == SlotState::Playing);
        playing
            .map(|(i, slot)| (i, missed(slot)))
            .min_by(|(_, a), (_, b)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)))
            .map(|(i, _)| i)
    }

    fn channel(&mut self, channel: u8) -> &mut Channel {
        &mut self.channels[usize::from(channel)]
    }

    /// The voices of a channel that still answer to their keys.
    fn playing(&mut self, channel: u8) -> impl Iterator<Item = &mut Voice> {
        self.slots
            .iter_mut()
            .filter(|slot| slot.state == SlotState::Playing)
            .map(|slot| &mut slot.voice)
            .filter(move |voice| voice.channel == channel && !voice.is_fading())
    }

    fn change(&self, t: u64, channel: u8) -> Change {
        let sounds = |slot: &Slot| slot.state != SlotState::Free && slot.voice.channel == channel;
        if self.slots.iter().any(sounds) { Change::From(t) } else { Change::Snap }
    }
}

impl Slot {
    fn leave(&mut self, t: u64) {
        self.state = SlotState::Leaving;
        self.voice.steal(t);
    }
}

impl Voice {
    /// The key comes up: the pedal takes over, or nothing does.
    fn let_go(&mut self, t: u64, pedal: bool) {
        if pedal {
            self.hold = Hold::Pedal;
        } else {
            self.release(t);
        }
    }
}

/// A value that should be 0 … 1; what is not a number is 0.
fn unit(value: f32) -> f32 {
    finite(value).clamp(0.0, 1.0)
}

fn finite(value: f32) -> f32 {
    if value.is_finite() { value.clamp(-127.0, 127.0) } else { 0.0 }
}

#[cfg(test)]
mod tests;
