//! Taking and applying snapshots of everything that is heard.

use super::InstanceHandle;
use crate::parameter::{Parameter, ParameterId, ParameterScope, all};
use crate::parameter_source::{ParameterSetter, ParameterSource};
use crate::parameter_values::{ParameterValue, ParameterValues};
use crate::snapshot::SoundSnapshot;

impl InstanceHandle {
    /// Takes a snapshot of everything that is heard, with the parameter values of `source`.
    #[must_use]
    pub fn sound_snapshot(&self, source: &dyn ParameterSource) -> SoundSnapshot {
        SoundSnapshot {
            values: values(source, |scope| scope != ParameterScope::Momentary),
            selection: self.selection_snapshot(),
        }
    }

    /// Applies a snapshot: the selection at once, parameters that differ by one gesture each, so
    /// that the host learns of them.
    pub fn apply_sound(
        &self,
        source: &dyn ParameterSource,
        setter: &impl ParameterSetter,
        sound: SoundSnapshot,
    ) {
        self.restore_selection(sound.selection);
        apply_values(source, setter, &sound.values);
    }
}

/// Returns the values of the parameters of some scopes, by their ids.
pub(super) fn values(
    source: &dyn ParameterSource,
    is_wanted: impl Fn(ParameterScope) -> bool,
) -> ParameterValues {
    let wanted = all().filter(|(_, parameter)| is_wanted(parameter.scope));
    let values = wanted
        .filter_map(|(id, parameter)| Some((parameter.id.to_owned(), saved_value(source, id)?)));
    values.collect()
}

/// Applies values that differ, by one gesture each, so that the host learns of them.
pub(super) fn apply_values(
    source: &dyn ParameterSource,
    setter: &impl ParameterSetter,
    values: &ParameterValues,
) {
    for (id, parameter) in
        all().filter(|(_, parameter)| parameter.scope != ParameterScope::Momentary)
    {
        let Some(saved) = values.get(parameter.id) else {
            continue;
        };
        if let Some(value) = saved.for_parameter(parameter)
            && saved_value(source, id).as_ref() != Some(saved)
        {
            setter.begin_gesture(id);
            setter.set_normalized(id, parameter.normalize(value));
            setter.end_gesture(id);
        }
    }
}

/// The value of a parameter, as presets store it.
fn saved_value(source: &dyn ParameterSource, id: ParameterId) -> Option<ParameterValue> {
    Some(ParameterValue::new(Parameter::get(id)?, source.value(id)?))
}
