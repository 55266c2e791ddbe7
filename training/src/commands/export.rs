//! `ondes-train export`.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use ondes_engine::model::file;
use ondes_training::tasks::capture::rest::silent_at_rest;
use ondes_training::trainer::Checkpoint;

/// Options of `export`.
#[derive(Args)]
pub struct ExportArguments {
    /// Checkpoint of an interrupted or running training.
    checkpoint: PathBuf,
    /// Model file to write [default: the checkpoint with the ending .ondes].
    #[arg(long)]
    out: Option<PathBuf>,
    /// Writes the model of the last step instead of the best.
    #[arg(long)]
    last: bool,
}

/// Writes the best or the last model of a checkpoint.
pub fn run(options: &ExportArguments) -> anyhow::Result<()> {
    let path = &options.checkpoint;
    let checkpoint = Checkpoint::read(path).with_context(|| path.display().to_string())?;
    let model = if options.last {
        checkpoint.last_model()
    } else {
        checkpoint.best_model()
    };
    let model = model.and_then(|model| Ok(silent_at_rest(&model)?));
    let model = model.with_context(|| path.display().to_string())?;
    let default = || path.with_extension("ondes");
    let out = options.out.clone().unwrap_or_else(default);
    file::write(&model, &out)?;
    match checkpoint.progress.best.filter(|_| !options.last) {
        Some((loss, step)) => println!(
            "{}: written, step {step}, validation loss {loss:.5}",
            out.display()
        ),
        None => println!(
            "{}: written, step {}",
            out.display(),
            checkpoint.progress.step
        ),
    }
    Ok(())
}
