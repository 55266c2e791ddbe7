//! Runs the tests that read mutated files, for longer than in a normal run of the tests.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::builder::PossibleValuesParser;

use crate::process::{cargo, root};
use crate::setup::{Purpose, setup};

/// Test that reads mutated files.
struct FuzzTest {
    package: &'static str,
    binary: &'static str,
    /// Path of its source in the checkout.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the test below"))]
    source: &'static str,
    name: &'static str,
    formats: &'static [&'static str],
    needs_libtorch: bool,
}

const TESTS: [FuzzTest; 4] = [
    FuzzTest {
        package: "ondes-tests",
        binary: "rendering",
        source: "tests/tests/rendering/fuzz.rs",
        name: "fuzz::mutated_files_give_an_error_or_play",
        formats: &[
            "ondes",
            "header",
            "capture",
            "archive",
            "midi",
            "scale",
            "keyboard_map",
            "recording",
            "cabinet",
        ],
        needs_libtorch: false,
    },
    FuzzTest {
        package: "ondes",
        binary: "commands",
        source: "standalone/tests/commands/fuzz.rs",
        name: "fuzz::mutated_files_give_an_error_or_play",
        formats: &["preset", "session"],
        needs_libtorch: false,
    },
    FuzzTest {
        package: "ondes-plugin",
        binary: "plugin",
        source: "plugin/tests/plugin/fuzz.rs",
        name: "fuzz::mutated_states_are_refused_or_play",
        formats: &["instrument-state", "effect-state"],
        needs_libtorch: false,
    },
    FuzzTest {
        package: "ondes-training",
        binary: "commands",
        source: "training/tests/commands/fuzz.rs",
        name: "fuzz::mutated_files_give_an_error_or_are_used",
        formats: &["fit", "shard", "checkpoint"],
        needs_libtorch: true,
    },
];

/// Process ends, by crash or hang, after which a test is not started again.
const MAX_STARTS: usize = 100;

/// Extent of a run.
#[derive(clap::Args)]
pub struct Extent {
    /// Minutes to run, over all formats.
    #[arg(long, value_name = "N", conflicts_with = "inputs")]
    minutes: Option<f64>,
    /// Number of files, over all formats.
    #[arg(long, value_name = "N", default_value = "1000000")]
    inputs: u64,
    /// The only format to read.
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(TESTS.iter().flat_map(|test| test.formats)))]
    format: Option<String>,
    /// Seed of the mutations: another one gives other files.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Reads only this file, such as one that an earlier run has saved in `target/fuzz`.
    #[arg(long, value_name = "FILE", requires = "format")]
    file: Option<PathBuf>,
}

/// Reads mutated files of all formats, or of one. Faulty files are saved in `target/fuzz`.
///
/// # Errors
/// A file is faulty, or the tests cannot be built.
pub fn fuzz(extent: &Extent) -> anyhow::Result<()> {
    setup(Purpose::Building)?;
    let has_libtorch =
        std::env::var_os("LIBTORCH").is_some() || root().join("target/libtorch").exists();
    let is_wanted = |format: &&str| extent.format.as_ref().is_none_or(|wanted| wanted == format);
    let (mut chosen, mut left_out) = (Vec::new(), Vec::new());
    for test in &TESTS {
        let formats = test
            .formats
            .iter()
            .filter(|format| is_wanted(format))
            .count();
        let list = if test.needs_libtorch && !has_libtorch {
            &mut left_out
        } else {
            &mut chosen
        };
        list.extend((formats > 0).then_some((test, formats)));
    }
    for (test, _) in &left_out {
        println!(
            "fuzz: without {}, which need libtorch: cargo xtask setup --torch",
            test.formats.join(", ")
        );
    }
    let all: usize = chosen.iter().map(|(_, formats)| formats).sum();
    ensure!(all > 0, "nothing is left to read");
    std::fs::create_dir_all(root().join("target/fuzz"))
        .context("target/fuzz: cannot be created")?;
    let mut failed = Vec::new();
    for (test, formats) in chosen {
        if !test.run(extent, formats as f64 / all as f64)? {
            failed.push(test.package);
        }
    }
    ensure!(
        failed.is_empty(),
        "faulty files, listed above and saved in target/fuzz: {}",
        failed.join(", ")
    );
    Ok(())
}

impl FuzzTest {
    /// Runs a share of the whole; starts again where the process ended. Returns true if no file is
    /// faulty.
    fn run(&self, extent: &Extent, share: f64) -> anyhow::Result<bool> {
        let progress = root()
            .join("target/fuzz")
            .join(format!("{}.progress", self.package));
        // Of a run that was interrupted.
        drop(std::fs::remove_file(&progress));
        for _ in 0..MAX_STARTS {
            let status = self
                .command(extent, share, &progress)?
                .status()
                .context("cargo: cannot be started")?;
            if status.success() || !progress.exists() {
                return Ok(status.success());
            }
        }
        Ok(false)
    }

    fn command(
        &self,
        extent: &Extent,
        share: f64,
        progress: &Path,
    ) -> anyhow::Result<std::process::Command> {
        let mut test = cargo();
        test.args([
            "test",
            "--package",
            self.package,
            "--test",
            self.binary,
            "--",
            "--exact",
            self.name,
            "--nocapture",
        ]);
        test.env("ONDES_FUZZ_SEED", extent.seed.to_string())
            .env("ONDES_FUZZ_PROGRESS", progress);
        match extent.minutes {
            Some(minutes) => test.env("ONDES_FUZZ_MINUTES", (minutes * share).to_string()),
            None => test.env(
                "ONDES_FUZZ_INPUTS",
                ((extent.inputs as f64 * share).ceil() as u64).to_string(),
            ),
        };
        test.envs(
            extent
                .format
                .as_ref()
                .map(|format| ("ONDES_FUZZ_FORMAT", format)),
        );
        if let Some(file) = &extent.file {
            let file = file
                .canonicalize()
                .with_context(|| format!("{}: cannot be read", file.display()))?;
            test.env("ONDES_FUZZ_FILE", file);
        }
        Ok(test)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tests_and_formats_exist() {
        for test in &TESTS {
            let source = std::fs::read_to_string(root().join(test.source)).unwrap();
            let function = test.name.rsplit("::").next().unwrap();
            assert!(source.contains(&format!("fn {function}()")), "{function}");
            for format in test.formats {
                assert!(source.contains(&format!("{format:?}")), "{format}");
            }
        }
    }
}
