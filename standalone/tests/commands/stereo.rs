//! Stereo recordings through effects and codecs.

use ondes_tests::bundled_file;

use crate::common::{Folder, read_channels, tone, write_wav};

/// Creates a recording with different sides, its sides as recordings of their own, and the capture
/// of a pedal.
fn with_recordings() -> Folder {
    let folder = Folder::new();
    let left: Vec<f32> = tone(220.0, 0.6, 48_000).collect();
    let right: Vec<f32> = tone(331.0, 0.6, 48_000)
        .map(|sample| 0.5 * sample)
        .collect();
    let both = |left: &[f32], right: &[f32]| {
        left.iter()
            .zip(right)
            .flat_map(|(l, r)| [*l, *r])
            .collect::<Vec<f32>>()
    };
    write_wav(
        &folder.path("both.wav"),
        48_000,
        2,
        both(&left, &right).into_iter(),
    );
    write_wav(&folder.path("left.wav"), 48_000, 1, left.iter().copied());
    write_wav(&folder.path("right.wav"), 48_000, 1, right.iter().copied());
    std::fs::copy(bundled_file("fuzz"), folder.path("fuzz.ondes")).expect("it can be copied");
    folder
}

fn render(folder: &Folder, input: &str, more: &[&str]) -> Vec<Vec<f32>> {
    let report = folder.json(
        &[
            &["render", "fuzz.ondes", "--input", input, "--out", "out.wav"],
            more,
        ]
        .concat(),
    );
    let sound = read_channels(&folder.path("out.wav"));
    assert_eq!(report["channels"], sound.len());
    sound
}

#[test]
fn each_side_is_processed_as_a_recording_of_its_own() {
    let folder = with_recordings();
    for more in [
        &[][..],
        &["--block", "100"],
        &["--sample-rate", "44100"],
        &[
            "--bass",
            "6",
            "--treble",
            "-6",
            "--block-dc",
            "--cabinet",
            "4x12",
        ],
    ] {
        let both = render(&folder, "both.wav", more);
        let alone = ["left.wav", "right.wav"].map(|side| render(&folder, side, more).remove(0));
        assert_eq!((both.len(), both[0].len()), (2, alone[0].len()), "{more:?}");
        assert!(both[0] == alone[0] && both[1] == alone[1], "{more:?}");
        assert!(
            both.iter()
                .all(|side| side.iter().any(|sample| sample.abs() > 0.01)),
            "{more:?}"
        );
    }
}

#[test]
fn one_gate_opens_for_both_sides() {
    let folder = with_recordings();
    let silence = std::iter::repeat_n(0.0, 24_000);
    let soft = tone(220.0, 0.5, 48_000).map(|sample| 0.001 * sample);
    let loud = tone(331.0, 0.5, 48_000);
    let sides = soft
        .zip(loud)
        .flat_map(|(soft, loud)| [soft, loud])
        .chain(silence);
    write_wav(&folder.path("both.wav"), 48_000, 2, sides);
    let both = render(&folder, "both.wav", &["--gate", "-40"]);
    assert!(
        both[0][12_000..24_000]
            .iter()
            .any(|sample| sample.abs() > 1e-4),
        "the loud side opens the gate"
    );
}

#[test]
fn a_reverb_makes_a_mono_recording_stereo_and_rings_on() {
    let folder = with_recordings();
    let dry = render(&folder, "left.wav", &[]).remove(0);
    let wet = render(
        &folder,
        "left.wav",
        &["--reverb", "0.5", "--reverb-time", "0.5"],
    );
    assert_eq!(
        (wet.len(), wet[0].len()),
        (2, dry.len() + 36_000),
        "90 dB at 60 dB in half a second"
    );
    assert!(wet[0] != wet[1], "each side has its own reflections");
    let level = |sound: &[f32]| sound.iter().map(|sample| sample * sample).sum::<f32>();
    assert!(
        wet[0][..900] == dry[..900] && wet[1][..900] == dry[..900],
        "reflections come later"
    );
    // The fuzz hums in the middle, so that only the difference of the sides becomes silent.
    let difference: Vec<f32> = wet[0]
        .iter()
        .zip(&wet[1])
        .map(|(left, right)| left - right)
        .collect();
    let [begin, end] =
        [dry.len(), dry.len() + 31_200].map(|start| level(&difference[start..][..4_800]));
    assert!(begin > 1e-5 && end < 1e-4 * begin, "{begin}, then {end}");
}

#[test]
fn channels_are_chosen() {
    let folder = with_recordings();
    let [left, right] = ["left.wav", "right.wav"].map(|side| render(&folder, side, &[]).remove(0));
    assert!(left != right);
    assert!(render(&folder, "both.wav", &["--channels", "left"]) == [left.clone()]);
    let mono = render(&folder, "both.wav", &["--channels", "mono"]);
    assert!(mono.len() == 1 && mono[0] != left && mono[0].len() == left.len());
    assert!(
        render(&folder, "left.wav", &["--channels", "stereo"]) == [left],
        "a mono recording stays mono"
    );
    // An instrument follows the mean of both sides, or the left one.
    let follow = |input: &str, more: &[&str]| {
        folder.json(
            &[
                &[
                    "render",
                    "small.ondes",
                    "--input",
                    input,
                    "--out",
                    "out.wav",
                ],
                more,
            ]
            .concat(),
        );
        read_channels(&folder.path("out.wav"))
    };
    assert!(follow("both.wav", &["--channels", "left"]) == follow("left.wav", &[]));
    assert!(follow("both.wav", &[]) == follow("both.wav", &["--channels", "mono"]));
    assert_eq!(follow("both.wav", &[]).len(), 1);
}

#[test]
fn a_batch_mixes_mono_and_stereo_recordings() {
    let folder = with_recordings();
    std::fs::create_dir(folder.path("takes")).expect("a folder");
    for name in ["both.wav", "left.wav", "right.wav"] {
        std::fs::rename(folder.path(name), folder.path("takes").join(name))
            .expect("it can be moved");
    }
    let (lines, _) = folder.batch(&[
        "render",
        "fuzz.ondes",
        "--input",
        "takes",
        "--out",
        "done",
        "--jobs",
        "1",
    ]);
    assert_eq!(lines.len(), 3);
    let done = |name: &str| read_channels(&folder.path("done").join(name));
    assert!(done("both.wav") == [done("left.wav").remove(0), done("right.wav").remove(0)]);
}
