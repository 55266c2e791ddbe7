//! Panel of audio devices and MIDI ports.

use egui::{Align, ComboBox, Layout, ScrollArea, Ui, vec2};

use super::track_panel::{all_channels, channel};
use super::view::{AppCommand, AppView};
use super::widgets::named;
use crate::devices::AudioStatus;
use crate::devices::device_info::{AudioDevice, DirectionInfo};
use crate::io::{AudioChoice, MidiChoice, MidiPorts};

/// Block lengths to choose from, frames.
const BLOCKS: [u32; 7] = [32, 64, 128, 256, 512, 1024, 2048];
/// Sample rates to choose from if the device does not report any, Hz.
const RATES: [u32; 4] = [44_100, 48_000, 88_200, 96_000];

/// Width of the labels before the lists, points.
const LABEL_WIDTH: f32 = 92.0;

/// Draws the panel.
pub(super) fn show(ui: &mut Ui, view: &AppView, commands: &mut Vec<AppCommand>) {
    ui.horizontal(|ui| {
        ui.heading("Devices");
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            if ui
                .button("Scan again")
                .on_hover_text("Look for devices and ports again")
                .clicked()
            {
                commands.push(AppCommand::Rescan);
            }
            if view.available.scanning {
                ui.weak("Scanning …");
            }
        });
    });
    ScrollArea::vertical()
        .id_salt("devices")
        .auto_shrink(false)
        .show(ui, |ui| {
            audio(ui, view, commands);
            ui.add_space(12.0);
            midi(ui, view, commands);
            for error in &view.available.errors {
                ui.small(error);
            }
        });
}

fn audio(ui: &mut Ui, view: &AppView, commands: &mut Vec<AppCommand>) {
    let now = &view.audio;
    let mut choice = now.clone();
    let found = &view.available;
    ui.strong("Audio");
    let hosts = found.hosts.iter().map(|host| {
        let note = if host.available { "" } else { " (not running)" };
        (Some(host.name.clone()), format!("{}{note}", host.name))
    });
    if pick(ui, "Sound system", &mut choice.host, hosts) {
        // Another sound system has other devices.
        choice = AudioChoice {
            host: choice.host,
            block: choice.block,
            ..AudioChoice::default()
        };
    }
    let devices = |side: fn(&AudioDevice) -> Option<&DirectionInfo>| {
        found
            .devices
            .iter()
            .filter(move |device| side(device).is_some())
            .map(|device| {
                let name = if device.name == device.id {
                    device.name.clone()
                } else {
                    format!("{} ({})", device.name, device.id)
                };
                (Some(device.id.clone()), name)
            })
    };
    pick(
        ui,
        "Output device",
        &mut choice.output,
        devices(|device| device.output.as_ref()),
    );
    let mut input = if now.input_channels == Some(0) {
        None
    } else {
        Some(now.input.clone())
    };
    let inputs = devices(|device| device.input.as_ref()).map(|(id, name)| (Some(id), name));
    let inputs = std::iter::once((Some(None), "Automatic".to_owned())).chain(inputs);
    let none = now.input.is_none() && now.input_channels.is_none();
    if none {
        input = None;
    }
    if pick_named(ui, "Input device", "None", &mut input, inputs) {
        (choice.input, choice.input_channels) = match input {
            None => (None, Some(0)),
            Some(None) => (None, Some(2)),
            Some(Some(id)) => (Some(id), None),
        };
    }
    let known = found
        .devices
        .iter()
        .filter(|device| now.output.as_ref().is_none_or(|id| *id == device.id));
    let known = known
        .filter_map(|device| device.output.as_ref())
        .filter(|side| now.output.is_some() || side.default);
    let mut rates: Vec<u32> = known
        .flat_map(|side| side.sample_rates.iter().copied())
        .collect();
    if rates.is_empty() {
        rates = RATES.into();
    }
    pick(
        ui,
        "Sample rate",
        &mut choice.sample_rate,
        rates
            .into_iter()
            .map(|rate| (Some(rate), format!("{rate} Hz"))),
    );
    pick(
        ui,
        "Block size",
        &mut choice.block,
        BLOCKS
            .into_iter()
            .map(|block| (Some(block), format!("{block} frames"))),
    );
    if choice != *now {
        commands.push(AppCommand::SetAudio(choice));
    }
    if let AudioStatus::Playing(opened) = &view.sound {
        let ms = |frames: usize| 1e3 * frames as f64 / f64::from(opened.sample_rate);
        ui.small(format!(
            "{} {}: {} in, {} out, block {:.1} ms, latency in {:.1} ms, out {:.1} ms",
            opened.host,
            opened.output,
            opened.inputs,
            opened.outputs,
            ms(opened.max_block),
            ms(opened.input_latency_frames),
            ms(opened.output_latency_frames)
        ));
    }
}

fn midi(ui: &mut Ui, view: &AppView, commands: &mut Vec<AppCommand>) {
    let now = &view.midi;
    let mut choice = now.clone();
    ui.strong("MIDI");
    let mut every = now.ports == MidiPorts::All;
    let all = ui
        .checkbox(&mut every, "All ports")
        .on_hover_text("Play from every MIDI port, also those plugged in later");
    if all.changed() {
        choice.ports = if every {
            MidiPorts::All
        } else {
            MidiPorts::Names(view.ports.connected.clone())
        };
    }
    let mut names: Vec<&str> = view
        .available
        .ports
        .iter()
        .map(|port| port.name.as_str())
        .collect();
    if let MidiPorts::Names(chosen) = &now.ports {
        names.extend(
            chosen
                .iter()
                .map(String::as_str)
                .filter(|chosen| !view.available.ports.iter().any(|port| port.name == *chosen)),
        );
    }
    for name in &names {
        let chosen = match &now.ports {
            MidiPorts::All => view.ports.connected.iter().any(|port| port == name),
            MidiPorts::Names(chosen) => chosen.iter().any(|port| port == name),
        };
        let mut selection = chosen;
        let hint = format!("Play from {name}");
        let port = ui.add_enabled(!every, egui::Checkbox::new(&mut selection, *name));
        if port
            .on_hover_text(&hint)
            .on_disabled_hover_text("All ports play")
            .changed()
            && let MidiPorts::Names(chosen) = &mut choice.ports
        {
            chosen.retain(|port| port != name);
            if selection {
                chosen.push((*name).to_owned());
            }
        }
    }
    if names.is_empty() {
        ui.weak("No ports");
    }
    for missing in &view.ports.missing {
        ui.small(format!(
            "{missing} is not connected; it is used when it appears"
        ));
    }
    ui.add_space(4.0);
    let all = ui.horizontal(|ui| {
        ui.label("Channels");
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            all_channels(ui, now.channels, "all tracks")
        })
        .inner
    });
    let all = all.inner;
    let mut selection = None;
    // Two rows: sixteen buttons in a row are wider than the panel.
    for row in [0..8, 8..16] {
        ui.horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = 3.0;
            for number in row {
                selection = selection.or(channel(ui, now.channels, number, 32.0, "all tracks"));
            }
        });
    }
    choice.channels = selection.or(all).unwrap_or(now.channels);
    if choice != *now {
        commands.push(AppCommand::SetMidi(MidiChoice { ..choice }));
    }
}

/// Draws a list with "Automatic" as its first entry. Returns whether the choice has changed.
fn pick<T: PartialEq + Clone>(
    ui: &mut Ui,
    label: &str,
    chosen: &mut Option<T>,
    choices: impl Iterator<Item = (Option<T>, String)>,
) -> bool {
    pick_named(ui, label, "Automatic", chosen, choices)
}

fn pick_named<T: PartialEq + Clone>(
    ui: &mut Ui,
    label: &str,
    none: &str,
    chosen: &mut Option<T>,
    choices: impl Iterator<Item = (Option<T>, String)>,
) -> bool {
    let choices: Vec<(Option<T>, String)> = std::iter::once((None, none.to_owned()))
        .chain(choices)
        .collect();
    // The chosen device may be missing at the moment.
    let said = choices
        .iter()
        .find(|(choice, _)| choice == chosen)
        .map_or("not connected", |(_, name)| name.as_str());
    let before = chosen.clone();
    ui.horizontal(|ui| {
        ui.allocate_ui_with_layout(
            vec2(LABEL_WIDTH, 24.0),
            Layout::left_to_right(Align::Center),
            |ui| {
                ui.set_min_width(LABEL_WIDTH);
                ui.label(label);
            },
        );
        let width = ui.available_width();
        let combo = ComboBox::from_id_salt(label)
            .width(width)
            .truncate()
            .selected_text(said)
            .show_ui(ui, |ui| {
                for (choice, name) in &choices {
                    if ui.selectable_label(choice == chosen, name).clicked() {
                        *chosen = choice.clone();
                    }
                }
            });
        named(ui, combo.response, label).on_hover_text(format!("{label}: {said}"));
    });
    *chosen != before
}
