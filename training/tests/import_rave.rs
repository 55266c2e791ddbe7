//! RAVE exports play natively as libtorch plays them, and what is none is refused with a line that says why.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use ondes_engine::Kernels;
use ondes_engine::model::{Distribution, Model, Op, Port, file};
use ondes_engine::native::Executor;
use ondes_engine::pipeline::{Pipeline, PipelineOptions, latents};
use ondes_tests::rave::script::{Attribute, Module};
use ondes_tests::rave::{Generation, Recipe};
use ondes_tests::{random, random_splits};
use ondes_training::import_rave::import;
use rand::RngExt;
use tch::{CModule, Device, Kind, Tensor};

/// A folder with an export in it; gives the folder, the file, and by how much `encode` and `decode` are late.
fn exported(recipe: &Recipe) -> (tempfile::TempDir, PathBuf, [usize; 2]) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.ts");
    let (module, late) = recipe.export(1);
    module.save(&path);
    (folder, path, late)
}

/// The same model, whose noise comes in by ports: what libtorch draws can be given to it.
fn with_noise_ports(model: &Model) -> Model {
    let mut header = model.header().clone();
    for method in &mut header.methods {
        let shapes = method.infer().expect("a method of a model fits");
        let mut ports = Vec::new();
        for (node, shape) in method.nodes.iter().zip(&shapes.values[method.inputs.len()..]) {
            if matches!(node.op, Op::Noise { .. }) {
                ports.push(Port { name: node.name.clone(), channels: shape.channels, ratio: shape.ratio });
            }
        }
        method.nodes.retain(|node| !matches!(node.op, Op::Noise { .. }));
        method.inputs.extend(ports);
    }
    Model::new(header, model.weights().clone()).expect("it still fits")
}

/// `[1, channels, frames]` as `[frame][channel]`.
fn frames(tensor: &Tensor) -> Vec<f32> {
    let flat = tensor.transpose(1, 2).contiguous().view(-1);
    Vec::<f32>::try_from(&flat).expect("a flat tensor")
}

/// What a method natively makes of its inputs, `[frame][channel]` each, in steps of so many blocks.
fn native(model: &Model, method: &str, inputs: &[Vec<f32>], steps: &[usize]) -> Vec<f32> {
    let plan = model.method(method).expect("it is there").clone();
    let most = steps.iter().copied().max().unwrap_or(1);
    let mut executor = Executor::new(model, method, Kernels::detect(), 1, most).expect("it is not too long");
    let mut made = Vec::new();
    let mut done = 0;
    for &blocks in steps {
        executor.begin(&[0], blocks);
        for (index, (values, port)) in inputs.iter().zip(&plan.inputs).enumerate() {
            let block = plan.block / port.ratio * port.channels;
            executor.input(index).copy_from_slice(&values[done * block..][..blocks * block]);
        }
        executor.run();
        made.extend_from_slice(executor.output(0));
        done += blocks;
    }
    made
}

/// libtorch draws noise for all threads from one source: who wants to know what it draws has it alone.
static NOISE: Mutex<()> = Mutex::new(());

/// What libtorch makes of an input after a seed, and the noise that it draws meanwhile.
fn reference(
    libtorch: &CModule,
    (model, noisy): (&Model, &Model),
    (method, blocks): (&str, usize),
    input: &Tensor,
) -> (Vec<f32>, Vec<Vec<f32>>) {
    const SEED: i64 = 4;
    let _alone = NOISE.lock().unwrap_or_else(PoisonError::into_inner);
    tch::manual_seed(SEED);
    let theirs = frames(&libtorch.method_ts(method, &[input]).expect("libtorch runs it"));
    (theirs, drawn(model, noisy, method, blocks, SEED))
}

/// What libtorch draws for the noise of a method after a seed, for the ports that are noise, in their order.
fn drawn(model: &Model, noisy: &Model, method: &str, blocks: usize, seed: i64) -> Vec<Vec<f32>> {
    let plan = noisy.method(method).expect("it is there");
    let nodes = &model.method(method).expect("it is there").nodes;
    tch::manual_seed(seed);
    let options = (Kind::Float, Device::Cpu);
    let draw = |port: &Port| {
        let node = nodes.iter().find(|node| node.name == port.name).expect("it was a node");
        let count = (blocks * plan.block / port.ratio) as i64;
        match node.op {
            Op::Noise { distribution: Distribution::Normal, .. } => {
                frames(&Tensor::randn([1, port.channels as i64, count], options))
            }
            // Frame by frame, as it is used.
            _ => {
                let values = Tensor::rand([1, count, port.channels as i64], options) * 2.0 - 1.0;
                Vec::<f32>::try_from(&values.contiguous().view(-1)).expect("a flat tensor")
            }
        }
    };
    plan.inputs[1..].iter().map(draw).collect()
}

/// The largest difference, as a part of the largest value of the reference.
fn difference(ours: &[f32], theirs: &[f32]) -> f32 {
    assert_eq!(ours.len(), theirs.len());
    let peak = theirs.iter().fold(0.0_f32, |peak, value| peak.max(value.abs()));
    assert!(peak > 1e-3, "the reference is silent");
    let apart = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs());
    apart.fold(0.0, |most, apart| if apart.is_nan() { f32::INFINITY } else { apart.max(most) }) / peak
}

/// All methods of a streaming export, by libtorch and by us, who also cut it into steps.
fn check(label: &str, recipe: &Recipe, blocks: usize) {
    let (_folder, path, late) = exported(recipe);
    let imported = import(&path, "Test").expect("an export is understood");
    let model = &imported.model;
    assert!(imported.notes.is_empty(), "{:?}", imported.notes);
    let lates = ["encode", "decode"].map(|method| model.method(method).expect("it is there").latency_samples());
    assert_eq!(lates, late, "{label}: the delay of centred filters");
    let shape = &imported.shape;
    assert_eq!(
        (shape.bands, &shape.ratios, shape.capacity),
        (recipe.bands, &without_ones(&recipe.ratios), recipe.capacity)
    );
    assert_eq!((shape.causal, shape.streaming), (recipe.causal, recipe.streaming), "{label}");

    let noisy = with_noise_ports(model);
    let _no_gradients = tch::no_grad_guard();
    let mut random = random(3);
    for (method, channels, ratio) in [("encode", 1, 1), ("decode", recipe.seen, recipe.ratio()), ("forward", 1, 1)] {
        // A module that has heard nothing yet.
        let libtorch = CModule::load(&path).expect("libtorch reads it");
        let plan = model.method(method).expect("it is there");
        let count = blocks * plan.block / ratio;
        let input: Vec<f32> = (0..count * channels).map(|_| random.random_range(-1.0..1.0)).collect();
        let tensor = Tensor::from_slice(&input).view([1, count as i64, channels as i64]).transpose(1, 2).contiguous();
        // In one step, so that noise is drawn in one piece.
        let (theirs, noise) = reference(&libtorch, (model, &noisy), (method, blocks), &tensor);
        let inputs: Vec<Vec<f32>> = [input].into_iter().chain(noise).collect();
        let ours = native(&noisy, method, &inputs, &[blocks]);
        let apart = difference(&ours, &theirs);
        println!("{label}, {method}: {apart:e}");
        assert!(apart <= 1e-4, "{label}, {method}: {apart:e}");
        let splits = random_splits(5, blocks, 3);
        assert_eq!(native(&noisy, method, &inputs, &splits), ours, "{label}, {method} in steps {splits:?}");
    }
}

fn without_ones(ratios: &[usize]) -> Vec<usize> {
    ratios.iter().copied().filter(|&ratio| ratio > 1).collect()
}

#[test]
fn rave_v2_is_what_libtorch_makes_of_it() {
    check("v2", &Recipe::v2(), 3);
}

#[test]
fn every_streaming_variant_is_what_libtorch_makes_of_it() {
    let v2 = Recipe::v2().small();
    for (label, recipe) in [
        ("v2, causal", Recipe { causal: true, ..v2.clone() }),
        ("v2, with noise", Recipe { noise: true, ..v2.clone() }),
        ("v2, 8 bands and other ratios", Recipe { bands: 8, ratios: vec![2, 4, 2, 2], ..v2.clone() }),
        ("v3", Recipe { generation: Generation::V3, ..v2.clone() }),
        ("v3, causal, with noise", Recipe { generation: Generation::V3, noise: true, causal: true, ..v2 }),
        ("v1", Recipe::v1().small()),
        ("v1, without noise", Recipe { noise: false, ..Recipe::v1().small() }),
        ("BRAVE", Recipe::brave().small()),
    ] {
        check(label, &recipe, 12);
    }
}

/// An export that is not streamed sees all of its input at once; ours is later by what it states, and else the same where neither
/// sees an end.
#[test]
fn offline_exports_are_streamed() {
    for (label, recipe, blocks, margin) in [
        ("v2", Recipe { streaming: false, ratios: vec![4, 2, 2, 2], ..Recipe::v2().small() }, 90, 40),
        ("v1", Recipe { streaming: false, noise: false, ratios: vec![2, 2, 2, 2], ..Recipe::v1().small() }, 90, 40),
    ] {
        let (_folder, path, late) = exported(&recipe);
        let model = import(&path, "Test").expect("an export is understood").model;
        let noisy = with_noise_ports(&model);
        let _no_gradients = tch::no_grad_guard();
        let libtorch = CModule::load(&path).expect("libtorch reads it");
        let mut random = random(3);
        let ratio = recipe.ratio();
        for (method, channels, per_frame, late) in [("encode", 1, 1, late[0]), ("decode", recipe.seen, ratio, late[1])]
        {
            assert_eq!(model.method(method).expect("it is there").latency_samples(), late, "{label}, {method}");
            let plan = noisy.method(method).expect("it is there");
            let count = blocks * plan.block / per_frame;
            let input: Vec<f32> = (0..count * channels).map(|_| random.random_range(-1.0..1.0)).collect();
            let tensor =
                Tensor::from_slice(&input).view([1, count as i64, channels as i64]).transpose(1, 2).contiguous();
            let (theirs, mut noise) = reference(&libtorch, (&model, &noisy), (method, blocks), &tensor);
            let out = &plan.outputs[0];
            let shift = late / out.ratio * out.channels;
            if method == "encode" {
                // Noise is added where the latents are late.
                noise[0].rotate_right(late / ratio * recipe.latents);
            }
            let inputs: Vec<Vec<f32>> = [input].into_iter().chain(noise).collect();
            let ours = native(&noisy, method, &inputs, &vec![1; blocks]);
            let edge = margin * plan.block / out.ratio * out.channels;
            let end = theirs.len() - edge;
            let apart = difference(&ours[edge + shift..end + shift], &theirs[edge..end]);
            println!("{label} offline, {method}: {apart:e}");
            assert!(apart <= 1e-4, "{label} offline, {method}: {apart:e}");
        }
    }
}

#[test]
fn an_import_plays_at_once_with_latents_to_bend() {
    let recipe = Recipe { noise: true, ..Recipe::v2().small() };
    let (folder, path, late) = exported(&recipe);
    let out = folder.path().join("model.ondes");
    let output = command(&[&path, Path::new("-o"), &out]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("RAVE v2, 16 bands, ratios 4\u{b7}4\u{b7}4\u{b7}2, capacity 6, 4 of 12 latents"), "{text}");

    let model = file::read(&out).expect("it was written");
    let header = model.header();
    assert_eq!((header.kind.name(), header.sample_rate, latents(header)), ("codec", 44_100, recipe.seen));
    assert_eq!(header.card.name, "model");
    let hash = blake3::hash(&std::fs::read(&path).expect("it is there")).to_hex();
    assert!(header.card.description.contains(hash.as_str()), "{}", header.card.description);
    let options = PipelineOptions { sample_rate: 44_100, ..PipelineOptions::default() };
    let mut pipeline = Pipeline::new(&model, &options).expect("it plays");
    assert_eq!(pipeline.latency_samples(), late[0] + late[1] + recipe.ratio() - 1);
    let mut random = random(8);
    let input: Vec<f32> = (0..12 * recipe.ratio()).map(|_| random.random_range(-0.5..0.5)).collect();
    let mut sound = vec![f32::NAN; input.len()];
    pipeline.process(&input, &mut sound);
    assert!(sound.iter().all(|sample| sample.is_finite()));
    assert!(sound.iter().any(|sample| sample.abs() > 1e-3), "silence");
}

fn command(arguments: &[&Path]) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ondes-train"));
    command.arg("import-rave").args(arguments).output().expect("the program starts")
}

/// The line that an import is refused with.
fn refusal(path: &Path) -> String {
    let output = command(&[path, Path::new("--out"), &path.with_extension("ondes")]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains(&path.display().to_string()), "{text}");
    assert!(!path.with_extension("ondes").exists(), "nothing is written");
    text
}

#[test]
fn what_is_not_understood_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bad.ts");
    let recipe = Recipe::v2().small();
    let refused = |change: &dyn Fn(Module) -> Module, expected: &str| {
        change(recipe.export(1).0).save(&path);
        let line = refusal(&path);
        assert!(line.contains(expected), "{line:?} has no {expected:?}");
    };
    refused(&|root| root.with("pqmf", None), "no module \"pqmf\"");
    refused(&|root| root.with("n_channels", Some(Attribute::Int(2))), "models of 2 channels");
    refused(&|root| root.with("input_mode", Some(Attribute::Text("mel"))), "an input_mode of \"mel\"");
    refused(&|root| root.with("encode_params", Some(Attribute::Counts(vec![1, 1, 99, 2048]))), "99 of 12 latents");
    refused(&|root| root.with("latent_mean", Some(Attribute::None)), "no tensor \"latent_mean\"");
    let within = |path: &'static [&'static str], change: fn(Module) -> Module| {
        move |mut root: Module| {
            let place = path.iter().fold(&mut root, |module, name| module.child(name));
            *place = change(place.clone());
            root
        }
    };
    let unit = &["encoder", "encoder", "net", "1"];
    refused(
        &within(unit, |module| module.called("Recurrent")),
        "encoder.encoder.net.1 (Recurrent): this kind of module",
    );
    refused(&within(&["encoder"], |module| module.called("DiscreteEncoder")), "encoder (DiscreteEncoder)");
    let first = &["encoder", "encoder", "net", "0"];
    refused(&within(first, |module| module.with("weight", None)), "net.0 (CachedConv1d): it has no tensor \"weight\"");
    let short = |module: Module| {
        let weight = ondes_engine::model::Tensor::new(&[6, 15, 7], vec![0.0; 630]);
        module.with("weight", Some(Attribute::Parameter(weight)))
    };
    refused(&within(first, short), "takes 15 channels in 1 groups and is given 16");
    let cache = &["decoder", "net", "0", "cache"];
    refused(&within(cache, |module| module.with("padding", Some(Attribute::Int(-3)))), "its padding is -3");
    refused(&within(cache, |module| module.with("padding", Some(Attribute::Int(1 << 30)))), "padded by more");
    let nan = |module: Module| {
        module.with(
            "weight",
            Some(Attribute::Parameter(ondes_engine::model::Tensor::new(&[6, 16, 7], vec![f32::NAN; 672]))),
        )
    };
    refused(&within(first, nan), "holds a NaN");
}

#[test]
fn damaged_files_are_refused() {
    let (folder, path, _) = exported(&Recipe::v2().small());
    let whole = std::fs::read(&path).expect("it is there");
    let bad = folder.path().join("bad.ts");
    for (bytes, expected) in [
        (&b""[..], "not a TorchScript archive"),
        (b"RIFF....WAVE", "not a TorchScript archive"),
        (&whole[..whole.len() / 2], "not a TorchScript archive"),
    ] {
        std::fs::write(&bad, bytes).expect("it can be written");
        assert!(refusal(&bad).contains(expected));
    }
    std::fs::remove_file(&bad).expect("it is there");
    assert!(refusal(&bad).contains("No such file"));
    // Wherever a byte is wrong there is an error or a model, never a panic.
    let mut random = random(9);
    let mut imported = 0;
    for _ in 0..150 {
        let mut bytes = whole.clone();
        // The pickle lies at the front.
        let at = random.random_range(0..bytes.len().min(60_000));
        bytes[at] ^= 1 << random.random_range(0..8);
        std::fs::write(&bad, bytes).expect("it can be written");
        imported += usize::from(import(&bad, "Bad").is_ok());
    }
    assert!(imported < 150, "checksums find most of it");
}
