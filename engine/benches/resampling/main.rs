//! Conversion between the sample rates of host and model: latency, response, cost, and evenness of
//! the work.

mod response;

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use ondes_engine::Kernels;
use ondes_engine::dsp::resample::{Resampling, StreamResampler};
use ondes_engine::instrument::{Event, EventKind};
use ondes_engine::model::{Kind, Model, file, import};
use ondes_engine::pipeline::{ControlSource, Pipeline, PipelineOptions};
use response::response;

const RATES: [u32; 6] = [44_100, 48_000, 88_200, 96_000, 176_400, 192_000];
const BLOCK: usize = 64;

fn main() {
    conversions();
    let model = |name: &str| {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../assets/models/{name}.ondes"));
        file::read(&path).expect("bundled models are valid")
    };
    latencies(&[model("overdrive"), model("plucked"), model("bowed")]);
    evenness(&model("overdrive"));
}

/// Prints what conversion from host to model and back does to the sound, and what it costs.
fn conversions() {
    println!("low latency, host to model and back");
    println!(
        "  host    model   latency          ripple to 18 kHz   phase    rest        per host sample"
    );
    for (host, model) in [
        (44_100, 48_000),
        (48_000, 44_100),
        (88_200, 48_000),
        (96_000, 48_000),
        (176_400, 48_000),
        (192_000, 48_000),
        (48_000, 96_000),
        (96_000, 44_100),
        (32_000, 48_000),
        (47_999, 48_000),
    ] {
        let edge_hz = f64::from(host.min(model)).min(44_100.0) * 18.0 / 44.1;
        let [there, back] =
            [(host, model), (model, host)].map(|(from, to)| response(from, to, edge_hz, 101.0));
        let latency = conversion_latency(host, model);
        println!(
            "  {host:6}  {model:5}  {:5.3} ms, {latency:3}  {:9.3} dB  {:12.2}°  {:7.1} dB  {:7.1} ns",
            1e3 * latency as f64 / f64::from(host),
            there.ripple_db + back.ripple_db,
            there.phase_degrees + back.phase_degrees,
            there.rejection_db.max(back.rejection_db),
            conversion_ns(host, model),
        );
    }
}

/// Returns the latency of a model that passes its input, in host samples.
fn conversion_latency(host: u32, model: u32) -> usize {
    let text = format!(
        r#"{{ "version": "0.5.4", "architecture": "Linear", "config": {{ "receptive_field": 1, "bias": false }},
        "weights": [1.0], "sample_rate": {model} }}"#
    );
    let wire = import::parse(text.as_bytes())
        .expect("it can be read")
        .model;
    pipeline(
        &wire,
        host,
        Resampling::LowLatency,
        ControlSource::AudioInput,
    )
    .latency_samples()
}

/// Returns the time per host sample of both conversions, in blocks of [`BLOCK`].
fn conversion_ns(host: u32, model: u32) -> f64 {
    let kernels = Kernels::detect();
    let mut there = StreamResampler::low_latency(host, model, kernels).expect("supported rates");
    let mut back = StreamResampler::low_latency(model, host, kernels).expect("supported rates");
    let sound: Vec<f32> = (0..BLOCK).map(|n| (0.1 * n as f32).sin()).collect();
    let mut run = |blocks: usize| {
        let begun = Instant::now();
        for _ in 0..blocks {
            there.push(black_box(&sound), |samples| {
                back.push(samples, |samples| _ = black_box(samples))
            });
        }
        1e9 * begun.elapsed().as_secs_f64() / (blocks * BLOCK) as f64
    };
    run(1_000);
    // The quickest of several: another process may have had the core.
    (0..9).map(|_| run(1_000)).fold(f64::INFINITY, f64::min)
}

fn pipeline(
    model: &Model,
    sample_rate: u32,
    resampling: Resampling,
    source: ControlSource,
) -> Pipeline {
    let options = PipelineOptions {
        sample_rate,
        resampling,
        source,
        ..PipelineOptions::default()
    };
    Pipeline::new(model, &options).expect("it plays")
}

/// Prints the latency of models at all rates, and the time from a note to its first sound.
fn latencies(models: &[Model]) {
    println!(
        "\nlatency of models, ms{}",
        RATES.map(|rate| format!("{rate:>10} Hz")).concat()
    );
    for model in models {
        let is_instrument = model.header().kind == Kind::Instrument;
        let sources: &[ControlSource] = if is_instrument {
            &[ControlSource::Notes, ControlSource::AudioInput]
        } else {
            &[ControlSource::AudioInput]
        };
        for &source in sources {
            for resampling in [Resampling::LowLatency, Resampling::LinearPhase] {
                let milliseconds = RATES.map(|rate| {
                    let samples = pipeline(model, rate, resampling, source).latency_samples();
                    format!("{:>13.2}", 1e3 * samples as f64 / f64::from(rate))
                });
                let by = match (is_instrument, source) {
                    (true, ControlSource::Notes) => "notes",
                    (true, ControlSource::AudioInput) => "followed",
                    _ => "input",
                };
                let method = if resampling == Resampling::LowLatency {
                    "low"
                } else {
                    "linear"
                };
                println!(
                    "  {:8} {by:8} {method:6}{}",
                    name(model),
                    milliseconds.concat()
                );
            }
        }
        if is_instrument {
            let milliseconds = RATES.map(|rate| format!("{:>13.2}", note_to_sound_ms(model, rate)));
            println!(
                "  {:8} note to sound  {}",
                name(model),
                milliseconds.concat()
            );
        }
    }
}

/// Returns the time from a note to the first sample above −60 dB of its peak, for the worst
/// position of the note.
fn note_to_sound_ms(model: &Model, rate: u32) -> f64 {
    let first_sound = |at: usize| {
        let mut pipeline = pipeline(model, rate, Resampling::LowLatency, ControlSource::Notes);
        let mut sound = vec![0.0; rate as usize / 2];
        for (index, block) in sound.chunks_mut(BLOCK).enumerate() {
            if index == at / BLOCK {
                let kind = EventKind::NoteOn {
                    channel: 0,
                    key: 57,
                    velocity: 0.8,
                };
                pipeline
                    .handle(Event {
                        at: at as u64,
                        kind,
                    })
                    .expect("there is room");
            }
            pipeline.process(&[], block);
        }
        let peak = sound
            .iter()
            .fold(0.0_f32, |peak, sample| peak.max(sample.abs()));
        let first = sound
            .iter()
            .position(|sample| sample.abs() > 1e-3 * peak)
            .expect("it sounds");
        1e3 * (first - at) as f64 / f64::from(rate)
    };
    (0..8)
        .map(|step| first_sound(4_000 + step * 47))
        .fold(0.0, f64::max)
}

fn name(model: &Model) -> &str {
    model
        .header()
        .card
        .name
        .split_whitespace()
        .next()
        .unwrap_or_default()
}

/// Prints the time of single blocks of a capture at 44.1 kHz.
fn evenness(model: &Model) {
    println!(
        "\ntime per block of {BLOCK} at 44.1 kHz, µs: median, 99 %, worst of the quickest of 5 runs"
    );
    for resampling in [Resampling::LowLatency, Resampling::LinearPhase] {
        let blocks = 2_000;
        let mut quickest = vec![f64::INFINITY; blocks];
        for _ in 0..5 {
            let mut pipeline = pipeline(model, 44_100, resampling, ControlSource::AudioInput);
            let input: Vec<f32> = (0..BLOCK).map(|n| 0.3 * (0.1 * n as f32).sin()).collect();
            let mut output = [0.0; BLOCK];
            for quickest in &mut quickest {
                let begun = Instant::now();
                pipeline.process(black_box(&input), &mut output);
                *quickest = quickest.min(1e6 * begun.elapsed().as_secs_f64());
            }
        }
        quickest.sort_by(f64::total_cmp);
        let [median, most, worst] =
            [blocks / 2, blocks * 99 / 100, blocks - 1].map(|rank| quickest[rank]);
        println!("  {resampling:?}: {median:.1}, {most:.1}, {worst:.1}");
    }
}
