//! `ondes-train circuit`: simulated devices with knobs.

use std::path::Path;

use ondes_engine::media::read_mono;
use ondes_engine::model::file;
use ondes_tests::bundled_file;

use crate::common::{refuse, succeed};

#[test]
fn a_capture_learns_the_knobs_of_a_circuit() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let takes = path("takes");
    let options = ["--positions", "3", "--seconds", "10"];
    succeed(&[&["circuit", "overdrive", "--recipe", &takes][..], &options].concat());

    let (dry, wet) = (path("takes/overdrive-01-dry.wav"), path("wet.wav"));
    let recipe = path("takes/overdrive.toml");
    let text = std::fs::read_to_string(&recipe).expect("it is written");
    let second = text.split("[[pair]]").nth(2).expect("a second take");
    let position = |knob: &str| {
        let line = second.lines().find(|line| line.starts_with(knob));
        line.expect("a position").replace(" = ", "=")
    };
    let (drive, tone) = (position("Drive"), position("Tone"));
    let knobs = ["--knob", &drive, "--knob", &tone];
    succeed(
        &[
            &["circuit", "overdrive", "--in", &dry, "--out", &wet],
            &knobs[..],
        ]
        .concat(),
    );
    let read = |path: &str| read_mono(Path::new(path)).expect("it is sound").0;
    let [first, taken, played] = [
        "takes/overdrive-00-wet.wav",
        "takes/overdrive-01-wet.wav",
        "wet.wav",
    ]
    .map(|name| read(&path(name)));
    let differ = |one: &[f32], other: &[f32]| {
        one.len() != other.len() || one.iter().zip(other).any(|(a, b)| (a - b).abs() > 1e-4)
    };
    assert!(!differ(&taken, &played), "{drive} {tone}");
    assert!(differ(&taken, &first));

    succeed(&["capture", &recipe, "--size", "lstm-4", "--epochs", "1"]);
    let model = file::read(Path::new(&path("takes/overdrive.ondes"))).expect("it is whole");
    let controls: Vec<_> = model
        .header()
        .controls
        .iter()
        .map(|control| (control.name.as_str(), control.max, control.default))
        .collect();
    assert_eq!(controls, [("Drive", 10.0, 6.0), ("Tone", 10.0, 5.5)]);

    // At positions that it has not heard.
    let others = path("others");
    let seeded = ["--recipe", &others, "--seed", "5"];
    succeed(&[&["circuit", "overdrive"], &seeded[..], &options].concat());
    let trained = path("takes/overdrive.ondes");
    let recipe = path("others/overdrive.toml");
    let evaluate = ["evaluate", &trained, "--data", &recipe];
    let figures: Vec<serde_json::Value> =
        serde_json::from_str(&succeed(&[&evaluate[..], &["--json"]].concat())).expect("JSON");
    assert_eq!(figures.len(), 3);
    let text = succeed(&evaluate);
    assert!(text.contains("in the mean of the held-out parts"), "{text}");
    let amplifier = bundled_file("fuzz").display().to_string();
    refuse(&[(
        vec!["evaluate", &amplifier, "--data", &recipe],
        "the model []; they must be equal",
    )]);

    let play = [
        "circuit",
        "overdrive",
        "--in",
        &dry,
        "--out",
        &wet,
        "--knob",
    ];
    let with = |knob: &'static str| [&play[..], &[knob]].concat();
    refuse(&[
        (with("Gain=5"), "no knob \"Gain\"; available: Drive, Tone"),
        (with("Tone=11"), "use 0 to 10"),
    ]);
}

#[test]
fn models_are_brought_to_a_loudness() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("wind.ondes");
    let wind = bundled_file("wind").display().to_string();
    let softer = ["level", &wind, "--loudness", "-35", "--out"];
    succeed(&[&softer[..], &[&out.display().to_string()]].concat());
    let gain_db = |path: &Path| {
        let model = file::read(path).expect("it is whole");
        model.header().performance.expect("an instrument").gain_db
    };
    let change = gain_db(&out) - gain_db(&bundled_file("wind"));
    assert!((-11.0..-8.0).contains(&change), "{change} dB");
    let (amplifier, out) = (
        bundled_file("fuzz").display().to_string(),
        out.display().to_string(),
    );
    refuse(&[(
        vec!["level", &amplifier, "--out", &out],
        "only instruments and generators",
    )]);
}
