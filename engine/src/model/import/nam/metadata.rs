//! Card of a capture. Metadata do not affect the sound, so invalid fields are ignored.

use crate::model::import::card_text;
use crate::model::import::field::Field;
use crate::model::{Card, Gear, Levels, Measure};

/// Returns the card of the first file that states each field: of a container itself, then of its
/// largest model.
pub(super) fn card(files: &[&Field<'_>]) -> Card {
    let metadata: Vec<Field<'_>> = files
        .iter()
        .filter_map(|file| file.find("metadata"))
        .collect();
    let text = |name: &str| {
        let texts = metadata
            .iter()
            .filter_map(|metadata| metadata.find(name)?.readable());
        texts
            .map(|text| text.trim().to_owned())
            .find(|text| !text.is_empty())
            .unwrap_or_default()
    };
    let error = |metadata: &Field<'_>| {
        let training = metadata
            .find("training")
            .and_then(|training| training.find("validation_esr"));
        training
            .or_else(|| metadata.find("validation_esr"))?
            .measured()
    };
    let levels = files
        .iter()
        .filter_map(|file| levels(file))
        .reduce(Levels::or);
    card_of(text, levels, metadata.iter().find_map(error))
}

/// Returns the levels that a file states; `None` if it states none.
pub(super) fn levels(file: &Field<'_>) -> Option<Levels> {
    let metadata = file.find("metadata")?;
    levels_of(|name| metadata.find(name)?.measured())
}

fn levels_of(number: impl Fn(&str) -> Option<f64>) -> Option<Levels> {
    let levels = Levels {
        input_dbu: number("input_level_dbu"),
        output_dbu: number("output_level_dbu"),
        loudness_db: number("loudness"),
    };
    (levels != Levels::default()).then_some(levels)
}

fn card_of(text: impl Fn(&str) -> String, levels: Option<Levels>, error: Option<f64>) -> Card {
    let text = |name: &str| card_text(&text(name));
    let gear = Gear {
        make: text("gear_make"),
        model: text("gear_model"),
        kind: text("gear_type"),
        tone: text("tone_type"),
    };
    let measure = |value| Measure {
        name: "ESR, as stated by the file".into(),
        unit: String::new(),
        value,
        baseline: None,
    };
    Card {
        name: text("name"),
        author: text("modeled_by"),
        gear: (gear != Gear::default()).then_some(gear),
        levels,
        quality: error.map(measure).into_iter().collect(),
        ..Card::default()
    }
}
