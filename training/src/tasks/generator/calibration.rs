//! Response of a generator to its knobs, and calibration of the loudness knob.
//!
//! A prior follows a knob only in part, since it also continues what it has played. Calibration
//! replaces the loudness that the layers read by an affine function of the knob, so that the mean
//! loudness of the sound is that of the knob. Only loudness is calibrated: densities above those of
//! the recordings add few onsets, and other sounds.

use std::ops::Range;

use anyhow::Context;
use ondes_engine::dsp::loudness::mean_db;
use ondes_engine::model::{Model, Op};
use ondes_engine::ops::Affine;
use rayon::prelude::*;
use serde::Serialize;

use super::conditions::Condition;
use super::inspect;
use super::names::CALIBRATED_LOUDNESS;
use super::player::{Player, onset_times};
use crate::tasks::control::control as find_control;

/// Length of the pieces that are measured, seconds.
const PIECE_S: f64 = 20.0;
/// Positions of the knob that are measured, as shares of its range.
const POSITIONS: [f32; 3] = [0.1, 0.5, 0.9];
/// Seeds of the pieces for calibration; `evaluate` uses others.
const SEEDS: Range<u64> = 100..104;
/// Slope of the response below which a knob is not calibrated.
const NO_RESPONSE: f32 = 0.1;
/// Least slope that is compensated in full: more gain gives sounds too different from the
/// recordings.
const LEAST_RESPONSE: f32 = 0.5;

/// Response to a knob.
#[derive(Clone, Debug, Serialize)]
pub struct Response {
    /// Name of the control.
    pub control: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// Values of the knob, and of the sound.
    pub measured: Vec<(f32, f32)>,
}

/// Measures the response to each knob, in pieces with these seeds.
pub(super) fn responses(player: &Player, seeds: &Range<u64>) -> anyhow::Result<Vec<Response>> {
    let heard = player
        .conditions
        .iter()
        .copied()
        .filter(|condition| condition.is_measured_in_sound());
    heard
        .map(|condition| response(player, condition, seeds))
        .collect()
}

fn response(player: &Player, condition: Condition, seeds: &Range<u64>) -> anyhow::Result<Response> {
    let control = condition.control();
    let knob = find_control(player.model, control)
        .with_context(|| format!("it has no control {control:?}"))?;
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

/// Returns a generator with a calibrated loudness knob, if it responds to the knob. That of `model`
/// must not be calibrated.
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
    // The line through the middle of the measured points, with the slope that is compensated.
    let compensated = slope.max(LEAST_RESPONSE);
    let middle = measured[measured.len() / 2].0;
    let start = start + (slope - compensated) * middle;
    if slope < NO_RESPONSE || !start.is_finite() {
        return Ok(model.clone());
    }
    with_loudness_map(model, 1.0 / compensated, -start / compensated)
}

/// Returns a generator without calibration, as it is trained.
///
/// # Errors
/// Returns an error if the model is no generator.
pub fn uncalibrated(model: &Model) -> anyhow::Result<Model> {
    with_loudness_map(model, 1.0, 0.0)
}

/// Sets scale and offset of the loudness that the layers read, if the generator has it.
fn with_loudness_map(model: &Model, scale: f32, offset: f32) -> anyhow::Result<Model> {
    inspect::with_nodes(model, |node| {
        if node.name == CALIBRATED_LOUDNESS {
            node.op = Op::Affine(Affine { scale, offset });
        }
    })
}

/// Returns the slope and the value at 0 of the line with the least squares through some points.
fn line(points: &[(f32, f32)]) -> (f32, f32) {
    let mean =
        |axis: fn(&(f32, f32)) -> f32| points.iter().map(axis).sum::<f32>() / points.len() as f32;
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
