//! `ondes bench`.

use ondes_engine::model::file;
use serde_json::Value;

use crate::common::{Folder, codec, effect, two_tracks};

fn number(report: &Value, key: &str) -> f64 {
    report[key]
        .as_f64()
        .unwrap_or_else(|| panic!("{key} is no number: {report}"))
}

/// Checks that the figures are consistent, whatever this machine's speed.
fn check(report: &Value) {
    let ns = &report["ns_per_sample"];
    let (median, p99, worst) = (number(ns, "median"), number(ns, "p99"), number(ns, "worst"));
    assert!(0.0 < median && median <= p99 && p99 <= worst, "{report}");
    let block_ns = 1e9 / number(report, "sample_rate");
    assert!((number(report, "load_worst") - worst / block_ns).abs() < 1e-6 * worst);
    assert!((number(report, "load") * number(report, "realtime_factor") - 1.0).abs() < 1e-6);
    assert!(
        number(report, "load") <= number(report, "load_worst")
            && number(report, "memory_bytes") > 0.0
    );
    assert!(number(report, "late_blocks") <= number(report, "blocks"));
    let seconds =
        number(report, "blocks") * number(report, "block") / number(report, "sample_rate");
    assert!((number(report, "seconds") - seconds).abs() < 1e-9);
    assert!(
        report["executor"]
            .as_str()
            .is_some_and(|name| name.starts_with("native"))
    );
    assert!(
        ["scalar", "avx2", "avx512", "neon"]
            .iter()
            .any(|name| report["kernels"].as_str() == Some(name)),
        "{report}"
    );
    assert_eq!(report["flush_to_zero"], true);
}

#[test]
fn an_instrument_is_measured_with_notes() {
    let folder = Folder::new();
    let report = folder.json(&["bench", "small.ondes", "--seconds", "0.2"]);
    check(&report);
    assert_eq!(
        (&report["name"], &report["kind"]),
        (&"Small".into(), &"instrument".into())
    );
    assert_eq!(
        (&report["input"], &report["block"]),
        (&"4 held notes".into(), &256.into())
    );
    assert_eq!(
        (&report["sample_rate"], &report["blocks"]),
        (&48_000.into(), &38.into())
    );
    std::fs::write(folder.path("song.mid"), two_tracks()).expect("the file is written");
    let rendered = folder.json(&["render", "small.ondes", "--midi", "song.mid"]);
    assert_eq!(report["latency_samples"], rendered["latency_samples"]);
    let report = folder.json(&[
        "bench",
        "small.ondes",
        "--seconds",
        "0.2",
        "--sample-rate",
        "44100",
        "--block",
        "64",
    ]);
    check(&report);
    assert_eq!(
        (&report["sample_rate"], &report["blocks"]),
        (&44_100.into(), &138.into())
    );
    assert_ne!(report["latency_samples"], rendered["latency_samples"]);
    assert_eq!(
        folder.json(&["bench", "bowed", "--seconds", "0.1"])["model"],
        "bowed"
    );
}

#[test]
fn effects_are_measured_with_sound() {
    let folder = Folder::new();
    for (model, kind, latency) in [(effect(), "effect", 63), (codec(), "codec", 15)] {
        file::write(&model, &folder.path("heard.ondes")).expect("the model is written");
        let report = folder.json(&["bench", "heard.ondes", "--seconds", "0.2"]);
        check(&report);
        assert_eq!(
            (&report["kind"], &report["input"]),
            (&kind.into(), &"a sweep with noise".into())
        );
        assert_eq!(report["latency_samples"], latency);
    }
}

#[test]
fn the_benchmark_prints_text() {
    let folder = Folder::new();
    let output = folder.run(&["bench", "small.ondes", "--seconds", "0.1"]);
    assert!(output.status.success() && output.stderr.is_empty());
    let text = String::from_utf8(output.stdout).expect("text");
    for word in [
        "Small (instrument), 4 held notes",
        "× real time",
        "(worst)",
        "256 frames at 48000 Hz",
        "latency",
        "kernels",
    ] {
        assert!(text.contains(word), "{word} is not in\n{text}");
    }
}

#[test]
fn bench_errors_are_reported() {
    let folder = Folder::new();
    std::fs::write(folder.path("bad.ondes"), "x").expect("the file is written");
    folder.refuses(&["bench", "bad.ondes"], &["bad.ondes: "]);
    folder.refuses(&["bench", "none.ondes"], &["none.ondes: No such file"]);
    folder.refuses(&["bench", "oboe"], &["oboe: ", "bowed, plucked, wind"]);
    for wrong in [
        ["--block", "0"],
        ["--block", "9000"],
        ["--seconds", "0"],
        ["--seconds", "NaN"],
        ["--sample-rate", "1000"],
    ] {
        let output = folder.run(&[&["bench", "small.ondes"], &wrong[..]].concat());
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(2), 0),
            "{wrong:?}"
        );
    }
}
