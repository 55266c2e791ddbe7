//! Overhead of sessions beside the model, and the gain of playing one model for several sessions as
//! a batch. 48 kHz.

use std::path::PathBuf;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ondes_engine::instrument::EventKind;
use ondes_engine::model::{Model, file};
use ondes_engine::pipeline::{
    Action, CommandQueueFull, PipelineOptions, Playable, ProcessRequest, SessionStart,
    TimedCommand, build_playable,
};
use ondes_engine::realtime::{
    BlockCommand, Driver, LoadError, LoadStatus, ModelFactory, Session, SessionController, Setup,
};

const SAMPLE_RATE: u32 = 48_000;
const BLOCK: usize = 64;
const SESSIONS: usize = 8;

fn bowed() -> Arc<Model> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo");
    let path = PathBuf::from(package).join("../assets/models/bowed.ondes");
    Arc::new(file::read(&path).expect("the bundled model is valid"))
}

/// Model that copies its input, so that only the overhead is measured.
struct CopyModel;

impl Playable for CopyModel {
    fn capacity(&self) -> usize {
        SESSIONS
    }
    fn latency_samples(&self) -> usize {
        0
    }
    fn tail_samples(&self) -> usize {
        0
    }
    fn open(&mut self, _slot: usize, _start: &SessionStart) {}
    fn handle(&mut self, _slot: usize, _command: TimedCommand) -> Result<(), CommandQueueFull> {
        Ok(())
    }
    fn process(&mut self, requests: &mut [ProcessRequest<'_>]) {
        for request in requests {
            request.output[0].copy_from_slice(request.input[0]);
        }
    }
}

impl ModelFactory for CopyModel {
    fn build(&self, _sample_rate: u32, _sessions: usize) -> Result<Box<dyn Playable>, LoadError> {
        Ok(Box::new(Self))
    }
    fn sharing_key(&self) -> Option<String> {
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
}

fn session(factory: Arc<dyn ModelFactory>, driver: Driver) -> (SessionController, Session) {
    let controller = SessionController::new();
    controller.set_driver(driver);
    controller.load(Box::new(move || Ok(factory)), &[]);
    while controller.status() == LoadStatus::Loading {
        std::thread::yield_now();
    }
    let session = controller
        .activate(Setup {
            sample_rate: SAMPLE_RATE,
            max_block: BLOCK,
        })
        .expect("a valid setup");
    (controller, session)
}

/// Measures one block of a stereo session with a pitch bend. One per cent of a core is 13.3 µs per
/// block.
fn overhead(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("overhead");
    group.throughput(Throughput::Elements(BLOCK as u64));
    let input = [0.1_f32; BLOCK];
    let (mut left, mut right) = ([0.0; BLOCK], [0.0; BLOCK]);
    let commands = [BlockCommand {
        offset: 7,
        action: Action::Play(EventKind::Bend {
            channel: 0,
            semitones: 0.1,
        }),
    }];
    for driver in [Driver::Inline, Driver::Worker { latency: None }] {
        let (_controller, mut session) = session(Arc::new(CopyModel), driver);
        let name = if driver == Driver::Inline {
            "inline"
        } else {
            "worker, in the callback"
        };
        group.bench_function(BenchmarkId::new("no model", name), |bencher| {
            bencher.iter(|| {
                session.process(&commands, &[&input, &input], &mut [&mut left, &mut right])
            });
        });
    }
    group.finish();
}

/// Returns a model with a held note in each session.
fn with_held_notes(model: &Model, sessions: usize) -> Box<dyn Playable> {
    let options = PipelineOptions {
        sample_rate: SAMPLE_RATE,
        sessions,
        ..PipelineOptions::default()
    };
    let mut playable = build_playable(model, &options).expect("a playable model");
    for slot in 0..sessions {
        let kind = EventKind::NoteOn {
            channel: 0,
            key: 50 + 3 * slot as u8,
            velocity: 0.8,
        };
        playable
            .handle(
                slot,
                TimedCommand {
                    at: 0,
                    action: Action::Play(kind),
                },
            )
            .expect("room in the queue");
    }
    playable
}

/// Measures one hop of eight sessions with a held note each, separately and as one batch.
fn batching(criterion: &mut Criterion) {
    let model = bowed();
    let mut group = criterion.benchmark_group("eight sessions");
    const HOP: usize = 192;
    group.throughput(Throughput::Elements((SESSIONS * HOP) as u64));
    let mut alone: Vec<Box<dyn Playable>> =
        (0..SESSIONS).map(|_| with_held_notes(&model, 1)).collect();
    let mut outputs = [[0.0; HOP]; SESSIONS];
    group.bench_function("alone", |bencher| {
        bencher.iter(|| {
            for (playable, output) in alone.iter_mut().zip(&mut outputs) {
                playable.process(&mut [ProcessRequest::mono(0, &[], output)]);
            }
        });
    });
    let mut batch = with_held_notes(&model, SESSIONS);
    group.bench_function("together", |bencher| {
        bencher.iter(|| {
            let mut slot = 0;
            let mut requests = outputs.each_mut().map(|output| {
                slot += 1;
                ProcessRequest::mono(slot - 1, &[], output)
            });
            batch.process(&mut requests);
        });
    });
    group.finish();
}

criterion_group!(benches, overhead, batching);
criterion_main!(benches);
