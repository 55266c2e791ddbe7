//! JSON of AIDA-X and RTNeural: a list of layers with weights in the layout of Keras.

mod activation;

use self::activation::{activate, gate};
use super::card_text;
use super::control_inputs;
use super::field::{Field, JsonMatrix};
use super::graph_builder::{Conv, ConvWeights, GraphBuilder, INPUT, ModelInfo, model};
use crate::dsp::level::db_to_amplitude_f64;
use crate::files::shortened;
use crate::model::{Card, Gear, Model, ModelError, Op};
use crate::ops::{Affine, Gru, Lstm, Prelu};

/// Sample rate of a file that states none, Hz.
const RATE: u32 = 48_000;

pub(super) fn import(root: &Field<'_>) -> Result<Model, ModelError> {
    let shape = root.need("in_shape")?;
    let inputs = shape
        .items()?
        .pop()
        .ok_or_else(|| shape.error("is empty"))?
        .count()?;
    let mut builder = GraphBuilder::default();
    let gain = |name: &str| {
        root.find(name)
            .map_or(Ok(0.0), |field| field.number_or_text())
    };
    let (in_gain, out_gain) = (gain("in_gain")?, gain("out_gain")?);
    let mut dry = INPUT.to_owned();
    if in_gain != 0.0 {
        dry = builder.node("in_gain", &[INPUT], decibels(in_gain))?;
    }
    let (ports, controls, mut value) = control_inputs::add_inputs(&mut builder, &dry, inputs)?;
    let mut channels = inputs;
    let layers = root.need("layers")?;
    if layers.items()?.is_empty() {
        return Err(layers.error("is empty"));
    }
    for (index, layer) in layers.items()?.iter().enumerate() {
        (value, channels) = add_layer(
            &mut builder,
            &format!("layer{index}"),
            layer,
            value,
            channels,
        )?;
        check_shape(layer, channels)?;
    }
    if root.find("in_skip").map_or(Ok(false), |skip| skip.flag())? {
        value = builder.node("skip", &[&value, &dry], Op::Add)?;
    }
    if out_gain != 0.0 {
        value = builder.node("out_gain", &[&value], decibels(out_gain))?;
    }
    let metadata = root.find("metadata");
    let rate =
        stated_rate(&[metadata.as_ref(), Some(root)]).map_or(Ok(RATE), |field| field.rate())?;
    let method = builder.method("forward", &value, ports, rate)?;
    let info = ModelInfo {
        rate,
        card: card(metadata.as_ref()),
        controls,
        variants: Vec::new(),
    };
    model(vec![method], info)
}

fn decibels(gain_db: f64) -> Op {
    Op::Affine(Affine {
        scale: db_to_amplitude_f64(gain_db) as f32,
        offset: 0.0,
    })
}

/// Returns the sample rate that one of these objects states, in the order of preference.
pub(super) fn stated_rate<'a>(objects: &[Option<&Field<'a>>]) -> Option<Field<'a>> {
    let names = ["samplerate", "sample_rate"];
    objects
        .iter()
        .flatten()
        .find_map(|object| names.iter().find_map(|name| object.find(name)))
}

/// Returns the card of metadata in the manner of AIDA-X.
pub(super) fn card(metadata: Option<&Field<'_>>) -> Card {
    let text = |name: &str| {
        metadata
            .and_then(|metadata| metadata.find(name)?.readable())
            .unwrap_or_default()
    };
    let line = |name: &str| card_text(&text(name));
    let gear = Gear {
        model: line("based"),
        tone: line("style"),
        ..Gear::default()
    };
    Card {
        name: line("name"),
        description: shortened(&text("description")),
        author: line("author"),
        licence: line("license"),
        gear: (gear != Gear::default()).then_some(gear),
        ..Card::default()
    }
}

/// Adds a layer that reads `value` of `channels` channels; returns its output and the number of
/// output channels.
fn add_layer(
    builder: &mut GraphBuilder,
    name: &str,
    layer: &Field<'_>,
    value: String,
    channels: usize,
) -> Result<(String, usize), ModelError> {
    let kind = layer.need("type")?;
    let weights = || layer.need("weights")?.items();
    match kind.text()? {
        "dense" | "time-distributed-dense" => {
            let (weights, named) = (weights()?, format!("{name}.linear"));
            let matrix = weight(layer, &weights, 0)?.matrix()?;
            let bias = weight(layer, &weights, 1)?.numbers()?;
            fits(&weights[0], &matrix, channels, bias.len())?;
            let outputs = bias.len();
            let value = builder.linear(&named, &value, matrix.transposed(), bias)?;
            activate(builder, name, layer, value, outputs)
        }
        "conv1d" => {
            let (value, outputs) = add_conv(builder, name, layer, &weights()?, &value, channels)?;
            activate(builder, name, layer, value, outputs)
        }
        "lstm" => {
            let weights = weights()?;
            let bias = weight(layer, &weights, 2)?.numbers()?;
            let hidden = weight(layer, &weights, 1)?.matrix()?.rows;
            let op = Op::Lstm(Lstm {
                hidden,
                initial_state: false,
            });
            let zeros = vec![0.0; bias.len()];
            check_recurrent_activations(layer)?;
            let recurrent = RecurrentLayer {
                builder,
                name: &format!("{name}.lstm"),
                value: &value,
                channels,
                gates: [0, 1, 2, 3],
            };
            Ok((recurrent.add(layer, &weights, op, [bias, zeros])?, hidden))
        }
        "gru" => {
            let weights = weights()?;
            let biases = weight(layer, &weights, 2)?.matrix()?;
            if biases.rows != 2 {
                return Err(weights[2].error(
                    "expected two rows of biases, one for the input and one for the state",
                ));
            }
            let (input, state) = biases.values.split_at(biases.columns);
            let hidden = weight(layer, &weights, 1)?.matrix()?.rows;
            let op = Op::Gru(Gru {
                hidden,
                initial_state: false,
            });
            check_recurrent_activations(layer)?;
            // Keras orders the gates z, r, n.
            let recurrent = RecurrentLayer {
                builder,
                name: &format!("{name}.gru"),
                value: &value,
                channels,
                gates: [1, 0, 2],
            };
            Ok((
                recurrent.add(layer, &weights, op, [input.to_vec(), state.to_vec()])?,
                hidden,
            ))
        }
        "batchnorm" | "batch_norm" => Ok((
            add_norm(builder, name, layer, &weights()?, &value, channels)?,
            channels,
        )),
        "prelu" => {
            let slopes = slopes(&layer.need("weights")?)?;
            let node = builder.node(
                &format!("{name}.act"),
                &[&value],
                Op::Prelu(Prelu {
                    slopes: slopes.len(),
                }),
            )?;
            builder.weight(&node, "weight", &[slopes.len()], slopes);
            Ok((node, channels))
        }
        "activation" => activate(builder, name, layer, value, channels),
        "gated_activation" => gate(builder, name, layer, &value, channels),
        other => Err(kind.error(&format!("unknown layer type {other:?}"))),
    }
}

/// Checks the shape of the output that a layer states, `[batch, time, channels]` with null for any.
fn check_shape(layer: &Field<'_>, channels: usize) -> Result<(), ModelError> {
    let Some(shape) = layer.find("shape") else {
        return Ok(());
    };
    match shape.items()?.pop().and_then(Field::present) {
        Some(last) if last.count()? != channels => Err(last.error(&format!(
            "is {}, but the weights have {channels} outputs",
            last.count()?
        ))),
        _ => Ok(()),
    }
}

/// Returns one of a layer's weights.
fn weight<'a>(
    layer: &Field<'_>,
    weights: &[Field<'a>],
    index: usize,
) -> Result<Field<'a>, ModelError> {
    weights.get(index).cloned().ok_or_else(|| {
        layer.error(&format!(
            "has {} weights, expected at least {}",
            weights.len(),
            index + 1
        ))
    })
}

fn fits(
    field: &Field<'_>,
    matrix: &JsonMatrix,
    rows: usize,
    columns: usize,
) -> Result<(), ModelError> {
    if (matrix.rows, matrix.columns) == (rows, columns) {
        return Ok(());
    }
    Err(field.error(&format!(
        "expected a matrix of {rows} × {columns}, found {} × {}",
        matrix.rows, matrix.columns
    )))
}

/// Returns the slopes of a PReLU, however deeply they are nested.
fn slopes(field: &Field<'_>) -> Result<Vec<f32>, ModelError> {
    let mut field = field.clone();
    while let Some(first) = field.items()?.into_iter().next().filter(Field::is_list) {
        field = first;
    }
    let slopes = field.numbers()?;
    if slopes.is_empty() {
        Err(field.error("is empty"))
    } else {
        Ok(slopes)
    }
}

/// Returns an error if a recurrent layer has unusual activations.
fn check_recurrent_activations(layer: &Field<'_>) -> Result<(), ModelError> {
    for (name, usual) in [("activation", "tanh"), ("recurrent_activation", "sigmoid")] {
        if let Some(field) = layer.find(name)
            && !["", usual].contains(&field.text()?)
        {
            return Err(field.error(&format!("expected {usual:?} in a recurrent layer")));
        }
    }
    Ok(())
}

/// Recurrent layer to add.
struct RecurrentLayer<'a, const GATES: usize> {
    builder: &'a mut GraphBuilder,
    name: &'a str,
    value: &'a str,
    channels: usize,
    /// Index in the file of each gate.
    gates: [usize; GATES],
}

impl<const GATES: usize> RecurrentLayer<'_, GATES> {
    /// Adds the layer; `biases` are `[gate][unit]` of the input and of the state.
    fn add(
        self,
        layer: &Field<'_>,
        weights: &[Field<'_>],
        op: Op,
        biases: [Vec<f32>; 2],
    ) -> Result<String, ModelError> {
        let [from_input, from_state] = [
            weight(layer, weights, 0)?.matrix()?,
            weight(layer, weights, 1)?.matrix()?,
        ];
        let hidden = from_state.rows;
        let width = GATES * hidden;
        fits(&weights[0], &from_input, self.channels, width)?;
        fits(&weights[1], &from_state, hidden, width)?;
        if biases.iter().any(|bias| bias.len() != width) {
            return Err(weights[2].error(&format!("expected {width} biases")));
        }
        let node = self.builder.node(self.name, &[self.value], op)?;
        let ordered = |rows: &[f32]| -> Vec<f32> {
            let length = rows.len() / GATES;
            self.gates
                .iter()
                .flat_map(|gate| &rows[gate * length..][..length])
                .copied()
                .collect()
        };
        let [input_bias, state_bias] = biases.map(|bias| ordered(&bias));
        self.builder.weight(
            &node,
            "weight_ih",
            &[width, self.channels],
            ordered(&from_input.transposed()),
        );
        self.builder.weight(
            &node,
            "weight_hh",
            &[width, hidden],
            ordered(&from_state.transposed()),
        );
        self.builder.weight(&node, "bias_ih", &[width], input_bias);
        self.builder.weight(&node, "bias_hh", &[width], state_bias);
        Ok(node)
    }
}

/// Returns a number, or the first of a list.
fn count_or_first(layer: &Field<'_>, name: &str) -> Result<Option<usize>, ModelError> {
    let Some(field) = layer.find(name) else {
        return Ok(None);
    };
    let field = if field.is_list() {
        field.items()?.into_iter().next().unwrap_or(field)
    } else {
        field
    };
    field.count().map(Some)
}

/// Adds a convolution with weights `[tap][input / groups][output]`.
fn add_conv(
    builder: &mut GraphBuilder,
    name: &str,
    layer: &Field<'_>,
    weights: &[Field<'_>],
    value: &str,
    channels: usize,
) -> Result<(String, usize), ModelError> {
    let field = weight(layer, weights, 0)?;
    let taps: Vec<JsonMatrix> = field
        .items()?
        .iter()
        .map(Field::matrix)
        .collect::<Result<_, _>>()?;
    let bias = weight(layer, weights, 1)?.numbers()?;
    let groups = count_or_first(layer, "groups")?.unwrap_or(1);
    let dilation = match count_or_first(layer, "dilation")? {
        Some(dilation) => dilation,
        None => count_or_first(layer, "dilation_rate")?.unwrap_or(1),
    };
    let kernel = count_or_first(layer, "kernel_size")?.unwrap_or(taps.len());
    if kernel != taps.len() || kernel == 0 {
        return Err(field.error(&format!("expected {kernel} taps, found {}", taps.len())));
    }
    let outputs = bias.len();
    if !channels.is_multiple_of(groups) || !outputs.is_multiple_of(groups) || outputs == 0 {
        return Err(layer.error(&format!(
            "{channels} and {outputs} channels are not divisible by {groups} groups"
        )));
    }
    let inputs = channels / groups;
    taps.iter()
        .try_for_each(|tap| fits(&field, tap, inputs, outputs))?;
    let value_at =
        |output: usize, input: usize, tap: usize| taps[tap].values[input * outputs + output];
    let rows = (0..outputs).flat_map(|output| (0..inputs).map(move |input| (output, input)));
    let weight = rows
        .flat_map(|(output, input)| (0..kernel).map(move |tap| value_at(output, input, tap)))
        .collect();
    let conv = Conv {
        inputs: channels,
        outputs,
        kernel,
        dilation,
        groups,
        bias: true,
        slice: None,
    };
    Ok((
        builder.conv(
            &format!("{name}.conv"),
            value,
            ConvWeights { conv, weight, bias },
        )?,
        outputs,
    ))
}

/// Adds a batch norm as a scale and an offset per channel; its weights are γ, β, mean and variance,
/// or the last two.
fn add_norm(
    builder: &mut GraphBuilder,
    name: &str,
    layer: &Field<'_>,
    weights: &[Field<'_>],
    value: &str,
    channels: usize,
) -> Result<String, ModelError> {
    let epsilon = layer
        .find("epsilon")
        .map_or(Ok(0.0), |field| field.number())?;
    let row = |index: usize| {
        let row = weight(layer, weights, index)?;
        let numbers = row.numbers()?;
        if numbers.len() == channels {
            Ok(numbers)
        } else {
            Err(row.error(&format!("expected {channels} numbers")))
        }
    };
    let affine = weights.len() >= 4;
    let [gain, offset, mean, variance] = if affine {
        [row(0)?, row(1)?, row(2)?, row(3)?]
    } else {
        [vec![1.0; channels], vec![0.0; channels], row(0)?, row(1)?]
    };
    let scale =
        |channel: usize| f64::from(gain[channel]) / (f64::from(variance[channel]) + epsilon).sqrt();
    let shift =
        |channel: usize| f64::from(offset[channel]) - f64::from(mean[channel]) * scale(channel);
    let conv = Conv {
        groups: channels,
        ..Conv::pointwise(channels, channels)
    };
    let weight = (0..channels).map(|channel| scale(channel) as f32).collect();
    let bias = (0..channels).map(|channel| shift(channel) as f32).collect();
    builder.conv(
        &format!("{name}.norm"),
        value,
        ConvWeights { conv, weight, bias },
    )
}
