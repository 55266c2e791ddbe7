//! Importers: turn models of other programs into a graph, weights and a card.
//!
//! `nam` reads `.nam` files of Neural Amp Modeler, `keras` the JSON of AIDA-X and RTNeural, and
//! `proteus` the JSON of Proteus; the format is detected from the fields. They share `field` (JSON
//! access with errors that name the field), `graph_builder` and `weight_reader` (weights in one
//! flat list). Imported models are ordinary effects: nothing after the import depends on the
//! format. [`rave`] reads RAVE exports, which are TorchScript archives and become codecs.

mod control_inputs;
mod field;
mod graph_builder;
mod keras;
mod lenient;
mod nam;
mod proteus;
pub mod rave;
mod weight_reader;

use serde_json::Value;

use super::{Model, ModelError, foreign, limits};
use crate::files::without_mark;
use field::Field;

/// Largest file, bytes: a hundred times the largest known captures. Parsed JSON takes several times
/// as much memory.
pub(super) const FILE_BYTES: usize = 64 << 20;

/// Samples per step of an imported method. These networks work sample by sample, so they can be
/// stepped by any number of samples.
const BLOCK: usize = 1;

/// Imported model.
#[derive(Clone, Debug)]
pub struct ImportedModel {
    /// The model.
    pub model: Model,
    /// Remarks for the user, one line each.
    pub notes: Vec<String>,
}

/// Returns whether the bytes look like a JSON object or list.
#[must_use]
pub fn is_json(bytes: &[u8]) -> bool {
    matches!(without_mark(bytes).trim_ascii_start(), [b'{' | b'[', ..])
}

/// Parses a capture of any supported format.
///
/// # Errors
/// Returns [`ModelError`] with the path of the invalid field.
pub fn parse(bytes: &[u8]) -> Result<ImportedModel, ModelError> {
    ModelError::limit("the size of the JSON", bytes.len(), FILE_BYTES)?;
    let bytes = without_mark(bytes);
    let value = serde_json::from_slice(bytes).or_else(|error| {
        // The first error is about the file as it is.
        serde_json::from_str(&lenient::strict(bytes)).map_err(|_| error)
    });
    let value: Value = value.map_err(|error| {
        let known = foreign::describe_json_error(&error).map(ModelError::Foreign);
        known.unwrap_or_else(|| ModelError::NotAModel(format!("JSON: {error}")))
    })?;
    let root = Field::root(&value);
    let mut notes = Vec::new();
    let model = if root.find("architecture").is_some() {
        nam::import(&root, &mut notes)
    } else if root.find("model_data").is_some() && root.find("state_dict").is_some() {
        proteus::import(&root)
    } else if root.find("layers").is_some() {
        keras::import(&root)
    } else if let Some(what) = foreign::describe_json(&value) {
        Err(ModelError::Foreign(what))
    } else {
        let known =
            "\"architecture\" (.nam), \"layers\" (AIDA-X, RTNeural) or \"state_dict\" (Proteus)";
        Err(ModelError::NotAModel(format!(
            "a JSON file without {known}"
        )))
    }?;
    Ok(ImportedModel { model, notes })
}

/// Shortens a text to the limit of a card's one-line fields.
fn card_text(text: &str) -> String {
    let mut end = text.len().min(limits::NAME_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
