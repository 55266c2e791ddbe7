//! Converts the plugin's factory presets to `.vstpreset` files.
//!
//! Format and folders follow Steinberg's VST 3 Developer Portal, "Preset Format" and "Preset
//! Locations". The plugin reads a preset as its state, so the state chunk is the preset itself.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

/// Vendor name of the plugins, and the folder that holds one folder of presets per plugin.
const VENDOR: &str = "Ondes";

/// One of the two plugins.
struct Plugin {
    /// Id in preset files.
    id: &'static str,
    /// Name in VST3 hosts.
    name: &'static str,
    /// Class id, hexadecimal; must never change.
    class: &'static str,
}

/// The plugin's tests check these class ids.
const PLUGINS: [Plugin; 2] = [
    Plugin {
        id: "org.ondes.instrument",
        name: "Ondes",
        class: "D2832EC03E945937819AFEB1EEE27629",
    },
    Plugin {
        id: "org.ondes.effect",
        name: "Ondes FX",
        class: "1E84D1BD68105DC8AC482C228F2986D7",
    },
];

/// Converts every preset of the folder `from` into `to/Ondes/PLUGIN`. Returns their number.
///
/// # Errors
/// A file cannot be read or written, or is not a preset.
pub fn write(from: &Path, to: &Path) -> anyhow::Result<usize> {
    let mut count = 0;
    for entry in std::fs::read_dir(from).with_context(|| from.display().to_string())? {
        let source = entry?.path();
        if source
            .extension()
            .is_some_and(|extension| extension == "ondes-preset")
        {
            let preset = std::fs::read(&source).with_context(|| source.display().to_string())?;
            let (relative, file) =
                convert(&preset).with_context(|| format!("{}: not a preset", source.display()))?;
            let path = to.join(relative);
            let written = std::fs::create_dir_all(path.parent().unwrap_or(to));
            written
                .and_then(|()| std::fs::write(&path, file))
                .with_context(|| format!("{}: cannot be written", path.display()))?;
            count += 1;
        }
    }
    Ok(count)
}

/// Returns the folder in which VST3 hosts look for this user's presets.
pub fn folder(system: &str) -> Option<PathBuf> {
    let below =
        |variable: &str, path: &str| Some(PathBuf::from(std::env::var_os(variable)?).join(path));
    match system {
        "macos" => below("HOME", "Library/Audio/Presets"),
        "windows" => below("APPDATA", "VST3 Presets"),
        _ => below("HOME", ".vst3/presets"),
    }
}

/// Converts one preset; returns its path below the folder of presets, and the file's content.
fn convert(preset: &[u8]) -> anyhow::Result<(PathBuf, Vec<u8>)> {
    let text: Value = serde_json::from_slice(preset)?;
    let name = text["name"].as_str().context("the preset has no name")?;
    let id = text["plugin"]
        .as_str()
        .context("the preset names no plugin")?;
    let plugin = PLUGINS
        .iter()
        .find(|plugin| plugin.id == id)
        .with_context(|| format!("unknown plugin {id}"))?;
    let file_name =
        name.replace(['*', '?', '/', '\\', ':', '<', '>', '|', '"'], "_") + ".vstpreset";
    let path = Path::new(VENDOR).join(plugin.name).join(file_name);
    Ok((path, file(plugin, preset, &meta_info(plugin, name))))
}

/// Builds the file: a header, the state, the meta information, and a list of both chunks.
fn file(plugin: &Plugin, state: &[u8], meta_info: &str) -> Vec<u8> {
    const HEAD: usize = 48;
    let chunks = [(b"Comp", state), (b"Info", meta_info.as_bytes())];
    let list: usize = HEAD + chunks.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
    let mut file = b"VST3".to_vec();
    file.extend(1_i32.to_le_bytes());
    file.extend(plugin.class.as_bytes());
    file.extend((list as i64).to_le_bytes());
    chunks
        .iter()
        .for_each(|(_, bytes)| file.extend_from_slice(bytes));
    file.extend(b"List");
    file.extend((chunks.len() as i32).to_le_bytes());
    let mut start = HEAD;
    for (id, bytes) in chunks {
        file.extend(id);
        file.extend((start as i64).to_le_bytes());
        file.extend((bytes.len() as i64).to_le_bytes());
        start += bytes.len();
    }
    file
}

/// Returns the XML that hosts show without loading the preset.
fn meta_info(plugin: &Plugin, name: &str) -> String {
    let escaped = |text: &str| {
        text.replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('"', "&quot;")
    };
    let attribute = |(id, value): (&str, &str)| {
        format!(
            "<Attribute id=\"{id}\" value=\"{}\" type=\"string\" flags=\"\"/>",
            escaped(value)
        )
    };
    let attributes = [
        ("MediaType", "VstPreset"),
        ("PlugInName", plugin.name),
        ("PlugInVendor", VENDOR),
        ("Name", name),
    ];
    let attributes = attributes.map(attribute).concat();
    format!("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<MetaInfo>{attributes}</MetaInfo>\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::root;

    fn number(file: &[u8], at: usize) -> usize {
        usize::try_from(i64::from_le_bytes(file[at..at + 8].try_into().unwrap())).unwrap()
    }

    #[test]
    fn a_file_lists_its_chunks() {
        let preset = br#"{ "name": "A/B <\"loud\"> & wide", "plugin": "org.ondes.effect" }"#;
        let (relative, file) = convert(preset).unwrap();
        assert_eq!(
            relative,
            Path::new("Ondes/Ondes FX/A_B __loud__ & wide.vstpreset")
        );
        assert_eq!(
            (&file[..4], file[4], &file[8..40]),
            (&b"VST3"[..], 1, PLUGINS[1].class.as_bytes())
        );
        let list = number(&file, 40);
        assert_eq!(
            (&file[list..list + 4], file[list + 4], file.len()),
            (&b"List"[..], 2, list + 8 + 2 * 20)
        );
        let part = |entry: usize| {
            let at = list + 8 + 20 * entry;
            let (start, length) = (number(&file, at + 4), number(&file, at + 12));
            (&file[at..at + 4], &file[start..start + length])
        };
        assert_eq!(part(0), (&b"Comp"[..], &preset[..]));
        let (id, about) = part(1);
        assert_eq!(id, b"Info");
        let about = std::str::from_utf8(about).unwrap();
        assert!(
            about.contains("value=\"A/B &lt;&quot;loud&quot;> &amp; wide\"")
                && about.ends_with("</MetaInfo>\n")
        );
    }

    #[test]
    fn all_factory_presets_are_converted_and_a_bad_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let presets = root().join("assets/presets");
        let count = write(&presets, folder.path()).unwrap();
        assert_eq!(count, std::fs::read_dir(&presets).unwrap().count());
        assert!(
            folder
                .path()
                .join("Ondes/Ondes/Soft Strings.vstpreset")
                .is_file()
        );
        let wrong = tempfile::tempdir().unwrap();
        std::fs::write(
            wrong.path().join("x.ondes-preset"),
            r#"{ "name": "x", "plugin": "y" }"#,
        )
        .unwrap();
        let error = write(wrong.path(), folder.path()).unwrap_err();
        assert!(
            format!("{error:#}").contains("x.ondes-preset: not a preset: unknown plugin y"),
            "{error:#}"
        );
    }
}
