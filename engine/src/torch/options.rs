//! Choice of a program's method, and of settings that are no numbers.

use std::collections::BTreeMap;
use std::path::Path;

use super::model::unused_name;
use crate::media::{Decoder, display_name};
use crate::model::program::{Call, ChosenSetting, ProgramOptions, Setting, SettingKind};
use crate::model::{Header, Kind, Model, ModelError, Program, limits};

/// Returns the methods of a program that can be chosen; none for other models.
#[must_use]
pub fn method_names(model: &Model) -> Vec<&str> {
    let Some(program) = model.program() else {
        return Vec::new();
    };
    let original = program.original.as_deref().unwrap_or(model);
    let calls = original.program().map(|program| &program.calls);
    // An effect without a method `forward` plays another one by this name.
    let is_own = |name: &str| {
        calls.is_some_and(|calls| calls.get(name).is_some_and(|call| call.method == name))
    };
    original
        .header()
        .methods
        .iter()
        .map(|method| method.name.as_str())
        .filter(|name| is_own(name))
        .collect()
}

/// Returns the model with these options in place of those that it has. A chosen method is played as
/// an effect, whatever its ratios. Reads sound files.
///
/// # Errors
/// Returns [`ModelError`] if the program has no such method or setting, or a sound file cannot be
/// read; for other models if anything was chosen.
pub fn with_options(model: &Model, options: &ProgramOptions) -> Result<Model, ModelError> {
    let Some(program) = model.program() else {
        let reason = "only TorchScript models have methods to choose, and texts and sounds to set";
        return if options.is_default() {
            Ok(model.clone())
        } else {
            Err(ModelError::Header(reason.into()))
        };
    };
    let original = program
        .original
        .clone()
        .unwrap_or_else(|| model.clone().into());
    if options.is_default() {
        return Ok((*original).clone());
    }
    let mut header = original.header().clone();
    let mut calls = original.program().unwrap_or(program).calls.clone();
    if let Some(name) = &options.method {
        if !method_names(&original).contains(&name.as_str()) {
            let known = method_names(&original).join(", ");
            return Err(ModelError::Header(format!(
                "unknown method {name:?}; available: {known}"
            )));
        }
        play_method(&mut header, &mut calls, name)?;
    }
    let chosen = chosen_settings(&program.settings, options)?;
    calls
        .values_mut()
        .for_each(|call| call.settings.clone_from(&chosen));
    let program = Program {
        calls,
        options: options.clone(),
        original: Some(original),
        ..Program::clone(program)
    };
    Model::from_program(header, program)
}

/// Makes a method that which an effect plays, with audio at its input and its output.
fn play_method(
    header: &mut Header,
    calls: &mut BTreeMap<String, Call>,
    name: &str,
) -> Result<(), ModelError> {
    let unknown = || ModelError::Method(name.into());
    let mut method = header.method(name).cloned().ok_or_else(unknown)?;
    let call = calls.get(name).cloned().ok_or_else(unknown)?;
    let (Some(input), Some(output)) =
        (method.inputs.get_mut(call.main), method.outputs.first_mut())
    else {
        return Err(unknown());
    };
    (input.ratio, output.ratio) = (1, 1);
    input.name.clear();
    let inputs = &mut method.inputs;
    header
        .controls
        .retain(|control| inputs.iter().any(|port| port.name == control.name));
    inputs[call.main].name = unused_name("in", &header.controls);
    output.name = unused_name("out", &header.controls);
    "forward".clone_into(&mut method.name);
    header.kind = Kind::Effect;
    header.methods.retain(|method| method.name != "forward");
    header.methods.push(method);
    calls.insert("forward".into(), call);
    Ok(())
}

/// Returns the chosen settings as the program takes them.
fn chosen_settings(
    settings: &[Setting],
    options: &ProgramOptions,
) -> Result<Vec<ChosenSetting>, ModelError> {
    let wrong = |text: String| Err(ModelError::Header(text));
    let find = |name: &str| {
        settings
            .iter()
            .find(|setting| setting.name == name)
            .map(|setting| &setting.kind)
    };
    let mut chosen = Vec::new();
    for (name, text) in &options.texts {
        let Some(SettingKind::Text(count)) = find(name) else {
            return wrong(unknown_setting(name, settings));
        };
        let values: Vec<String> = match count {
            1 => vec![text.clone()],
            _ => text
                .split(',')
                .map(|value| value.trim().to_owned())
                .collect(),
        };
        if values.len() != *count {
            return wrong(format!(
                "setting {name:?} takes {count} values separated by commas; {text:?} has {}",
                values.len()
            ));
        }
        chosen.push(ChosenSetting::Text {
            attribute: name.clone(),
            values,
        });
    }
    for (name, path) in &options.sounds {
        let Some(SettingKind::Sound(buffer)) = find(name) else {
            return wrong(unknown_setting(name, settings));
        };
        let (channels, sample_rate) = read_sound(path)?;
        chosen.push(ChosenSetting::Sound {
            buffer: buffer.clone(),
            sample_rate,
            channels,
        });
    }
    Ok(chosen)
}

fn unknown_setting(name: &str, settings: &[Setting]) -> String {
    let known: Vec<&str> = settings
        .iter()
        .map(|setting| setting.name.as_str())
        .collect();
    match known[..] {
        [] => format!("unknown setting {name:?}; the program has no texts or sounds to set"),
        _ => format!("unknown setting {name:?}; available: {}", known.join(", ")),
    }
}

/// Reads a sound file, `[channel][frame]`, with its sample rate in Hz.
fn read_sound(path: &Path) -> Result<(Vec<Vec<f32>>, u32), ModelError> {
    // Its errors name the file.
    let text = |error: crate::media::MediaError| ModelError::Header(error.to_string());
    let mut decoder = Decoder::open(path).map_err(text)?;
    let mut sound = vec![Vec::new(); decoder.channels()];
    let mut block = Vec::new();
    while decoder.next(&mut block).map_err(text)? {
        sound
            .iter_mut()
            .zip(&block)
            .for_each(|(channel, block)| channel.extend_from_slice(block));
        let values: usize = sound.iter().map(Vec::len).sum();
        ModelError::limit(
            format!("{}: the number of samples", display_name(path)),
            values,
            limits::SOUND_VALUES,
        )?;
    }
    Ok((sound, decoder.sample_rate()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::torch::model::{build, tests::described};

    fn codec() -> Model {
        let methods = [
            ("encode", [1, 1, 8, 512]),
            ("decode", [8, 512, 2, 1]),
            ("forward", [1, 1, 2, 1]),
        ];
        let mut description = described(&methods);
        let setting = |name: &str, kind| Setting {
            name: name.into(),
            kind,
            value: String::new(),
        };
        description.settings = vec![
            setting("name", SettingKind::Text(1)),
            setting("pair", SettingKind::Text(2)),
            setting("source", SettingKind::Sound("source#0".into())),
        ];
        build(&description, b"PK", "x").unwrap()
    }

    fn method(name: &str) -> ProgramOptions {
        ProgramOptions {
            method: Some(name.into()),
            ..ProgramOptions::default()
        }
    }

    fn text(name: &str, text: &str) -> ProgramOptions {
        ProgramOptions {
            texts: BTreeMap::from([(name.into(), text.into())]),
            ..ProgramOptions::default()
        }
    }

    #[test]
    fn a_chosen_method_plays_as_an_effect() {
        let codec = codec();
        assert_eq!(method_names(&codec), ["encode", "decode", "forward"]);
        let decode = with_options(&codec, &method("decode")).unwrap();
        let forward = decode.method("forward").unwrap();
        assert_eq!(
            (
                decode.header().kind,
                forward.inputs[0].channels,
                forward.inputs[0].ratio
            ),
            (Kind::Effect, 8, 1)
        );
        let call = &decode.program().unwrap().calls["forward"];
        assert_eq!(
            (call.method.as_str(), call.ratio_in, call.ratio_out),
            ("decode", 512, 1)
        );
        // Each choice sounds different and is of the same file.
        let whole = with_options(&decode, &method("forward")).unwrap();
        let hashes = [&codec, &decode, &whole].map(Model::content_hash);
        assert!(hashes[0] != hashes[1] && hashes[1] != hashes[2] && hashes[0] != hashes[2]);
        assert!(
            [&codec, &decode, &whole]
                .iter()
                .all(|model| model.base_hash() == codec.content_hash())
        );
        assert_eq!(method_names(&whole), method_names(&codec));
        assert_eq!(
            with_options(&whole, &ProgramOptions::default()).unwrap(),
            codec
        );
        let error = with_options(&codec, &method("prior"))
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "unknown method \"prior\"; available: encode, decode, forward"
        );
    }

    #[test]
    fn settings_are_checked() {
        let codec = codec();
        let chosen = with_options(&codec, &text("pair", "soft, 2")).unwrap();
        let settings = &chosen.program().unwrap().calls["decode"].settings;
        assert_eq!(
            settings[..],
            [ChosenSetting::Text {
                attribute: "pair".into(),
                values: vec!["soft".into(), "2".into()]
            }]
        );
        for (options, words) in [
            (text("pair", "soft"), "takes 2 values"),
            (text("nome", "soft"), "available: name, pair, source"),
            (text("source", "soft"), "unknown setting"),
            (
                ProgramOptions {
                    sounds: BTreeMap::from([("source".into(), "no.wav".into())]),
                    ..method("decode")
                },
                "no.wav",
            ),
        ] {
            let error = with_options(&codec, &options).unwrap_err().to_string();
            assert!(error.contains(words), "{words} in {error}");
        }
    }
}
