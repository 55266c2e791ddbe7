use ondes_processor::board::Board;
use ondes_processor::desk::setting::setting;
use ondes_processor::library::BUNDLED;
use ondes_processor::parameter::TRANSPOSE;
use ondes_processor::preset::values::complete;
use ondes_processor::preset::{Preset, file};
use ondes_processor::state::Sound;

use super::*;

/// A studio that is silent, and the folder of what it remembers.
fn studio() -> (tempfile::TempDir, Studio) {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = Settings::default();
    settings.audio.host = Some("no such system".into());
    settings.write(folder.path()).unwrap();
    let studio = Studio::open(Some(folder.path().into()), Arc::new(|| {}));
    (folder, studio)
}

fn wait_until(studio: &mut Studio, what: &str, mut there: impl FnMut(&View) -> bool) {
    let since = Instant::now();
    loop {
        studio.tick();
        let view = studio.view();
        if there(&view) {
            return;
        }
        assert!(since.elapsed() < Duration::from_secs(30), "waited in vain until {what}: {:?}", view.problems);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_name_becomes_a_file_among_the_documents() {
    assert_eq!(named(Path::new("/stage/one")), Path::new("/stage/one.ondes-session"));
    assert_eq!(named(Path::new("/stage/v1.2")), Path::new("/stage/v1.2.ondes-session"));
    assert_eq!(named(Path::new("/stage/a.ondes-session")), Path::new("/stage/a.ondes-session"));
    assert!(named(Path::new("one")).ends_with("Ondes/one.ondes-session"));
    assert_eq!(name(Path::new("/stage/a.ondes-session")), "a");
}

#[test]
fn a_model_that_is_dropped_plays_on_the_track_that_is_chosen() {
    let (folder, mut studio) = studio();
    let path = folder.path().join("mine.ondes");
    fs::copy("../assets/models/wind.ondes", &path).unwrap();
    studio.obey(Command::Add(Product::Instrument));
    studio.obey(Command::Drop(path));
    wait_until(&mut studio, "it plays", |view| view.tracks[1].title == BUNDLED[2].name);
    assert_eq!(studio.view().tracks[0].title, BUNDLED[0].name);
    let bad = folder.path().join("bad.ondes");
    fs::write(&bad, "x").unwrap();
    studio.obey(Command::Drop(bad.clone()));
    wait_until(&mut studio, "it is refused", |view| view.tracks[1].fault.is_some());
    assert!(studio.view().tracks[1].fault.as_ref().unwrap().contains("bad.ondes"));
    assert_eq!(studio.view().tracks[1].title, BUNDLED[2].name, "what played plays on");
    // Without a track there is a new one.
    studio.obey(Command::Remove(1));
    studio.obey(Command::Remove(0));
    assert!(studio.view().tracks.is_empty());
    studio.obey(Command::Drop(folder.path().join("mine.ondes")));
    wait_until(&mut studio, "it plays", |view| view.tracks.first().is_some_and(|track| track.title == "Wind"));
    studio.obey(Command::Drop("/nowhere/at all.ondes".into()));
    assert!(studio.view().problems[0].starts_with("/nowhere/at all.ondes: "));
}

#[test]
fn recordings_and_presets_that_are_dropped_are_for_the_track_that_is_chosen() {
    let (folder, mut studio) = studio();
    let sound = folder.path().join("voice.wav");
    fs::write(&sound, "x").unwrap();
    studio.obey(Command::Drop(sound.clone()));
    wait_until(&mut studio, "it listens", |view| view.tracks[0].input.is_file(&sound));
    let selected = studio.selected.as_ref().unwrap();
    selected.panel.put(TRANSPOSE, 7.0);
    let now = setting(&selected.desk);
    let sound = Sound { parameters: complete(&now.values).unwrap(), selection: now.kept.saved().into() };
    let product = Product::Instrument;
    let name = "Up".to_owned();
    let preset = Preset { name, product, author: String::new(), comment: String::new(), tags: Vec::new(), sound };
    let path = folder.path().join("up.ondes-preset");
    fs::write(&path, file::serialize(&preset).unwrap()).unwrap();
    selected.panel.put(TRANSPOSE, 0.0);
    studio.obey(Command::Drop(path));
    let panel = studio.selected.as_ref().unwrap().panel.clone();
    wait_until(&mut studio, "it is recalled", |_| panel.value(TRANSPOSE) == Some(7.0));
    let bad = folder.path().join("bad.ondes-preset");
    fs::write(&bad, "x").unwrap();
    studio.obey(Command::Drop(bad));
    wait_until(&mut studio, "it is refused", |view| view.tracks[0].fault.is_some());
    assert_eq!(panel.value(TRANSPOSE), Some(7.0));
}

#[test]
fn a_session_that_is_dropped_is_opened_unless_something_would_be_lost() {
    let (folder, mut studio) = studio();
    wait_until(&mut studio, "it is ready", |view| view.tracks[0].loading.is_none());
    studio.compare();
    assert!(studio.baseline.is_some());
    let mut session = kept(&studio.rig.console());
    session.tracks.push(session.tracks[0].clone());
    let path = folder.path().join("Two.ondes-session");
    session.write(&path).unwrap();
    studio.obey(Command::Rename(0, "Lead".into()));
    studio.obey(Command::Drop(path.clone()));
    assert_eq!(studio.view().question, Some(Question::Unsaved));
    studio.obey(Command::Discard);
    let view = studio.view();
    assert_eq!((view.loading.as_deref(), view.selected), (Some("Two"), None));
    // What is half there must not be saved.
    studio.obey(Command::SaveAs(folder.path().join("half")));
    assert!(studio.view().problems[0].contains("still being loaded"));
    wait_until(&mut studio, "it is there", |view| view.loading.is_none());
    let view = studio.view();
    assert_eq!((view.tracks.len(), view.selected, view.path), (2, Some(0), Some(path)));
    assert!(!folder.path().join("half.ondes-session").exists());
}

#[test]
fn the_set_list_is_ordered_and_played() {
    let (_folder, mut studio) = studio();
    for bundled in &BUNDLED[..3] {
        let reference = Reference::to(&bundled.model(), None);
        studio.rig.console().set_list.push(reference);
    }
    let [first, second, third] = [0, 1, 2].map(|index: usize| BUNDLED[index].name);
    for (command, wanted) in [
        (Command::Lower(0), [second, first, third]),
        (Command::Lower(2), [second, first, third]),
        (Command::Raise(2), [second, third, first]),
        (Command::Raise(0), [second, third, first]),
        (Command::Lower(9), [second, third, first]),
    ] {
        studio.obey(command);
        assert_eq!(studio.view().set_list, wanted);
    }
    studio.obey(Command::Call(1));
    wait_until(&mut studio, "it plays", |view| view.tracks[0].title == third);
}

#[test]
fn how_recordings_are_made_is_remembered_and_a_folder_that_is_none_is_said() {
    let (folder, mut studio) = studio();
    let file = folder.path().join("app.json");
    let takes = super::super::takes::Takes { folder: Some(file.clone()), tracks: true, ..Default::default() };
    studio.obey(Command::Takes(takes.clone()));
    assert_eq!(Settings::read(folder.path()).takes, takes);
    studio.obey(Command::Record(true));
    assert!(studio.view().problems[0].starts_with(&file.display().to_string()), "{:?}", studio.view().problems);
    studio.obey(Command::Dismiss);
    let takes = super::super::takes::Takes { folder: Some(folder.path().join("takes")), ..takes };
    studio.obey(Command::Takes(takes));
    studio.obey(Command::SavePast);
    assert!(studio.view().problems[0].contains("no sound"), "{:?}", studio.view().problems);
}
