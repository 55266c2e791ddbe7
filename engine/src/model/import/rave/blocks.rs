//! Translation of each class of RAVE's blocks (acids-ircam/RAVE, `rave/blocks.py`; Caillon &
//! Esling, arXiv:2111.05011).

use super::archive::TensorData;
use super::builder::{CodecBuilder, Signal};
use super::module::Module;
use crate::model::{Activation, Distribution, ModelError, Op};
use crate::ops::{Affine, Noise, ShapedNoise};

impl CodecBuilder {
    /// Adds a module with one input and one output.
    pub fn module(&mut self, module: &Module<'_>, input: &Signal) -> Result<Signal, ModelError> {
        self.visit(module)?;
        let path = module.path();
        match module.class() {
            "CachedConv1d" | "Conv1d" => self.convolution(module, input, None),
            "CachedConvTranspose1d" | "ConvTranspose1d" => {
                self.transposed_convolution(module, input)
            }
            "CachedSequential" | "Sequential" => self.sequence(&module.children(), input),
            "VariationalEncoder" | "WasserteinEncoder" | "DiscreteEncoder" => {
                self.module(&module.child("encoder")?, input)
            }
            "EncoderV2" | "Encoder" | "DilatedUnit" | "ResidualBlock" | "ResidualLayer"
            | "UpsampleLayer" => self.module(&module.child("net")?, input),
            "Residual" => {
                let branches = self.branches(&module.child("aligned")?, input)?;
                self.sum(path, &branches, module)
            }
            "ResidualStack" => {
                let branches = self.branches(&module.child("net")?, input)?;
                self.sum(path, &branches, module)
            }
            "GeneratorV2" => self.generator_v2(module, input),
            "Generator" => self.generator(module, input),
            "LeakyReLU" => {
                let slope = module.constant("negative_slope")? as f32;
                self.same_shape(
                    path,
                    &[input],
                    Op::Activation(Activation::LeakyRelu { slope }),
                )
            }
            "Snake" => {
                let alpha = module.tensor("alpha")?;
                module.ensure(
                    alpha.values.len() == input.channels,
                    format_args!("its alpha has the shape {:?}", alpha.shape),
                )?;
                self.weight(
                    path,
                    "alpha",
                    TensorData::new(&[input.channels], alpha.values),
                )?;
                self.same_shape(path, &[input], Op::Snake)
            }
            "AdaptiveInstanceNormalization" => {
                // The identity until it has collected statistics.
                for name in ["num_update_x", "num_update_y", "learn_x", "learn_y"] {
                    let used = module
                        .tensor(name)?
                        .values
                        .iter()
                        .any(|&value| value != 0.0);
                    module.ensure(
                        !used,
                        format_args!("its {name} is not 0: collected statistics are not supported"),
                    )?;
                }
                Ok(input.clone())
            }
            "Identity" => Ok(input.clone()),
            _ => Err(module.error("this kind of module is not known")),
        }
    }

    /// Adds modules one after another.
    fn sequence(&mut self, modules: &[Module<'_>], input: &Signal) -> Result<Signal, ModelError> {
        let mut signal = input.clone();
        let mut modules = modules.iter().peekable();
        while let Some(module) = modules.next() {
            let is_convolution = matches!(module.class(), "CachedConv1d" | "Conv1d");
            signal = match modules.next_if(|next| is_convolution && next.class() == "BatchNorm1d") {
                Some(norm) => self.convolution(module, &signal, Some(norm))?,
                None => self.module(module, &signal)?,
            };
        }
        Ok(signal)
    }

    /// Adds several modules with one input; returns their outputs, delayed to a common latency.
    fn branches(&mut self, module: &Module<'_>, input: &Signal) -> Result<Vec<Signal>, ModelError> {
        let branches = module.child("branches")?.children();
        if let Some(paddings) = module.maybe_child("paddings") {
            let paddings = paddings.children();
            module.ensure(
                paddings.len() == branches.len(),
                "it has not one padding for each branch",
            )?;
            let aligned = branches.iter().zip(&paddings).map(|(branch, padding)| {
                let delayed = self.delayed(padding.path(), input, padding.count("padding")?)?;
                self.branch(branch, &delayed)
            });
            return aligned.collect();
        }
        let signals: Vec<Signal> = branches
            .iter()
            .map(|branch| self.branch(branch, input))
            .collect::<Result<_, _>>()?;
        let latency = signals
            .iter()
            .map(|signal| signal.latency)
            .max()
            .unwrap_or(0);
        let aligned = signals.iter().zip(&branches).map(|(signal, branch)| {
            let samples = latency - signal.latency;
            branch.ensure(
                samples.is_multiple_of(signal.ratio),
                format_args!(
                    "it is {samples} samples early, which is no whole number of its frames"
                ),
            )?;
            self.delayed(
                &format!("{}.alignment", branch.path()),
                signal,
                samples / signal.ratio,
            )
        });
        aligned.collect()
    }

    fn branch(&mut self, module: &Module<'_>, input: &Signal) -> Result<Signal, ModelError> {
        match module.class() {
            "NoiseGenerator" => self.noise(module, input),
            _ => self.module(module, input),
        }
    }

    fn sum(
        &mut self,
        name: &str,
        signals: &[Signal],
        module: &Module<'_>,
    ) -> Result<Signal, ModelError> {
        let Some(first) = signals.first() else {
            return Err(module.error("it has no branches"));
        };
        let equal = signals
            .iter()
            .all(|signal| (signal.channels, signal.ratio) == (first.channels, first.ratio));
        module.ensure(equal, "its branches differ in channels or rate")?;
        if signals.len() == 1 {
            return Ok(first.clone());
        }
        self.same_shape(name, &signals.iter().collect::<Vec<_>>(), Op::Add)
    }

    /// Adds the decoder of RAVE v2 and v3: a waveform, optionally amplitude-modulated, plus
    /// optional noise.
    fn generator_v2(&mut self, module: &Module<'_>, input: &Signal) -> Result<Signal, ModelError> {
        let path = module.path();
        let mut signal = self.module(&module.child("net")?, input)?;
        let noise = match module.maybe_child("noise_module") {
            // The export does not align the noise with the waveform.
            Some(noise) => Some(Signal {
                latency: signal.latency,
                ..self.noise(&noise, &signal)?
            }),
            None => None,
        };
        if let Some(waveform) = module.maybe_child("waveform_module") {
            signal = self.module(&waveform, &signal)?;
        }
        if module.is_set("amplitude_modulation") {
            let half = signal.channels / 2;
            module.ensure(
                signal.channels.is_multiple_of(2),
                "it modulates the amplitude of an odd number of channels",
            )?;
            let amplitude = self.split(&format!("{path}.amplitude"), &signal, half, half)?;
            let amplitude = self.same_shape(
                &format!("{path}.amplitude.sigmoid"),
                &[&amplitude],
                Op::Activation(Activation::Sigmoid),
            )?;
            let waveform = self.split(&format!("{path}.waveform"), &signal, 0, half)?;
            signal = self.same_shape(
                &format!("{path}.modulated"),
                &[&waveform, &amplitude],
                Op::Multiply,
            )?;
        }
        if let Some(noise) = noise {
            signal = self.sum(&format!("{path}.noisy"), &[signal, noise], module)?;
        }
        self.same_shape(
            &format!("{path}.tanh"),
            &[&signal],
            Op::Activation(Activation::Tanh),
        )
    }

    /// Adds the decoder of RAVE v1 and BRAVE: a waveform times its loudness, plus noise if its
    /// branch exists and was trained.
    fn generator(&mut self, module: &Module<'_>, input: &Signal) -> Result<Signal, ModelError> {
        let path = module.path();
        let stride = module.count("loud_stride")?;
        module.ensure(
            stride == 1,
            format_args!("a loud_stride of {stride} is not supported"),
        )?;
        let signal = self.module(&module.child("net")?, input)?;
        let branches = self.branches(&module.child("synth")?, &signal)?;
        let [waveform, loudness, noise @ ..] = &branches[..] else {
            return Err(module.error("it has no branches for waveform and loudness"));
        };
        module.ensure(
            loudness.channels == 1 && loudness.ratio == waveform.ratio,
            "its loudness is not one channel at the rate of its waveform",
        )?;
        let loudness = self.modulating_sigmoid(&format!("{path}.loudness"), loudness, 0.0)?;
        let waveform = self.same_shape(
            &format!("{path}.tanh"),
            &[waveform],
            Op::Activation(Activation::Tanh),
        )?;
        let modulated = self.same_shape(
            &format!("{path}.modulated"),
            &[&waveform, &loudness],
            Op::Multiply,
        )?;
        let noise_is_trained = module
            .tensor("warmed_up")?
            .values
            .iter()
            .any(|&value| value != 0.0);
        match noise {
            [noise] if noise_is_trained => self.sum(
                &format!("{path}.noisy"),
                &[modulated, noise.clone()],
                module,
            ),
            [] | [_] => Ok(modulated),
            _ => Err(module.error("it has more branches than waveform, loudness and noise")),
        }
    }

    /// Adds noise for each band, shaped by magnitudes from a network.
    fn noise(&mut self, module: &Module<'_>, input: &Signal) -> Result<Signal, ModelError> {
        let known = matches!(module.class(), "NoiseGenerator" | "NoiseGeneratorV2");
        module.ensure(known, "this kind of noise generator is not known")?;
        let path = module.path();
        let channels = match module.maybe_int("n_channels") {
            Some(_) => module
                .count("data_size")?
                .saturating_mul(module.count("n_channels")?),
            None => module.count("data_size")?,
        };
        let hop = match module.tensor("target_size")?.values[..] {
            [hop] if hop >= 1.0 && hop.fract() == 0.0 => hop as usize,
            _ => return Err(module.error("its target_size is no positive integer")),
        };
        let shape = self.module(&module.child("net")?, input)?;
        module.ensure(
            input.ratio.checked_mul(hop) == Some(shape.ratio),
            format_args!(
                "its network makes one frame of {} instead of {hop}",
                shape.ratio / input.ratio
            ),
        )?;
        module.ensure(
            channels > 0 && shape.channels.is_multiple_of(channels),
            format_args!("it has {} magnitudes for {channels} bands", shape.channels),
        )?;
        let bands = shape.channels / channels;
        // RAVE subtracts 5 before the sigmoid, so that an untrained network is nearly silent.
        let magnitudes = self.modulating_sigmoid(&format!("{path}.magnitudes"), &shape, -5.0)?;
        let number = self.noise_number();
        let source = Op::Noise(Noise {
            channels: channels * hop,
            distribution: Distribution::Uniform,
            number,
        });
        let white = self.with_channels(
            &format!("{path}.white"),
            &magnitudes,
            channels * hop,
            source,
        )?;
        self.node(
            path,
            &[&magnitudes, &white],
            Op::ShapedNoise(ShapedNoise { bands, hop }),
        )?;
        Ok(Signal {
            name: path.to_owned(),
            channels,
            ratio: input.ratio,
            latency: shape.latency,
        })
    }

    /// Adds RAVE's `mod_sigmoid` of `x + offset`: `2 · sigmoid(x)^2.3 + 1e-7`.
    fn modulating_sigmoid(
        &mut self,
        name: &str,
        input: &Signal,
        offset: f32,
    ) -> Result<Signal, ModelError> {
        // sigmoid(x)^p = e^(−p · softplus(−x)).
        let mut signal = input.clone();
        let steps = [
            (
                "negative",
                Op::Affine(Affine {
                    scale: -1.0,
                    offset: -offset,
                }),
            ),
            ("softplus", Op::Activation(Activation::Softplus)),
            (
                "logarithm",
                Op::Affine(Affine {
                    scale: -2.3,
                    offset: std::f32::consts::LN_2,
                }),
            ),
            ("power", Op::Activation(Activation::Exp)),
            (
                "positive",
                Op::Affine(Affine {
                    scale: 1.0,
                    offset: 1e-7,
                }),
            ),
        ];
        for (step, op) in steps {
            signal = self.same_shape(&format!("{name}.{step}"), &[&signal], op)?;
        }
        Ok(signal)
    }
}
