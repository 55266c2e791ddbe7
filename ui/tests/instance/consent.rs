//! Programs run only once the user has consented, whatever names them.
//!
//! The programs here are damaged, which shows only when they are opened: a refused one is reported
//! as a program, an opened one as a file that cannot be read.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use ondes_engine::realtime::LoadStatus;
use ondes_player::compare_slots::CompareSlot;
use ondes_player::instance::InstanceHandle;
use ondes_player::library::{self, FileReference};
use ondes_player::parameter_store::ParameterStore;
use ondes_player::preset::Preset;
use ondes_player::preset::location::PresetLocation;
use ondes_player::preset::store;
use ondes_player::product::Product;
use ondes_player::state::{CompareState, InstanceState, SoundState, VERSION};
use ondes_player::trust;
use ondes_player::trust::UntrustedProgram;
use ondes_ui::view_model::InstanceViewModel;
use ondes_ui::view_model::model_list::ModelList;
use ondes_ui::{FileCommand, HistoryCommand, ViewModel, WindowCommand};
use tempfile::TempDir;

/// Returns a new program of this name, and keeps the answers of this test process in a file of its
/// own.
fn program(name: &str) -> (TempDir, UntrustedProgram) {
    static ANSWERS: LazyLock<TempDir> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        trust::set_file(folder.path().join("trusted.json"));
        folder
    });
    LazyLock::force(&ANSWERS);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let mut archive = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
    for record in ["data.pkl", "constants.pkl"] {
        archive
            .start_file(
                format!("{name}/{record}"),
                zip::write::FileOptions::default(),
            )
            .unwrap();
    }
    archive.finish().unwrap();
    let program = library::program(&path).unwrap();
    (folder, program)
}

/// Returns the state of a project whose model is the program, as it was saved when programs ran
/// without a question.
fn project(program: &UntrustedProgram) -> InstanceState {
    InstanceState {
        version: VERSION,
        model: reference(program),
        ..InstanceState::default()
    }
}

fn reference(program: &UntrustedProgram) -> FileReference {
    let UntrustedProgram { path, hash } = program.clone();
    FileReference {
        hash,
        name: "Birds".into(),
        path: Some(path),
        embedded: None,
    }
}

/// A window of an effect.
struct Desk {
    model: InstanceViewModel,
    instance: Arc<InstanceHandle>,
    store: Arc<ParameterStore>,
}

impl Desk {
    fn open(instance: Arc<InstanceHandle>) -> Self {
        let store = Arc::new(ParameterStore::new(Product::Effect));
        let model = InstanceViewModel::new(
            instance.clone(),
            store.clone(),
            ModelList::new(Product::Effect, None),
        );
        Self {
            model,
            instance,
            store,
        }
    }

    fn command(&mut self, command: impl Into<WindowCommand>) {
        self.model.handle_command(&*self.store, command);
        self.refresh();
    }

    fn refresh(&mut self) {
        self.model.refresh();
        self.model.apply_loaded_presets(&*self.store);
        self.model.refresh();
    }

    fn wait_until(&mut self, what: &str, mut there: impl FnMut(&Self) -> bool) {
        let since = Instant::now();
        while !there(self) {
            assert!(
                since.elapsed() < Duration::from_secs(30),
                "waited in vain until {what}"
            );
            std::thread::sleep(Duration::from_millis(2));
            self.refresh();
        }
    }

    fn asks_for(&self) -> Option<UntrustedProgram> {
        let view = self.model.view();
        view.messages
            .untrusted
            .filter(|_| view.messages.asks_for_consent)
            .cloned()
    }

    /// Returns whether the missing model was opened, and found damaged or in need of libtorch.
    fn has_opened(&self, program: &UntrustedProgram) -> bool {
        let missing = self.instance.missing_model();
        missing.is_some_and(|missing| {
            missing.program.is_none() && missing.to_string().contains(&name(program))
        })
    }
}

fn name(program: &UntrustedProgram) -> String {
    program
        .path
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned()
}

fn effect() -> Arc<InstanceHandle> {
    InstanceHandle::new(Product::Effect, || ())
}

#[test]
fn a_project_that_knows_the_hash_asks_and_the_answer_is_for_all_windows() {
    let (_folder, program) = program("project.ts");
    let [one, other] = [effect(), effect()];
    // Restored by a host without a window: silent, not opened.
    for instance in [&one, &other] {
        instance.restore_state(project(&program));
        assert_eq!(instance.untrusted_program().as_ref(), Some(&program));
        assert!(
            !instance.retry_missing_model(),
            "activation does not open it either"
        );
        assert_eq!(
            instance.state().model,
            reference(&program),
            "it is saved as before"
        );
    }
    let mut desk = Desk::open(one);
    assert_eq!(desk.asks_for().as_ref(), Some(&program));
    desk.command(FileCommand::AnswerProgram(true));
    assert_eq!(trust::answer(&program.hash), Some(true));
    desk.wait_until("it is opened", |desk| desk.has_opened(&program));
    assert_eq!(desk.asks_for(), None);
    let mut second = Desk::open(other);
    second.wait_until("the other instance opens it, too", |second| {
        second.has_opened(&program)
    });
    // A project that is opened later does not ask.
    let third = effect();
    third.restore_state(project(&program));
    assert_eq!(third.untrusted_program(), None);
}

#[test]
fn a_refusal_is_remembered_and_can_be_revised() {
    let (_folder, program) = program("refused.ts");
    let instance = effect();
    instance.restore_state(project(&program));
    let mut desk = Desk::open(instance);
    desk.command(FileCommand::AnswerProgram(false));
    assert_eq!(
        (desk.asks_for(), trust::answer(&program.hash)),
        (None, Some(false))
    );
    assert!(
        desk.model.view().messages.untrusted.is_some(),
        "the message stays"
    );
    let instance = effect();
    instance.restore_state(project(&program));
    let mut again = Desk::open(instance);
    assert!(again.asks_for().is_none() && again.model.view().messages.untrusted.is_some());
    again.command(FileCommand::AskProgram);
    assert!(again.asks_for().is_some());
    again.command(FileCommand::AnswerProgram(true));
    again.wait_until("it is opened", |desk| desk.has_opened(&program));
    assert_eq!(trust::answer(&program.hash), Some(true));
}

#[test]
fn the_other_slot_asks_when_it_is_chosen() {
    let (_folder, program) = program("slot.ts");
    let mut state = effect().state();
    let other = SoundState {
        selection: Box::new(project(&program)),
        ..SoundState::default()
    };
    state.compare = Some(CompareState {
        b_is_active: false,
        other: Some(other),
    });
    let instance = effect();
    instance.restore_state(state.clone());
    let mut desk = Desk::open(instance);
    assert!(
        desk.asks_for().is_none() && desk.model.view().messages.untrusted.is_none(),
        "nobody hears it"
    );
    assert_eq!(
        desk.instance.state().compare,
        state.compare,
        "it is saved as before"
    );
    desk.command(HistoryCommand::RecallSlot(CompareSlot::B));
    assert_eq!(desk.asks_for().as_ref(), Some(&program));
    desk.command(FileCommand::AnswerProgram(false));
    desk.command(HistoryCommand::RecallSlot(CompareSlot::A));
    assert!(desk.model.view().messages.untrusted.is_none() && desk.instance.model().is_some());
    // Allowed elsewhere meanwhile.
    trust::remember(&program, true).unwrap();
    desk.command(HistoryCommand::RecallSlot(CompareSlot::B));
    desk.wait_until("it is opened", |desk| desk.has_opened(&program));
}

#[test]
fn a_preset_asks_when_it_is_chosen_and_what_plays_goes_on() {
    let (folder, program) = program("preset.ts");
    let mut preset = PresetLocation::Factory("shadow-bow".into()).read().unwrap();
    preset.sound.selection.model = reference(&program);
    let path = store::save(
        folder.path(),
        &Preset {
            name: "Birds".into(),
            ..preset
        },
        false,
    )
    .unwrap();
    choose_twice(path, &program);
}

#[test]
fn a_file_that_the_user_chooses_asks_once_more_after_a_refusal() {
    let (_folder, program) = program("chosen.ts");
    choose_twice(program.path.clone(), &program);
}

/// Opens a file that is or names the program, refuses, opens it again and consents.
fn choose_twice(path: PathBuf, program: &UntrustedProgram) {
    let mut desk = Desk::open(effect());
    let before = desk.instance.state().model;
    for run in [false, true] {
        desk.command(FileCommand::Open(path.clone()));
        desk.wait_until("it asks", |desk| desk.asks_for().is_some());
        assert_eq!(
            (desk.asks_for().as_ref(), &desk.instance.state().model),
            (Some(program), &before)
        );
        desk.command(FileCommand::AnswerProgram(run));
        assert_eq!(
            (desk.asks_for(), trust::answer(&program.hash)),
            (None, Some(run))
        );
        if !run {
            assert!(
                !matches!(desk.instance.status(), LoadStatus::Failed(_)),
                "the user knows"
            );
        }
    }
    let opened = |desk: &Desk| matches!(desk.instance.status(), LoadStatus::Failed(reason) if reason.contains(&name(program)));
    desk.wait_until("it is opened", opened);
    assert!(desk.model.view().messages.untrusted.is_none());
    assert!(
        desk.instance.state().model == before && desk.instance.model().is_some(),
        "what played goes on"
    );
}

#[test]
fn a_set_list_only_reports_a_program() {
    let (_folder, program) = program("set_list.ts");
    let instance = effect();
    let mut desk = Desk::open(instance.clone());
    let named = reference(&program);
    instance
        .load_model(false, move || named.find().map_err(Into::into))
        .join()
        .unwrap();
    desk.refresh();
    assert!(desk.asks_for().is_none() && desk.model.view().messages.untrusted == Some(&program));
    desk.command(FileCommand::AskProgram);
    assert!(desk.asks_for().is_some());
}
