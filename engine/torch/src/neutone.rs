//! Convention of Neutone's models: `forward(audio [channels, samples], parameters [4, samples])`, a
//! method that takes the host's sample rate and block size, and a file `metadata.json` with names,
//! authors and up to four parameters. The program takes them from 0 to 1; since version 1.5 of the
//! SDK they state a range of their own or a list of choices.

use ondes_engine::model::program::{Attribute, Convention};
use ondes_engine::torch::description::{
    AttributeDescription, AttributeKind, AttributeValue, MethodDescription, PortDescription,
    ProgramDescription,
};
use serde_json::Value;
use tch::{Device, Kind, Tensor};

use crate::script::{Script, StreamCall};

/// Number of parameters of a model.
const PARAMETERS: usize = 4;
/// Method that identifies such models.
const SET_UP: &str = "set_daw_sample_rate_and_buffer_size";
/// Method of models that need the whole sound at once.
const NOT_IN_REAL_TIME: &str = "forward_non_realtime";
/// Sample rate in Hz of models that state none.
const SAMPLE_RATE: u32 = 48_000;
/// Block in samples of models that state none.
const BLOCK: usize = 512;
/// Plausible blocks, in samples.
const BLOCKS: std::ops::RangeInclusive<u64> = 16..=65_536;
/// Plausible sample rates, in Hz.
const RATES: std::ops::RangeInclusive<u64> = 8_000..=384_000;

/// Returns true if a module is such a model.
///
/// # Errors
/// Returns libtorch's error in one line.
pub fn is_neutone(script: &Script) -> Result<bool, String> {
    Ok(script.methods()?.iter().any(|method| method == SET_UP))
}

/// Sets a model's sample rate and block, and resets it.
///
/// # Errors
/// Returns the reason in one line if the model refuses.
pub fn prepare(script: &mut Script, sample_rate: u32, block: usize) -> Result<(), String> {
    script.call(SET_UP, &[f64::from(sample_rate), block as f64])?;
    if script.methods()?.iter().any(|method| method == "reset") {
        script.call("reset", &[])?;
    }
    Ok(())
}

/// Describes a model.
///
/// # Errors
/// Returns the reason in one line if the metadata are malformed or the model fails.
pub fn describe(script: &mut Script, metadata: &str) -> Result<ProgramDescription, String> {
    let metadata: Value =
        serde_json::from_str(metadata).map_err(|error| format!("metadata.json: {error}"))?;
    let methods = script.methods()?;
    if methods.iter().any(|method| method == NOT_IN_REAL_TIME) {
        return Err(
            "it is a non-realtime Neutone model, which needs the whole sound at once".into(),
        );
    }
    let call = |script: &mut Script, name: &str| -> Option<Value> {
        if methods.iter().any(|method| method == name) {
            script.call(name, &[]).ok()
        } else {
            None
        }
    };
    let first = |script: &mut Script, name: &str, plausible: std::ops::RangeInclusive<u64>| {
        let value = call(script, name)?;
        let value = value
            .as_array()
            .map_or(value.as_u64(), |values| values.first()?.as_u64());
        value.filter(|value| plausible.contains(value))
    };
    let sample_rate = first(script, "get_native_sample_rates", RATES)
        .and_then(|rate| u32::try_from(rate).ok())
        .unwrap_or(SAMPLE_RATE);
    let block = first(script, "get_native_buffer_sizes", BLOCKS)
        .and_then(|block| usize::try_from(block).ok())
        .unwrap_or(BLOCK);
    prepare(script, sample_rate, block)?;
    let mut delay = 0;
    for name in ["calc_buffering_delay_samples", "calc_model_delay_samples"] {
        delay += first(script, name, 0..=u64::from(sample_rate)).unwrap_or(0) as usize;
    }
    let (inputs, outputs) = channels(script, block)?;
    let port = |channels| PortDescription {
        channels,
        ratio: 1,
        labels: Vec::new(),
    };
    let (mut attributes, mut notes, mut row) = (Vec::new(), Vec::new(), 0);
    for (name, parameter) in parameters(&metadata) {
        match parameter {
            Ok(value) => {
                row += 1;
                attributes.extend(value.map(|value| AttributeDescription {
                    name: format!("p{row}"),
                    values: vec![value],
                }));
            }
            Err(kind) => notes.push(format!(
                "parameter {name:?} cannot be set: its type is {kind}"
            )),
        }
    }
    let authors = metadata
        .get("model_authors")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    Ok(ProgramDescription {
        convention: Convention::Neutone,
        name: text(&metadata, "model_name"),
        description: text(&metadata, "model_short_description"),
        author: authors
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(", "),
        sample_rate: Some(sample_rate),
        block,
        delay,
        parameters: script.parameters()?,
        methods: vec![MethodDescription {
            name: "forward".into(),
            input: port(inputs),
            output: port(outputs),
        }],
        attributes,
        settings: Vec::new(),
        notes,
    })
}

/// Returns the numbers of input and output channels; two input channels if the model accepts them,
/// else one.
fn channels(script: &mut Script, block: usize) -> Result<(usize, usize), String> {
    let mut failure = String::new();
    for inputs in [2, 1] {
        let mut trial = script.copy()?;
        let silence = Tensor::zeros([inputs, block as i64], (Kind::Float, Device::Cpu));
        let parameters = Tensor::zeros(
            [PARAMETERS as i64, block as i64],
            (Kind::Float, Device::Cpu),
        );
        match trial
            .run("forward", &[&silence, &parameters], 0)
            .map(|output| output.size())
        {
            Ok(size) if size.len() == 2 && size[0] > 0 && size[1] == block as i64 => {
                return Ok((inputs as usize, size[0] as usize));
            }
            Ok(size) => failure = format!("it makes a tensor {size:?} of {block} samples"),
            Err(error) if failure.is_empty() => failure = error,
            Err(_) => {}
        }
    }
    Err(format!("method \"forward\" fails: {failure}"))
}

/// Returns the names of the parameters with their numbers, in order: `None` for one that is not
/// used; the type of one that is no number.
fn parameters(metadata: &Value) -> Vec<(String, Result<Option<AttributeValue>, String>)> {
    let entries = metadata.get("neutone_parameters");
    let entries = (1..).map_while(|number: usize| entries?.get(format!("p{number}")));
    entries
        .map(|entry| (text(entry, "name"), parameter(entry)))
        .collect()
}

fn text(entry: &Value, name: &str) -> String {
    entry
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Returns a parameter, if it is used; its type if that is no number. Numbers are texts in older
/// files.
fn parameter(entry: &Value) -> Result<Option<AttributeValue>, String> {
    let number = |name: &str| {
        let value = entry.get(name)?;
        Some(
            value
                .as_f64()
                .or_else(|| value.as_str()?.trim().parse().ok())? as f32,
        )
        .filter(|value| value.is_finite())
    };
    let mut description = text(entry, "description");
    let kind = match text(entry, "type").as_str() {
        kind @ ("text" | "tokens") => return Err(kind.to_owned()),
        "categorical" => {
            let count = number("n_values")
                .unwrap_or(2.0)
                .clamp(2.0, f32::from(u16::MAX));
            let labels = entry
                .get("labels")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str);
            let labels: Vec<String> = labels
                .enumerate()
                .map(|(index, label)| format!("{index} {label}"))
                .collect();
            description = [description, labels.join(", ")].join(" ").trim().to_owned();
            AttributeKind::Choice {
                count: count as u16,
            }
        }
        _ => match (number("min_value"), number("max_value")) {
            (Some(min), Some(max)) if min < max => AttributeKind::Continuous { min, max },
            _ => AttributeKind::Continuous { min: 0.0, max: 1.0 },
        },
    };
    let flag = |value: &Value| {
        value
            .as_bool()
            .or_else(|| value.as_str().map(|text| text.eq_ignore_ascii_case("true")))
    };
    let value = number("default_value").unwrap_or(0.0);
    let is_used = entry.get("used").and_then(flag) == Some(true);
    Ok(is_used.then(|| AttributeValue {
        name: text(entry, "name"),
        description,
        kind,
        value,
    }))
}

/// Runs one stream; `input` and the output are `[1, channel, frame]`.
///
/// # Errors
/// Returns the reason in one line if the model fails.
pub fn run(
    script: &mut Script,
    call: &StreamCall,
    attributes: &[Attribute],
    input: &Tensor,
) -> Result<Tensor, String> {
    let samples = input.size()[2];
    let mut rows = [0.0_f32; PARAMETERS];
    for (attribute, values) in attributes.iter().zip(&call.values) {
        let [min, max] = attribute.range.unwrap_or([0.0, 1.0]);
        let number = attribute
            .name
            .strip_prefix('p')
            .and_then(|number| number.parse::<usize>().ok())
            .unwrap_or(0);
        if let (Some(row), Some(value)) = (rows.get_mut(number.wrapping_sub(1)), values.first()) {
            *row = ((value - min) / (max - min)).clamp(0.0, 1.0);
        }
    }
    let parameters = Tensor::from_slice(&rows)
        .to_device(input.device())
        .to_kind(input.kind())
        .view([-1, 1])
        .expand([-1, samples], false);
    Ok(script
        .run(
            "forward",
            &[&input.squeeze_dim(0), &parameters.contiguous()],
            call.seed,
        )?
        .unsqueeze(0))
}
