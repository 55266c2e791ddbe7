//! Layers of RTNeural with Keras' layouts, and gains of AIDA-X.

use ondes_engine::dsp::level::db_to_amplitude_f64;
use serde_json::Value;

use super::recurrent::Cell;
use super::{Signal, add, count, each, numbers, sigmoid};

fn matrix(value: &Value) -> Vec<Vec<f64>> {
    value
        .as_array()
        .expect("rows")
        .iter()
        .map(numbers)
        .collect()
}

/// Returns the gates in the given order, as rows.
fn rows(matrix: &[Vec<f64>], gates: &[usize]) -> Vec<Vec<f64>> {
    let units = matrix[0].len() / gates.len();
    let column = |place: usize| matrix.iter().map(|row| row[place]).collect();
    gates
        .iter()
        .flat_map(|gate| (0..units).map(move |unit| gate * units + unit))
        .map(column)
        .collect()
}

fn ordered(bias: &[f64], gates: &[usize]) -> Vec<f64> {
    let units = bias.len() / gates.len();
    gates
        .iter()
        .flat_map(|gate| &bias[gate * units..][..units])
        .copied()
        .collect()
}

pub fn run(file: &Value, input: &Signal) -> Signal {
    let gain = |name: &str| db_to_amplitude_f64(file[name].as_f64().unwrap_or(0.0));
    let mut input = input.clone();
    input[0].iter_mut().for_each(|x| *x *= gain("in_gain"));
    let mut x = input.clone();
    for layer in file["layers"].as_array().expect("layers") {
        x = run_layer(layer, x);
    }
    if file["in_skip"] == 1 {
        x = add(&x, &input[..1].to_vec());
    }
    each(&x, |x| x * gain("out_gain"))
}

fn run_layer(layer: &Value, x: Signal) -> Signal {
    let weights = &layer["weights"];
    let y = match layer["type"].as_str().expect("a type") {
        "dense" => {
            let (kernel, bias) = (matrix(&weights[0]), numbers(&weights[1]));
            let output = |o: usize| {
                (0..x[0].len())
                    .map(|t| bias[o] + (0..x.len()).map(|i| kernel[i][o] * x[i][t]).sum::<f64>())
                    .collect()
            };
            (0..bias.len()).map(output).collect()
        }
        "conv1d" => {
            let taps: Vec<Vec<Vec<f64>>> = weights[0]
                .as_array()
                .expect("taps")
                .iter()
                .map(matrix)
                .collect();
            let bias = numbers(&weights[1]);
            let (groups, dilation) = (count(&layer["groups"], 1), count(&layer["dilation"][0], 1));
            let (inputs, outputs) = (x.len() / groups, bias.len());
            let output = |o: usize| {
                let first = o / (outputs / groups) * inputs;
                let mut y = vec![bias[o]; x[0].len()];
                for (tap, weight) in taps.iter().enumerate() {
                    let delay = (taps.len() - 1 - tap) * dilation;
                    for i in 0..inputs {
                        for t in delay..y.len() {
                            y[t] += weight[i][o] * x[first + i][t - delay];
                        }
                    }
                }
                y
            };
            (0..outputs).map(output).collect()
        }
        kind @ ("lstm" | "gru") => {
            let gates: &[usize] = if kind == "lstm" {
                &[0, 1, 2, 3]
            } else {
                &[1, 0, 2]
            };
            let hidden = weights[1].as_array().expect("rows").len();
            let bias = matrix(&weights[2]);
            let (input_bias, state_bias) = if kind == "lstm" {
                (numbers(&weights[2]), vec![0.0; 4 * hidden])
            } else {
                (ordered(&bias[0], gates), ordered(&bias[1], gates))
            };
            let cell = Cell {
                hidden,
                from_input: rows(&matrix(&weights[0]), gates),
                from_state: rows(&matrix(&weights[1]), gates),
                input_bias,
                state_bias,
                state: vec![0.0; hidden],
                cells: vec![0.0; hidden],
            };
            return if kind == "lstm" {
                cell.lstm(&x)
            } else {
                cell.gru(&x)
            };
        }
        "batchnorm" => {
            let rows: Vec<Vec<f64>> = weights
                .as_array()
                .expect("rows")
                .iter()
                .map(numbers)
                .collect();
            let epsilon = layer["epsilon"].as_f64().expect("epsilon");
            let norm = |(channel, x): (usize, &Vec<f64>)| -> Vec<f64> {
                let value = |row: usize| rows[row][channel];
                x.iter()
                    .map(|x| value(0) * (x - value(2)) / (value(3) + epsilon).sqrt() + value(1))
                    .collect()
            };
            x.iter().enumerate().map(norm).collect()
        }
        "prelu" => {
            let slopes = numbers(weights);
            let bend = |(channel, x): (usize, &Vec<f64>)| -> Vec<f64> {
                let slope = slopes[channel % slopes.len()];
                x.iter()
                    .map(|x| if *x < 0.0 { slope * x } else { *x })
                    .collect()
            };
            x.iter().enumerate().map(bend).collect()
        }
        "activation" => x,
        "gated_activation" => gate(&x),
        other => panic!("a layer {other}"),
    };
    match layer["activation"].as_str().unwrap_or("") {
        "tanh" => each(&y, f64::tanh),
        "relu" => each(&y, |x| x.max(0.0)),
        "sigmoid" => each(&y, sigmoid),
        "elu" => each(&y, |x| if x < 0.0 { x.exp_m1() } else { x }),
        "gated_activation" => gate(&y),
        "softmax" => {
            let power = |x: &Vec<f64>| -> Vec<f64> { x.iter().map(|x| x.exp()).collect() };
            let powers: Vec<Vec<f64>> = y.iter().map(power).collect();
            let sum = |t: usize| powers.iter().map(|channel| channel[t]).sum::<f64>();
            let share = |channel: &Vec<f64>| {
                channel
                    .iter()
                    .enumerate()
                    .map(|(t, power)| power / sum(t))
                    .collect()
            };
            powers.iter().map(share).collect()
        }
        _ => y,
    }
}

/// Returns tanh of the first half of the channels times sigmoid of the second half.
fn gate(x: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let (value, opening) = x.split_at(x.len() / 2);
    let product = |(value, opening): (&Vec<f64>, &Vec<f64>)| {
        value
            .iter()
            .zip(opening)
            .map(|(value, opening)| value.tanh() * sigmoid(*opening))
            .collect()
    };
    value.iter().zip(opening).map(product).collect()
}
