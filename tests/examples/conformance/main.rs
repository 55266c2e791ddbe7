//! Reads the files of a folder of `tests/conformance` and what other programs made of them, for
//! `cargo xtask conformance`: prints a JSON array, a line of the table each.
//!
//! Arguments: the kind of files, and a folder with the other programs' results, `FILE.PROGRAM.wav` each.

use std::path::{Path, PathBuf};

use ondes_tests::conformance::{audio, folder};
use serde_json::Value;

/// Programs in the order of the columns.
const AUDIO_PROGRAMS: [&str; 2] = ["ffmpeg", "sox"];

fn main() {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [kind, results] = arguments.as_slice() else { panic!("usage: conformance KIND RESULTS") };
    let lines = match kind.to_str() {
        Some("audio") => audio_lines(results),
        _ => panic!("unknown kind of files: {}", kind.display()),
    };
    println!("{}", Value::Array(lines));
}

fn audio_lines(results: &Path) -> Vec<Value> {
    let folder = folder("audio");
    let line = |answer: audio::Answer| {
        let others = AUDIO_PROGRAMS.map(|program| results.join(format!("{}.{program}.wav", answer.file)));
        audio::compare(&folder, &answer, &others.each_ref().map(PathBuf::as_path))
    };
    audio::answers(&folder).into_iter().map(line).collect()
}
