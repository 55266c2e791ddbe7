//! Changes how an instrument plays by what was heard of it.

use ondes_engine::instrument::Performance;
use ondes_engine::model::Model;
use ondes_engine::pipeline::INSTRUMENT_CONTROLS;

use super::{Audition, Compared, audition, with_recorded_attacks};
use crate::data::Recordings;
use crate::data::playing::{LEAST_DRIFT_DB, MOST_DRIFT_DB, RANGE_OF_DRIFT};
use crate::tasks::instrument::controls::NOISE;

/// Times that a model is adjusted: noise and treble depend on each other.
const ADJUSTMENTS: usize = 2;
/// Distance of notes with recorded attacks relative to those without, from which they are kept.
const BETTER: f64 = 0.95;
/// Most by which the level of a model is changed at a time, dB.
const MAX_SHIFT_DB: f64 = 12.0;
/// Tilt for a factor e of the centroid for 10 dB, dB for each dB.
const TILT_OF_COLOUR: f32 = 2.5;
/// Most treble of an attack, dB.
const MAX_ATTACK_TILT_DB: f32 = 18.0;
/// Least and most by which its attack is changed at a time.
const TIME_FACTORS: (f32, f32) = (0.5, 2.0);
/// Least and most noise of a model.
const NOISE_FACTORS: (f32, f32) = (0.5, 2.0);

/// Auditions a model, makes it as loud, quick, bright, lively and noisy as the recordings, gives it
/// their attacks if it `may_hold` them and they are better than its own, and auditions that.
///
/// # Errors
/// As [`audition`].
pub fn adjusted(
    model: &Model,
    recordings: &Recordings,
    others: Option<&Recordings>,
    may_hold: bool,
) -> anyhow::Result<(Model, Audition)> {
    let mut model = model.clone().with_attacks(None)?;
    for _ in 0..ADJUSTMENTS {
        let heard = audition(&model, recordings, others, |_, _| Ok(()))?;
        model = adjust(&model, &heard)?;
    }
    let heard = audition(&model, recordings, others, |_, _| Ok(()))?;
    let recorded = if may_hold {
        with_recorded_attacks(&model, recordings)?
    } else {
        model.clone()
    };
    if recorded.attacks().is_some() {
        let distance = |heard: &Audition| heard.attack_distance_db.played;
        let heard_then = audition(&recorded, recordings, others, |_, _| Ok(()))?;
        if distance(&heard_then) < BETTER * distance(&heard) {
            return Ok((recorded, heard_then));
        }
    }
    Ok((model, heard))
}

/// Changes the attack, or the swell after it, and the drift of the level by what was heard.
fn adjust_times(performance: &mut Performance, heard: &Audition) {
    let Compared { recorded, played } = heard.attack_ms;
    let (least, most) = TIME_FACTORS;
    let factor = ((recorded / played.max(1.0)) as f32).clamp(least, most);
    let time = if performance.sustain_db > 0.0 {
        &mut performance.decay_ms
    } else {
        &mut performance.attack_ms
    };
    *time = (*time * factor).clamp(2.0, 5e3);
    let is_held = performance.decay_db_per_s == 0.0;
    if let Some(Compared { recorded, played }) = heard.range_db.filter(|_| is_held) {
        let drift = performance.humanize_db + (recorded - played) as f32 / RANGE_OF_DRIFT;
        performance.humanize_db = drift.clamp(LEAST_DRIFT_DB, MOST_DRIFT_DB);
    }
}

/// Changes level, attack, life and noise of a model by what was heard.
fn adjust(model: &Model, heard: &Audition) -> anyhow::Result<Model> {
    let mut header = model.header().clone();
    if let Some(performance) = &mut header.performance {
        let shift = -heard.level_db.clamp(-MAX_SHIFT_DB, MAX_SHIFT_DB) as f32;
        let max = (performance.loudness_max_db + shift).clamp(-85.0, 0.0);
        performance.loudness_min_db = (performance.loudness_min_db + shift).clamp(-90.0, max - 1.0);
        performance.loudness_max_db = max;
        adjust_times(performance, heard);
        let Compared { recorded, played } = heard.attack_treble_db;
        if let (Some(recorded), played) = heard.colour_per_10_db {
            let tilt = performance.dynamic_tilt + TILT_OF_COLOUR * (recorded / played).ln() as f32;
            performance.dynamic_tilt = tilt.clamp(0.0, 3.0);
        }
        let tilt = performance.attack_tilt_db + (recorded - played) as f32;
        performance.attack_tilt_db = tilt.clamp(-MAX_ATTACK_TILT_DB, MAX_ATTACK_TILT_DB);
        // Knobs begin where the performance says, and go before it.
        for control in &mut header.controls {
            let of_all = INSTRUMENT_CONTROLS
                .iter()
                .find(|of_all| of_all.name == control.name);
            if let Some(of_all) = of_all {
                *control = of_all.control(performance);
            }
        }
    }
    let Compared { recorded, played } = heard.noise_db;
    let noise = header
        .controls
        .iter_mut()
        .find(|control| control.name == NOISE);
    if let Some(noise) = noise.filter(|_| (recorded - played).is_finite()) {
        let (quietest, loudest) = NOISE_FACTORS;
        let factor = 10_f64.powf((recorded - played) / 20.0) as f32;
        noise.default = (noise.default * factor)
            .clamp(quietest, loudest)
            .clamp(noise.min, noise.max);
    }
    Ok(model.with_header(header)?)
}
