//! A window of the system that shows the desk: the least that is needed between baseview and egui.
//!
//! There are crates that do this, but the one made for the framework (egui-baseview, up to 0.9.0) does not tell egui of files
//! that are dragged, and lets nobody else listen.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use baseview::dpi::{LogicalSize, Size};
use baseview::{
    DropEffect, Event, EventStatus, HandlerError, MouseCursor, MouseEvent, TimerHandle, WindowContext, WindowHandler,
    WindowSize,
};
use egui::{OutputCommand, Pos2, Rect, ViewportId, ViewportInfo, vec2};

use super::App;
use super::canvas::Canvas;
use super::clipboard::Clipboard;
use super::cursor::cursor;
use super::events::{Events, Heard};
use super::wake::Wake;

/// How often the window looks whether somebody outside wants a new picture.
const LOOK: Duration = Duration::from_millis(16);

/// One open window; all of this is on the window's thread.
pub struct Pane {
    window: WindowContext,
    egui: egui::Context,
    wake: Wake,
    begun: Instant,
    /// It ticks as long as this is kept.
    _timer: TimerHandle,
    /// In use while a picture is drawn. What the system or the host says within that time goes by unheard.
    inner: RefCell<Inner>,
}

struct Inner {
    // Dropped first: what is held ends before the window goes.
    app: App,
    canvas: Canvas,
    events: Events,
    clipboard: Clipboard,
    cursor: MouseCursor,
    /// Of the last picture, 1 is 100 %.
    scale: f32,
}

/// What the window has to do after a picture, when nothing is in use.
#[derive(Default)]
struct Wishes {
    cursor: Option<MouseCursor>,
    size: Option<Size>,
}

impl Pane {
    /// Opens for an app in a window that is there, with contents of that scale, 1 is 100 %.
    ///
    /// # Errors
    /// When the window cannot be painted on.
    pub fn new(window: WindowContext, scale: f32, wake: Wake, mut app: App) -> Result<Self, HandlerError> {
        let canvas = Canvas::new(&window)?;
        let timer = window.create_timer(LOOK)?;
        let egui = egui::Context::default();
        // Setting the zoom as one does later would count from the second picture on.
        egui.options_mut(|options| options.zoom_factor = scale);
        let waker = window.waker();
        egui.set_request_repaint_callback(move |request| waker.request_redraw_after(request.delay));
        let size = window.size();
        app.open(size);
        let events = Events::new(scale * size.scale_factor as f32);
        let (clipboard, cursor) = (Clipboard::default(), MouseCursor::Default);
        let inner = RefCell::new(Inner { app, canvas, events, clipboard, cursor, scale });
        Ok(Self { window, egui, wake, begun: Instant::now(), _timer: timer, inner })
    }

    fn look(&self) {
        if self.wake.take() {
            self.window.request_redraw();
        }
    }
}

impl Inner {
    fn draw(&mut self, egui: &egui::Context, size: WindowSize, time: Duration) -> Result<Wishes, HandlerError> {
        let density = size.scale_factor as f32;
        let points = vec2(size.physical.width as f32, size.physical.height as f32) / (density * self.scale);
        let rect = Rect::from_min_size(Pos2::ZERO, points);
        let mut raw = self.events.take(density * self.scale);
        let native_pixels_per_point = Some(density);
        let focused = Some(raw.focused);
        let viewport = ViewportInfo { native_pixels_per_point, inner_rect: Some(rect), focused, ..Default::default() };
        raw.viewports.insert(ViewportId::ROOT, viewport);
        raw.screen_rect = Some(rect);
        raw.max_texture_side = Some(self.canvas.max_texture_side());
        raw.time = Some(time.as_secs_f64());

        let mut output = egui.run_ui(raw, |ui| self.app.ui(ui, size));
        let shapes = egui.tessellate(output.shapes, output.pixels_per_point);
        self.canvas.paint(size.physical, output.pixels_per_point, &shapes, &mut output.textures_delta)?;
        for command in output.platform_output.commands {
            if let OutputCommand::CopyText(text) = command {
                self.clipboard.put(text);
            }
        }

        let mut wishes = Wishes::default();
        let cursor = cursor(output.platform_output.cursor_icon);
        if std::mem::replace(&mut self.cursor, cursor) != cursor {
            wishes.cursor = Some(cursor);
        }
        // The same contents in another scale need a window of another size.
        let scale = egui.zoom_factor();
        if std::mem::replace(&mut self.scale, scale) != scale {
            let [width, height] = [points.x * scale, points.y * scale].map(f64::from);
            wishes.size = Some(LogicalSize::new(width, height).into());
        }
        Ok(wishes)
    }
}

impl WindowHandler for Pane {
    fn draw(&self) -> Result<(), HandlerError> {
        let Ok(mut inner) = self.inner.try_borrow_mut() else { return Ok(()) };
        let wishes = inner.draw(&self.egui, self.window.size(), self.begun.elapsed())?;
        // Some systems call back at once.
        drop(inner);
        if let Some(cursor) = wishes.cursor {
            // One that looks otherwise does no harm.
            let _ = self.window.set_mouse_cursor(cursor);
        }
        if let Some(size) = wishes.size {
            // A host may refuse; the contents are then as large as there is room.
            let _ = self.window.resize(size);
        }
        Ok(())
    }

    fn poll(&self) {
        self.look();
    }

    fn on_timer(&self, _: &TimerHandle) {
        self.look();
    }

    fn resized(&self, _: WindowSize) -> Result<(), HandlerError> {
        // Each picture looks at the size, and one is drawn after this.
        Ok(())
    }

    fn on_event(&self, event: Event) -> EventStatus {
        let pressed = matches!(event, Event::Mouse(MouseEvent::ButtonPressed { .. }));
        if pressed && !self.window.has_focus() {
            // Not all hosts let a window in theirs have the keyboard when it is clicked.
            let _ = self.window.focus();
        }
        let Ok(mut inner) = self.inner.try_borrow_mut() else { return EventStatus::Ignored };
        let Inner { events, clipboard, .. } = &mut *inner;
        let heard = events.hear(&event);
        if heard == Heard::Paste
            && let Some(text) = clipboard.text()
        {
            events.paste(&text);
        }
        drop(inner);
        if heard != Heard::Nothing {
            self.window.request_redraw();
        }
        match event {
            // Keys are the host's unless somebody types here: the space bar is to start it.
            Event::Keyboard(_) if !self.egui.egui_wants_keyboard_input() => EventStatus::Ignored,
            Event::Mouse(_) if heard == Heard::Files => EventStatus::AcceptDrop(DropEffect::Copy),
            _ => EventStatus::Captured,
        }
    }
}
