//! What real time costs besides the model, and what sessions save by playing one model together. 48 kHz.

use std::path::PathBuf;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ondes_engine::instrument::EventKind;
use ondes_engine::model::{Model, file};
use ondes_engine::pipeline::{Action, TimedCommand, CommandQueueFull, Ensemble, PipelineOptions, Playable, SessionStart, ProcessRequest};
use ondes_engine::realtime::{BlockCommand, Driver, ModelFactory, SessionController, Session, Setup, Status};

const SAMPLE_RATE: u32 = 48_000;
const BLOCK: usize = 64;
const SESSIONS: usize = 8;

fn bowed() -> Arc<Model> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the package lies");
    let path = PathBuf::from(package).join("../assets/models/bowed.ondes");
    Arc::new(file::read(&path).expect("the bundled model is whole"))
}

/// A model that costs nothing: what is left is the engine.
struct Nothing;

impl Playable for Nothing {
    fn capacity(&self) -> usize {
        SESSIONS
    }
    fn latency_samples(&self) -> usize {
        0
    }
    fn tail_samples(&self) -> usize {
        0
    }
    fn open(&mut self, _seat: usize, _start: &SessionStart) {}
    fn handle(&mut self, _seat: usize, _cue: TimedCommand) -> Result<(), CommandQueueFull> {
        Ok(())
    }
    fn process(&mut self, turns: &mut [ProcessRequest<'_>]) {
        for turn in turns {
            turn.output.copy_from_slice(turn.input);
        }
    }
}

impl ModelFactory for Nothing {
    fn make(&self, _sample_rate: u32, _seats: usize) -> Result<Box<dyn Playable>, String> {
        Ok(Box::new(Self))
    }
    fn name(&self) -> Option<String> {
        None
    }
    fn uses_audio_input(&self) -> bool {
        true
    }
    fn start(&self) -> SessionStart {
        SessionStart::default()
    }
    fn worst_case_load(&self) -> Vec<Action> {
        Vec::new()
    }
    fn measured_latency(&self, _sample_rate: u32) -> Option<usize> {
        Some(0)
    }
}

fn session(maker: Arc<dyn ModelFactory>, driver: Driver) -> (SessionController, Session) {
    let remote = SessionController::new();
    remote.set_driver(driver);
    remote.load(Box::new(move || Ok(maker)), &[]);
    while remote.status() == Status::Loading {
        std::thread::yield_now();
    }
    let session = remote.activate(Setup { sample_rate: SAMPLE_RATE, max_block: BLOCK }).expect("a sound setup");
    (remote, session)
}

/// One block of a session in stereo, with a note expression: of the model that costs nothing, then of a real one, which is
/// also stepped alone. One per cent of a core is 13.3 µs a block.
fn overhead(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("overhead");
    group.throughput(Throughput::Elements(BLOCK as u64));
    let input = [0.1_f32; BLOCK];
    let (mut left, mut right) = ([0.0; BLOCK], [0.0; BLOCK]);
    let cues = [BlockCommand { offset: 7, action: Action::Play(EventKind::Bend { channel: 0, semitones: 0.1 }) }];
    for driver in [Driver::Inline, Driver::Worker { latency: None }] {
        let (_remote, mut session) = session(Arc::new(Nothing), driver);
        let name = if driver == Driver::Inline { "inline" } else { "worker, in the callback" };
        group.bench_function(BenchmarkId::new("no model", name), |bencher| {
            bencher.iter(|| session.process(&cues, &[&input, &input], &mut [&mut left, &mut right]));
        });
    }
    group.finish();
}

/// A model with a note held in each of so many seats.
fn holding(model: &Model, sessions: usize) -> Ensemble {
    let options = PipelineOptions { sample_rate: SAMPLE_RATE, sessions, ..PipelineOptions::default() };
    let mut ensemble = Ensemble::new(model, &options).expect("it plays");
    for slot in 0..sessions {
        let kind = EventKind::NoteOn { channel: 0, key: 50 + 3 * slot as u8, velocity: 0.8 };
        ensemble.handle(slot, TimedCommand { at: 0, action: Action::Play(kind) }).expect("there is room");
    }
    ensemble
}

/// Eight sessions that hold a note each, one hop at a time: each alone, and all as one batch.
fn together(criterion: &mut Criterion) {
    let model = bowed();
    let mut group = criterion.benchmark_group("eight sessions");
    const HOP: usize = 192;
    group.throughput(Throughput::Elements((SESSIONS * HOP) as u64));
    let mut alone: Vec<Ensemble> = (0..SESSIONS).map(|_| holding(&model, 1)).collect();
    let mut outputs = [[0.0; HOP]; SESSIONS];
    group.bench_function("alone", |bencher| {
        bencher.iter(|| {
            for (ensemble, output) in alone.iter_mut().zip(&mut outputs) {
                ensemble.process(&mut [ProcessRequest { slot: 0, input: &[], output, mute: false }]);
            }
        });
    });
    let mut batch = holding(&model, SESSIONS);
    group.bench_function("together", |bencher| {
        bencher.iter(|| {
            let mut slot = 0;
            let mut turns = outputs.each_mut().map(|output| {
                slot += 1;
                ProcessRequest { slot: slot - 1, input: &[], output, mute: false }
            });
            batch.process(&mut turns);
        });
    });
    group.finish();
}

criterion_group!(benches, overhead, together);
criterion_main!(benches);
