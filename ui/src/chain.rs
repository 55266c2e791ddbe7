//! The page of what stands around a model: gate, tone, cabinet, levels.

use std::path::Path;

use egui::accesskit::Role;
use egui::{
    Button, Id, Key, Label, Popup, PopupCloseBehavior, Response, RichText, ScrollArea, Sense, TextEdit, Ui, WidgetInfo,
    vec2,
};

use super::browser::path;
use super::choice;
use super::command::{Browse, Command};
use super::desk::Desk;
use super::icon::{self, Icon};
use super::knob;
use super::macros::grid;
use super::theme::{self, GAP, Palette};
use super::view::Chain;

/// Width of the list of impulse responses, points.
const LIST: f32 = 320.0;
const ROW: f32 = 24.0;

/// What the user is about to do with the cabinet.
#[derive(Default)]
pub(crate) struct Picker {
    open: bool,
    /// A path that is typed.
    typed: String,
}

pub(crate) fn show(ui: &mut Ui, desk: &mut Desk<'_>, picker: &mut Picker, chain: Chain<'_>) {
    ui.horizontal(|ui| {
        ui.label(RichText::new("Cabinet").font(theme::small()).weak());
        cabinet(ui, desk, picker, chain);
    });
    ui.add_space(GAP);
    grid(ui, chain.knobs.iter(), |ui, one| knob::show(ui, desk, one, true, |_, _| ()));
    if let Some(remark) = chain.remark {
        ui.add(Label::new(RichText::new(remark).font(theme::small()).weak()).wrap());
    }
}

fn cabinet(ui: &mut Ui, desk: &mut Desk<'_>, picker: &mut Picker, chain: Chain<'_>) {
    let (_, response) = ui.allocate_exact_size(vec2(ui.available_width(), 26.0), Sense::click());
    response.widget_info(|| WidgetInfo::labeled(Role::ComboBox, ui.is_enabled(), "Impulse response"));
    let said = chain.cabinet.unwrap_or("none");
    ui.ctx().accesskit_node_builder(response.id, |node| node.set_value(said));
    let shown = chain.cabinet.unwrap_or("No impulse response");
    choice::field(ui, &response, shown, chain.cabinet.is_some() && chain.missing.is_none());

    let popup = Popup::menu(&response).close_behavior(PopupCloseBehavior::CloseOnClickOutside);
    let open = popup.show(|ui| list(ui, desk, picker, chain)).is_some();
    if open && !picker.open {
        // Files come and go while a window is open.
        desk.tell(Command::Cabinets);
    } else if picker.open && !open {
        picker.typed.clear();
    }
    picker.open = open;
    explain(response, chain);
}

fn explain(response: Response, chain: Chain<'_>) {
    let Some(name) = chain.cabinet else { return };
    let problem = chain.missing.map(|missing| format!("\nis missing: {}", missing.looked.join("\n")));
    response.on_hover_text(format!("{name}{}", problem.unwrap_or_default()));
}

fn list(ui: &mut Ui, desk: &mut Desk<'_>, picker: &mut Picker, chain: Chain<'_>) {
    theme::menu(ui);
    ui.set_width(LIST);
    if theme::item(ui, Button::selectable(chain.cabinet.is_none(), "None")).clicked() {
        desk.tell(Command::Cabinet(None));
    }
    ScrollArea::vertical().max_height(9.0 * ROW).auto_shrink([false, true]).show(ui, |ui| {
        for path in chain.cabinets {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let chosen = chain.path == Some(path.as_path());
            let item = theme::item(ui, Button::selectable(chosen, name));
            if item.on_hover_text(path.display().to_string()).clicked() {
                desk.tell(Command::Cabinet(Some(path.clone())));
            }
        }
        if chain.cabinets.is_empty() {
            ui.weak(nothing(chain.folder));
        }
    });
    ui.separator();
    type_path(ui, desk, picker);
}

/// What to do where there is nothing to choose from.
fn nothing(folder: Option<&Path>) -> String {
    folder.map_or_else(|| "No files found".into(), |folder| format!("Put WAV files into {}", folder.display()))
}

fn type_path(ui: &mut Ui, desk: &mut Desk<'_>, picker: &mut Picker) {
    ui.horizontal(|ui| {
        let buttons = if desk.view.can_browse { 76.0 + 26.0 + GAP } else { 76.0 };
        let field = TextEdit::singleline(&mut picker.typed).id(Id::unique("cabinet path")).hint_text("Path of a file");
        let field = field.margin(vec2(8.0, 5.0)).desired_width(ui.available_width() - buttons);
        let response = ui.add(field).accessible_name("Path of an impulse response");
        let typed = path(&picker.typed);
        let button = Button::new("Open").fill(Palette::of(ui).raised).min_size(vec2(68.0, 26.0));
        let entered = response.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
        let pressed = ui.add_enabled(typed.is_some(), button).clicked();
        if let Some(path) = typed.filter(|_| entered || pressed) {
            desk.tell(Command::Cabinet(Some(path)));
            ui.close();
        }
        if desk.view.can_browse && icon::button(ui, Icon::Folder, "Choose a file", false).clicked() {
            desk.tell(Command::Browse(Browse::Cabinet));
            ui.close();
        }
    });
}
