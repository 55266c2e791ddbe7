//! The page of effects.

use egui::{Key, Role};
use egui_kittest::kittest::Queryable;
use ondes_engine::effects::effect;
use ondes_player::effect_list::EffectState;
use ondes_ui::{EffectCommand, WindowCommand};

use super::fake::{Fake, Test, open};
use super::hands::{choose, press, settle, slider};

fn state(id: &str) -> EffectState {
    EffectState::new(effect(id).expect("an effect"))
}

fn page(effects: &[EffectState]) -> Test {
    let mut test = open(Fake {
        effects: effects.to_vec(),
        ..Fake::amplifying()
    });
    choose(&mut test, Role::Button, "Effects");
    test.state_mut().commands();
    test
}

/// Asserts that effects were changed in one step to these.
#[track_caller]
fn expect_step(test: &mut Test, effects: &[EffectState]) {
    let expected: [WindowCommand; 2] = [
        EffectCommand::Change(effects.to_vec()).into(),
        EffectCommand::Finish.into(),
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
    let before = EffectState {
        before: true,
        ..state("tremolo")
    };
    expect_step(&mut test, std::slice::from_ref(&before));

    choose(&mut test, Role::CheckBox, "Tremolo");
    let off = EffectState {
        off: true,
        ..before
    };
    expect_step(&mut test, std::slice::from_ref(&off));

    choose(&mut test, Role::Button, "Down");
    let after = EffectState {
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
        WindowCommand::Effect(EffectCommand::Change(effects)),
        WindowCommand::Effect(EffectCommand::Finish),
    ] = commands.as_slice()
    else {
        panic!("not one step: {commands:?}");
    };
    assert!(effects[0].value(2) > 0.6, "{effects:?}");

    choose(&mut test, Role::ComboBox, "Sync");
    choose(&mut test, Role::Button, "1/2");
    let commands = test.state_mut().commands();
    assert!(
        matches!(
            commands.first(),
            Some(WindowCommand::Effect(EffectCommand::Change(effects))) if effects[0].value(1) == 2.0
        ),
        "{commands:?}"
    );
}

#[test]
fn an_unknown_effect_is_shown_and_can_be_removed() {
    let unknown = EffectState {
        effect: "granulator".into(),
        ..EffectState::default()
    };
    let mut test = page(&[unknown]);
    assert!(test.query_by_label("granulator").is_some());
    choose(&mut test, Role::Button, "Remove");
    expect_step(&mut test, &[]);
}
