//! What somebody wants to run a network, and whether that suits a model.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::executor::{Backend, Device, Precision};
use crate::model::{Kind, Model};

/// By what, where and in what a network is to be run; by default by our own code, which knows neither devices nor precisions.
/// What a later version may have named, and anything else that makes no sense, is read as the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wish {
    /// By what. Programs are run by libtorch, whatever is said here.
    #[serde(deserialize_with = "read", skip_serializing_if = "is_default")]
    pub executor: Backend,
    /// Where, if by libtorch.
    #[serde(deserialize_with = "read", skip_serializing_if = "is_default")]
    pub device: Device,
    /// In what, if by libtorch.
    #[serde(deserialize_with = "read", skip_serializing_if = "is_default")]
    pub precision: Precision,
}

/// What can be read, and the default for what cannot.
///
/// # Errors
/// When even the text is none.
pub fn read<'de, T: DeserializeOwned + Default, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    let value = serde_json::Value::deserialize(from)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Why a model cannot be run as somebody wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// libtorch does not run instruments.
    #[error("an instrument is run by our own code, and not by libtorch")]
    Instrument,
    /// Our own code runs it, which is for the CPU.
    #[error("our own code runs this model, on the CPU, and not {0}: that is for libtorch")]
    Device(Device),
    /// Our own code runs it, which knows no precision but the file's.
    #[error("our own code runs this model as its file says, and not in {0}: that is for libtorch")]
    Precision(Precision),
}

impl Wish {
    /// Whether nothing was chosen.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The same for that model: by libtorch where it is a program.
    ///
    /// # Errors
    /// [`Unfit`] when no machine can run it so.
    pub fn of(self, model: &Model) -> Result<Self, Unfit> {
        if model.program().is_some() {
            return Ok(Self { executor: Backend::Torch, ..self });
        }
        match self.executor {
            Backend::Torch if model.header().kind == Kind::Instrument => Err(Unfit::Instrument),
            Backend::Native if self.device != Device::Auto => Err(Unfit::Device(self.device)),
            Backend::Native if self.precision != Precision::F32 => Err(Unfit::Precision(self.precision)),
            Backend::Torch | Backend::Native => Ok(self),
        }
    }
}

/// `native`, `torch` or, where more was chosen, such as `torch cuda:0 f16`.
impl fmt::Display for Wish {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.executor.name())?;
        if self.device != Device::Auto {
            write!(to, " {}", self.device)?;
        }
        if self.precision != Precision::F32 {
            write!(to, " {}", self.precision)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_read_as_it_is_written_and_nonsense_in_it_does_no_harm() {
        let wish = Wish { executor: Backend::Torch, device: Device::Cuda(1), precision: Precision::Bf16 };
        let text = r#"{"executor":"torch","device":"cuda:1","precision":"bf16"}"#;
        assert_eq!((serde_json::to_string(&wish).unwrap().as_str(), serde_json::from_str(text).unwrap()), (text, wish));
        assert_eq!(serde_json::to_string(&Wish::default()).unwrap(), "{}");
        let partly = serde_json::from_str::<Wish>(r#"{"executor":"torch","device":"tpu:0","precision":8,"later":[]}"#);
        assert_eq!(partly.unwrap(), Wish { executor: Backend::Torch, ..Wish::default() });
        let [plain, full] = [Wish::default(), wish].map(|wish| wish.to_string());
        assert_eq!((plain.as_str(), full.as_str()), ("native", "torch cuda:1 bf16"));
    }
}
