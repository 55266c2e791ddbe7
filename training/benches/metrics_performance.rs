//! Writing, reading and tabulating the log of a run.

use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ondes_training::bench::{capture_trainer, pair};
use ondes_training::report::{Run, draw, table};
use ondes_training::trainer::callback::{Callback, StepReport};
use ondes_training::trainer::log_line::read;
use ondes_training::trainer::metrics::MetricsLog;
use ondes_training::trainer::parameters::Parameters;
use ondes_training::trainer::training_config::TrainingConfig;
use ondes_training::trainer::{Length, RunFiles, TrainerOptions};

const LINES: u64 = 10_000;

fn write(log: &mut MetricsLog, step: u64, parameters: &Parameters) {
    let loss = 1.0 / step as f64;
    let terms = [("stft", loss), ("esr", 0.5 * loss)];
    let report = StepReport {
        step,
        loss,
        terms: &terms,
        gradient: 1.0,
        rate: 1e-3,
        mean_loss: loss,
        seconds: 0.1,
        data_seconds: 0.0,
        rows: 8,
        loader: &|| None,
        parameters,
    };
    log.step_done(&report).expect("it is written");
}

/// Returns options with a line for each step.
fn options(path: &Path) -> TrainerOptions {
    let files = RunFiles {
        checkpoint: path.with_extension("safetensors"),
        metrics: path.to_owned(),
    };
    TrainerOptions::new(
        Length::Steps(1),
        TrainingConfig {
            log_every: 1,
            ..TrainingConfig::plain(1e-3)
        },
        files,
    )
}

fn logs(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("metrics.jsonl");
    let mut log = MetricsLog::new(0, &options(&path)).expect("a log");
    let pair = pair();
    let trainer = capture_trainer("lstm-2", 1, &pair).expect("a trainer");
    (1..=LINES).for_each(|step| write(&mut log, step, trainer.parameters()));

    let mut group = criterion.benchmark_group("metrics");
    group
        .sample_size(10)
        .throughput(Throughput::Elements(LINES));
    group.bench_function("read", |bencher| {
        bencher.iter(|| read(&path).expect("a log"))
    });
    let run = [Run::read(&path).expect("a log")];
    group.bench_function("table", |bencher| bencher.iter(|| table(&run)));
    group.bench_function("chart", |bencher| bencher.iter(|| draw(&run)));
    let mut other =
        MetricsLog::new(0, &options(&folder.path().join("other.jsonl"))).expect("a log");
    let mut step = 0;
    group.throughput(Throughput::Elements(1));
    group.bench_function("write a line", |bencher| {
        bencher.iter(|| {
            step += 1;
            write(&mut other, step, trainer.parameters());
        });
    });
}

criterion_group!(benches, logs);
criterion_main!(benches);
