//! Where the panels are.

use egui::{Rect, Ui, UiBuilder, Vec2, pos2, vec2};

use super::theme::Palette;

/// Heights and widths, points.
const HEADER: f32 = 52.0;
const MESSAGE: f32 = 38.0;
const BROWSER: f32 = 260.0;
const MIXER: f32 = 182.0;
const PLAY: f32 = 78.0;
const ENGINE: f32 = 34.0;

/// A panel, and how far from its edges it stays.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    name: &'static str,
    rect: Rect,
    margin: Vec2,
}

/// All panels.
pub(crate) struct Places {
    pub header: Place,
    pub message: Option<Place>,
    pub browser: Option<Place>,
    pub middle: Place,
    pub mixer: Place,
    pub play: Place,
    pub engine: Place,
    all: Rect,
}

impl Places {
    pub fn of(all: Rect, message: bool, browsing: bool) -> Self {
        let mut rest = all;
        let mut top = |height: f32| {
            let (cut, below) = rest.split_top_bottom_at_y((rest.top() + height).min(rest.bottom()));
            rest = below;
            cut
        };
        let header = top(HEADER);
        let message = message.then(|| top(MESSAGE));
        let mut bottom = |height: f32| {
            let (above, cut) = rest.split_top_bottom_at_y((rest.bottom() - height).max(rest.top()));
            rest = above;
            cut
        };
        let engine = bottom(ENGINE);
        let play = bottom(PLAY);
        let browser = browsing.then(|| {
            let (cut, right) = rest.split_left_right_at_x((rest.left() + BROWSER).min(rest.right()));
            rest = right;
            cut
        });
        let (middle, mixer) = rest.split_left_right_at_x((rest.right() - MIXER).max(rest.left()));
        let place = |name, rect, x, y| Place { name, rect, margin: vec2(x, y) };
        Self {
            header: place("header", header, 12.0, 0.0),
            message: message.map(|rect| place("message", rect, 14.0, 0.0)),
            browser: browser.map(|rect| place("browser", rect, 10.0, 10.0)),
            middle: place("middle", middle, 12.0, 10.0),
            mixer: place("mixer", mixer, 12.0, 10.0),
            play: place("play", play, 12.0, 10.0),
            engine: place("engine", engine, 12.0, 0.0),
            all,
        }
    }

    /// What is behind the panels, and the lines between them.
    pub fn paint(&self, ui: &Ui) {
        let palette = Palette::of(ui);
        let painter = ui.painter();
        painter.rect_filled(self.all, 0.0, palette.panel);
        let line = (1.0, palette.line);
        let under = self.message.map_or(self.header.rect, |message| message.rect).bottom();
        for y in [self.header.rect.bottom(), under, self.play.rect.top(), self.engine.rect.top()] {
            painter.hline(self.all.x_range(), y, line);
        }
        let sides = [self.browser.map(|browser| browser.rect.right()), Some(self.mixer.rect.left())];
        for x in sides.into_iter().flatten() {
            painter.vline(x, self.mixer.rect.y_range(), line);
        }
    }
}

/// Draws a panel into its place, and nowhere else.
pub(crate) fn place(ui: &mut Ui, place: Place, content: impl FnOnce(&mut Ui)) {
    let Place { name, rect, margin } = place;
    let inner = rect.shrink2(margin);
    // A window may be smaller than the margins.
    let inner = Rect::from_min_max(inner.min, pos2(inner.right().max(inner.left()), inner.bottom().max(inner.top())));
    let mut child = ui.new_child(UiBuilder::new().max_rect(inner).id_salt(name));
    child.set_clip_rect(rect.intersect(ui.clip_rect()));
    content(&mut child);
}
