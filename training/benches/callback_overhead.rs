//! A step of a small capture without callbacks, and each callback alone with the report of such a
//! step. The sum of the default callbacks is to be under 1 % of the step.

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use ondes_training::bench::{capture_trainer, pair};
use ondes_training::trainer::callback::{Callback, StepReport};
use ondes_training::trainer::early_stopping::EarlyStopping;
use ondes_training::trainer::metrics::MetricsLog;
use ondes_training::trainer::progress::ProgressDisplay;
use ondes_training::trainer::tensorboard::TensorBoard;
use ondes_training::trainer::training_config::TrainingConfig;
use ondes_training::trainer::{Length, RunFiles, TrainerOptions};

fn callbacks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("callback");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2));
    let (pair, folder) = (pair(), tempfile::tempdir().expect("a folder"));
    let mut trainer = capture_trainer("lstm-16", 1, &pair).expect("a trainer");
    group.bench_function("step without callbacks", |bencher| {
        bencher.iter(|| trainer.advance().expect("a step"))
    });
    let log_every = 10;
    let files = RunFiles {
        checkpoint: folder.path().join("checkpoint.safetensors"),
        metrics: folder.path().join("metrics.jsonl"),
    };
    let options = TrainerOptions::new(
        Length::Steps(1),
        TrainingConfig {
            log_every,
            ..TrainingConfig::plain(1e-3)
        },
        files,
    );
    let tensorboard = folder.path().join("tensorboard");
    let all: [(&str, Box<dyn Callback>); 4] = [
        (
            "default: progress",
            Box::new(ProgressDisplay::new(0, 1_000_000, Some((100, 1.0))).expect("a display")),
        ),
        (
            "default: metrics.jsonl",
            Box::new(MetricsLog::new(0, &options).expect("a log")),
        ),
        (
            "default: early stopping",
            Box::new(EarlyStopping::new(Some(10), None, 0)),
        ),
        (
            "--tensorboard",
            Box::new(TensorBoard::new(&tensorboard, log_every).expect("event files")),
        ),
    ];
    for (name, mut callback) in all {
        let mut step = 0;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                step += 1;
                let report = StepReport {
                    step,
                    loss: 0.1,
                    terms: &[("esr", 0.1)],
                    gradient: 1.0,
                    rate: 1e-3,
                    mean_loss: 0.1,
                    seconds: 0.005,
                    data_seconds: 0.0,
                    rows: 16,
                    loader: &|| None,
                    parameters: trainer.parameters(),
                };
                callback.step_done(&report).expect("it is written");
            });
        });
        callback.finished().expect("it is written");
    }
}

criterion_group!(benches, callbacks);
criterion_main!(benches);
