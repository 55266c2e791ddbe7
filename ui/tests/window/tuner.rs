//! The tuner's panel.

use egui::Role;
use egui_kittest::kittest::{NodeT, Queryable};
use ondes_ui::{TunerCommand, TunerView};

use super::fake::{Fake, Test, open};
use super::hands::{choose, click, expect, settle};

fn statuses(test: &Test) -> Vec<String> {
    test.query_all_by_role(Role::Status)
        .filter_map(|node| node.accesskit_node().label())
        .collect()
}

fn status(test: &Test) -> Option<String> {
    statuses(test)
        .into_iter()
        .find(|text| text.starts_with("Tuner"))
}

#[test]
fn it_opens_shows_the_note_and_closes() {
    let mut test = open(Fake::amplifying());
    let pages = |test: &Test| {
        test.query_by_role_and_label(Role::Button, "Chain")
            .is_some()
    };
    assert!(status(&test).is_none() && pages(&test));
    choose(&mut test, Role::Button, "Tuner");
    expect(&mut test, [TunerCommand::Open(true)]);
    assert_eq!(status(&test).as_deref(), Some("Tuner: no note"));
    assert!(!pages(&test), "it takes the place of the pages");
    for (hz, text) in [
        (82.0, "Tuner E2 -8.6 cents"),
        (30.868, "Tuner B0 +0.0 cents"),
        (1326.0, "Tuner E6 +9.8 cents"),
    ] {
        test.state_mut().model.tuner.pitch_hz = Some(hz);
        settle(&mut test);
        assert_eq!(status(&test).as_deref(), Some(text));
    }
    test.state_mut().model.tuner.reference_hz = 442.0;
    test.state_mut().model.tuner.pitch_hz = Some(442.0);
    settle(&mut test);
    assert_eq!(status(&test).as_deref(), Some("Tuner A4 +0.0 cents"));
    click(&mut test, "Close the tuner");
    expect(&mut test, [TunerCommand::Open(false)]);
    assert!(status(&test).is_none());
}

#[test]
fn its_settings_are_changed() {
    let mut test = open(Fake::tuning());
    choose(&mut test, Role::Button, "Mute output");
    choose(&mut test, Role::Button, "Mute output");
    let mutes = [
        TunerCommand::Mute(true).into(),
        TunerCommand::Mute(false).into(),
    ];
    assert_eq!(test.state_mut().commands(), mutes);
    test.get_by_label("Frequency of A4").click_accesskit();
    settle(&mut test);
    let field = test.get_by_label("Frequency of A4");
    field.type_text("432.5");
    settle(&mut test);
    test.key_press(egui::Key::Enter);
    settle(&mut test);
    assert_eq!(
        test.state_mut().commands().last(),
        Some(&TunerCommand::SetReference(432.5).into())
    );
}

#[test]
fn it_is_not_offered_without_an_input() {
    let tuner = TunerView {
        available: false,
        ..Fake::tuning().tuner
    };
    let test = open(Fake {
        tuner: TunerView {
            open: false,
            ..tuner
        },
        ..Fake::amplifying()
    });
    assert!(
        test.query_by_role_and_label(Role::Button, "Tuner")
            .is_none()
    );
}
