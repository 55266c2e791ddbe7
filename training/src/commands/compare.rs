//! `ondes-train compare`: compares models.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use indicatif::ProgressBar;
use ondes_engine::model::file;
use ondes_training::compare::candidate::candidates;
use ondes_training::compare::{ComparisonRow, chart, compare};

use crate::commands::sound_options::{SoundOptions, default_cache};
use ondes_training::value_parser;

/// Options of `compare`.
#[derive(Args)]
pub struct CompareArguments {
    /// Models: all instruments, or all captures. Their variants are compared, too.
    #[arg(required = true)]
    models: Vec<PathBuf>,
    #[command(flatten)]
    sound: SoundOptions,
    /// Block sizes, frames, separated by commas; the chart uses the first.
    #[arg(long, default_values_t = [64, 512, 2_048], value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=8_192))]
    blocks: Vec<u32>,
    /// Sound that each model plays at each block size, seconds; the fastest quarter of a second
    /// counts.
    #[arg(long, default_value_t = 10.0, value_parser = value_parser::positive)]
    seconds: f64,
    /// PNG file for a chart of quality against cost.
    #[arg(long, value_name = "FILE")]
    chart: Option<PathBuf>,
    /// Folder for analysed audio [default: a temporary folder].
    #[arg(long)]
    cache: Option<PathBuf>,
    /// Prints one JSON array.
    #[arg(long)]
    json: bool,
}

/// Compares models, prints a table and draws a chart.
pub fn run(options: &CompareArguments) -> anyhow::Result<()> {
    let cache = options.cache.clone().unwrap_or_else(default_cache);
    let held_out = options.sound.held_out(&cache)?;
    let mut all = Vec::new();
    for path in &options.models {
        let model = file::read(path)?;
        all.extend(candidates(path, &model).with_context(|| path.display().to_string())?);
    }
    // Visible on terminals only.
    let progress = ProgressBar::new_spinner();
    let report = |name: &str| {
        progress.set_message(format!("measuring {name}"));
        progress.tick();
    };
    let rows = compare(&all, &held_out, &options.blocks, options.seconds, report)?;
    progress.finish_and_clear();
    if let Some(path) = &options.chart {
        chart::draw(&rows).write_png(path)?;
    }
    if options.json {
        println!("{}", serde_json::to_string(&rows)?);
    } else {
        print!("{}", table(&rows));
    }
    Ok(())
}

/// Formats the rows as a table; a star marks the Pareto front.
fn table(rows: &[ComparisonRow]) -> String {
    let mut head = vec![
        "".to_owned(),
        "size".into(),
        "packed".into(),
        "weights".into(),
        "zeros".into(),
        "memory".into(),
    ];
    let speeds = rows.first().map_or(&[][..], |row| &row.speeds);
    head.extend(
        speeds
            .iter()
            .flat_map(|speed| [format!("ns at {}", speed.block), "x real time".into()]),
    );
    let measures = rows.first().map_or(&[][..], |row| &row.quality);
    head.extend(measures.iter().map(|measure| match measure.unit.as_str() {
        "" => measure.name.clone(),
        unit => format!("{}, {unit}", measure.name),
    }));
    let kilobytes = |bytes: u64| format!("{:.1} kB", bytes as f64 / 1e3);
    let lines = rows.iter().map(|row| {
        let cost = &row.cost;
        let mut line = vec![
            format!("{} {}", if row.on_front { "*" } else { " " }, row.name),
            kilobytes(cost.file_bytes),
            kilobytes(cost.packed_bytes),
            cost.weights.to_string(),
            format!("{:.0} %", 100.0 * cost.zeros),
            kilobytes(cost.memory_bytes as u64),
        ];
        let speeds = row.speeds.iter();
        line.extend(speeds.flat_map(|speed| {
            [
                format!("{:.1}", speed.ns_per_sample),
                format!("{:.0}", speed.realtime_factor),
            ]
        }));
        line.extend(
            row.quality
                .iter()
                .map(|measure| format!("{}", measure.value)),
        );
        line
    });
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(lines).collect();
    let width = |column: usize| {
        lines
            .iter()
            .filter_map(|line| line.get(column))
            .map(|cell| cell.chars().count())
            .max()
    };
    let widths: Vec<usize> = (0..lines[0].len())
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let mut text = String::new();
    for line in &lines {
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let gap = " ".repeat(width - cell.chars().count());
            text += &if column == 0 {
                format!("{cell}{gap}")
            } else {
                format!("  {gap}{cell}")
            };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}
