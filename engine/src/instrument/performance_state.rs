//! State of a performance: held notes and controller positions.

use super::event::{Event, EventKind, NoteExpression, controller};
use super::held_keys::is_addressed;
use super::zone::{ChannelSet, Zones};

/// Most notes; more than ten fingers and a pedal can hold.
const MAX_NOTES: usize = 256;

/// Number of keys.
const KEYS: usize = 128;

/// Held notes and controller positions, for an instrument that takes over while playing.
///
/// Records the events of [`Voices`](super::Voices) and forgets those that no longer matter, such as
/// released notes and reset wheels. Of more than 256 notes it forgets the oldest. Only the
/// constructor and [`Self::events`] allocate.
///
/// # Examples
/// ```
/// use ondes_engine::instrument::{Event, EventKind, PerformanceState};
///
/// let mut state = PerformanceState::new();
/// let note_on = Event { at: 10, kind: EventKind::NoteOn { channel: 0, key: 60, velocity: 0.8 } };
/// state.record(&note_on);
/// assert_eq!(state.events(), [note_on]);
/// state.record(&Event { at: 20, kind: EventKind::NoteOff { channel: 0, key: 60, velocity: 0.5 } });
/// assert!(state.events().is_empty());
/// ```
#[derive(Clone, Debug)]
pub struct PerformanceState {
    /// Held notes in order of time, followed by unused ones.
    notes: Box<[HeldNote]>,
    held: usize,
    channels: [ChannelState; 16],
    zones: Zones,
    /// Last setup of the zones of [`Zones::MANAGERS`].
    zone_events: [Option<PastEvent>; 2],
    /// Tuning and volume of all channels.
    master: [Option<PastEvent>; 2],
    /// Pitches of the keys, where they are not the usual ones.
    pitches: Box<[Option<PastEvent>; KEYS]>,
    /// Time of the last event; times never decrease.
    latest: u64,
    /// Number of recorded events.
    count: u64,
}

/// Event that still matters.
#[derive(Clone, Copy, Debug)]
struct PastEvent {
    /// Index among all recorded events.
    order: u64,
    event: Event,
}

/// Note held by a key or a pedal.
#[derive(Clone, Copy, Debug)]
struct HeldNote {
    channel: u8,
    key: u8,
    /// The host's id.
    id: Option<i32>,
    on: PastEvent,
    /// Channel whose sostenuto pedal holds the note.
    sostenuto: Option<u8>,
    /// Release of the key, if a pedal holds the note.
    off: Option<PastEvent>,
    pressure: Option<PastEvent>,
    tuning: Option<PastEvent>,
    level: Option<PastEvent>,
    timbre: Option<PastEvent>,
    vibrato: Option<PastEvent>,
    expression: Option<PastEvent>,
}

/// Most events of a [`HeldNote`].
const EVENTS_PER_NOTE: usize = 8;

/// Controller positions of a channel.
#[derive(Clone, Copy, Debug, Default)]
struct ChannelState {
    /// Event of the sustain pedal, while it is down.
    pedal: Option<PastEvent>,
    bend: Option<PastEvent>,
    pressure: Option<PastEvent>,
    wheel: Option<PastEvent>,
    breath: Option<PastEvent>,
    expression: Option<PastEvent>,
    volume: Option<PastEvent>,
    timbre: Option<PastEvent>,
    tuning: Option<PastEvent>,
    /// Event of the sostenuto pedal, while it is down.
    sostenuto: Option<PastEvent>,
    soft: Option<PastEvent>,
    legato: Option<PastEvent>,
    portamento: Option<PastEvent>,
    portamento_time: Option<PastEvent>,
    portamento_time_fine: Option<PastEvent>,
    /// Mono or poly mode.
    mode: Option<PastEvent>,
}

/// Most events of a [`ChannelState`].
const EVENTS_PER_CHANNEL: usize = 16;

impl PerformanceState {
    /// Most events that [`Self::events`] returns.
    pub(super) const MAX_EVENTS: usize =
        MAX_NOTES * EVENTS_PER_NOTE + 16 * EVENTS_PER_CHANNEL + KEYS + 4;

    /// Creates a state without notes and with controllers at rest.
    #[must_use]
    pub fn new() -> Self {
        let on = PastEvent {
            order: 0,
            event: Event {
                at: 0,
                kind: EventKind::Zone {
                    manager: 0,
                    members: 0,
                },
            },
        };
        Self {
            notes: vec![HeldNote::new((0, 0, None), on); MAX_NOTES].into_boxed_slice(),
            held: 0,
            channels: [ChannelState::default(); 16],
            zones: Zones::default(),
            zone_events: [None; 2],
            master: [None; 2],
            pitches: Box::new([None; KEYS]),
            latest: 0,
            count: 0,
        }
    }

    /// Forgets all events.
    pub fn clear(&mut self) {
        self.held = 0;
        self.channels = [ChannelState::default(); 16];
        self.zones = Zones::default();
        self.zone_events = [None; 2];
        self.master = [None; 2];
        *self.pitches = [None; KEYS];
        self.latest = 0;
        self.count = 0;
    }

    /// Copies another state without allocating.
    pub fn copy_from(&mut self, other: &Self) {
        let Self {
            notes,
            held,
            channels,
            zones,
            zone_events,
            master,
            pitches,
            latest,
            count,
        } = self;
        notes[..other.held].copy_from_slice(&other.notes[..other.held]);
        *held = other.held;
        *channels = other.channels;
        *zones = other.zones;
        *zone_events = other.zone_events;
        *master = other.master;
        **pitches = *other.pitches;
        *latest = other.latest;
        *count = other.count;
    }

    /// Records an event. As in [`Voices::handle`](super::Voices::handle), a late event gets the
    /// time of its predecessor.
    pub fn record(&mut self, event: &Event) {
        self.latest = self.latest.max(event.at);
        self.count += 1;
        let kind = event.kind.within_limits();
        let this = PastEvent {
            order: self.count,
            event: Event {
                at: self.latest,
                kind,
            },
        };
        let (kind, id) = kind.without_id();
        match kind {
            EventKind::NoteOn { channel, key, .. } => {
                self.press(HeldNote::new((channel, key, id), this))
            }
            EventKind::NoteOff { channel, key, .. } => {
                self.release_keys(this, |note| note.is_addressed(channel, key, id));
            }
            EventKind::Bend { channel, .. } => self.channel(channel).bend = Some(this),
            EventKind::Tuning { channel, .. } => self.channel(channel).tuning = Some(this),
            EventKind::Pressure { channel, .. } => self.channel(channel).pressure = Some(this),
            EventKind::PolyPressure { channel, key, .. } => {
                self.addressed(channel, key, id)
                    .for_each(|note| note.pressure = Some(this));
            }
            EventKind::NoteExpression {
                channel,
                key,
                expression,
            } => {
                self.addressed(channel, key, id)
                    .for_each(|note| *note.expression(expression) = Some(this));
            }
            EventKind::Controller {
                channel,
                number,
                value,
            } => self.controller(this, channel, number, value),
            EventKind::Zone { manager, members } => self.zone(this, manager, members),
            EventKind::KeyPitch { key, pitch } => {
                let is_usual = pitch == Some(f32::from(key));
                self.pitches[usize::from(key)] = (!is_usual).then_some(this);
            }
            EventKind::MasterTuning { .. } => self.master[0] = Some(this),
            EventKind::MasterVolume { .. } => self.master[1] = Some(this),
            EventKind::SystemReset => {
                self.held = 0;
                self.channels = [ChannelState::default(); 16];
                self.master = [None; 2];
            }
            EventKind::Note { .. } => {}
        }
    }

    /// Returns events that bring new [`Voices`](super::Voices) to the current state, with their
    /// original times and order. A note held by a pedal is followed by the pedal and its note-off.
    ///
    /// If notes share a voice ([`PlayMode`](super::PlayMode)), only the current note is restored,
    /// with its own level and expression.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        let of_notes = self.notes[..self.held]
            .iter()
            .flat_map(HeldNote::past_events);
        let of_channels = self.channels.iter().flat_map(ChannelState::past_events);
        let of_all = self
            .zone_events
            .into_iter()
            .chain(self.master)
            .chain(*self.pitches);
        let mut past_events: Vec<PastEvent> = of_notes
            .chain(of_channels)
            .chain(of_all)
            .flatten()
            .collect();
        past_events.sort_by_key(|past| past.order);
        past_events.into_iter().map(|past| past.event).collect()
    }

    fn controller(&mut self, this: PastEvent, channel: u8, number: u8, value: f32) {
        let affected = self.zones.affected(channel);
        match number {
            controller::SUSTAIN if value >= 0.5 => {
                self.channel(channel).pedal.get_or_insert(this);
            }
            controller::SUSTAIN => {
                self.channel(channel).pedal = None;
                self.drop_unheld(this, affected);
            }
            controller::SOSTENUTO => self.sostenuto(this, channel, value >= 0.5),
            controller::ALL_SOUND_OFF => self.retain(|note| !affected.contains(note.channel)),
            controller::ALL_NOTES_OFF.. => {
                self.release_keys(this, |note| affected.contains(note.channel));
                if matches!(number, controller::MONO | controller::POLY) {
                    // A change of mode on a member does not end its manager's, so that each has its
                    // own.
                    affected
                        .iter()
                        .for_each(|channel| self.channel(channel).mode = None);
                    self.channel(channel).mode = Some(this);
                }
            }
            controller::RESET => {
                for channel in affected.iter() {
                    self.channel(channel).reset();
                }
                for note in &mut self.notes[..self.held] {
                    note.sostenuto = note.sostenuto.filter(|pedal| !affected.contains(*pedal));
                    if affected.contains(note.channel) {
                        note.pressure = None;
                    }
                }
                self.drop_unheld(this, affected);
            }
            _ => {
                if let Some(setting) = self.channel(channel).controller(number) {
                    *setting = Some(this);
                }
                if number == controller::PORTAMENTO_TIME {
                    self.channel(channel).portamento_time_fine = None;
                }
            }
        }
    }

    fn sostenuto(&mut self, this: PastEvent, pedal: u8, is_down: bool) {
        let affected = self.zones.affected(pedal);
        let state = self.channel(pedal);
        if state.sostenuto.is_some() == is_down {
            return;
        }
        state.sostenuto = is_down.then_some(this);
        for note in self.notes[..self.held]
            .iter_mut()
            .filter(|note| affected.contains(note.channel))
        {
            if is_down && note.off.is_none() {
                note.sostenuto = Some(pedal);
            } else if !is_down && note.sostenuto == Some(pedal) {
                note.sostenuto = None;
            }
        }
        if !is_down {
            self.drop_unheld(this, affected);
        }
    }

    fn zone(&mut self, this: PastEvent, manager: u8, members: u8) {
        let Some(changed) = self.zones.configure(manager, members) else {
            return;
        };
        for channel in changed.iter() {
            let settings = self.channel(channel);
            settings.reset();
            settings.timbre = None;
        }
        self.retain(|note| !changed.contains(note.channel));
        for (zone_event, manager) in self.zone_events.iter_mut().zip(Zones::MANAGERS) {
            // A zone that is resized keeps its original time, because notes of its members may
            // follow it.
            let members = self.zones.members(manager);
            *zone_event = (members > 0).then(|| {
                let PastEvent { order, event } = zone_event.unwrap_or(this);
                PastEvent {
                    order,
                    event: Event {
                        at: event.at,
                        kind: EventKind::Zone { manager, members },
                    },
                }
            });
        }
    }

    fn press(&mut self, note: HeldNote) {
        // A key strikes its voice again; another note of a key that is still held has its own.
        self.retain(|other| {
            (other.channel, other.key) != (note.channel, note.key)
                || other.off.is_none() && other.id != note.id
        });
        if self.held == MAX_NOTES {
            self.notes.copy_within(1.., 0);
            self.held -= 1;
        }
        self.notes[self.held] = note;
        self.held += 1;
    }

    /// Releases keys: notes stay only if a pedal holds them.
    fn release_keys(&mut self, this: PastEvent, is_released: impl Fn(&HeldNote) -> bool) {
        let pedals = self.pedals();
        for note in &mut self.notes[..self.held] {
            let is_held = pedals[usize::from(note.channel)] || note.sostenuto.is_some();
            if is_released(note) && note.off.is_none() && is_held {
                note.off = Some(note.note_off_by(this));
            }
        }
        self.retain(|note| !is_released(note) || note.off.is_some());
    }

    /// Handles pedal up: released notes stay only if another pedal holds them.
    fn drop_unheld(&mut self, this: PastEvent, affected: ChannelSet) {
        let pedals = self.pedals();
        self.retain(|note| {
            let is_held = pedals[usize::from(note.channel)] || note.sostenuto.is_some();
            !affected.contains(note.channel) || note.off.is_none() || is_held
        });
        for note in self.notes[..self.held]
            .iter_mut()
            .filter(|note| affected.contains(note.channel))
        {
            // The other pedal may have gone down after the key was released; now it is down for
            // certain.
            note.off = note.off.map(|_| note.note_off_by(this));
        }
    }

    /// Returns for each channel whether a pedal holds its notes.
    fn pedals(&self) -> [bool; 16] {
        let own = |channel: u8| self.channels[usize::from(channel)].pedal.is_some();
        std::array::from_fn(|channel| {
            let channel = channel as u8;
            own(channel) || self.zones.manager(channel).is_some_and(own)
        })
    }

    /// Iterates over the notes that an event is for.
    fn addressed(
        &mut self,
        channel: u8,
        key: u8,
        id: Option<i32>,
    ) -> impl Iterator<Item = &mut HeldNote> {
        self.notes[..self.held]
            .iter_mut()
            .filter(move |note| note.is_addressed(channel, key, id))
    }

    fn channel(&mut self, channel: u8) -> &mut ChannelState {
        &mut self.channels[usize::from(channel & 15)]
    }

    fn retain(&mut self, keep: impl Fn(&HeldNote) -> bool) {
        let mut kept = 0;
        for index in 0..self.held {
            if keep(&self.notes[index]) {
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
    fn new((channel, key, id): (u8, u8, Option<i32>), on: PastEvent) -> Self {
        Self {
            channel,
            key,
            id,
            on,
            sostenuto: None,
            off: None,
            pressure: None,
            tuning: None,
            level: None,
            timbre: None,
            vibrato: None,
            expression: None,
        }
    }

    fn is_addressed(&self, channel: u8, key: u8, id: Option<i32>) -> bool {
        (self.channel, self.key) == (channel, key) && is_addressed(self.id, id)
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

    /// Returns the note's own note-off, at the time and place of `by`.
    fn note_off_by(&self, by: PastEvent) -> PastEvent {
        let velocity = match by.event.kind.without_id().0 {
            EventKind::NoteOff { velocity, .. } => velocity,
            _ => 0.5,
        };
        let kind = EventKind::NoteOff {
            channel: self.channel,
            key: self.key,
            velocity,
        }
        .with_id(self.id);
        PastEvent {
            order: by.order,
            event: Event {
                at: by.event.at,
                kind,
            },
        }
    }

    fn past_events(&self) -> [Option<PastEvent>; EVENTS_PER_NOTE] {
        let Self {
            on,
            off,
            pressure,
            tuning,
            level,
            timbre,
            vibrato,
            expression,
            ..
        } = *self;
        [
            Some(on),
            off,
            pressure,
            tuning,
            level,
            timbre,
            vibrato,
            expression,
        ]
    }
}

impl ChannelState {
    /// Returns the slot of a controller's event, if it has an effect on instruments.
    fn controller(&mut self, number: u8) -> Option<&mut Option<PastEvent>> {
        match number {
            controller::MOD_WHEEL => Some(&mut self.wheel),
            controller::BREATH => Some(&mut self.breath),
            controller::EXPRESSION => Some(&mut self.expression),
            controller::VOLUME => Some(&mut self.volume),
            controller::TIMBRE => Some(&mut self.timbre),
            controller::SOFT => Some(&mut self.soft),
            controller::LEGATO => Some(&mut self.legato),
            controller::PORTAMENTO => Some(&mut self.portamento),
            controller::PORTAMENTO_TIME => Some(&mut self.portamento_time),
            controller::PORTAMENTO_TIME_FINE => Some(&mut self.portamento_time_fine),
            _ => None,
        }
    }

    /// Resets what [`controller::RESET`] does.
    fn reset(&mut self) {
        let Self {
            volume,
            timbre,
            tuning,
            portamento_time,
            portamento_time_fine,
            mode,
            ..
        } = *self;
        *self = Self {
            volume,
            timbre,
            tuning,
            portamento_time,
            portamento_time_fine,
            mode,
            ..Self::default()
        };
    }

    fn past_events(&self) -> [Option<PastEvent>; EVENTS_PER_CHANNEL] {
        let Self {
            pedal,
            bend,
            pressure,
            wheel,
            breath,
            expression,
            volume,
            timbre,
            tuning,
            ..
        } = *self;
        let Self {
            sostenuto,
            soft,
            legato,
            portamento,
            portamento_time,
            portamento_time_fine,
            mode,
            ..
        } = *self;
        [
            pedal,
            bend,
            pressure,
            wheel,
            breath,
            expression,
            volume,
            timbre,
            tuning,
            sostenuto,
            soft,
            legato,
            portamento,
            portamento_time,
            portamento_time_fine,
            mode,
        ]
    }
}

#[cfg(test)]
mod tests;
