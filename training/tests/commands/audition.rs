//! `ondes-train audition`: instruments play as their recordings do.

use std::path::Path;

use ondes_engine::media::{WavBits, WavWriter};
use ondes_engine::model::file;
use ondes_tests::bundled_file;
use serde_json::Value;

use crate::common::{refuse, succeed};

const RATE: u32 = 48_000;

/// Writes five soft notes of an organ whose amplitudes rise with a time constant of 60 ms, 133 ms to
/// 1 dB below their end, and which begin with the chiff of a pipe.
fn record(folder: &Path) {
    std::fs::create_dir(folder).expect("a folder");
    for key in [55, 58, 61, 64, 67] {
        let hz = 440.0 * 2_f64.powf((f64::from(key) - 69.0) / 12.0);
        let sound: Vec<f32> = (0..RATE * 2)
            .map(|n| {
                let t = f64::from(n) / f64::from(RATE);
                let rise = 1.0 - (-(t - 0.1).max(0.0) / 0.06).exp();
                let fall = (-(t - 1.5).max(0.0) / 0.03).exp();
                let partials = (1..=8).map(|k| {
                    let k = f64::from(k);
                    (std::f64::consts::TAU * k * hz * t).sin() / k
                });
                let chiff = (-(t - 0.1) / 0.02).exp() * f64::from(u8::from(t >= 0.1));
                let hiss = (f64::from(n) * 12.9898).sin() * 43_758.545_3;
                let chiff = 0.004 * chiff * (2.0 * hiss.fract() - 1.0);
                (0.02 * rise * fall * partials.sum::<f64>() + chiff) as f32
            })
            .collect();
        let path = folder.join(format!("{key}.wav"));
        let mut file = WavWriter::create(&path, RATE, 1, WavBits::Int24).expect("a file");
        file.write(&[&sound]).expect("it is written");
        file.finish().expect("it is written");
    }
}

#[test]
fn an_instrument_is_made_to_play_as_it_was_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    record(&folder.path().join("organ"));
    let model = path("clarinet.ondes");
    std::fs::copy(bundled_file("clarinet"), &model).expect("it is copied");
    let (recordings, cache, sounds) = (path("organ"), path("cache"), path("played"));
    let audition = [
        "audition",
        &model,
        "--recordings",
        &recordings,
        "--cache",
        &cache,
    ];
    let measure = || -> Value {
        let text = succeed(&[&audition[..], &["--json"]].concat());
        serde_json::from_str(&text).expect("JSON")
    };
    let before = measure();
    assert_eq!(before["notes"], 5);
    let recorded = before["attack_ms"]["recorded"].as_f64().expect("a time");
    assert!((recorded - 133.0).abs() < 15.0, "{recorded} ms");
    let louder = before["level_db"].as_f64().expect("a level");
    assert!(louder > 5.0, "the organ is softer: {louder} dB");

    let text = succeed(&[&audition[..], &["--update", "--sounds", &sounds]].concat());
    assert!(text.contains("as loud as your recordings"), "{text}");
    assert!(text.contains("attacks as recorded"), "{text}");
    let after = measure();
    for (measure, least, most) in [("level_db", -2.0, 2.0), ("distance", 0.0, 2.0)] {
        let value = &after[measure];
        let value = value["played"]
            .as_f64()
            .or(value.as_f64())
            .expect("a number");
        assert!((least..most).contains(&value), "{measure}: {value}");
    }
    let played = folder.path().join("played/61.wav");
    assert!(std::fs::metadata(played).expect("it was written").len() > 100_000);
    let model = file::read(Path::new(&model)).expect("it is whole");
    let header = model.header();
    let performance = header.performance.expect("an instrument");
    assert_eq!(
        (performance.pitch_low, performance.pitch_high),
        (55.0, 67.0)
    );
    assert!(performance.dynamic_tilt > 0.0 && performance.loudness_max_db < -25.0);
    assert!(header.controls.iter().any(|control| control.name == "life"));
    // The chiff is recorded; a recipe may refuse that.
    assert_eq!(model.attacks().map(|attacks| attacks.len()), Some(5));
    let distance = |audition: &Value| audition["attack_distance_db"]["played"].as_f64();
    let (heard, had) = (distance(&after), distance(&before));
    assert!(
        heard < had.map(|distance| 0.7 * distance),
        "{heard:?} {had:?}"
    );
    let recipe = path("organ.toml");
    let text = "name = \"Organ\"\ndata = \"organ\"\nout = \"organ.ondes\"\nwork = \"work\"\nattacks = false\n";
    std::fs::write(&recipe, text).expect("it is written");
    succeed(&[&audition[..], &["--update", "--recipe", &recipe]].concat());
    let without = file::read(Path::new(&path("clarinet.ondes"))).expect("it is whole");
    assert!(without.attacks().is_none());

    let quality = &header.card.quality;
    assert!(
        quality
            .iter()
            .any(|measure| measure.name == "level above the recordings")
    );

    let (amplifier, silent) = (bundled_file("fuzz").display().to_string(), path("silent"));
    std::fs::create_dir(&silent).expect("a folder");
    let bundled = bundled_file("clarinet").display().to_string();
    refuse(&[
        (
            vec!["audition", &amplifier, "--recordings", &recordings],
            "only instruments",
        ),
        (
            vec!["audition", &bundled, "--recordings", &silent],
            "silent",
        ),
        (
            vec!["audition", "none.ondes", "--recordings", &recordings],
            "none.ondes",
        ),
    ]);
}
