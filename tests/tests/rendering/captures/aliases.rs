//! Aliases of the bundled captures: overtones that half the sample rate folds down.

use std::f64::consts::TAU;

use ondes_engine::model::file;
use ondes_engine::pipeline::{Pipeline, PipelineOptions};
use ondes_tests::bundled_file;
use realfft::RealFftPlanner;

const RATE: usize = 48_000;
/// Highest tone, and highest alias that is measured, Hz.
const HIGHEST_HZ: usize = 6_000;
/// Amplitude of the tones: −12 dB of full scale, as a guitar has it.
const AMPLITUDE: f64 = 0.25;

/// Returns the level of the strongest alias of a tone relative to the tone, dB. The tone has a whole
/// number of periods a second, as its overtones and aliases then have.
fn strongest_alias_db(name: &str, oversampling: usize, hz: usize) -> f64 {
    let model = file::read(&bundled_file(name)).expect("it is whole");
    let options = PipelineOptions {
        sample_rate: RATE as u32,
        oversampling,
        ..PipelineOptions::default()
    };
    let mut pipeline = Pipeline::new(&model, &options).expect("it plays");
    let tone: Vec<f32> = (0..2 * RATE)
        .map(|n| (AMPLITUDE * (TAU * (hz * n % RATE) as f64 / RATE as f64).sin()) as f32)
        .collect();
    let mut heard = vec![0.0; tone.len()];
    for (tone, heard) in tone.chunks(480).zip(heard.chunks_mut(480)) {
        pipeline.process(tone, heard);
    }
    let fft = RealFftPlanner::new().plan_fft_forward(RATE);
    let mut spectrum = fft.make_output_vec();
    fft.process(&mut heard.split_off(RATE), &mut spectrum)
        .expect("the lengths fit");
    let power = |bin: usize| f64::from(spectrum[bin].norm_sqr());
    let aliases = (20..HIGHEST_HZ).filter(|bin| bin % hz != 0).map(power);
    10.0 * (aliases.fold(0.0, f64::max) / power(hz)).log10()
}

/// The factors are those that the book recommends.
#[test]
fn oversampling_keeps_aliases_of_bundled_captures_below_60_db() {
    for (name, factor) in [("triode", 1), ("overdrive", 2), ("fuzz", 4)] {
        for hz in [1_249, 2_503, 3_989, 5_501] {
            let alias = strongest_alias_db(name, factor, hz);
            assert!(
                alias < -60.0,
                "{name}, {factor} times, {hz} Hz: {alias:.1} dB"
            );
        }
    }
}
