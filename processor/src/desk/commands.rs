//! Does what the user has done in a window.

use std::time::{Duration, Instant};

use egui::ThemePreference;
use ondes_engine::instrument::EventKind;
use ondes_engine::pipeline::Source;
use ondes_ui::{Command, EntryId, KnobId, PlayedBy, clamp_scale};

use super::entries::Origin;
use super::files::{browse, fetch_cabinet, open, retry};
use super::setting::{recall, setting};
use super::{Desk, presets};
use crate::board::Setter;
use crate::choice;
use crate::macros::MACROS;
use crate::parameter::{BYPASS, DRIVER, PLAYED_BY, Parameter, QUALITY};
use crate::state::{Look, Theme};

/// How long an audition lasts.
const AUDITION: Duration = Duration::from_secs(8);

/// Does one thing. What cannot be done, and what is not offered, is left alone.
pub fn obey(desk: &mut Desk, setter: &impl Setter, command: Command) {
    match command {
        Command::Begin(id) if Parameter::of(id).is_some() => setter.begin(id),
        Command::Set(id, position) if Parameter::of(id).is_some() && position.is_finite() => {
            setter.set(id, position.clamp(0.0, 1.0));
        }
        Command::End(id) if Parameter::of(id).is_some() => setter.end(id),
        // What bends a latent is none of the host's parameters.
        Command::Set(id, position) if position.is_finite() => desk.shared.bend(id, position),
        Command::Bind(index, control) => bind(desk, index, control),
        Command::Learn(id) => {
            if let Some(parameter) = Parameter::of(id) {
                desk.shared.controllers.learn(parameter.id);
            }
        }
        Command::Forget(id) => {
            if let Some(parameter) = Parameter::of(id) {
                desk.shared.controllers.forget(parameter.id);
            }
        }

        Command::Load(id) => load(desk, id),
        Command::Next => step(desk, 1),
        Command::Previous => step(desk, -1),
        Command::Audition(Some(id)) => audition(desk, id),
        Command::Audition(None) => stop(desk),
        Command::Favourite(id, on) => desk.entries.set_favourite(id, on),
        Command::Rescan => desk.entries.rescan(),
        Command::Open(path) => open(desk, path),
        Command::Browse(what) => browse(desk, what),
        Command::Cabinet(Some(path)) => fetch_cabinet(desk, path),
        Command::Cabinet(None) => desk.shared.remove_cabinet(),
        Command::Cabinets => desk.cabinets.rescan(),
        Command::Retry => retry(desk),
        Command::Dismiss if desk.hint.is_some() => desk.hint = None,
        Command::Dismiss => desk.shared.dismiss(),

        Command::LoadPreset(id) => presets::load(desk, id),
        Command::NextPreset => presets::step(desk, 1),
        Command::PreviousPreset => presets::step(desk, -1),
        Command::SavePreset(name) => {
            let overwrite = desk.presets.is_taken(&name);
            presets::save(desk, &name, overwrite);
        }
        Command::DeletePreset(id) => presets::delete(desk, id),

        Command::Recall(slot) => {
            if let Some(setting) = desk.shared.compare.recall(slot, setting(desk)) {
                recall(desk, setter, setting);
            }
        }
        Command::Store(slot) => desk.shared.compare.store(slot, setting(desk)),
        Command::Bypass(on) => gesture(setter, BYPASS, f32::from(u8::from(on))),
        Command::Panic => desk.shared.monitor.panic(),
        Command::Drive(driver) => {
            if let Some(choice) = choice::of_driver(driver) {
                gesture(setter, DRIVER, choice);
            }
        }
        Command::Scale(scale) => {
            let look = desk.shared.look();
            desk.shared.set_look(Look { scale: clamp_scale(scale), ..look });
        }
        Command::Theme(theme) => {
            let theme = match theme {
                ThemePreference::Dark => Theme::Dark,
                ThemePreference::Light => Theme::Light,
                ThemePreference::System => Theme::System,
            };
            let look = desk.shared.look();
            desk.shared.set_look(Look { theme, ..look });
        }
        Command::Embed(on) => desk.shared.set_embedding(on),
        Command::Pad(across, up) => {
            if let Some((across, up)) = desk.id_of(across).zip(desk.id_of(up)) {
                desk.shared.set_pad([across, up]);
            }
        }
        Command::PlayedBy(by) => {
            let source = match by {
                PlayedBy::Notes => Source::Notes,
                PlayedBy::Input => Source::Sound,
            };
            gesture(setter, PLAYED_BY, choice::of_source(source));
        }
        Command::KeyDown { key, velocity } => {
            desk.shared.monitor.press(EventKind::NoteOn { channel: 0, key, velocity })
        }
        Command::KeyUp { key } => desk.shared.monitor.press(EventKind::NoteOff { channel: 0, key, velocity: 0.5 }),
        Command::Run(wish) => desk.shared.set_running(wish),
        Command::Devices => desk.look_for_devices(),
        Command::Quality(choice) => gesture(setter, QUALITY, choice as f32),
        Command::Begin(_) | Command::Set(..) | Command::End(_) => {}
    }
}

/// Does what nobody asks for: an audition that has lasted long enough ends, and the network runs as its parameter says.
pub(super) fn tick(desk: &mut Desk) {
    desk.shared.set_oversampling(desk.board.oversampling());
    desk.shared.settle();
    if desk.auditioned.is_some_and(|(_, since)| since.elapsed() > AUDITION) {
        stop(desk);
    }
}

fn gesture(setter: &impl Setter, knob: KnobId, value: f32) {
    let Some(parameter) = Parameter::of(knob) else { return };
    setter.begin(knob);
    setter.set(knob, parameter.position(value));
    setter.end(knob);
}

fn bind(desk: &Desk, index: usize, control: Option<usize>) {
    if index >= MACROS || desk.shared.model().is_none() {
        return;
    }
    match control {
        None => desk.shared.bind(index, None),
        Some(control) => {
            if let Some(control) = desk.shared.controls().all().get(control) {
                desk.shared.bind(index, Some(&control.name));
            }
        }
    }
}

fn fetch(desk: &mut Desk, origin: Origin, brief: bool) {
    let errand = desk.shared.fetch(brief, move || origin.read());
    desk.errands.push(errand);
}

pub(super) fn play(desk: &mut Desk, origin: Origin) {
    desk.auditioned = None;
    desk.loading = Some(origin.clone());
    fetch(desk, origin, false);
}

fn load(desk: &mut Desk, id: EntryId) {
    if let Some(origin) = desk.entries.origin(id) {
        play(desk, origin);
    }
}

fn step(desk: &mut Desk, steps: isize) {
    // Who steps on before the last step is done means the one after it.
    let here = desk.loading.as_ref().map(Origin::id).or(desk.playing());
    if let Some(id) = desk.entries.beside(here, steps) {
        load(desk, id);
    }
}

fn audition(desk: &mut Desk, id: EntryId) {
    let Some(origin) = desk.entries.origin(id) else { return };
    desk.loading = None;
    desk.auditioned = Some((id, Instant::now()));
    fetch(desk, origin, true);
}

fn stop(desk: &mut Desk) {
    if desk.auditioned.take().is_some() {
        desk.shared.come_back();
    }
}

#[cfg(test)]
mod tests;
