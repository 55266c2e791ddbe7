//! Event lists that convert parameter values between the host and the framework.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::mem::{MaybeUninit, size_of};
use std::ptr::{from_ref, null};

use clap_sys::events::{
    CLAP_CORE_EVENT_SPACE_ID, CLAP_EVENT_PARAM_MOD, CLAP_EVENT_PARAM_VALUE, clap_event_header,
    clap_event_param_mod, clap_event_param_value, clap_event_type, clap_input_events,
    clap_output_events,
};
use ondes_player::instance::InstanceHandle;

use super::parameter_list::{ListedParameter, ParameterList, framework_value, value_of_framework};

/// A host's event lists as the framework sees them. Neither allocates nor locks.
pub struct ConvertedEvents<'a> {
    parameters: &'a ParameterList,
    instance: &'a InstanceHandle,
    input: *const clap_input_events,
    output: *const clap_output_events,
    /// The last event that was converted. One is enough: the framework copies each before it asks
    /// for the next.
    converted: UnsafeCell<MaybeUninit<ParameterEvent>>,
}

/// An event with a parameter's value.
union ParameterEvent {
    value: clap_event_param_value,
    modulation: clap_event_param_mod,
}

impl<'a> ConvertedEvents<'a> {
    /// Wraps lists in the host's values.
    ///
    /// # Safety
    /// Each list is null or valid, and stays so as long as this is used.
    #[must_use]
    pub unsafe fn new(
        parameters: &'a ParameterList,
        instance: &'a InstanceHandle,
        input: *const clap_input_events,
        output: *const clap_output_events,
    ) -> Self {
        Self {
            parameters,
            instance,
            input,
            output,
            converted: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Returns the input events in the framework's values. An event is valid until the next one is
    /// fetched; the list, while `self` does not move.
    #[must_use]
    pub fn input(&self) -> clap_input_events {
        clap_input_events {
            ctx: from_ref(self).cast_mut().cast(),
            size: Some(size),
            get: Some(get),
        }
    }

    /// Returns an output list that takes the framework's values. Valid while `self` does not move.
    #[must_use]
    pub fn output(&self) -> clap_output_events {
        clap_output_events {
            ctx: from_ref(self).cast_mut().cast(),
            try_push: Some(try_push),
        }
    }

    /// Returns the event for the framework.
    ///
    /// # Safety
    /// The event is null, or valid and as large as its header says.
    unsafe fn convert_input(&self, event: *const clap_event_header) -> *const clap_event_header {
        // SAFETY: guaranteed by the caller; type and size identify the events.
        unsafe {
            if is_event::<clap_event_param_value>(event, CLAP_EVENT_PARAM_VALUE) {
                let value = *event.cast::<clap_event_param_value>();
                let Some(ListedParameter { parameter, .. }) =
                    self.find(value.param_id, value.value)
                else {
                    return event;
                };
                let plain = self.parameters.scale.table_value(parameter, value.value);
                let value = clap_event_param_value {
                    value: framework_value(parameter, plain),
                    ..value
                };
                return (*self.converted.get())
                    .write(ParameterEvent { value })
                    .as_header();
            }
            if is_event::<clap_event_param_mod>(event, CLAP_EVENT_PARAM_MOD) {
                let modulation = *event.cast::<clap_event_param_mod>();
                let Some(&ListedParameter { id, parameter, .. }) =
                    self.find(modulation.param_id, modulation.amount)
                else {
                    return event;
                };
                let base = self.instance.parameter_value(id).unwrap_or_default();
                let amount =
                    self.parameters
                        .scale
                        .framework_offset(parameter, base, modulation.amount);
                let modulation = clap_event_param_mod {
                    amount,
                    ..modulation
                };
                return (*self.converted.get())
                    .write(ParameterEvent { modulation })
                    .as_header();
            }
        }
        event
    }

    /// Returns the parameter of an event; `None` to pass the event on as it is, which the framework
    /// then ignores.
    fn find(&self, id: u32, value: f64) -> Option<&ListedParameter> {
        self.parameters.find(id).filter(|_| value.is_finite())
    }
}

impl ParameterEvent {
    fn as_header(&self) -> *const clap_event_header {
        from_ref(self).cast()
    }
}

/// Returns whether an event is of that type, and as large as `Event`.
///
/// # Safety
/// The event is null or valid.
unsafe fn is_event<Event>(event: *const clap_event_header, event_type: clap_event_type) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe { event.as_ref() }.is_some_and(|header| {
        header.space_id == CLAP_CORE_EVENT_SPACE_ID
            && header.type_ == event_type
            && header.size as usize >= size_of::<Event>()
    })
}

/// Returns the lists behind one that was made here.
///
/// # Safety
/// The context is that of a list from [`ConvertedEvents::input`] or [`ConvertedEvents::output`],
/// which are alive.
unsafe fn events<'a>(context: *mut c_void) -> &'a ConvertedEvents<'a> {
    // SAFETY: guaranteed by the caller.
    unsafe { &*context.cast::<ConvertedEvents<'a>>() }
}

unsafe extern "C" fn size(list: *const clap_input_events) -> u32 {
    // SAFETY: only our lists have this function; the wrapped list is null or valid.
    unsafe {
        let input = events((*list).ctx).input;
        input
            .as_ref()
            .and_then(|list| list.size)
            .map_or(0, |size| size(input))
    }
}

unsafe extern "C" fn get(list: *const clap_input_events, index: u32) -> *const clap_event_header {
    // SAFETY: as above; a list's events are null or valid.
    unsafe {
        let events = events((*list).ctx);
        let event = events
            .input
            .as_ref()
            .and_then(|list| list.get)
            .map_or(null(), |get| get(events.input, index));
        events.convert_input(event)
    }
}

unsafe extern "C" fn try_push(
    list: *const clap_output_events,
    event: *const clap_event_header,
) -> bool {
    // SAFETY: as above; the framework passes a valid event.
    unsafe {
        let ConvertedEvents {
            parameters, output, ..
        } = events((*list).ctx);
        let Some(push) = output.as_ref().and_then(|list| list.try_push) else {
            return false;
        };
        if is_event::<clap_event_param_value>(event, CLAP_EVENT_PARAM_VALUE) {
            let pushed = *event.cast::<clap_event_param_value>();
            if let Some(ListedParameter { parameter, .. }) = parameters.find(pushed.param_id) {
                let value = parameters
                    .scale
                    .host_value(parameter, value_of_framework(parameter, pushed.value));
                let converted = clap_event_param_value { value, ..pushed };
                return push(*output, &raw const converted.header);
            }
        }
        push(*output, event)
    }
}
