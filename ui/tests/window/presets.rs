//! Presets, and the model's card.

use egui::{Key, Role};
use egui_kittest::kittest::{NodeT, Queryable};
use ondes_player::preset::list::PresetId;
use ondes_ui::{ModelCommand, PresetCommand};

use super::fake::{Fake, Test, open};
use super::hands::{choose, click, expect, press, settle};

fn opened(model: Fake) -> Test {
    let mut test = open(Fake {
        models: Vec::new(),
        ..model
    });
    choose(&mut test, Role::ComboBox, "Preset");
    assert!(
        test.get_by_label("Search presets").is_focused(),
        "one can type at once"
    );
    test
}

fn listed(test: &Test) -> Vec<String> {
    test.query_all_by_role(Role::ListBoxOption)
        .filter_map(|row| row.accesskit_node().label())
        .collect()
}

#[test]
fn presets_are_stepped_through() {
    let mut test = open(Fake::playing());
    click(&mut test, "Next preset");
    click(&mut test, "Previous preset");
    expect(&mut test, [PresetCommand::Next, PresetCommand::Previous]);
    let value = |test: &Test| test.get_by_role_and_label(Role::ComboBox, "Preset").value();
    assert_eq!(value(&test).as_deref(), Some("Close bow, changed"));
    test.state_mut().model.preset_changed = false;
    settle(&mut test);
    assert_eq!(value(&test).as_deref(), Some("Close bow"));
    test.state_mut().model.preset = None;
    settle(&mut test);
    assert_eq!(value(&test).as_deref(), Some("none"));
}

#[test]
fn a_preset_is_searched_and_loaded() {
    let mut test = opened(Fake::playing());
    assert_eq!(listed(&test).len(), 5);
    test.get_by_label("Search presets").type_text("ONDES bow");
    settle(&mut test);
    assert_eq!(listed(&test), ["Close bow"], "its name and what it is like");
    press(&mut test, Key::Enter);
    expect(&mut test, [PresetCommand::Load(PresetId(2))]);
    assert!(listed(&test).is_empty(), "the list closes");

    choose(&mut test, Role::ComboBox, "Preset");
    assert_eq!(listed(&test).len(), 5, "what was searched is forgotten");
    choose(&mut test, Role::ListBoxOption, "Far away");
    expect(&mut test, [PresetCommand::Load(PresetId(3))]);
}

#[test]
fn a_preset_with_a_problem_is_not_loaded() {
    let mut test = opened(Fake::playing());
    choose(&mut test, Role::ListBoxOption, "Old bell choir");
    assert!(test.state_mut().commands().is_empty());
    test.get_by_label("Search presets").focus();
    settle(&mut test);
    test.get_by_label("Search presets").type_text("bell");
    settle(&mut test);
    press(&mut test, Key::Enter);
    assert!(test.state_mut().commands().is_empty());
    assert_eq!(listed(&test), ["Old bell choir"]);
}

#[test]
fn the_list_of_presets_is_walked_by_keyboard() {
    let mut test = opened(Fake::playing());
    press(&mut test, Key::ArrowDown);
    let focused = |test: &Test, name: &str| {
        test.get_by_role_and_label(Role::ListBoxOption, name)
            .is_focused()
    };
    assert!(
        focused(&test, "Close bow"),
        "what is loaded is where the walk begins"
    );
    press(&mut test, Key::ArrowDown);
    assert!(focused(&test, "Far away"));
    press(&mut test, Key::Delete);
    press(&mut test, Key::Delete);
    assert!(
        test.state_mut().commands().is_empty(),
        "what came with Ondes stays"
    );
    press(&mut test, Key::ArrowDown);
    press(&mut test, Key::Delete);
    assert!(test.state_mut().commands().is_empty(), "it asks first");
    assert!(
        test.query_by_label("Really delete My evening strings")
            .is_some()
    );
    press(&mut test, Key::ArrowUp);
    press(&mut test, Key::ArrowDown);
    press(&mut test, Key::Delete);
    assert!(
        test.state_mut().commands().is_empty(),
        "who has gone away is asked again"
    );
    press(&mut test, Key::Delete);
    expect(&mut test, [PresetCommand::Delete(PresetId(4))]);
    press(&mut test, Key::Home);
    press(&mut test, Key::Enter);
    expect(&mut test, [PresetCommand::Load(PresetId(1))]);
    assert!(
        test.get_by_role_and_label(Role::ComboBox, "Preset")
            .is_focused(),
        "the keyboard is back where it was"
    );
}

#[test]
fn a_preset_of_ones_own_is_deleted_by_a_second_click() {
    let mut test = opened(Fake::playing());
    assert!(
        test.query_by_label("Delete Far away").is_none(),
        "what came with Ondes stays"
    );
    click(&mut test, "Delete My evening strings");
    click(&mut test, "Delete Old bell choir");
    assert!(test.state_mut().commands().is_empty());
    assert!(
        test.query_by_label("Delete My evening strings").is_some(),
        "only one at a time"
    );
    click(&mut test, "Really delete Old bell choir");
    expect(&mut test, [PresetCommand::Delete(PresetId(5))]);
}

#[test]
fn a_preset_is_saved_under_a_name() {
    let mut test = opened(Fake::playing());
    click(&mut test, "Save as…");
    let field = test.get_by_label("Preset name");
    assert!(field.is_focused());
    assert_eq!(
        field.value().as_deref(),
        Some("Close bow"),
        "what is loaded is a beginning"
    );
    field.type_text("  Winter  ");
    settle(&mut test);
    press(&mut test, Key::Enter);
    expect(&mut test, [PresetCommand::Save("Winter".into())]);
    assert!(listed(&test).is_empty(), "the list closes");

    choose(&mut test, Role::ComboBox, "Preset");
    click(&mut test, "Save as…");
    test.get_by_label("Preset name").type_text("   ");
    settle(&mut test);
    press(&mut test, Key::Enter);
    click(&mut test, "Save");
    assert!(test.state_mut().commands().is_empty(), "that is no name");
    test.get_by_label("Preset name").focus();
    settle(&mut test);
    test.get_by_label("Preset name")
        .type_text("My evening strings");
    settle(&mut test);
    click(&mut test, "Replace");
    expect(
        &mut test,
        [PresetCommand::Save("My evening strings".into())],
    );
}

#[test]
fn presets_are_shown_where_there_may_be_some() {
    let none = || Fake {
        presets: Vec::new(),
        ..Fake::playing()
    };
    let test = open(Fake {
        able: false,
        ..none()
    });
    assert!(
        test.query_by_label("Preset").is_none() && test.query_by_label("Next preset").is_none()
    );
    let mut test = open(none());
    assert!(test.query_by_label("Next preset").is_none());
    choose(&mut test, Role::ComboBox, "Preset");
    assert!(
        test.query_by_label("No presets yet").is_some()
            && test.query_by_label("Save as…").is_some()
    );
    let mut test = open(Fake {
        able: false,
        ..Fake::playing()
    });
    choose(&mut test, Role::ComboBox, "Preset");
    assert!(test.query_by_label("Factory").is_some() && test.query_by_label("Save as…").is_none());
}

#[test]
fn a_model_is_embedded_in_the_project() {
    let mut test = open(Fake::playing());
    click(&mut test, "About Violin");
    click(&mut test, "Save model with project");
    click(&mut test, "Save model with project");
    expect(
        &mut test,
        [ModelCommand::Embed(true), ModelCommand::Embed(false)],
    );

    test.state_mut().model.embed_problem = Some("too large: 310 MB".into());
    settle(&mut test);
    let entry = test.get_by_label("Save model with project");
    assert!(entry.accesskit_node().is_disabled());
    assert_eq!(
        entry.accesskit_node().description().as_deref(),
        Some("too large: 310 MB")
    );
    click(&mut test, "Save model with project");
    assert!(test.state_mut().commands().is_empty());
    let described = test
        .query_all_by_label("A bowed string with a wooden body.")
        .count();
    assert_eq!(described, 2, "in the header and on the card");
}

#[test]
fn a_preset_is_found_by_the_name_of_its_file() {
    let mut model = Fake::playing();
    model.presets[3].path = Some("/home/ana/presets/from_studio.ondes-preset".into());
    let mut test = opened(model);
    test.get_by_label("Search presets").type_text("studio");
    settle(&mut test);
    assert_eq!(listed(&test), ["My evening strings"]);
}
