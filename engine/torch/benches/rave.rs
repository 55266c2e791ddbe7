//! Compares a RAVE v2 with 31.5 million random weights on the native executor and on libtorch:
//! `forward` with blocks of 2048, on one thread, one block of each in turn. Also runs the graph
//! with compressed weights and with half of the channels. Prints the fastest and the median block
//! of each; `-- --nodes` adds the native time of each layer. Then plays it in host blocks of 128,
//! whole hops at once and spread over the blocks.
//!
//! Then compares BRAVE, whose own blocks have 128 samples, in blocks of 128 to 2048 samples; the
//! native executor runs each as one step, as single blocks, and with weights in half precision.

use std::hint::black_box;
use std::time::Instant;

use ondes_engine::Kernels;
use ondes_engine::executor::Execute;
use ondes_engine::model::compression::{Scaling, WeightPrecision};
use ondes_engine::model::import::rave::import;
use ondes_engine::model::{Model, file};
use ondes_engine::native::Executor;
use ondes_engine::pipeline::{PipelineOptions, ProcessRequest, build_playable};
use ondes_kernels::FlushToZero;
use ondes_tests::rave::Recipe;
use ondes_tests::seeded_rng;
use rand::RngExt;
use tch::{CModule, Tensor};

const BLOCK: usize = 2048;
/// Samples of a host's block.
const HOST_BLOCK: usize = 128;
/// Blocks that are measured, and blocks before them that are not.
const BLOCKS: usize = 150;
const WARM_UP: usize = 10;
const SAMPLE_RATE: f64 = 44_100.0;

/// A variant of the model on the native executor.
struct Native {
    name: &'static str,
    executor: Executor,
    file_bytes: usize,
    seconds: Vec<f64>,
    /// Sums of squares of the difference from the f32 model and of that model; `None` for another
    /// model.
    error: Option<[f64; 2]>,
}

impl Native {
    fn new(name: &'static str, model: &Model, is_same: bool) -> Self {
        let executor =
            Executor::new(model, "forward", Kernels::detect(), 1, 1).expect("it is not too long");
        let file_bytes = file::serialize(model).expect("it can be laid out").len();
        Self {
            name,
            executor,
            file_bytes,
            seconds: Vec::new(),
            error: is_same.then_some([0.0; 2]),
        }
    }

    /// Runs a block and returns the output.
    fn play(&mut self, input: &[f32]) -> Vec<f32> {
        let started = Instant::now();
        self.executor.begin(&[0], 1);
        self.executor.input(0).copy_from_slice(input);
        self.executor.run();
        black_box(self.executor.output(0));
        self.seconds.push(started.elapsed().as_secs_f64());
        self.executor.output(0).to_vec()
    }

    fn compare(&mut self, own: &[f32], whole: &[f32]) {
        let square = |x: f32| f64::from(x).powi(2);
        if let Some([error, signal]) = &mut self.error {
            *error += own
                .iter()
                .zip(whole)
                .map(|(a, b)| square(a - b))
                .sum::<f64>();
            *signal += whole.iter().copied().map(square).sum::<f64>();
        }
    }
}

fn main() {
    tch::set_num_threads(1);
    tch::set_num_interop_threads(1);
    let _no_gradients = tch::no_grad_guard();
    let _flush = FlushToZero::on();
    v2();
    brave();
}

/// Compares BRAVE in blocks of several lengths.
fn brave() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("brave.ts");
    Recipe::brave().export(1).0.save(&path);
    let model = import(&path, Some("BRAVE"))
        .expect("it is understood")
        .model;
    let halves = model
        .compressed(Scaling::default(), |_| WeightPrecision::F16)
        .expect("its weights are small");
    let libtorch = CModule::load(&path).expect("libtorch reads it");
    let own = model.method("forward").expect("it is there").block;
    for block in [128, 512, 1024, 2048] {
        let executor = |model| {
            Executor::new(model, "forward", Kernels::detect(), 1, block / own).expect("it fits")
        };
        let [mut whole, mut halves] = [&model, &halves].map(executor);
        let mut single = executor(&model);
        let input: Vec<f32> = (0..block).map(|n| 0.3 * (n as f32 * 0.07).sin()).collect();
        let tensor = Tensor::from_slice(&input).view([1, 1, block as i64]);
        let mut times = [const { Vec::new() }; 4];
        for _ in 0..WARM_UP + BLOCKS {
            let mut time = |which: usize, work: &mut dyn FnMut()| {
                let started = Instant::now();
                work();
                times[which].push(started.elapsed().as_secs_f64());
            };
            time(0, &mut || step(&mut whole, &input, own));
            time(1, &mut || {
                input
                    .chunks(own)
                    .for_each(|input| step(&mut single, input, own))
            });
            time(2, &mut || step(&mut halves, &input, own));
            time(3, &mut || {
                drop(black_box(
                    libtorch
                        .forward_ts(&[tensor.shallow_clone()])
                        .expect("it runs"),
                ));
            });
        }
        println!(
            "BRAVE, blocks of {block}, {:.1} MB",
            1e-6 * whole.bytes() as f64
        );
        let names = [
            "one step",
            "single blocks",
            "one step, f16",
            "libtorch TorchScript",
        ];
        let [_, _, _, theirs] = times.each_mut().map(|times| {
            times.drain(..WARM_UP);
            times.sort_by(f64::total_cmp);
            times[0]
        });
        for (name, times) in names.iter().zip(&times) {
            let (fastest, median) = (times[0], times[times.len() / 2]);
            let ratio = theirs / fastest;
            println!(
                "{name:30} {:8.3} ms fastest, {:8.3} ms median: {ratio:6.2} x libtorch",
                fastest * 1e3,
                median * 1e3
            );
        }
    }
}

/// Runs whole blocks of `own` samples as one step.
fn step(executor: &mut Executor, input: &[f32], own: usize) {
    executor.begin(&[0], input.len() / own);
    executor.input(0).copy_from_slice(input);
    executor.run();
    black_box(executor.output(0));
}

/// Compares RAVE v2.
fn v2() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("v2.ts");
    Recipe::v2().export(1).0.save(&path);
    let model = import(&path, Some("RAVE v2"))
        .expect("it is understood")
        .model;
    let compressed = |precision| {
        model
            .compressed(Scaling::default(), |_| precision)
            .expect("its weights have scales")
    };
    let narrow = folder.path().join("half.ts");
    Recipe {
        capacity: Recipe::v2().capacity / 2,
        ..Recipe::v2()
    }
    .export(1)
    .0
    .save(&narrow);
    let narrow = import(&narrow, Some("half of the channels"))
        .expect("it is understood")
        .model;
    let mut natives = [
        Native::new("native, f32", &model, false),
        Native::new("native, f16", &compressed(WeightPrecision::F16), true),
        Native::new(
            "native, int8 computed in f32",
            &compressed(WeightPrecision::Stored8),
            true,
        ),
        Native::new(
            "native, int8",
            &compressed(WeightPrecision::Computed8),
            true,
        ),
        Native::new("native, half of the channels", &narrow, false),
    ];
    let libtorch = CModule::load(&path).expect("libtorch reads it");
    let mut random = seeded_rng(1);
    let mut theirs = Vec::new();
    for _ in 0..WARM_UP + BLOCKS {
        let input: Vec<f32> = (0..BLOCK).map(|_| random.random_range(-0.5..0.5)).collect();
        let [whole, others @ ..] = &mut natives;
        let sound = whole.play(&input);
        for native in others {
            let own = native.play(&input);
            native.compare(&own, &sound);
        }
        let tensor = Tensor::from_slice(&input).view([1, 1, BLOCK as i64]);
        let started = Instant::now();
        black_box(&libtorch.forward_ts(&[tensor]).expect("it runs"));
        theirs.push(started.elapsed().as_secs_f64());
    }
    let mut fastest = Vec::new();
    for native in &mut natives {
        let memory = 1e-6 * native.executor.bytes() as f64;
        fastest.push(report(native.name, &mut native.seconds));
        let file = 1e-6 * native.file_bytes as f64;
        let error = native
            .error
            .map(|[error, signal]| format!(", error {:.1e} of the signal", error / signal));
        println!(
            "{:30} file {file:.1} MB, memory {memory:.1} MB{}",
            "",
            error.unwrap_or_default()
        );
    }
    let theirs = report("libtorch TorchScript", &mut theirs);
    println!(
        "native is {:.2} times as fast, by the fastest block; {:.2} by the median",
        theirs[0] / fastest[0][0],
        theirs[1] / fastest[0][1]
    );
    if std::env::args().any(|argument| argument == "--nodes") {
        nodes(&mut natives[0].executor);
    }
    in_callbacks("f32", &model);
    in_callbacks("int8", &compressed(WeightPrecision::Computed8));
}

/// Prints which share of a host block's time the blocks take, and how many are late.
fn in_callbacks(name: &str, model: &Model) {
    for spread in [false, true] {
        let options = PipelineOptions {
            sample_rate: SAMPLE_RATE as u32,
            spread,
            ..PipelineOptions::default()
        };
        let mut playable = build_playable(model, &options).expect("it plays");
        let (input, mut output) = ([0.1; HOST_BLOCK], [0.0; HOST_BLOCK]);
        let mut shares = Vec::new();
        for _ in 0..(WARM_UP + BLOCKS) * BLOCK / HOST_BLOCK {
            let started = Instant::now();
            playable.process(&mut [ProcessRequest::mono(0, &input, &mut output)]);
            shares.push(100.0 * started.elapsed().as_secs_f64() * SAMPLE_RATE / HOST_BLOCK as f64);
        }
        shares.drain(..WARM_UP * BLOCK / HOST_BLOCK);
        let late = shares.iter().filter(|share| **share > 100.0).count();
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        shares.sort_by(f64::total_cmp);
        println!(
            "{name}, blocks of {HOST_BLOCK}, {}: mean {mean:.0} %, 99th percentile {:.0} %, slowest {:.0} %, {late} of {} late",
            if spread { "spread" } else { "at once" },
            shares[shares.len() * 99 / 100],
            shares[shares.len() - 1],
            shares.len()
        );
    }
}

/// Prints and returns the fastest and the median block in seconds.
fn report(name: &str, times: &mut Vec<f64>) -> [f64; 2] {
    times.drain(..WARM_UP);
    times.sort_by(f64::total_cmp);
    let figures = [times[0], times[times.len() / 2]];
    let [fastest, median] = figures.map(|seconds| seconds * 1e3);
    let realtime = BLOCK as f64 / SAMPLE_RATE / figures[0];
    println!(
        "{name:30} {fastest:8.2} ms fastest, {median:8.2} ms median: {realtime:6.1} x real time"
    );
    figures
}

/// Prints the fastest time of each layer, the slowest layer first.
fn nodes(native: &mut Executor) {
    let names: Vec<String> = native.layers().map(str::to_owned).collect();
    let mut fastest = vec![f64::INFINITY; names.len()];
    for _ in 0..BLOCKS {
        native.begin(&[0], 1);
        for (index, fastest) in fastest.iter_mut().enumerate() {
            let started = Instant::now();
            native.run_layer(index);
            *fastest = fastest.min(started.elapsed().as_secs_f64());
        }
    }
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by(|&a, &b| fastest[b].total_cmp(&fastest[a]));
    let whole: f64 = fastest.iter().sum();
    for index in order.into_iter().take(60) {
        println!(
            "{:8.1} us {:5.1} % {}",
            fastest[index] * 1e6,
            100.0 * fastest[index] / whole,
            names[index]
        );
    }
}
