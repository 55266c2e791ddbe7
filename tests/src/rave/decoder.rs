//! Decoder: latents to bands.

use super::convolutions::Conv;
use super::script::{Attribute, Module};
use super::{BLOCKS, DelayedModule, FORWARD, Generation, ModuleBuilder};

impl ModuleBuilder<'_> {
    pub(super) fn noise(&mut self, channels: usize) -> DelayedModule {
        let recipe = self.recipe;
        let is_first = recipe.generation == Generation::V1;
        let ratios = if is_first {
            vec![4, 4, 4]
        } else {
            vec![2, 2, 2]
        };
        let hop: usize = ratios.iter().product();
        let (mut net, mut late, mut inputs) = (Vec::new(), 0, channels);
        for (index, &stride) in ratios.iter().enumerate() {
            let is_last = index + 1 == ratios.len();
            let outputs = if is_last { recipe.bands * 5 } else { channels };
            let conv = Conv {
                stride,
                late,
                ..Conv::new(inputs, outputs, 3)
            };
            let conv = match is_first {
                true => Conv {
                    padding: Some(if recipe.causal { (2, 0) } else { (1, 1) }),
                    ..conv
                },
                false => Conv {
                    kernel: 2 * stride,
                    padding: Some((stride, 0)),
                    ..conv
                },
            };
            let part = self.conv(conv);
            late = part.late;
            net.push(part.module);
            if !is_last {
                net.push(if is_first {
                    self.leaky()
                } else {
                    self.activation(outputs)
                });
            }
            inputs = outputs;
        }
        let attributes = vec![
            ("target_size", Attribute::Counts(vec![hop as i64])),
            ("data_size", Attribute::Int(recipe.bands as i64)),
            ("net", Attribute::Module(self.sequence(net))),
        ];
        // The response has eight values. It is rotated by half, windowed, padded and rotated back.
        let body = format!(
            "net = self.net\n\
             amplitude = torch.add(torch.mul(torch.pow(torch.sigmoid(torch.sub((net).forward(x, ), 5, alpha=1)), 2.2999999999999998), 2), 1.0e-7, alpha=1)\n\
             frames = torch.permute(amplitude, [0, 2, 1])\n\
             bands = torch.reshape(frames, [torch.size(frames, 0), torch.size(frames, 1), {bands}, 5])\n\
             response = torch.fft_irfft(torch.complex(bands, torch.zeros_like(bands, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None)), None, -1, None)\n\
             window = torch.hann_window(8, dtype=None, layout=None, device=None, pin_memory=None)\n\
             shown = torch.mul(torch.roll(response, [4], [-1]), window)\n\
             filter = torch.contiguous(torch.roll(torch.constant_pad_nd(shown, [0, {left}], 0), [-4], [-1]))\n\
             white = torch.sub(torch.mul(torch.rand_like(filter, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None), 2), 1, alpha=1)\n\
             a = torch.fft_rfft(torch.constant_pad_nd(white, [0, {hop}], 0), None, -1, None)\n\
             b = torch.fft_rfft(torch.constant_pad_nd(filter, [{hop}, 0], 0), None, -1, None)\n\
             sound = torch.slice(torch.fft_irfft(torch.mul(a, b), None, -1, None), -1, {hop}, 9223372036854775807, 1)\n\
             y = torch.permute(sound, [0, 2, 1, 3])\n\
             return torch.reshape(y, [torch.size(y, 0), torch.size(y, 1), -1])",
            bands = recipe.bands,
            left = hop - 8,
        );
        let name = if is_first {
            "NoiseGenerator"
        } else {
            "NoiseGeneratorV2"
        };
        let module = self
            .script
            .module(BLOCKS, name, attributes, &[], &[(FORWARD, body.as_str())]);
        DelayedModule {
            module,
            late: late * hop,
        }
    }

    /// Builds the decoder. Returns it with its delay in samples.
    pub(super) fn decoder(&mut self) -> (Module, usize) {
        match self.recipe.generation {
            Generation::V1 => self.decoder_v1(),
            _ => self.decoder_v2(),
        }
    }

    pub(super) fn decoder_v2(&mut self) -> (Module, usize) {
        let recipe = self.recipe;
        let mut channels = recipe.capacity << recipe.ratios.len();
        let mut ratio = recipe.ratio();
        let first = self.conv(Conv::new(recipe.latents, channels, 3));
        let mut late = first.late * ratio;
        let mut net = vec![first.module];
        for (&stride, dilations) in recipe.ratios.iter().zip(&recipe.dilations).rev() {
            net.push(self.activation(channels));
            let up = self.transposed(channels, channels / 2, stride, 0);
            (channels, ratio) = (channels / 2, ratio / stride);
            late += up.late * ratio;
            net.push(up.module);
            late += ratio * self.units(channels, dilations, &mut net);
        }
        net.push(self.activation(channels));
        let waveform = self.conv(Conv::new(channels, 2 * recipe.bands, 7));
        late += waveform.late * ratio;
        let mut attributes = vec![("amplitude_modulation", Attribute::Bool(true))];
        let mut steps = "net = self.net\ny = (net).forward(x, )\n".to_owned();
        if recipe.noise {
            attributes.push((
                "noise_module",
                Attribute::Module(self.noise(channels).module),
            ));
            attributes.push(("waveform_module", Attribute::Module(waveform.module)));
            steps += "noise_module = self.noise_module\nnoise = (noise_module).forward(y, )\n\
                      waveform_module = self.waveform_module\nbands = (waveform_module).forward(y, )\n";
        } else {
            attributes.extend([
                ("noise_module", Attribute::None),
                ("waveform_module", Attribute::None),
            ]);
            net.push(waveform.module);
            steps += "noise = 0.\nbands = y\n";
        }
        attributes.push(("net", Attribute::Module(self.sequence(net))));
        steps += "waveform, amplitude, = torch.chunk(bands, 2, 1)\n\
                  sound = torch.mul(waveform, torch.sigmoid(amplitude))\n\
                  return torch.tanh(torch.add(sound, noise, alpha=1))";
        (
            self.script.module(
                BLOCKS,
                "GeneratorV2",
                attributes,
                &[],
                &[(FORWARD, steps.as_str())],
            ),
            late,
        )
    }

    pub(super) fn decoder_v1(&mut self) -> (Module, usize) {
        let recipe = self.recipe;
        let mut channels = recipe.capacity << recipe.ratios.len();
        let mut ratio = recipe.ratio();
        let first = self.conv(Conv::new(recipe.latents, channels, 7));
        let mut late = first.late * ratio;
        let mut net = vec![first.module];
        for &stride in &recipe.ratios {
            let up = match stride {
                1 => self.conv(Conv::new(channels, channels / 2, 3)),
                _ => self.transposed(channels, channels / 2, stride, 0),
            };
            (channels, ratio) = (channels / 2, ratio / stride);
            late += up.late * ratio;
            let modules = vec![self.leaky(), up.module];
            let inner = DelayedModule {
                module: self.sequence(modules),
                late: 0,
            };
            net.push(self.around("UpsampleLayer", "net", inner).module);
            let mut layers = Vec::new();
            for dilations in &recipe.dilations {
                let mut modules = Vec::new();
                let mut told = 0;
                for &dilation in dilations {
                    modules.push(self.leaky());
                    let conv = self.conv(Conv {
                        dilation,
                        late: told,
                        ..Conv::new(channels, channels, 3)
                    });
                    told = conv.late;
                    modules.push(conv.module);
                }
                let inner = DelayedModule {
                    module: self.sequence(modules),
                    late: told,
                };
                let residual = self.residual(channels, inner);
                late += ratio * residual.late;
                layers.push(self.around("ResidualLayer", "net", residual).module);
            }
            let inner = DelayedModule {
                module: self.sequence(layers),
                late: 0,
            };
            let block = self.around("ResidualBlock", "net", inner);
            let aligned = self.branches(channels, vec![Some(block)]);
            let body = "net = self.net\nparts = (net).forward(x, )\nreturn torch.sum(torch.stack(parts, 0), [0], False, dtype=None)";
            let attributes = vec![("net", Attribute::Module(aligned.module))];
            net.push(self.script.module(
                BLOCKS,
                "ResidualStack",
                attributes,
                &[],
                &[(FORWARD, body)],
            ));
        }
        let mut branches = vec![
            Some(self.conv(Conv::new(channels, recipe.bands, 7))),
            Some(self.conv(Conv::new(channels, 1, 3))),
        ];
        if recipe.noise {
            branches.push(Some(self.noise(channels)));
        }
        let synth = self.branches(channels, branches);
        late += ratio * synth.late;
        let attributes = vec![
            ("warmed_up", Attribute::Counts(vec![1])),
            ("use_noise", Attribute::Bool(recipe.noise)),
            ("loud_stride", Attribute::Int(1)),
            ("net", Attribute::Module(self.sequence(net))),
            ("synth", Attribute::Module(synth.module)),
        ];
        let noisy = if recipe.noise {
            "torch.add(sound, parts[2], alpha=1)"
        } else {
            "sound"
        };
        let body = format!(
            "net = self.net\nsynth = self.synth\nparts = (synth).forward((net).forward(x, ), )\n\
             loudness = torch.add(torch.mul(torch.pow(torch.sigmoid(parts[1]), 2.2999999999999998), 2), 1.0e-7, alpha=1)\n\
             sound = torch.mul(torch.tanh(parts[0]), loudness)\nreturn {noisy}"
        );
        (
            self.script.module(
                BLOCKS,
                "Generator",
                attributes,
                &[],
                &[(FORWARD, body.as_str())],
            ),
            late,
        )
    }
}
