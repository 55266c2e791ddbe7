//! What controllers turn in one block: parameter events of our own among those of the host, both ways.

use std::cell::Cell;
use std::ffi::c_void;
use std::mem::size_of;
use std::ptr::{from_ref, null, null_mut};

use clap_sys::events::{
    CLAP_CORE_EVENT_SPACE_ID, CLAP_EVENT_DONT_RECORD, CLAP_EVENT_IS_LIVE, CLAP_EVENT_MIDI, CLAP_EVENT_PARAM_VALUE,
    clap_event_header, clap_event_midi, clap_event_param_value, clap_input_events, clap_output_events,
};
use clap_sys::id::clap_id;
use ondes_processor::controllers::Controllers;

/// Turns of one block that are kept apart. Beyond that a parameter goes to its last value where it had its last turn, or stays
/// where it had none.
const TURNS: usize = 1024;
/// A controller's highest value.
const FULL: f64 = 127.0;

/// A parameter as hosts know it.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its number.
    pub id: clap_id,
    /// Where it begins, in CLAP's values.
    pub min: f64,
    /// Where it ends.
    pub max: f64,
    /// Whether it stands at whole numbers only.
    pub stepped: bool,
}

impl Parameter {
    /// Where a controller at 0 … 127 puts it.
    fn value(&self, position: u8) -> f64 {
        let value = self.min + f64::from(position).min(FULL) / FULL * (self.max - self.min);
        if self.stepped { value.round() } else { value }
    }
}

/// The turns of one block. Only making this allocates.
pub struct Turns {
    parameters: Box<[Parameter]>,
    turns: Vec<Turn>,
    input: *const clap_input_events,
    output: *const clap_output_events,
    /// How many of them the host was told.
    told: Cell<usize>,
}

struct Turn {
    /// Its place among all events of the block.
    place: u32,
    event: clap_event_param_value,
}

impl Turns {
    /// For parameters in the order in which [`Controllers`] have them.
    #[must_use]
    pub fn new(parameters: Box<[Parameter]>) -> Self {
        let turns = Vec::with_capacity(TURNS);
        Self { parameters, turns, input: null(), output: null(), told: Cell::new(0) }
    }

    /// The parameters, in the order in which hosts see them.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Begins a block: looks for controllers among the host's events. Gives whether any turns a parameter.
    ///
    /// # Safety
    /// Both lists are none or valid, and stay so as long as this block's lists are used.
    pub unsafe fn begin(
        &mut self,
        controllers: &Controllers,
        input: *const clap_input_events,
        output: *const clap_output_events,
    ) -> bool {
        (self.input, self.output) = (input, output);
        self.turns.clear();
        self.told.set(0);
        // SAFETY: the caller says that the list is valid.
        for index in 0..unsafe { size(input) } {
            // SAFETY: it has that many events, each of the size that it says.
            let Some((time, number, position)) = (unsafe { control_change(get(input, index)) }) else { continue };
            for place in controllers.turned(number) {
                if let Some(parameter) = self.parameters.get(place) {
                    let (id, value) = (parameter.id, parameter.value(position));
                    self.turn(index, time, id, value);
                }
            }
        }
        !self.turns.is_empty()
    }

    /// Puts a turn before the host's event of that index. Before, not after: the framework cuts the block where a parameter
    /// changes, and what comes earlier in the list would be played a sample too early.
    fn turn(&mut self, index: u32, time: u32, id: clap_id, value: f64) {
        if self.turns.len() == TURNS {
            // Early is better than never.
            if let Some(last) = self.turns.iter_mut().rev().find(|turn| turn.event.param_id == id) {
                last.event.value = value;
            }
            return;
        }
        let header = clap_event_header {
            size: size_of::<clap_event_param_value>() as u32,
            time,
            space_id: CLAP_CORE_EVENT_SPACE_ID,
            type_: CLAP_EVENT_PARAM_VALUE,
            // A host that recorded both the controller and the parameter would play one against the other.
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
        self.turns.push(Turn { place: index + self.turns.len() as u32, event });
    }

    /// The host's events with ours among them, for as long as neither is touched.
    #[must_use]
    pub fn input(&self) -> clap_input_events {
        clap_input_events { ctx: from_ref(self).cast_mut().cast(), size: Some(merged_size), get: Some(merged_get) }
    }

    /// The host's list for what a plugin tells it. What goes through here is told in the order of samples, ours included.
    #[must_use]
    pub fn output(&self) -> clap_output_events {
        clap_output_events { ctx: from_ref(self).cast_mut().cast(), try_push: Some(merged_push) }
    }

    /// Tells the host of all turns up to that sample, so that it shows and saves them. A host that has no room is not asked
    /// again; it learns where the parameter stands with its next turn.
    pub fn tell(&self, until: u32) {
        let rest = self.turns.get(self.told.get()..).unwrap_or_default();
        let due = rest.iter().take_while(|turn| turn.event.header.time <= until);
        for Turn { event, .. } in due {
            self.told.set(self.told.get() + 1);
            // SAFETY: whoever began the block says that the list is valid; the event is one, of the size that it says.
            unsafe { push(self.output, &event.header) };
        }
    }

    /// The event at that place of the merged list.
    fn at(&self, place: u32) -> *const clap_event_header {
        let before = self.turns.partition_point(|turn| turn.place < place);
        match self.turns.get(before) {
            Some(turn) if turn.place == place => &raw const turn.event.header,
            // SAFETY: whoever began the block says that the list is valid.
            _ => unsafe { get(self.input, place - before as u32) },
        }
    }
}

/// Time, number and value of a control change; none for other events.
///
/// # Safety
/// The event is none or valid, of the size that it says.
unsafe fn control_change(event: *const clap_event_header) -> Option<(u32, u8, u8)> {
    // SAFETY: the caller says so.
    let header = unsafe { event.as_ref() }?;
    let midi = header.space_id == CLAP_CORE_EVENT_SPACE_ID && header.type_ == CLAP_EVENT_MIDI;
    if !midi || (header.size as usize) < size_of::<clap_event_midi>() {
        return None;
    }
    // SAFETY: that is how such an event looks, and it is large enough.
    let [status, number, value] = unsafe { (*event.cast::<clap_event_midi>()).data };
    (status & 0xF0 == 0xB0).then_some((header.time, number, value))
}

/// # Safety
/// The list is none or valid.
unsafe fn size(list: *const clap_input_events) -> u32 {
    // SAFETY: the caller says so.
    let Some(size) = unsafe { list.as_ref() }.and_then(|list| list.size) else { return 0 };
    // SAFETY: a list is asked through itself.
    unsafe { size(list) }
}

/// # Safety
/// The list is none or valid.
unsafe fn get(list: *const clap_input_events, index: u32) -> *const clap_event_header {
    // SAFETY: the caller says so.
    let Some(get) = unsafe { list.as_ref() }.and_then(|list| list.get) else { return null() };
    // SAFETY: a list is asked through itself.
    unsafe { get(list, index) }
}

/// # Safety
/// The list is none or valid, and so is the event.
unsafe fn push(list: *const clap_output_events, event: *const clap_event_header) -> bool {
    // SAFETY: the caller says so.
    let Some(push) = unsafe { list.as_ref() }.and_then(|list| list.try_push) else { return false };
    // SAFETY: a list is asked through itself.
    unsafe { push(list, event) }
}

/// The turns behind a list.
///
/// # Safety
/// The list is one of [`Turns::input`] or [`Turns::output`], whose turns are there and shared.
unsafe fn turns<'a>(context: *mut c_void) -> &'a Turns {
    // SAFETY: the caller says so.
    unsafe { &*context.cast::<Turns>() }
}

unsafe extern "C" fn merged_size(list: *const clap_input_events) -> u32 {
    // SAFETY: only our lists have this function.
    let turns = unsafe { turns((*list).ctx) };
    // SAFETY: whoever began the block says that the host's list is valid.
    unsafe { size(turns.input) }.saturating_add(turns.turns.len() as u32)
}

unsafe extern "C" fn merged_get(list: *const clap_input_events, index: u32) -> *const clap_event_header {
    // SAFETY: only our lists have this function.
    unsafe { turns((*list).ctx) }.at(index)
}

unsafe extern "C" fn merged_push(list: *const clap_output_events, event: *const clap_event_header) -> bool {
    // SAFETY: only our lists have this function, and the framework gives an event.
    unsafe {
        let turns = turns((*list).ctx);
        turns.tell((*event).time);
        push(turns.output, event)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use clap_sys::events::CLAP_EVENT_NOTE_ON;

    use super::*;

    const GAIN: clap_id = 77;

    fn midi(time: u32, data: [u8; 3]) -> clap_event_midi {
        let size = size_of::<clap_event_midi>() as u32;
        let header =
            clap_event_header { size, time, space_id: CLAP_CORE_EVENT_SPACE_ID, type_: CLAP_EVENT_MIDI, flags: 0 };
        clap_event_midi { header, port_index: 0, data }
    }

    unsafe extern "C" fn count(list: *const clap_input_events) -> u32 {
        // SAFETY: the tests' lists hold these.
        unsafe { (&*(*list).ctx.cast::<Vec<clap_event_midi>>()).len() as u32 }
    }

    unsafe extern "C" fn nth(list: *const clap_input_events, index: u32) -> *const clap_event_header {
        // SAFETY: the tests' lists hold these.
        unsafe { &raw const (&(*(*list).ctx.cast::<Vec<clap_event_midi>>()))[index as usize].header }
    }

    unsafe extern "C" fn note_down(list: *const clap_output_events, event: *const clap_event_header) -> bool {
        // SAFETY: the tests' lists hold these.
        unsafe {
            (&*(*list).ctx.cast::<RefCell<Vec<(u32, u16)>>>()).borrow_mut().push(((*event).time, (*event).type_))
        };
        true
    }

    #[test]
    fn both_lists_are_in_order_with_ours_among_them() {
        let mut foreign = midi(8, [0xB0, 20, 9]);
        foreign.header.space_id = 5;
        let mut short = midi(8, [0xB0, 20, 9]);
        short.header.size -= 4;
        let given = [midi(3, [0xB7, 20, 127]), midi(3, [0x90, 20, 9]), foreign, short, midi(9, [0xB0, 20, 0])];
        let given = given.to_vec();
        let told: RefCell<Vec<(u32, u16)>> = RefCell::default();
        let input = clap_input_events { ctx: (&raw const given).cast_mut().cast(), size: Some(count), get: Some(nth) };
        let output = clap_output_events { ctx: (&raw const told).cast_mut().cast(), try_push: Some(note_down) };
        let controllers = Controllers::default();
        controllers.begin(["gain".to_owned()]);
        let mut turns = Turns::new([Parameter { id: GAIN, min: -2.0, max: 6.0, stepped: false }].into());
        // SAFETY: both lists live as long as this test, here and below.
        assert!(!unsafe { turns.begin(&controllers, &input, &output) }, "nothing is bound");
        controllers.learn("gain");
        // SAFETY: as above.
        assert!(unsafe { turns.begin(&controllers, &input, &output) });

        let (merged, back) = (turns.input(), turns.output());
        // SAFETY: these are whole lists, asked through themselves within their size.
        let seen: Vec<(u32, u16, f64)> = (0..unsafe { size(&merged) })
            .map(|index| unsafe {
                let event = get(&merged, index);
                let ours = (*event).type_ == CLAP_EVENT_PARAM_VALUE;
                let value = if ours { (*event.cast::<clap_event_param_value>()).value } else { f64::INFINITY };
                ((*event).time, (*event).type_, value)
            })
            .collect();
        let theirs = |time| (time, CLAP_EVENT_MIDI, f64::INFINITY);
        let ours = |time, value| (time, CLAP_EVENT_PARAM_VALUE, value);
        assert_eq!(seen, [ours(3, 6.0), theirs(3), theirs(3), theirs(8), theirs(8), ours(9, -2.0), theirs(9)]);

        let other = clap_event_header { type_: CLAP_EVENT_NOTE_ON, ..midi(5, [0; 3]).header };
        // SAFETY: a list is told through itself.
        assert!(unsafe { push(&back, &other) });
        turns.tell(u32::MAX);
        let in_order = [(3, CLAP_EVENT_PARAM_VALUE), (5, CLAP_EVENT_NOTE_ON), (9, CLAP_EVENT_PARAM_VALUE)];
        assert_eq!(*told.borrow(), in_order);
    }

    #[test]
    fn no_lists_are_empty_lists() {
        let controllers = Controllers::default();
        let mut turns = Turns::new(Box::default());
        // SAFETY: none is allowed.
        assert!(!unsafe { turns.begin(&controllers, null(), null()) });
        turns.tell(u32::MAX);
    }
}
