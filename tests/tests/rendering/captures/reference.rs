//! Reference of each architecture in f64, straight from the file. Signals are `[channel][sample]`.

mod keras;
mod nam;
mod proteus;
mod recurrent;

use serde_json::Value;

/// Signal of several channels.
pub type Signal = Vec<Vec<f64>>;

/// Runs a file on audio and its knobs, one signal each, after the silence that players give it
/// first.
pub fn run(file: &Value, sound: &[f64], knobs: &[Vec<f64>]) -> Vec<f64> {
    let warm_up = 30_000;
    let warmed = |samples: &[f64], rest: f64| [vec![rest; warm_up], samples.to_vec()].concat();
    let mut input = vec![warmed(sound, 0.0)];
    input.extend(knobs.iter().map(|knob| warmed(knob, 0.5)));
    // A network that remembers forever starts half a second ago, in whole steps, all others long
    // enough.
    let start = |rate: usize| warm_up - (rate / 2).next_multiple_of(32);
    let output = if !file["architecture"].is_null() {
        let recurrent = file["architecture"] == "LSTM";
        let rate = file["sample_rate"].as_u64().unwrap_or(48_000) as usize;
        // More than the longest of them hears.
        nam::run(
            file,
            &cut(
                &input,
                if recurrent {
                    start(rate)
                } else {
                    warm_up - 8_000
                },
            ),
        )
    } else if !file["state_dict"].is_null() {
        proteus::run(file, &cut(&input, start(44_100)))
    } else {
        let rate = file["metadata"]["samplerate"]
            .as_str()
            .and_then(|rate| rate.parse().ok())
            .unwrap_or(48_000);
        keras::run(file, &cut(&input, start(rate)))
    };
    output[0][output[0].len() - sound.len()..].to_vec()
}

fn cut(signal: &Signal, start: usize) -> Signal {
    signal
        .iter()
        .map(|channel| channel[start..].to_vec())
        .collect()
}

/// Convolution with weights `[output][input / groups][tap]`.
pub struct Conv<'a> {
    pub outputs: usize,
    pub kernel: usize,
    pub dilation: usize,
    pub groups: usize,
    pub weight: &'a [f64],
    pub bias: Option<&'a [f64]>,
}

impl Conv<'_> {
    pub fn run(&self, x: &Signal) -> Signal {
        let (inputs, length) = (x.len() / self.groups, x[0].len());
        let output = |o: usize| {
            let group = o / (self.outputs / self.groups);
            let mut y = vec![self.bias.map_or(0.0, |bias| bias[o]); length];
            for i in 0..inputs {
                for tap in 0..self.kernel {
                    let weight = self.weight[(o * inputs + i) * self.kernel + tap];
                    let delay = (self.kernel - 1 - tap) * self.dilation;
                    for t in delay..length {
                        y[t] += weight * x[group * inputs + i][t - delay];
                    }
                }
            }
            y
        };
        (0..self.outputs).map(output).collect()
    }
}

pub fn add(a: &Signal, b: &Signal) -> Signal {
    pairs(a, b, |a, b| a + b)
}

pub fn pairs(a: &Signal, b: &Signal, f: impl Fn(f64, f64) -> f64) -> Signal {
    assert_eq!(a.len(), b.len());
    a.iter()
        .zip(b)
        .map(|(a, b)| a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect())
        .collect()
}

pub fn each(x: &Signal, f: impl Fn(f64) -> f64) -> Signal {
    x.iter()
        .map(|channel| channel.iter().map(|x| f(*x)).collect())
        .collect()
}

pub fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Returns all numbers in a JSON value, in order.
pub fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Number(number) => vec![number.as_f64().expect("a number")],
        Value::Array(values) => values.iter().flat_map(numbers).collect(),
        _ => Vec::new(),
    }
}

pub fn count(value: &Value, usual: usize) -> usize {
    value.as_u64().map_or(usual, |count| count as usize)
}
