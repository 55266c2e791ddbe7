//! The framework's handle of an open window.

use baseview::WindowSize;
use nice_plug::editor::dpi::NativeSize;
use nice_plug::editor::{EditorHandle, ParentWindowHandle, ResizeHint};

use super::open_window::OpenWindow;
use super::redraw::RedrawFlag;

/// Forwards the host's requests to the window.
pub struct WindowHandle {
    /// Requests a repaint.
    pub(super) redraw: RedrawFlag,
    /// Size constraints.
    pub(super) resize_hint: ResizeHint,
}

impl EditorHandle for WindowHandle {
    type Window = OpenWindow;
    type Error = baseview::Error;

    fn run_until_closed(window: OpenWindow) -> Result<(), Self::Error> {
        window.run_until_closed()
    }

    fn set_parent(
        &self,
        parent: ParentWindowHandle,
        window: &OpenWindow,
    ) -> Result<(), Self::Error> {
        window.set_parent(&parent)
    }

    fn show(&self, window: &OpenWindow) -> Result<(), Self::Error> {
        let shown = window.show();
        // Not all systems request the first frame.
        self.redraw.request();
        shown
    }

    fn hide(&self, window: &OpenWindow) -> Result<(), Self::Error> {
        window.hide()
    }

    fn set_size(&self, size: NativeSize<u32>, window: &OpenWindow) -> Result<(), Self::Error> {
        window.resize(size)
    }

    fn host_main_thread_callback(&self, window: &OpenWindow) {
        if let Some(host) = window.host()
            && let Some(size) = host.accept_size(window.size().scale_factor)
        {
            // The host may have done so already. A refusal leaves the content less room.
            let _ = window.resize(size);
        }
        window.host_main_thread_callback();
    }

    fn adjust_size(&self, size: NativeSize<u32>, window: &OpenWindow) -> Option<NativeSize<u32>> {
        let WindowSize {
            logical,
            physical,
            scale_factor,
        } = window.size();
        Some(self.resize_hint.adjust_size(
            size,
            NativeSize::from_logical_or_physical(logical, physical),
            scale_factor,
        ))
    }

    fn set_fallback_scale_factor(
        &self,
        scale_factor: f64,
        window: &OpenWindow,
    ) -> Result<(), Self::Error> {
        window.suggest_fallback_scale_factor(scale_factor)
    }

    fn state_changed(&self) {
        self.redraw.request();
    }

    fn param_value_changed(&self, _: &str, _: f32) {
        self.redraw.request();
    }

    fn param_modulation_changed(&self, _: &str, _: f32) {
        self.redraw.request();
    }
}
