//! The networks that captures are made with, in the sizes that players know.
//!
//! A network is written down as the `.nam` format describes it, and the engine's importer makes the graph of it: what is trained
//! here and what another player's file becomes are one and the same.

use anyhow::Context;
use ondes_engine::model::{Model, Op, Tensor, Weights, import};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::nam;

/// What the sum of all layers is scaled by in the classic sizes; it brings random weights to the level of sound.
const HEAD_SCALE: f32 = 0.02;
/// Dilations of the classic arrays.
const STANDARD: [usize; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
const SHORT: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
const LONG: [usize; 13] = [128, 256, 512, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
/// Dilations and kernels of the newer sizes.
const A2_DILATIONS: [usize; 7] = [1, 3, 7, 17, 41, 101, 239];
const A2_HEAD_KERNEL: usize = 16;

/// A network to be trained.
#[derive(Clone, Debug, PartialEq)]
pub enum Architecture {
    /// Arrays of dilated convolutions with skip connections (van den Oord et al., "WaveNet: A generative model for raw audio",
    /// 2016; for amplifiers Wright, Damskägg, Juvela & Välimäki, "Real-time guitar amplifier emulation with deep learning",
    /// Applied Sciences 10(3), 2020).
    WaveNet {
        /// One after another; the head of one seeds the sum of the next.
        arrays: Vec<LayerArray>,
    },
    /// One recurrent layer and a linear one.
    Lstm {
        /// Units.
        hidden: usize,
    },
}

/// Layers of one width.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerArray {
    /// Channels that come in.
    pub inputs: usize,
    /// Channels of each layer.
    pub channels: usize,
    /// Channels that go out by the head.
    pub heads: usize,
    /// Taps of the head, and whether it has a bias.
    pub head: (usize, bool),
    /// Taps and dilation of each layer.
    pub layers: Vec<(usize, usize)>,
    /// The activation, as the format writes it.
    pub activation: Value,
}

/// A tensor of the network, in the order of the format.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// Name in the graph, `NODE.PARAMETER`.
    pub name: String,
    /// Number of values.
    pub count: usize,
    /// Values that are summed for one output: initial weights are smaller the more there are.
    pub fan_in: usize,
}

/// The sizes that can be asked for by name; `lstm-UNITS` goes from 1 to 128.
#[must_use]
pub fn names() -> &'static [&'static str] {
    &["standard", "lite", "feather", "nano", "a2-full", "a2-lite", "lstm-16", "lstm-24", "lstm-40"]
}

impl Architecture {
    /// The network of that name.
    ///
    /// # Errors
    /// When there is none.
    pub fn named(name: &str) -> anyhow::Result<Self> {
        let classic = |first: (usize, &[usize]), second: (usize, &[usize])| {
            let array = |inputs, (channels, dilations): (usize, &[usize]), heads, bias| LayerArray {
                inputs,
                channels,
                heads,
                head: (1, bias),
                layers: dilations.iter().map(|&dilation| (3, dilation)).collect(),
                activation: json!("Tanh"),
            };
            Self::WaveNet { arrays: vec![array(1, first, second.0, false), array(first.0, second, 1, true)] }
        };
        Ok(match name {
            "standard" => classic((16, &STANDARD), (8, &STANDARD)),
            "lite" => classic((12, &SHORT), (6, &LONG)),
            "feather" => classic((8, &SHORT), (4, &LONG)),
            "nano" => classic((4, &SHORT), (2, &LONG)),
            "a2-full" => a2(8),
            "a2-lite" => a2(3),
            _ => {
                let hidden = name.strip_prefix("lstm-").and_then(|units| units.parse().ok());
                let hidden = hidden.filter(|hidden| (1..=128).contains(hidden));
                let hidden =
                    hidden.with_context(|| format!("there is no size `{name}`; there are {}", names().join(", ")))?;
                Self::Lstm { hidden }
            }
        })
    }

    /// The name of the size that a model has, if it is one that [`Architecture::named`] knows.
    #[must_use]
    pub fn of(model: &Model) -> Option<String> {
        let same = |name: &String| {
            let untrained = Self::named(name).and_then(|architecture| architecture.untrained(0, 48_000)).ok();
            untrained.is_some_and(|untrained| untrained.header().methods == model.header().methods)
        };
        let recurrent = model.header().methods.iter().flat_map(|method| &method.nodes).find_map(|node| match node.op {
            Op::Lstm { hidden, .. } => Some(format!("lstm-{hidden}")),
            _ => None,
        });
        match recurrent {
            Some(name) => Some(name).filter(same),
            None => names().iter().map(|&name| name.to_owned()).find(same),
        }
    }

    /// Whether it remembers by a state rather than by what it can see.
    #[must_use]
    pub fn is_recurrent(&self) -> bool {
        matches!(self, Self::Lstm { .. })
    }

    /// The name of the architecture and the version of the format that brought it.
    #[must_use]
    pub fn family(&self) -> (&'static str, &'static str) {
        match self {
            Self::Lstm { .. } => ("LSTM", "0.5.4"),
            Self::WaveNet { arrays } if arrays.iter().all(|array| array.head.0 == 1) => ("WaveNet", "0.5.4"),
            Self::WaveNet { .. } => ("WaveNet", "0.7.0"),
        }
    }

    /// The network as the format describes it.
    #[must_use]
    pub fn config(&self) -> Value {
        match self {
            Self::WaveNet { arrays } => json!({
                "layers": arrays.iter().map(LayerArray::config).collect::<Vec<_>>(),
                "head": null,
                "head_scale": f64::from(HEAD_SCALE),
            }),
            Self::Lstm { hidden } => json!({ "input_size": 1, "hidden_size": hidden, "num_layers": 1 }),
        }
    }

    /// All that is trained. Every other weight of the graph stays zero: the format has no place for it.
    #[must_use]
    pub fn slots(&self) -> Vec<Slot> {
        let slot = |name: String, count: usize, fan_in: usize| Slot { name, count, fan_in };
        let mut slots = Vec::new();
        match self {
            Self::WaveNet { arrays } => {
                for (index, array) in arrays.iter().enumerate() {
                    let (inputs, channels) = (array.inputs, array.channels);
                    slots.push(slot(format!("array{index}.rechannel.weight"), channels * inputs, inputs));
                    for (place, &(kernel, _)) in array.layers.iter().enumerate() {
                        let name = |node: &str| format!("array{index}.layer{place}.{node}");
                        let seen = channels * kernel;
                        slots.push(slot(name("conv.weight"), channels * seen, seen));
                        slots.push(slot(name("conv.bias"), channels, seen));
                        slots.push(slot(name("mixin.weight"), channels, 1));
                        slots.push(slot(name("out.weight"), channels * channels, channels));
                        slots.push(slot(name("out.bias"), channels, channels));
                    }
                    let (kernel, bias) = array.head;
                    let seen = channels * kernel;
                    slots.push(slot(format!("array{index}.head.weight"), array.heads * seen, seen));
                    if bias {
                        slots.push(slot(format!("array{index}.head.bias"), array.heads, seen));
                    }
                }
            }
            Self::Lstm { hidden } => {
                let hidden = *hidden;
                slots.push(slot("layer0.weight_ih".into(), 4 * hidden, hidden));
                slots.push(slot("layer0.weight_hh".into(), 4 * hidden * hidden, hidden));
                slots.push(slot("layer0.bias_ih".into(), 4 * hidden, hidden));
                slots.push(slot("head.weight".into(), hidden, hidden));
                slots.push(slot("head.bias".into(), 1, hidden));
            }
        }
        slots
    }

    /// The number that ends the list of weights of a WaveNet.
    #[must_use]
    pub fn head_scale(&self) -> Option<f32> {
        (!self.is_recurrent()).then_some(HEAD_SCALE)
    }

    /// The network with weights as PyTorch starts its layers, at that rate in Hz.
    ///
    /// # Errors
    /// When the importer refuses it.
    pub fn untrained(&self, seed: u64, sample_rate: u32) -> anyhow::Result<Model> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut weights = Weights::default();
        for slot in self.slots() {
            let bound = 1.0 / (slot.fan_in as f32).sqrt();
            let data: Vec<f32> = (0..slot.count).map(|_| random.random_range(-bound..bound)).collect();
            weights.insert(slot.name, Tensor::new(&[slot.count], data));
        }
        let file = nam::describe(self, &weights, sample_rate, &Value::Null);
        Ok(import::parse(file.to_string().as_bytes())?.model)
    }
}

impl LayerArray {
    fn config(&self) -> Value {
        let mut config = json!({
            "input_size": self.inputs,
            "condition_size": 1,
            "channels": self.channels,
            "dilations": self.layers.iter().map(|layer| layer.1).collect::<Vec<_>>(),
            "activation": self.activation,
        });
        let kernels: Vec<usize> = self.layers.iter().map(|layer| layer.0).collect();
        let (head_kernel, bias) = self.head;
        let fields = if head_kernel == 1 {
            json!({ "kernel_size": kernels[0], "gated": false, "head_size": self.heads, "head_bias": bias })
        } else {
            json!({
                "kernel_sizes": kernels,
                "gating_mode": "none",
                "head": { "out_channels": self.heads, "kernel_size": head_kernel, "bias": bias },
            })
        };
        for (name, value) in fields.as_object().into_iter().flatten() {
            config[name] = value.clone();
        }
        config
    }
}

fn a2(channels: usize) -> Architecture {
    let kernels = [vec![6; 14], vec![15; 2], vec![6; 7]].concat();
    let dilations = [&A2_DILATIONS[..], &A2_DILATIONS, &[1, 13], &A2_DILATIONS].concat();
    Architecture::WaveNet {
        arrays: vec![LayerArray {
            inputs: 1,
            channels,
            heads: 1,
            head: (A2_HEAD_KERNEL, true),
            layers: kernels.into_iter().zip(dilations).collect(),
            activation: json!({ "type": "LeakyReLU", "negative_slope": 0.01 }),
        }],
    }
}
