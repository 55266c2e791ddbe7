//! Runs the commands in the README and the book.
//!
//! A fenced `sh` block is runnable if the line before it is `<!-- run -->`, which renderers hide.
//! The blocks of a page run in order in one temporary folder that contains the files the
//! documentation talks about: `assets`, `song.mid`, `guitar.wav`, `voice.wav`, `extra.wav`, a
//! folder `takes`, `v30.wav` (an impulse response) and `amp.nam`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bundled_file;

/// Line that marks the block after it as runnable.
const MARK: &str = "<!-- run -->";

/// Linear capture of two taps.
const CAPTURE: &str = r#"{"version": "0.5.4", "architecture": "Linear",
"config": {"receptive_field": 2, "bias": false}, "weights": [0.25, 0.75], "sample_rate": 48000}"#;

/// Runnable block of shell commands.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    /// Line number of its first command.
    line: usize,
    script: String,
}

impl Block {
    /// Returns the programs that the commands start with.
    fn programs(&self) -> impl Iterator<Item = &str> {
        let mut continues = false;
        self.script.lines().filter_map(move |line| {
            let starts_command = !std::mem::replace(&mut continues, line.ends_with('\\'));
            line.split_whitespace()
                .next()
                .filter(|word| starts_command && !word.starts_with('#'))
        })
    }
}

fn runnable_blocks(markdown: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = (1..).zip(markdown.lines());
    while let Some((number, line)) = lines.next() {
        if line == MARK {
            let (_, fence) = lines.next().unwrap_or_default();
            assert_eq!(
                fence, "```sh",
                "line {number}: {MARK} is followed by a block of sh"
            );
            let script = lines
                .by_ref()
                .map(|(_, line)| line)
                .take_while(|line| *line != "```");
            blocks.push(Block {
                line: number + 2,
                script: script.collect::<Vec<_>>().join("\n"),
            });
        }
    }
    blocks
}

/// Runs all runnable blocks whose commands start with `program`, and returns how many there were.
///
/// # Panics
/// If a command fails, or a block uses other programs besides.
#[must_use]
pub fn run_commands_of(program: &Path) -> usize {
    let name = program
        .file_stem()
        .and_then(|name| name.to_str())
        .expect("the program has a name");
    let mut count = 0;
    for page in pages() {
        let markdown = fs::read_to_string(&page).expect("the page can be read");
        let mut blocks = runnable_blocks(&markdown);
        blocks.retain(|block| block.programs().any(|word| word == name));
        if blocks.is_empty() {
            continue;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        add_files(folder.path());
        for block in blocks {
            let place = format!("{}:{}", page.display(), block.line);
            assert!(
                block.programs().all(|word| word == name),
                "{place}: a block runs one program"
            );
            let output = shell(&block.script, program, folder.path())
                .output()
                .expect("there is a shell");
            let (stdout, stderr) = (
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr),
            );
            assert!(
                output.status.success(),
                "{place}: {}\n{}\n{stdout}{stderr}",
                output.status,
                block.script
            );
            count += 1;
        }
    }
    count
}

/// Returns the checkout's folder.
///
/// # Panics
/// If the test is not run by cargo.
#[must_use]
pub fn checkout() -> PathBuf {
    let models = bundled_file("bowed");
    models
        .ancestors()
        .nth(3)
        .expect("assets/models is in the checkout")
        .to_owned()
}

/// Returns the README and the pages of the book.
fn pages() -> Vec<PathBuf> {
    let checkout = checkout();
    let book = fs::read_dir(checkout.join("docs/src")).expect("the checkout has a book");
    let mut pages: Vec<PathBuf> = book.map(|entry| entry.expect("an entry").path()).collect();
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    pages.insert(0, checkout.join("README.md"));
    pages
}

fn add_files(folder: &Path) {
    let assets = checkout().join("assets");
    let copy = |from: &str, to: &str| {
        let to = folder.join(to);
        fs::create_dir_all(to.parent().expect("a folder")).expect("the folder can be created");
        fs::copy(assets.join(from), to).expect("the file can be copied");
    };
    for entry in ["demo", "models"] {
        for file in fs::read_dir(assets.join(entry)).expect("a folder of assets") {
            let name = file.expect("an entry").file_name();
            let path = format!("{entry}/{}", name.display());
            copy(&path, &format!("assets/{path}"));
        }
    }
    copy("demo/harbour-at-dusk.mid", "song.mid");
    copy("demo/riff.wav", "guitar.wav");
    copy("demo/riff.wav", "v30.wav");
    for copied in ["voice.wav", "extra.wav", "takes/one.wav"] {
        copy("demo/phrase.wav", copied);
    }
    fs::write(folder.join("amp.nam"), CAPTURE).expect("the capture can be written");
}

/// Returns a command that runs a script in `folder`, with `program` on the path and the user's own
/// files out of reach.
fn shell(script: &str, program: &Path, folder: &Path) -> Command {
    let mut path = OsString::from(program.parent().expect("the program is in a folder"));
    if let Some(inherited) = std::env::var_os("PATH") {
        path.push(":");
        path.push(inherited);
    }
    let mut command = Command::new("sh");
    command
        .args(["-e", "-c", script])
        .current_dir(folder)
        .env("PATH", path);
    for variable in ["HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
        command.env(variable, folder.join("home"));
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_marked_blocks_and_their_programs() {
        let markdown = "# A\n```sh\nno\n```\n<!-- run -->\n```sh\nondes render a.ondes \\\n    --out b.wav   # c\n# d\nondes info\n```\n";
        let blocks = runnable_blocks(markdown);
        assert_eq!(blocks.len(), 1);
        assert_eq!(blocks[0].line, 7);
        assert_eq!(blocks[0].programs().collect::<Vec<_>>(), ["ondes", "ondes"]);
    }

    #[test]
    fn every_runnable_block_belongs_to_a_tested_program() {
        for page in pages() {
            for block in runnable_blocks(&fs::read_to_string(&page).unwrap()) {
                let programs: Vec<&str> = block.programs().collect();
                let known = ["ondes", "ondes-train"]
                    .iter()
                    .any(|known| programs.iter().all(|word| word == known));
                assert!(known, "{}:{}: {programs:?}", page.display(), block.line);
            }
        }
    }
}
