//! Instruments and effects that process recordings.

use std::f32::consts::TAU;

use ondes_engine::dsp::level::peak;
use ondes_engine::model::file;

use crate::common::{Folder, codec, effect, read_wav, write_wav};

/// Starts of the bursts, s.
const ONSETS: [f64; 4] = [0.5, 1.3, 2.05, 2.9];
/// Length of a burst, s.
const BURST_S: f64 = 0.35;
/// Length of the recording, s.
const LENGTH_S: f64 = 3.5;

/// Returns bursts of a tone with four harmonics, between silences.
fn bursts(sample_rate: u32) -> impl Iterator<Item = f32> {
    let samples = (LENGTH_S * f64::from(sample_rate)) as usize;
    (0..samples).map(move |n| {
        let at = n as f64 / f64::from(sample_rate);
        let sounds = ONSETS
            .iter()
            .any(|&onset| (onset..onset + BURST_S).contains(&at));
        let phase = TAU * (330.0 * at).fract() as f32;
        let tone = (1..=4)
            .map(|harmonic| (harmonic as f32 * phase).sin() / harmonic as f32)
            .sum::<f32>();
        if sounds { 0.3 * tone } else { 0.0 }
    })
}

/// Returns the times at which sound starts after 200 ms of silence, s.
fn onsets(sound: &[f32], sample_rate: u32) -> Vec<f64> {
    let peak = peak(sound);
    let silence = sample_rate as usize / 5;
    let mut last_loud = None;
    let mut found = Vec::new();
    let loud = sound
        .iter()
        .enumerate()
        .filter(|(_, sample)| sample.abs() > 0.2 * peak);
    for (n, _) in loud {
        if last_loud.is_none_or(|last| n - last > silence) {
            found.push(n as f64 / f64::from(sample_rate));
        }
        last_loud = Some(n);
    }
    found
}

fn assert_aligned(sound: &[f32], sample_rate: u32) {
    let found = onsets(sound, sample_rate);
    assert_eq!(found.len(), ONSETS.len(), "{found:?}");
    for (found, onset) in found.iter().zip(ONSETS) {
        assert!(
            (found - onset).abs() < 0.015,
            "{found} s instead of {onset} s"
        );
    }
}

#[test]
fn the_output_is_aligned_with_the_recording() {
    let folder = Folder::new();
    for rate in [48_000, 44_100, 16_000] {
        write_wav(&folder.path("bursts.wav"), rate, 1, bursts(rate));
        let report = folder.json(&["render", "small.ondes", "--input", "bursts.wav"]);
        assert_eq!(report["out"], "bursts-small.wav");
        assert_eq!(report["sample_rate"], rate);
        let sound = read_wav(&folder.path("bursts-small.wav"));
        // Length of the recording, and the room's 480 samples at 48 kHz.
        assert_eq!(sound.len() as u32, rate * 7 / 2 + rate / 100, "{rate} Hz");
        assert_aligned(&sound, rate);
    }
}

#[test]
fn other_rates_keep_the_alignment() {
    let folder = Folder::new();
    write_wav(&folder.path("bursts.wav"), 44_100, 1, bursts(44_100));
    for rate in [48_000, 96_000, 22_050] {
        let text = rate.to_string();
        folder.json(&[
            "render",
            "small.ondes",
            "--input",
            "bursts.wav",
            "--sample-rate",
            &text,
            "--out",
            "x.wav",
        ]);
        let sound = read_wav(&folder.path("x.wav"));
        assert!(
            (sound.len() as u32).abs_diff(rate * 7 / 2 + rate / 100) <= 1,
            "{rate} Hz"
        );
        assert_aligned(&sound, rate);
    }
}

#[test]
fn blocks_do_not_change_the_sound() {
    let folder = Folder::new();
    write_wav(
        &folder.path("bursts.wav"),
        44_100,
        1,
        bursts(44_100).take(50_000),
    );
    let render = |block| {
        folder.json(&[
            "render",
            "small.ondes",
            "--input",
            "bursts.wav",
            "--block",
            block,
            "--sample-rate",
            "48000",
        ]);
        std::fs::read(folder.path("bursts-small.wav")).expect("there is a file")
    };
    let sound = render("256");
    for block in ["1", "1000", "65536"] {
        assert!(render(block) == sound, "blocks of {block}");
    }
}

#[test]
fn stereo_is_mixed() {
    let folder = Folder::new();
    write_wav(&folder.path("mono.wav"), 48_000, 1, bursts(48_000));
    write_wav(
        &folder.path("stereo.wav"),
        48_000,
        2,
        bursts(48_000).flat_map(|sample| [sample, sample]),
    );
    let render = |name: &str| {
        folder.json(&["render", "small.ondes", "--input", name, "--out", "x.wav"]);
        read_wav(&folder.path("x.wav"))
    };
    assert!(render("mono.wav") == render("stereo.wav"));
}

#[test]
fn transposing_moves_the_pitch_only() {
    let folder = Folder::new();
    write_wav(&folder.path("bursts.wav"), 48_000, 1, bursts(48_000));
    let crossings = |transpose: &str| {
        folder.json(&[
            "render",
            "small.ondes",
            "--input",
            "bursts.wav",
            "--out",
            "x.wav",
            "--transpose",
            transpose,
            "--control",
            "noise=0",
        ]);
        let sound = read_wav(&folder.path("x.wav"));
        assert_aligned(&sound, 48_000);
        let middle = &sound[28_000..36_000];
        middle
            .windows(2)
            .filter(|pair| pair[0] < 0.0 && pair[1] >= 0.0)
            .count() as f64
    };
    let ratio = crossings("12") / crossings("0");
    assert!((ratio - 2.0).abs() < 0.1, "{ratio}");
}

#[test]
fn a_recording_goes_through_an_effect() {
    let folder = Folder::new();
    file::write(&effect(), &folder.path("half.ondes")).expect("the model is written");
    for rate in [48_000, 44_100] {
        write_wav(&folder.path("bursts.wav"), rate, 1, bursts(rate));
        let report = folder.json(&[
            "render",
            "half.ondes",
            "--input",
            "bursts.wav",
            "--out",
            "x.wav",
        ]);
        assert_eq!(report["sample_rate"], rate);
        let sound = read_wav(&folder.path("x.wav"));
        assert_aligned(&sound, rate);
        // Aligned with the recording to the sample, except for edges of bursts, which rate
        // conversion smooths.
        let mut worst = 0.0_f32;
        for (n, (heard, played)) in sound.iter().zip(bursts(rate)).enumerate() {
            let at = n as f64 / f64::from(rate);
            let edge = |instant: f64| (at - instant).abs() < 0.02;
            if !ONSETS
                .iter()
                .any(|&onset| edge(onset) || edge(onset + BURST_S))
            {
                worst = worst.max((heard - 0.5 * played).abs());
            }
        }
        // 16 bits, and the ripple of the rate conversion.
        let tolerance = if rate == 48_000 { 1e-4 } else { 1e-3 };
        assert!(worst < tolerance, "{worst} at {rate} Hz");
    }
    // Without rate conversion there is no tail.
    write_wav(&folder.path("bursts.wav"), 48_000, 1, bursts(48_000));
    let report = folder.json(&[
        "render",
        "half.ondes",
        "--input",
        "bursts.wav",
        "--out",
        "x.wav",
    ]);
    assert_eq!(report["frames"], 168_000);
    assert_eq!(report["notes"], 0);
}

#[test]
fn a_recording_goes_through_a_codec_with_latent_controls() {
    let folder = Folder::new();
    file::write(&codec(), &folder.path("mean.ondes")).expect("the model is written");
    write_wav(&folder.path("bursts.wav"), 48_000, 1, bursts(48_000));
    let render = |controls: &[&str]| {
        let arguments = [
            "render",
            "mean.ondes",
            "--input",
            "bursts.wav",
            "--out",
            "x.wav",
        ];
        folder.json(&[&arguments[..], controls].concat());
        read_wav(&folder.path("x.wav"))
    };
    let played: Vec<f32> = bursts(48_000)
        .map(|sample| (sample * 32_767.0) as i16 as f32 / 32_768.0)
        .collect();
    let sound = render(&[]);
    let turned = render(&[
        "--control",
        "latent1.scale=-2",
        "--control",
        "latent1.offset=0.25",
    ]);
    for ((frame, turned), played) in sound
        .chunks(16)
        .zip(turned.chunks(16))
        .zip(played.chunks_exact(16))
    {
        let mean = played.iter().sum::<f32>() / 16.0;
        assert!(
            frame.iter().all(|sample| (sample - mean).abs() < 1e-6),
            "{frame:?} is not {mean}"
        );
        assert!(
            turned
                .iter()
                .all(|sample| (sample - 0.25 + 2.0 * mean).abs() < 1e-6),
            "{turned:?} at {mean}"
        );
    }
    let wrong = [
        "render",
        "mean.ondes",
        "--input",
        "bursts.wav",
        "--control",
        "latent2.scale=0",
    ];
    folder.refuses(
        &wrong,
        &[
            "mean.ondes: ",
            "unknown control \"latent2.scale\"",
            "latent1.hold",
        ],
    );
}

#[test]
fn a_truncated_recording_plays_with_a_warning() {
    let folder = Folder::new();
    write_wav(&folder.path("whole.wav"), 48_000, 1, bursts(48_000));
    let whole = std::fs::read(folder.path("whole.wav")).expect("there is a file");
    std::fs::write(folder.path("cut.wav"), &whole[..whole.len() / 2]).expect("the file is written");
    let output = folder.run(&[
        "render",
        "small.ondes",
        "--input",
        "cut.wav",
        "--out",
        "x.wav",
    ]);
    assert!(output.status.success());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.starts_with("ondes: warning: cut.wav: is truncated"),
        "{errors}"
    );
}
