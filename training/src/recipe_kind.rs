//! Kinds of recipes, and the commands that train them.

use std::path::Path;

use toml::{Table, Value};

use crate::tasks::capture::config::CaptureConfig;
use crate::tasks::codec::CodecConfig;
use crate::tasks::generator::PriorConfig;
use crate::tasks::instrument::config::Config;

/// Fields that only the recipe of a codec has, by table.
const CODEC_FIELDS: [(&str, &[&str]); 2] = [
    ("network", &["bands", "channels", "ratios", "latents"]),
    ("loss", &["information", "free_nats"]),
];

/// Kind of a recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecipeKind {
    /// Instrument from recordings.
    Instrument,
    /// Capture of a device.
    Capture,
    /// Codec.
    Codec,
    /// Generator.
    Generator,
}

impl RecipeKind {
    /// Names of the kinds.
    pub const NAMES: [&str; 4] = ["instrument", "capture", "codec", "generator"];

    /// Returns the kind of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let all = [
            Self::Instrument,
            Self::Capture,
            Self::Codec,
            Self::Generator,
        ];
        Self::NAMES
            .iter()
            .position(|known| *known == name)
            .map(|index| all[index])
    }

    /// Returns the kind that the fields of a recipe tell. One that could be an instrument or a
    /// codec is an instrument.
    #[must_use]
    pub fn detect(recipe: &Table) -> Self {
        let has = |(table, fields): &(&str, &[&str])| {
            let table = recipe.get(*table).and_then(Value::as_table);
            table.is_some_and(|table| fields.iter().any(|field| table.contains_key(*field)))
        };
        if recipe.contains_key("pair") {
            Self::Capture
        } else if recipe.contains_key("codec") {
            Self::Generator
        } else if CODEC_FIELDS.iter().any(has) {
            Self::Codec
        } else {
            Self::Instrument
        }
    }

    /// Returns the command that trains it.
    #[must_use]
    pub fn command(self) -> &'static str {
        match self {
            Self::Instrument => "fit",
            Self::Capture => "capture",
            Self::Codec => "codec",
            Self::Generator => "prior",
        }
    }

    /// Checks a recipe of this kind.
    ///
    /// # Errors
    /// Returns what is wrong, with the line.
    pub fn check(self, path: &Path) -> anyhow::Result<()> {
        match self {
            Self::Instrument => Config::read(path).map(drop),
            Self::Capture => CaptureConfig::read(path).map(drop),
            Self::Codec => CodecConfig::read(path).map(drop),
            Self::Generator => PriorConfig::read(path).map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_tell_the_kind() {
        let kind = |text: &str| RecipeKind::detect(&toml::from_str(text).expect("TOML"));
        let paths = "data = \"a\"\nout = \"b\"\nwork = \"c\"\n";
        for (text, expected) in [
            ("", RecipeKind::Instrument),
            ("[network]\nharmonics = 3", RecipeKind::Instrument),
            ("[network]\nlatents = 3", RecipeKind::Codec),
            ("[loss]\ninformation = 1e-3", RecipeKind::Codec),
            ("codec = \"d\"", RecipeKind::Generator),
            ("[[pair]]\ndry = \"d\"", RecipeKind::Capture),
        ] {
            assert_eq!(kind(&format!("{paths}{text}")), expected, "{text}");
        }
        for name in RecipeKind::NAMES {
            assert!(RecipeKind::named(name).is_some_and(|kind| !kind.command().is_empty()));
        }
    }
}
