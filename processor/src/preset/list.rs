//! The presets to choose from: those that are built in and the user's.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use ondes_ui::PresetId;

use super::factory::{FACTORY, Factory};
use super::file::{Fault, Refused, read};
use super::store::files;
use super::{Preset, Product};

/// Where a preset is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Built in, by its key.
    Factory(String),
    /// In a file.
    File(PathBuf),
}

impl Origin {
    /// Its number, the same also when the list is made anew.
    #[must_use]
    pub fn id(&self) -> PresetId {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        PresetId(hasher.finish())
    }

    /// Reads the preset; may take its time.
    ///
    /// # Errors
    /// What was read, and why it is no preset.
    pub fn read(&self) -> Result<Preset, Refused> {
        match self {
            Self::Factory(key) => {
                let preset = Factory::of(key).ok_or(Fault::Unknown).and_then(Factory::preset);
                preset.map_err(|fault| Refused { path: key.into(), fault })
            }
            Self::File(path) => read(path),
        }
    }
}

/// What a list tells of a preset.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Its number.
    pub id: PresetId,
    /// Where it is.
    pub origin: Origin,
    /// Its name.
    pub name: String,
    /// Who made it.
    pub author: String,
    /// What it is good for.
    pub comment: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Name of the model that it plays.
    pub model: String,
}

impl Listed {
    fn new(origin: Origin, preset: Preset) -> Self {
        let Preset { name, author, comment, tags, sound, .. } = preset;
        Self { id: origin.id(), origin, name, author, comment, tags, model: sound.selection.model.name }
    }

    /// Whether it is built in, so that it cannot be deleted.
    #[must_use]
    pub fn is_factory(&self) -> bool {
        matches!(self.origin, Origin::Factory(_))
    }
}

/// A list, and what is wrong with files that should be in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// The presets that are built in, then the user's, both by name.
    pub presets: Vec<Listed>,
    /// Those that cannot be loaded, in the order of their files.
    pub broken: Vec<Broken>,
}

/// What should be a preset, and is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    /// Its number.
    pub id: PresetId,
    /// Where it is.
    pub origin: Origin,
    /// The file and what is wrong with it, in one line.
    pub reason: String,
}

impl Listing {
    /// Where the preset of that number is, broken or not.
    #[must_use]
    pub fn origin(&self, id: PresetId) -> Option<&Origin> {
        let presets = self.presets.iter().map(|listed| (listed.id, &listed.origin));
        let broken = self.broken.iter().map(|broken| (broken.id, &broken.origin));
        presets.chain(broken).find(|(known, _)| *known == id).map(|(_, origin)| origin)
    }
}

/// Lists the presets for a product, built in and in these folders. Reads all of them.
#[must_use]
pub fn look(product: Product, folders: &[PathBuf]) -> Listing {
    let own = FACTORY.iter().map(|factory| Origin::Factory(factory.key.into()));
    let user = folders.iter().flat_map(|folder| files(folder)).map(Origin::File);
    let mut listing = Listing::default();
    for origin in own.chain(user) {
        match origin.read() {
            Ok(preset) if preset.product == product => listing.presets.push(Listed::new(origin, preset)),
            Ok(_) => {}
            Err(refused) => {
                let (id, reason) = (origin.id(), refused.to_string());
                listing.broken.push(Broken { id, origin, reason });
            }
        }
    }
    listing.presets.sort_by_cached_key(|listed| (!listed.is_factory(), listed.name.to_lowercase()));
    listing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::store::save;

    #[test]
    fn all_presets_of_a_plugin_are_listed_in_order() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let folders = [first.path().to_owned(), second.path().to_owned(), "/nowhere/at all".into()];
        let own = look(Product::Instrument, &[]);
        assert!(own.broken.is_empty() && own.presets.iter().all(Listed::is_factory));
        for (folder, name) in [(&folders[0], "zither"), (&folders[1], "Älteste"), (&folders[1], "Accordion")] {
            let preset = Origin::Factory("harp".into()).read().unwrap();
            save(folder, &Preset { name: name.into(), ..preset }, false).unwrap();
        }
        let effect = Preset { product: Product::Effect, ..Origin::Factory("harp".into()).read().unwrap() };
        save(&folders[0], &effect, false).unwrap();
        std::fs::write(folders[0].join("broken.ondes-preset"), "{").unwrap();
        std::fs::create_dir(folders[0].join("folder.ondes-preset")).unwrap();
        std::fs::write(folders[0].join("notes.txt"), "{").unwrap();

        let listing = look(Product::Instrument, &folders);
        let (factory, user) = listing.presets.split_at(own.presets.len());
        assert_eq!(factory, own.presets);
        let names = |list: &[Listed]| list.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(user), ["Accordion", "zither", "Älteste"]);
        assert!(names(factory).is_sorted());
        assert_eq!(listing.broken.len(), 2, "{:?}", listing.broken);
        let broken = &listing.broken[0];
        assert!(broken.reason.contains("broken.ondes-preset: not a preset"), "{broken:?}");
        assert_eq!(listing.origin(broken.id), Some(&Origin::File(folders[0].join("broken.ondes-preset"))));
        assert_eq!(look(Product::Instrument, &folders), listing, "numbers stay");
        for listed in &listing.presets {
            assert_eq!(listed.origin.read().unwrap().name, listed.name);
        }
        assert!(Origin::Factory("gone".into()).read().is_err_and(|refused| matches!(refused.fault, Fault::Unknown)));
    }
}
