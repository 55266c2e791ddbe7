//! Helpers that run `ondes-train`.

use std::path::Path;
use std::process::{Command, Output};

/// Returns the command.
pub fn train() -> Command {
    Command::new(env!("CARGO_BIN_EXE_ondes-train"))
}

/// Runs the command.
pub fn run(arguments: &[&str]) -> Output {
    train()
        .args(arguments)
        .output()
        .expect("the program starts")
}

/// Runs the command, which must succeed; returns its standard output.
pub fn succeed(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

/// Writes a small configuration to `folder`; `name` is the name of its model and work folder.
pub fn write_config(folder: &Path, name: &str) -> String {
    let path = folder.join(format!("{name}.toml"));
    let text = format!(
        r#"
        name = "Tiny"
        data = "corpus"
        out = "{name}.ondes"
        work = "{name}"
        seed = 7
        [network]
        harmonics = 12
        noise_bands = 9
        input_units = 8
        recurrent_units = 12
        output_units = 8
        room_seconds = 0.01
        [training]
        steps = 60
        batch = 2
        clip_seconds = 0.25
        warmup_steps = 5
        validate_every = 7
        checkpoint_every = 5
        validation_share = 0.3
        "#
    );
    std::fs::write(&path, text).expect("it can be written");
    path.display().to_string()
}

/// Generates a few seconds of a plucked string in `corpus`.
pub fn make_corpus(folder: &Path) {
    let out = folder.join("corpus").display().to_string();
    succeed(&[
        "corpus",
        "plucked",
        "--out",
        &out,
        "--minutes",
        "0.8",
        "--seed",
        "3",
    ]);
}

/// Writes four seconds of playing and a delayed recording through a circuit; returns both paths.
pub fn make_pair(folder: &Path) -> (String, String) {
    let path = |name: &str| folder.join(name).display().to_string();
    let (signal, dry, wet) = (path("signal.wav"), path("dry.wav"), path("wet.wav"));
    succeed(&["capture-signal", "--out", &signal, "--seconds", "30"]);
    let mut reader = hound::WavReader::open(&signal).expect("a WAV file");
    let format = reader.spec();
    assert_eq!(
        (format.sample_rate, format.channels, format.bits_per_sample),
        (48_000, 1, 24)
    );
    let samples: Vec<i32> = reader
        .samples()
        .map(|sample| sample.expect("a whole file"))
        .collect();
    assert_eq!(samples.len(), 30 * 48_000);
    let write = |path: &str, samples: &[i32]| {
        let mut file = hound::WavWriter::create(path, format).expect("it can be written");
        samples
            .iter()
            .for_each(|&sample| file.write_sample(sample).expect("it can be written"));
        file.finalize().expect("it can be written");
    };
    write(&dry, &samples[6 * 48_000..10 * 48_000]);
    succeed(&["circuit", "overdrive", "--in", &dry, "--out", &wet]);
    (dry, wet)
}

/// Checks that each command fails with exit code 2 and one line that contains a word.
pub fn refuse(mistakes: &[(Vec<&str>, &str)]) {
    for (arguments, named) in mistakes {
        let output = run(arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert_eq!(
            message.trim().lines().count(),
            1,
            "{arguments:?}: {message}"
        );
        assert!(message.contains(named), "{arguments:?}: {message}");
    }
}
