//! Carries out the commands of a window.

use std::time::{Duration, Instant};

use egui::ThemePreference;
use ondes_engine::instrument::EventKind;
use ondes_player::cabinet::bundled;
use ondes_player::choice;
use ondes_player::macros::MACRO_COUNT;
use ondes_player::parameter::{BYPASS, CONTROL_INPUT, DRIVER, Parameter, QUALITY, SOURCE};
use ondes_player::parameter_source::ParameterSetter;
use ondes_player::state::{WindowSettings, WindowTheme};

use super::InstanceViewModel;
use super::model_list::ModelLocation;
use super::undo::{LoadedFile, step_label};
use crate::command::WindowCommand;
use crate::scale::clamp_scale;
use crate::view::ModelEntryId;

/// Length of an audition.
const AUDITION: Duration = Duration::from_secs(8);

impl InstanceViewModel {
    /// Carries out a command and records it for undo. Commands that are not possible are ignored.
    pub fn handle_command(&mut self, setter: &impl ParameterSetter, command: WindowCommand) {
        match step_label(&command) {
            Some(label) => {
                let before = self.capture();
                self.carry_out(setter, command);
                self.record_since(before, Vec::new(), label);
            }
            None => self.carry_out(setter, command),
        }
    }

    fn carry_out(&mut self, setter: &impl ParameterSetter, command: WindowCommand) {
        match command {
            WindowCommand::BeginGesture(id) => {
                self.gesture_begins(id);
                if Parameter::get(id).is_some() {
                    setter.begin_gesture(id);
                }
            }
            WindowCommand::Set(id, position) if position.is_finite() => {
                let position = position.clamp(0.0, 1.0);
                self.gesture_moves(id, position);
                if Parameter::get(id).is_some() {
                    setter.set_normalized(id, position);
                } else {
                    // Latent knobs are not among the host's parameters.
                    self.instance.set_latent_knob(id, position);
                }
            }
            WindowCommand::EndGesture(id) => {
                if Parameter::get(id).is_some() {
                    setter.end_gesture(id);
                }
                self.gesture_ends(id);
            }
            WindowCommand::Undo => self.undo(setter),
            WindowCommand::Redo => self.redo(setter),
            WindowCommand::BindMacro(index, control) => self.bind_macro(index, control),
            WindowCommand::LearnMidi(id) => {
                if let Some(parameter) = Parameter::get(id) {
                    self.learning_begins();
                    self.instance.midi_bindings.learn(parameter.id);
                }
            }
            WindowCommand::ForgetMidi(id) => {
                if let Some(parameter) = Parameter::get(id) {
                    self.instance.midi_bindings.forget(parameter.id);
                }
            }
            WindowCommand::SetPad(horizontal, vertical) => {
                if let Some((horizontal, vertical)) =
                    self.saved_id(horizontal).zip(self.saved_id(vertical))
                {
                    self.instance.set_pad([horizontal, vertical]);
                }
            }
            WindowCommand::RecallSlot(slot) => {
                let (before, current) = (self.capture(), self.sound_snapshot());
                let mut knobs = Vec::new();
                if let Some(sound) = self.instance.compare_slots.recall(slot, current) {
                    knobs = self.knob_edits(&sound.values);
                    self.apply_sound(setter, sound);
                }
                self.record_since(before, knobs, format!("Slot {}", slot.name()));
            }
            WindowCommand::StoreSlot(slot) => self
                .instance
                .compare_slots
                .store(slot, self.sound_snapshot()),

            WindowCommand::Bypass(on) => {
                self.set_parameter(setter, BYPASS, f32::from(u8::from(on)))
            }
            WindowCommand::SetDriver(driver) => {
                if let Some(value) = choice::driver_value(driver) {
                    self.set_parameter(setter, DRIVER, value);
                }
            }
            WindowCommand::SetControlSource(source) => {
                self.set_parameter(setter, SOURCE, choice::source_value(source));
            }
            WindowCommand::FollowSideChain(on) => {
                self.set_parameter(setter, CONTROL_INPUT, f32::from(u8::from(on)));
            }
            WindowCommand::SetQuality(index) => self.set_parameter(setter, QUALITY, index as f32),
            WindowCommand::SetResampling(resampling) => self.instance.set_resampling(resampling),
            WindowCommand::SetExecutor(executor) => self.instance.set_executor(executor),
            // The instance shows the reason of a failure.
            WindowCommand::SetProgram(options) => drop(self.instance.set_program_options(options)),
            WindowCommand::FindDevices => self.find_devices(),
            WindowCommand::Panic => self.instance.monitor.request_panic(),
            WindowCommand::OpenTuner(open) => self.open_tuner(open),
            WindowCommand::MuteWhileTuning(mute) => self.set_tuner_mute(mute),
            WindowCommand::SetTunerReference(hz) => self.set_tuner_reference(hz),
            WindowCommand::KeyDown { key, velocity } => {
                self.dismiss_hint();
                self.instance.monitor.push_key(EventKind::NoteOn {
                    channel: 0,
                    key,
                    velocity,
                });
            }
            WindowCommand::KeyUp { key } => {
                self.instance.monitor.push_key(EventKind::NoteOff {
                    channel: 0,
                    key,
                    velocity: 0.5,
                });
            }
            WindowCommand::SetScale(scale) => {
                let settings = self.instance.window_settings();
                self.instance.set_window_settings(WindowSettings {
                    scale: clamp_scale(scale),
                    ..settings
                });
            }
            WindowCommand::SetTheme(theme) => {
                let theme = match theme {
                    ThemePreference::Dark => WindowTheme::Dark,
                    ThemePreference::Light => WindowTheme::Light,
                    ThemePreference::System => WindowTheme::System,
                };
                let settings = self.instance.window_settings();
                self.instance
                    .set_window_settings(WindowSettings { theme, ..settings });
            }
            command => self.handle_library_command(command),
        }
    }

    /// Carries out a command on models, presets and cabinets.
    fn handle_library_command(&mut self, command: WindowCommand) {
        match command {
            WindowCommand::Load(id) => self.load(id),
            WindowCommand::Next => self.step_model(1),
            WindowCommand::Previous => self.step_model(-1),
            WindowCommand::Audition(Some(id)) => self.audition(id),
            WindowCommand::Audition(None) => self.end_audition(),
            WindowCommand::Favourite(id, on) => self.models.set_favourite(id, on),
            WindowCommand::RescanModels => self.models.rescan(),
            WindowCommand::Embed(on) => self.instance.set_embed_model(on),
            WindowCommand::Open(path) => self.open_file(path),
            WindowCommand::Browse(purpose) => self.open_dialog(purpose),
            WindowCommand::Retry => self.retry(),
            WindowCommand::AskProgram => self.ask_for_consent(),
            WindowCommand::AnswerProgram(run) => self.answer_question(run),
            WindowCommand::Dismiss if self.own_notice.is_some() => {
                self.own_notice = None;
                self.idle_host.end();
            }
            WindowCommand::Dismiss if self.instance.notice().is_some() => {
                self.instance.dismiss_notice()
            }
            WindowCommand::Dismiss => self.dismiss_hint(),
            WindowCommand::Cabinet(Some(path)) => self.load_cabinet(path),
            WindowCommand::Cabinet(None) => self.instance.remove_cabinet(),
            WindowCommand::BundledCabinet(index) => {
                if let Some(cabinet) = bundled::BUNDLED.get(index) {
                    self.instance.choose_bundled_cabinet(cabinet);
                }
            }
            WindowCommand::AutomaticCabinet => self.instance.set_automatic_cabinet(true),
            WindowCommand::RemoveTuning => self.instance.remove_tuning(),
            WindowCommand::RescanCabinets => self.cabinets.rescan(),
            WindowCommand::LoadPreset(id) => self.load_preset(id),
            WindowCommand::NextPreset => self.step_preset(1),
            WindowCommand::PreviousPreset => self.step_preset(-1),
            WindowCommand::SavePreset(name) => {
                let overwrite = self.presets.is_taken(&name);
                self.save_preset(&name, overwrite);
            }
            WindowCommand::DeletePreset(id) => self.delete_preset(id),
            _ => {}
        }
    }

    /// Applies what other threads have requested, and ends an audition that has lasted long enough.
    pub(super) fn apply_requests(&mut self) {
        self.instance.set_oversampling(self.source.oversampling());
        self.instance.apply_requested_variant();
        if self
            .auditioned
            .is_some_and(|(_, since)| since.elapsed() > AUDITION)
        {
            self.end_audition();
        }
    }

    fn bind_macro(&self, index: usize, control: Option<usize>) {
        if index >= MACRO_COUNT || self.instance.model().is_none() {
            return;
        }
        match control {
            None => self.instance.bind_macro(index, None),
            Some(control) => {
                if let Some(control) = self.instance.controls().all().get(control) {
                    self.instance.bind_macro(index, Some(&control.name));
                }
            }
        }
    }

    fn read_model(&mut self, location: ModelLocation, audition: bool) {
        let job = self.instance.load_model(audition, move || location.read());
        self.background_jobs.push(job);
    }

    /// Loads a model, which counts as recent once it has been read.
    pub(super) fn load_location(&mut self, location: ModelLocation) {
        self.loading_begins(LoadedFile::Model);
        self.auditioned = None;
        self.loading = Some(location.clone());
        self.read_model(location, false);
    }

    fn load(&mut self, id: ModelEntryId) {
        if let Some(location) = self.models.location(id) {
            self.load_location(location);
        }
    }

    fn step_model(&mut self, steps: isize) {
        // Steps from the model that is being loaded, if the user is faster than the files.
        let current = self
            .loading
            .as_ref()
            .map(ModelLocation::id)
            .or(self.playing());
        if let Some(id) = self.models.beside(current, steps) {
            self.load(id);
        }
    }

    fn audition(&mut self, id: ModelEntryId) {
        let Some(location) = self.models.location(id) else {
            return;
        };
        self.loading = None;
        self.auditioned = Some((id, Instant::now()));
        self.read_model(location, true);
    }

    fn end_audition(&mut self) {
        if self.auditioned.take().is_some() {
            self.instance.end_audition();
        }
    }
}

#[cfg(test)]
mod tests;
