//! The plugin's saved state, in the framework's format, and merging of presets.

use nice_plug::plugin::{ParamValue, PluginState};
use nice_plug::prelude::nice_error;
use ondes_player::instance::InstanceHandle;
use ondes_player::parameter::{self, Parameter, ParameterKind};
use ondes_player::parameter_source::ParameterSource;
use ondes_player::parameter_values::{
    ParameterValue, ParameterValues, complete_values, sound_parameters, value_before,
};
use ondes_player::preset::Preset;
use ondes_player::product::Product;
use ondes_player::state::{InstanceState, SoundState};

use crate::parameters::HostParameters;

/// Key of the field that holds the instance's state, which is everything but the parameters.
const STATE_KEY: &str = "ondes";

/// Length prefix of the state's JSON: 64 bits, little-endian.
const PREFIX_BYTES: usize = 8;

/// Reads a saved state as the framework does; `None` if it is none.
#[must_use]
pub fn parse(bytes: &[u8]) -> Option<PluginState> {
    let (prefix, json) = bytes.split_first_chunk::<PREFIX_BYTES>()?;
    let length = usize::try_from(u64::from_le_bytes(*prefix)).ok()?;
    serde_json::from_slice(json.get(..length).unwrap_or(json)).ok()
}

/// Returns a state in the framework's format.
///
/// # Errors
/// Returns an error if the state has no form in JSON.
pub fn serialize(state: &PluginState) -> Result<Vec<u8>, serde_json::Error> {
    let json = serde_json::to_vec(state)?;
    let mut bytes = (json.len() as u64).to_le_bytes().to_vec();
    bytes.extend(json);
    Ok(bytes)
}

/// Returns the state of a plugin.
#[must_use]
pub fn current(parameters: &HostParameters, instance: &InstanceHandle) -> PluginState {
    let value = |(id, parameter): (_, &Parameter)| {
        let value = param_value(parameter, parameters.value(id)?)?;
        Some((parameter.id.to_owned(), value))
    };
    let field = serde_json::to_string(&instance.state()).ok();
    PluginState {
        version: env!("CARGO_PKG_VERSION").into(),
        params: parameter::all().filter_map(value).collect(),
        fields: { field.into_iter() }
            .map(|state| (STATE_KEY.to_owned(), state))
            .collect(),
    }
}

/// Restores a state: values are clamped to their ranges, and a parameter that the version which
/// saved the state did not have sounds as before. Unknown parameters are ignored.
pub fn restore(state: &PluginState, parameters: &HostParameters, instance: &InstanceHandle) {
    parameters.restore(&values(state));
    let Some(field) = state.fields.get(STATE_KEY) else {
        return;
    };
    match serde_json::from_str(field) {
        Ok(state) => instance.restore_state(state),
        Err(error) => nice_error!("the saved state cannot be read: {error}"),
    }
}

/// Returns the values of a state.
fn values(state: &PluginState) -> ParameterValues {
    let value = |(id, value): (&String, &ParamValue)| {
        let value = match value {
            ParamValue::F32(number) => ParameterValue::Number(*number),
            // A number of steps, or of a choice.
            ParamValue::I32(number) => {
                let parameter = Parameter::find(id).and_then(Parameter::get)?;
                ParameterValue::new(parameter, parameter.clamp(*number as f32))
            }
            ParamValue::Bool(on) => ParameterValue::Switch(*on),
            ParamValue::String(id) => ParameterValue::Choice(id.clone()),
        };
        Some((id.clone(), value))
    };
    state.params.iter().filter_map(value).collect()
}

/// Returns the framework's form of a parameter's value.
fn param_value(parameter: &Parameter, value: f32) -> Option<ParamValue> {
    Some(match ParameterValue::new(parameter, value) {
        ParameterValue::Number(number)
            if matches!(parameter.kind, ParameterKind::Integer { .. }) =>
        {
            ParamValue::I32(number as i32)
        }
        ParameterValue::Number(number) => ParamValue::F32(number),
        ParameterValue::Switch(on) => ParamValue::Bool(on),
        ParameterValue::Choice(id) => ParamValue::String(id),
        ParameterValue::Unknown(_) => return None,
    })
}

/// Returns the sound of a state as a preset, which is named after the product; `None` if `state` is
/// not valid.
#[must_use]
pub fn sound_as_preset(state: &PluginState, product: Product) -> Option<Preset> {
    let mut values = values(state);
    for (id, parameter) in parameter::all() {
        if let Some(before) = value_before(id) {
            { values.entry(parameter.id.to_owned()) }
                .or_insert_with(|| ParameterValue::new(parameter, before));
        }
    }
    let parameters = complete_values(&values).ok()?;
    let selection: InstanceState = serde_json::from_str(state.fields.get(STATE_KEY)?).ok()?;
    let sound = SoundState {
        parameters,
        selection: InstanceState {
            preset: None,
            ..selection.sound_only()
        }
        .into(),
    };
    let (name, author) = (product.name().to_owned(), String::new());
    Some(Preset {
        name,
        product,
        author,
        comment: String::new(),
        tags: Vec::new(),
        sound,
    })
}

/// Puts a preset's sound into a state. Everything that is not part of the sound stays:
/// bypass, driver, control source, executor, MIDI bindings, compare slots and window settings.
///
/// # Errors
/// Returns an error if the state's field of the instance cannot be parsed.
pub fn set_preset(state: &mut PluginState, preset: &Preset) -> Result<(), serde_json::Error> {
    for parameter in sound_parameters() {
        let preset_value = preset
            .sound
            .parameters
            .get(parameter.id)
            .and_then(|value| value.for_parameter(parameter));
        let value = param_value(parameter, preset_value.unwrap_or(parameter.default()));
        state
            .params
            .extend(value.map(|value| (parameter.id.into(), value)));
    }
    let saved: InstanceState = state.fields.get(STATE_KEY).map_or_else(
        || Ok(InstanceState::default()),
        |saved| serde_json::from_str(saved),
    )?;
    let selection = (*preset.sound.selection).clone();
    // A project with embedded models keeps embedding them.
    let embed = saved.embed || selection.embed;
    // A preset without a cabinet leaves the choice of one automatic.
    let automatic_cabinet =
        selection.automatic_cabinet || selection.cabinet.is_none() && saved.automatic_cabinet;
    let InstanceState {
        window,
        compare,
        midi_controllers,
        pad,
        tuning,
        executor,
        resampling,
        ..
    } = saved;
    let saved = InstanceState {
        window,
        compare,
        midi_controllers,
        pad,
        tuning,
        executor,
        resampling,
        embed,
        automatic_cabinet,
        ..selection
    };
    state
        .fields
        .insert(STATE_KEY.into(), serde_json::to_string(&saved)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use ondes_engine::executor::Backend;
    use ondes_engine::executor::ExecutorSelection;
    use ondes_player::preset::factory::FactoryPreset;
    use ondes_player::state::{WindowSettings, WindowTheme};

    use super::*;

    fn state(params: &[(&str, ParamValue)]) -> PluginState {
        let params = params
            .iter()
            .map(|(id, value)| ((*id).to_owned(), value.clone()));
        PluginState {
            version: "x".into(),
            params: params.collect(),
            fields: Default::default(),
        }
    }

    /// Returns the values after a state was restored.
    fn restored(params: &[(&str, ParamValue)]) -> ParameterValues {
        let instance = InstanceHandle::new(Product::Instrument, || ());
        let parameters = HostParameters::new(&instance, Default::default());
        restore(&state(params), &parameters, &instance);
        values(&current(&parameters, &instance))
    }

    #[test]
    fn restored_values_are_clamped_to_their_ranges() {
        let values = restored(&[
            ("output_gain", ParamValue::F32(1e9)),
            ("mix", ParamValue::F32(f32::NEG_INFINITY)),
            ("tune", ParamValue::F32(12.5)),
            ("transpose", ParamValue::I32(i32::MIN)),
            ("voices", ParamValue::I32(i32::MAX)),
            ("driver", ParamValue::String("loud".into())),
            ("later", ParamValue::F32(1e9)),
        ]);
        let numbers = ["output_gain", "mix", "tune", "transpose", "voices"];
        let expected = [24.0, 1.0, 12.5, -24.0, 16.0].map(ParameterValue::Number);
        assert_eq!(numbers.map(|id| values[id].clone()), expected);
        assert_eq!(values["driver"], ParameterValue::Choice("auto".into()));
        assert!(!values.contains_key("later"));
    }

    #[test]
    fn states_from_before_stereo_stay_mono() {
        let channels = |params: &[(&str, ParamValue)]| restored(params)["channels"].clone();
        let choice = |id: &str| ParameterValue::Choice(id.into());
        assert_eq!(channels(&[("mix", ParamValue::F32(0.5))]), choice("mono"));
        let stereo = ParamValue::String("stereo".into());
        assert_eq!(channels(&[("channels", stereo)]), choice("stereo"));
    }

    #[test]
    fn a_preset_changes_the_sound_only() {
        let window = WindowSettings {
            scale: 1.5,
            theme: WindowTheme::Light,
            ..WindowSettings::default()
        };
        let executor = ExecutorSelection {
            backend: Backend::Torch,
            ..ExecutorSelection::default()
        };
        let field = serde_json::to_string(&InstanceState {
            window,
            executor,
            embed: true,
            automatic_cabinet: true,
            ..InstanceState::default()
        })
        .unwrap();
        let params = [
            ("driver", ParamValue::String("worker".into())),
            ("mix", ParamValue::F32(0.1)),
        ];
        let params = params.map(|(id, value)| (id.to_owned(), value)).into();
        let mut after = PluginState {
            version: "x".into(),
            params,
            fields: [(STATE_KEY.to_owned(), field)].into(),
        };
        let preset = FactoryPreset::find("harp").unwrap().preset().unwrap();
        set_preset(&mut after, &preset).unwrap();
        assert!(matches!(&after.params["driver"], ParamValue::String(id) if id == "worker"));
        assert!(
            matches!(after.params["mix"], ParamValue::F32(1.0)),
            "a value that the preset lacks is at its default"
        );
        assert!(matches!(after.params["transpose"], ParamValue::I32(_)));
        assert_eq!(after.params.len(), sound_parameters().count() + 1);
        let saved: InstanceState = serde_json::from_str(&after.fields[STATE_KEY]).unwrap();
        assert_eq!(
            (saved.window, saved.executor, saved.embed),
            (window, executor, true)
        );
        assert!(
            saved.automatic_cabinet,
            "the preset has no cabinet of its own"
        );
        assert_eq!(saved.model.name, "Plucked");
        let bytes = serialize(&after).unwrap();
        assert_eq!(
            bytes[..PREFIX_BYTES],
            (bytes.len() as u64 - PREFIX_BYTES as u64).to_le_bytes()
        );
        let followed = [&bytes[..], b"more"].concat();
        assert_eq!(parse(&followed).unwrap().params.len(), after.params.len());
        assert!(parse(b"short").is_none() && parse(&[0; 20]).is_none());
    }
}
