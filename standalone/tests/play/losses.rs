//! Servers that disappear, and a killed program, while it plays and records.

use crate::program::{Ears, Playing, decode, place, tone, wait_for_ports};
use crate::server::{RATE, Server, alone, wait_until};

#[test]
fn playing_resumes_after_a_server_restart_with_another_file() {
    alone("losses::playing_resumes_after_a_server_restart_with_another_file", || {
        let folder = tempfile::tempdir().unwrap();
        tone(folder.path(), 0.0, 2.0);
        let server = Server::start();
        let arguments = ["wind", "--input", "tone.wav", "--loop", "--driver", "inline", "--record", "take.wav"];
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
        wait_until("the next file is there", || folder.path().join("take 2.wav").exists());
        ears.listen(1.0);
        playing.signal("INT");
        let told = playing.end_well();
        assert!(told.contains("warning: system is gone: the JACK server has stopped"), "{told}");
        assert!(told.contains("warning: the device is back"), "{told}");
        let first = decode(&folder.path().join("take.wav"));
        for (heard, recorded) in heard.iter().zip(&first) {
            let (shift, count) = place(recorded, heard);
            let end = recorded.len() as isize + shift;
            // All but the last few blocks.
            assert!(end as usize + RATE as usize / 10 > heard.len() && count > RATE as usize, "{end} {}", heard.len());
        }
        let second = decode(&folder.path().join("take 2.wav"));
        for (heard, recorded) in ears.heard().iter().zip(&second) {
            assert!(place(recorded, heard).1 > RATE as usize);
        }
    });
}

#[test]
fn a_killed_program_loses_at_most_a_second() {
    alone("losses::a_killed_program_loses_at_most_a_second", || {
        let folder = tempfile::tempdir().unwrap();
        tone(folder.path(), 0.0, 2.0);
        let _server = Server::start();
        let arguments = ["wind", "--input", "tone.wav", "--loop", "--driver", "inline", "--record", "take.wav"];
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
            let (shift, _) = place(recorded, heard);
            let end = recorded.len() as isize + shift;
            assert!(end + RATE as isize > last as isize, "{end} of {last}");
        }
    });
}
