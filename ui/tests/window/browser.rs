//! The list of models.

use egui::{Key, Modifiers};
use egui_kittest::kittest::{NodeT, Queryable};
use ondes_ui::{FileCommand, FilePurpose, ModelCommand, ModelEntryId};

use super::fake::{Fake, open};
use super::hands::{click, expect, press, row, rows, settle};

#[test]
fn the_browser_is_searched_filtered_and_loaded_from() {
    let mut test = open(Fake::playing());
    test.get_by_label("Search models").focus();
    settle(&mut test);
    test.get_by_label("Search models").type_text("rey VOICE");
    settle(&mut test);
    assert_eq!(rows(&test), ["Tape voice"]);
    row(&test, "Tape voice").click();
    settle(&mut test);
    row(&test, "Tape voice").click();
    settle(&mut test);
    expect(&mut test, [ModelCommand::Load(ModelEntryId(6))]);

    test.get_by_label("Search models").focus();
    settle(&mut test);
    test.key_press_modifiers(Modifiers::COMMAND, Key::A);
    press(&mut test, Key::Delete);
    click(&mut test, "Effect");
    assert_eq!(
        rows(&test),
        ["Tube amp", "Tube amp", "Fuzz box"],
        "favourites, bundled, the user's own"
    );
    click(&mut test, "Codec");
    test.get_by_label("Search models").type_text("nobody");
    test.get_by_label("Search models").focus();
    settle(&mut test);
    test.get_by_label("Search models").type_text("nobody");
    settle(&mut test);
    assert!(rows(&test).is_empty());
    assert!(test.query_by_label("No model fits").is_some());
}

#[test]
fn a_path_in_the_search_field_is_opened() {
    let mut test = open(Fake::playing());
    test.get_by_label("Search models").focus();
    settle(&mut test);
    test.get_by_label("Search models")
        .type_text("/models/bell.ondes");
    settle(&mut test);
    press(&mut test, Key::Enter);
    expect(&mut test, [FileCommand::Open("/models/bell.ondes".into())]);
    assert!(!rows(&test).is_empty(), "the list is back");
    test.get_by_label("Search models").focus();
    settle(&mut test);
    test.get_by_label("Search models")
        .type_text("\"/models/a b.ondes\"");
    settle(&mut test);
    click(&mut test, "Open this file");
    expect(&mut test, [FileCommand::Open("/models/a b.ondes".into())]);
}

#[test]
fn one_click_auditions_and_one_marks() {
    let mut test = open(Fake::playing());
    click(&mut test, "Audition Cello");
    expect(&mut test, [ModelCommand::Audition(Some(ModelEntryId(2)))]);
    click(&mut test, "Stop Cello");
    expect(&mut test, [ModelCommand::Audition(None)]);
    assert_eq!(rows(&test)[0], "Tube amp");
    click(&mut test, "Add Cello to favourites");
    expect(&mut test, [ModelCommand::Favourite(ModelEntryId(2), true)]);
    assert_eq!(
        rows(&test)[..2],
        ["Cello", "Tube amp"],
        "it stands among the favourites now"
    );
    click(&mut test, "Rescan folders");
    expect(&mut test, [ModelCommand::Rescan]);
    click(&mut test, "Open a file");
    expect(&mut test, [FileCommand::Browse(FilePurpose::Model)]);
}

#[test]
fn files_are_only_asked_for_where_that_can_be() {
    let test = open(Fake {
        able: false,
        ..Fake::playing()
    });
    assert!(test.query_by_label("Open a file").is_none());
}

#[test]
fn the_list_is_walked_by_keyboard() {
    let mut test = open(Fake::playing());
    test.key_press_modifiers(Modifiers::COMMAND, Key::F);
    settle(&mut test);
    assert!(test.get_by_label("Search models").is_focused());
    press(&mut test, Key::ArrowDown);
    assert!(
        row(&test, "Violin").is_focused(),
        "what plays is where the walk begins"
    );
    for _ in 0..3 {
        press(&mut test, Key::ArrowDown);
    }
    assert!(row(&test, "Flute").is_focused());
    press(&mut test, Key::Space);
    press(&mut test, Key::F);
    press(&mut test, Key::Enter);
    let flute = ModelEntryId(3);
    let wanted = [
        ModelCommand::Audition(Some(flute)).into(),
        ModelCommand::Favourite(flute, true).into(),
        ModelCommand::Load(flute).into(),
    ];
    assert_eq!(test.state_mut().commands(), wanted);
    press(&mut test, Key::End);
    assert!(
        row(&test, "Fuzz box").is_focused(),
        "also a row that was out of sight"
    );
    press(&mut test, Key::PageDown);
    assert!(row(&test, "Fuzz box").is_focused());
}

#[test]
fn only_visible_models_are_drawn() {
    let mut model = Fake::playing();
    let entry = model.models[1].clone();
    let many = |id: u64| ondes_ui::ModelEntry {
        id: ModelEntryId(id),
        name: format!("Model {id}"),
        ..entry.clone()
    };
    model.models = (0..1000).map(many).collect();
    let test = open(model);
    assert!(rows(&test).len() < 20, "{}", rows(&test).len());
}

#[test]
fn a_card_does_not_hide_the_name_of_the_file() {
    let mut model = Fake::playing();
    model.models[6].path = Some("/home/ana/models/grand_1912-take3.nam".into());
    model.model_path = Some("/home/ana/models/violin.ondes".into());
    let mut test = open(model);
    test.get_by_label("Search models").focus();
    settle(&mut test);
    test.get_by_label("Search models").type_text("TAKE3 rey");
    settle(&mut test);
    assert_eq!(
        rows(&test),
        ["Grandmother's piano"],
        "found by its file and its author"
    );
    let tooltip = row(&test, "Grandmother's piano")
        .accesskit_node()
        .description()
        .unwrap_or_default();
    assert!(
        tooltip.contains("/home/ana/models/grand_1912-take3.nam"),
        "{tooltip}"
    );
    click(&mut test, "About Violin");
    assert!(
        test.query_by_label_contains("/home/ana/models/violin.ondes")
            .is_some(),
        "the card names the file"
    );
}
