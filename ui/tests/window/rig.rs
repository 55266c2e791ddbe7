//! The page of the rig.

use egui::{Key, Modifiers, Role};
use egui_kittest::kittest::Queryable;
use ondes_engine::effects::effect;
use ondes_player::rig::block_state::BlockState;
use ondes_ui::{RigCommand, WindowCommand};

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
fn effects_are_added_turned_off_moved_and_removed() {
    let mut test = page(&[]);
    choose(&mut test, Role::Button, "Add effect");
    choose(&mut test, Role::Button, "Tremolo");
    expect_step(&mut test, &[state("tremolo")]);

    choose(&mut test, Role::Button, "Up");
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

    choose(&mut test, Role::Button, "Down");
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
    assert!(test.query_by_label("granulator").is_some());
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
