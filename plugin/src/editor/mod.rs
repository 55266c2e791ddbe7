//! The window: [`ondes_ui`]'s panels around one instance.
//!
//! In reading order: [`owner`] is what the panels show, [`commands`] what becomes of what the user does, through [`places`],
//! the parameters by number. [`monitor`] is what the audio thread shows and [`spectrum`] a picture of it, [`entries`] the list
//! of models, [`presets`] that of presets. A [`setting`] is all that is heard, and [`compare`] the slots A and B for two of
//! them. Everything but the monitor and the slots is made when the window opens and gone when it closes.

pub mod commands;
pub mod compare;
pub mod entries;
pub mod monitor;
pub mod owner;
pub mod places;
pub mod presets;
pub mod setting;
pub mod spectrum;

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use nice_plug::context::gui::GuiContext;
use nice_plug::editor::dpi::{LogicalSize, NativeSize};
use nice_plug::editor::{HostMethods, ParentWindowHandle, ResizeHint, SpawnedEditor};
use nice_plug_egui::{
    EguiEditorHandle, EguiEditorState, EguiNiceSettings, Frame, NiceEguiApp,
    baseview::{HandlerError, WindowSize},
    create_egui_editor,
};
use ondes_ui::{SCALES, SIZE, Window, clamp_scale};

use self::compare::Compare;
use self::entries::{Entries, marks_file};
use self::owner::Desk;
use crate::parameters::Parameters;
use crate::shared::Shared;

/// Opens windows for an instance.
pub struct Editor {
    shared: Arc<Shared>,
    parameters: Arc<Parameters>,
    compare: Arc<Compare>,
    extent: Arc<Extent>,
}

/// How large the window is, or was last, and whether it is open.
#[derive(Default)]
struct Extent(Mutex<(Option<WindowSize>, bool)>);

impl Extent {
    fn get(&self) -> (Option<WindowSize>, bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, size: Option<WindowSize>, open: bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (size, open);
    }
}

impl Editor {
    /// An editor whose window is not open yet.
    #[must_use]
    pub fn new(shared: &Arc<Shared>, parameters: &Arc<Parameters>) -> Self {
        let (shared, parameters, compare) = (shared.clone(), parameters.clone(), shared.compare.clone());
        Self { shared, parameters, compare, extent: Arc::default() }
    }

    fn scale(&self) -> f32 {
        clamp_scale(self.shared.look().scale)
    }
}

impl nice_plug::editor::Editor for Editor {
    type Handle = EguiEditorHandle;

    fn spawn(
        &self,
        parent: Option<ParentWindowHandle>,
        wait_for_parent: bool,
        fallback_scale_factor: Option<f64>,
        gui_context: GuiContext,
        host: Option<HostMethods>,
    ) -> Result<SpawnedEditor<Self::Handle>, Box<dyn Error>> {
        // Anew for each window: the toolkit's own editor is bound to one scale, which a project may change before it opens.
        let [width, height] = SIZE;
        let state = EguiEditorState::from_size(LogicalSize::new(width, height), self.scale());
        let (shared, parameters) = (self.shared.clone(), self.parameters.clone());
        let wake = shared.monitor.wake.clone();
        let app = App {
            desk: Desk::new(shared, parameters, Entries::new(marks_file()), self.compare.clone()),
            window: Window::new(),
            context: None,
            extent: self.extent.clone(),
        };
        let settings = EguiNiceSettings::new().with_tile("Ondes").with_resize_hint(self.resize_hint());
        let editor = create_egui_editor(state, wake, settings, app).ok_or("there is no editor")?;
        editor.spawn(parent, wait_for_parent, fallback_scale_factor, gui_context, host)
    }

    fn size(&self) -> NativeSize<u32> {
        match self.extent.get() {
            (Some(size), true) => NativeSize::from_logical_or_physical(size.logical, size.physical),
            (last, _) => {
                let [width, height] = SIZE.map(|side| f64::from(side * self.scale()));
                let density = last.map_or(1.0, |size| size.scale_factor);
                NativeSize::from_size(LogicalSize::new(width, height).into(), density)
            }
        }
    }

    fn resize_hint(&self) -> ResizeHint {
        // Without this the toolkit does not let the window choose its size either. What a user drags gives room; the window's
        // menu makes things larger.
        let [width, height] = SIZE.map(|side| side * SCALES[0]);
        ResizeHint::resizable().with_min_logical_size(LogicalSize::new(width, height))
    }
}

/// One open window.
struct App {
    desk: Desk,
    window: Window,
    context: Option<GuiContext>,
    extent: Arc<Extent>,
}

impl NiceEguiApp for App {
    fn build(&mut self, _: egui::Context, context: GuiContext, frame: &mut Frame) -> Result<(), HandlerError> {
        self.context = Some(context);
        self.desk.shared.monitor.set_open(true);
        self.extent.set(Some(frame.baseview_window().size()), true);
        Ok(())
    }

    fn ui(&mut self, ui: &mut egui::Ui, frame: &mut Frame) {
        let Self { desk, window, context, extent } = self;
        extent.set(Some(frame.baseview_window().size()), true);
        let again = desk.refresh();
        commands::tick(desk);
        if let Some(context) = context {
            presets::tick(desk, context);
        }
        let commands = window.show(ui, desk);
        if !commands.is_empty() {
            ui.ctx().request_repaint();
        }
        if let Some(context) = context {
            commands.into_iter().for_each(|command| commands::obey(desk, context, command));
        }
        if let Some(again) = again {
            ui.ctx().request_repaint_after(again);
        }
    }
}

impl Drop for App {
    fn drop(&mut self) {
        self.desk.shared.monitor.set_open(false);
        self.extent.set(self.extent.get().0, false);
        let ends = self.window.close();
        if let Some(context) = &self.context {
            ends.into_iter().for_each(|end| commands::obey(&mut self.desk, context, end));
        }
    }
}
