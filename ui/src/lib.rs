//! The panels of the Ondes window, for the plugin and for the app.
//!
//! A window belongs to an [`Owner`], who says what there is to be seen ([`View`], plain data) and how a knob's place is said and
//! understood. For each frame, [`Window::show`] draws all of it and gives back what the user did ([`Command`]s), in order. Neither
//! plugin framework nor audio device is known here, and nothing is kept but what only the window cares for: what is being typed,
//! which page is open, where the peaks were. In reading order:
//!
//! - [`view`](View) and [`command`](Command): what passes between a window and its owner;
//! - `desk`: the frame that is being drawn; `layout`: where its panels are; `theme`, `icon`, `words`, [`scale`](SCALES): how it
//!   looks and reads;
//! - `hand`, `knob`, `choice`: what is turned, and how;
//! - `header` with `card` and `presets`, `message`, `browser`, `macros` with `latents`, `chain` and `pad`, `scope`, `mixer`,
//!   `play` with `keyboard` and `fingers`, `engine` with `running`: the panels; `dropped`: files that are dropped on all of them.
//!
//! # Work
//! A frame is asked for only while [`View::moving`] says that sound moves, while a peak's mark falls, and when the user does
//! something. An owner whose data change by themselves (sound begins, a model is ready) wakes the window with
//! [`egui::Context::request_repaint`].
//!
//! # Keyboard
//! Tab goes through everything. On a knob arrows turn (finer with Shift), Page Up and Down leap, Home and End go to the ends,
//! Delete resets, Enter types a value, the menu key or Shift+F10 opens the menu. In the list of models arrows move, Enter loads,
//! Space auditions, F marks. In the list of presets arrows move, Enter loads, Delete pressed twice deletes. Arrows move the pad.
//! Ctrl+F searches; Ctrl with plus, minus and 0 scales.
//!
//! While "Keys" is on, letters without Ctrl, Alt or Shift play and do nothing else, unless one types: A W S E D F T G Y H U J K
//! O L P ; are the keys of a piano from C upwards, Z and X take them an octave down and up, C and V make them softer and harder.

#![forbid(unsafe_code)]

mod browser;
mod card;
mod chain;
mod choice;
mod command;
mod desk;
mod dropped;
mod engine;
mod fingers;
mod hand;
mod header;
mod icon;
mod keyboard;
mod knob;
mod latents;
mod layout;
mod macros;
mod message;
mod mixer;
mod pad;
mod play;
mod presets;
mod running;
mod scale;
mod scope;
mod theme;
mod view;
mod words;

use std::time::Duration;

use egui::{ScrollArea, Ui};

pub use command::{Browse, Command};
pub use dropped::is_sound;
pub use scale::{SCALES, clamp_scale};
pub use theme::install as install_style;
pub use view::{
    Chain, Devices, Entry, EntryId, Knob, KnobId, Latent, Level, Macro, Midi, Missing, Model, Note, Owner, PlayedBy,
    Preset, PresetId, Running, Slot, Sound, Source, View,
};
pub use words::quality_line;

/// Size of the window's contents at 100 %, points.
pub const SIZE: [f32; 2] = [900.0, 560.0];

/// Between two frames while sound moves.
const FRAME: Duration = Duration::from_millis(33);

/// All panels, and what they remember from frame to frame.
#[derive(Default)]
pub struct Window {
    browser_closed: bool,
    browser: browser::Browser,
    page: macros::Page,
    mixer: mixer::Mixer,
    hand: hand::Hand,
    presets: presets::Presets,
    cabinet: chain::Picker,
    pad: pad::Pad,
    fingers: fingers::Fingers,
    drivers: engine::Drivers,
}

impl Window {
    /// A window with the browser open.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Draws everything into `ui`, which is all of the window, and gives what the user did, in order.
    pub fn show(&mut self, ui: &mut Ui, owner: &dyn Owner) -> Vec<Command> {
        theme::install(ui.ctx());
        let mut desk = desk::Desk { owner, view: owner.view(), commands: Vec::new(), hand: &mut self.hand };
        desk.hand.begin_frame();
        self.pad.begin_frame();
        ui.ctx().set_theme(desk.view.theme);
        // The style of this frame was chosen before the theme was.
        let style = ui.ctx().global_style();
        ui.set_style(style);
        scale::apply(ui, &mut desk);
        dropped::take(ui, &mut desk);
        self.fingers.listen(ui, &mut desk);

        // Panels are drawn in the order in which one reads, since Tab leads through them so.
        let message = message::of(&desk.view);
        let mut browsing = !self.browser_closed;
        let places = layout::Places::of(ui.max_rect(), message.is_some(), browsing);
        places.paint(ui);
        layout::place(ui, places.header, |ui| header::show(ui, &mut desk, &mut self.presets, &mut browsing));
        self.browser_closed = !browsing;
        if let Some((message, place)) = message.zip(places.message) {
            layout::place(ui, place, |ui| message::show(ui, &mut desk, message));
        }
        if let Some(place) = places.browser {
            layout::place(ui, place, |ui| browser::show(ui, &mut desk, &mut self.browser));
        }
        layout::place(ui, places.middle, |ui| {
            // In a window smaller than it should be the knobs are still within reach.
            ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
                macros::show(ui, &mut desk, &mut self.page, &mut self.cabinet, &mut self.pad);
                ui.add_space(theme::GAP);
                scope::show(ui, &desk);
            });
        });
        layout::place(ui, places.mixer, |ui| mixer::show(ui, &mut desk, &mut self.mixer));
        layout::place(ui, places.play, |ui| play::show(ui, &mut desk, &mut self.fingers));
        layout::place(ui, places.engine, |ui| engine::show(ui, &mut desk, &mut self.drivers));

        let moving = desk.view.moving;
        let mut commands = desk.commands;
        self.hand.end_frame(ui, &mut commands);
        self.pad.end_frame(&mut commands);
        if moving {
            ui.ctx().request_repaint_after(FRAME);
        }
        commands
    }

    /// To be called when the window goes away: ends what is going on, gestures and keys that are held.
    pub fn close(&mut self) -> Vec<Command> {
        let mut commands: Vec<Command> = self.hand.let_go().into_iter().collect();
        self.pad.let_go(&mut commands);
        self.fingers.let_go(&mut commands);
        commands
    }
}
