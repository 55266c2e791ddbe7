//! A killed process leaves complete files.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use ondes::record::{Recorder, RecordingFormat};

use crate::common::{RATE, child, child_folder, decode, push, setup, sound, until};

/// Returns the number of frames in the header, as a player reads it.
fn stated_frames(path: &Path) -> u64 {
    let Ok(bytes) = fs::read(path) else { return 0 };
    if bytes.starts_with(b"fLaC") {
        u64::from_be_bytes(bytes[18..26].try_into().expect("eight bytes")) & 0x000f_ffff_ffff
    } else {
        hound::WavReader::new(&bytes[..]).map_or(0, |reader| u64::from(reader.duration()))
    }
}

/// Runs a child until its files have the length they must have, kills it and checks the files.
fn kill(test: &str, frames: u64) {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let mut child = child("", test, folder.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("the shell starts");
    let paths = ["a.wav", "b.flac"].map(|name| folder.path().join(name));
    until("the files grow", || {
        paths.iter().all(|path| stated_frames(path) >= frames)
    });
    child.kill().expect("it is killed");
    child.wait().expect("it ends");
    for path in &paths {
        let found = decode(path);
        assert_eq!(found.len() as u64, 2 * stated_frames(path));
        let played = sound(0, 2, 0..found.len() as u64 / 2);
        let step = if path.ends_with("a.wav") {
            0.0
        } else {
            0.51 / 8_388_608.0
        };
        assert!(
            found
                .iter()
                .zip(&played)
                .all(|(a, b)| (a - b).abs() <= step)
        );
    }
}

#[test]
fn at_most_half_a_second_is_lost() {
    kill(
        "killed::records_three_seconds",
        3 * u64::from(RATE) - u64::from(RATE) / 2,
    );
}

#[test]
fn a_kill_in_the_middle_of_writing_leaves_whole_files() {
    kill("killed::records_without_end", 500_000);
}

#[test]
#[ignore = "is run, and killed, by another test"]
fn records_three_seconds() {
    record(3 * u64::from(RATE));
}

#[test]
#[ignore = "is run, and killed, by another test"]
fn records_without_end() {
    record(u64::MAX);
}

/// Records frames in each format, without stopping.
fn record(frames: u64) {
    let mut recorders = [
        ("a.wav", RecordingFormat::Float32),
        ("b.flac", RecordingFormat::Flac),
    ]
    .map(|(name, format)| {
        let (mut recorder, taps) = Recorder::new(&setup(&[2], 0.0)).expect("there is memory");
        recorder
            .start([(0, child_folder().join(name))], format, false)
            .expect("it starts");
        (recorder, taps)
    });
    let mut clock = 0;
    loop {
        // No more than the rings hold, on any machine.
        let taken = |recorder: &Recorder| recorder.status().recording.expect("it is recording");
        let slowest = recorders
            .iter()
            .map(|(recorder, _)| taken(recorder))
            .min()
            .unwrap_or(0);
        if clock < frames && clock < slowest + 4 * u64::from(RATE) {
            recorders
                .iter_mut()
                .for_each(|(_, taps)| push(taps, 0, clock, 480));
            clock += 480;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
