//! Captures of other programs open like any model, and become models of ours.

use ondes_engine::model::file;
use serde_json::json;

use crate::common::{Folder, read_wav, tone, write_wav};

/// An amplifier that halves its input and adds a quarter of the sample before.
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
    assert_eq!((&card["name"], &card["kind"]), (&json!("half"), &json!("effect")));
    assert_eq!(card["gear"], json!({ "make": "Acme", "type": "amp" }));
    assert_eq!(card["levels"], json!({ "input_dbu": 12.5, "loudness_db": -18.5 }));
    let text = String::from_utf8(folder.run(&["info", "half.nam"]).stdout).expect("text");
    assert!(text.contains("Acme, amp") && text.contains("input 12.5 dBu, loudness -18.5 dB"), "{text}");
}

#[test]
fn a_capture_plays_and_so_does_what_it_becomes() {
    let folder = with_capture();
    let sound: Vec<f32> = tone(220.0, 0.5, 48_000).collect();
    write_wav(&folder.path("guitar.wav"), 48_000, 1, sound.iter().copied());
    folder.json(&["render", "half.nam", "--input", "guitar.wav", "--out", "a.wav"]);
    let heard = read_wav(&folder.path("a.wav"));
    for n in 1..sound.len() {
        assert!((heard[n] - 0.5 * sound[n] - 0.25 * sound[n - 1]).abs() < 1e-4, "sample {n}");
    }
    for (arguments, out) in
        [(&["import", "half.nam"][..], "half.ondes"), (&["import", "half.nam", "-o", "other.ondes"], "other.ondes")]
    {
        let output = folder.run(arguments);
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim_end(), out);
        assert_eq!(
            file::read(&folder.path(out)).expect("a model"),
            file::read(&folder.path("half.nam")).expect("a capture")
        );
    }
    folder.json(&["render", "half.ondes", "--input", "guitar.wav", "--out", "b.wav"]);
    assert!(read_wav(&folder.path("b.wav")) == heard);
}

#[test]
fn what_is_too_new_says_so() {
    let folder = with_capture();
    std::fs::write(folder.path("new.nam"), capture("0.7.3")).expect("it can be written");
    let output = folder.run(&["info", "new.nam"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.lines().count() == 1, "{said}");
    assert!(said.starts_with("ondes: warning: new.nam: version 0.7.3 is newer"), "{said}");
    std::fs::write(folder.path("new.nam"), capture("0.9.0")).expect("it can be written");
    folder.refuses(&["info", "new.nam"], &["new.nam: version: 0.9.0 is not supported"]);
    folder.refuses(&["import", "new.nam"], &["new.nam: version: 0.9.0 is not supported"]);
    std::fs::write(folder.path("new.nam"), "{}").expect("it can be written");
    folder.refuses(&["render", "new.nam", "--input", "x.wav"], &["new.nam: ", "architecture"]);
    folder.refuses(&["import", "half.nam", "-o", "half.nam"], &["half.nam: would be written over itself"]);
}
