//! Outputs, and what a failure leaves there.

use std::process::Stdio;

use ondes_engine::media::read_mono;

use crate::common::{Folder, assert_refused, read_wav, two_tracks};

fn with_score() -> Folder {
    let folder = Folder::new();
    std::fs::write(folder.path("song.mid"), two_tracks()).expect("the file is written");
    folder
}

const RENDER: [&str; 5] = ["render", "small.ondes", "--midi", "song.mid", "--out"];

#[test]
fn the_bit_depth_is_as_requested() {
    let folder = with_score();
    let reference = {
        folder.json(&[&RENDER[..], &["32.wav"]].concat());
        read_wav(&folder.path("32.wav"))
    };
    let spec = hound::WavReader::open(folder.path("32.wav")).expect("a WAV").spec();
    assert_eq!((spec.bits_per_sample, spec.sample_format, spec.channels), (32, hound::SampleFormat::Float, 1));
    for bits in [16_u16, 24] {
        let text = bits.to_string();
        folder.json(&[&RENDER[..], &["x.wav", "--bits", &text]].concat());
        let mut reader = hound::WavReader::open(folder.path("x.wav")).expect("a WAV");
        let spec = reader.spec();
        assert_eq!((spec.bits_per_sample, spec.sample_format), (bits, hound::SampleFormat::Int));
        let full = f64::from(1_u32 << (bits - 1));
        let samples: Vec<i32> = reader.samples().collect::<Result<_, _>>().expect("whole samples");
        assert_eq!(samples.len(), reference.len());
        for (&sample, &reference) in samples.iter().zip(&reference) {
            assert!((f64::from(sample) / full - f64::from(reference)).abs() <= 1.6 / full);
        }
    }
}

#[test]
fn standard_output_gets_the_same_sound() {
    let folder = with_score();
    folder.json(&[&RENDER[..], &["x.wav"]].concat());
    let output = folder.run(&[&RENDER[..], &["-", "--json"]].concat());
    assert!(output.status.success());
    std::fs::write(folder.path("stdout.wav"), &output.stdout).expect("the file is written");
    let (sound, rate) = read_mono(folder.path("stdout.wav")).expect("a WAV");
    assert_eq!(rate, 48_000);
    assert!(sound == read_wav(&folder.path("x.wav")));
    let report: serde_json::Value = serde_json::from_slice(&output.stderr).expect("one JSON object");
    assert_eq!(report["out"], "-");
    assert_eq!(report["frames"], sound.len());
}

#[test]
fn the_text_report_is_one_line() {
    let folder = with_score();
    let output = folder.run(&[&RENDER[..], &["x.wav"]].concat());
    let line = String::from_utf8(output.stdout).expect("text");
    assert!(line.starts_with("x.wav: ") && line.contains("× real time") && line.contains("peak -"), "{line}");
    assert_eq!(line.lines().count(), 1);
    // No progress bar without a terminal.
    assert!(output.stderr.is_empty());
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let folder = with_score();
    let mut child = folder
        .command(&[&RENDER[..], &["-"]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn unwritable_places_are_named() {
    let folder = with_score();
    std::fs::create_dir(folder.path("folder")).expect("a folder is made");
    for place in ["no/such/folder/x.wav", "song.mid/x.wav", "folder", "folder/", "."] {
        folder.refuses(&[&RENDER[..], &[place]].concat(), &[place.trim_end_matches('/'), "cannot be written"]);
    }
}

#[test]
fn inputs_are_never_overwritten() {
    let folder = with_score();
    let song = std::fs::read(folder.path("song.mid")).expect("there is a file");
    for place in ["song.mid", "./song.mid", "small.ondes"] {
        folder.refuses(&[&RENDER[..], &[place]].concat(), &[place, "would overwrite an input"]);
    }
    assert_eq!(std::fs::read(folder.path("song.mid")).expect("there is a file"), song);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_an_error() {
    let folder = with_score();
    folder.refuses(&[&RENDER[..], &["/dev/full"]].concat(), &["/dev/full: cannot be written", "No space left"]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("the device is there");
    let mut command = folder.command(&[&RENDER[..], &["-"]].concat());
    assert_refused(&command.stdout(full).output().expect("the program starts"), &["standard output", "No space left"]);
}

/// A limit on file sizes simulates a full disk: the write fails in the middle of the file.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_no_file() {
    let folder = with_score();
    std::fs::write(folder.path("kept.wav"), "what was there before").expect("the file is written");
    let before = folder.files();
    let script = format!("trap '' XFSZ; ulimit -f 64; exec '{}' \"$@\"", env!("CARGO_BIN_EXE_ondes"));
    for place in ["x.wav", "kept.wav"] {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &script, "sh"]).args(RENDER).arg(place).current_dir(folder.path("."));
        assert_refused(&shell.output().expect("the shell starts"), &[place, "cannot be written"]);
        assert_eq!(folder.files(), before);
    }
    assert_eq!(std::fs::read(folder.path("kept.wav")).expect("there is a file"), b"what was there before");
}
