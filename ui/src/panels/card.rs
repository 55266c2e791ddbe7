//! The loaded model: name, author, quality, and whether it is embedded in the project.

use egui::{
    Align2, Checkbox, Id, Label, Popup, PopupCloseBehavior, Rect, RichText, Sense, Stroke, Ui,
    WidgetInfo, pos2, vec2,
};

use crate::command::ModelCommand;
use crate::format;
use crate::frame::Frame;
use crate::icon::{self, Icon};
use crate::theme::{self, GAP, Palette, RADIUS};
use crate::view::{ModelView, other_name};

/// Width of the card, points.
const CARD: f32 = 270.0;

/// Draws what the model is, in `rect`, with the whole text in the tooltip.
pub(crate) fn subtitle(ui: &Ui, frame: &Frame<'_>, rect: Rect) {
    let palette = Palette::current(ui);
    let text = match frame.view.model {
        None => "Choose a model in the list, or drop a file here".to_owned(),
        Some(model) if model.card.description.is_empty() => facts(&model),
        Some(model) => model.card.description.replace('\n', " "),
    };
    let galley = theme::fit(
        ui.painter(),
        &text,
        theme::subtitle(),
        rect.width(),
        palette.dim,
    );
    let is_cut = galley.elided;
    let place = Align2::LEFT_CENTER.anchor_size(rect.left_center(), galley.size());
    ui.painter().galley(place.min, galley, palette.dim);
    let response = ui.interact(rect, Id::unique("subtitle"), Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(egui::Role::Label, true, &text));
    if is_cut {
        response.on_hover_text(text);
    }
}

/// Draws the model's name; a click opens the card.
pub(crate) fn show(ui: &mut Ui, frame: &mut Frame<'_>, width: f32) {
    let (rect, _) = ui.allocate_exact_size(vec2(width, 32.0), Sense::hover());
    let palette = Palette::current(ui);
    let name = |ui: &Ui, text: &str, room: f32| {
        let galley = theme::fit(ui.painter(), text, theme::heading(), room, palette.text);
        let place =
            Align2::LEFT_CENTER.anchor_size(rect.left_center() + vec2(GAP, 0.0), galley.size());
        ui.painter().galley(place.min, galley, palette.text);
        place
    };
    let room = width - 2.0 * GAP;
    let Some(model) = frame.view.model else {
        name(ui, "No model", room);
        return;
    };
    let facts = facts(&model);
    let response = ui.interact(rect, Id::unique("card"), Sense::click());
    response.widget_info(|| {
        WidgetInfo::labeled(
            egui::Role::Button,
            true,
            format!("About {}", model.card.name),
        )
    });
    ui.ctx()
        .accesskit_node_builder(response.id, |node| node.set_description(facts.as_str()));
    if response.hovered() {
        ui.painter().rect_filled(rect, RADIUS, palette.raised);
    }
    let name = name(ui, &model.card.name, room - 18.0);
    let sign = Rect::from_center_size(
        pos2(name.right() + 12.0, name.center().y + 1.0),
        vec2(12.0, 12.0),
    );
    icon::paint(ui.painter(), sign, Icon::Down, palette.dim);
    theme::focus_ring(ui, &response, rect);
    let popup = Popup::menu(&response).close_behavior(PopupCloseBehavior::CloseOnClickOutside);
    popup.show(|ui| theme::within_window(ui, CARD, |ui| card(ui, frame, &model, &facts)));
    let file = other_name(model.path, &model.card.name)
        .map(|file| format!("\n{file}"))
        .unwrap_or_default();
    response.on_hover_text(format!(
        "{}: what it is, its author, licence and quality{file}",
        model.card.name
    ));
}

fn facts(model: &ModelView<'_>) -> String {
    let quality = format::quality_line(model.card);
    let facts = [format::kind(model.kind), &model.card.author, &quality];
    facts
        .into_iter()
        .filter(|fact| !fact.is_empty())
        .collect::<Vec<_>>()
        .join("  ·  ")
}

fn card(ui: &mut Ui, frame: &mut Frame<'_>, model: &ModelView<'_>, facts: &str) {
    ui.label(
        RichText::new(&model.card.name)
            .font(theme::heading())
            .strong(),
    );
    if !model.card.description.is_empty() {
        ui.add(Label::new(&model.card.description).wrap());
    }
    ui.add(Label::new(RichText::new(facts).small().weak()).wrap());
    if !model.card.licence.is_empty() {
        ui.add(Label::new(RichText::new(&model.card.licence).small().weak()).wrap());
    }
    if let Some(path) = model.path {
        ui.add(Label::new(RichText::new(path.display().to_string()).small().weak()).wrap());
    }
    let mut embed = model.embed;
    ui.separator();
    let problem = model.embed_problem;
    // Outlines the checkbox, whose fill is the card's.
    let edge = Stroke::new(1.0, Palette::current(ui).dim);
    let widgets = &mut ui.visuals_mut().widgets;
    (widgets.inactive.bg_stroke, widgets.noninteractive.bg_stroke) = (edge, edge);
    let entry = Checkbox::new(
        &mut embed,
        format!("Save model with {}", frame.view.surroundings.document()),
    );
    let response = ui.add_enabled(problem.is_none(), entry);
    if response.clicked() {
        frame.push(ModelCommand::Embed(embed));
    }
    if let Some(problem) = problem {
        ui.ctx()
            .accesskit_node_builder(response.id, |node| node.set_description(problem));
        response.on_disabled_hover_text(problem);
    } else {
        response.on_hover_text("It then plays on machines that do not have its file");
    }
}
