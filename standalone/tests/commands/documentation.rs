//! README and book: the `ondes` commands run as printed, and the table of parameters is up to date.

use ondes::render::note_name;
use ondes_engine::model::Kind;
use ondes_player::library::{BUNDLED, BundledModel};

#[cfg(unix)]
#[test]
fn documented_commands_run() {
    let count = ondes_tests::documentation::run_commands_of(std::path::Path::new(env!(
        "CARGO_BIN_EXE_ondes"
    )));
    assert!(count > 0, "no block is marked runnable");
}

#[test]
fn the_parameters_are_documented() {
    let page = std::fs::read_to_string(
        ondes_tests::documentation::checkout().join("docs/src/parameters.md"),
    )
    .unwrap();
    let table = ondes_player::parameter_docs::markdown_table();
    assert!(
        page.ends_with(&table),
        "docs/src/parameters.md must end with this table:\n{table}"
    );
}

#[test]
fn the_ranges_of_instruments_are_documented() {
    let page = std::fs::read_to_string(
        ondes_tests::documentation::checkout().join("docs/src/instruments.md"),
    )
    .unwrap();
    let instruments = BUNDLED
        .iter()
        .map(BundledModel::model)
        .filter(|model| model.header().kind == Kind::Instrument);
    let mut count = 0;
    for model in instruments {
        let performance = model.header().performance.unwrap_or_default();
        let note = |pitch| note_name(pitch).replace('♯', "#").replace('♭', "b");
        let (low, high) = (note(performance.pitch_low), note(performance.pitch_high));
        let name = model.header().card.name.to_lowercase().replace(' ', "-");
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}` |")));
        assert!(
            row.is_some_and(|row| row.ends_with(&format!("| {low} to {high} |"))),
            "{name}: {low} to {high}, {row:?}"
        );
        count += 1;
    }
    assert!(
        page.contains("Eleven are bundled") && count == 11,
        "{count}"
    );
}
