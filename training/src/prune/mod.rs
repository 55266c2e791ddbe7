//! Smaller by leaving out: what does least goes, and what stays learns to do without.
//!
//! *Structured* pruning takes whole channels, so that layers get narrower and the model faster: [`channels`] tells which hang
//! together, [`activity`] what they do while the model plays, `readers` what they are worth to those who read them, and
//! [`narrow`](narrow()) cuts them out. Unstructured pruning ([`sparse`]) makes single weights zero, which costs less quality,
//! and nothing is faster for it. Either is done in rounds, with training after each ([`crate::tune`]): a [`Schedule`] says how
//! much has gone after which.

pub mod activity;
pub mod channels;
mod narrow;
mod readers;
pub mod sparse;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::ensure;
use ondes_engine::model::Model;

pub use activity::Activity;
pub use channels::Channels;
pub use narrow::narrow;
pub use sparse::sparsen;

use crate::tune::{Course, Manner};

/// How what has gone grows from round to round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// All at once.
    Once,
    /// The same again in each round.
    Linear,
    /// Much at first, while there is much to spare, then less and less (Zhu & Gupta, "To prune, or not to prune", 2017).
    Cubic,
}

impl Schedule {
    /// The names that [`Schedule::named`] knows.
    pub const NAMES: [&'static str; 3] = ["once", "linear", "cubic"];

    /// The schedule of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Once, Self::Linear, Self::Cubic];
        Self::NAMES.iter().position(|known| *known == name).map(|place| all[place])
    }

    /// The share that has gone after each of so many rounds; `ratio` after the last.
    #[must_use]
    pub fn ratios(self, ratio: f64, rounds: usize) -> Vec<f64> {
        let part = |round: usize| round as f64 / rounds as f64;
        match self {
            Self::Once => vec![ratio],
            Self::Linear => (1..=rounds).map(|round| ratio * part(round)).collect(),
            Self::Cubic => (1..=rounds).map(|round| ratio * (1.0 - (1.0 - part(round)).powi(3))).collect(),
        }
    }
}

/// How to prune.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Share that goes, above 0 and below 1: of the channels of each layer, or of the weights of each matrix.
    pub ratio: f64,
    /// Whole channels.
    pub structured: bool,
    /// How fast.
    pub schedule: Schedule,
    /// In how many rounds.
    pub rounds: usize,
    /// How much what goes on inside of the whole model counts while what is left learns; 0 for not at all.
    pub features: f64,
}

/// Prunes a model round by round, each time with some training; `tell` hears what is left before each.
///
/// # Errors
/// When the data cannot be used, training goes astray, or nothing can go.
pub fn prune(
    model: &Model,
    options: &Options,
    course: &Course<'_>,
    mut tell: impl FnMut(f64, &Model),
) -> anyhow::Result<Model> {
    let mut pruned = model.clone();
    for ratio in options.schedule.ratios(options.ratio, options.rounds) {
        pruned = if options.structured {
            thin(&pruned, model, ratio, &course.watch(&pruned)?)?
        } else {
            sparsen(&pruned, ratio)?
        };
        tell(ratio, &pruned);
        let teacher = (options.features > 0.0).then_some((model, options.features));
        pruned = course.tune(&pruned, Manner { keep_zeros: !options.structured, teacher, ..Manner::default() })?;
    }
    Ok(pruned)
}

/// Takes channels out of a model until of each family so many have gone as a share of those that it had in `whole`.
///
/// # Errors
/// When there is nothing that can go.
pub fn thin(model: &Model, whole: &Model, ratio: f64, activity: &Activity) -> anyhow::Result<Model> {
    let before: BTreeMap<_, _> = Channels::of(whole.header())?
        .families()
        .into_iter()
        .map(|family| (family.values, family.classes.len()))
        .collect();
    ensure!(!before.is_empty(), "the model has no channels that could go: all belong to its inputs and outputs");
    let channels = Channels::of(model.header())?;
    let worth = readers::worth(model, &channels, activity);
    let mut gone = BTreeSet::new();
    for family in channels.families() {
        let all = before.get(&family.values).copied().unwrap_or(family.classes.len());
        let stay = (((1.0 - ratio) * all as f64).round() as usize).clamp(1, family.classes.len());
        let mut classes = family.classes;
        classes.sort_by(|a, b| worth[*b].total_cmp(&worth[*a]));
        gone.extend(classes.into_iter().skip(stay));
    }
    let weights = readers::make_up(model, &channels, activity, &gone);
    Ok(narrow(&Model::new(model.header().clone(), weights)?, &channels, &gone)?)
}
