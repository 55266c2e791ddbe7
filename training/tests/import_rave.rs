//! Imported RAVE exports compute what libtorch computes, given the same noise.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use ondes_engine::Kernels;
use ondes_engine::dsp::level::peak;
use ondes_engine::executor::Execute;
use ondes_engine::model::import::rave::import;
use ondes_engine::model::{Distribution, Model, Op, Port};
use ondes_engine::native::Executor;
use ondes_engine::ops::{CodeSum, Noise};
use ondes_engine::sync::lock;
use ondes_tests::rave::{Generation, Recipe};
use ondes_tests::{random_splits, seeded_rng};
use rand::RngExt;
use tch::{CModule, Device, Kind, Tensor};

/// Writes an export; returns its folder, its path, and the latencies of `encode` and `decode`.
fn exported(recipe: &Recipe) -> (tempfile::TempDir, PathBuf, [usize; 2]) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.ts");
    let (module, late) = recipe.export(1);
    module.save(&path);
    (folder, path, late)
}

/// Replaces the noise sources of a model by input ports, so that libtorch's noise can be fed in.
fn with_noise_ports(model: &Model) -> Model {
    let mut header = model.header().clone();
    for method in &mut header.methods {
        let shapes = method.infer().expect("a method of a model fits");
        let mut ports = Vec::new();
        for (node, shape) in method
            .nodes
            .iter()
            .zip(&shapes.values[method.inputs.len()..])
        {
            if matches!(node.op, Op::Noise(_)) {
                ports.push(Port {
                    name: node.name.clone(),
                    channels: shape.channels,
                    ratio: shape.ratio,
                });
            }
        }
        method.nodes.retain(|node| !matches!(node.op, Op::Noise(_)));
        method.inputs.extend(ports);
    }
    Model::new(header, model.weights().clone()).expect("it still fits")
}

/// Converts `[1, channels, frames]` to `[frame][channel]`.
fn frames(tensor: &Tensor) -> Vec<f32> {
    let flat = tensor.transpose(1, 2).contiguous().view(-1);
    Vec::<f32>::try_from(&flat).expect("a flat tensor")
}

/// Runs a method with the native executor in steps of several blocks; inputs are
/// `[frame][channel]`.
fn native(model: &Model, method: &str, inputs: &[Vec<f32>], steps: &[usize]) -> Vec<f32> {
    let layout = model.method(method).expect("a method").clone();
    let most = steps.iter().copied().max().unwrap_or(1);
    let mut executor =
        Executor::new(model, method, Kernels::detect(), 1, most).expect("a runnable method");
    let mut output = Vec::new();
    let mut position = 0;
    for &blocks in steps {
        executor.begin(&[0], blocks);
        for (index, (values, port)) in inputs.iter().zip(&layout.inputs).enumerate() {
            let block = layout.block / port.ratio * port.channels;
            executor
                .input(index)
                .copy_from_slice(&values[position * block..][..blocks * block]);
        }
        executor.run();
        output.extend_from_slice(executor.output(0));
        position += blocks;
    }
    output
}

/// Serialises the use of libtorch's random generator, which all threads share.
static NOISE: Mutex<()> = Mutex::new(());

/// Runs a method with libtorch after seeding it; returns the output and the noise that was drawn.
fn reference(
    libtorch: &CModule,
    (model, noisy): (&Model, &Model),
    (method, blocks): (&str, usize),
    input: &Tensor,
) -> (Vec<f32>, Vec<Vec<f32>>) {
    const SEED: i64 = 4;
    let _alone = lock(&NOISE);
    tch::manual_seed(SEED);
    let theirs = frames(
        &libtorch
            .method_ts(method, &[input])
            .expect("libtorch runs it"),
    );
    (theirs, drawn(model, noisy, method, blocks, SEED))
}

/// Draws the noise of a method as libtorch does after a seed, in the order of the noise ports.
fn drawn(model: &Model, noisy: &Model, method: &str, blocks: usize, seed: i64) -> Vec<Vec<f32>> {
    let layout = noisy.method(method).expect("a method");
    let nodes = &model.method(method).expect("a method").nodes;
    tch::manual_seed(seed);
    let options = (Kind::Float, Device::Cpu);
    let draw = |port: &Port| {
        let node = nodes
            .iter()
            .find(|node| node.name == port.name)
            .expect("a noise node");
        let count = (blocks * layout.block / port.ratio) as i64;
        match node.op {
            Op::Noise(Noise {
                distribution: Distribution::Normal,
                ..
            }) => frames(&Tensor::randn([1, port.channels as i64, count], options)),
            // Drawn frame by frame.
            _ => {
                let values = Tensor::rand([1, count, port.channels as i64], options) * 2.0 - 1.0;
                Vec::<f32>::try_from(&values.contiguous().view(-1)).expect("a flat tensor")
            }
        }
    };
    layout.inputs[1..].iter().map(draw).collect()
}

/// Returns the largest difference relative to the peak of the reference.
fn difference(ours: &[f32], theirs: &[f32]) -> f32 {
    assert_eq!(ours.len(), theirs.len());
    let peak = peak(theirs);
    assert!(peak > 1e-3, "the reference is silent");
    let errors = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs());
    errors.fold(0.0, |most, error| {
        if error.is_nan() {
            f32::INFINITY
        } else {
            error.max(most)
        }
    }) / peak
}

/// Compares all methods of a streaming export with libtorch, in one step and in random steps.
fn check(label: &str, recipe: &Recipe, blocks: usize) {
    let (_folder, path, late) = exported(recipe);
    let imported = import(&path, Some("Test")).expect("an export is understood");
    let model = &imported.model;
    assert!(imported.notes.is_empty(), "{:?}", imported.notes);
    let lates = ["encode", "decode"]
        .map(|method| model.method(method).expect("a method").latency_samples());
    assert_eq!(lates, late, "{label}: the delay of centred filters");
    let found = &imported.configuration;
    assert_eq!(
        (found.bands, &found.ratios, found.capacity),
        (recipe.bands, &without_ones(&recipe.ratios), recipe.capacity)
    );
    assert_eq!(
        (found.causal, found.streaming),
        (recipe.causal, recipe.streaming),
        "{label}"
    );
    compare(label, &path, model, blocks, 0);
}

/// Compares all methods of an imported streaming export with libtorch, in one step and in random
/// steps. The first `skipped` blocks count only in the latter: an export's filters may hold what it
/// was tried with.
fn compare(label: &str, path: &Path, model: &Model, blocks: usize, skipped: usize) {
    let noisy = with_noise_ports(model);
    let _no_gradients = tch::no_grad_guard();
    let mut random = seeded_rng(3);
    for method in ["encode", "decode", "forward"] {
        // A module in its initial state.
        let libtorch = CModule::load(path).expect("libtorch reads it");
        let layout = model.method(method).expect("a method");
        let Port {
            channels, ratio, ..
        } = layout.inputs[0];
        let count = blocks * layout.block / ratio;
        // Codes of all sizes, and beyond both ends.
        let reach = if ratio == 1 {
            1.0
        } else {
            largest_code(model).unwrap_or(1.0)
        };
        let input: Vec<f32> = (0..count * channels)
            .map(|_| reach * random.random_range(-1.0..1.0))
            .collect();
        let tensor = Tensor::from_slice(&input)
            .view([1, count as i64, channels as i64])
            .transpose(1, 2)
            .contiguous();
        // In one step, so that noise is drawn in one call.
        let (theirs, noise) = reference(&libtorch, (model, &noisy), (method, blocks), &tensor);
        let inputs: Vec<Vec<f32>> = [input].into_iter().chain(noise).collect();
        let ours = native(&noisy, method, &inputs, &[blocks]);
        let from = ours.len() / blocks * skipped;
        let error = difference(&ours[from..], &theirs[from..]);
        println!("{label}, {method}: {error:e}");
        assert!(error <= 1e-4, "{label}, {method}: {error:e}");
        let splits = random_splits(5, blocks, 3);
        assert_eq!(
            native(&noisy, method, &inputs, &splits),
            ours,
            "{label}, {method} in steps {splits:?}"
        );
    }
}

/// Returns the number of codes of a discrete model.
fn largest_code(model: &Model) -> Option<f32> {
    let nodes = &model.method("decode").expect("a method").nodes;
    nodes.iter().find_map(|node| {
        if let Op::CodeSum(CodeSum { codes, .. }) = node.op {
            Some(codes as f32)
        } else {
            None
        }
    })
}

fn without_ones(ratios: &[usize]) -> Vec<usize> {
    ratios.iter().copied().filter(|&ratio| ratio > 1).collect()
}

#[test]
fn rave_v2_equals_libtorch() {
    check("v2", &Recipe::v2(), 3);
}

#[test]
fn streaming_exports_equal_libtorch() {
    let v2 = Recipe::v2().small();
    for (label, recipe) in [
        (
            "v2, causal",
            Recipe {
                causal: true,
                ..v2.clone()
            },
        ),
        (
            "v2, with noise",
            Recipe {
                noise: true,
                ..v2.clone()
            },
        ),
        (
            "v2, 8 bands and other ratios",
            Recipe {
                bands: 8,
                ratios: vec![2, 4, 2, 2],
                ..v2.clone()
            },
        ),
        (
            "v3",
            Recipe {
                generation: Generation::V3,
                ..v2.clone()
            },
        ),
        (
            "v3, causal, with noise",
            Recipe {
                generation: Generation::V3,
                noise: true,
                causal: true,
                ..v2
            },
        ),
        ("v1", Recipe::v1().small()),
        (
            "v1, without noise",
            Recipe {
                noise: false,
                ..Recipe::v1().small()
            },
        ),
        ("BRAVE", Recipe::brave().small()),
    ] {
        check(label, &recipe, 12);
    }
}

/// Offline exports see all of their input at once. The import is late by its stated latency and
/// equal away from both ends.
#[test]
fn offline_exports_equal_libtorch_after_their_latency() {
    for (label, recipe, blocks, margin) in [
        (
            "v2",
            Recipe {
                streaming: false,
                ratios: vec![4, 2, 2, 2],
                ..Recipe::v2().small()
            },
            90,
            40,
        ),
        (
            "v1",
            Recipe {
                streaming: false,
                noise: false,
                ratios: vec![2, 2, 2, 2],
                ..Recipe::v1().small()
            },
            90,
            40,
        ),
    ] {
        let (_folder, path, late) = exported(&recipe);
        let model = import(&path, Some("Test"))
            .expect("an export is understood")
            .model;
        let noisy = with_noise_ports(&model);
        let _no_gradients = tch::no_grad_guard();
        let libtorch = CModule::load(&path).expect("libtorch reads it");
        let mut random = seeded_rng(3);
        let ratio = recipe.ratio();
        for (method, channels, per_frame, late) in [
            ("encode", 1, 1, late[0]),
            ("decode", recipe.seen, ratio, late[1]),
        ] {
            assert_eq!(
                model.method(method).expect("a method").latency_samples(),
                late,
                "{label}, {method}"
            );
            let layout = noisy.method(method).expect("a method");
            let count = blocks * layout.block / per_frame;
            let input: Vec<f32> = (0..count * channels)
                .map(|_| random.random_range(-1.0..1.0))
                .collect();
            let tensor = Tensor::from_slice(&input)
                .view([1, count as i64, channels as i64])
                .transpose(1, 2)
                .contiguous();
            let (theirs, mut noise) =
                reference(&libtorch, (&model, &noisy), (method, blocks), &tensor);
            let out = &layout.outputs[0];
            let shift = late / out.ratio * out.channels;
            if method == "encode" {
                // Noise is added after the latency of the latents.
                noise[0].rotate_right(late / ratio * recipe.latents);
            }
            let inputs: Vec<Vec<f32>> = [input].into_iter().chain(noise).collect();
            let ours = native(&noisy, method, &inputs, &vec![1; blocks]);
            let edge = margin * layout.block / out.ratio * out.channels;
            let end = theirs.len() - edge;
            let error = difference(&ours[edge + shift..end + shift], &theirs[edge..end]);
            println!("{label} offline, {method}: {error:e}");
            assert!(error <= 1e-4, "{label} offline, {method}: {error:e}");
        }
    }
}

/// Exports made by the published package, with what the import says of them.
#[test]
#[ignore = "needs exports of the published packages: cargo xtask test --exporters"]
fn exports_of_the_package_equal_libtorch() {
    let folder =
        PathBuf::from(std::env::var_os("ONDES_EXPORTS").expect("cargo xtask sets it")).join("rave");
    let index =
        std::fs::read_to_string(folder.join("index.json")).expect("an index of the exports");
    let names: Vec<String> = serde_json::from_str(&index).expect("a list of names");
    let mut refused = Vec::new();
    for name in &names {
        let path = folder.join(name);
        match import(&path, None) {
            Ok(imported) if imported.configuration.streaming => {
                println!("{name}: {}", imported.summary());
                compare(name, &path, &imported.model, 52, 40);
            }
            // Compared by `offline_exports_equal_libtorch_after_their_latency`, for exports of the
            // same form.
            Ok(imported) => println!("{name}: {}", imported.summary()),
            Err(error) => {
                assert!(
                    error
                        .to_string()
                        .contains("libtorch can play the file as a program"),
                    "{error}"
                );
                refused.push(name.trim_end_matches("_streaming.ts"));
            }
        }
    }
    assert_eq!(refused, ["spherical"]);
}
