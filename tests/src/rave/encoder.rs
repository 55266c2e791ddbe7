//! Encoder: bands to means and deviations of latents.

use super::convolutions::Conv;
use super::script::{Attribute, Module};
use super::{BLOCKS, DelayedModule, FORWARD, Generation, ModuleBuilder};

impl ModuleBuilder<'_> {
    /// Builds the encoder for bands with a delay of `bank_late` samples. Returns it with its total
    /// delay in samples.
    pub(super) fn encoder(&mut self, bank_late: usize) -> (Module, usize) {
        let recipe = self.recipe;
        let is_first = recipe.generation == Generation::V1;
        let mut channels = recipe.capacity;
        let mut ratio = recipe.bands;
        let first = self.conv(Conv::new(recipe.bands, channels, 7));
        // Delay passed to the next convolution, and total delay in samples.
        let (mut conv_late, mut late) = (first.late, bank_late + first.late * ratio);
        let mut net = vec![first.module];
        for (index, &stride) in recipe.ratios.iter().enumerate() {
            let mut down = Conv {
                stride,
                ..Conv::new(channels, 2 * channels, 2 * stride)
            };
            if is_first {
                net.push(self.norm(channels));
                down = Conv {
                    kernel: 2 * stride + 1,
                    late: conv_late,
                    ..down
                };
            } else {
                late += ratio * self.units(channels, &recipe.dilations[index], &mut net);
            }
            net.push(self.activation(channels));
            let right = if recipe.causal {
                0
            } else {
                (down.kernel - 1).div_ceil(2)
            };
            // Without caches the total delay counts.
            let at = if recipe.streaming {
                down.late
            } else {
                late / ratio
            };
            let delay = (stride - (right + at) % stride) % stride;
            late += ratio * (right + delay);
            let part = self.conv(down);
            conv_late = part.late;
            net.push(part.module);
            (channels, ratio) = (2 * channels, ratio * stride);
        }
        net.push(self.activation(channels));
        let kernel = if is_first { 5 } else { 3 };
        let last = self.conv(Conv::new(channels, 2 * recipe.latents, kernel));
        late += ratio * last.late;
        net.push(last.module);
        let net = DelayedModule {
            module: self.sequence(net),
            late: 0,
        };
        let inner = self.around(if is_first { "Encoder" } else { "EncoderV2" }, "net", net);
        (self.variational(inner.module), late)
    }

    pub(super) fn variational(&mut self, inner: Module) -> Module {
        let attributes = vec![
            ("encoder", Attribute::Module(inner)),
            ("warmed_up", Attribute::Counts(vec![1])),
        ];
        let forward = "encoder = self.encoder\nreturn (encoder).forward(x, )";
        let reparametrize = "mean, scale, = torch.chunk(x, 2, 1)\n\
                             deviation = torch.add(torch.softplus(scale, 1, 20), 0.0001, alpha=1)\n\
                             noise = torch.randn_like(mean, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None)\n\
                             return torch.add(torch.mul(noise, deviation), mean, alpha=1)";
        let methods = [
            (FORWARD, forward),
            ("reparametrize(x: Tensor) -> Tensor:", reparametrize),
        ];
        self.script
            .module(BLOCKS, "VariationalEncoder", attributes, &[], &methods)
    }
}
