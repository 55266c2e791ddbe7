//! Comparison of models by cost and quality, and their Pareto front.
//!
//! [`cost`] measures size, memory and time; quality comes from [`crate::evaluate`] or
//! [`crate::tasks::capture::measure`]; [`chart`] draws both.

pub mod candidate;
pub mod chart;
pub mod cost;

use std::path::Path;

use anyhow::{Context, bail};
use ondes_engine::model::{Kind, Measure, Model};
use serde::Serialize;

use crate::evaluate::measured::open_measured;
use crate::evaluate::{evaluate, feature_rate};
use crate::tasks::capture::measure::compare as compare_capture;
use crate::tasks::capture::pair::Pair;
use candidate::Candidate;
use cost::{Cost, Speed};

/// Sound to measure quality on, which no model was trained on.
pub enum HeldOut<'a> {
    /// Folder of recordings, or recipe, for instruments, and folder for their cached analyses.
    Recordings(&'a Path, &'a Path),
    /// Input and output of a device, for captures.
    Pair(&'a Path, &'a Path),
}

/// Result of one candidate.
#[derive(Clone, Debug, Serialize)]
pub struct ComparisonRow {
    /// Name in tables and charts.
    pub name: String,
    /// Path of the file.
    pub path: String,
    /// Size and memory.
    #[serde(flatten)]
    pub cost: Cost,
    /// Speed at each block size.
    pub speeds: Vec<Speed>,
    /// Measures of quality; lower is better. The first is used for the Pareto front.
    pub quality: Vec<Measure>,
    /// No other model is better in one of speed and quality and at least as good in the other.
    pub on_front: bool,
}

impl ComparisonRow {
    /// Returns nanoseconds per sample at the first block size, and the first measure of quality.
    #[must_use]
    pub fn point(&self) -> (f64, f64) {
        let cost = self
            .speeds
            .first()
            .map_or(f64::INFINITY, |speed| speed.ns_per_sample);
        (
            cost,
            self.quality
                .first()
                .map_or(f64::INFINITY, |measure| measure.value),
        )
    }
}

/// Measures all candidates. Timed runs of all candidates alternate, so that disturbances affect all
/// alike.
///
/// # Errors
/// Returns an error with the file of a model that cannot be played or measured.
pub fn compare(
    candidates: &[Candidate],
    held_out: &HeldOut<'_>,
    blocks: &[u32],
    seconds: f64,
    progress: impl Fn(&str),
) -> anyhow::Result<Vec<ComparisonRow>> {
    let named = |candidate: &Candidate| candidate.path.display().to_string();
    let mut rows = Vec::new();
    for candidate in candidates {
        progress(&candidate.name);
        let quality = quality(&candidate.model, held_out).with_context(|| named(candidate))?;
        let cost =
            Cost::measure(&candidate.model, &candidate.path).with_context(|| named(candidate))?;
        let (name, path) = (candidate.name.clone(), named(candidate));
        rows.push(ComparisonRow {
            name,
            path,
            cost,
            speeds: Vec::new(),
            quality,
            on_front: false,
        });
    }
    progress("time");
    for (row, speeds) in rows
        .iter_mut()
        .zip(cost::speeds(candidates, blocks, seconds)?)
    {
        row.speeds = speeds;
    }
    let front = pareto_front(&rows.iter().map(ComparisonRow::point).collect::<Vec<_>>());
    rows.iter_mut()
        .zip(front)
        .for_each(|(row, on_front)| row.on_front = on_front);
    Ok(rows)
}

/// Measures the quality of a model, the most important measure first.
///
/// # Errors
/// Returns an error if there is no measure for the kind of model on that sound.
pub fn quality(model: &Model, held_out: &HeldOut<'_>) -> anyhow::Result<Vec<Measure>> {
    match (model.header().kind, held_out) {
        (Kind::Instrument, HeldOut::Recordings(folder, cache)) => {
            let (measured, training) =
                open_measured(folder, cache, feature_rate(model)?, Kind::Instrument)?;
            Ok(evaluate(model, &measured, training.as_ref())?.measures())
        }
        (Kind::Effect, HeldOut::Pair(dry, wet)) => {
            let pair = Pair::read(dry, wet, model.header().sample_rate)?;
            Ok(vec![compare_capture(model, &pair)?.held_out])
        }
        (Kind::Instrument, _) => {
            bail!("an instrument is measured on a folder of recordings; use --data")
        }
        (Kind::Effect, _) => bail!("a capture is measured on a pair; use --dry and --wet"),
        (kind, _) => bail!(
            "a model of the kind {:?} has no measure of quality",
            kind.name()
        ),
    }
}

/// Tells for each point of cost and error whether it is on the Pareto front: no other point is at
/// least as good in both and better in one.
#[must_use]
pub fn pareto_front(points: &[(f64, f64)]) -> Vec<bool> {
    let dominates = |a: &(f64, f64), b: &(f64, f64)| a.0 <= b.0 && a.1 <= b.1 && a != b;
    points
        .iter()
        .map(|point| !points.iter().any(|other| dominates(other, point)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::pareto_front;

    #[test]
    fn the_front_holds_undominated_points() {
        let points = [
            (1.0, 9.0),
            (2.0, 5.0),
            (3.0, 5.0),
            (4.0, 6.0),
            (5.0, 1.0),
            (5.0, 1.0),
            (9.0, 2.0),
        ];
        assert_eq!(
            pareto_front(&points),
            [true, true, false, false, true, true, false]
        );
        assert!(pareto_front(&[]).is_empty());
    }
}
