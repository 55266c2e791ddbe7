//! JSON descriptions of the library and of a TorchScript program.

use serde::{Deserialize, Serialize};

use crate::model::program::{Convention, Setting};
use crate::model::{ModelError, limits};

/// Shortest block in samples of programs that take any number of frames: long enough that the
/// overhead of a call is small.
const MIN_BLOCK: usize = 256;

/// Properties of the library and its system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibraryInfo {
    /// Number of GPUs that libtorch can use.
    pub gpus: usize,
}

/// Description of a TorchScript program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramDescription {
    /// Calling convention.
    pub convention: Convention,
    /// Name from the metadata; empty without one.
    pub name: String,
    /// One or two sentences from the metadata; empty without any.
    pub description: String,
    /// Author from the metadata; empty without one.
    pub author: String,
    /// Sample rate of the audio in Hz, if the program states it.
    pub sample_rate: Option<u32>,
    /// Samples that the program takes at a time; 0 for any number of frames.
    pub block: usize,
    /// Delay of the output in samples, as far as the program states it.
    pub delay: usize,
    /// Number of weights.
    pub parameters: usize,
    /// Methods of the program.
    pub methods: Vec<MethodDescription>,
    /// Attributes that can be set.
    pub attributes: Vec<AttributeDescription>,
    /// Settings that are no numbers.
    pub settings: Vec<Setting>,
    /// Further notes for the user, one line each.
    pub notes: Vec<String>,
}

impl ProgramDescription {
    /// Returns the block of all methods in samples: a multiple of every ratio and of the program's
    /// own block.
    ///
    /// # Errors
    /// Returns [`ModelError`] if a method has no channels, or the block would exceed
    /// [`limits::BLOCK`].
    pub fn samples(&self) -> Result<usize, ModelError> {
        let mut common = self.block.max(1);
        for PortDescription {
            channels, ratio, ..
        } in self
            .methods
            .iter()
            .flat_map(|method| [&method.input, &method.output])
        {
            if *channels == 0 || *ratio == 0 {
                return Err(ModelError::Header(
                    "a method has no channels, or a ratio of 0".into(),
                ));
            }
            ModelError::limit("the number of channels", *channels, limits::CHANNELS)?;
            ModelError::limit("a ratio", *ratio, limits::BLOCK)?;
            common = common / gcd(common, *ratio) * ratio;
            ModelError::limit("the block that all ratios take", common, limits::BLOCK)?;
        }
        let shortest = if self.block == 0 { MIN_BLOCK } else { 1 };
        Ok(shortest.next_multiple_of(common))
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Method of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MethodDescription {
    /// Name.
    pub name: String,
    /// Input.
    pub input: PortDescription,
    /// Output.
    pub output: PortDescription,
}

/// Input or output of a method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortDescription {
    /// Values per frame.
    pub channels: usize,
    /// Samples per frame.
    pub ratio: usize,
    /// Names of the channels; empty without any.
    pub labels: Vec<String>,
}

/// Attribute with values that can be set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttributeDescription {
    /// Name.
    pub name: String,
    /// Values with their types and initial values.
    pub values: Vec<AttributeValue>,
}

/// Value of an attribute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttributeValue {
    /// Name; empty for the attribute's own name, with a number if it has several values.
    pub name: String,
    /// Description from the program.
    pub description: String,
    /// Type and range.
    pub kind: AttributeKind,
    /// Initial value; true is 1.
    pub value: f32,
}

/// Type and range of a value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttributeKind {
    /// True or false.
    Bool,
    /// An integer.
    Int,
    /// A number.
    Float,
    /// A number in a range. The program takes its share of the range, from 0 to 1.
    Continuous {
        /// Least value.
        min: f32,
        /// Greatest value.
        max: f32,
    },
    /// One of `count` choices, by number from 0. The program takes it as a share of the last
    /// number.
    Choice {
        /// Number of choices.
        count: u16,
    },
}

impl AttributeKind {
    /// Returns the range of which the program takes the share; `None` if it takes the value itself.
    #[must_use]
    pub fn shared_range(self) -> Option<[f32; 2]> {
        match self {
            Self::Bool | Self::Int | Self::Float => None,
            Self::Continuous { min, max } => Some([min, max]),
            Self::Choice { count } => Some([0.0, f32::from(count.max(2)) - 1.0]),
        }
    }
}
