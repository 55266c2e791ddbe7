//! `ondes-train level`.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use ondes_engine::model::file;
use ondes_training::level::levelled;
use ondes_training::value_parser;

use super::write_model::write;

/// Options of `level`.
#[derive(Args)]
pub struct LevelArguments {
    /// Instrument or generator.
    model: PathBuf,
    /// Loudness, LUFS: of notes of velocity 100 over the range of an instrument, or of the first minute
    /// of a generator.
    #[arg(
        long,
        value_name = "LUFS",
        default_value_t = -25.0,
        allow_negative_numbers = true,
        value_parser = value_parser::lufs
    )]
    loudness: f64,
    /// Model file to write [default: MODEL itself]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Brings a model to a loudness.
pub fn run(options: &LevelArguments) -> anyhow::Result<()> {
    let model = file::read(&options.model)?;
    let model =
        levelled(&model, options.loudness).with_context(|| options.model.display().to_string())?;
    write(&model, options.out.as_ref().unwrap_or(&options.model))
}
