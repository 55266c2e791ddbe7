//! Actions of the user and the resulting commands.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use egui::Key;
use egui_kittest::kittest::Queryable;
use ondes::devices::AudioStatus;
use ondes::io::{AudioChoice, MidiChoice, MidiPorts};
use ondes::rack::fader::FaderSettings;
use ondes::rack::session_file::TrackInput;
use ondes::record::{self, RecordingFormat};
use ondes::window::recording_settings::RecordingSettings;
use ondes::window::view::{ClipView, Prompt};
use ondes::window::{AppCommand, AppView, DialogPurpose};
use ondes_player::product::Product;

use super::fake_app::{choose, click, drop_file, open, playing, sees, told, type_in};

#[test]
fn tracks_are_added_selected_mixed_and_removed() {
    let mut test = open(playing());
    for label in [
        "Add an instrument",
        "Add an effect",
        "Track 2",
        "Mute Bowed",
        "Solo Wind",
        "Remove Wind",
        "Panic",
    ] {
        click(&mut test, label);
    }
    let fader = FaderSettings {
        level_db: -3.0,
        ..FaderSettings::default()
    };
    let expected = [
        AppCommand::AddTrack(Product::Instrument),
        AppCommand::AddTrack(Product::Effect),
        AppCommand::SelectTrack(1),
        AppCommand::SetFader(
            0,
            FaderSettings {
                mute: true,
                ..fader
            },
        ),
        AppCommand::SetFader(
            1,
            FaderSettings {
                solo: true,
                ..fader
            },
        ),
        AppCommand::RemoveTrack(1),
        AppCommand::Panic,
    ];
    assert_eq!(told(&mut test), expected);
    for label in ["Level of Wind", "Pan of Wind", "Master level"] {
        test.get_by_label(label).focus();
        test.run_steps(2);
        test.key_press(Key::ArrowRight);
        test.run_steps(2);
    }
    let moved = told(&mut test);
    assert!(
        matches!(moved[0], AppCommand::SetFader(1, moved) if moved.level_db > -3.0 && moved.pan == 0.0),
        "{moved:?}"
    );
    assert!(
        matches!(moved[1], AppCommand::SetFader(1, moved) if moved.pan > 0.0 && moved.level_db == -3.0),
        "{moved:?}"
    );
    assert!(
        matches!(moved[2], AppCommand::SetMaster(moved) if moved.level_db > 0.0),
        "{moved:?}"
    );
}

#[test]
fn devices_and_ports_are_selected() {
    let mut test = open(playing());
    click(&mut test, "Devices");
    assert_eq!(told(&mut test), [AppCommand::Rescan]);
    choose(&mut test, "Output device", "hw:Babyface");
    choose(&mut test, "Sample rate", "44100 Hz");
    choose(&mut test, "Block size", "64 frames");
    choose(&mut test, "Input device", "hw:Babyface");
    let audio = AudioChoice::default();
    let expected = [
        AppCommand::SetAudio(AudioChoice {
            output: Some("hw:Babyface".into()),
            ..audio.clone()
        }),
        AppCommand::SetAudio(AudioChoice {
            sample_rate: Some(44_100),
            ..audio.clone()
        }),
        AppCommand::SetAudio(AudioChoice {
            block: Some(64),
            ..audio.clone()
        }),
        AppCommand::SetAudio(AudioChoice {
            input: Some("hw:Babyface".into()),
            ..audio.clone()
        }),
    ];
    assert_eq!(told(&mut test), expected);
    // Another sound system has other devices and rates.
    test.state_mut().view.audio = AudioChoice {
        output: Some("hw:Babyface".into()),
        block: Some(64),
        ..audio.clone()
    };
    choose(&mut test, "Sound system", "ALSA");
    assert_eq!(
        told(&mut test),
        [AppCommand::SetAudio(AudioChoice {
            host: Some("ALSA".into()),
            block: Some(64),
            ..audio
        })]
    );

    click(&mut test, "All ports");
    let both = MidiPorts::Names(vec!["Keystation".into(), "Faders".into()]);
    assert_eq!(
        told(&mut test),
        [AppCommand::SetMidi(MidiChoice {
            ports: both.clone(),
            channels: u16::MAX
        })]
    );
    test.state_mut().view.midi.ports = both.clone();
    test.run_steps(2);
    click(&mut test, "MIDI channel 1 for all tracks");
    assert_eq!(
        told(&mut test),
        [AppCommand::SetMidi(MidiChoice {
            ports: both.clone(),
            channels: 1
        })]
    );
    click(&mut test, "Faders");
    let one = MidiPorts::Names(vec!["Keystation".into()]);
    assert_eq!(
        told(&mut test),
        [AppCommand::SetMidi(MidiChoice {
            ports: one,
            channels: u16::MAX
        })]
    );
}

#[test]
fn a_track_takes_channels_or_a_recording_as_input() {
    let mut test = open(playing());
    choose(&mut test, "Input of the track", "Inputs 1–2");
    assert_eq!(
        told(&mut test),
        [AppCommand::SetInput(
            0,
            TrackInput::Channels { first: 0, count: 2 }
        )]
    );
    choose(&mut test, "Input of the track", "Recording…");
    type_in(&mut test, "Path of the recording", "/songs/voice.wav");
    click(&mut test, "Play");
    let file = |looped| TrackInput::File {
        path: "/songs/voice.wav".into(),
        looped,
    };
    assert_eq!(told(&mut test), [AppCommand::SetInput(0, file(false))]);
    click(&mut test, "MIDI channel 3 for the track");
    assert_eq!(told(&mut test), [AppCommand::SetMidiChannels(0, 0b100)]);

    let track = &mut test.state_mut().view.tracks[0];
    (track.input, track.midi_channels) = (file(false), 0b100);
    let waveform = Arc::from(vec![0.5; 64]);
    track.clip = Some(ClipView {
        waveform,
        position: 0.25,
        length_s: 8.0,
        playing: true,
    });
    test.run_steps(4);
    click(&mut test, "Loop the recording");
    click(&mut test, "Play the recording");
    click(&mut test, "Waveform");
    click(&mut test, "MIDI channel 5 for the track");
    click(&mut test, "MIDI channel 3 for the track");
    let did = told(&mut test);
    assert_eq!(
        did[..2],
        [
            AppCommand::SetInput(0, file(true)),
            AppCommand::SetPlaying(0, false)
        ]
    );
    // A click on the waveform moves there.
    assert!(
        matches!(did[2], AppCommand::Seek(0, part) if (part - 0.5).abs() < 0.01),
        "{did:?}"
    );
    // Without any channel the track would be silent for no visible reason.
    assert_eq!(
        did[did.len() - 2..],
        [
            AppCommand::SetMidiChannels(0, 0b10100),
            AppCommand::SetMidiChannels(0, u16::MAX)
        ]
    );
}

#[test]
fn the_set_list_is_reordered() {
    let mut test = open(playing());
    let labels = [
        "Add the model to the set list",
        "Play Plucked",
        "Move Plucked up",
        "Move Bowed down",
        // The first and the last entry stay.
        "Move Bowed up",
        "Move Plucked down",
        "Remove Bowed from the set list",
    ];
    labels.into_iter().for_each(|label| click(&mut test, label));
    let expected = [
        AppCommand::AddToSetList,
        AppCommand::PlayFromSetList(1),
        AppCommand::MoveUp(1),
        AppCommand::MoveDown(0),
        AppCommand::RemoveFromSetList(0),
    ];
    assert_eq!(told(&mut test), expected);
}

#[test]
fn recording_starts_and_stops() {
    let mut test = open(playing());
    click(&mut test, "Record");
    click(&mut test, "Save last 30 s");
    assert_eq!(
        told(&mut test),
        [AppCommand::Record(true), AppCommand::SavePreroll]
    );
    test.state_mut().view.recording = record::RecordingStatus {
        recording: Some(48_000 * 75),
        ..record::RecordingStatus::default()
    };
    test.state_mut().view.notice = Some("Saved the last 30 s to /music/a.wav".into());
    test.run_steps(2);
    assert!(sees(&test, "/music/a.wav"));
    click(&mut test, "Stop recording");
    click(&mut test, "Dismiss");
    assert_eq!(
        told(&mut test),
        [AppCommand::Record(false), AppCommand::Dismiss]
    );
}

#[test]
fn recording_settings_are_changed() {
    let mut test = open(playing());
    click(&mut test, "Recording settings");
    choose(&mut test, "Format of recordings", "FLAC, 24 bits");
    click(&mut test, "Each track to its own file");
    type_in(&mut test, "Folder for recordings", "/stage/takes");
    test.key_press(Key::Enter);
    test.run_steps(2);
    let before = playing().recording_settings;
    let expected = [
        AppCommand::SetRecording(RecordingSettings {
            format: RecordingFormat::Flac,
            ..before.clone()
        }),
        AppCommand::SetRecording(RecordingSettings {
            tracks: true,
            ..before.clone()
        }),
        AppCommand::SetRecording(RecordingSettings {
            folder: Some("/stage/takes".into()),
            ..before
        }),
    ];
    let mut did = told(&mut test);
    // An unanswered command is repeated.
    did.dedup();
    assert_eq!(did, expected);
    click(&mut test, "Close");
    assert!(test.query_by_label("Folder for recordings").is_none());
    test.state_mut()
        .view
        .problems
        .push("/stage/takes/a.wav: No space left on device".into());
    test.run_steps(2);
    assert!(sees(&test, "No space left on device"));
}

#[test]
fn files_are_dropped() {
    let mut test = open(playing());
    drop_file(&mut test, "/models/bell.ondes");
    drop_file(&mut test, "/songs/Night.ondes-session");
    let expected = ["/models/bell.ondes", "/songs/Night.ondes-session"]
        .map(|path| AppCommand::OpenDropped(PathBuf::from(path)));
    assert_eq!(told(&mut test), expected);
    assert_eq!(
        test.state().dropped_on_instrument,
        0,
        "the instrument would open them a second time"
    );
}

#[test]
fn files_are_selected_in_the_file_dialog() {
    let mut test = open(playing());
    click(&mut test, "Open…");
    click(&mut test, "Browse…");
    assert!(
        test.query_by_label("Path of the session").is_none(),
        "the dialog takes its place"
    );
    click(&mut test, "Save as…");
    click(&mut test, "Browse…");
    choose(&mut test, "Input of the track", "Recording…");
    click(&mut test, "Browse…");
    click(&mut test, "Recording settings");
    click(&mut test, "Browse…");
    let wanted = [
        DialogPurpose::OpenSession,
        DialogPurpose::SaveSession,
        DialogPurpose::Recording(0),
        DialogPurpose::RecordingFolder,
    ];
    assert_eq!(told(&mut test), wanted.map(AppCommand::OpenDialog));
    test.state_mut().view.recording_settings.folder = Some("/stage/chosen".into());
    test.run_steps(2);
    assert_eq!(
        test.get_by_label("Folder for recordings")
            .value()
            .as_deref(),
        Some("/stage/chosen")
    );

    test.state_mut().view.can_browse = false;
    test.run_steps(2);
    assert!(test.query_by_label("Browse…").is_none());
}

#[test]
fn loading_is_shown_without_blocking() {
    let mut test = open(playing());
    test.state_mut().view.tracks[1].loading = Some("voice.wav".into());
    test.state_mut().view.loading = Some("Night".into());
    test.run_steps(2);
    assert!(sees(&test, "Loading voice.wav …") && sees(&test, "Loading Night …"));
    click(&mut test, "Mute Wind");
    assert!(matches!(told(&mut test)[..], [AppCommand::SetFader(1, moved)] if moved.mute));
    (test.state_mut().view.tracks, test.state_mut().view.selected) = (Vec::new(), None);
    test.run_steps(2);
    assert!(sees(&test, "Loading Night …"));
}

#[test]
fn sessions_are_opened_and_saved() {
    let mut test = open(playing());
    click(&mut test, "Save");
    click(&mut test, "Open…");
    click(&mut test, "Night");
    click(&mut test, "Save as…");
    type_in(&mut test, "Path of the session", "/songs/two");
    click(&mut test, "OK");
    let expected = [
        AppCommand::Save,
        AppCommand::Open("/songs/Night.ondes-session".into()),
        AppCommand::SaveAs("/songs/two".into()),
    ];
    assert_eq!(told(&mut test), expected);
    // Without a file, a name is asked for first.
    test.state_mut().view.path = None;
    click(&mut test, "Save");
    type_in(&mut test, "Path of the session", "Dawn");
    test.key_press(Key::Enter);
    test.run_steps(4);
    assert_eq!(told(&mut test), [AppCommand::SaveAs("Dawn".into())]);
    assert!(test.query_by_label("Path of the session").is_none());
}

#[test]
fn unsaved_changes_are_asked_about() {
    let mut test = open(playing());
    test.key_press_modifiers(egui::Modifiers::COMMAND, Key::Q);
    test.run_steps(2);
    assert_eq!(told(&mut test), [AppCommand::Quit]);
    for (prompt, title) in [
        (Prompt::UnsavedChanges, "Save “Stage” first?"),
        (
            Prompt::Quit { unsaved: true },
            "Save “Stage” before closing?",
        ),
    ] {
        test.state_mut().view.prompt = Some(prompt);
        test.run_steps(2);
        assert!(
            sees(&test, title)
                && sees(&test, "unsaved changes")
                && !sees(&test, "recording is running")
        );
        ["Cancel", "Save changes", "Don't save"]
            .into_iter()
            .for_each(|answer| click(&mut test, answer));
        // Keys of the window wait for the answer.
        test.key_press_modifiers(egui::Modifiers::COMMAND, Key::N);
        test.key_press(Key::Escape);
        test.run_steps(2);
        let expected = [
            AppCommand::Cancel,
            AppCommand::Save,
            AppCommand::Discard,
            AppCommand::Cancel,
        ];
        assert_eq!(told(&mut test), expected, "{title}");
    }
    test.state_mut().view.recording.recording = Some(48_000 * 65);
    test.run_steps(2);
    assert!(sees(
        &test,
        "A recording is running (1:05); it ends when the window closes"
    ));
    test.state_mut().view.prompt = Some(Prompt::Quit { unsaved: false });
    test.run_steps(2);
    assert!(!sees(&test, "unsaved") && test.query_by_label("Save changes").is_none());
    click(&mut test, "Close");
    assert_eq!(told(&mut test), [AppCommand::Discard]);
    // A session without a file asks for a name, over which the question does not lie.
    test.state_mut().view.path = None;
    test.state_mut().view.prompt = Some(Prompt::Quit { unsaved: true });
    test.run_steps(2);
    click(&mut test, "Save changes");
    assert!(!sees(&test, "before closing?"));
    type_in(&mut test, "Path of the session", "Dawn");
    click(&mut test, "OK");
    assert_eq!(told(&mut test), [AppCommand::SaveAs("Dawn".into())]);
    test.state_mut().view.prompt = Some(Prompt::RecoverAutosave);
    test.run_steps(2);
    click(&mut test, "Recover");
    assert_eq!(told(&mut test), [AppCommand::Recover]);
}

#[test]
fn errors_are_shown() {
    let lost = AudioStatus::Lost {
        device: "Babyface".into(),
        reason: "it was unplugged".into(),
        since: Instant::now(),
    };
    let problems = vec!["first".to_owned(), "/a.wav: no such file".to_owned()];
    let mut test = open(AppView {
        sound: lost,
        problems,
        ..playing()
    });
    assert!(sees(&test, "No sound from Babyface (it was unplugged)"));
    assert!(sees(&test, "/a.wav: no such file (and 1 more)"));
    test.state_mut().view.sound = AudioStatus::Failed("no JACK server is running".into());
    test.state_mut().view.tracks[1].error = Some("Old Bell is missing".into());
    test.run_steps(2);
    assert!(!sees(&test, "Babyface") && sees(&test, "No sound: no JACK server is running"));
    assert!(sees(&test, "Old Bell is missing"));
    click(&mut test, "Dismiss");
    assert_eq!(told(&mut test), [AppCommand::Dismiss]);
}

#[test]
fn extreme_data_do_not_break_the_window() {
    let nan = f32::NAN;
    let mut view = playing();
    view.peaks_db = [nan, f32::INFINITY];
    (view.limiter_db, view.load) = (nan, nan);
    view.master = FaderSettings {
        level_db: nan,
        pan: nan,
        ..FaderSettings::default()
    };
    view.tracks[0].peak_db = nan;
    view.tracks[0].input = TrackInput::File {
        path: "/a.wav".into(),
        looped: true,
    };
    view.tracks[0].clip = Some(ClipView {
        waveform: Arc::from([]),
        position: nan,
        length_s: nan,
        playing: true,
    });
    let mut test = open(view);
    test.render().expect("a picture");
    let mut test = open(AppView {
        tracks: Vec::new(),
        selected: None,
        ..playing()
    });
    assert!(sees(&test, "Add a track to play"));
    test.set_size(egui::vec2(200.0, 120.0));
    test.run_steps(2);
    test.render().expect("a picture");
}
