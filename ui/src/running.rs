//! What runs the network, and where: a part of the menu of drivers.

use egui::{Button, Label, RichText, Ui, vec2};
use ondes_engine::executor::{Backend, Device, Precision};
use ondes_engine::wish::Wish;

use super::command::Command;
use super::desk::Desk;
use super::theme;
use super::view::{Devices, Running};

/// Width of the menu, and of what stands in front of its rows, points.
const MENU: f32 = 300.0;
const NAME: f32 = 62.0;

/// What was chosen, in a few words; empty where that is our own code.
pub(crate) fn words(running: Running<'_>) -> String {
    let wish = effective(running);
    if wish.is_default() { String::new() } else { wish.to_string() }
}

/// A program is run by libtorch, whatever was chosen.
fn effective(running: Running<'_>) -> Wish {
    let Running { wish, natively, .. } = running;
    if natively { wish } else { Wish { executor: Backend::Torch, ..wish } }
}

pub(crate) fn show(ui: &mut Ui, desk: &mut Desk<'_>, running: Running<'_>) {
    let wish = running.wish;
    let by_torch = effective(running).executor == Backend::Torch;
    // What cannot be chosen now keeps its place.
    let (there, devices) = match running.devices {
        Devices::These(devices) => (true, devices),
        Devices::Unknown | Devices::None(_) => (false, &[Device::Auto][..]),
    };
    ui.set_min_width(MENU);
    ui.separator();
    row(ui, "Executor", |ui| {
        if running.natively {
            // Our own code knows neither devices nor precisions.
            choice(ui, desk, "Executor", "Native", !by_torch, Wish::default());
        }
        let torch = if running.natively { Wish { executor: Backend::Torch, ..wish } } else { wish };
        ui.add_enabled_ui(there, |ui| choice(ui, desk, "Executor", "Torch", by_torch, torch));
    });
    ui.add_enabled_ui(there && by_torch, |ui| {
        row(ui, "Device", |ui| {
            for &device in devices {
                choice(ui, desk, "Device", &name(device), device == wish.device, Wish { device, ..wish });
            }
        });
        row(ui, "Precision", |ui| {
            for precision in Precision::ALL {
                let chosen = precision == wish.precision;
                choice(ui, desk, "Precision", precision.name(), chosen, Wish { precision, ..wish });
            }
        });
    });
    match running.devices {
        Devices::These(_) => {}
        Devices::Unknown => {
            ui.weak("Looking for libtorch …");
        }
        Devices::None(why) => {
            ui.set_max_width(MENU);
            ui.add(Label::new(RichText::new(why).font(theme::small()).weak()).wrap());
        }
    }
}

fn name(device: Device) -> String {
    match device {
        Device::Auto => "Auto".into(),
        Device::Cpu => "CPU".into(),
        Device::Cuda(_) => device.to_string(),
    }
}

/// Choices of one kind, side by side.
fn row(ui: &mut Ui, name: &str, choices: impl FnOnce(&mut Ui)) {
    ui.horizontal(|ui| {
        let at = ui.allocate_ui(vec2(NAME, ui.spacing().interact_size.y), |ui| ui.weak(name)).response.rect;
        ui.add_space((NAME - at.width()).max(0.0));
        ui.horizontal_wrapped(choices);
    });
}

/// One of them, and what is to run the network then. The menu stays: there is more to choose.
fn choice(ui: &mut Ui, desk: &mut Desk<'_>, kind: &str, name: &str, chosen: bool, wish: Wish) {
    let response = ui.add(Button::selectable(chosen, name));
    if response.clicked() && desk.view.running.is_some_and(|running| running.wish != wish) {
        desk.tell(Command::Run(wish));
    }
    response.accessible_name(format!("{kind} {name}"));
}
