//! A whole setting: taken from an instance, and given to it again through the host.

use nice_plug::prelude::*;
use ondes_ui::KnobId;

use super::commands::Setter;
use super::owner::Desk;
use super::places::{ALL, Place};
use crate::preset::values::{Value, Values};
use crate::shared::Kept;

/// The numbers of all parameters with their ids.
fn all() -> impl Iterator<Item = (KnobId, &'static str)> {
    ALL.map(KnobId).filter_map(|number| Some((number, Place::id(number)?)))
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
    let places = all().filter_map(|(number, id)| Some((id, Place::of(&desk.parameters, number)?)));
    let values = places.map(|(id, place)| (id.to_owned(), value(place))).collect();
    Setting { values, kept: desk.shared.keep() }
}

/// Goes to a setting: the model at once, parameters by gestures, so that the host learns of them.
pub fn recall(desk: &mut Desk, setter: &impl Setter, setting: Setting) {
    (desk.auditioned, desk.loading) = (None, None);
    desk.shared.recall(setting.kept);
    for (number, id) in all() {
        let wanted = setting.values.get(id);
        let Some((place, wanted)) = Place::of(&desk.parameters, number).zip(wanted) else { continue };
        if let Some(normalized) = normalized(place, wanted)
            && value(place) != *wanted
        {
            setter.begin(place);
            setter.set(place, normalized);
            setter.end(place);
        }
    }
}

/// Where a parameter stands, in its unit.
pub fn value(place: Place<'_>) -> Value {
    match place {
        Place::Float(param) => Value::Number(param.unmodulated_plain_value()),
        Place::Int(param) => Value::Number(param.unmodulated_plain_value() as f32),
        Place::Bool(param) => Value::On(param.unmodulated_plain_value()),
        Place::Driver(param) => choice(param),
        Place::Mode(param) => choice(param),
        Place::PlayedBy(param) => choice(param),
    }
}

fn choice<T: Enum + PartialEq>(param: &EnumParam<T>) -> Value {
    let id = T::ids().and_then(|ids| ids.get(param.unmodulated_plain_value().to_index()).copied());
    Value::Choice(id.unwrap_or_default().to_owned())
}

/// Where a parameter must go for a value, 0 … 1; none where the value is of another type.
fn normalized(place: Place<'_>, value: &Value) -> Option<f32> {
    /// Beyond all ranges, yet nowhere near where integers end.
    const FAR: f32 = 1e6;
    match (place, value) {
        (Place::Float(param), Value::Number(number)) if number.is_finite() => Some(param.preview_normalized(*number)),
        (Place::Int(param), Value::Number(number)) if number.is_finite() => {
            Some(param.preview_normalized(number.round().clamp(-FAR, FAR) as i32))
        }
        (Place::Bool(param), Value::On(on)) => Some(param.preview_normalized(*on)),
        (Place::Driver(param), Value::Choice(id)) => chosen(param, id),
        (Place::Mode(param), Value::Choice(id)) => chosen(param, id),
        (Place::PlayedBy(param), Value::Choice(id)) => chosen(param, id),
        _ => None,
    }
}

fn chosen<T: Enum + PartialEq>(param: &EnumParam<T>, id: &str) -> Option<f32> {
    let index = T::ids()?.iter().position(|known| *known == id)?;
    Some(param.preview_normalized(T::from_index(index)))
}

#[cfg(test)]
mod tests {
    use ondes_engine::pipeline::Source;

    use super::*;
    use crate::parameters::Parameters;
    use crate::shared::Shared;

    #[test]
    fn values_of_all_places_lead_back_to_them_and_nonsense_nowhere() {
        let parameters = Parameters::new(&Shared::new(Source::Notes), Source::Notes);
        for (number, id) in all() {
            let place = Place::of(&parameters, number).unwrap();
            assert_eq!(normalized(place, &value(place)), Some(place.value()), "{id}");
            for nonsense in [Value::Number(f32::NAN), Value::Later(().into()), Value::Choice("louder".into())] {
                assert_eq!(normalized(place, &nonsense), None, "{id}");
            }
            if let Some(end) = normalized(place, &Value::Number(f32::MAX)) {
                assert_eq!(end, 1.0, "{id}");
            }
        }
        let driver = Place::Driver(&parameters.driver);
        let worker = normalized(driver, &Value::Choice("worker".into())).unwrap();
        assert_eq!(driver.text(worker), "Worker");
    }
}
