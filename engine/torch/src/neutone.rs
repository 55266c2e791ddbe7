//! Convention of Neutone's models: `forward(audio [channels, samples], parameters [4, samples])`, a method that takes
//! the host's sample rate and block size, and a file `metadata.json` with names, authors and up to four parameters from
//! 0 to 1.

use ondes_engine::model::program::Convention;
use ondes_engine::torch::description::{
    AttributeDescription, AttributeKind, AttributeValue, MethodDescription, PortDescription, ProgramDescription,
};
use serde_json::Value;
use tch::{Device, Kind, Tensor};

use crate::script::{Script, StreamCall};

/// Number of parameters of a model.
const PARAMETERS: usize = 4;
/// Method that identifies such models.
const SET_UP: &str = "set_daw_sample_rate_and_buffer_size";
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
    let metadata: Value = serde_json::from_str(metadata).map_err(|error| format!("metadata.json: {error}"))?;
    let methods = script.methods()?;
    let call = |script: &mut Script, name: &str| -> Option<Value> {
        if methods.iter().any(|method| method == name) { script.call(name, &[]).ok() } else { None }
    };
    let first = |script: &mut Script, name: &str, plausible: std::ops::RangeInclusive<u64>| {
        let value = call(script, name)?;
        let value = value.as_array().map_or(value.as_u64(), |values| values.first()?.as_u64());
        value.filter(|value| plausible.contains(value))
    };
    let sample_rate = first(script, "get_native_sample_rates", RATES)
        .and_then(|rate| u32::try_from(rate).ok())
        .unwrap_or(SAMPLE_RATE);
    let block =
        first(script, "get_native_buffer_sizes", BLOCKS).and_then(|block| usize::try_from(block).ok()).unwrap_or(BLOCK);
    prepare(script, sample_rate, block)?;
    let mut delay = 0;
    for name in ["calc_buffering_delay_samples", "calc_model_delay_samples"] {
        delay += first(script, name, 0..=u64::from(sample_rate)).unwrap_or(0) as usize;
    }
    let (inputs, outputs) = channels(script, block)?;
    let port = |channels| PortDescription { channels, ratio: 1, labels: Vec::new() };
    let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let authors = metadata.get("model_authors").and_then(Value::as_array).into_iter().flatten();
    Ok(ProgramDescription {
        convention: Convention::Neutone,
        name: text("model_name"),
        description: text("model_short_description"),
        author: authors.filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        sample_rate: Some(sample_rate),
        block,
        delay,
        parameters: script.parameters()?,
        methods: vec![MethodDescription { name: "forward".into(), input: port(inputs), output: port(outputs) }],
        attributes: (1..=PARAMETERS).filter_map(|number| parameter(&metadata, number)).collect(),
        notes: Vec::new(),
    })
}

/// Returns the numbers of input and output channels; two input channels if the model accepts them, else one.
fn channels(script: &mut Script, block: usize) -> Result<(usize, usize), String> {
    let mut failure = String::new();
    for inputs in [2, 1] {
        let mut trial = script.copy()?;
        let silence = Tensor::zeros([inputs, block as i64], (Kind::Float, Device::Cpu));
        let parameters = Tensor::zeros([PARAMETERS as i64, block as i64], (Kind::Float, Device::Cpu));
        match trial.run("forward", &[&silence, &parameters], 0).map(|output| output.size()) {
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

/// Returns a parameter, if it is used. Its default is a number, or a text with a number in older files.
fn parameter(metadata: &Value, number: usize) -> Option<AttributeDescription> {
    let name = format!("p{number}");
    let entry = metadata.get("neutone_parameters")?.get(&name)?;
    let flag = |value: &Value| value.as_bool().or_else(|| value.as_str().map(|text| text.eq_ignore_ascii_case("true")));
    if entry.get("used").and_then(flag) != Some(true) {
        return None;
    }
    let value = entry.get("default_value");
    let value = value.and_then(|value| value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())).unwrap_or(0.0);
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().trim().to_owned();
    let value = AttributeValue {
        name: text("name"),
        description: text("description"),
        kind: AttributeKind::Share,
        value: (value as f32).clamp(0.0, 1.0),
    };
    Some(AttributeDescription { name, values: vec![value] })
}

/// Runs one stream; `input` and the output are `[1, channel, frame]`, and `numbers` are those of the parameters, from
/// 1.
///
/// # Errors
/// Returns the reason in one line if the model fails.
pub fn run(script: &mut Script, call: &StreamCall, numbers: &[usize], input: &Tensor) -> Result<Tensor, String> {
    let samples = input.size()[2];
    let mut rows = [0.0_f32; PARAMETERS];
    for (number, values) in numbers.iter().zip(&call.values) {
        if let (Some(row), Some(value)) = (rows.get_mut(number.wrapping_sub(1)), values.first()) {
            *row = *value;
        }
    }
    let parameters = Tensor::from_slice(&rows)
        .to_device(input.device())
        .to_kind(input.kind())
        .view([-1, 1])
        .expand([-1, samples], false);
    Ok(script.run("forward", &[&input.squeeze_dim(0), &parameters.contiguous()], call.seed)?.unsqueeze(0))
}

/// Returns the number of a parameter from its name: 1 for `p1`; 0 for other names.
#[must_use]
pub fn parameter_number(name: &str) -> usize {
    name.strip_prefix('p').and_then(|number| number.parse().ok()).unwrap_or(0)
}
