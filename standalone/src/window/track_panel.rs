//! Tracks, set list, and the input of the selected track.

use std::path::PathBuf;

use egui::{
    Align, Button, ComboBox, Label, Layout, Popup, PopupCloseBehavior, Rect, ScrollArea, Sense,
    Stroke, TextEdit, Ui, pos2, vec2,
};
use ondes_player::product::Product;

use super::file_dialog::DialogPurpose;
use super::view::{AppCommand, AppView, ClipView, SetListEntry, TrackView};
use super::widgets::{self, named, sign, toggle};
use crate::rack::session_file::TrackInput;
use crate::rack::track::ALL_CHANNELS;

/// Widths of the parts of the input's line, points: the list of inputs, the path being typed,
/// sixteen channels, and what stands beside the path.
const INPUT: f32 = 220.0;
const TYPED_INPUT: f32 = 500.0;
const CHANNELS: f32 = 430.0;
const BESIDE_PATH: f32 = 330.0;

/// Panel state of its own: text that is being typed.
#[derive(Default)]
pub(super) struct TrackPanel {
    renamed: Option<(usize, String)>,
    /// Path of a recording, and the slot of its track.
    file: Option<(usize, String)>,
}

impl TrackPanel {
    /// Draws the list of tracks with the set list below.
    pub fn list(&mut self, ui: &mut Ui, view: &AppView, commands: &mut Vec<AppCommand>) {
        ui.horizontal(|ui| {
            ui.heading("Tracks");
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                for (product, text, label) in [
                    (Product::Effect, "+ Effect", "Add an effect"),
                    (Product::Instrument, "+ Instrument", "Add an instrument"),
                ] {
                    let response = ui.button(text).on_hover_text(label);
                    if named(ui, response, label).clicked() {
                        commands.push(AppCommand::AddTrack(product));
                    }
                }
            });
        });
        let below = 62.0 + 25.0 * view.set_list.len().min(6) as f32;
        let height = (ui.available_height() - below).max(80.0);
        ScrollArea::vertical()
            .id_salt("tracks")
            .max_height(height)
            .min_scrolled_height(height)
            .auto_shrink([false, false])
            .show(ui, |ui| {
                for track in &view.tracks {
                    self.row(ui, view, track, commands);
                }
                if view.tracks.is_empty() {
                    ui.weak("No tracks yet. Add an instrument.");
                }
            });
        ui.separator();
        set_list(ui, view, commands);
    }

    fn row(
        &mut self,
        ui: &mut Ui,
        view: &AppView,
        track: &TrackView,
        commands: &mut Vec<AppCommand>,
    ) {
        let TrackView {
            slot, title, fader, ..
        } = track;
        let (slot, chosen) = (*slot, view.selected == Some(track.slot));
        let fill = if chosen {
            ui.visuals().faint_bg_color
        } else {
            ui.visuals().panel_fill
        };
        let frame = egui::Frame::new()
            .fill(fill)
            .corner_radius(5)
            .inner_margin(6);
        let frame = frame.show(ui, |ui| {
            ui.push_id(("track", slot), |ui| {
                ui.set_width(ui.available_width());
                ui.horizontal(|ui| {
                    ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                        if sign(ui, "×", &format!("Remove {title}")) {
                            commands.push(AppCommand::RemoveTrack(slot));
                        }
                        let mut moved = *fader;
                        if toggle(ui, fader.solo, "S", &format!("Solo {title}")) {
                            moved.solo = !fader.solo;
                        }
                        if toggle(ui, fader.mute, "M", &format!("Mute {title}")) {
                            moved.mute = !fader.mute;
                        }
                        if moved != *fader {
                            commands.push(AppCommand::SetFader(slot, moved));
                        }
                        ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                            self.title(ui, track, chosen, commands)
                        });
                    });
                });
                ui.horizontal(|ui| {
                    let moved = widgets::level(ui, *fader, 104.0, &format!("Level of {title}"));
                    let moved = widgets::pan(
                        ui,
                        moved.unwrap_or(*fader),
                        48.0,
                        &format!("Pan of {title}"),
                    )
                    .or(moved);
                    commands.extend(moved.map(|moved| AppCommand::SetFader(slot, moved)));
                    widgets::figure(ui, &widgets::decibels(fader.level_db), 62.0, true);
                });
                widgets::meter(
                    ui,
                    &[track.peak_db],
                    ui.available_width(),
                    4.0,
                    &format!("Meter of {title}"),
                );
                if let Some(name) = &track.loading {
                    ui.add(
                        Label::new(egui::RichText::new(loading(name)).small().weak()).truncate(),
                    );
                } else if let Some(error) = &track.error {
                    let ink = ui.visuals().error_fg_color;
                    ui.add(Label::new(egui::RichText::new(error).small().color(ink)).truncate())
                        .on_hover_text(error);
                }
            });
        });
        if chosen {
            let rect = frame.response.rect;
            ui.painter().vline(
                rect.left() + 1.5,
                rect.y_range().shrink(3.0),
                Stroke::new(3.0, ui.visuals().selection.bg_fill),
            );
        }
    }

    fn title(
        &mut self,
        ui: &mut Ui,
        track: &TrackView,
        chosen: bool,
        commands: &mut Vec<AppCommand>,
    ) {
        if let Some((slot, text)) = self
            .renamed
            .as_mut()
            .filter(|(slot, _)| *slot == track.slot)
        {
            let response = ui.add(
                TextEdit::singleline(text)
                    .desired_width(f32::INFINITY)
                    .hint_text("the model's name"),
            );
            let response = named(ui, response, "Name of the track")
                .on_hover_text("Empty for the name of the model");
            if response.lost_focus() {
                commands.push(AppCommand::RenameTrack(*slot, text.clone()));
                self.renamed = None;
            } else {
                response.request_focus();
            }
            return;
        }
        let text = if track.title.is_empty() {
            "Loading …"
        } else {
            &track.title
        };
        let text = egui::RichText::new(format!("{}  {text}", track.slot + 1));
        let text = if chosen { text.strong() } else { text };
        let button = Button::new(text)
            .frame(false)
            .truncate()
            .min_size(vec2(ui.available_width(), 22.0));
        // Aligns the name to the left.
        let button = button.right_text("");
        let hint = "Click to select, double-click to rename";
        let response = ui.add(button).on_hover_text(match &track.file {
            Some(file) => format!("{}\n{hint}", file.display()),
            None => hint.to_owned(),
        });
        let response = named(ui, response, &format!("Track {}", track.slot + 1));
        if response.double_clicked() {
            self.renamed = Some((track.slot, track.title.clone()));
        } else if response.clicked() {
            commands.push(AppCommand::SelectTrack(track.slot));
        }
    }

    /// Draws the input of the selected track in one line, and its recording in another.
    pub fn source(&mut self, ui: &mut Ui, view: &AppView, commands: &mut Vec<AppCommand>) {
        let Some(track) = view
            .tracks
            .iter()
            .find(|track| view.selected == Some(track.slot))
        else {
            return;
        };
        let is_typing = self
            .file
            .as_ref()
            .is_some_and(|(slot, _)| *slot == track.slot);
        let needed = if is_typing { TYPED_INPUT } else { INPUT } + CHANNELS;
        let has_room = ui.available_width() >= needed;
        ui.horizontal(|ui| {
            self.input(ui, view, track, commands);
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                ui.spacing_mut().item_spacing.x = 2.0;
                let chosen = if has_room {
                    channels(ui, track.midi_channels, "the track")
                } else {
                    channel_menu(ui, track.midi_channels, "the track")
                };
                commands.extend(
                    chosen.map(|channels| AppCommand::SetMidiChannels(track.slot, channels)),
                );
                ui.label("MIDI ");
            });
        });
        if let (TrackInput::File { path, looped }, Some(clip)) = (&track.input, &track.clip) {
            recording(ui, track.slot, path, *looped, clip, commands);
        }
    }

    fn input(
        &mut self,
        ui: &mut Ui,
        view: &AppView,
        track: &TrackView,
        commands: &mut Vec<AppCommand>,
    ) {
        let slot = track.slot;
        ui.label("Input");
        if let Some((_, text)) = self.file.as_mut().filter(|(typed, _)| *typed == slot) {
            let width = (ui.available_width() - BESIDE_PATH).clamp(80.0, 230.0);
            let field = TextEdit::singleline(text)
                .desired_width(width)
                .hint_text("path of a recording");
            let field = ui.add(field);
            let field = named(ui, field, "Path of the recording")
                .on_hover_text("Path of a WAV, AIFF or FLAC file");
            let done = field.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter));
            let play = ui
                .button("Play")
                .on_hover_text("Play this file into the track")
                .clicked();
            if (done || play) && !text.trim().is_empty() {
                let looped = matches!(track.input, TrackInput::File { looped: true, .. });
                commands.push(AppCommand::SetInput(
                    slot,
                    TrackInput::File {
                        path: PathBuf::from(text.trim()),
                        looped,
                    },
                ));
                self.file = None;
            } else if view.can_browse
                && ui
                    .button("Browse…")
                    .on_hover_text("Choose the file in a dialog")
                    .clicked()
            {
                commands.push(AppCommand::OpenDialog(DialogPurpose::Recording(slot)));
                self.file = None;
            } else if ui
                .button("Cancel")
                .on_hover_text("Keep the input as it is")
                .clicked()
            {
                self.file = None;
            }
            return;
        }
        let said = said(&track.input);
        let inputs = match &view.sound {
            crate::devices::AudioStatus::Playing(opened) => opened.inputs.max(2),
            _ => 2,
        };
        let mut choices = vec![TrackInput::Nothing];
        choices.extend((0..inputs.min(16)).map(|first| TrackInput::Channels { first, count: 1 }));
        choices.extend((0..inputs.min(16) / 2).map(|pair| TrackInput::Channels {
            first: 2 * pair,
            count: 2,
        }));
        let combo = ComboBox::from_id_salt("input")
            .width(130.0)
            .selected_text(&said)
            .show_ui(ui, |ui| {
                for choice in choices {
                    let name = self::said(&choice);
                    if ui.selectable_label(track.input == choice, name).clicked()
                        && track.input != choice
                    {
                        commands.push(AppCommand::SetInput(slot, choice));
                    }
                }
                if ui
                    .selectable_label(matches!(track.input, TrackInput::File { .. }), "Recording…")
                    .clicked()
                {
                    let path = if let TrackInput::File { path, .. } = &track.input {
                        path.display().to_string()
                    } else {
                        String::new()
                    };
                    self.file = Some((slot, path));
                }
            });
        let hint = "What the track processes: an input of the sound card, or a recording";
        named(ui, combo.response, "Input of the track").on_hover_text(hint);
    }
}

/// Returns the label of a pending load.
fn loading(name: &str) -> String {
    if name.is_empty() {
        "Loading …".into()
    } else {
        format!("Loading {name} …")
    }
}

fn said(input: &TrackInput) -> String {
    match input {
        TrackInput::Nothing => "None".into(),
        TrackInput::Channels { first, count: 1 } => format!("Input {}", first + 1),
        TrackInput::Channels { first, count } => format!("Inputs {}–{}", first + 1, first + count),
        TrackInput::File { path, .. } => path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
    }
}

/// Draws sixteen MIDI channels from right to left. Returns the new selection after a click.
fn channels(ui: &mut Ui, selection: u16, owner: &str) -> Option<u16> {
    let chosen = (0..16)
        .rev()
        .filter_map(|channel| self::channel(ui, selection, channel, 19.0, owner))
        .last();
    all_channels(ui, selection, owner).or(chosen)
}

/// Draws a menu of the MIDI channels. Returns the new selection after a click.
fn channel_menu(ui: &mut Ui, selection: u16, owner: &str) -> Option<u16> {
    let numbers = (0..16)
        .filter(|channel| selection >> channel & 1 == 1)
        .map(|channel| (channel + 1).to_string());
    let said = if selection == ALL_CHANNELS {
        "All".to_owned()
    } else {
        numbers.collect::<Vec<_>>().join(" ")
    };
    let response = ui.button(format!("{} …", widgets::shorten(&said, 10)));
    let label = format!("MIDI channels for {owner}");
    let response = named(ui, response, &label).on_hover_text(format!("{label}: {said}"));
    let popup = Popup::menu(&response).close_behavior(PopupCloseBehavior::CloseOnClickOutside);
    let shown = popup.show(|ui| {
        let all = all_channels(ui, selection, owner);
        let rows = [0..8, 8..16].map(|row| {
            ui.horizontal(|ui| {
                ui.spacing_mut().item_spacing.x = 3.0;
                row.filter_map(|number| channel(ui, selection, number, 32.0, owner))
                    .last()
            })
        });
        rows.into_iter().filter_map(|row| row.inner).last().or(all)
    });
    shown.and_then(|shown| shown.inner)
}

/// Draws the button of a MIDI channel, counted from 0. Returns the new selection after a click.
pub(super) fn channel(
    ui: &mut Ui,
    selection: u16,
    channel: u16,
    width: f32,
    owner: &str,
) -> Option<u16> {
    let on = selection >> channel & 1 == 1 && selection != ALL_CHANNELS;
    let text = egui::RichText::new((channel + 1).to_string()).small();
    let button = Button::selectable(on, text)
        .frame_when_inactive(true)
        .min_size(vec2(width, 20.0));
    let button = ui.scope(|ui| {
        ui.spacing_mut().button_padding.x = 2.0;
        ui.add(button)
    });
    let label = format!("MIDI channel {} for {owner}", channel + 1);
    let clicked = named(ui, button.inner, &label)
        .on_hover_text(&label)
        .clicked();
    // From "all", a click selects one channel; then it adds or removes one. Without any channel the
    // track would be silent for no visible reason, so that means all.
    let now = if selection == ALL_CHANNELS {
        1 << channel
    } else {
        selection ^ 1 << channel
    };
    clicked.then_some(if now == 0 { ALL_CHANNELS } else { now })
}

/// Draws the button for all MIDI channels.
pub(super) fn all_channels(ui: &mut Ui, selection: u16, owner: &str) -> Option<u16> {
    let label = format!("All MIDI channels for {owner}");
    toggle(ui, selection == ALL_CHANNELS, "All", &label).then_some(ALL_CHANNELS)
}

fn recording(
    ui: &mut Ui,
    slot: usize,
    path: &std::path::Path,
    looped: bool,
    clip: &ClipView,
    commands: &mut Vec<AppCommand>,
) {
    ui.horizontal(|ui| {
        if toggle(
            ui,
            clip.playing,
            if clip.playing { "Pause" } else { "Play" },
            "Play the recording",
        ) {
            commands.push(AppCommand::SetPlaying(slot, !clip.playing));
        }
        if toggle(ui, looped, "Loop", "Loop the recording") {
            commands.push(AppCommand::SetInput(
                slot,
                TrackInput::File {
                    path: path.into(),
                    looped: !looped,
                },
            ));
        }
        let (at, end) = (clip.position * clip.length_s, clip.length_s);
        widgets::figure(ui, &format!("{} / {}", clock(at), clock(end)), 96.0, true);
        let (rect, response) =
            ui.allocate_exact_size(vec2(ui.available_width(), 34.0), Sense::click_and_drag());
        let response = named(ui, response, "Waveform").on_hover_text(path.display().to_string());
        let visuals = ui.visuals();
        ui.painter()
            .rect_filled(rect, 4.0, visuals.extreme_bg_color);
        let inner = rect.shrink(3.0);
        let step = inner.width() / clip.waveform.len().max(1) as f32;
        for (index, largest) in clip.waveform.iter().enumerate() {
            let x = inner.left() + (index as f32 + 0.5) * step;
            let half = (largest * 0.5 * inner.height()).max(0.5);
            let bar = Rect::from_min_max(
                pos2(x - 0.5 * step, inner.center().y - half),
                pos2(x + 0.5 * step, inner.center().y + half),
            );
            let played = (index as f32) < clip.position * clip.waveform.len() as f32;
            let ink = if played {
                visuals.selection.bg_fill
            } else {
                visuals.weak_text_color()
            };
            ui.painter().rect_filled(bar, 0.0, ink);
        }
        let x = inner.left() + clip.position.clamp(0.0, 1.0) * inner.width();
        ui.painter()
            .vline(x, rect.y_range(), Stroke::new(1.5, visuals.text_color()));
        if (response.clicked() || response.dragged())
            && let Some(pointer) = response.interact_pointer_pos()
        {
            let part = ((pointer.x - inner.left()) / inner.width()).clamp(0.0, 1.0);
            commands.push(AppCommand::Seek(slot, part));
        }
    });
}

fn clock(seconds: f32) -> String {
    format!("{}:{:04.1}", (seconds / 60.0) as u32, seconds % 60.0)
}

fn set_list(ui: &mut Ui, view: &AppView, commands: &mut Vec<AppCommand>) {
    ui.horizontal(|ui| {
        ui.label("Set list").on_hover_text(
            "MIDI program changes load these models on the tracks that receive the channel",
        );
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let response = ui.add_enabled(view.selected.is_some(), Button::new("+ Model"));
            let label = "Add the model to the set list";
            if named(ui, response, label)
                .on_hover_text(label)
                .on_disabled_hover_text(label)
                .clicked()
            {
                commands.push(AppCommand::AddToSetList);
            }
        });
    });
    ScrollArea::vertical()
        .id_salt("set list")
        .auto_shrink([false, true])
        .show(ui, |ui| {
            ui.spacing_mut().item_spacing.y = 2.0;
            for (index, SetListEntry { name, file }) in view.set_list.iter().enumerate() {
                ui.push_id(index, |ui| {
                    ui.horizontal(|ui| {
                        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                            if sign(ui, "×", &format!("Remove {name} from the set list")) {
                                commands.push(AppCommand::RemoveFromSetList(index));
                            }
                            let last = index + 1 == view.set_list.len();
                            if ui
                                .add_enabled_ui(!last, |ui| {
                                    sign(ui, "Down", &format!("Move {name} down"))
                                })
                                .inner
                            {
                                commands.push(AppCommand::MoveDown(index));
                            }
                            if ui
                                .add_enabled_ui(index > 0, |ui| {
                                    sign(ui, "Up", &format!("Move {name} up"))
                                })
                                .inner
                            {
                                commands.push(AppCommand::MoveUp(index));
                            }
                            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                                let response = ui.add(
                                    Button::new(format!("{}  {name}", index + 1))
                                        .frame(false)
                                        .truncate(),
                                );
                                let label = format!("Play {name}");
                                let hint = "Load it on the selected track";
                                let hint = match file {
                                    Some(file) => format!("{}\n{hint}", file.display()),
                                    None => hint.to_owned(),
                                };
                                if named(ui, response, &label).on_hover_text(hint).clicked() {
                                    commands.push(AppCommand::PlayFromSetList(index));
                                }
                            });
                        });
                    });
                });
            }
        });
}
