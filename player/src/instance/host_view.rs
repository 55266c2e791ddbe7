//! Queries of a plugin's host about an instance.

use std::sync::Weak;

use ondes_engine::instrument::{Performance, PlayMode};

use super::InstanceHandle;
use crate::parameter::{MODE, Parameter, ParameterId, VOICES};

/// Largest number of voices of a model.
pub const MAX_VOICES: u32 = 64;

/// Voices of a model, as its file says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ModelVoices {
    count: u8,
    /// One voice per channel.
    mono: bool,
}

impl ModelVoices {
    pub(super) fn new(performance: &Performance) -> Self {
        Self {
            count: performance.polyphony,
            mono: performance.mode != PlayMode::Poly,
        }
    }
}

impl InstanceHandle {
    /// Returns a parameter's value without modulation. Wait-free.
    #[must_use]
    pub fn parameter_value(&self, id: ParameterId) -> Option<f32> {
        self.parameter_source
            .get()
            .and_then(Weak::upgrade)?
            .value(id)
    }

    /// Returns the name of a parameter: a macro that turns something has the name of that, such as "Attack".
    #[must_use]
    pub fn parameter_label(&self, id: ParameterId) -> Option<String> {
        let parameter = Parameter::get(id)?;
        let turned = self.macro_label(id.0 as usize);
        Some(turned.unwrap_or_else(|| parameter.label.to_owned()))
    }

    /// Returns the number of notes that can sound at once with the present parameters, 1 to
    /// [`MAX_VOICES`]. Wait-free.
    #[must_use]
    pub fn voice_count(&self) -> u32 {
        let ModelVoices { count, mono } = self.model_voices.load();
        let value = |id| self.parameter_value(id).unwrap_or_default();
        let is_mono = match value(MODE) as u8 {
            0 => mono,
            mode => mode > 1,
        };
        let polyphony = u32::from(count).clamp(1, MAX_VOICES);
        match value(VOICES) as u32 {
            _ if is_mono => 1,
            0 => polyphony,
            limit => limit.min(polyphony),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::library::BUNDLED;
    use crate::parameter::{INPUT_GAIN, MIX};
    use crate::parameter_store::ParameterStore;
    use crate::product::Product;

    fn instance() -> (Arc<InstanceHandle>, Arc<ParameterStore>) {
        let (instance, store) = (
            InstanceHandle::new(Product::Instrument, || ()),
            Arc::new(ParameterStore::new(Product::Instrument)),
        );
        instance.set_parameter_source(&store);
        (instance, store)
    }

    #[test]
    fn voices_follow_model_and_parameters() {
        let (instance, store) = instance();
        let polyphony = u32::from(
            BUNDLED[0]
                .model()
                .header()
                .performance
                .unwrap_or_default()
                .polyphony,
        );
        assert!(polyphony > 2);
        let count = |voices, mode| {
            store.set_value(VOICES, voices);
            store.set_value(MODE, mode);
            instance.voice_count()
        };
        let counts = [(0.0, 0.0), (2.0, 0.0), (16.0, 1.0), (0.0, 2.0), (5.0, 3.0)]
            .map(|(voices, mode)| count(voices, mode));
        assert_eq!(counts, [polyphony, 2, polyphony.min(16), 1, 1]);
        drop(
            instance
                .load_model(false, || Ok((BUNDLED[1].model(), None)))
                .join(),
        );
        let plucked = u32::from(
            BUNDLED[1]
                .model()
                .header()
                .performance
                .unwrap_or_default()
                .polyphony,
        );
        assert_eq!(count(0.0, 1.0), plucked);
    }

    #[test]
    fn bound_macros_are_named_after_their_controls() {
        let (instance, store) = instance();
        store.set_value(MIX, 0.25);
        assert_eq!(instance.parameter_value(MIX), Some(0.25));
        instance.host_notifier.take_names_changed();
        instance.bind_macro(3, Some("attack"));
        assert!(
            instance.host_notifier.take_names_changed()
                && instance.host_notifier.take_state_changed()
        );
        instance.bind_macro(4, None);
        let names = [ParameterId(3), ParameterId(4), INPUT_GAIN]
            .map(|id| instance.parameter_label(id).unwrap());
        assert_eq!(names, ["Attack", "Macro 5", "Input gain"]);
        assert_eq!(instance.parameter_label(ParameterId(99)), None);
    }
}
