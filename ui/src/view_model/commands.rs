//! Passes the commands of a window on, each group to the file of its idea, and carries out those on
//! notes, engine and display.

use egui::ThemePreference;
use ondes_engine::instrument::EventKind;
use ondes_player::parameter_source::ParameterSetter;
use ondes_player::state::{WindowSettings, WindowTheme};

use super::InstanceViewModel;
use crate::command::{DisplayCommand, EngineCommand, PlayCommand, WindowCommand};
use crate::scale::clamp_scale;

impl InstanceViewModel {
    /// Carries out a command and records it for undo. Commands that are not possible are ignored.
    pub fn handle_command(
        &mut self,
        setter: &impl ParameterSetter,
        command: impl Into<WindowCommand>,
    ) {
        match command.into() {
            WindowCommand::Knob(command) => self.handle_knob(setter, command),
            WindowCommand::Model(command) => self.handle_model(command),
            WindowCommand::File(command) => self.handle_file(command),
            WindowCommand::Preset(command) => self.handle_preset(command),
            WindowCommand::Cabinet(command) => self.handle_cabinet(command),
            WindowCommand::Rig(command) => self.handle_rig(setter, command),
            WindowCommand::Play(command) => self.handle_play(command),
            WindowCommand::History(command) => self.handle_history(setter, command),
            WindowCommand::Tuner(command) => self.handle_tuner(command),
            WindowCommand::Engine(command) => self.handle_engine(command),
            WindowCommand::Display(command) => self.handle_display(command),
        }
    }

    fn handle_play(&mut self, command: PlayCommand) {
        match command {
            PlayCommand::KeyDown { key, velocity } => {
                self.dismiss_hint();
                self.instance.monitor.push_key(EventKind::NoteOn {
                    channel: 0,
                    key,
                    velocity,
                });
            }
            PlayCommand::KeyUp { key } => self.instance.monitor.push_key(EventKind::NoteOff {
                channel: 0,
                key,
                velocity: 0.5,
            }),
            PlayCommand::Panic => self.instance.monitor.request_panic(),
            PlayCommand::RemoveTuning => self.instance.remove_tuning(),
        }
    }

    fn handle_engine(&mut self, command: EngineCommand) {
        match command {
            EngineCommand::SetResampling(resampling) => {
                self.record_change("Resampling", |this| {
                    this.instance.set_resampling(resampling);
                });
            }
            EngineCommand::SetExecutor(executor) => {
                self.record_change("Executor", |this| this.instance.set_executor(executor));
            }
            EngineCommand::SetProgram(options) => {
                self.set_program("Method and settings", options);
            }
            EngineCommand::FindDevices => self.find_devices(),
        }
    }

    fn handle_display(&mut self, command: DisplayCommand) {
        match command {
            DisplayCommand::Dismiss => {
                if self.own_notice.take().is_some() {
                    self.idle_host.end();
                } else if self.instance.notice().is_some() {
                    self.instance.dismiss_notice();
                } else {
                    self.dismiss_hint();
                }
            }
            DisplayCommand::SetScale(scale) => {
                self.change_settings(|settings| settings.scale = clamp_scale(scale));
            }
            DisplayCommand::SetTheme(theme) => self.change_settings(|settings| {
                settings.theme = match theme {
                    ThemePreference::Dark => WindowTheme::Dark,
                    ThemePreference::Light => WindowTheme::Light,
                    ThemePreference::System => WindowTheme::System,
                };
            }),
        }
    }

    /// Changes settings of the window.
    pub(super) fn change_settings(&self, change: impl FnOnce(&mut WindowSettings)) {
        let mut settings = self.instance.read_state(|state| state.window);
        change(&mut settings);
        self.instance.set_window_settings(settings);
    }
}

#[cfg(test)]
mod tests;
