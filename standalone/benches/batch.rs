//! What a batch of many short recordings gains from a second job.
//!
//! With files of a quarter of a second, what is done once a file shows most, so this is where a batch is at its worst. Both
//! are measured in turn in the same run, so that what else the machine does meets both alike; the cores must be idle for
//! the ratio to mean anything.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use ondes_engine::media::{WavBits, WavWriter};

const FILES: u64 = 200;
const RATE: u32 = 48_000;
const SECONDS: f64 = 0.25;

/// A folder of short recordings of different pitches.
fn recordings() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    std::fs::create_dir(folder.path().join("in")).expect("a folder is made");
    for index in 0..FILES {
        let step = (200.0 + index as f32) / RATE as f32 * std::f32::consts::TAU;
        let sound: Vec<f32> = (0..(SECONDS * f64::from(RATE)) as u32).map(|n| 0.3 * (n as f32 * step).sin()).collect();
        let path = folder.path().join(format!("in/{index:03}.wav"));
        let mut writer = WavWriter::create(path, RATE, 1, WavBits::Int16).expect("the file is made");
        writer.write(&[sound]).expect("the sound is written");
        writer.finish().expect("the file is complete");
    }
    folder
}

/// Renders all of them and gives the time that it took.
fn render(folder: &Path, jobs: &str) -> Duration {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the package lies");
    let model = PathBuf::from(package).join("../assets/models/wind.ondes");
    let mut program = Command::new(env!("CARGO_BIN_EXE_ondes"));
    program.arg("render").arg(model).args(["--input", "in", "--out", "out", "--force", "--jobs", jobs]);
    let begun = Instant::now();
    let status = program.current_dir(folder).stdout(Stdio::null()).status().expect("the program starts");
    let elapsed = begun.elapsed();
    assert!(status.success());
    elapsed
}

fn jobs(criterion: &mut Criterion) {
    let folder = recordings();
    let total = [const { Cell::new(Duration::ZERO) }; 2];
    let both = || {
        for (jobs, total) in ["1", "2"].iter().zip(&total) {
            total.set(total.get() + render(folder.path(), jobs));
        }
    };
    let mut group = criterion.benchmark_group("batch");
    group.sampling_mode(SamplingMode::Flat).sample_size(10).throughput(Throughput::Elements(FILES));
    for (index, name) in ["jobs 1", "jobs 2"].into_iter().enumerate() {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|iterations| {
                let before = total[index].get();
                (0..iterations).for_each(|_| both());
                total[index].get() - before
            });
        });
    }
    group.finish();
    let [one, two] = total.map(|total| total.get().as_secs_f64());
    if two > 0.0 {
        println!("batch: jobs 2 is {:.2} times as fast as jobs 1", one / two);
    }
}

criterion_group!(benches, jobs);
criterion_main!(benches);
