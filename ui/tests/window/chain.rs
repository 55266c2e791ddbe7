//! The signal chain's page and the choice of a cabinet.

use std::path::PathBuf;

use egui::{Key, Role};
use egui_kittest::kittest::Queryable;
use ondes_player::cabinet::bundled::BUNDLED;
use ondes_player::library::MissingFile;
use ondes_player::parameter::ParameterId;
use ondes_ui::{CabinetCommand, FileCommand, FilePurpose};

use super::fake::{CABINETS, Fake, Test, open};
use super::hands::{choose, click, expect, one_gesture, press, settle, slider};

fn file(name: &str) -> PathBuf {
    format!("{CABINETS}/{name}.wav").into()
}

/// Opens the page and its list of impulse responses.
fn listed(model: Fake) -> Test {
    let mut test = open(model);
    choose(&mut test, Role::Button, "Chain");
    choose(&mut test, Role::ComboBox, "Impulse response");
    assert_eq!(
        test.state_mut().commands(),
        [CabinetCommand::Rescan.into()],
        "files are looked for when the list opens, once"
    );
    test
}

fn said(test: &Test) -> Option<String> {
    test.get_by_role_and_label(Role::ComboBox, "Impulse response")
        .value()
}

#[test]
fn its_knobs_turn() {
    let mut test = open(Fake::amplifying());
    choose(&mut test, Role::Button, "Chain");
    slider(&test, "Gate").focus();
    settle(&mut test);
    press(&mut test, Key::Home);
    assert_eq!(
        one_gesture(&test.state_mut().commands(), ParameterId(300)),
        0.0
    );
    choose(&mut test, Role::ComboBox, "Oversampling");
    click(&mut test, "4×");
    assert_eq!(
        one_gesture(&test.state_mut().commands(), ParameterId(307)),
        1.0
    );
    slider(&test, "Size: lite").focus();
    settle(&mut test);
    press(&mut test, Key::End);
    assert_eq!(
        one_gesture(&test.state_mut().commands(), ParameterId(308)),
        1.0
    );
    choose(&mut test, Role::ComboBox, "Output level");
    click(&mut test, "Calibrated");
    assert_eq!(
        one_gesture(&test.state_mut().commands(), ParameterId(310)),
        1.0
    );
    choose(&mut test, Role::ComboBox, "Tone");
    click(&mut test, "Before");
    assert_eq!(
        one_gesture(&test.state_mut().commands(), ParameterId(304)),
        1.0
    );
}

#[test]
fn missing_levels_are_remarked() {
    let remark = "Levels are unchanged: the model states no loudness.";
    let mut test = open(Fake::amplifying());
    choose(&mut test, Role::Button, "Chain");
    assert!(test.query_by_label(remark).is_some());
    test.state_mut().model.remark = None;
    settle(&mut test);
    assert!(test.query_by_label(remark).is_none());
}

#[test]
fn a_cabinet_is_chosen_from_the_folder_by_its_path_or_not_at_all() {
    let mut test = listed(Fake::amplifying());
    assert_eq!(said(&test).as_deref(), Some("Four twelves"));
    choose(&mut test, Role::Button, "Room mike");
    expect(&mut test, [CabinetCommand::Load(file("Room mike"))]);
    assert!(test.query_by_label("None").is_none(), "the list closes");
    assert_eq!(said(&test).as_deref(), Some("Room mike"));

    choose(&mut test, Role::ComboBox, "Impulse response");
    test.state_mut().commands();
    test.get_by_label("Path of an impulse response").focus();
    settle(&mut test);
    test.get_by_label("Path of an impulse response")
        .type_text("/tmp/my box.wav");
    settle(&mut test);
    press(&mut test, Key::Enter);
    expect(&mut test, [CabinetCommand::Load("/tmp/my box.wav".into())]);

    choose(&mut test, Role::ComboBox, "Impulse response");
    test.state_mut().commands();
    choose(&mut test, Role::Button, "Choose a file");
    expect(&mut test, [FileCommand::Browse(FilePurpose::Cabinet)]);

    choose(&mut test, Role::ComboBox, "Impulse response");
    test.state_mut().commands();
    choose(&mut test, Role::Button, "None");
    expect(&mut test, [CabinetCommand::Remove]);
    assert_eq!(said(&test).as_deref(), Some("none"));
}

#[test]
fn bundled_cabinets_stand_before_the_users_files() {
    let mut test = listed(Fake::amplifying());
    let labels = [
        "Automatic",
        "None",
        BUNDLED[0].name,
        BUNDLED[1].name,
        BUNDLED[2].name,
        "Blue open back",
    ];
    let tops: Vec<f32> = labels
        .iter()
        .map(|label| test.get_by_label(label).rect().top())
        .collect();
    assert!(tops.is_sorted(), "{tops:?}");
    choose(&mut test, Role::Button, BUNDLED[2].name);
    expect(&mut test, [CabinetCommand::LoadBundled(2)]);
    assert_eq!(said(&test).as_deref(), Some("Ondes 4x12 closed back"));
    choose(&mut test, Role::ComboBox, "Impulse response");
    test.state_mut().commands();
    choose(&mut test, Role::Button, "Automatic");
    expect(&mut test, [CabinetCommand::Automatic]);
    assert_eq!(
        said(&test).as_deref(),
        Some("Ondes 4x12 closed back (automatic)")
    );
}

#[test]
fn an_empty_folder_says_where_files_go() {
    let test = listed(Fake {
        cabinets: Vec::new(),
        ..Fake::amplifying()
    });
    assert!(
        test.query_by_label(&format!("Put WAV files into {CABINETS}"))
            .is_some()
    );
}

#[test]
fn a_missing_file_is_reported_and_searched_again() {
    let searched = vec!["/old/box.wav: no such file".to_owned(), CABINETS.to_owned()];
    let mut test = open(Fake {
        cabinet_missing: Some(MissingFile::new("box", searched)),
        ..Fake::amplifying()
    });
    let text = "Cannot use the cabinet “box”: /old/box.wav: no such file and 1 more";
    assert!(test.query_by_label(text).is_some());
    click(&mut test, "Retry");
    expect(&mut test, [FileCommand::Retry]);
    assert!(test.query_by_label(text).is_none());
    // A missing model takes precedence.
    let missing = |name: &str| Some(MissingFile::new(name, vec!["/old".to_owned()]));
    let test = open(Fake {
        missing: missing("Bell"),
        cabinet_missing: missing("box"),
        ..Fake::amplifying()
    });
    assert!(
        test.query_by_label("“Bell” is missing; searched: /old")
            .is_some()
    );
}
