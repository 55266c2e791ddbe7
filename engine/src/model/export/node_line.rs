//! What the nodes of an exported module are written with: their lines, and the weights, states and
//! functions that these need.
//!
//! Values are `[batch, channels, frames]`. A state has more rows than a batch; a call reads and
//! replaces those of its batch in place, so that hosts can load and save the rows of their streams.

use std::collections::{BTreeMap, BTreeSet};

use super::torchscript::{Class, Value};
use crate::model::{Shape, Weights};

/// Function with its signature and the lines of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Function {
    pub signature: &'static str,
    pub body: &'static str,
}

impl Function {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        self.signature.split('(').next().unwrap_or_default()
    }

    /// Adds the function to a module.
    pub fn add_to(self, class: Class) -> Class {
        let lines: Vec<&str> = self.body.lines().collect();
        class.method(self.signature, &lines)
    }
}

/// Functions that several ops call.
const FUNCTIONS: [Function; 4] = [WITH_PAST, ROWS, SET_ROWS, SPREAD];

/// Returns the input behind the frames before it, and keeps as many for the next call.
pub(crate) const WITH_PAST: Function = Function {
    signature: "with_past(x: Tensor, state: Tensor) -> Tensor",
    body: "\
past = torch.slice(state, 0, 0, torch.size(x, 0))
whole = torch.cat([past, x], 2)
past = torch.copy_(past, torch.slice(whole, 2, torch.size(x, 2)))
return whole",
};

/// Returns the rows of a recurrent state, `[1, batch, hidden]`.
pub(crate) const ROWS: Function = Function {
    signature: "rows(x: Tensor, state: Tensor) -> Tensor",
    body: "\
rows = torch.slice(state, 0, 0, torch.size(x, 0))
return torch.contiguous(torch.transpose(rows, 0, 1))",
};

/// Replaces the rows of a recurrent state by `[1, batch, hidden]`.
pub(crate) const SET_ROWS: Function = Function {
    signature: "set_rows(state: Tensor, rows: Tensor) -> Tensor",
    body: "return torch.copy_(torch.slice(state, 0, 0, torch.size(rows, 1)), torch.transpose(rows, 0, 1))",
};

/// Sets all rows of a state to the first.
const SPREAD: Function = Function {
    signature: "spread(state: Tensor) -> Tensor",
    body: "return torch.copy_(state, torch.clone(torch.slice(state, 0, 0, 1)))",
};

/// Most rows of a state: those that exports of RAVE have.
const MOST_ROWS: usize = 64;
/// Most values of all states, 256 MiB; large models have fewer rows.
const STATE_VALUES: usize = 64 << 20;

/// Writes the lines of nodes, and collects what they need: weights, states and functions.
pub(crate) struct NodeWriter<'a> {
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

pub(crate) enum Initial {
    Zeros,
    Floats(Vec<f32>),
    Double(f64),
}

/// Names that are taken in a module.
pub(crate) struct Names(BTreeSet<String>);

impl Names {
    /// Takes the names of all functions, and `others`.
    pub fn new(functions: &[Function], others: &[&str]) -> Self {
        let functions = FUNCTIONS.iter().chain(functions).map(|one| one.name());
        Self(
            functions
                .chain(others.iter().copied())
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
}

impl NodeWriter<'_> {
    fn call(&mut self, function: Function, arguments: &[&str]) -> String {
        self.functions.insert(function);
        format!("self.{}({})", function.name(), arguments.join(", "))
    }
}

/// A node as a line of TorchScript, with what it may ask for and add before.
pub(crate) struct NodeLine<'l, 'w> {
    pub writer: &'l mut NodeWriter<'w>,
    /// Names of the method and of the node.
    pub method: &'l str,
    pub node: &'l str,
    /// Variables that it reads, and their shapes.
    pub values: &'l [&'l str],
    pub shapes: &'l [Shape],
    /// Free name for further variables.
    pub value: &'l str,
    /// Lines so far.
    pub body: &'l mut Vec<String>,
}

impl<'l> NodeLine<'l, '_> {
    /// Returns the first variable that is read.
    pub fn x(&self) -> &'l str {
        self.values[0]
    }

    /// Returns the model's sample rate, Hz.
    pub fn sample_rate(&self) -> f32 {
        self.writer.sample_rate as f32
    }

    /// Adds a line that names an expression; returns the name, which ends in `name`.
    pub fn variable(&mut self, name: &str, expression: &str) -> String {
        let variable = format!("{}_{name}", self.value);
        self.body.push(format!("{variable} = {expression}"));
        variable
    }

    /// Adds a line that evaluates an expression for its effect.
    pub fn ignore(&mut self, expression: &str) {
        self.body.push(format!("_ = {expression}"));
    }

    /// Returns the first input behind its last `frames` frames.
    pub fn with_past(&mut self, frames: usize) -> String {
        self.with_past_of(0, "past", frames)
    }

    /// Returns an input behind its last `frames` frames, which are kept in `state`.
    pub fn with_past_of(&mut self, input: usize, state: &str, frames: usize) -> String {
        let x = self.values[input];
        if frames == 0 {
            return x.to_owned();
        }
        let shape = vec![self.shapes[input].channels, frames];
        let state = self.state(state, shape, Initial::Zeros);
        self.call(WITH_PAST, &[x, &state])
    }

    pub fn call(&mut self, function: Function, arguments: &[&str]) -> String {
        self.writer.call(function, arguments)
    }

    /// Adds a function that others call.
    pub fn need(&mut self, function: Function) {
        self.writer.functions.insert(function);
    }

    /// Returns weights of the node.
    pub fn parameters<const N: usize>(&mut self, names: [&str; N]) -> [String; N] {
        let weights = self.writer.weights;
        names.map(|name| {
            let weight = weights.get(self.node, name);
            self.tensor(name, || {
                (weight.shape().to_vec(), weight.floats().into_owned())
            })
        })
    }

    /// Returns a tensor of the node, which the methods share.
    pub fn tensor(
        &mut self,
        name: &str,
        create: impl FnOnce() -> (Vec<usize>, Vec<f32>),
    ) -> String {
        let names = &mut self.writer.names;
        let (attribute, _) = self
            .writer
            .tensors
            .entry(format!("{}.{name}", self.node))
            .or_insert_with_key(|key| {
                let (shape, values) = create();
                (names.identifier(key, &[]), Value::Weight(shape, values))
            });
        format!("self.{attribute}")
    }

    /// Returns a new state of the node, a row of the given shape for each stream; each method has
    /// its own.
    pub fn state(&mut self, name: &str, shape: Vec<usize>, initial: Initial) -> String {
        let name = format!("{}_{}_{name}", self.method, self.node);
        let attribute = self.writer.names.identifier(&name, &[]);
        let text = format!("self.{attribute}");
        self.writer.states.push(State {
            attribute,
            shape,
            initial,
        });
        text
    }

    /// Returns a new state `[1, hidden]` that begins with the weight of its name if there is one,
    /// else with zeros.
    pub fn initial_state(&mut self, name: &str, hidden: usize, has_weight: bool) -> String {
        let initial = if has_weight {
            let weight = self.writer.weights.get(self.node, name);
            Initial::Floats(weight.floats().into_owned())
        } else {
            Initial::Zeros
        };
        self.state(name, vec![1, hidden], initial)
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
pub(crate) fn number(value: f32) -> String {
    format!("{:?}", f64::from(value))
}
