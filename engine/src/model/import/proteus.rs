//! JSON of Proteus: a recurrent and a linear layer, with PyTorch's weight names.

use super::card_text;
use super::control_inputs;
use super::field::{Field, JsonMatrix};
use super::graph_builder::{GraphBuilder, INPUT, ModelInfo, model};
use super::keras;
use crate::model::{Card, Model, ModelError, Op};
use crate::ops::{Gru, Lstm};

/// Sample rate of files that state none, Hz.
const RATE: u32 = 44_100;

pub(super) fn import(root: &Field<'_>) -> Result<Model, ModelError> {
    let (data, state) = (root.need("model_data")?, root.need("state_dict")?);
    let count = |name: &str, usual: usize| data.find(name).map_or(Ok(usual), |field| field.count());
    let hidden = data.need("hidden_size")?.count()?;
    let inputs = count("input_size", 1)?;
    let kind = data.find("unit_type");
    let kind = kind.as_ref().map_or(Ok("LSTM"), Field::text)?;
    let (gates, op): (usize, fn(usize) -> Op) = match kind {
        "LSTM" => (4, |hidden| {
            Op::Lstm(Lstm {
                hidden,
                initial_state: false,
            })
        }),
        "GRU" => (3, |hidden| {
            Op::Gru(Gru {
                hidden,
                initial_state: false,
            })
        }),
        other => {
            return Err(data
                .need("unit_type")?
                .error(&format!("unknown unit type {other:?}")));
        }
    };
    let too_many = || data.error("hidden_size is too large");
    let width = hidden.checked_mul(gates).ok_or_else(too_many)?;
    let mut builder = GraphBuilder::default();
    let (ports, controls, mut value) = control_inputs::add_inputs(&mut builder, INPUT, inputs)?;
    let mut channels = inputs;
    for layer in 0..count("num_layers", 1)? {
        let part = |name: &str| state.need(&format!("rec.{name}_l{layer}"));
        let [from_input, from_state] = [part("weight_ih")?, part("weight_hh")?];
        let [input_bias, state_bias] = [part("bias_ih")?, part("bias_hh")?];
        let weights = [
            matrix(&from_input, width, channels)?,
            matrix(&from_state, width, hidden)?,
        ];
        let biases = [vector(&input_bias, width)?, vector(&state_bias, width)?];
        value = builder.node(&format!("layer{layer}"), &[&value], op(hidden))?;
        for (
            name,
            JsonMatrix {
                rows,
                columns,
                values,
            },
        ) in ["weight_ih", "weight_hh"].into_iter().zip(weights)
        {
            builder.weight(&value, name, &[rows, columns], values);
        }
        for (name, values) in ["bias_ih", "bias_hh"].into_iter().zip(biases) {
            builder.weight(&value, name, &[width], values);
        }
        channels = hidden;
    }
    let (weight, bias) = (state.need("lin.weight")?, state.need("lin.bias")?);
    let outputs = count("output_size", 1)?;
    let head = matrix(&weight, outputs, hidden)?;
    value = builder.linear("head", &value, head.values, vector(&bias, outputs)?)?;
    // These networks predict the difference to their input unless the file says otherwise.
    if data.find("skip").map_or(Ok(true), |skip| skip.flag())? {
        value = builder.node("skip", &[&value, INPUT], Op::Add)?;
    }
    let metadata = root.find("metadata");
    let rate = keras::stated_rate(&[metadata.as_ref(), Some(root), Some(&data)]);
    let rate = rate.map_or(Ok(RATE), |rate| rate.rate())?;
    let method = builder.method("forward", &value, ports, rate)?;
    let name = root
        .find("name")
        .and_then(|name| name.readable())
        .unwrap_or_default();
    let card = keras::card(metadata.as_ref());
    let card = Card {
        name: if name.is_empty() {
            card.name
        } else {
            card_text(&name)
        },
        ..card
    };
    let info = ModelInfo {
        rate,
        card,
        controls,
        variants: Vec::new(),
    };
    model(vec![method], info)
}

fn matrix(field: &Field<'_>, rows: usize, columns: usize) -> Result<JsonMatrix, ModelError> {
    let matrix = field.matrix()?;
    if (matrix.rows, matrix.columns) == (rows, columns) {
        return Ok(matrix);
    }
    Err(field.error(&format!(
        "expected a matrix of {rows} × {columns}, found {} × {}",
        matrix.rows, matrix.columns
    )))
}

fn vector(field: &Field<'_>, length: usize) -> Result<Vec<f32>, ModelError> {
    let values = field.numbers()?;
    if values.len() == length {
        Ok(values)
    } else {
        Err(field.error(&format!("expected {length} numbers")))
    }
}
