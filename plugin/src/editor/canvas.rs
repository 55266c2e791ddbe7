//! What a window is painted on: its OpenGL context.

use std::mem::ManuallyDrop;
use std::sync::Arc;

use baseview::dpi::PhysicalSize;
use baseview::gl::GlContext;
use baseview::{HandlerError, WindowContext};
use egui::{ClippedPrimitive, TexturesDelta};
use egui_glow::{Painter, glow};

/// Paints one window, on the thread that the window lives on.
pub struct Canvas {
    context: GlContext,
    /// Never destroyed: what it has in the context goes with the context, which cannot be entered once the host has taken the
    /// window away. A few kilobytes stay.
    painter: ManuallyDrop<Painter>,
}

impl Canvas {
    /// The canvas of a window that was made with OpenGL.
    ///
    /// # Errors
    /// When the system has no OpenGL that can be painted with.
    pub fn new(window: &WindowContext) -> Result<Self, HandlerError> {
        let no_context = || HandlerError::from_boxed("the window has no OpenGL".into());
        let context = window.gl_context().ok_or_else(no_context)?;
        let painter = with(&context, || {
            // SAFETY: the context is current, so that what it gives for a name is that function or nothing.
            let gl = unsafe { glow::Context::from_loader_function_cstr(|name| context.get_proc_address(name)) };
            Painter::new(Arc::new(gl), "", None, true)
        })??;
        Ok(Self { context, painter: ManuallyDrop::new(painter) })
    }

    /// The longest side of a texture, pixels.
    pub fn max_texture_side(&self) -> usize {
        self.painter.max_texture_side()
    }

    /// Shows a picture of that size; takes the textures that have changed.
    ///
    /// # Errors
    /// When the window cannot be painted any more.
    pub fn paint(
        &mut self,
        size: PhysicalSize<u32>,
        pixels_per_point: f32,
        shapes: &[ClippedPrimitive],
        textures: &mut TexturesDelta,
    ) -> Result<(), HandlerError> {
        let Self { context, painter } = self;
        let size = [size.width, size.height];
        with(context, || {
            painter.clear(size, [0.0, 0.0, 0.0, 1.0]);
            painter.paint_and_update_textures(size, pixels_per_point, shapes, textures);
            context.swap_buffers()
        })??;
        Ok(())
    }
}

/// Does something with the context, which is this thread's only meanwhile: hosts and other plugins have contexts of their own.
fn with<R>(context: &GlContext, deed: impl FnOnce() -> R) -> Result<R, baseview::Error> {
    // SAFETY: this is the window's thread, and nothing else paints on it before the context is given back below.
    unsafe { context.make_current() }?;
    let done = deed();
    // SAFETY: as above.
    unsafe { context.make_not_current() }?;
    Ok(done)
}
