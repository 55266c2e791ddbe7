//! The host's parameters, created from the parameter table of `ondes-player`.
//!
//! A row of [`PARAMETERS`] is all that a parameter needs: [`HostParameters`] builds a framework
//! parameter for each row and implements the framework's `Params` by hand. Hosts identify
//! parameters by a hash of the row's id.

use std::collections::BTreeMap;
use std::sync::Arc;

use nice_plug::params::persist::{deserialize_field, serialize_field};
use nice_plug::prelude::*;
use ondes_player::choice::{Choices, source_value};
use ondes_player::instance::InstanceHandle;
use ondes_player::parameter::{
    BYPASS, DRIVER, GLIDE, INPUT_GAIN, KnobCurve, MIX, MODE, OUTPUT_GAIN, PANIC, PARAMETERS,
    Parameter, ParameterId, ParameterKind, SOURCE, TRANSPOSE, TUNE, VOICES, all,
};
use ondes_player::parameter_source::ParameterSource;
use ondes_player::player_parameters::PlayerParameters;
use ondes_player::product::Product;

/// Key of the saved state's field that holds the instance's state, which is everything but the
/// parameters.
pub(crate) const STATE_KEY: &str = "ondes";

/// Parameters that hosts list first. All others follow in the table's order, so that a new row is
/// appended.
const FIRST_IN_HOST: [ParameterId; 12] = [
    BYPASS,
    INPUT_GAIN,
    OUTPUT_GAIN,
    MIX,
    TRANSPOSE,
    TUNE,
    MODE,
    GLIDE,
    VOICES,
    PANIC,
    DRIVER,
    SOURCE,
];

/// Returns all parameters in the order in which hosts list them.
pub(crate) fn ids_in_host_order() -> impl Iterator<Item = ParameterId> {
    let rest = all().map(|(id, _)| id);
    FIRST_IN_HOST
        .into_iter()
        .chain(rest.filter(|id| !FIRST_IN_HOST.contains(id)))
}

/// The parameters of one instance, and its saved state.
pub struct HostParameters {
    instance: Arc<InstanceHandle>,
    /// In the table's order. Boxed, because the framework keeps pointers to them.
    parameters: Box<[Box<dyn HostParameter>]>,
}

impl HostParameters {
    /// Creates all parameters at their defaults.
    #[must_use]
    pub fn new(instance: &Arc<InstanceHandle>) -> Self {
        let parameters = all()
            .map(|(id, parameter)| create(id, parameter, instance.product))
            .collect();
        Self {
            instance: instance.clone(),
            parameters,
        }
    }

    /// Returns the parameter with that number.
    pub(crate) fn get(&self, id: ParameterId) -> Option<&dyn HostParameter> {
        Some(&**self.parameters.get(id.0 as usize)?)
    }
}

// SAFETY: the pointers lead to boxed parameters, which this struct owns and never replaces.
unsafe impl Params for HostParameters {
    fn param_map(&self) -> Vec<(String, ParamPtr, String)> {
        ids_in_host_order()
            .map(|id| id.0 as usize)
            .map(|index| {
                (
                    PARAMETERS[index].id.into(),
                    self.parameters[index].ptr(),
                    String::new(),
                )
            })
            .collect()
    }

    fn serialize_fields(&self) -> BTreeMap<String, String> {
        match serialize_field(&self.instance.state()) {
            Ok(state) => [(STATE_KEY.to_owned(), state)].into(),
            Err(error) => {
                nice_error!("the state cannot be saved: {error}");
                BTreeMap::new()
            }
        }
    }

    fn deserialize_fields(&self, serialized: &BTreeMap<String, String>) {
        let Some(state) = serialized.get(STATE_KEY) else {
            return;
        };
        match deserialize_field(state) {
            Ok(state) => self.instance.restore_state(state),
            Err(error) => nice_error!("the saved state cannot be read: {error}"),
        }
    }
}

impl ParameterSource for HostParameters {
    fn player_parameters(&self) -> PlayerParameters {
        PlayerParameters::read(|id| self.get(id).map_or(0.0, HostParameter::modulated_value))
    }

    fn value(&self, id: ParameterId) -> Option<f32> {
        self.get(id).map(HostParameter::value)
    }
}

/// A framework parameter of any type. Values are those of its table.
pub(crate) trait HostParameter: Send + Sync {
    /// Returns the pointer by which the framework identifies the parameter.
    fn ptr(&self) -> ParamPtr;
    /// Returns the value that the user or the host has set.
    fn value(&self) -> f32;
    /// Returns the value with the host's modulation.
    fn modulated_value(&self) -> f32;
    /// Notifies the host that a gesture begins.
    fn begin_gesture(&self, setter: &ParamSetter<'_>);
    /// Sets a knob position, 0 … 1, through the host; rounds to the nearest step.
    fn set_position(&self, setter: &ParamSetter<'_>, position: f32);
    /// Sets a knob position, 0 … 1, without notifying the host; rounds to the nearest step.
    fn apply_position(&self, position: f32);
    /// Returns whether the user or the host has set this knob position, up to rounding.
    fn has_position(&self, position: f32) -> bool;
    /// Notifies the host that the gesture ends.
    fn end_gesture(&self, setter: &ParamSetter<'_>);
}

impl<P> HostParameter for P
where
    P: Param + Send + Sync,
    P::Plain: TableValue,
{
    fn ptr(&self) -> ParamPtr {
        self.as_ptr()
    }

    fn value(&self) -> f32 {
        self.unmodulated_plain_value().to_table()
    }

    fn modulated_value(&self) -> f32 {
        self.modulated_plain_value().to_table()
    }

    fn begin_gesture(&self, setter: &ParamSetter<'_>) {
        setter.begin_set_parameter(self);
    }

    fn set_position(&self, setter: &ParamSetter<'_>, position: f32) {
        setter.set_parameter(self, self.preview_plain(position));
    }

    fn apply_position(&self, position: f32) {
        let position = self.preview_normalized(self.preview_plain(position));
        // SAFETY: the pointer is to this parameter.
        unsafe { self.as_ptr()._internal_set_normalized_value(position) };
    }

    fn has_position(&self, position: f32) -> bool {
        let rounded = self.preview_normalized(self.preview_plain(position));
        (self.unmodulated_normalized_value() - rounded).abs() < 1e-6
    }

    fn end_gesture(&self, setter: &ParamSetter<'_>) {
        setter.end_set_parameter(self);
    }
}

/// A framework parameter's value, as the table's number.
trait TableValue {
    fn to_table(self) -> f32;
}

impl TableValue for f32 {
    fn to_table(self) -> f32 {
        self
    }
}

impl TableValue for i32 {
    fn to_table(self) -> f32 {
        self as f32
    }
}

impl TableValue for bool {
    fn to_table(self) -> f32 {
        f32::from(u8::from(self))
    }
}

impl<const INDEX: usize> TableValue for Choice<INDEX> {
    fn to_table(self) -> f32 {
        self.0 as f32
    }
}

/// Index into the choices of the table's row `INDEX`. The framework takes names and ids of choices
/// from a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Choice<const INDEX: usize>(usize);

impl<const INDEX: usize> Choice<INDEX> {
    /// The row's choices; empty for other rows and beyond the table.
    const CHOICES: Choices = {
        let none = Choices {
            ids: &[],
            names: &[],
        };
        if INDEX < PARAMETERS.len() {
            match PARAMETERS[INDEX].kind {
                ParameterKind::Choice(choices) => choices,
                _ => none,
            }
        } else {
            none
        }
    };
}

impl<const INDEX: usize> Enum for Choice<INDEX> {
    fn variants() -> &'static [&'static str] {
        Self::CHOICES.names
    }

    fn ids() -> Option<&'static [&'static str]> {
        Some(Self::CHOICES.ids)
    }

    fn to_index(self) -> usize {
        self.0
    }

    fn from_index(index: usize) -> Self {
        Self(if index < Self::CHOICES.ids.len() {
            index
        } else {
            0
        })
    }
}

/// Creates the framework's parameter for a row of the table. The framework only stores values:
/// names, texts and properties for hosts come from
/// [`params_extension`](crate::clap::params_extension).
fn create(
    id: ParameterId,
    parameter: &'static Parameter,
    product: Product,
) -> Box<dyn HostParameter> {
    match parameter.kind {
        ParameterKind::Float { .. } => Box::new(create_float(parameter)),
        ParameterKind::Integer { .. } => Box::new(create_int(parameter)),
        ParameterKind::Switch => Box::new(BoolParam::new(parameter.label, false)),
        ParameterKind::Choice(_) => CREATE_CHOICE[id.0 as usize](id, parameter, product),
    }
}

fn create_float(parameter: &'static Parameter) -> FloatParam {
    let [min, max] = parameter.range();
    let range = match parameter.kind {
        ParameterKind::Float {
            curve: KnobCurve::Skewed(bend),
            ..
        } => FloatRange::Skewed {
            min,
            max,
            factor: FloatRange::skew_factor(bend),
        },
        _ => FloatRange::Linear { min, max },
    };
    FloatParam::new(parameter.label, parameter.default(), range)
}

fn create_int(parameter: &'static Parameter) -> IntParam {
    let [min, max] = parameter.range().map(|end| end as i32);
    IntParam::new(
        parameter.label,
        parameter.default() as i32,
        IntRange::Linear { min, max },
    )
}

type CreateChoice = fn(ParameterId, &'static Parameter, Product) -> Box<dyn HostParameter>;

fn create_choice<const INDEX: usize>(
    id: ParameterId,
    parameter: &'static Parameter,
    product: Product,
) -> Box<dyn HostParameter> {
    let default = if id == SOURCE {
        source_value(product.source())
    } else {
        parameter.default()
    };
    Box::new(EnumParam::new(
        parameter.label,
        Choice::<INDEX>(default as usize),
    ))
}

macro_rules! create_choice_of_each {
    ($($index:literal)*) => { [$(create_choice::<$index>),*] };
}

/// One constructor per row, since a choice's type holds its row's index. Longer than the table, so
/// that it can grow.
const CREATE_CHOICE: [CreateChoice; 64] = create_choice_of_each!(
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
    32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
);
const _: () = assert!(
    PARAMETERS.len() <= CREATE_CHOICE.len(),
    "extend CREATE_CHOICE"
);

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(product: Product) -> HostParameters {
        HostParameters::new(&InstanceHandle::new(product, || ()))
    }

    /// A parameter as the framework presents it to hosts.
    struct FrameworkParameter<'a> {
        ptr: ParamPtr,
        _owner: &'a HostParameters,
    }

    impl<'a> FrameworkParameter<'a> {
        fn new(owner: &'a HostParameters, id: ParameterId) -> Self {
            Self {
                ptr: owner.get(id).unwrap().ptr(),
                _owner: owner,
            }
        }

        fn default_position(&self) -> f32 {
            // SAFETY: the owner of the parameter is alive.
            unsafe { self.ptr.default_normalized_value() }
        }

        fn steps(&self) -> u32 {
            // SAFETY: as above.
            unsafe { self.ptr.step_count() }.map_or(0, |steps| steps as u32 + 1)
        }

        fn value_at(&self, position: f32) -> f32 {
            // SAFETY: as above.
            unsafe { self.ptr.preview_plain(position) }
        }
    }

    #[test]
    fn framework_parameters_equal_the_table() {
        let parameters = parameters(Product::Instrument);
        assert_eq!(parameters.param_map().len(), PARAMETERS.len());
        for (id, parameter) in all() {
            let framework = FrameworkParameter::new(&parameters, id);
            let name = parameter.id;
            assert!(
                parameters
                    .param_map()
                    .iter()
                    .any(|(id, ptr, _)| id == name && *ptr == framework.ptr),
                "{name}"
            );
            assert_eq!(parameters.value(id), Some(parameter.default()), "{name}");
            assert_eq!(
                parameters.normalized(id),
                Some(framework.default_position()),
                "{name}"
            );
            assert_eq!(framework.steps(), parameter.steps(), "{name}");
            // The framework's preview of a switch is the position itself.
            let positions = if parameter.kind == ParameterKind::Switch {
                0
            } else {
                1_000
            };
            for position in (0..=positions).map(|step| step as f32 / 1_000.0) {
                assert_eq!(
                    framework.value_at(position),
                    parameter.denormalize(position),
                    "{name} {position}"
                );
            }
        }
        assert!(parameters.get(ParameterId(99)).is_none());
    }

    /// Hosts without ids of their own number the parameters in this order.
    #[test]
    fn the_order_in_hosts_is_stable() {
        let ids = parameters(Product::Instrument)
            .param_map()
            .into_iter()
            .map(|(id, ..)| id);
        let first: Vec<String> = ids.take(FIRST_IN_HOST.len() + 1).collect();
        let expected = "bypass input_gain output_gain mix transpose tune mode glide voices panic driver source macro1";
        assert_eq!(first.join(" "), expected);
    }

    #[test]
    fn the_input_controls_an_effect() {
        let source = parameters(Product::Effect).control_source();
        assert_eq!(source, ondes_engine::pipeline::ControlSource::AudioInput);
    }
}
