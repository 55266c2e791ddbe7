//! Knobs of a generator: what they get for what they ask, and the calibration of loudness.
//!
//! A prior goes only a part of the way that a knob asks for, since what it has played before says
//! otherwise. So a calibrated knob asks for more: as much as it takes, on average, to get what it
//! says. That is done for loudness alone: a higher density than any in the recordings adds few
//! onsets, and other sounds.

use std::ops::Range;

use anyhow::Context;
use ondes_engine::dsp::loudness::mean_db;
use ondes_engine::model::{Model, Op};
use ondes_engine::ops::Affine;
use rayon::prelude::*;
use serde::Serialize;

use super::conditions::Condition;
use super::network::{self, ASKED};
use super::player::{Player, onset_times};

/// Length of the pieces that show what a knob does, seconds.
const PIECE_S: f64 = 20.0;
/// Positions of the knob.
const POSITIONS: [f32; 3] = [0.1, 0.5, 0.9];
/// Seeds of the pieces by which loudness is calibrated; others tell how good that is.
const SEEDS: Range<u64> = 100..104;
/// Part of the way that a knob must get to be calibrated.
const NO_RESPONSE: f32 = 0.1;
/// Least part of the way that is made up for: with more, sounds get too different from those of the
/// recordings.
const LEAST_RESPONSE: f32 = 0.5;

/// Response to a knob.
#[derive(Clone, Debug, Serialize)]
pub struct Response {
    /// Name of the control.
    pub control: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// Values of the knob with what was measured in the sound.
    pub measured: Vec<(f32, f32)>,
}

/// Measures what the knobs do, each by itself, in pieces with these seeds.
pub(super) fn responses(player: &Player, seeds: &Range<u64>) -> anyhow::Result<Vec<Response>> {
    let heard = player
        .conditions
        .iter()
        .copied()
        .filter(|condition| condition.is_heard());
    heard
        .map(|condition| response(player, condition, seeds))
        .collect()
}

fn response(player: &Player, condition: Condition, seeds: &Range<u64>) -> anyhow::Result<Response> {
    let control = condition.control();
    let knob = player
        .model
        .header()
        .controls
        .iter()
        .find(|known| known.name == control);
    let knob = knob.with_context(|| format!("it has no control {control:?}"))?;
    let piece = |value: f32, seed: u64| {
        let sound = player.play(PIECE_S, &[(control, value)], seed)?;
        anyhow::Ok(match condition {
            Condition::Loudness => mean_db(&sound, player.sample_rate),
            _ => (onset_times(&sound, player.sample_rate).len() as f64 / PIECE_S) as f32,
        })
    };
    let count = (seeds.end - seeds.start) as f32;
    let measure = |position: f32| {
        let value = knob.min + position * (knob.max - knob.min);
        let pieces = seeds.clone().into_par_iter().map(|seed| piece(value, seed));
        let measured = pieces.collect::<anyhow::Result<Vec<f32>>>()?;
        anyhow::Ok((value, measured.iter().sum::<f32>() / count))
    };
    let measured = POSITIONS
        .into_iter()
        .map(measure)
        .collect::<anyhow::Result<_>>()?;
    Ok(Response {
        control,
        unit: condition.unit(),
        measured,
    })
}

/// Returns a generator whose loudness is on average what its knob says, as far as it follows the
/// knob at all. The knob of `model` must not be calibrated.
///
/// # Errors
/// Returns an error if the model is no generator.
pub fn calibrated(model: &Model) -> anyhow::Result<Model> {
    let player = Player::new(model)?;
    if !player.conditions.contains(&Condition::Loudness) {
        return Ok(model.clone());
    }
    let measured = response(&player, Condition::Loudness, &SEEDS)?.measured;
    let (slope, start) = line(&measured);
    // The line through the middle of what was measured, at least as steep as what is made up for.
    let made_up = slope.max(LEAST_RESPONSE);
    let middle = measured[measured.len() / 2].0;
    let start = start + (slope - made_up) * middle;
    if slope < NO_RESPONSE || !start.is_finite() {
        return Ok(model.clone());
    }
    with_asked(model, 1.0 / made_up, -start / made_up)
}

/// Returns a generator whose knob for loudness asks for what it says, as training measures it in
/// recordings.
///
/// # Errors
/// Returns an error if the model is no generator.
pub fn uncalibrated(model: &Model) -> anyhow::Result<Model> {
    with_asked(model, 1.0, 0.0)
}

/// Sets the scale and the offset by which a generator asks for a loudness, if it has them.
fn with_asked(model: &Model, scale: f32, offset: f32) -> anyhow::Result<Model> {
    network::with_nodes(model, |node| {
        if node.name == ASKED {
            node.op = Op::Affine(Affine { scale, offset });
        }
    })
}

/// Returns the slope and the value at 0 of the line with the least squares through some points.
fn line(points: &[(f32, f32)]) -> (f32, f32) {
    let mean =
        |of: fn(&(f32, f32)) -> f32| points.iter().map(of).sum::<f32>() / points.len() as f32;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let squares: f32 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let products: f32 = points
        .iter()
        .map(|point| (point.0 - x) * (point.1 - y))
        .sum();
    let slope = products / squares;
    (slope, y - slope * x)
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn a_line_goes_through_its_points() {
        let (slope, start) = line(&[(1.0, 5.0), (2.0, 7.0), (4.0, 11.0)]);
        assert!((slope - 2.0).abs() < 1e-5 && (start - 3.0).abs() < 1e-5);
    }
}
