//! `ondes-train import-rave`.

use std::path::PathBuf;

use clap::Args;
use ondes_engine::model::file;
use ondes_training::import_rave::{self, Imported};

/// What to import.
#[derive(Args)]
pub struct ImportRave {
    /// The export: TorchScript of RAVE v1, v2 or v3, or of BRAVE, streaming or not.
    export: PathBuf,
    /// The model file to write.
    #[arg(long, short)]
    out: PathBuf,
    /// Name for its card; by default that of the export's file.
    #[arg(long)]
    name: Option<String>,
}

/// Imports an export, and says what it is.
pub fn import(options: &ImportRave) -> anyhow::Result<()> {
    let stem = || options.export.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name = options.name.clone().unwrap_or_else(stem);
    let Imported { model, shape, notes } = import_rave::import(&options.export, &name)?;
    notes.iter().for_each(|note| eprintln!("ondes-train: {}: {note}", options.export.display()));
    file::write(&model, &options.out)?;
    let late: usize = model.header().methods[..2].iter().map(|method| method.latency_samples()).sum();
    let late_ms = late as f64 * 1000.0 / f64::from(model.header().sample_rate);
    println!("{shape}");
    println!(
        "{:.1} million weights, {late} samples ({late_ms:.0} ms) behind what goes in",
        model.parameters() as f64 / 1e6
    );
    println!("{}: written", options.out.display());
    Ok(())
}
