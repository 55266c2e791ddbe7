//! Data to draw, and helpers to operate the window.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use egui::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use ondes::devices::device_info::{AudioDevice, AudioHost, DirectionInfo};
use ondes::devices::midi::MidiPort;
use ondes::devices::{AudioStatus, MidiStatus, Opened};
use ondes::io::{AudioChoice, MidiChoice};
use ondes::rack::fader::FaderSettings;
use ondes::rack::session_file::TrackInput;
use ondes::rack::track::ALL_CHANNELS;
use ondes::record;
use ondes::window::device_scan::AvailableDevices;
use ondes::window::recording_settings::RecordingSettings;
use ondes::window::view::{SetListEntry, TrackView};
use ondes::window::{AppCommand, AppView, MainWindow};
use ondes_player::product::Product;

use super::raster::Raster;

pub struct Desktop {
    pub window: MainWindow,
    pub view: AppView,
    told: Vec<AppCommand>,
    /// Dropped files seen by the instrument.
    pub dropped_on_instrument: usize,
}

pub type Test = Harness<'static, Desktop>;

/// Two tracks that play on JACK.
pub fn playing() -> AppView {
    let side = |default| {
        Some(DirectionInfo {
            channels: 2,
            sample_rates: vec![44_100, 48_000],
            default,
        })
    };
    let host = |name: &str, default| AudioHost {
        name: name.into(),
        available: true,
        default,
    };
    let device = |id: &str, default| AudioDevice {
        id: id.into(),
        name: id.into(),
        output: side(default),
        input: side(default),
    };
    let port = |name: &str| MidiPort {
        system: "ALSA".into(),
        name: name.into(),
    };
    AppView {
        session: "Stage".into(),
        path: Some("/songs/Stage.ondes-session".into()),
        changed: true,
        recent: vec![
            "/songs/Stage.ondes-session".into(),
            "/songs/Night.ondes-session".into(),
        ],
        tracks: vec![
            track(0, "Bowed", Product::Instrument),
            track(1, "Wind", Product::Effect),
        ],
        selected: Some(0),
        set_list: ["Bowed", "Plucked"]
            .map(|name| SetListEntry {
                name: name.into(),
                file: None,
            })
            .into(),
        can_browse: true,
        master: FaderSettings::default(),
        peaks_db: [-12.0, -15.0],
        limiter_db: -1.5,
        sound: AudioStatus::Playing(opened()),
        load: 0.23,
        dropouts: 1,
        recording: record::RecordingStatus::default(),
        recording_settings: RecordingSettings {
            folder: Some("/music/Ondes".into()),
            ..RecordingSettings::default()
        },
        loading: None,
        available: AvailableDevices {
            hosts: vec![host("ALSA", false), host("JACK", true)],
            devices: vec![device("system", true), device("hw:Babyface", false)],
            ports: vec![port("Keystation"), port("Faders")],
            errors: Vec::new(),
            scanning: false,
        },
        audio: AudioChoice::default(),
        midi: MidiChoice::default(),
        ports: MidiStatus {
            connected: vec!["Keystation".into(), "Faders".into()],
            ..MidiStatus::default()
        },
        problems: Vec::new(),
        notice: None,
        prompt: None,
    }
}

pub fn opened() -> Opened {
    Opened {
        host: "JACK".into(),
        output: "system".into(),
        input: None,
        sample_rate: 48_000,
        max_block: 256,
        inputs: 2,
        outputs: 2,
        output_latency_frames: 512,
        input_latency_frames: 256,
        bridge_frames: 0,
    }
}

pub fn track(slot: usize, title: &str, product: Product) -> TrackView {
    TrackView {
        slot,
        title: title.into(),
        file: None,
        product,
        fader: FaderSettings {
            level_db: -3.0,
            ..FaderSettings::default()
        },
        peak_db: -9.0,
        loading: None,
        error: None,
        input: TrackInput::Nothing,
        clip: None,
        midi_channels: ALL_CHANNELS,
    }
}

/// Opens a window of a common size and draws a few frames.
pub fn open(view: AppView) -> Test {
    open_in(view, egui::vec2(1180.0, 680.0), 1.0)
}

/// Opens a window of a size in pixels, at a scale, and draws a few frames.
pub fn open_in(view: AppView, size: egui::Vec2, scale: f32) -> Test {
    let desktop = Desktop {
        window: MainWindow::new(),
        view,
        told: Vec::new(),
        dropped_on_instrument: 0,
    };
    let mut test = Harness::builder()
        .with_size(size)
        .with_max_steps(16)
        .with_step_dt(1.0 / 60.0)
        .with_render_cursor(false)
        .renderer(Raster::default())
        .build_ui_state(
            move |ui, desktop: &mut Desktop| {
                ui.ctx().set_zoom_factor(scale);
                ui.ctx().set_theme(egui::Theme::Dark);
                // The harness adds a margin, the app's window has none.
                let all = egui::UiBuilder::new().max_rect(ui.ctx().content_rect());
                let mut ui = ui.new_child(all);
                let view = desktop.view.clone();
                let told = desktop.window.show(&mut ui, &view, |ui| {
                    ui.heading("The instrument");
                    let dropped = ui.input(|input| input.raw.dropped_files.len());
                    desktop.dropped_on_instrument += dropped;
                });
                desktop.told.extend(told);
            },
            desktop,
        );
    test.run_steps(4);
    test
}

/// Returns the commands since the last call.
pub fn told(test: &mut Test) -> Vec<AppCommand> {
    std::mem::take(&mut test.state_mut().told)
}

pub fn click(test: &mut Test, label: &str) {
    test.get_by_label(label).click();
    test.run_steps(4);
}

/// Selects an entry of a list.
pub fn choose(test: &mut Test, list: &str, choice: &str) {
    test.get_by_role_and_label(Role::ComboBox, list).click();
    test.run_steps(4);
    test.get_by_label(choice).click();
    test.run_steps(4);
}

pub fn type_in(test: &mut Test, field: &str, text: &str) {
    test.get_by_label(field).focus();
    test.run_steps(2);
    // Replaces the old text.
    test.key_press_modifiers(egui::Modifiers::COMMAND, egui::Key::A);
    test.run_steps(2);
    test.get_by_label(field).type_text(text);
    test.run_steps(2);
}

pub fn sees(test: &Test, part: &str) -> bool {
    test.query_by_label_contains(part).is_some()
}

/// File as it is dropped by a desktop.
#[derive(Debug)]
struct Dropped(PathBuf);

impl egui::DroppedFile for Dropped {
    fn path(&self) -> &Path {
        &self.0
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        Err("nobody asks".into())
    }
}

/// Drops a file on the window.
pub fn drop_file(test: &mut Test, path: &str) {
    test.input_mut()
        .dropped_files
        .push(Arc::new(Dropped(path.into())));
    test.run_steps(2);
}
