//! The app's window: tracks, their instruments, devices and recordings.
//!
//! [`view`] is the interface between window and app: plain data to draw, and commands of the user. [`MainWindow`]
//! draws, with `track_panel`, `device_panel` and `widgets`, and knows nothing else. `app_state` holds mixer, devices
//! and session and handles the commands, with [`settings`], [`recording_settings`], `dropped_files`, the system's
//! `file_dialog`, `autosave`, `mixer_history` and a [`device_scan`].

mod app_state;
mod autosave;
mod device_panel;
pub mod device_scan;
mod dropped_files;
mod file_dialog;
mod main_window;
mod mixer_history;
pub mod recording_settings;
pub mod settings;
mod track_panel;
pub mod view;
mod widgets;

use std::sync::Arc;
use std::time::Duration;

use eframe::{App, CreationContext, NativeOptions};
use egui::{Ui, ViewportBuilder, ViewportCommand, vec2};

pub use file_dialog::DialogPurpose;
pub use main_window::MainWindow;
pub use view::{AppCommand, AppView};

use crate::devices::AudioStatus;
use crate::interrupt;
use app_state::AppState;
use view::TrackView;

/// Initial size of the window, points.
const SIZE: [f32; 2] = [1280.0, 740.0];
/// Time between frames during an animation.
const FRAME: Duration = Duration::from_millis(16);
/// Time between frames otherwise: figures and ports change by themselves.
const REST: Duration = Duration::from_millis(250);
/// Time between frames while the window is hidden, for the autosave.
const HIDDEN: Duration = Duration::from_secs(5);
/// Longest time to close devices, and to complete recordings and the autosave.
const FINISH_TIMEOUT: Duration = Duration::from_secs(10);
/// Peaks below this are silence, dB.
const SILENCE_DB: f32 = -100.0;

/// Opens the window and runs until it is closed. Ctrl-C or SIGTERM closes it; recordings are completed.
///
/// # Errors
/// Returns an error if there is no display.
pub fn run() -> anyhow::Result<()> {
    let viewport = ViewportBuilder::default()
        .with_title("Ondes")
        .with_app_id("ondes")
        .with_inner_size(vec2(SIZE[0], SIZE[1]))
        .with_min_inner_size(vec2(1080.0, 620.0));
    let options = NativeOptions { viewport, ..NativeOptions::default() };
    eframe::run_native("ondes", options, Box::new(|context| Ok(Box::new(Ondes::new(context)))))
        .map_err(|error| anyhow::anyhow!("the window cannot be opened: {}", reason(&error.to_string())))
}

/// Returns an error's text without the place in the source of winit, which it begins with.
fn reason(text: &str) -> &str {
    let place = text.find(".rs:").filter(|_| text.contains("os error at "));
    let reason = place.and_then(|place| text[place..].split_once(": "));
    reason.map_or(text, |(_, reason)| reason)
}

struct Ondes {
    app_state: AppState,
    window: MainWindow,
}

impl Ondes {
    fn new(context: &CreationContext<'_>) -> Self {
        let context = context.egui_ctx.clone();
        let asked = context.clone();
        interrupt::wake_with(move || asked.request_repaint());
        // From here on interrupts are noticed at once, and recordings are completed.
        interrupt::allow(FINISH_TIMEOUT);
        Self {
            app_state: AppState::open(settings::folder(), Arc::new(move || context.request_repaint())),
            window: MainWindow::new(),
        }
    }
}

impl App for Ondes {
    fn logic(&mut self, context: &egui::Context, _: &mut eframe::Frame) {
        self.app_state.tick();
        if interrupt::requested() {
            context.send_viewport_cmd(ViewportCommand::Close);
        }
        let hidden = context.input(|input| input.viewport().visible() == Some(false));
        context.request_repaint_after(if hidden { HIDDEN } else { REST });
    }

    fn on_exit(&mut self, _: Option<&eframe::glow::Context>) {
        interrupt::end_after(FINISH_TIMEOUT);
    }

    fn ui(&mut self, ui: &mut Ui, _: &mut eframe::Frame) {
        ui.ctx().set_theme(self.app_state.theme());
        let view = self.app_state.view();
        let commands = self.window.show(ui, &view, |ui| self.app_state.show(ui));
        if moves(&view) {
            ui.ctx().request_repaint_after(FRAME);
        }
        if !commands.is_empty() {
            ui.ctx().request_repaint();
        }
        commands.into_iter().for_each(|command| self.app_state.handle(command));
    }
}

/// Returns whether the view is animated. The pointer requests frames by itself.
fn moves(view: &AppView) -> bool {
    let sounds = |peak_db: f32| peak_db > SILENCE_DB;
    let is_rolling = |track: &TrackView| track.clip.as_ref().is_some_and(|clip| clip.playing);
    matches!(view.sound, AudioStatus::Playing(_))
        && (view.peaks_db.into_iter().any(sounds)
            || view.tracks.iter().any(|track| sounds(track.peak_db) || is_rolling(track)))
}
