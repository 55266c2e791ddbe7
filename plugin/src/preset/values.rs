//! Where parameters stand, by their ids, in their own units.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::macros::REST;
use crate::parameters::SILENT_DB;

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

/// A parameter that makes the sound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// Its id.
    pub id: &'static str,
    /// Where it stands when nothing is said of it.
    pub default: f32,
    /// The least, in its unit.
    pub min: f32,
    /// The most, in its unit.
    pub max: f32,
    /// Whether it goes in whole numbers.
    pub whole: bool,
}

const fn part(id: &'static str, default: f32, [min, max]: [f32; 2]) -> Part {
    Part { id, default, min, max, whole: false }
}

/// All that a preset turns. Bypass, the driver and what plays the instrument are the track's and the machine's: changing
/// them from sound to sound would cut notes off, since the host begins anew.
pub const PARTS: [Part; 15] = [
    part("input_gain", 0.0, [SILENT_DB, 24.0]),
    part("output_gain", 0.0, [SILENT_DB, 24.0]),
    part("mix", 1.0, [0.0, 1.0]),
    Part { whole: true, ..part("transpose", 0.0, [-24.0, 24.0]) },
    part("tune", 0.0, [-100.0, 100.0]),
    part("glide", -1.0, [-1.0, 2_000.0]),
    Part { whole: true, ..part("voices", 0.0, [0.0, 16.0]) },
    part("macro1", REST, [0.0, 1.0]),
    part("macro2", REST, [0.0, 1.0]),
    part("macro3", REST, [0.0, 1.0]),
    part("macro4", REST, [0.0, 1.0]),
    part("macro5", REST, [0.0, 1.0]),
    part("macro6", REST, [0.0, 1.0]),
    part("macro7", REST, [0.0, 1.0]),
    part("macro8", REST, [0.0, 1.0]),
];

/// The parameter that is a choice and makes the sound: how notes that overlap are played.
pub const MODE: &str = "mode";
/// What it can be, the default first.
pub const MODES: [&str; 4] = ["model", "poly", "mono", "legato"];

/// The values of all [`PARTS`] and of [`MODE`]: what is missing stands at its default, what is out of range at its end, what is
/// no part is left out. A mode that only a later version knows is the default.
///
/// # Errors
/// The part that has no number.
pub fn complete(values: &Values) -> Result<Values, &'static str> {
    let mode = match values.get(MODE) {
        Some(Value::Choice(mode)) if MODES.contains(&mode.as_str()) => mode,
        None | Some(Value::Choice(_)) => MODES[0],
        Some(_) => return Err(MODE),
    };
    let mode = Ok((MODE.to_owned(), Value::Choice(mode.into())));
    let numbers = PARTS.iter().map(|part| {
        let number = match values.get(part.id) {
            None => part.default,
            Some(Value::Number(number)) if number.is_finite() => number.clamp(part.min, part.max),
            Some(_) => return Err(part.id),
        };
        let number = if part.whole { number.round() } else { number };
        Ok((part.id.to_owned(), Value::Number(number)))
    });
    numbers.chain([mode]).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nice_plug::prelude::*;
    use ondes_engine::pipeline::Source;
    use ondes_ui::KnobId;

    use super::*;
    use crate::editor::places::{ALL, Place};
    use crate::parameters::{Mode, Parameters};
    use crate::shared::Shared;

    #[test]
    fn parts_are_what_the_parameters_are() {
        let shared = Shared::new(Source::Notes);
        let parameters = Arc::new(Parameters::new(&shared, Source::Notes));
        assert_eq!(Mode::ids(), Some(&MODES[..]));
        let text = |value: f32, place: Place<'_>| match place {
            Place::Float(param) => param.normalized_value_to_string(param.preview_normalized(value), true),
            Place::Int(param) => param.normalized_value_to_string(param.preview_normalized(value as i32), true),
            _ => panic!("no part"),
        };
        let mut parts = 0;
        for number in ALL.map(KnobId) {
            let (id, place) = (Place::id(number).unwrap(), Place::of(&parameters, number).unwrap());
            let Some(part) = PARTS.iter().find(|part| part.id == id) else { continue };
            let end = |value: f32| place.text(value);
            assert_eq!([text(part.min, place), text(part.max, place)], [end(0.0), end(1.0)], "{id}");
            assert_eq!(text(part.default, place), end(place.knob(number).default), "{id}");
            assert_eq!(part.whole, matches!(place, Place::Int(_)), "{id}");
            parts += 1;
        }
        assert_eq!(parts, PARTS.len());
    }

    #[test]
    fn what_is_missing_is_at_its_default_and_nothing_leaves_its_range() {
        let values = r#"{ "output_gain": 1000, "transpose": -12.4, "bypass": true, "wow": { "flutter": 1 } }"#;
        let values: Values = serde_json::from_str(values).unwrap();
        let all = complete(&values).unwrap();
        assert_eq!(all.len(), PARTS.len() + 1);
        assert_eq!([&all["output_gain"], &all["transpose"]], [&Value::Number(24.0), &Value::Number(-12.0)]);
        assert_eq!([&all["mix"], &all["macro8"]], [&Value::Number(1.0), &Value::Number(REST)]);
        for nonsense in [r#"{ "mix": "loud" }"#, r#"{ "mix": true }"#, r#"{ "mix": null }"#, r#"{ "mix": 1e200 }"#] {
            assert_eq!(complete(&serde_json::from_str(nonsense).unwrap()), Err("mix"), "{nonsense}");
        }
        let mode = |text: &str| complete(&serde_json::from_str(text).unwrap()).map(|all| all[MODE].clone());
        assert_eq!(mode(r#"{ "mode": "legato" }"#), Ok(Value::Choice("legato".into())));
        for later in ["{}", r#"{ "mode": "fugue" }"#] {
            assert_eq!(mode(later), Ok(Value::Choice("model".into())), "{later}");
        }
        assert_eq!(mode(r#"{ "mode": 3 }"#), Err(MODE));
    }
}
