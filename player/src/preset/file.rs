//! Preset files: readable JSON.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ondes_engine::executor::ExecutorSelection;
use ondes_engine::files;
use serde::{Deserialize, Serialize};

use super::Preset;
use crate::parameter_values::complete_values;
use crate::product::Product;
use crate::saved_path;
use crate::state::{InstanceState, SoundState, WindowSettings};

/// Extension of preset files.
pub const EXTENSION: &str = "ondes-preset";

/// Largest preset file, bytes: more than a model of [`crate::library::LARGEST_EMBEDDED`] takes in
/// Base64.
pub const LARGEST: u64 = 32 << 20;

/// Value of the `format` field.
const FORMAT: &str = "ondes-preset";

/// Version of the format. Later versions only add fields, so that older ones can read their files.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct PresetDocument {
    format: String,
    version: u32,
    name: String,
    plugin: Product,
    #[serde(default)]
    author: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    comment: String,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(flatten)]
    sound: SoundState,
}

/// Reason why a preset cannot be read, written or deleted.
#[derive(Debug)]
pub enum PresetError {
    /// The file cannot be read or written.
    Io(std::io::Error),
    /// The file is larger than [`LARGEST`].
    TooLarge,
    /// The file is not JSON, or lacks the fields of a preset.
    InvalidJson(serde_json::Error),
    /// The `format` or `version` field has another value.
    WrongFormat,
    /// The name is empty, longer than 256 bytes or has control characters.
    InvalidName,
    /// The value of this parameter has the wrong type.
    InvalidParameter(&'static str),
    /// The preset is for the other product.
    WrongProduct(Product),
    /// A preset of this name exists.
    AlreadyExists,
    /// The file is not in one of the user's preset folders.
    NotUserPreset,
    /// There is no such preset.
    NotFound,
}

impl fmt::Display for PresetError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(to, "{error}"),
            Self::TooLarge => write!(to, "the file is larger than {} MB", LARGEST >> 20),
            Self::InvalidJson(error) => {
                write!(to, "not a preset: {}", files::shortened(&error.to_string()))
            }
            Self::WrongFormat => write!(
                to,
                "not a preset: \"format\" must be {FORMAT:?} and \"version\" at least 1"
            ),
            Self::InvalidName => write!(
                to,
                "the name must have 1 to 256 bytes and no control characters"
            ),
            Self::InvalidParameter(id) => {
                write!(to, "the value of parameter {id} has the wrong type")
            }
            Self::WrongProduct(product) => write!(to, "this preset is for {}", product.name()),
            Self::AlreadyExists => write!(to, "a preset of this name already exists"),
            Self::NotUserPreset => write!(to, "only presets in your own folders can be deleted"),
            Self::NotFound => write!(to, "no such preset"),
        }
    }
}

impl PresetError {
    /// Returns the system's error number; 0 if there is none.
    #[must_use]
    pub fn os_error(&self) -> i32 {
        match self {
            Self::Io(error) => error.raw_os_error().unwrap_or(0),
            _ => 0,
        }
    }
}

/// A [`PresetError`] with the file that it concerns.
#[derive(Debug)]
pub struct PresetFileError {
    /// Path of the file, or key of a factory preset.
    pub path: PathBuf,
    /// The error.
    pub error: PresetError,
}

impl fmt::Display for PresetFileError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Errors are shown on one line, so control characters in paths become spaces.
        let text = format!("{}: {}", self.path.display(), self.error);
        text.chars()
            .map(|sign| if sign.is_control() { ' ' } else { sign })
            .try_for_each(|sign| write!(to, "{sign}"))
    }
}

/// Parses a preset.
///
/// # Errors
/// Returns a [`PresetError`] if the bytes are not a valid preset.
pub fn parse(bytes: &[u8]) -> Result<Preset, PresetError> {
    if bytes.len() as u64 > LARGEST {
        return Err(PresetError::TooLarge);
    }
    let document: PresetDocument =
        serde_json::from_slice(files::without_mark(bytes)).map_err(PresetError::InvalidJson)?;
    let PresetDocument {
        format,
        version,
        name,
        plugin,
        author,
        comment,
        tags,
        sound,
    } = document;
    if format != FORMAT || version == 0 {
        return Err(PresetError::WrongFormat);
    }
    if !is_name(&name) {
        return Err(PresetError::InvalidName);
    }
    let parameters = complete_values(&sound.parameters).map_err(PresetError::InvalidParameter)?;
    // These settings belong to projects, not to presets.
    let selection = InstanceState {
        window: WindowSettings::default(),
        executor: ExecutorSelection::default(),
        compare: None,
        preset: None,
        ..*sound.selection
    };
    let sound = SoundState {
        parameters,
        selection: selection.into(),
    };
    Ok(Preset {
        name,
        product: plugin,
        author,
        comment,
        tags,
        sound,
    })
}

/// Serializes a preset.
///
/// # Errors
/// Returns a [`PresetError`] if the name or a value is invalid or the file would be too large.
pub fn serialize(preset: &Preset) -> Result<Vec<u8>, PresetError> {
    let Preset {
        name,
        product,
        author,
        comment,
        tags,
        sound,
    } = preset.clone();
    if !is_name(&name) {
        return Err(PresetError::InvalidName);
    }
    let parameters = complete_values(&sound.parameters).map_err(PresetError::InvalidParameter)?;
    let sound = SoundState {
        parameters,
        ..sound
    };
    let (format, version) = (FORMAT.into(), VERSION);
    let document = PresetDocument {
        format,
        version,
        name,
        plugin: product,
        author,
        comment,
        tags,
        sound,
    };
    let mut bytes = serde_json::to_vec_pretty(&document).map_err(PresetError::InvalidJson)?;
    bytes.push(b'\n');
    if bytes.len() as u64 > LARGEST {
        Err(PresetError::TooLarge)
    } else {
        Ok(bytes)
    }
}

/// Reads a preset file. Relative paths in it become absolute ([`saved_path`]).
///
/// # Errors
/// Returns a [`PresetFileError`] if the file cannot be read or is not a valid preset.
pub fn read(path: &Path) -> Result<Preset, PresetFileError> {
    let preset = read_bytes(path).and_then(|bytes| parse(&bytes));
    let mut preset = preset.map_err(|error| PresetFileError {
        path: path.into(),
        error,
    })?;
    let folder = saved_path::folder(path);
    preset
        .sound
        .selection
        .map_paths(&|path| saved_path::from_saved(path, &folder));
    Ok(preset)
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, PresetError> {
    files::read(path, LARGEST).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => PresetError::TooLarge,
        _ => PresetError::Io(error),
    })
}

fn is_name(name: &str) -> bool {
    (1..=256).contains(&name.trim().len()) && !name.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::FileReference;
    use crate::parameter_values::{ParameterValue, ParameterValues, sound_parameters};

    fn preset() -> Preset {
        let model = FileReference {
            hash: "ab".repeat(32),
            name: "Bell".into(),
            ..FileReference::default()
        };
        let macros = Some(vec![Some("noise".into()), None]);
        let selection = InstanceState {
            model,
            macros,
            ..InstanceState::default()
        }
        .into();
        let mut parameters = complete_values(&ParameterValues::new()).unwrap();
        parameters.insert("output_gain".into(), ParameterValue::Number(-6.1));
        let (name, author) = ("Süße Glocke".into(), "Me".into());
        let sound = SoundState {
            parameters,
            selection,
        };
        let tags = vec!["bell".into(), "soft".into()];
        Preset {
            name,
            product: Product::Instrument,
            author,
            comment: "Slow.".into(),
            tags,
            sound,
        }
    }

    #[test]
    fn presets_survive_a_round_trip() {
        let bytes = serialize(&preset()).unwrap();
        assert_eq!(parse(&bytes).unwrap(), preset());
        let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(
            (json["format"].as_str(), json["version"].as_u64()),
            (Some(FORMAT), Some(1))
        );
        assert_eq!(json["plugin"], "org.ondes.instrument");
        assert!(
            String::from_utf8(bytes)
                .unwrap()
                .contains("\"output_gain\": -6.1"),
            "it can be read by a person"
        );
    }

    #[test]
    fn a_later_version_is_read_and_little_is_enough() {
        let text = r#"{ "format": "ondes-preset", "version": 9, "name": "x", "plugin": "org.ondes.effect", "smell": [1],
            "parameters": { "mix": 0, "grit": { "a": 1 } }, "selection": { "look": { "scale": 9.0 }, "aura": 1 } }"#;
        let preset = parse(text.as_bytes()).unwrap();
        assert_eq!(
            (preset.product, preset.sound.parameters.len()),
            (Product::Effect, sound_parameters().count())
        );
        assert_eq!(preset.sound.parameters["mix"], ParameterValue::Number(0.0));
        assert_eq!(
            *preset.sound.selection,
            InstanceState::default(),
            "how a window looks is not in it"
        );
    }

    #[test]
    fn nonsense_is_refused_in_one_line() {
        let good = String::from_utf8(serialize(&preset()).unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("odd.ondes-preset");
        let cases = [
            (String::new(), "not a preset"),
            ("\u{0}\n[".into(), "not a preset"),
            ("{}".into(), "missing field"),
            (
                good.replace("\"ondes-preset\"", "\"other\""),
                "\"format\" must be",
            ),
            (
                good.replace("\"version\": 1", "\"version\": 0"),
                "\"format\" must be",
            ),
            (
                good.replace("org.ondes.instrument", "org.other"),
                "org.other",
            ),
            (good.replace("Süße Glocke", " "), "the name must have"),
            (
                good.replace("Süße Glocke", "a\\u0000b"),
                "the name must have",
            ),
            (good.replace("-6.1", "NaN"), "not a preset"),
            (good.replace("-6.1", "1e999"), "not a preset"),
            (
                good.replace("-6.1", "1e99"),
                "output_gain has the wrong type",
            ),
            (
                good.replace("-6.1", "\"NaN\""),
                "output_gain has the wrong type",
            ),
            ("[".repeat(100_000), "not a preset"),
        ];
        for (text, reason) in cases {
            std::fs::write(&path, &text).unwrap();
            let message = read(&path).expect_err(reason).to_string();
            assert!(
                message.contains("odd.ondes-preset: ") && message.contains(reason),
                "{message}"
            );
            assert_eq!(message.lines().count(), 1, "{message}");
        }
        assert!(read(&folder.path().join("none")).is_err_and(|error| error.error.os_error() != 0));
        assert!(read(folder.path()).is_err());
        let large = std::fs::File::create(&path).unwrap();
        large.set_len(LARGEST + 1).unwrap();
        assert!(matches!(
            read(&path),
            Err(PresetFileError {
                error: PresetError::TooLarge,
                ..
            })
        ));
    }
}
