//! `ondes export`.

use ondes_engine::model::file;
use ondes_tests::audio_models::untrained_codec;

use crate::common::Folder;

#[test]
fn a_codec_becomes_a_program() {
    let folder = Folder::new();
    file::write(&untrained_codec(1), &folder.path("codec.ondes")).expect("the model is written");
    let output = folder.run(&["export", "codec.ondes", "--to", "nn~"]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim_end(),
        "codec.ts"
    );
    let program = std::fs::read(folder.path("codec.ts")).expect("it is there");
    let holds = |text: &str| {
        program
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    for text in [
        "encode_params",
        "decode_params",
        "get_methods",
        "get_attributes",
        "\"licence\"",
    ] {
        assert!(holds(text), "{text}");
    }
    assert!(
        matches!(file::read(&folder.path("codec.ts")), Err(error) if error.to_string().contains("TorchScript"))
    );
    assert!(
        folder
            .run(&["export", "codec.ondes", "--to", "nn~", "-o", "other.ts"])
            .status
            .success()
    );
    assert_eq!(
        std::fs::read(folder.path("other.ts")).expect("it is there"),
        program
    );
    // A bundled one, by its name.
    assert!(
        folder
            .run(&["export", "Strings", "--to", "nn~", "-o", "bundled.ts"])
            .status
            .success()
    );
    assert!(folder.path("bundled.ts").is_file());
}

#[test]
fn what_cannot_be_exported_is_refused_in_one_line() {
    let folder = Folder::new();
    let refused =
        "small.ondes: method \"synth\" has a ratio of 192 samples; nn~ needs powers of two";
    folder.refuses(&["export", "small.ondes", "--to", "nn~"], &[refused]);
    folder.refuses(&["export", "none.ondes", "--to", "nn~"], &["none.ondes: "]);
    file::write(&untrained_codec(1), &folder.path("codec.ondes")).expect("the model is written");
    folder.refuses(
        &["export", "codec.ondes", "--to", "nn~", "-o", "codec.ondes"],
        &["would overwrite an input"],
    );
    folder.refuses(
        &[
            "export",
            "codec.ondes",
            "--to",
            "nn~",
            "-o",
            "/none/codec.ts",
        ],
        &["/none/codec.ts: "],
    );
}
