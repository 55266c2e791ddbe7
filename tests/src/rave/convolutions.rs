//! Convolutions, with or without the caches of `cached_conv`.

use ondes_engine::model::Tensor;

use super::script::{Attribute, Module};
use super::{CONVS, DelayedModule, FORWARD, ModuleBuilder};

/// Parameters of a convolution.
#[derive(Clone, Copy)]
pub(super) struct Conv {
    pub inputs: usize,
    pub outputs: usize,
    pub kernel: usize,
    pub stride: usize,
    pub dilation: usize,
    /// Frames on the left and right; by default what the filter needs, on both sides or, if causal,
    /// on the left.
    pub padding: Option<(usize, usize)>,
    /// Delay of the input in frames, as `cached_conv` is told.
    pub late: usize,
}

impl Conv {
    pub fn new(inputs: usize, outputs: usize, kernel: usize) -> Self {
        Self {
            inputs,
            outputs,
            kernel,
            stride: 1,
            dilation: 1,
            padding: None,
            late: 0,
        }
    }
}

impl ModuleBuilder<'_> {
    pub(super) fn padded(&mut self, padding: usize, channels: usize, crop: bool) -> Module {
        let attributes = vec![
            (
                "pad",
                Attribute::Buffer(Tensor::new(
                    &[1, channels, padding],
                    vec![0.0; channels * padding],
                )),
            ),
            ("initialized", Attribute::Int(1)),
            ("padding", Attribute::Int(padding as i64)),
            ("crop", Attribute::Bool(crop)),
        ];
        let cropped = if crop {
            "torch.slice(joined, -1, 0, torch.neg(padding), 1)"
        } else {
            "joined"
        };
        let body = format!(
            "padding = self.padding\nif torch.gt(padding, 0):\n  pad = self.pad\n  joined = torch.cat([pad, x], -1)\n  \
             last = torch.slice(joined, -1, torch.neg(padding), 9223372036854775807, 1)\n  _0 = torch.copy_(pad, last)\n  \
             y0 = {cropped}\n  y = y0\nelse:\n  y = x\nreturn y"
        );
        self.script.module(
            CONVS,
            "CachedPadding1d",
            attributes,
            &[],
            &[(FORWARD, body.as_str())],
        )
    }

    pub(super) fn conv(&mut self, conv: Conv) -> DelayedModule {
        let Conv {
            inputs,
            outputs,
            kernel,
            ..
        } = conv;
        let weight = self.weight(&[outputs, inputs, kernel], inputs * kernel);
        self.conv_of(conv, weight)
    }

    pub(super) fn conv_of(&mut self, conv: Conv, weight: Attribute) -> DelayedModule {
        let Conv {
            inputs,
            kernel,
            stride,
            dilation,
            late,
            ..
        } = conv;
        let reach = (kernel - 1) * dilation;
        let (left, right) = conv.padding.unwrap_or(match self.recipe.causal {
            true => (reach, 0),
            false => (reach / 2, reach.div_ceil(2)),
        });
        let delay = (stride - (right + late) % stride) % stride;
        let constants = [
            format!("stride : Final[Tuple[int]] = ({stride},)"),
            format!("dilation : Final[Tuple[int]] = ({dilation},)"),
            format!("kernel_size : Final[Tuple[int]] = ({kernel},)"),
            "groups : Final[int] = 1".to_owned(),
        ];
        let convolved = format!(
            "weight = self.weight\nbias = self.bias\n\
             return torch.conv1d(x1, weight, bias, [{stride}], [0], [{dilation}], 1)"
        );
        let mut attributes = vec![("weight", weight), ("bias", Attribute::None)];
        if !self.recipe.streaming {
            let body = format!("x1 = torch.constant_pad_nd(x, [{left}, {right}], 0)\n{convolved}");
            attributes.push(("_pad", Attribute::Pair(left as i64, right as i64)));
            attributes.push(("cumulative_delay", Attribute::Int(0)));
            let module = self.script.module(
                CONVS,
                "Conv1d",
                attributes,
                &constants,
                &[(FORWARD, body.as_str())],
            );
            return DelayedModule {
                module,
                late: (right + delay + late) / stride,
            };
        }
        let late = (right + delay + late) / stride;
        let body = format!(
            "downsampling_delay = self.downsampling_delay\nx0 = (downsampling_delay).forward(x, )\n\
             cache = self.cache\nx1 = (cache).forward(x0, )\n{convolved}"
        );
        attributes.extend([
            ("cumulative_delay", Attribute::Int(late as i64)),
            (
                "cache",
                Attribute::Module(self.padded(left + right, inputs, false)),
            ),
            (
                "downsampling_delay",
                Attribute::Module(self.padded(delay, inputs, true)),
            ),
        ]);
        let module = self.script.module(
            CONVS,
            "CachedConv1d",
            attributes,
            &constants,
            &[(FORWARD, body.as_str())],
        );
        DelayedModule { module, late }
    }

    pub(super) fn transposed(
        &mut self,
        inputs: usize,
        outputs: usize,
        stride: usize,
        late: usize,
    ) -> DelayedModule {
        let (kernel, padding) = (2 * stride, stride / 2);
        let weight = self.weight(&[inputs, outputs, kernel], 2 * inputs);
        let constants = [
            format!("stride : Final[Tuple[int]] = ({stride},)"),
            format!("padding : Final[Tuple[int]] = ({padding},)"),
            "dilation : Final[Tuple[int]] = (1,)".to_owned(),
            "output_padding : Final[Tuple[int]] = (0,)".to_owned(),
            "groups : Final[int] = 1".to_owned(),
        ];
        let mut attributes = vec![("weight", weight), ("bias", Attribute::None)];
        let late = padding + late * stride;
        if !self.recipe.streaming {
            let body = format!(
                "weight = self.weight\nbias = self.bias\n\
                 return torch.conv_transpose1d(x, weight, bias, [{stride}], [{padding}], [0], 1, [1])"
            );
            let module = self.script.module(
                CONVS,
                "ConvTranspose1d",
                attributes,
                &constants,
                &[(FORWARD, body.as_str())],
            );
            return DelayedModule { module, late };
        }
        let overlap = 2 * padding;
        let cache = Tensor::new(&[1, outputs, overlap], vec![0.0; outputs * overlap]);
        attributes.push(("cache", Attribute::Buffer(cache)));
        attributes.push(("cumulative_delay", Attribute::Int(late as i64)));
        let body = format!(
            "weight = self.weight\n\
             y = torch.conv_transpose1d(x, weight, None, [{stride}], [0], [0], 1, [1])\n\
             first = torch.slice(y, -1, 0, {overlap}, 1)\ncache = self.cache\n_0 = torch.add_(first, cache, alpha=1)\n\
             last = torch.slice(y, -1, -{overlap}, 9223372036854775807, 1)\n_1 = torch.copy_(cache, last)\n\
             return torch.slice(y, -1, 0, -{overlap}, 1)"
        );
        let module = self.script.module(
            CONVS,
            "CachedConvTranspose1d",
            attributes,
            &constants,
            &[(FORWARD, body.as_str())],
        );
        DelayedModule { module, late }
    }
}
