//! Parameter storage for instances without a host.

use std::array;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::choice::source_value;
use crate::midi_bindings::MidiBindings;
use crate::parameter::{
    PARAMETER_COUNT, PARAMETERS, Parameter, ParameterId, ParameterScope, SOURCE, all, automatable,
};
use crate::parameter_source::{ParameterSetter, ParameterSource};
use crate::parameter_values::{ParameterValue, ParameterValues, value_before};
use crate::player_parameters::PlayerParameters;
use crate::product::Product;

/// The parameters of one instance. Any thread may read and write them at any time.
pub struct ParameterStore {
    /// `[id]`: values, as bits of `f32`.
    values: [AtomicU32; PARAMETER_COUNT],
    product: Product,
}

impl ParameterStore {
    /// Creates parameters at their defaults.
    #[must_use]
    pub fn new(product: Product) -> Self {
        let store = Self {
            values: array::from_fn(|_| AtomicU32::new(0)),
            product,
        };
        store.reset();
        store
    }

    fn reset(&self) {
        for (id, parameter) in all() {
            self.set_value(id, parameter.default());
        }
        self.set_value(SOURCE, source_value(self.product.source()));
    }

    /// Sets the nearest valid value.
    pub fn set_value(&self, id: ParameterId, value: f32) {
        if let Some((index, parameter)) = self.values.get(id.0 as usize).zip(Parameter::get(id)) {
            index.store(parameter.clamp(value).to_bits(), Relaxed);
        }
    }

    /// Registers the automatable parameters with the instance's MIDI bindings. To be called before
    /// anything else is asked of them.
    pub fn register_midi(&self, bindings: &MidiBindings) {
        bindings.set_parameters(automatable().map(|(_, parameter)| parameter.id.to_owned()));
    }

    /// Handles a MIDI controller value, 0 … 127: sets the parameters that are bound to the
    /// controller, including one that has just learnt it. Wait-free.
    pub fn handle_controller(&self, bindings: &MidiBindings, number: u8, position: u8) {
        for index in bindings.controller_moved(number) {
            if let Some((id, _)) = automatable().nth(index) {
                self.set_normalized(id, f32::from(position.min(127)) / 127.0);
            }
        }
    }

    /// Returns the values that a project saves, by id.
    #[must_use]
    pub fn values(&self) -> ParameterValues {
        let saved = PARAMETERS
            .iter()
            .zip(&self.values)
            .filter(|(parameter, _)| parameter.scope != ParameterScope::Momentary);
        let value = |index: &AtomicU32| f32::from_bits(index.load(Relaxed));
        saved
            .map(|(parameter, index)| {
                (
                    parameter.id.to_owned(),
                    ParameterValue::new(parameter, value(index)),
                )
            })
            .collect()
    }

    /// Restores saved values. Missing ones are set to their [value before](value_before) or their
    /// defaults, invalid ones to their defaults, others are clamped; unknown ids are ignored.
    pub fn restore(&self, values: &ParameterValues) {
        self.reset();
        for (id, parameter) in
            all().filter(|(_, parameter)| parameter.scope != ParameterScope::Momentary)
        {
            let value = match values.get(parameter.id) {
                Some(value) => value.for_parameter(parameter),
                None => value_before(id),
            };
            if let Some(value) = value {
                self.set_value(id, value);
            }
        }
    }
}

impl ParameterSource for ParameterStore {
    fn player_parameters(&self) -> PlayerParameters {
        PlayerParameters::read(|id| self.value(id).unwrap_or_default())
    }

    fn value(&self, id: ParameterId) -> Option<f32> {
        self.values
            .get(id.0 as usize)
            .map(|value| f32::from_bits(value.load(Relaxed)))
    }
}

impl ParameterSetter for ParameterStore {
    fn begin_gesture(&self, _: ParameterId) {}

    fn set_normalized(&self, id: ParameterId, value: f32) {
        if let Some(parameter) = Parameter::get(id) {
            self.set_value(id, parameter.denormalize(value));
        }
    }

    fn end_gesture(&self, _: ParameterId) {}
}

#[cfg(test)]
mod tests {
    use ondes_engine::pipeline::ControlSource;
    use ondes_engine::realtime::Driver;

    use super::*;
    use crate::macros::{MACRO_CENTRE, MACRO_COUNT};
    use crate::parameter::{
        BYPASS, DRIVER, INPUT_GAIN, MIX, MODE, OUTPUT_GAIN, PANIC, TRANSPOSE, TUNE, VOICES,
    };
    use crate::player_parameters::NoteParameters;

    #[test]
    fn parameters_start_at_their_defaults() {
        let store = ParameterStore::new(Product::Instrument);
        let playing = NoteParameters {
            semitones: 0.0,
            mode: 0,
            glide_ms: -1.0,
            voices: 0,
        };
        let parameters = store.player_parameters();
        assert_eq!(
            (
                parameters.bypass,
                parameters.panic,
                parameters.notes,
                parameters.macros
            ),
            (false, false, playing, [MACRO_CENTRE; MACRO_COUNT])
        );
        assert_eq!(
            [
                parameters.input_gain,
                parameters.output_gain,
                parameters.mix
            ],
            [1.0; 3]
        );
        assert_eq!(
            (store.driver(), store.control_source()),
            (Driver::Auto, ControlSource::Notes)
        );
        assert_eq!(
            ParameterStore::new(Product::Effect).control_source(),
            ControlSource::AudioInput
        );
        assert_eq!(
            (
                store.value(ParameterId(99)),
                store.normalized(ParameterId(99))
            ),
            (None, None)
        );
    }

    #[test]
    fn set_values_reach_the_player() {
        let store = ParameterStore::new(Product::Instrument);
        let turn = |id, position| {
            store.begin_gesture(id);
            store.set_normalized(id, position);
            store.end_gesture(id);
        };
        turn(INPUT_GAIN, 0.0);
        turn(OUTPUT_GAIN, 1.0);
        turn(MIX, 0.25);
        turn(TRANSPOSE, 0.751);
        turn(TUNE, 0.75);
        turn(MODE, 1.0);
        turn(VOICES, 0.5);
        turn(BYPASS, 1.0);
        turn(PANIC, 1.0);
        turn(ParameterId(7), 0.125);
        turn(ParameterId(99), 1.0);
        let parameters = store.player_parameters();
        assert_eq!(
            (
                parameters.input_gain,
                parameters.mix,
                parameters.bypass,
                parameters.panic
            ),
            (0.0, 0.25, true, true)
        );
        assert!(
            (parameters.output_gain - 15.849).abs() < 1e-3,
            "{}",
            parameters.output_gain
        );
        assert_eq!(
            parameters.notes,
            NoteParameters {
                semitones: 12.5,
                mode: 3,
                glide_ms: -1.0,
                voices: 8
            }
        );
        assert_eq!(
            (parameters.macros[6], parameters.macros[7]),
            (MACRO_CENTRE, 0.125)
        );
        assert_eq!(
            (store.value(TRANSPOSE), store.normalized(TRANSPOSE)),
            (Some(12.0), Some(0.75)),
            "it has steps"
        );
    }

    #[test]
    fn controllers_turn_what_has_learnt_them() {
        let (store, bindings) = (
            ParameterStore::new(Product::Instrument),
            MidiBindings::default(),
        );
        store.register_midi(&bindings);
        assert!(!bindings.learn("driver") && bindings.learn("mix"));
        store.handle_controller(&bindings, 20, 0);
        assert_eq!(store.value(MIX), Some(0.0), "what teaches also turns");
        // This parameter's index differs from its id, as not all parameters before it are
        // automatable.
        bindings.learn("panic");
        store.handle_controller(&bindings, 21, 127);
        store.handle_controller(&bindings, 20, 255);
        assert_eq!(
            (store.value(PANIC), store.value(MIX), store.value(DRIVER)),
            (Some(1.0), Some(1.0), Some(0.0))
        );
    }

    #[test]
    fn valid_values_are_restored() {
        let store = ParameterStore::new(Product::Effect);
        store.set_value(INPUT_GAIN, -6.1);
        store.set_value(DRIVER, 2.0);
        store.set_value(BYPASS, 1.0);
        store.set_value(PANIC, 1.0);
        store.set_value(ParameterId(2), 0.7);
        let text = serde_json::to_string(&store.values()).unwrap();
        assert!(
            text.contains(r#""driver":"worker""#) && text.contains(r#""source":"input""#),
            "{text}"
        );
        assert!(!text.contains("panic"), "it is a moment's");
        let other = ParameterStore::new(Product::Effect);
        other.set_value(MIX, 0.1);
        other.set_value(PANIC, 1.0);
        other.restore(&serde_json::from_str(&text).unwrap());
        assert_eq!(
            (other.values(), other.value(PANIC)),
            (store.values(), Some(0.0))
        );
        assert_eq!(
            (other.value(INPUT_GAIN), other.value(MIX)),
            (Some(-6.1), Some(1.0))
        );

        let odd = r#"{ "mix": 7, "tune": "flat", "mode": "fugue", "bypass": 1, "driver": 1, "wow": true, "voices": 2.6 }"#;
        other.restore(&serde_json::from_str(odd).unwrap());
        let values = [MIX, TUNE, MODE, BYPASS, DRIVER, VOICES].map(|id| other.value(id).unwrap());
        assert_eq!(values, [1.0, 0.0, 0.0, 0.0, 0.0, 3.0]);
    }
}
