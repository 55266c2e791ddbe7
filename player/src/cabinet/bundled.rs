//! Cabinets that are compiled into the program, and which one suits a capture.

use std::sync::{Arc, OnceLock};

use ondes_engine::chain::ImpulseFile;
use ondes_engine::model::Gear;

use crate::library::FileReference;

/// A cabinet that is compiled into the program.
pub struct BundledCabinet {
    /// Name, unique among the bundled cabinets; projects identify the cabinet by it.
    pub name: &'static str,
    /// Description for a tooltip.
    pub description: &'static str,
    bytes: &'static [u8],
    read: OnceLock<Arc<ImpulseFile>>,
}

/// The bundled cabinets, from the cleanest sound to the loudest.
pub static BUNDLED: [BundledCabinet; 3] = [
    BundledCabinet::new(
        "Ondes 1x12 open back",
        "One light 12-inch loudspeaker in an open box, for clean sounds",
        include_bytes!("../../../assets/cabinets/1x12-open-back.wav"),
    ),
    BundledCabinet::new(
        "Ondes 2x12 open back",
        "Two light 12-inch loudspeakers in an open box, bright, for crunch",
        include_bytes!("../../../assets/cabinets/2x12-open-back.wav"),
    ),
    BundledCabinet::new(
        "Ondes 4x12 closed back",
        "Four loud 12-inch loudspeakers in a closed box, for high gain",
        include_bytes!("../../../assets/cabinets/4x12-closed-back.wav"),
    ),
];

/// Beginning of all names, which may be left out on the command line.
const PREFIX: &str = "Ondes ";

impl BundledCabinet {
    const fn new(name: &'static str, description: &'static str, bytes: &'static [u8]) -> Self {
        Self {
            name,
            description,
            bytes,
            read: OnceLock::new(),
        }
    }

    /// Returns the impulse response; parsed once and shared by all instances.
    ///
    /// # Panics
    /// Panics if the program was built with a damaged file.
    #[must_use]
    pub fn file(&self) -> Arc<ImpulseFile> {
        let read = || {
            Arc::new(
                ImpulseFile::parse(self.name, self.bytes.into())
                    .expect("bundled cabinets are whole"),
            )
        };
        self.read.get_or_init(read).clone()
    }

    /// Returns the reference that a project saves.
    #[must_use]
    pub fn reference(&self) -> FileReference {
        FileReference {
            hash: self.file().hash.clone(),
            name: self.name.into(),
            path: None,
            embedded: None,
        }
    }

    /// Returns the name for the command line, such as `4x12`.
    #[must_use]
    pub fn short_name(&self) -> &'static str {
        self.name
            .trim_start_matches(PREFIX)
            .split(' ')
            .next()
            .unwrap_or(self.name)
    }

    /// Returns whether a reference means this cabinet, in whichever version.
    #[must_use]
    pub fn is_meant(&self, reference: &FileReference) -> bool {
        reference.path.is_none() && reference.name.eq_ignore_ascii_case(self.name)
    }

    /// Finds a cabinet by name, whose case does not matter; of several words the first are enough,
    /// and "Ondes" may be left out: `4x12` is the closed one with four loudspeakers.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        let plain = |name: &str| {
            name.to_lowercase()
                .trim_start_matches(&PREFIX.to_lowercase())
                .to_owned()
        };
        let wanted = plain(name);
        let matches = |cabinet: &&Self| {
            let rest = plain(cabinet.name).strip_prefix(&wanted).map(str::to_owned);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        BUNDLED.iter().find(matches).filter(|_| !wanted.is_empty())
    }

    /// Returns the cabinet for a capture of this gear: none unless it is an amplifier that was
    /// captured without a loudspeaker. A preamplifier alone also colours what is no guitar, so it
    /// is left as it is.
    ///
    /// The words are those of Neural Amp Modeler's `gear_type` and `tone_type`.
    #[must_use]
    pub fn for_gear(gear: &Gear) -> Option<&'static Self> {
        let word = |text: &str| text.to_lowercase().replace(['-', ' '], "_");
        let is_head = matches!(
            word(&gear.kind).as_str(),
            "amp" | "amp_head" | "head" | "pedal_amp" | "amp_pedal"
        );
        let [clean, crunch, loud] = &BUNDLED;
        is_head.then(|| match word(&gear.tone).as_str() {
            "clean" => clean,
            "hi_gain" | "high_gain" | "distortion" | "fuzz" => loud,
            _ => crunch,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cabinet::find;
    use crate::library::MissingFile;

    #[test]
    fn they_are_read_and_named() {
        for (cabinet, short) in BUNDLED.iter().zip(["1X12", "ondes 2x12 open", "4x12"]) {
            assert_eq!(
                BundledCabinet::named(cabinet.short_name()).map(|found| found.name),
                Some(cabinet.name)
            );
            assert!(cabinet.name.starts_with(PREFIX));
            assert!(
                (0.02..0.045).contains(&cabinet.file().response.seconds()),
                "{}",
                cabinet.name
            );
            for name in [cabinet.name, short] {
                assert_eq!(
                    BundledCabinet::named(name).map(|found| found.name),
                    Some(cabinet.name),
                    "{name:?}"
                );
            }
        }
        for unknown in ["", "Ondes", "4x1", "4x12 open back", "8x10"] {
            assert!(BundledCabinet::named(unknown).is_none(), "{unknown:?}");
        }
    }

    #[test]
    fn projects_find_them_by_hash_and_by_name() {
        let [first, .., last] = &BUNDLED;
        let (file, path) = find(&first.reference()).unwrap();
        assert_eq!(
            (file.hash.as_str(), path),
            (first.file().hash.as_str(), None)
        );
        // A later version of the same name replaces it; a file of the user's does not.
        for hash in ["0".repeat(64), String::new()] {
            let older = FileReference {
                hash,
                ..last.reference()
            };
            assert_eq!(find(&older).unwrap().0.hash, last.file().hash);
            let own = FileReference {
                path: Some("/nowhere/cab.wav".into()),
                ..older
            };
            assert!(matches!(find(&own), Err(MissingFile { name, .. }) if name == last.name));
        }
    }

    #[test]
    fn heads_get_a_cabinet_and_whole_rigs_do_not() {
        let chosen = |kind: &str, tone: &str| {
            let gear = Gear {
                kind: kind.into(),
                tone: tone.into(),
                ..Gear::default()
            };
            BundledCabinet::for_gear(&gear).map(|cabinet| cabinet.name)
        };
        assert_eq!(chosen("amp", "clean"), Some("Ondes 1x12 open back"));
        assert_eq!(chosen("pedal_amp", "crunch"), Some("Ondes 2x12 open back"));
        assert_eq!(chosen("Amp", "hi_gain"), Some("Ondes 4x12 closed back"));
        assert_eq!(chosen("amp", ""), Some("Ondes 2x12 open back"));
        for kind in ["amp_cab", "amp_pedal_cab", "pedal", "preamp", "studio", ""] {
            assert_eq!(chosen(kind, "clean"), None, "{kind}");
        }
    }
}
