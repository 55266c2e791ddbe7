//! What is turned on a model: latents by knobs of their own, whatever else by macros.

use std::collections::BTreeSet;

use ondes_engine::model::Control;
use ondes_engine::pipeline::ControlId;
use ondes_ui::KnobId;

use super::{Inner, Shared};
use crate::controls;
use crate::macros::{MACROS, Table, Travel};
use crate::parameter::Parameter;
use crate::preset::values::{Value, Values};

impl Shared {
    /// Turns the knob of that number, one that bends a latent, to a position, 0 … 1. What it says is saved at once, and heard
    /// with the next block. A macro that turns the same control rests, in its middle, where this knob stands; moved from there
    /// it counts more than this.
    pub fn bend(&self, knob: KnobId, position: f32) {
        let mut inner = self.inner();
        let controls = inner.controls.clone();
        let Some(control) = controls.bend(knob) else { return };
        let value = controls::value(control, position);
        if value == control.default {
            inner.saved.latents.remove(&control.name);
        } else {
            inner.saved.latents.insert(control.name.clone(), Value::Number(value));
        }
        inner.bent.insert(control.name.clone());
        self.send(inner.table());
    }

    /// Fills `positions` with where the knobs stand that bend latents, 0 … 1, in their order.
    pub fn bends(&self, positions: &mut Vec<f32>) {
        let inner = self.inner();
        let position = |(_, control)| controls::position(control, inner.stands(control));
        positions.clear();
        positions.extend(inner.controls.bends().map(position));
    }

    /// Where those stand that are not at their defaults, as it is saved.
    #[must_use]
    pub fn bent(&self) -> Values {
        self.inner().saved.latents.clone()
    }

    /// The control that a macro turns, by its name.
    #[must_use]
    pub fn bound(&self, index: usize) -> Option<String> {
        self.inner().bound(index).map(|control| control.name.clone())
    }

    /// Lets a macro turn another control of this name, or none.
    pub fn bind(&self, index: usize, name: Option<&str>) {
        let mut inner = self.inner();
        let mut names: Vec<Option<String>> =
            (0..MACROS).map(|index| inner.bound(index).map(|control| control.name.clone())).collect();
        if let Some(place) = names.get_mut(index) {
            // What it turned before goes back to where its own knob stands, if it has one.
            let before = std::mem::replace(place, name.map(str::to_owned));
            inner.bent.extend(before);
            inner.saved.macros = Some(names);
            self.send(inner.table());
        }
    }

    /// What the knob of that number says at a position, 0 … 1, with the unit; a macro says what it turns, such as
    /// `attack 90.0 ms`. None where there is no such knob.
    #[must_use]
    pub fn text(&self, knob: KnobId, position: f32) -> Option<String> {
        let inner = self.inner();
        if let Some(control) = inner.controls.bend(knob) {
            return Some(controls::say(control, controls::value(control, position)));
        }
        let parameter = Parameter::of(knob)?;
        let Some(control) = inner.turned(knob) else {
            return Some(format!("{}{}", parameter.say(parameter.value(position)), parameter.unit));
        };
        Some(format!("{} {}", control.name, controls::say(control, inner.travel(control).value(position))))
    }

    /// The position of that knob that such a text means, 0 … 1; units and what a macro turns may be left out.
    #[must_use]
    pub fn parse(&self, knob: KnobId, text: &str) -> Option<f32> {
        let inner = self.inner();
        if let Some(control) = inner.controls.bend(knob) {
            return controls::read(control, text).map(|value| controls::position(control, value));
        }
        let parameter = Parameter::of(knob)?;
        let Some(control) = inner.turned(knob) else {
            return parameter.read(text).map(|value| parameter.position(value));
        };
        Some(inner.travel(control).position(controls::read(control, text)?))
    }
}

impl Inner {
    /// The control that a macro turns: by default the one in its place in the model's list.
    pub(super) fn bound(&self, index: usize) -> Option<&Control> {
        let controls = self.controls.all();
        match &self.saved.macros {
            Some(names) => {
                let name = names.get(index)?.as_ref()?;
                controls.iter().find(|control| control.name == *name)
            }
            None => controls.get(index),
        }
    }

    /// The control that the knob of that number turns, where it is a macro.
    fn turned(&self, knob: KnobId) -> Option<&Control> {
        let index = knob.0 as usize;
        (index < MACROS).then(|| self.bound(index)).flatten()
    }

    /// Where a control's own knob stands, in the control's unit; those without one stand at their defaults.
    fn stands(&self, control: &Control) -> f32 {
        match self.saved.latents.get(&control.name) {
            Some(Value::Number(value)) if self.controls.knob(&control.name).is_some() => control.clamp(*value),
            _ => control.default,
        }
    }

    /// The way of a macro through a control's range.
    fn travel(&self, control: &Control) -> Travel {
        Travel::through(control).resting_at(self.stands(control))
    }

    /// What the audio thread has to know to turn it.
    pub(super) fn table(&self) -> Table {
        let macros = std::array::from_fn(|index| self.bound(index).map(|control| self.travel(control)));
        let names = self.saved.latents.keys().chain(&self.bent);
        let turned: BTreeSet<u32> = names.filter_map(|name| Some(self.controls.knob(name)?.0)).collect();
        let turned = turned.into_iter().filter_map(|knob| self.controls.bend(KnobId(knob)));
        let latents = turned.map(|control| (ControlId::of(&control.name), self.stands(control))).collect();
        let levels = self.model.as_ref().and_then(|model| model.header().card.levels).unwrap_or_default();
        Table { macros, latents, levels, model: self.number }
    }
}
