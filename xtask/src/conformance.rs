//! Compares how Ondes reads the files of `tests/conformance` with how other programs do, and writes
//! the tables of the book's page about formats.
//!
//! A kind of files is a module here, a folder with answers, and a section of the page between two
//! marks.

mod audio;
mod captures;
mod midi;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use crate::process::{cargo, from_root, output, root};
use crate::setup::{self, Tool};

/// Kind of files.
struct Kind {
    /// Name of the folder and of the section.
    name: &'static str,
    /// Programs to compare with.
    tools: &'static [Tool],
    /// Lets the other programs read the files and write their results into the folder given;
    /// returns nothing for what they refuse.
    run_others: fn(&Path, &Path) -> anyhow::Result<()>,
    /// Names of the readers, Ondes first: columns of the table.
    readers: &'static [&'static str],
}

const KINDS: [Kind; 3] = [audio::KIND, midi::KIND, captures::KIND];

/// Compares all kinds and writes the page.
///
/// # Errors
/// A program is missing and cannot be installed, or the page cannot be written.
pub fn compare() -> anyhow::Result<()> {
    setup::ensure(KINDS.iter().flat_map(|kind| kind.tools))?;
    let page_path = root().join("docs/src/formats.md");
    let unreadable = || format!("{}: cannot be read", from_root(&page_path));
    let mut page = std::fs::read_to_string(&page_path).with_context(unreadable)?;
    for kind in &KINDS {
        let results = results_folder(kind.name)?;
        (kind.run_others)(&root().join("tests/conformance").join(kind.name), &results)?;
        let mut read = cargo();
        read.args([
            "run",
            "--quiet",
            "--package",
            "ondes-tests",
            "--example",
            "conformance",
            "--",
            kind.name,
        ]);
        let lines: Vec<Value> = serde_json::from_str(&output(read.arg(&results))?)?;
        page = with_section(&page, kind.name, &table(kind.readers, &lines)?)?;
        println!("conformance: {} files of {}", lines.len(), kind.name);
    }
    std::fs::write(&page_path, page)
        .with_context(|| format!("{}: cannot be written", from_root(&page_path)))?;
    println!("written: {}", from_root(&page_path));
    Ok(())
}

/// Returns an empty folder for results.
fn results_folder(kind: &str) -> anyhow::Result<PathBuf> {
    let folder = root().join("target/conformance").join(kind);
    if folder.exists() {
        std::fs::remove_dir_all(&folder)
            .with_context(|| format!("{}: cannot be emptied", from_root(&folder)))?;
    }
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("{}: cannot be created", from_root(&folder)))?;
    Ok(folder)
}

/// Writes a table from the lines that the example `conformance` of `ondes-tests` prints: file,
/// oddity, what each reader makes of it, and optionally the group, which becomes a row of its own,
/// and a reason.
fn table(readers: &[&str], lines: &[Value]) -> anyhow::Result<String> {
    let with_reasons = lines.iter().any(|line| line["why"].is_string());
    let columns: Vec<&str> = ["file", "content"]
        .iter()
        .chain(readers)
        .copied()
        .chain(with_reasons.then_some("why"))
        .collect();
    let row = |cells: &[&str]| format!("| {} |\n", cells.join(" | "));
    let mut table = row(&columns) + &format!("|{}\n", "---|".repeat(columns.len()));
    let mut group = None;
    for line in lines {
        let (Some(file), Some(what), Some(results)) = (
            line["file"].as_str(),
            line["what"].as_str(),
            line["readers"].as_array(),
        ) else {
            bail!("a line of the table is incomplete: {line}");
        };
        if let Some(name) = line["group"].as_str().filter(|name| group != Some(*name)) {
            let title = format!("**{name}**");
            table += &row(&[[title.as_str()].as_slice(), &vec![""; columns.len() - 1]].concat());
            group = Some(name);
        }
        let file = format!("`{file}`");
        let results = results
            .iter()
            .map(|result| result.as_str().unwrap_or_default());
        let reason = with_reasons.then(|| line["why"].as_str().unwrap_or_default());
        table += &row(&[file.as_str(), what]
            .into_iter()
            .chain(results)
            .chain(reason)
            .collect::<Vec<_>>());
    }
    Ok(table)
}

/// Runs a program that may refuse a file.
fn quietly(command: &mut Command) -> anyhow::Result<()> {
    let command = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().with_context(|| {
        format!(
            "{}: cannot be started",
            command.get_program().to_string_lossy()
        )
    })?;
    Ok(())
}

/// Replaces what is between the marks of a section.
fn with_section(page: &str, name: &str, content: &str) -> anyhow::Result<String> {
    let [start, end] =
        ["begin", "end"].map(|word| format!("<!-- conformance: {word} {name} -->\n"));
    let (before, rest) = page
        .split_once(&start)
        .with_context(|| format!("the page has no line {}", start.trim()))?;
    let (_, after) = rest
        .split_once(&end)
        .with_context(|| format!("the page has no line {}", end.trim()))?;
    ensure!(!content.is_empty(), "the section {name} is empty");
    Ok(format!(
        "{before}{start}\n{}\n\n{end}{after}",
        content.trim_end()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_reasons_are_in_the_table() {
        let line = |group: &str, why: Option<&str>| serde_json::json!({ "file": "a", "group": group, "what": "b", "readers": ["exact", "refuses"], "why": why });
        let lines = [line("One", None), line("One", Some("c")), line("Two", None)];
        let expected = "| file | content | Ondes | other | why |\n|---|---|---|---|---|\n\
                        | **One** |  |  |  |  |\n| `a` | b | exact | refuses |  |\n| `a` | b | exact | refuses | c |\n\
                        | **Two** |  |  |  |  |\n| `a` | b | exact | refuses |  |\n";
        assert_eq!(table(&["Ondes", "other"], &lines).unwrap(), expected);
        assert!(table(&[], &[Value::Null]).is_err());
    }

    #[test]
    fn every_kind_has_a_folder_and_a_section() {
        let page = std::fs::read_to_string(root().join("docs/src/formats.md")).unwrap();
        for kind in &KINDS {
            assert!(
                root().join("tests/conformance").join(kind.name).is_dir(),
                "{}",
                kind.name
            );
            let replaced = with_section(&page, kind.name, "content").unwrap();
            assert!(replaced.contains("\n\ncontent\n\n"), "{replaced}");
            assert_eq!(
                with_section(&replaced, kind.name, "content").unwrap(),
                replaced
            );
        }
        assert!(with_section(&page, "none", "content").is_err());
    }
}
