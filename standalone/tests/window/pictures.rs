//! Screenshots. `UPDATE_SNAPSHOTS=1 cargo test -p ondes --test window` updates them.

use std::sync::Arc;

use egui_kittest::SnapshotOptions;
use ondes::rack::session_file::TrackInput;
use ondes::window::view::{ClipView, Prompt};

use super::fake_app::{Test, click, open, playing};

fn picture(test: &mut Test, name: &str) {
    test.remove_cursor();
    test.run_steps(2);
    // Another machine's sine may differ by a bit, and with it a pixel on the edge of a curve.
    test.snapshot_options(
        name,
        &SnapshotOptions::new().threshold(0.6).max_failed_pixels(20),
    );
}

#[test]
fn devices_are_open() {
    let mut test = open(playing());
    click(&mut test, "Devices");
    picture(&mut test, "devices");
}

#[test]
fn a_recording_plays_and_a_prompt_is_open() {
    let mut view = playing();
    view.prompt = Some(Prompt::RecoverAutosave);
    view.problems.push("/songs/old.wav: no such file".into());
    view.tracks[0].input = TrackInput::File {
        path: "/songs/voice.wav".into(),
        looped: true,
    };
    let waveform: Arc<[f32]> = (0..512).map(|n| (n * n % 97) as f32 / 97.0).collect();
    view.tracks[0].clip = Some(ClipView {
        waveform,
        position: 0.4,
        length_s: 92.5,
        playing: true,
    });
    view.tracks[1].loading = Some("choir.ondes".into());
    let mut test = open(view);
    click(&mut test, "Recording settings");
    picture(&mut test, "recording");
}
