//! Compression from the command line.

use std::path::Path;

use crate::common::{make_pair, run, succeed};
use ondes_engine::model::{Tensor, file};
use ondes_training::compression::variants;

/// Returns the path of a bundled model.
fn bundled(name: &str) -> String {
    let package =
        std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the package lies");
    Path::new(&package)
        .join(format!("../assets/models/{name}.ondes"))
        .display()
        .to_string()
}

#[test]
fn models_are_compressed_within_a_bound() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let quantize = |name: &str, out: &str, options: &[&str]| -> serde_json::Value {
        let model = if name == "bowed" {
            path("whole.ondes")
        } else {
            bundled(name)
        };
        let out = path(out);
        let arguments = [&["quantize", &model, "--out", &out, "--json"], options].concat();
        serde_json::from_str(&succeed(&arguments)).expect("JSON")
    };
    let ratio = |report: &serde_json::Value| {
        report["bytes"].as_f64().expect("a number")
            / report["original_bytes"].as_f64().expect("a number")
    };
    let stored = |report: &serde_json::Value| -> Vec<(String, String, String)> {
        let text = |row: &serde_json::Value, key: &str| row[key].as_str().expect("text").to_owned();
        let rows = report["layers"].as_array().expect("a list").iter();
        rows.map(|row| {
            (
                text(row, "layer"),
                text(row, "stored"),
                text(row, "computed"),
            )
        })
        .collect()
    };

    // The instrument without its variants; the capture with its variant.
    let whole =
        variants::without_variants(&file::read(Path::new(&bundled("bowed"))).expect("a model"))
            .expect("an instrument");
    file::write(&whole, Path::new(&path("whole.ondes"))).expect("it is written");

    // Most of an instrument is weights, and its matrices are multiplied in int8.
    let report = quantize("bowed", "bowed.ondes", &[]);
    assert!(ratio(&report) <= 0.27, "{report}");
    assert!(
        report["loss"].as_f64().is_some_and(|loss| loss <= 0.05),
        "{report}"
    );
    let layers = stored(&report);
    assert!(
        layers.contains(&("memory".into(), "I8".into(), "int8".into())),
        "{layers:?}"
    );
    let compressed = file::read(&folder.path().join("bowed.ondes")).expect("it can be read");
    assert_eq!(compressed.header().format, 2);
    assert!(
        compressed
            .header()
            .card
            .quality
            .iter()
            .any(|measure| measure.name == "loss by compression")
    );
    let length = std::fs::metadata(folder.path().join("bowed.ondes"))
        .expect("it is there")
        .len();
    assert_eq!(report["bytes"].as_u64(), Some(length));

    // A capture runs at the sample rate, in f32.
    let report = quantize("triode", "triode.ondes", &[]);
    assert!(
        report["loss"].as_f64().is_some_and(|loss| loss <= 0.5),
        "{report}"
    );
    assert!(
        stored(&report)
            .iter()
            .all(|(_, _, computed)| computed == "f32"),
        "{report}"
    );
    assert!(
        stored(&report).contains(&("light:layer0".into(), "I8".into(), "f32".into())),
        "{report}"
    );
    let skipped = quantize(
        "triode",
        "skipped.ondes",
        &["--skip", "head", "--weights-only", "--scales", "peak"],
    );
    assert!(
        stored(&skipped).contains(&("head".into(), "F32".into(), "f32".into())),
        "{skipped}"
    );
    // A bound of 0 leaves the model unchanged.
    let exact = quantize("triode", "exact.ondes", &["--max-loss", "0"]);
    assert_eq!(exact["loss"], 0.0);
    let weights = |path: &Path| file::read(path).expect("it can be read").weights().clone();
    assert_eq!(
        weights(&folder.path().join("exact.ondes")),
        weights(Path::new(&bundled("triode")))
    );
    let coarse = quantize(
        "bowed",
        "coarse.ondes",
        &["--per-tensor", "--max-loss", "9"],
    );
    assert!(
        ratio(&coarse) < ratio(&quantize("bowed", "fine.ondes", &["--max-loss", "9"])),
        "{coarse}"
    );
    let shifted = quantize(
        "bowed",
        "shifted.ondes",
        &["--weights-only", "--asymmetric"],
    );
    assert!(
        shifted["loss"].as_f64().is_some_and(|loss| loss <= 0.05),
        "{shifted}"
    );
    assert!(
        stored(&shifted)
            .iter()
            .all(|(_, _, computed)| computed == "f32"),
        "{shifted}"
    );
    let zeros = |tensor: &Tensor| {
        tensor
            .quantized()
            .is_some_and(|quantized| quantized.zero_points.iter().any(|zero| *zero != 0))
    };
    let read = file::read(&folder.path().join("shifted.ondes")).expect("it can be read");
    assert!(
        read.weights().iter().any(|(_, tensor)| zeros(tensor)),
        "they came through the file"
    );
    let halved = quantize("triode", "halved.ondes", &["--bits", "16", "--bf16"]);
    assert!(
        stored(&halved)
            .iter()
            .any(|(_, stored, _)| stored == "BF16"),
        "{halved}"
    );

    let (again, out, triode) = (path("bowed.ondes"), path("out.ondes"), bundled("triode"));
    for (arguments, named) in [
        (
            vec!["quantize", &again, "--out", &out],
            "compressed already",
        ),
        (
            vec!["quantize", &triode, "--out", &out, "--skip", "nobody"],
            "layer0, head",
        ),
        (
            vec!["quantize", &triode, "--out", &out, "--bf16"],
            "--bits 16",
        ),
        (
            vec![
                "quantize", &again, "--out", &out, "--dry", &again, "--wet", &again,
            ],
            "for captures",
        ),
        (
            vec!["quantize", &triode, "--out", &out, "--aware"],
            "--dry and --wet",
        ),
        (
            vec![
                "quantize", &triode, "--out", &out, "--aware", "--bits", "16",
            ],
            "--bits 8",
        ),
    ] {
        let output = run(&arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert_eq!(
            message.trim().lines().count(),
            1,
            "{arguments:?}: {message}"
        );
        assert!(message.contains(named), "{arguments:?}: {message}");
    }
    assert!(
        !Path::new(&out).exists(),
        "nothing is written after a mistake"
    );
}

#[test]
fn a_capture_learns_with_its_weights_rounded() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (dry, wet) = make_pair(folder);
    let path = |name: &str| folder.join(name).display().to_string();
    let (whole, stored, aware) = (
        path("whole.ondes"),
        path("stored.ondes"),
        path("aware.ondes"),
    );
    let pair = ["--dry", &dry, "--wet", &wet];
    let learning = ["--epochs", "2", "--threads", "1"];
    succeed(
        &[
            &["capture", "--size", "lstm-8", "--out", &whole][..],
            &pair,
            &learning,
        ]
        .concat(),
    );
    let quantize = |out: &str, options: &[&str]| -> serde_json::Value {
        let all = [
            "quantize",
            &whole,
            "--out",
            out,
            "--per-tensor",
            "--scales",
            "peak",
            "--max-loss",
            "1000",
            "--json",
        ];
        serde_json::from_str(&succeed(&[&all[..], &pair, options].concat())).expect("JSON")
    };
    let after = quantize(&stored, &[]);
    let before = quantize(
        &aware,
        &[&["--aware", "--learning-rate", "0.004"][..], &learning].concat(),
    );
    let loss = |report: &serde_json::Value| report["loss"].as_f64().expect("a number");
    assert!(loss(&before) < loss(&after), "{before} against {after}");
    let weights = |path: &str| {
        file::read(Path::new(path))
            .expect("it can be read")
            .weights()
            .clone()
    };
    assert_ne!(weights(&aware), weights(&stored));
    assert!(
        weights(&aware)
            .iter()
            .any(|(_, tensor)| tensor.quantized().is_some())
    );
}
