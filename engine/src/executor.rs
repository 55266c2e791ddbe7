//! What runs a method of a model: our own code, or libtorch behind a library that is opened when it is needed.

use std::cell::RefCell;
use std::fmt;
use std::str::FromStr;

use ondes_kernels::Kernels;
use serde::{Deserialize, Serialize};

use crate::model::{Fault, Method, Model};
use crate::native;
use crate::torch::{Fallback, Library, Runner};
use crate::wish::Wish;

/// A method of a model, ready to be stepped block by block for several streams at once.
///
/// A step goes: [`Execute::begin`] names the streams and the number of blocks, [`Execute::input`] is filled, [`Execute::run`]
/// computes, [`Execute::output`] is read. What a stream gives depends on nothing but what it was given.
pub trait Execute: Send {
    /// Starts a step of `blocks` blocks for those streams, in that order.
    fn begin(&mut self, streams: &[usize], blocks: usize);

    /// The values of an input port for this step, `[stream][frame][channel]`, to be filled whole.
    fn input(&mut self, port: usize) -> &mut [f32];

    /// Computes the step.
    ///
    /// # Panics
    /// Unwinds with a [`String`] when a program breaks down; native code never does.
    fn run(&mut self);

    /// The values of an output port after [`Execute::run`], `[stream][frame][channel]`.
    fn output(&self, port: usize) -> &[f32];

    /// Forgets all that a stream has heard and gives its noise another seed.
    fn seed(&mut self, stream: usize, seed: u64);

    /// Bytes of weights, states and buffers.
    fn bytes(&self) -> usize;

    /// What computes it, such as `native avx2`.
    fn name(&self) -> String;

    /// Whether a step may take memory, or wait: then it has no place in an audio callback.
    fn may_allocate(&self) -> bool;
}

impl Execute for native::Executor {
    fn begin(&mut self, streams: &[usize], blocks: usize) {
        self.begin(streams, blocks);
    }

    fn input(&mut self, port: usize) -> &mut [f32] {
        self.input(port)
    }

    fn run(&mut self) {
        self.run();
    }

    fn output(&self, port: usize) -> &[f32] {
        self.output(port)
    }

    fn seed(&mut self, stream: usize, seed: u64) {
        self.seed(stream, seed);
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }

    fn name(&self) -> String {
        self.name()
    }

    fn may_allocate(&self) -> bool {
        false
    }
}

/// What runs graphs. Programs are always run by libtorch. Written `native` or `torch`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// Our own code.
    #[default]
    Native,
    /// libtorch, on [`Device`].
    Torch,
}

impl Backend {
    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Torch => "torch",
        }
    }
}

/// Where libtorch computes. Written `auto`, `cpu` or `cuda:N`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Device {
    /// The first GPU, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The GPU of that number.
    Cuda(u8),
}

impl fmt::Display for Device {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => to.write_str("auto"),
            Self::Cpu => to.write_str("cpu"),
            Self::Cuda(number) => write!(to, "cuda:{number}"),
        }
    }
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            _ => {
                let number = text.strip_prefix("cuda:").and_then(|number| number.parse().ok());
                number.map(Self::Cuda).ok_or_else(|| format!("{text:?} is no device: auto, cpu or cuda:N"))
            }
        }
    }
}

impl From<Device> for String {
    fn from(device: Device) -> Self {
        device.to_string()
    }
}

impl TryFrom<String> for Device {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// In what libtorch computes: weights, states and what goes through. Sound goes in and comes out in f32. Written `f32`, `f16` or
/// `bf16`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// 24 significant bits.
    #[default]
    F32,
    /// 11 significant bits, up to 65,504.
    F16,
    /// 8 significant bits, as far as f32.
    Bf16,
}

impl Precision {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::F32, Self::F16, Self::Bf16];

    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}

impl FromStr for Precision {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|precision| precision.name() == text);
        known.ok_or_else(|| format!("{text:?} is no precision: f32, f16 or bf16"))
    }
}

/// How a method is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Running {
    /// By what, where and in what.
    pub wish: Wish,
    /// With which arithmetic, if by our own code.
    pub kernels: Kernels,
    /// Where it cannot be run so, what can run it does, and it is said.
    pub lenient: bool,
}

impl Running {
    /// Prepares a method for up to `streams` streams and up to `blocks` blocks a step.
    ///
    /// # Errors
    /// [`Fault`] when the model has no such method or it cannot be run like this.
    pub fn prepare(
        &self,
        model: &Model,
        method: &Method,
        streams: usize,
        blocks: usize,
    ) -> Result<Box<dyn Execute>, Fault> {
        if self.wish.executor != Backend::Torch && model.program().is_none() {
            return self.native(model, method, streams, blocks);
        }
        let why = match self.by_torch(model, method, streams, blocks) {
            Err(why) if self.lenient => why,
            done => return done,
        };
        let otherwise = match model.program() {
            Some(_) => {
                let best = Self { wish: Wish::default(), ..*self };
                best.by_torch(model, method, streams, blocks)
            }
            None => self.native(model, method, streams, blocks),
        };
        let Ok(otherwise) = otherwise else { return Err(why) };
        let wish = Wish { executor: Backend::Torch, ..self.wish };
        notice(&format!("{} plays, and not {wish}: {why}", otherwise.name()));
        Ok(otherwise)
    }

    fn by_torch(
        &self,
        model: &Model,
        method: &Method,
        streams: usize,
        blocks: usize,
    ) -> Result<Box<dyn Execute>, Fault> {
        let Wish { device: wanted, precision, .. } = self.wish;
        let device = match wanted {
            Device::Auto if Library::get()?.gpus > 0 => Device::Cuda(0),
            Device::Auto => Device::Cpu,
            device => device,
        };
        let on = |device, precision| Runner::new(model, method, device, precision, streams, blocks);
        if device == Device::Cpu {
            return Ok(Box::new(on(device, precision)?));
        }
        // Made beforehand: when the GPU fails there is no time.
        let spare = match model.program() {
            // In f32: not every CPU is fast in less.
            Some(_) => on(Device::Cpu, Precision::F32).map(|runner| Box::new(runner) as Box<dyn Execute>),
            None => self.native(model, method, streams, blocks),
        };
        match (on(device, precision), spare) {
            (Ok(first), Ok(spare)) => {
                let rate = model.header().sample_rate;
                Ok(Box::new(Fallback::new(first, spare, method, rate, streams, blocks)))
            }
            (Ok(first), Err(_)) => Ok(Box::new(first)),
            // Where the choice is ours, a GPU that does not want to is no reason to be silent.
            (Err(why), Ok(spare)) if wanted == Device::Auto && precision == Precision::F32 => {
                notice(&format!("{device} cannot be used ({why}); {} plays", spare.name()));
                Ok(spare)
            }
            (Err(why), _) => Err(why),
        }
    }

    fn native(&self, model: &Model, method: &Method, streams: usize, blocks: usize) -> Result<Box<dyn Execute>, Fault> {
        Ok(Box::new(native::Executor::new(model, &method.name, self.kernels, streams, blocks)?))
    }
}

thread_local! {
    /// The newest notice of this thread.
    static NOTICE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// An executor says, on the thread that makes or steps it, what the user should know and what stops nothing, in one line.
pub(crate) fn notice(text: &str) {
    tracing::warn!("{text}");
    NOTICE.set(Some(text.to_owned()));
}

/// Takes what executors have said last on this thread.
#[must_use]
pub fn noticed() -> Option<String> {
    NOTICE.take()
}

#[cfg(test)]
mod tests {
    use super::{Device, Precision};

    #[test]
    fn a_device_is_read_as_it_is_written() {
        for device in [Device::Auto, Device::Cpu, Device::Cuda(0), Device::Cuda(7)] {
            assert_eq!(device.to_string().parse(), Ok(device));
        }
        for text in ["", "gpu", "cuda:", "cuda:-1", "cuda:256"] {
            assert!(text.parse::<Device>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_precision_is_read_as_it_is_written() {
        for precision in Precision::ALL {
            assert_eq!(precision.to_string().parse(), Ok(precision));
            // The library reads the same words.
            assert_eq!(serde_json::to_string(&precision).unwrap(), format!("{:?}", precision.name()));
        }
        assert_eq!("f8".parse::<Precision>(), Err("\"f8\" is no precision: f32, f16 or bf16".into()));
    }
}
