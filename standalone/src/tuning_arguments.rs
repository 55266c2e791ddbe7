//! Options for the tuning of an instrument.

use std::path::PathBuf;

use clap::Args;
use ondes_player::tuning::TuningFiles;

/// Files of Scala.
#[derive(Args)]
#[command(next_help_heading = "Tuning")]
pub struct TuningArguments {
    /// Tune the keys by a scale of Scala (.scl) [default: equal temperament]
    #[arg(long, value_name = "FILE.scl", conflicts_with = "input")]
    tuning: Option<PathBuf>,
    /// Keyboard map of the scale (.kbm) [default: middle C is its first note, at 261.63 Hz]
    #[arg(long, value_name = "FILE.kbm", requires = "tuning")]
    keyboard_map: Option<PathBuf>,
}

impl TuningArguments {
    /// Returns the files, if any are given.
    pub fn files(&self) -> Option<TuningFiles> {
        let scale = self.tuning.clone()?;
        Some(TuningFiles {
            scale,
            keyboard_map: self.keyboard_map.clone(),
        })
    }
}
