//! Taking and applying snapshots of everything that is heard.

use super::InstanceHandle;
use crate::parameter::{Parameter, ParameterId, ParameterScope, all};
use crate::parameter_source::{ParameterSetter, ParameterSource};
use crate::parameter_values::ParameterValue;
use crate::snapshot::SoundSnapshot;

impl InstanceHandle {
    /// Takes a snapshot of everything that is heard, with the parameter values of `source`.
    #[must_use]
    pub fn sound_snapshot(&self, source: &dyn ParameterSource) -> SoundSnapshot {
        let values = saved_parameters().filter_map(|(id, parameter)| {
            Some((parameter.id.to_owned(), saved_value(source, id)?))
        });
        SoundSnapshot {
            values: values.collect(),
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
        for (id, parameter) in saved_parameters() {
            let Some(saved) = sound.values.get(parameter.id) else {
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
}

/// The parameters that a snapshot holds.
fn saved_parameters() -> impl Iterator<Item = (ParameterId, &'static Parameter)> {
    all().filter(|(_, parameter)| parameter.scope != ParameterScope::Momentary)
}

/// The value of a parameter, as presets store it.
fn saved_value(source: &dyn ParameterSource, id: ParameterId) -> Option<ParameterValue> {
    Some(ParameterValue::new(Parameter::get(id)?, source.value(id)?))
}
