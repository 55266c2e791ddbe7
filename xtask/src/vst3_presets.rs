//! The plugin's factory presets as VST3 hosts list them: files in a folder that the standard names.
//!
//! Format and folders are those of Steinberg's VST 3 Developer Portal, "Preset Format" and "Preset Locations". What the plugin
//! takes for a state is a preset, as it is.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

/// Who makes it, as the plugin says; a folder of this name holds one for each plugin.
const VENDOR: &str = "Ondes";

/// A plugin as presets name it, as VST3 hosts name it, and the id of its class, which never changes.
struct Plugin {
    id: &'static str,
    name: &'static str,
    class: &'static str,
}

/// The classes are held to these by the plugin's tests.
const PLUGINS: [Plugin; 2] = [
    Plugin { id: "org.ondes.instrument", name: "Ondes", class: "D2832EC03E945937819AFEB1EEE27629" },
    Plugin { id: "org.ondes.effect", name: "Ondes FX", class: "1E84D1BD68105DC8AC482C228F2986D7" },
];

/// Writes a file for each preset of a folder into `to/Ondes/PLUGIN`. Returns how many.
pub fn write(from: &Path, to: &Path) -> anyhow::Result<usize> {
    let mut count = 0;
    for entry in std::fs::read_dir(from).with_context(|| from.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "ondes-preset") {
            let preset = std::fs::read(&path).with_context(|| path.display().to_string())?;
            let (place, file) = convert(&preset).with_context(|| format!("{}: not a preset", path.display()))?;
            let place = to.join(place);
            let written = std::fs::create_dir_all(place.parent().unwrap_or(to));
            written
                .and_then(|()| std::fs::write(&place, file))
                .with_context(|| format!("{}: cannot be written", place.display()))?;
            count += 1;
        }
    }
    Ok(count)
}

/// Where VST3 hosts look for this user's presets, vendor by vendor.
pub fn home(system: &str) -> Option<PathBuf> {
    let below = |variable: &str, path: &str| Some(PathBuf::from(std::env::var_os(variable)?).join(path));
    match system {
        "macos" => below("HOME", "Library/Audio/Presets"),
        "windows" => below("APPDATA", "VST3 Presets"),
        _ => below("HOME", ".vst3/presets"),
    }
}

/// A preset's place below the folder of all vendors, and its file.
fn convert(preset: &[u8]) -> anyhow::Result<(PathBuf, Vec<u8>)> {
    let text: Value = serde_json::from_slice(preset)?;
    let name = text["name"].as_str().context("it has no name")?;
    let id = text["plugin"].as_str().context("it names no plugin")?;
    let plugin = PLUGINS.iter().find(|plugin| plugin.id == id).with_context(|| format!("there is no plugin {id}"))?;
    let file_name = name.replace(['*', '?', '/', '\\', ':', '<', '>', '|', '"'], "_") + ".vstpreset";
    let place = Path::new(VENDOR).join(plugin.name).join(file_name);
    Ok((place, file(plugin, preset, &about(plugin, name))))
}

/// The file around a state: a head, the state, what is told of it, and a list of both.
fn file(plugin: &Plugin, state: &[u8], about: &str) -> Vec<u8> {
    const HEAD: usize = 48;
    let chunks = [(b"Comp", state), (b"Info", about.as_bytes())];
    let list: usize = HEAD + chunks.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
    let mut file = b"VST3".to_vec();
    file.extend(1_i32.to_le_bytes());
    file.extend(plugin.class.as_bytes());
    file.extend((list as i64).to_le_bytes());
    chunks.iter().for_each(|(_, bytes)| file.extend_from_slice(bytes));
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

/// What hosts show without loading it.
fn about(plugin: &Plugin, name: &str) -> String {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    let attribute = |(id, value): (&str, &str)| {
        format!("<Attribute id=\"{id}\" value=\"{}\" type=\"string\" flags=\"\"/>", escaped(value))
    };
    let attributes =
        [("MediaType", "VstPreset"), ("PlugInName", plugin.name), ("PlugInVendor", VENDOR), ("Name", name)];
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
    fn a_file_says_where_its_parts_are() {
        let preset = br#"{ "name": "A/B <\"loud\"> & wide", "plugin": "org.ondes.effect" }"#;
        let (place, file) = convert(preset).unwrap();
        assert_eq!(place, Path::new("Ondes/Ondes FX/A_B __loud__ & wide.vstpreset"));
        assert_eq!((&file[..4], file[4], &file[8..40]), (&b"VST3"[..], 1, PLUGINS[1].class.as_bytes()));
        let list = number(&file, 40);
        assert_eq!((&file[list..list + 4], file[list + 4], file.len()), (&b"List"[..], 2, list + 8 + 2 * 20));
        let part = |entry: usize| {
            let at = list + 8 + 20 * entry;
            let (start, length) = (number(&file, at + 4), number(&file, at + 12));
            (&file[at..at + 4], &file[start..start + length])
        };
        assert_eq!(part(0), (&b"Comp"[..], &preset[..]));
        let (id, about) = part(1);
        assert_eq!(id, b"Info");
        let about = std::str::from_utf8(about).unwrap();
        assert!(about.contains("value=\"A/B &lt;&quot;loud&quot;> &amp; wide\"") && about.ends_with("</MetaInfo>\n"));
    }

    #[test]
    fn all_factory_presets_are_written_and_what_is_none_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let presets = root().join("assets/presets");
        let count = write(&presets, folder.path()).unwrap();
        assert_eq!(count, std::fs::read_dir(&presets).unwrap().count());
        assert!(folder.path().join("Ondes/Ondes/Soft Strings.vstpreset").is_file());
        let wrong = tempfile::tempdir().unwrap();
        std::fs::write(wrong.path().join("x.ondes-preset"), r#"{ "name": "x", "plugin": "y" }"#).unwrap();
        let error = write(wrong.path(), folder.path()).unwrap_err();
        assert!(format!("{error:#}").contains("x.ondes-preset: not a preset: there is no plugin y"), "{error:#}");
    }
}
