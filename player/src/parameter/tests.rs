use std::collections::BTreeSet;

use super::*;
use crate::macros::MACRO_COUNT;

#[test]
fn ids_lead_to_parameters_and_macros_come_first() {
    let ids: BTreeSet<&str> = PARAMETERS.iter().map(|parameter| parameter.id).collect();
    assert_eq!(ids.len(), PARAMETER_COUNT);
    for (knob, parameter) in all() {
        assert_eq!(Parameter::find(parameter.id), Some(knob));
        assert_eq!(Parameter::get(knob), Some(parameter));
        assert_eq!(
            (knob.0 as usize) < MACRO_COUNT,
            parameter.id.starts_with("macro"),
            "{}",
            parameter.id
        );
    }
    assert_eq!(
        (Parameter::find("wow"), Parameter::get(ParameterId(99))),
        (None, None)
    );
    assert_eq!(Parameter::find("voices"), Some(VOICES));
}

/// Projects and presets store these ids; hosts know their order.
#[test]
fn ids_never_change() {
    let ids: Vec<&str> = PARAMETERS[MACRO_COUNT..]
        .iter()
        .map(|parameter| parameter.id)
        .collect();
    let always = "input_gain output_gain mix transpose tune bypass driver mode glide voices source panic gate bass \
                  middle treble tone block_dc cabinet oversampling size interface_level output_level \
                  quality control_input channels reverb reverb_time bend_range mpe scene \
                  next_scene previous_scene";
    assert_eq!(ids.join(" "), always);
}

#[test]
fn values_lead_to_positions_and_back() {
    for (_, parameter) in all() {
        let [min, max] = parameter.range();
        let ends = [parameter.normalize(min), parameter.normalize(max)];
        assert_eq!(
            (ends, parameter.denormalize(0.0), parameter.denormalize(1.0)),
            ([0.0, 1.0], min, max),
            "{}",
            parameter.id
        );
        for step in 0..=40 {
            let value = parameter.denormalize(step as f32 / 40.0);
            let again = parameter.denormalize(parameter.normalize(value));
            assert!(
                (again - value).abs() <= 1e-5 * (max - min),
                "{}: {value}, then {again}",
                parameter.id
            );
            assert_eq!(parameter.clamp(value), value, "{}", parameter.id);
        }
        let beyond = [f32::INFINITY, f32::MIN, f32::NAN].map(|value| parameter.clamp(value));
        assert_eq!(beyond, [max, min, parameter.default()], "{}", parameter.id);
        assert_eq!(
            parameter.denormalize(f32::NAN),
            parameter.denormalize(parameter.normalize(parameter.default()))
        );
    }
    let glide = Parameter::get(GLIDE).unwrap();
    assert!(
        (900.0..1_300.0).contains(&glide.denormalize(0.75)),
        "{}",
        glide.denormalize(0.75)
    );
    assert_eq!(Parameter::get(TRANSPOSE).unwrap().clamp(-12.4), -12.0);
}

#[test]
fn choices_have_a_name_for_each_id() {
    let choices = all().filter_map(|(_, parameter)| match parameter.kind {
        ParameterKind::Choice(choices) => Some((parameter, choices)),
        _ => None,
    });
    for (parameter, Choices { ids, names }) in choices {
        assert_eq!(
            (ids.len(), names.len() as u32),
            (names.len(), parameter.steps()),
            "{}",
            parameter.id
        );
    }
}

#[test]
fn an_effect_has_no_parameters_of_notes() {
    let without = all()
        .filter(|(_, parameter)| !parameter.applies_to(Product::Effect))
        .map(|(id, _)| id);
    assert_eq!(
        without.collect::<Vec<_>>(),
        [MODE, GLIDE, VOICES, SOURCE, BEND_RANGE, MPE]
    );
    let without = all()
        .filter(|(_, parameter)| !parameter.applies_to(Product::Instrument))
        .map(|(id, _)| id);
    assert_eq!(without.collect::<Vec<_>>(), [CONTROL_INPUT]);
}
