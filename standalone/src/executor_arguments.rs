//! Command-line options that select the executor of a network.

use anyhow::anyhow;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use ondes_engine::dsp::resample::Resampling;
use ondes_engine::executor::{Backend, Device, Precision};
use ondes_engine::executor::{ExecutorSelection, UnsupportedExecutor};
use ondes_engine::model::Model;

/// Options that select the executor of a network.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutorArguments {
    /// Executor of an effect's or a codec's network; TorchScript models always run on libtorch
    #[arg(long, value_enum, value_name = "EXECUTOR", default_value_t = ExecutorArgument::Native)]
    pub executor: ExecutorArgument,
    /// Device that libtorch computes on: auto (a GPU if there is one), cpu or cuda:N. If a GPU
    /// fails, the CPU takes over
    #[arg(long, value_name = "DEVICE", default_value_t = Device::Auto)]
    pub device: Device,
    /// Precision that libtorch computes in; f16 and bf16 halve the memory, are less exact and are
    /// meant for GPUs
    #[arg(long, value_name = "PRECISION", default_value_t = Precision::F32, value_parser = precisions())]
    pub precision: Precision,
}

fn precisions() -> impl TypedValueParser<Value = Precision> {
    PossibleValuesParser::new(Precision::ALL.map(Precision::name)).try_map(|name| name.parse())
}

/// Executor of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExecutorArgument {
    /// Ondes' own code, on the CPU
    Native,
    /// libtorch, on the CPU or a GPU
    Torch,
}

impl ExecutorArguments {
    /// Returns the options with whether each was given.
    pub fn given_options(self) -> [(&'static str, bool); 3] {
        [
            ("--executor", self.executor != ExecutorArgument::Native),
            ("--device", self.device != Device::Auto),
            ("--precision", self.precision != Precision::F32),
        ]
    }

    /// Returns the executor selection if it suits `model`.
    ///
    /// # Errors
    /// Returns an error without the model's name if the model cannot be run that way.
    pub fn selection_for(self, model: &Model) -> anyhow::Result<ExecutorSelection> {
        let backend = match self.executor {
            ExecutorArgument::Native => Backend::Native,
            ExecutorArgument::Torch => Backend::Torch,
        };
        let executor = ExecutorSelection {
            backend,
            device: self.device,
            precision: self.precision,
        };
        executor.for_model(model).map_err(|unfit| match unfit {
            UnsupportedExecutor::Instrument => anyhow!("an instrument needs --executor native"),
            UnsupportedExecutor::Device(device) => anyhow!(
                "the native executor is CPU-only; --device {device} needs --executor torch"
            ),
            UnsupportedExecutor::Precision(precision) => anyhow!(
                "the native executor uses the precision of the model file; --precision {precision} needs --executor torch"
            ),
        })
    }
}

/// Method of rate conversion, where the model's sample rate is another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ResamplingArgument {
    /// At most 1 ms; linear in phase up to 18 kHz
    #[default]
    LowLatency,
    /// 30 to 40 ms; linear in phase up to the limit of hearing
    LinearPhase,
}

impl From<ResamplingArgument> for Resampling {
    fn from(argument: ResamplingArgument) -> Self {
        match argument {
            ResamplingArgument::LowLatency => Self::LowLatency,
            ResamplingArgument::LinearPhase => Self::LinearPhase,
        }
    }
}
