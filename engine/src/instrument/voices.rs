//! Polyphony: assignment of notes to voices.

mod controllers;
mod slot;

use super::channel::Change;
use super::channels::Channels;
use super::event::{Event, EventKind};
use super::performance::{Performance, PlayMode, Setting};
use super::performance_state::PerformanceState;
use super::voice::{ControlFrame, Hold, NoteStart, SILENCE_DB, Stroke, Voice};
use crate::dsp::noise::stream_seed;
use slot::{ModulationSource, SlotState, VoiceSlot, responding};
use std::collections::VecDeque;
use thiserror::Error;

/// Most queued events. A dense second of MIDI over one cable has about a thousand; a
/// [`PerformanceState`] may have more than twice as many.
const QUEUE_EVENTS: usize = 2560;
const _: () = assert!(PerformanceState::MAX_EVENTS < QUEUE_EVENTS);
/// Most voices.
const MAX_VOICES: usize = 64;
/// Number of keys.
const KEYS: usize = 128;
/// Factor of velocity while the soft pedal is down.
const SOFT_VELOCITY: f32 = 2.0 / 3.0;
/// Weight of age when a voice is stolen, dB per second: of equal voices the oldest is stolen.
const AGE_DB_PER_S: f64 = 3.0;

/// Output of a slot at one frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VoiceFrame {
    /// True if the slot needs synthesis. The last frame of a note has gain 0, but still counts, so
    /// that its fade is completed.
    pub sounding: bool,
    /// True if another note begins in this slot: reset the network's state before this frame. The
    /// previous frame had gain 0.
    pub restarted: bool,
    /// Pitch in semitones: MIDI note number, 69 is 440 Hz.
    pub pitch: f32,
    /// A-weighted level in dB.
    pub loudness: f32,
    /// Gain of the slot's output, 0 to 1, interpolated linearly between frames.
    pub gain: f32,
    /// Level in dB by which the note is played louder than it is output; neutral at 0. See
    /// [`ControlFrame::brightness`].
    pub brightness: f32,
    /// Rise of treble against bass by how the note is played, in dB.
    pub tilt: f32,
    /// The stroke that began the note, if that was after the frame before.
    pub stroke: Option<Stroke>,
    /// Level in dB and gain of a recorded attack; see [`ControlFrame::strike_db`].
    pub strike_db: f32,
    /// See [`ControlFrame::strike_gain`].
    pub strike_gain: f32,
}

impl VoiceFrame {
    /// Silent slot.
    pub const SILENT: Self = Self {
        sounding: false,
        restarted: false,
        pitch: 69.0,
        loudness: SILENCE_DB,
        gain: 0.0,
        brightness: 0.0,
        tilt: 0.0,
        stroke: None,
        strike_db: SILENCE_DB,
        strike_gain: 0.0,
    };
}

impl Default for VoiceFrame {
    fn default() -> Self {
        Self::SILENT
    }
}

/// The event or [`Setting`] was not queued, because the queue is full; take frames first.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("the event queue is full ({QUEUE_EVENTS} events); take frames before queueing more")]
pub struct QueueFull<T = Event>(pub T);

/// Queued action.
#[derive(Clone, Copy, Debug)]
enum QueuedAction {
    Play(EventKind),
    Set(Setting),
}

/// Voices of an instrument.
///
/// Events are queued with their times; frames are output for requested times and include all events
/// up to then, no matter how early they were queued. Allocates only on construction.
///
/// There are twice as many slots as voices: a stolen note fades out in its slot while the new note
/// starts in another. All notes can therefore be replaced at once.
///
/// # Examples
/// ```
/// use ondes_engine::instrument::{Event, EventKind, Performance, VoiceFrame, Voices};
///
/// let mut voices = Voices::new(&Performance::default(), 4, 48_000.0, 192, 1);
/// voices.handle(&Event { at: 0, kind: EventKind::NoteOn { channel: 0, key: 69, velocity: 0.8 } })?;
/// let mut frame = vec![VoiceFrame::SILENT; voices.slots()];
/// assert_eq!(voices.frame(9_600, &mut frame), 1);
/// assert!(frame[0].sounding && (frame[0].pitch - 69.0).abs() < 0.5);
/// # Ok::<(), ondes_engine::instrument::QueueFull>(())
/// ```
#[derive(Clone, Debug)]
pub struct Voices {
    performance: Performance,
    /// Settings given to [`Self::new`].
    initial_performance: Performance,
    /// Duration of attacks in recordings, ms.
    recorded_attack_ms: f32,
    /// Settings that override the performance.
    mode: Option<PlayMode>,
    glide_ms: Option<f32>,
    limit: Option<usize>,
    sample_rate: f64,
    hop: u32,
    polyphony: usize,
    seed: u64,
    transposition_semitones: f32,
    /// Pitch of each key in semitones; `None` for silent keys.
    pitches: [Option<f32>; KEYS],
    slots: Box<[VoiceSlot]>,
    channels: Channels,
    queue: VecDeque<(u64, QueuedAction)>,
    /// Time of the last event; times never decrease.
    latest: u64,
    notes_dropped: u64,
}

impl Voices {
    /// Creates `voices` voices (1 to 64) at a sample rate in Hz, with frames `hop` samples apart.
    /// Random variations depend on `seed`.
    pub fn new(
        performance: &Performance,
        voices: usize,
        sample_rate: f64,
        hop: u32,
        seed: u64,
    ) -> Self {
        let polyphony = voices.clamp(1, MAX_VOICES);
        let slot = VoiceSlot {
            state: SlotState::Free,
            voice: Voice::new(
                performance,
                sample_rate,
                hop,
                NoteStart {
                    at: 0,
                    channel: 0,
                    key: 60,
                    pitch: 60.0,
                    velocity: 0.0,
                    seed: 0,
                },
            ),
            modulation: ModulationSource::Channel,
            id: None,
            sostenuto: None,
            pending: false,
            started_at: 0,
        };
        Self {
            performance: *performance,
            initial_performance: *performance,
            recorded_attack_ms: performance.attack_ms,
            mode: None,
            glide_ms: None,
            limit: None,
            sample_rate,
            hop,
            polyphony,
            seed,
            transposition_semitones: 0.0,
            pitches: equal_temperament(),
            slots: vec![slot; 2 * polyphony].into_boxed_slice(),
            channels: Channels::new(sample_rate),
            queue: VecDeque::with_capacity(QUEUE_EVENTS),
            latest: 0,
            notes_dropped: 0,
        }
    }

    /// Returns the number of slots of a frame.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Returns the number of notes that were dropped because no slot was free. This takes more new
    /// notes within a fade (5 ms) than there are voices.
    pub fn notes_dropped(&self) -> u64 {
        self.notes_dropped
    }

    /// Transposes all notes from the next frame on.
    pub fn set_transposition(&mut self, semitones: f32) {
        self.transposition_semitones = if semitones.is_finite() {
            semitones
        } else {
            0.0
        };
    }

    /// Sets the duration that attacks have in the recordings of a model, ms.
    pub fn set_recorded_attack(&mut self, attack_ms: f32) {
        self.recorded_attack_ms = attack_ms;
    }

    /// Changes the performance of notes that start from now on.
    pub fn set_performance(&mut self, performance: &Performance) {
        self.change_mode(self.latest, |voices| voices.performance = *performance);
    }

    /// Clears all notes, events and controllers, so that time may start from 0. Settings are kept.
    pub fn reset(&mut self) {
        for slot in &mut self.slots {
            slot.state = SlotState::Free;
        }
        self.channels = Channels::new(self.sample_rate);
        self.queue.clear();
        self.latest = 0;
        self.notes_dropped = 0;
    }

    /// Starts a new session with another seed: clears everything, including settings.
    pub fn restart(&mut self, seed: u64) {
        self.reset();
        self.seed = seed;
        self.performance = self.initial_performance;
        (self.mode, self.glide_ms, self.limit) = (None, None, None);
        self.transposition_semitones = 0.0;
        self.pitches = equal_temperament();
    }

    /// Queues an event. Events must be in order of time; a late one gets the time of its
    /// predecessor.
    ///
    /// # Errors
    /// Returns the event if the queue is full.
    pub fn handle(&mut self, event: &Event) -> Result<(), QueueFull> {
        if self.queue.len() == QUEUE_EVENTS {
            return Err(QueueFull(*event));
        }
        self.latest = self.latest.max(event.at);
        self.queue
            .push_back((self.latest, QueuedAction::Play(event.kind)));
        Ok(())
    }

    /// Queues a change of a setting at time `at`. Later events with earlier times keep them, so
    /// that settings at the start of a session apply to the notes it takes over.
    ///
    /// # Errors
    /// Returns the setting if the queue is full.
    pub fn set(&mut self, at: u64, setting: Setting) -> Result<(), QueueFull<Setting>> {
        if self.queue.len() == QUEUE_EVENTS {
            return Err(QueueFull(setting));
        }
        self.queue
            .push_back((self.latest.max(at), QueuedAction::Set(setting)));
        Ok(())
    }

    /// Writes the frame at time `at` in samples, one entry per slot, and returns the number of
    /// sounding slots. Frames must be in order of time; the first may be at any time.
    pub fn frame(&mut self, at: u64, out: &mut [VoiceFrame]) -> usize {
        while let Some(&(when, task)) = self.queue.front()
            && when <= at
        {
            self.queue.pop_front();
            match task {
                QueuedAction::Play(kind) => self.apply(when, kind),
                QueuedAction::Set(setting) => self.apply_setting(when, setting),
            }
        }
        let mut sounding = 0;
        out.fill(VoiceFrame::SILENT);
        for (slot, out) in self.slots.iter_mut().zip(out) {
            if slot.state == SlotState::Free {
                continue;
            }
            if slot.pending && slot.voice.has_died_away(at) {
                slot.state = SlotState::Free;
                continue;
            }
            let values = slot.values(at, &self.channels);
            let frame = if slot.pending {
                Voice::first_control
            } else {
                Voice::control
            };
            let ControlFrame {
                pitch,
                loudness,
                gain,
                brightness,
                tilt,
                stroke,
                strike_db,
                strike_gain,
            } = frame(&mut slot.voice, at, &values);
            *out = VoiceFrame {
                sounding: true,
                restarted: slot.pending,
                pitch: pitch + self.transposition_semitones,
                loudness,
                gain,
                brightness,
                tilt,
                stroke,
                strike_db,
                strike_gain,
            };
            sounding += 1;
            slot.pending = false;
            if slot.voice.is_over(at) {
                slot.state = SlotState::Free;
            }
        }
        sounding
    }

    fn apply(&mut self, t: u64, kind: EventKind) {
        let (kind, id) = kind.within_limits().without_id();
        match kind {
            EventKind::NoteOn {
                channel,
                key,
                velocity,
            } => self.note_on(t, channel, key, velocity, id),
            EventKind::NoteOff { channel, key, .. } => self.note_off(t, channel, key, id),
            EventKind::Bend { channel, semitones } => {
                let change = self.change(t, channel);
                self.channels[channel].bend(change, f64::from(semitones));
            }
            EventKind::Tuning { channel, semitones } => {
                let change = self.change(t, channel);
                self.channels[channel].tune(change, f64::from(semitones));
            }
            EventKind::Pressure { channel, value } => {
                let change = self.change(t, channel);
                self.channels[channel].pressure(change, f64::from(value));
            }
            EventKind::PolyPressure {
                channel,
                key,
                value,
            } => {
                for slot in self
                    .responding(channel)
                    .filter(|slot| slot.is_addressed(key, id))
                {
                    slot.voice.set_pressure(t, f64::from(value));
                }
            }
            EventKind::NoteExpression {
                channel,
                key,
                expression,
            } => {
                for slot in self
                    .responding(channel)
                    .filter(|slot| slot.is_addressed(key, id))
                {
                    slot.voice.express(t, expression);
                }
            }
            EventKind::Controller {
                channel,
                number,
                value,
            } => self.controller(t, channel, number, value),
            EventKind::Zone { manager, members } => self.zone(t, manager, members),
            EventKind::KeyPitch { key, pitch } => self.pitches[usize::from(key)] = pitch,
            EventKind::MasterTuning { semitones } => {
                let change = self.change_of_all(t);
                self.channels.tune(change, f64::from(semitones));
            }
            EventKind::MasterVolume { value } => {
                let change = self.change_of_all(t);
                self.channels.set_volume(change, f64::from(value));
            }
            EventKind::SystemReset => self.system_reset(t),
            EventKind::Note { .. } => {}
        }
    }

    fn apply_setting(&mut self, t: u64, setting: Setting) {
        match setting {
            Setting::Mode(mode) => self.change_mode(t, |voices| voices.mode = mode),
            Setting::GlideMs(glide_ms) => self.glide_ms = glide_ms,
            Setting::Voices(limit) => {
                self.limit = limit;
                for _ in self.polyphony()..self.playing() {
                    if let Some(victim) = self.victim(t) {
                        self.slots[victim].fade_out(t, &self.channels);
                    }
                }
            }
        }
    }

    /// Returns the current handling of overlapping notes on a channel: that of the legato pedal, of
    /// the settings, of the channel's mode messages, or of the performance.
    fn mode(&self, channel: u8) -> PlayMode {
        if self.channels.legato(channel) {
            return PlayMode::Legato;
        }
        self.mode
            .or(self.channels[channel].mode)
            .unwrap_or(self.performance.mode)
    }

    /// Returns the current glide time, ms.
    fn glide_ms(&self) -> f32 {
        self.glide_ms
            .unwrap_or(self.performance.glide_ms)
            .clamp(0.0, 5e3)
    }

    /// Returns the current limit of simultaneous notes.
    fn polyphony(&self) -> usize {
        self.limit
            .map_or(self.polyphony, |limit| limit.clamp(1, self.polyphony))
    }

    fn playing(&self) -> usize {
        self.slots
            .iter()
            .filter(|slot| slot.state == SlotState::Playing)
            .count()
    }

    fn note_on(&mut self, t: u64, channel: u8, key: u8, velocity: f32, id: Option<i32>) {
        let Some(pitch) = self.pitches[usize::from(key)].map(f64::from) else {
            return;
        };
        self.free_pending(t);
        let mode = self.mode(channel);
        let velocity = if self.channels.soft(channel) {
            velocity * SOFT_VELOCITY
        } else {
            velocity
        };
        let portamento = &mut self.channels[channel].portamento;
        let (source, previous) = (portamento.take_source(), portamento.next_pitch(pitch));
        let source_pitch = source
            .and_then(|source| self.pitches[usize::from(source)])
            .map(f64::from);
        let glide = source_pitch.or(previous).map(|from| {
            (
                from,
                self.channels[channel].portamento.glide_ms(pitch - from),
            )
        });
        let glide_ms = glide.map_or(self.glide_ms(), |(_, glide_ms)| glide_ms);
        self.channels[channel].held.press(key, velocity, id);
        let Self {
            slots, channels, ..
        } = self;
        let is_held = |slot: &VoiceSlot| slot.voice.hold == Hold::Key;
        let slot = match mode {
            // Portamento control: the note of the source key slides to the new key.
            PlayMode::Poly if source.is_some_and(|source| source != key) => {
                let of_source =
                    |slot: &&mut VoiceSlot| Some(slot.voice.key) == source && is_held(slot);
                if let Some(slot) = responding(slots, channel).find(of_source) {
                    slot.assign(key, id);
                    return slot.voice.slur(t, (key, pitch), None, glide_ms);
                }
                None
            }
            // A key strikes its voice again; another note of a key that is still held has its own.
            PlayMode::Poly => responding(slots, channel)
                .find(|slot| slot.voice.key == key && (!is_held(slot) || slot.id == id)),
            PlayMode::Mono | PlayMode::Legato => {
                responding(slots, channel).max_by_key(|slot| slot.priority())
            }
        };
        let Some(slot) = slot else {
            return self.start_note(
                NoteStart {
                    at: t,
                    channel,
                    key,
                    pitch,
                    velocity,
                    seed: 0,
                },
                id,
                glide,
            );
        };
        slot.assign(key, id);
        match mode {
            PlayMode::Mono if slot.voice.hold != Hold::Nothing => {
                let values = slot.values(t, channels);
                slot.voice
                    .take_over(t, (key, pitch), velocity, glide_ms, &values);
            }
            PlayMode::Legato if slot.voice.hold != Hold::Nothing => {
                slot.voice.slur(t, (key, pitch), Some(velocity), glide_ms);
            }
            _ => {
                slot.voice.retrigger(t, key, pitch, velocity);
                if let Some((from, glide_ms)) = glide {
                    slot.voice.glide_from(t, from, glide_ms);
                }
            }
        }
    }

    fn note_off(&mut self, t: u64, channel: u8, key: u8, id: Option<i32>) {
        let mode = self.mode(channel);
        let held = &mut self.channels[channel].held;
        held.lift(key, id);
        let below = held.last().filter(|_| mode != PlayMode::Poly);
        let below =
            below.and_then(|held| Some((held, f64::from(self.pitches[usize::from(held.key)]?))));
        let glide_ms = match below {
            Some((_, pitch)) if self.channels[channel].portamento.is_on() => {
                let portamento = &mut self.channels[channel].portamento;
                let from = portamento.next_pitch(pitch).unwrap_or(pitch);
                portamento.glide_ms(pitch - from)
            }
            _ => self.glide_ms(),
        };
        let Self {
            slots, channels, ..
        } = self;
        let is_this =
            |slot: &&mut VoiceSlot| slot.voice.hold == Hold::Key && slot.is_addressed(key, id);
        for slot in responding(slots, channel).filter(is_this) {
            let Some((below, pitch)) = below else {
                slot.key_up(t, channels);
                continue;
            };
            slot.assign(below.key, below.id);
            if mode == PlayMode::Mono {
                let values = slot.values(t, channels);
                slot.voice
                    .take_over(t, (below.key, pitch), below.velocity, glide_ms, &values);
            } else {
                slot.voice.slur(t, (below.key, pitch), None, glide_ms);
            }
        }
    }

    /// Frees slots of notes that started and ended without a frame, as before a late first frame.
    fn free_pending(&mut self, t: u64) {
        for slot in &mut self.slots {
            if slot.state != SlotState::Free && slot.pending && slot.voice.has_died_away(t) {
                slot.state = SlotState::Free;
            }
        }
    }

    /// Starts a note in a free slot, stealing a voice if necessary; it may glide from a pitch
    /// within a time in ms.
    fn start_note(&mut self, note: NoteStart, id: Option<i32>, glide: Option<(f64, f32)>) {
        let NoteStart {
            at: t,
            channel,
            key,
            ..
        } = note;
        let free = self
            .slots
            .iter()
            .position(|slot| slot.state == SlotState::Free);
        let victim = if self.playing() >= self.polyphony() {
            self.victim(t)
        } else {
            None
        };
        let place = match (victim, free) {
            // It has not been output yet, so there is nothing to fade.
            (Some(victim), _) if self.slots[victim].pending => Some(victim),
            (Some(victim), Some(_)) => {
                self.slots[victim].fade_out(t, &self.channels);
                free
            }
            (None, free) => free,
            (Some(_), None) => None,
        };
        let Some(place) = place else {
            self.notes_dropped += 1;
            return;
        };
        // The seed depends on the note only, so that a session that takes over has the same
        // variations.
        let seed = stream_seed(
            self.seed,
            t ^ u64::from(key) << 48 ^ u64::from(channel) << 56,
        );
        let note = NoteStart { seed, ..note };
        let mut voice = Voice::new(&self.performance, self.sample_rate, self.hop, note);
        voice.set_recorded_attack(self.recorded_attack_ms);
        if let Some((from, glide_ms)) = glide {
            voice.glide_from(t, from, glide_ms);
        }
        self.slots[place] = VoiceSlot {
            state: SlotState::Playing,
            voice,
            modulation: ModulationSource::Channel,
            id,
            sostenuto: None,
            pending: true,
            started_at: t,
        };
    }

    /// Selects the voice to steal: a released one, else one held by the pedal, else any; among
    /// these the quietest, and of equal levels the oldest.
    fn victim(&self, t: u64) -> Option<usize> {
        let rank = |slot: &VoiceSlot| {
            let age_s = t.saturating_sub(slot.started_at) as f64 / self.sample_rate;
            (
                slot.voice.hold,
                slot.voice.perceived_level_db(t) - AGE_DB_PER_S * age_s,
            )
        };
        let playing = self
            .slots
            .iter()
            .enumerate()
            .filter(|(_, slot)| slot.state == SlotState::Playing);
        playing
            .map(|(i, slot)| (i, rank(slot)))
            .min_by(|(_, a), (_, b)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)))
            .map(|(i, _)| i)
    }

    fn responding(&mut self, channel: u8) -> impl Iterator<Item = &mut VoiceSlot> {
        responding(&mut self.slots, channel)
    }

    /// Returns how a wheel of this channel moves: smoothly if a sounding note follows it.
    fn change(&self, t: u64, channel: u8) -> Change {
        let affected = self.channels.zones().affected(channel);
        let moved = |slot: &VoiceSlot| match slot.modulation {
            ModulationSource::Channel => affected.contains(slot.voice.channel),
            ModulationSource::Manager(_) => {
                slot.voice.channel != channel && affected.contains(slot.voice.channel)
            }
            ModulationSource::Constant(_) => false,
        };
        if self
            .slots
            .iter()
            .any(|slot| slot.state != SlotState::Free && moved(slot))
        {
            Change::From(t)
        } else {
            Change::Snap
        }
    }

    /// Returns how the tuning and the volume of all channels move.
    fn change_of_all(&self, t: u64) -> Change {
        let is_sounding = self.slots.iter().any(|slot| slot.state != SlotState::Free);
        if is_sounding {
            Change::From(t)
        } else {
            Change::Snap
        }
    }
}

/// Returns the usual pitches of all keys.
fn equal_temperament() -> [Option<f32>; KEYS] {
    std::array::from_fn(|key| Some(key as f32))
}

#[cfg(test)]
mod tests;
