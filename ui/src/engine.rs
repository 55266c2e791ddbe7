//! The bottom line: how the model is driven, how late, and at what cost.

use egui::accesskit::Role;
use egui::{Align2, Button, ComboBox, PopupCloseBehavior, Rect, Sense, Ui, WidgetInfo, vec2};
use ondes_engine::realtime::{Driven, Driver, Health};

use super::command::Command;
use super::desk::Desk;
use super::running;
use super::theme::{self, GAP, Palette};
use super::words;

/// Times for the worker that are offered, ms.
const LATENCIES_MS: [f32; 5] = [5.0, 10.0, 20.0, 40.0, 80.0];

/// Height of the menu of drivers at most, points: all of it is to be seen.
const MENU: f32 = 480.0;

/// The menu of drivers.
#[derive(Default)]
pub(crate) struct Drivers {
    open: bool,
}

pub(crate) fn show(ui: &mut Ui, desk: &mut Desk<'_>, menu: &mut Drivers) {
    ui.horizontal_centered(|ui| {
        ui.spacing_mut().interact_size.y = 22.0;
        ui.spacing_mut().button_padding.y = 2.0;
        drivers(ui, desk, menu);
        qualities(ui, desk);
        ui.add_space(GAP);
        match desk.view.health {
            Some(health) => facts(ui, &health),
            None => {
                ui.weak("Not playing");
            }
        }
    });
}

fn drivers(ui: &mut Ui, desk: &mut Desk<'_>, menu: &mut Drivers) {
    let view = desk.view;
    let rate = if view.sample_rate_hz.is_finite() { view.sample_rate_hz.max(0.0) } else { 0.0 };
    let name = |driver: Driver| match driver {
        Driver::Auto => "Auto".to_owned(),
        Driver::Inline => "Inline".to_owned(),
        Driver::Offline => "Offline".to_owned(),
        Driver::Worker { latency: None } => "Worker, shortest".to_owned(),
        Driver::Worker { latency: Some(samples) } if rate > 0.0 => {
            format!("Worker, {:.0} ms", 1000.0 * samples as f32 / rate)
        }
        Driver::Worker { latency: Some(samples) } => format!("Worker, {samples} samples"),
    };
    let timed = LATENCIES_MS.map(|ms| Driver::Worker { latency: Some((ms / 1000.0 * rate).round() as usize) });
    let always = [Driver::Auto, Driver::Inline, Driver::Worker { latency: None }];
    let offered = always.into_iter().chain(timed.into_iter().filter(|_| rate > 0.0 && view.can_time));
    ui.weak("Driver");
    let run = view.running.map(running::words).filter(|words| !words.is_empty());
    let chosen = match &run {
        Some(run) => format!("{}, {run}", name(view.driver)),
        None => name(view.driver),
    };
    let driver = ComboBox::from_id_salt("driver").width(132.0).truncate().height(MENU).selected_text(&chosen);
    let shown = driver.close_behavior(PopupCloseBehavior::CloseOnClickOutside).show_ui(ui, |ui| {
        theme::menu(ui);
        for driver in offered {
            if theme::item(ui, Button::selectable(driver == view.driver, name(driver))).clicked() {
                desk.tell(Command::Drive(driver));
            }
        }
        if let Some(running) = view.running {
            running::show(ui, desk, running);
        }
    });
    let open = shown.inner.is_some();
    if open && !menu.open && view.running.is_some() {
        // Not before: libtorch is opened for that.
        desk.tell(Command::Devices);
    }
    menu.open = open;
    let response = shown.response.accessible_name("Driver");
    if run.is_some() {
        // It may be too long to be seen whole.
        response.on_hover_text(chosen);
    }
}

fn qualities(ui: &mut Ui, desk: &mut Desk<'_>) {
    let view = desk.view;
    // Where there is no choice none is offered.
    if view.qualities.len() < 2 {
        return;
    }
    ui.add_space(GAP);
    ui.weak("Quality");
    let chosen = view.qualities.get(view.quality).map_or("–", String::as_str);
    let shown = ComboBox::from_id_salt("quality").width(92.0).truncate().selected_text(chosen).show_ui(ui, |ui| {
        for (index, quality) in view.qualities.iter().enumerate() {
            if theme::item(ui, Button::selectable(index == view.quality, quality.as_str())).clicked() {
                desk.tell(Command::Quality(index));
            }
        }
    });
    shown.response.accessible_name("Quality");
}

fn facts(ui: &mut Ui, health: &Health) {
    let palette = Palette::of(ui);
    let driven = match health.driven {
        Driven::Inline => "inline",
        Driven::Worker => "worker",
        Driven::Aside => "aside",
        Driven::Offline => "offline",
    };
    fact(ui, "Runs", driven, 46.0, None);
    load(ui, health.load);
    let bad = |wrong: bool| wrong.then_some(palette.bad);
    fact(ui, "Misses", &health.misses.to_string(), 28.0, bad(health.misses > 0));
    if health.faults > 0 {
        fact(ui, "Faults", &health.faults.to_string(), 28.0, bad(true));
    }
    let latency = format!("{:.1} ms", health.latency_ms);
    fact(ui, "Latency", &latency, 56.0, None).on_hover_text(format!("{} samples", health.latency_samples));
    let steps = health.steps;
    let line = format!("{} / {}", words::time(steps.p50), words::time(steps.p99));
    fact(ui, "Step", &line, 112.0, None).on_hover_text(format!(
        "Time of {} steps: half within {}, 95 % {}, 99 % {}, 99.9 % {}, all {}",
        steps.count,
        words::time(steps.p50),
        words::time(steps.p95),
        words::time(steps.p99),
        words::time(steps.p999),
        words::time(steps.worst),
    ));
}

/// A name and what it stands for, in so much room that what follows keeps its place while figures change.
fn fact(ui: &mut Ui, name: &str, text: &str, width: f32, ink: Option<egui::Color32>) -> egui::Response {
    let palette = Palette::of(ui);
    ui.add_space(5.0);
    let title = ui.painter().layout_no_wrap(name.to_owned(), theme::small(), palette.dim);
    let (rect, response) = ui.allocate_exact_size(vec2(title.size().x + 5.0 + width, 20.0), Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Status, true, format!("{name} {text}")));
    let y = rect.center().y - title.size().y / 2.0;
    let figures = rect.left_center() + vec2(title.size().x + 5.0, 0.0);
    ui.painter().galley(egui::pos2(rect.left(), y), title, palette.dim);
    ui.painter().text(figures, Align2::LEFT_CENTER, text, theme::figures(), ink.unwrap_or(palette.text));
    response
}

/// A bar that is full when the model takes all of a core's time.
fn load(ui: &mut Ui, load: f32) {
    let palette = Palette::of(ui);
    let ink = (load >= 1.0).then_some(palette.bad);
    let percent = if load.is_nan() { "–".to_owned() } else { format!("{:.0} %", 100.0 * load.clamp(0.0, 9.99)) };
    fact(ui, "Load", &percent, 33.0, ink);
    let (rect, _) = ui.allocate_exact_size(vec2(44.0, 5.0), Sense::hover());
    ui.painter().rect_filled(rect, 2.5, palette.line);
    let part = if load.is_nan() { 0.0 } else { load.clamp(0.0, 1.0) };
    let bar = Rect::from_min_size(rect.min, vec2(part * rect.width(), rect.height()));
    ui.painter().rect_filled(bar, 2.5, ink.unwrap_or(palette.accent));
}
