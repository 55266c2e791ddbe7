//! Changes of parameters: by events of the host, by learnt controllers, and by the window.

use clap_sys::events::*;
use clap_sys::id::clap_id;

use super::block_events::TakeChange;
use super::event::{Event, HostOutput};
use super::parameter_list::ListedParameter;
use super::plugin_wrapper::PluginWrapper;
use ondes_player::parameter::SCENE;
use ondes_player::programs::ProgramNumber;
use ondes_player::rig::scene::SCENES;

use crate::parameters::WindowChange;

/// A controller's highest value.
const CONTROLLER_MAX: f32 = 127.0;

/// Changes of an instance's parameters in a block or a flush, with the host's output list.
pub(super) struct ParameterChanges<'a> {
    pub(super) wrapper: &'a PluginWrapper,
    pub(super) output: Option<HostOutput<'a>>,
}

impl TakeChange for ParameterChanges<'_> {
    fn is_change(&self, event: &Event) -> bool {
        let midi: Option<&clap_event_midi> = event.get();
        match midi {
            Some(midi) => {
                let bindings = &self.wrapper.instance.midi_bindings;
                is_program(midi.data)
                    || controller(midi.data).is_some_and(|(number, _)| bindings.listens_to(number))
            }
            None => is_of_parameter(event),
        }
    }

    fn take(&self, event: &Event) -> bool {
        let values = &self.wrapper.values;
        if let Some(change) = event.get::<clap_event_param_value>()
            && let Some(ListedParameter { id, parameter, .. }) =
                self.find(change.param_id, change.value)
        {
            let scale = self.wrapper.parameters.scale;
            values.set(*id, scale.table_value(parameter, change.value));
        }
        // In the parameter's unit: the VST3 wrapper, which counts otherwise, does not modulate.
        if let Some(change) = event.get::<clap_event_param_mod>()
            && let Some(listed) = self.find(change.param_id, change.amount)
        {
            values.modulate(listed.id, change.amount as f32);
        }
        if let Some(midi) = event.get::<clap_event_midi>()
            && let Some((number, position)) = controller(midi.data)
        {
            self.move_controller(event.time(), number, position);
        }
        if let Some(midi) = event.get::<clap_event_midi>()
            && let Some((_, number)) = self.wrapper.instance.audio.midi_banks.follow(&midi.data)
        {
            self.choose_program(event.time(), number);
        }
        is_of_parameter(event)
    }
}

impl ParameterChanges<'_> {
    /// Tells the host what the window has changed.
    pub(super) fn tell_window_changes(&self) {
        let Some(output) = &self.output else { return };
        let PluginWrapper {
            values, parameters, ..
        } = self.wrapper;
        values.pass_changes(|change| {
            let (WindowChange::Begin(id) | WindowChange::Set(id) | WindowChange::End(id)) = change;
            let Some(listed) = parameters.listed().iter().find(|listed| listed.id == id) else {
                return true;
            };
            let clap_id = listed.clap_id;
            output.push(&match change {
                WindowChange::Begin(_) => Event::gesture(CLAP_EVENT_PARAM_GESTURE_BEGIN, clap_id),
                WindowChange::End(_) => Event::gesture(CLAP_EVENT_PARAM_GESTURE_END, clap_id),
                WindowChange::Set(_) => {
                    let value = self.wrapper.parameter_value(clap_id).unwrap_or_default();
                    Event::parameter(0, CLAP_EVENT_IS_LIVE, clap_id, value)
                }
            })
        });
    }

    fn find(&self, id: clap_id, value: f64) -> Option<&ListedParameter> {
        let parameters = &self.wrapper.parameters;
        parameters.find(id).filter(|_| value.is_finite())
    }

    /// Changes what a controller turns, and tells the host, which shows and saves it.
    fn move_controller(&self, time: u32, number: u8, position: f32) {
        let PluginWrapper {
            instance,
            parameters,
            ..
        } = self.wrapper;
        for index in instance.midi_bindings.controller_moved(number) {
            let Some(listed) = parameters.automatable().get(index) else {
                continue;
            };
            self.set_by_midi(time, listed, listed.parameter.denormalize(position));
        }
    }

    /// Goes to the scene of a program change; the main thread does what else it may choose.
    fn choose_program(&self, time: u32, number: ProgramNumber) {
        let audio = &self.wrapper.instance.audio;
        if audio.has_programs() {
            return audio.request_program(number);
        }
        let mut listed = self.wrapper.parameters.listed().iter();
        if usize::from(number.program) < SCENES
            && let Some(listed) = listed.find(|listed| listed.id == SCENE)
        {
            self.set_by_midi(time, listed, f32::from(number.program) + 1.0);
        }
    }

    fn set_by_midi(&self, time: u32, listed: &ListedParameter, value: f32) {
        let PluginWrapper {
            values, parameters, ..
        } = self.wrapper;
        values.set(listed.id, value);
        if let Some(output) = &self.output {
            let value = parameters.scale.host_value(listed.parameter, value);
            // The host records the MIDI; recording the parameter as well would play both back.
            let flags = CLAP_EVENT_IS_LIVE | CLAP_EVENT_DONT_RECORD;
            output.push(&Event::parameter(time, flags, listed.clap_id, value));
        }
    }
}

/// Returns number and knob position of a control change.
fn controller([status, number, value]: [u8; 3]) -> Option<(u8, f32)> {
    let position = f32::from(value).min(CONTROLLER_MAX) / CONTROLLER_MAX;
    (status & 0xF0 == 0xB0).then_some((number, position))
}

/// Returns whether it is a program change, or chooses its bank.
fn is_program([status, number, _]: [u8; 3]) -> bool {
    matches!((status & 0xF0, number), (0xC0, _) | (0xB0, 0 | 32))
}

fn is_of_parameter(event: &Event) -> bool {
    let header = event.header();
    matches!(
        header.type_,
        CLAP_EVENT_PARAM_VALUE
            | CLAP_EVENT_PARAM_MOD
            | CLAP_EVENT_PARAM_GESTURE_BEGIN
            | CLAP_EVENT_PARAM_GESTURE_END
    )
}
