//! What becomes of a model that was made smaller: its card, its measure, and the file that it goes to.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;
use ondes_engine::model::{Model, file};
use ondes_training::tune::Course;
use ondes_training::variants;

/// Where a smaller model goes.
#[derive(Args)]
pub struct Keeping {
    /// Model file to write.
    #[arg(long)]
    out: PathBuf,
    /// Name to show; by default the model's own, and how it was made smaller.
    #[arg(long)]
    name: Option<String>,
    /// Keeps the smaller one in the file that is written beside the whole, as a size of that name that players can switch to.
    #[arg(long, value_name = "SIZE")]
    keep_in: Option<String>,
}

impl Keeping {
    /// The file that is written.
    pub fn out(&self) -> &Path {
        &self.out
    }

    /// Makes sure that what is asked for can be done, before hours go by.
    pub fn check(&self, whole: &Model) -> anyhow::Result<()> {
        ensure!(
            self.keep_in.is_none() || whole.header().base_method_name().is_some(),
            "--keep-in is for captures and instruments: players know no sizes of others"
        );
        match self.out.parent() {
            Some(folder) => {
                std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot be made", folder.display()))
            }
            None => Ok(()),
        }
    }
}

/// Says how good the smaller one is beside the whole, and writes it; sizes that the whole's file holds already stay there.
pub fn finish(smaller: &Model, whole: &Model, how: &str, keeping: &Keeping, course: &Course<'_>) -> anyhow::Result<()> {
    let (before, after) = (course.measure(whole)?, course.measure(smaller)?);
    println!("{:32} {:>10} {:>10}", "", "whole", "smaller");
    for (before, after) in before.iter().zip(&after) {
        println!("{:32} {:>10.5} {:>10.5} {}", after.name, before.value, after.value, after.unit);
    }
    let weights = variants::alone(whole)?.parameters();
    println!("{:32} {:>10} {:>10}", "weights", weights, smaller.parameters());
    let mut header = smaller.header().clone();
    let card = &mut header.card;
    card.name = keeping.name.clone().unwrap_or_else(|| format!("{}, {how}", card.name));
    card.quality = after;
    let mut model = Model::new(header, smaller.weights().clone())?;
    if let Some(size) = &keeping.keep_in {
        model = variants::put_in(whole, &model, size)?;
    }
    file::write(&model, &keeping.out)?;
    println!("{}: written", keeping.out.display());
    Ok(())
}
