//! The plugin's window: the view model of one instance, embedded in the host's window.
//!
//! An [`Editor`] opens windows for the framework, which holds each as an [`open_window`] and
//! controls it by a [`handle`]; the `window_host` is asked for the window's size. `window` connects baseview and egui: it translates `input_events`,
//! draws the `app` with a `gl_painter`, and repaints on request of the [`redraw`] flag.

mod app;
mod clipboard;
mod cursor;
#[allow(
    unsafe_code,
    reason = "OpenGL calls require a current context; each block says why it is"
)]
mod gl_painter;
pub mod handle;
mod input_events;
pub mod open_window;
pub mod redraw;
mod window;
mod window_host;

use std::error::Error;
use std::sync::Arc;

use baseview::gl::GlConfig;
use baseview::{Window, WindowSettings};
use nice_plug::context::gui::GuiContext;
use nice_plug::editor::dpi::{LogicalSize, NativeSize};
use nice_plug::editor::{HostMethods, ParentWindowHandle, ResizeHint, SpawnedEditor};
use ondes_player::instance::InstanceHandle;
use ondes_ui::{SCALES, SIZE, clamp_scale};

use self::app::{EditorApp, WindowExtent};
use self::handle::WindowHandle;
use self::open_window::{OpenWindow, ThreadExit};
use self::redraw::RedrawFlag;
use self::window::EditorWindow;
use self::window_host::baseview_host;
use crate::parameters::HostParameters;
use crate::plugin_core::PluginCore;

/// Opens windows for an instance.
pub struct Editor {
    instance: Arc<InstanceHandle>,
    parameters: Arc<HostParameters>,
    redraw: RedrawFlag,
    extent: Arc<WindowExtent>,
}

impl Editor {
    /// Creates an editor without an open window.
    #[must_use]
    pub fn new(core: &PluginCore) -> Self {
        let (instance, parameters, redraw) = (
            core.instance.clone(),
            core.parameters.clone(),
            core.redraw.clone(),
        );
        Self {
            instance,
            parameters,
            redraw,
            extent: Arc::default(),
        }
    }

    fn scale(&self) -> f32 {
        clamp_scale(self.instance.read_state(|state| state.window).scale)
    }
}

impl nice_plug::editor::Editor for Editor {
    type Handle = WindowHandle;

    fn spawn(
        &self,
        parent: Option<ParentWindowHandle>,
        wait_for_parent: bool,
        fallback_scale_factor: Option<f64>,
        _: GuiContext,
        host: Option<HostMethods>,
    ) -> Result<SpawnedEditor<Self::Handle>, Box<dyn Error>> {
        let app = EditorApp::new(
            self.instance.clone(),
            self.parameters.clone(),
            self.extent.clone(),
        );
        let (scale, redraw, resize_hint) = (self.scale(), self.redraw.clone(), self.resize_hint());
        let [width, height] = SIZE.map(|side| f64::from(side * scale));
        let settings = WindowSettings::new()
            .with_title("Ondes")
            .with_size(LogicalSize::new(width, height))
            .with_min_size(smallest_size())
            .with_parent(parent.as_ref())
            .with_wait_for_parent(wait_for_parent)
            .with_fallback_scale_factor(fallback_scale_factor)
            .with_gl_config(GlConfig::default());
        let (exit, exited) = ThreadExit::new();
        let (baseview_host, host, request) = match host.map(baseview_host) {
            Some((baseview_host, host, request)) => {
                (Some(baseview_host), Some(host), Some(request))
            }
            None => (None, None, None),
        };
        let handler = move |window| {
            exit.bind_to_thread();
            EditorWindow::new(window, scale, redraw, request, app)
        };
        let window = Window::create_with_host(settings, handler, baseview_host)?;
        let window = OpenWindow::new(window, exited, host);
        Ok(SpawnedEditor {
            handle: WindowHandle {
                redraw: self.redraw.clone(),
                resize_hint,
            },
            window,
        })
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
        // The framework requires a resizable window also for sizes that the plugin requests.
        // Dragging adds room; the window's menu sets the scale.
        ResizeHint::resizable().with_min_logical_size(smallest_size())
    }
}

/// Returns the smallest size in which all panels can be reached.
fn smallest_size() -> LogicalSize<f32> {
    let [width, height] = SIZE.map(|side| side * SCALES[0]);
    LogicalSize::new(width, height)
}
