//! Archives made by the published packages against what PyTorch computes with them.
//! `cargo xtask test --exporters` makes both; the scripts are beside this file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use ondes_engine::dsp::level::{max_difference, peak};
use ondes_engine::model::export::nn_tilde;
use ondes_engine::model::program::ProgramOptions;
use ondes_engine::model::{Model, file};
use ondes_engine::pipeline::{InputChannels, Pipeline, PipelineOptions};
use ondes_engine::torch;
use serde_json::{Value, from_value};

use super::options;

/// Largest difference, relative to the peak of what PyTorch computes.
const TOLERANCE: f32 = 1e-5;

/// Archive with its reference.
struct Archive {
    path: PathBuf,
    /// Texts and sounds that PyTorch was given.
    options: ProgramOptions,
    /// `[channel][frame]`
    input: Vec<Vec<f32>>,
    output: Vec<Vec<f32>>,
    /// Samples that PyTorch was given at a time.
    block: usize,
    /// Controls from the beginning, and from the middle of the input on.
    controls: [BTreeMap<String, f32>; 2],
}

/// Returns the archives of a package.
fn archives(package: &str) -> Vec<Archive> {
    let folder = PathBuf::from(std::env::var_os("ONDES_EXPORTS").expect("cargo xtask sets it"))
        .join(package);
    let index =
        std::fs::read_to_string(folder.join("index.json")).expect("an index of the archives");
    let index: Vec<Value> = serde_json::from_str(&index).expect("a list of archives");
    let archive = |entry: &Value| {
        let text = |name: &str| entry[name].as_str().expect("a text").to_owned();
        let count = |name: &str| entry[name].as_u64().expect("a count") as usize;
        let samples = |side: &str, channels: usize| {
            let bytes = std::fs::read(folder.join(format!("{}.{side}.f32", text("name"))))
                .expect("samples");
            let samples: Vec<f32> = bytes
                .as_chunks()
                .0
                .iter()
                .copied()
                .map(f32::from_le_bytes)
                .collect();
            samples
                .chunks_exact(samples.len() / channels)
                .map(<[f32]>::to_vec)
                .collect()
        };
        let texts = |name: &str| -> BTreeMap<String, String> {
            from_value(entry[name].clone()).expect("texts")
        };
        let numbers = |name: &str| -> BTreeMap<String, f32> {
            from_value(entry[name].clone()).expect("numbers")
        };
        let sounds = texts("sounds")
            .into_iter()
            .map(|(name, file)| (name, folder.join(file)));
        let options = ProgramOptions {
            method: None,
            texts: texts("texts"),
            sounds: sounds.collect(),
        };
        Archive {
            path: folder.join(text("file")),
            options,
            input: samples("input", count("inputs")),
            output: samples("output", count("outputs")),
            block: count("block"),
            controls: ["controls", "halfway"].map(numbers),
        }
    };
    index.iter().map(archive).collect()
}

/// Returns what Ondes plays with the controls of an archive, at its own sample rate and without the
/// latency.
fn played(model: &Model, archive: &Archive) -> Vec<Vec<f32>> {
    let channels = if archive.output.len() == 1 {
        InputChannels::Mono
    } else {
        InputChannels::Stereo
    };
    let options = PipelineOptions {
        sample_rate: model.header().sample_rate,
        channels,
        ..options(1)
    };
    let mut pipeline = Pipeline::new(model, &options).expect("it plays");
    let latency = pipeline.latency_samples();
    let frames = archive.output[0].len();
    let mut output = vec![vec![0.0; frames + latency]; archive.output.len()];
    let input: Vec<Vec<f32>> = archive
        .input
        .iter()
        .map(|channel| [channel.as_slice(), &vec![0.0; latency]].concat())
        .collect();
    for (part, controls) in [0..frames / 2, frames / 2..frames + latency]
        .into_iter()
        .zip(&archive.controls)
    {
        for (name, value) in controls {
            pipeline.set_control(name, *value).expect("there is one");
        }
        let input = |channel: usize| &input[channel][part.clone()];
        match &mut output[..] {
            [mono] => pipeline.process(input(0), &mut mono[part.clone()]),
            [left, right] => {
                pipeline.process_stereo(
                    [input(0), input(1)],
                    [&mut left[part.clone()], &mut right[part.clone()]],
                );
            }
            _ => panic!("more than two channels"),
        }
    }
    output
        .iter_mut()
        .map(|channel| channel.split_off(latency))
        .collect()
}

fn check(package: &str) {
    for archive in archives(package) {
        let name = name(&archive.path);
        let opened = torch::open(&archive.path).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            opened.model.header().methods[0].block,
            archive.block,
            "{name}"
        );
        let model = torch::with_options(&opened.model, &archive.options)
            .unwrap_or_else(|error| panic!("{error}"));
        let played = played(&model, &archive);
        for (ours, theirs) in played.iter().zip(&archive.output) {
            let level = peak(theirs);
            assert!(level > 1e-3, "{package}, {name}: the reference is silent");
            let error = max_difference(ours, theirs) / level;
            println!("{package}, {name}: {error:.1e}");
            assert!(error <= TOLERANCE, "{package}, {name}: {error:e}");
        }
    }
}

fn name(path: &Path) -> String {
    path.file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned()
}

#[test]
#[ignore = "needs archives of the published packages: cargo xtask test --exporters"]
fn archives_of_nn_tilde_1_5_equal_pytorch() {
    check("nn-tilde-1.5.2");
}

#[test]
#[ignore = "needs archives of the published packages: cargo xtask test --exporters"]
fn archives_of_nn_tilde_1_6_equal_pytorch() {
    check("nn-tilde-1.6.0");
}

#[test]
#[ignore = "needs archives of the published packages: cargo xtask test --exporters"]
fn archives_of_msprior_1_1_equal_pytorch() {
    check("msprior-1.1.3");
}

#[test]
#[ignore = "needs archives of the published packages: cargo xtask test --exporters"]
fn archives_of_neutone_sdk_1_5_equal_pytorch() {
    check("neutone-sdk-1.5.2");
    let folder = PathBuf::from(std::env::var_os("ONDES_EXPORTS").expect("cargo xtask sets it"));
    let refused = torch::open(&folder.join("neutone-sdk-1.5.2/whole_sound.nm"));
    let error = refused.expect_err("it needs the whole sound at once");
    assert!(error.to_string().contains("non-realtime"), "{error}");
}

#[test]
#[ignore = "needs the published packages: cargo xtask test --exporters"]
fn exports_pass_the_checks_of_nn_tilde() {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().expect("a folder");
    let export = |name: &str| {
        let model = file::read(&checkout.join(format!("assets/models/{name}.ondes")))
            .expect("a bundled model");
        let path = folder.path().join(format!("{name}.ts"));
        std::fs::write(&path, nn_tilde::export(&model).expect("it can be exported"))
            .expect("it is written");
        path
    };
    let archives = ["strings", "winds", "overdrive"].map(export);
    let packages =
        PathBuf::from(std::env::var_os("ONDES_EXPORTS").expect("cargo xtask sets it")).join("..");
    for version in ["1.5.2", "1.6.0"] {
        let paths = [
            packages.join(format!("nn-tilde-{version}")),
            packages.join("packages"),
        ];
        let mut python = Command::new("python3");
        python
            .arg(checkout.join("engine/torch/tests/exporters/nn_tilde_check.py"))
            .args(&archives);
        python
            .env("PYTHONPATH", std::env::join_paths(paths).expect("paths"))
            .env("PYTHONDONTWRITEBYTECODE", "1");
        let output = python.output().expect("python3 runs");
        assert!(
            output.status.success(),
            "{version}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        println!(
            "nn-tilde {version}: {}",
            String::from_utf8_lossy(&output.stdout)
        );
    }
}
