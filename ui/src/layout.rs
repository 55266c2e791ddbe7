//! Areas of the panels, from 800 × 500 points to the largest screens.
//!
//! A narrow window has a header in two rows, and its browser takes the place of the pages. In a low
//! one the gains stand side by side below their meters. A window that is still smaller, such as a
//! host's that does not grow with the scale, scrolls as a whole.

use egui::{Rect, ScrollArea, Ui, UiBuilder, Vec2, pos2, vec2};

use crate::theme::Palette;

/// Heights and widths, points.
const HEADER: f32 = 64.0;
const HEADER_IN_TWO_ROWS: f32 = 76.0;
const MESSAGE: f32 = 38.0;
const BROWSER: f32 = 262.0;
const MIXER: f32 = 182.0;
const LOW_MIXER: f32 = 264.0;
const PLAY: f32 = 78.0;
const STATUS: f32 = 34.0;
const STATUS_IN_TWO_ROWS: f32 = 60.0;
/// Width from which the header is one row, and the browser stands beside the pages.
const WIDE: f32 = 800.0;
/// Height from which meters stand above their gains, and the mix below them.
const TALL: f32 = 250.0;
/// Least size of the pages and the mixer.
const LEAST_BODY: Vec2 = vec2(480.0, 160.0);

/// Needs of the panels, which decide about their areas.
#[derive(Clone, Copy)]
pub(crate) struct LayoutNeeds {
    /// There is a message.
    pub message: bool,
    /// The browser is open.
    pub browser: bool,
    /// There is something to play or to follow.
    pub play: bool,
    /// The stage is shown.
    pub stage: bool,
    /// Width of the status bar in one row.
    pub status_width: f32,
}

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
    /// The pages; `None` while the browser takes their place.
    pub middle: Option<PanelArea>,
    pub mixer: Option<PanelArea>,
    pub play: Option<PanelArea>,
    pub status: PanelArea,
    /// The stage, which takes the place of all others between header and status bar.
    pub stage: Option<PanelArea>,
    /// The header and the status bar are in one row.
    pub is_header_wide: bool,
    pub is_status_wide: bool,
    /// Gains are below their meters.
    pub is_mixer_tall: bool,
    all: Rect,
}

/// Returns whether the browser has room beside the pages.
pub(crate) fn is_wide(width: f32) -> bool {
    width >= WIDE
}

impl WindowLayout {
    /// Divides a window, which is at least as large as [`least_size`].
    pub fn new(all: Rect, needs: LayoutNeeds) -> Self {
        let is_wide = is_wide(all.width());
        let is_status_wide = all.width() >= needs.status_width;
        let mut rest = all;
        let mut top = |height: f32| {
            let (cut, below) = rest.split_top_bottom_at_y((rest.top() + height).min(rest.bottom()));
            rest = below;
            cut
        };
        let header = top(if is_wide { HEADER } else { HEADER_IN_TWO_ROWS });
        let message = needs.message.then(|| top(MESSAGE));
        let mut bottom = |height: f32| {
            let (above, cut) = rest.split_top_bottom_at_y((rest.bottom() - height).max(rest.top()));
            rest = above;
            cut
        };
        let status = bottom(if is_status_wide {
            STATUS
        } else {
            STATUS_IN_TWO_ROWS
        });
        let play = (needs.play && !needs.stage).then(|| bottom(PLAY));
        let stage = needs.stage.then_some(rest);
        let is_mixer_tall = rest.height() >= TALL;
        let mixer_width = if is_mixer_tall { MIXER } else { LOW_MIXER };
        let (rest, mixer) =
            rest.split_left_right_at_x((rest.right() - mixer_width).max(rest.left()));
        let (browser, middle) = match (needs.browser, is_wide) {
            _ if needs.stage => (None, None),
            (false, _) => (None, Some(rest)),
            (true, false) => (Some(rest), None),
            (true, true) => {
                let (browser, middle) =
                    rest.split_left_right_at_x((rest.left() + BROWSER).min(rest.right()));
                (Some(browser), Some(middle))
            }
        };
        let area = |name, rect, x, y| PanelArea {
            name,
            rect,
            margin: vec2(x, y),
        };
        Self {
            header: area("header", header, 12.0, 0.0),
            message: message.map(|rect| area("message", rect, 14.0, 0.0)),
            browser: browser.map(|rect| area("browser", rect, 10.0, 10.0)),
            middle: middle.map(|rect| area("middle", rect, 12.0, 10.0)),
            mixer: stage.is_none().then(|| area("mixer", mixer, 12.0, 10.0)),
            play: play.map(|rect| area("play", rect, 12.0, 10.0)),
            status: area("engine", status, 12.0, 0.0),
            stage: stage.map(|rect| area("stage", rect, 14.0, 12.0)),
            is_header_wide: is_wide,
            is_status_wide,
            is_mixer_tall,
            all,
        }
    }

    /// Paints the background and the lines between panels.
    pub fn paint(&self, ui: &Ui) {
        let palette = Palette::current(ui);
        let painter = ui.painter();
        painter.rect_filled(self.all, 0.0, palette.panel);
        let line = (1.0, palette.line);
        let under = self
            .message
            .map_or(self.header.rect, |message| message.rect)
            .bottom();
        let above = self.play.map_or(self.status.rect, |play| play.rect).top();
        for y in [
            self.header.rect.bottom(),
            under,
            above,
            self.status.rect.top(),
        ] {
            painter.hline(self.all.x_range(), y, line);
        }
        let sides = [
            self.browser.map(|browser| browser.rect.right_top()),
            self.mixer.map(|mixer| mixer.rect.left_top()),
        ];
        for corner in sides.into_iter().flatten() {
            painter.vline(corner.x, corner.y..=above, line);
        }
    }
}

/// Returns the least size that the panels can be divided into.
fn least_size(size: Vec2, needs: LayoutNeeds) -> Vec2 {
    let optional = |needed: bool, height: f32| if needed { height } else { 0.0 };
    let width = size.x.max(LEAST_BODY.x);
    let header = if is_wide(width) {
        HEADER
    } else {
        HEADER_IN_TWO_ROWS
    };
    let status = if width >= needs.status_width {
        STATUS
    } else {
        STATUS_IN_TWO_ROWS
    };
    let bars = header
        + status
        + optional(needs.message, MESSAGE)
        + optional(needs.play && !needs.stage, PLAY);
    vec2(LEAST_BODY.x, LEAST_BODY.y + bars)
}

/// Draws the panels into the whole area, in which they scroll if it is too small.
pub(crate) fn show_all(
    ui: &mut Ui,
    needs: LayoutNeeds,
    content: impl FnOnce(&mut Ui, WindowLayout),
) {
    let area = ui.max_rect();
    let size = area.size().max(least_size(area.size(), needs));
    if size == area.size() {
        return content(ui, WindowLayout::new(area, needs));
    }
    ScrollArea::both()
        .id_salt("window")
        .auto_shrink(false)
        .show(ui, |ui| {
            // The bar of the one direction takes room of the other.
            let size = size.max(ui.available_size());
            let rect = Rect::from_min_size(ui.max_rect().min, size);
            ui.allocate_rect(rect, egui::Sense::hover());
            let mut ui = ui.new_child(UiBuilder::new().max_rect(rect).id_salt("panels"));
            content(&mut ui, WindowLayout::new(rect, needs));
        });
}

/// Draws a panel into its area, clipped.
pub(crate) fn show(ui: &mut Ui, area: PanelArea, content: impl FnOnce(&mut Ui)) {
    let PanelArea { name, rect, margin } = area;
    let inner = rect.shrink2(margin);
    // The window may be smaller than the margins.
    let inner = Rect::from_min_max(
        inner.min,
        pos2(
            inner.right().max(inner.left()),
            inner.bottom().max(inner.top()),
        ),
    );
    let mut child = ui.new_child(UiBuilder::new().max_rect(inner).id_salt(name));
    child.set_clip_rect(rect.intersect(ui.clip_rect()));
    content(&mut child);
}

#[cfg(test)]
mod tests {
    use egui::Pos2;

    use super::*;

    #[test]
    fn panels_cover_the_window_and_do_not_overlap() {
        for (width, height) in [
            (480.0, 412.0),
            (528.0, 413.0),
            (800.0, 500.0),
            (980.0, 600.0),
            (5120.0, 2880.0),
        ] {
            for choices in 0..16 {
                let [message, browser, play, stage] = [1, 2, 4, 8].map(|bit| choices & bit != 0);
                let needs = LayoutNeeds {
                    message,
                    browser,
                    play,
                    stage,
                    status_width: 900.0,
                };
                let all = Rect::from_min_size(Pos2::ZERO, vec2(width, height));
                let layout = WindowLayout::new(all, needs);
                let optional = [
                    layout.message,
                    layout.browser,
                    layout.middle,
                    layout.mixer,
                    layout.play,
                    layout.stage,
                ];
                let areas = [layout.header, layout.status]
                    .into_iter()
                    .chain(optional.into_iter().flatten());
                let areas: Vec<Rect> = areas.map(|area| area.rect).collect();
                let covered: f32 = areas.iter().map(|area| area.area()).sum();
                assert!(
                    (covered - all.area()).abs() < 1.0,
                    "{width} × {height}: {areas:?}"
                );
                for (index, area) in areas.iter().enumerate() {
                    assert!(all.contains_rect(*area) && area.is_positive(), "{area:?}");
                    assert!(
                        areas[..index]
                            .iter()
                            .all(|other| !other.shrink(0.5).intersects(*area)),
                        "{areas:?}"
                    );
                }
                let least = least_size(all.size(), needs);
                assert!(
                    least.x <= width && least.y <= height,
                    "{least} at {width} × {height}"
                );
            }
        }
    }
}
