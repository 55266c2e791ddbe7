//! What is to be made of a program or of a graph.

use serde::{Deserialize, Serialize};

use crate::executor::{Device, Precision};
use crate::model::Method;
use crate::model::program::Call;

/// A method that is to be stepped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Hash of the content: what has the same shares its weights.
    pub hash: String,
    /// The method, with its ports.
    pub method: Method,
    /// What it is.
    pub work: Work,
    /// Rate of the sound, Hz.
    pub sample_rate: u32,
    /// Streams, each with a state of its own.
    pub streams: usize,
    /// Most blocks in a step.
    pub blocks: usize,
    /// Where it is computed.
    pub device: Device,
    /// In what.
    pub precision: Precision,
}

/// What a method is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// One of a program.
    Program(Call),
    /// A graph, in a model file of ours.
    Graph,
}
