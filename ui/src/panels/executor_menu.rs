//! Choice of the executor, its device and precision; part of the processing menu.

use egui::{Button, Label, RichText, Ui, vec2};
use ondes_engine::executor::{Backend, Device, ExecutorSelection, Precision};

use crate::command::EngineCommand;
use crate::frame::Frame;
use crate::theme;
use crate::view::{ExecutorDevices, ExecutorView};

/// Widths of the menu and of the labels of its rows, points.
const MENU: f32 = 300.0;
const NAME: f32 = 74.0;

/// Summarizes the executor; empty for the native one.
pub(crate) fn summary(view: ExecutorView<'_>) -> String {
    let executor = effective(view);
    if executor.is_default() {
        String::new()
    } else {
        executor.to_string()
    }
}

/// Returns the executor in use: TorchScript programs always need libtorch.
fn effective(view: ExecutorView<'_>) -> ExecutorSelection {
    let ExecutorView {
        selection,
        native_supported,
        ..
    } = view;
    if native_supported {
        selection
    } else {
        ExecutorSelection {
            backend: Backend::Torch,
            ..selection
        }
    }
}

pub(crate) fn show(ui: &mut Ui, frame: &mut Frame<'_>, view: ExecutorView<'_>) {
    let selection = view.selection;
    let uses_torch = effective(view).backend == Backend::Torch;
    // Choices that are not available yet keep their places.
    let (available, devices) = match view.devices {
        ExecutorDevices::Available(devices) => (true, devices),
        ExecutorDevices::Unknown | ExecutorDevices::Unavailable(_) => (false, &[Device::Auto][..]),
    };
    ui.set_min_width(MENU);
    ui.separator();
    row(ui, "Executor", |ui| {
        if view.native_supported {
            // The native executor has no devices or precisions.
            choice(
                ui,
                frame,
                "Executor",
                "Native",
                !uses_torch,
                ExecutorSelection::default(),
            );
        }
        let torch = if view.native_supported {
            ExecutorSelection {
                backend: Backend::Torch,
                ..selection
            }
        } else {
            selection
        };
        ui.add_enabled_ui(available, |ui| {
            choice(ui, frame, "Executor", "Torch", uses_torch, torch)
        });
    });
    ui.add_enabled_ui(available && uses_torch, |ui| {
        row(ui, "Device", |ui| {
            for &device in devices {
                let chosen = device == selection.device;
                choice(
                    ui,
                    frame,
                    "Device",
                    &name(device),
                    chosen,
                    ExecutorSelection {
                        device,
                        ..selection
                    },
                );
            }
        });
        row(ui, "Precision", |ui| {
            for precision in Precision::ALL {
                let chosen = precision == selection.precision;
                choice(
                    ui,
                    frame,
                    "Precision",
                    precision.name(),
                    chosen,
                    ExecutorSelection {
                        precision,
                        ..selection
                    },
                );
            }
        });
    });
    match view.devices {
        ExecutorDevices::Available(_) => {}
        ExecutorDevices::Unknown => {
            ui.weak("Searching for libtorch …");
        }
        ExecutorDevices::Unavailable(reason) => {
            ui.set_max_width(MENU);
            ui.add(Label::new(RichText::new(reason).font(theme::small()).weak()).wrap());
        }
    }
}

fn name(device: Device) -> String {
    match device {
        Device::Auto => "Automatic".into(),
        Device::Cpu => "CPU".into(),
        Device::Cuda(_) => device.to_string(),
    }
}

/// Draws a row of choices in the processing menu.
pub(crate) fn row(ui: &mut Ui, name: &str, choices: impl FnOnce(&mut Ui)) {
    ui.horizontal(|ui| {
        let at = ui
            .allocate_ui(vec2(NAME, ui.spacing().interact_size.y), |ui| ui.weak(name))
            .response
            .rect;
        ui.add_space((NAME - at.width()).max(0.0));
        ui.horizontal_wrapped(choices);
    });
}

/// Draws a choice. The menu stays open, as there are more choices.
fn choice(
    ui: &mut Ui,
    frame: &mut Frame<'_>,
    kind: &str,
    name: &str,
    chosen: bool,
    selection: ExecutorSelection,
) {
    let response = ui.add(Button::selectable(chosen, name));
    if response.clicked()
        && frame
            .view
            .engine
            .executor
            .is_some_and(|executor| executor.selection != selection)
    {
        frame.push(EngineCommand::SetExecutor(selection));
    }
    response.accessible_name(format!("{kind} {name}"));
}
