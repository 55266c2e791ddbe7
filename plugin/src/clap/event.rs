//! Events of CLAP lists, copied, and the lists of a host.

use std::mem::MaybeUninit;
use std::ptr::{copy_nonoverlapping, null_mut};

use clap_sys::events::*;
use clap_sys::id::clap_id;

use super::c_interface::{FromHost, Functions, call};

/// Words of an event behind its header: the transport is the largest of the core types.
const WORDS: usize =
    (size_of::<clap_event_transport>() - size_of::<clap_event_header>()).div_ceil(size_of::<u64>());

/// An event of a core type.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Event {
    header: clap_event_header,
    rest: [MaybeUninit<u64>; WORDS],
}

/// Structure of a core event.
///
/// # Safety
/// `Self` is the type that CLAP gives for `TYPE`: a header and numbers or pointers.
pub(super) unsafe trait EventType: Copy {
    /// The type's number.
    const TYPE: clap_event_type;
}

macro_rules! event_types {
    ($($event:ty: $type:ident;)*) => {
        $(
            // SAFETY: CLAP says so.
            unsafe impl EventType for $event {
                const TYPE: clap_event_type = $type;
            }
        )*
    };
}

event_types! {
    clap_event_midi: CLAP_EVENT_MIDI;
    clap_event_midi_sysex: CLAP_EVENT_MIDI_SYSEX;
    clap_event_param_mod: CLAP_EVENT_PARAM_MOD;
    clap_event_param_value: CLAP_EVENT_PARAM_VALUE;
}

/// Copies an event. `None` also for one of no core type, one that is shorter than its type, and a
/// system-exclusive message without content.
impl FromHost for Event {
    type Raw = *const clap_event_header;

    unsafe fn from_host(raw: Self::Raw) -> Option<Self> {
        // SAFETY: guaranteed by the caller.
        let header = *unsafe { raw.as_ref() }.filter(|header| is_whole(header))?;
        let rest = [MaybeUninit::zeroed(); WORDS];
        let mut copy = Self { header, rest };
        let length = (header.size as usize).min(size_of::<Self>());
        // SAFETY: both have that many bytes.
        unsafe { copy_nonoverlapping(raw.cast::<u8>(), (&raw mut copy).cast(), length) };
        copy.header.size = length as u32;
        let is_empty = |message: &clap_event_midi_sysex| message.buffer.is_null();
        (!copy.get().is_some_and(is_empty)).then_some(copy)
    }
}

impl Event {
    /// Returns a change of a parameter, for all notes.
    pub(super) fn parameter(
        time: u32,
        flags: clap_event_flags,
        param_id: clap_id,
        value: f64,
    ) -> Self {
        let header = clap_event_header {
            size: size_of::<clap_event_param_value>() as u32,
            time,
            space_id: CLAP_CORE_EVENT_SPACE_ID,
            type_: CLAP_EVENT_PARAM_VALUE,
            flags,
        };
        let rest = [MaybeUninit::zeroed(); WORDS];
        let mut event = Self { header, rest };
        if let Some(change) = event.get_mut() {
            *change = clap_event_param_value {
                header,
                param_id,
                cookie: null_mut(),
                note_id: -1,
                port_index: -1,
                channel: -1,
                key: -1,
                value,
            };
        }
        event
    }

    /// Returns the begin or the end of a gesture on a parameter.
    pub(super) fn gesture(type_: clap_event_type, param_id: clap_id) -> Self {
        let header = clap_event_header {
            size: size_of::<clap_event_param_gesture>() as u32,
            time: 0,
            space_id: CLAP_CORE_EVENT_SPACE_ID,
            type_,
            flags: CLAP_EVENT_IS_LIVE,
        };
        let mut event = Self {
            header,
            rest: [MaybeUninit::zeroed(); WORDS],
        };
        // SAFETY: such an event is its header and the parameter's id, and smaller than `Event`.
        unsafe { (*(&raw mut event).cast::<clap_event_param_gesture>()).param_id = param_id };
        event
    }

    /// Returns the header, with which the event begins.
    pub(super) fn header(&self) -> &clap_event_header {
        &self.header
    }

    /// Returns the pointer for C functions.
    pub(super) fn as_ptr(&self) -> *const clap_event_header {
        std::ptr::from_ref(self).cast()
    }

    /// Returns the time in samples.
    pub(super) fn time(&self) -> u32 {
        self.header.time
    }

    /// Returns the event at another time.
    pub(super) fn at(mut self, time: u32) -> Self {
        self.header.time = time;
        self
    }

    /// Returns the event's structure; `None` if it is of another type.
    pub(super) fn get<E: EventType>(&self) -> Option<&E> {
        // SAFETY: the type is that of the event, which is initialised and large enough.
        self.is::<E>().then(|| unsafe { &*self.as_ptr().cast() })
    }

    /// As [`get`](Self::get), for changes behind the header.
    pub(super) fn get_mut<E: EventType>(&mut self) -> Option<&mut E> {
        // SAFETY: as above.
        self.is::<E>()
            .then(|| unsafe { &mut *(&raw mut *self).cast() })
    }

    fn is<E: EventType>(&self) -> bool {
        const {
            assert!(size_of::<E>() <= size_of::<Self>());
            assert!(align_of::<E>() <= align_of::<Self>());
        }
        self.header.space_id == CLAP_CORE_EVENT_SPACE_ID
            && self.header.type_ == E::TYPE
            && self.header.size as usize >= size_of::<E>()
    }
}

/// Returns whether an event is of a core type and as large as that.
fn is_whole(header: &clap_event_header) -> bool {
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
    header.space_id == CLAP_CORE_EVENT_SPACE_ID && header.size as usize >= least
}

/// Input events of a host.
pub(super) type HostInput<'a> = Functions<'a, clap_input_events>;
/// Output events of a host.
pub(super) type HostOutput<'a> = Functions<'a, clap_output_events>;

impl HostInput<'_> {
    /// Returns the number of events.
    pub(super) fn len(&self) -> u32 {
        call!(self, size(self.as_ptr())).unwrap_or(0)
    }

    /// Copies an event; `None` if it is none that can be used.
    pub(super) fn event(&self, index: u32) -> Option<Event> {
        let event = call!(self, get(self.as_ptr(), index))?;
        // SAFETY: a host's event is null, or valid and as large as its header says.
        unsafe { Event::from_host(event) }
    }
}

impl HostOutput<'_> {
    /// Passes an event to the host; returns false if it does not take it.
    pub(super) fn push(&self, event: &Event) -> bool {
        // SAFETY: the function is the host's for this list; an event begins with its header and is
        // valid during the call.
        self.try_push
            .is_some_and(|push| unsafe { push(self.as_ptr(), event.as_ptr()) })
    }
}
