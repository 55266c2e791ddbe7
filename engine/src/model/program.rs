//! TorchScript programs as models; only libtorch can run them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

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
    /// Samples per input frame of the program. If the port has more frames, the last frame of each group is passed.
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
    /// Range of which the program takes the share, from 0 to 1; `None` if it takes the values themselves.
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
