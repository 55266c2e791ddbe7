use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use ondes_engine::realtime::{Driver, LoadStatus};
use ondes_processor::compare_slots::CompareSlot;
use ondes_processor::instance::InstanceHandle;
use ondes_processor::library::{BUNDLED, FileReference};
use ondes_processor::parameter::{INPUT_GAIN, MIX, TRANSPOSE, all};
use ondes_processor::parameter_store::ParameterStore;
use ondes_processor::parameter_values::ParameterValue;
use ondes_processor::preset::store;
use ondes_processor::product::Product;
use ondes_processor::state::InstanceState;

use super::super::model_list::ModelList;
use super::*;
use crate::command::FilePurpose;
use crate::file_dialog::{FileDialog, UNAVAILABLE};
use crate::view::{Midi, ViewModel};

/// Remembers what it is told.
#[derive(Default)]
struct Fake(RefCell<Vec<String>>);

impl Fake {
    fn tell(&self, deed: &str, knob: ParameterId, position: Option<f32>) {
        let parameter = Parameter::get(id).unwrap();
        let text = |value| format!(" {}{}", parameter.format(parameter.denormalize(value)), parameter.unit);
        let value = normalized.map(text).unwrap_or_default();
        self.0.borrow_mut().push(format!("{action} {}{value}", parameter.label));
    }

    fn recorded(&self) -> Vec<String> {
        self.0.take()
    }
}

impl ParameterSetter for Fake {
    fn begin_gesture(&self, id: ParameterId) {
        self.record("begin", id, None);
    }
    fn set_normalized(&self, id: ParameterId, value: f32) {
        self.record("set", id, Some(value));
    }
    fn end_gesture(&self, id: ParameterId) {
        self.record("end", id, None);
    }
}

fn view_model() -> (InstanceViewModel, Fake) {
    let instance = InstanceHandle::new(Product::Instrument, || ());
    instance.wait_until_loaded(Duration::from_secs(10));
    let mut entries = ModelList::new(None);
    entries.finish();
    let mut model = InstanceViewModel::new(instance, Arc::new(ParameterStore::new(Product::Instrument)), entries);
    while model.presets.poll() | model.cabinets.poll() {
        std::thread::yield_now();
    }
    (model, Fake::default())
}

fn settle(model: &mut InstanceViewModel) {
    for errand in model.background_jobs.drain(..) {
        errand.join().unwrap();
    }
    model.instance.wait_until_loaded(Duration::from_secs(10));
    model.refresh();
}

fn name(model: &InstanceViewModel) -> String {
    model.view().model.map(|model| model.card.name.clone()).unwrap_or_default()
}

#[test]
fn knobs_are_turned_through_the_host() {
    let (mut model, host) = view_model();
    for command in [
        WindowCommand::BeginGesture(MIX),
        WindowCommand::Set(MIX, 0.25),
        WindowCommand::Set(MIX, f32::NAN),
        WindowCommand::EndGesture(MIX),
    ] {
        model.handle_command(&host, command);
    }
    assert_eq!(host.recorded(), ["begin Mix", "set Mix 25.0 %", "end Mix"]);
    model.handle_command(&host, WindowCommand::Bypass(true));
    assert_eq!(host.recorded(), ["begin Bypass", "set Bypass On", "end Bypass"]);
    model.handle_command(&host, WindowCommand::SetDriver(Driver::Worker { latency: None }));
    assert_eq!(host.recorded(), ["begin Processing", "set Processing Background", "end Processing"]);
    model.handle_command(&host, WindowCommand::SetDriver(Driver::Offline));
    model.handle_command(&host, WindowCommand::BeginGesture(ParameterId(99)));
    assert!(host.recorded().is_empty());
    assert_eq!(
        model.parse_value(INPUT_GAIN, "-6 dB").map(|value| model.format_value(INPUT_GAIN, value)).as_deref(),
        Some("-6.0 dB")
    );
    assert_eq!(model.view().voice.iter().find(|knob| knob.id == TRANSPOSE).map(|knob| knob.steps), Some(49));
}

#[test]
fn macros_turn_what_they_are_bound_to() {
    let (mut model, host) = view_model();
    let controls = model.view().model.unwrap().controls.to_vec();
    assert_eq!(model.view().macros[0].control, Some(0));
    model.handle_command(&host, WindowCommand::BindMacro(0, Some(1)));
    model.handle_command(&host, WindowCommand::BindMacro(1, None));
    model.handle_command(&host, WindowCommand::BindMacro(2, Some(99)));
    model.handle_command(&host, WindowCommand::BindMacro(99, None));
    model.refresh();
    assert_eq!(model.view().macros[0].knob.name, controls[1].name);
    assert!(!model.format_value(ParameterId(0), 0.5).contains(&controls[1].name), "the name is said once");
    assert_eq!((model.view().macros[1].control, model.view().macros[2].control), (None, Some(2)));
}

#[test]
fn controllers_are_learnt_and_forgotten() {
    let (mut model, host) = view_model();
    model.instance.midi_bindings.set_parameters(all().map(|(_, parameter)| parameter.id.to_owned()));
    let midi = |model: &InstanceViewModel| (model.view().macros[1].knob.midi, model.view().mix.midi);
    model.handle_command(&host, WindowCommand::LearnMidi(ParameterId(1)));
    assert!(model.refresh().is_some(), "the window looks whether it is learnt");
    assert_eq!(midi(&model), (Some(MidiBinding::Learning), Some(MidiBinding::None)));
    // The audio thread's part.
    assert_eq!(model.instance.midi_bindings.controller_moved(20).count(), 1);
    model.handle_command(&host, WindowCommand::LearnMidi(MIX));
    model.refresh();
    assert_eq!(midi(&model), (Some(MidiBinding::Controller(20)), Some(MidiBinding::Learning)));
    model.handle_command(&host, WindowCommand::ForgetMidi(MIX));
    model.handle_command(&host, WindowCommand::ForgetMidi(ParameterId(1)));
    model.handle_command(&host, WindowCommand::LearnMidi(ParameterId(99)));
    assert_eq!(model.refresh(), None);
    assert_eq!(midi(&model), (Some(MidiBinding::None), Some(MidiBinding::None)));
}

#[test]
fn models_are_loaded_stepped_through_and_auditioned() {
    let (mut model, host) = view_model();
    let names: Vec<String> = model.view().models.iter().map(|entry| entry.name.clone()).collect();
    let ids: Vec<EntryId> = model.view().models.iter().map(|entry| entry.id).collect();
    assert_eq!(name(&model), names[0]);
    model.handle_command(&host, WindowCommand::Next);
    settle(&mut model);
    assert_eq!(name(&model), names[1]);
    assert!(model.view().models[1].recent);
    model.handle_command(&host, WindowCommand::Previous);
    settle(&mut model);
    assert_eq!(name(&model), names[0]);
    model.handle_command(&host, WindowCommand::Audition(Some(ids[2])));
    settle(&mut model);
    assert_eq!((name(&model), model.view().auditioned), (names[2].clone(), Some(ids[2])));
    model.handle_command(&host, WindowCommand::Audition(Some(ids[1])));
    settle(&mut model);
    assert_eq!(name(&model), names[1]);
    model.handle_command(&host, WindowCommand::Audition(None));
    settle(&mut model);
    assert_eq!((name(&model), model.view().auditioned), (names[0].clone(), None));
    // Loading what is auditioned keeps it.
    model.handle_command(&host, WindowCommand::Audition(Some(ids[2])));
    model.handle_command(&host, WindowCommand::Load(ids[2]));
    settle(&mut model);
    assert_eq!(model.view().qualities, ["Full", "Balanced", "Light", "Auto"], "the file holds a smaller size");
    let instance = model.instance.clone();
    drop(model);
    assert_eq!(instance.model().unwrap().content_hash(), BUNDLED[2].model().content_hash());
}

#[test]
fn a_window_that_closes_ends_the_audition() {
    let (mut model, host) = view_model();
    let id = model.view().models[1].id;
    model.handle_command(&host, WindowCommand::Audition(Some(id)));
    settle(&mut model);
    let instance = model.instance.clone();
    drop(model);
    assert_eq!(instance.model().unwrap().content_hash(), BUNDLED[0].model().content_hash());
}

#[test]
fn a_file_that_cannot_be_read_says_so_and_changes_nothing() {
    let (mut model, host) = view_model();
    let before = name(&model);
    model.handle_command(&host, WindowCommand::Open("/nowhere/at all.ondes".into()));
    settle(&mut model);
    assert!(matches!(model.view().status, LoadStatus::Failed(_)), "{:?}", model.view().status);
    assert_eq!(name(&model), before);
    model.handle_command(&host, WindowCommand::Retry);
    settle(&mut model);
    assert_eq!(model.view().status, &LoadStatus::Ready);
}

#[test]
fn files_are_chosen_in_a_dialog() {
    let (mut model, host) = view_model();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.ondes");
    ondes_engine::model::file::write(&BUNDLED[2].model(), &path).unwrap();
    let answer = |model: &mut InstanceViewModel, what: FilePurpose, chosen: Option<PathBuf>| {
        model.dialog = Some((what, FileDialog::of(move || chosen, || ())));
        while model.dialog.is_some() {
            model.refresh();
        }
        settle(model);
    };
    answer(&mut model, FilePurpose::Model, Some(path.clone()));
    assert_eq!((name(&model), model.instance.state().model.path), ("Wind".to_owned(), Some(path.clone())));

    // One that is missing is only replaced by itself.
    let wind = model.instance.state();
    let hash = "0".repeat(64);
    let model = FileReference { hash: hash.clone(), name: "Old Bell".into(), ..FileReference::default() };
    model.instance.restore_state(InstanceState { model, ..InstanceState::default() });
    answer(&mut model, FilePurpose::MissingModel, Some(path.clone()));
    let looked = model.view().missing.expect("it is another model").searched;
    assert!(looked[0].ends_with("mine.ondes: another model"), "{looked:?}");
    assert_eq!(model.instance.state().model.hash, hash);
    let moved = folder.path().join("moved.ondes");
    std::fs::rename(&path, &moved).unwrap();
    // A bundled model would be found without its file.
    let mut header = BUNDLED[2].model().header().clone();
    header.card.name = "Whistle".into();
    let whistle = ondes_engine::model::Model::new(header, BUNDLED[2].model().weights().clone()).unwrap();
    ondes_engine::model::file::write(&whistle, &moved).unwrap();
    let model = FileReference { path: Some(path), ..FileReference::to(&whistle, None) };
    model.instance.restore_state(InstanceState { model, ..wind });
    model.refresh();
    assert!(model.view().missing.is_some());
    answer(&mut model, FilePurpose::MissingModel, Some(moved.clone()));
    assert_eq!((name(&model), model.instance.state().model.path), ("Whistle".to_owned(), Some(moved)));

    let cabinet = folder.path().join("none.wav");
    answer(&mut model, FilePurpose::Cabinet, Some(cabinet));
    assert!(model.missing_cabinet.is_some());
    answer(&mut model, FilePurpose::Model, None);
    assert_eq!(model.view().notice, Some(UNAVAILABLE), "nobody cancels as quickly");
    model.handle_command(&host, WindowCommand::Dismiss);
    model.refresh();
    assert_eq!((name(&model), model.view().notice), ("Whistle".to_owned(), None));
}

#[test]
fn what_is_dropped_is_a_model_or_a_preset_or_is_refused() {
    let (mut model, host) = view_model();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let drop = |model: &mut InstanceViewModel, path: PathBuf| {
        model.handle_command(&host, WindowCommand::Open(path));
        while matches!(model.instance.status(), LoadStatus::Loading) || model.presets.poll() {
            model.apply_loaded_presets(&host);
            std::thread::sleep(Duration::from_millis(1));
        }
        settle(model);
    };
    std::fs::write(at("song.wav"), [7; 100]).unwrap();
    std::fs::create_dir(at("folder.ondes-preset")).unwrap();
    std::fs::write(at("odd.ondes-preset"), "{}").unwrap();
    let before = name(&model);
    for (path, reason) in [
        (at("song.wav"), "not an Ondes model"),
        (folder.path().into(), "a folder, not a model"),
        (at("folder.ondes-preset"), "invalid"),
        (at("odd.ondes-preset"), "not a preset"),
        (at("none.ondes-preset"), "none.ondes-preset"),
    ] {
        drop(&mut model, path);
        let said = match model.view().status {
            LoadStatus::Failed(said) => said.clone(),
            other => panic!("{reason}: {other:?}"),
        };
        assert!(said.contains(reason), "{said}");
        assert_eq!(name(&model), before);
    }

    let preset = ondes_processor::preset::factory::FactoryPreset::of("harp").unwrap().preset().unwrap();
    let path = store::save(folder.path(), &preset, false).unwrap();
    drop(&mut model, path);
    assert_eq!((name(&model), model.view().status), ("Plucked".to_owned(), &LoadStatus::Ready));
    let other = ondes_processor::preset::Preset { name: "Other".into(), product: Product::Effect, ..preset };
    drop(&mut model, store::save(folder.path(), &other, false).unwrap());
    assert!(matches!(model.view().status, LoadStatus::Failed(said) if said.contains("Ondes FX")));

    ondes_engine::model::file::write(&BUNDLED[2].model(), &at("my wind.ondes")).unwrap();
    drop(&mut model, at("my wind.ondes"));
    assert_eq!((name(&model), model.view().status), ("Wind".to_owned(), &LoadStatus::Ready));
}

#[test]
fn a_missing_model_is_said_and_looked_for_again() {
    let (mut model, host) = view_model();
    let model = FileReference { hash: "0".repeat(64), name: "Old Bell".into(), ..FileReference::default() };
    model.instance.restore_state(InstanceState { model, ..InstanceState::default() });
    model.refresh();
    let missing = model.view().missing.expect("it is said");
    assert_eq!((missing.name, model.view().model.is_none()), ("Old Bell", true));
    model.handle_command(&host, WindowCommand::Retry);
    settle(&mut model);
    assert!(model.view().missing.is_some(), "it is still not there");
    let first = model.view().models[0].id;
    model.handle_command(&host, WindowCommand::Load(first));
    settle(&mut model);
    assert!(model.view().missing.is_none() && model.view().model.is_some());
}

#[test]
fn a_project_saved_during_an_audition_keeps_its_model() {
    let (mut model, host) = view_model();
    let before = model.instance.state();
    let other = model.view().models[2].id;
    model.handle_command(&host, WindowCommand::Audition(Some(other)));
    settle(&mut model);
    assert_eq!(model.instance.state(), before);
}

#[test]
fn settings_are_compared() {
    let (mut model, host) = view_model();
    let names: Vec<String> = model.view().models.iter().map(|entry| entry.name.clone()).collect();
    model.handle_command(&host, WindowCommand::RecallSlot(CompareSlot::B));
    model.refresh();
    assert_eq!((model.view().slot, name(&model)), (CompareSlot::B, names[0].clone()));
    model.handle_command(&host, WindowCommand::Next);
    model.handle_command(&host, WindowCommand::BindMacro(0, None));
    settle(&mut model);
    model.handle_command(&host, WindowCommand::RecallSlot(CompareSlot::A));
    settle(&mut model);
    assert_eq!(
        (model.view().slot, name(&model), model.view().macros[0].control),
        (CompareSlot::A, names[0].clone(), Some(0))
    );
    model.handle_command(&host, WindowCommand::RecallSlot(CompareSlot::B));
    settle(&mut model);
    assert_eq!((name(&model), model.view().macros[0].control), (names[1].clone(), None));
    assert!(host.recorded().is_empty(), "no parameter was another one");
    // One that is.
    let mut other = model.sound_snapshot();
    other.values.insert("mix".into(), ParameterValue::Number(0.5));
    model.instance.compare_slots.store(CompareSlot::A, other);
    model.handle_command(&host, WindowCommand::RecallSlot(CompareSlot::A));
    assert_eq!(host.recorded(), ["begin Mix", "set Mix 50.0 %", "end Mix"]);
}

#[test]
fn the_look_is_kept() {
    let (mut model, host) = view_model();
    model.handle_command(&host, WindowCommand::SetScale(7.0));
    model.handle_command(&host, WindowCommand::SetTheme(ThemePreference::Light));
    model.handle_command(&host, WindowCommand::Panic);
    model.refresh();
    assert_eq!((model.view().scale, model.view().theme), (2.0, ThemePreference::Light));
    assert_eq!(model.instance.window_settings(), WindowSettings { scale: 2.0, theme: Theme::Light });
    assert!(model.instance.monitor.take_panic());
}
