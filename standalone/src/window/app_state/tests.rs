use std::path::Path;

use ondes_engine::model::export::torchscript::{Archive, Pickle};
use ondes_player::library::{self, BUNDLED};
use ondes_player::parameter::TRANSPOSE;
use ondes_player::parameter_source::ParameterSource;
use ondes_player::parameter_values::complete_values;
use ondes_player::preset::{Preset, file};
use ondes_player::state::SoundState;
use ondes_player::trust;
use ondes_ui::HistoryCommand;

use super::sessions::comparable_session;
use super::*;
use crate::rack::fader::FaderSettings;
use crate::rack::session_file;
use crate::window::view::Prompt;

/// Creates an app state without devices, with the folder of its settings.
fn app_state() -> (tempfile::TempDir, AppState) {
    let folder = tempfile::tempdir().unwrap();
    let app_state = open(folder.path(), None);
    (folder, app_state)
}

/// Opens an app state without devices; `session` was open last.
fn open(folder: &Path, session: Option<PathBuf>) -> AppState {
    let mut settings = AppSettings {
        session,
        ..AppSettings::default()
    };
    settings.audio.host = Some("no such system".into());
    settings.write(folder).unwrap();
    AppState::open(Some(folder.into()), Arc::new(|| {}))
}

fn wait_until(app_state: &mut AppState, what: &str, mut there: impl FnMut(&AppView) -> bool) {
    let since = Instant::now();
    loop {
        app_state.tick();
        let view = app_state.view();
        if there(&view) {
            return;
        }
        assert!(
            since.elapsed() < Duration::from_secs(30),
            "waited in vain until {what}: {:?}",
            view.problems
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Opens an app state whose last session is `session`, and returns the problems that it shows when
/// it is ready.
fn problems_with(session: PathBuf, tracks: usize) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut app_state = open(folder.path(), Some(session));
    wait_until(&mut app_state, "it is ready", |view| {
        view.loading.is_none() && view.tracks.iter().all(|track| track.loading.is_none())
    });
    let view = app_state.view();
    assert_eq!(
        (view.tracks.len(), view.selected),
        (tracks, Some(0)),
        "{:?}",
        view.problems
    );
    // It can be worked with.
    app_state.handle(AppCommand::AddTrack(Product::Effect));
    wait_until(&mut app_state, "there is another track", |view| {
        view.tracks.len() == tracks + 1
    });
    assert!(
        view.problems
            .iter()
            .all(|problem| problem.lines().count() == 1),
        "{:?}",
        view.problems
    );
    view.problems
}

#[cfg(unix)]
fn make_pipe(path: &Path) {
    assert!(
        std::process::Command::new("mkfifo")
            .arg(path)
            .status()
            .unwrap()
            .success()
    );
}

#[cfg(unix)]
#[test]
fn the_window_opens_whatever_the_last_session_is() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(
        at("damaged.ondes-session"),
        r#"{"format":"ondes-session","version":1,"tracks":[{"#,
    )
    .unwrap();
    fs::write(
        at("future.ondes-session"),
        r#"{"format":"ondes-session","version":99}"#,
    )
    .unwrap();
    fs::write(at("binary.ondes-session"), [0xFF; 100]).unwrap();
    fs::File::create(at("huge.ondes-session"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    make_pipe(&at("pipe.ondes-session"));
    fs::create_dir(at("folder.ondes-session")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", at("device.ondes-session")).unwrap();
    let names = [
        "missing", "damaged", "future", "binary", "huge", "pipe", "folder", "device",
    ];
    for name in names {
        let path = at(name).with_extension(session_file::EXTENSION);
        let problems = problems_with(path.clone(), 1);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(
            problems[0].starts_with(&path.display().to_string()),
            "{problems:?}"
        );
    }
}

#[cfg(unix)]
#[test]
fn the_window_opens_whatever_the_last_session_names() {
    let (folder, app_state) = app_state();
    let at = |name: &str| folder.path().join(name);
    make_pipe(&at("pipe"));
    fs::write(at("program.ts"), "PK not a program").unwrap();
    fs::write(at("damaged.ondes"), "x").unwrap();
    fs::write(at("damaged.wav"), "RIFF").unwrap();
    std::os::unix::fs::symlink("/dev/zero", at("endless.wav")).unwrap();
    let mut session = comparable_session(&app_state.app.mixer());
    let track = session.tracks.remove(0);
    for model in [
        "missing.ondes",
        "pipe",
        "program.ts",
        "damaged.ondes",
        "/dev/zero",
    ] {
        let mut track = track.clone();
        let reference = FileReference {
            path: Some(at(model)),
            embedded: None,
            name: model.into(),
            hash: "0".repeat(64),
        };
        track.selection.model = reference.clone();
        track.selection.cabinet = Some(reference);
        session.tracks.push(track);
    }
    for recording in ["missing.wav", "pipe", "damaged.wav", "endless.wav"] {
        let input = TrackInput::File {
            path: at(recording),
            looped: false,
        };
        session.tracks.push(crate::rack::session_file::SavedTrack {
            input,
            ..track.clone()
        });
    }
    (session.audio.host, session.audio.output) = (Some("ALSA".into()), Some("unplugged".into()));
    let path = at("bad.ondes-session");
    session.write(&path).unwrap();
    let problems = problems_with(path, 9);
    for name in ["missing.ondes", "pipe", "program.ts", "damaged.ondes"] {
        assert!(
            problems.iter().any(|problem| problem.contains(name)),
            "{name}: {problems:?}"
        );
    }
}

#[test]
fn typed_names_become_files_in_the_documents_folder() {
    assert_eq!(
        session_path(Path::new("/stage/one")),
        Path::new("/stage/one.ondes-session")
    );
    assert_eq!(
        session_path(Path::new("/stage/v1.2")),
        Path::new("/stage/v1.2.ondes-session")
    );
    assert_eq!(
        session_path(Path::new("/stage/a.ondes-session")),
        Path::new("/stage/a.ondes-session")
    );
    assert!(session_path(Path::new("one")).ends_with("Ondes/one.ondes-session"));
    assert_eq!(session_name(Path::new("/stage/a.ondes-session")), "a");
}

#[test]
fn a_dropped_model_plays_on_the_selected_track() {
    let (folder, mut app_state) = app_state();
    let path = folder.path().join("mine.ondes");
    fs::copy("../assets/models/wind.ondes", &path).unwrap();
    app_state.handle(AppCommand::AddTrack(Product::Instrument));
    app_state.handle(AppCommand::OpenDropped(path));
    wait_until(&mut app_state, "it plays", |view| {
        view.tracks[1].title == "Wind"
    });
    assert_eq!(app_state.view().tracks[0].title, BUNDLED[0].name);
    let bad = folder.path().join("bad.ondes");
    fs::write(&bad, "x").unwrap();
    app_state.handle(AppCommand::OpenDropped(bad.clone()));
    wait_until(&mut app_state, "it is refused", |view| {
        view.tracks[1].error.is_some()
    });
    assert!(
        app_state.view().tracks[1]
            .error
            .as_ref()
            .unwrap()
            .contains("bad.ondes")
    );
    assert_eq!(
        app_state.view().tracks[1].title,
        "Wind",
        "what played plays on"
    );
    // Without a track a new one is added.
    app_state.handle(AppCommand::RemoveTrack(1));
    app_state.handle(AppCommand::RemoveTrack(0));
    assert!(app_state.view().tracks.is_empty());
    app_state.handle(AppCommand::OpenDropped(folder.path().join("mine.ondes")));
    wait_until(&mut app_state, "it plays", |view| {
        view.tracks
            .first()
            .is_some_and(|track| track.title == "Wind")
    });
    app_state.handle(AppCommand::OpenDropped("/nowhere/at all.ondes".into()));
    assert!(app_state.view().problems[0].starts_with("/nowhere/at all.ondes: "));
}

#[test]
fn dropped_recordings_and_presets_apply_to_the_selected_track() {
    let (folder, mut app_state) = app_state();
    let sound = folder.path().join("voice.wav");
    fs::write(&sound, "x").unwrap();
    app_state.handle(AppCommand::OpenDropped(sound.clone()));
    wait_until(&mut app_state, "it listens", |view| {
        view.tracks[0].input.is_file(&sound)
    });
    let selected = app_state.selected.as_ref().unwrap();
    selected.parameters.set_value(TRANSPOSE, 7.0);
    let now = selected.view_model.sound_snapshot();
    let sound = SoundState {
        parameters: complete_values(&now.values).unwrap(),
        selection: now.selection.to_state().into(),
    };
    let product = Product::Instrument;
    let name = "Up".to_owned();
    let preset = Preset {
        name,
        product,
        author: String::new(),
        comment: String::new(),
        tags: Vec::new(),
        sound,
    };
    let path = folder.path().join("up.ondes-preset");
    fs::write(&path, file::serialize(&preset).unwrap()).unwrap();
    selected.parameters.set_value(TRANSPOSE, 0.0);
    app_state.handle(AppCommand::OpenDropped(path));
    let parameters = app_state.selected.as_ref().unwrap().parameters.clone();
    wait_until(&mut app_state, "it is recalled", |_| {
        parameters.value(TRANSPOSE) == Some(7.0)
    });
    let bad = folder.path().join("bad.ondes-preset");
    fs::write(&bad, "x").unwrap();
    app_state.handle(AppCommand::OpenDropped(bad));
    wait_until(&mut app_state, "it is refused", |view| {
        view.tracks[0].error.is_some()
    });
    assert_eq!(parameters.value(TRANSPOSE), Some(7.0));
}

#[test]
fn a_dropped_session_asks_before_it_replaces_unsaved_changes() {
    let (folder, mut app_state) = app_state();
    wait_until(&mut app_state, "it is ready", |view| {
        view.tracks[0].loading.is_none()
    });
    app_state.update_changed();
    assert!(app_state.baseline.is_some());
    let mut session = comparable_session(&app_state.app.mixer());
    session.tracks.push(session.tracks[0].clone());
    let path = folder.path().join("Two.ondes-session");
    session.write(&path).unwrap();
    app_state.handle(AppCommand::RenameTrack(0, "Lead".into()));
    app_state.handle(AppCommand::OpenDropped(path.clone()));
    assert_eq!(app_state.view().prompt, Some(Prompt::UnsavedChanges));
    app_state.handle(AppCommand::Discard);
    let view = app_state.view();
    assert_eq!(
        (view.loading.as_deref(), view.selected),
        (Some("Two"), None)
    );
    // A session that is being loaded cannot be saved.
    app_state.handle(AppCommand::SaveAs(folder.path().join("half")));
    assert!(app_state.view().problems[0].contains("still being loaded"));
    wait_until(&mut app_state, "it is there", |view| view.loading.is_none());
    let view = app_state.view();
    assert_eq!(
        (view.tracks.len(), view.selected, view.path),
        (2, Some(0), Some(path))
    );
    assert!(!folder.path().join("half.ondes-session").exists());
}

/// Waits until changes are noticed, and makes one.
fn change(app_state: &mut AppState) {
    wait_until(app_state, "it is ready", |view| {
        view.loading.is_none() && view.tracks[0].loading.is_none()
    });
    app_state.tick();
    assert!(app_state.baseline.is_some());
    app_state.handle(AppCommand::RenameTrack(0, "Lead".into()));
}

#[test]
fn the_app_asks_before_it_closes_with_unsaved_changes() {
    let (folder, mut app_state) = app_state();
    let copy = folder.path().join("unsaved.ondes-session");
    wait_until(&mut app_state, "it is ready", |view| {
        view.tracks[0].loading.is_none()
    });
    app_state.tick();
    app_state.handle(AppCommand::Quit);
    assert!(app_state.quits(), "there is nothing to lose");
    app_state.quits = false;

    change(&mut app_state);
    app_state.write_autosave();
    app_state.handle(AppCommand::Quit);
    assert_eq!(
        (app_state.quits(), app_state.view().prompt),
        (false, Some(Prompt::Quit { unsaved: true }))
    );
    app_state.handle(AppCommand::Cancel);
    assert_eq!((app_state.quits(), app_state.view().prompt), (false, None));
    // A file that cannot be written keeps the app open, and the question.
    app_state.handle(AppCommand::Quit);
    app_state.handle(AppCommand::SaveAs("/dev/null/a".into()));
    assert!(
        !app_state.quits()
            && app_state.view().prompt.is_some()
            && !app_state.view().problems.is_empty()
    );
    let file = folder.path().join("mine.ondes-session");
    app_state.handle(AppCommand::SaveAs(file.clone()));
    assert!(app_state.quits() && file.is_file());
    drop(app_state);
    assert!(!copy.exists(), "all is saved");

    let mut app_state = open(folder.path(), Some(file.clone()));
    change(&mut app_state);
    app_state.handle(AppCommand::RenameTrack(0, "Other".into()));
    app_state.write_autosave();
    app_state.handle(AppCommand::Quit);
    app_state.handle(AppCommand::Discard);
    assert!(app_state.quits());
    app_state.tick();
    drop(app_state);
    assert!(!copy.exists(), "what was given up is not offered again");
    assert_eq!(SessionFile::read(&file).unwrap().tracks[0].name, "Lead");

    // After a signal nobody is asked, and the changes are offered by the next run.
    let mut app_state = open(folder.path(), Some(file.clone()));
    change(&mut app_state);
    app_state.handle(AppCommand::RenameTrack(0, "Third".into()));
    drop(app_state);
    assert_eq!(SessionFile::read(&copy).unwrap().tracks[0].name, "Third");
}

#[test]
fn an_offered_autosave_is_kept_until_it_is_decided_about() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("unsaved.ondes-session");
    let mut lost = SessionFile::default();
    lost.master.level_db = -7.0;
    let level = |path: &Path| {
        SessionFile::read(path)
            .map(|session| session.master.level_db)
            .unwrap()
    };
    lost.write(&copy).unwrap();
    // Closing, changing, saving and opening something else decide nothing.
    drop(open(folder.path(), None));
    let mut app_state = open(folder.path(), None);
    assert_eq!(app_state.view().prompt, Some(Prompt::RecoverAutosave));
    change(&mut app_state);
    app_state.write_autosave();
    assert_eq!(level(&copy), -7.0);
    let file = folder.path().join("mine.ondes-session");
    app_state.handle(AppCommand::New);
    assert_eq!(
        app_state.view().prompt,
        Some(Prompt::UnsavedChanges),
        "it asks about the present session first"
    );
    app_state.handle(AppCommand::Cancel);
    app_state.handle(AppCommand::SaveAs(file.clone()));
    assert_eq!(
        (level(&copy), app_state.view().prompt),
        (-7.0, Some(Prompt::RecoverAutosave))
    );
    app_state.handle(AppCommand::Open(file.clone()));
    // Only changes to a session whose models are loaded are asked about.
    change(&mut app_state);
    app_state.handle(AppCommand::RenameTrack(0, "Other".into()));
    app_state.handle(AppCommand::Quit);
    app_state.handle(AppCommand::Discard);
    assert!(app_state.quits());
    drop(app_state);
    assert_eq!(level(&copy), -7.0);

    // Recovering replaces the session, and so it asks about changes, too.
    let mut app_state = open(folder.path(), Some(file));
    change(&mut app_state);
    app_state.handle(AppCommand::RenameTrack(0, "Other".into()));
    app_state.handle(AppCommand::Recover);
    assert_eq!(app_state.view().prompt, Some(Prompt::UnsavedChanges));
    app_state.handle(AppCommand::Discard);
    // Closed before it is restored, it is offered again.
    drop(app_state);
    assert_eq!(level(&copy), -7.0);
    let mut app_state = open(folder.path(), None);
    wait_until(&mut app_state, "it is ready", |view| {
        view.tracks[0].loading.is_none()
    });
    app_state.handle(AppCommand::Recover);
    wait_until(&mut app_state, "it is restored", |view| {
        view.loading.is_none()
    });
    assert_eq!(
        (app_state.view().master.level_db, app_state.view().prompt),
        (-7.0, None)
    );
    app_state.handle(AppCommand::Quit);
    assert_eq!(
        app_state.view().prompt,
        Some(Prompt::Quit { unsaved: true })
    );
    app_state.handle(AppCommand::Discard);
    drop(app_state);
    assert!(!copy.exists());
}

#[test]
fn the_set_list_can_be_reordered_and_played() {
    let (_folder, mut app_state) = app_state();
    for bundled in &BUNDLED[..3] {
        let reference = FileReference::to(&bundled.model(), None);
        app_state.app.mixer().set_list.push(reference);
    }
    let [first, second, third] = [0, 1, 2].map(|index: usize| BUNDLED[index].name);
    for (command, wanted) in [
        (AppCommand::MoveDown(0), [second, first, third]),
        (AppCommand::MoveDown(2), [second, first, third]),
        (AppCommand::MoveUp(2), [second, third, first]),
        (AppCommand::MoveUp(0), [second, third, first]),
        (AppCommand::MoveDown(9), [second, third, first]),
    ] {
        app_state.handle(command);
        let view = app_state.view();
        assert_eq!(
            view.set_list
                .iter()
                .map(|entry| entry.name.as_str())
                .collect::<Vec<_>>(),
            wanted
        );
    }
    app_state.handle(AppCommand::PlayFromSetList(1));
    wait_until(&mut app_state, "it plays", |view| {
        view.tracks[0].title == third
    });
}

#[test]
fn recording_settings_are_saved_and_a_bad_folder_is_reported() {
    let (folder, mut app_state) = app_state();
    let file = folder.path().join("app.json");
    let recording_settings = super::super::recording_settings::RecordingSettings {
        folder: Some(file.clone()),
        tracks: true,
        ..Default::default()
    };
    app_state.handle(AppCommand::SetRecording(recording_settings.clone()));
    assert_eq!(
        AppSettings::read(folder.path()).recording_settings,
        recording_settings
    );
    app_state.handle(AppCommand::Record(true));
    assert!(
        app_state.view().problems[0].starts_with(&file.display().to_string()),
        "{:?}",
        app_state.view().problems
    );
    app_state.handle(AppCommand::Dismiss);
    let recording_settings = super::super::recording_settings::RecordingSettings {
        folder: Some(folder.path().join("takes")),
        ..recording_settings
    };
    app_state.handle(AppCommand::SetRecording(recording_settings));
    app_state.handle(AppCommand::SavePreroll);
    assert!(
        app_state.view().problems[0].contains("nothing was played yet"),
        "{:?}",
        app_state.view().problems
    );
}

#[test]
fn the_mixer_is_part_of_undo() {
    let (folder, mut app_state) = app_state();
    app_state.handle(AppCommand::AddTrack(Product::Effect));
    app_state.handle(AppCommand::SelectTrack(0));
    let press = |app_state: &mut AppState, command: HistoryCommand| {
        let selected = app_state.selected.as_mut().unwrap();
        selected
            .view_model
            .handle_command(&*selected.parameters, command);
        app_state.apply_restored();
    };
    let fader = |level_db| FaderSettings {
        level_db,
        ..FaderSettings::default()
    };
    // A drag is one step, whichever track is selected.
    (1..9).for_each(|step| app_state.handle(AppCommand::SetFader(1, fader(-(step as f32)))));
    app_state.handle(AppCommand::SetMaster(fader(-3.0)));
    app_state.handle(AppCommand::AddToSetList);
    app_state.handle(AppCommand::RenameTrack(0, "Lead".into()));
    app_state.handle(AppCommand::SetMidiChannels(0, 1));
    let sound = folder.path().join("voice.wav");
    let input = TrackInput::File {
        path: sound.clone(),
        looped: false,
    };
    fs::write(&sound, "x").unwrap();
    let before = app_state.view().tracks[1].input.clone();
    app_state.handle(AppCommand::SetInput(1, input));
    wait_until(&mut app_state, "it listens", |view| {
        view.tracks[1].input.is_file(&sound)
    });
    let seen = |app_state: &mut AppState| {
        let view = app_state.view();
        let levels = (
            view.tracks[1].fader.level_db,
            view.master.level_db,
            view.set_list.len(),
        );
        (
            levels,
            view.tracks[0].title.clone(),
            view.tracks[0].midi_channels,
        )
    };
    assert_eq!(seen(&mut app_state), ((-8.0, -3.0, 1), "Lead".into(), 1));
    press(&mut app_state, HistoryCommand::Undo);
    wait_until(&mut app_state, "it is as before", |view| {
        view.tracks[1].input == before
    });
    (0..4).for_each(|_| press(&mut app_state, HistoryCommand::Undo));
    assert_eq!(
        seen(&mut app_state),
        ((-8.0, 0.0, 0), BUNDLED[0].name.into(), u16::MAX)
    );
    let labels = app_state
        .selected
        .as_ref()
        .unwrap()
        .instance
        .history
        .labels();
    let label = format!("Fader of track 2 ({})", app_state.view().tracks[1].title);
    assert_eq!(labels, [Some(label), Some("Master level".into())]);
    press(&mut app_state, HistoryCommand::Undo);
    assert_eq!(seen(&mut app_state).0, (0.0, 0.0, 0));
    (0..2).for_each(|_| press(&mut app_state, HistoryCommand::Redo));
    assert_eq!(seen(&mut app_state).0, (-8.0, -3.0, 0));
    // A track that was removed is not missed.
    app_state.handle(AppCommand::SelectTrack(0));
    app_state.app.mixer().remove(1);
    (0..2).for_each(|_| press(&mut app_state, HistoryCommand::Undo));
    assert_eq!(
        (
            app_state.view().master.level_db,
            app_state.view().tracks.len()
        ),
        (0.0, 1)
    );
}

#[test]
fn a_session_with_a_program_shows_the_track_that_asks() {
    let (folder, mut app_state) = app_state();
    trust::set_file(folder.path().join("trusted.json"));
    app_state.handle(AppCommand::AddTrack(Product::Effect));
    let mut session = app_state.session();
    // Damaged, which shows only once it is opened.
    let path = folder.path().join("birds.ts");
    fs::write(&path, Archive::new(Pickle::default(), "5").finish()).unwrap();
    let program = library::program(&path).unwrap();
    session.tracks[1].selection.model = FileReference {
        hash: program.hash,
        name: "Birds".into(),
        path: Some(path.clone()),
        embedded: None,
    };
    let file = folder.path().join("a.ondes-session");
    session.write(&file).unwrap();
    app_state.changed = false;
    app_state.handle(AppCommand::Open(file));
    app_state.handle(AppCommand::Discard);
    wait_until(&mut app_state, "it is there", |view| {
        view.selected == Some(1) && view.loading.is_none()
    });
    assert_eq!(app_state.view().problems, Vec::<String>::new());
    let asks = |app_state: &mut AppState| {
        let view_model = &mut app_state.selected.as_mut().unwrap().view_model;
        view_model.refresh();
        view_model.view().messages.asks_for_consent
    };
    assert!(asks(&mut app_state));
    assert!(
        app_state.view().tracks[1]
            .error
            .as_ref()
            .unwrap()
            .contains("birds.ts: a TorchScript program")
    );
    let selected = app_state.selected.as_mut().unwrap();
    selected
        .view_model
        .handle_command(&*selected.parameters, FileCommand::AnswerProgram(true));
    wait_until(&mut app_state, "it is opened", |view| {
        view.tracks[1]
            .error
            .as_ref()
            .is_some_and(|error| error.contains("birds.ts: ") && !error.contains("allowed"))
    });
    assert!(!asks(&mut app_state));
}
