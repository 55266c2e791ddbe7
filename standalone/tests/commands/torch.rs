//! TorchScript models, with and without the torch library.

use std::path::Path;
use std::process::Output;

use ondes_engine::dsp::level::max_difference;
use ondes_player::library::{BUNDLED, FileReference};
use ondes_tests::torchscript::models::{attributes, codec, streaming};
use ondes_tests::torchscript::{Class, Value};
use serde_json::json;

use crate::common::{Folder, assert_refused, library, write_wav};

fn with_program(class: &Class) -> Folder {
    let folder = Folder::new();
    std::fs::write(folder.path("program.ts"), class.bytes()).expect("the file is written");
    folder
}

#[test]
fn a_missing_library_is_reported_with_advice() {
    let folder = with_program(&streaming(2, 1));
    let run = |arguments: &[&str]| -> Output {
        let mut command = folder.command(arguments);
        command
            .env("ONDES_TORCH_LIBRARY", "/nowhere/libondes_torch.so")
            .output()
            .expect("the program starts")
    };
    write_wav(
        &folder.path("in.wav"),
        44_100,
        1,
        std::iter::repeat_n(0.1, 4_410),
    );
    for arguments in [
        &["info", "program.ts"][..],
        &["render", "program.ts", "--input", "in.wav"],
        &["bench", "program.ts"],
    ] {
        assert_refused(
            &run(arguments),
            &[
                "program.ts: ",
                "libtorch",
                "ondes setup-torch",
                "cargo xtask install --torch",
                "/nowhere/libondes_torch.so",
            ],
        );
    }
    // Everything else works.
    assert!(run(&["info", "small.ondes"]).status.success());
}

#[test]
fn torchscript_models_are_described_and_played() {
    let Some(library) = library() else { return };
    let folder = with_program(&attributes());
    write_wav(
        &folder.path("in.wav"),
        44_100,
        1,
        std::iter::repeat_n(0.1, 4_410),
    );
    let run = |arguments: &[&str]| -> Output {
        folder
            .command(arguments)
            .env("ONDES_TORCH_LIBRARY", &library)
            .output()
            .expect("the program starts")
    };
    let told = run(&["info", "program.ts"]);
    let text = String::from_utf8_lossy(&told.stdout);
    for word in [
        "forward",
        "dry → wet",
        "gain",
        "range.2",
        "44100 Hz is assumed",
        "torch",
        "real time",
    ] {
        assert!(
            text.contains(word),
            "{word} in {text} {}",
            String::from_utf8_lossy(&told.stderr)
        );
    }
    let arguments = [
        "render",
        "program.ts",
        "--input",
        "in.wav",
        "--out",
        "out.wav",
        "--device",
        "cpu",
        "--control",
        "gain=2",
    ];
    let played = run(&arguments);
    assert!(
        played.status.success(),
        "{}",
        String::from_utf8_lossy(&played.stderr)
    );
    let sound: Vec<f32> = hound::WavReader::open(folder.path("out.wav"))
        .expect("a WAV")
        .samples()
        .map(|sample| sample.expect("whole"))
        .collect();
    assert!((sound[2_000] - 0.4).abs() < 1e-3, "{}", sound[2_000]);

    for (precision, executor) in [("f32", "torch cpu"), ("bf16", "torch cpu bf16")] {
        let played = run(&[&arguments[..], &["--json", "--precision", precision]].concat());
        let report: serde_json::Value = serde_json::from_slice(&played.stdout).expect("one object");
        assert_eq!(report["executor"], executor);
    }

    assert_refused(
        &run(&["import", "program.ts"]),
        &["program.ts", "TorchScript program"],
    );
}

#[test]
fn a_method_and_settings_are_chosen() {
    let Some(library) = library() else { return };
    let folder = with_program(&attributes());
    std::fs::write(folder.path("codec.ts"), codec(4, 64, false).bytes())
        .expect("the file is written");
    write_wav(
        &folder.path("in.wav"),
        44_100,
        1,
        std::iter::repeat_n(0.1, 4_410),
    );
    write_wav(
        &folder.path("take.wav"),
        8_000,
        1,
        std::iter::repeat_n(0.25, 800),
    );
    let run = |arguments: &[&str]| -> Output {
        folder
            .command(arguments)
            .env("ONDES_TORCH_LIBRARY", &library)
            .output()
            .expect("the program starts")
    };
    let rendered = |arguments: &[&str]| {
        let played = run(&[
            &[
                "render", "--input", "in.wav", "--out", "out.wav", "--device", "cpu",
            ],
            arguments,
        ]
        .concat());
        assert!(
            played.status.success(),
            "{}",
            String::from_utf8_lossy(&played.stderr)
        );
        let mut wav = hound::WavReader::open(folder.path("out.wav")).expect("a WAV");
        wav.samples::<f32>()
            .nth(2_000)
            .expect("a sample")
            .expect("whole")
    };
    let told = run(&["info", "program.ts"]);
    let text = String::from_utf8_lossy(&told.stdout);
    assert!(
        text.contains("settings     name    text        default plain"),
        "{text}"
    );
    assert!(text.contains("source  sound file"), "{text}");
    for (arguments, expected) in [
        (&["program.ts"][..], 0.1),
        (&["program.ts", "--set", "name=silent"], 0.0),
        (
            &[
                "program.ts",
                "--set",
                "source=take.wav",
                "--method",
                "forward",
            ],
            0.35,
        ),
        // Two of four latents receive the input.
        (&["codec.ts", "--method", "decode"], 0.05),
    ] {
        let sample = rendered(arguments);
        assert!((sample - expected).abs() < 2e-3, "{arguments:?}: {sample}");
    }
    let loaded = run(&[
        "bench",
        "codec.ts",
        "--method",
        "encode",
        "--seconds",
        "0.1",
        "--json",
    ]);
    let report: serde_json::Value = serde_json::from_slice(&loaded.stdout).expect("one object");
    assert_eq!(report["kind"], "effect");
    // The error follows remarks on the program.
    let refused = |arguments: &[&str], words: &[&str]| {
        let output = run(&[&["render", "--input", "in.wav"], arguments].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(output.stdout.is_empty());
        let last = errors.lines().last().unwrap_or_default();
        assert!(
            last.starts_with("ondes: ") && words.iter().all(|word| last.contains(word)),
            "{words:?}: {errors}"
        );
    };
    refused(
        &["program.ts", "--set", "name=loud"],
        &["program.ts: setting \"name\": the program refuses this value"],
    );
    refused(
        &["program.ts", "--set", "nome=x"],
        &["program.ts: unknown setting \"nome\"; available: name, source"],
    );
    refused(
        &["program.ts", "--set", "gain=2"],
        &["program.ts: gain is a control; use --control gain=2"],
    );
    refused(
        &["program.ts", "--set", "source=none.wav"],
        &["program.ts: ", "none.wav"],
    );
    refused(
        &["codec.ts", "--method", "prior"],
        &["codec.ts: unknown method \"prior\"; available: encode, decode"],
    );
    refused(
        &["small.ondes", "--method", "decode"],
        &["small.ondes: only TorchScript models have methods"],
    );
}

#[test]
fn a_model_with_a_prior_plays_without_an_input() {
    let Some(library) = library() else { return };
    let folder = with_program(&codec(4, 64, true));
    let run = |arguments: &[&str]| -> Output {
        folder
            .command(arguments)
            .env("ONDES_TORCH_LIBRARY", &library)
            .output()
            .expect("the program starts")
    };
    let arguments = [
        "render",
        "program.ts",
        "--seconds",
        "0.5",
        "--control",
        "prior=1",
        "--device",
        "cpu",
        "--out",
        "out.wav",
    ];
    let played = run(&arguments);
    assert!(
        played.status.success(),
        "{}",
        String::from_utf8_lossy(&played.stderr)
    );
    let mut wav = hound::WavReader::open(folder.path("out.wav")).expect("a WAV");
    assert_eq!((wav.spec().sample_rate, wav.duration()), (48_000, 24_000));
    let loudest = wav
        .samples::<f32>()
        .map(|sample| sample.expect("whole").abs())
        .fold(0.0, f32::max);
    assert!((loudest - 1.0).abs() < 0.01, "{loudest}");
    assert_refused(
        &run(&["render", "small.ondes", "--seconds", "1"]),
        &["small.ondes: ", "prior"],
    );
}

/// Writes a session of one track that plays a native model on `in.wav`.
fn session(folder: &Folder, model: &str, running: serde_json::Value) {
    let bundled = BUNDLED
        .iter()
        .find(|bundled| bundled.name == model)
        .expect("a bundled model");
    let selection =
        json!({ "model": FileReference::to(&bundled.model(), None), "running": running });
    let input = json!({ "file": { "path": folder.path("in.wav") } });
    let track = json!({ "product": "org.ondes.effect", "selection": selection, "input": input });
    let session = json!({ "format": "ondes-session", "version": 1, "tracks": [track] });
    std::fs::write(folder.path("a.ondes-session"), session.to_string())
        .expect("the file is written");
}

/// Renders the session; returns its sound and its warnings.
fn rendered(folder: &Folder, library: &Path) -> (Vec<f32>, Vec<String>) {
    let mut command = folder.command(&["render", "a.ondes-session", "--out", "out.wav", "--json"]);
    let output = command
        .env("ONDES_TORCH_LIBRARY", library)
        .output()
        .expect("the program starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
    let warnings = serde_json::from_value(report["warnings"].clone()).expect("a list");
    let mut wav = hound::WavReader::open(folder.path("out.wav")).expect("a WAV");
    (
        wav.samples().map(|sample| sample.expect("whole")).collect(),
        warnings,
    )
}

fn with_tone() -> Folder {
    let folder = Folder::new();
    write_wav(
        &folder.path("in.wav"),
        48_000,
        1,
        (0..24_000).map(|n| 0.1 * (n as f32 * 0.03).sin()),
    );
    folder
}

fn difference(one: &[f32], other: &[f32]) -> f32 {
    assert_eq!(one.len(), other.len());
    max_difference(one, other)
}

#[test]
fn the_session_selects_the_executor_of_a_track() {
    let Some(library) = library() else { return };
    let folder = with_tone();
    let render = |running| {
        session(&folder, "Fuzz", running);
        rendered(&folder, &library)
    };
    let (native, quiet) = render(json!({}));
    assert!(
        quiet.is_empty() && native.iter().any(|sample| sample.abs() > 0.05),
        "{quiet:?}"
    );
    let (torch, quiet) = render(json!({ "executor": "torch", "device": "cpu" }));
    assert!(
        quiet.is_empty() && difference(&native, &torch) < 1e-5,
        "{quiet:?}"
    );
    let (rough, quiet) =
        render(json!({ "executor": "torch", "device": "cpu", "precision": "bf16" }));
    let rough = difference(&native, &rough);
    assert!(
        quiet.is_empty() && rough > 1e-5 && rough < 0.5,
        "{rough} {quiet:?}"
    );
    let (same, said) = render(json!({ "executor": "torch", "device": "cuda:255" }));
    assert!(
        said.len() == 1
            && said[0].contains("track 1: running on native")
            && said[0].contains("no cuda:255"),
        "{said:?}"
    );
    assert_eq!(difference(&native, &same), 0.0);
}

#[test]
fn an_unavailable_executor_falls_back() {
    let folder = with_tone();
    let nowhere = Path::new("/nowhere/libondes_torch.so");
    let render = |model, running| {
        session(&folder, model, running);
        rendered(&folder, nowhere)
    };
    let (native, quiet) = render("Fuzz", json!({}));
    assert!(quiet.is_empty(), "{quiet:?}");
    for (running, words) in [
        (
            json!({ "executor": "torch" }),
            ["instead of torch: ", "ondes setup-torch"],
        ),
        (
            json!({ "executor": "torch", "precision": "f16" }),
            ["instead of torch f16: ", "/nowhere"],
        ),
        (
            json!({ "precision": "f16" }),
            ["the model file's precision", "f16 needs"],
        ),
        (json!({ "device": "cuda:1" }), ["CPU-only", "cuda:1 needs"]),
    ] {
        let (sound, said) = render("Fuzz", running);
        assert!(
            said.len() == 1 && words.iter().all(|word| said[0].contains(word)),
            "{said:?}"
        );
        assert_eq!(difference(&native, &sound), 0.0);
    }
    let (_, said) = render("Bowed", json!({ "executor": "torch" }));
    assert!(
        said.iter()
            .any(|line| line.contains("instruments run on the native executor only")),
        "{said:?}"
    );
    // Options of the command line must work; there is no fallback.
    let refused = |arguments: &[&str], words: &[&str]| {
        let mut command = folder.command(arguments);
        assert_refused(
            &command
                .env("ONDES_TORCH_LIBRARY", nowhere)
                .output()
                .expect("the program starts"),
            words,
        );
    };
    refused(
        &["render", "a.ondes-session", "--executor", "torch"],
        &["--executor is for a model", "for each track"],
    );
    refused(
        &["play", "fuzz", "--input", "in.wav", "--executor", "torch"],
        &["fuzz: needs libtorch"],
    );
}

#[test]
fn a_failing_model_reports_the_reason() {
    let Some(library) = library() else { return };
    // Fails as soon as the input is loud.
    let body = [
        "if bool(x.abs().max() > 0.5):",
        "  return x.view([7])",
        "return x",
    ];
    let folder = with_program(&Class::default().with("sr", Value::Int(44_100)).nn(
        "forward",
        [1, 1, 1, 1],
        &body,
    ));
    write_wav(
        &folder.path("in.wav"),
        44_100,
        1,
        std::iter::repeat_n(0.9, 4_410),
    );
    let mut command = folder.command(&[
        "render",
        "program.ts",
        "--input",
        "in.wav",
        "--out",
        "out.wav",
    ]);
    let played = command
        .env("ONDES_TORCH_LIBRARY", library)
        .output()
        .expect("the program starts");
    assert_refused(&played, &["the model failed: RuntimeError"]);
    assert!(!folder.path("out.wav").exists());
}

#[test]
fn every_command_survives_a_program_that_raises_crashes_or_is_damaged() {
    let Some(library) = library() else { return };
    let effect = |body: &[&str]| {
        Class::default()
            .with("sr", Value::Int(44_100))
            .nn("forward", [1, 1, 1, 1], body)
    };
    let loud = "if bool(x.abs().max() > 0.1):";
    let raises = effect(&[loud, "  return x.view([7])", "return x"]);
    let crashes = effect(&[
        loud,
        "  rows = torch.mul(torch.add(torch.arange(2), 1), 1099511627776)",
        "  x = torch.add(x, torch.max(torch._convert_indices_from_csr_to_coo(rows, rows)))",
        "return x",
    ]);
    let folder = with_program(&raises);
    std::fs::write(folder.path("crash.ts"), crashes.bytes()).expect("the file is written");
    let whole = raises.bytes();
    std::fs::write(folder.path("damaged.ts"), &whole[..whole.len() - 30])
        .expect("the file is written");
    write_wav(
        &folder.path("in.wav"),
        44_100,
        1,
        std::iter::repeat_n(0.9, 4_410),
    );
    let refused = |arguments: &[&str], words: &[&str]| {
        let mut command = folder.command(arguments);
        let output = command
            .env("ONDES_TORCH_LIBRARY", &library)
            .output()
            .expect("the program starts");
        assert_refused(&output, words);
    };
    for (file, reason) in [
        (
            "program.ts",
            "the model failed: RuntimeError: shape '[7]' is invalid",
        ),
        (
            "crash.ts",
            "crash: the program crashed (signal 11, invalid memory access)",
        ),
        (
            "damaged.ts",
            "damaged.ts: a ZIP archive that is damaged or cut off",
        ),
    ] {
        refused(&["info", file], &[file, reason]);
        refused(&["info", file, "--json"], &[file, reason]);
        refused(&["bench", file, "--seconds", "0.1"], &[reason]);
        refused(
            &["render", file, "--input", "in.wav", "--out", "out.wav"],
            &[reason],
        );
    }
    assert!(!folder.path("out.wav").exists());
}

#[test]
fn programs_run_in_a_process_of_their_own_unless_told_otherwise() {
    let Some(library) = library() else { return };
    let folder = with_program(&streaming(2, 1));
    let info = |host: &str| {
        let mut command = folder.command(&["info", "program.ts"]);
        command
            .env("ONDES_TORCH_LIBRARY", &library)
            .env("ONDES_PROGRAM_HOST", host)
            .output()
            .expect("it starts")
    };
    let advice = [
        "program.ts: ",
        "ondes-program-host",
        "/nowhere/host",
        "ondes setup-torch",
    ];
    assert_refused(&info("/nowhere/host"), &advice);
    // A program that ends at once is no host.
    assert_refused(
        &info("/bin/true"),
        &["program.ts: program: the program ended its process (exit code 0)"],
    );
    assert!(info("none").status.success());
}
