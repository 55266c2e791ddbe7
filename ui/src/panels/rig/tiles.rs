//! The blocks of a rig as tiles in a row, with the level behind each.

use egui::accesskit::Role;
use egui::{
    Align2, Pos2, Rect, Response, Sense, Stroke, StrokeKind, Ui, Vec2, WidgetInfo, pos2, vec2,
};
use ondes_player::rig::block_state::BlockState;
use ondes_player::rig::branch_state::Branch;

use super::block_panel::branch_name;
use super::{Outcome, RigPage, looper_state};
use crate::frame::Frame;
use crate::theme::{self, GAP, Palette, RADIUS};
use crate::view::RigView;

/// Size of a tile, points.
const TILE: Vec2 = vec2(92.0, 40.0);
/// Range of the level on a tile, dB.
const METER_DB: f32 = 60.0;

/// Draws the blocks in their order, with the model among them, and moves one that is dragged.
pub(super) fn show(
    ui: &mut Ui,
    frame: &Frame<'_>,
    page: &mut RigPage,
    rig: RigView<'_>,
    list: &mut [BlockState],
    outcome: &mut Outcome,
) {
    let before = list.iter().filter(|block| block.before).count();
    let mut placed: Vec<Rect> = Vec::new();
    let mut dropped = None;
    let mut dragged = None;
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing = vec2(GAP, GAP);
        for place in 0..=list.len() {
            if place == before {
                let model = frame
                    .view
                    .model
                    .map_or("No model", |model| model.card.name.as_str());
                let model = Tile {
                    name: model,
                    ..Tile::default()
                };
                let rect = model.show(ui, Sense::hover()).rect;
                placed.push(rect);
            }
            let Some(block) = list.get(place) else { break };
            let activity = rig.activities.get(place).copied().flatten();
            let looper = looper_state(block, activity);
            let name = match looper {
                Some((state, ..)) => format!("Looper: {state}").into(),
                None => block.name(),
            };
            let shown = Tile {
                name: &name,
                is_off: block.off,
                is_chosen: place == page.chosen,
                has_problem: rig.problems.get(place).is_some_and(Option::is_some),
                branch: block.branch,
                position: looper.map(|(_, position, _)| position),
                is_recording: looper.is_some_and(|(.., is_recording)| is_recording),
                peak: Some(rig.peaks.get(place).copied().unwrap_or_default()),
            };
            let response = shown.show(ui, Sense::click_and_drag());
            let hint = block.kind().map_or("", |kind| kind.description);
            placed.push(response.rect);
            if response.clicked() || response.drag_started() {
                page.chosen = place;
            }
            if response.dragged() {
                dragged = response.interact_pointer_pos();
            }
            if response.drag_stopped() {
                dropped = response
                    .interact_pointer_pos()
                    .or(ui.ctx().pointer_latest_pos());
            }
            response.on_hover_text(format!("{name}\n{hint}"));
        }
    });
    // Places are counted with the model among the blocks.
    let target = |pointer: Pos2| {
        let is_behind = |rect: &Rect| {
            pointer.y > rect.bottom() || pointer.y >= rect.top() && pointer.x > rect.center().x
        };
        placed.iter().filter(|rect| is_behind(rect)).count()
    };
    if let Some(gap) = dragged.map(target) {
        let edge = placed.get(gap).map_or_else(
            || placed.last().map(|last| last.right_top()),
            |rect| Some(rect.left_top()),
        );
        if let Some(edge) = edge {
            let x = edge.x
                + if gap < placed.len() {
                    -0.5 * GAP
                } else {
                    0.5 * GAP
                };
            let stroke = Stroke::new(2.0, Palette::current(ui).accent);
            ui.painter().vline(x, edge.y..=edge.y + TILE.y, stroke);
        }
    }
    if let Some(gap) = dropped.map(target) {
        let from = page.chosen;
        page.chosen = move_to(list, from, gap);
        if page.chosen != from || list[page.chosen].before != rig.blocks[from].before {
            outcome.done();
        }
    }
}

/// A block, or the model.
#[derive(Default)]
struct Tile<'a> {
    name: &'a str,
    is_off: bool,
    is_chosen: bool,
    has_problem: bool,
    branch: Option<Branch>,
    /// Peak of its output; `None` for the model, which is no block.
    peak: Option<f32>,
    /// Position of a looper, 0 to 1, and whether it records.
    position: Option<f32>,
    is_recording: bool,
}

impl Tile<'_> {
    fn show(&self, ui: &mut Ui, sense: Sense) -> Response {
        let palette = Palette::current(ui);
        let (rect, response) = ui.allocate_exact_size(TILE, sense);
        response.widget_info(|| match self.peak {
            Some(_) => WidgetInfo::selected(Role::Button, true, self.is_chosen, self.name),
            None => WidgetInfo::labeled(Role::Label, true, self.name),
        });
        if !ui.is_rect_visible(rect) {
            return response;
        }
        let painter = ui.painter();
        let ground = match self.peak {
            Some(_) if response.hovered() => palette.hovered,
            Some(_) => palette.raised,
            None => palette.ground,
        };
        painter.rect_filled(rect, RADIUS, ground);
        let edge = match self.is_chosen {
            true => Stroke::new(1.5, palette.accent),
            false => Stroke::new(1.0, palette.line),
        };
        painter.rect_stroke(rect, RADIUS, edge, StrokeKind::Inside);
        let ink = match (self.has_problem, self.is_off) {
            (true, _) => palette.error,
            (false, true) => palette.dim,
            (false, false) => palette.text,
        };
        let width = TILE.x - 2.0 * GAP;
        let text = theme::fit(painter, self.name, theme::small(), width, ink);
        let corner = rect.center() - 0.5 * text.size() - vec2(0.0, 3.0);
        painter.galley(corner, text, ink);
        if let Some(branch) = self.branch {
            let letter = &branch_name(Some(branch))["Branch ".len()..];
            let place = rect.left_top() + vec2(GAP, 3.0);
            painter.text(
                place,
                Align2::LEFT_TOP,
                letter,
                theme::small(),
                palette.accent,
            );
        }
        if let Some(peak) = self.peak {
            let corner = pos2(rect.left() + GAP, rect.bottom() - 9.0);
            let bar = Rect::from_min_size(corner, vec2(width, 3.0));
            painter.rect_filled(bar, 1, palette.line);
            let db = 20.0 * peak.max(1e-6).log10();
            let share = (1.0 + db / METER_DB).clamp(0.0, 1.0);
            let color = match db > 0.0 {
                true => palette.error,
                false => palette.accent,
            };
            let lit = Rect::from_min_size(bar.min, vec2(share * bar.width(), bar.height()));
            painter.rect_filled(lit, 1, color);
        }
        if let Some(position) = self.position {
            let x = rect.left() + GAP + position.clamp(0.0, 1.0) * width;
            let color = match self.is_recording {
                true => palette.error,
                false => palette.accent,
            };
            let hand = Stroke::new(2.0, color);
            painter.vline(x, rect.top() + 3.0..=rect.bottom() - 3.0, hand);
        }
        theme::focus_ring(ui, &response, rect);
        response
    }
}

/// Moves a block before what is at a place, counted with the model among the blocks. Returns where
/// it is then, among the blocks.
fn move_to(list: &mut [BlockState], from: usize, gap: usize) -> usize {
    let model = list.iter().filter(|block| block.before).count();
    // Up to the gap in front of the model it is before it.
    let before = gap <= model;
    let to = gap - usize::from(!before);
    list[from].before = before;
    if to > from {
        list[from..to].rotate_left(1);
        to - 1
    } else {
        list[to..=from].rotate_right(1);
        to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_dropped_before_and_after_the_model() {
        let state = |id: &str, before| BlockState {
            block: id.into(),
            before,
            ..BlockState::default()
        };
        // a b MODEL c: gaps 0 to 4.
        let list = || vec![state("a", true), state("b", true), state("c", false)];
        let moved = |from, gap| {
            let mut list = list();
            let to = move_to(&mut list, from, gap);
            let names: String = list.iter().map(|block| block.block.as_str()).collect();
            let before = list.iter().filter(|block| block.before).count();
            assert!(list.iter().take(before).all(|block| block.before));
            (names, before, to)
        };
        assert_eq!(moved(0, 0), ("abc".into(), 2, 0));
        assert_eq!(moved(0, 1), ("abc".into(), 2, 0));
        assert_eq!(moved(0, 2), ("bac".into(), 2, 1));
        assert_eq!(moved(0, 3), ("bac".into(), 1, 1));
        assert_eq!(moved(0, 4), ("bca".into(), 1, 2));
        assert_eq!(moved(2, 0), ("cab".into(), 3, 0));
        assert_eq!(moved(2, 2), ("abc".into(), 3, 2));
        assert_eq!(moved(2, 3), ("abc".into(), 2, 2));
        assert_eq!(moved(2, 4), ("abc".into(), 2, 2));
    }
}
