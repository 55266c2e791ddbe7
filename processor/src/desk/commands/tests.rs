use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use ondes_engine::realtime::{Driver, Status};
use ondes_ui::{Browse, Midi, Owner, Slot};

use super::super::entries::Entries;
use super::*;
use crate::dialog::{Dialog, UNAVAILABLE};
use crate::library::{BUNDLED, Reference};
use crate::panel::Panel;
use crate::parameter::{INPUT_GAIN, MIX, TRANSPOSE, all};
use crate::preset::values::Value;
use crate::preset::{Product, store};
use crate::shared::Shared;
use crate::state::Saved;

/// Remembers what it is told.
#[derive(Default)]
struct Fake(RefCell<Vec<String>>);

impl Fake {
    fn tell(&self, deed: &str, knob: KnobId, position: Option<f32>) {
        let parameter = Parameter::of(knob).unwrap();
        let said = |position| format!(" {}{}", parameter.say(parameter.value(position)), parameter.unit);
        let value = position.map(said).unwrap_or_default();
        self.0.borrow_mut().push(format!("{deed} {}{value}", parameter.name));
    }

    fn told(&self) -> Vec<String> {
        self.0.take()
    }
}

impl Setter for Fake {
    fn begin(&self, knob: KnobId) {
        self.tell("begin", knob, None);
    }
    fn set(&self, knob: KnobId, position: f32) {
        self.tell("set", knob, Some(position));
    }
    fn end(&self, knob: KnobId) {
        self.tell("end", knob, None);
    }
}

fn desk() -> (Desk, Fake) {
    let shared = Shared::new(Product::Instrument, || ());
    shared.wait(Duration::from_secs(10));
    let mut entries = Entries::new(None);
    entries.finish();
    let mut desk = Desk::new(shared, Arc::new(Panel::new(Product::Instrument)), entries);
    while desk.presets.poll() | desk.cabinets.poll() {
        std::thread::yield_now();
    }
    (desk, Fake::default())
}

fn settle(desk: &mut Desk) {
    for errand in desk.errands.drain(..) {
        errand.join().unwrap();
    }
    desk.shared.wait(Duration::from_secs(10));
    desk.refresh();
}

fn name(desk: &Desk) -> String {
    desk.view().model.map(|model| model.card.name.clone()).unwrap_or_default()
}

#[test]
fn knobs_are_turned_through_the_host() {
    let (mut desk, host) = desk();
    for command in [Command::Begin(MIX), Command::Set(MIX, 0.25), Command::Set(MIX, f32::NAN), Command::End(MIX)] {
        obey(&mut desk, &host, command);
    }
    assert_eq!(host.told(), ["begin Mix", "set Mix 25.0 %", "end Mix"]);
    obey(&mut desk, &host, Command::Bypass(true));
    assert_eq!(host.told(), ["begin Bypass", "set Bypass On", "end Bypass"]);
    obey(&mut desk, &host, Command::Drive(Driver::Worker { latency: None }));
    assert_eq!(host.told(), ["begin Driver", "set Driver Worker", "end Driver"]);
    obey(&mut desk, &host, Command::Drive(Driver::Offline));
    obey(&mut desk, &host, Command::Begin(KnobId(99)));
    assert!(host.told().is_empty());
    assert_eq!(desk.parse(INPUT_GAIN, "-6 dB").map(|value| desk.text(INPUT_GAIN, value)).as_deref(), Some("-6.0 dB"));
    assert_eq!(desk.view().voice.iter().find(|knob| knob.id == TRANSPOSE).map(|knob| knob.steps), Some(49));
}

#[test]
fn macros_turn_what_they_are_bound_to() {
    let (mut desk, host) = desk();
    let controls = desk.view().model.unwrap().controls.to_vec();
    assert_eq!(desk.view().macros[0].control, Some(0));
    obey(&mut desk, &host, Command::Bind(0, Some(1)));
    obey(&mut desk, &host, Command::Bind(1, None));
    obey(&mut desk, &host, Command::Bind(2, Some(99)));
    obey(&mut desk, &host, Command::Bind(99, None));
    desk.refresh();
    assert_eq!(desk.view().macros[0].knob.name, controls[1].name);
    assert!(!desk.text(KnobId(0), 0.5).contains(&controls[1].name), "the name is said once");
    assert_eq!((desk.view().macros[1].control, desk.view().macros[2].control), (None, Some(2)));
}

#[test]
fn controllers_are_learnt_and_forgotten() {
    let (mut desk, host) = desk();
    desk.shared.controllers.begin(all().map(|(_, parameter)| parameter.id.to_owned()));
    assert!(desk.view().can_learn);
    let midi = |desk: &Desk| (desk.view().macros[1].knob.midi, desk.view().mix.midi);
    obey(&mut desk, &host, Command::Learn(KnobId(1)));
    assert!(desk.refresh().is_some(), "the window looks whether it is learnt");
    assert_eq!(midi(&desk), (Midi::Learning, Midi::None));
    // The audio thread's part.
    assert_eq!(desk.shared.controllers.turned(20).count(), 1);
    obey(&mut desk, &host, Command::Learn(MIX));
    desk.refresh();
    assert_eq!(midi(&desk), (Midi::Controller(20), Midi::Learning));
    obey(&mut desk, &host, Command::Forget(MIX));
    obey(&mut desk, &host, Command::Forget(KnobId(1)));
    obey(&mut desk, &host, Command::Learn(KnobId(99)));
    assert_eq!(desk.refresh(), None);
    assert_eq!(midi(&desk), (Midi::None, Midi::None));
}

#[test]
fn models_are_loaded_stepped_through_and_auditioned() {
    let (mut desk, host) = desk();
    let names: Vec<String> = desk.view().entries.iter().map(|entry| entry.name.clone()).collect();
    let ids: Vec<EntryId> = desk.view().entries.iter().map(|entry| entry.id).collect();
    assert_eq!(name(&desk), names[0]);
    obey(&mut desk, &host, Command::Next);
    settle(&mut desk);
    assert_eq!(name(&desk), names[1]);
    assert!(desk.view().entries[1].recent);
    obey(&mut desk, &host, Command::Previous);
    settle(&mut desk);
    assert_eq!(name(&desk), names[0]);
    obey(&mut desk, &host, Command::Audition(Some(ids[2])));
    settle(&mut desk);
    assert_eq!((name(&desk), desk.view().auditioned), (names[2].clone(), Some(ids[2])));
    obey(&mut desk, &host, Command::Audition(Some(ids[1])));
    settle(&mut desk);
    assert_eq!(name(&desk), names[1]);
    obey(&mut desk, &host, Command::Audition(None));
    settle(&mut desk);
    assert_eq!((name(&desk), desk.view().auditioned), (names[0].clone(), None));
    // Loading what is auditioned keeps it.
    obey(&mut desk, &host, Command::Audition(Some(ids[2])));
    obey(&mut desk, &host, Command::Load(ids[2]));
    settle(&mut desk);
    assert_eq!(desk.view().qualities, ["Full", "Balanced", "Light", "Auto"], "the file holds a smaller size");
    let shared = desk.shared.clone();
    drop(desk);
    assert_eq!(shared.model().unwrap().content_hash(), BUNDLED[2].model().content_hash());
}

#[test]
fn a_window_that_closes_ends_the_audition() {
    let (mut desk, host) = desk();
    let id = desk.view().entries[1].id;
    obey(&mut desk, &host, Command::Audition(Some(id)));
    settle(&mut desk);
    let shared = desk.shared.clone();
    drop(desk);
    assert_eq!(shared.model().unwrap().content_hash(), BUNDLED[0].model().content_hash());
}

#[test]
fn a_file_that_cannot_be_read_says_so_and_changes_nothing() {
    let (mut desk, host) = desk();
    let before = name(&desk);
    obey(&mut desk, &host, Command::Open("/nowhere/at all.ondes".into()));
    settle(&mut desk);
    assert!(matches!(desk.view().status, Status::Failed(_)), "{:?}", desk.view().status);
    assert_eq!(name(&desk), before);
    obey(&mut desk, &host, Command::Retry);
    settle(&mut desk);
    assert_eq!(desk.view().status, &Status::Ready);
}

#[test]
fn files_are_chosen_in_a_dialog() {
    let (mut desk, host) = desk();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.ondes");
    ondes_engine::model::file::write(&BUNDLED[2].model(), &path).unwrap();
    let answer = |desk: &mut Desk, what: Browse, chosen: Option<PathBuf>| {
        desk.dialog = Some((what, Dialog::of(move || chosen, || ())));
        while desk.dialog.is_some() {
            desk.refresh();
        }
        settle(desk);
    };
    answer(&mut desk, Browse::Model, Some(path.clone()));
    assert_eq!((name(&desk), desk.shared.saved().model.path), ("Wind".to_owned(), Some(path.clone())));

    // One that is missing is only replaced by itself.
    let wind = desk.shared.saved();
    let hash = "0".repeat(64);
    let model = Reference { hash: hash.clone(), name: "Old Bell".into(), ..Reference::default() };
    desk.shared.restore(Saved { model, ..Saved::default() });
    answer(&mut desk, Browse::Missing, Some(path.clone()));
    let looked = desk.view().missing.expect("it is another model").looked;
    assert!(looked[0].ends_with("mine.ondes: another model"), "{looked:?}");
    assert_eq!(desk.shared.saved().model.hash, hash);
    let moved = folder.path().join("moved.ondes");
    std::fs::rename(&path, &moved).unwrap();
    // A bundled model would be found without its file.
    let mut header = BUNDLED[2].model().header().clone();
    header.card.name = "Whistle".into();
    let whistle = ondes_engine::model::Model::new(header, BUNDLED[2].model().weights().clone()).unwrap();
    ondes_engine::model::file::write(&whistle, &moved).unwrap();
    let model = Reference { path: Some(path), ..Reference::to(&whistle, None) };
    desk.shared.restore(Saved { model, ..wind });
    desk.refresh();
    assert!(desk.view().missing.is_some());
    answer(&mut desk, Browse::Missing, Some(moved.clone()));
    assert_eq!((name(&desk), desk.shared.saved().model.path), ("Whistle".to_owned(), Some(moved)));

    let cabinet = folder.path().join("none.wav");
    answer(&mut desk, Browse::Cabinet, Some(cabinet));
    assert!(desk.missing_cabinet.is_some());
    answer(&mut desk, Browse::Model, None);
    assert_eq!(desk.view().notice, Some(UNAVAILABLE), "nobody cancels as quickly");
    obey(&mut desk, &host, Command::Dismiss);
    desk.refresh();
    assert_eq!((name(&desk), desk.view().notice), ("Whistle".to_owned(), None));
}

#[test]
fn what_is_dropped_is_a_model_or_a_preset_or_is_refused() {
    let (mut desk, host) = desk();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let drop = |desk: &mut Desk, path: PathBuf| {
        obey(desk, &host, Command::Open(path));
        while matches!(desk.shared.progress(), Status::Loading) || desk.presets.poll() {
            presets::tick(desk, &host);
            std::thread::sleep(Duration::from_millis(1));
        }
        settle(desk);
    };
    std::fs::write(at("song.wav"), [7; 100]).unwrap();
    std::fs::create_dir(at("folder.ondes-preset")).unwrap();
    std::fs::write(at("odd.ondes-preset"), "{}").unwrap();
    let before = name(&desk);
    for (path, reason) in [
        (at("song.wav"), "not an Ondes model"),
        (folder.path().into(), "a folder, not a model"),
        (at("folder.ondes-preset"), "invalid"),
        (at("odd.ondes-preset"), "not a preset"),
        (at("none.ondes-preset"), "none.ondes-preset"),
    ] {
        drop(&mut desk, path);
        let said = match desk.view().status {
            Status::Failed(said) => said.clone(),
            other => panic!("{reason}: {other:?}"),
        };
        assert!(said.contains(reason), "{said}");
        assert_eq!(name(&desk), before);
    }

    let preset = crate::preset::factory::Factory::of("harp").unwrap().preset().unwrap();
    let path = store::save(folder.path(), &preset, false).unwrap();
    drop(&mut desk, path);
    assert_eq!((name(&desk), desk.view().status), ("Plucked".to_owned(), &Status::Ready));
    let other = crate::preset::Preset { name: "Other".into(), product: Product::Effect, ..preset };
    drop(&mut desk, store::save(folder.path(), &other, false).unwrap());
    assert!(matches!(desk.view().status, Status::Failed(said) if said.contains("Ondes FX")));

    ondes_engine::model::file::write(&BUNDLED[2].model(), &at("my wind.ondes")).unwrap();
    drop(&mut desk, at("my wind.ondes"));
    assert_eq!((name(&desk), desk.view().status), ("Wind".to_owned(), &Status::Ready));
}

#[test]
fn a_missing_model_is_said_and_looked_for_again() {
    let (mut desk, host) = desk();
    let model = Reference { hash: "0".repeat(64), name: "Old Bell".into(), ..Reference::default() };
    desk.shared.restore(Saved { model, ..Saved::default() });
    desk.refresh();
    let missing = desk.view().missing.expect("it is said");
    assert_eq!((missing.name, desk.view().model.is_none()), ("Old Bell", true));
    obey(&mut desk, &host, Command::Retry);
    settle(&mut desk);
    assert!(desk.view().missing.is_some(), "it is still not there");
    let first = desk.view().entries[0].id;
    obey(&mut desk, &host, Command::Load(first));
    settle(&mut desk);
    assert!(desk.view().missing.is_none() && desk.view().model.is_some());
}

#[test]
fn a_project_saved_during_an_audition_keeps_its_model() {
    let (mut desk, host) = desk();
    let before = desk.shared.saved();
    let other = desk.view().entries[2].id;
    obey(&mut desk, &host, Command::Audition(Some(other)));
    settle(&mut desk);
    assert_eq!(desk.shared.saved(), before);
}

#[test]
fn settings_are_compared() {
    let (mut desk, host) = desk();
    let names: Vec<String> = desk.view().entries.iter().map(|entry| entry.name.clone()).collect();
    obey(&mut desk, &host, Command::Recall(Slot::B));
    desk.refresh();
    assert_eq!((desk.view().slot, name(&desk)), (Slot::B, names[0].clone()));
    obey(&mut desk, &host, Command::Next);
    obey(&mut desk, &host, Command::Bind(0, None));
    settle(&mut desk);
    obey(&mut desk, &host, Command::Recall(Slot::A));
    settle(&mut desk);
    assert_eq!((desk.view().slot, name(&desk), desk.view().macros[0].control), (Slot::A, names[0].clone(), Some(0)));
    obey(&mut desk, &host, Command::Recall(Slot::B));
    settle(&mut desk);
    assert_eq!((name(&desk), desk.view().macros[0].control), (names[1].clone(), None));
    assert!(host.told().is_empty(), "no parameter was another one");
    // One that is.
    let mut other = setting(&desk);
    other.values.insert("mix".into(), Value::Number(0.5));
    desk.shared.compare.store(Slot::A, other);
    obey(&mut desk, &host, Command::Recall(Slot::A));
    assert_eq!(host.told(), ["begin Mix", "set Mix 50.0 %", "end Mix"]);
}

#[test]
fn the_look_is_kept() {
    let (mut desk, host) = desk();
    obey(&mut desk, &host, Command::Scale(7.0));
    obey(&mut desk, &host, Command::Theme(ThemePreference::Light));
    obey(&mut desk, &host, Command::Panic);
    desk.refresh();
    assert_eq!((desk.view().scale, desk.view().theme), (2.0, ThemePreference::Light));
    assert_eq!(desk.shared.look(), Look { scale: 2.0, theme: Theme::Light });
    assert!(desk.shared.monitor.panicked());
}
