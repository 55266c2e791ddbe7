//! The whole window: bars at the top, tracks on the left, the instrument in the middle, devices on
//! the right.

use std::mem::take;
use std::path::PathBuf;

use egui::{
    Align, Align2, Button, CentralPanel, ComboBox, FontId, Frame, Id, Key, Label, LayerId, Layout,
    Margin, Order, Panel, Rect, RichText, ScrollArea, Sense, TextEdit, Ui, UiBuilder, Vec2, vec2,
};

use super::device_panel;
use super::file_dialog::DialogPurpose;
use super::prompt;
use super::track_panel::TrackPanel;
use super::view::{AppCommand, AppView, Prompt};
use super::widgets::{self, named, toggle};
use crate::devices::AudioStatus;
use crate::rack::session_file::TrackInput;
use crate::record::RecordingFormat;

/// Size below which the window scrolls, points, and what bars add to its height while they are
/// open: the path of a session, the settings of recordings, and each message.
const LEAST_SIZE: Vec2 = vec2(600.0, 360.0);
const PATH_HEIGHT: f32 = 84.0;
const RECORDING_HEIGHT: f32 = 110.0;
const MESSAGE_HEIGHT: f32 = 37.0;
/// Widths of the panels beside the instrument, and the least width of the instrument, points.
const TRACKS: f32 = 272.0;
const DEVICES: f32 = 312.0;
const INSTRUMENT: f32 = 480.0;
/// Width from which the bar at the top is one row.
const ONE_BAR: f32 = 1160.0;
/// Height of a row of the bar, and width of the session's name.
const ROW: f32 = 32.0;
const NAME: f32 = 150.0;
/// Longest name of a recent session, characters; the tooltip has its path.
const RECENT_NAME: usize = 32;

/// Window state of its own: open panels and text that is being typed.
#[derive(Default)]
pub struct MainWindow {
    tracks: TrackPanel,
    /// The devices are shown; so are the tracks, where they have no room beside the instrument.
    devices: bool,
    shows_tracks: bool,
    path: Option<PathField>,
    /// Folder of recordings as it is being typed; `None` while its bar is hidden.
    recording_settings: Option<String>,
}

/// Path that is being typed.
struct PathField {
    text: String,
    saving: bool,
}

impl MainWindow {
    /// Creates a window with the device panel closed.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Draws the window into `ui`, its whole area, and returns the user's commands in order.
    /// `instrument` draws the panels of the selected track.
    pub fn show(
        &mut self,
        ui: &mut Ui,
        view: &AppView,
        instrument: impl FnOnce(&mut Ui),
    ) -> Vec<AppCommand> {
        ondes_ui::install_style(ui.ctx());
        // The style of this frame was set before it was installed.
        let style = ui.ctx().global_style();
        ui.set_style(style);
        let mut commands = Vec::new();
        dropped(ui, &mut commands);
        self.keys(ui, view, &mut commands);
        let area = ui.max_rect();
        let size = area.size().max(self.least_size(view));
        if size == area.size() {
            self.panels(ui, view, instrument, &mut commands);
        } else {
            ScrollArea::both()
                .id_salt("window")
                .auto_shrink(false)
                .show(ui, |ui| {
                    // The bar of the one direction takes room of the other.
                    let rect =
                        Rect::from_min_size(ui.max_rect().min, size.max(ui.available_size()));
                    ui.allocate_rect(rect, Sense::hover());
                    let mut ui = ui.new_child(UiBuilder::new().max_rect(rect).id_salt("panels"));
                    self.panels(&mut ui, view, instrument, &mut commands);
                });
        }
        // Not over the field for the name that it has asked for.
        if self.path.is_none() && prompt::show(ui, view, &mut commands) {
            self.save(view, &mut commands);
        }
        commands
    }

    /// Returns the size below which the window scrolls, points.
    fn least_size(&self, view: &AppView) -> Vec2 {
        let lost = matches!(
            view.sound,
            AudioStatus::Lost { .. } | AudioStatus::Failed(_)
        );
        let offer = view.prompt == Some(Prompt::RecoverAutosave);
        let news = !view.problems.is_empty() || view.notice.is_some();
        let messages = [lost, offer, news, view.loading.is_some()]
            .into_iter()
            .filter(|shown| *shown)
            .count();
        let path = if self.path.is_some() {
            PATH_HEIGHT
        } else {
            0.0
        };
        let recording = if self.recording_settings.is_some() {
            RECORDING_HEIGHT
        } else {
            0.0
        };
        LEAST_SIZE + vec2(0.0, path + recording + MESSAGE_HEIGHT * messages as f32)
    }

    /// Draws all panels. Where they have no room beside the instrument, tracks and devices take its
    /// place.
    fn panels(
        &mut self,
        ui: &mut Ui,
        view: &AppView,
        instrument: impl FnOnce(&mut Ui),
        commands: &mut Vec<AppCommand>,
    ) {
        let width = ui.max_rect().width();
        let has_tracks = width >= TRACKS + INSTRUMENT;
        let has_devices = width >= TRACKS + INSTRUMENT + DEVICES;
        let fill = ui.visuals().panel_fill;
        let bar = Frame::new()
            .fill(fill)
            .inner_margin(Margin::symmetric(10, 6));
        Panel::top("session")
            .frame(bar)
            .resizable(false)
            .show(ui, |ui| {
                if width >= ONE_BAR {
                    ui.horizontal(|ui| {
                        self.session(ui, view, commands);
                        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                            self.pages(ui, has_tracks, commands);
                            ui.separator();
                            self.sound(ui, view, commands);
                        });
                    });
                } else {
                    ui.horizontal(|ui| {
                        self.session(ui, view, commands);
                        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                            self.pages(ui, has_tracks, commands)
                        });
                    });
                    ui.horizontal(|ui| {
                        ui.set_height(ROW);
                        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                            self.sound(ui, view, commands)
                        });
                    });
                }
            });
        if self.path.is_some() {
            Panel::top("path")
                .frame(bar)
                .resizable(false)
                .show(ui, |ui| {
                    let area = ScrollArea::vertical()
                        .max_height(PATH_HEIGHT - 12.0)
                        .auto_shrink([false, true]);
                    area.show(ui, |ui| self.path(ui, view, commands));
                });
        }
        if self.recording_settings.is_some() {
            Panel::top("takes")
                .frame(bar)
                .resizable(false)
                .show(ui, |ui| self.recording_settings(ui, view, commands));
        }
        messages(ui, view, commands);
        if has_tracks {
            Panel::left("tracks")
                .frame(bar)
                .resizable(false)
                .exact_size(TRACKS)
                .show(ui, |ui| {
                    self.tracks.list(ui, view, commands);
                });
        }
        if self.devices && has_devices {
            Panel::right("devices")
                .frame(bar)
                .resizable(false)
                .exact_size(DEVICES)
                .show(ui, |ui| {
                    device_panel::show(ui, view, commands);
                });
        } else if self.devices {
            CentralPanel::default()
                .frame(bar)
                .show(ui, |ui| device_panel::show(ui, view, commands));
            return;
        }
        if self.shows_tracks && !has_tracks {
            let before = commands.len();
            CentralPanel::default()
                .frame(bar)
                .show(ui, |ui| self.tracks.list(ui, view, commands));
            // What was chosen is shown.
            let chosen = |command: &AppCommand| {
                matches!(
                    command,
                    AppCommand::SelectTrack(_) | AppCommand::AddTrack(_)
                )
            };
            self.shows_tracks = !commands[before..].iter().any(chosen);
            return;
        }
        let height = source_height(view);
        if view.selected.is_some() {
            Panel::top("source")
                .frame(bar)
                .resizable(false)
                .exact_size(height)
                .show(ui, |ui| {
                    self.tracks.source(ui, view, commands);
                });
        }
        CentralPanel::default()
            .frame(Frame::new().fill(fill))
            .show(ui, |ui| match view.selected {
                Some(_) => instrument(ui),
                None => {
                    let text = match &view.loading {
                        Some(name) => format!("Loading {name} …"),
                        None => "Add a track to play, or drop a model here".into(),
                    };
                    ui.centered_and_justified(|ui| ui.weak(text));
                }
            });
    }

    /// Draws the bar with folder, format and files of recordings.
    fn recording_settings(&mut self, ui: &mut Ui, view: &AppView, commands: &mut Vec<AppCommand>) {
        let Some(text) = &mut self.recording_settings else {
            return;
        };
        let mut recording_settings = view.recording_settings.clone();
        let mut over = false;
        ui.horizontal_wrapped(|ui| {
            ui.label("Record to");
            let field = ui.add(
                TextEdit::singleline(text)
                    .desired_width(330.0)
                    .hint_text("Ondes in your music folder"),
            );
            let field = named(ui, field, "Folder for recordings")
                .on_hover_text("Folder that recordings go to");
            if field.lost_focus() && *text != folder(view) {
                recording_settings.folder =
                    Some(PathBuf::from(text.trim())).filter(|path| !path.as_os_str().is_empty());
            } else if !field.has_focus() {
                *text = folder(view);
            }
            if view.can_browse
                && ui
                    .button("Browse…")
                    .on_hover_text("Choose the folder in a dialog")
                    .clicked()
            {
                commands.push(AppCommand::OpenDialog(DialogPurpose::RecordingFolder));
            }
            ui.label("as");
            let combo = ComboBox::from_id_salt("format")
                .width(150.0)
                .selected_text(format(recording_settings.format));
            let combo = combo.show_ui(ui, |ui| {
                for choice in [
                    RecordingFormat::Float32,
                    RecordingFormat::Int24,
                    RecordingFormat::Int16,
                    RecordingFormat::Flac,
                ] {
                    if ui
                        .selectable_label(recording_settings.format == choice, format(choice))
                        .clicked()
                    {
                        recording_settings.format = choice;
                    }
                }
            });
            named(ui, combo.response, "Format of recordings").on_hover_text("Format of the files");
            ui.checkbox(&mut recording_settings.tracks, "Each track to its own file")
                .on_hover_text("Also record each track, after its fader");
            over = ui
                .button("Close")
                .on_hover_text("Hide these settings")
                .clicked();
        });
        if recording_settings != view.recording_settings {
            commands.push(AppCommand::SetRecording(recording_settings));
        }
        if over {
            self.recording_settings = None;
        }
    }

    fn keys(&mut self, ui: &Ui, view: &AppView, commands: &mut Vec<AppCommand>) {
        if prompt::is_open(view) {
            return;
        }
        let pressed = |key| ui.input_mut(|input| input.consume_key(egui::Modifiers::COMMAND, key));
        if pressed(Key::S) {
            self.save(view, commands);
        }
        if pressed(Key::O) {
            self.path = Some(PathField {
                text: String::new(),
                saving: false,
            });
        }
        if pressed(Key::N) {
            commands.push(AppCommand::New);
        }
        if pressed(Key::Q) {
            commands.push(AppCommand::Quit);
        }
    }

    fn save(&mut self, view: &AppView, commands: &mut Vec<AppCommand>) {
        match view.path {
            Some(_) => commands.push(AppCommand::Save),
            None => {
                self.path = Some(PathField {
                    text: String::new(),
                    saving: true,
                })
            }
        }
    }

    /// Draws the name of the session, and what opens and saves sessions.
    fn session(&mut self, ui: &mut Ui, view: &AppView, commands: &mut Vec<AppCommand>) {
        ui.set_height(ROW);
        let sign = if view.changed { "•" } else { "" };
        let name =
            Label::new(RichText::new(format!("{} {sign}", view.session)).heading()).truncate();
        ui.allocate_ui_with_layout(
            vec2(NAME, ROW),
            Layout::left_to_right(Align::Center),
            |ui| {
                ui.set_min_width(NAME);
                let response = ui.add(name);
                if let Some(path) = &view.path {
                    response.on_hover_text(path.display().to_string());
                }
            },
        );
        if ui.button("New").on_hover_text("New session").clicked() {
            commands.push(AppCommand::New);
        }
        if ui.button("Open…").on_hover_text("Open a session").clicked() {
            self.path = Some(PathField {
                text: String::new(),
                saving: false,
            });
        }
        if ui
            .button("Save")
            .on_hover_text("Save the session")
            .clicked()
        {
            self.save(view, commands);
        }
        if ui
            .button("Save as…")
            .on_hover_text("Save the session under another name")
            .clicked()
        {
            let text = view
                .path
                .as_deref()
                .map(|path| path.display().to_string())
                .unwrap_or_default();
            self.path = Some(PathField { text, saving: true });
        }
    }

    /// Draws, from right to left, what shows other panels, and the panic button.
    fn pages(&mut self, ui: &mut Ui, has_tracks: bool, commands: &mut Vec<AppCommand>) {
        if toggle(ui, self.devices, "Devices", "Devices") {
            self.devices = !self.devices;
            self.shows_tracks = false;
            if self.devices {
                commands.push(AppCommand::Rescan);
            }
        }
        if !has_tracks && toggle(ui, self.shows_tracks, "Tracks", "Tracks and set list") {
            self.shows_tracks = !self.shows_tracks;
            self.devices = false;
        }
        if ui
            .button("Panic")
            .on_hover_text("Silence all tracks")
            .clicked()
        {
            commands.push(AppCommand::Panic);
        }
    }

    /// Draws, from right to left, what records, the master, and the audio status in what is left of
    /// the row.
    fn sound(&mut self, ui: &mut Ui, view: &AppView, commands: &mut Vec<AppCommand>) {
        if ui
            .button("Save last 30 s")
            .on_hover_text("Save the last 30 s to a file")
            .clicked()
        {
            commands.push(AppCommand::SavePreroll);
        }
        if toggle(
            ui,
            self.recording_settings.is_some(),
            "…",
            "Recording settings",
        ) {
            self.recording_settings = match self.recording_settings {
                Some(_) => None,
                None => Some(folder(view)),
            };
        }
        record(ui, view, commands);
        ui.separator();
        widgets::figure(ui, &limiter(view.limiter_db), 82.0, view.limiter_db > -0.05)
            .on_hover_text("Gain reduction of the limiter on the master, dB");
        ui.allocate_ui_with_layout(vec2(120.0, ROW), Layout::top_down(Align::Min), |ui| {
            ui.set_width(120.0);
            ui.spacing_mut().item_spacing.y = 1.0;
            ui.spacing_mut().interact_size.y = 18.0;
            let moved = widgets::level(ui, view.master, 120.0, "Master level");
            commands.extend(moved.map(AppCommand::SetMaster));
            widgets::meter(ui, &view.peaks_db, 120.0, 9.0, "Master meter");
        });
        ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
            ui.add_space(8.0);
            status(ui, view);
        });
    }

    fn path(&mut self, ui: &mut Ui, view: &AppView, commands: &mut Vec<AppCommand>) {
        let Some(PathField { text, saving }) = &mut self.path else {
            return;
        };
        let (mut chosen, mut over) = (None, false);
        ui.horizontal_wrapped(|ui| {
            let label = if *saving { "Save as" } else { "Open" };
            ui.label(label);
            let field = TextEdit::singleline(text)
                .desired_width(360.0)
                .hint_text("a name, or the path of a session");
            let field = ui.add(field);
            let field = named(ui, field, "Path of the session");
            let field = field
                .on_hover_text("A name alone is a session in the folder Ondes of your documents");
            let enter = ui.input(|input| input.key_pressed(Key::Enter));
            let browse = view.can_browse
                && ui
                    .button("Browse…")
                    .on_hover_text("Choose the file in a dialog")
                    .clicked();
            if browse {
                commands.push(AppCommand::OpenDialog(if *saving {
                    DialogPurpose::SaveSession
                } else {
                    DialogPurpose::OpenSession
                }));
                over = true;
            } else if field.lost_focus() && enter || ui.button("OK").on_hover_text(label).clicked()
            {
                chosen =
                    Some(PathBuf::from(text.trim())).filter(|path| !path.as_os_str().is_empty());
            } else if ui.button("Cancel").on_hover_text("Do nothing").clicked()
                || ui.input(|input| input.key_pressed(Key::Escape))
            {
                over = true;
            } else if !field.has_focus() && ui.memory(|memory| memory.focused().is_none()) {
                field.request_focus();
            }
            if !*saving {
                ui.weak("Recent");
                for path in &view.recent {
                    let name = path.file_stem().unwrap_or_default().to_string_lossy();
                    let short = widgets::shorten(&name, RECENT_NAME);
                    if ui
                        .button(short)
                        .on_hover_text(path.display().to_string())
                        .clicked()
                    {
                        chosen = Some(path.clone());
                    }
                }
            }
        });
        if let Some(path) = chosen {
            commands.push(if *saving {
                AppCommand::SaveAs(path)
            } else {
                AppCommand::Open(path)
            });
            over = true;
        }
        if over {
            self.path = None;
        }
    }
}

/// Returns the folder for recordings as text.
fn folder(view: &AppView) -> String {
    view.recording_settings
        .folder()
        .map(|folder| folder.display().to_string())
        .unwrap_or_default()
}

/// Returns the label of a format.
fn format(format: RecordingFormat) -> &'static str {
    match format {
        RecordingFormat::Float32 => "WAV, 32-bit float",
        RecordingFormat::Int24 => "WAV, 24 bits",
        RecordingFormat::Int16 => "WAV, 16 bits",
        RecordingFormat::Flac => "FLAC, 24 bits",
    }
}

/// Handles dropped files, and shows a hint while files hover. Takes both from the input, so that
/// later widgets do not see them.
fn dropped(ui: &Ui, commands: &mut Vec<AppCommand>) {
    let (hovering, dropped) = ui.input_mut(|input| {
        (
            take(&mut input.raw.hovered_files),
            take(&mut input.raw.dropped_files),
        )
    });
    commands.extend(
        dropped
            .iter()
            .map(|file| AppCommand::OpenDropped(file.path().into())),
    );
    if !hovering.is_empty() {
        let all = ui.ctx().content_rect();
        let painter = ui
            .ctx()
            .layer_painter(LayerId::new(Order::Foreground, Id::unique("dropped")));
        painter.rect_filled(all, 0.0, ui.visuals().panel_fill.gamma_multiply(0.85));
        let text = "Drop a model, a recording, a preset or a session";
        painter.text(
            all.center(),
            Align2::CENTER_CENTER,
            text,
            FontId::proportional(20.0),
            ui.visuals().text_color(),
        );
    }
}

/// Returns the height of the input bar: one line, and another one for a recording.
fn source_height(view: &AppView) -> f32 {
    let chosen = view
        .tracks
        .iter()
        .find(|track| view.selected == Some(track.slot));
    let is_rolling = chosen.is_some_and(|track| {
        matches!(track.input, TrackInput::File { .. }) && track.clip.is_some()
    });
    if is_rolling { 84.0 } else { 42.0 }
}

/// Draws the record button with the elapsed time.
fn record(ui: &mut Ui, view: &AppView, commands: &mut Vec<AppCommand>) {
    let (text, on) = match view.recorded_time() {
        Some(time) => (format!("Stop {time}"), true),
        None => ("Record".to_owned(), false),
    };
    let text = if on {
        RichText::new(text).color(ui.visuals().error_fg_color)
    } else {
        RichText::new(text)
    };
    let response = ui.add(Button::new(text).min_size(vec2(84.0, 26.0)));
    let label = if on { "Stop recording" } else { "Record" };
    let hint = "Record what is heard to a file; … beside it has the settings";
    if named(ui, response, label).on_hover_text(hint).clicked() {
        commands.push(AppCommand::Record(!on));
    }
}

fn limiter(db: f32) -> String {
    if db > -0.05 || db.is_nan() {
        "Limiter 0.0".into()
    } else {
        format!("Limiter {db:.1}")
    }
}

/// Draws the audio status in two short lines.
fn status(ui: &mut Ui, view: &AppView) {
    let (device, figures) = match &view.sound {
        AudioStatus::Opening => ("Opening devices …".into(), String::new()),
        AudioStatus::Playing(opened) => (
            format!(
                "{} · {} kHz · {} frames",
                opened.host,
                f64::from(opened.sample_rate) / 1e3,
                opened.max_block
            ),
            format!(
                "load {:.0} % · dropouts {}",
                100.0 * view.load,
                view.dropouts
            ),
        ),
        AudioStatus::Lost { .. } | AudioStatus::Failed(_) => ("No sound".into(), String::new()),
    };
    ui.vertical(|ui| {
        ui.spacing_mut().item_spacing.y = 1.0;
        let lines = if figures.is_empty() { 1.0 } else { 2.0 };
        ui.add_space((0.5 * (ui.available_height() - lines * 14.0)).max(0.0));
        for line in [device, figures]
            .into_iter()
            .filter(|line| !line.is_empty())
        {
            let label = ui.add(Label::new(RichText::new(&line).small().weak()).truncate());
            label.on_hover_text(line);
        }
    });
}

/// Draws the offer of the autosave, errors and notice, a line each.
fn messages(ui: &mut Ui, view: &AppView, commands: &mut Vec<AppCommand>) {
    let ink = ui.visuals().error_fg_color;
    let calm = ui.visuals().selection.bg_fill;
    if view.prompt == Some(Prompt::RecoverAutosave) {
        message(ui, "question", calm, |ui| {
            answer(ui, "Discard", AppCommand::Discard, commands);
            answer(ui, "Recover", AppCommand::Recover, commands);
            "The last run ended with unsaved changes".into()
        });
    }
    if let Some(name) = view.loading.as_ref().filter(|_| view.selected.is_some()) {
        message(ui, "loading", calm, |_| format!("Loading {name} …"));
    }
    let lost = match &view.sound {
        AudioStatus::Lost { device, reason, .. } => Some(format!(
            "No sound from {device} ({reason}). Playing resumes when it is back, or choose another device"
        )),
        AudioStatus::Failed(reason) => Some(format!("No sound: {reason}")),
        AudioStatus::Opening | AudioStatus::Playing(_) => None,
    };
    if let Some(lost) = lost {
        message(ui, "lost", ink, |_| lost);
    }
    // The last one concerns the user's last action.
    if let Some(problem) = view.problems.last() {
        message(ui, "problem", ink, |ui| {
            answer(ui, "Dismiss", AppCommand::Dismiss, commands);
            match view.problems.len() {
                1 => problem.clone(),
                count => format!("{problem} (and {} more)", count - 1),
            }
        });
    } else if let Some(notice) = &view.notice {
        message(ui, "news", calm, |ui| {
            answer(ui, "Dismiss", AppCommand::Dismiss, commands);
            notice.clone()
        });
    }
}

fn answer(ui: &mut Ui, text: &str, command: AppCommand, commands: &mut Vec<AppCommand>) {
    let hint = match command {
        AppCommand::Discard => "Give up what was saved automatically",
        AppCommand::Recover => "Open what was saved automatically",
        _ => "Hide this message",
    };
    if ui.button(text).on_hover_text(hint).clicked() {
        commands.push(command);
    }
}

/// Draws a line with buttons on the right; `content` draws these and returns the text.
fn message(ui: &mut Ui, name: &str, ink: egui::Color32, content: impl FnOnce(&mut Ui) -> String) {
    let fill = ui.visuals().panel_fill.lerp_to_gamma(ink, 0.16);
    let frame = Frame::new()
        .fill(fill)
        .inner_margin(Margin::symmetric(12, 5));
    let shown = Panel::top(egui::Id::unique(("message", name)))
        .frame(frame)
        .resizable(false)
        .show(ui, |ui| {
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                ui.set_height(26.0);
                let text = content(ui);
                ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                    ui.add(Label::new(&text).truncate()).on_hover_text(text);
                });
            });
        });
    let rect = shown.response.rect;
    ui.painter()
        .vline(rect.left() + 1.5, rect.y_range(), (3.0, ink));
}
