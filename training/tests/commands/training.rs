//! Corpora, training, resumption and evaluation from the command line.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{make_corpus, make_pair, refuse, run, succeed, train, write_config};
use ondes_engine::model::file;

#[test]
fn a_killed_run_goes_on_to_the_same_weights() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    make_corpus(folder);
    let original = write_config(folder, "original");
    let table = succeed(&["fit", &original]);
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
    let output = run(&["fit", &killed, "--resume"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("resumed at step"), "{text}");

    let read = |name: &str| file::read(&folder.join(name)).expect("a model");
    let (original, killed) = (read("original.ondes"), read("killed.ondes"));
    assert_eq!(original.weights(), killed.weights(), "bit-equal weights");
    assert_eq!(original.header(), killed.header());
    let card = &original.header().card;
    assert!(card.training.as_ref().is_some_and(|training| training.steps > 0 && training.corpus_seconds > 10.0));
    assert!(card.quality.len() >= 4 && card.quality.iter().all(|measure| measure.value.is_finite()));

    let model = folder.join("original.ondes").display().to_string();
    let data = folder.join("corpus").display().to_string();
    let cache = folder.join("cache").display().to_string();
    let json = succeed(&["evaluate", &model, "--data", &data, "--cache", &cache, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    for side in ["model", "baseline"] {
        assert!(json[side]["spectral_distance"].as_f64().is_some_and(|distance| distance > 0.0), "{json}");
    }
    // The baseline must be in tune, since it is given the pitch.
    assert!(json["baseline"]["pitch_within_10_cents_percent"].as_f64().is_some_and(|share| share > 90.0), "{json}");
}

#[test]
fn a_capture_is_made_stopped_resumed_and_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (dry, wet) = make_pair(folder);
    let path = |name: &str| folder.join(name).display().to_string();
    let (original, killed, nam) = (path("original.ondes"), path("killed.ondes"), path("original.nam"));
    let options = ["capture", "--dry", &dry, "--wet", &wet, "--size", "nano", "--epochs", "8", "--window", "1024"];
    let options = [&options[..], &["--name", "Green", "--type", "pedal", "--threads", "1"]].concat();
    let output = run(&[&options[..], &["--out", &original, "--nam", &nam]].concat());
    let [table, text] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("text"));
    assert!(output.status.success() && text.contains("x real time"), "{text}");
    assert!(table.contains("delayed by") && table.contains("held out"), "{table}");

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
    let output = run(&[&arguments[..], &["--resume"]].concat());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("resumed after epoch"), "{text}");
    assert!(!checkpoint.exists(), "what is done needs no checkpoint");

    let read = |name: &str| file::read(&folder.join(name)).expect("a model");
    let (ours, resumed, theirs) = (read("original.ondes"), read("killed.ondes"), read("original.nam"));
    assert_eq!(ours.weights(), resumed.weights(), "bit-equal weights");
    assert_eq!(ours.header(), resumed.header());
    assert_eq!(ours.header().methods, theirs.header().methods);
    assert_eq!(ours.weights(), theirs.weights());
    let (card, foreign) = (&ours.header().card, &theirs.header().card);
    assert_eq!((card.name.as_str(), &card.gear, &card.levels), ("Green", &foreign.gear, &foreign.levels));
    assert!(card.levels.is_some_and(|levels| levels.loudness_db.is_some_and(|loudness| loudness < 0.0)));
    assert_eq!(card.quality.len(), 1);

    let json = succeed(&["evaluate", &original, "--dry", &dry, "--wet", &wet, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["held_out"]["value"].as_f64(), Some(card.quality[0].value), "{json}");
    assert!(json["all"]["value"].as_f64().is_some_and(|error| error < 1.0), "{json}");

    let further = path("further.ondes");
    let base = ["capture", "--dry", &dry, "--wet", &wet, "--from", &nam, "--epochs", "1", "--out", &further];
    succeed(&base);
    assert_eq!(read("further.ondes").header().methods, ours.header().methods);

    // A shape that has no named size: its head has a larger gain.
    let text = std::fs::read_to_string(&nam).expect("it can be read");
    let mut foreign: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let scale = serde_json::json!(0.03);
    foreign["config"]["head_scale"] = scale.clone();
    *foreign["weights"].as_array_mut().and_then(|weights| weights.last_mut()).expect("there are weights") = scale;
    let foreign_nam = path("foreign.nam");
    std::fs::write(&foreign_nam, foreign.to_string()).expect("it can be written");
    let base = ["capture", "--dry", &dry, "--wet", &wet, "--from", &foreign_nam, "--epochs", "1", "--out", &further];
    succeed(&base);
    let (further, foreign) = (read("further.ondes"), read("foreign.nam"));
    assert_ne!(foreign.header().methods, ours.header().methods);
    assert_eq!(further.header().methods, foreign.header().methods);
    assert_ne!(further.weights(), foreign.weights());

    let out = path("out.nam");
    refuse(&[
        (vec!["capture", "--dry", &dry, "--wet", &wet, "--from", &foreign_nam, "--nam", &out], "has another shape"),
        (vec!["capture", "--dry", &dry, "--wet", &nam], "original.nam"),
        (vec!["capture", "--dry", &dry, "--wet", &wet, "--size", "huge"], "huge"),
        (vec!["capture", "--dry", &dry, "--wet", &wet, "--size", "lite", "--from", &nam], "another shape"),
        (vec!["capture", "--dry", &dry, "--wet", &wet, "--size", "lite", "--resume"], "no checkpoint"),
    ]);
}

#[test]
fn a_bundled_cabinet_is_made_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("again.wav");
    let line = succeed(&["cabinet", "4x12-closed-back", "--out", &out.display().to_string()]);
    assert!(line.contains("four loud 12-inch drivers in a closed box"), "{line}");
    let read = |path: &Path| -> Vec<i32> {
        let mut reader = hound::WavReader::open(path).expect("a WAV file");
        let format = reader.spec();
        assert_eq!((format.sample_rate, format.channels, format.bits_per_sample), (48_000, 1, 24));
        reader.samples().map(|sample| sample.expect("a whole file")).collect()
    };
    let bundled = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/cabinets/4x12-closed-back.wav");
    let (again, bundled) = (read(&out), read(&bundled));
    assert_eq!(again.len(), bundled.len());
    // Another machine's sine may differ in the last bit.
    assert!(again.iter().zip(&bundled).all(|(again, bundled)| (again - bundled).abs() <= 1));
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
    refuse(&[
        (vec!["fit", &missing], "missing.toml"),
        (vec!["fit", &unknown], "colour"),
        (vec!["fit", &broken], "broken.toml"),
        (vec!["fit", &config], "holds no audio"),
        (vec!["evaluate", &noise, "--data", &corpus], "noise.ondes"),
    ]);
    make_corpus(folder);
    let output = run(&["fit", &config, "--resume"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no checkpoint"));
}
