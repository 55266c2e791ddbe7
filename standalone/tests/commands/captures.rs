//! Captures of other programs: opening and importing.

use ondes_engine::dsp::level::db_to_amplitude;
use ondes_engine::model::file;
use serde_json::{Value, json};

use crate::common::{Folder, read_wav, tone, write_wav};

/// Capture of an amplifier that halves its input and adds a quarter of the sample before.
fn capture(version: &str) -> String {
    let file = json!({
        "version": version, "architecture": "Linear", "config": { "receptive_field": 2, "bias": false },
        "weights": [0.5, 0.25], "sample_rate": 48_000,
        "metadata": { "gear_make": "Acme", "gear_type": "amp", "loudness": -18.5, "input_level_dbu": 12.5 },
    });
    file.to_string()
}

fn with_capture() -> Folder {
    let folder = Folder::new();
    std::fs::write(folder.path("half.nam"), capture("0.5.4")).expect("it can be written");
    folder
}

#[test]
fn a_capture_has_a_card() {
    let folder = with_capture();
    let card = folder.json(&["info", "half.nam"]);
    assert_eq!(
        (&card["name"], &card["kind"]),
        (&json!("half"), &json!("effect"))
    );
    assert_eq!(card["gear"], json!({ "make": "Acme", "type": "amp" }));
    assert_eq!(
        card["levels"],
        json!({ "input_dbu": 12.5, "loudness_db": -18.5 })
    );
    let text = String::from_utf8(folder.run(&["info", "half.nam"]).stdout).expect("text");
    assert!(
        text.contains("Acme, amp") && text.contains("input 12.5 dBu, loudness -18.5 dB"),
        "{text}"
    );
}

#[test]
fn captures_play_before_and_after_import() {
    let folder = with_capture();
    let sound: Vec<f32> = tone(220.0, 0.5, 48_000).collect();
    write_wav(&folder.path("guitar.wav"), 48_000, 1, sound.iter().copied());
    folder.json(&[
        "render",
        "half.nam",
        "--input",
        "guitar.wav",
        "--out",
        "a.wav",
    ]);
    let heard = read_wav(&folder.path("a.wav"));
    for n in 1..sound.len() {
        assert!(
            (heard[n] - 0.5 * sound[n] - 0.25 * sound[n - 1]).abs() < 1e-4,
            "sample {n}"
        );
    }
    for (arguments, out) in [
        (&["import", "half.nam"][..], "half.ondes"),
        (&["import", "half.nam", "-o", "other.ondes"], "other.ondes"),
    ] {
        let output = folder.run(arguments);
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim_end(), out);
        assert_eq!(
            file::read(&folder.path(out)).expect("a model"),
            file::read(&folder.path("half.nam")).expect("a capture")
        );
    }
    folder.json(&[
        "render",
        "half.ondes",
        "--input",
        "guitar.wav",
        "--out",
        "b.wav",
    ]);
    assert!(read_wav(&folder.path("b.wav")) == heard);
}

/// Linear capture with `taps` different weights.
fn linear(taps: usize, gain: f64, metadata: &Value) -> Value {
    let weights: Vec<f64> = (0..taps)
        .map(|n| gain * (-(n as f64) / 9.0).exp() * (1.0 + n as f64).cos())
        .collect();
    json!({
        "version": "0.7.0", "architecture": "Linear", "config": { "receptive_field": taps, "bias": false },
        "weights": weights, "sample_rate": 48_000, "metadata": metadata,
    })
}

#[test]
fn a_variant_sounds_like_its_own_capture() {
    let folder = Folder::new();
    let sizes = [
        linear(3, 0.5, &json!({})),
        linear(40, 0.7, &json!({})),
        linear(1_000, 0.9, &json!({})),
    ];
    let submodels: Vec<Value> = sizes
        .iter()
        .zip([0.3, 0.6, 1.0])
        .map(|(model, most)| json!({ "max_value": most, "model": model }))
        .collect();
    let whole = json!({
        "version": "0.7.0", "architecture": "SlimmableContainer", "config": { "submodels": submodels },
        "weights": [], "sample_rate": 48_000,
    });
    std::fs::write(folder.path("slim.nam"), whole.to_string()).expect("it can be written");
    write_wav(
        &folder.path("guitar.wav"),
        48_000,
        1,
        tone(220.0, 0.5, 48_000),
    );
    let render = |model: &str, arguments: &[&str]| {
        let fixed = ["render", model, "--input", "guitar.wav", "--out", "out.wav"];
        folder.json(&[&fixed, arguments].concat());
        read_wav(&folder.path("out.wav"))
    };
    for (index, given) in [["0", "0.29"], ["0.3", "0.5"], ["0.6", "1"]]
        .iter()
        .enumerate()
    {
        std::fs::write(folder.path("alone.nam"), sizes[index].to_string())
            .expect("it can be written");
        let alone = render("alone.nam", &[]);
        for size in given {
            assert!(
                render("slim.nam", &["--size", size]) == alone,
                "size {size} is another one than {index}"
            );
        }
    }
    assert!(render("slim.nam", &[]) == render("slim.nam", &["--size", "1"]));
    let variant = |size| {
        folder.json(&["bench", "slim.nam", "--seconds", "0.1", "--size", size])["variant"].clone()
    };
    assert_eq!(
        [variant("0.1"), variant("0.5"), variant("1")],
        [json!("size1"), json!("size2"), Value::Null]
    );

    let input = ["--input", "guitar.wav"];
    for wrong in ["1.5", "-0.1", "NaN", "small"] {
        let output =
            folder.run(&[&["render", "slim.nam"], &input[..], &["--size", wrong]].concat());
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(2), 0),
            "{wrong}"
        );
    }
    let one = "alone.nam: the model has no smaller variants; leave out --size";
    folder.refuses(
        &[&["render", "alone.nam"], &input[..], &["--size", "0.5"]].concat(),
        &[one],
    );
    folder.refuses(&["bench", "alone.nam", "--size", "0.5"], &[one]);
}

#[test]
fn levels_follow_the_card() {
    let folder = Folder::new();
    let told = json!({ "input_level_dbu": 18.0, "output_level_dbu": 6.0, "loudness": -24.0 });
    for (name, metadata) in [("told.nam", told), ("untold.nam", json!({}))] {
        std::fs::write(folder.path(name), linear(1, 1.0, &metadata).to_string())
            .expect("it can be written");
    }
    write_wav(
        &folder.path("guitar.wav"),
        48_000,
        1,
        tone(220.0, 0.2, 48_000),
    );
    let render = |model: &str, arguments: &[&str]| {
        let fixed = ["render", model, "--input", "guitar.wav", "--out", "out.wav"];
        let report = folder.json(&[&fixed, arguments].concat());
        (
            read_wav(&folder.path("out.wav")),
            report["warnings"].clone(),
        )
    };
    let (plain, _) = render("told.nam", &[]);
    for (arguments, gain_db) in [
        (&["--interface-dbu", "12"][..], -6.0),
        (&["--output-level", "normalized"], 6.0),
        (
            &["--interface-dbu", "12", "--output-level", "calibrated"],
            -12.0,
        ),
        (
            &["--interface-dbu", "12", "--output-level", "normalized"],
            0.0,
        ),
    ] {
        let gain = db_to_amplitude(gain_db);
        let (heard, warnings) = render("told.nam", arguments);
        let most = heard
            .iter()
            .zip(&plain)
            .fold(0.0_f32, |most, (heard, plain)| {
                most.max((heard - gain * plain).abs())
            });
        assert!(
            most < 1e-5 && warnings == json!([]),
            "{arguments:?}: off by {most}, {warnings}"
        );
        let (heard, warnings) = render("untold.nam", arguments);
        assert!(heard == plain, "{arguments:?} changes what does not tell");
        let said = "untold.nam: level not calibrated: the model states no";
        assert!(
            warnings[0]
                .as_str()
                .is_some_and(|warning| warning.starts_with(said)),
            "{arguments:?}: {warnings}"
        );
    }
    let render = ["render", "told.nam", "--input", "guitar.wav"];
    for wrong in [
        ["--interface-dbu", "99"],
        ["--interface-dbu", "NaN"],
        ["--output-level", "loud"],
    ] {
        let output = folder.run(&[&render[..], &wrong].concat());
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(2), 0),
            "{wrong:?}"
        );
    }
    folder.refuses(
        &[&render[..], &["--output-level", "calibrated"]].concat(),
        &["needs --interface-dbu"],
    );
}

#[test]
fn newer_captures_are_reported() {
    let folder = with_capture();
    std::fs::write(folder.path("new.nam"), capture("0.7.3")).expect("it can be written");
    let output = folder.run(&["info", "new.nam"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success() && said.lines().count() == 1,
        "{said}"
    );
    assert!(
        said.starts_with("ondes: warning: new.nam: version 0.7.3 is newer"),
        "{said}"
    );
    std::fs::write(folder.path("new.nam"), capture("0.9.0")).expect("it can be written");
    folder.refuses(
        &["info", "new.nam"],
        &["new.nam: version: 0.9.0 is not supported"],
    );
    folder.refuses(
        &["import", "new.nam"],
        &["new.nam: version: 0.9.0 is not supported"],
    );
    std::fs::write(folder.path("new.nam"), "{}").expect("it can be written");
    folder.refuses(
        &["render", "new.nam", "--input", "x.wav"],
        &["new.nam: ", "architecture"],
    );
    folder.refuses(
        &["import", "half.nam", "-o", "half.nam"],
        &["half.nam: input and output are the same file"],
    );
}
