//! The host's events of a block, put right: in the order of time, within the block, and none
//! shorter than its type; and the parameter changes that learnt controllers make of them.
//!
//! A block longer than announced is played in pieces, and each gets its own events.

use std::cell::Cell;

use clap_sys::events::*;
use clap_sys::id::clap_id;
use ondes_player::midi_bindings::MidiBindings;

use super::event::{Event, HostInput, HostOutput};
use super::parameter_list::ParameterList;

/// Host events of a piece; if there are more, the block is cut at the first of them.
const MAX_EVENTS: usize = 4096;
/// Parameter changes by controllers in a piece. Beyond this, a parameter's last change takes the
/// newest value; a parameter without a change in this piece does not change.
const MAX_CHANGES: usize = 1024;
/// A controller's highest value.
const CONTROLLER_MAX: f32 = 127.0;

/// Events of one piece of a block, in the host's values. Allocates only on construction.
pub(super) struct BlockEvents {
    events: Vec<PieceEvent>,
    /// Number of events that controllers have inserted.
    changes: usize,
    /// Number of events already searched for changes that the host has not heard of.
    reported: Cell<usize>,
    /// Index of the host's first event that was not taken yet.
    next: u32,
}

/// An event of a piece.
pub(super) struct PieceEvent {
    /// The event; its time counts from the piece's start.
    pub(super) event: Event,
    /// A controller has caused it.
    is_change: bool,
}

impl From<Event> for PieceEvent {
    fn from(event: Event) -> Self {
        Self {
            event,
            is_change: false,
        }
    }
}

impl Default for BlockEvents {
    fn default() -> Self {
        Self {
            events: Vec::with_capacity(MAX_EVENTS + MAX_CHANGES),
            changes: 0,
            reported: Cell::new(0),
            next: 0,
        }
    }
}

impl BlockEvents {
    /// Begins a block. Notes that came with a block without samples are kept for it.
    pub(super) fn begin(&mut self) {
        self.next = 0;
    }

    /// Takes the events of the piece from sample `start` to sample `end` of a block of `frames`
    /// samples, and inserts the changes that learnt controllers make of the `parameters`. Returns the
    /// end, which is earlier if there are too many events.
    pub(super) fn take(
        &mut self,
        list: Option<HostInput<'_>>,
        [start, end, frames]: [u32; 3],
        bindings: &MidiBindings,
        parameters: &ParameterList,
    ) -> u32 {
        let Some(list) = list else {
            return end;
        };
        let mut latest = start;
        while self.next < list.len() {
            let Some(event) = list.event(self.next) else {
                self.next += 1;
                continue;
            };
            let time = event
                .time()
                .clamp(latest, latest.max(frames.saturating_sub(1)));
            if time >= end && end < frames {
                break;
            }
            if self.events.len() - self.changes == MAX_EVENTS {
                if frames == 0 {
                    break;
                }
                // Later by a sample if there are as many events at one sample.
                return time.max(start + 1).min(end);
            }
            let event = event.at(time - start);
            self.insert_changes(&event, bindings, parameters);
            self.events.push(event.into());
            (self.next, latest) = (self.next + 1, time);
        }
        end
    }

    /// Inserts the changes that a control change causes. Not after it: the framework splits the
    /// block at parameter changes, and the host's event would be played one sample early.
    fn insert_changes(
        &mut self,
        event: &Event,
        bindings: &MidiBindings,
        parameters: &ParameterList,
    ) {
        let Some([status, number, position]) = event.get().map(|midi: &clap_event_midi| midi.data)
        else {
            return;
        };
        if status & 0xF0 != 0xB0 {
            return;
        }
        // A controller's value is a position of the knob.
        let position = f32::from(position).min(CONTROLLER_MAX) / CONTROLLER_MAX;
        for index in bindings.controller_moved(number) {
            if let Some(listed) = parameters.automatable().get(index) {
                let value = listed.parameter.denormalize(position);
                let value = parameters.scale.host_value(listed.parameter, value);
                self.insert(event.time(), listed.clap_id, value);
            }
        }
    }

    fn insert(&mut self, time: u32, id: clap_id, value: f64) {
        if self.changes == MAX_CHANGES {
            // An early change is better than a lost one.
            let mut changes = self.events.iter_mut().filter(|event| event.is_change);
            let last = changes.rfind(|change| {
                let change: Option<&clap_event_param_value> = change.event.get();
                change.is_some_and(|change| change.param_id == id)
            });
            let change: Option<&mut clap_event_param_value> =
                last.and_then(|last| last.event.get_mut());
            if let Some(change) = change {
                change.value = value;
            }
            return;
        }
        // The host records the controller; recording the parameter as well would play both back.
        let flags = CLAP_EVENT_IS_LIVE | CLAP_EVENT_DONT_RECORD;
        self.events.push(PieceEvent {
            event: Event::parameter(time, flags, id, value),
            is_change: true,
        });
        self.changes += 1;
    }

    /// Returns the piece's events.
    pub(super) fn events(&self) -> &[PieceEvent] {
        &self.events
    }

    /// Tells the host, which shows and saves them, of all changes by controllers up to sample
    /// `until` of a piece that begins at sample `start`. A change that the host refuses is dropped;
    /// the parameter's next one corrects the host's value.
    pub(super) fn report_changes(&self, until: u32, start: u32, output: &HostOutput<'_>) {
        let pending = self.events.get(self.reported.get()..).unwrap_or_default();
        let due = pending
            .iter()
            .take_while(|event| event.event.time() <= until);
        for PieceEvent { event, is_change } in due {
            self.reported.set(self.reported.get() + 1);
            if *is_change {
                output.push(&event.at(event.time().saturating_add(start)));
            }
        }
    }

    /// Ends a piece. Of a block without samples, which the framework ignores, notes and MIDI are
    /// kept for the next one.
    pub(super) fn finish(&mut self, frames: u32) {
        self.events
            .retain(|event| frames == 0 && is_played(event.event.header()));
        (self.changes, self.reported) = (0, Cell::new(0));
    }

    /// Drops what is kept for the next block.
    pub(super) fn clear(&mut self) {
        self.events.clear();
    }
}

/// Returns whether an event has no effect without a sample.
fn is_played(header: &clap_event_header) -> bool {
    matches!(
        header.type_,
        CLAP_EVENT_NOTE_ON
            | CLAP_EVENT_NOTE_OFF
            | CLAP_EVENT_NOTE_CHOKE
            | CLAP_EVENT_NOTE_EXPRESSION
            | CLAP_EVENT_MIDI
            | CLAP_EVENT_MIDI2
    )
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use ondes_player::parameter::OUTPUT_GAIN;
    use ondes_player::product::Product;

    use super::*;
    use crate::clap::c_interface::FromHost;
    use crate::clap::parameter_list::HostScale;

    const GAIN: clap_id = 77;

    /// Events of a host's list, and those that it was given.
    struct Lists<E> {
        events: Vec<E>,
        given: RefCell<Vec<u32>>,
    }

    // SAFETY: these functions are only called with the lists below, whose context is a `Lists`.
    unsafe extern "C" fn size<E>(list: *const clap_input_events) -> u32 {
        // SAFETY: as above.
        unsafe { (&*(*list).ctx.cast::<Lists<E>>()).events.len() as u32 }
    }

    unsafe extern "C" fn get<E>(
        list: *const clap_input_events,
        index: u32,
    ) -> *const clap_event_header {
        // SAFETY: as above; all events begin with a header.
        unsafe { (&raw const (&*(*list).ctx.cast::<Lists<E>>()).events[index as usize]).cast() }
    }

    unsafe extern "C" fn push<E>(
        list: *const clap_output_events,
        event: *const clap_event_header,
    ) -> bool {
        // SAFETY: as above.
        unsafe {
            let given = &(*(*list).ctx.cast::<Lists<E>>()).given;
            given.borrow_mut().push((*event).time);
        }
        true
    }

    impl<E> Lists<E> {
        fn new(events: Vec<E>) -> Self {
            Self {
                events,
                given: RefCell::default(),
            }
        }

        fn input(&self) -> clap_input_events {
            clap_input_events {
                ctx: (&raw const *self).cast_mut().cast(),
                size: Some(size::<E>),
                get: Some(get::<E>),
            }
        }

        fn output(&self) -> clap_output_events {
            clap_output_events {
                ctx: (&raw const *self).cast_mut().cast(),
                try_push: Some(push::<E>),
            }
        }
    }

    fn header(size: usize, time: u32, type_: clap_event_type) -> clap_event_header {
        clap_event_header {
            size: size as u32,
            time,
            space_id: CLAP_CORE_EVENT_SPACE_ID,
            type_,
            flags: 0,
        }
    }

    fn note(time: u32, key: i16) -> clap_event_note {
        clap_event_note {
            header: header(size_of::<clap_event_note>(), time, CLAP_EVENT_NOTE_ON),
            note_id: -1,
            port_index: 0,
            channel: 0,
            key,
            velocity: 1.0,
        }
    }

    fn midi(time: u32, data: [u8; 3]) -> clap_event_midi {
        clap_event_midi {
            header: header(size_of::<clap_event_midi>(), time, CLAP_EVENT_MIDI),
            port_index: 0,
            data,
        }
    }

    fn parameters() -> ParameterList {
        let listed = [(GAIN, OUTPUT_GAIN)].into_iter();
        ParameterList::new(HostScale::Unit, Product::Instrument, listed)
    }

    /// Takes a piece of a block without learnt controllers.
    fn take<E>(events: &mut BlockEvents, lists: &Lists<E>, piece: [u32; 3]) -> u32 {
        let list = lists.input();
        // SAFETY: the list is alive.
        let list = unsafe { HostInput::from_host(&raw const list) };
        events.take(list, piece, &MidiBindings::default(), &parameters())
    }

    /// Returns time and key of each event that a piece has.
    fn taken(events: &BlockEvents) -> Vec<(u32, i16)> {
        // SAFETY: the events are notes.
        { events.events().iter() }
            .map(|event| unsafe { *event.event.as_ptr().cast::<clap_event_note>() })
            .map(|note| (note.header.time, note.key))
            .collect()
    }

    #[test]
    fn events_are_put_right_and_shared_among_pieces() {
        let mut notes = vec![
            note(3, 1),
            note(1, 2),
            note(500, 3),
            note(99, 4),
            note(150, 5),
            note(9_999, 6),
        ];
        notes[3].header.size = 8;
        let lists = Lists::new(notes);
        let mut events = BlockEvents::default();
        events.begin();
        assert_eq!(take(&mut events, &lists, [0, 400, 600]), 400);
        assert_eq!(taken(&events), [(3, 1), (3, 2)], "time does not go back");
        events.finish(400);
        assert_eq!(take(&mut events, &lists, [400, 600, 600]), 600);
        assert_eq!(
            taken(&events),
            [(100, 3), (100, 5), (199, 6)],
            "an event that is cut off is left out"
        );
        events.finish(200);
        // A block without samples.
        events.begin();
        assert_eq!(take(&mut events, &lists, [0, 0, 0]), 0);
        events.finish(0);
        events.begin();
        assert_eq!(
            events.take(None, [0, 64, 64], &MidiBindings::default(), &parameters()),
            64
        );
        assert_eq!(
            taken(&events),
            [(0, 1), (0, 2), (0, 3), (0, 5), (0, 6)],
            "its notes are played with the next"
        );
    }

    #[test]
    fn more_events_than_fit_cut_the_block() {
        let notes = (0..10_000).map(|n| note(if n < 8_000 { 7 } else { 90 }, n as i16));
        let lists = Lists::new(notes.collect());
        let (mut events, mut start, mut keys) = (BlockEvents::default(), 0, Vec::new());
        events.begin();
        while start < 100 {
            let end = take(&mut events, &lists, [start, 100, 100]);
            assert!(end > start);
            keys.extend(taken(&events).into_iter().map(|(_, key)| key));
            events.finish(end - start);
            start = end;
        }
        assert_eq!(keys, (0..10_000).collect::<Vec<_>>());
    }

    #[test]
    fn changes_by_controllers_are_in_time_order() {
        let mut foreign = midi(8, [0xB0, 20, 9]);
        foreign.header.space_id = 5;
        let mut short = midi(8, [0xB0, 20, 9]);
        short.header.size -= 4;
        let lists = Lists::new(vec![
            midi(3, [0xB7, 20, 127]),
            midi(3, [0x90, 20, 9]),
            foreign,
            short,
            midi(9, [0xB0, 20, 0]),
        ]);
        let (input, output) = (lists.input(), lists.output());
        // SAFETY: the lists are alive.
        let (input, output) = unsafe {
            (
                HostInput::from_host(&raw const input),
                HostOutput::from_host(&raw const output).unwrap(),
            )
        };
        let bindings = MidiBindings::default();
        bindings.set_parameters(["gain".to_owned()]);
        let mut events = BlockEvents::default();
        let mut seen = || {
            events.begin();
            events.finish(64);
            events.take(input, [0, 64, 64], &bindings, &parameters());
            let seen = { events.events().iter() }.map(|PieceEvent { event, .. }| {
                let change: Option<&clap_event_param_value> = event.get();
                (event.time(), change.map(|change| change.value))
            });
            seen.collect::<Vec<_>>()
        };
        assert_eq!(
            seen(),
            [(3, None), (3, None), (9, None)],
            "no controller is bound"
        );
        bindings.learn("gain");
        assert_eq!(
            seen(),
            [
                (3, Some(24.0)),
                (3, None),
                (3, None),
                (9, Some(-60.0)),
                (9, None)
            ]
        );
        events.report_changes(5, 100, &output);
        output.push(&Event::parameter(105, 0, GAIN, 0.0));
        events.report_changes(u32::MAX, 100, &output);
        assert_eq!(*lists.given.borrow(), [103, 105, 109]);
    }
}
