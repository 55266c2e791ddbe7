//! Loudness normalization, measured independently of the program.

use ebur128::{EbuR128, Mode};
use ondes_engine::dsp::level::db_to_amplitude_f64;
use ondes_engine::media::read_mono;
use serde_json::Value;

use crate::common::{Folder, tone, two_tracks, write_wav};

const RENDER: [&str; 6] = [
    "render",
    "small.ondes",
    "--input",
    "take.wav",
    "--out",
    "x.wav",
];

fn with_take() -> Folder {
    let folder = Folder::new();
    write_wav(
        &folder.path("take.wav"),
        48_000,
        1,
        tone(330.0, 4.0, 48_000),
    );
    folder
}

/// Measures loudness in LUFS and true peak in dBTP of a file.
fn measured(folder: &Folder, name: &str) -> (f64, f64) {
    let (sound, rate) = read_mono(folder.path(name)).expect("a WAV");
    let mut meter = EbuR128::new(1, rate, Mode::I | Mode::TRUE_PEAK).expect("it can be measured");
    meter.add_frames_f32(&sound).expect("it is measured");
    let peak = meter.true_peak(0).expect("it was measured");
    (
        meter.loudness_global().expect("it was measured"),
        20.0 * peak.log10(),
    )
}

fn number(report: &Value, key: &str) -> f64 {
    report[key]
        .as_f64()
        .unwrap_or_else(|| panic!("{key} is no number: {report}"))
}

#[test]
fn the_loudness_is_as_requested() {
    let folder = with_take();
    let plain = folder.json(&RENDER);
    assert!(
        ["lufs", "true_peak_db", "gain_db"]
            .iter()
            .all(|&key| plain[key].is_null())
    );
    let (before, _) = measured(&folder, "x.wav");
    for (lufs, more) in [
        ("-30", ["--bits", "32"]),
        ("-40.5", ["--bits", "24"]),
        ("-35", ["--bits", "16"]),
        ("-33", ["--sample-rate", "96000"]),
        ("-33", ["--sample-rate", "22050"]),
    ] {
        let report = folder.json(&[&RENDER[..], &["--normalize", lufs], &more].concat());
        let target: f64 = lufs.parse().expect("a number");
        let (loudness, true_peak) = measured(&folder, "x.wav");
        assert!(
            (loudness - target).abs() < 0.1,
            "{loudness} LUFS instead of {lufs} with {more:?}"
        );
        assert!((number(&report, "lufs") - loudness).abs() < 0.1);
        assert!((number(&report, "true_peak_db") - true_peak).abs() < 0.1);
        assert!(
            (number(&report, "gain_db") - (target - before)).abs() < 0.5,
            "{report}"
        );
        assert!(number(&report, "peak_db") <= number(&report, "true_peak_db") + 1e-3);
        assert_eq!(report["warnings"], Value::Array(Vec::new()));
    }
    // The temporary file is gone.
    assert_eq!(folder.files(), ["small.ondes", "take.wav", "x.wav"]);
}

#[test]
fn the_true_peak_stays_below_minus_one() {
    let folder = with_take();
    for bits in ["32", "24"] {
        let output =
            folder.run(&[&RENDER[..], &["--normalize", "0", "--json", "--bits", bits]].concat());
        let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
        let (loudness, true_peak) = measured(&folder, "x.wav");
        assert!((true_peak + 1.0).abs() < 0.01, "{true_peak} dBTP");
        assert!(loudness < -1.0 && (number(&report, "lufs") - loudness).abs() < 0.1);
        assert!((number(&report, "true_peak_db") + 1.0).abs() < 1e-6);
        let errors = String::from_utf8(output.stderr).expect("text");
        assert!(
            errors.starts_with("ondes: warning: x.wav: ") && errors.contains("LUFS instead of 0"),
            "{errors}"
        );
        assert_eq!(report["warnings"].as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn normalization_only_changes_the_gain() {
    let folder = with_take();
    folder.json(&RENDER);
    let (plain, _) = read_mono(folder.path("x.wav")).expect("a WAV");
    let report = folder.json(&[&RENDER[..], &["--normalize=-30"]].concat());
    let (sound, _) = read_mono(folder.path("x.wav")).expect("a WAV");
    assert_eq!(sound.len(), plain.len());
    let gain = db_to_amplitude_f64(number(&report, "gain_db"));
    for (sound, plain) in sound.iter().zip(&plain) {
        assert!((f64::from(*sound) - gain * f64::from(*plain)).abs() < 1e-6);
    }
    // The same to standard output.
    let output = folder.run(&[&RENDER[..5], &["-", "--normalize", "-30"]].concat());
    assert!(output.status.success());
    std::fs::write(folder.path("y.wav"), &output.stdout).expect("the file is written");
    assert!(read_mono(folder.path("y.wav")).expect("a WAV").0 == sound);
}

#[test]
fn silence_stays_silent() {
    let folder = Folder::new();
    write_wav(
        &folder.path("take.wav"),
        48_000,
        1,
        std::iter::repeat_n(0.0, 48_000),
    );
    let report =
        folder.json(&[&RENDER[..], &["--normalize", "-20", "--control", "noise=0"]].concat());
    assert_eq!(
        (&report["lufs"], &report["gain_db"]),
        (&Value::Null, &Value::from(0.0))
    );
    assert!(
        report["warnings"][0]
            .as_str()
            .is_some_and(|warning| warning.contains("too short or soft"))
    );
}

#[test]
fn low_sample_rates_are_refused() {
    let folder = with_take();
    let words = ["x.wav: ", "at least 8000 Hz", "found 4000 Hz"];
    folder.refuses(
        &[
            &RENDER[..],
            &["--normalize", "-20", "--sample-rate", "4000"],
        ]
        .concat(),
        &words,
    );
    for lufs in ["1", "-71", "loud", "NaN"] {
        let output = folder.run(&[&RENDER[..], &["--normalize", lufs]].concat());
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(2), 0),
            "{lufs}"
        );
    }
}

#[test]
fn all_files_of_a_batch_have_the_loudness() {
    let folder = with_take();
    std::fs::create_dir(folder.path("songs")).expect("a folder is made");
    std::fs::write(folder.path("songs/a.mid"), two_tracks()).expect("the file is written");
    std::fs::write(folder.path("songs/b.mid"), two_tracks()).expect("the file is written");
    let batch = [
        "render",
        "small.ondes",
        "--midi",
        "songs",
        "--out",
        "out",
        "--normalize",
        "-28",
    ];
    let (lines, _) = folder.batch(&batch);
    assert_eq!(lines.len(), 2);
    for line in &lines {
        let (loudness, _) = measured(&folder, line["out"].as_str().expect("a name"));
        assert!((loudness + 28.0).abs() < 0.1, "{loudness}");
    }
    assert_eq!(folder.files_in("out"), ["a.wav", "b.wav"]);
}
