//! The host's events of a block, put right: in the order of time, within the block, and none
//! shorter than its type.
//!
//! A block longer than announced is played in pieces, and each gets its own events.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::mem::{MaybeUninit, size_of};
use std::ptr::{copy_nonoverlapping, from_ref, null};

use clap_sys::events::*;

/// Events of a piece; if there are more, the block is cut at the first of them.
const MAX_EVENTS: usize = 4096;

/// An event of a core type: the transport is the largest of them.
#[derive(Clone, Copy)]
#[repr(C)]
union Event {
    header: clap_event_header,
    transport: clap_event_transport,
    space: [u64; size_of::<clap_event_transport>().div_ceil(8)],
}

/// Events of one piece of a block. Allocates only on construction.
pub struct BlockEvents {
    events: Vec<Event>,
    /// Index of the host's first event that was not taken yet.
    next: u32,
    /// First sample of the piece.
    start: u32,
}

impl Default for BlockEvents {
    fn default() -> Self {
        Self {
            events: Vec::with_capacity(MAX_EVENTS),
            next: 0,
            start: 0,
        }
    }
}

impl BlockEvents {
    /// Begins a block. Notes that came with a block without samples are kept for it.
    pub fn begin(&mut self) {
        self.next = 0;
    }

    /// Takes the events of the piece from sample `start` to sample `end` of a block of `frames`
    /// samples. Returns the end, which is earlier if there are too many events.
    ///
    /// # Safety
    /// The list is null or valid.
    pub unsafe fn take(
        &mut self,
        list: *const clap_input_events,
        start: u32,
        end: u32,
        frames: u32,
    ) -> u32 {
        self.start = start;
        // SAFETY: guaranteed by the caller.
        let Some(&clap_input_events {
            size: Some(size),
            get: Some(get),
            ..
        }) = (unsafe { list.as_ref() })
        else {
            return end;
        };
        let mut latest = start;
        // SAFETY: the function belongs to this list.
        while self.next < unsafe { size(list) } {
            // SAFETY: as above; an event is null, or valid and as large as its header says.
            let event = unsafe { get(list, self.next) };
            // SAFETY: as above.
            let Some(header) = (unsafe { event.as_ref() }).filter(|header| is_whole(header)) else {
                self.next += 1;
                continue;
            };
            let time = header
                .time
                .clamp(latest, latest.max(frames.saturating_sub(1)));
            if time >= end && end < frames {
                break;
            }
            if self.events.len() == MAX_EVENTS {
                if frames == 0 {
                    break;
                }
                // Later by a sample if there are as many events at one sample.
                return time.max(start + 1).min(end);
            }
            let mut copy = Event { space: [0; _] };
            let length = (header.size as usize).min(size_of::<Event>());
            // SAFETY: both have that many bytes.
            unsafe { copy_nonoverlapping(event.cast::<u8>(), (&raw mut copy).cast(), length) };
            copy.header.time = time - start;
            self.events.push(copy);
            (self.next, latest) = (self.next + 1, time);
        }
        end
    }

    /// Ends a piece. Of a block without samples, which the framework ignores, notes and MIDI are
    /// kept for the next one.
    pub fn finish(&mut self, frames: u32) {
        if frames > 0 {
            self.events.clear();
        } else {
            // SAFETY: every event begins with a header.
            self.events
                .retain(|event| is_played(unsafe { &event.header }));
        }
    }

    /// Drops what is kept for the next block.
    pub fn clear(&mut self) {
        self.events.clear();
    }

    /// Returns the piece's events. Valid until the next change, while `self` does not move.
    #[must_use]
    pub fn input(&self) -> clap_input_events {
        clap_input_events {
            ctx: from_ref(self).cast_mut().cast(),
            size: Some(size),
            get: Some(get),
        }
    }

    /// Returns an output list for this piece.
    #[must_use]
    pub fn output(&self, host: *const clap_output_events) -> PieceOutput {
        PieceOutput {
            host,
            start: self.start,
            event: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }
}

/// Output list of a piece, which counts time from the block's start.
pub struct PieceOutput {
    host: *const clap_output_events,
    start: u32,
    event: UnsafeCell<MaybeUninit<Event>>,
}

impl PieceOutput {
    /// Returns the list. Valid while `self` does not move.
    #[must_use]
    pub fn list(&self) -> clap_output_events {
        clap_output_events {
            ctx: from_ref(self).cast_mut().cast(),
            try_push: Some(try_push),
        }
    }
}

/// Returns whether an event is as large as its type, and no larger than any of the core's.
fn is_whole(header: &clap_event_header) -> bool {
    if header.space_id != CLAP_CORE_EVENT_SPACE_ID {
        return false;
    }
    let least = match header.type_ {
        CLAP_EVENT_NOTE_ON | CLAP_EVENT_NOTE_OFF | CLAP_EVENT_NOTE_CHOKE | CLAP_EVENT_NOTE_END => {
            size_of::<clap_event_note>()
        }
        CLAP_EVENT_NOTE_EXPRESSION => size_of::<clap_event_note_expression>(),
        CLAP_EVENT_PARAM_VALUE => size_of::<clap_event_param_value>(),
        CLAP_EVENT_PARAM_MOD => size_of::<clap_event_param_mod>(),
        CLAP_EVENT_PARAM_GESTURE_BEGIN | CLAP_EVENT_PARAM_GESTURE_END => {
            size_of::<clap_event_param_gesture>()
        }
        CLAP_EVENT_TRANSPORT => size_of::<clap_event_transport>(),
        CLAP_EVENT_MIDI => size_of::<clap_event_midi>(),
        CLAP_EVENT_MIDI_SYSEX => size_of::<clap_event_midi_sysex>(),
        CLAP_EVENT_MIDI2 => size_of::<clap_event_midi2>(),
        _ => return false,
    };
    header.size as usize >= least
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

unsafe extern "C" fn size(list: *const clap_input_events) -> u32 {
    // SAFETY: only our lists have this function, and their events are alive.
    unsafe { (&*(*list).ctx.cast::<BlockEvents>()).events.len() as u32 }
}

unsafe extern "C" fn get(list: *const clap_input_events, index: u32) -> *const clap_event_header {
    // SAFETY: as above; every event begins with a header.
    unsafe {
        let events = &(*(*list).ctx.cast::<BlockEvents>()).events;
        events
            .get(index as usize)
            .map_or(null(), |event| &raw const event.header)
    }
}

unsafe extern "C" fn try_push(
    list: *const clap_output_events,
    event: *const clap_event_header,
) -> bool {
    // SAFETY: only our lists have this function; the host's list is null or valid.
    let (host, start, copy): (_, _, *mut c_void) = unsafe {
        let output = &*(*list).ctx.cast::<PieceOutput>();
        (output.host, output.start, output.event.get().cast())
    };
    // SAFETY: as above; the framework passes a valid event.
    let (Some(push), Some(header)) =
        (unsafe { (host.as_ref().and_then(|list| list.try_push), event.as_ref()) })
    else {
        return false;
    };
    if start == 0 || header.size as usize > size_of::<Event>() {
        // SAFETY: the function belongs to this list.
        return unsafe { push(host, event) };
    }
    let copy = copy.cast::<clap_event_header>();
    // SAFETY: there is room for an event of that size, and nothing else uses it.
    unsafe {
        copy_nonoverlapping(event.cast::<u8>(), copy.cast(), header.size as usize);
        (*copy).time = header.time.saturating_add(start);
        push(host, copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn count(list: *const clap_input_events) -> u32 {
        // SAFETY: this is the context of the tests' lists.
        unsafe { (&*(*list).ctx.cast::<Vec<clap_event_note>>()).len() as u32 }
    }

    unsafe extern "C" fn nth(
        list: *const clap_input_events,
        index: u32,
    ) -> *const clap_event_header {
        // SAFETY: this is the context of the tests' lists.
        unsafe {
            &raw const (&(*(*list).ctx.cast::<Vec<clap_event_note>>()))[index as usize].header
        }
    }

    fn note(time: u32, key: i16) -> clap_event_note {
        let size = size_of::<clap_event_note>() as u32;
        let header = clap_event_header {
            size,
            time,
            space_id: CLAP_CORE_EVENT_SPACE_ID,
            type_: CLAP_EVENT_NOTE_ON,
            flags: 0,
        };
        clap_event_note {
            header,
            note_id: -1,
            port_index: 0,
            channel: 0,
            key,
            velocity: 1.0,
        }
    }

    /// Returns time and key of each event that a piece has.
    fn taken(events: &BlockEvents) -> Vec<(u32, i16)> {
        let list = events.input();
        // SAFETY: the list is alive, and its events are notes.
        (0..unsafe { size(&list) })
            .map(|index| unsafe {
                let note = &*get(&list, index).cast::<clap_event_note>();
                (note.header.time, note.key)
            })
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
        let list = clap_input_events {
            ctx: (&raw mut notes).cast(),
            size: Some(count),
            get: Some(nth),
        };
        let mut events = BlockEvents::default();
        events.begin();
        // SAFETY: the list is alive, here and below.
        assert_eq!(unsafe { events.take(&list, 0, 400, 600) }, 400);
        assert_eq!(taken(&events), [(3, 1), (3, 2)], "time does not go back");
        events.finish(400);
        // SAFETY: as above.
        assert_eq!(unsafe { events.take(&list, 400, 600, 600) }, 600);
        assert_eq!(
            taken(&events),
            [(100, 3), (100, 5), (199, 6)],
            "an event that is cut off is left out"
        );
        events.finish(200);
        // A block without samples.
        events.begin();
        // SAFETY: as above.
        assert_eq!(unsafe { events.take(&list, 0, 0, 0) }, 0);
        events.finish(0);
        events.begin();
        // SAFETY: null is allowed.
        assert_eq!(unsafe { events.take(null(), 0, 64, 64) }, 64);
        assert_eq!(
            taken(&events),
            [(0, 1), (0, 2), (0, 3), (0, 5), (0, 6)],
            "its notes are played with the next"
        );
    }

    #[test]
    fn more_events_than_fit_cut_the_block() {
        let mut notes: Vec<_> = (0..10_000)
            .map(|n| note(if n < 8_000 { 7 } else { 90 }, n as i16))
            .collect();
        let list = clap_input_events {
            ctx: (&raw mut notes).cast(),
            size: Some(count),
            get: Some(nth),
        };
        let (mut events, mut start, mut keys) = (BlockEvents::default(), 0, Vec::new());
        events.begin();
        while start < 100 {
            // SAFETY: the list is alive.
            let end = unsafe { events.take(&list, start, 100, 100) };
            assert!(end > start);
            keys.extend(taken(&events).into_iter().map(|(_, key)| key));
            events.finish(end - start);
            start = end;
        }
        assert_eq!(keys, (0..10_000).collect::<Vec<_>>());
    }
}
