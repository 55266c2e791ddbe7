//! Training goes on from a model that there is: after a cut, or beside a teacher.

use anyhow::Context;
use ondes_engine::model::{Measure, Model};
use tch::Tensor;

use crate::capture;
use crate::capture::measure::compare;
use crate::capture::network::Network;
use crate::capture::pair::Pair;
use crate::capture::windows::Split;
use crate::config::Config;
use crate::dataset::{Dataset, Part, hear};
use crate::distill::{Guide, Lesson};
use crate::evaluate::{evaluate, feature_rate};
use crate::prune::Activity;
use crate::quantise::aware::Grids;
use crate::trainer::{Trainer, device};

/// Batches in which the channels of a model are watched, and crops or windows of each.
const WATCHED_BATCHES: u64 = 8;
const WATCHED_ROWS: usize = 4;
/// Length of a window in which a capture is watched, samples.
const WATCHED_WINDOW: usize = 8_192;
/// Share of an instrument's crop that only warms up.
const WATCHED_LEAD: f64 = 0.15;

/// From what, how long and how fast a model goes on learning.
pub enum Course<'a> {
    /// An instrument, from recordings; of the configuration's network only rate and hop matter.
    Instrument(Box<Config>),
    /// A capture, from a pair; the options' network is the one that is given here, whatever they say.
    Capture(Box<capture::trainer::Options>, &'a Pair),
}

/// What is special about a lesson.
#[derive(Clone, Copy, Default)]
pub struct Manner<'a> {
    /// What is zero in a matrix stays zero.
    pub keep_zeros: bool,
    /// Whose features count, and how much.
    pub teacher: Option<(&'a Model, f64)>,
    /// On the grids of which compressed model weights are to end.
    pub stored_as: Option<&'a Model>,
}

impl Course<'_> {
    /// Trains a model on; what did best on the validation part is kept.
    ///
    /// # Errors
    /// When the data cannot be used, or training goes astray.
    pub fn tune(&self, model: &Model, manner: Manner<'_>) -> anyhow::Result<Model> {
        match self {
            Self::Instrument(config) => {
                let mut trainer = Trainer::of(model.clone(), Config::clone(config))?;
                if let Some((teacher, share)) = manner.teacher {
                    trainer.follow(Lesson::new(teacher, model, share, device(&config.training.device)?)?)?;
                }
                if manner.keep_zeros {
                    trainer.keep_zeros();
                }
                if let Some(stored) = manner.stored_as {
                    trainer.round_to(Grids::of(stored, device(&config.training.device)?));
                }
                trainer.run()?;
                trainer.model()
            }
            Self::Capture(options, pair) => {
                let network = Network::Given(Box::new(model.clone()));
                let options = capture::trainer::Options { network, ..capture::trainer::Options::clone(options) };
                let device = device(&options.device)?;
                let checkpoint = options.checkpoint.clone();
                let mut trainer = capture::trainer::Trainer::new(options, pair, None)?;
                if let Some((teacher, share)) = manner.teacher
                    && let Some(guide) = Guide::new(teacher, model, "forward", share, device)?
                {
                    trainer.follow(guide)?;
                }
                if manner.keep_zeros {
                    trainer.keep_zeros();
                }
                if let Some(stored) = manner.stored_as {
                    trainer.round_to(Grids::of(stored, device));
                }
                trainer.run()?;
                std::fs::remove_file(&checkpoint)
                    .with_context(|| format!("{}: cannot be removed", checkpoint.display()))?;
                trainer.model()
            }
        }
    }

    /// What a model is measured by, the most telling first, on sound that it does not learn from: an instrument on the
    /// configuration's held-out folder or, without one, on the validation part; a capture on the end of the pair.
    ///
    /// # Errors
    /// When it cannot be measured on that.
    pub fn measure(&self, model: &Model) -> anyhow::Result<Vec<Measure>> {
        match self {
            Self::Instrument(config) => {
                let evaluation = match &config.held_out {
                    Some(folder) => {
                        evaluate(model, &hear(folder, &config.work.join("features"), feature_rate(model)?)?)?
                    }
                    None => evaluate(model, Dataset::open(config)?.files(Part::Validation))?,
                };
                Ok(evaluation.measures())
            }
            Self::Capture(_, pair) => Ok(vec![compare(model, pair)?.held_out]),
        }
    }

    /// Watches the channels of a model while it plays what it learns from.
    ///
    /// # Errors
    /// When the data cannot be used.
    pub fn watch(&self, model: &Model) -> anyhow::Result<Activity> {
        let header = model.header();
        match self {
            Self::Instrument(config) => {
                let device = device(&config.training.device)?;
                let mut activity = Activity::new(model, device)?;
                let dataset = Dataset::open(config)?;
                let synth = header.methods.iter().position(|method| method.name == "synth");
                let synth = synth.context("the model has no method \"synth\"")?;
                for step in 0..WATCHED_BATCHES {
                    let batch = dataset.batch(Part::Training, step, WATCHED_ROWS, device);
                    activity.hear(synth, &batch.controls(), WATCHED_LEAD);
                }
                Ok(activity)
            }
            Self::Capture(options, pair) => {
                let device = device(&options.device)?;
                let mut activity = Activity::new(model, device)?;
                let forward = model.method("forward")?;
                let training = &pair.dry[..Split::new(pair.dry.len(), f64::from(pair.rate)).validation];
                for (index, method) in header.methods.iter().enumerate() {
                    // Variants of it are among the methods.
                    if method.inputs != forward.inputs {
                        continue;
                    }
                    let length = (WATCHED_WINDOW + method.warm_up).min(training.len());
                    let windows = WATCHED_BATCHES as usize * WATCHED_ROWS;
                    let start = |window: usize| window * (training.len() - length) / windows;
                    for batch in 0..WATCHED_BATCHES as usize {
                        let rows = (0..WATCHED_ROWS).flat_map(|row| {
                            let start = start(batch * WATCHED_ROWS + row);
                            &training[start..start + length]
                        });
                        let rows: Vec<f32> = rows.copied().collect();
                        let rows = Tensor::from_slice(&rows).view([WATCHED_ROWS as i64, 1, -1]).to_device(device);
                        activity.hear(index, &[rows], method.warm_up.min(length - 1) as f64 / length as f64);
                    }
                }
                Ok(activity)
            }
        }
    }
}
