//! Contents of the files in each format.

use std::path::PathBuf;

use ondes::record::{RecordError, Recorder, RecorderSetup, RecordingFormat};

use crate::common::{decode, push, recorder, sound};

/// Rounds a sample to `bits` bits.
fn rounded(sample: f32, bits: u32) -> f32 {
    let scale = f64::from(1 << (bits - 1));
    ((f64::from(sample) * scale)
        .round()
        .clamp(-scale, scale - 1.0)
        / scale) as f32
}

#[test]
fn flac_is_the_sound_rounded_to_24_bits() {
    for channels in [1, 2, 8] {
        let (folder, mut recorder, mut taps) = recorder(&[channels], 0.1);
        let mut start = 0;
        for frames in [1, 15, 4_096, 50_001] {
            let path = folder.path().join(format!("{frames}.flac"));
            recorder
                .start([(0, path.clone())], RecordingFormat::Flac, false)
                .expect("it starts");
            for block in 0..10 {
                let (from, to) = (frames * block / 10, frames * (block + 1) / 10);
                push(&mut taps, 0, start + from, (to - from) as usize);
            }
            recorder.stop();
            assert_eq!(recorder.wait().error, None);
            let played = sound(0, channels, start..start + frames);
            let expected: Vec<f32> = played.iter().map(|&sample| rounded(sample, 24)).collect();
            // Symphonia returns 24-bit integers unchanged.
            assert!(
                decode(&path) == expected,
                "{channels} channels, {frames} frames"
            );
            // The checksum in the header matches the sound.
            assert!(matches!(
                flac_codec::decode::verify(&path),
                Ok(flac_codec::decode::Verified::MD5Match)
            ));
            start += frames;
        }
    }
}

#[test]
fn flac_accepts_any_number() {
    let (folder, mut recorder, mut taps) = recorder(&[1], 0.1);
    let path = folder.path().join("a.flac");
    let samples = [
        1.0,
        -1.0,
        2.0,
        -3.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        0.5,
        -0.0,
    ];
    recorder
        .start([(0, path.clone())], RecordingFormat::Flac, false)
        .expect("it starts");
    taps[0].push(0, &[&samples]);
    recorder.stop();
    assert_eq!(recorder.wait().error, None);
    let most = 1.0 - 1.0 / 8_388_608.0;
    assert_eq!(
        decode(&path),
        [most, -1.0, most, -1.0, most, -1.0, 0.0, 0.5, 0.0]
    );
}

#[test]
fn integer_wav_is_dithered() {
    for (format, bits) in [(RecordingFormat::Int16, 16), (RecordingFormat::Int24, 24)] {
        let (folder, mut recorder, mut taps) = recorder(&[2], 0.1);
        let path = folder.path().join("a.wav");
        recorder
            .start([(0, path.clone())], format, false)
            .expect("it starts");
        // A third of a step, which rounding alone would remove.
        let step = 1.0 / (1 << (bits - 1)) as f32;
        let quiet = vec![step / 3.0; 48_000];
        taps[0].push(0, &[&quiet, &quiet]);
        push(&mut taps, 0, 48_000, 48_000);
        recorder.stop();
        assert_eq!(recorder.wait().error, None);
        let found = decode(&path);
        let (quiet, loud) = found.split_at(96_000);
        let mean = quiet
            .iter()
            .map(|&sample| f64::from(sample / step))
            .sum::<f64>()
            / 96_000.0;
        assert!((mean - 1.0 / 3.0).abs() < 0.01, "{bits} bits: {mean}");
        let played = sound(0, 2, 48_000..96_000);
        assert_eq!(loud.len(), played.len());
        assert!(
            loud.iter()
                .zip(&played)
                .all(|(a, b)| (a - b).abs() <= 1.51 * step),
            "{bits} bits"
        );
    }
}

#[test]
fn unsupported_formats_are_refused() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let refuse = |sample_rate, channels, words: &str| {
        let setup = RecorderSetup {
            sample_rate,
            channels: vec![channels],
            preroll_s: 0.0,
            ring_s: 0.1,
        };
        let (mut recorder, _taps) = Recorder::new(&setup).expect("there is memory");
        let path: PathBuf = folder.path().join("a.flac");
        let error = recorder
            .start([(0, path.clone())], RecordingFormat::Flac, false)
            .expect_err("FLAC has no such format");
        assert!(
            matches!(error, RecordError::File(_)) && error.to_string().contains(words),
            "{error}"
        );
        assert!(!path.exists() && recorder.status().recording.is_none());
        recorder
            .start(
                [(0, path.with_extension("wav"))],
                RecordingFormat::Float32,
                false,
            )
            .expect("WAV does");
        drop(recorder);
        std::fs::remove_file(path.with_extension("wav")).expect("there is a file");
    };
    refuse(
        48_000,
        9,
        "the number of channels is 9; supported: 1 to 8 in a FLAC file",
    );
    refuse(
        768_000,
        2,
        "the sample rate in Hz is 768000; supported: 1000 to 655340 in a FLAC file",
    );
    refuse(100_001, 2, "cannot be written");
}
