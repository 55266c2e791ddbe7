//! Random files of every format, with every field.

use ondes_tests::seeded_rng;
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use serde_json::{Map, Value, json};

/// Input size, channels, head size, and kernel and dilation of each layer.
pub type PlainArray = (usize, usize, usize, Vec<(usize, usize)>);

/// Generator of random files.
pub struct Generator {
    random: Xoshiro256PlusPlus,
}

/// Weights, in the order of the file.
type Flat = Vec<f32>;

impl Generator {
    pub fn new(seed: u64) -> Self {
        Self {
            random: seeded_rng(seed),
        }
    }

    fn chance(&mut self, probability: f64) -> bool {
        self.random.random_bool(probability)
    }

    fn among<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.random.random_range(0..choices.len())].clone()
    }

    /// Adds one weight.
    pub fn weight(&mut self) -> f32 {
        self.random.random_range(-0.4..0.4)
    }

    fn weights(&mut self, flat: &mut Flat, count: usize, bound: f32) {
        flat.extend((0..count).map(|_| self.random.random_range(-bound..bound)));
    }

    fn row(&mut self, count: usize, bound: f32) -> Value {
        let mut flat = Flat::new();
        self.weights(&mut flat, count, bound);
        json!(flat)
    }

    fn rows(&mut self, rows: usize, columns: usize, bound: f32) -> Value {
        (0..rows).map(|_| self.row(columns, bound)).collect()
    }

    /// Returns an even number of channels.
    fn channels(&mut self) -> usize {
        self.among(&[2, 4, 6])
    }

    /// Returns a random activation for `channels` channels.
    fn activation(&mut self, channels: usize) -> Value {
        let names = [
            "Tanh",
            "Hardtanh",
            "Fasttanh",
            "ReLU",
            "LeakyReLU",
            "PReLU",
            "Sigmoid",
            "SiLU",
            "Hardswish",
            "Softsign",
        ];
        match self.random.random_range(0..8) {
            0 => json!({ "type": "LeakyReLU", "negative_slope": 0.2 }),
            1 => json!({ "type": "PReLU", "negative_slope": 0.3 }),
            2 => json!({ "type": "PReLU", "negative_slopes": self.row(channels, 0.5) }),
            3 => {
                json!({ "type": "LeakyHardtanh", "min_val": -0.4, "max_val": 0.5, "min_slope": 0.2, "max_slope": 0.1 })
            }
            4 => json!({ "type": "Hardtanh", "min_val": -0.3, "max_val": 0.6 }),
            5 => json!({ "type": self.among(&names) }),
            _ => json!(self.among(&names)),
        }
    }

    fn root(architecture: &str, config: Value, weights: &Flat) -> Value {
        json!({ "version": "0.5.4", "architecture": architecture, "config": config, "weights": weights, "sample_rate": 48_000 })
    }

    /// Returns a WaveNet with all fields random; nested ones have several output channels.
    pub fn wavenet(&mut self, outputs: usize) -> Value {
        let mut flat = Flat::new();
        let inner = outputs == 1 && self.chance(0.3);
        let condition = if inner { 2 } else { 1 };
        let condition_dsp = if inner {
            self.wavenet(condition)
        } else {
            Value::Null
        };
        let arrays = if self.chance(0.5) { 2 } else { 1 };
        let post = outputs == 1 && self.chance(0.4);
        // What the second array's layers add to is what the first one's head makes.
        let [first, second] = [self.channels(), self.channels()];
        let mut layers = Vec::new();
        let mut input = 1;
        for array in 0..arrays {
            let output = if array == 0 { None } else { Some(second) };
            let head = match (array + 1 == arrays, post) {
                (false, _) => second,
                (true, true) => 3,
                (true, false) => outputs,
            };
            let channels = if array == 0 { first } else { self.channels() };
            layers.push(self.array(&mut flat, [input, condition, channels, head], output));
            input = channels;
        }
        let post = if post {
            let sizes = [3, 2];
            self.weights(&mut flat, 3 * 4 * sizes[0] + 4, 0.5);
            self.weights(&mut flat, 4 * sizes[1] + 1, 0.5);
            json!({ "channels": 4, "out_channels": 1, "kernel_sizes": sizes, "activation": self.activation(1) })
        } else {
            Value::Null
        };
        // A PReLU of one channel is one of all.
        flat.push(0.7);
        let config = json!({ "layers": layers, "head": post, "head_scale": 0.02, "in_channels": 1, "condition_dsp": condition_dsp });
        Self::root("WaveNet", config, &flat)
    }

    /// Returns a layer array; `heard` is the number of channels that its layers give the head.
    fn array(
        &mut self,
        flat: &mut Flat,
        [input, condition, channels, head]: [usize; 4],
        output: Option<usize>,
    ) -> Value {
        let mut array = Map::new();
        let mut put = |name: &str, value: Value| drop(array.insert(name.into(), value));
        let layer1x1 = self.chance(0.8);
        let bottleneck = if layer1x1 && self.chance(0.4) {
            self.channels()
        } else {
            channels
        };
        let head1x1 = match output {
            Some(output) if output != bottleneck => Some(output),
            Some(_) => None,
            None => self.chance(0.3).then(|| self.channels()),
        };
        let to_head = head1x1.unwrap_or(bottleneck);
        let [groups, mixin_groups] = [
            self.among(&[1, 2]),
            if condition == 2 {
                self.among(&[1, 2])
            } else {
                1
            },
        ];
        let [out_groups, head_groups] = [self.among(&[1, 2]), self.among(&[1, 2])];
        put("input_size", json!(input));
        put("condition_size", json!(condition));
        put("channels", json!(channels));
        if bottleneck != channels || self.chance(0.5) {
            put("bottleneck", json!(bottleneck));
        }
        put("groups_input", json!(groups));
        put("groups_input_mixin", json!(mixin_groups));
        let count = self.random.random_range(1..5);
        let dilations: Vec<usize> = (0..count)
            .map(|_| self.random.random_range(1..20))
            .collect();
        put("dilations", json!(dilations));
        let kernels: Vec<usize> = match self.random.random_range(0..3) {
            0 => {
                put("kernel_size", json!(3));
                vec![3; count]
            }
            kind => {
                let kernels: Vec<usize> =
                    (0..count).map(|_| self.random.random_range(1..5)).collect();
                put(
                    if kind == 1 {
                        "kernel_size"
                    } else {
                        "kernel_sizes"
                    },
                    json!(kernels),
                );
                kernels
            }
        };
        let modes: Vec<&str> = match self.random.random_range(0..4) {
            0 => {
                put("gated", json!(true));
                vec!["gated"; count]
            }
            1 => {
                put("gating_mode", json!("blended"));
                vec!["blended"; count]
            }
            2 => {
                let modes: Vec<&str> = (0..count)
                    .map(|_| self.among(&["none", "gated", "blended"]))
                    .collect();
                put("gating_mode", json!(modes));
                let seconds: Vec<Value> = modes
                    .iter()
                    .map(|mode| {
                        if *mode == "none" {
                            Value::Null
                        } else {
                            self.activation(bottleneck)
                        }
                    })
                    .collect();
                put("secondary_activation", json!(seconds));
                modes
            }
            _ => vec!["none"; count],
        };
        let activation = if self.chance(0.5) {
            (0..count).map(|_| self.activation(bottleneck)).collect()
        } else {
            self.activation(bottleneck)
        };
        put("activation", activation);
        if !layer1x1 || out_groups > 1 {
            put(
                "layer1x1",
                json!({ "active": layer1x1, "groups": out_groups }),
            );
        }
        if let Some(outputs) = head1x1 {
            put(
                "head1x1",
                json!({ "active": true, "out_channels": outputs, "groups": head_groups }),
            );
        } else if self.chance(0.3) {
            put(
                "head1x1",
                json!({ "active": false, "out_channels": 1, "groups": 1 }),
            );
        }
        let mut films = [None; 8];
        let names = [
            "conv_pre_film",
            "conv_post_film",
            "input_mixin_pre_film",
            "input_mixin_post_film",
            "activation_pre_film",
            "activation_post_film",
            "layer1x1_post_film",
            "head1x1_post_film",
        ];
        let modulated = self.chance(0.6);
        for (place, name) in names.into_iter().enumerate() {
            let there = (place != 6 || layer1x1) && (place != 7 || head1x1.is_some());
            if there && modulated && self.chance(0.4) {
                let shift = self.chance(0.5);
                // The condition's own channels may be one.
                let groups = if condition == 2 {
                    self.among(&[1, 2])
                } else {
                    1
                };
                films[place] = Some((shift, groups));
                put(
                    name,
                    json!({ "active": true, "shift": shift, "groups": groups }),
                );
            } else if self.chance(0.3) {
                put(name, json!({ "active": false, "shift": true, "groups": 1 }));
            }
        }
        self.weights(flat, input * channels, 0.9);
        for layer in 0..count {
            let middle = if modes[layer] == "none" {
                bottleneck
            } else {
                2 * bottleneck
            };
            self.weights(
                flat,
                middle * channels / groups * kernels[layer] + middle,
                0.4,
            );
            self.weights(flat, middle * condition / mixin_groups, 0.9);
            if layer1x1 {
                self.weights(flat, channels * bottleneck / out_groups + channels, 0.4);
            }
            if let Some(outputs) = head1x1 {
                self.weights(flat, outputs * bottleneck / head_groups + outputs, 0.4);
            }
            let widths = [
                channels, middle, condition, middle, middle, bottleneck, channels, to_head,
            ];
            for (film, width) in films.iter().zip(widths) {
                if let Some((shift, groups)) = *film {
                    let outputs = if shift { 2 * width } else { width };
                    self.weights(flat, outputs * condition / groups + outputs, 1.0);
                }
            }
        }
        let bias = self.chance(0.5);
        if self.chance(0.5) {
            let [kernel, dilation] = [self.among(&[1, 4]), self.among(&[1, 3])];
            put(
                "head",
                json!({ "out_channels": head, "kernel_size": kernel, "bias": bias, "head_dilation": dilation }),
            );
            self.weights(flat, head * to_head * kernel, 0.5);
        } else {
            put("head_size", json!(head));
            put("head_bias", json!(bias));
            self.weights(flat, head * to_head, 0.5);
        }
        if bias {
            self.weights(flat, head, 0.5);
        }
        Value::Object(array)
    }

    pub fn lstm(&mut self) -> Value {
        let (hidden, layers) = (
            self.random.random_range(1..20),
            self.random.random_range(1..4),
        );
        self.lstm_of(hidden, layers)
    }

    pub fn lstm_of(&mut self, hidden: usize, layers: usize) -> Value {
        let mut flat = Flat::new();
        for layer in 0..layers {
            let inputs = if layer == 0 { 1 } else { hidden };
            self.weights(
                &mut flat,
                4 * hidden * (inputs + hidden) + 4 * hidden + 2 * hidden,
                0.5,
            );
        }
        self.weights(&mut flat, hidden + 1, 0.5);
        Self::root(
            "LSTM",
            json!({ "input_size": 1, "hidden_size": hidden, "num_layers": layers }),
            &flat,
        )
    }

    pub fn convnet(&mut self) -> Value {
        let (channels, norm) = (self.channels(), self.chance(0.5));
        let dilations: Vec<usize> = (0..self.random.random_range(1..6))
            .map(|layer| 1 << layer)
            .collect();
        let mut flat = Flat::new();
        for layer in 0..dilations.len() {
            let inputs = if layer == 0 { 1 } else { channels };
            self.weights(&mut flat, channels * inputs * 2, 0.6);
            if norm {
                self.weights(&mut flat, channels, 0.3);
                flat.extend((0..channels).map(|_| self.random.random_range(0.2_f32..2.0)));
                self.weights(&mut flat, 2 * channels, 0.8);
                flat.push(1e-5);
            } else {
                self.weights(&mut flat, channels, 0.3);
            }
        }
        self.weights(&mut flat, channels + 1, 0.6);
        let activation = self.activation(channels);
        let config = json!({ "channels": channels, "dilations": dilations, "batchnorm": norm, "activation": activation });
        Self::root("ConvNet", config, &flat)
    }

    pub fn linear(&mut self, taps: usize) -> Value {
        let (bias, mut flat) = (self.chance(0.5), Flat::new());
        self.weights(
            &mut flat,
            taps + usize::from(bias),
            1.0 / (taps as f32).sqrt(),
        );
        Self::root(
            "Linear",
            json!({ "receptive_field": taps, "bias": bias }),
            &flat,
        )
    }

    /// Returns a file for AIDA-X and RTNeural; all inputs but the first are knobs.
    pub fn keras(&mut self) -> Value {
        let inputs = self.random.random_range(1..4);
        let mut layers = Vec::new();
        let mut channels = inputs;
        for _ in 0..self.random.random_range(1..4) {
            let hidden = self.channels();
            let layer = self.keras_layer(channels, hidden);
            channels = layer["shape"][2].as_u64().expect("channels") as usize;
            layers.push(layer);
        }
        let dense = json!({
            "type": "dense", "activation": "", "shape": [null, null, 1],
            "weights": [self.rows(channels, 1, 0.6), self.row(1, 0.3)],
        });
        layers.push(dense);
        json!({
            "in_shape": [null, null, inputs], "in_skip": self.among(&[0, 1]), "in_gain": self.among(&[0.0, 6.0]),
            "out_gain": self.among(&[0.0, -3.0]), "metadata": { "samplerate": "48000", "name": "Generated" },
            "layers": layers,
        })
    }

    fn keras_layer(&mut self, inputs: usize, hidden: usize) -> Value {
        let shape = json!([null, null, hidden]);
        let activation = self.among(&["", "tanh", "relu", "sigmoid", "elu", "softmax"]);
        match self.random.random_range(0..7) {
            0 => json!({
                "type": "lstm", "activation": "tanh", "recurrent_activation": "sigmoid", "shape": shape,
                "weights": [self.rows(inputs, 4 * hidden, 0.6), self.rows(hidden, 4 * hidden, 0.5), self.row(4 * hidden, 0.5)],
            }),
            1 => json!({
                "type": "gru", "activation": "tanh", "shape": shape,
                "weights": [self.rows(inputs, 3 * hidden, 0.6), self.rows(hidden, 3 * hidden, 0.5), self.rows(2, 3 * hidden, 0.5)],
            }),
            2 => json!({
                "type": "dense", "activation": activation, "shape": shape,
                "weights": [self.rows(inputs, hidden, 0.6), self.row(hidden, 0.3)],
            }),
            3 => {
                let (kernel, groups) = (
                    self.random.random_range(1..5),
                    if inputs.is_multiple_of(2) {
                        self.among(&[1, 2])
                    } else {
                        1
                    },
                );
                let taps: Value = (0..kernel)
                    .map(|_| self.rows(inputs / groups, hidden, 0.5))
                    .collect();
                json!({
                    "type": "conv1d", "activation": activation, "shape": shape, "kernel_size": [kernel],
                    "dilation": [self.random.random_range(1..9)], "groups": groups, "weights": [taps, self.row(hidden, 0.3)],
                })
            }
            4 => {
                let variance: Vec<f32> = (0..inputs)
                    .map(|_| self.random.random_range(0.2..2.0))
                    .collect();
                json!({
                    "type": "batchnorm", "epsilon": 0.001, "shape": [null, null, inputs],
                    "weights": [self.row(inputs, 1.0), self.row(inputs, 0.3), self.row(inputs, 0.3), variance],
                })
            }
            5 if inputs.is_multiple_of(2) => {
                match self.among(&["activation", "gated_activation"]) {
                    "activation" => json!({
                        "type": "activation", "activation": "gated_activation", "shape": [null, null, inputs / 2],
                    }),
                    own => json!({ "type": own, "shape": [null, null, inputs / 2] }),
                }
            }
            _ => {
                json!({ "type": "prelu", "shape": [null, null, inputs], "weights": [[self.row(inputs, 0.6)]] })
            }
        }
    }

    pub fn proteus(&mut self) -> Value {
        let (inputs, hidden, layers) = (
            self.random.random_range(1..4),
            self.random.random_range(2..24),
            self.among(&[1, 2]),
        );
        let (unit, gates) = self.among(&[("LSTM", 4), ("GRU", 3)]);
        let mut state = Map::new();
        for layer in 0..layers {
            let width = if layer == 0 { inputs } else { hidden };
            state.insert(
                format!("rec.weight_ih_l{layer}"),
                self.rows(gates * hidden, width, 0.6),
            );
            state.insert(
                format!("rec.weight_hh_l{layer}"),
                self.rows(gates * hidden, hidden, 0.4),
            );
            state.insert(
                format!("rec.bias_ih_l{layer}"),
                self.row(gates * hidden, 0.3),
            );
            state.insert(
                format!("rec.bias_hh_l{layer}"),
                self.row(gates * hidden, 0.3),
            );
        }
        state.insert("lin.weight".into(), self.rows(1, hidden, 0.5));
        state.insert("lin.bias".into(), self.row(1, 0.2));
        json!({
            "model_data": {
                "model": "SimpleRNN", "input_size": inputs, "skip": self.among(&[0, 1]), "output_size": 1,
                "unit_type": unit, "num_layers": layers, "hidden_size": hidden, "bias_fl": true,
            },
            "state_dict": state,
        })
    }

    /// Returns a file of a random architecture.
    pub fn any(&mut self) -> Value {
        match self.random.random_range(0..8) {
            0..3 => self.wavenet(1),
            3 => self.lstm(),
            4 => self.convnet(),
            5 => self.linear(50),
            6 => self.keras(),
            _ => self.proteus(),
        }
    }

    /// Returns a container of several sizes.
    pub fn container(&mut self, sizes: usize) -> Value {
        let submodel = |index: usize, model: Value| json!({ "max_value": (index + 1) as f64 / sizes as f64, "model": model });
        let submodels: Vec<Value> = (0..sizes)
            .map(|index| submodel(index, self.wavenet(1)))
            .collect();
        Self::root(
            "SlimmableContainer",
            json!({ "submodels": submodels }),
            &Flat::new(),
        )
    }

    /// Returns a plain WaveNet with the given arrays: input size, channels, head size, kernels and
    /// dilations.
    pub fn classic(&mut self, arrays: &[PlainArray], mut field: impl FnMut(&mut Value)) -> Value {
        let mut flat = Flat::new();
        let mut layers = Vec::new();
        for (index, (input, channels, head, taps)) in arrays.iter().enumerate() {
            self.weights(&mut flat, input * channels, 0.5);
            for (kernel, _) in taps {
                self.weights(
                    &mut flat,
                    channels * channels * kernel
                        + channels
                        + channels
                        + channels * channels
                        + channels,
                    0.3,
                );
            }
            let (kernels, dilations): (Vec<usize>, Vec<usize>) = taps.iter().copied().unzip();
            let mut array = json!({
                "input_size": input, "condition_size": 1, "channels": channels, "head_size": head,
                "kernel_sizes": kernels, "dilations": dilations, "activation": "Tanh", "gated": false,
                "head_bias": index + 1 == arrays.len(),
            });
            field(&mut array);
            let kernel = array["head"]["kernel_size"].as_u64().unwrap_or(1) as usize;
            self.weights(
                &mut flat,
                channels * head * kernel + usize::from(index + 1 == arrays.len()) * head,
                0.3,
            );
            layers.push(array);
        }
        flat.push(0.02);
        Self::root(
            "WaveNet",
            json!({ "layers": layers, "head": null, "head_scale": 0.02 }),
            &flat,
        )
    }
}
