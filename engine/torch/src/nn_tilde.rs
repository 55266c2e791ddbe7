//! What nn~ has agreed on with its models: which methods there are, their channels and ratios, their attributes.
//!
//! A method `m` has a buffer `m_params` with its channels and ratios; `get_methods` and `get_attributes` list names, `a_params`
//! holds the types of an attribute's values, `get_a` gives them and `set_a` takes them.

use ondes_engine::model::program::Convention;
use ondes_engine::torch::description::{Described, DescribedAttribute, Description, Flow, Turned, TurnedKind};
use serde_json::Value;

use crate::script::Script;

/// Attributes that hold a model's sample rate, as its trainers name it.
const RATES: [&str; 3] = ["sampling_rate", "sample_rate", "sr"];
/// Rates that are believed, Hz.
const BELIEVED: std::ops::RangeInclusive<u64> = 8_000..=384_000;
/// The words for the types of values, by their numbers.
const TYPES: [&str; 6] = ["bool", "int", "float", "string", "tensor", "buffer"];

/// What is in a module.
///
/// # Errors
/// One line: it keeps to no such convention.
pub fn describe(script: &mut Script) -> Result<Description, String> {
    let known = script.methods()?;
    let has = |name: &str| known.iter().any(|method| method == name);
    let mut notes = Vec::new();
    let names = if has("get_methods") {
        texts(&script.call("get_methods", &[])?)
    } else {
        let mut with_buffer = Vec::new();
        for name in &known {
            if script.attribute(&format!("{name}_params"))?.is_array() && !name.starts_with("get_") {
                with_buffer.push(name.clone());
            }
        }
        with_buffer
    };
    let mut methods: Vec<Described> = Vec::new();
    for name in names {
        if !has(&name) {
            return Err(format!("says that it has a method {name:?}, and has none"));
        }
        let buffer = format!("{name}_params");
        let [inputs, ratio_in, outputs, ratio_out] = whole_numbers(&script.attribute(&buffer)?)
            .and_then(|numbers| <[usize; 4]>::try_from(numbers).ok())
            .filter(|numbers| !numbers.contains(&0))
            .ok_or_else(|| format!("the buffer {buffer:?} does not hold channels and ratios of a method"))?;
        let mut labels = |which: &str, channels: usize| -> Result<Vec<String>, String> {
            let labels = texts(&script.attribute(&format!("{name}_{which}_labels"))?);
            if !labels.is_empty() && labels.len() != channels {
                notes.push(format!("method {name:?} has {} {which} labels for {channels} channels", labels.len()));
                return Ok(Vec::new());
            }
            Ok(labels)
        };
        let input = Flow { channels: inputs, ratio: ratio_in, labels: labels("input", inputs)? };
        let output = Flow { channels: outputs, ratio: ratio_out, labels: labels("output", outputs)? };
        methods.push(Described { name, input, output });
    }
    if methods.is_empty() {
        return Err("is no model for nn~: it has no method with a buffer of channels and ratios (NAME_params)".into());
    }
    let listed = if has("get_attributes") { texts(&script.call("get_attributes", &[])?) } else { Vec::new() };
    let mut attributes = Vec::new();
    for name in listed.into_iter().filter(|name| name != "none") {
        match attribute(script, &name, has(&format!("set_{name}")))? {
            Ok(attribute) => attributes.push(attribute),
            Err(why) => notes.push(format!("attribute {name:?} stays as it is: {why}")),
        }
    }
    let mut sample_rate = None;
    for name in RATES {
        let rate = script.attribute(name)?;
        let rate = rate.as_array().and_then(|values| values.first()).unwrap_or(&rate).as_f64();
        sample_rate = sample_rate.or(rate.map(|rate| rate as u64).filter(|rate| BELIEVED.contains(rate)));
    }
    if sample_rate.is_none() {
        notes.push("it names no sample rate: 44100 Hz is assumed".into());
    }
    Ok(Description {
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
        notes,
    })
}

/// An attribute; within, why it is none that can be turned.
fn attribute(script: &mut Script, name: &str, is_settable: bool) -> Result<Result<DescribedAttribute, String>, String> {
    let Some(codes) = whole_numbers(&script.attribute(&format!("{name}_params"))?) else {
        return Ok(Err("it does not say of what type it is".into()));
    };
    let mut kinds = Vec::new();
    for code in codes {
        kinds.push(match code {
            0 => TurnedKind::Bool,
            1 => TurnedKind::Int,
            2 => TurnedKind::Float,
            _ => return Ok(Err(format!("it is a {}", TYPES.get(code).unwrap_or(&"thing of no known type")))),
        });
    }
    if !is_settable {
        return Ok(Err("it cannot be set".into()));
    }
    let given = match script.call(&format!("get_{name}"), &[]) {
        Ok(given) => numbers(&given).unwrap_or_default(),
        Err(why) => return Ok(Err(why)),
    };
    if given.len() != kinds.len() || kinds.is_empty() {
        return Ok(Err(format!("it is said to have {} values and gives {} numbers", kinds.len(), given.len())));
    }
    let turned = |(kind, value): (TurnedKind, f64)| Turned {
        name: String::new(),
        description: String::new(),
        kind,
        value: value as f32,
    };
    let values = kinds.into_iter().zip(given).map(turned).collect();
    Ok(Ok(DescribedAttribute { name: name.into(), values }))
}

/// The texts in a list.
fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|text| Some(text.as_str()?.to_owned())).collect()
}

/// One number, or those in a list; truth is 1.
fn numbers(value: &Value) -> Option<Vec<f64>> {
    let number = |value: &Value| value.as_f64().or_else(|| value.as_bool().map(|is| f64::from(u8::from(is))));
    match value {
        Value::Array(values) => values.iter().map(number).collect(),
        value => Some(vec![number(value)?]),
    }
}

/// Numbers that count something.
fn whole_numbers(value: &Value) -> Option<Vec<usize>> {
    let numbers = value.as_array().and_then(|_| numbers(value))?;
    let whole = |number: f64| (number >= 0.0 && number.fract() == 0.0 && number < 1e9).then_some(number as usize);
    numbers.into_iter().map(whole).collect()
}
