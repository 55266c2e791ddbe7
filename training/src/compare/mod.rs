//! Models side by side: what each costs on this machine and how well it does, and which of them no other beats in both.
//!
//! [`cost`] measures size, memory and time; quality is that of [`crate::evaluate`] and [`crate::capture::measure`]; [`chart`]
//! draws it.

pub mod chart;
pub mod cost;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use ondes_engine::model::{Kind, Measure, Model};
use serde::Serialize;

use crate::capture::measure::compare as compare_capture;
use crate::capture::pair::Pair;
use crate::dataset::hear;
use crate::evaluate::{evaluate, feature_rate};
use crate::variants;
use cost::{Cost, Speed};

/// What quality is measured on, none of which a model may have been trained on.
pub enum HeldOut<'a> {
    /// A folder of recordings, for instruments, and the folder in which what was heard of them is kept.
    Recordings(&'a Path, &'a Path),
    /// What was played into a device and what came out, for captures.
    Pair(&'a Path, &'a Path),
}

/// A model, or one of its sizes, that is to be compared.
pub struct Candidate {
    /// How it is shown.
    pub name: String,
    /// Where it was read from.
    pub path: std::path::PathBuf,
    /// What plays.
    pub model: Arc<Model>,
}

/// What was found out about one.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// How it is shown.
    pub name: String,
    /// The file.
    pub path: String,
    /// Size and memory.
    #[serde(flatten)]
    pub cost: Cost,
    /// Time, by the length of a block.
    pub speeds: Vec<Speed>,
    /// The first is what models are compared by: the less, the better.
    pub quality: Vec<Measure>,
    /// No other is both faster and better.
    pub on_front: bool,
}

impl Row {
    /// Nanoseconds per sample at the first block, and the first measure of quality.
    #[must_use]
    pub fn point(&self) -> (f64, f64) {
        let cost = self.speeds.first().map_or(f64::INFINITY, |speed| speed.ns_per_sample);
        (cost, self.quality.first().map_or(f64::INFINITY, |measure| measure.value))
    }
}

/// The candidates of a file: the model and each smaller size that it holds.
///
/// # Errors
/// When a size makes no model of its own.
pub fn candidates(path: &Path, model: &Model) -> anyhow::Result<Vec<Candidate>> {
    let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let mut all = Vec::new();
    for variant in &model.header().variants {
        let name = format!("{stem} ({})", variant.name);
        all.push(Candidate { name, path: path.to_owned(), model: Arc::new(variants::take_out(model, variant)?) });
    }
    all.push(Candidate { name: stem, path: path.to_owned(), model: Arc::new(model.clone()) });
    Ok(all)
}

/// Measures them all; the times in turns, so that what else the machine does meets all alike.
///
/// # Errors
/// One line with the file: it cannot be played, or not be measured on what is held out.
pub fn compare(
    candidates: &[Candidate],
    held_out: &HeldOut<'_>,
    blocks: &[u32],
    seconds: f64,
    tell: impl Fn(&str),
) -> anyhow::Result<Vec<Row>> {
    let named = |candidate: &Candidate| candidate.path.display().to_string();
    let mut rows = Vec::new();
    for candidate in candidates {
        tell(&candidate.name);
        let quality = quality(&candidate.model, held_out).with_context(|| named(candidate))?;
        let cost = Cost::of(&candidate.model, &candidate.path).with_context(|| named(candidate))?;
        let (name, path) = (candidate.name.clone(), named(candidate));
        rows.push(Row { name, path, cost, speeds: Vec::new(), quality, on_front: false });
    }
    tell("time");
    for (row, speeds) in rows.iter_mut().zip(cost::speeds(candidates, blocks, seconds)?) {
        row.speeds = speeds;
    }
    let front = front(&rows.iter().map(Row::point).collect::<Vec<_>>());
    rows.iter_mut().zip(front).for_each(|(row, on_front)| row.on_front = on_front);
    Ok(rows)
}

/// What a model is measured by, the most telling first.
///
/// # Errors
/// When it cannot be measured on that.
pub fn quality(model: &Model, held_out: &HeldOut<'_>) -> anyhow::Result<Vec<Measure>> {
    match (model.header().kind, held_out) {
        (Kind::Instrument, HeldOut::Recordings(folder, cache)) => {
            Ok(evaluate(model, &hear(folder, cache, feature_rate(model)?)?)?.measures())
        }
        (Kind::Effect, HeldOut::Pair(dry, wet)) => {
            let pair = Pair::read(dry, wet, model.header().sample_rate)?;
            let found = compare_capture(model, &pair)?;
            Ok(vec![found.held_out])
        }
        (Kind::Instrument, _) => bail!("is an instrument, which is measured on a folder of recordings (--data)"),
        (Kind::Effect, _) => bail!("is a capture, which is measured on a pair (--dry and --wet)"),
        (kind, _) => bail!("is of kind {}, for which there is no measure", kind.name()),
    }
}

/// For each point of cost and error, whether no other is at least as good in both and better in one.
#[must_use]
pub fn front(points: &[(f64, f64)]) -> Vec<bool> {
    let beats = |a: &(f64, f64), b: &(f64, f64)| a.0 <= b.0 && a.1 <= b.1 && a != b;
    points.iter().map(|point| !points.iter().any(|other| beats(other, point))).collect()
}

#[cfg(test)]
mod tests {
    use super::front;

    #[test]
    fn the_front_is_what_nothing_beats() {
        let points = [(1.0, 9.0), (2.0, 5.0), (3.0, 5.0), (4.0, 6.0), (5.0, 1.0), (5.0, 1.0), (9.0, 2.0)];
        assert_eq!(front(&points), [true, true, false, false, true, true, false]);
        assert!(front(&[]).is_empty());
    }
}
