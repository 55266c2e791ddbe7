//! Where parameters stand, by their ids, in their own units.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::parameter::{Kind, PARAMETERS, Parameter, Scope};

/// Where one parameter stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// On or off.
    On(bool),
    /// In the parameter's unit, such as -6.0 for dB.
    Number(f32),
    /// The choice of that id.
    Choice(String),
    /// What only a later version understands.
    Later(serde_json::Value),
}

/// Parameters by their ids.
pub type Values = BTreeMap<String, Value>;

impl Value {
    /// The value of a parameter.
    #[must_use]
    pub fn of(parameter: &Parameter, value: f32) -> Self {
        match parameter.kind {
            Kind::Float { .. } | Kind::Whole { .. } => Self::Number(value),
            Kind::Switch => Self::On(value > 0.5),
            Kind::Choice(choices) => {
                let id = choices.ids.get(value as usize).copied().unwrap_or_default();
                Self::Choice(id.to_owned())
            }
        }
    }

    /// The nearest value that the parameter has; none where this is of another type or a choice that there is not.
    #[must_use]
    pub fn read(&self, parameter: &Parameter) -> Option<f32> {
        match (parameter.kind, self) {
            (Kind::Float { .. } | Kind::Whole { .. }, Self::Number(number)) if number.is_finite() => {
                Some(parameter.nearest(*number))
            }
            (Kind::Switch, Self::On(on)) => Some(f32::from(u8::from(*on))),
            (Kind::Choice(choices), Self::Choice(id)) => {
                choices.ids.iter().position(|known| known == id).map(|place| place as f32)
            }
            _ => None,
        }
    }
}

/// All that a preset turns.
pub fn parts() -> impl Iterator<Item = &'static Parameter> {
    PARAMETERS.iter().filter(|parameter| parameter.scope == Scope::Sound)
}

/// The values of all [`parts`]: what is missing stands at its default, what is out of range at its end, what is no part
/// is left out. A choice that only a later version knows is the default.
///
/// # Errors
/// The part that has a value of another type.
pub fn complete(values: &Values) -> Result<Values, &'static str> {
    let value = |part: &'static Parameter| {
        let value = match (part.kind, values.get(part.id)) {
            (_, None) => part.default(),
            (Kind::Choice(_), Some(value @ Value::Choice(_))) => value.read(part).unwrap_or(part.default()),
            (_, Some(value)) => value.read(part).ok_or(part.id)?,
        };
        Ok((part.id.to_owned(), Value::of(part, value)))
    };
    parts().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::macros::REST;
    use crate::parameter::{DRIVER, all};

    #[test]
    fn values_of_all_parameters_lead_back_to_them_and_nonsense_nowhere() {
        for (_, parameter) in all() {
            for value in [0.0, 0.3, 0.7, 1.0].map(|position| parameter.value(position)) {
                assert_eq!(Value::of(parameter, value).read(parameter), Some(value), "{}", parameter.id);
            }
            for nonsense in [Value::Number(f32::NAN), Value::Later(().into()), Value::Choice("louder".into())] {
                assert_eq!(nonsense.read(parameter), None, "{}", parameter.id);
            }
            if let Some(end) = Value::Number(f32::MAX).read(parameter) {
                assert_eq!(parameter.position(end), 1.0, "{}", parameter.id);
            }
        }
        let driver = Parameter::of(DRIVER).unwrap();
        let worker = Value::Choice("worker".into()).read(driver).unwrap();
        assert_eq!((driver.say(worker).as_str(), Value::On(true).read(driver)), ("Worker", None));
    }

    #[test]
    fn a_preset_turns_what_it_always_did_and_what_was_added() {
        let ids: Vec<&str> = parts().map(|part| part.id).filter(|id| !id.starts_with("macro")).collect();
        let eight = ["input_gain", "output_gain", "mix", "transpose", "tune", "mode", "glide", "voices"];
        let around = ["gate", "bass", "middle", "treble", "tone", "block_dc", "cabinet", "output_level"];
        assert_eq!((ids, parts().count()), ([&eight[..], &around].concat(), 24));
    }

    #[test]
    fn what_is_missing_is_at_its_default_and_nothing_leaves_its_range() {
        let values = r#"{ "output_gain": 1000, "transpose": -12.4, "bypass": true, "wow": { "flutter": 1 } }"#;
        let values: Values = serde_json::from_str(values).unwrap();
        let all = complete(&values).unwrap();
        assert_eq!(all.len(), parts().count());
        assert_eq!([&all["output_gain"], &all["transpose"]], [&Value::Number(24.0), &Value::Number(-12.0)]);
        assert_eq!([&all["mix"], &all["macro8"]], [&Value::Number(1.0), &Value::Number(REST)]);
        for nonsense in [r#"{ "mix": "loud" }"#, r#"{ "mix": true }"#, r#"{ "mix": null }"#, r#"{ "mix": 1e200 }"#] {
            assert_eq!(complete(&serde_json::from_str(nonsense).unwrap()), Err("mix"), "{nonsense}");
        }
        let mode = |text: &str| complete(&serde_json::from_str(text).unwrap()).map(|all| all["mode"].clone());
        assert_eq!(mode(r#"{ "mode": "legato" }"#), Ok(Value::Choice("legato".into())));
        for later in ["{}", r#"{ "mode": "fugue" }"#] {
            assert_eq!(mode(later), Ok(Value::Choice("model".into())), "{later}");
        }
        assert_eq!(mode(r#"{ "mode": 3 }"#), Err("mode"));
    }
}
