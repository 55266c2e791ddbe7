//! Connects baseview and egui.
//!
//! The framework's own crate for this (egui-baseview, up to 0.9.0) does not pass dragged files to
//! egui and has no hook for other events.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use baseview::dpi::{LogicalSize, Size};
use baseview::{
    DropEffect, Event, EventStatus, HandlerError, MouseCursor, MouseEvent, TimerHandle,
    WindowContext, WindowHandler, WindowSize,
};
use egui::{OutputCommand, Pos2, Rect, ViewportId, ViewportInfo, vec2};

use super::app::EditorApp;
use super::clipboard::Clipboard;
use super::cursor::cursor;
use super::gl_painter::GlPainter;
use super::input_events::{EventOutcome, InputEvents};
use super::redraw::RedrawFlag;
use super::window_host::SizeRequest;

/// Interval at which the redraw flag is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(16);

/// Event handler of one open window; used on the window's thread only.
pub struct EditorWindow {
    window: WindowContext,
    egui: egui::Context,
    redraw: RedrawFlag,
    /// Asks the host for a size.
    size_request: Option<SizeRequest>,
    opened: Instant,
    /// The first frame is drawn.
    drawn: Cell<bool>,
    /// Ticks until it is dropped.
    _timer: TimerHandle,
    /// Borrowed while a frame is drawn. Events that arrive during that time are ignored.
    inner: RefCell<Inner>,
}

struct Inner {
    // Dropped first, so that gestures and held notes end before the window closes.
    app: EditorApp,
    painter: GlPainter,
    events: InputEvents,
    clipboard: Clipboard,
    cursor: MouseCursor,
    /// Zoom of the last frame; 1 is 100 %.
    scale: f32,
}

/// Window changes that a frame requests; applied when nothing is borrowed.
#[derive(Default)]
struct WindowRequests {
    cursor: Option<MouseCursor>,
    size: Option<Size>,
}

impl EditorWindow {
    /// Attaches the content to a new window; a `scale` of 1 is 100 %.
    ///
    /// # Errors
    /// Returns an error if the window has no usable OpenGL context or no timer can be created.
    pub fn new(
        window: WindowContext,
        scale: f32,
        redraw: RedrawFlag,
        size_request: Option<SizeRequest>,
        mut app: EditorApp,
    ) -> Result<Self, HandlerError> {
        let painter = GlPainter::new(&window)?;
        let timer = window.create_timer(POLL_INTERVAL)?;
        let egui = egui::Context::default();
        // `set_zoom_factor` would apply from the second frame on.
        egui.options_mut(|options| options.zoom_factor = scale);
        let waker = window.waker();
        egui.set_request_repaint_callback(move |request| waker.request_redraw_after(request.delay));
        let size = window.size();
        app.open(size);
        let events = InputEvents::new(scale * size.scale_factor as f32);
        let (clipboard, cursor) = (Clipboard::default(), MouseCursor::Default);
        let inner = RefCell::new(Inner {
            app,
            painter,
            events,
            clipboard,
            cursor,
            scale,
        });
        let (opened, drawn) = (Instant::now(), Cell::new(false));
        Ok(Self {
            window,
            egui,
            redraw,
            size_request,
            opened,
            drawn,
            _timer: timer,
            inner,
        })
    }

    fn poll_redraw(&self) {
        if self.redraw.take() {
            self.request_redraw();
        }
    }

    /// Requests a frame, except before the first, which the window draws by itself once it is
    /// shown: baseview 0.4.2 would wait for ever for the answer to a request by a window that is
    /// not shown. Ardour shows it long after it has created it.
    fn request_redraw(&self) {
        if self.drawn.get() {
            self.window.request_redraw();
        }
    }
}

impl Inner {
    fn draw(
        &mut self,
        egui: &egui::Context,
        size: WindowSize,
        time: Duration,
    ) -> Result<WindowRequests, HandlerError> {
        let density = size.scale_factor as f32;
        let points =
            vec2(size.physical.width as f32, size.physical.height as f32) / (density * self.scale);
        let rect = Rect::from_min_size(Pos2::ZERO, points);
        let mut raw = self.events.take(density * self.scale);
        let native_pixels_per_point = Some(density);
        let focused = Some(raw.focused);
        let viewport = ViewportInfo {
            native_pixels_per_point,
            inner_rect: Some(rect),
            focused,
            ..Default::default()
        };
        raw.viewports.insert(ViewportId::ROOT, viewport);
        raw.screen_rect = Some(rect);
        raw.max_texture_side = Some(self.painter.max_texture_side());
        raw.time = Some(time.as_secs_f64());

        let mut output = egui.run_ui(raw, |ui| self.app.ui(ui, size));
        let shapes = egui.tessellate(output.shapes, output.pixels_per_point);
        self.painter.paint(
            size.physical,
            output.pixels_per_point,
            &shapes,
            &mut output.textures_delta,
        )?;
        for command in output.platform_output.commands {
            if let OutputCommand::CopyText(text) = command {
                self.clipboard.put(text);
            }
        }

        let mut requests = WindowRequests::default();
        let cursor = cursor(output.platform_output.cursor_icon);
        if std::mem::replace(&mut self.cursor, cursor) != cursor {
            requests.cursor = Some(cursor);
        }
        // Content at another scale needs a window of another size.
        let scale = egui.zoom_factor();
        if std::mem::replace(&mut self.scale, scale) != scale {
            let [width, height] = [points.x * scale, points.y * scale].map(f64::from);
            requests.size = Some(LogicalSize::new(width, height).into());
        }
        Ok(requests)
    }
}

impl WindowHandler for EditorWindow {
    fn draw(&self) -> Result<(), HandlerError> {
        self.drawn.set(true);
        let Ok(mut inner) = self.inner.try_borrow_mut() else {
            return Ok(());
        };
        let requests = inner.draw(&self.egui, self.window.size(), self.opened.elapsed())?;
        // Some systems call back during the calls below.
        drop(inner);
        if let Some(cursor) = requests.cursor {
            // A wrong cursor does no harm.
            let _ = self.window.set_mouse_cursor(cursor);
        }
        match (requests.size, &self.size_request) {
            (Some(size), Some(host)) => host.send(size),
            (Some(size), None) => drop(self.window.resize(size)),
            (None, _) => {}
        }
        Ok(())
    }

    fn poll(&self) {
        self.poll_redraw();
    }

    fn on_timer(&self, _: &TimerHandle) {
        self.poll_redraw();
    }

    fn resized(&self, _: WindowSize) -> Result<(), HandlerError> {
        // Every frame reads the size, and one is drawn after this event.
        Ok(())
    }

    fn on_event(&self, event: Event) -> EventStatus {
        let pressed = matches!(event, Event::Mouse(MouseEvent::ButtonPressed { .. }));
        if pressed && !self.window.has_focus() {
            // Not all hosts give an embedded window the focus on a click.
            let _ = self.window.focus();
        }
        let Ok(mut inner) = self.inner.try_borrow_mut() else {
            return EventStatus::Ignored;
        };
        let Inner {
            events, clipboard, ..
        } = &mut *inner;
        let outcome = events.handle(&event);
        if outcome == EventOutcome::Paste
            && let Some(text) = clipboard.text()
        {
            events.paste(&text);
        }
        drop(inner);
        if outcome != EventOutcome::Ignored {
            self.request_redraw();
        }
        match event {
            // Keys go to the host unless a text field is active: the space bar should start its
            // transport.
            Event::Keyboard(_) if !self.egui.egui_wants_keyboard_input() => EventStatus::Ignored,
            Event::Mouse(_) if outcome == EventOutcome::FileDrag => {
                EventStatus::AcceptDrop(DropEffect::Copy)
            }
            _ => EventStatus::Captured,
        }
    }
}
