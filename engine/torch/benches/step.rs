//! Measures steps of TorchScript programs by number of sessions in a batch: the table in
//! `docs/src/rave-and-torchscript.md`.
//!
//! Times are CPU times of the computing thread: the 10 % quantile of steps, taken in turn for all batch sizes.

use ondes_engine::executor::ExecutorSelection;
use ondes_engine::executor::{ExecutorOptions, MethodExecutor};
use ondes_engine::model::Model;
use ondes_engine::torch;
use ondes_tests::torchscript::models::{counter, streaming};

const SESSIONS: [usize; 4] = [1, 2, 8, 32];
const ROUNDS: usize = 200;

fn main() {
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
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
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
    let prepare = |&sessions: &usize| running.prepare(model, method, sessions, 1).expect("it runs");
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
