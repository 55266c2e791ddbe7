//! `ondes info`.

use std::process::Stdio;

use ondes_engine::model::compression::{Scaling, WeightPrecision};
use ondes_engine::model::{Measure, Model, Training, file};

use crate::common::{Folder, codec, effect, instrument, tone, write_wav};

/// Creates a folder with the small instrument and a complete card.
fn with_card() -> Folder {
    let folder = Folder::new();
    let model = instrument(48_000, 192);
    let mut header = model.header().clone();
    header.card.training = Some(Training {
        tool: "ondes-train 0.1.0".into(),
        corpus: "bowed".into(),
        corpus_seconds: 720.0,
        steps: 12_000,
        seed: 3,
        validation_loss: 0.5,
    });
    header.card.quality = vec![Measure {
        name: "mean loudness error".into(),
        unit: "dB".into(),
        value: 0.75,
        baseline: Some(1.5),
    }];
    header.card.description = "Two lines\nand a bell \u{7}.".into();
    let model = Model::new(header, model.weights().clone()).expect("the model is sound");
    file::write(&model, &folder.path("small.ondes")).expect("the model is written");
    folder
}

#[test]
fn a_card_is_shown() {
    let folder = with_card();
    let output = folder.run(&["info", "small.ondes"]);
    assert!(output.status.success() && output.stderr.is_empty());
    let text = String::from_utf8(output.stdout).expect("text");
    let has = |words: &[&str]| {
        let found = text
            .lines()
            .any(|line| words.iter().all(|word| line.contains(word)));
        assert!(found, "no line has {words:?}:\n{text}");
    };
    has(&["name", "Small"]);
    has(&["kind", "instrument"]);
    has(&["description", "Two lines and a bell  ."]);
    has(&["sample rate", "48000 Hz"]);
    has(&["plays", "E2 to F♯6", "4 voices"]);
    has(&[
        "synth",
        "pitch /192",
        "→ audio",
        "latency 192 samples (4.0 ms)",
    ]);
    has(&["room", "dry → room"]);
    has(&["noise", "0 to 4", "default 1", "Turns the noise."]);
    has(&["brightness", "-24 to 24 dB"]);
    has(&["one note", "× real time", "ns/sample", "native"]);
    has(&["following a recording", "latency"]);
    has(&["training", "ondes-train 0.1.0", "12 000 steps", "seed 3"]);
    has(&["12.0 minutes of bowed"]);
    has(&["mean loudness error", "0.75 dB", "1.5 dB"]);
    has(&["hash"]);
}

#[test]
fn compressed_weights_are_listed() {
    let folder = Folder::new();
    let model = instrument(48_000, 192);
    let choose = |layer: &str| {
        if layer == "room" {
            WeightPrecision::Bf16
        } else {
            WeightPrecision::F32
        }
    };
    let compressed = model
        .compressed(Scaling::default(), choose)
        .expect("nothing is too large");
    file::write(&compressed, &folder.path("small.ondes")).expect("the model is written");
    let output = folder.run(&["info", "small.ondes"]);
    let text = String::from_utf8(output.stdout).expect("text");
    let line = text
        .lines()
        .find(|line| line.starts_with("parameters"))
        .expect("there is such a line");
    assert!(
        line.contains("% F32, ") && line.contains("% BF16, 960 bytes") && text.contains("format 2"),
        "{text}"
    );
    let card = folder.json(&["info", "small.ondes"]);
    let stored = card["storage"].as_array().expect("a list");
    let sum: u64 = stored
        .iter()
        .map(|stored| stored["weights"].as_u64().expect("a number"))
        .sum();
    assert_eq!(sum, model.parameters() as u64);
    assert!(
        stored.iter().any(|stored| stored["storage"] == "BF16"),
        "{card}"
    );
}

#[test]
fn variants_are_listed_with_their_cost() {
    for (name, size) in [("wind", "half"), ("fuzz", "light")] {
        let model = format!(
            "{}/../assets/models/{name}.ondes",
            env!("CARGO_MANIFEST_DIR")
        );
        let output = Folder::new().run(&["info", &model]);
        let text = String::from_utf8(output.stdout).expect("text");
        let line = text
            .lines()
            .find(|line| line.starts_with("variants"))
            .expect("it holds one");
        assert!(
            line.contains(size)
                && line.contains("below 0.5")
                && line.contains("% of the arithmetic"),
            "{line}"
        );
    }
}

#[test]
fn json_has_the_same_information() {
    let folder = with_card();
    let card = folder.json(&["info", "small.ondes"]);
    let model = file::read(&folder.path("small.ondes")).expect("a model");
    assert_eq!(card["name"], "Small");
    assert_eq!(card["kind"], "instrument");
    assert_eq!(card["author"], "A test");
    assert_eq!(card["sample_rate"], 48_000);
    assert_eq!(card["parameters"], model.parameters());
    assert_eq!(card["content_hash"], model.content_hash());
    assert_eq!(
        card["file_bytes"],
        std::fs::metadata(folder.path("small.ondes"))
            .expect("a file")
            .len()
    );
    assert_eq!(card["methods"][0]["name"], "synth");
    assert_eq!(card["methods"][0]["inputs"][1]["ratio"], 192);
    assert_eq!(card["methods"][0]["latency_samples"], 192);
    assert_eq!(card["methods"][0]["latency_ms"], 4.0);
    assert_eq!(card["controls"][1]["max"], 24.0);
    assert_eq!(card["performance"]["polyphony"], 4);
    assert_eq!(card["training"]["steps"], 12_000);
    assert_eq!(card["quality"][0]["baseline"], 1.5);
    // A hop; at another rate the conversion comes on top.
    assert_eq!(card["cost"][0]["latency_ms_at"]["48000"], 4.0);
    let converted = card["cost"][0]["latency_ms_at"]["44100"]
        .as_f64()
        .expect("a number");
    assert!((4.4..4.6).contains(&converted), "{converted} ms");
    for cost in card["cost"].as_array().expect("a list") {
        assert!(
            cost["realtime_factor"]
                .as_f64()
                .is_some_and(|factor| factor > 0.0),
            "{cost}"
        );
        assert!(
            cost["memory_bytes"].as_u64().is_some_and(|bytes| bytes > 0),
            "{cost}"
        );
    }
}

#[test]
fn effects_have_a_card() {
    let folder = Folder::new();
    file::write(&effect(), &folder.path("half.ondes")).expect("the model is written");
    let card = folder.json(&["info", "half.ondes"]);
    assert_eq!(card["kind"], "effect");
    assert_eq!(card["cost"][0]["what"], "a recording");
    // The first sample of a block of 64 waits for the last one.
    assert_eq!(card["cost"][0]["latency_samples"], 63);
    assert!(card["performance"].is_null());
    assert!(folder.run(&["info", "half.ondes"]).status.success());
}

#[test]
fn a_codec_shows_its_latents() {
    let folder = Folder::new();
    file::write(&codec(), &folder.path("mean.ondes")).expect("the model is written");
    let card = folder.json(&["info", "mean.ondes"]);
    assert_eq!(card["kind"], "codec");
    let names: Vec<&str> = card["controls"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|control| control["name"].as_str())
        .collect();
    assert_eq!(names, ["latent1.scale", "latent1.offset", "latent1.hold"]);
    assert_eq!(card["cost"][0]["latency_samples"], 15);
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let folder = Folder::new();
    let mut command = folder.command(&["info", "small.ondes"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
fn every_command_takes_bundled_models() {
    let folder = Folder::new();
    for name in ["violin", "Fuzz", "DRUMS"] {
        let card = folder.json(&["info", name]);
        assert_eq!(
            card["name"].as_str().map(str::to_lowercase),
            Some(name.to_lowercase())
        );
        assert_eq!(
            (&card["file"], card["file_bytes"].as_u64() > Some(1_000)),
            (&name.into(), true)
        );
    }
    assert!(
        folder
            .run(&["bench", "fuzz", "--seconds", "0.1"])
            .status
            .success()
    );
    assert!(
        folder
            .run(&["export", "fuzz", "--to", "nn~"])
            .status
            .success()
    );
    assert!(folder.run(&["import", "violin"]).status.success());
    let written = file::read(&folder.path("violin.ondes")).expect("a model");
    assert_eq!(
        folder.json(&["info", "violin"])["content_hash"],
        written.content_hash()
    );
    // A file of that name comes first, and what is neither is refused with what there is.
    file::write(&effect(), &folder.path("fuzz")).expect("the model is written");
    assert_eq!(folder.json(&["info", "fuzz"])["name"], "Half");
    for command in ["info", "bench", "import"] {
        folder.refuses(
            &[command, "banjo"],
            &["banjo: no such file or bundled model", "violin", "drums"],
        );
    }
}

#[test]
fn what_a_model_needs_is_told_by_its_kind() {
    let folder = Folder::new();
    for (model, words) in [
        (
            "drums",
            "drums: needs --seconds to play on its own, or --midi or --input",
        ),
        ("violin", "violin: needs --midi or --input"),
        ("fuzz", "fuzz: needs --input"),
        ("strings", "strings: needs --input"),
    ] {
        folder.refuses(&["render", model, "--out", "d.wav"], &[words]);
    }
    write_wav(&folder.path("x.wav"), 48_000, 1, tone(220.0, 0.1, 48_000));
    folder.refuses(
        &["render", "fuzz", "--input", "x.wav", "--cabinet", "4x13"],
        &["bundled: 1x12, 2x12, 4x12"],
    );
}

#[test]
fn a_capture_shows_its_error_and_rounded_levels() {
    let folder = Folder::new();
    let capture = r#"{ "version": "0.5.4", "architecture": "Linear", "weights": [1.0], "config": { "receptive_field": 1,
        "bias": false }, "metadata": { "loudness": -12.049386978149414, "input_level_dbu": "12.2",
        "training": { "validation_esr": 0.003712345 } } }"#;
    std::fs::write(folder.path("amp.nam"), capture).expect("the file is written");
    let text = String::from_utf8(folder.run(&["info", "amp.nam"]).stdout).expect("text");
    assert!(
        text.contains("input 12.2 dBu, loudness -12.049 dB\n"),
        "{text}"
    );
    let quality = text
        .lines()
        .find(|line| line.starts_with("quality"))
        .expect("the file states its quality");
    assert!(
        quality.contains("ESR") && quality.ends_with("0.00371"),
        "{quality}"
    );
    assert!(!text.contains(" 0× real time"), "{text}");
}
