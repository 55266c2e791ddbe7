//! Card of a capture. Metadata do not affect the sound, so invalid fields are ignored.

use crate::model::import::card_text;
use crate::model::import::field::Field;
use crate::model::{Card, Gear, Levels, Measure};

pub(super) fn card(root: &Field<'_>) -> Card {
    let metadata = root.find("metadata");
    let find = |name: &str| metadata.as_ref().and_then(|metadata| metadata.find(name));
    let text = |name: &str| card_text(find(name).and_then(|field| field.text().ok()).unwrap_or_default());
    let number = |name: &str| find(name).and_then(|field| field.number().ok());
    let gear =
        Gear { make: text("gear_make"), model: text("gear_model"), kind: text("gear_type"), tone: text("tone_type") };
    let levels = Levels {
        input_dbu: number("input_level_dbu"),
        output_dbu: number("output_level_dbu"),
        loudness_db: number("loudness"),
    };
    let error = find("training").and_then(|training| training.find("validation_esr")?.number().ok());
    let measure =
        |value| Measure { name: "ESR, as stated by the file".into(), unit: String::new(), value, baseline: None };
    Card {
        name: text("name"),
        author: text("modeled_by"),
        gear: (gear != Gear::default()).then_some(gear),
        levels: (levels != Levels::default()).then_some(levels),
        quality: error.map(measure).into_iter().collect(),
        ..Card::default()
    }
}
