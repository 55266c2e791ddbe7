//! Recordings with samples that are none, and models that compute numbers that are none.

use std::path::Path;

use ondes_engine::dsp::level::peak;
use ondes_engine::model::{Kind, file};
use ondes_player::library::FileReference;
use serde_json::{Value, json};

use crate::common::{
    Folder, effect, instrument, json_lines, overflowing, read_wav, tone, two_tracks, write_wav,
};

const RATE: u32 = 48_000;
/// Invalid and huge samples.
const HOSTILE: [f32; 8] = [
    3e37,
    -3e37,
    1e38,
    f32::MAX,
    f32::MIN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
];

/// Writes a tone of a second with hostile samples in its first half.
fn write_hostile(path: &Path, sample_rate: u32) {
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate,
        bits_per_sample: 32,
        sample_format: hound::SampleFormat::Float,
    };
    let mut writer = hound::WavWriter::create(path, spec).expect("the file is made");
    for (n, sample) in tone(330.0, 1.0, sample_rate).enumerate() {
        let hostile = (1_000..9_000).contains(&n) && n % 7 == 0;
        let sample = if hostile {
            HOSTILE[n % HOSTILE.len()]
        } else {
            sample
        };
        writer.write_sample(sample).expect("the sample is written");
    }
    writer.finalize().expect("the file is complete");
}

/// Returns a folder with `loud.ondes`, an effect, and `late.wav`, which sounds from 1.25 s to 1.75
/// s.
fn with_overflow() -> Folder {
    let folder = Folder::new();
    file::write(&overflowing(&effect()), &folder.path("loud.ondes")).expect("the model is written");
    let silence = std::iter::repeat_n(0.0, 60_000);
    let sound = silence.chain(std::iter::repeat_n(0.5, 24_000));
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: RATE,
        bits_per_sample: 32,
        sample_format: hound::SampleFormat::Float,
    };
    let mut writer =
        hound::WavWriter::create(folder.path("late.wav"), spec).expect("the file is made");
    sound.for_each(|sample| writer.write_sample(sample).expect("the sample is written"));
    writer.finalize().expect("the file is complete");
    folder
}

#[test]
fn hostile_samples_are_limited() {
    let folder = Folder::new();
    file::write(&effect(), &folder.path("half.ondes")).expect("the model is written");
    for rate in [RATE, 44_100] {
        write_hostile(&folder.path("hostile.wav"), rate);
        for model in ["half.ondes", "small.ondes"] {
            // The second goes through the resampler of recordings, the third through those of the
            // pipeline.
            for more in [
                &[][..],
                &["--sample-rate", "32000"],
                &["--resampling", "linear-phase"],
            ] {
                let chain = ["--gate", "-60", "--bass", "6", "--cabinet", "4x12"];
                for chain in [&[][..], &chain] {
                    let arguments = [
                        &["render", model, "--input", "hostile.wav", "--bits", "32"],
                        more,
                        chain,
                    ]
                    .concat();
                    let report = folder.json(&[&arguments[..], &["--out", "x.wav"]].concat());
                    let warning = report["warnings"][0].as_str().expect("a warning");
                    assert!(
                        warning.starts_with("hostile.wav: contains samples that are NaN, infinite"),
                        "{warning}"
                    );
                    assert_eq!(report["invalid_output"], Value::Null);
                    let sound = read_wav(&folder.path("x.wav"));
                    let end = &sound[sound.len() / 2..];
                    assert!(
                        sound.iter().all(|sample| sample.is_finite()) && peak(end) > 1e-3,
                        "{arguments:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_batch_with_hostile_samples_renders_every_file() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("takes")).expect("a folder is made");
    for name in ["a.wav", "c.wav"] {
        write_wav(
            &folder.path("takes").join(name),
            44_100,
            1,
            tone(330.0, 0.3, 44_100),
        );
    }
    write_hostile(&folder.path("takes/b.wav"), 44_100);
    for jobs in ["1", "3"] {
        let batch = [
            "render",
            "small.ondes",
            "--input",
            "takes",
            "--out",
            "out",
            "--sample-rate",
            "48000",
            "--force",
        ];
        let (_, summary) = folder.batch(&[&batch[..], &["--jobs", jobs]].concat());
        assert_eq!(
            (&summary["rendered"], &summary["failed"]),
            (&json!(3), &json!(0))
        );
    }
}

#[test]
fn invalid_output_of_a_model_is_reported() {
    let folder = with_overflow();
    let render = [
        "render",
        "loud.ondes",
        "--input",
        "late.wav",
        "--bits",
        "32",
    ];
    let output = folder.run(&[&render[..], &["--out", "x.wav"]].concat());
    assert!(output.status.success());
    let errors = String::from_utf8_lossy(&output.stderr);
    let line = "ondes: warning: loud.ondes: computes invalid numbers (NaN or infinity); silent from 1.25 s";
    assert_eq!(errors.trim_end(), line);
    assert!(
        read_wav(&folder.path("x.wav"))
            .iter()
            .all(|sample| *sample == 0.0)
    );
    let report = folder.json(&render);
    let first = report["invalid_output"]["first_second"]
        .as_f64()
        .expect("a number");
    let samples = report["invalid_output"]["samples"]
        .as_u64()
        .expect("a number");
    assert!(
        (first - 1.25).abs() < 0.01 && samples.abs_diff(24_000) < 600,
        "{first} {samples}"
    );
    assert_eq!(
        report["frames"]
            .as_u64()
            .map(|frames| frames.abs_diff(84_000) < 600),
        Some(true)
    );

    // In a batch, other files are none the worse.
    write_wav(
        &folder.path("mute.wav"),
        RATE,
        1,
        std::iter::repeat_n(0.0, 5_000),
    );
    let batch = folder.run(&[
        "render",
        "loud.ondes",
        "--input",
        "late.wav",
        "mute.wav",
        "--out",
        "out",
        "--json",
    ]);
    assert!(String::from_utf8_lossy(&batch.stderr).contains(line));
    let (lines, _) = json_lines(&batch.stdout);
    let of = |source: &str| {
        lines
            .iter()
            .find(|line| line["source"] == source)
            .expect("a line")
    };
    assert_eq!(
        of("late.wav")["invalid_output"]["first_second"].as_f64(),
        Some(first)
    );
    assert_eq!(of("mute.wav")["invalid_output"], Value::Null);
}

#[test]
fn invalid_output_of_an_instrument_is_reported() {
    let folder = with_overflow();
    let model = overflowing(&instrument(RATE, 192));
    assert_eq!(model.header().kind, Kind::Instrument);
    file::write(&model, &folder.path("loud.ondes")).expect("the model is written");
    std::fs::write(folder.path("song.mid"), two_tracks()).expect("the file is written");
    let report = folder.json(&["render", "loud.ondes", "--midi", "song.mid"]);
    assert!(report["peak_db"].is_null());
    assert!(
        report["invalid_output"]["first_second"]
            .as_f64()
            .is_some_and(|first| first < 0.1),
        "{report}"
    );
}

#[test]
fn invalid_output_of_a_track_is_reported() {
    let folder = with_overflow();
    let path = folder.path("loud.ondes");
    let reference = FileReference::to(&file::read(&path).expect("a model"), Some(path));
    let track = json!({
        "product": "org.ondes.effect",
        "selection": { "model": reference },
        "input": { "file": { "path": folder.path("late.wav") } },
    });
    let session = json!({ "format": "ondes-session", "version": 1, "tracks": [track] });
    std::fs::write(folder.path("a.ondes-session"), session.to_string())
        .expect("the file is written");
    let report = folder.json(&["render", "a.ondes-session"]);
    let warning = report["warnings"][0].as_str().expect("a warning");
    assert!(
        warning.starts_with("a.ondes-session: track 1: computes invalid numbers"),
        "{warning}"
    );
    let invalid = &report["tracks"][0]["invalid_output"];
    assert!(
        invalid["first_second"]
            .as_f64()
            .is_some_and(|first| (first - 1.25).abs() < 0.05),
        "{report}"
    );
    assert!(
        invalid["samples"]
            .as_u64()
            .is_some_and(|samples| samples > 20_000),
        "{report}"
    );
}
