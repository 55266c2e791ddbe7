//! Options of `cargo xtask fuzz`, passed to the tests in environment variables.

use std::path::PathBuf;
use std::str::FromStr;

/// Extent of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// `ONDES_FUZZ_INPUTS`: number of files, over all formats of a test.
    pub inputs: Option<u64>,
    /// `ONDES_FUZZ_MINUTES`: duration of a test, instead of a number of files.
    pub minutes: Option<f64>,
    /// `ONDES_FUZZ_SEED`: another seed gives other files.
    pub seed: u64,
    /// `ONDES_FUZZ_FORMAT`: the only format to read.
    pub format: Option<String>,
    /// `ONDES_FUZZ_FILE`: the only file to read.
    pub file: Option<PathBuf>,
    /// `ONDES_FUZZ_PROGRESS`: file with the position, so that a run can go on after the process has
    /// ended.
    pub progress: Option<PathBuf>,
}

impl Options {
    /// Reads the environment variables; by default the run is short and always the same.
    ///
    /// # Panics
    /// If a number cannot be read.
    #[must_use]
    pub fn from_environment() -> Self {
        Self {
            inputs: variable("INPUTS"),
            minutes: variable("MINUTES"),
            seed: variable("SEED").unwrap_or_default(),
            format: variable("FORMAT"),
            file: variable("FILE"),
            progress: variable("PROGRESS"),
        }
    }
}

fn variable<T: FromStr>(name: &str) -> Option<T> {
    let name = format!("ONDES_FUZZ_{name}");
    let value = std::env::var(&name).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name}={value}: not a value of this variable")),
    )
}
