//! `ondes-train report`.

use std::path::PathBuf;

use clap::Args;
use ondes_training::report::{Run, draw, table};

/// Options of `report`.
#[derive(Args)]
pub struct ReportArguments {
    /// Logs: `metrics.jsonl` files, or folders that contain one.
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// PNG file to draw.
    #[arg(long, value_name = "PNG")]
    chart: Option<PathBuf>,
}

/// Prints a table of runs, and draws them.
pub fn run(options: &ReportArguments) -> anyhow::Result<()> {
    let runs = options
        .runs
        .iter()
        .map(|path| Run::read(path))
        .collect::<Result<Vec<_>, _>>()?;
    println!("{}", table(&runs));
    if let Some(path) = &options.chart {
        draw(&runs).write_png(path)?;
        println!("{}: written", path.display());
    }
    Ok(())
}
