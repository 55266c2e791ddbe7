//! Which channels hang together: what must go when one of them goes.
//!
//! A channel of a value is often not a layer's own. A residual connection adds it to others, a normalisation passes it on, a
//! gate pairs it with another half, a recurrent layer reads it again. [`Channels`] joins all of these into *classes*; a class
//! goes as a whole or stays. Classes that touch the same values are a *family*: within it, one may go instead of another.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use ondes_engine::model::{ModelError, Header, Node, Op, graph::Shapes};

/// The channels of a node that has weights, as those see them; methods that share the weights share these.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Side {
    Input(String),
    Output(String),
}

/// Classes of which one may go instead of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// Methods and values that each class has channels of, as often as it has; a narrower model has the same.
    pub values: Vec<(usize, usize)>,
    /// The channels that stand for the classes.
    pub classes: Vec<usize>,
}

/// All channels of a model, joined into classes.
pub struct Channels {
    /// The channel that stands for the class, or one nearer to it.
    parents: Vec<usize>,
    /// By the channel that stands for a class: it must stay.
    pinned: Vec<bool>,
    /// `[method][value]`: where the channels of a value begin, and how many there are.
    values: Vec<Vec<Range<usize>>>,
    sides: HashMap<Side, Range<usize>>,
}

impl Channels {
    /// Follows all methods of a model.
    ///
    /// # Errors
    /// [`ModelError`] where a method does not fit.
    pub fn of(header: &Header) -> Result<Self, ModelError> {
        let mut channels = Self { parents: Vec::new(), pinned: Vec::new(), values: Vec::new(), sides: HashMap::new() };
        for method in &header.methods {
            let shapes = method.infer()?;
            let values: Vec<Range<usize>> = shapes.values.iter().map(|shape| channels.add(shape.channels)).collect();
            let ports = 0..method.inputs.len();
            ports.chain(shapes.shown.iter().copied()).for_each(|value| channels.pin(values[value].clone()));
            for (index, node) in method.nodes.iter().enumerate() {
                channels.join_node(node, &shapes, &values, index, method.inputs.len());
            }
            channels.values.push(values);
        }
        Ok(channels)
    }

    fn add(&mut self, count: usize) -> Range<usize> {
        let first = self.parents.len();
        self.parents.extend(first..first + count);
        self.pinned.extend(std::iter::repeat_n(false, count));
        first..first + count
    }

    /// How many channels there are.
    #[must_use]
    pub(super) fn len(&self) -> usize {
        self.parents.len()
    }

    /// The channel that stands for the class of a channel.
    #[must_use]
    pub fn class(&self, mut channel: usize) -> usize {
        while self.parents[channel] != channel {
            channel = self.parents[channel];
        }
        channel
    }

    /// Whether the class must stay.
    #[must_use]
    pub fn is_pinned(&self, class: usize) -> bool {
        self.pinned[class]
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.class(a), self.class(b));
        let (low, high) = (a.min(b), a.max(b));
        self.parents[high] = low;
        self.pinned[low] |= self.pinned[high];
    }

    fn join_all(&mut self, a: Range<usize>, b: Range<usize>) {
        debug_assert_eq!(a.len(), b.len(), "channels are joined one by one");
        a.zip(b).for_each(|(a, b)| self.join(a, b));
    }

    fn pin(&mut self, channels: Range<usize>) {
        for channel in channels {
            let class = self.class(channel);
            self.pinned[class] = true;
        }
    }

    fn side(&mut self, side: Side, like: &Range<usize>) {
        match self.sides.get(&side).cloned() {
            Some(there) => self.join_all(there, like.clone()),
            None => {
                self.sides.insert(side, like.clone());
            }
        }
    }

    fn join_node(&mut self, node: &Node, shapes: &Shapes, values: &[Range<usize>], index: usize, ports: usize) {
        let out = values[ports + index].clone();
        let inputs: Vec<Range<usize>> = shapes.reads[index].iter().map(|&value| values[value].clone()).collect();
        let x = inputs[0].clone();
        let half = |channels: &Range<usize>, second: bool| {
            let middle = channels.start + channels.len() / 2;
            if second { middle..channels.end } else { channels.start..middle }
        };
        match node.op {
            Op::Linear { .. } | Op::ConvTranspose1d { .. } | Op::Gru { .. } | Op::Lstm { .. } => {}
            Op::Conv1d { groups: 1, .. } => {}
            // A group goes as a whole, with all that it reads.
            Op::Conv1d { groups, .. } => {
                for group in 0..groups {
                    let part = |all: &Range<usize>| {
                        let length = all.len() / groups;
                        all.start + group * length..all.start + (group + 1) * length
                    };
                    let first = part(&x).start;
                    part(&x).chain(part(&out)).for_each(|channel| self.join(first, channel));
                }
            }
            Op::Gate => {
                self.join_all(out.clone(), half(&x, false));
                self.join_all(out.clone(), half(&x, true));
            }
            Op::Film => {
                self.join_all(out.clone(), x.clone());
                self.join_all(out.clone(), half(&inputs[1], false));
                self.join_all(out.clone(), half(&inputs[1], true));
            }
            Op::Add => inputs.iter().for_each(|input| self.join_all(out.clone(), input.clone())),
            Op::Multiply => {
                self.join_all(out.clone(), x.clone());
                if inputs[1].len() == x.len() {
                    self.join_all(out.clone(), inputs[1].clone());
                } else {
                    self.pin(inputs[1].clone());
                }
            }
            Op::Concat => {
                let mut at = out.start;
                for input in &inputs {
                    self.join_all(at..at + input.len(), input.clone());
                    at += input.len();
                }
            }
            Op::Split { start, channels } => {
                self.join_all(out.clone(), x.start + start..x.start + start + channels);
            }
            // The place of a partial or of a band says at what frequency it sounds, that of a phase when.
            Op::Harmonic
            | Op::FilteredNoise
            | Op::ShapedNoise { .. }
            | Op::Noise { .. }
            | Op::Interleave { .. }
            | Op::FlipOddBands
            | Op::Convolve { .. } => {
                inputs.iter().chain([&out]).for_each(|channels| self.pin(channels.clone()));
            }
            // Channel `c` of the output is made of channel `c` of the input.
            Op::Activation(_)
            | Op::Prelu { .. }
            | Op::Snake
            | Op::LayerNorm
            | Op::Affine { .. }
            | Op::Delay { .. }
            | Op::Latency { .. } => self.join_all(out.clone(), x.clone()),
        }
        if !node.op.weights(&[]).is_empty() {
            self.side(Side::Input(node.name.clone()), &x);
            self.side(Side::Output(node.name.clone()), &out);
        }
    }

    /// The channels of a value of a method.
    #[must_use]
    pub fn value(&self, method: usize, value: usize) -> Range<usize> {
        self.values[method][value].clone()
    }

    /// The families of all that may go. The one class of a family that has no other is not among them: it must stay.
    #[must_use]
    pub fn families(&self) -> Vec<Family> {
        // The values that a class touches, each as often as it does.
        let mut touched: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
        for (method, values) in self.values.iter().enumerate() {
            for (value, channels) in values.iter().enumerate() {
                for channel in channels.clone() {
                    touched.entry(self.class(channel)).or_default().push((method, value));
                }
            }
        }
        let mut families: BTreeMap<Vec<(usize, usize)>, Vec<usize>> = BTreeMap::new();
        for (class, values) in touched {
            if !self.is_pinned(class) {
                families.entry(values).or_default().push(class);
            }
        }
        let families = families.into_iter().map(|(values, classes)| Family { values, classes });
        families.filter(|family| family.classes.len() > 1).collect()
    }
}
