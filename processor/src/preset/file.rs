//! A preset as a file: JSON that a person can read.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use ondes_engine::wish::Wish;
use serde::{Deserialize, Serialize};

use super::values::complete;
use super::{Preset, Product};
use crate::state::{Look, Saved, Sound};

/// What the names of preset files end with.
pub const EXTENSION: &str = "ondes-preset";

/// The largest file that is read or written, bytes: more than a model of [`crate::library::LARGEST_EMBEDDED`] takes in Base64.
pub const LARGEST: u64 = 32 << 20;

/// What tells a preset from other JSON.
const FORMAT: &str = "ondes-preset";

/// Version of what is written; later versions only add fields, so that what they write can be read here too.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Written {
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
    sound: Sound,
}

/// Why something is no preset, or cannot be kept.
#[derive(Debug)]
pub enum Fault {
    /// The file cannot be read or written.
    Io(std::io::Error),
    /// It is larger than [`LARGEST`].
    Large,
    /// It is not JSON, or other JSON than a preset.
    Garbled(serde_json::Error),
    /// It says that it is something else.
    Foreign,
    /// The name is empty, too long or has characters that cannot be shown.
    Name,
    /// This parameter has no number.
    Parameter(&'static str),
    /// It was made for the other plugin.
    Elsewhere(Product),
    /// There is one of that name already.
    Exists,
    /// It is none of the user's presets.
    NotTheUsers,
    /// There is no such preset.
    Unknown,
}

impl fmt::Display for Fault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(to, "{error}"),
            Self::Large => write!(to, "larger than {} MB", LARGEST >> 20),
            Self::Garbled(error) => write!(to, "not a preset: {error}"),
            Self::Foreign => write!(to, "not a preset: its format is another one"),
            Self::Name => write!(to, "the name is empty, too long or has characters that cannot be shown"),
            Self::Parameter(id) => write!(to, "the parameter {id} has no number"),
            Self::Elsewhere(product) => write!(to, "made for {}", product.name()),
            Self::Exists => write!(to, "there is a preset of that name already"),
            Self::NotTheUsers => write!(to, "only presets in your own folders can be deleted"),
            Self::Unknown => write!(to, "there is no such preset"),
        }
    }
}

impl Fault {
    /// The number of the system's error, 0 for none.
    #[must_use]
    pub fn os_error(&self) -> i32 {
        match self {
            Self::Io(error) => error.raw_os_error().unwrap_or(0),
            _ => 0,
        }
    }
}

/// A file that is no preset, or cannot be kept.
#[derive(Debug)]
pub struct Refused {
    /// The file, or the key of a factory preset.
    pub path: PathBuf,
    /// Why.
    pub fault: Fault,
}

impl fmt::Display for Refused {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        // On one line, whatever is in a path or a parser's mind.
        let text = format!("{}: {}", self.path.display(), self.fault);
        text.chars().map(|sign| if sign.is_control() { ' ' } else { sign }).try_for_each(|sign| write!(to, "{sign}"))
    }
}

/// The preset in these bytes.
///
/// # Errors
/// Why it is none.
pub fn parse(bytes: &[u8]) -> Result<Preset, Fault> {
    if bytes.len() as u64 > LARGEST {
        return Err(Fault::Large);
    }
    let written: Written = serde_json::from_slice(bytes).map_err(Fault::Garbled)?;
    let Written { format, version, name, plugin, author, comment, tags, sound } = written;
    if format != FORMAT || version == 0 {
        return Err(Fault::Foreign);
    }
    if !is_name(&name) {
        return Err(Fault::Name);
    }
    let parameters = complete(&sound.parameters).map_err(Fault::Parameter)?;
    // These are the project's.
    let selection = Saved { look: Look::default(), running: Wish::default(), compare: None, ..*sound.selection };
    let sound = Sound { parameters, selection: selection.into() };
    Ok(Preset { name, product: plugin, author, comment, tags, sound })
}

/// The bytes of a preset.
///
/// # Errors
/// When its name is none, or it is too large.
pub fn serialize(preset: &Preset) -> Result<Vec<u8>, Fault> {
    let Preset { name, product, author, comment, tags, sound } = preset.clone();
    if !is_name(&name) {
        return Err(Fault::Name);
    }
    let parameters = complete(&sound.parameters).map_err(Fault::Parameter)?;
    let sound = Sound { parameters, ..sound };
    let (format, version) = (FORMAT.into(), VERSION);
    let written = Written { format, version, name, plugin: product, author, comment, tags, sound };
    let mut bytes = serde_json::to_vec_pretty(&written).map_err(Fault::Garbled)?;
    bytes.push(b'\n');
    if bytes.len() as u64 > LARGEST { Err(Fault::Large) } else { Ok(bytes) }
}

/// Reads a file.
///
/// # Errors
/// The file, and why it is no preset.
pub fn read(path: &Path) -> Result<Preset, Refused> {
    let bytes = read_bytes(path).and_then(|bytes| parse(&bytes));
    bytes.map_err(|fault| Refused { path: path.into(), fault })
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, Fault> {
    let metadata = std::fs::metadata(path).map_err(Fault::Io)?;
    // Opening a pipe would wait for its other end.
    if !metadata.is_file() {
        return Err(Fault::Io(std::io::ErrorKind::InvalidInput.into()));
    }
    if metadata.len() > LARGEST {
        return Err(Fault::Large);
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(Fault::Io)?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(Fault::Io)?;
    Ok(bytes)
}

fn is_name(name: &str) -> bool {
    (1..=256).contains(&name.trim().len()) && !name.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::Reference;
    use crate::preset::values::{Value, Values, parts};

    fn preset() -> Preset {
        let model = Reference { hash: "ab".repeat(32), name: "Bell".into(), ..Reference::default() };
        let macros = Some(vec![Some("noise".into()), None]);
        let selection = Saved { model, macros, ..Saved::default() }.into();
        let mut parameters = complete(&Values::new()).unwrap();
        parameters.insert("output_gain".into(), Value::Number(-6.1));
        let (name, author) = ("Süße Glocke".into(), "Me".into());
        let sound = Sound { parameters, selection };
        let tags = vec!["bell".into(), "soft".into()];
        Preset { name, product: Product::Instrument, author, comment: "Slow.".into(), tags, sound }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let bytes = serialize(&preset()).unwrap();
        assert_eq!(parse(&bytes).unwrap(), preset());
        let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!((json["format"].as_str(), json["version"].as_u64()), (Some(FORMAT), Some(1)));
        assert_eq!(json["plugin"], "org.ondes.instrument");
        assert!(String::from_utf8(bytes).unwrap().contains("\"output_gain\": -6.1"), "it can be read by a person");
    }

    #[test]
    fn a_later_version_is_read_and_little_is_enough() {
        let text = r#"{ "format": "ondes-preset", "version": 9, "name": "x", "plugin": "org.ondes.effect", "smell": [1],
            "parameters": { "mix": 0, "grit": { "a": 1 } }, "selection": { "look": { "scale": 9.0 }, "aura": 1 } }"#;
        let preset = parse(text.as_bytes()).unwrap();
        assert_eq!((preset.product, preset.sound.parameters.len()), (Product::Effect, parts().count()));
        assert_eq!(preset.sound.parameters["mix"], Value::Number(0.0));
        assert_eq!(*preset.sound.selection, Saved::default(), "how a window looks is not in it");
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
            (good.replace("\"ondes-preset\"", "\"other\""), "its format is another one"),
            (good.replace("\"version\": 1", "\"version\": 0"), "its format is another one"),
            (good.replace("org.ondes.instrument", "org.other"), "org.other"),
            (good.replace("Süße Glocke", " "), "the name is empty"),
            (good.replace("Süße Glocke", "a\\u0000b"), "cannot be shown"),
            (good.replace("-6.1", "NaN"), "not a preset"),
            (good.replace("-6.1", "1e999"), "not a preset"),
            (good.replace("-6.1", "1e99"), "output_gain has no number"),
            (good.replace("-6.1", "\"NaN\""), "output_gain has no number"),
            ("[".repeat(100_000), "not a preset"),
        ];
        for (text, reason) in cases {
            std::fs::write(&path, &text).unwrap();
            let said = read(&path).expect_err(reason).to_string();
            assert!(said.contains("odd.ondes-preset: ") && said.contains(reason), "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
        assert!(read(&folder.path().join("none")).is_err_and(|refused| refused.fault.os_error() != 0));
        assert!(read(folder.path()).is_err());
        let large = std::fs::File::create(&path).unwrap();
        large.set_len(LARGEST + 1).unwrap();
        assert!(matches!(read(&path), Err(Refused { fault: Fault::Large, .. })));
    }
}
