//! Snapshots of the window. `UPDATE_SNAPSHOTS=1 cargo test -p ondes-ui` regenerates them.

use egui::{Key, Modifiers, Role, ThemePreference, vec2};
use egui_kittest::SnapshotOptions;
use egui_kittest::kittest::Queryable;
use ondes_engine::effects::{Activity, effect};
use ondes_engine::executor::{Backend, Device, ExecutorSelection, Precision};
use ondes_engine::realtime::LoadStatus;
use ondes_player::library::MissingFile;
use ondes_player::rig::block_state::{BlockState, MODEL, RESPONSE};
use ondes_player::rig::branch_state::Branch;
use ondes_player::rig::scene::{Scene, Scenes};

use super::consent;
use super::fake::{Fake, Test, open, open_in};
use super::hands::choose;

/// Compares with tolerance for another machine's sine, which may differ in the last bit.
fn picture(test: &mut Test, name: &str) {
    test.snapshot_options(
        name,
        &SnapshotOptions::new().threshold(0.6).max_failed_pixels(20),
    );
}

/// Takes the picture without the pointer, which would highlight a widget.
fn still(test: &mut Test, name: &str) {
    test.remove_cursor();
    test.run_steps(2);
    picture(test, name);
}

#[test]
fn a_violin_plays() {
    picture(&mut open(Fake::playing()), "playing_dark");
}

#[test]
fn the_same_in_daylight() {
    picture(
        &mut open(Fake {
            theme: ThemePreference::Light,
            ..Fake::playing()
        }),
        "playing_light",
    );
}

#[test]
fn small_and_sharp_all_the_same() {
    picture(
        &mut open(Fake {
            scale: 0.75,
            ..Fake::playing()
        }),
        "playing_75",
    );
}

#[test]
fn blocks_stand_before_and_after_the_model() {
    let kinds = ["compressor", "delay", "limiter"].map(|id| effect(id).expect("an effect"));
    let mut blocks = kinds.map(BlockState::of_effect).to_vec();
    blocks[0].before = true;
    for (block, name) in [(MODEL, "crunch"), (RESPONSE, "4x12"), (MODEL, "lost")] {
        let mut file = BlockState::of_file(block, name, None);
        file.find();
        blocks.insert(1, file);
    }
    for (place, branch) in [(2, Branch::A), (3, Branch::B)] {
        blocks[place].branch = Some(branch);
    }
    let problems = blocks
        .iter()
        .map(|block| block.problem().map(str::to_owned));
    let problems = problems.collect();
    let mut test = open(Fake {
        problems,
        peaks: vec![0.1, 0.03, 0.4, 0.0, 0.6, 1.2],
        blocks,
        ..Fake::amplifying()
    });
    choose(&mut test, Role::Button, "Rig");
    still(&mut test, "rig");
}

#[test]
fn the_equaliser_is_a_curve() {
    let mut block = BlockState::of_effect(effect("equalizer").expect("an effect"));
    for (id, value) in [
        ("gain1", 5.0),
        ("frequency3", 400.0),
        ("gain3", -7.0),
        ("q3", 2.0),
        ("gain8", 4.0),
    ] {
        block.values.insert(id.into(), value);
    }
    block.turn_by("gain1", Some(7));
    let mut test = open(Fake {
        blocks: vec![block],
        ..Fake::amplifying()
    });
    choose(&mut test, Role::Button, "Rig");
    still(&mut test, "equalizer");
}

/// A rig with five scenes, on stage.
fn on_stage(blocks: Vec<BlockState>, tuner: bool, scale: f32, size: egui::Vec2) -> Test {
    let names = [
        "Verse",
        "Chorus",
        "Solo of the second song, louder",
        "",
        "Outro",
    ];
    let scene = |name: &str| {
        Some(Scene {
            name: name.into(),
            ..Scene::default()
        })
    };
    let mut fake = Fake {
        scenes: Scenes {
            active: 1,
            list: names.map(scene).into(),
        },
        activities: vec![Some(Activity {
            state: 4,
            position: 0.6,
        })],
        blocks,
        scale,
        ..Fake::amplifying()
    };
    fake.tuner.open = tuner;
    let mut test = open_in(fake, size);
    test.key_press_modifiers(Modifiers::ALT, Key::Num0);
    test.run_steps(4);
    test
}

#[test]
fn the_stage_is_read_from_afar() {
    let looper = BlockState::of_effect(effect("looper").expect("an effect"));
    let mut test = on_stage(vec![looper], false, 1.0, vec2(980.0, 600.0));
    still(&mut test, "stage");
}

#[test]
fn the_stage_has_a_tuner_in_a_small_window() {
    still(
        &mut on_stage(vec![], true, 1.0, vec2(800.0, 500.0)),
        "stage_small",
    );
}

#[test]
fn the_stage_fills_a_large_window() {
    still(
        &mut on_stage(vec![], true, 0.75, vec2(1600.0, 1000.0)),
        "stage_large",
    );
}

#[test]
fn long_names_end_in_dots() {
    let mut model = Fake {
        hint: Some("Send sound through the track".into()),
        ..Fake::amplifying()
    };
    let name = "British head of 1982, bright channel, presence 7, master 9, cascaded";
    let card = model.card.as_mut().expect("a card");
    (card.name, card.description) = (
        name.into(),
        format!("{name}. {}", "It was captured at a rehearsal. ".repeat(6)),
    );
    let entry = &mut model.models[3];
    (entry.name, entry.about) = (
        name.into(),
        format!("{name}: the loudest of all that were ever in this room"),
    );
    model.presets[1].name = "Second solo of the last song, a little louder".into();
    model.cabinet = Some(format!("/cabinets/{name}, at the edge of the cone.wav").into());
    model.undo = Some(format!("Model {name}"));
    picture(&mut open(model), "long_names");
}

#[test]
fn nothing_is_loaded() {
    let macros = Fake::playing()
        .macros
        .into_iter()
        .map(|one| ondes_ui::MacroKnob {
            control: None,
            turns: false,
            ..one
        })
        .collect();
    picture(
        &mut open(Fake {
            macros,
            ..Fake::empty()
        }),
        "empty",
    );
}

#[test]
fn the_model_is_missing() {
    let searched = ["/home/ana/models", "/home/ana/songs/night"]
        .map(str::to_owned)
        .to_vec();
    let missing = Some(MissingFile::new("Old Bell", searched));
    picture(
        &mut open(Fake {
            missing,
            card: None,
            moving: false,
            ..Fake::playing()
        }),
        "missing",
    );
}

#[test]
fn a_program_may_not_run_unasked() {
    picture(&mut open(consent::asking()), "consent");
}

#[test]
fn the_model_failed() {
    let status = LoadStatus::Failed("the weights are not those that were written".into());
    picture(
        &mut open(Fake {
            status,
            ..Fake::playing()
        }),
        "failed",
    );
}

#[test]
fn a_macro_has_its_menu() {
    let mut test = open(Fake::playing());
    test.get_by_role_and_label(egui::Role::Slider, "Body")
        .click_secondary();
    test.run_steps(4);
    still(&mut test, "macro_menu");
}

#[test]
fn without_the_browser_there_is_room() {
    let mut test = open(Fake::playing());
    test.get_by_label("Browser").click();
    test.run_steps(4);
    still(&mut test, "wide");
}

#[test]
fn presets_are_listed() {
    let mut test = open(Fake::playing());
    test.get_by_role_and_label(egui::Role::ComboBox, "Preset")
        .click();
    test.run_steps(4);
    test.get_by_label("Save as…").click();
    test.run_steps(4);
    test.get_by_label("Delete My evening strings").click();
    test.run_steps(4);
    still(&mut test, "presets");
}

#[test]
fn a_model_has_its_card() {
    let mut test = open(Fake {
        embed_problem: Some("too large: 310 MB".into()),
        ..Fake::playing()
    });
    test.get_by_label("About Violin").click();
    test.run_steps(4);
    still(&mut test, "card");
}

#[test]
fn a_voice_is_chosen() {
    let mut test = open(Fake::playing());
    test.get_by_label("Voice").click();
    test.run_steps(4);
    test.get_by_role_and_label(egui::Role::ComboBox, "Voices")
        .click();
    test.run_steps(4);
    still(&mut test, "voice");
}

#[test]
fn latents_are_bent() {
    let mut test = open(Fake::bending());
    test.get_by_label("Latents").click();
    test.run_steps(4);
    still(&mut test, "latents");
}

#[test]
fn an_amplifier_has_its_chain() {
    let mut test = open(Fake::amplifying());
    test.get_by_role_and_label(egui::Role::Button, "Chain")
        .click();
    test.run_steps(4);
    still(&mut test, "chain");
    test.get_by_role_and_label(egui::Role::ComboBox, "Impulse response")
        .click();
    test.run_steps(4);
    still(&mut test, "cabinets");
}

#[test]
fn a_guitar_is_tuned() {
    still(&mut open(Fake::tuning()), "tuner");
}

#[test]
fn the_product_is_about_something() {
    let mut test = open(Fake {
        scale: 1.5,
        ..Fake::amplifying()
    });
    test.get_by_label("About Ondes FX").click();
    test.run_steps(4);
    still(&mut test, "about");
}

#[test]
fn the_network_has_its_executor() {
    let executor = ExecutorSelection {
        backend: Backend::Torch,
        precision: Precision::F16,
        ..ExecutorSelection::default()
    };
    let devices = Some(Ok(vec![
        Device::Auto,
        Device::Cpu,
        Device::Cuda(0),
        Device::Cuda(1),
    ]));
    let mut test = open(Fake {
        executor: Some(executor),
        devices,
        ..Fake::playing()
    });
    test.get_by_role_and_label(egui::Role::ComboBox, "Processing")
        .click();
    test.run_steps(4);
    still(&mut test, "executor");
}

#[test]
fn the_pad_turns_two() {
    let mut test = open(Fake {
        theme: ThemePreference::Light,
        ..Fake::bending()
    });
    test.get_by_role_and_label(egui::Role::Button, "Keys")
        .click();
    test.run_steps(2);
    test.get_by_role_and_label(egui::Role::Button, "Pad")
        .click();
    test.run_steps(4);
    still(&mut test, "pad");
}
