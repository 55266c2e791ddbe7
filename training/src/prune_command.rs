//! `ondes-train prune`: a smaller model by leaving out.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use ondes_engine::model::{Model, file};
use ondes_training::prune::sparse::zeros;
use ondes_training::prune::{Options, Schedule, prune};
use ondes_training::variants;

use crate::number;
use crate::smaller::{Keeping, finish};
use crate::sound_options::{Learning, Sound};

/// Options of `prune`.
#[derive(Args)]
pub struct Prune {
    /// The instrument or capture.
    model: PathBuf,
    /// Share that goes, above 0 and below 1: of the weights of each matrix, or of the channels of each layer.
    #[arg(long, value_parser = number::ratio)]
    ratio: f64,
    /// Takes whole channels, which makes the model faster; single weights make it smaller only when it is packed.
    #[arg(long)]
    structured: bool,
    /// How the share grows from round to round: all at `once`, `linear`, or `cubic`, much at first and then less.
    #[arg(long, default_value = "cubic", value_parser = Schedule::NAMES)]
    schedule: String,
    /// Rounds of pruning, with training after each of them.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=100))]
    rounds: u8,
    /// How much what goes on inside of the whole model counts while what is left learns, as in `distill`; 0 for not at all.
    #[arg(long, default_value_t = 0.0, value_parser = number::not_negative)]
    features: f64,
    #[command(flatten)]
    sound: Sound,
    #[command(flatten)]
    keeping: Keeping,
    #[command(flatten)]
    learning: Learning,
}

/// Prunes, measures and writes.
pub fn run(options: &Prune) -> anyhow::Result<()> {
    let named = || options.model.display().to_string();
    let model = file::read(&options.model)?;
    let pair = options.sound.pair(&model)?;
    options.keeping.check(&model)?;
    let out = options.keeping.out();
    let course = options.learning.course(&model, &options.sound, pair.as_ref(), out, false).with_context(named)?;
    let whole = variants::alone(&model).with_context(named)?;
    let schedule = Schedule::named(&options.schedule).context("an unknown schedule")?;
    let pruning = Options {
        ratio: options.ratio,
        structured: options.structured,
        schedule,
        rounds: usize::from(options.rounds),
        features: options.features,
    };
    let pruned = prune(&whole, &pruning, &course, |ratio, left| told(&whole, ratio, left)).with_context(named)?;
    if !options.structured {
        println!("{:.0} % of the weights are zero: the file packs better; it plays no faster", 100.0 * zeros(&pruned));
    }
    let suffix = format!("pruned {:.0} %", 100.0 * options.ratio);
    finish(&pruned, &model, &suffix, &options.keeping, &course)
}

fn told(whole: &Model, ratio: f64, left: &Model) {
    println!(
        "{:.0} % pruned: {} of {} weights are left",
        100.0 * ratio,
        ((1.0 - zeros(left)) * left.parameters() as f64).round(),
        whole.parameters()
    );
}
