//! Signal chain around a model: gate, tone, cabinet, oversampling.

use ondes_engine::chain::ImpulseFile;
use ondes_engine::media::{WavBits, WavWriter};
use serde_json::{Value, json};

use crate::common::{Folder, read_channels, read_wav, tone, write_wav};

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
    let fixed = [
        "render",
        "wire.nam",
        "--input",
        "guitar.wav",
        "--out",
        "out.wav",
    ];
    folder.json(&[&fixed, arguments].concat());
    read_wav(&folder.path("out.wav"))
}

fn level(sound: &[f32]) -> f32 {
    (sound.iter().map(|sample| sample * sample).sum::<f32>() / sound.len() as f32).sqrt()
}

#[test]
fn a_cabinet_has_no_latency_at_any_block_length() {
    let (folder, sound) = with_amplifier();
    // Longer than direct convolution handles.
    let taps: Vec<f32> = (0..300).map(|n| (-(n as f32) / 60.0).exp()).collect();
    write_wav(&folder.path("box.wav"), 48_000, 1, taps.iter().copied());
    let heard = render(&folder, &["--cabinet", "box.wav"]);
    let expected = |n: usize| {
        taps.iter()
            .take(n + 1)
            .enumerate()
            .map(|(delay, tap)| tap * sound[n - delay])
            .sum::<f32>()
    };
    // The cabinet's level is normalised, whatever the level of its file.
    let gain = heard[10_000] / expected(10_000);
    for n in (0..sound.len()).step_by(97) {
        let expected = gain * expected(n);
        assert!(
            (heard[n] - expected).abs() < 1e-4,
            "{} for {expected} at {n}",
            heard[n]
        );
    }
    assert!(
        heard.len() > sound.len() && (0.01..100.0).contains(&gain),
        "it rings on; gain {gain}"
    );
    assert!(
        render(&folder, &["--cabinet", "box.wav", "--block", "33"]) == heard,
        "another block sounds another way"
    );
}

/// Asserts that a recording through `half.ondes` with options is what a session plays of the same,
/// with the cabinet and parameters. Returns its channels.
fn assert_as_in_a_session(
    folder: &Folder,
    recording: &str,
    options: &[&str],
    cabinet: &Value,
    parameters: Value,
) -> usize {
    folder.write_session(recording);
    let render = [
        "render",
        "half.ondes",
        "--input",
        recording,
        "--out",
        "b.wav",
    ];
    let report = folder.json(&[&render, options].concat());
    let mut rendered = read_channels(&folder.path("b.wav"));
    let channels = rendered.len();
    assert_eq!(report["channels"], channels);
    rendered.resize(2, rendered[0].clone());
    assert!(
        rendered.iter().flatten().any(|sample| sample.abs() > 0.02),
        "{options:?}"
    );

    let text = std::fs::read_to_string(folder.path("a.ondes-session")).expect("a session");
    let mut session: Value = serde_json::from_str(&text).expect("a session");
    session["tracks"][0]["selection"]["cabinet"] = cabinet.clone();
    session["tracks"][0]["parameters"] = parameters;
    // Sessions without it are older than stereo.
    session["tracks"][0]["parameters"]["channels"] = "stereo".into();
    std::fs::write(folder.path("a.ondes-session"), session.to_string())
        .expect("the file is written");
    folder.json(&["render", "a.ondes-session"]);
    for (played, rendered) in read_channels(&folder.path("a.wav")).iter().zip(&rendered) {
        let common = played.len().min(rendered.len());
        // A track sleeps when what rings on is no longer audible.
        let is_same = |n: &usize| {
            played[*n] == rendered[*n] || played[*n] == 0.0 && rendered[*n].abs() < 1e-5
        };
        assert_eq!(
            (0..common).find(|n| !is_same(n)),
            None,
            "{recording} {options:?}"
        );
        assert!(
            common >= 14_400 && played[..14_400] == rendered[..14_400],
            "{common} samples of {recording}"
        );
        let rest = played[common..]
            .iter()
            .chain(&rendered[common..])
            .fold(0.0, |peak: f32, sample| peak.max(sample.abs()));
        // A session is rendered for longer than filters take to fade to -60 dB.
        assert!(
            rest < 1e-3,
            "{rest} after {common} of {} and {} samples, {options:?}",
            played.len(),
            rendered.len()
        );
    }
    channels
}

/// Creates a recording of one channel and one of two.
fn with_recordings() -> Folder {
    let folder = Folder::new();
    let left: Vec<f32> = tone(220.0, 0.3, 48_000).collect();
    let right = tone(331.0, 0.3, 48_000).map(|sample| 0.4 * sample);
    write_wav(&folder.path("left.wav"), 48_000, 1, left.iter().copied());
    write_wav(
        &folder.path("both.wav"),
        48_000,
        2,
        left.iter()
            .zip(right)
            .flat_map(|(left, right)| [*left, right]),
    );
    folder
}

#[test]
fn cabinets_of_one_two_and_four_channels_render_as_in_a_session() {
    let folder = with_recordings();
    for channels in [1, 2, 4] {
        // Each channel has a click of its own, later than the one before.
        let taps = (0..50 * channels).map(|n| {
            if n / channels == 10 * (n % channels) {
                0.5
            } else {
                0.0
            }
        });
        let path = folder.path("box.wav");
        write_wav(&path, 48_000, channels as u16, taps);
        let hash = ImpulseFile::read(&path).expect("a response").hash;
        let cabinet = json!({ "name": "box", "hash": hash, "path": path });
        for recording in ["left.wav", "both.wav"] {
            let heard = assert_as_in_a_session(
                &folder,
                recording,
                &["--cabinet", "box.wav"],
                &cabinet,
                json!({}),
            );
            assert_eq!(
                heard,
                if recording == "both.wav" || channels > 1 {
                    2
                } else {
                    1
                },
                "{recording} {channels}"
            );
        }
    }
}

#[test]
fn parameters_render_as_in_a_session() {
    let folder = with_recordings();
    for (options, parameters) in [
        (
            &["--gate", "-50", "--bass", "6", "--treble", "-4"][..],
            json!({ "gate": -50.0, "bass": 6.0, "treble": -4.0 }),
        ),
        (
            &["--middle", "-9", "--tone", "before"],
            json!({ "middle": -9.0, "tone": "before" }),
        ),
        (
            &["--oversampling", "4", "--block-dc"],
            json!({ "oversampling": "4x", "block_dc": true }),
        ),
        (
            &["--reverb", "0.4", "--reverb-time", "0.3"],
            json!({ "reverb": 0.4, "reverb_time": 0.3 }),
        ),
    ] {
        for recording in ["left.wav", "both.wav"] {
            assert_as_in_a_session(
                &folder,
                recording,
                options,
                &Value::Null,
                parameters.clone(),
            );
        }
    }
}

#[test]
fn long_rooms_play_and_silent_tails_do_not_count() {
    let (folder, _) = with_amplifier();
    write_wav(
        &folder.path("guitar.wav"),
        48_000,
        1,
        (0..480).map(|n| if n == 0 { 0.5 } else { 0.0 }),
    );
    let room = |seconds: usize, silent: usize| {
        let taps = (0..8_000 * seconds).map(|n| if n % 1_000 == 0 { 0.1 } else { 0.0 });
        write_wav(
            &folder.path("room.wav"),
            8_000,
            1,
            taps.chain(std::iter::repeat_n(0.0, 8_000 * silent)),
        );
    };
    room(15, 70);
    let heard = render(&folder, &["--cabinet", "room.wav"]).len() as f32 / 48_000.0;
    assert!((14.8..15.1).contains(&heard), "{heard} s");
    room(62, 0);
    let long = [
        "render",
        "wire.nam",
        "--input",
        "guitar.wav",
        "--cabinet",
        "room.wav",
    ];
    folder.refuses(
        &long,
        &["room.wav: an impulse response sounds for at most 60 s; this one sounds for 61.9 s"],
    );
    let mut damaged =
        WavWriter::create(folder.path("room.wav"), 8_000, 1, WavBits::Float32).expect("a file");
    damaged
        .write(&[[1.0, f32::INFINITY, 0.5]])
        .expect("it is written");
    damaged.finish().expect("it is complete");
    folder.refuses(
        &long,
        &["room.wav: the impulse response has samples that are not finite numbers"],
    );
}

#[test]
fn a_bundled_cabinet_is_named() {
    let (folder, sound) = with_amplifier();
    let plain = render(&folder, &[]);
    let dark = render(&folder, &["--cabinet", "4x12"]);
    assert!(
        dark != plain && dark.len() > sound.len() + 1_500,
        "its tail has {} samples",
        dark.len() - sound.len()
    );
    assert!(render(&folder, &["--cabinet", "Ondes 4x12 closed back"]) == dark);
    // A file of that name is the file.
    write_wav(&folder.path("4x12"), 48_000, 1, [1.0_f32].into_iter());
    assert_eq!(render(&folder, &["--cabinet", "4x12"]).len(), plain.len());
}

#[test]
fn gate_and_tone_change_the_sound() {
    let (folder, sound) = with_amplifier();
    let plain = level(&render(&folder, &[])[..sound.len()]);
    assert_eq!(
        level(&render(&folder, &["--gate", "-90"])[..sound.len()]),
        plain,
        "all of it is louder"
    );
    let softer =
        level(&render(&folder, &["--bass", "-12", "--middle", "-12"])[..sound.len()]) / plain;
    assert!((0.1..0.5).contains(&softer), "{softer}");
    let before = level(
        &render(
            &folder,
            &["--bass", "-12", "--middle", "-12", "--tone", "before"],
        )[..sound.len()],
    ) / plain;
    assert!(
        (before - softer).abs() < 1e-3,
        "before or after what changes nothing: {before}, {softer}"
    );
    write_wav(
        &folder.path("guitar.wav"),
        48_000,
        1,
        sound.iter().map(|sample| 0.001 * sample),
    );
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
            assert!(
                (heard[n] - sound[n]).abs() < 1e-3,
                "{} for {} at {n}",
                heard[n],
                sound[n]
            );
        }
    }
}

#[test]
fn contradictory_options_are_refused() {
    let (folder, _) = with_amplifier();
    let render = ["render", "wire.nam", "--input", "guitar.wav"];
    let refuses =
        |arguments: &[&str], words: &[&str]| folder.refuses(&[&render, arguments].concat(), words);
    refuses(&["--cabinet", "none.wav"], &["none.wav: no such file"]);
    refuses(&["--cabinet", "wire.nam"], &["wire.nam: is not audio"]);
    refuses(
        &["--cabinet", "8x10"],
        &["8x10: no such file or bundled cabinet; bundled: 1x12, 2x12, 4x12"],
    );
    for wrong in [["--oversampling", "3"], ["--gate", "3"], ["--treble", "13"]] {
        let output = folder.run(&[&render, &wrong[..]].concat());
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(2), 0),
            "{wrong:?}"
        );
    }
    folder.refuses(
        &[
            "render",
            "small.ondes",
            "--input",
            "guitar.wav",
            "--oversampling",
            "2",
        ],
        &["small.ondes: only effects can be oversampled, this model is of kind instrument"],
    );
}

#[test]
fn a_preset_renders_its_rig_as_its_parts_one_after_the_other() {
    let (folder, _) = with_amplifier();
    let block = |block: &str, name: &str| json!({ "block": block, "file": { "name": name } });
    let mut first = block("model", "Triode");
    first["before"] = true.into();
    let preset = json!({
        "format": "ondes-preset", "version": 1, "name": "Rig", "plugin": "org.ondes.effect",
        "parameters": {},
        "selection": { "model": { "path": "wire.nam" }, "blocks": [first, block("response", "4x12")] },
    });
    let path = folder.path("rig.ondes-preset");
    std::fs::write(&path, preset.to_string()).expect("the file is written");

    let rig = ["render", "rig.ondes-preset", "--input", "guitar.wav"];
    folder.json(&[&rig[..], &["--out", "rig.wav"]].concat());
    folder.json(&[
        "render",
        "triode",
        "--input",
        "guitar.wav",
        "--out",
        "1.wav",
    ]);
    let second = [
        "render",
        "wire.nam",
        "--input",
        "1.wav",
        "--cabinet",
        "4x12",
    ];
    folder.json(&[&second[..], &["--out", "2.wav"]].concat());
    let (rig, parts) = (
        read_channels(&folder.path("rig.wav")),
        read_channels(&folder.path("2.wav")),
    );
    for n in 0..24_000 {
        assert!(
            (rig[0][n] - parts[0][n]).abs() < 1e-6,
            "sample {n}: {} for {}",
            rig[0][n],
            parts[0][n]
        );
    }
    assert!(rig[0].iter().any(|sample| sample.abs() > 0.01));

    let lost = preset.to_string().replace("Triode", "Nobody");
    std::fs::write(&path, lost).expect("the file is written");
    folder.refuses(
        &["render", "rig.ondes-preset", "--input", "guitar.wav"],
        &["Nobody", "missing"],
    );
}
