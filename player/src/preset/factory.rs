//! The presets that are compiled into the program.

use super::Preset;
use super::file::{PresetError, parse};

/// A preset that is compiled into the program. It names a bundled model without its hash, so that
/// it uses the version of this program.
pub struct FactoryPreset {
    /// Identifier for hosts and lists; never changes.
    pub key: &'static str,
    text: &'static str,
}

macro_rules! presets {
    ($($key:literal),+ $(,)?) => {
        [$(FactoryPreset { key: $key, text: include_str!(concat!("../../../assets/presets/", $key, ".ondes-preset")) }),+]
    };
}

/// All factory presets: the instrument's, grouped by model, then the effect's.
pub static FACTORY: [FactoryPreset; 73] = presets![
    "open-bow",
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
    "alto-solo",
    "smoky-alto",
    "recital-violin",
    "violin-section",
    "cello-suite",
    "low-tide",
    "chalumeau",
    "low-reed",
    "fanfare",
    "distant-horn",
    "alto-flute",
    "night-air",
    "open-vowels",
    "choir-on-oh",
    "session-drummer",
    "keys-start-beats",
    "steady-loop",
    "stone-nave",
    "dub-horn",
    "voice-to-strings",
    "shadow-bow",
    "breath-double",
    "valve-preamp",
    "singing-diodes",
    "first-valve",
    "two-transistors",
    "open-combo",
    "british-crunch",
    "crunch-in-a-hall",
    "closed-stack",
    "bowed-voice",
    "bass-below",
    "drummed-strings",
    "sung-winds",
    "guitar-horn",
    "beaten-horn",
    "second-man",
    "sung-guitar",
    "talking-drums",
    "beatbox-answers",
    "clean-chorus",
    "glass-and-echo",
    "slap-back",
    "surf-machine",
    "touch-wah",
    "pushed-stack",
    "wall-of-fuzz",
    "tight-and-heavy",
    "octave-below",
    "fifth-above",
    "two-guitars",
    "slow-phase",
    "jet-landing",
    "pocket-radio",
    "warm-bass",
    "ambient-swell",
    "strings-from-guitar",
    "choir-of-one",
    "woolly-fuzz",
    "round-fuzz",
    "loop-station",
];

impl FactoryPreset {
    /// Parses the preset.
    ///
    /// # Errors
    /// Returns a [`PresetError`] if the program was built with a damaged file.
    pub fn preset(&self) -> Result<Preset, PresetError> {
        parse(self.text.as_bytes())
    }

    /// Returns the factory preset of this key.
    #[must_use]
    pub fn find(key: &str) -> Option<&'static Self> {
        FACTORY.iter().find(|factory| factory.key == key)
    }

    /// Returns the factory preset that equals this one.
    #[must_use]
    pub fn equal_to(preset: &Preset) -> Option<&'static Self> {
        FACTORY
            .iter()
            .find(|factory| factory.preset().is_ok_and(|factory| factory == *preset))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::library::BUNDLED;
    use crate::product::Product;

    #[test]
    fn all_are_whole_and_play_bundled_models() {
        let mut names = BTreeSet::new();
        let mut counts = [0; 2];
        for factory in &FACTORY {
            let preset = factory
                .preset()
                .unwrap_or_else(|error| panic!("{}: {error}", factory.key));
            counts[usize::from(preset.product == Product::Effect)] += 1;
            assert!(
                !preset.comment.is_empty() && !preset.tags.is_empty(),
                "{}",
                factory.key
            );
            assert!(names.insert(preset.name.clone()), "{} twice", preset.name);
            let reference = &preset.sound.selection.model;
            assert_eq!(
                reference.hash, "",
                "{} would not outlive a new training",
                factory.key
            );
            let (model, path) = reference
                .find()
                .unwrap_or_else(|missing| panic!("{}: {missing}", factory.key));
            assert!(path.is_none() && BUNDLED.iter().any(|bundled| bundled.name == reference.name));
            let controls = ondes_engine::pipeline::controls(model.header());
            for name in preset.sound.selection.macros.iter().flatten().flatten() {
                assert!(
                    controls.iter().any(|control| control.name == *name),
                    "{}: {name}",
                    factory.key
                );
            }
        }
        assert!(counts[0] >= 9 && counts[1] >= 3, "{counts:?}");
        let played = |model: &str| {
            FACTORY
                .iter()
                .any(|one| one.preset().unwrap().sound.selection.model.name == model)
        };
        assert!(BUNDLED.iter().all(|bundled| played(bundled.name)));
    }

    #[test]
    fn cabinets_of_presets_are_bundled() {
        let cabinets: Vec<_> = FACTORY
            .iter()
            .filter_map(|one| one.preset().unwrap().sound.selection.cabinet)
            .collect();
        assert_eq!(cabinets.len(), 22);
        assert!(cabinets.iter().all(|reference| {
            crate::cabinet::find(reference).is_ok_and(|(_, path)| path.is_none())
        }));
    }

    /// A new instance has all parameters at their defaults, so its preset must not change any.
    #[test]
    fn initial_presets_are_what_new_instances_play() {
        for product in [Product::Instrument, Product::Effect] {
            let preset = FactoryPreset::find(product.initial_preset())
                .expect("a factory preset")
                .preset()
                .unwrap();
            let defaults = crate::parameter_values::complete_values(&Default::default()).unwrap();
            assert_eq!(
                (preset.product, preset.sound.parameters),
                (product, defaults)
            );
            assert_eq!(preset.sound.selection.model.name, product.initial_model());
            assert_eq!(preset.sound.selection.macros, None);
            let instance = crate::instance::InstanceHandle::new(product, || ());
            assert_eq!(instance.model().unwrap().header().kind, product.kinds()[0]);
        }
    }
}
