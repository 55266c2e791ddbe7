//! Neural Amp Modeler's architectures.

use serde_json::Value;

use super::recurrent::Cell;
use super::{Conv, Signal, add, count, each, numbers, pairs, sigmoid};

/// Flat list of weights, consumed from the front.
struct Flat {
    values: Vec<f64>,
    at: usize,
}

impl Flat {
    fn take(&mut self, count: usize) -> Vec<f64> {
        self.at += count;
        self.values[self.at - count..self.at].to_vec()
    }

    fn conv(
        &mut self,
        inputs: usize,
        outputs: usize,
        [kernel, dilation, groups]: [usize; 3],
        bias: bool,
    ) -> Taken {
        let weight = self.take(outputs * inputs / groups * kernel);
        let bias = bias.then(|| self.take(outputs));
        Taken {
            outputs,
            kernel,
            dilation,
            groups,
            weight,
            bias,
        }
    }
}

struct Taken {
    outputs: usize,
    kernel: usize,
    dilation: usize,
    groups: usize,
    weight: Vec<f64>,
    bias: Option<Vec<f64>>,
}

impl Taken {
    fn run(&self, x: &Signal) -> Signal {
        let Self {
            outputs,
            kernel,
            dilation,
            groups,
            ref weight,
            ref bias,
        } = *self;
        Conv {
            outputs,
            kernel,
            dilation,
            groups,
            weight,
            bias: bias.as_deref(),
        }
        .run(x)
    }
}

pub fn run(file: &Value, input: &Signal) -> Signal {
    let config = &file["config"];
    let mut flat = Flat {
        values: numbers(&file["weights"]),
        at: 0,
    };
    let output = match file["architecture"].as_str().expect("an architecture") {
        "WaveNet" => wavenet(config, &mut flat, input),
        "LSTM" => lstm(config, &mut flat, input),
        "ConvNet" => convnet(config, &mut flat, input),
        "Linear" => {
            let mut weight = flat.take(count(&config["receptive_field"], 0));
            weight.reverse();
            let bias = if config["bias"] == true {
                flat.take(1)
            } else {
                vec![0.0]
            };
            let kernel = weight.len();
            Conv {
                outputs: 1,
                kernel,
                dilation: 1,
                groups: 1,
                weight: &weight,
                bias: Some(&bias),
            }
            .run(input)
        }
        "SlimmableContainer" => {
            return run(
                &config["submodels"]
                    .as_array()
                    .expect("models")
                    .last()
                    .expect("one")["model"],
                input,
            );
        }
        other => panic!("architecture {other}"),
    };
    assert_eq!(flat.at, flat.values.len(), "weights are left");
    output
}

fn lstm(config: &Value, flat: &mut Flat, input: &Signal) -> Signal {
    let hidden = count(&config["hidden_size"], 0);
    let mut x = input.clone();
    for _ in 0..count(&config["num_layers"], 1) {
        let inputs = x.len();
        let rows: Vec<Vec<f64>> = (0..4 * hidden)
            .map(|_| flat.take(inputs + hidden))
            .collect();
        let cell = Cell {
            hidden,
            from_input: rows.iter().map(|row| row[..inputs].to_vec()).collect(),
            from_state: rows.iter().map(|row| row[inputs..].to_vec()).collect(),
            input_bias: flat.take(4 * hidden),
            state_bias: vec![0.0; 4 * hidden],
            state: flat.take(hidden),
            cells: flat.take(hidden),
        };
        x = cell.lstm(&x);
    }
    flat.conv(hidden, 1, [1, 1, 1], true).run(&x)
}

fn convnet(config: &Value, flat: &mut Flat, input: &Signal) -> Signal {
    let (channels, groups) = (count(&config["channels"], 0), count(&config["groups"], 1));
    let norm = config["batchnorm"] == true;
    let mut x = input.clone();
    for dilation in numbers(&config["dilations"]) {
        x = flat
            .conv(x.len(), channels, [2, dilation as usize, groups], !norm)
            .run(&x);
        if norm {
            let [mean, variance, gain, offset] = [(); 4].map(|()| flat.take(channels));
            let epsilon = flat.take(1)[0];
            for (c, x) in x.iter_mut().enumerate() {
                x.iter_mut().for_each(|x| {
                    *x = (*x - mean[c]) / (variance[c] + epsilon).sqrt() * gain[c] + offset[c]
                });
            }
        }
        x = activate(&config["activation"], &x);
    }
    flat.conv(channels, 1, [1, 1, 1], true).run(&x)
}

fn activate(config: &Value, x: &Signal) -> Signal {
    let name = config["type"]
        .as_str()
        .or(config.as_str())
        .expect("an activation");
    let number = |name: &str, usual: f64| config[name].as_f64().unwrap_or(usual);
    let leaky = |low_slope: f64, high_slope: f64| {
        let (low, high) = (number("min_val", -1.0), number("max_val", 1.0));
        each(x, |x| match x {
            x if x < low => low + low_slope * (x - low),
            x if x > high => high + high_slope * (x - high),
            x => x,
        })
    };
    match name {
        "Tanh" => each(x, f64::tanh),
        "Hardtanh" => leaky(0.0, 0.0),
        "Fasttanh" => each(x, |x| {
            let (a, square) = (x.abs(), x * x);
            let top = 2.45550750702956
                + 2.45550750702956 * a
                + (0.893229853513558 + 0.821226666969744 * a) * square;
            x * top
                / (2.44506634652299
                    + (2.44506634652299 + square) * (x + 0.814642734961073 * x * a).abs())
        }),
        "ReLU" => each(x, |x| x.max(0.0)),
        "LeakyReLU" => each(x, |x| {
            if x < 0.0 {
                number("negative_slope", 0.01) * x
            } else {
                x
            }
        }),
        "PReLU" => {
            let mut slopes = numbers(&config["negative_slopes"]);
            slopes.extend(config["negative_slope"].as_f64());
            if slopes.is_empty() {
                slopes.push(0.01);
            }
            let slope = |channel: usize| slopes[channel % slopes.len()];
            let bend = |(c, x): (usize, &Vec<f64>)| {
                x.iter()
                    .map(|x| x.max(0.0) + slope(c) * x.min(0.0))
                    .collect()
            };
            x.iter().enumerate().map(bend).collect()
        }
        "Sigmoid" => each(x, sigmoid),
        "SiLU" => each(x, |x| x * sigmoid(x)),
        "Hardswish" => each(x, |x| x * (x + 3.0).clamp(0.0, 6.0) / 6.0),
        "LeakyHardtanh" => leaky(number("min_slope", 0.01), number("max_slope", 0.01)),
        "Softsign" => each(x, |x| x / (1.0 + x.abs())),
        other => panic!("activation {other}"),
    }
}

/// Returns a layer's item of a list, or the value for all layers.
fn of(value: &Value, layer: usize) -> &Value {
    value.get(layer).unwrap_or(value)
}

fn wavenet(config: &Value, flat: &mut Flat, input: &Signal) -> Signal {
    let condition = if config["condition_dsp"].is_null() {
        input.clone()
    } else {
        run(&config["condition_dsp"], input)
    };
    let mut x = input.clone();
    let mut head: Option<Signal> = None;
    for array in config["layers"].as_array().expect("arrays") {
        (x, head) = run_array(array, flat, &x, &condition, head);
    }
    let mut head = head.expect("an array");
    let post = &config["head"];
    let mut stages = Vec::new();
    if !post.is_null() {
        let kernels = numbers(&post["kernel_sizes"]);
        let mut inputs = head.len();
        for (index, kernel) in kernels.iter().enumerate() {
            let last = index + 1 == kernels.len();
            let outputs = count(&post[if last { "out_channels" } else { "channels" }], 1);
            stages.push(flat.conv(inputs, outputs, [*kernel as usize, 1, 1], true));
            inputs = outputs;
        }
    }
    let scale = flat.take(1)[0];
    head = each(&head, |x| scale * x);
    for stage in stages {
        head = stage.run(&activate(&post["activation"], &head));
    }
    head
}

fn run_array(
    array: &Value,
    flat: &mut Flat,
    x: &Signal,
    condition: &Signal,
    mut head: Option<Signal>,
) -> (Signal, Option<Signal>) {
    let channels = count(&array["channels"], 0);
    let mut x = flat.conv(x.len(), channels, [1, 1, 1], false).run(x);
    for layer in 0..array["dilations"].as_array().expect("dilations").len() {
        let (next, heard) = run_layer(array, layer, flat, &x, condition);
        (x, head) = (
            next,
            Some(head.map_or_else(|| heard.clone(), |head| add(&head, &heard))),
        );
    }
    let head = head.expect("a layer");
    let mix = &array["head"];
    let bias = if mix.is_null() {
        array["head_bias"] == true
    } else {
        mix["bias"] == true
    };
    let outputs = if mix.is_null() {
        count(&array["head_size"], 0)
    } else {
        count(&mix["out_channels"], 0)
    };
    let taps = [
        count(&mix["kernel_size"], 1),
        count(&mix["head_dilation"], 1),
        1,
    ];
    (
        x,
        Some(flat.conv(head.len(), outputs, taps, bias).run(&head)),
    )
}

fn run_layer(
    array: &Value,
    layer: usize,
    flat: &mut Flat,
    x: &Signal,
    condition: &Signal,
) -> (Signal, Signal) {
    let channels = count(&array["channels"], 0);
    let bottleneck = count(&array["bottleneck"], channels);
    let mode = match of(&array["gating_mode"], layer).as_str() {
        Some(mode) => mode,
        None if *of(&array["gated"], layer) == true => "gated",
        None => "none",
    };
    let middle = if mode == "none" {
        bottleneck
    } else {
        2 * bottleneck
    };
    let kernel = if array["kernel_sizes"].is_null() {
        &array["kernel_size"]
    } else {
        &array["kernel_sizes"]
    };
    let taps = [
        count(of(kernel, layer), 0),
        count(&array["dilations"][layer], 0),
        count(&array["groups_input"], 1),
    ];
    let conv = flat.conv(channels, middle, taps, true);
    let mixin = flat.conv(
        condition.len(),
        middle,
        [1, 1, count(&array["groups_input_mixin"], 1)],
        false,
    );
    let pointwise = |flat: &mut Flat, part: &Value, outputs: usize, usual: bool| {
        let there = part["active"].as_bool().unwrap_or(usual);
        there.then(|| flat.conv(bottleneck, outputs, [1, 1, count(&part["groups"], 1)], true))
    };
    let out = pointwise(flat, &array["layer1x1"], channels, true);
    let head_channels = count(&array["head1x1"]["out_channels"], 0);
    let to_head = pointwise(flat, &array["head1x1"], head_channels, false);
    let heard = to_head.as_ref().map_or(bottleneck, |conv| conv.outputs);
    let places = [
        ("conv_pre_film", channels),
        ("conv_post_film", middle),
        ("input_mixin_pre_film", condition.len()),
        ("input_mixin_post_film", middle),
        ("activation_pre_film", middle),
        ("activation_post_film", bottleneck),
        ("layer1x1_post_film", channels),
        ("head1x1_post_film", heard),
    ];
    let films: Vec<Option<Taken>> = places
        .iter()
        .map(|(name, channels)| {
            let film = &array[name];
            let outputs = if film["shift"] == false {
                *channels
            } else {
                2 * channels
            };
            (film["active"] == true).then(|| {
                flat.conv(
                    condition.len(),
                    outputs,
                    [1, 1, count(&film["groups"], 1)],
                    true,
                )
            })
        })
        .collect();
    let film = |place: usize, x: Signal| match &films[place] {
        Some(film) => {
            let modulation = film.run(condition);
            let scaled = pairs(&x, &modulation[..x.len()].to_vec(), |x, scale| x * scale);
            if modulation.len() > x.len() {
                add(&scaled, &modulation[x.len()..].to_vec())
            } else {
                scaled
            }
        }
        None => x,
    };
    let z = film(1, conv.run(&film(0, x.clone())));
    let mixed = film(3, mixin.run(&film(2, condition.clone())));
    let z = film(4, add(&z, &mixed));
    let activation = of_activation(&array["activation"], layer);
    let secondary = match of_activation(&array["secondary_activation"], layer) {
        Value::Null => &Value::from("Sigmoid"),
        named => named,
    };
    let (top, bottom) = (z[..bottleneck].to_vec(), z[bottleneck..].to_vec());
    let act = match mode {
        "none" => activate(activation, &z),
        "gated" => pairs(
            &activate(activation, &top),
            &activate(secondary, &bottom),
            |a, s| a * s,
        ),
        _ => {
            let s = activate(secondary, &bottom);
            let active = pairs(&activate(activation, &top), &s, |a, s| a * s);
            add(&active, &pairs(&top, &s, |x, s| (1.0 - s) * x))
        }
    };
    let act = film(5, act);
    let onward = film(6, out.map_or_else(|| act.clone(), |out| out.run(&act)));
    let head = film(
        7,
        to_head.map_or_else(|| act.clone(), |to_head| to_head.run(&act)),
    );
    (add(x, &onward), head)
}

/// Returns a layer's activation; an object is for all layers.
fn of_activation(value: &Value, layer: usize) -> &Value {
    if value.is_array() {
        &value[layer]
    } else {
        value
    }
}
