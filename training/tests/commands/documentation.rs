//! The `ondes-train` commands of README and book run as printed.

#[cfg(unix)]
#[test]
fn documented_commands_run() {
    let count = ondes_tests::documentation::run_commands_of(std::path::Path::new(env!(
        "CARGO_BIN_EXE_ondes-train"
    )));
    assert!(count > 0, "no block is marked runnable");
}
