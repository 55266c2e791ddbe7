//! TorchScript models, with the library around libtorch and without it.

use std::process::Output;

use ondes_tests::torchscript::models::{attributes, codec, streaming};
use ondes_tests::torchscript::{Class, Value};

use crate::common::{Folder, assert_refused, library, write_wav};

fn with_program(class: &Class) -> Folder {
    let folder = Folder::new();
    std::fs::write(folder.path("program.ts"), class.bytes()).expect("the file is written");
    folder
}

#[test]
fn without_the_library_it_is_said_what_to_do() {
    let folder = with_program(&streaming(2, 1));
    let run = |arguments: &[&str]| -> Output {
        let mut command = folder.command(arguments);
        command.env("ONDES_TORCH_LIBRARY", "/nowhere/libondes_torch.so").output().expect("the program starts")
    };
    write_wav(&folder.path("in.wav"), 44_100, 1, std::iter::repeat_n(0.1, 4_410));
    for arguments in
        [&["info", "program.ts"][..], &["render", "program.ts", "--input", "in.wav"], &["bench", "program.ts"]]
    {
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
fn programs_are_described_and_played() {
    let Some(library) = library() else { return };
    let folder = with_program(&attributes());
    write_wav(&folder.path("in.wav"), 44_100, 1, std::iter::repeat_n(0.1, 4_410));
    let run = |arguments: &[&str]| -> Output {
        folder.command(arguments).env("ONDES_TORCH_LIBRARY", &library).output().expect("the program starts")
    };
    let told = run(&["info", "program.ts"]);
    let text = String::from_utf8_lossy(&told.stdout);
    for word in ["forward", "dry → wet", "gain", "range.2", "44100 Hz is assumed", "torch", "holds here"] {
        assert!(text.contains(word), "{word} in {text} {}", String::from_utf8_lossy(&told.stderr));
    }
    let arguments =
        ["render", "program.ts", "--input", "in.wav", "--out", "out.wav", "--device", "cpu", "--control", "gain=2"];
    let played = run(&arguments);
    assert!(played.status.success(), "{}", String::from_utf8_lossy(&played.stderr));
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

    assert_refused(&run(&["import", "program.ts"]), &["program.ts", "TorchScript program"]);
}

#[test]
fn a_model_with_a_prior_plays_without_an_input() {
    let Some(library) = library() else { return };
    let folder = with_program(&codec(4, 64, true));
    let run = |arguments: &[&str]| -> Output {
        folder.command(arguments).env("ONDES_TORCH_LIBRARY", &library).output().expect("the program starts")
    };
    let arguments =
        ["render", "program.ts", "--seconds", "0.5", "--control", "prior=1", "--device", "cpu", "--out", "out.wav"];
    let played = run(&arguments);
    assert!(played.status.success(), "{}", String::from_utf8_lossy(&played.stderr));
    let mut wav = hound::WavReader::open(folder.path("out.wav")).expect("a WAV");
    assert_eq!((wav.spec().sample_rate, wav.duration()), (48_000, 24_000));
    let loudest = wav.samples::<f32>().map(|sample| sample.expect("whole").abs()).fold(0.0, f32::max);
    assert!((loudest - 1.0).abs() < 0.01, "{loudest}");
    assert_refused(&run(&["render", "small.ondes", "--seconds", "1"]), &["small.ondes: ", "prior"]);
}

#[test]
fn a_program_that_breaks_down_says_why() {
    let Some(library) = library() else { return };
    // It runs until what goes in is loud.
    let body = ["if bool(x.abs().max() > 0.5):", "  return x.view([7])", "return x"];
    let folder = with_program(&Class::default().with("sr", Value::Int(44_100)).nn("forward", [1, 1, 1, 1], &body));
    write_wav(&folder.path("in.wav"), 44_100, 1, std::iter::repeat_n(0.9, 4_410));
    let mut command = folder.command(&["render", "program.ts", "--input", "in.wav", "--out", "out.wav"]);
    let played = command.env("ONDES_TORCH_LIBRARY", library).output().expect("the program starts");
    assert_refused(&played, &["the model broke down: RuntimeError"]);
    assert!(!folder.path("out.wav").exists());
}
