//! The parameters of the VST3: knob positions as before, groups as units, names of controls.

use ondes_player::macros::MACRO_COUNT;
use ondes_player::parameter::{PARAMETERS, Parameter, ParameterScope};
use ondes_player::product::Product;
use vst3::Steinberg::Vst::*;
use vst3::Steinberg::*;

use crate::host::{Host, INSTRUMENT, parameter_id, with_selection};
use crate::vst3_module::instance::Instance;
use crate::vst3_module::{classes, factory};

fn instances() -> Vec<Instance> {
    let factory = factory();
    classes(&factory)
        .iter()
        .map(|(_, class)| Instance::new(&factory, class))
        .collect()
}

fn text(units: &[u16]) -> String {
    let units: Vec<u16> = units
        .iter()
        .copied()
        .take_while(|unit| *unit != 0)
        .collect();
    String::from_utf16(&units).unwrap()
}

/// Returns the parameters of the table that the controller lists.
fn listed(instance: &Instance) -> Vec<(&'static Parameter, ParameterInfo)> {
    // SAFETY: the controller fills the structure that it gets.
    let infos = (0..unsafe { instance.controller.getParameterCount() }).map(|index| unsafe {
        let mut info: ParameterInfo = std::mem::zeroed();
        assert_eq!(
            instance.controller.getParameterInfo(index, &mut info),
            kResultOk
        );
        info
    });
    let parameter = |info: &ParameterInfo| {
        PARAMETERS
            .iter()
            .find(|known| parameter_id(known.label) == info.id)
    };
    infos
        .filter_map(|info| Some((parameter(&info)?, info)))
        .collect()
}

fn title(instance: &Instance, label: &str) -> String {
    let listed = listed(instance);
    text(
        &listed
            .iter()
            .find(|(parameter, _)| parameter.label == label)
            .unwrap()
            .1
            .title,
    )
}

#[test]
fn positions_mean_what_they_meant() {
    for (instance, product) in instances()
        .iter()
        .zip([Product::Instrument, Product::Effect])
    {
        let listed = listed(instance);
        assert_eq!(
            listed.len(),
            PARAMETERS
                .iter()
                .filter(|parameter| parameter.applies_to(product))
                .count()
        );
        for (index, (parameter, info)) in listed.into_iter().enumerate() {
            let Parameter { id, .. } = parameter;
            assert!(
                (info.defaultNormalizedValue - f64::from(parameter.normalize(parameter.default())))
                    .abs()
                    < 1e-6,
                "{id}"
            );
            assert_eq!(
                info.stepCount.cast_unsigned(),
                parameter.steps().saturating_sub(1),
                "{id}"
            );
            let [automatable, hidden] = [
                ParameterInfo_::ParameterFlags_::kCanAutomate,
                ParameterInfo_::ParameterFlags_::kIsHidden,
            ]
            .map(|flag| info.flags & flag != 0);
            assert_eq!(automatable, parameter.is_host_automatable(), "{id}");
            assert_eq!(hidden, parameter.scope == ParameterScope::Momentary, "{id}");
            if parameter.group == "Macros" {
                continue;
            }
            for position in (0..=20).map(|step| f64::from(step) / 20.0) {
                let mut shown = [0_u16; 128];
                // SAFETY: there is room for a text.
                let told = unsafe {
                    instance
                        .controller
                        .getParamStringByValue(info.id, position, &mut shown)
                };
                assert_eq!(told, kResultOk, "{id} {index}");
                let expected =
                    parameter.format(parameter.denormalize(position as f32)) + parameter.unit;
                assert_eq!(text(&shown), expected, "{id}: {position}");
            }
        }
    }
}

#[test]
fn groups_are_units() {
    for instance in instances() {
        let units: vst3::ComPtr<IUnitInfo> = instance.component.cast().expect("units");
        // SAFETY: the units fill the structure that they get.
        let names: Vec<(UnitID, String)> = (0..unsafe { units.getUnitCount() })
            .map(|index| unsafe {
                let mut info: UnitInfo = std::mem::zeroed();
                assert_eq!(units.getUnitInfo(index, &mut info), kResultOk);
                (info.id, text(&info.name))
            })
            .collect();
        for (parameter, info) in listed(&instance) {
            let unit = names
                .iter()
                .find(|(id, _)| *id == info.unitId)
                .map_or("", |(_, name)| name);
            let expected = if parameter.group.is_empty() {
                "Root"
            } else {
                parameter.group
            };
            assert_eq!(unit, expected, "{}", parameter.id);
        }
    }
}

#[test]
fn macros_are_named_after_the_controls_of_a_loaded_project() {
    let instance = instances().remove(0);
    assert_eq!(
        (
            title(&instance, "Macro 2").as_str(),
            title(&instance, "Macro 8").as_str()
        ),
        ("Room", "Life")
    );
    let bound = serde_json::json!(["attack", null]);
    let saved = with_selection(&Host::new(INSTRUMENT).save(), |saved| {
        saved["macros"] = bound
    });
    // Without a component handler, as some hosts load.
    assert!(instance.load(&saved));
    assert_eq!(
        (
            title(&instance, "Macro 1").as_str(),
            title(&instance, "Macro 2").as_str()
        ),
        ("Attack", "Macro 2")
    );
    assert_eq!(MACRO_COUNT, 8);
}
