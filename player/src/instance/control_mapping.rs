//! Controls of the model: latent knobs, macro bindings, and the text of their values.

use std::collections::BTreeSet;

use ondes_engine::model::{Control, KnobRange};
use ondes_engine::pipeline::ControlId;

use super::{Inner, InstanceHandle};
use crate::macros::{ControlMapping, MACRO_COUNT};
use crate::model_controls;
use crate::parameter::{Parameter, ParameterId};
use crate::parameter_values::ParameterValue;
use crate::rig::block_macros::MacroTarget;

impl InstanceHandle {
    /// Sets a latent knob, 0 … 1. It is saved at once and heard from the next block on. A macro
    /// that turns the same control is centred on this value; moved from its centre it takes
    /// precedence.
    pub fn set_latent_knob(&self, id: ParameterId, position: f32) {
        let mut inner = self.inner();
        let controls = inner.controls.clone();
        let Some(control) = controls.latent_control(id) else {
            return;
        };
        let value = model_controls::denormalize(control, position);
        if value == control.default {
            inner.state.latents.remove(&control.name);
        } else {
            inner
                .state
                .latents
                .insert(control.name.clone(), ParameterValue::Number(value));
        }
        inner.turned_latents.insert(control.name.clone());
        self.send_mapping(inner.control_mapping());
        self.host_notifier.mark_state_changed();
    }

    /// Writes the positions of all latent knobs, 0 … 1, into `positions`.
    pub fn latent_positions(&self, positions: &mut Vec<f32>) {
        let inner = self.inner();
        let position = |(_, control)| model_controls::normalize(control, inner.own_value(control));
        positions.clear();
        positions.extend(inner.controls.latent_knobs().map(position));
    }

    /// Returns the name of what a macro turns, such as "Attack" or "Delay time".
    #[must_use]
    pub fn macro_label(&self, index: usize) -> Option<String> {
        let inner = self.inner();
        Some(match inner.turned(ParameterId(index as u32))? {
            Turned::Control(control) => model_controls::label(&control.name),
            Turned::Block(target) => target.parameter.name.into_owned(),
        })
    }

    /// Returns the name of the control that a macro is bound to.
    #[must_use]
    pub fn macro_control(&self, index: usize) -> Option<String> {
        self.inner()
            .macro_control(index)
            .map(|control| control.name.clone())
    }

    /// Binds a macro to the control of this name, or to none.
    pub fn bind_macro(&self, index: usize, name: Option<&str>) {
        let mut inner = self.inner();
        let mut names: Vec<Option<String>> = (0..MACRO_COUNT)
            .map(|index| {
                inner
                    .macro_control(index)
                    .map(|control| control.name.clone())
            })
            .collect();
        if let Some(bound) = names.get_mut(index) {
            // The previous control returns to the value of its own knob, or to its default.
            let before = std::mem::replace(bound, name.map(str::to_owned));
            inner.turned_latents.extend(before);
            inner.state.macros = Some(names);
            self.send_mapping(inner.control_mapping());
            self.host_notifier.mark_state_changed();
        }
    }

    /// Formats the value at a position, 0 … 1, with its unit; for a bound macro the control's, such
    /// as `90.0 ms`. `None` if there is no such knob.
    #[must_use]
    pub fn format_value(&self, id: ParameterId, position: f32) -> Option<String> {
        let inner = self.inner();
        if let Some(control) = inner.controls.latent_control(id) {
            return Some(model_controls::format(
                control,
                model_controls::denormalize(control, position),
            ));
        }
        let parameter = Parameter::get(id)?;
        Some(match inner.turned(id) {
            Some(Turned::Control(control)) => {
                model_controls::format(control, inner.macro_range(control).value(position))
            }
            Some(Turned::Block(target)) => target.format(position),
            None => {
                let value = parameter.format(parameter.denormalize(position));
                value + parameter.unit
            }
        })
    }

    /// Returns the position, 0 … 1, for a typed value; the unit and a bound control's name are
    /// optional.
    #[must_use]
    pub fn parse_value(&self, id: ParameterId, text: &str) -> Option<f32> {
        let inner = self.inner();
        if let Some(control) = inner.controls.latent_control(id) {
            return model_controls::parse(control, text)
                .map(|value| model_controls::normalize(control, value));
        }
        let parameter = Parameter::get(id)?;
        match inner.turned(id) {
            Some(Turned::Control(control)) => {
                let value = model_controls::parse(control, text)?;
                Some(inner.macro_range(control).position(value))
            }
            Some(Turned::Block(target)) => target.parse(text),
            None => parameter
                .parse(text)
                .map(|value| parameter.normalize(value)),
        }
    }
}

/// Control or setting that a macro turns.
enum Turned<'a> {
    Control(&'a Control),
    Block(MacroTarget),
}

impl Inner {
    /// Returns the control that a macro is bound to; by default the one at its index in the model's
    /// list.
    pub(super) fn macro_control(&self, index: usize) -> Option<&Control> {
        let controls = self.controls.all();
        match &self.state.macros {
            Some(names) => {
                let name = names.get(index)?.as_ref()?;
                controls.iter().find(|control| control.name == *name)
            }
            None => controls.get(index),
        }
    }

    /// Returns what a knob turns, if it is a macro that turns something: the control that it is
    /// bound to, or else the first setting of a block.
    fn turned(&self, id: ParameterId) -> Option<Turned<'_>> {
        let index = Some(id.0 as usize).filter(|index| *index < MACRO_COUNT)?;
        if let Some(control) = self.macro_control(index) {
            return Some(Turned::Control(control));
        }
        let mut blocks = self.state.blocks.iter();
        blocks
            .find_map(|block| block.turned_by(index))
            .map(Turned::Block)
    }

    /// Returns the value of a control's own knob, or the default of a control without one.
    fn own_value(&self, control: &Control) -> f32 {
        match self.state.latents.get(&control.name) {
            Some(ParameterValue::Number(value))
                if self.controls.latent_id(&control.name).is_some() =>
            {
                control.clamp(*value)
            }
            _ => control.default,
        }
    }

    /// Returns the range that a macro covers of a control.
    fn macro_range(&self, control: &Control) -> KnobRange {
        control.knob_range().centred_at(self.own_value(control))
    }

    /// Returns the mapping for the audio thread.
    pub(super) fn control_mapping(&self) -> ControlMapping {
        let macros = std::array::from_fn(|index| {
            let control = self.macro_control(index)?;
            Some((ControlId::new(&control.name), self.macro_range(control)))
        });
        let names = self.state.latents.keys().chain(&self.turned_latents);
        let turned: BTreeSet<u32> = names
            .filter_map(|name| Some(self.controls.latent_id(name)?.0))
            .collect();
        let turned = turned
            .into_iter()
            .filter_map(|id| self.controls.latent_control(ParameterId(id)));
        let latents = turned
            .map(|control| (ControlId::new(&control.name), self.own_value(control)))
            .collect();
        ControlMapping {
            macros,
            latents,
            model: self.model_number,
        }
    }
}
