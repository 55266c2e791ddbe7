//! A session of eight tracks, and its end.

use std::path::Path;

use ondes::rack::Mixer;
use ondes_player::library::{BUNDLED, FileReference};
use ondes_player::product::Product;

use crate::peer::Peer;
use crate::program::{Ears, Playing, decode};
use crate::server::{RATE, Server, alone, wait_until};

/// Writes a session of eight tracks with all bundled models.
fn eight(folder: &Path) {
    let mut mixer = Mixer::new(|| {});
    for place in 0..8 {
        assert_eq!(mixer.add(Product::Instrument).unwrap(), place);
        let model = BUNDLED[place % BUNDLED.len()].model();
        let reference = FileReference::to(&model, None);
        let track = mixer.track(place).unwrap();
        track
            .instance
            .load_model(false, move || reference.find().map_err(Into::into))
            .join()
            .unwrap();
        let mut settings = track.fader.get();
        (settings.level_db, settings.pan) = (-12.0, place as f32 / 7.0 - 0.5);
        track.fader.set(settings);
    }
    mixer
        .saved()
        .write(&folder.join("stage.ondes-session"))
        .unwrap();
}

/// Plays the session for some seconds, then ends it by a signal.
fn play(signal: &str, seconds: f64) {
    let folder = tempfile::tempdir().unwrap();
    eight(folder.path());
    let _server = Server::start_with(RATE, 128);
    let playing = Playing::start(
        folder.path(),
        &["stage.ondes-session", "--record", "take.wav"],
    );
    let ears = Ears::open();
    let (keyboard, queue) = Peer::keyboard("keyboard");
    wait_until("it is heard", || {
        !keyboard.connections("keyboard:keys").is_empty()
    });
    queue
        .lock()
        .unwrap()
        .extend([vec![0x90, 57, 90], vec![0x91, 64, 80]]);
    ears.wait_for_sound();
    ears.listen(seconds);
    playing.signal(signal);
    // Dropouts depend on the load of this machine.
    print!("{}", playing.end_well());
    let recorded = decode(&folder.path().join("take.wav"));
    assert_eq!(recorded.len(), 2);
    assert!(recorded[0].len() as f64 > seconds * f64::from(RATE));
    let tail = &recorded[0][recorded[0].len() - RATE as usize / 2..];
    assert!(
        tail.iter().any(|sample| sample.abs() > 1e-3),
        "it sounds until its end"
    );
    assert_ne!(recorded[0], recorded[1], "tracks are panned");
}

#[test]
fn eight_tracks_play_until_they_are_interrupted() {
    alone(
        "session::eight_tracks_play_until_they_are_interrupted",
        || play("INT", 10.0),
    );
}

#[test]
fn eight_tracks_play_until_they_are_terminated() {
    alone(
        "session::eight_tracks_play_until_they_are_terminated",
        || play("TERM", 1.0),
    );
}

#[test]
fn an_instrument_takes_little_memory() {
    alone("session::an_instrument_takes_little_memory", || {
        let folder = tempfile::tempdir().unwrap();
        let _server = Server::start();
        for more in [&[][..], &["--record", "take.wav"]] {
            let playing = Playing::start(
                folder.path(),
                &[&["bowed", "--seconds", "2"], more].concat(),
            );
            // By then everything is allocated.
            let ears = Ears::open();
            ears.listen(0.5);
            let bytes = playing.private_bytes();
            drop(ears);
            assert!(bytes < 40 << 20, "{more:?}: {bytes} bytes");
            print!("{}", playing.end_well());
        }
    });
}
