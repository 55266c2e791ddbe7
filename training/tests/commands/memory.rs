//! Commands without enough memory.

use ondes_engine::model::file;

use crate::common::{make_corpus, run, succeed, write_config};

/// Bytes that let a run begin, and no more than its first steps end.
fn bound(text: &str) -> String {
    let digits: String = text
        .rsplit_once("raise --memory to ")
        .expect(text)
        .1
        .chars()
        .collect();
    digits.split(' ').next().expect("a size").to_owned()
}

#[test]
fn a_bound_is_kept_or_refused_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    make_corpus(folder);
    let config = write_config(folder, "tiny");
    // The program alone takes more.
    let output = run(&["fit", &config, "--memory", "20M"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert_eq!(error.trim().lines().count(), 1, "{error}");
    assert!(
        error.contains("a bound of 0.02 GB on memory is too low"),
        "{error}"
    );
    // With the advised size a small network trains.
    succeed(&["fit", &config, "--memory", &bound(error.trim())]);
    assert!(folder.join("tiny.ondes").exists());

    // Crops that do not fit one at a time.
    let text = std::fs::read_to_string(&config)
        .expect("a recipe")
        .replace("clip_seconds = 0.25", "clip_seconds = 40.0");
    let text = text
        .replace("validate_every = 7", "validate_every = 1")
        .replace("batch = 2", "batch = 1");
    std::fs::write(&config, text.replace("harmonics = 12", "harmonics = 300"))
        .expect("it can be written");
    let output = run(&["fit", &config, "--memory", &bound(error.trim())]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = error.trim().lines().last().unwrap_or_default();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        last.starts_with("ondes-train: ") && last.contains("out of memory in "),
        "{error}"
    );
    assert!(
        last.contains("raise --memory") && !error.contains("panicked"),
        "{error}"
    );
    assert!(
        file::read(&folder.join("tiny.ondes")).is_ok(),
        "the model from before is still there"
    );
}
