//! What Neutone has agreed on with its models: `forward(sound [channels, samples], parameters [4, samples])`, which wants to be
//! told the host's rate and block, and a file `metadata.json` with names, authors and up to four parameters from 0 to 1.

use ondes_engine::model::program::Convention;
use ondes_engine::torch::description::{Described, DescribedAttribute, Description, Flow, Turned, TurnedKind};
use serde_json::Value;
use tch::{Device, Kind, Tensor};

use crate::script::Script;
use crate::script::state::Part;

/// Parameters that a model has room for.
const PARAMETERS: usize = 4;
/// What tells such a model from others.
const SET_UP: &str = "set_daw_sample_rate_and_buffer_size";
/// Rate and block where a model says neither, Hz and samples.
const SAMPLE_RATE: u32 = 48_000;
const BLOCK: usize = 512;
/// Blocks that are believed.
const BLOCKS: std::ops::RangeInclusive<u64> = 16..=65_536;
/// Rates that are believed, Hz.
const RATES: std::ops::RangeInclusive<u64> = 8_000..=384_000;

/// Whether a module is such a model.
///
/// # Errors
/// One line: what libtorch says.
pub fn is_one(script: &Script) -> Result<bool, String> {
    Ok(script.methods()?.iter().any(|method| method == SET_UP))
}

/// Tells a model at which rate and in which blocks it plays, from silence.
///
/// # Errors
/// One line: it does not want to.
pub fn prepare(script: &mut Script, sample_rate: u32, block: usize) -> Result<(), String> {
    script.call(SET_UP, &[f64::from(sample_rate), block as f64])?;
    if script.methods()?.iter().any(|method| method == "reset") {
        script.call("reset", &[])?;
    }
    Ok(())
}

/// What is in a model.
///
/// # Errors
/// One line: its metadata make no sense, or it does not run.
pub fn describe(script: &mut Script, metadata: &str) -> Result<Description, String> {
    let metadata: Value = serde_json::from_str(metadata).map_err(|error| format!("metadata.json: {error}"))?;
    let methods = script.methods()?;
    let ask = |script: &mut Script, name: &str| -> Option<Value> {
        if methods.iter().any(|method| method == name) { script.call(name, &[]).ok() } else { None }
    };
    let first = |script: &mut Script, name: &str, believed: std::ops::RangeInclusive<u64>| {
        let value = ask(script, name)?;
        let value = value.as_array().map_or(value.as_u64(), |values| values.first()?.as_u64());
        value.filter(|value| believed.contains(value))
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
    let flow = |channels| Flow { channels, ratio: 1, labels: Vec::new() };
    let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let authors = metadata.get("model_authors").and_then(Value::as_array).into_iter().flatten();
    Ok(Description {
        convention: Convention::Neutone,
        name: text("model_name"),
        description: text("model_short_description"),
        author: authors.filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        sample_rate: Some(sample_rate),
        block,
        delay,
        parameters: script.parameters()?,
        methods: vec![Described { name: "forward".into(), input: flow(inputs), output: flow(outputs) }],
        attributes: (1..=PARAMETERS).filter_map(|number| parameter(&metadata, number)).collect(),
        notes: Vec::new(),
    })
}

/// Channels that go in and come out: two go in, or one where it does not take two.
fn channels(script: &mut Script, block: usize) -> Result<(usize, usize), String> {
    let mut failure = String::new();
    for inputs in [2, 1] {
        let mut trial = script.copy()?;
        let silence = Tensor::zeros([inputs, block as i64], (Kind::Float, Device::Cpu));
        let rest = Tensor::zeros([PARAMETERS as i64, block as i64], (Kind::Float, Device::Cpu));
        match trial.run("forward", &[&silence, &rest]).map(|given| given.size()) {
            Ok(size) if size.len() == 2 && size[0] > 0 && size[1] == block as i64 => {
                return Ok((inputs as usize, size[0] as usize));
            }
            Ok(size) => failure = format!("it makes a tensor {size:?} of {block} samples"),
            Err(why) if failure.is_empty() => failure = why,
            Err(_) => {}
        }
    }
    Err(format!("method \"forward\" does not run: {failure}"))
}

/// A parameter that is used. Its default is a number, or, in older files, a text with one.
fn parameter(metadata: &Value, number: usize) -> Option<DescribedAttribute> {
    let name = format!("p{number}");
    let facts = metadata.get("neutone_parameters")?.get(&name)?;
    let flag = |value: &Value| value.as_bool().or_else(|| value.as_str().map(|text| text.eq_ignore_ascii_case("true")));
    if facts.get("used").and_then(flag) != Some(true) {
        return None;
    }
    let value = facts.get("default_value");
    let value = value.and_then(|value| value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())).unwrap_or(0.0);
    let text = |name: &str| facts.get(name).and_then(Value::as_str).unwrap_or_default().trim().to_owned();
    let turned = Turned {
        name: text("name"),
        description: text("description"),
        kind: TurnedKind::Share,
        value: (value as f32).clamp(0.0, 1.0),
    };
    Some(DescribedAttribute { name, values: vec![turned] })
}

/// Plays one stream: `input` and what comes out are `[1, channel, frame]`; `numbers` are those of the parameters, from 1.
///
/// # Errors
/// One line: it breaks down.
pub fn run(script: &mut Script, part: &Part, numbers: &[usize], input: &Tensor) -> Result<Tensor, String> {
    let samples = input.size()[2];
    let mut rows = [0.0_f32; PARAMETERS];
    for (number, values) in numbers.iter().zip(&part.values) {
        if let (Some(row), Some(value)) = (rows.get_mut(number.wrapping_sub(1)), values.first()) {
            *row = *value;
        }
    }
    let parameters = Tensor::from_slice(&rows)
        .to_device(input.device())
        .to_kind(input.kind())
        .view([-1, 1])
        .expand([-1, samples], false);
    Ok(script.run("forward", &[&input.squeeze_dim(0), &parameters.contiguous()])?.unsqueeze(0))
}

/// The number of a parameter, by its name: `p1` is 1.
#[must_use]
pub fn number(name: &str) -> usize {
    name.strip_prefix('p').and_then(|number| number.parse().ok()).unwrap_or(0)
}
