//! What is saved with a project, besides the parameters.

use serde::{Deserialize, Serialize};

use crate::library::Reference;

/// Version of what is written; later versions only add fields, so that what they write can be read here too.
pub const VERSION: u32 = 1;

/// Which model, and what the macros turn on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Saved {
    /// The version that wrote this.
    pub version: u32,
    /// The model.
    pub model: Reference,
    /// Names of the controls that the macros turn; none for the first ones of the model's list, in their order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub macros: Option<Vec<Option<String>>>,
    /// Whether the model is saved with the project.
    pub embed: bool,
}
