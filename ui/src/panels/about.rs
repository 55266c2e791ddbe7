//! The product's name, and what there is to know about it: version, licence, manual, keys.

use egui::{
    Align2, Grid, Id, Label, Popup, PopupCloseBehavior, Rect, RichText, Sense, Ui, WidgetInfo,
};
use ondes_player::product::Product;

use crate::shortcuts::{REDO, UNDO};
use crate::theme::{self, GAP, Palette};

/// Width of the contents, points.
const WIDTH: f32 = 340.0;

/// Draws the product's name, which opens the contents, into `rect`.
pub(crate) fn brand(ui: &mut Ui, product: Product, rect: Rect) {
    let palette = Palette::current(ui);
    let font = egui::FontId::proportional(13.0);
    let galley = ui
        .painter()
        .layout_no_wrap(product.name().to_owned(), font, palette.accent);
    let place = Align2::LEFT_CENTER.anchor_size(rect.left_center(), galley.size());
    let response = ui.interact(place.expand(3.0), Id::unique("about"), Sense::click());
    response.widget_info(|| {
        WidgetInfo::labeled(
            egui::Role::Button,
            true,
            format!("About {}", product.name()),
        )
    });
    let ink = if response.hovered() {
        palette.text
    } else {
        palette.accent
    };
    ui.painter()
        .galley_with_override_text_color(place.min, galley, ink);
    theme::focus_ring(ui, &response, place.expand(3.0));
    Popup::menu(&response)
        .close_behavior(PopupCloseBehavior::CloseOnClickOutside)
        .show(|ui| {
            theme::within_window(ui, WIDTH, |ui| contents(ui, product));
        });
    response.on_hover_text("Version, licence, manual and keys");
}

/// Draws the contents.
pub(crate) fn contents(ui: &mut Ui, product: Product) {
    ui.spacing_mut().item_spacing.y = GAP;
    ui.spacing_mut().interact_size.y = 0.0;
    ui.label(
        RichText::new(product.name())
            .font(theme::heading())
            .strong(),
    );
    let what = match product {
        Product::Instrument => "Neural networks as instruments, in real time.",
        Product::Effect => {
            "Neural networks as effects, in real time: amplifiers, pedals, timbre transfer, codecs."
        }
    };
    ui.add(Label::new(what).wrap());
    let undo = format!(
        "{}, {}",
        ui.ctx().format_shortcut(&UNDO),
        ui.ctx().format_shortcut(&REDO)
    );
    let rows = [
        ("Version", env!("CARGO_PKG_VERSION")),
        ("Licence", "MIT or Apache-2.0, as you choose"),
        (
            "Manual",
            "The folder docs of the source; cargo xtask docs makes a book of it",
        ),
        (
            "Knobs",
            "Drag or scroll; Shift is finer. Double-click resets, right-click binds.",
        ),
        (
            "Keys",
            "Tab moves on, arrows turn a knob, Enter types a value.",
        ),
        ("Undo, redo", undo.as_str()),
    ];
    Grid::new("about")
        .num_columns(2)
        .spacing([2.0 * GAP, GAP])
        .show(ui, |ui| {
            for (name, text) in rows {
                ui.weak(name);
                ui.add(Label::new(text).wrap());
                ui.end_row();
            }
        });
}
