//! All of the window: bars above, tracks on the left, the instrument in the middle, devices on the right.

use std::mem::take;
use std::path::PathBuf;

use egui::{
    Align, Align2, Button, CentralPanel, ComboBox, FontId, Frame, Id, Key, Label, LayerId, Layout, Margin, Order,
    Panel, RichText, TextEdit, Ui, vec2,
};

use super::browse::Browse;
use super::devices;
use super::fader::{self, named, toggle};
use super::tracks::Tracks;
use super::view::{Command, Question, View};
use crate::devices::Status;
use crate::rack::saved::Input;
use crate::record::Format;

/// What only the window cares for: what is being typed and which panels are open.
#[derive(Default)]
pub struct Window {
    tracks: Tracks,
    devices: bool,
    path: Option<Typed>,
    /// Where recordings go, as it is being typed; none while that is not shown.
    takes: Option<String>,
}

/// A path that is being typed.
struct Typed {
    text: String,
    saving: bool,
}

impl Window {
    /// A window with its devices closed.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Draws everything into `ui`, which is all of the window, and gives what the user did, in order. `instrument` draws that of
    /// the track which is chosen.
    pub fn show(&mut self, ui: &mut Ui, view: &View, instrument: impl FnOnce(&mut Ui)) -> Vec<Command> {
        ondes_ui::install_style(ui.ctx());
        // The style of this frame was chosen before it was there.
        let style = ui.ctx().global_style();
        ui.set_style(style);
        let mut commands = Vec::new();
        dropped(ui, &mut commands);
        self.keys(ui, view, &mut commands);
        let fill = ui.visuals().panel_fill;
        let bar = Frame::new().fill(fill).inner_margin(Margin::symmetric(10, 6));
        Panel::top("session").frame(bar).resizable(false).show(ui, |ui| self.bar(ui, view, &mut commands));
        if self.path.is_some() {
            Panel::top("path").frame(bar).resizable(false).show(ui, |ui| self.path(ui, view, &mut commands));
        }
        if self.takes.is_some() {
            Panel::top("takes").frame(bar).resizable(false).show(ui, |ui| self.takes(ui, view, &mut commands));
        }
        messages(ui, view, &mut commands, &mut self.path);
        Panel::left("tracks").frame(bar).resizable(false).exact_size(272.0).show(ui, |ui| {
            self.tracks.list(ui, view, &mut commands);
        });
        if self.devices {
            Panel::right("devices").frame(bar).resizable(false).exact_size(312.0).show(ui, |ui| {
                devices::show(ui, view, &mut commands);
            });
        }
        let height = source_height(view);
        if view.selected.is_some() {
            Panel::top("source").frame(bar).resizable(false).exact_size(height).show(ui, |ui| {
                self.tracks.source(ui, view, &mut commands);
            });
        }
        CentralPanel::default().frame(Frame::new().fill(fill)).show(ui, |ui| match view.selected {
            Some(_) => instrument(ui),
            None => {
                let text = match &view.loading {
                    Some(name) => format!("Loading {name} …"),
                    None => "Add a track to play, or drop a model here".into(),
                };
                ui.centered_and_justified(|ui| ui.weak(text));
            }
        });
        commands
    }

    /// Where recordings go, as what, and of what.
    fn takes(&mut self, ui: &mut Ui, view: &View, commands: &mut Vec<Command>) {
        let Some(text) = &mut self.takes else { return };
        let mut takes = view.takes.clone();
        let mut over = false;
        ui.horizontal(|ui| {
            ui.label("Record to");
            let field = ui.add(TextEdit::singleline(text).desired_width(330.0).hint_text("Ondes among your music"));
            let field = named(ui, field, "Folder for recordings");
            if field.lost_focus() && *text != folder(view) {
                takes.folder = Some(PathBuf::from(text.trim())).filter(|path| !path.as_os_str().is_empty());
            } else if !field.has_focus() {
                *text = folder(view);
            }
            if view.can_browse && ui.button("Browse…").clicked() {
                commands.push(Command::Browse(Browse::Takes));
            }
            ui.label("as");
            let combo = ComboBox::from_id_salt("format").width(150.0).selected_text(format(takes.format));
            let combo = combo.show_ui(ui, |ui| {
                for choice in [Format::Float32, Format::Int24, Format::Int16, Format::Flac] {
                    if ui.selectable_label(takes.format == choice, format(choice)).clicked() {
                        takes.format = choice;
                    }
                }
            });
            named(ui, combo.response, "Format of recordings");
            ui.checkbox(&mut takes.tracks, "Each track to its own file")
                .on_hover_text("Besides the master: each track as it is after its fader");
            over = ui.with_layout(Layout::right_to_left(Align::Center), |ui| ui.button("Close").clicked()).inner;
        });
        if takes != view.takes {
            commands.push(Command::Takes(takes));
        }
        if over {
            self.takes = None;
        }
    }

    fn keys(&mut self, ui: &Ui, view: &View, commands: &mut Vec<Command>) {
        let pressed = |key| ui.input_mut(|input| input.consume_key(egui::Modifiers::COMMAND, key));
        if pressed(Key::S) {
            self.save(view, commands);
        }
        if pressed(Key::O) {
            self.path = Some(Typed { text: String::new(), saving: false });
        }
        if pressed(Key::N) {
            commands.push(Command::New);
        }
    }

    fn save(&mut self, view: &View, commands: &mut Vec<Command>) {
        match view.path {
            Some(_) => commands.push(Command::Save),
            None => self.path = Some(Typed { text: String::new(), saving: true }),
        }
    }

    fn bar(&mut self, ui: &mut Ui, view: &View, commands: &mut Vec<Command>) {
        ui.horizontal(|ui| {
            ui.set_height(32.0);
            let sign = if view.changed { "•" } else { "" };
            let name = Label::new(RichText::new(format!("{} {sign}", view.session)).heading()).truncate();
            ui.allocate_ui_with_layout(vec2(150.0, 32.0), Layout::left_to_right(Align::Center), |ui| {
                ui.set_min_width(150.0);
                let response = ui.add(name);
                if let Some(path) = &view.path {
                    response.on_hover_text(path.display().to_string());
                }
            });
            if ui.button("New").clicked() {
                commands.push(Command::New);
            }
            if ui.button("Open…").clicked() {
                self.path = Some(Typed { text: String::new(), saving: false });
            }
            if ui.button("Save").clicked() {
                self.save(view, commands);
            }
            if ui.button("Save as…").clicked() {
                let text = view.path.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
                self.path = Some(Typed { text, saving: true });
            }
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                if toggle(ui, self.devices, "Devices", "Devices") {
                    self.devices = !self.devices;
                    if self.devices {
                        commands.push(Command::Rescan);
                    }
                }
                if ui.button("Panic").on_hover_text("Silence all tracks").clicked() {
                    commands.push(Command::Panic);
                }
                ui.separator();
                let past = ui.button("Save last 30 s").on_hover_text("Writes what was heard just now into a file");
                if past.clicked() {
                    commands.push(Command::SavePast);
                }
                if toggle(ui, self.takes.is_some(), "…", "How recordings are made") {
                    self.takes = match self.takes {
                        Some(_) => None,
                        None => Some(folder(view)),
                    };
                }
                record(ui, view, commands);
                ui.separator();
                fader::figure(ui, &limiter(view.limiter_db), 66.0, view.limiter_db > -0.05);
                ui.allocate_ui_with_layout(vec2(120.0, 32.0), Layout::top_down(Align::Min), |ui| {
                    ui.set_width(120.0);
                    ui.spacing_mut().item_spacing.y = 1.0;
                    ui.spacing_mut().interact_size.y = 18.0;
                    let moved = fader::level(ui, view.master, 120.0, "Master level");
                    commands.extend(moved.map(Command::Master));
                    fader::meter(ui, &view.peaks_db, 120.0, 9.0, "Master meter");
                });
                ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                    ui.add_space(8.0);
                    status(ui, view);
                });
            });
        });
    }

    fn path(&mut self, ui: &mut Ui, view: &View, commands: &mut Vec<Command>) {
        let Some(Typed { text, saving }) = &mut self.path else { return };
        let (mut chosen, mut over) = (None, false);
        ui.horizontal(|ui| {
            let label = if *saving { "Save as" } else { "Open" };
            ui.label(label);
            let field = TextEdit::singleline(text).desired_width(360.0).hint_text("a name, or the path of a session");
            let field = ui.add(field);
            let field = named(ui, field, "Path of the session");
            let enter = ui.input(|input| input.key_pressed(Key::Enter));
            let browse = view.can_browse && ui.button("Browse…").clicked();
            if browse {
                commands.push(Command::Browse(if *saving { Browse::Place } else { Browse::Session }));
                over = true;
            } else if field.lost_focus() && enter || ui.button("OK").clicked() {
                chosen = Some(PathBuf::from(text.trim())).filter(|path| !path.as_os_str().is_empty());
            } else if ui.button("Cancel").clicked() || ui.input(|input| input.key_pressed(Key::Escape)) {
                over = true;
            } else if !field.has_focus() && ui.memory(|memory| memory.focused().is_none()) {
                field.request_focus();
            }
            if !*saving {
                ui.weak("Recent");
                for path in &view.recent {
                    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                    if ui.button(name).on_hover_text(path.display().to_string()).clicked() {
                        chosen = Some(path.clone());
                    }
                }
            }
        });
        if let Some(path) = chosen {
            commands.push(if *saving { Command::SaveAs(path) } else { Command::Open(path) });
            over = true;
        }
        if over {
            self.path = None;
        }
    }
}

/// Where recordings go.
fn folder(view: &View) -> String {
    view.takes.folder().map(|folder| folder.display().to_string()).unwrap_or_default()
}

/// A format in words.
fn format(format: Format) -> &'static str {
    match format {
        Format::Float32 => "WAV, 32-bit float",
        Format::Int24 => "WAV, 24 bits",
        Format::Int16 => "WAV, 16 bits",
        Format::Flac => "FLAC, 24 bits",
    }
}

/// Files that are dropped on the window; while they hover, that they can be. Whoever draws later sees nothing of them.
fn dropped(ui: &Ui, commands: &mut Vec<Command>) {
    let (hovering, dropped) =
        ui.input_mut(|input| (take(&mut input.raw.hovered_files), take(&mut input.raw.dropped_files)));
    commands.extend(dropped.iter().map(|file| Command::Drop(file.path().into())));
    if !hovering.is_empty() {
        let all = ui.ctx().content_rect();
        let painter = ui.ctx().layer_painter(LayerId::new(Order::Foreground, Id::unique("dropped")));
        painter.rect_filled(all, 0.0, ui.visuals().panel_fill.gamma_multiply(0.85));
        let text = "Drop a model, a recording, a preset or a session";
        painter.text(all.center(), Align2::CENTER_CENTER, text, FontId::proportional(20.0), ui.visuals().text_color());
    }
}

/// A line for the input, and one more for a recording.
fn source_height(view: &View) -> f32 {
    let chosen = view.tracks.iter().find(|track| view.selected == Some(track.place));
    let rolls = chosen.is_some_and(|track| matches!(track.input, Input::File { .. }) && track.clip.is_some());
    if rolls { 84.0 } else { 42.0 }
}

/// Records, or ends it, with how long it has gone on.
fn record(ui: &mut Ui, view: &View, commands: &mut Vec<Command>) {
    let rate = if let Status::Playing(opened) = &view.sound { opened.sample_rate } else { 48_000 };
    let (text, on) = match view.recording.recording {
        Some(frames) => {
            let seconds = frames / u64::from(rate.max(1));
            (format!("Stop {}:{:02}", seconds / 60, seconds % 60), true)
        }
        None => ("Record".to_owned(), false),
    };
    let text = if on { RichText::new(text).color(ui.visuals().error_fg_color) } else { RichText::new(text) };
    let response = ui.add(Button::new(text).min_size(vec2(84.0, 26.0)));
    let label = if on { "End the recording" } else { "Record" };
    if named(ui, response, label).clicked() {
        commands.push(Command::Record(!on));
    }
}

fn limiter(db: f32) -> String {
    if db > -0.05 || db.is_nan() { "Limit 0.0".into() } else { format!("Limit {db:.1}") }
}

/// How the sound stands, in two short lines.
fn status(ui: &mut Ui, view: &View) {
    let (device, figures) = match &view.sound {
        Status::Opening => ("Opening devices …".into(), String::new()),
        Status::Playing(opened) => (
            format!("{} · {} kHz · {} frames", opened.host, f64::from(opened.sample_rate) / 1e3, opened.max_block),
            format!("load {:.0} % · late {}", 100.0 * view.load, view.misses),
        ),
        Status::Lost { .. } | Status::Failed(_) => ("No sound".into(), String::new()),
    };
    ui.vertical(|ui| {
        ui.spacing_mut().item_spacing.y = 1.0;
        let lines = if figures.is_empty() { 1.0 } else { 2.0 };
        ui.add_space((0.5 * (ui.available_height() - lines * 14.0)).max(0.0));
        for line in [device, figures].into_iter().filter(|line| !line.is_empty()) {
            ui.add(Label::new(RichText::new(line).small().weak()).truncate());
        }
    });
}

/// What has to be decided, what went wrong, and what went well: a line each.
fn messages(ui: &mut Ui, view: &View, commands: &mut Vec<Command>, path: &mut Option<Typed>) {
    let ink = ui.visuals().error_fg_color;
    let calm = ui.visuals().selection.bg_fill;
    if let Some(question) = view.question {
        message(ui, "question", calm, |ui| match question {
            Question::Unsaved => {
                answer(ui, "Discard", Command::Discard, commands);
                if ui.button("Save it").clicked() {
                    match view.path {
                        Some(_) => commands.push(Command::Save),
                        None => *path = Some(Typed { text: String::new(), saving: true }),
                    }
                }
                answer(ui, "Stay", Command::Cancel, commands);
                format!("“{}” has changes that are not saved", view.session)
            }
            Question::Recover => {
                answer(ui, "Discard", Command::Discard, commands);
                answer(ui, "Bring it back", Command::Recover, commands);
                "There is work from last time that was not saved".into()
            }
        });
    }
    if let Some(name) = view.loading.as_ref().filter(|_| view.selected.is_some()) {
        message(ui, "loading", calm, |_| format!("Loading {name} …"));
    }
    let lost = match &view.sound {
        Status::Lost { device, reason, .. } => {
            Some(format!("{device} is gone ({reason}). Playing resumes when it is back, or choose another device"))
        }
        Status::Failed(reason) => Some(format!("No sound: {reason}")),
        Status::Opening | Status::Playing(_) => None,
    };
    if let Some(lost) = lost {
        message(ui, "lost", ink, |_| lost);
    }
    // The last one is the one that the user waits for.
    if let Some(problem) = view.problems.last() {
        message(ui, "problem", ink, |ui| {
            answer(ui, "Dismiss", Command::Dismiss, commands);
            match view.problems.len() {
                1 => problem.clone(),
                count => format!("{problem} (and {} more)", count - 1),
            }
        });
    } else if let Some(news) = &view.news {
        message(ui, "news", calm, |ui| {
            answer(ui, "Dismiss", Command::Dismiss, commands);
            news.clone()
        });
    }
}

fn answer(ui: &mut Ui, text: &str, command: Command, commands: &mut Vec<Command>) {
    if ui.button(text).clicked() {
        commands.push(command);
    }
}

/// One line with its answers on the right; `content` draws those, and gives the text.
fn message(ui: &mut Ui, name: &str, ink: egui::Color32, content: impl FnOnce(&mut Ui) -> String) {
    let fill = ui.visuals().panel_fill.lerp_to_gamma(ink, 0.16);
    let frame = Frame::new().fill(fill).inner_margin(Margin::symmetric(12, 5));
    let shown = Panel::top(egui::Id::unique(("message", name))).frame(frame).resizable(false).show(ui, |ui| {
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            ui.set_height(26.0);
            let text = content(ui);
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                ui.add(Label::new(&text).truncate()).on_hover_text(text);
            });
        });
    });
    let rect = shown.response.rect;
    ui.painter().vline(rect.left() + 1.5, rect.y_range(), (3.0, ink));
}
