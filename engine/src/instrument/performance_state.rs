//! What is held and set now.

use super::event::{Event, EventKind, NoteExpression, controller};
use super::zone::{ChannelSet, Zones};

/// How many notes are remembered: more than ten fingers and a pedal hold.
const MOST_NOTES: usize = 256;

/// What is held and set at this moment of playing, so that an instrument that takes over in the middle can be told.
///
/// It listens to the events that [`Voices`](super::Voices) get and forgets what can no longer be heard: notes that were let
/// go, wheels that were reset. Of more than 256 notes it forgets those that began first. Nothing is allocated after
/// construction but by [`Self::events`].
#[derive(Clone, Debug)]
pub struct PerformanceState {
    /// The first `held` count, in the order in which they began.
    notes: Box<[HeldNote]>,
    held: usize,
    channels: [ChannelState; 16],
    zones: Zones,
    /// How the zones of [`Zones::MANAGERS`] were set up.
    zone_events: [Option<PastEvent>; 2],
    /// Time of the last event; time does not run backwards.
    latest: u64,
    /// How many events there were.
    count: u64,
}

/// An event that still matters.
#[derive(Clone, Copy, Debug)]
struct PastEvent {
    /// Its place among all events.
    order: u64,
    event: Event,
}

/// A note that a key or a pedal holds.
#[derive(Clone, Copy, Debug)]
struct HeldNote {
    channel: u8,
    key: u8,
    on: PastEvent,
    /// The key is up, and a pedal holds the note.
    off: Option<PastEvent>,
    pressure: Option<PastEvent>,
    tuning: Option<PastEvent>,
    level: Option<PastEvent>,
    timbre: Option<PastEvent>,
    vibrato: Option<PastEvent>,
    expression: Option<PastEvent>,
}

/// Events that one [`HeldNote`] may stand for.
const EVENTS_PER_NOTE: usize = 8;

/// What is set on one channel.
#[derive(Clone, Copy, Debug, Default)]
struct ChannelState {
    /// Since when the sustain pedal is down.
    pedal: Option<PastEvent>,
    bend: Option<PastEvent>,
    pressure: Option<PastEvent>,
    wheel: Option<PastEvent>,
    breath: Option<PastEvent>,
    expression: Option<PastEvent>,
    volume: Option<PastEvent>,
    timbre: Option<PastEvent>,
}

/// Events that the [`ChannelState`] of a channel may stand for.
const EVENTS_PER_CHANNEL: usize = 8;

impl PerformanceState {
    /// The most events that [`Self::events`] may give.
    pub(super) const MAX_EVENTS: usize = MOST_NOTES * EVENTS_PER_NOTE + 16 * EVENTS_PER_CHANNEL + 2;

    /// Nothing is held and everything is at rest.
    #[must_use]
    pub fn new() -> Self {
        let on = PastEvent { order: 0, event: Event { at: 0, kind: EventKind::Zone { manager: 0, members: 0 } } };
        Self {
            notes: vec![HeldNote::new(0, 0, on); MOST_NOTES].into_boxed_slice(),
            held: 0,
            channels: [ChannelState::default(); 16],
            zones: Zones::default(),
            zone_events: [None; 2],
            latest: 0,
            count: 0,
        }
    }

    /// Forgets everything, as if new.
    pub fn clear(&mut self) {
        self.held = 0;
        self.channels = [ChannelState::default(); 16];
        self.zones = Zones::default();
        self.zone_events = [None; 2];
        self.latest = 0;
        self.count = 0;
    }

    /// Becomes equal to another, without allocation.
    pub fn copy_from(&mut self, other: &Self) {
        let Self { notes, held, channels, zones, zone_events, latest, count } = self;
        notes[..other.held].copy_from_slice(&other.notes[..other.held]);
        *held = other.held;
        *channels = other.channels;
        *zones = other.zones;
        *zone_events = other.zone_events;
        *latest = other.latest;
        *count = other.count;
    }

    /// Takes note of an event. As with [`Voices::handle`](super::Voices::handle), one that is late happens when the one
    /// before it did.
    pub fn record(&mut self, event: &Event) {
        self.latest = self.latest.max(event.at);
        self.count += 1;
        let kind = event.kind.within_limits();
        let this = PastEvent { order: self.count, event: Event { at: self.latest, kind } };
        match kind {
            EventKind::NoteOn { channel, key, .. } => self.press(HeldNote::new(channel, key, this)),
            EventKind::NoteOff { channel, key, .. } => {
                let of_key = |note: &HeldNote| note.channel == channel && note.key == key;
                self.lift(this, of_key);
            }
            EventKind::Bend { channel, .. } => self.channel(channel).bend = Some(this),
            EventKind::Pressure { channel, .. } => self.channel(channel).pressure = Some(this),
            EventKind::PolyPressure { channel, key, .. } => {
                if let Some(note) = self.find(channel, key) {
                    note.pressure = Some(this);
                }
            }
            EventKind::NoteExpression { channel, key, expression } => {
                if let Some(note) = self.find(channel, key) {
                    *note.expression(expression) = Some(this);
                }
            }
            EventKind::Controller { channel, number, value } => self.controller(this, channel, number, value),
            EventKind::Zone { manager, members } => self.zone(this, manager, members),
        }
    }

    /// Events that bring fresh [`Voices`](super::Voices) to the state that the events so far have led to, in the order of
    /// their times, which are the original ones. A note whose key is up comes with its note-off after its pedal.
    ///
    /// Where notes share a voice ([`PlayMode`](super::PlayMode)), the one that is told of has the level and the expression of
    /// its own, as if no other had come to its voice and gone again.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        let of_notes = self.notes[..self.held].iter().flat_map(HeldNote::remembered);
        let of_channels = self.channels.iter().flat_map(ChannelState::remembered);
        let mut remembered: Vec<PastEvent> = of_notes.chain(of_channels).chain(self.zone_events).flatten().collect();
        remembered.sort_by_key(|remembered| remembered.order);
        remembered.into_iter().map(|remembered| remembered.event).collect()
    }

    fn controller(&mut self, this: PastEvent, channel: u8, number: u8, value: f32) {
        let affected = self.zones.affected(channel);
        match number {
            controller::SUSTAIN if value >= 0.5 => {
                self.channel(channel).pedal.get_or_insert(this);
            }
            controller::SUSTAIN => {
                self.channel(channel).pedal = None;
                self.forget_unheld(this, affected);
            }
            controller::ALL_SOUND_OFF => self.retain(|note| !affected.contains(note.channel)),
            controller::ALL_NOTES_OFF.. => self.lift(this, |note| affected.contains(note.channel)),
            controller::RESET => {
                for channel in affected.iter() {
                    self.channel(channel).reset();
                }
                for note in self.notes[..self.held].iter_mut().filter(|note| affected.contains(note.channel)) {
                    note.pressure = None;
                }
                self.forget_unheld(this, affected);
            }
            _ => {
                if let Some(setting) = self.channel(channel).controller(number) {
                    *setting = Some(this);
                }
            }
        }
    }

    fn zone(&mut self, this: PastEvent, manager: u8, members: u8) {
        let Some(changed) = self.zones.configure(manager, members) else { return };
        for channel in changed.iter() {
            let settings = self.channel(channel);
            settings.reset();
            settings.timbre = None;
        }
        self.retain(|note| !changed.contains(note.channel));
        for (remembered, manager) in self.zone_events.iter_mut().zip(Zones::MANAGERS) {
            // A zone that grows or shrinks stays set up since it first was: what its other members hold has begun since.
            let members = self.zones.members(manager);
            *remembered = (members > 0).then(|| {
                let PastEvent { order, event } = remembered.unwrap_or(this);
                PastEvent { order, event: Event { at: event.at, kind: EventKind::Zone { manager, members } } }
            });
        }
    }

    fn press(&mut self, note: HeldNote) {
        self.retain(|other| (other.channel, other.key) != (note.channel, note.key));
        if self.held == MOST_NOTES {
            self.notes.copy_within(1.., 0);
            self.held -= 1;
        }
        self.notes[self.held] = note;
        self.held += 1;
    }

    /// Keys come up: of the notes chosen those stay that a pedal holds.
    fn lift(&mut self, this: PastEvent, is_lifted: impl Fn(&HeldNote) -> bool) {
        let pedals = self.pedals();
        for note in &mut self.notes[..self.held] {
            if is_lifted(note) && note.off.is_none() && pedals[usize::from(note.channel)] {
                note.off = Some(note.lifted(this));
            }
        }
        self.retain(|note| !is_lifted(note) || note.off.is_some());
    }

    /// A pedal comes up: of the notes whose keys are up those stay that another pedal holds.
    fn forget_unheld(&mut self, this: PastEvent, affected: ChannelSet) {
        let pedals = self.pedals();
        self.retain(|note| !affected.contains(note.channel) || note.off.is_none() || pedals[usize::from(note.channel)]);
        for note in self.notes[..self.held].iter_mut().filter(|note| affected.contains(note.channel)) {
            // The other pedal may have come down after the key came up: now it is down for certain.
            note.off = note.off.map(|_| note.lifted(this));
        }
    }

    /// For each channel whether a pedal holds its notes.
    fn pedals(&self) -> [bool; 16] {
        let own = |channel: u8| self.channels[usize::from(channel)].pedal.is_some();
        std::array::from_fn(|channel| {
            let channel = channel as u8;
            own(channel) || self.zones.manager(channel).is_some_and(own)
        })
    }

    fn find(&mut self, channel: u8, key: u8) -> Option<&mut HeldNote> {
        self.notes[..self.held].iter_mut().find(|note| note.channel == channel && note.key == key)
    }

    fn channel(&mut self, channel: u8) -> &mut ChannelState {
        &mut self.channels[usize::from(channel & 15)]
    }

    fn retain(&mut self, stays: impl Fn(&HeldNote) -> bool) {
        let mut kept = 0;
        for index in 0..self.held {
            if stays(&self.notes[index]) {
                if kept != index {
                    self.notes[kept] = self.notes[index];
                }
                kept += 1;
            }
        }
        self.held = kept;
    }
}

impl Default for PerformanceState {
    fn default() -> Self {
        Self::new()
    }
}

impl HeldNote {
    fn new(channel: u8, key: u8, on: PastEvent) -> Self {
        Self {
            channel,
            key,
            on,
            off: None,
            pressure: None,
            tuning: None,
            level: None,
            timbre: None,
            vibrato: None,
            expression: None,
        }
    }

    fn expression(&mut self, expression: NoteExpression) -> &mut Option<PastEvent> {
        match expression {
            NoteExpression::Tuning(_) => &mut self.tuning,
            NoteExpression::Level(_) => &mut self.level,
            NoteExpression::Timbre(_) => &mut self.timbre,
            NoteExpression::Vibrato(_) => &mut self.vibrato,
            NoteExpression::Expression(_) => &mut self.expression,
        }
    }

    /// Its note-off in the place of the event that brought it about.
    fn lifted(&self, by: PastEvent) -> PastEvent {
        let velocity = match by.event.kind {
            EventKind::NoteOff { velocity, .. } => velocity,
            _ => 0.5,
        };
        let kind = EventKind::NoteOff { channel: self.channel, key: self.key, velocity };
        PastEvent { order: by.order, event: Event { at: by.event.at, kind } }
    }

    fn remembered(&self) -> [Option<PastEvent>; EVENTS_PER_NOTE] {
        let Self { on, off, pressure, tuning, level, timbre, vibrato, expression, .. } = *self;
        [Some(on), off, pressure, tuning, level, timbre, vibrato, expression]
    }
}

impl ChannelState {
    /// Where the value of a controller is remembered, if instruments listen to it.
    fn controller(&mut self, number: u8) -> Option<&mut Option<PastEvent>> {
        match number {
            controller::MOD_WHEEL => Some(&mut self.wheel),
            controller::BREATH => Some(&mut self.breath),
            controller::EXPRESSION => Some(&mut self.expression),
            controller::VOLUME => Some(&mut self.volume),
            controller::TIMBRE => Some(&mut self.timbre),
            _ => None,
        }
    }

    /// Goes to rest where [`controller::RESET`] does.
    fn reset(&mut self) {
        *self = Self { volume: self.volume, timbre: self.timbre, ..Self::default() };
    }

    fn remembered(&self) -> [Option<PastEvent>; EVENTS_PER_CHANNEL] {
        let Self { pedal, bend, pressure, wheel, breath, expression, volume, timbre } = *self;
        [pedal, bend, pressure, wheel, breath, expression, volume, timbre]
    }
}

#[cfg(test)]
mod tests;
