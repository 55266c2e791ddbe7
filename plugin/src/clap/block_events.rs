//! The host's events of a block, put right: in the order of time, within the block, and none
//! shorter than its type.
//!
//! A block is played in pieces, which begin at changes of parameters; a block longer than announced
//! has further ones. Each piece gets its own events.

use std::ptr::{from_ref, null};

use clap_sys::events::*;

use super::c_interface::{FromHost, c_function};
use super::event::{Event, HostInput};

/// Host events of a piece; if there are more, the block is cut at the first of them.
const MAX_EVENTS: usize = 4096;

/// Takes the events that change parameters.
pub(super) trait TakeChange {
    /// Returns whether an event changes parameters.
    fn is_change(&self, event: &Event) -> bool;
    /// Changes parameters by an event, at its time. Returns whether the event does nothing else.
    fn take(&self, event: &Event) -> bool;
}

/// Events of one piece of a block. Allocates only on construction.
pub(super) struct BlockEvents {
    /// Their times count from the piece's start.
    events: Vec<Event>,
    /// Index of the host's first event that was not taken yet.
    next: u32,
}

impl Default for BlockEvents {
    fn default() -> Self {
        Self {
            events: Vec::with_capacity(MAX_EVENTS),
            next: 0,
        }
    }
}

impl BlockEvents {
    /// Begins a block. Notes that came with a block without samples are kept for it.
    pub(super) fn begin(&mut self) {
        self.next = 0;
    }

    /// Takes the events of the piece from sample `start` on, at most to sample `end`, of a block of
    /// `frames` samples. Returns the end, which is earlier if a parameter changes after the start,
    /// or if there are too many events.
    pub(super) fn take(
        &mut self,
        list: Option<HostInput<'_>>,
        [start, end, frames]: [u32; 3],
        changes: &impl TakeChange,
    ) -> u32 {
        let Some(list) = list else {
            return end;
        };
        let mut latest = start;
        // The host's first event at the latest time, and the number of events before it.
        let mut first = (self.next, self.events.len());
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
            if time > latest {
                (first, latest) = ((self.next, self.events.len()), time);
            }
            if time > start && changes.is_change(&event) {
                // All events of that time belong to the next piece.
                self.next = first.0;
                self.events.truncate(first.1);
                return time;
            }
            if self.events.len() == MAX_EVENTS {
                if frames == 0 {
                    break;
                }
                // Later by a sample if there are as many events at one sample.
                return time.max(start + 1).min(end);
            }
            if !changes.take(&event.at(time)) {
                self.events.push(event.at(time - start));
            }
            self.next += 1;
        }
        end
    }

    /// Returns the piece's events as a list for the framework, which is valid until they change.
    pub(super) fn list(&self) -> clap_input_events {
        clap_input_events {
            ctx: from_ref(self).cast_mut().cast(),
            size: c_function!(size, (list: PieceList<'_>) -> u32),
            get: c_function!(
                get,
                (list: PieceList<'_>, index: u32) -> *const clap_event_header
            ),
        }
    }

    /// Ends a piece. Of a block without samples, which the framework ignores, notes and MIDI are
    /// kept for the next one.
    pub(super) fn finish(&mut self, frames: u32) {
        self.events
            .retain(|event| frames == 0 && is_played(event.header()));
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

/// Events of a piece, behind a list of CLAP.
struct PieceList<'a>(&'a BlockEvents);

impl FromHost for PieceList<'_> {
    type Raw = *const clap_input_events;

    unsafe fn from_host(raw: Self::Raw) -> Option<Self> {
        // SAFETY: only our lists have the functions below; their events are alive.
        unsafe { raw.as_ref()?.ctx.cast::<BlockEvents>().as_ref() }.map(Self)
    }
}

fn size(PieceList(block): PieceList<'_>) -> u32 {
    block.events.len() as u32
}

fn get(PieceList(block): PieceList<'_>, index: u32) -> *const clap_event_header {
    block
        .events
        .get(index as usize)
        .map_or(null(), Event::as_ptr)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Events of a host's list.
    struct Lists<E> {
        events: Vec<E>,
    }

    /// Control changes change parameters: their times and controllers.
    #[derive(Default)]
    struct Changes(RefCell<Vec<(u32, u8)>>);

    impl TakeChange for Changes {
        fn is_change(&self, event: &Event) -> bool {
            let midi: Option<&clap_event_midi> = event.get();
            midi.is_some_and(|midi| midi.data[0] == 0xB0)
        }

        fn take(&self, event: &Event) -> bool {
            let midi: Option<&clap_event_midi> = event.get();
            if let Some(midi) = midi.filter(|midi| midi.data[0] == 0xB0) {
                self.0.borrow_mut().push((event.time(), midi.data[1]));
            }
            false
        }
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

    impl<E> Lists<E> {
        fn new(events: Vec<E>) -> Self {
            Self { events }
        }

        fn input(&self) -> clap_input_events {
            clap_input_events {
                ctx: (&raw const *self).cast_mut().cast(),
                size: Some(size::<E>),
                get: Some(get::<E>),
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

    /// Takes a piece of a block.
    fn take<E>(events: &mut BlockEvents, lists: &Lists<E>, piece: [u32; 3]) -> u32 {
        let list = lists.input();
        // SAFETY: the list is alive.
        let list = unsafe { HostInput::from_host(&raw const list) };
        events.take(list, piece, &Changes::default())
    }

    /// Returns time and key of each event that a piece has.
    fn taken(events: &BlockEvents) -> Vec<(u32, i16)> {
        // SAFETY: the events are notes.
        { events.events.iter() }
            .map(|event| unsafe { *event.as_ptr().cast::<clap_event_note>() })
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
        assert_eq!(events.take(None, [0, 64, 64], &Changes::default()), 64);
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
    fn a_piece_begins_with_each_change() {
        let mut foreign = midi(8, [0xB0, 20, 9]);
        foreign.header.space_id = 5;
        let mut short = midi(8, [0xB0, 20, 9]);
        short.header.size -= 4;
        let lists = Lists::new(vec![
            midi(0, [0xB0, 1, 0]),
            midi(3, [0x90, 60, 9]),
            midi(9, [0x90, 61, 9]),
            midi(9, [0xB0, 2, 0]),
            foreign,
            short,
            midi(9, [0xB0, 3, 0]),
            midi(20, [0x90, 62, 9]),
        ]);
        let list = lists.input();
        // SAFETY: the list is alive.
        let list = unsafe { HostInput::from_host(&raw const list) };
        let (mut events, changes) = (BlockEvents::default(), Changes::default());
        events.begin();
        let mut piece = |start| {
            let end = events.take(list, [start, 64, 64], &changes);
            let seen = { events.events.iter() }.map(|event| {
                let midi: &clap_event_midi = event.get().unwrap();
                (event.time(), midi.data[1])
            });
            let seen: Vec<(u32, u8)> = seen.collect();
            events.finish(end - start);
            (end, seen)
        };
        assert_eq!(piece(0), (9, vec![(0, 1), (3, 60)]));
        assert_eq!(piece(9), (64, vec![(0, 61), (0, 2), (0, 3), (11, 62)]));
        assert_eq!(changes.0.into_inner(), [(0, 1), (9, 2), (9, 3)]);
    }
}
