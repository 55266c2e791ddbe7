//! Errors and lengths of session renders.

use ondes_engine::model::file;
use ondes_player::library::FileReference;
use serde_json::{Value, json};

use crate::common::{Folder, tone, two_tracks, write_wav};

/// Returns a session of one track that plays the small instrument, as the window saves it.
fn session(folder: &Folder) -> Value {
    let path = folder.path("small.ondes");
    let model = FileReference::to(&file::read(&path).expect("a model"), Some(path));
    json!({
        "format": "ondes-session",
        "version": 1,
        "tracks": [{ "name": "Small/1", "product": "org.ondes.instrument", "selection": { "model": model } }],
    })
}

fn write(folder: &Folder, session: &Value) {
    std::fs::write(folder.path("a.ondes-session"), session.to_string())
        .expect("the file is written");
}

fn with_session() -> Folder {
    let folder = Folder::new();
    std::fs::write(folder.path("song.mid"), two_tracks()).expect("the file is written");
    write(&folder, &session(&folder));
    folder
}

const RENDER: [&str; 4] = ["render", "a.ondes-session", "--midi", "song.mid"];

#[test]
fn a_session_renders_its_tail_or_the_given_seconds() {
    let folder = with_session();
    let report = folder.json(&RENDER);
    assert_eq!(
        (&report["out"], &report["session"]),
        (&json!("a.wav"), &json!("a.ondes-session"))
    );
    let seconds = report["seconds"].as_f64().expect("a number");
    assert!(seconds > 1.5 && seconds < 4.0, "{seconds}");
    assert_eq!(
        (&report["tracks"][0]["name"], &report["tracks"][0]["out"]),
        (&json!("Small/1"), &Value::Null)
    );
    assert!(
        report["latency_samples"]
            .as_u64()
            .is_some_and(|samples| samples > 72)
    );
    assert_eq!(report["reduction_db"], 0.0);
    let reader = hound::WavReader::open(folder.path("a.wav")).expect("a WAV");
    assert_eq!(
        (reader.spec().channels, u64::from(reader.duration())),
        (2, report["frames"].as_u64().expect("a number"))
    );
    let report = folder.json(
        &[
            &RENDER[..],
            &["--seconds", "0.5", "--sample-rate", "44100", "--bits", "16"],
        ]
        .concat(),
    );
    assert_eq!(
        (&report["frames"], &report["bits"], &report["sample_rate"]),
        (&json!(22_050), &json!(16), &json!(44_100))
    );
    // The session's own sample rate.
    let mut other = session(&folder);
    other["audio"] = json!({ "sample_rate": 32_000 });
    write(&folder, &other);
    assert_eq!(folder.json(&RENDER)["sample_rate"], 32_000);
    let output = folder.run(&[&RENDER[..], &["--out", "-"]].concat());
    assert!(output.status.success() && output.stdout.starts_with(b"RIFF"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("× real time"));
}

#[test]
fn a_session_can_be_normalized() {
    let folder = with_session();
    let report = folder.json(&[&RENDER[..], &["--normalize", "-30"]].concat());
    let lufs = report["lufs"].as_f64().expect("a number");
    let mut meter = ebur128::EbuR128::new(2, 48_000, ebur128::Mode::I).expect("it can be measured");
    let mut reader = hound::WavReader::open(folder.path("a.wav")).expect("a WAV");
    let samples: Vec<f32> = reader
        .samples()
        .collect::<Result<_, _>>()
        .expect("whole samples");
    meter.add_frames_f32(&samples).expect("it is measured");
    let measured = meter.loudness_global().expect("it was measured");
    assert!(
        (lufs + 30.0).abs() < 0.05 && (measured + 30.0).abs() < 0.1,
        "{lufs} {measured}"
    );
    assert_eq!(report["warnings"], json!([]));
}

#[test]
fn unused_inputs_are_reported() {
    let folder = with_session();
    let report = folder.json(&["render", "a.ondes-session", "--seconds", "0.1"]);
    let warning = report["warnings"][0].as_str().expect("a warning");
    assert!(
        warning.contains("track 1 (Small/1)") && warning.contains("--midi"),
        "{warning}"
    );
    assert!(
        report["peak_db"].is_null() || report["peak_db"].as_f64().is_some_and(|peak| peak < -60.0)
    );
    // A generator plays without notes, and by them; an effect has none.
    let mut one = session(&folder);
    for (model, is_told) in [("Drums", false), ("Fuzz", true)] {
        one["tracks"][0]["selection"]["model"] = json!({ "name": model });
        write(&folder, &one);
        let warnings =
            folder.json(&[&RENDER[..], &["--seconds", "0.1"]].concat())["warnings"].to_string();
        assert_eq!(
            warnings.contains("no track plays notes"),
            is_told,
            "{model}: {warnings}"
        );
    }
}

#[test]
fn a_retrained_bundled_model_is_reported() {
    let folder = with_session();
    let mut old = session(&folder);
    old["tracks"][0]["selection"]["model"] = json!({ "hash": "0".repeat(64), "name": "Wind" });
    write(&folder, &old);
    let report = folder.json(&RENDER);
    let warning = report["warnings"][0].as_str().expect("a warning");
    assert!(
        warning.contains("track 1") && warning.contains("“Wind” was trained anew"),
        "{warning}"
    );
}

#[test]
fn bad_sessions_are_refused() {
    let folder = with_session();
    let sound = session(&folder);
    let text = sound.to_string();
    let refuses = |text: &str, words: &[&str]| {
        std::fs::write(folder.path("a.ondes-session"), text).expect("the file is written");
        folder.refuses(&RENDER, &[&["a.ondes-session: "], words].concat());
    };
    refuses("", &["not an Ondes session"]);
    refuses("{}", &["not an Ondes session"]);
    for length in [1, text.len() / 2, text.len() - 1] {
        refuses(&text[..length], &["not an Ondes session"]);
    }
    refuses(
        &text.replace("\"version\":1", "\"version\":7"),
        &["version 7"],
    );
    refuses(r#"{"format":"ondes-session","version":1}"#, &["no tracks"]);
    refuses(
        r#"{"format":"ondes-session","version":1,"tracks":[{"mix":1}]}"#,
        &["Settings"],
    );
    let mut many = sound.clone();
    many["tracks"] = vec![sound["tracks"][0].clone(); 17].into();
    refuses(&many.to_string(), &["16 of 17"]);
    let mut missing = sound.clone();
    missing["tracks"][0]["selection"]["model"]["hash"] = "0".repeat(64).into();
    refuses(
        &missing.to_string(),
        &["the model \"Small\" is missing", "small.ondes"],
    );
    let mut no_cabinet = sound.clone();
    let path = folder.path("box.wav");
    no_cabinet["tracks"][0]["selection"]["cabinet"] =
        json!({ "name": "Box", "hash": "0".repeat(64), "path": path });
    refuses(
        &no_cabinet.to_string(),
        &["the cabinet \"Box\" is missing", "box.wav: no such file"],
    );
    std::fs::write(&path, "no sound").expect("the file is written");
    refuses(
        &no_cabinet.to_string(),
        &["the cabinet \"Box\" is missing", "box.wav: is not audio"],
    );
    std::fs::remove_file(&path).expect("the file is removed");
    let mut mute = sound.clone();
    mute["tracks"][0]["input"] = json!({ "file": { "path": "gone.wav" } });
    refuses(&mute.to_string(), &["gone.wav: no such file"]);
    folder.refuses(
        &["render", "none.ondes-session"],
        &["none.ondes-session: No such file"],
    );
    write(&folder, &sound);
    folder.refuses(
        &["render", "a.ondes-session"],
        &["--midi, --input or --seconds"],
    );
    folder.refuses(
        &[&RENDER[..], &["--out", "song.mid"]].concat(),
        &["song.mid: output would overwrite an input"],
    );
    folder.refuses(
        &[&RENDER[..], &["--out", "a.ondes-session"]].concat(),
        &["output would overwrite an input"],
    );
    for (more, words) in [
        (&["--control", "noise=1"][..], "--control is for a model"),
        (&["--transpose", "1"], "--transpose is for a model"),
        (&["--track", "High"], "--track is for a model"),
        (&["--force"], "--force is for a batch"),
        (&["more.mid"], "one file for --midi"),
        (&["--stems", "--out", "-"], "needs a file as --out"),
        (&["--stems", "--normalize", "-20"], "cannot be combined"),
        (&["--input", "none.wav"], "none.wav: no such file"),
    ] {
        folder.refuses(&[&RENDER[..], more].concat(), &[words]);
    }
    folder.refuses(
        &["render", "small.ondes", "--midi", "song.mid", "--stems"],
        &["--stems needs a session"],
    );
    folder.refuses(
        &[
            "render",
            "small.ondes",
            "--midi",
            "song.mid",
            "--seconds",
            "2",
        ],
        &["--seconds needs a session"],
    );
    let output = folder.run(&["render", "a.ondes-session", "--seconds", "0"]);
    assert_eq!(output.status.code(), Some(2));
}

/// People write sessions, too, with editors that put a mark at the beginning.
#[test]
fn a_session_may_name_only_paths_and_bundled_names() {
    let folder = Folder::new();
    write_wav(
        &folder.path("take.wav"),
        48_000,
        1,
        tone(220.0, 0.3, 48_000),
    );
    let capture = r#"{"version": "0.5.4", "architecture": "Linear", "config": {"receptive_field": 1, "bias": false},
        "weights": [1.0], "sample_rate": 48000}"#;
    std::fs::write(folder.path("nameless.nam"), capture).expect("the file is written");
    let render = |model: &str, more: &str| {
        let session = format!(
            r#"{{"format": "ondes-session", "version": 1, "tracks": [{{"product": "org.ondes.effect",
                "input": {{"file": {{"path": "take.wav"}}}}, "selection": {{"model": {model}{more}}}}}]}}"#
        );
        for mark in ["", "\u{feff}"] {
            std::fs::write(folder.path("own.ondes-session"), format!("{mark}{session}"))
                .expect("the file is written");
            let report = folder.json(&["render", "own.ondes-session", "--out", "x.wav"]);
            assert!(
                report["peak_db"].as_f64().is_some_and(|peak| peak > -60.0),
                "{model}: {report}"
            );
        }
    };
    render(r#"{"path": "nameless.nam"}"#, "");
    render(r#"{"name": "fuzz"}"#, r#", "cabinet": {"name": "4X12"}"#);
    render(
        r#"{"name": "Fuzz"}"#,
        r#", "cabinet": {"path": "take.wav"}"#,
    );
}
