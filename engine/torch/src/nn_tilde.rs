//! Convention of nn~'s models: their methods with channels and ratios, and their attributes.
//!
//! A method `m` has a buffer `m_params` with its channels and ratios; `get_methods` and
//! `get_attributes` list names, `a_params` holds the types of an attribute's values, `get_a`
//! returns them and `set_a` sets them; the sounds of buffers are set by `set_buffer_attribute`, as
//! `a#0`.

use ondes_engine::model::program::{ChosenSetting, Convention, Setting, SettingKind};
use ondes_engine::torch::description::{
    AttributeDescription, AttributeKind, AttributeValue, MethodDescription, PortDescription,
    ProgramDescription,
};
use serde_json::Value;
use tch::{Device, Tensor};

use crate::script::Script;

/// Attributes for the sample rate, as trainers name them.
const RATES: [&str; 3] = ["sampling_rate", "sample_rate", "sr"];
/// Plausible sample rates, in Hz.
const PLAUSIBLE_RATES: std::ops::RangeInclusive<u64> = 8_000..=384_000;
/// Types of texts and of buffers.
const STRING: usize = 3;
const BUFFER: usize = 5;
/// Names of the types of values, by number.
const TYPES: [&str; 6] = ["bool", "int", "float", "string", "tensor", "buffer"];

/// Describes a module.
///
/// # Errors
/// Returns the reason in one line if the module does not follow the convention.
pub fn describe(script: &mut Script) -> Result<ProgramDescription, String> {
    let known = script.methods()?;
    let has = |name: &str| known.iter().any(|method| method == name);
    let mut notes = Vec::new();
    let names = if has("get_methods") {
        texts(&script.call("get_methods", &[])?)
    } else {
        let mut with_buffer = Vec::new();
        for name in &known {
            if script.attribute(&format!("{name}_params"))?.is_array() && !name.starts_with("get_")
            {
                with_buffer.push(name.clone());
            }
        }
        with_buffer
    };
    let mut methods: Vec<MethodDescription> = Vec::new();
    for name in names {
        if !has(&name) {
            return Err(format!("lists a method {name:?} that it does not have"));
        }
        let buffer = format!("{name}_params");
        let [inputs, ratio_in, outputs, ratio_out] = integers(&script.attribute(&buffer)?)
            .and_then(|numbers| <[usize; 4]>::try_from(numbers).ok())
            .filter(|numbers| !numbers.contains(&0))
            .ok_or_else(|| {
                format!("buffer {buffer:?} does not hold the channels and ratios of a method")
            })?;
        let mut labels = |side: &str, channels: usize| -> Result<Vec<String>, String> {
            let labels = texts(&script.attribute(&format!("{name}_{side}_labels"))?);
            if !labels.is_empty() && labels.len() != channels {
                notes.push(format!(
                    "method {name:?} has {} {side} labels for {channels} channels",
                    labels.len()
                ));
                return Ok(Vec::new());
            }
            Ok(labels)
        };
        let input = PortDescription {
            channels: inputs,
            ratio: ratio_in,
            labels: labels("input", inputs)?,
        };
        let output = PortDescription {
            channels: outputs,
            ratio: ratio_out,
            labels: labels("output", outputs)?,
        };
        methods.push(MethodDescription {
            name,
            input,
            output,
        });
    }
    if methods.is_empty() {
        return Err(
            "not a model for nn~: no method has a buffer of channels and ratios (NAME_params)"
                .into(),
        );
    }
    let listed = if has("get_attributes") {
        texts(&script.call("get_attributes", &[])?)
    } else {
        Vec::new()
    };
    let (mut attributes, mut settings) = (Vec::new(), Vec::new());
    for name in listed.into_iter().filter(|name| name != "none") {
        let setters = Setters {
            own: has(&format!("set_{name}")),
            buffers: has("set_buffer_attribute"),
        };
        match attribute(script, &name, setters)? {
            Ok(Described::Numbers(attribute)) => attributes.push(attribute),
            Ok(Described::Settings(described)) => settings.extend(described),
            Err(reason) => notes.push(format!("attribute {name:?} cannot be set: {reason}")),
        }
    }
    let mut sample_rate = None;
    for name in RATES {
        let rate = script.attribute(name)?;
        let rate = rate
            .as_array()
            .and_then(|values| values.first())
            .unwrap_or(&rate)
            .as_f64();
        sample_rate = sample_rate.or(rate
            .map(|rate| rate as u64)
            .filter(|rate| PLAUSIBLE_RATES.contains(rate)));
    }
    if sample_rate.is_none() {
        notes.push("no sample rate is stated; 44100 Hz is assumed".into());
    }
    Ok(ProgramDescription {
        convention: Convention::NnTilde,
        name: String::new(),
        description: String::new(),
        author: String::new(),
        sample_rate: sample_rate.map(|rate| rate as u32),
        block: 0,
        delay: 0,
        parameters: script.parameters()?,
        methods,
        attributes,
        settings,
        notes,
    })
}

/// Setters that a module has for an attribute.
struct Setters {
    /// That of the attribute itself.
    own: bool,
    /// That of all buffers.
    buffers: bool,
}

/// An attribute that can be set.
enum Described {
    Numbers(AttributeDescription),
    Settings(Vec<Setting>),
}

/// Describes an attribute. The inner error is the reason why it cannot be set; the outer one is
/// libtorch's.
fn attribute(
    script: &mut Script,
    name: &str,
    setters: Setters,
) -> Result<Result<Described, String>, String> {
    let Some(codes) = integers(&script.attribute(&format!("{name}_params"))?) else {
        return Ok(Err("its type is not stated".into()));
    };
    if setters.buffers && !codes.is_empty() && codes.iter().all(|&code| code == BUFFER) {
        return Ok(Ok(Described::Settings(sounds(name, codes.len()))));
    }
    let is_text = codes.contains(&STRING) && codes.iter().all(|&code| code <= STRING);
    if is_text && setters.own {
        return Ok(text(script, name, codes.len()));
    }
    let mut kinds = Vec::new();
    for code in codes {
        kinds.push(match code {
            0 => AttributeKind::Bool,
            1 => AttributeKind::Int,
            2 => AttributeKind::Float,
            _ => {
                return Ok(Err(format!(
                    "its type is {}",
                    TYPES.get(code).unwrap_or(&"unknown")
                )));
            }
        });
    }
    if !setters.own {
        return Ok(Err("it has no setter".into()));
    }
    let current = match script.call(&format!("get_{name}"), &[]) {
        Ok(values) => numbers(&values).unwrap_or_default(),
        Err(error) => return Ok(Err(error)),
    };
    if current.len() != kinds.len() || kinds.is_empty() {
        return Ok(Err(format!(
            "it declares {} values and returns {} numbers",
            kinds.len(),
            current.len()
        )));
    }
    let described = |(kind, value): (AttributeKind, f64)| AttributeValue {
        name: String::new(),
        description: String::new(),
        kind,
        value: value as f32,
    };
    let values = kinds.into_iter().zip(current).map(described).collect();
    Ok(Ok(Described::Numbers(AttributeDescription {
        name: name.into(),
        values,
    })))
}

/// Describes an attribute of `count` values with a text among them.
fn text(script: &mut Script, name: &str, count: usize) -> Result<Described, String> {
    let current = script.call(&format!("get_{name}"), &[])?;
    let written = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let values: Vec<String> = match &current {
        Value::Array(values) => values.iter().map(written).collect(),
        value => vec![written(value)],
    };
    if values.len() != count {
        return Err(format!(
            "it declares {count} values and returns {}",
            values.len()
        ));
    }
    Ok(Described::Settings(vec![Setting {
        name: name.into(),
        kind: SettingKind::Text(count),
        value: values.join(", "),
    }]))
}

/// Describes an attribute of `count` buffers.
fn sounds(name: &str, count: usize) -> Vec<Setting> {
    let sound = |index| Setting {
        name: if count == 1 {
            name.into()
        } else {
            format!("{name}.{}", index + 1)
        },
        kind: SettingKind::Sound(format!("{name}#{index}")),
        value: String::new(),
    };
    (0..count).map(sound).collect()
}

/// Sets what was chosen of a module on a device.
///
/// # Errors
/// Returns the reason in one line if the module refuses a value or fails.
pub fn choose(script: &mut Script, chosen: &[ChosenSetting], device: Device) -> Result<(), String> {
    for setting in chosen {
        let (name, result) = match setting {
            ChosenSetting::Text { attribute, values } => (
                attribute,
                script.call_with_texts(&format!("set_{attribute}"), values),
            ),
            ChosenSetting::Sound {
                buffer,
                sample_rate,
                channels,
            } => {
                let sound = Tensor::from_slice2(channels).to_device(device);
                (buffer, script.set_sound(buffer, &sound, *sample_rate))
            }
        };
        match result {
            // 0 is success.
            Ok(code) if code.as_i64().unwrap_or(0) == 0 => {}
            Ok(_) => return Err(format!("setting {name:?}: the program refuses this value")),
            Err(reason) => return Err(format!("setting {name:?}: {reason}")),
        }
    }
    Ok(())
}

/// Returns the texts in a list.
fn texts(value: &Value) -> Vec<String> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|text| Some(text.as_str()?.to_owned()))
        .collect()
}

/// Returns one number, or those in a list; true is 1.
fn numbers(value: &Value) -> Option<Vec<f64>> {
    let number = |value: &Value| {
        value
            .as_f64()
            .or_else(|| value.as_bool().map(|is| f64::from(u8::from(is))))
    };
    match value {
        Value::Array(values) => values.iter().map(number).collect(),
        value => Some(vec![number(value)?]),
    }
}

/// Returns the non-negative integers in a list.
fn integers(value: &Value) -> Option<Vec<usize>> {
    let numbers = value.as_array().and_then(|_| numbers(value))?;
    let integer = |number: f64| {
        (number >= 0.0 && number.fract() == 0.0 && number < 1e9).then_some(number as usize)
    };
    numbers.into_iter().map(integer).collect()
}
