//! Measures steps of TorchScript programs by number of sessions in a batch, and what a process of
//! their own adds: the tables in `docs/src/rave-and-torchscript.md`.
//!
//! Times of the first are CPU times of the computing thread: the 10 % quantile of steps, taken in
//! turn for all batch sizes. Those of the second are times on the clock, taken in turn.

use std::time::Instant;

use ondes_engine::executor::ExecutorSelection;
use ondes_engine::executor::{Device, Precision};
use ondes_engine::executor::{ExecutorOptions, MethodExecutor};
use ondes_engine::model::Model;
use ondes_engine::torch::{self, Library, MethodSource, PrepareRequest, PreparedMethod, process};
use ondes_tests::torchscript::Class;
use ondes_tests::torchscript::models::{counter, streaming};

const SESSIONS: [usize; 4] = [1, 2, 8, 32];
const ROUNDS: usize = 200;

/// Blocks in samples and steps of each for the comparison of processes.
const BLOCKS: [usize; 6] = [64, 128, 256, 512, 1_024, 2_048];
const STEPS: usize = 2_000;

fn main() {
    // Steps are then computed on this thread, whose CPU time is taken.
    // SAFETY: there are no other threads yet.
    unsafe { std::env::set_var("ONDES_PROGRAM_HOST", "none") };
    measure_batches();
    // SAFETY: as above.
    unsafe { std::env::remove_var("ONDES_PROGRAM_HOST") };
    compare_processes();
}

/// Compares the steps of a trivial program in this process with those in a process of its own.
fn compare_processes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("program.ts");
    let class = Class::default().nn("forward", [1, 1, 1, 1], &["return torch.mul(x, 0.5)"]);
    std::fs::write(&path, class.bytes()).expect("it can be written");
    let model = torch::open(&path).expect("it runs").model;
    let program = model.program().expect("it is one");
    let library = Library::get().expect("it is there");
    for block in BLOCKS {
        let mut method = model.method("forward").expect("an effect").clone();
        method.block = block;
        let request = PrepareRequest {
            hash: model.content_hash().into(),
            method,
            source: MethodSource::Program(program.calls["forward"].clone()),
            sample_rate: model.header().sample_rate,
            streams: 1,
            blocks: 1,
            device: Device::Cpu,
            precision: Precision::F32,
        };
        let mut here = library.prepare(&request, &program.bytes).expect("it runs");
        let mut there =
            process::prepare(&library, "program", &request, &program.bytes).expect("it runs");
        let (input, mut output) = (vec![0.25; block], vec![0.0; block]);
        let mut step = |method: &mut dyn PreparedMethod| {
            let begun = Instant::now();
            method
                .run(&[0], 1, &[&input], &mut [&mut output])
                .expect("it runs");
            assert_eq!(output[block - 1], 0.125);
            1e6 * begun.elapsed().as_secs_f64()
        };
        let times: Vec<(f64, f64)> = (0..STEPS)
            .map(|_| (step(&mut here), step(&mut there)))
            .collect();
        let (here, there): (Vec<f64>, Vec<f64>) = times.into_iter().unzip();
        let at = |share: f64, times: &[f64]| {
            let mut times = times.to_vec();
            times.sort_by(f64::total_cmp);
            times[(share * (STEPS - 1) as f64) as usize]
        };
        println!(
            "block {block:4}: in this process {:.0} µs (99 %: {:.0}), in its own {:.0} µs (99 %: {:.0})",
            at(0.5, &here),
            at(0.99, &here),
            at(0.5, &there),
            at(0.99, &there)
        );
    }
}

fn measure_batches() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, class) in [
        ("convolutions, 16 channels", streaming(16, 1)),
        ("convolutions, 128 channels", streaming(128, 1)),
        ("a counter, copied for each session", counter()),
    ] {
        let path = folder.path().join("program.ts");
        std::fs::write(&path, class.bytes()).expect("it can be written");
        let model = torch::open(&path).expect("it runs").model;
        println!("{name}");
        for (sessions, seconds) in SESSIONS.iter().zip(measure(&model)) {
            println!("{sessions:4} sessions: {:.3} ms a step", 1e3 * seconds);
        }
    }
}

/// Returns the CPU time of this thread in seconds.
fn busy_seconds() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is valid for writes.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(done, 0, "the system counts the time of threads");
    time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
}

/// Returns the seconds of a step for each of [`SESSIONS`].
fn measure(model: &Model) -> Vec<f64> {
    let method = model.method("forward").expect("an effect");
    let running = ExecutorOptions {
        selection: ExecutorSelection::default(),
        kernels: ondes_engine::Kernels::detect(),
        allow_fallback: false,
    };
    let prepare = |&sessions: &usize| {
        running
            .prepare(model, method, sessions, 1)
            .expect("it runs")
    };
    let mut executors: Vec<MethodExecutor> = SESSIONS.iter().map(prepare).collect();
    let mut times = vec![Vec::new(); SESSIONS.len()];
    for round in 0..ROUNDS {
        for ((executor, &sessions), times) in executors.iter_mut().zip(&SESSIONS).zip(&mut times) {
            let streams: Vec<usize> = (0..sessions).collect();
            executor.begin(&streams, 1);
            for (n, sample) in executor.input(0).iter_mut().enumerate() {
                *sample = ((n + round) as f32 * 0.1).sin();
            }
            let begun = busy_seconds();
            executor.run();
            times.push(busy_seconds() - begun);
        }
    }
    let quantile = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 10]
    };
    times.into_iter().map(quantile).collect()
}
