//! LSTM: recurrent layers with an initial state, then a linear layer.

use super::OutputNode;
use crate::model::import::field::Field;
use crate::model::import::graph_builder::{GraphBuilder, INPUT};
use crate::model::import::weight_reader::WeightReader;
use crate::model::{ModelError, Op};
use crate::ops::Lstm;

pub(super) fn add(
    config: &Field<'_>,
    weights: &mut WeightReader<'_>,
    builder: &mut GraphBuilder,
) -> Result<OutputNode, ModelError> {
    let hidden = config.need("hidden_size")?.count()?;
    let layers = config
        .find("num_layers")
        .map_or(Ok(1), |field| field.count())?;
    let mut channels = config
        .find("input_size")
        .map_or(Ok(1), |field| field.count())?;
    let mut value = INPUT.to_owned();
    for layer in 0..layers {
        let what = format!("layer {layer}");
        let too_large = || config.error("hidden_size is too large");
        let gates = hidden.checked_mul(4).ok_or_else(too_large)?;
        let width = hidden.checked_add(channels).ok_or_else(too_large)?;
        // Each row has the weights of the inputs, then those of the state.
        let rows = weights.take(&what, &[gates, width])?.chunks_exact(width);
        let from_input: Vec<f32> = rows
            .clone()
            .flat_map(|row| &row[..channels])
            .copied()
            .collect();
        let from_state: Vec<f32> = rows.flat_map(|row| &row[channels..]).copied().collect();
        let bias = weights.take(&what, &[gates])?.to_vec();
        let state = weights.take(&what, &[hidden])?.to_vec();
        let cells = weights.take(&what, &[hidden])?.to_vec();
        value = builder.node(
            &format!("layer{layer}"),
            &[&value],
            Op::Lstm(Lstm {
                hidden,
                initial_state: true,
            }),
        )?;
        builder.weight(&value, "weight_ih", &[gates, channels], from_input);
        builder.weight(&value, "weight_hh", &[gates, hidden], from_state);
        builder.weight(&value, "bias_ih", &[gates], bias);
        builder.weight(&value, "bias_hh", &[gates], vec![0.0; gates]);
        builder.weight(&value, "h0", &[hidden], state);
        builder.weight(&value, "c0", &[hidden], cells);
        channels = hidden;
    }
    let weight = weights.take("the head", &[hidden])?.to_vec();
    let bias = vec![weights.next("the head's bias")?];
    Ok(OutputNode {
        node: builder.linear("head", &value, weight, bias)?,
        channels: 1,
    })
}
