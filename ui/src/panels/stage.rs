//! The stage: what a performer reads from two metres. Scenes, preset, tuner, levels, loopers.

use egui::accesskit::Role;
use egui::{
    Align2, Button, Color32, FontFamily, FontId, Key, Modifiers, Rect, Response, RichText, Sense,
    Stroke, StrokeKind, Ui, UiBuilder, WidgetInfo, vec2,
};
use ondes_player::rig::scene::SCENES;

use crate::command::{ModelCommand, PresetCommand, RigCommand};
use crate::frame::Frame;
use crate::icon::{self, Icon};
use crate::panels::meters::{self, Meters};
use crate::panels::rig::looper_state;
use crate::panels::tuner::{self, Strobe};
use crate::theme::{self, GAP, Palette, RADIUS};

/// Share of the height that the name of the sound takes, and its limits, points.
const TITLE: f32 = 0.16;
const TITLES: [f32; 2] = [44.0, 150.0];
/// Share of the height that the tuner takes while it is open.
const TUNER: f32 = 0.42;
/// Least height of the tuner, points.
const LEAST_TUNER: f32 = 222.0;
/// Height of a looper's line, points.
const LOOPER: f32 = 40.0;
/// Height from which the scenes are in two rows, points.
const TWO_ROWS: f32 = 130.0;
/// Largest letters, points.
const LARGEST: f32 = 160.0;

/// Draws the stage; `open` becomes false when the user leaves it.
pub(crate) fn show(
    ui: &mut Ui,
    frame: &mut Frame<'_>,
    meters: &mut Meters,
    strobe: &mut Strobe,
    open: &mut bool,
) {
    if ui.input_mut(|input| input.consume_key(Modifiers::NONE, Key::Escape)) {
        *open = false;
    }
    let all = ui.max_rect();
    let width = 2.0 * crate::knob::CELL.x + 3.0 * GAP;
    let (left, right) = all.split_left_right_at_x((all.right() - width).max(all.left()));
    let mut rest = left.with_max_x(left.right() - 2.0 * GAP);
    let title = (TITLE * all.height()).clamp(TITLES[0], TITLES[1]);
    let (top, below) = rest.split_top_bottom_at_y(rest.top() + title);
    ui.scope_builder(UiBuilder::new().max_rect(top), |ui| {
        title_row(ui, frame, open)
    });
    rest = below.with_min_y(below.top() + GAP);
    if frame.view.tuner.open {
        let height = (TUNER * all.height()).max(LEAST_TUNER);
        let (above, tuner_area) = rest.split_top_bottom_at_y(rest.bottom() - height);
        ui.scope_builder(UiBuilder::new().max_rect(tuner_area), |ui| {
            tuner::show(ui, frame, strobe);
        });
        rest = above.with_max_y(above.bottom() - GAP);
    }
    let rig = frame.view.rig;
    let loopers = rig.blocks.iter().zip(rig.activities);
    let loopers: Vec<_> = loopers
        .filter_map(|(block, activity)| looper_state(block, *activity))
        .collect();
    for (state, position, is_recording) in loopers {
        let (above, line) = rest.split_top_bottom_at_y(rest.bottom() - LOOPER);
        looper_line(ui, line, state, position, is_recording);
        rest = above.with_max_y(above.bottom() - GAP);
    }
    scenes(ui, frame, rest);
    ui.scope_builder(UiBuilder::new().max_rect(right), |ui| {
        let height = (ui.available_height() - 40.0).max(60.0);
        meters::both(ui, frame.view.mixer, meters, height);
        ui.add_space(GAP);
        tuner::toggle(ui, frame);
    });
}

/// Draws what plays, between buttons for those before and after it.
fn title_row(ui: &mut Ui, frame: &mut Frame<'_>, open: &mut bool) {
    let view = frame.view;
    let row = ui.max_rect();
    ui.horizontal_centered(|ui| {
        let has_presets = !view.presets.list.is_empty();
        let side = row.height().min(LARGEST);
        let mut go = |name: &str, icon: Icon, preset: PresetCommand, model: ModelCommand| {
            if large_button(ui, name, icon, side).clicked() {
                match has_presets {
                    true => frame.push(preset),
                    false => frame.push(model),
                }
            }
        };
        go(
            "Previous sound",
            Icon::Left,
            PresetCommand::Previous,
            ModelCommand::Previous,
        );
        go(
            "Next sound",
            Icon::Right,
            PresetCommand::Next,
            ModelCommand::Next,
        );
        let model = view.model.map(|model| model.card.name.as_str());
        let name = view.presets.name.or(model).unwrap_or("No model");
        let size = (0.62 * row.height()).min(LARGEST);
        let leave = 70.0;
        let width = (ui.available_width() - leave).max(40.0);
        let (rect, response) = ui.allocate_exact_size(vec2(width, row.height()), Sense::hover());
        response.widget_info(|| WidgetInfo::labeled(Role::Label, true, name));
        let ink = Palette::current(ui).text;
        let text = fit_large(ui, name, size, width - 2.0 * GAP, ink);
        let corner = rect.left_center() + vec2(GAP, -0.5 * text.size().y);
        ui.painter().galley(corner, text, ink);
        let button = ui.add(Button::new(RichText::new("Leave")));
        if button
            .on_hover_text("Back to the pages (Escape, or Alt+0)")
            .clicked()
        {
            *open = false;
        }
    });
}

/// Draws a square button of an icon.
fn large_button(ui: &mut Ui, name: &str, icon: Icon, side: f32) -> Response {
    let (rect, response) = ui.allocate_exact_size(vec2(side, side), Sense::click());
    response.widget_info(|| WidgetInfo::labeled(Role::Button, true, name));
    let palette = Palette::current(ui);
    let ground = match response.hovered() {
        true => palette.hovered,
        false => palette.raised,
    };
    ui.painter().rect_filled(rect, RADIUS, ground);
    icon::paint(ui.painter(), rect, icon, palette.text);
    theme::focus_ring(ui, &response, rect);
    response.on_hover_text(name)
}

/// Draws the scenes as tiles that fill an area.
fn scenes(ui: &mut Ui, frame: &mut Frame<'_>, area: Rect) {
    let scenes = frame.view.rig.scenes;
    let rows = if area.height() < TWO_ROWS { 1 } else { 2 };
    let columns = SCENES / rows;
    let gaps = vec2((columns - 1) as f32, (rows - 1) as f32) * GAP;
    let size = (area.size() - gaps) / vec2(columns as f32, rows as f32);
    if size.x < 10.0 || size.y < 10.0 {
        return;
    }
    for index in 0..SCENES {
        let place = vec2((index % columns) as f32, (index / columns) as f32);
        let rect = Rect::from_min_size(area.min + place * (size + vec2(GAP, GAP)), size);
        let scene = scenes.get(index);
        let tile = SceneTile {
            number: index + 1,
            name: scene.map_or("", |scene| &scene.name),
            is_active: index == scenes.active,
            is_used: scene.is_some() || index == scenes.active,
        };
        if tile.show(ui, rect).clicked() {
            frame.push(RigCommand::GoToScene(index));
        }
    }
}

/// A scene.
struct SceneTile<'a> {
    number: usize,
    name: &'a str,
    is_active: bool,
    is_used: bool,
}

impl SceneTile<'_> {
    fn show(&self, ui: &mut Ui, rect: Rect) -> Response {
        let palette = Palette::current(ui);
        let id = ui.scope_id().with(("scene", self.number));
        let response = ui.interact(rect, id, Sense::click());
        let name = match self.name {
            "" => format!("Scene {}", self.number),
            name => format!("Scene {}: {name}", self.number),
        };
        response.widget_info(|| WidgetInfo::selected(Role::Button, true, self.is_active, &name));
        let painter = ui.painter();
        let (ground, ink) = match (self.is_active, response.hovered()) {
            (true, _) => (palette.accent, palette.ground),
            (false, true) => (palette.hovered, palette.text),
            (false, false) => (palette.raised, palette.text),
        };
        let ink = if self.is_used { ink } else { palette.dim };
        painter.rect_filled(rect, RADIUS, ground);
        painter.rect_stroke(
            rect,
            RADIUS,
            Stroke::new(1.0, palette.line),
            StrokeKind::Inside,
        );
        let inner = rect.shrink(2.0 * GAP);
        let large = (0.42 * inner.height()).min(LARGEST);
        let number = FontId::new(large, FontFamily::Proportional);
        let middle = match self.name {
            "" => inner.center(),
            _ => inner.center_top() + vec2(0.0, 0.5 * large),
        };
        painter.text(middle, Align2::CENTER_CENTER, self.number, number, ink);
        if !self.name.is_empty() {
            let text = fit_large(ui, self.name, 0.9 * large, inner.width(), ink);
            let corner = inner.center_bottom() - vec2(0.5 * text.size().x, text.size().y);
            ui.painter().galley(corner, text, ink);
        }
        theme::focus_ring(ui, &response, rect);
        response
    }
}

/// Draws what a looper does, and how far it is.
fn looper_line(ui: &mut Ui, rect: Rect, state: &str, position: f32, is_recording: bool) {
    let palette = Palette::current(ui);
    let response = ui.allocate_rect(rect, Sense::hover());
    let text = format!("Looper: {state}");
    response.widget_info(|| WidgetInfo::labeled(Role::Status, true, &text));
    let painter = ui.painter();
    theme::well(painter, rect, &palette);
    let color = match is_recording {
        true => palette.error,
        false => palette.accent,
    };
    let inner = rect.shrink(4.0);
    let width = position.clamp(0.0, 1.0) * inner.width();
    painter.rect_filled(
        Rect::from_min_size(inner.min, vec2(width, inner.height())),
        RADIUS,
        color.gamma_multiply(0.6),
    );
    let font = FontId::new(22.0, FontFamily::Proportional);
    painter.text(
        inner.left_center() + vec2(GAP, 0.0),
        Align2::LEFT_CENTER,
        text,
        font,
        palette.text,
    );
}

/// Lays out a line in letters as large as fit, at least half as large.
fn fit_large(
    ui: &Ui,
    text: &str,
    size: f32,
    width: f32,
    ink: Color32,
) -> std::sync::Arc<egui::Galley> {
    let lay_out = |size: f32| {
        let font = FontId::new(size, FontFamily::Proportional);
        theme::fit(ui.painter(), text, font, width, ink)
    };
    let whole = ui.painter().layout_no_wrap(
        text.to_owned(),
        FontId::new(size, FontFamily::Proportional),
        ink,
    );
    let share = (width / whole.size().x.max(1.0)).clamp(0.5, 1.0);
    lay_out(size * share)
}
