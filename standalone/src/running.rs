//! What runs a network, as the command line says it.

use anyhow::anyhow;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use ondes_engine::executor::{Backend, Device, Precision};
use ondes_engine::model::Model;
use ondes_engine::wish::{Unfit, Wish};

/// What runs the network.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunningArguments {
    /// What runs an effect's or a codec's network. TorchScript programs are always run by libtorch
    #[arg(long, value_enum, value_name = "EXECUTOR", default_value_t = Executor::Native)]
    pub executor: Executor,
    /// Where libtorch computes: auto (a GPU where there is one), cpu or cuda:N. A GPU that fails meanwhile is left for the CPU
    #[arg(long, value_name = "DEVICE", default_value_t = Device::Auto)]
    pub device: Device,
    /// In what libtorch computes: f16 and bf16 take half the memory and are less exact; they are meant for GPUs
    #[arg(long, value_name = "PRECISION", default_value_t = Precision::F32, value_parser = precisions())]
    pub precision: Precision,
}

fn precisions() -> impl TypedValueParser<Value = Precision> {
    PossibleValuesParser::new(Precision::ALL.map(Precision::name)).try_map(|name| name.parse())
}

/// What runs a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Executor {
    /// Our own code
    Native,
    /// libtorch
    Torch,
}

impl RunningArguments {
    /// The options that were given, by their names.
    pub fn given(self) -> [(&'static str, bool); 3] {
        [
            ("--executor", self.executor != Executor::Native),
            ("--device", self.device != Device::Auto),
            ("--precision", self.precision != Precision::F32),
        ]
    }

    /// What is asked for, where that model can be run so.
    ///
    /// # Errors
    /// Half a line, to stand after the model's name: it cannot.
    pub fn of(self, model: &Model) -> anyhow::Result<Wish> {
        let executor = match self.executor {
            Executor::Native => Backend::Native,
            Executor::Torch => Backend::Torch,
        };
        let wish = Wish { executor, device: self.device, precision: self.precision };
        wish.of(model).map_err(|unfit| match unfit {
            Unfit::Instrument => anyhow!("the model is of kind instrument, which our own code runs"),
            Unfit::Device(device) => anyhow!(
                "--device {device} is for what libtorch runs; our own code, which runs this model, is for the CPU (--executor torch)"
            ),
            Unfit::Precision(precision) => anyhow!(
                "--precision {precision} is for what libtorch runs; our own code, which runs this model, computes as its file says (--executor torch)"
            ),
        })
    }
}
