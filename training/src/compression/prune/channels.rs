//! Dependencies between channels: which must be removed together.
//!
//! Residual connections add channels of several layers, normalisations pass them on, gates pair
//! them, recurrent layers read their own output. [`ChannelClasses`] joins such channels into
//! *classes* that are kept or removed as a whole. Classes with channels in the same values form a
//! *family*, of which any may be removed.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use ondes_engine::model::{Header, ModelError, Node, graph::Shapes};
use ondes_engine::ops::ChannelLinks;

/// Input or output channels of a node with weights, by its name; methods may share nodes by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum WeightSide {
    Input(String),
    Output(String),
}

/// Interchangeable classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// Method and value of each channel of a class, sorted. Identifies the family in narrower
    /// models.
    pub values: Vec<(usize, usize)>,
    /// Representative channels of the classes.
    pub classes: Vec<usize>,
}

/// All channels of a model, joined into classes (union–find).
pub struct ChannelClasses {
    /// Parent of each channel; the root represents the class.
    parents: Vec<usize>,
    /// By root: the class must be kept.
    pinned: Vec<bool>,
    /// `[method][value]`: channels of a value.
    values: Vec<Vec<Range<usize>>>,
    sides: HashMap<WeightSide, Range<usize>>,
}

impl ChannelClasses {
    /// Joins the channels of all methods of a model.
    ///
    /// # Errors
    /// Returns [`ModelError`] if a method is invalid.
    pub fn new(header: &Header) -> Result<Self, ModelError> {
        let mut channels = Self {
            parents: Vec::new(),
            pinned: Vec::new(),
            values: Vec::new(),
            sides: HashMap::new(),
        };
        for method in &header.methods {
            let shapes = method.infer()?;
            let values: Vec<Range<usize>> = shapes
                .values
                .iter()
                .map(|shape| channels.add(shape.channels))
                .collect();
            let ports = 0..method.inputs.len();
            ports
                .chain(shapes.shown.iter().copied())
                .for_each(|value| channels.pin(values[value].clone()));
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

    /// Returns the number of channels.
    #[must_use]
    pub(super) fn len(&self) -> usize {
        self.parents.len()
    }

    /// Returns the channel that represents the class of a channel.
    #[must_use]
    pub fn class(&self, mut channel: usize) -> usize {
        while self.parents[channel] != channel {
            channel = self.parents[channel];
        }
        channel
    }

    /// Tells whether a class must be kept.
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

    fn side(&mut self, side: WeightSide, like: &Range<usize>) {
        match self.sides.get(&side).cloned() {
            Some(known) => self.join_all(known, like.clone()),
            None => {
                self.sides.insert(side, like.clone());
            }
        }
    }

    fn join_node(
        &mut self,
        node: &Node,
        shapes: &Shapes,
        values: &[Range<usize>],
        index: usize,
        ports: usize,
    ) {
        let out = values[ports + index].clone();
        let inputs: Vec<Range<usize>> = shapes.reads[index]
            .iter()
            .map(|&value| values[value].clone())
            .collect();
        let x = inputs[0].clone();
        let half = |channels: &Range<usize>, second: bool| {
            let middle = channels.start + channels.len() / 2;
            if second {
                middle..channels.end
            } else {
                channels.start..middle
            }
        };
        match node.op.channel_links() {
            ChannelLinks::Independent => {}
            ChannelLinks::Groups(groups) => {
                for group in 0..groups {
                    let part = |all: &Range<usize>| {
                        let length = all.len() / groups;
                        all.start + group * length..all.start + (group + 1) * length
                    };
                    let first = part(&x).start;
                    part(&x)
                        .chain(part(&out))
                        .for_each(|channel| self.join(first, channel));
                }
            }
            ChannelLinks::Same => inputs
                .iter()
                .for_each(|input| self.join_all(out.clone(), input.clone())),
            ChannelLinks::Halves => {
                self.join_all(out.clone(), half(&x, false));
                self.join_all(out.clone(), half(&x, true));
            }
            ChannelLinks::Modulated => {
                self.join_all(out.clone(), x.clone());
                self.join_all(out.clone(), half(&inputs[1], false));
                self.join_all(out.clone(), half(&inputs[1], true));
            }
            ChannelLinks::Product => {
                self.join_all(out.clone(), x.clone());
                if inputs[1].len() == x.len() {
                    self.join_all(out.clone(), inputs[1].clone());
                } else {
                    self.pin(inputs[1].clone());
                }
            }
            ChannelLinks::Concatenated => {
                let mut at = out.start;
                for input in &inputs {
                    self.join_all(at..at + input.len(), input.clone());
                    at += input.len();
                }
            }
            ChannelLinks::Range { start } => {
                let start = x.start + start;
                self.join_all(out.clone(), start..start + out.len());
            }
            ChannelLinks::Fixed => inputs
                .iter()
                .chain([&out])
                .for_each(|channels| self.pin(channels.clone())),
        }
        if !node.op.weights(&[]).is_empty() {
            self.side(WeightSide::Input(node.name.clone()), &x);
            self.side(WeightSide::Output(node.name.clone()), &out);
        }
    }

    /// Returns the channels of a value of a method.
    #[must_use]
    pub fn value(&self, method: usize, value: usize) -> Range<usize> {
        self.values[method][value].clone()
    }

    /// Returns the families of removable classes. A class without another of its family must be
    /// kept and is left out.
    #[must_use]
    pub fn families(&self) -> Vec<Family> {
        // Method and value of each channel of a class.
        let mut by_class: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
        for (method, values) in self.values.iter().enumerate() {
            for (value, channels) in values.iter().enumerate() {
                for channel in channels.clone() {
                    by_class
                        .entry(self.class(channel))
                        .or_default()
                        .push((method, value));
                }
            }
        }
        let mut families: BTreeMap<Vec<(usize, usize)>, Vec<usize>> = BTreeMap::new();
        for (class, values) in by_class {
            if !self.is_pinned(class) {
                families.entry(values).or_default().push(class);
            }
        }
        let families = families
            .into_iter()
            .map(|(values, classes)| Family { values, classes });
        families.filter(|family| family.classes.len() > 1).collect()
    }
}
