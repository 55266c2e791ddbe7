//! Listing presets: the factory presets and the user's files.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use super::Preset;
use super::factory::{FACTORY, FactoryPreset};
use super::file::{PresetError, PresetFileError, read};
use super::location::PresetLocation;
use super::store::files;
use crate::library::LoadError;
use crate::parameter_values::ParameterValues;
use crate::product::Product;
use crate::snapshot::{SelectionSnapshot, SoundSnapshot};
use crate::state::{InstanceState, SoundState};

/// Id of a preset in a list; stays the same when the list is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PresetId(pub u64);

impl PresetLocation {
    /// Returns the id, a hash of the location.
    #[must_use]
    pub fn id(&self) -> PresetId {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        PresetId(hasher.finish())
    }

    /// Reads the preset; may take long.
    ///
    /// # Errors
    /// Returns a [`PresetFileError`] if the preset cannot be read.
    pub fn read(&self) -> Result<Preset, PresetFileError> {
        match self {
            Self::Factory(key) => {
                let preset = FactoryPreset::find(key)
                    .ok_or(PresetError::NotFound)
                    .and_then(FactoryPreset::preset);
                preset.map_err(|error| PresetFileError {
                    path: key.into(),
                    error,
                })
            }
            Self::File(path) => read(path),
        }
    }
}

impl PresetLocation {
    /// Reads the preset and its files, to be played by this product; may take long. Returns its name
    /// and its sound.
    ///
    /// # Errors
    /// The preset cannot be read, it is one of another product, or its model may not run.
    pub fn find_sound(&self, product: Product) -> Result<(String, SoundSnapshot), LoadError> {
        let preset = self.read().map_err(|error| error.to_string())?;
        if preset.product != product {
            let wrong = PresetError::WrongProduct(preset.product);
            return Err(format!("{}: {wrong}", preset.name).into());
        }
        let sound = SoundSnapshot {
            values: preset.sound.parameters,
            selection: SelectionSnapshot::find(*preset.sound.selection)?,
        };
        Ok((preset.name, sound))
    }
}

/// Facts about a preset for a list.
#[derive(Clone, Debug, PartialEq)]
pub struct PresetSummary {
    /// Id.
    pub id: PresetId,
    /// Location.
    pub location: PresetLocation,
    /// Name.
    pub name: String,
    /// Author.
    pub author: String,
    /// Description.
    pub comment: String,
    /// Tags to search for.
    pub tags: Vec<String>,
    /// Name of the model.
    pub model: String,
    /// Values of all parameters that a preset holds.
    pub parameters: ParameterValues,
    /// Values of a codec's latents that are not at their defaults.
    pub latents: ParameterValues,
    /// Hash of the cabinet's file, if any.
    pub cabinet: Option<String>,
}

impl PresetSummary {
    fn new(location: PresetLocation, preset: Preset) -> Self {
        let Preset {
            name,
            author,
            comment,
            tags,
            sound,
            ..
        } = preset;
        let SoundState {
            parameters,
            selection,
        } = sound;
        let InstanceState {
            model,
            latents,
            cabinet,
            ..
        } = *selection;
        let cabinet = cabinet.map(|cabinet| cabinet.hash);
        let id = location.id();
        Self {
            id,
            location,
            name,
            author,
            comment,
            tags,
            model: model.name,
            parameters,
            latents,
            cabinet,
        }
    }

    /// Returns whether this is a factory preset, which cannot be deleted.
    #[must_use]
    pub fn is_factory(&self) -> bool {
        matches!(self.location, PresetLocation::Factory(_))
    }
}

/// Presets, and files that could not be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PresetListing {
    /// Factory presets, then the user's; both sorted by name.
    pub presets: Vec<PresetSummary>,
    /// Files that could not be read, in the order of their paths.
    pub unreadable: Vec<UnreadablePreset>,
}

/// A preset file that could not be read.
#[derive(Clone, Debug, PartialEq)]
pub struct UnreadablePreset {
    /// Id.
    pub id: PresetId,
    /// Location.
    pub location: PresetLocation,
    /// Path and error, in one line.
    pub reason: String,
}

impl PresetListing {
    /// Returns the preset at a location; for a file that is not there, one of the same file name in
    /// the user's folders, as a project may come from another machine.
    #[must_use]
    pub fn at(&self, location: &PresetLocation) -> Option<&PresetSummary> {
        let same_name = |other: &PresetLocation| match (location, other) {
            (PresetLocation::File(one), PresetLocation::File(other)) => {
                one.file_name() == other.file_name()
            }
            _ => false,
        };
        let found = self
            .presets
            .iter()
            .find(|preset| preset.location == *location);
        found.or_else(|| {
            self.presets
                .iter()
                .find(|preset| same_name(&preset.location))
        })
    }

    /// Returns the location of a preset, readable or not.
    #[must_use]
    pub fn location(&self, id: PresetId) -> Option<&PresetLocation> {
        let presets = self
            .presets
            .iter()
            .map(|preset| (preset.id, &preset.location));
        let unreadable = self
            .unreadable
            .iter()
            .map(|unreadable| (unreadable.id, &unreadable.location));
        presets
            .chain(unreadable)
            .find(|(known, _)| *known == id)
            .map(|(_, location)| location)
    }
}

/// Lists the presets of a product: the factory presets, and those in `folders`. Reads all files.
#[must_use]
pub fn list_presets(product: Product, folders: &[PathBuf]) -> PresetListing {
    let own = FACTORY
        .iter()
        .map(|factory| PresetLocation::Factory(factory.key.into()));
    let user = folders
        .iter()
        .flat_map(|folder| files(folder))
        .map(PresetLocation::File);
    let mut listing = PresetListing::default();
    for location in own.chain(user) {
        match location.read() {
            Ok(preset) if preset.product == product => {
                listing.presets.push(PresetSummary::new(location, preset))
            }
            Ok(_) => {}
            Err(error) => {
                let (id, reason) = (location.id(), error.to_string());
                listing.unreadable.push(UnreadablePreset {
                    id,
                    location,
                    reason,
                });
            }
        }
    }
    listing
        .presets
        .sort_by_cached_key(|preset| (!preset.is_factory(), preset.name.to_lowercase()));
    listing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::store::save;

    #[test]
    fn all_presets_of_a_plugin_are_listed_in_order() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let folders = [
            first.path().to_owned(),
            second.path().to_owned(),
            "/nowhere/at all".into(),
        ];
        let own = list_presets(Product::Instrument, &[]);
        assert!(own.unreadable.is_empty() && own.presets.iter().all(PresetSummary::is_factory));
        for (folder, name) in [
            (&folders[0], "zither"),
            (&folders[1], "Älteste"),
            (&folders[1].join("keys"), "Accordion"),
        ] {
            let preset = PresetLocation::Factory("harp".into()).read().unwrap();
            save(
                folder,
                &Preset {
                    name: name.into(),
                    ..preset
                },
                false,
            )
            .unwrap();
        }
        let effect = Preset {
            product: Product::Effect,
            ..PresetLocation::Factory("harp".into()).read().unwrap()
        };
        save(&folders[0], &effect, false).unwrap();
        std::fs::write(folders[0].join("broken.ondes-preset"), "{").unwrap();
        std::fs::create_dir(folders[0].join("folder.ondes-preset")).unwrap();
        std::fs::write(folders[0].join("notes.txt"), "{").unwrap();

        let listing = list_presets(Product::Instrument, &folders);
        let (factory, user) = listing.presets.split_at(own.presets.len());
        assert_eq!(factory, own.presets);
        let names =
            |list: &[PresetSummary]| list.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(user), ["Accordion", "zither", "Älteste"]);
        assert!(names(factory).is_sorted());
        assert_eq!(listing.unreadable.len(), 1, "{:?}", listing.unreadable);
        let unreadable = &listing.unreadable[0];
        assert!(
            unreadable
                .reason
                .contains("broken.ondes-preset: not a preset"),
            "{unreadable:?}"
        );
        assert_eq!(
            listing.location(unreadable.id),
            Some(&PresetLocation::File(
                folders[0].join("broken.ondes-preset")
            ))
        );
        assert_eq!(
            list_presets(Product::Instrument, &folders),
            listing,
            "numbers stay"
        );
        for preset in &listing.presets {
            assert_eq!(preset.location.read().unwrap().name, preset.name);
        }
        assert!(
            PresetLocation::Factory("gone".into())
                .read()
                .is_err_and(|error| matches!(error.error, PresetError::NotFound))
        );
    }
}
