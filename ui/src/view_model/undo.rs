//! Undo and redo of what the user changes in the window. Changes by the host, such as automation,
//! are not recorded.
//!
//! A gesture on a knob is one step, and so is everything that a preset changes. Models and cabinets
//! are read on threads of their own; the step is complete when they have been.

use std::collections::BTreeMap;
use std::time::Instant;

use ondes_engine::dsp::resample::Resampling;
use ondes_engine::executor::ExecutorSelection;
use ondes_player::history::{Change, Edit, OutsideSetting, Slots, Step, changed, knob_edits};
use ondes_player::parameter::{Parameter, ParameterId};
use ondes_player::parameter_source::ParameterSetter;
use ondes_player::parameter_values::ParameterValues;
use ondes_player::programs::ProgramChange;
use ondes_player::snapshot::{SelectionSnapshot, SoundSnapshot};

use super::InstanceViewModel;
use crate::command::HistoryCommand;

/// Changes that are being made.
#[derive(Default)]
pub(super) struct Recorder {
    gestures: Vec<KnobChange>,
    /// Knobs of gestures that have ended while another one goes on, as on the pad.
    ended: Vec<KnobChange>,
    loading: Option<Loading>,
    /// Everything before blocks were changed, until the change ends.
    pub(super) rig: Option<Captured>,
    /// Settings outside the instance that undo or redo has restored.
    restored: Vec<OutsideSetting>,
    /// MIDI bindings before one is learnt.
    learning: Option<BTreeMap<String, u8>>,
}

/// A change of a knob.
struct KnobChange {
    id: ParameterId,
    label: String,
    change: Change<f32>,
}

/// A change that waits for files to be read.
struct Loading {
    what: LoadedFile,
    before: Captured,
    /// See [`History::cleared`](ondes_player::history::History::cleared).
    cleared: u64,
}

/// Kind of a file that is loaded.
#[derive(Clone, Copy)]
pub(super) enum LoadedFile {
    Model,
    Cabinet,
}

/// Everything that undo restores, apart from knobs.
pub(super) struct Captured {
    selection: SelectionSnapshot,
    slots: Slots,
    pad: Option<[String; 2]>,
    executor: ExecutorSelection,
    resampling: Resampling,
    programs: Vec<ProgramChange>,
    midi: BTreeMap<String, u8>,
}

impl InstanceViewModel {
    pub(super) fn handle_history(
        &mut self,
        setter: &impl ParameterSetter,
        command: HistoryCommand,
    ) {
        match command {
            HistoryCommand::Undo => self.undo(setter),
            HistoryCommand::Redo => self.redo(setter),
            HistoryCommand::RecallSlot(slot) => {
                let (before, current) = (self.capture(), self.sound_snapshot());
                let mut knobs = Vec::new();
                if let Some(sound) = self.instance.compare_slots.recall(slot, current) {
                    knobs = knob_edits(&*self.source, &sound.values);
                    self.apply_sound(setter, sound);
                }
                self.record_since(before, knobs, format!("Slot {}", slot.name()));
            }
            HistoryCommand::StoreSlot(slot) => {
                self.record_change(format!("Copy to {}", slot.name()), |this| {
                    this.instance
                        .compare_slots
                        .store(slot, this.sound_snapshot());
                });
            }
        }
    }

    /// Makes a change, which is one step unless it changes nothing that undo restores.
    pub(super) fn record_change(
        &mut self,
        label: impl Into<String>,
        change: impl FnOnce(&mut Self),
    ) {
        let before = self.capture();
        change(self);
        self.record_since(before, Vec::new(), label.into());
    }

    /// Captures everything that undo restores, apart from knobs.
    pub(super) fn capture(&self) -> Captured {
        let (active, sounds) = self.instance.compare_slots.get();
        let sounds = sounds.map(|sound| {
            sound.map(|SoundSnapshot { values, selection }| SoundSnapshot {
                values,
                selection: selection.for_history(),
            })
        });
        let (horizontal, vertical) = self.pad();
        Captured {
            selection: self.instance.saved_selection().for_history(),
            slots: (active, sounds),
            pad: self
                .saved_id(horizontal)
                .zip(self.saved_id(vertical))
                .map(<[String; 2]>::from),
            executor: self.instance.read_state(|state| state.executor),
            resampling: self.instance.read_state(|state| state.resampling),
            programs: self.instance.programs(),
            midi: self.instance.midi_bindings.bindings(),
        }
    }

    /// Adds a step with these changes of knobs and with what has changed since `before`.
    pub(super) fn record_since(&self, before: Captured, knobs: Vec<Edit>, label: String) {
        let now = self.capture();
        let mut edits = knobs;
        let selection = changed(before.selection, now.selection);
        edits.extend(selection.map(|change| Edit::Selection(change.into())));
        let slots = changed(before.slots, now.slots);
        edits.extend(slots.map(|change| Edit::Slots(change.into())));
        let pad = before.pad.zip(now.pad);
        edits.extend(
            pad.and_then(|(before, after)| changed(before, after))
                .map(Edit::Pad),
        );
        edits.extend(changed(before.executor, now.executor).map(Edit::Executor));
        edits.extend(changed(before.resampling, now.resampling).map(Edit::Resampling));
        edits.extend(changed(before.programs, now.programs).map(Edit::Programs));
        edits.extend(changed(before.midi, now.midi).map(Edit::Midi));
        self.record(label, edits);
    }

    fn record(&self, label: String, edits: impl IntoIterator<Item = Edit>) {
        let edits: Vec<Edit> = edits.into_iter().collect();
        if !edits.is_empty() {
            self.instance
                .history
                .push(Step { label, edits }, Instant::now());
            self.instance.host_notifier.mark_state_changed();
        }
    }

    /// Adds a step that changes a setting outside the instance;
    /// [`InstanceViewModel::take_restored`] returns what undo and redo restore of it.
    pub fn record_outside(&self, label: String, change: Change<OutsideSetting>) {
        self.record(label, [Edit::Outside(change)]);
    }

    /// Takes the settings outside the instance that undo or redo has restored, in order.
    pub fn take_restored(&mut self) -> Vec<OutsideSetting> {
        std::mem::take(&mut self.recorder.restored)
    }

    /// Returns the edits of knobs that have been turned since these values were taken.
    pub(super) fn knob_edits_since(&self, values: &ParameterValues) -> Vec<Edit> {
        let back = knob_edits(&*self.source, values).into_iter();
        back.map(|edit| match edit {
            Edit::Knob(id, Change { before, after }) => Edit::Knob(
                id,
                Change {
                    before: after,
                    after: before,
                },
            ),
            other => other,
        })
        .collect()
    }

    /// Sets a parameter in a gesture of its own, which is one step.
    pub(super) fn set_parameter(&self, setter: &impl ParameterSetter, id: ParameterId, value: f32) {
        let Some((parameter, before)) = Parameter::get(id).zip(self.source.normalized(id)) else {
            return;
        };
        let after = parameter.normalize(value);
        turn(setter, id, after);
        let edit = changed(before, after).map(|change| Edit::Knob(id, change));
        self.record(parameter.label.into(), edit);
    }

    pub(super) fn gesture_begins(&mut self, id: ParameterId) {
        if let Some(position) = self.knob_position(id) {
            let (before, after) = (position, position);
            self.recorder.gestures.push(KnobChange {
                id,
                label: self.knob_label(id),
                change: Change { before, after },
            });
        }
    }

    pub(super) fn gesture_moves(&mut self, id: ParameterId, position: f32) {
        // A host may take the value over only later, so it is not read back.
        let after = Parameter::get(id).map_or(position, |parameter| {
            parameter.normalize(parameter.denormalize(position))
        });
        if let Some(gesture) = self
            .recorder
            .gestures
            .iter_mut()
            .find(|gesture| gesture.id == id)
        {
            gesture.change.after = after;
        }
    }

    pub(super) fn gesture_ends(&mut self, id: ParameterId) {
        let Recorder {
            gestures, ended, ..
        } = &mut self.recorder;
        ended.extend(gestures.extract_if(.., |gesture| gesture.id == id));
        if !gestures.is_empty() {
            return;
        }
        let mut turned = std::mem::take(ended);
        turned.retain(|knob| knob.change.before != knob.change.after);
        let labels: Vec<&str> = turned.iter().map(|knob| knob.label.as_str()).collect();
        let label = labels.join(", ");
        let edits = turned
            .into_iter()
            .map(|knob| Edit::Knob(knob.id, knob.change));
        self.record(label, edits);
    }

    /// To be called before a file is read: what it changes becomes a step when it has been read.
    pub(super) fn loading_begins(&mut self, what: LoadedFile) {
        match &mut self.recorder.loading {
            Some(loading) => loading.what = what,
            None => {
                let (before, cleared) = (self.capture(), self.instance.history.cleared());
                self.recorder.loading = Some(Loading {
                    what,
                    before,
                    cleared,
                });
            }
        }
    }

    /// Lets undo take back a MIDI controller that is learnt from now on.
    pub(super) fn learning_begins(&mut self) {
        if self.recorder.learning.is_none() {
            self.recorder.learning = Some(self.instance.midi_bindings.bindings());
        }
    }

    /// Adds the steps of files that have been read, and of a MIDI controller that was learnt.
    pub(super) fn record_finished(&mut self) {
        if self.background_jobs.is_empty()
            && let Some(Loading {
                what,
                before,
                cleared,
            }) = self.recorder.loading.take()
            && cleared == self.instance.history.cleared()
        {
            let selection = self.instance.saved_selection();
            let (model, cabinet) = selection.names();
            let label = match what {
                LoadedFile::Model => format!("Model {model}"),
                LoadedFile::Cabinet => format!("Cabinet {}", cabinet.unwrap_or_default()),
            };
            self.record_since(before, Vec::new(), label);
        }
        if !self.instance.midi_bindings.is_learning()
            && let Some(before) = self.recorder.learning.take()
        {
            let after = self.instance.midi_bindings.bindings();
            let edit = changed(before, after).map(Edit::Midi);
            self.record("MIDI controller".into(), edit);
        }
    }

    /// Undoes the last step, or gives up what is still loading.
    fn undo(&mut self, setter: &impl ParameterSetter) {
        if let Some(Loading { before, .. }) = self.recorder.loading.take() {
            return self.restore_selection(before.selection);
        }
        if let Some(step) = self.instance.history.undo() {
            step.edits
                .into_iter()
                .rev()
                .for_each(|edit| self.apply_edit(setter, edit, Side::Before));
        }
    }

    /// Makes the step again that was undone last.
    fn redo(&mut self, setter: &impl ParameterSetter) {
        if let Some(step) = self.instance.history.redo() {
            step.edits
                .into_iter()
                .for_each(|edit| self.apply_edit(setter, edit, Side::After));
        }
    }

    fn apply_edit(&mut self, setter: &impl ParameterSetter, edit: Edit, side: Side) {
        match edit {
            Edit::Knob(id, change) if Parameter::get(id).is_some() => {
                turn(setter, id, side.pick(change))
            }
            Edit::Knob(id, change) => self.instance.set_latent_knob(id, side.pick(change)),
            Edit::Selection(change) => self.restore_selection(side.pick(*change)),
            Edit::Slots(change) => self.instance.compare_slots.set(side.pick(*change)),
            Edit::Pad(change) => self.instance.set_pad(side.pick(change)),
            Edit::Executor(change) => self.instance.set_executor(side.pick(change)),
            Edit::Resampling(change) => self.instance.set_resampling(side.pick(change)),
            Edit::Programs(change) => self.instance.set_programs(side.pick(change)),
            Edit::Midi(change) => self.instance.midi_bindings.restore(&side.pick(change)),
            Edit::Outside(change) => self.recorder.restored.push(side.pick(change)),
        }
        self.instance.host_notifier.mark_state_changed();
    }

    /// Restores a selection; an audition ends.
    fn restore_selection(&mut self, selection: SelectionSnapshot) {
        (self.auditioned, self.loading) = (None, None);
        self.instance.restore_selection(selection);
    }
}

/// Side of a change that is restored.
#[derive(Clone, Copy)]
enum Side {
    Before,
    After,
}

impl Side {
    fn pick<T>(self, change: Change<T>) -> T {
        match self {
            Self::Before => change.before,
            Self::After => change.after,
        }
    }
}

/// Turns a parameter in a gesture of its own, so that the host follows.
pub(super) fn turn(setter: &impl ParameterSetter, id: ParameterId, position: f32) {
    setter.begin_gesture(id);
    setter.set_normalized(id, position);
    setter.end_gesture(id);
}
