//! Names of what is bundled, for help, errors and shell completion. They come from the tables of
//! models and cabinets.

use ondes_player::cabinet::bundled::{self, BundledCabinet};
use ondes_player::library::{BUNDLED, BundledModel};

/// Returns the names of the bundled models as the command line takes them.
pub fn model_names() -> Vec<String> {
    BUNDLED.iter().map(BundledModel::short_name).collect()
}

/// Returns the short names of the bundled cabinets.
pub fn cabinet_names() -> Vec<&'static str> {
    bundled::BUNDLED
        .iter()
        .map(BundledCabinet::short_name)
        .collect()
}

/// Adds the names of the bundled models and cabinets to the notes of a help.
pub fn with_bundled(notes: &str) -> String {
    format!(
        "{}\nBundled cabinets: {}",
        with_models(notes),
        cabinet_names().join(", ")
    )
}

/// Adds the names of the bundled models to the notes of a help.
pub fn with_models(notes: &str) -> String {
    let mut lines = vec![String::from("Bundled models:")];
    for (index, name) in model_names().iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let line = lines.len() - 1;
        if lines[line].len() + comma.len() + name.len() + 1 > 100 {
            lines[line].push_str(comma);
            lines.push(format!("  {name}"));
        } else {
            lines[line].push_str(&format!("{comma} {name}"));
        }
    }
    format!("{notes}\n\n{}", lines.join("\n"))
}
