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
    let spec = hound::WavReader::open(folder.path("32.wav"))
        .expect("a WAV")
        .spec();
    assert_eq!(
        (spec.bits_per_sample, spec.sample_format, spec.channels),
        (32, hound::SampleFormat::Float, 1)
    );
    for bits in [16_u16, 24] {
        let text = bits.to_string();
        folder.json(&[&RENDER[..], &["x.wav", "--bits", &text]].concat());
        let mut reader = hound::WavReader::open(folder.path("x.wav")).expect("a WAV");
        let spec = reader.spec();
        assert_eq!(
            (spec.bits_per_sample, spec.sample_format),
            (bits, hound::SampleFormat::Int)
        );
        let full = f64::from(1_u32 << (bits - 1));
        let samples: Vec<i32> = reader
            .samples()
            .collect::<Result<_, _>>()
            .expect("whole samples");
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
    let report: serde_json::Value =
        serde_json::from_slice(&output.stderr).expect("one JSON object");
    assert_eq!(report["out"], "-");
    assert_eq!(report["frames"], sound.len());
}

#[test]
fn the_text_report_is_one_line() {
    let folder = with_score();
    let output = folder.run(&[&RENDER[..], &["x.wav"]].concat());
    let line = String::from_utf8(output.stdout).expect("text");
    assert!(
        line.starts_with("x.wav: ") && line.contains("× real time") && line.contains("peak -"),
        "{line}"
    );
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
    for place in [
        "no/such/folder/x.wav",
        "song.mid/x.wav",
        "folder",
        "folder/",
        ".",
    ] {
        folder.refuses(
            &[&RENDER[..], &[place]].concat(),
            &[place.trim_end_matches('/'), "cannot be written"],
        );
    }
}

#[test]
fn inputs_are_never_overwritten() {
    let folder = with_score();
    let song = std::fs::read(folder.path("song.mid")).expect("there is a file");
    for place in ["song.mid", "./song.mid", "small.ondes"] {
        folder.refuses(
            &[&RENDER[..], &[place]].concat(),
            &[place, "would overwrite an input"],
        );
    }
    assert_eq!(
        std::fs::read(folder.path("song.mid")).expect("there is a file"),
        song
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_an_error() {
    let folder = with_score();
    folder.refuses(
        &[&RENDER[..], &["/dev/full"]].concat(),
        &["/dev/full: cannot be written", "No space left"],
    );
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("the device is there");
    let mut command = folder.command(&[&RENDER[..], &["-"]].concat());
    assert_refused(
        &command.stdout(full).output().expect("the program starts"),
        &["standard output", "No space left"],
    );
}

/// A limit on file sizes simulates a full disk: the write fails in the middle of the file.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_no_file() {
    let folder = with_score();
    std::fs::write(folder.path("kept.wav"), "what was there before").expect("the file is written");
    let before = folder.files();
    let script = format!(
        "trap '' XFSZ; ulimit -f 64; exec '{}' \"$@\"",
        env!("CARGO_BIN_EXE_ondes")
    );
    for place in ["x.wav", "kept.wav"] {
        let mut shell = std::process::Command::new("sh");
        shell
            .args(["-c", &script, "sh"])
            .args(RENDER)
            .arg(place)
            .current_dir(folder.path("."));
        assert_refused(
            &shell.output().expect("the shell starts"),
            &[place, "cannot be written"],
        );
        assert_eq!(folder.files(), before);
    }
    assert_eq!(
        std::fs::read(folder.path("kept.wav")).expect("there is a file"),
        b"what was there before"
    );
}

/// Reads all channels of a file that the program itself can decode.
fn decoded(path: &std::path::Path) -> (Vec<Vec<f32>>, u32) {
    let mut decoder = ondes_engine::media::Decoder::open(path).expect("a sound file");
    let (mut block, mut channels) = (Vec::new(), vec![Vec::new(); decoder.channels()]);
    while decoder.next(&mut block).expect("it is whole") {
        channels
            .iter_mut()
            .zip(&block)
            .for_each(|(channel, block)| channel.extend_from_slice(block));
    }
    (channels, decoder.sample_rate())
}

#[test]
fn flac_is_the_same_sound_as_wav() {
    let folder = with_score();
    for (bits, more) in [
        (24, &[][..]),
        (24, &["--bits", "24"]),
        (16, &["--bits", "16"]),
    ] {
        let text = bits.to_string();
        let flac = folder.json(&[&RENDER[..], &["x.flac"], more].concat());
        assert_eq!(
            (&flac["out"], &flac["bits"]),
            (&"x.flac".into(), &bits.into())
        );
        folder.json(&[&RENDER[..], &["x.wav", "--bits", &text]].concat());
        assert!(
            std::fs::read(folder.path("x.flac"))
                .expect("a file")
                .starts_with(b"fLaC")
        );
        assert!(
            decoded(&folder.path("x.flac")) == decoded(&folder.path("x.wav")),
            "{bits} bits"
        );
    }
    // The ending decides, in any case; `-o` is short for it, and a format can be named instead.
    folder.json(&[
        "render",
        "small.ondes",
        "--midi",
        "song.mid",
        "-o",
        "y.FLAC",
    ]);
    assert!(
        std::fs::read(folder.path("y.FLAC"))
            .expect("a file")
            .starts_with(b"fLaC")
    );
    let named = folder.json(&[
        "render",
        "small.ondes",
        "--midi",
        "song.mid",
        "--format",
        "flac",
    ]);
    assert_eq!(named["out"], "song-small.flac");
    let stereo = [
        "render", "fuzz", "--input", "y.FLAC", "--reverb", "0.5", "-o", "z.flac",
    ];
    assert_eq!(folder.json(&stereo)["channels"], 2);
    assert_eq!(decoded(&folder.path("z.flac")).0.len(), 2);
}

#[test]
fn endings_that_are_not_written_are_refused() {
    let folder = with_score();
    for ending in ["mp3", "ogg", "aiff", "m4a", "opus", "txt"] {
        let out = format!("x.{ending}");
        folder.refuses(
            &[&RENDER[..], &[&out]].concat(),
            &[
                &out,
                &format!(".{ending} files are not written"),
                ".wav or .flac",
            ],
        );
    }
    folder.refuses(
        &[&RENDER[..], &["x.wav", "--format", "flac"]].concat(),
        &["x.wav", "--format is flac"],
    );
    folder.refuses(
        &[&RENDER[..], &["-", "--format", "flac"]].concat(),
        &["standard output is WAV"],
    );
    folder.refuses(
        &[&RENDER[..], &["x.flac", "--bits", "32"]].concat(),
        &["--bits 16 or --bits 24"],
    );
}

#[test]
fn quiet_prints_nothing_but_errors() {
    let folder = with_score();
    let output = folder.run(&[&RENDER[..], &["x.wav", "--quiet"]].concat());
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty());
    std::fs::create_dir(folder.path("songs")).expect("a folder is made");
    std::fs::copy(folder.path("song.mid"), folder.path("songs/a.mid")).expect("the file is copied");
    let output = folder.run(&[
        "render",
        "small.ondes",
        "--midi",
        "songs",
        "-o",
        "out",
        "-q",
    ]);
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty());
    assert_eq!(folder.files_in("out"), ["a.wav"]);
    folder.refuses(
        &["render", "small.ondes", "--midi", "none.mid", "-q"],
        &["none.mid"],
    );
}

#[test]
fn a_missing_folder_is_told_by_its_own_name() {
    let folder = with_score();
    for out in ["no/such/folder/x.wav", "no/such/folder/x.flac"] {
        let words = [out, "the folder", "no/such/folder does not exist"];
        folder.refuses(&[&RENDER[..], &[out]].concat(), &words);
        let errors = folder.run(&[&RENDER[..], &[out]].concat()).stderr;
        assert!(
            !String::from_utf8_lossy(&errors).contains(".part"),
            "{}",
            String::from_utf8_lossy(&errors)
        );
    }
    folder.refuses(
        &["export", "fuzz", "--to", "nn~", "-o", "no/x.ts"],
        &["no/x.ts", "the folder no does not exist"],
    );
    folder.refuses(
        &["import", "fuzz", "-o", "no/x.ondes"],
        &["no/x.ondes", "the folder no does not exist"],
    );
}

/// Runs the program with bytes on its standard input.
fn with_input(folder: &Folder, arguments: &[&str], bytes: &[u8]) -> std::process::Output {
    use std::io::Write;
    let mut command = folder.command(arguments);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    // A program that refuses its command line does not read.
    drop(child.stdin.take().expect("a pipe").write_all(bytes));
    child.wait_with_output().expect("it ends")
}

#[test]
fn standard_input_is_a_source() {
    let folder = with_score();
    let song = std::fs::read(folder.path("song.mid")).expect("a file");
    folder.json(&[&RENDER[..], &["x.wav"]].concat());
    let read = |name: &str| std::fs::read(folder.path(name)).expect("a file");
    let output = with_input(
        &folder,
        &["render", "small.ondes", "--midi", "-", "-o", "y.wav"],
        &song,
    );
    assert!(output.status.success() && read("x.wav") == read("y.wav"));
    folder.json(&["render", "fuzz", "--input", "x.wav", "-o", "a.wav"]);
    let output = with_input(
        &folder,
        &["render", "fuzz", "--input", "-", "-o", "b.wav"],
        &read("x.wav"),
    );
    assert!(output.status.success() && read("a.wav") == read("b.wav"));
    let output = with_input(&folder, &["render", "fuzz", "--input", "-"], &read("x.wav"));
    assert!(output.status.success() && read("input-fuzz.wav") == read("a.wav"));
    folder.write_session("x.wav");
    let session = ["render", "a.ondes-session", "-o", "s.wav", "--input", "-"];
    assert!(
        with_input(&folder, &session, &read("x.wav"))
            .status
            .success()
    );
    for (arguments, words) in [
        (["render", "fuzz", "--input", "-"], "standard input: "),
        (
            ["render", "small.ondes", "--midi", "-"],
            "standard input: not a MIDI file",
        ),
    ] {
        assert_refused(&with_input(&folder, &arguments, b"no sound"), &[words]);
    }
}

#[test]
fn errors_are_json_where_the_results_would_be() {
    let folder = with_score();
    std::fs::write(folder.path("page.nam"), "<!doctype html><html>").expect("the file is written");
    for arguments in [
        &["info", "page.nam"][..],
        &["bench", "page.nam"],
        &["render", "page.nam", "--midi", "song.mid"],
    ] {
        let output = folder.run(&[arguments, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(2));
        let report: serde_json::Value =
            serde_json::from_slice(&output.stdout).expect("one JSON object");
        assert_eq!(report["error"]["path"], "page.nam");
        assert!(
            report["error"]["reason"]
                .as_str()
                .is_some_and(|reason| reason.starts_with("a web page")),
            "{report}"
        );
        let line = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            line.starts_with("ondes: page.nam: a web page") && line.lines().count() == 1,
            "{line}"
        );
    }
    // The sound is on standard output.
    let output = folder.run(&[
        "render", "page.nam", "--midi", "song.mid", "-o", "-", "--json",
    ]);
    let report: serde_json::Value =
        serde_json::from_slice(&output.stderr).expect("one JSON object");
    assert!(report["error"]["path"] == "page.nam" && output.stdout.is_empty());
    // A wrong command line names no file.
    let output = folder.run(&["render", "fuzz", "--json", "--loudness"]);
    let report: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert!(
        report["error"]["path"].is_null()
            && report["error"]["reason"]
                .as_str()
                .is_some_and(|r| r.contains("--loudness"))
    );
    assert_eq!(output.status.code(), Some(2));
}
