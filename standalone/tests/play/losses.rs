//! Servers that disappear, and a killed program, while it plays and records.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::program::{Ears, Playing, decode, ondes, place, tone, wait_for_ports};
use crate::server::{RATE, Server, alone, wait_until};

/// Returns the sample of `heard` at which a recording ends, and the number of equal samples. The
/// recording begins with the first sample; the ears hear silence until they are connected, in the
/// middle of the sound.
fn end_of(recorded: &[f32], heard: &[f32]) -> (isize, usize) {
    let silence = heard
        .iter()
        .position(|sample| *sample != 0.0)
        .expect("there is sound");
    let (shift, there) = place(&heard[silence..], recorded);
    (
        recorded.len() as isize - shift + silence as isize,
        there.len(),
    )
}

#[test]
fn playing_resumes_after_a_server_restart_with_another_file() {
    alone(
        "losses::playing_resumes_after_a_server_restart_with_another_file",
        || {
            let folder = tempfile::tempdir().unwrap();
            tone(folder.path(), 0.0, 2.0);
            let server = Server::start();
            let arguments = [
                "wind", "--input", "tone.wav", "--loop", "--driver", "inline", "--record",
                "take.wav",
            ];
            let playing = Playing::start(folder.path(), &arguments);
            let ears = Ears::open();
            ears.wait_for_sound();
            ears.listen(2.0);
            server.kill();
            let heard = ears.heard();
            drop(ears);
            let _server = Server::start();
            wait_for_ports();
            let ears = Ears::open();
            ears.wait_for_sound();
            wait_until("the next file is there", || {
                folder.path().join("take 2.wav").exists()
            });
            ears.listen(1.0);
            playing.signal("INT");
            let told = playing.end_well();
            assert!(
                told.contains("warning: no sound from system: the JACK server has stopped"),
                "{told}"
            );
            assert!(told.contains("warning: the device is back"), "{told}");
            let first = decode(&folder.path().join("take.wav"));
            for (heard, recorded) in heard.iter().zip(&first) {
                let (end, count) = end_of(recorded, heard);
                // All but the last few blocks.
                assert!(
                    end as usize + RATE as usize / 10 > heard.len() && count > RATE as usize,
                    "{end} {}",
                    heard.len()
                );
            }
            let second = decode(&folder.path().join("take 2.wav"));
            for (heard, recorded) in ears.heard().iter().zip(&second) {
                assert!(end_of(recorded, heard).1 > RATE as usize);
            }
        },
    );
}

#[test]
fn a_killed_program_loses_at_most_a_second() {
    alone("losses::a_killed_program_loses_at_most_a_second", || {
        let folder = tempfile::tempdir().unwrap();
        tone(folder.path(), 0.0, 2.0);
        let _server = Server::start();
        let arguments = [
            "wind", "--input", "tone.wav", "--loop", "--driver", "inline", "--record", "take.wav",
        ];
        let playing = Playing::start(folder.path(), &arguments);
        let ears = Ears::open();
        ears.wait_for_sound();
        ears.listen(3.0);
        playing.signal("KILL");
        assert!(!playing.end().status.success());
        let heard = ears.heard();
        // Silence follows.
        let last = heard[0].iter().rposition(|sample| *sample != 0.0).unwrap();
        let reader = hound::WavReader::open(folder.path().join("take.wav")).unwrap();
        assert!(reader.duration() > 2 * RATE, "{}", reader.duration());
        for (heard, recorded) in heard.iter().zip(&decode(&folder.path().join("take.wav"))) {
            let (end, _) = end_of(recorded, heard);
            assert!(end + RATE as isize > last as isize, "{end} of {last}");
        }
    });
}

/// A limit on file sizes simulates a full disk.
#[test]
fn a_full_disk_is_reported_at_once_and_playing_goes_on() {
    alone(
        "losses::a_full_disk_is_reported_at_once_and_playing_goes_on",
        || {
            let folder = tempfile::tempdir().unwrap();
            tone(folder.path(), 0.0, 2.0);
            let _server = Server::start();
            let script = "trap '' XFSZ; ulimit -f 400; exec env --default-signal=INT,TERM \"$@\"";
            let mut command = Command::new("sh");
            command.args([
                "-c",
                script,
                "sh",
                env!("CARGO_BIN_EXE_ondes"),
                "play",
                "wind",
                "--input",
                "tone.wav",
                "--loop",
            ]);
            command
                .args([
                    "--host", "jack", "--driver", "inline", "--record", "take.wav",
                ])
                .current_dir(folder.path());
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            let mut playing = Playing::run(command);
            wait_for_ports();
            let told = playing.wait_for_line("take.wav");
            assert!(
                told.starts_with("ondes: warning: ")
                    && told.contains("take.wav: cannot be written: "),
                "{told}"
            );
            assert!(
                told.ends_with("; the recording ends there, and playing goes on"),
                "{told}"
            );
            // What fitted is a whole file.
            let length = std::fs::metadata(folder.path().join("take.wav"))
                .unwrap()
                .len();
            let recorded = decode(&folder.path().join("take.wav"));
            assert!(
                (length as usize).abs_diff(recorded[0].len() * 8) < 200,
                "{length} bytes, {} frames",
                recorded[0].len()
            );
            let ears = Ears::open();
            ears.wait_for_sound();
            playing.signal("INT");
            let output = playing.end();
            assert_eq!(output.status.code(), Some(2));
            let errors = String::from_utf8_lossy(&output.stderr);
            // Dropouts depend on the load of this machine.
            assert!(
                errors.ends_with("ondes: the recording is incomplete\n"),
                "{errors}"
            );
        },
    );
}

#[test]
fn waiting_for_a_server_that_does_not_answer_ends_by_a_signal() {
    alone(
        "losses::waiting_for_a_server_that_does_not_answer_ends_by_a_signal",
        || {
            let folder = tempfile::tempdir().unwrap();
            let server = Server::start();
            server.signal("STOP");
            for (signal, code) in [("INT", 130), ("TERM", 143)] {
                let playing =
                    Playing::run(ondes(folder.path(), &["play", "wind", "--host", "jack"]));
                std::thread::sleep(Duration::from_secs(2));
                playing.signal(signal);
                let output = playing.end();
                assert_eq!(output.status.code(), Some(code));
                assert_eq!(
                    String::from_utf8_lossy(&output.stderr),
                    "ondes: interrupted\n"
                );
            }
            server.signal("CONT");
        },
    );
}
