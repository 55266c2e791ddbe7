//! Measures the time of steps.

use std::time::{Duration, Instant};

use ondes_engine::executor::{Device, MethodExecutor, Precision};
use ondes_engine::model::Model;
use ondes_engine::realtime::histogram::Histogram;
use ondes_engine::torch;
use ondes_tests::SAMPLE_RATE;
use ondes_tests::rave::Recipe;
use ondes_tests::torchscript::models::streaming;

use crate::report::Report;
use crate::stepping::{inputs, prepare, program};

const SESSIONS: [usize; 3] = [1, 8, 64];
const HOPS: [usize; 2] = [512, 2048];
/// Maximum batch of the worker.
const BATCH: usize = 8;
/// Rounds before measuring, in which libraries compile and select algorithms.
const WARM_UP: usize = 20;
/// Minimum of rounds for the highest percentile.
const ROUNDS: usize = 20_000;

/// Measures rounds of one hop per session.
pub fn measure(device: Device, patience: Duration, report: &mut Report) -> Result<(), String> {
    report.section(
        "Latency",
        &format!(
            "Milliseconds of a round in which all sessions make one hop, in batches of up to {BATCH}, from samples in the CPU's memory to \
             samples there; at 48 kHz a hop of 512 is 10.7 ms of sound, one of 2048 is 42.7 ms. Up to {WARM_UP} rounds before are not counted."
        ),
        &["model", "hop", "sessions", "rounds", "p50", "p95", "p99", "p99.9", "worst", "p99 of the hop"],
    );
    let (convolutions, rave) = (program(&streaming(64, 1))?, rave()?);
    let models = [
        ("convolutions, 64 channels", &convolutions, Precision::F32),
        ("RAVE v2, 31.5 M weights", &rave, Precision::F32),
        ("the same in f16", &rave, Precision::F16),
        ("the same in bf16", &rave, Precision::Bf16),
    ];
    for (name, model, precision) in models {
        for hop in HOPS {
            for sessions in SESSIONS {
                // A model steps by its own block, or by several of them.
                let block = model
                    .method("forward")
                    .map_err(|fault| fault.to_string())?
                    .block;
                if hop % block == 0 {
                    rounds(
                        name,
                        model,
                        (device, precision),
                        [hop, sessions],
                        patience,
                        report,
                    )?;
                }
            }
        }
    }
    Ok(())
}

/// Returns a RAVE of the usual size with random weights.
fn rave() -> Result<Model, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("rave.ts");
    Recipe::v2().export(1).0.save(&path);
    Ok(torch::open(&path).map_err(|error| error.to_string())?.model)
}

fn rounds(
    name: &str,
    model: &Model,
    there: (Device, Precision),
    [hop, sessions]: [usize; 2],
    patience: Duration,
    report: &mut Report,
) -> Result<(), String> {
    let method = model.method("forward").map_err(|fault| fault.to_string())?;
    let blocks = hop / method.block;
    let mut batches: Vec<(MethodExecutor, Vec<usize>)> = Vec::new();
    for first in (0..sessions).step_by(BATCH) {
        let count = BATCH.min(sessions - first);
        let mut executor = prepare(model, "forward", Some(there), count, blocks)?;
        let streams: Vec<usize> = (0..count).collect();
        executor.begin(&streams, blocks);
        for (port, values) in inputs(method, first, blocks * count)
            .into_iter()
            .enumerate()
        {
            executor.input(port).copy_from_slice(&values);
        }
        batches.push((executor, streams));
    }
    let histogram = Histogram::new();
    let mut since = Instant::now();
    let mut warm = false;
    for round in 0..WARM_UP + ROUNDS {
        if !warm && (round == WARM_UP || round > 1 && since.elapsed() > patience) {
            warm = true;
            histogram.reset();
            since = Instant::now();
        }
        let begun = Instant::now();
        for (executor, streams) in &mut batches {
            executor.begin(streams, blocks);
            executor.run();
        }
        histogram.record(begun.elapsed());
        if warm && since.elapsed() > patience {
            break;
        }
    }
    if let Some((executor, _)) = batches
        .iter()
        .find(|(executor, _)| !executor.name().contains(&there.0.to_string()))
    {
        return Err(format!("{name}: {}", executor.name()));
    }
    let seen = histogram.percentiles();
    let ms = |duration: Duration| format!("{:.2}", 1e3 * duration.as_secs_f64());
    let share = seen.p99.as_secs_f64() * f64::from(SAMPLE_RATE) / hop as f64;
    let figures = [seen.p50, seen.p95, seen.p99, seen.p999, seen.worst].map(ms);
    let facts = [
        name.to_owned(),
        hop.to_string(),
        sessions.to_string(),
        seen.count.to_string(),
    ];
    report.row(
        &[
            &facts[..],
            &figures[..],
            &[format!("{:.0} %", 100.0 * share)][..],
        ]
        .concat(),
    );
    Ok(())
}
