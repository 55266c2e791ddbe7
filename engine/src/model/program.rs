//! Programs: models that are no graph but code, which only libtorch can run.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Endings of files that may be programs, without the dot: those for nn~, and Neutone's.
pub const EXTENSIONS: [&str; 2] = ["ts", "nm"];

/// Seconds for which a program may go on sounding after its input has ended: it does not say, and the codecs in use remember less.
const TAIL_S: usize = 2;

/// A program, and how its methods are called.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The file.
    pub bytes: Arc<[u8]>,
    /// Number of its weights.
    pub parameters: usize,
    /// By the name of the model's method.
    pub calls: BTreeMap<String, Call>,
    /// What somebody may want to know of it, each in one line.
    pub notes: Vec<String>,
}

/// How a method of a program is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Its name in the program.
    pub method: String,
    /// By which convention.
    pub convention: Convention,
    /// The input port that sound or latents go into; the others are knobs.
    pub main: usize,
    /// Samples for each frame that the program wants; where the port has more frames than that, it is given the last one of each
    /// group.
    pub ratio_in: usize,
    /// Samples for each frame that the program gives; where the port has more frames than that, each is held.
    pub ratio_out: usize,
    /// Attributes that input ports feed.
    pub attributes: Vec<Attribute>,
    /// Samples by which what comes out is behind what goes in, as far as the program says.
    pub delay: usize,
    /// Names of the channels that go in, where the program gives them.
    pub input_labels: Vec<String>,
    /// Names of the channels that come out.
    pub output_labels: Vec<String>,
}

/// What programs and players have agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Convention {
    /// That of nn~: tensors `[batch, channels, frames]`.
    NnTilde,
    /// That of Neutone: sound `[channels, samples]`, parameters `[4, samples]`.
    Neutone,
}

/// An attribute of a program, as it is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// For each of its values the input port that feeds it.
    pub ports: Vec<usize>,
}

impl Program {
    /// Samples for which a method still sounds after its input has ended, at a rate in Hz.
    #[must_use]
    pub fn tail_samples(sample_rate: u32) -> usize {
        TAIL_S * sample_rate as usize
    }
}
