//! Draws a window by OpenGL.

use std::mem::ManuallyDrop;
use std::sync::Arc;

use baseview::dpi::PhysicalSize;
use baseview::gl::GlContext;
use baseview::{HandlerError, WindowContext};
use egui::{ClippedPrimitive, TexturesDelta};
use egui_glow::{Painter, glow};

/// Painter of one window; used on the window's thread.
pub struct GlPainter {
    context: GlContext,
    /// Never dropped: dropping needs a current context, which is impossible once the host has
    /// destroyed the window. The GL objects end with the context; a few kilobytes leak.
    painter: ManuallyDrop<Painter>,
}

impl GlPainter {
    /// Creates the painter of a window with an OpenGL context.
    ///
    /// # Errors
    /// Returns an error if the window has no context, or OpenGL is too old.
    pub fn new(window: &WindowContext) -> Result<Self, HandlerError> {
        let no_context = || HandlerError::from_boxed("the window has no OpenGL context".into());
        let context = window.gl_context().ok_or_else(no_context)?;
        let painter = with_current(&context, || {
            // SAFETY: the context is current, so that it returns the function of that name, or
            // null.
            let gl = unsafe {
                glow::Context::from_loader_function_cstr(|name| context.get_proc_address(name))
            };
            Painter::new(Arc::new(gl), "", None, true)
        })??;
        Ok(Self {
            context,
            painter: ManuallyDrop::new(painter),
        })
    }

    /// Returns the largest texture side in pixels.
    pub fn max_texture_side(&self) -> usize {
        self.painter.max_texture_side()
    }

    /// Draws a frame of `size` pixels and applies the texture changes.
    ///
    /// # Errors
    /// Returns an error if the context cannot be made current or the buffers cannot be swapped.
    pub fn paint(
        &mut self,
        size: PhysicalSize<u32>,
        pixels_per_point: f32,
        shapes: &[ClippedPrimitive],
        textures: &mut TexturesDelta,
    ) -> Result<(), HandlerError> {
        let Self { context, painter } = self;
        let size = [size.width, size.height];
        with_current(context, || {
            painter.clear(size, [0.0, 0.0, 0.0, 1.0]);
            painter.paint_and_update_textures(size, pixels_per_point, shapes, textures);
            context.swap_buffers()
        })??;
        Ok(())
    }
}

/// Calls `body` with the context current, and releases it after: hosts and other plugins use
/// contexts of their own on this thread.
fn with_current<R>(context: &GlContext, body: impl FnOnce() -> R) -> Result<R, baseview::Error> {
    // SAFETY: this is the window's thread, and no other context is used on it until this one is
    // released below.
    unsafe { context.make_current() }?;
    let result = body();
    // SAFETY: as above.
    unsafe { context.make_not_current() }?;
    Ok(result)
}
