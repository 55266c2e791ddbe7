//! Activations by their names in files of AIDA-X and RTNeural.

use crate::model::import::field::Field;
use crate::model::import::graph_builder::GraphBuilder;
use crate::model::{Activation, ModelError, Op};
use crate::ops::Affine;

/// Adds the activation that a layer names, if any, to `value` of `channels` channels; returns its
/// output and the number of output channels.
pub(super) fn activate(
    builder: &mut GraphBuilder,
    name: &str,
    layer: &Field<'_>,
    value: String,
    channels: usize,
) -> Result<(String, usize), ModelError> {
    let Some(field) = layer.find("activation") else {
        return Ok((value, channels));
    };
    let named = format!("{name}.act");
    let plain = |builder: &mut GraphBuilder, activation| {
        builder.node(&named, &[&value], Op::Activation(activation))
    };
    let output = match field.text()? {
        "" | "linear" => return Ok((value, channels)),
        "tanh" => plain(builder, Activation::Tanh)?,
        "relu" => plain(builder, Activation::Relu)?,
        "sigmoid" => plain(builder, Activation::Sigmoid)?,
        "elu" => elu(builder, &named, &value)?,
        "softmax" => builder.node(&named, &[&value], Op::Softmax)?,
        "gated_activation" => return gate(builder, name, &field, &value, channels),
        other => return Err(field.error(&format!("unknown activation {other:?}"))),
    };
    Ok((output, channels))
}

/// Adds a gate: tanh of the first half of the channels times sigmoid of the second half.
pub(super) fn gate(
    builder: &mut GraphBuilder,
    name: &str,
    field: &Field<'_>,
    value: &str,
    channels: usize,
) -> Result<(String, usize), ModelError> {
    if !channels.is_multiple_of(2) {
        return Err(field.error(&format!(
            "a gate needs an even number of channels, found {channels}"
        )));
    }
    Ok((
        builder.node(&format!("{name}.act"), &[value], Op::Gate)?,
        channels / 2,
    ))
}

/// Adds `x` above zero, `e^x − 1` below, as `max(x, 0) + (e^min(x, 0) − 1)`.
fn elu(builder: &mut GraphBuilder, name: &str, value: &str) -> Result<String, ModelError> {
    let negation = Op::Affine(Affine {
        scale: -1.0,
        offset: 0.0,
    });
    let above = builder.node(
        &format!("{name}.above"),
        &[value],
        Op::Activation(Activation::Relu),
    )?;
    let negative = builder.node(&format!("{name}.negative"), &[value], negation.clone())?;
    let below = builder.node(
        &format!("{name}.below"),
        &[&negative],
        Op::Activation(Activation::Relu),
    )?;
    let power = builder.node(&format!("{name}.power"), &[&below], negation)?;
    let exponential = builder.node(
        &format!("{name}.exponential"),
        &[&power],
        Op::Activation(Activation::Exp),
    )?;
    let bend = Op::Affine(Affine {
        scale: 1.0,
        offset: -1.0,
    });
    let bent = builder.node(&format!("{name}.bent"), &[&exponential], bend)?;
    builder.node(name, &[&above, &bent], Op::Add)
}
