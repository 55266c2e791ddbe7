//! Request to prepare a method in the library, sent as JSON.

use serde::{Deserialize, Serialize};

use crate::executor::{Device, Precision};
use crate::model::program::Call;
use crate::model::{Method, Port};

/// A method to prepare.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrepareRequest {
    /// Hash of the file's content; methods of equal content share weights.
    pub hash: String,
    /// The method with its ports.
    pub method: Method,
    /// Origin of the method.
    #[serde(rename = "work")]
    pub source: MethodSource,
    /// Sample rate of the audio in Hz.
    pub sample_rate: u32,
    /// Number of streams, each with a state of its own.
    pub streams: usize,
    /// Maximum number of blocks in a step.
    pub blocks: usize,
    /// Device to compute on.
    pub device: Device,
    /// Number format to compute in.
    pub precision: Precision,
}

/// Origin of a method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MethodSource {
    /// A TorchScript program.
    Program(Call),
    /// A graph in a model file.
    Graph,
}

/// Returns the number of values that a port has in a step; saturates.
#[must_use]
pub fn step_values(port: &Port, block: usize, streams: usize, blocks: usize) -> usize {
    (block / port.ratio)
        .saturating_mul(port.channels)
        .saturating_mul(streams)
        .saturating_mul(blocks)
}
