//! A process without libtorch: whatever is at the library's path gives a one-line error, and
//! everything else works.

use std::path::{Path, PathBuf};
use std::process::Command;

use ondes_engine::model::export::torchscript::{Archive, Pickle};
use ondes_engine::model::{Kind, ModelError, file};
use ondes_engine::pipeline::{Pipeline, PipelineOptions};
use ondes_engine::torch::{Library, TorchError};
use ondes_tests::audio_models::untrained_effect;

/// Compiles C source into a shared library.
fn compile(folder: &Path, name: &str, source: &str, arguments: &[&str]) -> PathBuf {
    let (code, path) = (
        folder.join(format!("{name}.c")),
        folder.join(format!("lib{name}.so")),
    );
    std::fs::write(&code, source).expect("it can be written");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-Wl,--no-as-needed", "-o"])
        .arg(&path)
        .arg(&code)
        .arg("-L")
        .arg(folder)
        .args(arguments);
    assert!(compiler.status().expect("there is a compiler").success());
    path
}

fn refused(path: &Path) -> TorchError {
    let error = Library::open(path)
        .err()
        .expect("that is no library of ours");
    let line = ModelError::from(error.clone()).to_string();
    assert!(
        line.contains(&path.display().to_string())
            && line.contains("ondes setup-torch")
            && line.lines().count() == 1,
        "{line}"
    );
    error
}

#[test]
fn a_wrong_library_gives_an_error_and_no_harm() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = folder.path().join("libtext.so");
    std::fs::write(&text, "no library").expect("it can be written");
    assert!(matches!(refused(&text), TorchError::Broken { .. }));
    assert!(matches!(
        refused(&folder.path().join("libnone.so")),
        TorchError::Broken { .. }
    ));

    let other = compile(folder.path(), "other", "int other;", &[]);
    assert!(
        matches!(refused(&other), TorchError::Broken { reason, .. } if reason.contains("ondes_torch_interface"))
    );

    let newer = "static unsigned version = 999; const void *ondes_torch_interface(void) { return &version; }";
    let newer = compile(folder.path(), "newer", newer, &[]);
    assert!(matches!(
        refused(&newer),
        TorchError::Version { found: 999, .. }
    ));

    // A dependency is missing, as libtorch may be.
    let gone = compile(folder.path(), "gone", "int gone;", &[]);
    let lame = compile(folder.path(), "lame", "int lame;", &["-lgone"]);
    std::fs::remove_file(gone).expect("it was there");
    assert!(
        matches!(refused(&lame), TorchError::Broken { reason, .. } if reason.contains("libgone.so"))
    );

    // Everything else works.
    let mut pipeline =
        Pipeline::new(&untrained_effect(1), &PipelineOptions::default()).expect("it plays");
    let mut output = [0.0; 4_096];
    pipeline.process(&[0.5; 4_096], &mut output);
    assert!(output.iter().any(|sample| *sample != 0.0));
}

#[test]
fn ondes_files_cannot_contain_programs() {
    // A method without nodes belongs to a TorchScript program, which `.ondes` files cannot contain.
    let mut methods = ondes_tests::audio_models::effect_methods();
    methods[0].nodes.clear();
    let refused = ondes_engine::model::Model::new(
        ondes_tests::header(Kind::Effect, methods),
        Default::default(),
    );
    assert_eq!(
        refused.expect_err("it has no nodes").to_string(),
        "method \"forward\" has no nodes"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("program.ondes");
    std::fs::write(&path, Archive::new(Pickle::default(), "3").finish())
        .expect("it can be written");
    let refused = file::read(&path).expect_err("it is a program").to_string();
    assert!(
        refused
            .ends_with("program.ondes: this is a TorchScript program; programs run only if they are opened explicitly"),
        "{refused}"
    );
}
