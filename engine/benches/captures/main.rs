//! Cost of captures of common sizes: nanoseconds per sample at 48 kHz on one core, speed relative
//! to real time, and the share of the core's peak rate of multiply-adds, measured in the same run;
//! and the cost of two channels as a batch relative to one.

mod models;

use std::hint::black_box;
use std::time::Instant;

use ondes_engine::Kernels;
use ondes_engine::executor::Execute;
use ondes_engine::native::Executor;

use crate::models::MODELS;

/// Returns the peak rate of this core in multiply-adds per nanosecond.
fn peak(kernels: Kernels) -> f64 {
    let runs = 200_000;
    let mut best = f64::MAX;
    for _ in 0..20 {
        let start = Instant::now();
        let count = black_box(kernels.multiply_adds(black_box(runs)));
        best = best.min(start.elapsed().as_nanos() as f64 / count as f64);
    }
    1.0 / best
}

fn main() {
    // Arguments: numbers are block lengths, the name of a kernel variant selects it, and other
    // words select models whose names contain them.
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let is_number = |argument: &&String| argument.parse::<usize>().is_ok();
    let (numbers, names): (Vec<&String>, Vec<&String>) = arguments.iter().partition(is_number);
    let blocks: Vec<usize> = numbers
        .iter()
        .filter_map(|number| number.parse().ok())
        .collect();
    let blocks = if blocks.is_empty() {
        vec![32, 64, 128, 512]
    } else {
        blocks
    };
    let named = Kernels::available()
        .into_iter()
        .find(|kernels| names.iter().any(|&name| name == kernels.name()));
    let kernels = named.unwrap_or(Kernels::detect());
    let picked: Vec<&String> = names
        .into_iter()
        .filter(|&name| name != kernels.name())
        .collect();
    let peak = peak(kernels);
    println!(
        "one core: {:.0} GFLOPS of multiply-adds, kernels {}",
        2.0 * peak,
        kernels.name()
    );
    println!(
        "{:>12} {:>8} {:>6} {:>9} {:>9} {:>9} {:>7} {:>7}",
        "model", "weights", "block", "ns/sample", "worst", "x real", "peak", "stereo"
    );
    for (name, make) in MODELS
        .into_iter()
        .filter(|(name, _)| picked.is_empty() || picked.iter().any(|&part| name.contains(part)))
    {
        let model = make();
        let work = model
            .method("forward")
            .expect("it has one")
            .multiply_adds_per_second(1);
        for &block in &blocks {
            let executor = |streams| {
                Executor::new(&model, "forward", kernels, streams, block).expect("it fits")
            };
            let mut executors = [executor(1), executor(2)];
            let mut times = [Vec::new(), Vec::new()];
            let mut phase = 0.0_f32;
            for _ in 0..48_000 * 4 / block {
                let mut input = vec![0.0; block];
                for x in &mut input {
                    phase = (phase + 0.011) % 1.0;
                    *x = 0.5 * (phase * std::f32::consts::TAU).sin();
                }
                for (streams, (executor, times)) in (1..).zip(executors.iter_mut().zip(&mut times))
                {
                    executor.begin(&[0, 1][..streams], block);
                    executor
                        .input(0)
                        .chunks_exact_mut(block)
                        .for_each(|row| row.copy_from_slice(&input));
                    let start = Instant::now();
                    executor.run();
                    times.push(start.elapsed().as_nanos() as f64 / block as f64);
                    black_box(executor.output(0));
                }
            }
            let [(median, worst), (both, _)] = times.map(|mut times| {
                let mut times = times.split_off(times.len() / 10);
                times.sort_by(f64::total_cmp);
                (times[times.len() / 2], times[times.len() - 1])
            });
            println!(
                "{name:>12} {:>8} {block:>6} {median:>9.1} {worst:>9.1} {:>9.0} {:>6.0}% {:>7.2}",
                model.parameters(),
                1e9 / 48_000.0 / median,
                100.0 * work / median / peak,
                both / median
            );
        }
    }
}
