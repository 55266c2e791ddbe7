//! `ondes-train prune`: removes channels or weights of a model.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use ondes_engine::model::{Model, file};
use ondes_training::compression::prune::sparse::zero_share;
use ondes_training::compression::prune::{PruneOptions, Schedule, prune};
use ondes_training::compression::variants;
use ondes_training::trainer::interrupt;

use crate::commands::output_options::{OutputOptions, write_report};
use crate::commands::sound_options::{FineTuneOptions, SoundOptions};
use ondes_training::value_parser;

/// Options of `prune`.
#[derive(Args)]
pub struct PruneArguments {
    /// Instrument, capture, codec or generator.
    model: PathBuf,
    /// Ratio to remove, above 0 and below 1: of each matrix's weights, or of each layer's channels.
    #[arg(long, value_parser = value_parser::ratio)]
    ratio: f64,
    /// Removes whole channels, which makes the model faster. Single weights only make the file
    /// compress better.
    #[arg(long)]
    structured: bool,
    /// Growth of the ratio from round to round: all at `once`, `linear`, or `cubic` with large
    /// steps first.
    #[arg(long, default_value = "cubic", value_parser = Schedule::NAMES)]
    schedule: String,
    /// Rounds of pruning, with training after each.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=100))]
    rounds: u8,
    /// Weight of the feature-matching loss against the original model, as in `distill`; 0 for none.
    #[arg(long, default_value_t = 0.0, value_parser = value_parser::non_negative)]
    features: f64,
    #[command(flatten)]
    sound: SoundOptions,
    #[command(flatten)]
    output: OutputOptions,
    #[command(flatten)]
    training: FineTuneOptions,
}

/// Prunes a model, measures it and writes it.
pub fn run(options: &PruneArguments) -> anyhow::Result<()> {
    let named = || options.model.display().to_string();
    let model = file::read(&options.model)?;
    let pair = options.sound.pair(&model)?;
    options.output.check(&model)?;
    let out = options.output.out();
    let job = options
        .training
        .job(&model, &options.sound, pair.as_ref(), out, false)
        .with_context(named)?;
    let base = variants::without_variants(&model).with_context(named)?;
    let schedule = Schedule::named(&options.schedule).context("an unknown schedule")?;
    let prune_options = PruneOptions {
        ratio: options.ratio,
        structured: options.structured,
        schedule,
        rounds: usize::from(options.rounds),
        features: options.features,
    };
    interrupt::install()?;
    let mut reached = options.ratio;
    let progress = |ratio: f64, pruned: &Model| {
        reached = ratio;
        print_progress(&base, ratio, pruned);
    };
    let pruned =
        prune(&base, &prune_options, &job, progress).and_then(|pruned| job.completed(pruned));
    let pruned = pruned.with_context(named)?;
    if !options.structured {
        println!(
            "{:.0} % of the weights are zero: the file compresses better, but the model is no faster",
            100.0 * zero_share(&pruned)
        );
    }
    let suffix = format!("pruned {:.0} %", 100.0 * reached);
    write_report(&pruned, &model, &suffix, &options.output, &job)
}

fn print_progress(base: &Model, ratio: f64, pruned: &Model) {
    println!(
        "{:.0} % pruned: {} of {} weights remain",
        100.0 * ratio,
        ((1.0 - zero_share(pruned)) * pruned.parameters() as f64).round(),
        base.parameters()
    );
}
