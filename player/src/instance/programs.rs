//! Following MIDI program changes.

use std::sync::Arc;
use std::time::Instant;

use ondes_engine::panics::contain;

use super::InstanceHandle;
use super::scenes::set_scene;
use crate::history::{Edit, Step, changed, knob_edits};
use crate::library::LoadError;
use crate::parameter_source::{ParameterSetter, ParameterSource};
use crate::preset::location::PresetLocation;
use crate::programs::{ProgramChange, ProgramChoice, ProgramNumber};
use crate::rig::scene::SCENES;
use crate::snapshot::SoundSnapshot;

/// A preset that is being read.
pub(super) struct PendingPreset {
    /// Number of the request.
    request: u64,
    location: PresetLocation,
    /// Its name and its sound, once it has been read.
    sound: Option<Result<(String, SoundSnapshot), LoadError>>,
}

impl InstanceHandle {
    /// Returns what program changes choose.
    #[must_use]
    pub fn programs(&self) -> Vec<ProgramChange> {
        self.read_state(|state| state.programs.clone())
    }

    /// Sets what program changes choose. Without any, those of the first bank from 0 to 7 choose the
    /// scenes.
    pub fn set_programs(&self, programs: Vec<ProgramChange>) {
        self.audio.set_has_programs(!programs.is_empty());
        self.inner().state.programs = programs;
        self.host_notifier.mark_state_changed();
    }

    /// Goes to what the last program change chooses, which
    /// [`AudioLink::request_program`](super::audio_link::AudioLink::request_program) has noted.
    /// Presets are read on a thread of their own, and played when that is done; that is a step of
    /// undo. Not for the audio thread; to be called before
    /// [`follow_scene`](Self::follow_scene).
    pub fn follow_program(
        self: &Arc<Self>,
        source: &dyn ParameterSource,
        setter: &impl ParameterSetter,
    ) {
        if let Some(number) = self.audio.take_program() {
            match self.choice(number) {
                Some(ProgramChoice::Scene(scene)) => set_scene(setter, scene - 1),
                Some(ProgramChoice::Preset(location)) => self.read_preset(location),
                None => {}
            }
        }
        self.apply_read_preset(source, setter);
    }

    fn choice(&self, number: ProgramNumber) -> Option<ProgramChoice> {
        let programs = self.programs();
        let is_scene = |scene: &usize| (1..=SCENES).contains(scene);
        let found = programs.iter().find(|program| program.number == number);
        match found.map(|program| &program.choice) {
            Some(ProgramChoice::Scene(scene)) if !is_scene(scene) => None,
            Some(choice) => Some(choice.clone()),
            None => {
                let scene = usize::from(number.program) + 1;
                let is_first = number.bank == 0 && is_scene(&scene);
                is_first.then_some(ProgramChoice::Scene(scene))
            }
        }
    }

    fn read_preset(self: &Arc<Self>, location: PresetLocation) {
        let (request, place, instance) = (self.begin_request(), location.clone(), self.clone());
        self.inner().pending_preset = Some(PendingPreset {
            request,
            location,
            sound: None,
        });
        std::thread::spawn(move || {
            let sound = contain(|| place.find_sound(instance.product)).unwrap_or_else(|reason| {
                Err(format!("the preset cannot be read: {reason}").into())
            });
            if let Some(pending) = &mut instance.inner().pending_preset
                && pending.request == request
            {
                pending.sound = Some(sound);
            }
            // Only now, since the host calls once.
            instance.host_notifier.mark_preset_read();
        });
    }

    fn apply_read_preset(&self, source: &dyn ParameterSource, setter: &impl ParameterSetter) {
        self.host_notifier.take_preset_read();
        let is_read = |pending: &mut PendingPreset| pending.sound.is_some();
        let read = self.inner().pending_preset.take_if(is_read);
        let Some(PendingPreset {
            request,
            location,
            sound: Some(sound),
        }) = read
        else {
            return;
        };
        match sound {
            Ok((name, SoundSnapshot { values, selection })) if self.is_current(request) => {
                let before = self.saved_selection().for_history();
                let mut edits = knob_edits(source, &values);
                let selection = selection.keeping_choices(&self.selection_snapshot());
                self.apply_sound(source, setter, SoundSnapshot { values, selection });
                self.set_preset(Some(location));
                let selection = changed(before, self.saved_selection().for_history());
                edits.extend(selection.map(|change| Edit::Selection(change.into())));
                if !edits.is_empty() {
                    let label = format!("Preset {name}");
                    self.history.push(Step { label, edits }, Instant::now());
                }
            }
            Ok(_) => {}
            Err(reason) => self.fail_request(request, Some(reason)),
        }
    }
}
