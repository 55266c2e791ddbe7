//! The signal chain around the model: gate, tone, cabinet, levels.

use std::path::Path;

use egui::accesskit::Role;
use egui::{
    Button, Id, Key, Label, Popup, PopupCloseBehavior, Response, RichText, ScrollArea, Sense,
    TextEdit, Ui, WidgetInfo, vec2,
};
use ondes_player::cabinet::bundled::BUNDLED;

use crate::command::{CabinetCommand, FileCommand, FilePurpose};
use crate::drop_down;
use crate::format::parse_path;
use crate::frame::Frame;
use crate::icon::{self, Icon};
use crate::knob;
use crate::theme::{self, GAP, Palette};
use crate::view::ChainView;

/// Width of the list of cabinets, points.
const LIST: f32 = 320.0;
const ROW: f32 = 24.0;

/// State of the cabinet's menu.
#[derive(Default)]
pub(crate) struct CabinetMenu {
    open: bool,
    /// The path being typed.
    typed_path: String,
}

pub(crate) fn show(
    ui: &mut Ui,
    frame: &mut Frame<'_>,
    menu: &mut CabinetMenu,
    chain: ChainView<'_>,
) {
    ui.horizontal(|ui| {
        ui.label(RichText::new("Cabinet").font(theme::small()).weak());
        cabinet(ui, frame, menu, chain);
    });
    ui.add_space(GAP);
    knob::rows(ui, frame, chain.knobs);
    if let Some(remark) = chain.remark {
        ui.add(Label::new(RichText::new(remark).font(theme::small()).weak()).wrap());
    }
}

fn cabinet(ui: &mut Ui, frame: &mut Frame<'_>, menu: &mut CabinetMenu, chain: ChainView<'_>) {
    let (_, response) = ui.allocate_exact_size(vec2(ui.available_width(), 26.0), Sense::click());
    response
        .widget_info(|| WidgetInfo::labeled(Role::ComboBox, ui.is_enabled(), "Impulse response"));
    let value = match (chain.cabinet, chain.automatic) {
        (Some(name), true) => &format!("{name} (automatic)"),
        (Some(name), false) => name,
        (None, _) => "none",
    };
    ui.ctx()
        .accesskit_node_builder(response.id, |node| node.set_value(value));
    let shown = if chain.cabinet.is_some() {
        value
    } else {
        "No cabinet"
    };
    drop_down::field(
        ui,
        &response,
        shown,
        chain.cabinet.is_some() && chain.missing.is_none(),
    );

    let popup = Popup::menu(&response).close_behavior(PopupCloseBehavior::CloseOnClickOutside);
    let open = popup.show(|ui| {
        theme::menu(ui);
        theme::within_window(ui, LIST, |ui| list(ui, frame, menu, chain));
    });
    let open = open.is_some();
    if open && !menu.open {
        // Files may have changed since the window was opened.
        frame.push(CabinetCommand::Rescan);
    } else if menu.open && !open {
        menu.typed_path.clear();
    }
    menu.open = open;
    show_tooltip(response, chain);
}

fn show_tooltip(response: Response, chain: ChainView<'_>) {
    let Some(name) = chain.cabinet else {
        response.on_hover_text(
            "Cabinet: the impulse response of a loudspeaker, for amplifiers without one",
        );
        return;
    };
    let problem = chain
        .missing
        .map(|missing| format!("\nmissing; searched:\n{}", missing.searched.join("\n")));
    response.on_hover_text(format!("{name}{}", problem.unwrap_or_default()));
}

fn list(ui: &mut Ui, frame: &mut Frame<'_>, menu: &mut CabinetMenu, chain: ChainView<'_>) {
    let automatic = theme::item(ui, Button::selectable(chain.automatic, "Automatic"));
    let hint = "Each amplifier that was captured without a loudspeaker brings the bundled cabinet that suits it";
    if automatic.on_hover_text(hint).clicked() {
        frame.push(CabinetCommand::Automatic);
    }
    let none = theme::item(
        ui,
        Button::selectable(chain.cabinet.is_none() && !chain.automatic, "None"),
    );
    if none
        .on_hover_text("No cabinet, whatever the model")
        .clicked()
    {
        frame.push(CabinetCommand::Remove);
    }
    ui.separator();
    for (index, cabinet) in BUNDLED.iter().enumerate() {
        let chosen = chain.path.is_none() && chain.cabinet == Some(cabinet.name);
        let item = theme::item(ui, Button::selectable(chosen, cabinet.name));
        if item.on_hover_text(cabinet.description).clicked() {
            frame.push(CabinetCommand::LoadBundled(index));
        }
    }
    ui.separator();
    ScrollArea::vertical()
        .max_height(9.0 * ROW)
        .auto_shrink([false, true])
        .show(ui, |ui| {
            for path in chain.cabinets {
                let name = path.file_stem().unwrap_or_default().to_string_lossy();
                let chosen = chain.path == Some(path.as_path());
                let item = theme::item(ui, Button::selectable(chosen, name));
                if item.on_hover_text(path.display().to_string()).clicked() {
                    frame.push(CabinetCommand::Load(path.clone()));
                }
            }
            if chain.cabinets.is_empty() {
                ui.weak(empty_hint(chain.folder));
            }
        });
    ui.separator();
    type_path(ui, frame, menu);
}

/// Tells where to put impulse responses if there are none.
fn empty_hint(folder: Option<&Path>) -> String {
    folder.map_or_else(
        || "No files found".into(),
        |folder| format!("Put WAV files into {}", folder.display()),
    )
}

fn type_path(ui: &mut Ui, frame: &mut Frame<'_>, menu: &mut CabinetMenu) {
    ui.horizontal(|ui| {
        let buttons = if frame.view.can_browse {
            76.0 + 26.0 + GAP
        } else {
            76.0
        };
        let field = TextEdit::singleline(&mut menu.typed_path)
            .id(Id::unique("cabinet path"))
            .hint_text("Path of a file");
        let field = field
            .margin(vec2(8.0, 5.0))
            .desired_width(ui.available_width() - buttons);
        let response = ui.add(field).accessible_name("Path of an impulse response");
        let response = response.on_hover_text("Path of a WAV, AIFF or FLAC file");
        let typed = parse_path(&menu.typed_path);
        let button = Button::new("Open")
            .fill(Palette::current(ui).raised)
            .min_size(vec2(68.0, 26.0));
        let entered = response.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
        let pressed = ui
            .add_enabled(typed.is_some(), button)
            .on_hover_text("Load the file at this path")
            .clicked();
        if let Some(path) = typed.filter(|_| entered || pressed) {
            frame.push(CabinetCommand::Load(path));
            ui.close();
        }
        if frame.view.can_browse && icon::button(ui, Icon::Folder, "Choose a file", false).clicked()
        {
            frame.push(FileCommand::Browse(FilePurpose::Cabinet));
            ui.close();
        }
    });
}
