//! Full disks and missing folders.

use std::fs;

use ondes::record::{RecordError, RecordingFormat};

use crate::common::{child, child_folder, decode, push, read_float, recorder, sound, until};

#[test]
fn unwritable_paths_are_reported_at_once() {
    let (folder, mut recorder, mut taps) = recorder(&[1, 1], 1.0);
    let path = |name: &str| folder.path().join(name);
    fs::write(path("there.wav"), "before").expect("the file is written");
    for (name, words) in [
        ("none/a.wav", "cannot be written"),
        ("there.wav", "exists"),
        (".", "cannot be written"),
    ] {
        for format in [RecordingFormat::Float32, RecordingFormat::Flac] {
            let error = recorder
                .start([(1, path("good.wav")), (0, path(name))], format, false)
                .expect_err("not connected");
            let line = error.to_string();
            assert!(
                line.starts_with(&path(name).display().to_string()) && line.contains(words),
                "{line}"
            );
            assert_eq!(line.lines().count(), 1);
        }
    }
    assert!(matches!(
        recorder.start([(2, path("a.wav"))], RecordingFormat::Float32, false),
        Err(RecordError::NoTap(2))
    ));
    assert!(matches!(
        recorder.start([], RecordingFormat::Float32, false),
        Err(RecordError::NoFile)
    ));
    assert_eq!(
        fs::read(path("there.wav")).expect("there is a file"),
        b"before"
    );
    assert_eq!(
        fs::read_dir(folder.path())
            .expect("there is a folder")
            .count(),
        1
    );
    // None of it affects the next recording.
    recorder
        .start([(0, path("a.wav"))], RecordingFormat::Float32, false)
        .expect("it starts");
    assert!(matches!(
        recorder.start([(0, path("b.wav"))], RecordingFormat::Float32, false),
        Err(RecordError::Running)
    ));
    push(&mut taps, 0, 0, 100);
    recorder.stop();
    assert_eq!(recorder.wait().error, None);
    assert!(read_float(&path("a.wav")) == sound(0, 1, 0..100));
}

#[cfg(unix)]
#[test]
fn a_removed_folder_ends_the_recording() {
    for format in [RecordingFormat::Float32, RecordingFormat::Flac] {
        let (folder, mut recorder, mut taps) = recorder(&[2], 1.0);
        let gone = folder.path().join("gone");
        fs::create_dir(&gone).expect("a folder is made");
        let path = gone.join("a.wav");
        recorder
            .start([(0, path.clone())], format, false)
            .expect("it starts");
        push(&mut taps, 0, 0, 48_000);
        until("something is written", || {
            fs::metadata(&path).is_ok_and(|metadata| metadata.len() > 1_000)
        });
        fs::remove_dir_all(&gone).expect("the folder is removed");
        push(&mut taps, 0, 48_000, 48_000);
        until("the recording ends", || {
            recorder.status().recording.is_none()
        });
        let error = recorder.status().error.expect("it is told");
        let expected = format!(
            "{}: cannot be written: the file was removed or renamed",
            path.display()
        );
        assert_eq!(error, expected);
        // The pre-roll and the next recording are unaffected.
        let path = folder.path().join("b.wav");
        recorder
            .start([(0, path.clone())], RecordingFormat::Float32, true)
            .expect("it starts");
        push(&mut taps, 0, 96_000, 1_000);
        recorder.stop();
        assert_eq!(recorder.wait().error, None);
        assert!(read_float(&path) == sound(0, 2, 48_000..97_000));
    }
}

/// A limit on file sizes simulates a full disk: the write fails in the middle of the file.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_ends_the_recording_with_a_complete_file() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let script = "trap '' XFSZ; ulimit -f 200;";
    let output = child(script, "disk::fills_a_disk", folder.path())
        .output()
        .expect("the shell starts");
    let (out, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success() && out.contains("1 passed"),
        "{out}{errors}"
    );
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "is run, with a limit on files, by another test"]
fn fills_a_disk() {
    let (_, mut recorder, mut taps) = recorder(&[2], 1.0);
    let mut clock = 0;
    for (format, name) in [
        (RecordingFormat::Float32, "a.wav"),
        (RecordingFormat::Int24, "b.wav"),
        (RecordingFormat::Flac, "c.flac"),
    ] {
        let path = child_folder().join(name);
        recorder
            .start([(0, path.clone())], format, false)
            .expect("it starts");
        push(&mut taps, 0, clock, 200_000);
        until("the recording ends", || {
            recorder.status().recording.is_none()
        });
        let error = recorder.wait().error.expect("it is told");
        let words = format!("{}: cannot be written: File too large", path.display());
        assert!(
            error.starts_with(&words) && error.lines().count() == 1,
            "{error}"
        );
        // Everything that fitted, in complete frames.
        let found = decode(&path);
        let frames = found.len() as u64 / 2;
        let length = fs::metadata(&path).expect("there is a file").len();
        let room = if format == RecordingFormat::Flac {
            50_000
        } else {
            200 * 512 - 10
        };
        assert!(
            length > room && found.len().is_multiple_of(2),
            "{length} bytes, {frames} frames"
        );
        let step = if format == RecordingFormat::Float32 {
            0.0
        } else {
            1.51 / 8_388_608.0
        };
        let played = sound(0, 2, clock..clock + frames);
        assert!(
            found
                .iter()
                .zip(&played)
                .all(|(a, b)| (a - b).abs() <= step)
        );
        clock += 200_000;
        // A short file still fits.
        let path = path.with_extension("short");
        recorder
            .start([(0, path.clone())], RecordingFormat::Float32, false)
            .expect("it starts");
        push(&mut taps, 0, clock, 5_000);
        recorder.stop();
        assert_eq!(recorder.wait().error, None);
        assert!(read_float(&path) == sound(0, 2, clock..clock + 5_000));
        clock += 5_000;
    }
}
