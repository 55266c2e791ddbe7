//! Licences of the libraries that a program contains, as one text file beside it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::process::{cargo, output, root};

/// File name of the notices in a bundle.
pub const FILE: &str = "THIRD-PARTY.txt";

/// Crates that are build dependencies, but whose C++ sources are compiled into a program.
const COMPILED_IN: [(&str, &str); 1] = [("ondes-plugin", "clap-wrapper")];

/// Parts of the names of licence files, in lower case. A text in a folder of fonts is one as well.
const LICENCE_FILES: [&str; 6] = [
    "licen",
    "copying",
    "copyright",
    "notice",
    "patents",
    "fonts/",
];

/// How deep in a crate licences lie: C++ sources and fonts have folders of their own.
const DEPTH: usize = 2;

/// Crate of another project.
#[derive(Debug)]
pub struct Library {
    /// Name and version.
    pub id: String,
    /// SPDX expression.
    pub licence: String,
    authors: String,
    repository: String,
    folder: PathBuf,
}

/// Writes the licences of everything that these packages of the workspace link.
///
/// # Errors
/// Cargo fails, or a file cannot be read or written.
pub fn write(packages: &[&str], path: &Path) -> anyhow::Result<()> {
    let text = text(&libraries(packages)?)?;
    let folder = path.parent().unwrap_or(path);
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(path, text));
    written.with_context(|| format!("{}: cannot be written", path.display()))
}

/// Returns the crates of other projects that these packages link, sorted by name.
///
/// # Errors
/// Cargo fails.
pub fn libraries(packages: &[&str]) -> anyhow::Result<Vec<Library>> {
    let mut tree = cargo();
    tree.args([
        "tree",
        "--locked",
        "--edges",
        "normal,no-proc-macro",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]);
    tree.args(packages.iter().flat_map(|package| ["--package", package]));
    let tree = output(&mut tree)?;
    let mut linked: Vec<String> = tree.lines().filter_map(id).collect();
    // Only crates of this system are there to be read.
    let mut metadata = cargo();
    metadata.args([
        "metadata",
        "--locked",
        "--format-version",
        "1",
        "--filter-platform",
        &host()?,
    ]);
    let metadata: Value =
        serde_json::from_str(&output(&mut metadata)?).context("cargo metadata is not JSON")?;
    let all = metadata["packages"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for (_, name) in COMPILED_IN
        .iter()
        .filter(|(package, _)| packages.contains(package))
    {
        let found = all.iter().filter(|package| package["name"] == *name);
        linked.extend(found.map(|package| format!("{name} {}", text(&package["version"]))));
    }
    let mut libraries: Vec<Library> = all
        .iter()
        .filter(|package| package["source"].is_string())
        .map(|package| Library {
            id: format!("{} {}", text(&package["name"]), text(&package["version"])),
            licence: text(&package["license"]),
            authors: package["authors"]
                .as_array()
                .into_iter()
                .flatten()
                .map(text)
                .collect::<Vec<_>>()
                .join(", "),
            repository: text(&package["repository"]),
            folder: Path::new(&text(&package["manifest_path"]))
                .parent()
                .map(Path::to_owned)
                .unwrap_or_default(),
        })
        .filter(|library| linked.contains(&library.id))
        .collect();
    libraries.sort_by(|a, b| a.id.cmp(&b.id));
    ensure!(
        !libraries.is_empty(),
        "cargo names no dependency of {}",
        packages.join(", ")
    );
    Ok(libraries)
}

/// Returns name and version from a line of `cargo tree` such as `egui v0.37.0 (*)`; `None` for
/// crates of the workspace.
fn id(line: &str) -> Option<String> {
    let mut words = line.split(' ');
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    (!words.any(|word| word.starts_with("(/") || word.contains(":\\")))
        .then(|| format!("{name} {version}"))
}

/// Returns the triple of this system.
fn host() -> anyhow::Result<String> {
    let version = output(std::process::Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc names no host")?.to_owned())
}

/// Lays out the list of libraries and, once each, their licence texts.
fn text(libraries: &[Library]) -> anyhow::Result<String> {
    let mut all = format!(
        "Ondes contains these {} libraries. Their licences follow the list.\n\n",
        libraries.len()
    );
    let mut texts: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for library in libraries {
        let Library {
            id,
            licence,
            authors,
            repository,
            ..
        } = library;
        let found = licence_texts(&library.folder, DEPTH)?;
        writeln!(all, "{id}: {licence}")?;
        if found.is_empty() {
            // Most name the Apache licence as one of two, and have its text in their repository
            // only.
            writeln!(all, "    by {authors}; {repository}")?;
            if licence.contains("Apache-2.0") {
                let path = root().join("LICENSE-APACHE");
                let apache =
                    std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                texts.entry(apache).or_default().push(id);
            }
        }
        for text in found {
            let users = texts.entry(text).or_default();
            if users.last() != Some(&id.as_str()) {
                users.push(id);
            }
        }
    }
    for (text, users) in texts {
        write!(
            all,
            "\n{}\n{}\n\n{text}\n",
            "=".repeat(80),
            users.join(", ")
        )?;
    }
    Ok(all)
}

/// Returns the licence texts in a folder and `depth` levels below.
fn licence_texts(folder: &Path, depth: usize) -> anyhow::Result<Vec<String>> {
    let entries = std::fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut paths: Vec<PathBuf> = entries
        .with_context(|| folder.display().to_string())?
        .iter()
        .map(std::fs::DirEntry::path)
        .collect();
    paths.sort();
    let mut texts = Vec::new();
    for path in paths {
        let above = folder.file_name().unwrap_or_default().to_string_lossy();
        let name = format!(
            "{above}/{}",
            path.file_name().unwrap_or_default().to_string_lossy()
        )
        .to_lowercase();
        let is_code = [".rs", ".ttf", ".h", ".cmake"]
            .iter()
            .any(|ending| name.ends_with(ending));
        if path.is_dir() && depth > 0 {
            texts.extend(licence_texts(&path, depth - 1)?);
        } else if LICENCE_FILES.iter().any(|part| name.contains(part)) && !is_code && path.is_file()
        {
            let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
            texts.push(
                String::from_utf8_lossy(&bytes)
                    .replace("\r\n", "\n")
                    .trim()
                    .to_owned(),
            );
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_the_tree() {
        assert_eq!(id("egui v0.37.0 (*)").as_deref(), Some("egui 0.37.0"));
        assert_eq!(id("ondes-engine v0.1.0 (/home/me/ondes/engine)"), None);
        assert_eq!(id(""), None);
    }

    #[test]
    fn notices_name_what_is_linked_and_nothing_else() {
        let linked = libraries(&["ondes-plugin"]).unwrap();
        let is_linked = |name: &str| {
            linked
                .iter()
                .any(|library| library.id.starts_with(&format!("{name} ")))
        };
        assert!(
            [
                "symphonia",
                "egui",
                "clap-wrapper",
                "serde",
                "epaint_default_fonts"
            ]
            .into_iter()
            .all(is_linked)
        );
        // Of the app, of tests, of build scripts, and code that runs in the compiler only.
        assert!(
            !["cpal", "clack-host", "cc", "serde_derive"]
                .into_iter()
                .any(is_linked)
        );
        let text = text(&linked).unwrap();
        for part in [
            "Mozilla Public License Version 2.0",
            "Steinberg",
            "UBUNTU FONT LICENCE",
            "Apache License",
        ] {
            assert!(text.contains(part), "{part}");
        }
        assert!(linked.iter().all(|library| text.contains(&library.id)));
    }

    /// The same rule as `cargo deny check licenses`, for machines without it.
    #[test]
    fn all_licences_are_allowed() {
        let rules = std::fs::read_to_string(root().join("deny.toml")).unwrap();
        let rules: toml::Table = rules.parse().unwrap();
        let list = |value: &toml::Value| -> Vec<String> {
            value
                .as_array()
                .unwrap()
                .iter()
                .map(|name| name.as_str().unwrap().to_owned())
                .collect()
        };
        let allowed = list(&rules["licenses"]["allow"]);
        let exceptions = rules["licenses"]["exceptions"].as_array().unwrap();
        for Library { id, licence, .. } in
            libraries(&["ondes-plugin", "ondes", "ondes-torch", "ondes-training"]).unwrap()
        {
            let own = exceptions
                .iter()
                .find(|rule| id.starts_with(&format!("{} ", rule["crate"].as_str().unwrap())));
            let own = own.map(|rule| list(&rule["allow"])).unwrap_or_default();
            let expression = spdx::Expression::parse_mode(&licence, spdx::ParseMode::LAX);
            let is_allowed = expression.unwrap().evaluate(|term| {
                let term = term.to_string();
                allowed.contains(&term) || own.contains(&term)
            });
            assert!(is_allowed, "{id}: {licence}");
        }
        let denied = rules["bans"]["deny"].as_array().unwrap();
        let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
        for name in denied.iter().map(|rule| rule["crate"].as_str().unwrap()) {
            assert!(!lock.contains(&format!("name = \"{name}\"")), "{name}");
        }
    }
}
