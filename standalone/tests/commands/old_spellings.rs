//! Spellings of older versions: still accepted, but hidden in the help.

use super::common::Folder;

#[test]
fn the_old_name_of_the_sample_rate_is_accepted() {
    let folder = Folder::new();
    let report = folder.json(&[
        "bench",
        "small.ondes",
        "--seconds",
        "0.1",
        "--rate",
        "44100",
    ]);
    assert_eq!(report["sample_rate"], 44_100);
    folder.refuses(
        &["play", "none.ondes", "--rate", "44100"],
        &["none.ondes: "],
    );
}

#[test]
fn old_spellings_are_hidden() {
    let folder = Folder::new();
    for command in ["bench", "play", "render"] {
        let help = folder.run(&[command, "--help"]).stdout;
        let help = String::from_utf8_lossy(&help);
        assert!(help.contains("--sample-rate"), "{help}");
        assert!(
            !help.contains("--rate") && !help.contains("normalised"),
            "{help}"
        );
    }
}
