//! Grooves of a drum kit: patterns played with recorded hits, whose tempo and bars are known.
//!
//! [`kit`] reads the hits of a kit and [`pattern`] composes bars; here they are played and written,
//! a WAV file for each groove, which begins on a bar, ends with one, and says its tempo in its name
//! (`groove-0001 96bpm.wav`).

use std::path::Path;

use anyhow::{Context, ensure};
use ondes_engine::dsp::level::{amplitude_to_db_f64, db_to_amplitude_f64, peak};
use ondes_engine::random::{GOLDEN_GAMMA, mix64};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;

use super::generate::{CorpusSummary, MAX_MINUTES, PEAK_DB, write_wav};
use super::instrument::OUTPUT_RATE_HZ;

pub mod kit;
pub mod pattern;
#[cfg(test)]
mod tests;

use kit::Kit;
use pattern::{BEATS, Groove, Stroke};

/// Bars of a groove.
const BARS: usize = 8;
/// Time in which a closing hi-hat ends the sound of an open one, seconds.
const CHOKE_S: f64 = 0.02;

/// Options of [`generate`].
#[derive(Debug, Clone)]
pub struct DrumsOptions {
    /// Length of all grooves, minutes; the last one may exceed it.
    pub minutes: f64,
    /// Slowest and fastest tempo, beats a minute.
    pub tempos: (u32, u32),
    /// Seed of everything random.
    pub seed: u64,
}

/// Plays grooves with the hits in the folder `kit` and writes them to the folder `out`. `progress`
/// is called with the number of finished files and of all files.
///
/// # Errors
/// Returns an error if the options are invalid, the kit lacks a part or a file cannot be read or
/// written.
pub fn generate(
    options: &DrumsOptions,
    kit: &Path,
    out: &Path,
    progress: impl Fn(usize, usize) + Sync,
) -> anyhow::Result<CorpusSummary> {
    let (DrumsOptions { minutes, seed, .. }, (slow, fast)) = (options, options.tempos);
    ensure!(
        *minutes > 0.0 && *minutes <= MAX_MINUTES,
        "{minutes} minutes; must be above 0 and at most {MAX_MINUTES}"
    );
    ensure!(
        30 <= slow && slow <= fast && fast <= 300,
        "tempos {slow} to {fast}; must be 30 to 300, the slower first"
    );
    let kit = Kit::read(kit)?;
    std::fs::create_dir_all(out)
        .with_context(|| format!("{}: cannot create the folder", out.display()))?;
    let tempos = tempos(options);
    let all = tempos.len();
    let played: Vec<(u32, Played)> = tempos
        .into_par_iter()
        .enumerate()
        .map(|(index, tempo)| {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(mix64(
                seed ^ GOLDEN_GAMMA.wrapping_mul(index as u64 + 1),
            ));
            let groove = Groove::compose(f64::from(tempo), BARS, |part| kit.has(part), &mut random);
            let played = play(&kit, &groove, &mut random);
            progress(index + 1, all);
            (tempo, played)
        })
        .collect();
    let loudest = played
        .iter()
        .map(|(_, played)| peak(&played.samples))
        .fold(0.0, f32::max);
    ensure!(loudest > 0.0, "the kit is silent");
    let gain = db_to_amplitude_f64(PEAK_DB) / f64::from(loudest);
    played
        .par_iter()
        .enumerate()
        .try_for_each(|(index, (tempo, played))| {
            write_wav(
                &out.join(format!("groove-{:04} {tempo}bpm.wav", index + 1)),
                &played.samples,
                gain,
            )
        })?;
    Ok(CorpusSummary {
        files: played.len(),
        notes: played.iter().map(|(_, played)| played.strokes).sum(),
        seconds: played
            .iter()
            .map(|(_, played)| played.samples.len() as f64 / OUTPUT_RATE_HZ)
            .sum(),
        gain_db: amplitude_to_db_f64(gain),
    })
}

/// Returns the tempos of the grooves, beats a minute: spread evenly over the range, as many as the
/// length needs.
fn tempos(options: &DrumsOptions) -> Vec<u32> {
    let (slow, fast) = options.tempos;
    // The golden ratio leaves the smallest gaps, whatever the number.
    let step = std::f64::consts::GOLDEN_RATIO.recip();
    let mut place = 0.5;
    let mut seconds = 0.0;
    let mut tempos = Vec::new();
    while seconds < 60.0 * options.minutes {
        let tempo = slow + (place * f64::from(fast - slow + 1)) as u32;
        seconds += bars_s(f64::from(tempo));
        tempos.push(tempo.min(fast));
        place = (place + step).fract();
    }
    tempos
}

/// Returns the length of a groove, seconds.
fn bars_s(tempo: f64) -> f64 {
    (BARS * BEATS) as f64 * 60.0 / tempo
}

/// Sound of a groove.
struct Played {
    strokes: usize,
    samples: Vec<f32>,
}

/// Plays a groove. Its tail is mixed into its beginning, so that it can be looped.
fn play(kit: &Kit, groove: &Groove, random: &mut impl RngExt) -> Played {
    let length = (bars_s(groove.tempo) * OUTPUT_RATE_HZ).round() as usize;
    let mut samples = vec![0.0; length];
    for (index, stroke) in groove.strokes.iter().enumerate() {
        let hit = kit.hit(stroke.part, stroke.strength, random);
        let start = (stroke.at_s * OUTPUT_RATE_HZ).round() as usize;
        let end = choked_after(&groove.strokes, index, bars_s(groove.tempo));
        let fade = (CHOKE_S * OUTPUT_RATE_HZ) as usize;
        let end = end.map_or(usize::MAX, |seconds| (seconds * OUTPUT_RATE_HZ) as usize);
        for (n, sample) in hit
            .iter()
            .take(end.saturating_add(fade).min(length))
            .enumerate()
        {
            let level = if n < end {
                1.0
            } else {
                1.0 - (n - end) as f32 / fade as f32
            };
            samples[(start + n) % length] += level * sample;
        }
    }
    Played {
        strokes: groove.strokes.len(),
        samples,
    }
}

/// Returns the time after which a stroke of an open hi-hat is ended by the next one of the hi-hat,
/// seconds.
fn choked_after(strokes: &[Stroke], index: usize, length_s: f64) -> Option<f64> {
    let stroke = &strokes[index];
    if !stroke.part.is_hat() {
        return None;
    }
    let after = |other: &Stroke| (other.at_s - stroke.at_s).rem_euclid(length_s);
    let others = strokes
        .iter()
        .enumerate()
        .filter(|(other, stroke)| *other != index && stroke.part.is_hat());
    others.map(|(_, other)| after(other)).min_by(f64::total_cmp)
}
