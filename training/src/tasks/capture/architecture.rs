//! Networks of captures, in the sizes that other players know.
//!
//! A network is defined by its `.nam` configuration, which the engine's importer turns into a
//! graph. A model trained here and an imported file of another player are therefore identical.

use anyhow::Context;
use ondes_engine::model::{Model, Op, Tensor, Weights, import};
use ondes_engine::ops::Lstm;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

/// Output gain of the classic sizes, which brings random weights to the level of sound.
const HEAD_SCALE: f32 = 0.02;
/// Dilations of the classic layer arrays.
const STANDARD: [usize; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
const SHORT: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
const LONG: [usize; 13] = [128, 256, 512, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
/// Dilations and head kernel of the A2 sizes.
const A2_DILATIONS: [usize; 7] = [1, 3, 7, 17, 41, 101, 239];
const A2_HEAD_KERNEL: usize = 16;

/// Network of a capture.
#[derive(Clone, Debug, PartialEq)]
pub enum Architecture {
    /// Arrays of dilated convolutions with skip connections (van den Oord et al., "WaveNet: A
    /// generative model for raw audio", 2016; for amplifiers Wright, Damskägg, Juvela & Välimäki,
    /// "Real-time guitar amplifier emulation with deep learning", Applied Sciences 10(3), 2020).
    WaveNet {
        /// Layer arrays in series; the head of one is the initial sum of the next.
        arrays: Vec<LayerArray>,
    },
    /// Recurrent layer followed by a linear layer.
    Lstm {
        /// Number of units.
        hidden: usize,
    },
    /// Networks of several sizes, the smallest first, that are trained in one run and share a file.
    Packed(Vec<Self>),
}

/// Layers of equal width.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerArray {
    /// Input channels.
    pub inputs: usize,
    /// Channels of each layer.
    pub channels: usize,
    /// Output channels of the head.
    pub heads: usize,
    /// Kernel size of the head, and whether it has a bias.
    pub head: (usize, bool),
    /// Kernel size and dilation of each layer.
    pub layers: Vec<(usize, usize)>,
    /// Activation in the notation of the format.
    pub activation: Value,
}

/// Trained tensor, in the order of the format.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightSlot {
    /// Name in the graph, `NODE.PARAMETER`.
    pub name: String,
    /// Number of values.
    pub count: usize,
    /// Number of inputs that are summed per output; sets the range of initial weights.
    pub fan_in: usize,
}

/// Returns the sizes that [`Architecture::named`] knows; `lstm-UNITS` also takes other numbers from
/// 1 to 128.
#[must_use]
pub fn names() -> &'static [&'static str] {
    &[
        "standard", "lite", "feather", "nano", "a2-full", "a2-lite", "lstm-16", "lstm-24",
        "lstm-40",
    ]
}

/// Returns the names of several sizes in one file.
#[must_use]
pub fn packed_names() -> &'static [&'static str] {
    &["a2"]
}

impl Architecture {
    /// Returns the network of that name.
    ///
    /// # Errors
    /// Returns an error that lists the names if there is none.
    pub fn named(name: &str) -> anyhow::Result<Self> {
        let classic = |first: (usize, &[usize]), second: (usize, &[usize])| {
            let array =
                |inputs, (channels, dilations): (usize, &[usize]), heads, bias| LayerArray {
                    inputs,
                    channels,
                    heads,
                    head: (1, bias),
                    layers: dilations.iter().map(|&dilation| (3, dilation)).collect(),
                    activation: json!("Tanh"),
                };
            Self::WaveNet {
                arrays: vec![
                    array(1, first, second.0, false),
                    array(first.0, second, 1, true),
                ],
            }
        };
        Ok(match name {
            "standard" => classic((16, &STANDARD), (8, &STANDARD)),
            "lite" => classic((12, &SHORT), (6, &LONG)),
            "feather" => classic((8, &SHORT), (4, &LONG)),
            "nano" => classic((4, &SHORT), (2, &LONG)),
            "a2-full" => a2(8),
            "a2-lite" => a2(3),
            "a2" => Self::Packed(vec![a2(3), a2(8)]),
            _ => {
                let hidden = name
                    .strip_prefix("lstm-")
                    .and_then(|units| units.parse().ok());
                let hidden = hidden.filter(|hidden| (1..=128).contains(hidden));
                let known = || [names(), packed_names()].concat().join(", ");
                let hidden = hidden
                    .with_context(|| format!("unknown size {name:?}; available: {}", known()))?;
                Self::Lstm { hidden }
            }
        })
    }

    /// Returns the name of a model's size; `None` if [`Architecture::named`] knows no such network.
    #[must_use]
    pub fn recognize(model: &Model) -> Option<String> {
        let same = |name: &String| {
            let untrained = Self::named(name)
                .and_then(|architecture| architecture.untrained(0, 48_000))
                .ok();
            untrained.is_some_and(|untrained| untrained.header().methods == model.header().methods)
        };
        let recurrent = model
            .header()
            .methods
            .iter()
            .flat_map(|method| &method.nodes)
            .find_map(|node| match node.op {
                Op::Lstm(Lstm { hidden, .. }) => Some(format!("lstm-{hidden}")),
                _ => None,
            });
        match recurrent {
            Some(name) => Some(name).filter(same),
            None => names()
                .iter()
                .chain(packed_names())
                .map(|&name| name.to_owned())
                .find(same),
        }
    }

    /// Tells whether the network is recurrent.
    #[must_use]
    pub fn is_recurrent(&self) -> bool {
        match self {
            Self::WaveNet { .. } => false,
            Self::Lstm { .. } => true,
            Self::Packed(sizes) => sizes.iter().any(Self::is_recurrent),
        }
    }

    /// Returns the sizes with the prefixes of their nodes, the full one, which has none, last.
    fn sizes(&self) -> Vec<(String, &Self)> {
        let Self::Packed(sizes) = self else {
            return vec![(String::new(), self)];
        };
        let prefix = |index: usize| match (index + 1 == sizes.len(), sizes.len()) {
            (true, _) => String::new(),
            (false, 2) => "lite.".to_owned(),
            (false, _) => format!("size{}.", index + 1),
        };
        sizes
            .iter()
            .enumerate()
            .map(|(index, size)| (prefix(index), size))
            .collect()
    }

    /// Returns the name of the architecture in the format, and the format version that introduced
    /// it.
    #[must_use]
    pub fn family(&self) -> (&'static str, &'static str) {
        match self {
            Self::Lstm { .. } => ("LSTM", "0.5.4"),
            Self::WaveNet { arrays } if arrays.iter().all(|array| array.head.0 == 1) => {
                ("WaveNet", "0.5.4")
            }
            Self::WaveNet { .. } => ("WaveNet", "0.7.0"),
            Self::Packed(_) => ("SlimmableContainer", "0.7.0"),
        }
    }

    /// Returns the network's configuration in the notation of the format; that of several sizes
    /// without weights.
    #[must_use]
    pub fn config(&self) -> Value {
        match self {
            Self::WaveNet { arrays } => json!({
                "layers": arrays.iter().map(LayerArray::config).collect::<Vec<_>>(),
                "head": null,
                "head_scale": f64::from(HEAD_SCALE),
            }),
            Self::Lstm { hidden } => {
                json!({ "input_size": 1, "hidden_size": hidden, "num_layers": 1 })
            }
            Self::Packed(sizes) => {
                json!({ "submodels": sizes.iter().map(Self::config).collect::<Vec<_>>() })
            }
        }
    }

    /// Returns all trained tensors. Other weights of the graph stay zero, since the format does not
    /// store them.
    #[must_use]
    pub fn slots(&self) -> Vec<WeightSlot> {
        let slot = |name: String, count: usize, fan_in: usize| WeightSlot {
            name,
            count,
            fan_in,
        };
        let mut slots = Vec::new();
        match self {
            Self::WaveNet { arrays } => {
                for (index, array) in arrays.iter().enumerate() {
                    let (inputs, channels) = (array.inputs, array.channels);
                    slots.push(slot(
                        format!("array{index}.rechannel.weight"),
                        channels * inputs,
                        inputs,
                    ));
                    for (layer, &(kernel, _)) in array.layers.iter().enumerate() {
                        let name = |node: &str| format!("array{index}.layer{layer}.{node}");
                        let fan_in = channels * kernel;
                        slots.push(slot(name("conv.weight"), channels * fan_in, fan_in));
                        slots.push(slot(name("conv.bias"), channels, fan_in));
                        slots.push(slot(name("mixin.weight"), channels, 1));
                        slots.push(slot(name("out.weight"), channels * channels, channels));
                        slots.push(slot(name("out.bias"), channels, channels));
                    }
                    let (kernel, bias) = array.head;
                    let fan_in = channels * kernel;
                    slots.push(slot(
                        format!("array{index}.head.weight"),
                        array.heads * fan_in,
                        fan_in,
                    ));
                    if bias {
                        slots.push(slot(format!("array{index}.head.bias"), array.heads, fan_in));
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
            Self::Packed(_) => {
                for (prefix, size) in self.sizes() {
                    slots.extend(size.slots().into_iter().map(|slot| WeightSlot {
                        name: format!("{prefix}{}", slot.name),
                        ..slot
                    }));
                }
            }
        }
        slots
    }

    /// Returns the last value in the weight list of a WaveNet.
    #[must_use]
    pub fn head_scale(&self) -> Option<f32> {
        matches!(self, Self::WaveNet { .. }).then_some(HEAD_SCALE)
    }

    /// Returns the content of a `.nam` file. Weights that the architecture does not name are left
    /// out.
    #[must_use]
    pub fn nam_file(&self, weights: &Weights, sample_rate: u32, metadata: &Value) -> Value {
        let mut file = self.nam_model(weights, "", sample_rate);
        file["metadata"] = metadata.clone();
        let Self::Packed(sizes) = self else {
            return file;
        };
        let submodels: Vec<Value> = self
            .sizes()
            .into_iter()
            .enumerate()
            .map(|(index, (prefix, size))| {
                let up_to = (index + 1) as f64 / sizes.len() as f64;
                json!({ "max_value": up_to, "model": size.nam_model(weights, &prefix, sample_rate) })
            })
            .collect();
        file["config"] = json!({ "submodels": submodels });
        file
    }

    /// Returns a model in the notation of the format; the names of its weights have a prefix.
    fn nam_model(&self, weights: &Weights, prefix: &str, sample_rate: u32) -> Value {
        let (name, version) = self.family();
        // As doubles, floats survive the way through JSON exactly.
        let weights: Vec<f64> = self
            .weight_list(weights, prefix)
            .into_iter()
            .map(f64::from)
            .collect();
        json!({
            "version": version,
            "architecture": name,
            "config": self.config(),
            "sample_rate": sample_rate,
            "weights": weights,
        })
    }

    /// Returns all weights in the order of the format; none of several sizes, which have lists of
    /// their own.
    fn weight_list(&self, weights: &Weights, prefix: &str) -> Vec<f32> {
        let values = |name: &str| {
            let found = weights
                .iter()
                .find(|(other, _)| other.strip_prefix(prefix) == Some(name));
            found.map_or_else(Vec::new, |(_, tensor)| tensor.floats().into_owned())
        };
        match self {
            Self::WaveNet { .. } => {
                let mut list: Vec<f32> = self
                    .slots()
                    .iter()
                    .flat_map(|slot| values(&slot.name))
                    .collect();
                list.extend(self.head_scale());
                list
            }
            Self::Lstm { hidden } => {
                // Each row holds the input weight, then the state weights; the initial states,
                // zeros, follow the bias.
                let [from_input, from_state] = ["layer0.weight_ih", "layer0.weight_hh"].map(values);
                let mut list = Vec::new();
                for (input, state) in from_input.iter().zip(from_state.chunks_exact(*hidden)) {
                    list.push(*input);
                    list.extend(state);
                }
                list.extend(values("layer0.bias_ih"));
                list.extend(std::iter::repeat_n(0.0, 2 * hidden));
                list.extend(["head.weight", "head.bias"].into_iter().flat_map(values));
                list
            }
            Self::Packed(_) => Vec::new(),
        }
    }

    /// Creates an untrained model at a sample rate in Hz, with initial weights as in PyTorch.
    ///
    /// # Errors
    /// Returns an error if the importer rejects the network.
    pub fn untrained(&self, seed: u64, sample_rate: u32) -> anyhow::Result<Model> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut weights = Weights::default();
        for slot in self.slots() {
            let bound = 1.0 / (slot.fan_in as f32).sqrt();
            let data: Vec<f32> = (0..slot.count)
                .map(|_| random.random_range(-bound..bound))
                .collect();
            weights.insert(slot.name, Tensor::new(&[slot.count], data));
        }
        let file = self.nam_file(&weights, sample_rate, &Value::Null);
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
