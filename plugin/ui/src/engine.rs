//! The bottom line: how the model is driven, how late, and at what cost.

use egui::accesskit::Role;
use egui::{Align2, Button, ComboBox, Rect, Sense, Ui, WidgetInfo, vec2};
use ondes_engine::realtime::{Driven, Driver, Health};

use super::command::Command;
use super::desk::Desk;
use super::theme::{self, GAP, Palette};
use super::words;

/// Times for the worker that are offered, ms.
const LATENCIES_MS: [f32; 5] = [5.0, 10.0, 20.0, 40.0, 80.0];

pub(crate) fn show(ui: &mut Ui, desk: &mut Desk<'_>) {
    ui.horizontal_centered(|ui| {
        ui.spacing_mut().interact_size.y = 22.0;
        ui.spacing_mut().button_padding.y = 2.0;
        drivers(ui, desk);
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

fn drivers(ui: &mut Ui, desk: &mut Desk<'_>) {
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
    let chosen = ComboBox::from_id_salt("driver").width(132.0).selected_text(name(view.driver));
    let shown = chosen.show_ui(ui, |ui| {
        for driver in offered {
            if theme::item(ui, Button::selectable(driver == view.driver, name(driver))).clicked() {
                desk.tell(Command::Drive(driver));
            }
        }
    });
    shown.response.accessible_name("Driver");
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
