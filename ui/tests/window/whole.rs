//! The window as a whole.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use egui::{Key, Role, vec2};
use egui_kittest::kittest::{NodeT, Queryable};
use ondes_player::library::MissingFile;
use ondes_player::monitor::MeterLevel;
use ondes_player::parameter::ParameterId;
use ondes_player::preset::list::PresetId;
use ondes_ui::{
    FileCommand, KnobCommand, ModelEntryId, SCALES, SIZE, SoundingNote, Surroundings, WindowCommand,
};

use super::fake::{Fake, Test, open};
use super::hands::{choose, click, expect, press, settle, slider};

#[test]
fn tab_leads_through_everything_and_round() {
    let mut test = open(Fake::playing());
    let mut seen: Vec<String> = Vec::new();
    for _ in 0..60 {
        press(&mut test, Key::Tab);
        let focused = test
            .get_all(egui_kittest::kittest::by().predicate(|node| node.is_focused()))
            .next();
        let label = focused
            .and_then(|node| node.accesskit_node().label())
            .unwrap_or_default();
        if seen.first() == Some(&label) {
            break;
        }
        seen.push(label);
    }
    let order = [
        "Browser",
        "Previous model",
        "A",
        "Panic",
        "Window",
        "Search models",
        "Violin",
        "Macros",
        "Brightness",
    ];
    let order: Vec<&str> = order
        .into_iter()
        .chain(["Body", "Gain in", "Mix", "Processing", "Quality"])
        .collect();
    let met: Vec<&str> = seen
        .iter()
        .map(String::as_str)
        .filter(|label| order.contains(label))
        .collect();
    assert_eq!(met, order, "as one reads, each once: {seen:?}");
    assert_eq!(
        seen.iter()
            .filter(|label| label.as_str() == "Cello")
            .count(),
        0,
        "the list is one stop: {seen:?}"
    );
    assert!(seen.len() < 50, "{seen:?}");
    assert!(
        test.state_mut().commands().is_empty(),
        "walking changes nothing"
    );
}

#[test]
fn everything_is_in_the_window_at_every_size() {
    for scale in SCALES {
        let missing = Some(MissingFile::new("Old Bell", Vec::new()));
        let test = open(Fake {
            scale,
            missing,
            ..Fake::playing()
        });
        assert_eq!(test.ctx.pixels_per_point(), scale);
        let all = test.ctx.content_rect();
        assert_eq!(all.size(), SIZE.into());
        let roles = [
            Role::Button,
            Role::Slider,
            Role::ComboBox,
            Role::Meter,
            Role::Status,
            Role::Image,
            Role::TextInput,
        ];
        for node in roles
            .into_iter()
            .flat_map(|role| test.query_all_by_role(role))
        {
            let label = node.accesskit_node().label().unwrap_or_default();
            // Lists continue below the visible area.
            if !["Audition ", "Add ", "Remove "]
                .iter()
                .any(|sign| label.starts_with(sign))
            {
                assert!(
                    all.contains_rect(node.rect()),
                    "{label} at {:?}, {scale}",
                    node.rect()
                );
            }
        }
    }
}

#[test]
fn no_page_pushes_the_curves_out_of_view() {
    let hint = Some("Play the keyboard below".to_owned());
    for scale in SCALES {
        for (scene, pages) in [
            (
                Fake {
                    scale,
                    hint: hint.clone(),
                    ..Fake::playing()
                },
                &["Macros", "Voice", "Chain", "Pad"][..],
            ),
            (
                Fake {
                    scale,
                    ..Fake::bending()
                },
                &["Latents", "Chain", "Pad"],
            ),
            (
                Fake {
                    scale,
                    hint: hint.clone(),
                    ..Fake::amplifying()
                },
                &["Chain"],
            ),
        ] {
            let mut test = open(scene);
            for page in pages {
                choose(&mut test, Role::Button, page);
                let [wave, spectrum] =
                    ["Waveform", "Spectrum"].map(|name| test.get_by_label(name).rect());
                let below = test
                    .query_by_label_contains("Notes ")
                    .map(|keyboard| keyboard.rect().top());
                let floor = below.unwrap_or(
                    test.get_by_role_and_label(Role::ComboBox, "Processing")
                        .rect()
                        .top(),
                );
                for curve in [wave, spectrum] {
                    assert!(
                        curve.height() >= 60.0 && curve.bottom() < floor,
                        "{page} at {scale}: {curve:?}, {floor}"
                    );
                }
                let knobs = test
                    .query_all_by_role(Role::Slider)
                    .filter(|knob| knob.rect().center().x < wave.right());
                let knobs: Vec<_> = knobs.map(|knob| knob.rect()).collect();
                let free =
                    page == &"Latents" || knobs.iter().all(|knob| knob.bottom() <= wave.top());
                assert!(free, "{page} at {scale}: {knobs:?} above {wave:?}");
            }
        }
    }
}

#[test]
fn the_system_says_whether_it_is_dark() {
    let mut test = open(Fake {
        theme: egui::ThemePreference::System,
        ..Fake::playing()
    });
    for theme in [egui::Theme::Light, egui::Theme::Dark] {
        test.input_mut().system_theme = Some(theme);
        settle(&mut test);
        assert_eq!(test.ctx.theme(), theme);
    }
}

#[derive(Debug)]
struct Dropped(PathBuf);

impl egui::DroppedFile for Dropped {
    fn path(&self) -> &Path {
        &self.0
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        Err("nobody should read it here".into())
    }
}

#[test]
fn a_dropped_file_is_opened() {
    let mut test = open(Fake::playing());
    test.input_mut()
        .dropped_files
        .push(Arc::new(Dropped("/tmp/bell.ondes".into())));
    settle(&mut test);
    expect(&mut test, [FileCommand::Open("/tmp/bell.ondes".into())]);
}

#[test]
fn an_unchanged_window_is_not_repainted() {
    let mut model = Fake {
        moving: false,
        ..Fake::playing()
    };
    model.input_levels.clear();
    model.output_levels.clear();
    let mut test = open(model);
    let frames = test.run();
    assert!(frames <= 2, "{frames} frames");
    let rest = |test: &Test| test.output().viewport_output[&egui::ViewportId::ROOT].repaint_delay;
    assert_eq!(rest(&test), std::time::Duration::MAX);
    test.state_mut().model.moving = true;
    test.step();
    assert!(
        rest(&test) <= std::time::Duration::from_millis(34),
        "sound moves: {:?}",
        rest(&test)
    );
}

#[test]
fn pitch_and_loudness_are_shown() {
    let mut test = open(Fake::playing());
    assert!(test.query_by_label("Pitch A4 +7 cents, 441.8 Hz").is_some());
    assert!(test.query_by_label("Notes A3 A4").is_some());
    assert!(test.query_by_label("Latency 8.6 ms").is_some());
    assert_eq!(
        test.get_by_label("Output level").value().as_deref(),
        Some("-5.8 dB")
    );
    test.state_mut().model.pitch_hz = None;
    test.state_mut().model.notes.clear();
    settle(&mut test);
    assert!(test.query_by_label("Pitch none").is_some());
    assert!(test.query_by_label("Notes none").is_some());
}

#[test]
fn the_window_speaks_of_a_host_only_where_there_is_one() {
    let silent = |surroundings| Fake {
        health: None,
        moving: false,
        surroundings,
        ..Fake::playing()
    };
    let says = |test: &Test, text: &str| test.query_by_label(text).is_some();
    assert!(says(
        &open(silent(Surroundings::Host)),
        "The host is not playing"
    ));
    for (has_sound, text) in [(false, "No sound device"), (true, "Not playing")] {
        let mut test = open(silent(Surroundings::App { has_sound }));
        assert!(says(&test, text));
        assert!(
            says(&test, "Input") && !says(&test, "Side-chain"),
            "tracks of the app have an input"
        );
        click(&mut test, "About Violin");
        assert!(says(&test, "Save model with session"));
        for word in ["host", "Host", "project", "side-chain"] {
            assert!(
                test.query_all_by_label_contains(word).next().is_none(),
                "{word}"
            );
        }
    }
    let mut plugin = open(Fake::playing());
    assert!(says(&plugin, "Side-chain"));
    click(&mut plugin, "About Violin");
    assert!(says(&plugin, "Save model with project"));
    assert!(says(
        &open(Fake {
            health: None,
            card: None,
            ..Fake::playing()
        }),
        "No model"
    ));
}

#[test]
fn invalid_data_does_not_break_the_window() {
    let mut model = Fake::bending();
    let nan = f32::NAN;
    model
        .knobs()
        .for_each(|knob| (knob.value, knob.default) = (nan, nan));
    model.macros[0].control = Some(900);
    model.quality = 900;
    (model.preset, model.pad) = (Some(PresetId(900)), (ParameterId(900), ParameterId(0)));
    model.latents[0].value = nan;
    model.voice[2].choices.truncate(1);
    model.presets[0].name.clear();
    model.input_levels = vec![
        MeterLevel {
            peak_db: nan,
            rms_db: f32::INFINITY
        };
        40
    ];
    model.output_levels = vec![MeterLevel {
        peak_db: f32::INFINITY,
        rms_db: f32::NEG_INFINITY,
    }];
    model.waves = [vec![nan; 9], vec![f32::INFINITY, -f32::INFINITY, nan, 3e38]];
    model.spectra = [vec![nan; 9], vec![f32::INFINITY; 3]];
    model.pitch_hz = Some(nan);
    model.loudness_db = Some(nan);
    model.notes = vec![
        SoundingNote {
            key: 255,
            velocity: nan,
        },
        SoundingNote {
            key: 0,
            velocity: -1.0,
        },
    ];
    model.sample_rate_hz = nan;
    model.scale = nan;
    model.playing = Some(ModelEntryId(900));
    let health = model.health.as_mut().expect("health");
    (health.load, health.latency_ms) = (nan, f64::NAN);
    // The harness chooses the window's size by the scale.
    let scale = std::mem::replace(&mut model.scale, 1.0);
    let mut test = open(model);
    test.state_mut().model.scale = scale;
    settle(&mut test);
    for name in ["Brightness", "Mix"] {
        slider(&test, name).focus();
        settle(&mut test);
        for key in [Key::ArrowUp, Key::Delete, Key::Home] {
            press(&mut test, key);
        }
    }
    let commands = test.state_mut().commands();
    let sound = |command: &WindowCommand| !matches!(command, WindowCommand::Knob(KnobCommand::Set(_, value)) if !(0.0..=1.0).contains(value));
    assert!(commands.iter().all(sound), "{commands:?}");
    test.render().expect("a picture");
    for page in ["Voice", "Latents", "Pad"] {
        choose(&mut test, Role::Button, page);
        test.render().expect("a picture");
    }
    let mut test = open(Fake::empty());
    assert!(test.query_by_label("No models found").is_some());
    test.set_size(vec2(120.0, 90.0));
    settle(&mut test);
    test.render().expect("a picture");
}
