//! Renders a MIDI file with an instrument to a WAV file.
//!
//! `cargo run -p ondes-engine --example play_midi -- assets/models/plucked.ondes assets/demo/riff.mid riff.wav`

use std::error::Error;
use std::path::Path;

use ondes_engine::instrument::{MidiFile, MidiSelection};
use ondes_engine::media::{WavBits, WavWriter};
use ondes_engine::model::file;
use ondes_engine::pipeline::{Pipeline, PipelineOptions};

const SAMPLE_RATE: u32 = 48_000;
const BLOCK: usize = 512;

/// Renders a MIDI file and returns the number of samples.
pub fn render(model: &Path, midi: &Path, wav: &Path) -> Result<u64, Box<dyn Error>> {
    let model = file::read(model)?;
    let midi = MidiFile::read(midi)?;
    let options = PipelineOptions {
        sample_rate: SAMPLE_RATE,
        ..PipelineOptions::default()
    };
    let mut pipeline = Pipeline::new(&model, &options)?;

    // The output is late by the latency, and continues after the last note by the tail.
    let latency = pipeline.latency_samples();
    let duration = (midi.duration_s * f64::from(SAMPLE_RATE)) as usize + pipeline.tail_samples();
    let mut events = midi
        .events_at(f64::from(SAMPLE_RATE), MidiSelection::All)
        .peekable();
    let mut writer = WavWriter::create(wav, SAMPLE_RATE, 1, WavBits::Int24)?;
    let mut block = [0.0; BLOCK];
    for start in (0..latency + duration).step_by(BLOCK) {
        let end = start + BLOCK;
        while let Some(event) = events.next_if(|event| event.at < end as u64) {
            pipeline.handle(event)?;
        }
        pipeline.process(&[], &mut block);
        let range =
            latency.clamp(start, end) - start..(latency + duration).clamp(start, end) - start;
        writer.write(&[&block[range]])?;
    }
    let samples = writer.frames();
    writer.finish()?;
    Ok(samples)
}

#[allow(dead_code, reason = "unused where a test includes this file")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, midi, wav] = &arguments[..] else {
        return Err("usage: play_midi MODEL MIDI WAV".into());
    };
    let samples = render(model.as_ref(), midi.as_ref(), wav.as_ref())?;
    println!("{wav}: {:.1} s", samples as f64 / f64::from(SAMPLE_RATE));
    Ok(())
}
