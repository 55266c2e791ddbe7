//! The app's window: tracks, their instruments, devices and recordings.
//!
//! [`view`] is the interface between window and app: plain data to draw, and commands of the user.
//! [`MainWindow`] draws, with `track_panel`, `device_panel`, `prompt` and `widgets`, and knows
//! nothing else. `app_state` holds mixer, devices and session and handles the commands, with
//! [`settings`], [`recording_settings`], `dropped_files`, the system's `file_dialog`, `autosave`,
//! `mixer_history` and a [`device_scan`]. The window is drawn when something changes: the user or
//! sound wakes it, or `watch`. `scaling` resizes it with its scale.

mod app_state;
mod autosave;
mod device_panel;
pub mod device_scan;
mod dropped_files;
mod file_dialog;
mod main_window;
mod mixer_history;
mod prompt;
pub mod recording_settings;
mod scaling;
pub mod settings;
mod track_panel;
pub mod view;
mod watch;
mod widgets;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use eframe::{App, CreationContext, NativeOptions};
use egui::{Ui, ViewportBuilder, ViewportCommand};

pub use file_dialog::DialogPurpose;
pub use main_window::MainWindow;
pub use view::{AppCommand, AppView};

use crate::devices::AudioStatus;
use crate::interrupt;
use crate::rack::fader::SILENT_DB;
use app_state::AppState;
use scaling::WindowScaling;
use view::TrackView;

/// Initial and least size of the window, points at 100 %. Below 800 × 500 panels scroll.
const SIZE: [f32; 2] = [1280.0, 740.0];
const LEAST_SIZE: [f32; 2] = [600.0, 400.0];
/// Time between frames while something moves.
const FRAME: Duration = Duration::from_millis(33);
/// Longest time to close devices, and to complete recordings and the autosave.
const FINISH_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens the window and runs until it is closed. Ctrl-C or SIGTERM closes it; recordings are
/// completed.
///
/// # Errors
/// Returns an error if there is no display.
pub fn run() -> anyhow::Result<()> {
    let viewport = ViewportBuilder::default()
        .with_title("Ondes")
        .with_app_id("ondes")
        .with_inner_size(SIZE)
        .with_min_inner_size(LEAST_SIZE);
    let options = NativeOptions {
        viewport,
        ..NativeOptions::default()
    };
    eframe::run_native(
        "ondes",
        options,
        Box::new(|context| Ok(Box::new(Ondes::new(context)))),
    )
    .map_err(|error| {
        anyhow::anyhow!(
            "the window cannot be opened: {}",
            reason(&error.to_string())
        )
    })
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
    scaling: WindowScaling,
    /// Something has changed that is not the user's doing.
    woken: Arc<AtomicBool>,
}

impl Ondes {
    fn new(context: &CreationContext<'_>) -> Self {
        let context = context.egui_ctx.clone();
        let asked = context.clone();
        interrupt::wake_with(move || asked.request_repaint());
        // From here on interrupts are noticed at once, and recordings are completed.
        interrupt::allow(FINISH_TIMEOUT);
        let woken = Arc::<AtomicBool>::default();
        let flag = woken.clone();
        let wake = Arc::new(move || {
            flag.store(true, Relaxed);
            context.request_repaint();
        });
        let app_state = AppState::open(settings::folder(), wake);
        Self {
            app_state,
            window: MainWindow::new(),
            scaling: WindowScaling::default(),
            woken,
        }
    }

    /// Asks before the window closes, if work would be lost.
    fn close(&mut self, context: &egui::Context) {
        let closes = context.input(|input| input.viewport().close_requested());
        if interrupt::requested() {
            // Nobody may be there to answer; changes are autosaved.
            context.send_viewport_cmd(ViewportCommand::Close);
        } else if closes && !self.app_state.quits() {
            self.app_state.handle(AppCommand::Quit);
            if !self.app_state.quits() {
                [
                    ViewportCommand::CancelClose,
                    ViewportCommand::Minimized(false),
                    ViewportCommand::Focus,
                ]
                .into_iter()
                .for_each(|command| context.send_viewport_cmd(command));
                context.request_repaint();
            }
        } else if self.app_state.quits() {
            context.send_viewport_cmd(ViewportCommand::Close);
        }
    }
}

impl App for Ondes {
    /// Works without drawing: it runs while the window is hidden, too.
    fn logic(&mut self, context: &egui::Context, _: &mut eframe::Frame) {
        let acts = context.input(|input| {
            // A hidden window gets no events, and keeps its last ones.
            input.viewport().visible() != Some(false) && !input.raw.events.is_empty()
        });
        if self.woken.swap(false, Relaxed) || acts {
            self.app_state.note_activity();
        }
        self.app_state.tick();
        self.close(context);
        if let Some(next) = self.app_state.next_tick() {
            context.request_repaint_after(next);
        }
    }

    fn on_exit(&mut self, _: Option<&eframe::glow::Context>) {
        interrupt::end_after(FINISH_TIMEOUT);
    }

    fn ui(&mut self, ui: &mut Ui, _: &mut eframe::Frame) {
        ui.ctx().set_theme(self.app_state.theme());
        self.scaling.apply(ui.ctx(), self.app_state.scale());
        let view = self.app_state.view();
        let commands = self.window.show(ui, &view, |ui| self.app_state.show(ui));
        if moves(&view) {
            ui.ctx().request_repaint_after(FRAME);
        }
        if !commands.is_empty() {
            ui.ctx().request_repaint();
        }
        commands
            .into_iter()
            .for_each(|command| self.app_state.handle(command));
    }
}

/// Returns whether the view is animated. The pointer and the selected instrument request frames by
/// themselves.
fn moves(view: &AppView) -> bool {
    let is_shown = |peak_db: f32| peak_db > SILENT_DB;
    let is_rolling = |track: &TrackView| track.clip.as_ref().is_some_and(|clip| clip.playing);
    matches!(view.sound, AudioStatus::Playing(_))
        && (view.peaks_db.into_iter().any(is_shown)
            || view
                .tracks
                .iter()
                .any(|track| is_shown(track.peak_db) || is_rolling(track)))
}
