//! Hot paths whose instructions `cargo xtask instructions` counts. It runs this program in
//! callgrind, once per path; `--list` prints their names.
//!
//! The kernels are the AVX2 variant: valgrind knows no wider one, and every CPU of the last years
//! has it, so that the counts are the same everywhere.

#[path = "captures/models.rs"]
mod models;

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ondes_engine::Kernels;
use ondes_engine::chain::{Chain, ChainSettings, ImpulseFile};
use ondes_engine::dsp::cabinet::Cabinet;
use ondes_engine::instrument::{Event, EventKind};
use ondes_engine::model::{Model, file};
use ondes_engine::pipeline::{Action, Pipeline, PipelineOptions};
use ondes_engine::realtime::{
    BlockCommand, Driver, LoadStatus, PlayableModel, SessionController, Setup,
};

const SAMPLE_RATE: u32 = 48_000;
const BLOCK: usize = 64;
/// Blocks before those that are counted; fills delays and ends attacks.
const WARM_UP: usize = 32;
/// Blocks that are counted: as long as several steps of each model.
const COUNTED: usize = 96;

/// Names and functions.
const PATHS: [(&str, fn(Kernels)); 5] = [
    ("wavenet", |kernels| effect("standard", kernels)),
    ("lstm", |kernels| effect("lstm 1x40", kernels)),
    ("instrument", instrument),
    ("codec", codec),
    ("session", session),
];

fn asset(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../assets")
        .join(path)
}

fn bundled(name: &str) -> Model {
    file::read(&asset(&format!("models/{name}.ondes"))).expect("bundled models are valid")
}

fn options(kernels: Kernels) -> PipelineOptions {
    PipelineOptions {
        sample_rate: SAMPLE_RATE,
        kernels,
        ..PipelineOptions::default()
    }
}

fn note_on(key: u8) -> EventKind {
    EventKind::NoteOn {
        channel: 0,
        key,
        velocity: 0.8,
    }
}

fn sound() -> [f32; BLOCK] {
    std::array::from_fn(|n| 0.3 * (n as f32 * std::f32::consts::TAU / 64.0).sin())
}

/// Runs the blocks to be counted. Callgrind finds it by its name.
#[inline(never)]
fn run_counted(play_block: &mut dyn FnMut()) {
    (0..COUNTED).for_each(|_| play_block());
}

fn count(mut play_block: impl FnMut()) {
    (0..WARM_UP).for_each(|_| play_block());
    run_counted(&mut play_block);
}

fn play(model: &Model, kernels: Kernels) {
    let mut pipeline = Pipeline::new(model, &options(kernels)).expect("a playable model");
    let (input, mut output) = (sound(), [0.0; BLOCK]);
    count(|| pipeline.process(&input, black_box(&mut output)));
}

fn effect(name: &str, kernels: Kernels) {
    let (_, make) = models::MODELS
        .into_iter()
        .find(|(known, _)| *known == name)
        .expect("a model of the list");
    play(&make(), kernels);
}

fn codec(kernels: Kernels) {
    play(&bundled("strings"), kernels);
}

/// Four held notes.
fn instrument(kernels: Kernels) {
    let mut pipeline =
        Pipeline::new(&bundled("bowed"), &options(kernels)).expect("a playable model");
    for key in [50, 57, 62, 69] {
        let kind = note_on(key);
        pipeline
            .handle(Event { at: 0, kind })
            .expect("room in the queue");
    }
    let mut output = [0.0; BLOCK];
    count(|| pipeline.process(&[], black_box(&mut output)));
}

/// A note with a pitch bend per block in a stereo session, through tone, cabinet and reverb.
fn session(kernels: Kernels) {
    let setup = Setup {
        sample_rate: SAMPLE_RATE,
        max_block: BLOCK,
    };
    let model = PlayableModel::new(Arc::new(bundled("bowed")), options(kernels));
    let model = Arc::new(model.expect("a playable model"));
    let controller = SessionController::new();
    controller.set_driver(Driver::Inline);
    controller.load(Box::new(move || Ok(model)), &[]);
    while controller.status() == LoadStatus::Loading {
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut session = controller.activate(setup).expect("a valid setup");

    let mut chain = Chain::new(SAMPLE_RATE, BLOCK);
    chain.set(&ChainSettings {
        tone: [3.0, -2.0, 1.0],
        block_dc: true,
        reverb: [0.3, 1.0],
        ..ChainSettings::default()
    });
    let response = ImpulseFile::read(&asset("cabinets/4x12-closed-back.wav"));
    let response = response.expect("bundled cabinets are valid").response;
    let cabinet = Cabinet::new(&response, SAMPLE_RATE, kernels).expect("the rate is supported");
    let replaced = chain.cabinet_slot().replace(Box::new(cabinet));
    assert!(replaced.is_ok(), "a new slot is ready");
    chain.reset();

    let command = |offset, kind| BlockCommand {
        offset,
        action: Action::Play(kind),
    };
    let bend = |semitones| EventKind::Bend {
        channel: 0,
        semitones,
    };
    let (mut left, mut right) = ([0.0; BLOCK], [0.0; BLOCK]);
    session.process(
        &[command(0, note_on(57))],
        &[],
        &mut [&mut left, &mut right],
    );
    let mut semitones = 0.1;
    count(|| {
        semitones = -semitones;
        let commands = [command(7, bend(semitones)), command(40, bend(0.0))];
        session.process(&commands, &[], &mut [&mut left, &mut right]);
        let is_stereo = session.is_stereo();
        chain.process_output(&mut left, &mut right, is_stereo);
        black_box((&left, &right));
    });
}

fn main() {
    let argument = std::env::args().nth(1);
    if argument.as_deref() == Some("--list") {
        return PATHS.iter().for_each(|(name, _)| println!("{name}"));
    }
    let (_, run) = PATHS
        .into_iter()
        .find(|(name, _)| argument.as_deref() == Some(name))
        .expect("usage: instructions --list | PATH");
    let kernels = Kernels::available()
        .into_iter()
        .find(|kernels| kernels.name() == "avx2")
        .expect("counting needs a CPU with AVX2 and FMA");
    run(kernels);
}
