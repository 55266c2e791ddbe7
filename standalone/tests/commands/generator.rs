//! The bundled generator: by itself at a tempo, by keys, and going on from a recording.

use std::path::Path;

use ondes_engine::dsp::loudness::mean_db;
use ondes_engine::dsp::onsets::onsets;

use crate::common::{Folder, assert_refused};

#[test]
fn drums_play_at_a_tempo_and_the_same_for_the_same_seed() {
    let folder = Folder::new();
    let render = |out: &str, options: &[&str]| {
        let report = folder.json(
            &[
                &["render", "drums", "--seconds", "3", "--out", out],
                options,
            ]
            .concat(),
        );
        assert_eq!(
            (report["channels"].as_u64(), report["frames"].as_u64()),
            (Some(1), Some(144_000)),
            "{report}"
        );
        std::fs::read(folder.path(out)).expect("it was written")
    };
    let slow = render("slow.wav", &["--tempo", "90"]);
    assert!(slow == render("again.wav", &["--tempo", "90"]));
    assert!(slow != render("fast.wav", &["--tempo", "120"]));
    assert!(slow != render("other.wav", &["--tempo", "90", "--seed", "1"]));
}

/// Returns a MIDI file with a key of four beats, at a tempo if it states one.
fn keys(us_per_quarter: Option<u32>) -> Vec<u8> {
    let tempo = us_per_quarter.map_or(Vec::new(), |us| {
        [&[0, 0xFF, 0x51, 3], &us.to_be_bytes()[1..]].concat()
    });
    let notes = [0, 0x90, 60, 100, 0x83, 0, 0x80, 60, 0, 0, 0xFF, 0x2F, 0];
    let track = [tempo, notes.to_vec()].concat();
    let header = b"MThd\0\0\0\x06\0\0\0\x01\0\x60MTrk";
    [&header[..], &(track.len() as u32).to_be_bytes(), &track].concat()
}

#[test]
fn drums_follow_the_tempo_of_a_midi_file() {
    let folder = Folder::new();
    let render = |midi: &str, options: &[&str]| {
        folder.json(
            &[
                &["render", "drums", "--midi", midi, "--out", "out.wav"],
                options,
            ]
            .concat(),
        );
        std::fs::read(folder.path("out.wav")).expect("it was written")
    };
    for (name, tempo) in [
        ("none.mid", None),
        ("slow.mid", Some(60_000_000 / 80)),
        ("fast.mid", Some(60_000_000 / 120)),
    ] {
        std::fs::write(folder.path(name), keys(tempo)).expect("it can be written");
    }
    let fast = render("fast.mid", &[]);
    assert!(
        fast != render("none.mid", &[]),
        "without a tempo, bars have the model's own"
    );
    assert!(
        fast == render("none.mid", &["--tempo", "120"]),
        "a file without a tempo has 120 quarters a minute"
    );
    assert!(
        fast != render("fast.mid", &["--tempo", "80"]),
        "the option comes first"
    );
    assert!(render("slow.mid", &[]).len() > fast.len());
}

#[test]
fn drums_go_on_from_a_recording() {
    let folder = Folder::new();
    let render = |out: &str, options: &[&str]| {
        let fixed = [
            "render",
            "drums",
            "--seconds",
            "2",
            "--tempo",
            "120",
            "--out",
            out,
        ];
        let report = folder.json(&[&fixed, options].concat());
        assert_eq!(report["frames"].as_u64(), Some(96_000), "{report}");
        std::fs::read(folder.path(out)).expect("it was written")
    };
    let bar = render("bar.wav", &["--seed", "5"]);
    let primed = render("primed.wav", &["--prime", "bar.wav"]);
    assert!(primed != render("alone.wav", &[]) && primed != bar);
    assert!(primed == render("again.wav", &["--prime", "bar.wav", "--block", "100"]));
    let [density, loudness] = measured(&folder.path("bar.wav"));
    let [density, loudness] = [format!("density={density}"), format!("loudness={loudness}")];
    let stated = [
        "--prime",
        "bar.wav",
        "--control",
        &density,
        "--control",
        &loudness,
    ];
    assert!(
        primed == render("stated.wav", &stated),
        "measured: {density} {loudness}"
    );
    assert!(
        primed
            != render(
                "other.wav",
                &["--prime", "bar.wav", "--control", "density=1.5"]
            )
    );
    let low = [
        "render",
        "drums",
        "--seconds",
        "1",
        "--prime",
        "bar.wav",
        "--sample-rate",
        "1000",
        "--out",
        "low.wav",
    ];
    folder.json(&low);
    let fails = |arguments: &[&str], parts: &[&str]| assert_refused(&folder.run(arguments), parts);
    fails(
        &["render", "drums", "--seconds", "1", "--prime", "none.wav"],
        &["none.wav"],
    );
    fails(
        &["render", "strings", "--seconds", "1", "--prime", "bar.wav"],
        &["strings"],
    );
}

/// Returns the onsets a second and the level in dB of a recording of one channel.
fn measured(path: &Path) -> [f32; 2] {
    let mut reader = hound::WavReader::open(path).expect("a WAV");
    let sound: Vec<f32> = reader
        .samples()
        .map(|sample| sample.expect("a sample"))
        .collect();
    let density = onsets(&sound, 48_000.0).len() as f64 * 48_000.0 / sound.len() as f64;
    [density as f32, mean_db(&sound, 48_000.0)]
}
