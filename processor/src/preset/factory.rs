//! The presets that are built in.

use super::Preset;
use super::file::{Fault, parse};

/// A preset that is built in. It names a bundled model without a hash, so that it plays the one of this version.
pub struct Factory {
    /// What it is known by to hosts and lists; never changes.
    pub key: &'static str,
    text: &'static str,
}

macro_rules! presets {
    ($($key:literal),+ $(,)?) => {
        [$(Factory { key: $key, text: include_str!(concat!("../../../assets/presets/", $key, ".ondes-preset")) }),+]
    };
}

/// All of them: first the instrument's, by model, then the effect's.
pub static FACTORY: [Factory; 17] = presets![
    "soft-strings",
    "solo-bow",
    "staccato-bow",
    "bow-choir",
    "nylon",
    "harp",
    "muted-pluck",
    "glass-pluck",
    "breathy-solo",
    "whistle",
    "organ-reeds",
    "voice-to-strings",
    "shadow-bow",
    "breath-double",
    "singing-diodes",
    "first-valve",
    "two-transistors",
];

impl Factory {
    /// The preset.
    ///
    /// # Errors
    /// When this was built from a damaged file.
    pub fn preset(&self) -> Result<Preset, Fault> {
        parse(self.text.as_bytes())
    }

    /// The one of that key.
    #[must_use]
    pub fn of(key: &str) -> Option<&'static Self> {
        FACTORY.iter().find(|factory| factory.key == key)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::library::BUNDLED;
    use crate::preset::Product;

    #[test]
    fn all_are_whole_and_play_bundled_models() {
        let mut names = BTreeSet::new();
        let mut counts = [0; 2];
        for factory in &FACTORY {
            let preset = factory.preset().unwrap_or_else(|fault| panic!("{}: {fault}", factory.key));
            counts[usize::from(preset.product == Product::Effect)] += 1;
            assert!(!preset.comment.is_empty() && !preset.tags.is_empty(), "{}", factory.key);
            assert!(names.insert(preset.name.clone()), "{} twice", preset.name);
            let reference = &preset.sound.selection.model;
            assert_eq!(reference.hash, "", "{} would not outlive a new training", factory.key);
            let (model, path) = reference.find().unwrap_or_else(|missing| panic!("{}: {missing}", factory.key));
            assert!(path.is_none() && BUNDLED.iter().any(|bundled| bundled.name == reference.name));
            for name in preset.sound.selection.macros.iter().flatten().flatten() {
                assert!(model.header().controls.iter().any(|control| control.name == *name), "{}: {name}", factory.key);
            }
        }
        assert!(counts[0] >= 9 && counts[1] >= 3, "{counts:?}");
        let played = |model: &str| FACTORY.iter().any(|one| one.preset().unwrap().sound.selection.model.name == model);
        assert!(BUNDLED.iter().all(|bundled| played(bundled.name)));
    }
}
