//! Silence at rest: a device whose output is coupled by a capacitor puts out no constant, so its
//! capture should not.

use ondes_engine::model::{Kind, Model, ModelError, Tensor};

use super::measure::play_method;

/// Slope of the output over the bias below which the bias is considered without effect.
const LEAST_SLOPE: f32 = 1e-6;

/// Returns a capture with a bias in each of its sizes that makes the output 0 at rest, with its
/// knobs at their defaults. Sizes whose last layer has no bias of one value stay as they are, and
/// so do models of other kinds.
///
/// # Errors
/// As [`play_method`].
pub fn silent_at_rest(model: &Model) -> Result<Model, ModelError> {
    let mut silent = model.clone();
    if model.header().kind != Kind::Effect {
        return Ok(silent);
    }
    for method in model
        .header()
        .methods
        .iter()
        .map(|method| method.name.as_str())
    {
        let Some((name, before)) = last_bias(&silent, method) else {
            continue;
        };
        let with_bias = |bias: f32| {
            let mut weights = silent.weights().clone();
            weights.insert(name.clone(), Tensor::new(&[1], vec![bias]));
            Model::new(silent.header().clone(), weights)
        };
        let offset = resting_output(&silent, method)?;
        let slope = resting_output(&with_bias(before + 1.0)?, method)? - offset;
        if slope.abs() > LEAST_SLOPE {
            silent = with_bias(before - offset / slope)?;
        }
    }
    Ok(silent)
}

/// Returns name and value of the bias of a method's last layer that has one; `None` if it has
/// several values.
fn last_bias(model: &Model, method: &str) -> Option<(String, f32)> {
    let biases = model
        .header()
        .method(method)?
        .nodes
        .iter()
        .rev()
        .map(|node| format!("{}.bias", node.name));
    let find = |name: String| {
        model
            .weights()
            .iter()
            .find(|(known, _)| **known == name)
            .map(|(_, bias)| (name, bias))
    };
    let (name, bias) = { biases }.find_map(find)?;
    match bias.floats()[..] {
        [value] => Some((name, value)),
        _ => None,
    }
}

/// Returns the output of a method after a second of silence.
fn resting_output(model: &Model, method: &str) -> Result<f32, ModelError> {
    let silence = vec![0.0; model.header().sample_rate as usize];
    Ok(play_method(model, method, &[], &silence)?
        .last()
        .copied()
        .unwrap_or_default())
}
