//! The window: the desk of one instance, in a host's window.
//!
//! In reading order: an [`Editor`] opens windows for the framework, which holds each as [`opened`], by a [`handle`]. A
//! [`window`] is what the system knows: it hears [`events`], paints on a [`canvas`], and is asked by a [`wake`] for new
//! pictures. [`cursor`] and [`clipboard`] are the system's too.

#[allow(unsafe_code, reason = "a context of OpenGL is only promised to be there; each block says why it is")]
mod canvas;
mod clipboard;
mod cursor;
mod events;
pub mod handle;
pub mod opened;
pub mod wake;
mod window;

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use baseview::gl::GlConfig;
use baseview::{Window as SystemWindow, WindowSettings, WindowSize};
use nice_plug::context::gui::GuiContext;
use nice_plug::editor::dpi::{LogicalSize, NativeSize};
use nice_plug::editor::{HostMethods, ParentWindowHandle, ResizeHint, SpawnedEditor};
use nice_plug::prelude::Param;
use ondes_processor::board::Setter;
use ondes_processor::desk::entries::{Entries, marks_file};
use ondes_processor::desk::{self, Desk};
use ondes_processor::shared::Shared;
use ondes_ui::{KnobId, SCALES, SIZE, Window, clamp_scale};

use self::handle::{Handle, host};
use self::opened::{Ending, Opened};
use self::wake::Wake;
use self::window::Pane;
use crate::parameters::Parameters;
use crate::places::{Place, with};
use crate::rig::Rig;

/// Opens windows for an instance.
pub struct Editor {
    shared: Arc<Shared>,
    parameters: Arc<Parameters>,
    wake: Wake,
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
    type Handle = Handle;

    fn spawn(
        &self,
        parent: Option<ParentWindowHandle>,
        wait_for_parent: bool,
        fallback_scale_factor: Option<f64>,
        gui_context: GuiContext,
        host: Option<HostMethods>,
    ) -> Result<SpawnedEditor<Self::Handle>, Box<dyn Error>> {
        let (shared, parameters) = (self.shared.clone(), self.parameters.clone());
        let app = App {
            desk: Desk::new(shared.clone(), parameters.clone(), Entries::new(marks_file())),
            shared,
            parameters,
            window: Window::new(),
            context: gui_context,
            extent: self.extent.clone(),
        };
        let (scale, wake, resize_hint) = (self.scale(), self.wake.clone(), self.resize_hint());
        let [width, height] = SIZE.map(|side| f64::from(side * scale));
        let settings = WindowSettings::new()
            .with_title("Ondes")
            .with_size(LogicalSize::new(width, height))
            .with_min_size(smallest())
            .with_parent(parent.as_ref())
            .with_wait_for_parent(wait_for_parent)
            .with_fallback_scale_factor(fallback_scale_factor)
            .with_gl_config(GlConfig::default());
        let (ending, ended) = Ending::new();
        let pane = move |window| {
            ending.keep();
            Pane::new(window, scale, wake, app)
        };
        let window = SystemWindow::create_with_host(settings, pane, host.map(self::host))?;
        let window = Opened::new(window, ended);
        Ok(SpawnedEditor { handle: Handle { wake: self.wake.clone(), resize_hint }, window })
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
        // Without this the framework does not let the window choose its size either. What a user drags gives room; the window's
        // menu makes things larger.
        ResizeHint::resizable().with_min_logical_size(smallest())
    }
}

/// The smallest window that all panels can be reached in.
fn smallest() -> LogicalSize<f32> {
    let [width, height] = SIZE.map(|side| side * SCALES[0]);
    LogicalSize::new(width, height)
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

/// What an open window shows, and who learns of it.
struct App {
    shared: Arc<Shared>,
    parameters: Arc<Parameters>,
    desk: Desk,
    window: Window,
    context: GuiContext,
    extent: Arc<Extent>,
}

impl App {
    /// The window is there.
    fn open(&mut self, size: WindowSize) {
        self.shared.monitor.set_open(true);
        self.extent.set(Some(size), true);
    }

    fn ui(&mut self, ui: &mut egui::Ui, size: WindowSize) {
        let Self { parameters, desk, window, context, extent, .. } = self;
        extent.set(Some(size), true);
        desk::show(desk, window, ui, &Host { context, parameters });
    }
}

impl Drop for App {
    fn drop(&mut self) {
        self.shared.monitor.set_open(false);
        self.extent.set(self.extent.get().0, false);
        let Self { parameters, desk, window, context, .. } = self;
        desk::close(desk, window, &Host { context, parameters });
    }
}
