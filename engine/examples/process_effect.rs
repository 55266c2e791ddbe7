//! Processes an audio file with an effect, such as an amplifier capture.
//!
//! `cargo run -p ondes-engine --example process_effect -- assets/models/fuzz.ondes assets/demo/riff.wav fuzz.wav`

use std::error::Error;
use std::path::Path;

use ondes_engine::media::{WavBits, WavWriter, read_mono};
use ondes_engine::model::file;
use ondes_engine::pipeline::{Pipeline, PipelineOptions};

const BLOCK: usize = 512;

/// Processes a file and returns the peak of the output.
pub fn process(model: &Path, input: &Path, output: &Path) -> Result<f32, Box<dyn Error>> {
    let model = file::read(model)?;
    let (mut samples, sample_rate) = read_mono(input)?;
    let mut pipeline = Pipeline::new(
        &model,
        &PipelineOptions {
            sample_rate,
            ..PipelineOptions::default()
        },
    )?;

    // Silence at the end makes room for the latency; dropping as many samples at the start aligns
    // the output with the input.
    let latency = pipeline.latency_samples();
    samples.resize(samples.len() + latency, 0.0);
    let mut processed = vec![0.0; samples.len()];
    for (input, output) in samples.chunks(BLOCK).zip(processed.chunks_mut(BLOCK)) {
        pipeline.process(input, output);
    }

    let mut writer = WavWriter::create(output, sample_rate, 1, WavBits::Int24)?;
    writer.write(&[&processed[latency..]])?;
    writer.finish()?;
    Ok(processed
        .iter()
        .fold(0.0, |peak, sample| peak.max(sample.abs())))
}

#[allow(dead_code, reason = "unused where a test includes this file")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, input, output] = &arguments[..] else {
        return Err("usage: process_effect MODEL INPUT OUTPUT".into());
    };
    let peak = process(model.as_ref(), input.as_ref(), output.as_ref())?;
    println!("{output}: peak {:.1} dB", 20.0 * peak.log10());
    Ok(())
}
