//! TorchScript programs as models; only libtorch can run them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Model;

/// File extensions of programs, without the dot: those of nn~ and of Neutone.
pub const EXTENSIONS: [&str; 2] = ["ts", "nm"];

/// Assumed tail, seconds. Programs do not declare one; known codecs have shorter ones.
const TAIL_S: usize = 2;

/// TorchScript program and the calling convention of its methods.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Content of the file.
    pub bytes: Arc<[u8]>,
    /// Number of weight values.
    pub parameters: usize,
    /// Calls, by method name of the model.
    pub calls: BTreeMap<String, Call>,
    /// Remarks for the user, one line each.
    pub notes: Vec<String>,
    /// Settings that are no controls, as they are no numbers.
    pub settings: Vec<Setting>,
    /// Method and settings that were chosen.
    pub options: ProgramOptions,
    /// The model without a choice; `None` for that model itself.
    pub original: Option<Arc<Model>>,
}

/// Setting of a program that holds until the program is prepared anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Name.
    pub name: String,
    /// Kind of value.
    pub kind: SettingKind,
    /// Value in the program itself; empty for sounds.
    pub value: String,
}

/// Kind of value of a [`Setting`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingKind {
    /// This many values, separated by commas if there are several.
    Text(usize),
    /// A sound file, for the program's buffer of this name.
    Sound(String),
}

/// Method and settings that a user chooses for a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgramOptions {
    /// Method to play as an effect; `None` for what the program is made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Texts, by the name of the setting.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub texts: BTreeMap<String, String>,
    /// Sound files, by the name of the setting.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sounds: BTreeMap<String, PathBuf>,
}

impl ProgramOptions {
    /// Returns true if nothing was chosen.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Call of a program's method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Name of the method in the program.
    pub method: String,
    /// Calling convention.
    pub convention: Convention,
    /// Index of the input port for audio or latents; the other ports are controls.
    pub main: usize,
    /// Samples per input frame of the program. If the port has more frames, the last frame of each
    /// group is passed.
    pub ratio_in: usize,
    /// Samples per output frame of the program. If the port has more frames, each one is held.
    pub ratio_out: usize,
    /// Attributes that input ports set.
    pub attributes: Vec<Attribute>,
    /// Latency in samples, as declared by the program.
    pub delay: usize,
    /// Names of the input channels, if the program declares them.
    pub input_labels: Vec<String>,
    /// Names of the output channels, if the program declares them.
    pub output_labels: Vec<String>,
    /// Settings that were chosen.
    #[serde(default)]
    pub settings: Vec<ChosenSetting>,
}

/// Setting as the program takes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChosenSetting {
    /// Values of an attribute.
    Text {
        /// Name of the attribute.
        attribute: String,
        /// Its values; the program's types decide how they are read.
        values: Vec<String>,
    },
    /// Sound of a buffer.
    Sound {
        /// Name of the buffer.
        buffer: String,
        /// Sample rate in Hz.
        sample_rate: u32,
        /// `[channel][frame]`
        channels: Vec<Vec<f32>>,
    },
}

/// Calling convention between programs and hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Convention {
    /// nn~: tensors `[batch, channels, frames]`.
    NnTilde,
    /// Neutone: audio `[channels, samples]`, parameters `[4, samples]`.
    Neutone,
}

/// Attribute of a program that input ports set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attribute {
    /// Name of the attribute.
    pub name: String,
    /// Index of the input port that feeds each of its values.
    pub ports: Vec<usize>,
    /// Range of which the program takes the share, from 0 to 1; `None` if it takes the values
    /// themselves.
    #[serde(default)]
    pub range: Option<[f32; 2]>,
}

impl Program {
    /// Returns how long a method may sound after its input has ended, in samples.
    #[must_use]
    pub fn tail_samples(sample_rate: u32) -> usize {
        TAIL_S * sample_rate as usize
    }
}
