//! Folds: every recording is validated on by one of several trainings, and learnt by the others.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use super::store::Recordings;

/// Fold of several, such as "2/5": the second of five.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fold {
    index: u16,
    count: u16,
}

/// Unit that folds divide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FoldBy {
    /// Recordings, in the order of their names.
    #[default]
    Recording,
    /// Pitches, in semitones, each with all of its recordings; those without a pitch are always
    /// learnt.
    Pitch,
}

impl FoldBy {
    /// Names.
    pub const NAMES: [&str; 2] = ["recording", "pitch"];
}

impl Fold {
    /// Returns all folds of a number, 2 or more.
    pub fn all(count: u16) -> impl Iterator<Item = Self> {
        (1..=count).map(move |index| Self { index, count })
    }

    /// Splits some recordings into those to learn and those to validate on.
    ///
    /// # Errors
    /// Returns an error if there are fewer recordings or pitches than folds.
    pub(super) fn split(self, all: &Recordings, by: FoldBy) -> anyhow::Result<[Vec<usize>; 2]> {
        let Self { index, count } = self;
        let is_own = |rank: usize| rank % usize::from(count) == usize::from(index) - 1;
        let enough = |found: usize, what: &str| {
            ensure!(
                found >= usize::from(count),
                "there are {found} {what} for {count} folds; use --folds 2 to {found}, or more recordings"
            );
            Ok(())
        };
        let recording = |index: usize| &all.store.recordings()[index];
        let usable: Vec<usize> = all
            .indices
            .iter()
            .copied()
            .filter(|&index| recording(index).frames > 1)
            .collect();
        let (validated, learnt) = match by {
            FoldBy::Recording => {
                enough(usable.len(), "recordings")?;
                let (own, others): (Vec<_>, Vec<_>) = usable
                    .into_iter()
                    .enumerate()
                    .partition(|(rank, _)| is_own(*rank));
                let indices =
                    |part: Vec<(usize, usize)>| part.into_iter().map(|(_, index)| index).collect();
                (indices(own), indices(others))
            }
            FoldBy::Pitch => {
                let semitone =
                    |index: usize| recording(index).pitch.map(|pitch| pitch.round() as i32);
                let pitches: BTreeSet<i32> =
                    usable.iter().filter_map(|&index| semitone(index)).collect();
                enough(pitches.len(), "pitches")?;
                let own = pitches
                    .into_iter()
                    .enumerate()
                    .filter(|(rank, _)| is_own(*rank));
                let own: BTreeSet<i32> = own.map(|(_, pitch)| pitch).collect();
                usable
                    .into_iter()
                    .partition(|&index| semitone(index).is_some_and(|pitch| own.contains(&pitch)))
            }
        };
        Ok([learnt, validated])
    }
}

impl fmt::Display for Fold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl From<Fold> for String {
    fn from(fold: Fold) -> Self {
        fold.to_string()
    }
}

impl TryFrom<String> for Fold {
    type Error = anyhow::Error;

    fn try_from(text: String) -> anyhow::Result<Self> {
        let wrong = || format!("recordings.fold {text:?} must be such as \"2/5\"");
        let (index, count) = text.split_once('/').with_context(wrong)?;
        let (index, count) = (index.trim().parse::<u16>(), count.trim().parse::<u16>());
        let (Ok(index), Ok(count)) = (index, count) else {
            anyhow::bail!(wrong())
        };
        ensure!(count > 1 && (1..=count).contains(&index), wrong());
        Ok(Self { index, count })
    }
}

/// Mean and sample standard deviation of values.
#[must_use]
pub fn mean_and_deviation(values: &[f64]) -> [f64; 2] {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    [mean, (squares / (count - 1.0).max(1.0)).sqrt()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_are_read_and_written() {
        let parse = |text: &str| Fold::try_from(text.to_owned());
        assert_eq!(parse("2/5").expect("a fold").to_string(), "2/5");
        assert_eq!(
            Fold::all(3)
                .map(|fold| fold.to_string())
                .collect::<Vec<_>>(),
            ["1/3", "2/3", "3/3"]
        );
        for wrong in ["", "2", "0/5", "6/5", "1/1", "a/b"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_deviation_is_that_of_a_sample() {
        assert_eq!(mean_and_deviation(&[1.0, 2.0, 3.0]), [2.0, 1.0]);
        assert_eq!(mean_and_deviation(&[4.0]), [4.0, 0.0]);
    }
}
