//! The executor, device and precision that a user asks for, checked against a model.

use std::fmt;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::model::{Kind, Model};

/// Library that runs a graph; written `native` or `torch`. TorchScript programs always run on
/// libtorch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// The SIMD code of this crate.
    #[default]
    Native,
    /// libtorch, on a [`Device`].
    Torch,
}

impl Backend {
    /// Returns the written form.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Torch => "torch",
        }
    }
}

/// Device that libtorch computes on; written `auto`, `cpu` or `cuda:N`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Device {
    /// The first GPU, or the CPU without one.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The GPU with this index.
    Cuda(u8),
}

/// Text that is not a [`Device`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown device {0:?}; allowed: auto, cpu, cuda:N")]
pub struct ParseDeviceError(pub String);

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

impl FromStr for Device {
    type Err = ParseDeviceError;

    fn from_str(text: &str) -> Result<Self, ParseDeviceError> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            _ => {
                let index = text
                    .strip_prefix("cuda:")
                    .and_then(|index| index.parse().ok());
                index
                    .map(Self::Cuda)
                    .ok_or_else(|| ParseDeviceError(text.into()))
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
    type Error = ParseDeviceError;

    fn try_from(text: String) -> Result<Self, ParseDeviceError> {
        text.parse()
    }
}

/// Number format of weights, states and activations in libtorch; written `f32`, `f16` or `bf16`.
/// Audio enters and leaves in f32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// 24 significant bits.
    #[default]
    F32,
    /// 11 significant bits, up to 65,504.
    F16,
    /// 8 significant bits, with the range of f32.
    Bf16,
}

/// Text that is not a [`Precision`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown precision {0:?}; allowed: f32, f16, bf16")]
pub struct ParsePrecisionError(pub String);

impl Precision {
    /// All precisions.
    pub const ALL: [Self; 3] = [Self::F32, Self::F16, Self::Bf16];

    /// Returns the written form.
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
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Precision {
    type Err = ParsePrecisionError;

    fn from_str(text: &str) -> Result<Self, ParsePrecisionError> {
        let known = Self::ALL
            .into_iter()
            .find(|precision| precision.name() == text);
        known.ok_or_else(|| ParsePrecisionError(text.into()))
    }
}

/// Executor, device and precision for a model's network; the default is the native executor.
/// Reading ignores values that this version does not know and takes the default instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecutorSelection {
    /// Library for graphs.
    #[serde(
        rename = "executor",
        deserialize_with = "value_or_default",
        skip_serializing_if = "is_default"
    )]
    pub backend: Backend,
    /// Device for libtorch.
    #[serde(
        deserialize_with = "value_or_default",
        skip_serializing_if = "is_default"
    )]
    pub device: Device,
    /// Number format for libtorch.
    #[serde(
        deserialize_with = "value_or_default",
        skip_serializing_if = "is_default"
    )]
    pub precision: Precision,
}

/// Deserialises a value; takes the default where the value is unknown.
///
/// # Errors
/// Returns the deserialiser's error if the input is not well-formed.
pub fn value_or_default<'de, T: DeserializeOwned + Default, D: Deserializer<'de>>(
    from: D,
) -> Result<T, D::Error> {
    let value = serde_json::Value::deserialize(from)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Reason why no machine can run a model with an [`ExecutorSelection`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedExecutor {
    /// libtorch does not run instruments.
    #[error("instruments run on the native executor only; choose executor native")]
    Instrument,
    /// The native executor has no device choice.
    #[error("the native executor is CPU-only; {0} needs executor torch")]
    Device(Device),
    /// The native executor has no precision choice.
    #[error("the native executor computes in the model file's precision; {0} needs executor torch")]
    Precision(Precision),
}

impl ExecutorSelection {
    /// Returns true if every field has its default value.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Validates the selection for a model; a TorchScript program always gets [`Backend::Torch`].
    ///
    /// # Errors
    /// Returns [`UnsupportedExecutor`] if no machine can run the model like this.
    pub fn for_model(self, model: &Model) -> Result<Self, UnsupportedExecutor> {
        if model.program().is_some() {
            return Ok(Self {
                backend: Backend::Torch,
                ..self
            });
        }
        match self.backend {
            Backend::Torch if model.header().kind == Kind::Instrument => {
                Err(UnsupportedExecutor::Instrument)
            }
            Backend::Native if self.device != Device::Auto => {
                Err(UnsupportedExecutor::Device(self.device))
            }
            Backend::Native if self.precision != Precision::F32 => {
                Err(UnsupportedExecutor::Precision(self.precision))
            }
            Backend::Torch | Backend::Native => Ok(self),
        }
    }
}

/// Writes `native`, `torch` or, with further choices, a text such as `torch cuda:0 f16`.
impl fmt::Display for ExecutorSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.backend.name())?;
        if self.device != Device::Auto {
            write!(f, " {}", self.device)?;
        }
        if self.precision != Precision::F32 {
            write!(f, " {}", self.precision)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_round_trip_through_text() {
        for device in [Device::Auto, Device::Cpu, Device::Cuda(0), Device::Cuda(7)] {
            assert_eq!(device.to_string().parse(), Ok(device));
        }
        for text in ["", "gpu", "cuda:", "cuda:-1", "cuda:256"] {
            assert!(text.parse::<Device>().is_err(), "{text}");
        }
    }

    #[test]
    fn precisions_round_trip_through_text_and_json() {
        for precision in Precision::ALL {
            assert_eq!(precision.to_string().parse(), Ok(precision));
            assert_eq!(
                serde_json::to_string(&precision).unwrap(),
                format!("{:?}", precision.name())
            );
        }
        let error = "f8".parse::<Precision>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown precision \"f8\"; allowed: f32, f16, bf16"
        );
    }

    #[test]
    fn selections_round_trip_and_ignore_unknown_values() {
        let selection = ExecutorSelection {
            backend: Backend::Torch,
            device: Device::Cuda(1),
            precision: Precision::Bf16,
        };
        let text = r#"{"executor":"torch","device":"cuda:1","precision":"bf16"}"#;
        assert_eq!(serde_json::to_string(&selection).unwrap(), text);
        assert_eq!(
            serde_json::from_str::<ExecutorSelection>(text).unwrap(),
            selection
        );
        assert_eq!(
            serde_json::to_string(&ExecutorSelection::default()).unwrap(),
            "{}"
        );
        let unknown = r#"{"executor":"torch","device":"tpu:0","precision":8,"later":[]}"#;
        let read: ExecutorSelection = serde_json::from_str(unknown).unwrap();
        assert_eq!(
            read,
            ExecutorSelection {
                backend: Backend::Torch,
                ..ExecutorSelection::default()
            }
        );
        let [plain, full] =
            [ExecutorSelection::default(), selection].map(|selection| selection.to_string());
        assert_eq!(
            (plain.as_str(), full.as_str()),
            ("native", "torch cuda:1 bf16")
        );
    }
}
