//! A whole setting: taken from an instance, and given to it again through whoever holds it.

use ondes_ui::KnobId;

use super::Desk;
use crate::board::{Board, Setter};
use crate::parameter::{Parameter, Scope, all};
use crate::preset::values::{Value, Values};
use crate::shared::Kept;

/// The parameters that a setting has.
fn kept() -> impl Iterator<Item = (KnobId, &'static Parameter)> {
    all().filter(|(_, parameter)| parameter.scope != Scope::Moment)
}

/// Everything that is heard: where parameters stand, and the model with what macros turn.
#[derive(Clone)]
pub struct Setting {
    /// By their ids; those that are not named stay as they are.
    pub values: Values,
    /// The model.
    pub kept: Kept,
}

/// The setting of an instance as it is.
#[must_use]
pub fn setting(desk: &Desk) -> Setting {
    let values = kept().filter_map(|(knob, parameter)| Some((parameter.id.to_owned(), value(&*desk.board, knob)?)));
    Setting { values: values.collect(), kept: desk.shared.keep() }
}

/// Goes to a setting: the model at once, parameters by gestures, so that who holds the instance learns of them.
pub fn recall(desk: &mut Desk, setter: &impl Setter, setting: Setting) {
    (desk.auditioned, desk.loading) = (None, None);
    desk.shared.recall(setting.kept);
    for (knob, parameter) in kept() {
        let Some(wanted) = setting.values.get(parameter.id) else { continue };
        if let Some(number) = wanted.read(parameter)
            && value(&*desk.board, knob).as_ref() != Some(wanted)
        {
            setter.begin(knob);
            setter.set(knob, parameter.position(number));
            setter.end(knob);
        }
    }
}

/// Where the parameter of that number stands, as a preset says it.
fn value(board: &dyn Board, knob: KnobId) -> Option<Value> {
    Some(Value::of(Parameter::of(knob)?, board.value(knob)?))
}
