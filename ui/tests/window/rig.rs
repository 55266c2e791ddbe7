//! The page of the rig.

use egui::{Key, Modifiers, Role};
use egui_kittest::kittest::Queryable;
use ondes_engine::effects::{Activity, effect};
use ondes_player::cabinet::bundled::BUNDLED;
use ondes_player::programs::ProgramNumber;
use ondes_player::rig::block_macros;
use ondes_player::rig::block_state::{BlockState, MODEL, RESPONSE};
use ondes_player::rig::branch_state::{Branch, BranchState};
use ondes_ui::{PresetCommand, RigCommand, WindowCommand};

use super::fake::{Fake, Test, open};
use super::hands::{choose, expect, press, settle, slider};

fn state(id: &str) -> BlockState {
    BlockState::of_effect(effect(id).expect("an effect"))
}

fn page(blocks: &[BlockState]) -> Test {
    let mut test = open(Fake {
        blocks: blocks.to_vec(),
        ..Fake::amplifying()
    });
    choose(&mut test, Role::Button, "Rig");
    test.state_mut().commands();
    test
}

/// Asserts that effects were changed in one step to these.
#[track_caller]
fn expect_step(test: &mut Test, blocks: &[BlockState]) {
    let expected: [WindowCommand; 2] = [
        RigCommand::Change(blocks.to_vec()).into(),
        RigCommand::Finish.into(),
    ];
    assert_eq!(test.state_mut().commands(), expected);
}

#[test]
fn blocks_are_added_turned_off_moved_and_removed() {
    let mut test = page(&[]);
    choose(&mut test, Role::Button, "Add effect");
    choose(&mut test, Role::Button, "Tremolo");
    expect_step(&mut test, &[state("tremolo")]);

    choose(&mut test, Role::Button, "Earlier");
    let before = BlockState {
        before: true,
        ..state("tremolo")
    };
    expect_step(&mut test, std::slice::from_ref(&before));

    choose(&mut test, Role::CheckBox, "Tremolo");
    let off = BlockState {
        off: true,
        ..before
    };
    expect_step(&mut test, std::slice::from_ref(&off));

    choose(&mut test, Role::Button, "Later");
    let after = BlockState {
        before: false,
        ..off
    };
    expect_step(&mut test, &[after]);

    choose(&mut test, Role::Button, "Remove");
    expect_step(&mut test, &[]);
}

#[test]
fn sliders_and_choices_set_values() {
    let mut test = page(&[state("tremolo")]);
    slider(&test, "Depth").focus();
    settle(&mut test);
    press(&mut test, Key::ArrowRight);
    let commands = test.state_mut().commands();
    let [
        WindowCommand::Rig(RigCommand::Change(blocks)),
        WindowCommand::Rig(RigCommand::Finish),
    ] = commands.as_slice()
    else {
        panic!("not one step: {commands:?}");
    };
    assert!(blocks[0].values["depth"] > 0.6, "{blocks:?}");

    choose(&mut test, Role::ComboBox, "Sync");
    choose(&mut test, Role::Button, "1/2");
    let commands = test.state_mut().commands();
    assert!(
        matches!(
            commands.first(),
            Some(WindowCommand::Rig(RigCommand::Change(blocks))) if blocks[0].values["sync"] == 2.0
        ),
        "{commands:?}"
    );
}

#[test]
fn an_unknown_effect_is_shown_and_can_be_removed() {
    let unknown = BlockState {
        block: "granulator".into(),
        ..BlockState::default()
    };
    let mut test = page(&[unknown]);
    assert!(test.query_all_by_label("granulator").next().is_some());
    choose(&mut test, Role::Button, "Remove");
    expect_step(&mut test, &[]);
}

#[test]
fn scenes_are_chosen_by_click_and_by_key_and_named() {
    let mut test = page(&[state("tremolo")]);
    choose(&mut test, Role::Button, "3");
    expect(&mut test, [RigCommand::GoToScene(2)]);
    test.key_press_modifiers(Modifiers::ALT, Key::Num8);
    settle(&mut test);
    expect(&mut test, [RigCommand::GoToScene(7)]);
    test.get_by_role_and_label(Role::TextInput, "Scene").focus();
    settle(&mut test);
    test.get_by_role_and_label(Role::TextInput, "Scene")
        .type_text("Verse");
    settle(&mut test);
    expect(&mut test, [RigCommand::NameScene("Verse".into())]);
}

#[test]
fn a_tile_that_is_dragged_moves_its_block() {
    let mut test = page(&[state("chorus"), state("delay")]);
    let middle = |test: &Test, name: &str| {
        let tiles = test.query_all_by_role_and_label(Role::Button, name);
        let rect = tiles.map(|node| node.rect()).next();
        rect.expect("a tile").center()
    };
    // From behind the model to the front.
    let (from, to) = (middle(&test, "Delay"), middle(&test, "Chorus"));
    let far_left = egui::pos2(to.x - 200.0, to.y);
    test.drag_at(from);
    settle(&mut test);
    test.hover_at(far_left);
    settle(&mut test);
    test.drop_at(far_left);
    settle(&mut test);
    let moved = BlockState {
        before: true,
        ..state("delay")
    };
    expect_step(&mut test, &[moved, state("chorus")]);
}

#[test]
fn models_and_responses_are_offered() {
    let mut test = page(&[]);
    choose(&mut test, Role::Button, "Add model");
    assert!(
        test.query_by_role_and_label(Role::Button, "Violin")
            .is_none()
    );
    choose(&mut test, Role::Button, "Tube amp");
    let commands = test.state_mut().commands();
    assert!(
        matches!(&commands[..], [WindowCommand::Rig(RigCommand::Add(block))] if block.block == MODEL),
        "{commands:?}"
    );
    choose(&mut test, Role::Button, "Add impulse response");
    choose(&mut test, Role::Button, BUNDLED[0].name);
    let added = BlockState::of_file(RESPONSE, BUNDLED[0].name, None);
    expect(&mut test, [RigCommand::Add(added.clone())]);
    let mut block = added;
    block.find();
    test.state_mut().model.blocks = vec![block];
    settle(&mut test);
    choose(&mut test, Role::Button, "Replace");
    choose(&mut test, Role::Button, BUNDLED[1].name);
    let other = BlockState::of_file(RESPONSE, BUNDLED[1].name, None);
    expect(&mut test, [RigCommand::Replace(0, other)]);
}

#[test]
fn a_block_goes_to_a_branch_and_branches_are_mixed() {
    let mut test = page(&[state("tremolo")]);
    choose(&mut test, Role::ComboBox, "Branch");
    choose(&mut test, Role::Button, "Branch B");
    let moved = BlockState {
        branch: Some(Branch::B),
        ..state("tremolo")
    };
    expect_step(&mut test, &[moved]);
    let invert = test
        .query_all_by_role_and_label(Role::CheckBox, "Invert")
        .nth(1);
    invert.expect("of branch B").click();
    settle(&mut test);
    let inverted = BranchState {
        inverted: true,
        ..BranchState::default()
    };
    let branches = [BranchState::default(), inverted];
    let expected = [RigCommand::ChangeBranches(branches), RigCommand::Finish];
    expect(&mut test, expected);
}

/// Opens the menu of a setting that has the keyboard focus.
fn menu_of(test: &mut Test, role: Role, name: &str) {
    test.get_by_role_and_label(role, name).focus();
    settle(test);
    test.key_press_modifiers(Modifiers::SHIFT, Key::F10);
    settle(test);
}

#[test]
fn macros_turn_settings_that_their_menus_give_them() {
    let mut test = page(&[state("tremolo")]);
    let mut turned = state("tremolo");
    menu_of(&mut test, Role::Slider, "Depth");
    choose(&mut test, Role::Button, "Macro 8");
    turned.turn_by("depth", Some(7));
    expect_step(&mut test, std::slice::from_ref(&turned));
    menu_of(&mut test, Role::CheckBox, "Tremolo");
    choose(&mut test, Role::Button, "Macro 8");
    turned.turn_by(block_macros::ON, Some(7));
    expect_step(&mut test, std::slice::from_ref(&turned));
    // Its name says which, and it can be taken away.
    menu_of(&mut test, Role::Slider, "Depth (macro 8)");
    choose(&mut test, Role::Button, "No macro");
    turned.turn_by("depth", None);
    expect_step(&mut test, &[turned]);
}

#[test]
fn a_looper_has_pedals_and_tells_what_it_does() {
    let mut test = page(&[state("looper")]);
    test.state_mut().model.activities = vec![Some(Activity {
        state: 2,
        position: 0.25,
    })];
    settle(&mut test);
    assert!(
        test.query_by_role_and_label(Role::Button, "Looper: Recording")
            .is_some()
    );
    choose(&mut test, Role::Button, "Record, play, overdub");
    let down = |blocks: &[BlockState]| blocks[0].values.get("pedal") == Some(&1.0);
    let commands = test.state_mut().commands();
    let pressed = commands.iter().any(
        |command| matches!(command, WindowCommand::Rig(RigCommand::Change(blocks)) if down(blocks)),
    );
    assert!(pressed, "{commands:?}");
    // It comes up by itself, and is no step of undo.
    test.run_steps(40);
    assert!(!down(&test.state().model.blocks), "the pedal stays down");
    assert!(!commands.contains(&RigCommand::Finish.into()));
}

#[test]
fn the_stage_has_scenes_and_what_is_next() {
    let mut test = page(&[state("looper")]);
    test.state_mut().model.activities = vec![Some(Activity {
        state: 3,
        position: 0.5,
    })];
    choose(&mut test, Role::Button, "Stage");
    assert!(
        test.query_by_role_and_label(Role::Status, "Looper: Playing")
            .is_some()
    );
    choose(&mut test, Role::Button, "Scene 4");
    expect(&mut test, [RigCommand::GoToScene(3)]);
    choose(&mut test, Role::Button, "Next sound");
    expect(&mut test, [PresetCommand::Next]);
    press(&mut test, Key::Escape);
    assert!(
        test.query_by_role_and_label(Role::Button, "Scene 4")
            .is_none()
    );
    for _ in 0..2 {
        test.key_press_modifiers(Modifiers::ALT, Key::Num0);
        settle(&mut test);
    }
    choose(&mut test, Role::Button, "Stage");
    choose(&mut test, Role::Button, "Leave");
    choose(&mut test, Role::Button, "Rig");
}

#[test]
fn program_changes_are_listed_numbered_and_removed() {
    let mut test = page(&[]);
    choose(&mut test, Role::Button, "Program changes");
    choose(&mut test, Role::Button, "Add this scene");
    expect(&mut test, [RigCommand::AddSceneProgram]);
    let number = ProgramNumber {
        bank: 2,
        program: 9,
    };
    test.state_mut().model.programs = vec![(number, "Verse".into())];
    settle(&mut test);
    choose(&mut test, Role::Button, "Add this preset");
    expect(&mut test, [RigCommand::AddPresetProgram]);
    test.get_by_role_and_label(Role::SpinButton, "Program of Verse")
        .focus();
    settle(&mut test);
    test.get_by_label("Program of Verse").type_text("10");
    settle(&mut test);
    press(&mut test, Key::Enter);
    let commands = test.state_mut().commands();
    let next = ProgramNumber {
        program: 10,
        ..number
    };
    assert!(
        commands.contains(&RigCommand::SetProgram(0, next).into()),
        "{commands:?}"
    );
    choose(&mut test, Role::Button, "Remove Verse");
    expect(&mut test, [RigCommand::RemoveProgram(0)]);
}

#[test]
fn the_equaliser_is_drawn_and_its_points_are_dragged() {
    let mut test = page(&[state("equalizer")]);
    let curve = test.get_by_role_and_label(Role::Group, "Curve").rect();
    // The first point: 80 Hz, flat.
    let along = (80.0_f32 / 20.0).ln() / 1_000.0_f32.ln();
    let inner = curve.shrink(7.0);
    let from = egui::pos2(inner.left() + along * inner.width(), inner.center().y);
    test.drag_at(from);
    settle(&mut test);
    test.hover_at(from + egui::vec2(20.0, -30.0));
    settle(&mut test);
    test.drop_at(from + egui::vec2(20.0, -30.0));
    settle(&mut test);
    let commands = test.state_mut().commands();
    assert_eq!(commands.last(), Some(&RigCommand::Finish.into()));
    let values = test.state().model.blocks[0].values.clone();
    assert!((85.0..200.0).contains(&values["frequency1"]), "{values:?}");
    assert!((7.0..11.0).contains(&values["gain1"]), "{values:?}");
    // Its knobs are those of the chosen band.
    assert!(
        test.query_by_role_and_label(Role::Slider, "Gain 2")
            .is_none()
    );
    choose(&mut test, Role::Button, "Band 2");
    slider(&test, "Gain 2");
}

#[test]
fn a_block_is_copied_to_another_instance() {
    let mut block = state("tremolo");
    block.level = -4.0;
    let mut one = page(std::slice::from_ref(&block));
    choose(&mut one, Role::Button, "Copy");
    let mut other = page(&[]);
    choose(&mut other, Role::Button, "Paste");
    expect(&mut other, [RigCommand::Add(block)]);
}
