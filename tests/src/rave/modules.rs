//! Activations, norms, sequences, branches and residual units.

use ondes_engine::model::Tensor;

use super::convolutions::Conv;
use super::script::{Attribute, Module};
use super::{BLOCKS, CONVS, DelayedModule, FORWARD, Generation, ModuleBuilder};

impl ModuleBuilder<'_> {
    pub(super) fn leaky(&mut self) -> Module {
        let constants = ["negative_slope : Final[float] = 0.20000000000000001".to_owned()];
        let body = "return torch.leaky_relu(x, 0.20000000000000001)";
        self.script.module(
            "torch.nn.modules.activation",
            "LeakyReLU",
            Vec::new(),
            &constants,
            &[(FORWARD, body)],
        )
    }

    pub(super) fn activation(&mut self, channels: usize) -> Module {
        if self.recipe.generation != Generation::V3 {
            return self.leaky();
        }
        let alpha = shifted(&self.values(&[channels, 1], 0.5), 1.0);
        let body = "alpha = self.alpha\nwave = torch.pow(torch.sin(torch.mul(alpha, x)), 2)\n\
                    return torch.add(x, torch.mul(torch.reciprocal(torch.add(alpha, 1.0e-9, alpha=1)), wave), alpha=1)";
        let attributes = vec![("alpha", Attribute::Parameter(alpha))];
        self.script
            .module(BLOCKS, "Snake", attributes, &[], &[(FORWARD, body)])
    }

    pub(super) fn norm(&mut self, channels: usize) -> Module {
        let mut around =
            |middle: f32, bound: f64| shifted(&self.values(&[channels], bound), middle);
        let (gain, offset) = (around(1.0, 0.5), around(0.0, 0.5));
        let (mean, variance) = (around(0.0, 0.5), around(1.0, 0.6));
        let attributes = vec![
            ("weight", Attribute::Parameter(gain)),
            ("bias", Attribute::Parameter(offset)),
            ("running_mean", Attribute::Buffer(mean)),
            ("running_var", Attribute::Buffer(variance)),
        ];
        let body = "weight = self.weight\nbias = self.bias\nmean = self.running_mean\nvariance = self.running_var\n\
                    return torch.batch_norm(x, weight, bias, mean, variance, False, 0.1, 1.0e-5, True)";
        let constants = ["eps : Final[float] = 1.0000000000000001e-05".to_owned()];
        self.script.module(
            "torch.nn.modules.batchnorm",
            "BatchNorm1d",
            attributes,
            &constants,
            &[(FORWARD, body)],
        )
    }

    pub(super) fn adain(&mut self) -> Module {
        let zero = || Attribute::Buffer(Tensor::new(&[1], vec![0.0]));
        let names = ["learn_x", "num_update_x", "learn_y", "num_update_y"];
        let attributes = names.map(|name| (name, zero())).into();
        self.script.module(
            BLOCKS,
            "AdaptiveInstanceNormalization",
            attributes,
            &[],
            &[(FORWARD, "return x")],
        )
    }

    pub(super) fn sequence(&mut self, modules: Vec<Module>) -> Module {
        let names: Vec<String> = (0..modules.len()).map(|index| index.to_string()).collect();
        let steps: String = names
            .iter()
            .map(|name| format!("m{name} = getattr(self, \"{name}\")\n"))
            .collect();
        let calls = (0..modules.len()).fold("x".to_owned(), |inner, index| {
            format!("(m{index}).forward({inner}, )")
        });
        let attributes = names
            .iter()
            .map(String::as_str)
            .zip(modules.into_iter().map(Attribute::Module))
            .collect();
        let body = format!("{steps}return {calls}");
        self.script.module(
            CONVS,
            "CachedSequential",
            attributes,
            &[],
            &[(FORWARD, body.as_str())],
        )
    }

    pub(super) fn list(&mut self, modules: Vec<Module>) -> Attribute {
        let names: Vec<String> = (0..modules.len()).map(|index| index.to_string()).collect();
        let attributes = names
            .iter()
            .map(String::as_str)
            .zip(modules.into_iter().map(Attribute::Module))
            .collect();
        Attribute::Module(self.script.module(
            "torch.nn.modules.container",
            "ModuleList",
            attributes,
            &[],
            &[],
        ))
    }

    /// Builds parallel branches of `channels` channels with equal delay; `None` is the identity.
    pub(super) fn branches(
        &mut self,
        channels: usize,
        branches: Vec<Option<DelayedModule>>,
    ) -> DelayedModule {
        let lates: Vec<usize> = branches
            .iter()
            .map(|part| part.as_ref().map_or(0, |part| part.late))
            .collect();
        let latest = lates.iter().copied().max().unwrap_or(0);
        let count = branches.len();
        let mut body = String::from("branches = self.branches\n");
        let mut outputs = Vec::new();
        for index in 0..count {
            body += &format!("b{index} = getattr(branches, \"{index}\")\n");
            outputs.push(format!("y{index}"));
        }
        if self.recipe.streaming {
            body += "paddings = self.paddings\n";
            for index in 0..count {
                body += &format!("p{index} = getattr(paddings, \"{index}\")\n");
                body += &format!("y{index} = (b{index}).forward((p{index}).forward(x, ), )\n");
            }
        } else {
            (0..count).for_each(|index| body += &format!("y{index} = (b{index}).forward(x, )\n"));
        }
        body += &format!("return [{}]", outputs.join(", "));
        let identity = |builder: &mut Self| {
            builder.script.module(
                "torch.nn.modules.linear",
                "Identity",
                Vec::new(),
                &[],
                &[(FORWARD, "return x")],
            )
        };
        let modules = branches
            .into_iter()
            .map(|part| part.map_or_else(|| identity(self), |part| part.module))
            .collect();
        let mut attributes = vec![("branches", self.list(modules))];
        let mut name = "Branches";
        if self.recipe.streaming {
            let paddings = lates
                .iter()
                .map(|late| self.padded(latest - late, channels, true))
                .collect();
            attributes.push(("paddings", self.list(paddings)));
            name = "AlignBranches";
        }
        let head = "forward(x: Tensor) -> List[Tensor]:";
        let module = self
            .script
            .module(CONVS, name, attributes, &[], &[(head, body.as_str())]);
        DelayedModule {
            module,
            late: latest,
        }
    }

    /// Wraps a module as attribute `field` of a module of class `name`.
    pub(super) fn around(&mut self, name: &str, field: &str, part: DelayedModule) -> DelayedModule {
        let body = format!("inner = self.{field}\nreturn (inner).forward(x, )");
        let attributes = vec![(field, Attribute::Module(part.module))];
        let module = self
            .script
            .module(BLOCKS, name, attributes, &[], &[(FORWARD, body.as_str())]);
        DelayedModule {
            module,
            late: part.late,
        }
    }

    pub(super) fn residual(&mut self, channels: usize, part: DelayedModule) -> DelayedModule {
        let aligned = self.branches(channels, vec![Some(part), None]);
        let body = "aligned = self.aligned\nboth = (aligned).forward(x, )\nreturn torch.add(both[0], both[1], alpha=1)";
        let attributes = vec![("aligned", Attribute::Module(aligned.module))];
        let module = self
            .script
            .module(BLOCKS, "Residual", attributes, &[], &[(FORWARD, body)]);
        DelayedModule {
            module,
            late: aligned.late,
        }
    }

    pub(super) fn dilated_unit(&mut self, channels: usize, dilation: usize) -> DelayedModule {
        let wide = self.conv(Conv {
            dilation,
            ..Conv::new(channels, channels, 3)
        });
        // A small residual, as in a trained network.
        let weight = self.values(
            &[channels, channels, 1],
            0.3 * (3.0 / channels as f64).sqrt(),
        );
        let narrow = self
            .conv_of(
                Conv::new(channels, channels, 1),
                Attribute::Parameter(weight),
            )
            .module;
        let modules = vec![
            self.activation(channels),
            wide.module,
            self.activation(channels),
            narrow,
        ];
        let net = DelayedModule {
            module: self.sequence(modules),
            late: wide.late,
        };
        let unit = self.around("DilatedUnit", "net", net);
        self.residual(channels, unit)
    }

    /// Appends the dilated units at one rate to `net`. Returns their delay in frames.
    pub(super) fn units(
        &mut self,
        channels: usize,
        dilations: &[usize],
        net: &mut Vec<Module>,
    ) -> usize {
        let mut late = 0;
        for &dilation in dilations {
            if self.recipe.generation == Generation::V3 {
                net.push(self.adain());
            }
            let unit = self.dilated_unit(channels, dilation);
            late += unit.late;
            net.push(unit.module);
        }
        late
    }
}

/// Adds `by` to each value.
fn shifted(tensor: &Tensor, by: f32) -> Tensor {
    Tensor::new(
        tensor.shape(),
        tensor.floats().iter().map(|value| value + by).collect(),
    )
}
