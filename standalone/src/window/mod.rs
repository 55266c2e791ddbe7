//! The app's window: tracks, their instruments, devices and recordings.
//!
//! [`view`] is what passes between the window and the app behind it: plain data to draw, and what the user did. [`Window`]
//! draws, in `panels` with `tracks`, `devices` and `fader`, and knows nothing else. `studio` holds what plays and does what the
//! user wants, with [`settings`] that are remembered, [`takes`] (how recordings are made), files that are `dropped` on the
//! window or chosen in a dialog (`browse`), `unsaved` work that survives a crash, and the [`inventory`] of what there is to play
//! on.

mod browse;
mod devices;
mod dropped;
mod fader;
pub mod inventory;
mod panels;
pub mod settings;
mod studio;
pub mod takes;
mod tracks;
mod unsaved;
pub mod view;

use std::sync::Arc;
use std::time::Duration;

use eframe::{App, CreationContext, NativeOptions};
use egui::{Ui, ViewportBuilder, ViewportCommand, vec2};

pub use browse::Browse;
pub use panels::Window;
pub use view::{Command, View};

use crate::devices::Status;
use crate::interrupt;
use studio::Studio;
use view::TrackView;

/// Size of the window when it opens, points.
const SIZE: [f32; 2] = [1180.0, 680.0];
/// Between two frames while something moves: as often as displays show them.
const FRAME: Duration = Duration::from_millis(16);
/// While nothing does: figures and ports change by themselves.
const REST: Duration = Duration::from_millis(250);
/// While nobody sees it: only work that is not saved is looked after.
const HIDDEN: Duration = Duration::from_secs(5);
/// A peak below this, dB, is silence.
const SILENCE_DB: f32 = -100.0;

/// Opens the window, and plays until it is closed. Ctrl-C or a termination closes it: recordings become complete.
///
/// # Errors
/// When there is no display, in one line.
pub fn run() -> anyhow::Result<()> {
    let viewport = ViewportBuilder::default()
        .with_title("Ondes")
        .with_app_id("ondes")
        .with_inner_size(vec2(SIZE[0], SIZE[1]))
        .with_min_inner_size(vec2(1000.0, 560.0));
    let options = NativeOptions { viewport, ..NativeOptions::default() };
    eframe::run_native("ondes", options, Box::new(|context| Ok(Box::new(Ondes::new(context)))))
        .map_err(|error| anyhow::anyhow!("the window cannot be opened: {error}"))
}

struct Ondes {
    studio: Studio,
    window: Window,
}

impl Ondes {
    fn new(context: &CreationContext<'_>) -> Self {
        let context = context.egui_ctx.clone();
        let asked = context.clone();
        interrupt::listen_and_wake(move || asked.request_repaint());
        Self {
            studio: Studio::open(settings::folder(), Arc::new(move || context.request_repaint())),
            window: Window::new(),
        }
    }
}

impl App for Ondes {
    fn logic(&mut self, context: &egui::Context, _: &mut eframe::Frame) {
        self.studio.tick();
        if interrupt::requested() {
            context.send_viewport_cmd(ViewportCommand::Close);
        }
        let hidden = context.input(|input| input.viewport().visible() == Some(false));
        context.request_repaint_after(if hidden { HIDDEN } else { REST });
    }

    fn ui(&mut self, ui: &mut Ui, _: &mut eframe::Frame) {
        ui.ctx().set_theme(self.studio.theme());
        let view = self.studio.view();
        let commands = self.window.show(ui, &view, |ui| self.studio.show(ui));
        if moves(&view) {
            ui.ctx().request_repaint_after(FRAME);
        }
        if !commands.is_empty() {
            ui.ctx().request_repaint();
        }
        commands.into_iter().for_each(|command| self.studio.obey(command));
    }
}

/// Whether what is drawn moves by itself. A pointer asks for frames of its own.
fn moves(view: &View) -> bool {
    let sounds = |peak_db: f32| peak_db > SILENCE_DB;
    let rolls = |track: &TrackView| track.clip.as_ref().is_some_and(|clip| clip.playing);
    matches!(view.sound, Status::Playing(_))
        && (view.peaks_db.into_iter().any(sounds)
            || view.tracks.iter().any(|track| sounds(track.peak_db) || rolls(track)))
}
