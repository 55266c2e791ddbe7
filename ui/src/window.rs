//! The window: draws all panels and collects what the user did.

use std::time::Duration;

use egui::{Modifiers, ScrollArea, Ui};

use crate::command::WindowCommand;
use crate::frame::Frame;
use crate::keyboard_input::KeyboardInput;
use crate::knob_gesture::KnobGestures;
use crate::layout::{self, LayoutNeeds};
use crate::panels::browser::{self, BrowserState};
use crate::panels::chain::CabinetMenu;
use crate::panels::knob_pages::{self, Page};
use crate::panels::meters::{self, Meters};
use crate::panels::pad::PadState;
use crate::panels::preset_menu::PresetMenu;
use crate::panels::rig::RigPage;
use crate::panels::status_bar::{self, ProcessingMenu};
use crate::panels::tuner::{self, Strobe};
use crate::panels::{consent, file_drop, header, message, play, scope, stage};
use crate::shortcuts::STAGE_KEY;
use crate::view::ViewModel;
use crate::{scale, theme};

/// Size of the window's contents at 100 %, points.
pub const SIZE: [f32; 2] = [980.0, 600.0];

/// Least width of a page, points.
const PAGE_WIDTH: f32 = 232.0;
/// Interval of frames while the sound's figures change.
const FRAME_INTERVAL: Duration = Duration::from_millis(33);

/// State of all panels.
#[derive(Default)]
pub struct Window {
    browser_closed: bool,
    /// The browser is open where it takes the place of the pages.
    browser_instead: bool,
    browser: BrowserState,
    page: Page,
    meters: Meters,
    gestures: KnobGestures,
    preset_menu: PresetMenu,
    cabinet_menu: CabinetMenu,
    rig: RigPage,
    pad: PadState,
    strobe: Strobe,
    keyboard: KeyboardInput,
    processing_menu: ProcessingMenu,
    /// The stage is shown in place of the pages.
    on_stage: bool,
}

impl Window {
    /// Creates a window with the browser open.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Draws a frame into `ui`, which must cover the window. Returns what the user did, in order.
    pub fn show(&mut self, ui: &mut Ui, model: &dyn ViewModel) -> Vec<WindowCommand> {
        theme::install(ui.ctx());
        let mut frame = Frame {
            model,
            view: model.view(),
            commands: Vec::new(),
            gestures: &mut self.gestures,
        };
        frame.gestures.begin_frame();
        self.pad.begin_frame();
        ui.ctx().set_theme(frame.view.theme);
        // The style of this frame was chosen before the theme was set.
        let style = ui.ctx().global_style();
        ui.set_style(style);
        scale::apply(ui, &mut frame);
        file_drop::show(ui, &mut frame);
        self.keyboard.handle_keys(ui, &mut frame);
        header::handle_keys(ui, &mut frame);
        if ui.input_mut(|input| input.consume_key(Modifiers::ALT, STAGE_KEY)) {
            self.on_stage = !self.on_stage;
        }

        // Panels are drawn in reading order, which Tab follows.
        let message = message::current(&frame.view);
        let is_wide = layout::is_wide(ui.max_rect().width());
        let mut browsing = if is_wide {
            !self.browser_closed
        } else {
            self.browser_instead
        };
        let needs = LayoutNeeds {
            message: message.is_some(),
            browser: browsing,
            play: play::is_needed(&frame.view),
            stage: self.on_stage,
            status_width: status_bar::width(frame.view.engine),
        };
        layout::show_all(ui, needs, |ui, areas| {
            areas.paint(ui);
            layout::show(ui, areas.header, |ui| {
                header::show(
                    ui,
                    &mut frame,
                    &mut self.preset_menu,
                    &mut browsing,
                    areas.is_header_wide,
                );
            });
            if let Some((message, area)) = message.zip(areas.message) {
                layout::show(ui, area, |ui| message::show(ui, &mut frame, message));
            }
            if let Some(area) = areas.browser {
                layout::show(ui, area, |ui| {
                    browser::show(ui, &mut frame, &mut self.browser)
                });
            }
            if let Some(area) = areas.middle {
                layout::show(ui, area, |ui| {
                    // Keeps all knobs within reach if the window is too small.
                    ScrollArea::both().auto_shrink(false).show(ui, |ui| {
                        if frame.view.tuner.open {
                            return tuner::show(ui, &mut frame, &mut self.strobe);
                        }
                        ui.set_min_width(PAGE_WIDTH);
                        knob_pages::show(
                            ui,
                            &mut frame,
                            &mut self.page,
                            &mut self.cabinet_menu,
                            &mut self.rig,
                            &mut self.pad,
                            &mut self.on_stage,
                        );
                        ui.add_space(theme::GAP);
                        scope::show(ui, frame.view.mixer);
                    });
                });
            }
            if let Some(area) = areas.mixer {
                layout::show(ui, area, |ui| {
                    meters::show(ui, &mut frame, &mut self.meters, areas.is_mixer_tall)
                });
            }
            if let Some(area) = areas.play {
                layout::show(ui, area, |ui| {
                    play::show(ui, &mut frame, &mut self.keyboard)
                });
            }
            if let Some(area) = areas.stage {
                let (meters, strobe) = (&mut self.meters, &mut self.strobe);
                layout::show(ui, area, |ui| {
                    stage::show(ui, &mut frame, meters, strobe, &mut self.on_stage);
                });
            }
            layout::show(ui, areas.status, |ui| {
                status_bar::show(
                    ui,
                    &mut frame,
                    &mut self.processing_menu,
                    areas.is_status_wide,
                );
            });
        });
        if is_wide {
            self.browser_closed = !browsing;
        } else {
            self.browser_instead = browsing;
        }

        consent::show(ui, &mut frame);

        let moving = frame.view.moving;
        let mut commands = frame.commands;
        self.gestures.end_frame(ui, &mut commands);
        self.pad.end_frame(&mut commands);
        if moving {
            ui.ctx().request_repaint_after(FRAME_INTERVAL);
        }
        commands
    }

    /// Ends gestures and releases held keys. To be called before the window closes.
    pub fn close(&mut self) -> Vec<WindowCommand> {
        let mut commands: Vec<WindowCommand> = self.gestures.release().into_iter().collect();
        self.pad.release(&mut commands);
        self.keyboard.release_all(&mut commands);
        commands
    }
}
