//! Aliases of a capture: overtones that half the sample rate folds down.

use std::f64::consts::TAU;

use ondes_engine::model::Model;
use ondes_engine::model::limits::OVERSAMPLINGS;
use ondes_engine::pipeline::{Pipeline, PipelineError, PipelineOptions};
use realfft::RealFftPlanner;

/// Aliases of a guitar's notes below this level cannot be heard beside them, dB.
pub const INAUDIBLE_DB: f64 = -60.0;
/// Highest alias that is measured, Hz.
const HIGHEST_HZ: usize = 6_000;
/// Tones, Hz. Being prime, they share no multiple with the sample rate below it, so that no alias
/// falls on an overtone.
const TONES_HZ: [usize; 4] = [1_249, 2_503, 3_989, 5_501];
/// Amplitude of the tones: −12 dB of full scale, as a guitar has it.
const AMPLITUDE: f64 = 0.25;
/// Samples that are played at once.
const BLOCK: usize = 480;

/// Returns the level of the strongest alias below 6 kHz of four tones, relative to the tone, dB, with
/// the knobs at their defaults.
///
/// # Errors
/// Returns an error if the model cannot be played as an effect at this factor.
pub fn strongest_db(model: &Model, oversampling: usize) -> Result<f64, PipelineError> {
    let half_rate = model.header().sample_rate as usize / 2;
    let tones = TONES_HZ.into_iter().filter(|hz| *hz < half_rate);
    tones
        .map(|hz| alias_db(model, oversampling, hz))
        .try_fold(f64::MIN, |highest, level| Ok(highest.max(level?)))
}

/// Returns the lowest factor without audible aliases; `None` if all have some.
///
/// # Errors
/// As [`strongest_db`].
pub fn needed_factor(model: &Model) -> Result<Option<usize>, PipelineError> {
    for factor in OVERSAMPLINGS {
        if strongest_db(model, factor)? < INAUDIBLE_DB {
            return Ok(Some(factor));
        }
    }
    Ok(None)
}

/// The tone has a whole number of periods a second, as its overtones and aliases then have.
fn alias_db(model: &Model, oversampling: usize, hz: usize) -> Result<f64, PipelineError> {
    let sample_rate = model.header().sample_rate;
    let rate = sample_rate as usize;
    let options = PipelineOptions {
        sample_rate,
        oversampling: Some(oversampling),
        ..PipelineOptions::default()
    };
    let mut pipeline = Pipeline::new(model, &options)?;
    let tone: Vec<f32> = (0..2 * rate)
        .map(|n| (AMPLITUDE * (TAU * (hz * n % rate) as f64 / rate as f64).sin()) as f32)
        .collect();
    let mut heard = vec![0.0; tone.len()];
    for (tone, heard) in tone.chunks(BLOCK).zip(heard.chunks_mut(BLOCK)) {
        pipeline.process(tone, heard);
    }
    let fft = RealFftPlanner::new().plan_fft_forward(rate);
    let mut spectrum = fft.make_output_vec();
    fft.process(&mut heard.split_off(rate), &mut spectrum)
        .expect("the lengths fit");
    let power = |bin: usize| f64::from(spectrum[bin].norm_sqr());
    let highest = HIGHEST_HZ.min(spectrum.len());
    let aliases = (20..highest).filter(|bin| bin % hz != 0).map(power);
    Ok(10.0 * (aliases.fold(0.0, f64::max) / power(hz)).log10())
}

#[cfg(test)]
mod tests {
    use ondes_engine::model::file;

    use super::*;

    /// The factors are those that the book recommends.
    #[test]
    fn aliases_of_bundled_captures_are_inaudible() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/models");
        for (name, factor) in [
            ("triode", 1),
            ("overdrive", 2),
            ("fuzz", 4),
            ("crunch", 4),
            ("silicon-fuzz", 4),
            ("germanium-fuzz", 2),
        ] {
            let model = file::read(format!("{folder}/{name}.ondes").as_ref()).unwrap();
            let found = strongest_db(&model, factor).unwrap();
            assert!(found < INAUDIBLE_DB, "{name}: {found:.1} dB");
            if !model.header().controls.is_empty() {
                assert_eq!(model.header().oversampling, factor);
            }
        }
    }

    #[test]
    fn harder_distortion_needs_more_oversampling() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/models");
        let needed = ["triode", "overdrive", "fuzz"].map(|name| {
            let model = file::read(format!("{folder}/{name}.ondes").as_ref()).unwrap();
            needed_factor(&model).unwrap()
        });
        assert!(needed.is_sorted() && needed[0] < needed[2], "{needed:?}");
    }
}
