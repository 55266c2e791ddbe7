//! Areas of the panels.

use egui::{Rect, Ui, UiBuilder, Vec2, pos2, vec2};

use crate::theme::Palette;

/// Heights and widths, points.
const HEADER: f32 = 64.0;
const MESSAGE: f32 = 38.0;
const BROWSER: f32 = 262.0;
const MIXER: f32 = 182.0;
const PLAY: f32 = 78.0;
const STATUS: f32 = 34.0;

/// Area of a panel, and its margin.
#[derive(Clone, Copy)]
pub(crate) struct PanelArea {
    name: &'static str,
    rect: Rect,
    margin: Vec2,
}

/// Areas of all panels.
pub(crate) struct WindowLayout {
    pub header: PanelArea,
    pub message: Option<PanelArea>,
    pub browser: Option<PanelArea>,
    pub middle: PanelArea,
    pub mixer: PanelArea,
    pub play: Option<PanelArea>,
    pub status: PanelArea,
    all: Rect,
}

impl WindowLayout {
    pub fn of(all: Rect, message: bool, browsing: bool, playing: bool) -> Self {
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
        let status = bottom(STATUS);
        let play = playing.then(|| bottom(PLAY));
        let browser = browsing.then(|| {
            let (cut, right) = rest.split_left_right_at_x((rest.left() + BROWSER).min(rest.right()));
            rest = right;
            cut
        });
        let (middle, mixer) = rest.split_left_right_at_x((rest.right() - MIXER).max(rest.left()));
        let area = |name, rect, x, y| PanelArea { name, rect, margin: vec2(x, y) };
        Self {
            header: area("header", header, 12.0, 0.0),
            message: message.map(|rect| area("message", rect, 14.0, 0.0)),
            browser: browser.map(|rect| area("browser", rect, 10.0, 10.0)),
            middle: area("middle", middle, 12.0, 10.0),
            mixer: area("mixer", mixer, 12.0, 10.0),
            play: play.map(|rect| area("play", rect, 12.0, 10.0)),
            status: area("engine", status, 12.0, 0.0),
            all,
        }
    }

    /// Paints the background and the lines between panels.
    pub fn paint(&self, ui: &Ui) {
        let palette = Palette::of(ui);
        let painter = ui.painter();
        painter.rect_filled(self.all, 0.0, palette.panel);
        let line = (1.0, palette.line);
        let under = self.message.map_or(self.header.rect, |message| message.rect).bottom();
        let above = self.play.map_or(self.status.rect, |play| play.rect).top();
        for y in [self.header.rect.bottom(), under, above, self.status.rect.top()] {
            painter.hline(self.all.x_range(), y, line);
        }
        let sides = [self.browser.map(|browser| browser.rect.right()), Some(self.mixer.rect.left())];
        for x in sides.into_iter().flatten() {
            painter.vline(x, self.mixer.rect.y_range(), line);
        }
    }
}

/// Draws a panel into its area, clipped.
pub(crate) fn show(ui: &mut Ui, area: PanelArea, content: impl FnOnce(&mut Ui)) {
    let PanelArea { name, rect, margin } = area;
    let inner = rect.shrink2(margin);
    // The window may be smaller than the margins.
    let inner = Rect::from_min_max(inner.min, pos2(inner.right().max(inner.left()), inner.bottom().max(inner.top())));
    let mut child = ui.new_child(UiBuilder::new().max_rect(inner).id_salt(name));
    child.set_clip_rect(rect.intersect(ui.clip_rect()));
    content(&mut child);
}
