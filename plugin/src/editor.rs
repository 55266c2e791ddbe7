//! The window: the desk of one instance, in a host's window.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use nice_plug::context::gui::GuiContext;
use nice_plug::editor::dpi::{LogicalSize, NativeSize};
use nice_plug::editor::{HostMethods, ParentWindowHandle, ResizeHint, SpawnedEditor};
use nice_plug::prelude::Param;
use nice_plug_egui::{
    EguiEditorHandle, EguiEditorState, EguiNiceSettings, Frame, NiceEguiApp, RepaintNotifier,
    baseview::{HandlerError, WindowSize},
    create_egui_editor,
};
use ondes_instance::board::Setter;
use ondes_instance::desk::entries::{Entries, marks_file};
use ondes_instance::desk::{self, Desk};
use ondes_instance::shared::Shared;
use ondes_ui::{KnobId, SCALES, SIZE, Window, clamp_scale};

use crate::parameters::Parameters;
use crate::places::{Place, with};
use crate::rig::Rig;

/// Opens windows for an instance.
pub struct Editor {
    shared: Arc<Shared>,
    parameters: Arc<Parameters>,
    wake: RepaintNotifier,
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
    pub fn new(rig: &Rig) -> Self {
        let (shared, parameters, wake) = (rig.shared.clone(), rig.parameters.clone(), rig.wake.clone());
        Self { shared, parameters, wake, extent: Arc::default() }
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
        let app = App {
            desk: Desk::new(shared.clone(), parameters.clone(), Entries::new(marks_file())),
            shared,
            parameters,
            window: Window::new(),
            context: None,
            extent: self.extent.clone(),
        };
        let settings = EguiNiceSettings::new().with_tile("Ondes").with_resize_hint(self.resize_hint());
        let editor = create_egui_editor(state, self.wake.clone(), settings, app).ok_or("there is no editor")?;
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

/// Turns parameters so that the host learns of it.
struct Host<'a> {
    context: &'a GuiContext,
    parameters: &'a Parameters,
}

impl Host<'_> {
    fn at(&self, knob: KnobId, deed: impl FnOnce(Place<'_>)) {
        if let Some(place) = Place::of(self.parameters, knob) {
            deed(place);
        }
    }
}

impl Setter for Host<'_> {
    fn begin(&self, knob: KnobId) {
        self.at(knob, |place| with!(place, param => self.context.param_setter().begin_set_parameter(param)));
    }

    fn set(&self, knob: KnobId, position: f32) {
        // By its plain value, so that what has steps stands on one of them.
        self.at(knob, |place| {
            with!(place, param => self.context.param_setter().set_parameter(param, param.preview_plain(position)));
        });
    }

    fn end(&self, knob: KnobId) {
        self.at(knob, |place| with!(place, param => self.context.param_setter().end_set_parameter(param)));
    }
}

/// One open window.
struct App {
    shared: Arc<Shared>,
    parameters: Arc<Parameters>,
    desk: Desk,
    window: Window,
    context: Option<GuiContext>,
    extent: Arc<Extent>,
}

impl NiceEguiApp for App {
    fn build(&mut self, _: egui::Context, context: GuiContext, frame: &mut Frame) -> Result<(), HandlerError> {
        self.context = Some(context);
        self.shared.monitor.set_open(true);
        self.extent.set(Some(frame.baseview_window().size()), true);
        Ok(())
    }

    fn ui(&mut self, ui: &mut egui::Ui, frame: &mut Frame) {
        let Self { parameters, desk, window, context, extent, .. } = self;
        extent.set(Some(frame.baseview_window().size()), true);
        if let Some(context) = context {
            desk::show(desk, window, ui, &Host { context, parameters });
        }
    }
}

impl Drop for App {
    fn drop(&mut self) {
        self.shared.monitor.set_open(false);
        self.extent.set(self.extent.get().0, false);
        let Self { parameters, desk, window, context, .. } = self;
        if let Some(context) = context {
            desk::close(desk, window, &Host { context, parameters });
        }
    }
}
