//! Output of commands that make a model smaller.

use std::path::{Path, PathBuf};

use anyhow::ensure;
use clap::Args;
use ondes_engine::model::Model;
use ondes_training::compression::fine_tune::FineTuneJob;
use ondes_training::compression::variants;

use crate::commands::write_model::{create_parent, measured, write};

/// Options for the output file.
#[derive(Args)]
pub struct OutputOptions {
    /// Model file to write.
    #[arg(long)]
    out: PathBuf,
    /// Name on the model's card [default: the model's name and how it was made smaller].
    #[arg(long)]
    name: Option<String>,
    /// Writes the original model with the smaller one as a variant of this name, which players can
    /// select.
    #[arg(long, value_name = "NAME")]
    add_variant: Option<String>,
}

impl OutputOptions {
    /// Returns the file to write.
    pub fn out(&self) -> &Path {
        &self.out
    }

    /// Checks the options before training and creates the output folder.
    pub fn check(&self, model: &Model) -> anyhow::Result<()> {
        ensure!(
            self.add_variant.is_none() || model.header().base_method_name().is_some(),
            "--add-variant needs a capture or an instrument; other models have no variants"
        );
        create_parent(&self.out)
    }
}

/// Prints the quality of both models and writes the smaller one, or the original with the smaller
/// one as a variant.
pub fn write_report(
    smaller: &Model,
    original: &Model,
    how: &str,
    output: &OutputOptions,
    job: &FineTuneJob<'_>,
) -> anyhow::Result<()> {
    let (before, after) = measured(smaller, &output.out, || {
        Ok((job.measure(original)?, job.measure(smaller)?))
    })?;
    println!("{:32} {:>10} {:>10}", "", "original", "smaller");
    for (before, after) in before.iter().zip(&after) {
        println!(
            "{:32} {:>10.5} {:>10.5} {}",
            after.name, before.value, after.value, after.unit
        );
    }
    let weights = variants::without_variants(original)?.parameters();
    println!(
        "{:32} {:>10} {:>10}",
        "weights",
        weights,
        smaller.parameters()
    );
    let mut header = smaller.header().clone();
    let card = &mut header.card;
    card.name = output
        .name
        .clone()
        .unwrap_or_else(|| format!("{}, {how}", card.name));
    card.quality = after;
    let mut model = smaller.with_header(header)?;
    if let Some(size) = &output.add_variant {
        model = variants::insert(original, &model, size)?;
    }
    write(&model, &output.out)
}
