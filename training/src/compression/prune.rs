//! Pruning: removes the least important channels or weights and trains the rest.
//!
//! *Structured* pruning removes whole channels, so that the model becomes faster: [`channels`]
//! finds those that must be removed together, [`activity`] records their statistics while the model
//! plays, `importance` rates them by the matrices that read them (`readers`), and
//! [`narrow`](narrow()) removes them. Unstructured pruning ([`sparse`]) sets single weights to
//! zero, which costs less quality but is no faster. Both work in rounds with training after each
//! ([`crate::compression::fine_tune`]); a [`Schedule`] gives the ratio of each round.

pub mod activity;
pub mod channels;
mod importance;
mod narrow;
mod readers;
pub mod sparse;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::ensure;
use ondes_engine::model::{Kind, Model};

pub use activity::Activity;
pub use channels::{ChannelClasses, Family};
pub use narrow::narrow;
pub use sparse::prune_weights;

use crate::compression::fine_tune::{FineTuneJob, FineTuneMode};
use crate::tasks::generator::names::PRIOR;
use crate::trainer::interrupt;

/// Growth of the pruned ratio from round to round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Everything in one round.
    Once,
    /// Equal steps.
    Linear,
    /// Large steps first (Zhu & Gupta, "To prune, or not to prune", 2017).
    Cubic,
}

impl Schedule {
    /// Names for [`Schedule::named`].
    pub const NAMES: [&'static str; 3] = ["once", "linear", "cubic"];

    /// Returns the schedule of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Once, Self::Linear, Self::Cubic];
        Self::NAMES
            .iter()
            .position(|known| *known == name)
            .map(|index| all[index])
    }

    /// Returns the ratio after each round; the last is `ratio`.
    #[must_use]
    pub fn ratios(self, ratio: f64, rounds: usize) -> Vec<f64> {
        let progress = |round: usize| round as f64 / rounds as f64;
        match self {
            Self::Once => vec![ratio],
            Self::Linear => (1..=rounds).map(|round| ratio * progress(round)).collect(),
            Self::Cubic => (1..=rounds)
                .map(|round| ratio * (1.0 - (1.0 - progress(round)).powi(3)))
                .collect(),
        }
    }
}

/// Options of [`prune`].
#[derive(Clone, Copy, Debug)]
pub struct PruneOptions {
    /// Ratio to remove, above 0 and below 1: of each layer's channels, or of each matrix's weights.
    pub ratio: f64,
    /// Removes whole channels.
    pub structured: bool,
    /// Growth of the ratio.
    pub schedule: Schedule,
    /// Number of rounds.
    pub rounds: usize,
    /// Weight of the feature-matching loss against the original model; 0 for none.
    pub features: f64,
}

/// Prunes a model in rounds, with training after each, up to an interruption; `progress` is called
/// with the ratio and the pruned model before training.
///
/// # Errors
/// Returns an error if the data cannot be used, training diverges, or nothing can be removed.
pub fn prune(
    model: &Model,
    options: &PruneOptions,
    job: &FineTuneJob<'_>,
    mut progress: impl FnMut(f64, &Model),
) -> anyhow::Result<Model> {
    let mut pruned = model.clone();
    for ratio in options.schedule.ratios(options.ratio, options.rounds) {
        pruned = if options.structured {
            prune_channels(&pruned, model, ratio, &observe(&pruned, job)?)?
        } else {
            prune_weights(&pruned, ratio)?
        };
        progress(ratio, &pruned);
        let teacher = (options.features > 0.0).then_some((model, options.features));
        pruned = job.run(
            &pruned,
            FineTuneMode {
                keep_zeros: !options.structured,
                teacher,
                ..FineTuneMode::default()
            },
        )?;
        if interrupt::requested() {
            break;
        }
    }
    Ok(pruned)
}

/// Removes channels until `ratio` of each family of the model `original` is removed.
///
/// # Errors
/// Returns an error if no channel can be removed.
pub fn prune_channels(
    model: &Model,
    original: &Model,
    ratio: f64,
    activity: &Activity,
) -> anyhow::Result<Model> {
    let header = model.header();
    // Of a generator, the prior is trained; its codec stays as it is.
    let trained = |family: &Family| {
        let of_prior = |(method, _): &(usize, usize)| header.methods[*method].name == PRIOR;
        header.kind != Kind::Generator || family.values.iter().all(of_prior)
    };
    let before: BTreeMap<_, _> = ChannelClasses::new(original.header())?
        .families()
        .into_iter()
        .filter(trained)
        .map(|family| (family.values, family.classes.len()))
        .collect();
    ensure!(
        !before.is_empty(),
        "the model has no removable channels: all belong to its inputs and outputs"
    );
    let channels = ChannelClasses::new(model.header())?;
    let importance = importance::importance(model, &channels, activity);
    let mut removed = BTreeSet::new();
    for family in channels.families().into_iter().filter(trained) {
        let all = before
            .get(&family.values)
            .copied()
            .unwrap_or(family.classes.len());
        let keep = (((1.0 - ratio) * all as f64).round() as usize).clamp(1, family.classes.len());
        let mut classes = family.classes;
        classes.sort_by(|a, b| importance[*b].total_cmp(&importance[*a]));
        removed.extend(classes.into_iter().skip(keep));
    }
    let weights = importance::compensate_biases(model, &channels, activity, &removed);
    Ok(narrow(
        &Model::new(model.header().clone(), weights)?,
        &channels,
        &removed,
    )?)
}

/// Records the activity of a model's channels while it plays the training sound of a job.
fn observe(model: &Model, job: &FineTuneJob<'_>) -> anyhow::Result<Activity> {
    let mut activity = Activity::new(model, job.device()?)?;
    job.play_training_sound(model, |method, inputs, warm_up| {
        activity.observe(method, inputs, warm_up)
    })?;
    Ok(activity)
}
