//! `ondes-train bench`: times steps of synthetic networks.

use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use ondes_training::bench::{NETWORKS, network_seconds, optimizer_table};
use ondes_training::optimizer::OptimizerConfig;

use ondes_training::value_parser;

/// Options of `bench`.
#[derive(Args)]
pub struct BenchArguments {
    /// Sizes of the networks, millions of weights; 100 needs about 6 GB of memory.
    #[arg(long, value_delimiter = ',', default_value = "1,10", value_parser = size)]
    weights: Vec<usize>,
    /// Rows per step.
    #[arg(long, value_delimiter = ',', default_value = "32,128", value_parser = clap::value_parser!(u16).range(1..=4096))]
    batch: Vec<u16>,
    /// Optimisers [default: all].
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(OptimizerConfig::NAMES))]
    optimizer: Vec<String>,
    /// Times a step of this network with AdamW instead, and prints milliseconds.
    #[arg(long, conflicts_with_all = ["weights", "batch", "optimizer"], value_parser = PossibleValuesParser::new(NETWORKS))]
    network: Option<String>,
    /// Threads of libtorch; 0 for those of training.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(i32).range(0..=256))]
    threads: i32,
    /// Time per cell of the table.
    #[arg(long, default_value_t = 2.0, value_parser = value_parser::positive)]
    seconds: f64,
}

/// Parses millions of weights.
fn size(text: &str) -> Result<usize, String> {
    let range = "must be 0.001 to 400 million weights";
    value_parser::in_range(text, |millions| (0.001..=400.0).contains(&millions), range)
        .map(|millions| (1e6 * millions) as usize)
}

/// Prints the table, or the duration of one network's step.
pub fn run(options: &BenchArguments) -> anyhow::Result<()> {
    let time = Duration::try_from_secs_f64(options.seconds)?;
    if let Some(name) = &options.network {
        println!("{:.3}", 1e3 * network_seconds(name, options.threads, time)?);
        return Ok(());
    }
    let batches: Vec<usize> = options.batch.iter().copied().map(usize::from).collect();
    let all = OptimizerConfig::NAMES.map(str::to_owned);
    let optimizers = if options.optimizer.is_empty() {
        &all[..]
    } else {
        &options.optimizer[..]
    };
    println!("Rows a second, in brackets steps:\n");
    print!(
        "{}",
        optimizer_table(
            (&options.weights, &batches),
            optimizers,
            options.threads,
            time
        )?
    );
    Ok(())
}
