//! The pages of knobs: the model's own controls, how notes are played, what the model thinks in, what
//! stands around it, and the pad.

use egui::{Button, RichText, ScrollArea, Ui};

use super::chain;
use super::command::Command;
use super::desk::Desk;
use super::knob;
use super::latents;
use super::pad::{self, Pad};
use super::theme::{self, GAP};
use super::view::Macro;

/// The pages of knobs.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Page {
    #[default]
    Macros,
    Voice,
    Latents,
    Chain,
    Pad,
}

pub(crate) fn show(ui: &mut Ui, desk: &mut Desk<'_>, page: &mut Page, cabinet: &mut chain::Picker, pad: &mut Pad) {
    let view = desk.view;
    let pages = [
        (Page::Macros, "Macros", true),
        (Page::Voice, "Voice", !view.voice.is_empty()),
        (Page::Latents, "Latents", !view.latents.is_empty()),
        (Page::Chain, "Chain", view.chain.is_some()),
        (Page::Pad, "Pad", view.pad.is_some()),
    ];
    let offered = || pages.into_iter().filter(|(.., there)| *there);
    if offered().all(|(one, ..)| one != *page) {
        *page = Page::Macros;
    }
    if offered().count() > 1 {
        ui.horizontal(|ui| {
            for (one, name, _) in offered() {
                if ui.add(Button::selectable(*page == one, name)).clicked() {
                    *page = one;
                }
            }
        });
    }
    match page {
        Page::Latents => latents::show(ui, desk),
        Page::Chain => {
            if let Some(around) = view.chain {
                chain::show(ui, desk, cabinet, around);
            }
        }
        Page::Pad => {
            if let Some(turned) = view.pad {
                pad::show(ui, desk, pad, turned);
            }
        }
        Page::Macros => grid(ui, view.macros.iter().enumerate(), |ui, (index, one)| bound(ui, desk, index, one)),
        Page::Voice => grid(ui, view.voice.iter(), |ui, one| knob::show(ui, desk, one, true, |_, _| ())),
    }
}

/// As many in a row as there is room for, all rows equally long.
pub(crate) fn grid<T>(ui: &mut Ui, items: impl ExactSizeIterator<Item = T>, mut draw: impl FnMut(&mut Ui, T)) {
    let room = ((ui.available_width() + GAP) / (knob::CELL.x + GAP)).floor().max(1.0) as usize;
    let rows = items.len().div_ceil(room).max(1);
    let columns = items.len().div_ceil(rows).max(1);
    // They spread over the whole width.
    let spare = ui.available_width() - columns as f32 * knob::CELL.x;
    let between = (spare / columns as f32).max(GAP);
    let mut items = items.peekable();
    while items.peek().is_some() {
        ui.horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = between;
            ui.add_space(between / 2.0);
            for item in items.by_ref().take(columns) {
                draw(ui, item);
            }
        });
    }
}

fn bound(ui: &mut Ui, desk: &mut Desk<'_>, index: usize, one: &Macro) {
    let controls = desk.view.model.map_or(&[][..], |model| model.controls);
    knob::show(ui, desk, &one.knob, one.control.is_some(), |ui, desk| {
        if !controls.is_empty() {
            ui.separator();
            ui.label(RichText::new("Bind to").font(theme::small()).weak());
            ScrollArea::vertical().max_height(220.0).show(ui, |ui| {
                for (number, control) in controls.iter().enumerate() {
                    let chosen = Button::selectable(one.control == Some(number), control.name.as_str());
                    let mut item = theme::item(ui, chosen);
                    if !control.description.is_empty() {
                        item = item.on_hover_text(&control.description);
                    }
                    if item.clicked() {
                        desk.tell(Command::Bind(index, Some(number)));
                    }
                }
            });
        }
        if one.control.is_some() && theme::item(ui, Button::new("Unbind")).clicked() {
            desk.tell(Command::Bind(index, None));
        }
    });
}
