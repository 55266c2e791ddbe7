//! Event lists for the framework, which convert values between it and the host.

use std::cell::Cell;
use std::ptr::{from_ref, null};

use clap_sys::events::{
    clap_event_header, clap_event_param_mod, clap_event_param_value, clap_input_events,
    clap_output_events,
};
use clap_sys::id::clap_id;
use ondes_player::instance::InstanceHandle;

use super::block_events::{BlockEvents, PieceEvent};
use super::c_interface::{FromHost, c_function};
use super::event::{Event, HostOutput};
use super::parameter_list::{ListedParameter, ParameterList, framework_value, value_of_framework};

/// Events of a host as the framework sees them, and a list for those that it outputs. Neither
/// allocates nor locks.
pub(crate) struct FrameworkEvents<'a> {
    parameters: &'a ParameterList,
    instance: &'a InstanceHandle,
    input: &'a [PieceEvent],
    output: Output<'a>,
    /// The last event that was converted. One is enough: the framework copies each before it asks
    /// for the next.
    converted: Cell<Event>,
}

/// Destination of the framework's events.
enum Output<'a> {
    /// None; whether there were any.
    Noted(Cell<bool>),
    Host(HostOutput<'a>),
    /// The host's list of a block, with the events of a piece of it and the piece's first sample.
    Block(HostOutput<'a>, &'a BlockEvents, u32),
}

impl<'a> FrameworkEvents<'a> {
    fn new(
        (parameters, instance): (&'a ParameterList, &'a InstanceHandle),
        input: &'a [PieceEvent],
        output: Output<'a>,
    ) -> Self {
        // Never read before it is set.
        let converted = Cell::new(Event::parameter(0, 0, 0, 0.0));
        Self {
            parameters,
            instance,
            input,
            output,
            converted,
        }
    }

    /// Returns the lists of a piece of a block, which begins at sample `start`.
    pub(super) fn for_piece(
        values: (&'a ParameterList, &'a InstanceHandle),
        events: &'a BlockEvents,
        start: u32,
        output: Option<HostOutput<'a>>,
    ) -> Self {
        let output = output.map_or(Output::Noted(Cell::default()), |output| {
            Output::Block(output, events, start)
        });
        Self::new(values, events.events(), output)
    }

    /// Returns lists without input, for events that are outside of a block.
    pub(super) fn for_output(
        values: (&'a ParameterList, &'a InstanceHandle),
        output: HostOutput<'a>,
    ) -> Self {
        Self::new(values, &[], Output::Host(output))
    }

    /// Returns lists whose output is only noted.
    pub(super) fn for_input(
        values: (&'a ParameterList, &'a InstanceHandle),
        input: &'a [PieceEvent],
    ) -> Self {
        Self::new(values, input, Output::Noted(Cell::default()))
    }

    /// Returns whether the framework has output events that were only noted.
    pub(super) fn has_noted(&self) -> bool {
        matches!(&self.output, Output::Noted(any) if any.get())
    }

    /// Returns the input events in the framework's values. A parameter's event is valid until the
    /// next one is fetched; the list, while `self` does not move.
    pub(super) fn input(&self) -> clap_input_events {
        clap_input_events {
            ctx: from_ref(self).cast_mut().cast(),
            size: c_function!(size, (events: InputContext<'_>) -> u32),
            get: c_function!(
                get,
                (events: InputContext<'_>, index: u32) -> *const clap_event_header
            ),
        }
    }

    /// Returns an output list that takes the framework's values. Valid while `self` does not move.
    pub(super) fn output(&self) -> clap_output_events {
        clap_output_events {
            ctx: from_ref(self).cast_mut().cast(),
            try_push: c_function!(try_push, (events: OutputContext<'_>, event: Event) -> bool),
        }
    }

    /// Returns the event for the framework; `None` to pass it on as it is.
    fn convert_input(&self, event: &Event) -> Option<Event> {
        let mut converted = *event;
        let scale = self.parameters.scale;
        if let Some(clap_event_param_value {
            param_id, value, ..
        }) = converted.get_mut()
        {
            let ListedParameter { parameter, .. } = self.find(*param_id, *value)?;
            *value = framework_value(parameter, scale.table_value(parameter, *value));
        } else {
            let clap_event_param_mod {
                param_id, amount, ..
            } = converted.get_mut()?;
            let ListedParameter { id, parameter, .. } = self.find(*param_id, *amount)?;
            let base = self.instance.parameter_value(*id).unwrap_or_default();
            *amount = scale.framework_offset(parameter, base, *amount);
        }
        Some(converted)
    }

    /// Returns the parameter of an event; `None` for what the framework ignores.
    fn find(&self, id: clap_id, value: f64) -> Option<&ListedParameter> {
        self.parameters.find(id).filter(|_| value.is_finite())
    }

    /// Returns an event of the framework for the host.
    fn convert_output(&self, mut event: Event) -> Event {
        if let Some(clap_event_param_value {
            param_id, value, ..
        }) = event.get_mut()
            && let Some(ListedParameter { parameter, .. }) = self.parameters.find(*param_id)
        {
            let plain = value_of_framework(parameter, *value);
            *value = self.parameters.scale.host_value(parameter, plain);
        }
        event
    }
}

/// Input list of the framework.
struct InputContext<'a>(&'a FrameworkEvents<'a>);

impl FromHost for InputContext<'_> {
    type Raw = *const clap_input_events;

    unsafe fn from_host(raw: Self::Raw) -> Option<Self> {
        // SAFETY: only our lists have the functions below; their events are alive.
        unsafe { raw.as_ref()?.ctx.cast::<FrameworkEvents<'_>>().as_ref() }.map(Self)
    }
}

/// Output list of the framework.
struct OutputContext<'a>(&'a FrameworkEvents<'a>);

impl FromHost for OutputContext<'_> {
    type Raw = *const clap_output_events;

    unsafe fn from_host(raw: Self::Raw) -> Option<Self> {
        // SAFETY: as above.
        unsafe { raw.as_ref()?.ctx.cast::<FrameworkEvents<'_>>().as_ref() }.map(Self)
    }
}

fn size(InputContext(events): InputContext<'_>) -> u32 {
    events.input.len() as u32
}

fn get(InputContext(events): InputContext<'_>, index: u32) -> *const clap_event_header {
    let Some(PieceEvent { event, .. }) = events.input.get(index as usize) else {
        return null();
    };
    match events.convert_input(event) {
        Some(converted) => {
            events.converted.set(converted);
            events.converted.as_ptr().cast()
        }
        // A transport is used until the end of the block.
        None => event.as_ptr(),
    }
}

fn try_push(OutputContext(events): OutputContext<'_>, event: Event) -> bool {
    let event = events.convert_output(event);
    match &events.output {
        Output::Noted(any) => {
            any.set(true);
            true
        }
        Output::Host(list) => list.push(&event),
        Output::Block(list, piece, start) => {
            piece.report_changes(event.time(), *start, list);
            list.push(&event.at(event.time().saturating_add(*start)))
        }
    }
}
