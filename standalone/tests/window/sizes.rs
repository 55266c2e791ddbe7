//! The app's window at all scales and sizes: nothing overlaps, nothing is cut without a scroll bar.

use std::path::PathBuf;
use std::sync::Arc;

use egui::vec2;
use egui_kittest::kittest::Queryable;
use ondes::rack::session_file::TrackInput;
use ondes::window::view::{ClipView, Prompt};
use ondes::window::{AppCommand, AppView};
use ondes_player::product::Product;

use super::fake_app::{click, open_in, playing, told, track};
use super::geometry::{SCALES, check, sizes};

/// A session with everything that takes room.
fn busy() -> AppView {
    let mut view = playing();
    view.tracks.extend((2..16).map(|slot| {
        track(
            slot,
            "A name that is longer than its place",
            Product::Effect,
        )
    }));
    view.tracks[0].input = TrackInput::File {
        path: "/songs/voice.wav".into(),
        looped: true,
    };
    let waveform: Arc<[f32]> = vec![0.5; 64].into();
    view.tracks[0].clip = Some(ClipView {
        waveform,
        position: 0.4,
        length_s: 92.5,
        playing: true,
    });
    view.prompt = Some(Prompt::RecoverAutosave);
    view.problems
        .push(format!("/songs/{}.wav: no such file", "long".repeat(60)));
    view.recent = (0..8)
        .map(|n| {
            PathBuf::from(format!(
                "/songs/{}{n}.ondes-session",
                "a long name ".repeat(6)
            ))
        })
        .collect();
    view
}

#[test]
fn nothing_overlaps_or_is_cut_at_any_size() {
    for scale in SCALES {
        // The last one is a notebook's screen.
        for size in sizes(scale)
            .into_iter()
            .chain([vec2(1366.0, 768.0), vec2(500.0, 300.0)])
        {
            for (name, view) in [("calm", playing()), ("busy", busy())] {
                let mut test = open_in(view, size, scale);
                let place = |what: &str| format!("{name}, {what}, {size} at {scale}");
                check(&test, &place("opened"));
                for button in ["Recording settings", "Open…", "Devices"] {
                    click(&mut test, button);
                    check(&test, &place(button));
                }
            }
        }
    }
}

#[test]
fn a_narrow_window_shows_tracks_and_devices_in_place_of_the_instrument() {
    let mut test = open_in(playing(), vec2(640.0, 500.0), 1.0);
    assert!(
        test.query_by_label("The instrument").is_some() && test.query_by_label("Track 2").is_none()
    );
    click(&mut test, "Tracks and set list");
    assert!(test.query_by_label("The instrument").is_none());
    click(&mut test, "Track 2");
    assert_eq!(told(&mut test), [AppCommand::SelectTrack(1)]);
    assert!(
        test.query_by_label("The instrument").is_some() && test.query_by_label("Track 2").is_none()
    );
    click(&mut test, "Devices");
    assert!(
        test.query_by_label("Scan again").is_some()
            && test.query_by_label("The instrument").is_none()
    );
    click(&mut test, "Tracks and set list");
    assert!(
        test.query_by_label("Scan again").is_none() && test.query_by_label("Track 2").is_some()
    );
    // Channels are chosen in a menu.
    click(&mut test, "Tracks and set list");
    told(&mut test);
    click(&mut test, "MIDI channels for the track");
    click(&mut test, "MIDI channel 3 for the track");
    assert_eq!(told(&mut test), [AppCommand::SetMidiChannels(0, 0b100)]);
}
