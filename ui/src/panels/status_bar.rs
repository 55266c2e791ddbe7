//! The status bar: processing mode, executor, quality, load, errors and latency.

use egui::accesskit::Role;
use egui::{
    Align2, Button, ComboBox, PopupCloseBehavior, Rect, ScrollArea, Sense, Ui, UiBuilder,
    WidgetInfo, vec2,
};
use ondes_engine::dsp::resample::Resampling;
use ondes_engine::realtime::{Driven, Health};
use ondes_player::choice::DRIVERS;
use ondes_player::parameter::{self, DRIVER};

use crate::command::{EngineCommand, KnobCommand};
use crate::format;
use crate::frame::Frame;
use crate::panels::{executor_menu, program_menu};
use crate::theme::{self, GAP, Palette};
use crate::view::{EngineView, Surroundings};

/// Maximum height of the menu, points, for all entries to be visible.
const MENU: f32 = 480.0;
/// Widths of the parts, points, with the space before each.
const PROCESSING: f32 = 246.0;
const QUALITY: f32 = 164.0;
const METHOD: f32 = 214.0;
const FIGURES: f32 = 552.0;
const INVALID_BLOCKS: f32 = 124.0;
const IDLE: f32 = 160.0;

/// State of the processing menu.
#[derive(Default)]
pub(crate) struct ProcessingMenu {
    open: bool,
}

/// Returns the width of the bar in one row, points.
pub(crate) fn width(view: EngineView<'_>) -> f32 {
    let optional = |shown: bool, width: f32| if shown { width } else { 0.0 };
    let figures = view.health.map_or(IDLE, |health| {
        FIGURES + optional(health.invalid_blocks > 0, INVALID_BLOCKS)
    });
    PROCESSING
        + optional(view.qualities.len() > 1, QUALITY)
        + optional(program_menu::is_shown(view.program), METHOD)
        + figures
}

/// Draws choices and figures in one row, or each in one of their own.
pub(crate) fn show(ui: &mut Ui, frame: &mut Frame<'_>, menu: &mut ProcessingMenu, is_wide: bool) {
    ui.spacing_mut().interact_size.y = 22.0;
    ui.spacing_mut().button_padding.y = 2.0;
    if is_wide {
        ui.horizontal_centered(|ui| {
            choices(ui, frame, menu);
            ui.add_space(GAP);
            figures(ui, frame, true);
        });
        return;
    }
    let (upper, lower) = ui
        .max_rect()
        .split_top_bottom_at_y(ui.max_rect().center().y);
    row(ui, upper, "choices", |ui| choices(ui, frame, menu));
    row(ui, lower, "figures", |ui| figures(ui, frame, false));
}

/// Draws a row, which scrolls if it is too long.
fn row(ui: &mut Ui, rect: Rect, name: &str, content: impl FnOnce(&mut Ui)) {
    ui.scope_builder(UiBuilder::new().max_rect(rect), |ui| {
        ScrollArea::horizontal()
            .id_salt(name)
            .auto_shrink(false)
            .show(ui, |ui| ui.horizontal_centered(content));
    });
}

fn choices(ui: &mut Ui, frame: &mut Frame<'_>, menu: &mut ProcessingMenu) {
    processing(ui, frame, menu);
    qualities(ui, frame);
    program_menu::show(ui, frame);
}

fn figures(ui: &mut Ui, frame: &Frame<'_>, has_bar: bool) {
    match frame.view.engine.health {
        Some(health) => facts(ui, &health, has_bar),
        None => idle(ui, frame),
    }
}

/// Says why there are no figures.
fn idle(ui: &mut Ui, frame: &Frame<'_>) {
    let (text, hint) = match (frame.view.model, frame.view.surroundings) {
        (None, _) => ("No model", "Load and latency are shown once a model plays"),
        (Some(_), Surroundings::Host) => (
            "The host is not playing",
            "Load and latency are shown while the host processes sound",
        ),
        (Some(_), Surroundings::App { has_sound: false }) => (
            "No sound device",
            "Load and latency are shown while a sound device is open; Devices chooses one",
        ),
        (Some(_), Surroundings::App { has_sound: true }) => (
            "Not playing",
            "Load and latency are shown while the model plays",
        ),
    };
    ui.weak(text).on_hover_text(hint);
}

fn processing(ui: &mut Ui, frame: &mut Frame<'_>, menu: &mut ProcessingMenu) {
    let view = frame.view.engine;
    ui.weak("Processing");
    let name = DRIVERS.names.get(view.driver).copied().unwrap_or("–");
    let executor = view
        .executor
        .map(executor_menu::summary)
        .filter(|summary| !summary.is_empty());
    let chosen = executor
        .as_ref()
        .map_or_else(|| name.to_owned(), |executor| format!("{name}, {executor}"));
    let combo = ComboBox::from_id_salt("driver")
        .width(128.0)
        .truncate()
        .selected_text(&chosen);
    let combo = combo.height(MENU.min(theme::room_for_menu(ui)));
    let shown = combo
        .close_behavior(PopupCloseBehavior::CloseOnClickOutside)
        .show_ui(ui, |ui| {
            theme::menu(ui);
            for (index, name) in DRIVERS.names.iter().enumerate() {
                if theme::item(ui, Button::selectable(index == view.driver, *name)).clicked() {
                    frame.push(KnobCommand::SetParameter(DRIVER, index as f32));
                }
            }
            ui.separator();
            executor_menu::row(ui, "Resampling", |ui| resampling(ui, frame));
            if let Some(executor) = view.executor {
                executor_menu::show(ui, frame, executor);
            }
        });
    let open = shown.inner.is_some();
    if open && !menu.open && view.executor.is_some() {
        // Loads libtorch, so not before the menu is opened.
        frame.push(EngineCommand::FindDevices);
    }
    menu.open = open;
    let response = shown.response.accessible_name("Processing");
    // The text may be truncated.
    let chosen = if executor.is_some() {
        format!("{chosen}\n")
    } else {
        String::new()
    };
    response.on_hover_text(format!(
        "{chosen}Thread and executor that run the model; the latency depends on them"
    ));
}

/// Draws the choice of the rate conversion. The menu stays open, as there are more choices.
fn resampling(ui: &mut Ui, frame: &mut Frame<'_>) {
    let choices = [
        (
            Resampling::LowLatency,
            "Low latency",
            "Adds at most 1 ms where the model has another sample rate",
        ),
        (
            Resampling::LinearPhase,
            "Linear phase",
            "Flat up to the edge of the band; adds 32 to 40 ms at other sample rates",
        ),
    ];
    for (resampling, name, hint) in choices {
        let response = ui
            .add(Button::selectable(
                resampling == frame.view.engine.resampling,
                name,
            ))
            .on_hover_text(hint);
        if response.clicked() && resampling != frame.view.engine.resampling {
            frame.push(EngineCommand::SetResampling(resampling));
        }
        response.accessible_name(format!("Resampling {name}"));
    }
}

fn qualities(ui: &mut Ui, frame: &mut Frame<'_>) {
    let view = frame.view.engine;
    // Not shown without a choice.
    if view.qualities.len() < 2 {
        return;
    }
    ui.add_space(GAP);
    ui.weak("Quality");
    let chosen = view.qualities.get(view.quality).map_or("–", String::as_str);
    let shown = ComboBox::from_id_salt("quality")
        .width(92.0)
        .truncate()
        .selected_text(chosen)
        .show_ui(ui, |ui| {
            for (index, quality) in view.qualities.iter().enumerate() {
                if theme::item(
                    ui,
                    Button::selectable(index == view.quality, quality.as_str()),
                )
                .clicked()
                {
                    frame.push(KnobCommand::SetParameter(parameter::QUALITY, index as f32));
                }
            }
        });
    let hint = "Size of the network: smaller ones need less processing";
    shown
        .response
        .accessible_name("Quality")
        .on_hover_text(hint);
}

fn facts(ui: &mut Ui, health: &Health, has_bar: bool) {
    let palette = Palette::current(ui);
    let thread = match health.driven {
        Driven::Inline => "Runs on the audio thread",
        Driven::Worker => "Runs in the background",
        Driven::SlowWorker => "Runs in the background, apart from faster models",
        Driven::Offline => "Runs offline, without a deadline",
    };
    load(ui, health.load, thread, has_bar);
    let error = |wrong: bool| wrong.then_some(palette.error);
    fact(
        ui,
        "Dropouts",
        &health.dropouts.to_string(),
        28.0,
        error(health.dropouts > 0),
    )
    .on_hover_text("Blocks that were not ready in time");
    if health.invalid_blocks > 0 {
        fact(
            ui,
            "Invalid blocks",
            &health.invalid_blocks.to_string(),
            28.0,
            error(true),
        )
        .on_hover_text("Blocks in which the model returned NaN or infinity");
    }
    let latency = format!("{:.1} ms", health.latency_ms);
    fact(ui, "Latency", &latency, 56.0, None)
        .on_hover_text(format!("{} samples", health.latency_samples));
    let times = health.inference_time;
    let line = format!("{} / {}", format::time(times.p50), format::time(times.p99));
    fact(ui, "Inference time", &line, 100.0, None).on_hover_text(format!(
        "Median and 99th percentile of {} runs; 50 %: {}, 95 %: {}, 99 %: {}, 99.9 %: {}, maximum: {}",
        times.count,
        format::time(times.p50),
        format::time(times.p95),
        format::time(times.p99),
        format::time(times.p999),
        format::time(times.worst),
    ));
}

/// Draws a label and its value, in a fixed width so that what follows stays in place.
fn fact(
    ui: &mut Ui,
    name: &str,
    text: &str,
    width: f32,
    ink: Option<egui::Color32>,
) -> egui::Response {
    let palette = Palette::current(ui);
    ui.add_space(5.0);
    let title = ui
        .painter()
        .layout_no_wrap(name.to_owned(), theme::small(), palette.dim);
    let (rect, response) =
        ui.allocate_exact_size(vec2(title.size().x + 5.0 + width, 20.0), Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Status, true, format!("{name} {text}")));
    let y = rect.center().y - title.size().y / 2.0;
    let figures = rect.left_center() + vec2(title.size().x + 5.0, 0.0);
    ui.painter()
        .galley(egui::pos2(rect.left(), y), title, palette.dim);
    ui.painter().text(
        figures,
        Align2::LEFT_CENTER,
        text,
        theme::figures(),
        ink.unwrap_or(palette.text),
    );
    response
}

/// Draws the load; a full bar means that the model takes all of a core's time. The tooltip tells on
/// which `thread` it runs.
fn load(ui: &mut Ui, load: f32, thread: &str, has_bar: bool) {
    let palette = Palette::current(ui);
    let ink = (load >= 1.0).then_some(palette.error);
    let percent = if load.is_nan() {
        "–".to_owned()
    } else {
        format!("{:.0} %", 100.0 * load.clamp(0.0, 9.99))
    };
    fact(ui, "Load", &percent, 33.0, ink).on_hover_text(thread);
    if !has_bar {
        return;
    }
    let (rect, _) = ui.allocate_exact_size(vec2(44.0, 5.0), Sense::hover());
    ui.painter().rect_filled(rect, 2.5, palette.line);
    let part = if load.is_nan() {
        0.0
    } else {
        load.clamp(0.0, 1.0)
    };
    let bar = Rect::from_min_size(rect.min, vec2(part * rect.width(), rect.height()));
    ui.painter()
        .rect_filled(bar, 2.5, ink.unwrap_or(palette.accent));
}
