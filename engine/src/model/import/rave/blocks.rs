//! What each class of RAVE's blocks becomes (acids-ircam/RAVE, `rave/blocks.py`; Caillon & Esling, arXiv:2111.05011).

use anyhow::ensure;
use ondes_engine::model::{Distribution, Op};

use super::archive::Array;
use super::module::Module;
use super::sketch::{Signal, Sketch};

impl Sketch {
    /// A module with one input and one output.
    pub fn module(&mut self, module: &Module<'_>, input: &Signal) -> anyhow::Result<Signal> {
        self.visit(module)?;
        let path = module.path();
        match module.class() {
            "CachedConv1d" | "Conv1d" => self.convolution(module, input, None),
            "CachedConvTranspose1d" | "ConvTranspose1d" => self.transposed_convolution(module, input),
            "CachedSequential" | "Sequential" => self.sequence(&module.children(), input),
            "VariationalEncoder" => self.module(&module.child("encoder")?, input),
            "EncoderV2" | "Encoder" | "DilatedUnit" | "ResidualBlock" | "ResidualLayer" | "UpsampleLayer" => {
                self.module(&module.child("net")?, input)
            }
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
                self.alike(path, &[input], Op::LeakyRelu { slope })
            }
            "Snake" => {
                let alpha = module.tensor("alpha")?;
                ensure!(
                    alpha.data.len() == input.channels,
                    module.error(format_args!("its alpha has the shape {:?}", alpha.shape))
                );
                self.weight(path, "alpha", Array::new(&[input.channels], alpha.data))?;
                self.alike(path, &[input], Op::Snake)
            }
            "AdaptiveInstanceNormalization" => {
                // It passes everything on until it was told to learn.
                for name in ["num_update_x", "num_update_y", "learn_x", "learn_y"] {
                    let learnt = module.tensor(name)?.data.iter().any(|&value| value != 0.0);
                    ensure!(!learnt, module.error("what it has learnt of sounds is not supported"));
                }
                Ok(input.clone())
            }
            "Identity" => Ok(input.clone()),
            _ => Err(module.error("this kind of module is not known")),
        }
    }

    /// Modules one after another.
    fn sequence(&mut self, modules: &[Module<'_>], input: &Signal) -> anyhow::Result<Signal> {
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

    /// What several modules make of one input, brought to the same time.
    fn branches(&mut self, module: &Module<'_>, input: &Signal) -> anyhow::Result<Vec<Signal>> {
        let branches = module.child("branches")?.children();
        if let Some(paddings) = module.maybe_child("paddings") {
            let paddings = paddings.children();
            ensure!(paddings.len() == branches.len(), module.error("it has not one padding for each branch"));
            let aligned = branches.iter().zip(&paddings).map(|(branch, padding)| {
                let delayed = self.delayed(padding.path(), input, padding.count("padding")?)?;
                self.branch(branch, &delayed)
            });
            return aligned.collect();
        }
        let signals: Vec<Signal> =
            branches.iter().map(|branch| self.branch(branch, input)).collect::<anyhow::Result<_>>()?;
        let latest = signals.iter().map(|signal| signal.late).max().unwrap_or(0);
        let aligned = signals.iter().zip(&branches).map(|(signal, branch)| {
            let samples = latest - signal.late;
            let whole = samples.is_multiple_of(signal.ratio);
            ensure!(
                whole,
                branch.error(format_args!("it is {samples} samples early, which is no number of its frames"))
            );
            self.delayed(&format!("{}.alignment", branch.path()), signal, samples / signal.ratio)
        });
        aligned.collect()
    }

    fn branch(&mut self, module: &Module<'_>, input: &Signal) -> anyhow::Result<Signal> {
        match module.class() {
            "NoiseGenerator" => self.noise(module, input),
            _ => self.module(module, input),
        }
    }

    fn sum(&mut self, name: &str, signals: &[Signal], module: &Module<'_>) -> anyhow::Result<Signal> {
        let Some(first) = signals.first() else { return Err(module.error("it has no branches")) };
        let alike = signals.iter().all(|signal| (signal.channels, signal.ratio) == (first.channels, first.ratio));
        ensure!(alike, module.error("its branches differ in channels or rate"));
        if signals.len() == 1 {
            return Ok(first.clone());
        }
        self.alike(name, &signals.iter().collect::<Vec<_>>(), Op::Add)
    }

    /// The decoder of RAVE v2 and v3: a waveform, its amplitude if it is modulated, noise if there is some.
    fn generator_v2(&mut self, module: &Module<'_>, input: &Signal) -> anyhow::Result<Signal> {
        let path = module.path();
        let mut signal = self.module(&module.child("net")?, input)?;
        let noise = match module.maybe_child("noise_module") {
            // It has no time of its own.
            Some(noise) => Some(Signal { late: signal.late, ..self.noise(&noise, &signal)? }),
            None => None,
        };
        if let Some(waveform) = module.maybe_child("waveform_module") {
            signal = self.module(&waveform, &signal)?;
        }
        if module.is_set("amplitude_modulation") {
            let half = signal.channels / 2;
            ensure!(signal.channels.is_multiple_of(2), module.error("it has an odd number of channels to modulate"));
            let amplitude = self.split(&format!("{path}.amplitude"), &signal, half, half)?;
            let amplitude = self.alike(&format!("{path}.amplitude.sigmoid"), &[&amplitude], Op::Sigmoid)?;
            let waveform = self.split(&format!("{path}.waveform"), &signal, 0, half)?;
            signal = self.alike(&format!("{path}.modulated"), &[&waveform, &amplitude], Op::Multiply)?;
        }
        if let Some(noise) = noise {
            signal = self.sum(&format!("{path}.noisy"), &[signal, noise], module)?;
        }
        self.alike(&format!("{path}.tanh"), &[&signal], Op::Tanh)
    }

    /// The decoder of RAVE v1 and BRAVE: a waveform times its loudness, and noise if there is some and it was trained.
    fn generator(&mut self, module: &Module<'_>, input: &Signal) -> anyhow::Result<Signal> {
        let path = module.path();
        let stride = module.count("loud_stride")?;
        ensure!(stride == 1, module.error(format_args!("a loud_stride of {stride} is not supported")));
        let signal = self.module(&module.child("net")?, input)?;
        let branches = self.branches(&module.child("synth")?, &signal)?;
        let [waveform, loudness, noise @ ..] = &branches[..] else {
            return Err(module.error("it has not a waveform and a loudness"));
        };
        ensure!(
            loudness.channels == 1 && loudness.ratio == waveform.ratio,
            module.error("its loudness is not one channel at the rate of its waveform")
        );
        let loudness = self.modulating_sigmoid(&format!("{path}.loudness"), loudness, 0.0)?;
        let waveform = self.alike(&format!("{path}.tanh"), &[waveform], Op::Tanh)?;
        let modulated = self.alike(&format!("{path}.modulated"), &[&waveform, &loudness], Op::Multiply)?;
        let warm = module.tensor("warmed_up")?.data.iter().any(|&value| value != 0.0);
        match noise {
            [noise] if warm => self.sum(&format!("{path}.noisy"), &[modulated, noise.clone()], module),
            [] | [_] => Ok(modulated),
            _ => Err(module.error("it has more than a waveform, a loudness and noise")),
        }
    }

    /// Noise for each band, shaped by a network.
    fn noise(&mut self, module: &Module<'_>, input: &Signal) -> anyhow::Result<Signal> {
        let known = matches!(module.class(), "NoiseGenerator" | "NoiseGeneratorV2");
        ensure!(known, module.error("this kind of noise is not known"));
        let path = module.path();
        let channels = module.count("data_size")?;
        let hop = match module.tensor("target_size")?.data[..] {
            [hop] if hop >= 1.0 && hop.fract() == 0.0 => hop as usize,
            _ => return Err(module.error("its target_size is no count")),
        };
        let shape = self.module(&module.child("net")?, input)?;
        ensure!(
            input.ratio.checked_mul(hop) == Some(shape.ratio),
            module.error(format_args!("its network makes one frame of {} instead of {hop}", shape.ratio / input.ratio))
        );
        ensure!(
            channels > 0 && shape.channels.is_multiple_of(channels),
            module.error(format_args!("it has {} magnitudes for {channels} bands", shape.channels))
        );
        let bands = shape.channels / channels;
        ensure!(
            bands >= 2 && bands <= hop / 2 + 1,
            module.error(format_args!("{bands} noise bands in {hop} frames are not supported"))
        );
        // Its network is asked for 5 less than it says.
        let magnitudes = self.modulating_sigmoid(&format!("{path}.magnitudes"), &shape, -5.0)?;
        let number = self.noise_number();
        let source = Op::Noise { channels: channels * hop, distribution: Distribution::Uniform, number };
        let white = self.widened(&format!("{path}.white"), &magnitudes, channels * hop, source)?;
        self.node(path, &[&magnitudes, &white], Op::ShapedNoise { bands, hop })?;
        Ok(Signal { name: path.to_owned(), channels, ratio: input.ratio, late: shape.late })
    }

    /// RAVE's `mod_sigmoid` of `x + offset`: `2 · sigmoid(x)^2.3 + 1e-7`.
    fn modulating_sigmoid(&mut self, name: &str, input: &Signal, offset: f32) -> anyhow::Result<Signal> {
        // sigmoid(x)^p = e^(−p · softplus(−x)).
        let mut signal = input.clone();
        let steps = [
            ("negative", Op::Affine { scale: -1.0, offset: -offset }),
            ("softplus", Op::Softplus),
            ("logarithm", Op::Affine { scale: -2.3, offset: std::f32::consts::LN_2 }),
            ("power", Op::Exp),
            ("positive", Op::Affine { scale: 1.0, offset: 1e-7 }),
        ];
        for (step, op) in steps {
            signal = self.alike(&format!("{name}.{step}"), &[&signal], op)?;
        }
        Ok(signal)
    }
}
