//! Undo and redo, the first-run hint, and what the product says about itself.

use egui::{Key, Modifiers};
use egui_kittest::kittest::{NodeT, Queryable};
use ondes_player::product::Product;
use ondes_ui::{DisplayCommand, HistoryCommand, WindowCommand};

use super::fake::{Fake, Test, open};
use super::hands::{click, expect, settle};

fn keys(test: &mut Test, modifiers: Modifiers) -> Vec<WindowCommand> {
    test.key_press_modifiers(modifiers, Key::Z);
    settle(test);
    test.state_mut().commands()
}

#[test]
fn changes_are_undone_by_keys_and_buttons_that_name_them() {
    let mut test = open(Fake {
        undo: Some("Attack".into()),
        ..Fake::playing()
    });
    let node = |test: &Test, name: &str| {
        let node = test.get_by_label(name);
        (
            node.accesskit_node().is_disabled(),
            node.accesskit_node().description().unwrap_or_default(),
        )
    };
    let shown = [node(&test, "Undo"), node(&test, "Redo")];
    assert!(
        !shown[0].0 && shown[0].1.starts_with("Undo: Attack ("),
        "{shown:?}"
    );
    assert_eq!(shown[1], (true, "Nothing to redo".to_owned()));
    click(&mut test, "Undo");
    expect(&mut test, [HistoryCommand::Undo]);
    assert_eq!(
        keys(&mut test, Modifiers::COMMAND),
        [HistoryCommand::Undo.into()]
    );
    assert_eq!(
        keys(&mut test, Modifiers::COMMAND | Modifiers::SHIFT),
        [HistoryCommand::Redo.into()]
    );
    // A text field undoes its own text.
    test.get_by_label("Search models").focus();
    settle(&mut test);
    test.get_by_label("Search models").type_text("bell");
    settle(&mut test);
    assert!(keys(&mut test, Modifiers::COMMAND).is_empty());
}

#[test]
fn a_hint_is_shown_until_it_is_dismissed_and_problems_come_first() {
    let mut test = open(Fake {
        hint: Some("Play the keyboard below".into()),
        ..Fake::playing()
    });
    assert!(test.query_by_label("Play the keyboard below").is_some());
    test.state_mut().model.notice = Some("“Old Bell” was trained anew".into());
    settle(&mut test);
    assert!(test.query_by_label("Play the keyboard below").is_none());
    click(&mut test, "OK");
    click(&mut test, "OK");
    expect(
        &mut test,
        [DisplayCommand::Dismiss, DisplayCommand::Dismiss],
    );
    assert!(test.query_by_label("OK").is_none());
}

#[test]
fn both_products_say_version_licence_and_manual() {
    for (scene, name) in [
        (Fake::playing(), "About Ondes"),
        (Fake::amplifying(), "About Ondes FX"),
    ] {
        let is_effect = scene.product == Product::Effect;
        let mut test = open(scene);
        click(&mut test, name);
        for text in ["Version", env!("CARGO_PKG_VERSION"), "Licence", "Manual"] {
            assert!(test.query_by_label(text).is_some(), "{name}: {text}");
        }
        // An effect has nothing to play.
        assert_eq!(test.query_by_label_contains("Notes ").is_none(), is_effect);
    }
}
