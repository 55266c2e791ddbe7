//! MIDI learn: parameter events made from control changes, merged into the host's event lists in
//! both directions.

use std::cell::Cell;
use std::ffi::c_void;
use std::mem::size_of;
use std::ptr::{from_ref, null, null_mut};

use clap_sys::events::{
    CLAP_CORE_EVENT_SPACE_ID, CLAP_EVENT_DONT_RECORD, CLAP_EVENT_IS_LIVE, CLAP_EVENT_MIDI,
    CLAP_EVENT_PARAM_VALUE, clap_event_header, clap_event_midi, clap_event_param_value,
    clap_input_events, clap_output_events,
};
use clap_sys::id::clap_id;
use ondes_player::midi_bindings::MidiBindings;
use ondes_player::parameter::Parameter;

use super::parameter_list::HostScale;

/// Events per block. Beyond this, a parameter's last event takes the newest value; a parameter
/// without an event in this block does not change.
const MAX_EVENTS: usize = 1024;
/// A controller's highest value.
const CONTROLLER_MAX: f32 = 127.0;

/// A parameter that controllers can drive.
#[derive(Clone, Copy, Debug)]
pub struct AutomatableParameter {
    /// The CLAP id.
    pub id: clap_id,
    /// Entry of the table.
    pub parameter: &'static Parameter,
    /// Values as the host counts them.
    pub scale: HostScale,
}

impl AutomatableParameter {
    /// Returns the host's value for a controller value, 0 … 127, which is a position of the knob.
    fn value_at(&self, position: u8) -> f64 {
        let value = self
            .parameter
            .denormalize(f32::from(position).min(CONTROLLER_MAX) / CONTROLLER_MAX);
        self.scale.host_value(self.parameter, value)
    }
}

/// The parameter events of one block. Allocates only on construction.
pub struct MidiLearnEvents {
    parameters: Box<[AutomatableParameter]>,
    inserted: Vec<InsertedEvent>,
    input: *const clap_input_events,
    output: *const clap_output_events,
    /// Number of inserted events already pushed to the host.
    reported: Cell<usize>,
}

struct InsertedEvent {
    /// Index in the merged list.
    index: u32,
    event: clap_event_param_value,
}

impl MidiLearnEvents {
    /// Creates the event buffer. The parameters are in the order in which [`MidiBindings`] number
    /// them.
    #[must_use]
    pub fn new(parameters: Box<[AutomatableParameter]>) -> Self {
        let inserted = Vec::with_capacity(MAX_EVENTS);
        Self {
            parameters,
            inserted,
            input: null(),
            output: null(),
            reported: Cell::new(0),
        }
    }

    /// Returns the parameters, in the order given to [`new`](Self::new).
    #[must_use]
    pub fn parameters(&self) -> &[AutomatableParameter] {
        &self.parameters
    }

    /// Begins a block: scans the host's events for learnt controllers. Returns true if any changes
    /// a parameter.
    ///
    /// # Safety
    /// Both lists are null or valid, and stay so as long as this block's lists are used.
    pub unsafe fn begin(
        &mut self,
        midi_bindings: &MidiBindings,
        input: *const clap_input_events,
        output: *const clap_output_events,
    ) -> bool {
        (self.input, self.output) = (input, output);
        self.inserted.clear();
        self.reported.set(0);
        // SAFETY: the caller guarantees that the list is valid.
        for index in 0..unsafe { size(input) } {
            // SAFETY: the index is below the list's size; each event has the size in its header.
            let Some((time, number, position)) = (unsafe { control_change(get(input, index)) })
            else {
                continue;
            };
            for parameter in midi_bindings.controller_moved(number) {
                if let Some(parameter) = self.parameters.get(parameter) {
                    let (id, value) = (parameter.id, parameter.value_at(position));
                    self.insert(index, time, id, value);
                }
            }
        }
        !self.inserted.is_empty()
    }

    /// Inserts a parameter event before the host's event of that index. Not after it: the framework
    /// splits the block at parameter changes, and the host's event would be played one sample
    /// early.
    fn insert(&mut self, index: u32, time: u32, id: clap_id, value: f64) {
        if self.inserted.len() == MAX_EVENTS {
            // An early change is better than a lost one.
            if let Some(last) = self
                .inserted
                .iter_mut()
                .rev()
                .find(|inserted| inserted.event.param_id == id)
            {
                last.event.value = value;
            }
            return;
        }
        let header = clap_event_header {
            size: size_of::<clap_event_param_value>() as u32,
            time,
            space_id: CLAP_CORE_EVENT_SPACE_ID,
            type_: CLAP_EVENT_PARAM_VALUE,
            // The host records the controller; recording the parameter as well would play both
            // back.
            flags: CLAP_EVENT_IS_LIVE | CLAP_EVENT_DONT_RECORD,
        };
        let event = clap_event_param_value {
            header,
            param_id: id,
            cookie: null_mut(),
            note_id: -1,
            port_index: -1,
            channel: -1,
            key: -1,
            value,
        };
        self.inserted.push(InsertedEvent {
            index: index + self.inserted.len() as u32,
            event,
        });
    }

    /// Returns the host's input events merged with the inserted ones. Valid until the next
    /// [`begin`](Self::begin), while `self` does not move.
    #[must_use]
    pub fn input(&self) -> clap_input_events {
        clap_input_events {
            ctx: from_ref(self).cast_mut().cast(),
            size: Some(merged_size),
            get: Some(merged_get),
        }
    }

    /// Returns an output list that forwards to the host's, with the inserted events in time order.
    /// Valid as [`input`](Self::input).
    #[must_use]
    pub fn output(&self) -> clap_output_events {
        clap_output_events {
            ctx: from_ref(self).cast_mut().cast(),
            try_push: Some(merged_push),
        }
    }

    /// Pushes all inserted events up to sample `until` to the host, which shows and saves them. An
    /// event that the host refuses is dropped; the parameter's next event corrects the host's
    /// value.
    pub fn report_until(&self, until: u32) {
        let pending = self.inserted.get(self.reported.get()..).unwrap_or_default();
        let due = pending
            .iter()
            .take_while(|inserted| inserted.event.header.time <= until);
        for InsertedEvent { event, .. } in due {
            self.reported.set(self.reported.get() + 1);
            // SAFETY: `begin`'s caller guarantees that the list is valid; the event has the size in
            // its header.
            unsafe { push(self.output, &event.header) };
        }
    }

    /// Returns the event at that index of the merged list.
    fn merged(&self, index: u32) -> *const clap_event_header {
        let before = self
            .inserted
            .partition_point(|inserted| inserted.index < index);
        match self.inserted.get(before) {
            Some(inserted) if inserted.index == index => &raw const inserted.event.header,
            // SAFETY: `begin`'s caller guarantees that the host's list is valid.
            _ => unsafe { get(self.input, index - before as u32) },
        }
    }
}

/// Returns time, number and value of a control change; `None` for other events.
///
/// # Safety
/// The event is null, or valid and as large as its header says.
unsafe fn control_change(event: *const clap_event_header) -> Option<(u32, u8, u8)> {
    // SAFETY: guaranteed by the caller.
    let header = unsafe { event.as_ref() }?;
    let midi = header.space_id == CLAP_CORE_EVENT_SPACE_ID && header.type_ == CLAP_EVENT_MIDI;
    if !midi || (header.size as usize) < size_of::<clap_event_midi>() {
        return None;
    }
    // SAFETY: type and size identify a MIDI event.
    let [status, number, value] = unsafe { (*event.cast::<clap_event_midi>()).data };
    (status & 0xF0 == 0xB0).then_some((header.time, number, value))
}

/// # Safety
/// The list is null or valid.
unsafe fn size(list: *const clap_input_events) -> u32 {
    // SAFETY: guaranteed by the caller.
    let Some(size) = unsafe { list.as_ref() }.and_then(|list| list.size) else {
        return 0;
    };
    // SAFETY: the function belongs to this list.
    unsafe { size(list) }
}

/// # Safety
/// The list is null or valid.
unsafe fn get(list: *const clap_input_events, index: u32) -> *const clap_event_header {
    // SAFETY: guaranteed by the caller.
    let Some(get) = unsafe { list.as_ref() }.and_then(|list| list.get) else {
        return null();
    };
    // SAFETY: the function belongs to this list.
    unsafe { get(list, index) }
}

/// # Safety
/// The list is null or valid, and the event is valid.
unsafe fn push(list: *const clap_output_events, event: *const clap_event_header) -> bool {
    // SAFETY: guaranteed by the caller.
    let Some(push) = unsafe { list.as_ref() }.and_then(|list| list.try_push) else {
        return false;
    };
    // SAFETY: the function belongs to this list.
    unsafe { push(list, event) }
}

/// Returns the events behind a merged list.
///
/// # Safety
/// The context is that of a list from [`MidiLearnEvents::input`] or [`MidiLearnEvents::output`],
/// whose events are alive and not mutably borrowed.
unsafe fn events<'a>(context: *mut c_void) -> &'a MidiLearnEvents {
    // SAFETY: guaranteed by the caller.
    unsafe { &*context.cast::<MidiLearnEvents>() }
}

unsafe extern "C" fn merged_size(list: *const clap_input_events) -> u32 {
    // SAFETY: only our lists have this function.
    let events = unsafe { events((*list).ctx) };
    // SAFETY: `begin`'s caller guarantees that the host's list is valid.
    unsafe { size(events.input) }.saturating_add(events.inserted.len() as u32)
}

unsafe extern "C" fn merged_get(
    list: *const clap_input_events,
    index: u32,
) -> *const clap_event_header {
    // SAFETY: only our lists have this function.
    unsafe { events((*list).ctx) }.merged(index)
}

unsafe extern "C" fn merged_push(
    list: *const clap_output_events,
    event: *const clap_event_header,
) -> bool {
    // SAFETY: only our lists have this function, and the framework passes a valid event.
    unsafe {
        let events = events((*list).ctx);
        events.report_until((*event).time);
        push(events.output, event)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use clap_sys::events::CLAP_EVENT_NOTE_ON;
    use ondes_player::parameter::OUTPUT_GAIN;

    use super::*;

    const GAIN: clap_id = 77;

    fn midi(time: u32, data: [u8; 3]) -> clap_event_midi {
        let size = size_of::<clap_event_midi>() as u32;
        let header = clap_event_header {
            size,
            time,
            space_id: CLAP_CORE_EVENT_SPACE_ID,
            type_: CLAP_EVENT_MIDI,
            flags: 0,
        };
        clap_event_midi {
            header,
            port_index: 0,
            data,
        }
    }

    unsafe extern "C" fn count(list: *const clap_input_events) -> u32 {
        // SAFETY: this is the context of the tests' lists.
        unsafe { (&*(*list).ctx.cast::<Vec<clap_event_midi>>()).len() as u32 }
    }

    unsafe extern "C" fn nth(
        list: *const clap_input_events,
        index: u32,
    ) -> *const clap_event_header {
        // SAFETY: this is the context of the tests' lists.
        unsafe {
            &raw const (&(*(*list).ctx.cast::<Vec<clap_event_midi>>()))[index as usize].header
        }
    }

    unsafe extern "C" fn log_event(
        list: *const clap_output_events,
        event: *const clap_event_header,
    ) -> bool {
        // SAFETY: this is the context of the tests' lists.
        unsafe {
            (&*(*list).ctx.cast::<RefCell<Vec<(u32, u16)>>>())
                .borrow_mut()
                .push(((*event).time, (*event).type_))
        };
        true
    }

    #[test]
    fn merged_lists_are_in_time_order() {
        let mut foreign = midi(8, [0xB0, 20, 9]);
        foreign.header.space_id = 5;
        let mut short = midi(8, [0xB0, 20, 9]);
        short.header.size -= 4;
        let host_events = [
            midi(3, [0xB7, 20, 127]),
            midi(3, [0x90, 20, 9]),
            foreign,
            short,
            midi(9, [0xB0, 20, 0]),
        ];
        let host_events = host_events.to_vec();
        let reported: RefCell<Vec<(u32, u16)>> = RefCell::default();
        let (ctx, reported_ctx) = (
            (&raw const host_events).cast_mut().cast(),
            (&raw const reported).cast_mut().cast(),
        );
        let input = clap_input_events {
            ctx,
            size: Some(count),
            get: Some(nth),
        };
        let output = clap_output_events {
            ctx: reported_ctx,
            try_push: Some(log_event),
        };
        let controllers = MidiBindings::default();
        controllers.set_parameters(["gain".to_owned()]);
        let parameter = Parameter::get(OUTPUT_GAIN).unwrap();
        let gain = AutomatableParameter {
            id: GAIN,
            parameter,
            scale: HostScale::Unit,
        };
        let mut events = MidiLearnEvents::new([gain].into());
        // SAFETY: both lists live as long as this test, here and below.
        let is_bound = unsafe { events.begin(&controllers, &input, &output) };
        assert!(!is_bound, "no controller is bound");
        controllers.learn("gain");
        // SAFETY: as above.
        assert!(unsafe { events.begin(&controllers, &input, &output) });

        let (merged, back) = (events.input(), events.output());
        // SAFETY: the list is valid, and the indices are below its size.
        let seen: Vec<(u32, u16, f64)> = (0..unsafe { size(&merged) })
            .map(|index| unsafe {
                let event = get(&merged, index);
                let ours = (*event).type_ == CLAP_EVENT_PARAM_VALUE;
                let value = if ours {
                    (*event.cast::<clap_event_param_value>()).value
                } else {
                    f64::INFINITY
                };
                ((*event).time, (*event).type_, value)
            })
            .collect();
        let theirs = |time| (time, CLAP_EVENT_MIDI, f64::INFINITY);
        let ours = |time, value| (time, CLAP_EVENT_PARAM_VALUE, value);
        assert_eq!(
            seen,
            [
                ours(3, 24.0),
                theirs(3),
                theirs(3),
                theirs(8),
                theirs(8),
                ours(9, -60.0),
                theirs(9)
            ]
        );

        let other = clap_event_header {
            type_: CLAP_EVENT_NOTE_ON,
            ..midi(5, [0; 3]).header
        };
        // SAFETY: list and event are valid.
        assert!(unsafe { push(&back, &other) });
        events.report_until(u32::MAX);
        let in_order = [
            (3, CLAP_EVENT_PARAM_VALUE),
            (5, CLAP_EVENT_NOTE_ON),
            (9, CLAP_EVENT_PARAM_VALUE),
        ];
        assert_eq!(*reported.borrow(), in_order);
    }

    #[test]
    fn null_lists_are_empty() {
        let controllers = MidiBindings::default();
        let mut events = MidiLearnEvents::new(Box::default());
        // SAFETY: null is allowed.
        assert!(!unsafe { events.begin(&controllers, null(), null()) });
        events.report_until(u32::MAX);
    }
}
