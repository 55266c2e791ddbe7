//! Cost of a bundled instrument: in total, by voices and by stages. Throughput is in samples at 48
//! kHz.

use std::path::PathBuf;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ondes_engine::Kernels;
use ondes_engine::executor::Execute;
use ondes_engine::instrument::{Event, EventKind, VoiceFrame, Voices};
use ondes_engine::model::{Model, file};
use ondes_engine::native::Executor;
use ondes_engine::pipeline::{ControlSource, Pipeline, PipelineOptions};

const BLOCK: usize = 256;

fn bowed() -> Model {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo");
    let path = PathBuf::from(package).join("../assets/models/bowed.ondes");
    file::read(&path).expect("the bundled model is valid")
}

/// Returns a pipeline with `notes` held notes.
fn with_notes(model: &Model, notes: u8, kernels: Kernels) -> Pipeline {
    let options = PipelineOptions {
        kernels,
        voices: Some(notes.into()),
        ..PipelineOptions::default()
    };
    let mut pipeline = Pipeline::new(model, &options).expect("a playable model");
    for note in 0..notes {
        let kind = EventKind::NoteOn {
            channel: 0,
            key: 50 + 3 * note,
            velocity: 0.8,
        };
        pipeline
            .handle(Event { at: 0, kind })
            .expect("room in the queue");
    }
    pipeline
}

/// Measures control, network, synthesis and room in blocks of 256 samples, with the scalar and the
/// fastest kernels.
fn voices(criterion: &mut Criterion) {
    let model = bowed();
    let mut group = criterion.benchmark_group("instrument");
    group.throughput(Throughput::Elements(BLOCK as u64));
    for kernels in [Kernels::scalar(), Kernels::detect()] {
        for notes in [1, 8] {
            let mut pipeline = with_notes(&model, notes, kernels);
            let mut block = [0.0; BLOCK];
            let id = BenchmarkId::new(kernels.name(), format!("{notes} voices"));
            group.bench_function(id, |bencher| {
                bencher.iter(|| pipeline.process(&[], &mut block))
            });
        }
    }
    let options = PipelineOptions {
        source: ControlSource::AudioInput,
        ..PipelineOptions::default()
    };
    let mut pipeline = Pipeline::new(&model, &options).expect("a playable model");
    let tone: Vec<f32> = (0..48_000)
        .map(|n| 0.3 * (n as f32 * 0.045).sin())
        .collect();
    let mut position = 0;
    let mut block = [0.0; BLOCK];
    group.bench_function(
        BenchmarkId::new(Kernels::detect().name(), "controlled by audio"),
        |bencher| {
            bencher.iter(|| {
                pipeline.process(&tone[position..position + BLOCK], &mut block);
                position = (position + BLOCK) % (tone.len() - BLOCK);
            });
        },
    );
    group.finish();
}

/// Measures one hop of one voice by stages.
fn stages(criterion: &mut Criterion) {
    let model = bowed();
    let kernels = Kernels::detect();
    let method = model.method("synth").expect("an instrument");
    let hop = method.block;
    let mut group = criterion.benchmark_group("stage");
    group.throughput(Throughput::Elements(hop as u64));

    let performance = model.header().performance.expect("an instrument");
    let mut voices = Voices::new(&performance, 8, 48_000.0, hop as u32, 0);
    let kind = EventKind::NoteOn {
        channel: 0,
        key: 57,
        velocity: 0.8,
    };
    voices
        .handle(&Event { at: 0, kind })
        .expect("room in the queue");
    let mut frames = vec![VoiceFrame::SILENT; voices.slots()];
    let mut at = 0;
    group.bench_function("control", |bencher| {
        bencher.iter(|| {
            at += hop as u64;
            voices.frame(at, &mut frames)
        });
    });

    let mut synth =
        Executor::new(&model, "synth", kernels, 1, 1).expect("the model has this method");
    synth.begin(&[0], 1);
    for (port, value) in [57.0, -30.0, 1.0].into_iter().enumerate() {
        synth.input(port).fill(value);
    }
    synth.run();
    let layers: Vec<String> = synth.layers().map(String::from).collect();
    let stage_of = |layer: &str| match layer {
        "harmonics" => "oscillator",
        "air" => "noise",
        _ => "network",
    };
    for stage in ["network", "oscillator", "noise"] {
        let own: Vec<usize> = (0..layers.len())
            .filter(|&layer| stage_of(&layers[layer]) == stage)
            .collect();
        group.bench_function(stage, |bencher| {
            bencher.iter(|| own.iter().for_each(|&layer| synth.run_layer(layer)))
        });
    }

    let mut room = Executor::new(&model, "room", kernels, 1, 1).expect("the model has this method");
    room.begin(&[0], 1);
    group.bench_function("room", |bencher| {
        bencher.iter(|| {
            room.input(0).fill(0.1);
            room.run();
        });
    });
    group.finish();
}

criterion_group!(benches, voices, stages);
criterion_main!(benches);
