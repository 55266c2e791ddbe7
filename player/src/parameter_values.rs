//! Parameter values by id, as saved in projects and presets.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::parameter::{
    CHANNELS, PARAMETERS, Parameter, ParameterId, ParameterKind, ParameterScope,
};

/// A saved parameter value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ParameterValue {
    /// Value of a switch.
    Switch(bool),
    /// Number in the parameter's unit, such as -6.0 for dB.
    Number(#[serde(deserialize_with = "finite")] f32),
    /// Id of a choice's option.
    Choice(String),
    /// A value of a type that this version does not know.
    Unknown(serde_json::Value),
}

/// Deserialises a number; refuses those that only a wider type can hold, since infinity could not
/// be saved again.
///
/// # Errors
/// Returns the deserialiser's error if the input is not such a number.
pub fn finite<'de, D: Deserializer<'de>>(from: D) -> Result<f32, D::Error> {
    let value = f32::deserialize(from)?;
    if value.is_finite() {
        Ok(value)
    } else {
        Err(D::Error::custom("a number beyond 3.4e38"))
    }
}

/// Deserialises numbers, optional ones or those of a list; takes the nearest that fits for those that only a
/// wider type can hold.
///
/// # Errors
/// Returns the deserialiser's error if the input is no such number.
pub fn nearest<'de, T: Deserialize<'de> + Numbers, D: Deserializer<'de>>(
    from: D,
) -> Result<T, D::Error> {
    let mut numbers = T::deserialize(from)?;
    numbers.each(|number| *number = number.clamp(f32::MIN, f32::MAX));
    Ok(numbers)
}

/// Numbers in a field of a file.
pub trait Numbers {
    /// Changes each of them.
    fn each(&mut self, change: impl FnMut(&mut f32));
}

impl Numbers for f32 {
    fn each(&mut self, mut change: impl FnMut(&mut f32)) {
        change(self);
    }
}

impl Numbers for Option<f32> {
    fn each(&mut self, change: impl FnMut(&mut f32)) {
        self.iter_mut().for_each(change);
    }
}

impl Numbers for BTreeMap<String, f32> {
    fn each(&mut self, change: impl FnMut(&mut f32)) {
        self.values_mut().for_each(change);
    }
}

/// Parameter values by id.
pub type ParameterValues = BTreeMap<String, ParameterValue>;

impl ParameterValue {
    /// Returns the saved form of a value.
    #[must_use]
    pub fn new(parameter: &Parameter, value: f32) -> Self {
        match parameter.kind {
            ParameterKind::Float { .. } | ParameterKind::Integer { .. } => Self::Number(value),
            ParameterKind::Switch => Self::Switch(value > 0.5),
            ParameterKind::Choice(choices) => {
                let id = choices.ids.get(value as usize).copied().unwrap_or_default();
                Self::Choice(id.to_owned())
            }
        }
    }

    /// Returns the nearest valid value; `None` if the type does not match the parameter or there is
    /// no such option.
    #[must_use]
    pub fn for_parameter(&self, parameter: &Parameter) -> Option<f32> {
        match (parameter.kind, self) {
            (ParameterKind::Float { .. } | ParameterKind::Integer { .. }, Self::Number(number))
                if number.is_finite() =>
            {
                Some(parameter.clamp(*number))
            }
            (ParameterKind::Switch, Self::Switch(on)) => Some(f32::from(u8::from(*on))),
            (ParameterKind::Choice(choices), Self::Choice(id)) => choices
                .ids
                .iter()
                .position(|known| known == id)
                .map(|place| place as f32),
            _ => None,
        }
    }
}

/// Returns the value of a parameter in projects that were saved before there was such a parameter,
/// if it differs from the default: models processed the mean of both channels.
#[must_use]
pub fn value_before(id: ParameterId) -> Option<f32> {
    (id == CHANNELS).then_some(MONO)
}

/// Value of [`CHANNELS`] for the mean of both channels.
const MONO: f32 = 1.0;

/// Returns the parameters that a preset holds.
pub fn sound_parameters() -> impl Iterator<Item = &'static Parameter> {
    PARAMETERS
        .iter()
        .filter(|parameter| parameter.scope == ParameterScope::Sound)
}

/// Returns the values of all [`sound_parameters`]: missing ones and unknown options are set to
/// their defaults, others are clamped; unknown ids are left out.
///
/// # Errors
/// Returns the id of the parameter if a value's type does not match.
pub fn complete_values(values: &ParameterValues) -> Result<ParameterValues, &'static str> {
    let value = |part: &'static Parameter| {
        let value = match (part.kind, values.get(part.id)) {
            (_, None) => part.default(),
            (ParameterKind::Choice(_), Some(value @ ParameterValue::Choice(_))) => {
                value.for_parameter(part).unwrap_or(part.default())
            }
            (_, Some(value)) => value.for_parameter(part).ok_or(part.id)?,
        };
        Ok((part.id.to_owned(), ParameterValue::new(part, value)))
    };
    sound_parameters().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::macros::MACRO_CENTRE;
    use crate::parameter::{DRIVER, all};

    #[test]
    fn values_of_all_parameters_lead_back_to_them_and_nonsense_nowhere() {
        for (_, parameter) in all() {
            for value in [0.0, 0.3, 0.7, 1.0].map(|position| parameter.denormalize(position)) {
                assert_eq!(
                    ParameterValue::new(parameter, value).for_parameter(parameter),
                    Some(value),
                    "{}",
                    parameter.id
                );
            }
            for nonsense in [
                ParameterValue::Number(f32::NAN),
                ParameterValue::Unknown(().into()),
                ParameterValue::Choice("louder".into()),
            ] {
                assert_eq!(nonsense.for_parameter(parameter), None, "{}", parameter.id);
            }
            if let Some(end) = ParameterValue::Number(f32::MAX).for_parameter(parameter) {
                assert_eq!(parameter.normalize(end), 1.0, "{}", parameter.id);
            }
        }
        let driver = Parameter::get(DRIVER).unwrap();
        let worker = ParameterValue::Choice("worker".into())
            .for_parameter(driver)
            .unwrap();
        assert_eq!(
            (
                driver.format(worker).as_str(),
                ParameterValue::Switch(true).for_parameter(driver)
            ),
            ("Background", None)
        );
    }

    #[test]
    fn a_preset_turns_what_it_always_did_and_what_was_added() {
        let ids: Vec<&str> = sound_parameters()
            .map(|part| part.id)
            .filter(|id| !id.starts_with("macro"))
            .collect();
        let eight = [
            "input_gain",
            "output_gain",
            "mix",
            "transpose",
            "tune",
            "mode",
            "glide",
            "voices",
        ];
        let around = [
            "gate",
            "bass",
            "middle",
            "treble",
            "tone",
            "block_dc",
            "cabinet",
            "output_level",
        ];
        let room = ["reverb", "reverb_time"];
        assert_eq!(
            (ids, sound_parameters().count()),
            ([&eight[..], &around, &room].concat(), 26)
        );
    }

    #[test]
    fn missing_values_are_defaults_and_others_are_clamped() {
        let values = r#"{ "output_gain": 1000, "transpose": -12.4, "bypass": true, "wow": { "flutter": 1 } }"#;
        let values: ParameterValues = serde_json::from_str(values).unwrap();
        let all = complete_values(&values).unwrap();
        assert_eq!(all.len(), sound_parameters().count());
        assert_eq!(
            [&all["output_gain"], &all["transpose"]],
            [
                &ParameterValue::Number(24.0),
                &ParameterValue::Number(-12.0)
            ]
        );
        assert_eq!(
            [&all["mix"], &all["macro8"]],
            [
                &ParameterValue::Number(1.0),
                &ParameterValue::Number(MACRO_CENTRE)
            ]
        );
        for nonsense in [
            r#"{ "mix": "loud" }"#,
            r#"{ "mix": true }"#,
            r#"{ "mix": null }"#,
            r#"{ "mix": 1e200 }"#,
        ] {
            assert_eq!(
                complete_values(&serde_json::from_str(nonsense).unwrap()),
                Err("mix"),
                "{nonsense}"
            );
        }
        let mode = |text: &str| {
            complete_values(&serde_json::from_str(text).unwrap()).map(|all| all["mode"].clone())
        };
        assert_eq!(
            mode(r#"{ "mode": "legato" }"#),
            Ok(ParameterValue::Choice("legato".into()))
        );
        for later in ["{}", r#"{ "mode": "fugue" }"#] {
            assert_eq!(
                mode(later),
                Ok(ParameterValue::Choice("model".into())),
                "{later}"
            );
        }
        assert_eq!(mode(r#"{ "mode": 3 }"#), Err("mode"));
    }
}
