//! Export to `.nam` files: JSON with all weights in one list.

use std::path::Path;

use anyhow::Context;
use ondes_engine::files;
use ondes_engine::model::Model;
use serde_json::{Value, json};

use super::architecture::Architecture;
use super::knobs::weights_at;

/// Writes a capture. The format has no knobs; those of the model are fixed at `settings`.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn write(
    path: &Path,
    architecture: &Architecture,
    model: &Model,
    settings: &[f32],
) -> anyhow::Result<()> {
    let header = model.header();
    let file = architecture.nam_file(
        &weights_at(model, settings),
        header.sample_rate,
        &metadata(model),
    );
    files::write(path, file.to_string().as_bytes())
        .with_context(|| format!("{}: cannot be written", path.display()))
}

/// Returns the card in the notation of the format.
fn metadata(model: &Model) -> Value {
    let card = &model.header().card;
    let text = |text: &str| {
        if text.is_empty() {
            Value::Null
        } else {
            json!(text)
        }
    };
    let gear = card.gear.clone().unwrap_or_default();
    let levels = card.levels.unwrap_or_default();
    let error = card
        .quality
        .iter()
        .find(|measure| measure.name == super::measure::ESR)
        .map(|measure| measure.value);
    json!({
        "name": text(&card.name),
        "modeled_by": text(&card.author),
        "gear_make": text(&gear.make),
        "gear_model": text(&gear.model),
        "gear_type": text(&gear.kind),
        "tone_type": text(&gear.tone),
        "loudness": levels.loudness_db,
        "input_level_dbu": levels.input_dbu,
        "output_level_dbu": levels.output_dbu,
        "training": { "validation_esr": error },
    })
}
