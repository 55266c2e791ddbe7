//! Signal chain around a model: gate, tone, cabinet, oversampling.

use serde_json::json;

use crate::common::{Folder, read_wav, tone, write_wav};

/// Creates a recording, and an amplifier that passes it through.
fn with_amplifier() -> (Folder, Vec<f32>) {
    let folder = Folder::new();
    let file = json!({
        "version": "0.5.4", "architecture": "Linear", "config": { "receptive_field": 1, "bias": false },
        "weights": [1.0], "sample_rate": 48_000,
    });
    std::fs::write(folder.path("wire.nam"), file.to_string()).expect("it can be written");
    let sound: Vec<f32> = tone(220.0, 0.5, 48_000).collect();
    write_wav(&folder.path("guitar.wav"), 48_000, 1, sound.iter().copied());
    (folder, sound)
}

fn render(folder: &Folder, arguments: &[&str]) -> Vec<f32> {
    let fixed = ["render", "wire.nam", "--input", "guitar.wav", "--out", "out.wav"];
    folder.json(&[&fixed, arguments].concat());
    read_wav(&folder.path("out.wav"))
}

fn level(sound: &[f32]) -> f32 {
    (sound.iter().map(|sample| sample * sample).sum::<f32>() / sound.len() as f32).sqrt()
}

#[test]
fn a_cabinet_has_no_latency_at_any_block_length() {
    let (folder, sound) = with_amplifier();
    // Average of two channels, one silent, longer than direct convolution handles.
    let taps: Vec<f32> = (0..300).map(|n| (-(n as f32) / 60.0).exp()).collect();
    write_wav(&folder.path("box.wav"), 48_000, 2, taps.iter().flat_map(|tap| [*tap, 0.0]));
    let heard = render(&folder, &["--cabinet", "box.wav"]);
    let expected =
        |n: usize| taps.iter().take(n + 1).enumerate().map(|(delay, tap)| tap * sound[n - delay]).sum::<f32>();
    // The cabinet's level is normalised, whatever the level of its file.
    let gain = heard[10_000] / expected(10_000);
    for n in (0..sound.len()).step_by(97) {
        let expected = gain * expected(n);
        assert!((heard[n] - expected).abs() < 1e-4, "{} for {expected} at {n}", heard[n]);
    }
    assert!(heard.len() > sound.len() && (0.01..100.0).contains(&gain), "it rings on; gain {gain}");
    assert!(render(&folder, &["--cabinet", "box.wav", "--block", "33"]) == heard, "another block sounds another way");
}

#[test]
fn a_bundled_cabinet_is_named() {
    let (folder, sound) = with_amplifier();
    let plain = render(&folder, &[]);
    let dark = render(&folder, &["--cabinet", "4x12"]);
    assert!(dark != plain && dark.len() > sound.len() + 1_500, "its tail has {} samples", dark.len() - sound.len());
    assert!(render(&folder, &["--cabinet", "Ondes 4x12 closed back"]) == dark);
    // A file of that name is the file.
    write_wav(&folder.path("4x12"), 48_000, 1, [1.0_f32].into_iter());
    assert_eq!(render(&folder, &["--cabinet", "4x12"]).len(), plain.len());
}

#[test]
fn gate_and_tone_change_the_sound() {
    let (folder, sound) = with_amplifier();
    let plain = level(&render(&folder, &[])[..sound.len()]);
    assert_eq!(level(&render(&folder, &["--gate", "-90"])[..sound.len()]), plain, "all of it is louder");
    let softer = level(&render(&folder, &["--bass", "-12", "--middle", "-12"])[..sound.len()]) / plain;
    assert!((0.1..0.5).contains(&softer), "{softer}");
    let before =
        level(&render(&folder, &["--bass", "-12", "--middle", "-12", "--tone", "before"])[..sound.len()]) / plain;
    assert!((before - softer).abs() < 1e-3, "before or after what changes nothing: {before}, {softer}");
    write_wav(&folder.path("guitar.wav"), 48_000, 1, sound.iter().map(|sample| 0.001 * sample));
    // The gate starts open.
    let gated = render(&folder, &["--gate", "-40"]);
    assert!(gated[12_000..].iter().all(|sample| *sample == 0.0));
}

#[test]
fn oversampling_keeps_the_alignment() {
    let (folder, sound) = with_amplifier();
    for factor in ["2", "4"] {
        let heard = render(&folder, &["--oversampling", factor]);
        for n in 200..sound.len() - 200 {
            assert!((heard[n] - sound[n]).abs() < 1e-3, "{} for {} at {n}", heard[n], sound[n]);
        }
    }
}

#[test]
fn contradictory_options_are_refused() {
    let (folder, _) = with_amplifier();
    let render = ["render", "wire.nam", "--input", "guitar.wav"];
    let refuses = |arguments: &[&str], words: &[&str]| folder.refuses(&[&render, arguments].concat(), words);
    refuses(&["--cabinet", "none.wav"], &["none.wav: no such file"]);
    refuses(&["--cabinet", "wire.nam"], &["wire.nam: is not audio"]);
    refuses(&["--cabinet", "8x10"], &["8x10: no such file or bundled cabinet; bundled: Ondes 1x12 open back, Ondes"]);
    for wrong in [["--oversampling", "3"], ["--gate", "3"], ["--treble", "13"]] {
        let output = folder.run(&[&render, &wrong[..]].concat());
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{wrong:?}");
    }
    folder.refuses(
        &["render", "small.ondes", "--input", "guitar.wav", "--oversampling", "2"],
        &["small.ondes: only effects can be oversampled, this model is of kind instrument"],
    );
}
