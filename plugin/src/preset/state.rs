//! What the plugin saves for a host: made fit to be loaded, and with a preset put into it.

use nice_plug::plugin::{ParamValue, PluginState};
use ondes_processor::parameter::{Kind, Parameter};
use ondes_processor::preset::Preset;
use ondes_processor::preset::values::{Value, parts};
use ondes_processor::state::Saved;

/// Bytes before the state's JSON: its length, little-endian.
const HEAD: usize = 8;

/// The field that a [`Saved`] is in.
const FIELD: &str = "ondes";

/// Brings what a project says of parameters into their ranges: the framework takes any number for a value. What is no parameter,
/// or of another type, it leaves alone, and so does this.
pub fn tidy(state: &mut PluginState) {
    for (id, value) in &mut state.params {
        let Some(parameter) = Parameter::named(id).and_then(Parameter::of) else { continue };
        match value {
            ParamValue::F32(number) => *number = parameter.nearest(*number),
            ParamValue::I32(number) => *number = parameter.nearest(*number as f32) as i32,
            ParamValue::Bool(_) | ParamValue::String(_) => {}
        }
    }
}

/// A state that the plugin has saved, with a preset's sound in it. All that makes no sound stays as it is: bypass, driver, what
/// plays the instrument, what runs its network, controllers, the slots A and B and how the window looks.
///
/// # Errors
/// When that is no state.
pub fn with(state: &[u8], preset: &Preset) -> Result<Vec<u8>, serde_json::Error> {
    let mut state: PluginState = serde_json::from_slice(state.get(HEAD..).unwrap_or_default())?;
    for part in parts() {
        let said = preset.sound.parameters.get(part.id).and_then(|value| value.read(part));
        let value = match Value::of(part, said.unwrap_or(part.default())) {
            Value::Number(number) if matches!(part.kind, Kind::Whole { .. }) => ParamValue::I32(number as i32),
            Value::Number(number) => ParamValue::F32(number),
            Value::On(on) => ParamValue::Bool(on),
            Value::Choice(id) => ParamValue::String(id),
            Value::Later(_) => continue,
        };
        state.params.insert(part.id.into(), value);
    }
    let saved: Saved =
        state.fields.get(FIELD).map_or_else(|| Ok(Saved::default()), |saved| serde_json::from_str(saved))?;
    let selection = (*preset.sound.selection).clone();
    // A project whose models travel with it stays one.
    let embed = saved.embed || selection.embed;
    let Saved { look, compare, controllers, pad, running, .. } = saved;
    let saved = Saved { look, compare, controllers, pad, running, embed, ..selection };
    state.fields.insert(FIELD.into(), serde_json::to_string(&saved)?);
    let json = serde_json::to_vec(&state)?;
    let mut bytes = (json.len() as u64).to_le_bytes().to_vec();
    bytes.extend(json);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use ondes_engine::executor::Backend;
    use ondes_engine::wish::Wish;
    use ondes_processor::preset::factory::Factory;
    use ondes_processor::state::{Look, Theme};

    use super::*;

    #[test]
    fn values_are_brought_into_their_ranges() {
        let params = [
            ("output_gain", ParamValue::F32(1e9)),
            ("mix", ParamValue::F32(f32::NEG_INFINITY)),
            ("tune", ParamValue::F32(12.5)),
            ("transpose", ParamValue::I32(i32::MIN)),
            ("voices", ParamValue::I32(i32::MAX)),
            ("mode", ParamValue::I32(99)),
            ("driver", ParamValue::String("loud".into())),
            ("later", ParamValue::F32(1e9)),
        ];
        let params = params.map(|(id, value)| (id.to_owned(), value)).into();
        let mut state = PluginState { version: "x".into(), params, fields: Default::default() };
        tidy(&mut state);
        let number = |id: &str| match state.params[id] {
            ParamValue::F32(number) => number,
            ParamValue::I32(number) => number as f32,
            _ => f32::NAN,
        };
        let all = ["output_gain", "mix", "tune", "transpose", "voices", "mode", "later"].map(number);
        assert_eq!(all, [24.0, 0.0, 12.5, -24.0, 16.0, 3.0, 1e9]);
        assert!(matches!(&state.params["driver"], ParamValue::String(id) if id == "loud"));
    }

    #[test]
    fn only_what_is_heard_becomes_another() {
        let look = Look { scale: 1.5, theme: Theme::Light };
        let running = Wish { executor: Backend::Torch, ..Wish::default() };
        let field = serde_json::to_string(&Saved { look, running, embed: true, ..Saved::default() }).unwrap();
        let params = [("driver", ParamValue::String("worker".into())), ("mix", ParamValue::F32(0.1))];
        let params = params.map(|(id, value)| (id.to_owned(), value)).into();
        let before = PluginState { version: "x".into(), params, fields: [(FIELD.to_owned(), field)].into() };
        let json = serde_json::to_vec(&before).unwrap();
        let bytes = [&(json.len() as u64).to_le_bytes()[..], &json].concat();

        let preset = Factory::of("harp").unwrap().preset().unwrap();
        let bytes = with(&bytes, &preset).unwrap();
        assert_eq!(bytes[..HEAD], (bytes.len() as u64 - HEAD as u64).to_le_bytes());
        let after: PluginState = serde_json::from_slice(&bytes[HEAD..]).unwrap();
        assert!(matches!(&after.params["driver"], ParamValue::String(id) if id == "worker"));
        assert!(
            matches!(after.params["mix"], ParamValue::F32(1.0)),
            "it is not in the preset, so it is at its default"
        );
        assert!(matches!(after.params["transpose"], ParamValue::I32(_)));
        assert_eq!(after.params.len(), parts().count() + 1);
        let saved: Saved = serde_json::from_str(&after.fields[FIELD]).unwrap();
        assert_eq!((saved.look, saved.running, saved.embed), (look, running, true));
        assert_eq!(saved.model.name, "Plucked");
        assert!(with(b"short", &preset).is_err() && with(&[0; 20], &preset).is_err());
    }
}
