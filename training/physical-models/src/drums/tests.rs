use std::path::Path;

use ondes_engine::media::{WavBits, WavWriter, read_mono};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

use super::kit::Part;
use super::pattern::{BEATS, Groove};
use super::*;

/// Writes a kit whose hits are clicks of different levels.
fn kit(folder: &Path, parts: &[&str]) {
    for part in parts {
        let folder = folder.join(part);
        std::fs::create_dir_all(&folder).expect("a folder");
        for (name, level) in [("hard.wav", 0.8), ("soft.wav", 0.2)] {
            let mut writer =
                WavWriter::create(folder.join(name), 48_000, 1, WavBits::Float32).expect("a file");
            let mut hit = vec![0.0; 4_800];
            hit[480..]
                .iter_mut()
                .enumerate()
                .for_each(|(n, sample)| *sample = level * (-(n as f32) / 200.0).exp());
            writer
                .write(&[hit])
                .and_then(|()| writer.finish())
                .expect("it is written");
        }
    }
}

#[test]
fn grooves_are_in_time_and_named_by_their_tempo() {
    let folder = tempfile::tempdir().expect("a folder");
    kit(folder.path(), &["kick", "snare", "closed-hat"]);
    let generate = |out: &str, seed| {
        let options = DrumsOptions {
            minutes: 1.0,
            tempos: (90, 120),
            seed,
        };
        let out = folder.path().join(out);
        let summary = generate(&options, folder.path(), &out, |_, _| ()).expect("grooves");
        let mut files: Vec<_> = std::fs::read_dir(out)
            .expect("files")
            .map(|file| file.expect("a file").path())
            .collect();
        files.sort();
        assert_eq!(
            (summary.files, summary.seconds >= 60.0),
            (files.len(), true)
        );
        files
    };
    let files = generate("grooves", 1);
    for file in &files {
        let name = file
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let tempo: f64 = name
            .split_once(' ')
            .expect("a tempo")
            .1
            .trim_end_matches("bpm.wav")
            .parse()
            .expect("a number");
        assert!((90.0..=120.0).contains(&tempo));
        let (sound, rate) = read_mono(file).expect("a sound");
        let expected = (8 * BEATS) as f64 * 60.0 / tempo;
        assert!(
            (sound.len() as f64 / f64::from(rate) - expected).abs() < 1e-3,
            "{name}"
        );
        // The first beat is struck at the beginning, without the silence before the hit.
        let first = sound
            .iter()
            .position(|sample| sample.abs() > 0.05)
            .expect("a stroke");
        assert!(first < rate as usize / 50, "{name}: {first}");
    }
    let bytes = |file: &Path| std::fs::read(file).expect("it is there");
    assert_eq!(bytes(&files[0]), bytes(&generate("again", 1)[0]));
    assert_ne!(bytes(&files[0]), bytes(&generate("others", 2)[0]));
}

#[test]
fn kits_that_cannot_be_played_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    kit(folder.path(), &["kick", "snare"]);
    let options = DrumsOptions {
        minutes: 0.1,
        tempos: (90, 120),
        seed: 1,
    };
    let refused = |options: &DrumsOptions| {
        let error = generate(
            options,
            folder.path(),
            &folder.path().join("out"),
            |_, _| (),
        )
        .expect_err("it is refused");
        format!("{error:#}")
    };
    assert!(
        refused(&options).contains("closed-hat: a kit needs this folder"),
        "{}",
        refused(&options)
    );
    std::fs::create_dir(folder.path().join("closed-hat")).expect("a folder");
    assert!(
        refused(&options).contains("closed-hat: there are no WAV"),
        "{}",
        refused(&options)
    );
    assert!(
        refused(&DrumsOptions {
            tempos: (120, 90),
            ..options
        })
        .contains("tempos 120 to 90")
    );
}

#[test]
fn grooves_vary_within_a_bar_of_sixteenths() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut all = Vec::new();
    for tempo in [70.0, 150.0] {
        let groove = Groove::compose(tempo, 8, |_| true, &mut random);
        let beat_s = 60.0 / tempo;
        assert!(
            groove.strokes.is_sorted_by_key(|stroke| stroke.at_s) && groove.strokes.len() > 8 * 8
        );
        for stroke in &groove.strokes {
            // Straight or swung, within what a hand is loose.
            let step = (stroke.at_s + 0.009) / beat_s * 4.0;
            let late = (step.rem_euclid(1.0)) * beat_s / 4.0;
            assert!(late < 0.018 + beat_s / 12.0, "{stroke:?}, {late} s late");
            assert!((0.0..=1.0).contains(&stroke.strength) && stroke.at_s < 32.0 * beat_s);
        }
        all.extend(groove.strokes);
    }
    for part in [Part::Kick, Part::Snare, Part::ClosedHat] {
        assert!(
            all.iter().filter(|stroke| stroke.part == part).count() > 8,
            "{part:?}"
        );
    }
}
