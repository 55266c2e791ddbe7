//! Undo and redo of everything that the window changes.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use ondes_engine::dsp::resample::Resampling;
use ondes_engine::executor::{Backend, ExecutorSelection};
use ondes_engine::media::{WavBits, WavWriter};
use ondes_engine::realtime::LoadStatus;
use ondes_player::compare_slots::CompareSlot;
use ondes_player::instance::InstanceHandle;
use ondes_player::parameter::{BYPASS, DRIVER, MIX, OUTPUT_GAIN, ParameterId};
use ondes_player::parameter_source::{ParameterSetter, ParameterSource};
use ondes_player::parameter_store::ParameterStore;
use ondes_player::parameter_values::ParameterValues;
use ondes_player::product::Product;
use ondes_player::state::InstanceState;
use ondes_ui::view_model::InstanceViewModel;
use ondes_ui::view_model::model_list::ModelList;
use ondes_ui::{
    CabinetCommand, EngineCommand, FileCommand, HistoryCommand, KnobCommand, ModelCommand,
    PresetCommand, ViewModel, WindowCommand,
};

const PATIENCE: Duration = Duration::from_secs(20);

/// An instrument and its window, without sound.
struct Track {
    instance: Arc<InstanceHandle>,
    store: Arc<ParameterStore>,
    view_model: InstanceViewModel,
}

impl Track {
    fn new() -> Self {
        let instance = InstanceHandle::new(Product::Instrument, || ());
        let store = Arc::new(ParameterStore::new(Product::Instrument));
        instance.set_parameter_source(&store);
        store.register_midi(&instance.midi_bindings);
        let mut models = ModelList::new(Product::Instrument, None);
        models.finish();
        let view_model = InstanceViewModel::new(instance.clone(), store.clone(), models);
        let mut track = Self {
            instance,
            store,
            view_model,
        };
        track.settle();
        track
    }

    /// Waits until nothing is in progress.
    fn settle(&mut self) {
        loop {
            self.instance.wait_until_loaded(PATIENCE);
            self.view_model.apply_loaded_presets(&*self.store);
            // More often means that files are being read.
            if self
                .view_model
                .refresh()
                .is_none_or(|again| again >= Duration::from_millis(100))
            {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn send(&mut self, command: impl Into<WindowCommand>) {
        self.view_model.handle_command(&*self.store, command);
        self.settle();
    }

    fn turn(&mut self, knob: ParameterId, positions: &[f32]) {
        self.send(KnobCommand::BeginGesture(knob));
        positions
            .iter()
            .for_each(|position| self.send(KnobCommand::Set(knob, *position)));
        self.send(KnobCommand::EndGesture(knob));
    }

    fn labels(&self) -> [Option<String>; 2] {
        let view = self.view_model.view();
        [view.history.undo, view.history.redo].map(|label| label.map(str::to_owned))
    }

    /// Returns everything that a project saves, apart from embedded files.
    fn state(&self) -> (InstanceState, ParameterValues) {
        let mut state = self.instance.state();
        // The order of fields in an encoded file is not always the same.
        state.model.embedded = None;
        if let Some(other) = state
            .compare
            .as_mut()
            .and_then(|slots| slots.other.as_mut())
        {
            other.selection.model.embedded = None;
        }
        (state, self.store.values())
    }

    fn model(&self) -> String {
        self.view_model
            .view()
            .model
            .map(|model| model.card.name.clone())
            .unwrap_or_default()
    }
}

#[test]
fn a_gesture_is_one_step_and_automation_is_none() {
    let mut track = Track::new();
    let noise = ParameterId(0);
    track.turn(noise, &[0.6, 0.7, 0.8]);
    assert_eq!(track.labels(), [Some("Noise".to_owned()), None]);
    // The host automates the same and another knob.
    track.store.set_normalized(noise, 0.1);
    track.store.set_normalized(MIX, 0.3);
    track.settle();
    assert_eq!(
        track.labels(),
        [Some("Noise".to_owned()), None],
        "automation is not recorded"
    );
    track.send(HistoryCommand::Undo);
    assert_eq!(
        (track.store.normalized(noise), track.store.normalized(MIX)),
        (Some(0.5), Some(0.3))
    );
    assert_eq!(track.labels(), [None, Some("Noise".to_owned())]);
    track.send(HistoryCommand::Undo);
    assert_eq!(
        track.store.normalized(noise),
        Some(0.5),
        "there is nothing before"
    );
    track.send(HistoryCommand::Redo);
    assert_eq!(track.store.normalized(noise), Some(0.8));
    track.send(HistoryCommand::Redo);
    assert_eq!(track.store.normalized(noise), Some(0.8));
    // A gesture that ends where it began changes nothing.
    track.turn(noise, &[0.2, 0.8]);
    track.send(HistoryCommand::Undo);
    assert_eq!(track.store.normalized(noise), Some(0.5));
}

#[test]
fn both_knobs_of_the_pad_are_one_step() {
    let mut track = Track::new();
    let [x, y] = [ParameterId(0), ParameterId(1)];
    for command in [
        KnobCommand::BeginGesture(x),
        KnobCommand::BeginGesture(y),
        KnobCommand::Set(x, 0.9),
        KnobCommand::Set(y, 0.1),
        KnobCommand::EndGesture(x),
        KnobCommand::EndGesture(y),
    ] {
        track.send(command);
    }
    assert_eq!(track.labels()[0].as_deref(), Some("Noise, Room"));
    track.send(HistoryCommand::Undo);
    assert_eq!([x, y].map(|id| track.store.normalized(id)), [Some(0.5); 2]);
    assert_eq!(track.labels()[0], None);
}

#[test]
fn everything_is_undone_step_by_step_and_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let impulse = folder.path().join("Small box.wav");
    let mut writer = WavWriter::create(&impulse, 48_000, 1, WavBits::Float32).unwrap();
    writer.write(&[[1.0, 0.5, 0.25]]).unwrap();
    writer.finish().unwrap();
    let mut track = Track::new();
    let models: Vec<_> = track
        .view_model
        .view()
        .models
        .list
        .iter()
        .map(|model| model.id)
        .collect();
    let preset = track
        .view_model
        .view()
        .presets
        .list
        .iter()
        .find(|preset| preset.name == "Glass Pluck")
        .unwrap()
        .id;
    let torch = ExecutorSelection {
        backend: Backend::Torch,
        ..ExecutorSelection::default()
    };
    let steps: Vec<(Vec<WindowCommand>, &str)> = vec![
        (
            vec![KnobCommand::SetParameter(BYPASS, 1.0).into()],
            "Bypass",
        ),
        (vec![ModelCommand::Load(models[2]).into()], "Model Cello"),
        (
            vec![KnobCommand::BindMacro(0, Some(2)).into()],
            "Binding of macro 1",
        ),
        (
            vec![CabinetCommand::Load(impulse).into()],
            "Cabinet Small box",
        ),
        (
            vec![PresetCommand::Load(preset).into()],
            "Preset Glass Pluck",
        ),
        (
            vec![KnobCommand::SetPad(ParameterId(3), OUTPUT_GAIN).into()],
            "Knobs of the pad",
        ),
        (vec![EngineCommand::SetExecutor(torch).into()], "Executor"),
        (
            vec![EngineCommand::SetResampling(Resampling::LinearPhase).into()],
            "Resampling",
        ),
        (
            vec![HistoryCommand::StoreSlot(CompareSlot::B).into()],
            "Copy to B",
        ),
        (vec![ModelCommand::Next.into()], "Model Wind"),
        (
            vec![HistoryCommand::RecallSlot(CompareSlot::B).into()],
            "Slot B",
        ),
        (
            vec![KnobCommand::SetParameter(DRIVER, 1.0).into()],
            "Processing",
        ),
        (vec![ModelCommand::Embed(true).into()], "Save model"),
        (
            vec![
                CabinetCommand::Remove.into(),
                ModelCommand::Load(models[0]).into(),
            ],
            "Model Violin",
        ),
    ];
    // Projects do not save the pad's knobs before they are chosen, which undo does by naming them.
    track
        .instance
        .set_pad(["macro1", "macro2"].map(str::to_owned));
    let mut states = vec![track.state()];
    for (commands, label) in &steps {
        commands
            .iter()
            .for_each(|command| track.send(command.clone()));
        assert_eq!(track.labels()[0].as_deref(), Some(*label));
        assert_ne!(track.state(), states[states.len() - 1], "{label}");
        states.push(track.state());
    }
    // MIDI learn is complete when a controller has moved.
    track.send(KnobCommand::LearnMidi(MIX));
    assert_eq!(track.instance.midi_bindings.controller_moved(21).count(), 1);
    track.settle();
    assert_eq!(track.labels()[0].as_deref(), Some("MIDI controller"));
    states.push(track.state());

    let last = states.pop().unwrap();
    for state in states.iter().rev() {
        let label = track.labels()[0].clone();
        track.send(HistoryCommand::Undo);
        assert_eq!(track.state(), *state, "{label:?}");
    }
    assert_eq!(track.labels()[0], None);
    for state in states[1..].iter().chain([&last]) {
        let label = track.labels()[1].clone();
        track.send(HistoryCommand::Redo);
        assert_eq!(track.state(), *state, "{label:?}");
    }
    assert_eq!(
        (track.labels()[1].clone(), track.model()),
        (None, "Violin".to_owned())
    );
}

#[test]
fn what_fails_or_is_only_previewed_makes_no_step() {
    let mut track = Track::new();
    track.send(FileCommand::Open("/nowhere/at all.ondes".into()));
    assert!(matches!(
        track.view_model.view().messages.status,
        LoadStatus::Failed(_)
    ));
    let other = track.view_model.view().models.list[1].id;
    track.send(ModelCommand::Audition(Some(other)));
    track.send(ModelCommand::Audition(None));
    assert_eq!(track.labels(), [None, None]);
    // Undo gives up a model that is still being read.
    track
        .view_model
        .handle_command(&*track.store, ModelCommand::Load(other));
    track
        .view_model
        .handle_command(&*track.store, HistoryCommand::Undo);
    track.settle();
    assert_eq!(
        (track.model(), track.labels()),
        ("Violin".to_owned(), [None, None])
    );
}

#[test]
fn the_history_outlives_the_window_and_ends_with_the_project() {
    let mut track = Track::new();
    track.send(KnobCommand::SetParameter(BYPASS, 1.0));
    let models = ModelList::new(Product::Instrument, None);
    track.view_model = InstanceViewModel::new(track.instance.clone(), track.store.clone(), models);
    track.settle();
    assert_eq!(track.labels()[0].as_deref(), Some("Bypass"));
    track.send(HistoryCommand::Undo);
    assert_eq!(track.store.value(BYPASS), Some(0.0));
    track.send(HistoryCommand::Redo);
    let saved = track.instance.state();
    track.instance.restore_state(saved);
    track.settle();
    assert_eq!(track.labels(), [None, None]);
}

/// Records gestures.
#[derive(Default)]
struct Host(RefCell<Vec<String>>);

impl ParameterSetter for Host {
    fn begin_gesture(&self, id: ParameterId) {
        self.0.borrow_mut().push(format!("begin {}", id.0));
    }
    fn set_normalized(&self, id: ParameterId, position: f32) {
        self.0.borrow_mut().push(format!("set {} {position}", id.0));
    }
    fn end_gesture(&self, id: ParameterId) {
        self.0.borrow_mut().push(format!("end {}", id.0));
    }
}

#[test]
fn the_host_follows_in_gestures() {
    let mut track = Track::new();
    let host = Host::default();
    for command in [
        KnobCommand::BeginGesture(ParameterId(0)),
        KnobCommand::Set(ParameterId(0), 0.75),
        KnobCommand::EndGesture(ParameterId(0)),
    ] {
        track.view_model.handle_command(&host, command);
    }
    host.0.take();
    track.view_model.handle_command(&host, HistoryCommand::Undo);
    assert_eq!(host.0.take(), ["begin 0", "set 0 0.5", "end 0"]);
    track.view_model.handle_command(&host, HistoryCommand::Redo);
    assert_eq!(host.0.take(), ["begin 0", "set 0 0.75", "end 0"]);
}
