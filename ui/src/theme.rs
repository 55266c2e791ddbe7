//! Colours, fonts and spacing.

use std::collections::BTreeMap;
use std::sync::Arc;

use egui::style::ScrollStyle;
use egui::text::{CCursor, CCursorRange, LayoutJob, TextWrapping};
use egui::text_edit::TextEditState;
use egui::{
    Button, Color32, Context, CornerRadius, FontFamily, FontId, Galley, Id, Margin, Painter, Rect,
    Response, ScrollArea, Shadow, Stroke, StrokeKind, Style, TextStyle, Theme, Ui, Visuals, vec2,
};

/// Radius of all corners, points.
pub(crate) const RADIUS: u8 = 5;
/// Width of a scroll bar, points.
const SCROLL_BAR: f32 = 8.0;
/// Spacing, points. Larger distances are multiples of it.
pub(crate) const GAP: f32 = 6.0;

/// Colours of a theme.
#[derive(Clone, Copy)]
pub(crate) struct Palette {
    /// Background.
    pub ground: Color32,
    /// Background of panels.
    pub panel: Color32,
    /// Buttons and fields.
    pub raised: Color32,
    /// Buttons under the pointer.
    pub hovered: Color32,
    /// Lines, and empty parts of meters.
    pub line: Color32,
    pub text: Color32,
    pub dim: Color32,
    /// Active, selected or sounding elements.
    pub accent: Color32,
    /// Text on the accent colour.
    pub on_accent: Color32,
    /// Errors and overloads.
    pub error: Color32,
}

const DARK: Palette = Palette {
    ground: Color32::from_rgb(0x12, 0x14, 0x18),
    panel: Color32::from_rgb(0x1a, 0x1d, 0x23),
    raised: Color32::from_rgb(0x27, 0x2b, 0x34),
    hovered: Color32::from_rgb(0x32, 0x38, 0x43),
    line: Color32::from_rgb(0x31, 0x36, 0x40),
    text: Color32::from_rgb(0xea, 0xec, 0xf0),
    dim: Color32::from_rgb(0x9b, 0xa3, 0xb1),
    accent: Color32::from_rgb(0x45, 0xc8, 0xbd),
    on_accent: Color32::from_rgb(0x08, 0x1c, 0x1b),
    error: Color32::from_rgb(0xf2, 0x6a, 0x63),
};

const LIGHT: Palette = Palette {
    ground: Color32::from_rgb(0xe6, 0xe8, 0xec),
    panel: Color32::from_rgb(0xf5, 0xf6, 0xf8),
    raised: Color32::from_rgb(0xe3, 0xe6, 0xeb),
    hovered: Color32::from_rgb(0xd6, 0xda, 0xe1),
    line: Color32::from_rgb(0xcb, 0xd0, 0xd8),
    text: Color32::from_rgb(0x1a, 0x1e, 0x25),
    dim: Color32::from_rgb(0x59, 0x62, 0x70),
    accent: Color32::from_rgb(0x08, 0x7a, 0x72),
    on_accent: Color32::from_rgb(0xff, 0xff, 0xff),
    error: Color32::from_rgb(0xc0, 0x2b, 0x2b),
};

impl Palette {
    /// Returns the colours of the current theme.
    pub fn current(ui: &Ui) -> Self {
        if ui.visuals().dark_mode { DARK } else { LIGHT }
    }
}

/// Installs both themes, once per context.
pub fn install(ctx: &Context) {
    let done = Id::unique("ondes style");
    if ctx.data(|data| data.get_temp(done) == Some(true)) {
        return;
    }
    ctx.data_mut(|data| data.insert_temp(done, true));
    ctx.set_style_of(Theme::Dark, style(DARK, Visuals::dark()));
    ctx.set_style_of(Theme::Light, style(LIGHT, Visuals::light()));
    ctx.options_mut(|options| {
        // The scale is a command, as the window must be resized with it.
        options.zoom_with_keyboard = false;
    });
}

/// Font of model names and headings.
pub(crate) fn heading() -> FontId {
    FontId::new(17.0, FontFamily::Proportional)
}

/// Font of what a model is.
pub(crate) fn subtitle() -> FontId {
    FontId::new(12.0, FontFamily::Proportional)
}

/// Font of captions.
pub(crate) fn small() -> FontId {
    FontId::new(11.0, FontFamily::Proportional)
}

/// Font of figures, which are monospaced to keep their places.
pub(crate) fn figures() -> FontId {
    FontId::new(11.0, FontFamily::Monospace)
}

fn style(palette: Palette, visuals: Visuals) -> Style {
    let mut style = Style {
        visuals,
        ..Style::default()
    };
    style.text_styles = BTreeMap::from([
        (TextStyle::Heading, heading()),
        (TextStyle::Body, FontId::new(13.0, FontFamily::Proportional)),
        (
            TextStyle::Button,
            FontId::new(13.0, FontFamily::Proportional),
        ),
        (TextStyle::Small, small()),
        (TextStyle::Monospace, figures()),
    ]);
    style.animation_time = 0.0; // A window that nobody touches stands still.
    style.interaction.selectable_labels = false;
    style.spacing.item_spacing = vec2(GAP, GAP);
    style.spacing.button_padding = vec2(9.0, 4.0);
    style.spacing.interact_size = vec2(26.0, 26.0);
    style.spacing.menu_margin = Margin::same(6);
    style.spacing.combo_width = 80.0;
    // Bars stay visible: what is below must not be guessed.
    style.spacing.scroll = ScrollStyle {
        bar_width: SCROLL_BAR,
        floating_width: SCROLL_BAR / 2.0,
        floating_allocated_width: SCROLL_BAR,
        ..ScrollStyle::thin()
    };

    let visuals = &mut style.visuals;
    visuals.panel_fill = palette.panel;
    visuals.window_fill = palette.panel;
    visuals.window_stroke = Stroke::new(1.0, palette.line);
    visuals.window_corner_radius = CornerRadius::same(RADIUS);
    visuals.menu_corner_radius = CornerRadius::same(RADIUS);
    visuals.popup_shadow = Shadow {
        offset: [0, 4],
        blur: 14,
        spread: 0,
        color: Color32::from_black_alpha(70),
    };
    visuals.extreme_bg_color = palette.ground;
    visuals.text_edit_bg_color = Some(palette.ground);
    visuals.faint_bg_color = palette.raised;
    visuals.weak_text_color = Some(palette.dim);
    visuals.error_fg_color = palette.error;
    visuals.selection.bg_fill = palette.accent;
    visuals.selection.stroke = Stroke::new(1.0, palette.on_accent);
    visuals.text_cursor.stroke = Stroke::new(1.5, palette.accent);
    // A blinking cursor would repaint the window all the time.
    visuals.text_cursor.blink = false;

    let widgets = &mut visuals.widgets;
    let states = [
        (
            &mut widgets.noninteractive,
            palette.panel,
            palette.line,
            palette.text,
        ),
        (
            &mut widgets.inactive,
            palette.raised,
            palette.raised,
            palette.text,
        ),
        (
            &mut widgets.hovered,
            palette.hovered,
            palette.hovered,
            palette.text,
        ),
        (
            &mut widgets.active,
            palette.hovered,
            palette.accent,
            palette.text,
        ),
        (
            &mut widgets.open,
            palette.hovered,
            palette.hovered,
            palette.text,
        ),
    ];
    for (state, fill, edge, text) in states {
        state.bg_fill = fill;
        state.weak_bg_fill = fill;
        state.bg_stroke = Stroke::new(1.0, edge);
        state.fg_stroke = Stroke::new(1.0, text);
        state.corner_radius = CornerRadius::same(RADIUS);
        state.expansion = 0.0;
    }
    // Also the style of the widget with the keyboard focus.
    widgets.active.bg_stroke = Stroke::new(1.5, palette.accent);
    style
}

/// Draws the contents of a menu or a dialog, which scroll if the window is too low, with a width of
/// at most `width`.
pub(crate) fn within_window(ui: &mut Ui, width: f32, content: impl FnOnce(&mut Ui)) {
    ui.set_width(width.min(ui.ctx().content_rect().width() - 36.0));
    menu_area(ui).auto_shrink([false, true]).show(ui, content);
}

/// Returns a scroll area that grows with its contents as far as the window has room.
fn menu_area(ui: &Ui) -> ScrollArea {
    let room = room_for_menu(ui);
    ScrollArea::vertical()
        .max_height(room)
        .min_scrolled_height(room)
}

/// Returns the largest height of a menu, points.
pub(crate) fn room_for_menu(ui: &Ui) -> f32 {
    ui.ctx().content_rect().height() - 36.0
}

/// Draws the contents of a menu of short entries, which scroll if the window is too low.
pub(crate) fn short_menu(ui: &mut Ui, content: impl FnOnce(&mut Ui)) {
    menu(ui);
    menu_area(ui).show(ui, content);
}

/// Sets the style of a menu's contents.
pub(crate) fn menu(ui: &mut Ui) {
    ui.set_min_width(140.0);
    let spacing = ui.spacing_mut();
    spacing.button_padding = vec2(8.0, 2.0);
    spacing.interact_size.y = 23.0;
    spacing.item_spacing.y = 1.0;
}

/// Draws a menu entry and closes the menu when it is chosen. egui does so for the pointer, but not
/// for the keyboard.
pub(crate) fn item(ui: &mut Ui, button: Button<'_>) -> Response {
    let response = ui.add(button);
    if response.clicked() {
        ui.close();
    }
    response
}

/// Marks the widget that has the keyboard focus.
pub(crate) fn focus_ring(ui: &Ui, response: &Response, rect: Rect) {
    if response.has_focus() {
        let stroke = Stroke::new(1.5, Palette::current(ui).accent);
        ui.painter()
            .rect_stroke(rect, RADIUS, stroke, StrokeKind::Inside);
    }
}

/// Lays out one line of text, truncated to `width`.
pub(crate) fn fit(
    painter: &Painter,
    text: &str,
    font: FontId,
    width: f32,
    ink: Color32,
) -> Arc<Galley> {
    let mut job = LayoutJob::simple_singleline(text.to_owned(), font, ink);
    job.wrap = TextWrapping::truncate_at_width(width);
    painter.layout_job(job)
}

/// Lays out a caption in up to `lines` lines of this width; the last one is truncated.
pub(crate) fn fit_lines(
    painter: &Painter,
    text: &str,
    width: f32,
    lines: usize,
    ink: Color32,
) -> Arc<Galley> {
    let mut job = LayoutJob::simple(text.to_owned(), small(), ink, width);
    job.wrap = TextWrapping {
        max_width: width,
        max_rows: lines,
        ..TextWrapping::default()
    };
    painter.layout_job(job)
}

/// Selects the whole text of a field, so that typing replaces it.
pub(crate) fn select_all(ctx: &Context, id: Id, mut state: TextEditState, galley: &Galley) {
    let all = CCursorRange::two(CCursor::default(), galley.end());
    state.cursor.set_char_range(Some(all));
    state.store(ctx, id);
}

/// Paints a sunken field for meters and curves.
pub(crate) fn well(painter: &Painter, rect: Rect, palette: &Palette) {
    painter.rect(
        rect,
        RADIUS,
        palette.ground,
        Stroke::new(1.0, palette.line),
        StrokeKind::Inside,
    );
}
