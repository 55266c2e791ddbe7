//! PQMF filter bank.

use std::f64::consts::PI;

use ondes_engine::model::Tensor;

use super::convolutions::Conv;
use super::script::{Attribute, Module};
use super::{FORWARD, ModuleBuilder};

impl ModuleBuilder<'_> {
    /// Builds a cosine-modulated filter bank of 32 taps per band (Nguyen, IEEE Trans. Signal
    /// Processing 42(1), 1994) in RAVE's layout. Returns it with the delay of analysis and
    /// synthesis in samples.
    pub(super) fn bank(&mut self) -> (Module, [usize; 2]) {
        let bands = self.recipe.bands;
        let taps = 32 * bands;
        let filter = |band: usize, tap: usize| {
            let t = tap as f64 - (taps / 2) as f64;
            let cutoff = PI / (2 * bands) as f64;
            let sinc = if t == 0.0 {
                cutoff / PI
            } else {
                (cutoff * t).sin() / (PI * t)
            };
            let window = 0.42
                + 0.5 * (2.0 * PI * t / taps as f64).cos()
                + 0.08 * (4.0 * PI * t / taps as f64).cos();
            let sign = if band.is_multiple_of(2) { 1.0 } else { -1.0 };
            let phase = (2 * band + 1) as f64 * PI / (2 * bands) as f64 * t + sign * PI / 4.0;
            2.0 * sinc * window * phase.cos()
        };
        let forward =
            (0..bands).flat_map(|band| (0..=taps).map(move |tap| filter(band, tap) as f32));
        let forward = Tensor::new(&[bands, 1, taps + 1], forward.collect());
        let conv = Conv {
            stride: bands,
            ..Conv::new(1, bands, taps + 1)
        };
        let forward = self.conv_of(conv, Attribute::Parameter(forward));
        let mut inverse = vec![0.0; bands * bands * 33];
        for phase in 0..bands {
            for band in 0..bands {
                for tap in 0..32 {
                    inverse[(phase * bands + band) * 33 + tap] =
                        filter(band, taps - 1 - (tap * bands + phase)) as f32;
                }
            }
        }
        let inverse = Attribute::Parameter(Tensor::new(&[bands, bands, 33], inverse));
        let inverse = self.conv_of(Conv::new(bands, bands, 33), inverse);
        let late = [forward.late * bands, inverse.late * bands];
        let attributes = vec![
            ("n_band", Attribute::Int(bands as i64)),
            ("n_channels", Attribute::Int(1)),
            ("forward_conv", Attribute::Module(forward.module)),
            ("inverse_conv", Attribute::Module(inverse.module)),
        ];
        let turn = |from: &str| {
            format!(
                "mask = torch.ones_like({from}, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None)\n\
                 odd = torch.slice(torch.slice(mask, 1, 1, 9223372036854775807, 2), 2, 0, 9223372036854775807, 2)\n\
                 _0 = torch.fill_(odd, -1)\nturned = torch.mul({from}, mask)\n"
            )
        };
        let analysis = format!(
            "forward_conv = self.forward_conv\ny = (forward_conv).forward(x, )\n{}return turned",
            turn("y")
        );
        let synthesis = format!(
            "{}inverse_conv = self.inverse_conv\ny = torch.mul((inverse_conv).forward(turned, ), {bands})\n\
             z = torch.permute(torch.flip(y, [1]), [0, 2, 1])\nreturn torch.reshape(z, [torch.size(z, 0), 1, -1])",
            turn("x")
        );
        let methods = [
            (FORWARD, &*analysis),
            ("inverse(x: Tensor) -> Tensor:", &*synthesis),
        ];
        (
            self.script
                .module("rave.pqmf", "CachedPQMF", attributes, &[], &methods),
            late,
        )
    }
}
