//! Pages in the middle of the window: macros, voice, latents, signal chain, rig and pad.

use egui::{Button, Label, RichText, ScrollArea, Ui};
use ondes_player::model_controls::label;

use crate::command::{KnobCommand, PlayCommand};
use crate::frame::Frame;
use crate::knob::{self, grid};
use crate::panels::chain::{self, CabinetMenu};
use crate::panels::latents;
use crate::panels::pad::{self, PadState};
use crate::panels::rig::{self, RigPage};
use crate::theme::{self, GAP, Palette};
use crate::view::{MacroKnob, TuningView};

/// A page.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Page {
    #[default]
    Macros,
    Voice,
    Latents,
    Chain,
    Rig,
    Pad,
}

pub(crate) fn show(
    ui: &mut Ui,
    frame: &mut Frame<'_>,
    page: &mut Page,
    cabinet: &mut CabinetMenu,
    rig_page: &mut RigPage,
    pad: &mut PadState,
    on_stage: &mut bool,
) {
    let view = frame.view;
    let knobs = view.knobs;
    // Captures have neither controls nor notes.
    let has_controls = view.model.is_none_or(|model| !model.controls.is_empty())
        || knobs.macros.iter().any(|one| one.turns);
    let pages = [
        (
            Page::Macros,
            "Macros",
            "Controls of the model, and settings of blocks",
            has_controls,
        ),
        (
            Page::Voice,
            "Voice",
            "Pitch, and how notes are played",
            view.has_voice(),
        ),
        (
            Page::Latents,
            "Latents",
            "What the codec hears, to scale, shift and hold",
            !knobs.latents.is_empty(),
        ),
        (
            Page::Chain,
            "Chain",
            "Gate, tone, cabinet and levels around the model",
            true,
        ),
        (
            Page::Rig,
            "Rig",
            "Models, impulse responses and effects before and after the model",
            true,
        ),
        (Page::Pad, "Pad", "Turn two knobs at once", has_controls),
    ];
    let offered = || pages.into_iter().filter(|(.., offered)| *offered);
    // The page stays chosen for models that have it.
    let wanted = *page;
    let is_offered = offered().any(|(one, ..)| one == wanted);
    let shown = if is_offered {
        wanted
    } else {
        offered().next().map_or(Page::Chain, |(first, ..)| first)
    };
    ui.horizontal_wrapped(|ui| {
        for (one, name, hint, _) in offered() {
            if ui
                .add(Button::selectable(shown == one, name))
                .on_hover_text(hint)
                .clicked()
            {
                *page = one;
            }
        }
        let stage = ui.add(Button::selectable(false, "Stage"));
        let hint = "Scenes, tuner and levels, to be read from afar (Alt+0)";
        *on_stage |= stage.on_hover_text(hint).clicked();
    });
    match shown {
        Page::Latents => latents::show(ui, frame),
        Page::Chain => chain::show(ui, frame, cabinet, view.chain),
        Page::Rig => rig::show(ui, frame, rig_page, view.rig),
        Page::Pad => pad::show(ui, frame, pad, knobs.pad),
        Page::Macros => grid(ui, knobs.macros.iter().enumerate(), |ui, (index, one)| {
            macro_knob(ui, frame, index, one)
        }),
        Page::Voice => {
            if let Some(tuning) = knobs.tuning {
                show_tuning(ui, frame, tuning);
            }
            knob::rows(ui, frame, knobs.voice);
        }
    }
}

/// Draws the name of the tuning, and what removes it.
fn show_tuning(ui: &mut Ui, frame: &mut Frame<'_>, tuning: TuningView<'_>) {
    ui.horizontal(|ui| {
        ui.label(RichText::new("Tuning").font(theme::small()).weak());
        let hint = "Remove the tuning: play in equal temperament";
        if ui.button("Remove").on_hover_text(hint).clicked() {
            frame.push(PlayCommand::RemoveTuning);
        }
        let name = match tuning.problem {
            Some(_) => RichText::new(format!("{}: cannot be read", tuning.name))
                .color(Palette::current(ui).error),
            None => RichText::new(tuning.name),
        };
        ui.add(Label::new(name).truncate())
            .on_hover_text(tuning.problem.unwrap_or("Scale of the keys"));
    });
    ui.add_space(GAP);
}

/// Draws a macro, with the controls that it can be bound to in its menu.
fn macro_knob(ui: &mut Ui, frame: &mut Frame<'_>, index: usize, one: &MacroKnob) {
    let controls = frame.view.model.map_or(&[][..], |model| model.controls);
    knob::show(ui, frame, &one.knob, one.turns, |ui, frame| {
        if !controls.is_empty() {
            ui.separator();
            ui.label(RichText::new("Bind to").font(theme::small()).weak());
            ScrollArea::vertical().max_height(220.0).show(ui, |ui| {
                for (number, control) in controls.iter().enumerate() {
                    let chosen =
                        Button::selectable(one.control == Some(number), label(&control.name));
                    let mut item = theme::item(ui, chosen);
                    if !control.description.is_empty() {
                        item = item.on_hover_text(&control.description);
                    }
                    if item.clicked() {
                        frame.push(KnobCommand::BindMacro(index, Some(number)));
                    }
                }
            });
        }
        if one.control.is_some() && theme::item(ui, Button::new("Unbind")).clicked() {
            frame.push(KnobCommand::BindMacro(index, None));
        }
    });
}
