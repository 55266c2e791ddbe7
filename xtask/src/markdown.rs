//! Headings and links of Markdown files, as far as checking links needs them.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

/// Anchors and links of one file.
#[derive(Debug, Default, PartialEq)]
struct Page {
    /// Anchors that renderers make of its headings.
    anchors: Vec<String>,
    /// Targets of links and images, with their line numbers.
    links: Vec<(usize, String)>,
    /// Contents of `code`, with their line numbers.
    code: Vec<(usize, String)>,
}

impl Page {
    fn parse(text: &str) -> Self {
        let mut page = Self::default();
        let mut counts: HashMap<String, usize> = HashMap::new();
        let mut fence = None;
        for (line, number) in text.lines().zip(1..) {
            let trimmed = line.trim_start();
            let marker = ["```", "~~~"]
                .into_iter()
                .find(|marker| trimmed.starts_with(marker));
            match (fence, marker) {
                (None, Some(_)) => fence = marker,
                (Some(open), Some(marker)) if open == marker => fence = None,
                (Some(_), _) => {}
                (None, None) => {
                    if let Some(heading) = heading(line) {
                        let anchor = anchor(heading);
                        let count = counts.entry(anchor.clone()).or_default();
                        page.anchors.push(if *count == 0 {
                            anchor
                        } else {
                            format!("{anchor}-{count}")
                        });
                        *count += 1;
                    }
                    page.links
                        .extend(links(line).into_iter().map(|target| (number, target)));
                    let code = line.split('`').skip(1).step_by(2);
                    page.code.extend(code.map(|text| (number, text.to_owned())));
                }
            }
        }
        page
    }
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    ((1..=6).contains(&level) && text.starts_with(' ')).then(|| text.trim())
}

/// Returns the anchor of a heading: GitHub and mdBook keep letters, digits, `-` and `_`, and turn
/// spaces into `-`.
fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c })
        .collect::<String>()
        .to_lowercase()
}

/// Returns the targets of inline links, images, and reference definitions in a line; those within
/// `code` do not count.
fn links(line: &str) -> Vec<String> {
    let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
    let mut targets: Vec<String> = prose
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', ' ']).next())
        .map(str::to_owned)
        .collect();
    if prose.starts_with('[')
        && let Some((_, target)) = prose.split_once("]: ")
    {
        targets.push(target.trim().to_owned());
    }
    targets
}

/// Checks every relative link and anchor of the Markdown files below `root`, every path of the
/// repository that they name in `code`, and that the book's contents list every page. Returns the
/// number of files and of links.
///
/// # Errors
/// Lists broken links and paths, and pages that are missing in `docs/src/SUMMARY.md`.
pub fn check(root: &Path) -> anyhow::Result<[usize; 2]> {
    let mut files = Vec::new();
    collect(root, &mut files)?;
    let mut pages = BTreeMap::new();
    for path in files {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        pages.insert(path, Page::parse(&text));
    }
    let book = root.join("docs/src");
    let mut problems = Vec::new();
    let mut links = 0;
    for (path, page) in &pages {
        for (line, target) in &page.links {
            links += 1;
            if let Some(problem) = broken(path, target, &pages, &book) {
                let name = path.strip_prefix(root).unwrap_or(path).display();
                problems.push(format!("{name}:{line}: {target}: {problem}"));
            }
        }
        for (line, code) in &page.code {
            if is_missing_path(root, code) {
                let name = path.strip_prefix(root).unwrap_or(path).display();
                problems.push(format!("{name}:{line}: `{code}`: no such file"));
            }
        }
    }
    problems.extend(missing_in_summary(&book, &pages));
    ensure!(
        problems.is_empty(),
        "the documentation has {} broken links or paths:\n{}",
        problems.len(),
        problems.join("\n")
    );
    Ok([pages.len(), links])
}

/// Collects the Markdown files of a folder; skips build output and hidden folders.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let is_skipped = name == "target" || name.to_string_lossy().starts_with('.');
        if entry.file_type()?.is_dir() {
            if !is_skipped {
                collect(&path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns what is wrong with a link, if anything. Links with a scheme are not followed.
fn broken(
    from: &Path,
    target: &str,
    pages: &BTreeMap<PathBuf, Page>,
    book: &Path,
) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target
        .split_once('#')
        .map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let path = if file.is_empty() {
        from.to_owned()
    } else {
        normalize(&from.parent()?.join(file))
    };
    if !path.exists() {
        return Some("no such file".into());
    }
    if from.starts_with(book) && !path.starts_with(book) {
        return Some(
            "pages of the book can only link within docs/src, which is all that is built".into(),
        );
    }
    let anchor = anchor?;
    match pages.get(&path) {
        Some(page) if page.anchors.iter().any(|known| known == anchor) => None,
        Some(page) => Some(format!(
            "no such heading; there are {}",
            page.anchors.join(", ")
        )),
        None => Some("an anchor needs a Markdown file".into()),
    }
}

/// Returns whether a text is the path of a file in a folder of the repository, and there is none.
/// A name in capitals, such as `NAME.rs`, stands for any.
fn is_missing_path(root: &Path, text: &str) -> bool {
    let is_sign = |sign: char| sign.is_ascii_alphanumeric() || "/._-".contains(sign);
    let Some((folder, _)) = text.split_once('/') else {
        return false;
    };
    let is_path = text.chars().all(is_sign)
        && !matches!(folder, "" | "." | ".." | "target")
        && root.join(folder).is_dir();
    let is_any = |part: &&str| part.len() > 1 && part.starts_with(|sign: char| sign.is_uppercase());
    let any = text.split('/').position(|part| {
        let stem = part.split('.').next().unwrap_or_default();
        is_any(&stem) && stem.chars().all(|sign| sign.is_ascii_uppercase())
    });
    let known: PathBuf = text.split('/').take(any.unwrap_or(usize::MAX)).collect();
    is_path && !root.join(known).exists()
}

/// Resolves `..` without asking the file system.
fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                normal.pop();
            }
            std::path::Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

fn missing_in_summary(book: &Path, pages: &BTreeMap<PathBuf, Page>) -> Vec<String> {
    let summary = book.join("SUMMARY.md");
    let Some(contents) = pages.get(&summary) else {
        return vec!["docs/src/SUMMARY.md: no such file".into()];
    };
    let listed: Vec<PathBuf> = contents
        .links
        .iter()
        .map(|(_, target)| normalize(&book.join(target)))
        .collect();
    let is_missing =
        |path: &&PathBuf| path.starts_with(book) && **path != summary && !listed.contains(path);
    let missing = pages.keys().filter(is_missing);
    missing
        .map(|path| format!("{}: missing in docs/src/SUMMARY.md", path.display()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_headings_and_links() {
        let text = "# The app: `ondes`\n\
                    See [a page](a.md#b), ![a picture](img/x.png) and `[code](no.md)`.\n\
                    ```sh\n# no heading\necho '[no](link.md)'\n```\n\
                    ## Twice\n## Twice\n[ref]: other.md\n#no heading\n";
        let page = Page::parse(text);
        assert_eq!(page.anchors, ["the-app-ondes", "twice", "twice-1"]);
        let links = [(2, "a.md#b"), (2, "img/x.png"), (9, "other.md")]
            .map(|(line, target)| (line, target.to_owned()));
        assert_eq!(page.links, links);
    }

    #[test]
    fn names_broken_links_and_missing_pages() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "README.md",
            "[book](docs/src/a.md#one), [web](https://example.org/x)\n",
        );
        write("docs/src/SUMMARY.md", "- [A](a.md)\n");
        write("docs/src/a.md", "# One\n[self](#one)\n");
        write("target/doc/x.md", "[ignored](nowhere.md)\n");
        assert_eq!(check(root).unwrap(), [3, 4]);

        write(
            "README.md",
            "[book](docs/src/a.md#two)\n\n[file](gone.md), `docs/src/b.md`, `docs/src/NAME.md`,\n\
             `docs/img/NAME.svg`, `target/x.md`, `other/x`, `docs/x y`\n",
        );
        write("docs/src/b.md", "[out](../../README.md)\n");
        let error = check(root).unwrap_err().to_string();
        for problem in [
            "has 5 broken links",
            "README.md:1: docs/src/a.md#two: no such heading; there are one",
            "README.md:3: gone.md: no such file",
            "README.md:4: `docs/img/NAME.svg`: no such file",
            "docs/src/b.md:1: ../../README.md: pages of the book can only link within docs/src",
            "b.md: missing in docs/src/SUMMARY.md",
        ] {
            assert!(error.contains(problem), "{error}");
        }
    }
}
