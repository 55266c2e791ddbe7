//! README and book: the `ondes` commands run as printed, and the table of parameters is up to date.

#[cfg(unix)]
#[test]
fn documented_commands_run() {
    let count = ondes_tests::documentation::run_commands_of(std::path::Path::new(env!("CARGO_BIN_EXE_ondes")));
    assert!(count > 0, "no block is marked runnable");
}

#[test]
fn the_parameters_are_documented() {
    let page = std::fs::read_to_string(ondes_tests::documentation::checkout().join("docs/src/parameters.md")).unwrap();
    let table = ondes_processor::parameter_docs::markdown_table();
    assert!(page.ends_with(&table), "docs/src/parameters.md must end with this table:\n{table}");
}
