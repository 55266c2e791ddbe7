//! Nodes as lines of TorchScript.

use std::collections::{BTreeMap, BTreeSet};

use super::functions::{
    ATTENTION, CODE_SUM, CONVOLVE, FILTERED_NOISE, FLIP_ODD_BANDS, FUNCTIONS, Function, HARMONIC,
    NEAREST_CODES, ROWS, SET_ROWS, SHAPED_NOISE, SPREAD, WITH_PAST,
};
use super::torchscript::{Class, Value};
use crate::dsp::filtered_noise::NoiseFilter;
use crate::model::{Activation, Distribution, Node, Op, Shape, Weights};

/// Most rows of a state: those that exports of RAVE have.
const MOST_ROWS: usize = 64;
/// Most values of all states, 256 MiB; large models have fewer rows.
const STATE_VALUES: usize = 64 << 20;

/// Writes the lines of nodes, and collects what they need: weights, states and functions.
pub(super) struct NodeWriter<'a> {
    weights: &'a Weights,
    sample_rate: u32,
    names: Names,
    /// Attribute and value by `NODE.PARAMETER`; methods share them.
    tensors: BTreeMap<String, (String, Value)>,
    states: Vec<State>,
    functions: BTreeSet<Function>,
}

/// State of a node, with a row for each stream.
struct State {
    attribute: String,
    /// Dimensions of a row.
    shape: Vec<usize>,
    initial: Initial,
}

enum Initial {
    Zeros,
    Floats(Vec<f32>),
    Double(f64),
}

/// Names that are taken in a module.
pub(super) struct Names(BTreeSet<String>);

impl Names {
    /// Creates them with some that are taken, besides those of functions.
    pub fn new(taken: &[&str]) -> Self {
        let functions = FUNCTIONS.iter().map(|function| function.name());
        Self(
            functions
                .chain(taken.iter().copied())
                .map(str::to_owned)
                .collect(),
        )
    }

    /// Returns a free identifier that resembles `name`, and takes it. `also` are further names to
    /// take, with `*` for the identifier.
    pub fn identifier(&mut self, name: &str, also: &[&str]) -> String {
        let letters = |sign: char| {
            if sign.is_ascii_alphanumeric() {
                sign
            } else {
                '_'
            }
        };
        let mut plain: String = name.chars().map(letters).collect();
        if !plain.starts_with(|first: char| first.is_ascii_alphabetic()) {
            plain.insert(0, 'n');
        }
        let mut candidate = plain.clone();
        for number in 2.. {
            let all = || {
                std::iter::once(candidate.clone())
                    .chain(also.iter().map(|form| form.replace('*', &candidate)))
            };
            if !all().any(|name| self.0.contains(&name)) {
                self.0.extend(all().collect::<Vec<_>>());
                break;
            }
            candidate = format!("{plain}_{number}");
        }
        candidate
    }
}

impl<'a> NodeWriter<'a> {
    pub fn new(weights: &'a Weights, sample_rate: u32, names: Names) -> Self {
        let (tensors, states, functions) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
        Self {
            weights,
            sample_rate,
            names,
            tensors,
            states,
            functions,
        }
    }

    /// Returns the module with the weights, states and functions of all nodes.
    pub fn add_to(self, mut class: Class) -> Class {
        for (attribute, value) in self.tensors.into_values() {
            class = class.with(&attribute, value);
        }
        let values: usize = self
            .states
            .iter()
            .map(|state| state.shape.iter().product::<usize>())
            .sum();
        let rows = (STATE_VALUES / values.max(1)).clamp(1, MOST_ROWS);
        for state in self.states {
            class = class.with(&state.attribute, state.initial.rows(rows, &state.shape));
        }
        self.functions
            .into_iter()
            .fold(class, |class, function| function.add_to(class))
    }

    /// Returns the number of states so far, for [`NodeWriter::spread`].
    pub fn states(&self) -> usize {
        self.states.len()
    }

    /// Returns lines that set all rows of the states from `first` on to the first row.
    pub fn spread(&mut self, first: usize) -> Vec<String> {
        let attributes: Vec<String> = self.states[first..]
            .iter()
            .map(|state| format!("self.{}", state.attribute))
            .collect();
        attributes
            .iter()
            .map(|state| format!("_ = {}", self.call(SPREAD, &[state])))
            .collect()
    }

    /// Adds the lines that compute a node to `body` and returns the variable with its value.
    /// `values` are the variables that it reads, `shapes` their shapes, `method` is the name of the
    /// method.
    pub fn node(
        &mut self,
        method: &str,
        node: &Node,
        values: &[&str],
        shapes: &[Shape],
        body: &mut Vec<String>,
    ) -> String {
        let value = format!("v{}", body.len());
        let expression = self.expression(method, node, values, shapes, &value, body);
        body.push(format!("{value} = {expression}"));
        value
    }

    /// Returns the expression of a node; `value` is a free name for further variables.
    fn expression(
        &mut self,
        method: &str,
        node: &Node,
        values: &[&str],
        shapes: &[Shape],
        value: &str,
        body: &mut Vec<String>,
    ) -> String {
        let x = values[0];
        let Shape { channels, ratio } = shapes[0];
        let half = |value: &str, channels: usize, part: usize| {
            format!(
                "torch.slice({value}, 1, {}, {})",
                part * channels,
                (part + 1) * channels
            )
        };
        match node.op {
            Op::Linear { .. } => {
                let [weight, bias] = self.parameters(node, ["weight", "bias"]);
                format!(
                    "torch.transpose(torch.linear(torch.transpose({x}, 1, 2), {weight}, {bias}), 1, 2)"
                )
            }
            Op::Conv1d {
                kernel,
                stride,
                dilation,
                groups,
                ..
            } => {
                let whole = self.with_past(
                    method,
                    node,
                    x,
                    channels,
                    (kernel - 1) * dilation + 1 - stride,
                );
                let [weight, bias] = self.parameters(node, ["weight", "bias"]);
                format!(
                    "torch.conv1d({whole}, {weight}, {bias}, [{stride}], [0], [{dilation}], {groups})"
                )
            }
            Op::ConvTranspose1d { kernel, stride, .. } => {
                let past = kernel / stride - 1;
                let whole = self.with_past(method, node, x, channels, past);
                let [weight, bias] = self.parameters(node, ["weight", "bias"]);
                body.push(format!("{value}_in = {whole}"));
                body.push(format!(
                    "{value}_out = torch.conv_transpose1d({value}_in, {weight}, {bias}, [{stride}], [0], [0], 1, [1])"
                ));
                format!(
                    "torch.slice({value}_out, 2, {}, {stride} * torch.size({value}_in, 2))",
                    past * stride
                )
            }
            Op::Gru {
                hidden,
                initial_state,
            } => self.recurrent(
                method,
                node,
                x,
                ("gru", hidden, initial_state, &["h0"]),
                value,
                body,
            ),
            Op::Lstm {
                hidden,
                initial_state,
            } => self.recurrent(
                method,
                node,
                x,
                ("lstm", hidden, initial_state, &["h0", "c0"]),
                value,
                body,
            ),
            Op::Attention { window, .. } => {
                let [keys, values] = [(1, "keys"), (2, "values")].map(|(input, state)| {
                    self.with_past_in(state, method, node, values[input], channels, window - 1)
                });
                let [position] = self.parameters(node, ["position"]);
                self.call(ATTENTION, &[x, &keys, &values, &position])
            }
            Op::LayerNorm => {
                let [gain, bias] = self.parameters(node, ["weight", "bias"]);
                let frames = format!("torch.transpose({x}, 1, 2)");
                format!(
                    "torch.transpose(torch.layer_norm({frames}, [{channels}], {gain}, {bias}, 1e-05), 1, 2)"
                )
            }
            Op::Prelu { .. } => {
                let [weight] = self.parameters(node, ["weight"]);
                format!("torch.prelu({x}, {weight})")
            }
            Op::Snake => {
                let [alpha] = self.parameters(node, ["alpha"]);
                body.push(format!("{value}_alpha = torch.unsqueeze({alpha}, 1)"));
                format!(
                    "{x} + torch.square(torch.sin({value}_alpha * {x})) / ({value}_alpha + 1e-09)"
                )
            }
            Op::Gate => {
                let [first, second] = [0, 1].map(|part| half(x, channels / 2, part));
                format!("torch.tanh({first}) * torch.sigmoid({second})")
            }
            Op::Film => {
                let [scale, shift] = [0, 1].map(|part| half(values[1], channels, part));
                format!("{x} * {scale} + {shift}")
            }
            Op::Add => values.join(" + "),
            Op::Multiply => values.join(" * "),
            Op::Concat => format!("torch.cat([{}], 1)", values.join(", ")),
            Op::Split { start, channels } => {
                format!("torch.slice({x}, 1, {start}, {})", start + channels)
            }
            Op::Delay { frames } => {
                let whole = self.with_past(method, node, x, channels, frames);
                format!("torch.slice({whole}, 2, 0, torch.size({x}, 2))")
            }
            Op::Latency { .. } => x.to_owned(),
            Op::Interleave { factor } => {
                let left = channels / factor;
                let parts = format!(
                    "torch.reshape({x}, [torch.size({x}, 0), {factor}, {left}, torch.size({x}, 2)])"
                );
                format!(
                    "torch.reshape(torch.permute({parts}, [0, 2, 3, 1]), [torch.size({x}, 0), {left}, -1])"
                )
            }
            Op::FlipOddBands => self.call(FLIP_ODD_BANDS, &[x]),
            Op::Noise {
                channels,
                distribution,
                ..
            } => {
                let empty = format!(
                    "torch.new_empty({x}, [torch.size({x}, 0), {channels}, torch.size({x}, 2)])"
                );
                match distribution {
                    Distribution::Uniform => format!("torch.uniform_({empty}, -1., 1.)"),
                    Distribution::Normal => format!("torch.normal_({empty})"),
                }
            }
            Op::ShapedNoise { bands, hop } => {
                // As a dense matrix `[delay][band]`.
                let (delays, taps) = NoiseFilter { bands, hop }.taps_in_frame();
                let mut matrix = vec![0.0; hop * bands];
                for (delay, row) in delays.into_iter().zip(taps.chunks_exact(bands)) {
                    matrix[delay * bands..][..bands].copy_from_slice(row);
                }
                let taps = self.tensor(node, "taps", || (vec![hop, bands], matrix));
                self.call(SHAPED_NOISE, &[x, values[1], &taps])
            }
            Op::NearestCodes { .. } => {
                let [codebook] = self.parameters(node, ["codebook"]);
                self.call(NEAREST_CODES, &[x, &codebook])
            }
            Op::CodeSum { .. } => {
                let [codebook] = self.parameters(node, ["codebook"]);
                self.call(CODE_SUM, &[x, &codebook])
            }
            Op::Affine { scale, offset } => format!("{x} * {} + {}", number(scale), number(offset)),
            Op::Harmonic => {
                let phase = self.state(method, node, "phase", vec![1, 1], Initial::Double(0.0));
                let step = self.state(method, node, "step", vec![1, 1], Initial::Double(-1.0));
                let levels = self.state(
                    method,
                    node,
                    "levels",
                    vec![shapes[2].channels, 1],
                    Initial::Zeros,
                );
                let (hop, rate) = (ratio.to_string(), number(self.sample_rate as f32));
                self.call(
                    HARMONIC,
                    &[x, values[1], values[2], &phase, &step, &levels, &hop, &rate],
                )
            }
            Op::FilteredNoise => {
                let filter = NoiseFilter {
                    bands: channels,
                    hop: ratio,
                };
                let response = filter.response();
                let bins = response.len() / channels;
                let response = self.tensor(node, "response", || (vec![bins, channels], response));
                let tail = self.state(
                    method,
                    node,
                    "tail",
                    vec![1, filter.fft() - ratio],
                    Initial::Zeros,
                );
                let sizes = [ratio, filter.taps() / 2, filter.fft()].map(|size| size.to_string());
                self.call(
                    FILTERED_NOISE,
                    &[x, &response, &tail, &sizes[0], &sizes[1], &sizes[2]],
                )
            }
            Op::Convolve { taps } => {
                let whole = self.with_past(method, node, x, channels, taps - 1);
                let [impulse] = self.parameters(node, ["impulse"]);
                self.call(CONVOLVE, &[&whole, &impulse])
            }
            Op::DrawMixture { .. } | Op::DrawCategories { .. } => {
                unreachable!("methods that draw are refused")
            }
            Op::Softmax => format!("torch.softmax({x}, 1)"),
            Op::Activation(activation) => activate(activation, x, value, body),
        }
    }

    /// Returns a recurrent layer, of which `names` are the states.
    fn recurrent(
        &mut self,
        method: &str,
        node: &Node,
        x: &str,
        (function, hidden, initial_state, names): (&str, usize, bool, &[&str]),
        value: &str,
        body: &mut Vec<String>,
    ) -> String {
        let weights = self
            .parameters(node, ["weight_ih", "weight_hh", "bias_ih", "bias_hh"])
            .join(", ");
        let states: Vec<String> = names
            .iter()
            .map(|name| {
                let initial = if initial_state {
                    Initial::Floats(self.weights.get(&node.name, name).floats().into_owned())
                } else {
                    Initial::Zeros
                };
                self.state(method, node, name, vec![1, hidden], initial)
            })
            .collect();
        let before: Vec<String> = states
            .iter()
            .map(|state| self.call(ROWS, &[x, state]))
            .collect();
        let before = if before.len() == 1 {
            before.concat()
        } else {
            format!("[{}]", before.join(", "))
        };
        let frames = format!("torch.transpose({x}, 1, 2)");
        body.push(format!(
            "{value}_all = torch.{function}({frames}, {before}, [{weights}], True, 1, 0., False, False, True)"
        ));
        for (index, state) in states.iter().enumerate() {
            let call = self.call(SET_ROWS, &[state, &format!("{value}_all[{}]", index + 1)]);
            body.push(format!("_ = {call}"));
        }
        format!("torch.transpose({value}_all[0], 1, 2)")
    }

    /// Returns `x` behind its last `frames` frames.
    fn with_past(
        &mut self,
        method: &str,
        node: &Node,
        x: &str,
        channels: usize,
        frames: usize,
    ) -> String {
        self.with_past_in("past", method, node, x, channels, frames)
    }

    /// Returns the same with a name of the state.
    fn with_past_in(
        &mut self,
        state: &str,
        method: &str,
        node: &Node,
        x: &str,
        channels: usize,
        frames: usize,
    ) -> String {
        if frames == 0 {
            return x.to_owned();
        }
        let state = self.state(method, node, state, vec![channels, frames], Initial::Zeros);
        self.call(WITH_PAST, &[x, &state])
    }

    fn call(&mut self, function: Function, arguments: &[&str]) -> String {
        self.functions.insert(function);
        format!("self.{}({})", function.name(), arguments.join(", "))
    }

    fn parameters<const N: usize>(&mut self, node: &Node, names: [&str; N]) -> [String; N] {
        let weights = self.weights;
        names.map(|name| {
            self.tensor(node, name, || {
                let weight = weights.get(&node.name, name);
                (weight.shape().to_vec(), weight.floats().into_owned())
            })
        })
    }

    /// Returns a tensor of a node, which the methods share.
    fn tensor(
        &mut self,
        node: &Node,
        name: &str,
        create: impl FnOnce() -> (Vec<usize>, Vec<f32>),
    ) -> String {
        let names = &mut self.names;
        let (attribute, _) = self
            .tensors
            .entry(format!("{}.{name}", node.name))
            .or_insert_with_key(|key| {
                let (shape, values) = create();
                (names.identifier(key, &[]), Value::Weight(shape, values))
            });
        format!("self.{attribute}")
    }

    /// Returns a new state of a node; each method has its own.
    fn state(
        &mut self,
        method: &str,
        node: &Node,
        name: &str,
        shape: Vec<usize>,
        initial: Initial,
    ) -> String {
        let attribute = self
            .names
            .identifier(&format!("{method}_{}_{name}", node.name), &[]);
        let text = format!("self.{attribute}");
        self.states.push(State {
            attribute,
            shape,
            initial,
        });
        text
    }
}

impl Initial {
    /// Returns a buffer of equal rows.
    fn rows(self, rows: usize, shape: &[usize]) -> Value {
        let all = [&[rows], shape].concat();
        let count = all.iter().product();
        match self {
            Self::Zeros => Value::Buffer(all, vec![0.0; count]),
            Self::Floats(row) => Value::Buffer(all, row.repeat(rows)),
            Self::Double(value) => Value::Doubles(all, vec![value; count]),
        }
    }
}

/// Returns a literal.
pub(super) fn number(value: f32) -> String {
    format!("{:?}", f64::from(value))
}

/// Returns an activation.
fn activate(activation: Activation, x: &str, value: &str, body: &mut Vec<String>) -> String {
    match activation {
        Activation::Tanh => format!("torch.tanh({x})"),
        Activation::Sigmoid => format!("torch.sigmoid({x})"),
        Activation::Relu => format!("torch.relu({x})"),
        Activation::LeakyRelu { slope } => format!("torch.leaky_relu({x}, {})", number(slope)),
        Activation::HardTanh => format!("torch.hardtanh({x})"),
        Activation::LeakyHardTanh {
            min,
            max,
            min_slope,
            max_slope,
        } => {
            let [min, max, min_slope, max_slope] = [min, max, min_slope, max_slope].map(number);
            format!(
                "torch.clamp({x}, {min}, {max}) + {min_slope} * torch.clamp_max({x} - {min}, 0.) \
                 + {max_slope} * torch.clamp_min({x} - {max}, 0.)"
            )
        }
        Activation::HardSwish => format!("torch.hardswish({x})"),
        Activation::Softsign => format!("{x} / (torch.abs({x}) + 1.)"),
        Activation::Silu => format!("torch.silu({x})"),
        Activation::FastTanh => {
            body.push(format!("{value}_a = torch.abs({x})"));
            body.push(format!("{value}_s = {value}_a * {value}_a"));
            let (a, s) = (format!("{value}_a"), format!("{value}_s"));
            format!(
                "{x} * (2.45550750702956 * ({a} + 1.) + (0.821226666969744 * {a} + 0.893229853513558) * {s}) \
                 / (({s} + 2.44506634652299) * ({a} + 0.814642734961073 * {s}) + 2.44506634652299)"
            )
        }
        Activation::Softplus => format!("torch.softplus({x})"),
        Activation::Exp => format!("torch.exp({x})"),
        Activation::ExpSigmoid => {
            format!(
                "2. * torch.exp({:?} * torch.log_sigmoid({x})) + 1e-07",
                std::f64::consts::LN_10
            )
        }
    }
}
