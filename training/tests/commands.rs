//! The trainer as its user runs it: a corpus, a run that is killed and goes on, an evaluation, and mistakes.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use ondes_engine::model::file;

fn train() -> Command {
    Command::new(env!("CARGO_BIN_EXE_ondes-train"))
}

fn run(arguments: &[&str]) -> Output {
    train().args(arguments).output().expect("the program starts")
}

fn succeed(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// A small configuration in `folder`; `name` names its model and its work folder.
fn write_config(folder: &Path, name: &str) -> String {
    let path = folder.join(format!("{name}.toml"));
    let text = format!(
        r#"
        name = "Tiny"
        data = "corpus"
        out = "{name}.ondes"
        work = "{name}"
        seed = 7
        [network]
        harmonics = 12
        noise_bands = 9
        input_units = 8
        recurrent_units = 12
        output_units = 8
        room_seconds = 0.01
        [training]
        steps = 60
        batch = 2
        clip_seconds = 0.25
        warmup_steps = 5
        validate_every = 7
        checkpoint_every = 5
        validation_share = 0.3
        "#
    );
    std::fs::write(&path, text).expect("it can be written");
    path.display().to_string()
}

fn make_corpus(folder: &Path) {
    let out = folder.join("corpus").display().to_string();
    succeed(&["corpus", "plucked", "--out", &out, "--minutes", "0.8", "--seed", "3"]);
}

#[test]
fn a_killed_run_goes_on_to_the_same_weights() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    make_corpus(folder);
    let whole = write_config(folder, "whole");
    let table = succeed(&["fit", &whole]);
    assert!(table.contains("multi-scale spectral distance"), "{table}");

    let killed = write_config(folder, "killed");
    let mut child =
        train().args(["fit", &killed]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let checkpoint = folder.join("killed/checkpoint.safetensors");
    let started = Instant::now();
    while !checkpoint.exists() {
        assert!(started.elapsed() < Duration::from_secs(300), "no checkpoint came");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    assert!(!folder.join("killed.ondes").exists(), "it was killed too late");
    let output = succeed(&["fit", &killed, "--resume"]);
    assert!(output.contains("resumed at step"), "{output}");

    let read = |name: &str| file::read(&folder.join(name)).expect("a whole model");
    let (whole, killed) = (read("whole.ondes"), read("killed.ondes"));
    assert_eq!(whole.weights(), killed.weights(), "bit-equal weights");
    assert_eq!(whole.header(), killed.header());
    let card = &whole.header().card;
    assert!(card.training.as_ref().is_some_and(|training| training.steps > 0 && training.corpus_seconds > 10.0));
    assert!(card.quality.len() >= 4 && card.quality.iter().all(|measure| measure.value.is_finite()));

    let model = folder.join("whole.ondes").display().to_string();
    let data = folder.join("corpus").display().to_string();
    let cache = folder.join("cache").display().to_string();
    let json = succeed(&["evaluate", &model, "--data", &data, "--cache", &cache, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    for side in ["model", "baseline"] {
        assert!(json[side]["spectral_distance"].as_f64().is_some_and(|distance| distance > 0.0), "{json}");
    }
    // The baseline is given the pitch: were it not in tune, the measure would be wrong.
    assert!(json["baseline"]["pitch_within_10_cents_percent"].as_f64().is_some_and(|share| share > 90.0), "{json}");
}

/// Four seconds of playing and what a circuit makes of it, late by some samples; gives both paths.
fn make_pair(folder: &Path) -> (String, String) {
    let path = |name: &str| folder.join(name).display().to_string();
    let (signal, dry, wet) = (path("signal.wav"), path("dry.wav"), path("wet.wav"));
    succeed(&["capture-signal", "--out", &signal, "--seconds", "30"]);
    let mut reader = hound::WavReader::open(&signal).expect("a WAV file");
    let format = reader.spec();
    assert_eq!((format.sample_rate, format.channels, format.bits_per_sample), (48_000, 1, 24));
    let samples: Vec<i32> = reader.samples().map(|sample| sample.expect("a whole file")).collect();
    assert_eq!(samples.len(), 30 * 48_000);
    let write = |path: &str, samples: &[i32]| {
        let mut file = hound::WavWriter::create(path, format).expect("it can be written");
        samples.iter().for_each(|&sample| file.write_sample(sample).expect("it can be written"));
        file.finalize().expect("it can be written");
    };
    write(&dry, &samples[6 * 48_000..10 * 48_000]);
    succeed(&["circuit", "overdrive", "--in", &dry, "--out", &wet]);
    (dry, wet)
}

#[test]
fn a_capture_is_made_stopped_resumed_and_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (dry, wet) = make_pair(folder);
    let path = |name: &str| folder.join(name).display().to_string();
    let (whole, killed, nam) = (path("whole.ondes"), path("killed.ondes"), path("whole.nam"));
    let options = ["capture", "--dry", &dry, "--wet", &wet, "--size", "nano", "--epochs", "8", "--window", "1024"];
    let options = [&options[..], &["--name", "Green", "--type", "pedal", "--threads", "1"]].concat();
    let table = succeed(&[&options[..], &["--out", &whole, "--nam", &nam]].concat());
    assert!(table.contains("behind") && table.contains("x real time") && table.contains("held out"), "{table}");

    let arguments = [&options[..], &["--out", &killed]].concat();
    let mut child = train().args(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let checkpoint = folder.join("killed.checkpoint");
    let started = Instant::now();
    while !checkpoint.exists() {
        assert!(started.elapsed() < Duration::from_secs(300), "no checkpoint came");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    assert!(!folder.join("killed.ondes").exists(), "it was killed too late");
    let output = succeed(&[&arguments[..], &["--resume"]].concat());
    assert!(output.contains("resumed after epoch"), "{output}");
    assert!(!checkpoint.exists(), "what is done needs no checkpoint");

    let read = |name: &str| file::read(&folder.join(name)).expect("a whole model");
    let (ours, resumed, theirs) = (read("whole.ondes"), read("killed.ondes"), read("whole.nam"));
    assert_eq!(ours.weights(), resumed.weights(), "bit-equal weights");
    assert_eq!(ours.header(), resumed.header());
    assert_eq!(ours.header().methods, theirs.header().methods);
    assert_eq!(ours.weights(), theirs.weights());
    let (card, foreign) = (&ours.header().card, &theirs.header().card);
    assert_eq!((card.name.as_str(), &card.gear, &card.levels), ("Green", &foreign.gear, &foreign.levels));
    assert!(card.levels.is_some_and(|levels| levels.loudness_db.is_some_and(|loudness| loudness < 0.0)));
    assert_eq!(card.quality.len(), 1);

    let json = succeed(&["evaluate", &whole, "--dry", &dry, "--wet", &wet, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["held_out"]["value"].as_f64(), Some(card.quality[0].value), "{json}");
    assert!(json["all"]["value"].as_f64().is_some_and(|error| error < 1.0), "{json}");

    let further = path("further.ondes");
    let base = ["capture", "--dry", &dry, "--wet", &wet, "--from", &nam, "--epochs", "1", "--out", &further];
    succeed(&base);
    assert_eq!(read("further.ondes").header().methods, ours.header().methods);

    for (arguments, named) in [
        (vec!["capture", "--dry", &dry, "--wet", &nam], "whole.nam"),
        (vec!["capture", "--dry", &dry, "--wet", &wet, "--size", "huge"], "huge"),
        (vec!["capture", "--dry", &dry, "--wet", &wet, "--size", "lite", "--from", &nam], "another shape"),
        (vec!["capture", "--dry", &dry, "--wet", &wet, "--size", "lite", "--resume"], "no checkpoint"),
    ] {
        let output = run(&arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert_eq!(message.trim().lines().count(), 1, "{arguments:?}: {message}");
        assert!(message.contains(named), "{arguments:?}: {message}");
    }
}

#[test]
fn mistakes_are_told_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::create_dir(folder.join("corpus")).expect("a folder");
    let config = write_config(folder, "empty");
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("it can be written");
        path.display().to_string()
    };
    let unknown = write("unknown.toml", "name = \"x\"\ncolour = 3\n");
    let broken = write("broken.toml", "name = \n");
    let noise = write("noise.ondes", "this is no model");
    let missing = folder.join("missing.toml").display().to_string();
    let corpus = folder.join("corpus").display().to_string();
    for (arguments, named) in [
        (vec!["fit", &missing], "missing.toml"),
        (vec!["fit", &unknown], "colour"),
        (vec!["fit", &broken], "broken.toml"),
        (vec!["fit", &config], "holds no audio"),
        (vec!["evaluate", &noise, "--data", &corpus], "noise.ondes"),
    ] {
        let output = run(&arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert_eq!(message.trim().lines().count(), 1, "{arguments:?}: {message}");
        assert!(message.contains(named), "{arguments:?}: {message}");
    }
    make_corpus(folder);
    let output = run(&["fit", &config, "--resume"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no checkpoint"));
}
