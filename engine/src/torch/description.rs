//! What the library tells of itself and of a program, as JSON.

use serde::{Deserialize, Serialize};

use crate::model::program::Convention;
use crate::model::{Fault, limits};

/// Programs that take any number of frames are stepped by so many samples: what a call takes in itself is little then.
const SHORTEST_BLOCK: usize = 256;

/// What there is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// GPUs that libtorch can use.
    pub gpus: usize,
}

/// What is in a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// By which convention it is called.
    pub convention: Convention,
    /// What its metadata say; empty where there are none.
    pub name: String,
    /// One or two sentences.
    pub description: String,
    /// Who made it.
    pub author: String,
    /// Rate of its sound, Hz, where it says so.
    pub sample_rate: Option<u32>,
    /// Samples that it wants at a time; 0 where any number of frames will do.
    pub block: usize,
    /// Samples by which what comes out is late, as far as it says.
    pub delay: usize,
    /// Number of weights.
    pub parameters: usize,
    /// What it can do.
    pub methods: Vec<Described>,
    /// What can be turned.
    pub attributes: Vec<DescribedAttribute>,
    /// What else there is to say, each in one line.
    pub notes: Vec<String>,
}

impl Description {
    /// Samples that all methods are stepped by: a multiple of every ratio, and of what the program wants.
    ///
    /// # Errors
    /// [`Fault`] when there are ratios that no block can hold.
    pub fn samples(&self) -> Result<usize, Fault> {
        let mut common = self.block.max(1);
        for Flow { channels, ratio, .. } in self.methods.iter().flat_map(|method| [&method.input, &method.output]) {
            if *channels == 0 || *ratio == 0 {
                return Err(Fault::Header("a method has no channels, or a ratio of 0".into()));
            }
            Fault::limit("the number of channels", *channels, limits::CHANNELS)?;
            Fault::limit("a ratio", *ratio, limits::BLOCK)?;
            common = common / gcd(common, *ratio) * ratio;
            Fault::limit("the block that all ratios take", common, limits::BLOCK)?;
        }
        let shortest = if self.block == 0 { SHORTEST_BLOCK } else { 1 };
        Ok(shortest.next_multiple_of(common))
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A method of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// What goes in.
    pub input: Flow,
    /// What comes out.
    pub output: Flow,
}

/// What goes into a method or comes out of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Values per frame.
    pub channels: usize,
    /// Samples per frame.
    pub ratio: usize,
    /// Names of the channels; empty where there are none.
    pub labels: Vec<String>,
}

/// An attribute with values that can be set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DescribedAttribute {
    /// Its name.
    pub name: String,
    /// Its values, each with its type and as it was when the program was opened.
    pub values: Vec<Turned>,
}

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turned {
    /// Its name; empty where it is the attribute's, with its number where there are several.
    pub name: String,
    /// What it says of itself.
    pub description: String,
    /// What may be set.
    pub kind: TurnedKind,
    /// Where it was when the program was opened; truth is 1.
    pub value: f32,
}

/// What a value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnedKind {
    /// True or false.
    Bool,
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// A number from 0 to 1.
    Share,
}
