//! Every control has a tooltip, which assistive technology reads as well.

use egui::Role;
use egui_kittest::kittest::{NodeT, Queryable};
use ondes_engine::realtime::LoadStatus;
use ondes_player::library::MissingFile;

use super::fake::{Fake, Test, open};
use super::hands::{choose, click};

/// Roles of controls and displays.
const ROLES: [Role; 9] = [
    Role::Button,
    Role::CheckBox,
    Role::ComboBox,
    Role::Group,
    Role::Image,
    Role::ListBoxOption,
    Role::Meter,
    Role::Slider,
    Role::TextInput,
];

/// Returns the controls that have no tooltip.
fn without_tooltip(test: &Test) -> Vec<String> {
    let nodes = ROLES
        .into_iter()
        .flat_map(|role| test.query_all_by_role(role));
    let silent = nodes.filter(|node| {
        node.accesskit_node()
            .description()
            .is_none_or(|text| text.is_empty())
    });
    silent
        .map(|node| {
            format!(
                "{:?} {:?}",
                node.accesskit_node().role(),
                node.accesskit_node().label()
            )
        })
        .collect()
}

fn check(test: &Test, place: &str) {
    assert!(
        test.query_all_by_role(Role::Button).count() > 20,
        "{place}: the window is drawn"
    );
    assert_eq!(without_tooltip(test), [""; 0], "{place}");
}

#[test]
fn every_control_on_every_page_has_a_tooltip() {
    for (scene, pages) in [
        (Fake::playing(), &["Macros", "Voice", "Chain", "Pad"][..]),
        (Fake::bending(), &["Latents", "Pad"]),
        (Fake::amplifying(), &["Chain"]),
    ] {
        let mut test = open(scene);
        for page in pages {
            choose(&mut test, Role::Button, page);
            check(&test, page);
        }
    }
}

#[test]
fn messages_and_an_empty_window_have_tooltips() {
    let missing = Some(MissingFile::new("Old Bell", vec!["/models".into()]));
    check(
        &open(Fake {
            missing,
            ..Fake::playing()
        }),
        "missing",
    );
    check(
        &open(Fake {
            status: LoadStatus::Failed("no".into()),
            ..Fake::playing()
        }),
        "failed",
    );
    check(
        &open(Fake {
            hint: Some("Play".into()),
            ..Fake::playing()
        }),
        "hint",
    );
    let mut test = open(Fake::playing());
    click(&mut test, "Keys");
    check(&test, "keys");
    assert_eq!(without_tooltip(&open(Fake::empty())), [""; 0]);
}

#[test]
fn a_tooltip_appears_under_the_pointer() {
    let mut test = open(Fake::playing());
    test.get_by_label("Bypass").hover();
    test.run_steps(60);
    let shown = test.query_all_by_role(Role::Tooltip).count();
    assert_eq!(shown, 1);
}
