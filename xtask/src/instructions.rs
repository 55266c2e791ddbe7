//! Counts the instructions of the engine's hot paths, and compares them with the expected counts.
//!
//! Unlike times, counts are the same on a busy machine and on another CPU, so that a test can tell
//! an increase of a few per cent. `engine/benches/instructions.rs` has the paths.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};

use crate::process::{cargo, executable, output, root, works};

/// Command that replaces the expected counts.
const ACCEPT: &str = "cargo xtask instructions --accept";
/// Relative difference that is reported: other versions of libc count a little differently.
const TOLERANCE: f64 = 0.02;

/// Instructions by path.
type Counts = BTreeMap<String, u64>;

/// Counts the instructions of all paths, and fails if one takes more than expected; with `accept`,
/// writes the counts to the file of expected ones instead.
///
/// # Errors
/// A path takes more instructions than expected, or the program cannot be built or run.
pub fn check(accept: bool) -> anyhow::Result<()> {
    if let Some(reason) = unsupported() {
        ensure!(!accept, "instructions cannot be counted: {reason}");
        println!("instructions: not counted, {reason}");
        return Ok(());
    }
    ensure!(
        works("valgrind", &["--version"]),
        "valgrind is missing; `cargo xtask setup --tests` installs it"
    );
    let counts = count(&build()?)?;
    let path = root().join("engine/benches/instructions.txt");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("{} cannot be read", path.display()))?;
    if accept {
        return std::fs::write(&path, replace(&text, &counts))
            .with_context(|| format!("{} cannot be written", path.display()));
    }
    for note in compare(&parse(&text)?, &counts)? {
        println!("{note}");
    }
    Ok(())
}

/// Returns why this machine cannot count, if it cannot.
fn unsupported() -> Option<&'static str> {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    let has_avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    let has_avx2 = false;
    (!has_avx2).then_some("which needs Linux on x86-64 with AVX2 and FMA")
}

/// Builds the program as `cargo xtask test` builds the engine, and returns its path.
fn build() -> anyhow::Result<PathBuf> {
    let mut build = cargo();
    build
        .args(["build", "--workspace", "--bench", "instructions"])
        .arg("--message-format=json-render-diagnostics")
        // Incremental builds split crates into other units, whose code differs.
        .env("CARGO_INCREMENTAL", "0");
    let path = executable(&output(&mut build)?, "instructions");
    path.map(PathBuf::from)
        .context("cargo built the program without reporting its path")
}

/// Runs all paths in callgrind.
fn count(program: &Path) -> anyhow::Result<Counts> {
    let names = output(Command::new(program).arg("--list"))?;
    let count = |name: &str| {
        let mut valgrind = Command::new("valgrind");
        valgrind
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg("--toggle-collect=*run_counted*")
            .arg(program)
            .arg(name)
            .stdout(Stdio::null());
        let run = valgrind.output().context("valgrind cannot be started")?;
        let report = String::from_utf8_lossy(&run.stderr);
        ensure!(run.status.success(), "{name}: {}: {report}", run.status);
        let count = collected(&report)
            .with_context(|| format!("{name}: valgrind reports no count: {report}"))?;
        Ok((name.to_owned(), count))
    };
    names.lines().map(count).collect()
}

/// Finds the number of instructions in callgrind's report.
fn collected(report: &str) -> Option<u64> {
    let (_, count) = report.split_once("Collected :")?;
    let count = count.split_whitespace().next()?.parse().ok()?;
    // Zero means that the function whose instructions are collected was not found.
    (count > 0).then_some(count)
}

/// Reads lines of a name and a count; lines that start with `#` are comments.
fn parse(text: &str) -> anyhow::Result<Counts> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, count) = line.split_once(' ').context("a line has no count")?;
            Ok((name.to_owned(), count.trim().parse()?))
        })
        .collect()
}

/// Returns the text with other counts after its comments.
fn replace(text: &str, counts: &Counts) -> String {
    let comments = text.lines().filter(|line| line.starts_with('#'));
    let mut replaced: String = comments.flat_map(|line| [line, "\n"]).collect();
    for (name, count) in counts {
        writeln!(replaced, "{name:<10} {count}").expect("strings take all that is written");
    }
    replaced
}

/// Returns a line for each path.
///
/// # Errors
/// A path takes more instructions than expected, or has no expected count.
fn compare(expected: &Counts, counts: &Counts) -> anyhow::Result<Vec<String>> {
    let (mut notes, mut errors) = (Vec::new(), Vec::new());
    for (name, &count) in counts {
        let Some(&expected) = expected.get(name) else {
            errors.push(format!("{name}: no expected count; `{ACCEPT}` writes it"));
            continue;
        };
        let change = count as f64 / expected as f64 - 1.0;
        let line = format!(
            "{name}: {count} instructions, expected {expected} ({:+.2} %)",
            100.0 * change
        );
        if change > TOLERANCE {
            errors.push(format!("{line}; `{ACCEPT}` accepts the increase"));
        } else if change < -TOLERANCE {
            notes.push(format!("{line}; `{ACCEPT}` keeps the gain"));
        } else {
            notes.push(line);
        }
    }
    if errors.is_empty() {
        return Ok(notes);
    }
    bail!(errors.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts<const N: usize>(counts: [(&str, u64); N]) -> Counts {
        counts.map(|(name, count)| (name.to_owned(), count)).into()
    }

    #[test]
    fn more_instructions_than_expected_are_an_error() {
        let expected = counts([("codec", 1000), ("lstm", 1000)]);
        let notes = compare(&expected, &counts([("codec", 1019), ("lstm", 970)])).unwrap();
        assert_eq!(
            notes,
            [
                "codec: 1019 instructions, expected 1000 (+1.90 %)",
                "lstm: 970 instructions, expected 1000 (-3.00 %); \
                 `cargo xtask instructions --accept` keeps the gain"
            ]
        );
        let error = compare(&expected, &counts([("codec", 1021), ("lstm", 1000)])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "codec: 1021 instructions, expected 1000 (+2.10 %); \
             `cargo xtask instructions --accept` accepts the increase"
        );
        assert!(compare(&expected, &counts([("session", 1)])).is_err());
    }

    #[test]
    fn accepted_counts_are_expected_from_then_on() {
        let accepted = counts([("codec", 3), ("instrument", 12)]);
        let text = replace("# Why.\ncodec 1\nlstm 2\n", &accepted);
        assert_eq!(text, "# Why.\ncodec      3\ninstrument 12\n");
        assert_eq!(parse(&text).unwrap(), accepted);
        assert!(parse("codec\n").is_err());
    }

    #[test]
    fn the_count_is_found_in_the_report_of_callgrind() {
        let report = "==7== Events    : Ir\n==7== Collected : 4711\n==7== \n";
        assert_eq!(collected(report), Some(4711));
        assert_eq!(collected("==7== Collected : 0\n"), None);
        assert_eq!(collected("==7== done\n"), None);
    }
}
