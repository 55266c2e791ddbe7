//! Clicks, keys and look-ups for the tests.

use egui::{Key, Role};
use egui_kittest::Node;
use egui_kittest::kittest::{NodeT, Queryable};
use ondes_player::parameter::ParameterId;
use ondes_ui::{KnobCommand, WindowCommand};

use super::fake::Test;

pub const BRIGHTNESS: ParameterId = ParameterId(0);

pub fn slider<'a>(test: &'a Test, name: &'a str) -> Node<'a> {
    test.get_by_role_and_label(Role::Slider, name)
}

/// Returns a model's row in the list; the first of several.
pub fn row<'a>(test: &'a Test, name: &'a str) -> Node<'a> {
    test.get_all_by_role_and_label(Role::ListBoxOption, name)
        .next()
        .unwrap_or_else(|| panic!("no row for {name}"))
}

pub fn rows(test: &Test) -> Vec<String> {
    test.query_all_by_role(Role::ListBoxOption)
        .filter_map(|row| row.accesskit_node().label())
        .collect()
}

pub fn settle(test: &mut Test) {
    test.run_steps(4);
}

pub fn click(test: &mut Test, label: &str) {
    test.get_by_label(label).click();
    settle(test);
}

/// Clicks the node with this role and label.
pub fn choose(test: &mut Test, role: Role, label: &str) {
    test.get_by_role_and_label(role, label).click();
    settle(test);
}

pub fn press(test: &mut Test, key: Key) {
    test.key_press(key);
    settle(test);
}

/// Asserts that these were the commands since the last ones were taken.
#[track_caller]
pub fn expect<C: Into<WindowCommand>>(test: &mut Test, commands: impl IntoIterator<Item = C>) {
    let commands: Vec<WindowCommand> = commands.into_iter().map(Into::into).collect();
    assert_eq!(test.state_mut().commands(), commands);
}

/// Returns the value that a knob was set to, in a single gesture.
pub fn one_gesture(commands: &[WindowCommand], knob: ParameterId) -> f32 {
    match commands {
        [
            WindowCommand::Knob(KnobCommand::BeginGesture(begun)),
            WindowCommand::Knob(KnobCommand::Set(set, value)),
            WindowCommand::Knob(KnobCommand::EndGesture(ended)),
        ] => {
            assert_eq!([begun, set, ended], [&knob; 3]);
            *value
        }
        other => panic!("not one gesture: {other:?}"),
    }
}

/// Returns the last value of a gesture of several steps.
pub fn long_gesture(commands: &[WindowCommand], knob: ParameterId) -> f32 {
    assert_eq!(
        commands.first(),
        Some(&KnobCommand::BeginGesture(knob).into()),
        "{commands:?}"
    );
    assert_eq!(
        commands.last(),
        Some(&KnobCommand::EndGesture(knob).into()),
        "{commands:?}"
    );
    let steps = &commands[1..commands.len() - 1];
    let value = |step: &WindowCommand| match step {
        WindowCommand::Knob(KnobCommand::Set(set, value)) if *set == knob => *value,
        other => panic!("{other:?} within a gesture"),
    };
    let values: Vec<f32> = steps.iter().map(value).collect();
    *values.last().expect("a step")
}
