//! `ondes-train import-rave`, the former name of `ondes import` for RAVE exports.

use std::path::PathBuf;

use clap::Args;
use ondes_engine::model::file;
use ondes_engine::model::import::rave;

/// Options of `import-rave`.
#[derive(Args)]
pub struct ImportRaveArguments {
    /// TorchScript export of RAVE v1, v2, v3 or BRAVE.
    export: PathBuf,
    /// Model file to write.
    #[arg(long, short)]
    out: PathBuf,
    /// Name on the model's card [default: that of the export's file].
    #[arg(long)]
    name: Option<String>,
}

/// Converts an export and prints a summary.
pub fn run(options: &ImportRaveArguments) -> anyhow::Result<()> {
    let import = rave::import(&options.export, options.name.as_deref())?;
    import
        .notes
        .iter()
        .for_each(|note| eprintln!("ondes-train: {}: {note}", options.export.display()));
    file::write(&import.model, &options.out)?;
    println!("{}\n{}: written", import.summary(), options.out.display());
    Ok(())
}
