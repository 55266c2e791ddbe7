//! Gain of a second job for a batch of many short recordings.
//!
//! The gain of the machine itself is measured with it: two programs at once that share nothing but
//! the files.
//!
//! With files of a quarter of a second the fixed cost per file dominates, the worst case for a
//! batch. All variants run in turn in the same run, so that other load affects them alike; the
//! ratio only means something on idle cores.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use ondes_engine::media::{WavBits, WavWriter};

const FILES: u64 = 200;
const RATE: u32 = 48_000;
const SECONDS: f64 = 0.25;

/// Creates a folder of short recordings with different pitches.
fn recordings() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    std::fs::create_dir(folder.path().join("in")).expect("a folder is made");
    for index in 0..FILES {
        let step = (200.0 + index as f32) / RATE as f32 * std::f32::consts::TAU;
        let sound: Vec<f32> = (0..(SECONDS * f64::from(RATE)) as u32)
            .map(|n| 0.3 * (n as f32 * step).sin())
            .collect();
        let path = folder.path().join(format!("in/{index:03}.wav"));
        let mut writer =
            WavWriter::create(path, RATE, 1, WavBits::Int16).expect("the file is made");
        writer.write(&[sound]).expect("the sound is written");
        writer.finish().expect("the file is complete");
    }
    folder
}

/// Ways to share the work: jobs of one program, or independent programs.
const WAYS: [(&str, &[&[&str]]); 3] = [
    ("jobs 1", &[&["--jobs", "1"]]),
    ("jobs 2", &[&["--jobs", "2"]]),
    (
        "two programs",
        &[
            &["--jobs", "1", "--shard", "1/2"],
            &["--jobs", "1", "--shard", "2/2"],
        ],
    ),
];

/// Renders all recordings and returns the time taken.
fn render(folder: &Path, programs: &[&[&str]]) -> Duration {
    let package =
        std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the package lies");
    let model = PathBuf::from(package).join("../assets/models/wind.ondes");
    let begun = Instant::now();
    let start = |options: &&[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_ondes"));
        program
            .arg("render")
            .arg(&model)
            .args(["--input", "in", "--out", "out", "--force"])
            .args(*options);
        program
            .current_dir(folder)
            .stdout(Stdio::null())
            .spawn()
            .expect("the program starts")
    };
    let running: Vec<Child> = programs.iter().map(start).collect();
    for mut program in running {
        assert!(program.wait().expect("it ends").success());
    }
    begun.elapsed()
}

fn jobs(criterion: &mut Criterion) {
    let folder = recordings();
    let total = [const { Cell::new(Duration::ZERO) }; WAYS.len()];
    let all = || {
        for ((_, programs), total) in WAYS.iter().zip(&total) {
            total.set(total.get() + render(folder.path(), programs));
        }
    };
    let mut group = criterion.benchmark_group("batch");
    group
        .sampling_mode(SamplingMode::Flat)
        .sample_size(10)
        .throughput(Throughput::Elements(FILES));
    for (index, (name, _)) in WAYS.iter().enumerate() {
        group.bench_function(*name, |bencher| {
            bencher.iter_custom(|iterations| {
                let before = total[index].get();
                (0..iterations).for_each(|_| all());
                total[index].get() - before
            });
        });
    }
    group.finish();
    let [one, two, apart] = total.map(|total| total.get().as_secs_f64());
    if one > 0.0 {
        println!(
            "batch: jobs 2 takes {:.2} of the time of jobs 1; two programs take {:.2}",
            two / one,
            apart / one
        );
    }
}

criterion_group!(benches, jobs);
criterion_main!(benches);
