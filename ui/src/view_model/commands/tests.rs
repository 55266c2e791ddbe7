use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ondes_engine::realtime::LoadStatus;
use ondes_player::compare_slots::CompareSlot;
use ondes_player::instance::InstanceHandle;
use ondes_player::library::{BUNDLED, FileReference};
use ondes_player::midi_bindings::MidiBinding;
use ondes_player::parameter::{
    BYPASS, DRIVER, INPUT_GAIN, MIX, Parameter, ParameterId, QUALITY, SOURCE, TRANSPOSE, all,
};
use ondes_player::parameter_store::ParameterStore;
use ondes_player::parameter_values::ParameterValue;
use ondes_player::preset::factory::FactoryPreset;
use ondes_player::preset::{Preset, store};
use ondes_player::product::Product;
use ondes_player::state::InstanceState;

use super::super::model_list::ModelList;
use super::*;
use crate::command::{FileCommand, FilePurpose, HistoryCommand, KnobCommand, ModelCommand};
use crate::file_dialog::{FileDialog, UNAVAILABLE};
use crate::view::{ModelEntryId, ViewModel};

/// Records gestures as text.
#[derive(Default)]
struct Fake(RefCell<Vec<String>>);

impl Fake {
    fn record(&self, action: &str, id: ParameterId, normalized: Option<f32>) {
        let parameter = Parameter::get(id).unwrap();
        let text = |value| {
            format!(
                " {}{}",
                parameter.format(parameter.denormalize(value)),
                parameter.unit
            )
        };
        let value = normalized.map(text).unwrap_or_default();
        self.0
            .borrow_mut()
            .push(format!("{action} {}{value}", parameter.label));
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

fn open() -> (InstanceViewModel, Fake) {
    let instance = InstanceHandle::new(Product::Instrument, || ());
    instance.wait_until_loaded(Duration::from_secs(10));
    let mut entries = ModelList::new(Product::Instrument, None);
    entries.finish();
    let mut view_model = InstanceViewModel::new(
        instance,
        Arc::new(ParameterStore::new(Product::Instrument)),
        entries,
    );
    while view_model.presets.poll() | view_model.cabinets.poll() {
        std::thread::yield_now();
    }
    (view_model, Fake::default())
}

fn settle(view_model: &mut InstanceViewModel) {
    for job in view_model.background_jobs.drain(..) {
        job.join().unwrap();
    }
    view_model
        .instance
        .wait_until_loaded(Duration::from_secs(10));
    view_model.refresh();
}

fn name(view_model: &InstanceViewModel) -> String {
    view_model
        .view()
        .model
        .map(|model| model.card.name.clone())
        .unwrap_or_default()
}

#[test]
fn knobs_are_turned_through_the_host() {
    let (mut view_model, host) = open();
    for command in [
        KnobCommand::BeginGesture(MIX),
        KnobCommand::Set(MIX, 0.25),
        KnobCommand::Set(MIX, f32::NAN),
        KnobCommand::EndGesture(MIX),
    ] {
        view_model.handle_command(&host, command);
    }
    assert_eq!(host.recorded(), ["begin Mix", "set Mix 25.0 %", "end Mix"]);
    view_model.handle_command(&host, KnobCommand::SetParameter(BYPASS, 1.0));
    assert_eq!(
        host.recorded(),
        ["begin Bypass", "set Bypass On", "end Bypass"]
    );
    view_model.handle_command(&host, KnobCommand::SetParameter(DRIVER, 2.0));
    assert_eq!(
        host.recorded(),
        [
            "begin Processing",
            "set Processing Background",
            "end Processing"
        ]
    );
    view_model.handle_command(&host, KnobCommand::SetParameter(ParameterId(99), 1.0));
    view_model.handle_command(&host, KnobCommand::BeginGesture(ParameterId(99)));
    assert!(host.recorded().is_empty());
    assert_eq!(
        view_model
            .parse_value(INPUT_GAIN, "-6 dB")
            .map(|value| view_model.format_value(INPUT_GAIN, value))
            .as_deref(),
        Some("-6.0 dB")
    );
    assert_eq!(
        view_model
            .view()
            .knobs
            .voice
            .iter()
            .find(|knob| knob.id == TRANSPOSE)
            .map(|knob| knob.steps),
        Some(49)
    );
}

#[test]
fn macros_turn_what_they_are_bound_to() {
    let (mut view_model, host) = open();
    let controls = view_model.view().model.unwrap().controls.to_vec();
    assert_eq!(view_model.view().knobs.macros[0].control, Some(0));
    view_model.handle_command(&host, KnobCommand::BindMacro(0, Some(1)));
    view_model.handle_command(&host, KnobCommand::BindMacro(1, None));
    view_model.handle_command(&host, KnobCommand::BindMacro(2, Some(99)));
    view_model.handle_command(&host, KnobCommand::BindMacro(99, None));
    view_model.refresh();
    assert_eq!(
        view_model.view().knobs.macros[0].knob.name,
        ondes_player::model_controls::label(&controls[1].name)
    );
    assert!(
        !view_model
            .format_value(ParameterId(0), 0.5)
            .contains(&controls[1].name),
        "the name is said once"
    );
    assert_eq!(
        (
            view_model.view().knobs.macros[1].control,
            view_model.view().knobs.macros[2].control
        ),
        (None, Some(2))
    );
}

#[test]
fn controllers_are_learnt_and_forgotten() {
    let (mut view_model, host) = open();
    view_model
        .instance
        .midi_bindings
        .set_parameters(all().map(|(_, parameter)| parameter.id.to_owned()));
    let midi = |view_model: &InstanceViewModel| {
        (
            view_model.view().knobs.macros[1].knob.midi,
            view_model.view().mixer.mix.midi,
        )
    };
    view_model.handle_command(&host, KnobCommand::LearnMidi(ParameterId(1)));
    assert!(
        view_model.refresh().is_some(),
        "the window looks whether it is learnt"
    );
    assert_eq!(
        midi(&view_model),
        (Some(MidiBinding::Learning), Some(MidiBinding::None))
    );
    // In place of the audio thread.
    assert_eq!(
        view_model
            .instance
            .midi_bindings
            .controller_moved(20)
            .count(),
        1
    );
    view_model.handle_command(&host, KnobCommand::LearnMidi(MIX));
    view_model.refresh();
    assert_eq!(
        midi(&view_model),
        (
            Some(MidiBinding::Controller(20)),
            Some(MidiBinding::Learning)
        )
    );
    view_model.handle_command(&host, KnobCommand::ForgetMidi(MIX));
    view_model.handle_command(&host, KnobCommand::ForgetMidi(ParameterId(1)));
    view_model.handle_command(&host, KnobCommand::LearnMidi(ParameterId(99)));
    assert_eq!(view_model.refresh(), None);
    assert_eq!(
        midi(&view_model),
        (Some(MidiBinding::None), Some(MidiBinding::None))
    );
}

#[test]
fn models_are_loaded_stepped_through_and_auditioned() {
    let (mut view_model, host) = open();
    let names: Vec<String> = view_model
        .view()
        .models
        .list
        .iter()
        .map(|entry| entry.name.clone())
        .collect();
    let ids: Vec<ModelEntryId> = view_model
        .view()
        .models
        .list
        .iter()
        .map(|entry| entry.id)
        .collect();
    assert_eq!(name(&view_model), names[0]);
    view_model.handle_command(&host, ModelCommand::Next);
    settle(&mut view_model);
    assert_eq!(name(&view_model), names[1]);
    assert_eq!(view_model.view().models.list[1].recent, Some(0));
    view_model.handle_command(&host, ModelCommand::Previous);
    settle(&mut view_model);
    assert_eq!(name(&view_model), names[0]);
    view_model.handle_command(&host, ModelCommand::Audition(Some(ids[2])));
    settle(&mut view_model);
    assert_eq!(
        (name(&view_model), view_model.view().models.auditioned),
        (names[2].clone(), Some(ids[2]))
    );
    view_model.handle_command(&host, ModelCommand::Audition(Some(ids[1])));
    settle(&mut view_model);
    assert_eq!(name(&view_model), names[1]);
    view_model.handle_command(&host, ModelCommand::Audition(None));
    settle(&mut view_model);
    assert_eq!(
        (name(&view_model), view_model.view().models.auditioned),
        (names[0].clone(), None)
    );
    // Loading an auditioned model keeps it.
    view_model.handle_command(&host, ModelCommand::Audition(Some(ids[2])));
    view_model.handle_command(&host, ModelCommand::Load(ids[2]));
    settle(&mut view_model);
    assert_eq!(
        view_model.view().engine.qualities,
        ["Full", "Balanced", "Light", "Automatic"],
        "the file holds a smaller size"
    );
    let instance = view_model.instance.clone();
    drop(view_model);
    assert_eq!(
        instance.model().unwrap().content_hash(),
        BUNDLED[2].model().content_hash()
    );
}

#[test]
fn a_window_that_closes_ends_the_audition() {
    let (mut view_model, host) = open();
    let id = view_model.view().models.list[1].id;
    view_model.handle_command(&host, ModelCommand::Audition(Some(id)));
    settle(&mut view_model);
    let instance = view_model.instance.clone();
    drop(view_model);
    assert_eq!(
        instance.model().unwrap().content_hash(),
        BUNDLED[0].model().content_hash()
    );
}

#[test]
fn a_file_that_cannot_be_read_says_so_and_changes_nothing() {
    let (mut view_model, host) = open();
    let before = name(&view_model);
    view_model.handle_command(&host, FileCommand::Open("/nowhere/at all.ondes".into()));
    settle(&mut view_model);
    assert!(
        matches!(view_model.view().messages.status, LoadStatus::Failed(_)),
        "{:?}",
        view_model.view().messages.status
    );
    assert_eq!(name(&view_model), before);
    view_model.handle_command(&host, FileCommand::Retry);
    settle(&mut view_model);
    assert_eq!(view_model.view().messages.status, &LoadStatus::Ready);
}

#[test]
fn files_are_chosen_in_a_dialog() {
    let (mut view_model, host) = open();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.ondes");
    ondes_engine::model::file::write(&BUNDLED[2].model(), &path).unwrap();
    let answer =
        |view_model: &mut InstanceViewModel, what: FilePurpose, chosen: Option<PathBuf>| {
            view_model.dialog = Some((what, FileDialog::new(move || chosen, || ())));
            while view_model.dialog.is_some() {
                view_model.refresh();
            }
            settle(view_model);
        };
    answer(&mut view_model, FilePurpose::Model, Some(path.clone()));
    assert_eq!(
        (name(&view_model), view_model.instance.state().model.path),
        (BUNDLED[2].name.to_owned(), Some(path.clone()))
    );

    // A missing model is replaced only by a file with the same hash.
    let mine = view_model.instance.state();
    let hash = "0".repeat(64);
    let model = FileReference {
        hash: hash.clone(),
        name: "Old Bell".into(),
        ..FileReference::default()
    };
    view_model.instance.restore_state(InstanceState {
        model,
        ..InstanceState::default()
    });
    answer(
        &mut view_model,
        FilePurpose::MissingModel,
        Some(path.clone()),
    );
    let missing = view_model
        .view()
        .messages
        .missing
        .expect("it is another model");
    assert!(
        missing.searched[0].ends_with("mine.ondes: another model"),
        "{missing:?}"
    );
    assert_eq!(view_model.instance.state().model.hash, hash);
    let moved = folder.path().join("moved.ondes");
    std::fs::rename(&path, &moved).unwrap();
    // A bundled model would be found without its file.
    let mut header = BUNDLED[2].model().header().clone();
    header.card.name = "Whistle".into();
    header
        .performance
        .as_mut()
        .expect("an instrument")
        .release_ms += 1.0;
    let renamed =
        ondes_engine::model::Model::new(header, BUNDLED[2].model().weights().clone()).unwrap();
    ondes_engine::model::file::write(&renamed, &moved).unwrap();
    let model = FileReference {
        path: Some(path),
        ..FileReference::to(&renamed, None)
    };
    view_model
        .instance
        .restore_state(InstanceState { model, ..mine });
    view_model.refresh();
    assert!(view_model.view().messages.missing.is_some());
    answer(
        &mut view_model,
        FilePurpose::MissingModel,
        Some(moved.clone()),
    );
    assert_eq!(
        (name(&view_model), view_model.instance.state().model.path),
        ("Whistle".to_owned(), Some(moved))
    );

    let cabinet = folder.path().join("none.wav");
    answer(&mut view_model, FilePurpose::Cabinet, Some(cabinet));
    assert!(view_model.missing_cabinet.is_some());
    answer(&mut view_model, FilePurpose::Model, None);
    assert_eq!(
        view_model.view().messages.notice,
        Some(UNAVAILABLE),
        "nobody cancels as quickly"
    );
    view_model.handle_command(&host, DisplayCommand::Dismiss);
    view_model.refresh();
    assert_eq!(
        (name(&view_model), view_model.view().messages.notice),
        ("Whistle".to_owned(), None)
    );
}

#[test]
fn dropped_files_are_models_or_presets_or_refused() {
    let (mut view_model, host) = open();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let drop = |view_model: &mut InstanceViewModel, path: PathBuf| {
        view_model.handle_command(&host, FileCommand::Open(path));
        while matches!(view_model.instance.status(), LoadStatus::Loading)
            || view_model.presets.poll()
        {
            view_model.apply_loaded_presets(&host);
            std::thread::sleep(Duration::from_millis(1));
        }
        settle(view_model);
    };
    std::fs::write(at("song.wav"), [7; 100]).unwrap();
    std::fs::create_dir(at("folder.ondes-preset")).unwrap();
    std::fs::write(at("odd.ondes-preset"), "{}").unwrap();
    let before = name(&view_model);
    for (path, reason) in [
        (at("song.wav"), "not an Ondes model"),
        (folder.path().into(), "a folder, not a model"),
        (at("folder.ondes-preset"), "not a regular file"),
        (at("odd.ondes-preset"), "not a preset"),
        (at("none.ondes-preset"), "none.ondes-preset"),
    ] {
        drop(&mut view_model, path);
        let said = match view_model.view().messages.status {
            LoadStatus::Failed(said) => said.clone(),
            other => panic!("{reason}: {other:?}"),
        };
        assert!(said.contains(reason), "{said}");
        assert_eq!(name(&view_model), before);
    }

    let preset = FactoryPreset::find("harp").unwrap().preset().unwrap();
    let path = store::save(folder.path(), &preset, false).unwrap();
    drop(&mut view_model, path);
    assert_eq!(
        (name(&view_model), view_model.view().messages.status),
        ("Plucked".to_owned(), &LoadStatus::Ready)
    );
    let other = Preset {
        name: "Other".into(),
        product: Product::Effect,
        ..preset
    };
    drop(
        &mut view_model,
        store::save(folder.path(), &other, false).unwrap(),
    );
    assert!(
        matches!(view_model.view().messages.status, LoadStatus::Failed(said) if said.contains("Ondes FX"))
    );

    ondes_engine::model::file::write(&BUNDLED[2].model(), &at("my own.ondes")).unwrap();
    drop(&mut view_model, at("my own.ondes"));
    assert_eq!(
        (name(&view_model), view_model.view().messages.status),
        (BUNDLED[2].name.to_owned(), &LoadStatus::Ready)
    );
}

#[test]
fn a_missing_model_is_reported_and_searched_again() {
    let (mut view_model, host) = open();
    let model = FileReference {
        hash: "0".repeat(64),
        name: "Old Bell".into(),
        ..FileReference::default()
    };
    view_model.instance.restore_state(InstanceState {
        model,
        ..InstanceState::default()
    });
    view_model.refresh();
    let missing = view_model.view().messages.missing.expect("it is shown");
    assert_eq!(
        (missing.name.as_str(), view_model.view().model.is_none()),
        ("Old Bell", true)
    );
    view_model.handle_command(&host, FileCommand::Retry);
    settle(&mut view_model);
    assert!(
        view_model.view().messages.missing.is_some(),
        "it is still not there"
    );
    let first = view_model.view().models.list[0].id;
    view_model.handle_command(&host, ModelCommand::Load(first));
    settle(&mut view_model);
    assert!(view_model.view().messages.missing.is_none() && view_model.view().model.is_some());
}

#[test]
fn a_project_saved_during_an_audition_keeps_its_model() {
    let (mut view_model, host) = open();
    let before = view_model.instance.state();
    let other = view_model.view().models.list[2].id;
    view_model.handle_command(&host, ModelCommand::Audition(Some(other)));
    settle(&mut view_model);
    assert_eq!(view_model.instance.state(), before);
}

#[test]
fn settings_are_compared() {
    let (mut view_model, host) = open();
    let names: Vec<String> = view_model
        .view()
        .models
        .list
        .iter()
        .map(|entry| entry.name.clone())
        .collect();
    view_model.handle_command(&host, HistoryCommand::RecallSlot(CompareSlot::B));
    view_model.refresh();
    assert_eq!(
        (view_model.view().history.slot, name(&view_model)),
        (CompareSlot::B, names[0].clone())
    );
    view_model.handle_command(&host, ModelCommand::Next);
    view_model.handle_command(&host, KnobCommand::BindMacro(0, None));
    settle(&mut view_model);
    view_model.handle_command(&host, HistoryCommand::RecallSlot(CompareSlot::A));
    settle(&mut view_model);
    assert_eq!(
        (
            view_model.view().history.slot,
            name(&view_model),
            view_model.view().knobs.macros[0].control
        ),
        (CompareSlot::A, names[0].clone(), Some(0))
    );
    view_model.handle_command(&host, HistoryCommand::RecallSlot(CompareSlot::B));
    settle(&mut view_model);
    assert_eq!(
        (name(&view_model), view_model.view().knobs.macros[0].control),
        (names[1].clone(), None)
    );
    assert!(host.recorded().is_empty(), "no parameter was another one");
    // A parameter that differs is set.
    let mut other = view_model.sound_snapshot();
    other
        .values
        .insert("mix".into(), ParameterValue::Number(0.5));
    view_model
        .instance
        .compare_slots
        .store(CompareSlot::A, other);
    view_model.handle_command(&host, HistoryCommand::RecallSlot(CompareSlot::A));
    assert_eq!(host.recorded(), ["begin Mix", "set Mix 50.0 %", "end Mix"]);
}

#[test]
fn the_look_is_kept() {
    let (mut view_model, host) = open();
    view_model.handle_command(&host, DisplayCommand::SetScale(7.0));
    view_model.handle_command(&host, DisplayCommand::SetTheme(ThemePreference::Light));
    view_model.handle_command(&host, PlayCommand::Panic);
    view_model.refresh();
    assert_eq!(
        (view_model.view().scale, view_model.view().theme),
        (2.0, ThemePreference::Light)
    );
    assert_eq!(
        view_model.instance.read_state(|state| state.window),
        WindowSettings {
            scale: 2.0,
            theme: WindowTheme::Light,
            ..WindowSettings::default()
        }
    );
    assert!(view_model.instance.monitor.take_panic());
}

#[test]
fn a_host_learns_of_every_change_of_the_project() {
    let (mut view_model, setter) = open();
    let instance = view_model.instance.clone();
    let changes = || instance.host_notifier.take_state_changed();
    assert!(!changes(), "a new instance is unchanged");
    for command in [
        WindowCommand::from(KnobCommand::BindMacro(0, Some(1))),
        HistoryCommand::StoreSlot(CompareSlot::B).into(),
        HistoryCommand::Undo.into(),
        HistoryCommand::Redo.into(),
        KnobCommand::SetPad(MIX, INPUT_GAIN).into(),
        ModelCommand::Next.into(),
    ] {
        let name = format!("{command:?}");
        view_model.handle_command(&setter, command);
        settle(&mut view_model);
        assert!(changes(), "{name}");
    }
    view_model.handle_command(&setter, PlayCommand::Panic);
    view_model.handle_command(&setter, DisplayCommand::SetScale(1.25));
    assert!(!changes(), "neither the sound nor the project has changed");
}

/// Every change of a parameter is a gesture of its own, which a host records and undoes as one.
#[test]
fn all_changes_of_parameters_are_gestures() {
    let (mut view_model, setter) = open();
    for command in [
        KnobCommand::SetParameter(BYPASS, 1.0),
        KnobCommand::SetParameter(DRIVER, 1.0),
        KnobCommand::SetParameter(SOURCE, 1.0),
        KnobCommand::SetParameter(QUALITY, 2.0),
    ] {
        let name = format!("{command:?}");
        view_model.handle_command(&setter, command);
        let told = setter.recorded();
        let verbs: Vec<&str> = told
            .iter()
            .map(|line| line.split(' ').next().unwrap_or_default())
            .collect();
        assert_eq!(verbs, ["begin", "set", "end"], "{name}");
    }
}
