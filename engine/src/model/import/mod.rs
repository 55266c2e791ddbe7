//! Captures of other programs, as models: each importer turns one format into a graph, weights and a card.
//!
//! [`nam`] reads Neural Amp Modeler's `.nam`, [`keras`] what AIDA-X and RTNeural read, [`proteus`] what Proteus does. All are
//! JSON and are told apart by what they hold. They share [`field`] (reading JSON so that an error names the field),
//! [`graph_builder`] (a network in the making) and [`weight_reader`] (weights in one long list). What they make is an effect like any other:
//! nothing plays a format, everything plays a graph.

mod field;
mod weight_reader;
mod keras;
mod control_inputs;
mod nam;
mod proteus;
pub mod rave;
mod graph_builder;

use serde_json::Value;

use super::{ModelError, Model, limits};
use field::Field;

/// Largest file, bytes: a hundred times the largest captures in use. Read as JSON it takes several times as much memory.
const FILE_BYTES: usize = 64 << 20;

/// Samples per step of an imported method. These networks make one sample of each, so nothing has to wait: a player steps them
/// in pieces as long as what it has at once.
const BLOCK: usize = 1;

/// A capture that was read.
#[derive(Clone, Debug)]
pub struct ImportedModel {
    /// The model that it is.
    pub model: Model,
    /// What somebody may want to know about how it was read, each in one line.
    pub notes: Vec<String>,
}

/// Whether those bytes may be a capture: whether they are a JSON object.
#[must_use]
pub fn is_json(bytes: &[u8]) -> bool {
    without_mark(bytes).iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

/// Reads a capture of any format.
///
/// # Errors
/// [`ModelError`] names the field that is wrong.
pub fn parse(bytes: &[u8]) -> Result<ImportedModel, ModelError> {
    ModelError::limit("the size of the JSON", bytes.len(), FILE_BYTES)?;
    let value: Value =
        serde_json::from_slice(without_mark(bytes)).map_err(|error| ModelError::NotAModel(format!("JSON: {error}")))?;
    let root = Field::root(&value);
    let mut notes = Vec::new();
    let model = if root.find("architecture").is_some() {
        nam::import(&root, &mut notes)
    } else if root.find("model_data").is_some() && root.find("state_dict").is_some() {
        proteus::import(&root)
    } else if root.find("layers").is_some() {
        keras::import(&root)
    } else {
        let known = "\"architecture\" (.nam), \"layers\" (AIDA-X, RTNeural) or \"state_dict\" (Proteus)";
        Err(ModelError::NotAModel(format!("a JSON file without {known}")))
    }?;
    Ok(ImportedModel { model, notes })
}

/// Some editors put a mark in front of UTF-8.
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes)
}

/// The text that a card may show in one line.
fn card_text(text: &str) -> String {
    let mut end = text.len().min(limits::NAME_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
