//! Pictures of the book: real instances that play, without a display. A test compares them with the
//! window as it is drawn now, so that they are never out of date. `cargo xtask pictures` draws them
//! again.

use std::time::Duration;

use egui::{Key, Modifiers, Role, UiBuilder, Vec2};
use egui_kittest::kittest::Queryable;
use egui_kittest::{Harness, SnapshotOptions};
use ondes::io::Callback;
use ondes::rack::Mixer;
use ondes::rack::fader::FaderSettings;
use ondes::rack::session_file::TrackInput;
use ondes::window::view::{SetListEntry, TrackView};
use ondes::window::{AppView, MainWindow};
use ondes_engine::instrument::EventKind;
use ondes_engine::realtime::histogram::Percentiles;
use ondes_engine::realtime::{Driven, Health, Setup};
use ondes_player::parameter::{ParameterId, SCENE};
use ondes_player::preset::factory::FactoryPreset;
use ondes_player::product::Product;
use ondes_player::snapshot::{SelectionSnapshot, SoundSnapshot};
use ondes_ui::view_model::InstanceViewModel;
use ondes_ui::view_model::model_list::ModelList;
use ondes_ui::{
    EntryOrigin, ModelEntry, PresetEntry, SIZE, Surroundings, ViewModel, Window, WindowView,
};

use super::fake_app::{playing, track};
use super::raster::Raster;

const RATE: u32 = 48_000;
const BLOCK: usize = 480;
/// Scenes of a preset.
const SCENES: [&str; 4] = ["Verse", "Chorus", "Bridge", "Solo"];
/// Sound before the picture, blocks.
const BLOCKS: usize = 120;
/// Share of pixels that may differ: models that are trained again draw other curves, another window
/// differs by more.
const TOLERANCE: f32 = 0.02;

/// An instance that has played, without what depends on the machine: its speed, its user's files,
/// and its desktop.
struct Portrait {
    model: InstanceViewModel,
    models: Vec<ModelEntry>,
    presets: Vec<PresetEntry>,
    surroundings: Surroundings,
}

impl Portrait {
    /// Plays a new instance, or a factory preset: an instrument plays a fifth, an effect distorts a
    /// low tone.
    fn new(product: Product, surroundings: Surroundings, preset: Option<&str>) -> Self {
        let mut mixer = Mixer::offline();
        let slot = mixer.add(product).unwrap();
        let mut rack = mixer
            .open(
                Setup {
                    sample_rate: RATE,
                    max_block: BLOCK,
                },
                None,
                Vec::new(),
            )
            .unwrap();
        let track = mixer.track(slot).unwrap();
        let (instance, parameters) = (track.instance.clone(), track.parameters.clone());
        let mut model = InstanceViewModel::new(
            instance.clone(),
            parameters.clone(),
            ModelList::new(product, None),
        );
        model.set_surroundings(surroundings);
        // The lists are read on threads of their own.
        while model
            .refresh()
            .is_some_and(|again| again < Duration::from_millis(100))
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        if let Some(preset) = preset.and_then(FactoryPreset::find) {
            let sound = preset.preset().unwrap().sound;
            let sound = SoundSnapshot {
                values: sound.parameters,
                selection: SelectionSnapshot::find(*sound.selection).unwrap(),
            };
            model.apply_sound(&*parameters, sound);
            instance.wait_until_loaded(Duration::from_secs(20));
            for (index, name) in SCENES.into_iter().enumerate().rev() {
                parameters.set_value(SCENE, index as f32 + 1.0);
                instance.follow_scene(&*parameters, &*parameters);
                instance.rename_scene(name.into());
            }
        }
        instance.monitor.set_open(true);
        for key in [57, 64] {
            instance.monitor.push_key(EventKind::NoteOn {
                channel: 0,
                key,
                velocity: 0.7,
            });
        }
        for block in 0..BLOCKS {
            let at = |n: usize| (block * BLOCK + n) as f32 / RATE as f32 * std::f32::consts::TAU;
            let input: Vec<f32> = (0..BLOCK)
                .map(|n| 0.2 * (110.0 * at(n)).sin() + 0.1 * (165.0 * at(n)).sin())
                .collect();
            rack.process(&[&input], &mut [&mut [0.0; BLOCK], &mut [0.0; BLOCK]]);
        }
        model.refresh();
        let view = model.view();
        let models = view
            .models
            .list
            .iter()
            .filter(|entry| entry.origin == EntryOrigin::Bundled)
            .cloned()
            .collect();
        let presets = view
            .presets
            .list
            .iter()
            .filter(|entry| entry.origin == EntryOrigin::Bundled)
            .cloned()
            .collect();
        Self {
            model,
            models,
            presets,
            surroundings,
        }
    }
}

impl ViewModel for Portrait {
    fn view(&self) -> WindowView<'_> {
        let ms = |ms: f64| Duration::from_secs_f64(ms / 1e3);
        let inference_time = Percentiles {
            count: 900,
            p50: ms(0.42),
            p95: ms(0.5),
            p99: ms(0.61),
            p999: ms(0.7),
            worst: ms(0.9),
        };
        let health = Health {
            driven: Driven::Inline,
            latency_samples: 0,
            latency_ms: 0.0,
            load: 0.09,
            dropouts: 0,
            invalid_blocks: 0,
            invalid_output: None,
            commands_lost: 0,
            queued_samples: 0,
            inference_time,
        };
        let mut view = self.model.view();
        view.engine.health = Some(health);
        view.models.list = &self.models;
        (view.presets.list, view.presets.can_save) = (&self.presets, true);
        view.messages.hint = None;
        WindowView {
            can_browse: true,
            moving: false,
            surroundings: self.surroundings,
            theme: egui::ThemePreference::Dark,
            ..view
        }
    }

    fn format_value(&self, knob: ParameterId, position: f32) -> String {
        self.model.format_value(knob, position)
    }

    fn parse_value(&self, knob: ParameterId, text: &str) -> Option<f32> {
        self.model.parse_value(knob, text)
    }
}

/// Compares a picture with the book's.
fn compare<S>(mut test: Harness<'_, S>, name: &str) {
    test.remove_cursor();
    test.run_steps(4);
    let picture = test.render().expect("a picture");
    let pixels = (picture.width() * picture.height()) as f32;
    let options = SnapshotOptions::new()
        .threshold(0.6)
        .max_failed_pixels((TOLERANCE * pixels) as usize);
    test.snapshot_options(name, &options.output_path("../docs/src/img"));
}

fn harness<S>(
    size: impl Into<Vec2>,
    state: S,
    mut draw: impl FnMut(&mut egui::Ui, &mut S) + 'static,
) -> Harness<'static, S> {
    let builder = Harness::builder()
        .with_size(size)
        .with_max_steps(16)
        .with_step_dt(1.0 / 60.0);
    builder
        .with_render_cursor(false)
        .renderer(Raster::default())
        .build_ui_state(
            move |ui, state| {
                ui.ctx().set_theme(egui::Theme::Dark);
                // The harness adds a margin, windows have none.
                let all = UiBuilder::new().max_rect(ui.ctx().content_rect());
                draw(&mut ui.new_child(all), state);
            },
            state,
        )
}

fn draw_plugin(product: Product, name: &str) {
    let state = (
        Portrait::new(product, Surroundings::Host, None),
        Window::new(),
    );
    compare(
        harness(SIZE, state, |ui, (portrait, window)| {
            drop(window.show(ui, portrait))
        }),
        name,
    );
}

#[test]
fn the_instrument() {
    draw_plugin(Product::Instrument, "plugin");
}

/// Opens the window of an effect with a factory preset.
fn open_preset(key: &str) -> Harness<'static, (Portrait, Window)> {
    let portrait = Portrait::new(Product::Effect, Surroundings::Host, Some(key));
    let mut test = harness(SIZE, (portrait, Window::new()), |ui, (portrait, window)| {
        drop(window.show(ui, portrait))
    });
    test.run_steps(4);
    test
}

#[test]
fn the_rig() {
    let test = open_preset("pushed-stack");
    test.get_by_role_and_label(Role::Button, "Rig").click();
    compare(test, "rig");
}

#[test]
fn the_stage() {
    let test = open_preset("loop-station");
    test.key_press_modifiers(Modifiers::ALT, Key::Num0);
    compare(test, "stage");
}

#[test]
fn the_effect() {
    draw_plugin(Product::Effect, "plugin-effect");
}

/// A session with a band, whose amplifier is selected.
fn session() -> AppView {
    let band = [
        ("Violin", Product::Instrument, -3.0, -14.0),
        ("Cello", Product::Instrument, -5.0, -17.0),
        ("Drums", Product::Instrument, -6.0, -9.0),
        ("Triode", Product::Effect, -2.0, -11.0),
    ];
    let tracks = band
        .into_iter()
        .enumerate()
        .map(|(slot, (name, product, level_db, peak_db))| {
            let fader = FaderSettings {
                level_db,
                pan: 0.2 * slot as f32 - 0.3,
                ..FaderSettings::default()
            };
            TrackView {
                fader,
                peak_db,
                ..track(slot, name, product)
            }
        });
    let mut tracks: Vec<TrackView> = tracks.collect();
    tracks[3].input = TrackInput::Channels { first: 0, count: 1 };
    let set_list = ["Violin", "Cello", "Drums"].map(|name| SetListEntry {
        name: name.into(),
        file: None,
    });
    AppView {
        session: "Evening".into(),
        changed: false,
        tracks,
        selected: Some(3),
        set_list: set_list.into(),
        limiter_db: 0.0,
        dropouts: 0,
        ..playing()
    }
}

fn draw_app(name: &str, size: [f32; 2], scale: f32) {
    let portrait = Portrait::new(Product::Effect, Surroundings::App { has_sound: true }, None);
    let state = (MainWindow::new(), Window::new());
    let test = harness(size, state, move |ui, (window, panels)| {
        let view = Scaled {
            portrait: &portrait,
            scale,
        };
        drop(window.show(ui, &session(), |ui| drop(panels.show(ui, &view))));
    });
    assert!(test.query_by_label("Track 4").is_some());
    compare(test, name);
}

#[test]
fn the_app() {
    draw_app("app", [1280.0, 740.0], 1.0);
}

/// At 200 %, with as little room as it needs.
#[test]
fn the_app_scaled() {
    draw_app("app-200", [1600.0, 1000.0], 2.0);
}

/// A portrait at a scale.
struct Scaled<'a> {
    portrait: &'a Portrait,
    scale: f32,
}

impl ViewModel for Scaled<'_> {
    fn view(&self) -> WindowView<'_> {
        WindowView {
            scale: self.scale,
            ..self.portrait.view()
        }
    }

    fn format_value(&self, knob: ParameterId, position: f32) -> String {
        self.portrait.format_value(knob, position)
    }

    fn parse_value(&self, knob: ParameterId, text: &str) -> Option<f32> {
        self.portrait.parse_value(knob, text)
    }
}
