//! Proteus: a recurrent layer, a linear one, and the input as skip.

use serde_json::Value;

use super::recurrent::Cell;
use super::{Conv, Signal, add, count, numbers};

pub fn run(file: &Value, input: &Signal) -> Signal {
    let (data, state) = (&file["model_data"], &file["state_dict"]);
    let hidden = count(&data["hidden_size"], 0);
    let mut x = input.clone();
    for layer in 0..count(&data["num_layers"], 1) {
        let rows = |name: &str| -> Vec<Vec<f64>> {
            state[format!("rec.{name}_l{layer}")]
                .as_array()
                .expect("rows")
                .iter()
                .map(numbers)
                .collect()
        };
        let bias = |name: &str| numbers(&state[format!("rec.{name}_l{layer}")]);
        let cell = Cell {
            hidden,
            from_input: rows("weight_ih"),
            from_state: rows("weight_hh"),
            input_bias: bias("bias_ih"),
            state_bias: bias("bias_hh"),
            state: vec![0.0; hidden],
            cells: vec![0.0; hidden],
        };
        x = if data["unit_type"] == "GRU" {
            cell.gru(&x)
        } else {
            cell.lstm(&x)
        };
    }
    let (weight, bias) = (numbers(&state["lin.weight"]), numbers(&state["lin.bias"]));
    let y = Conv {
        outputs: 1,
        kernel: 1,
        dilation: 1,
        groups: 1,
        weight: &weight,
        bias: Some(&bias),
    }
    .run(&x);
    if data["skip"] == 0 {
        y
    } else {
        add(&y, &input[..1].to_vec())
    }
}
