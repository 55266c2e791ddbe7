//! Models on libtorch, live.

use ondes_tests::torchscript::{Class, Value};

use crate::common::{library, write_wav};
use crate::program::ondes;
use crate::server::{RATE, Server, alone};

#[test]
fn a_native_network_plays_on_libtorch() {
    let Some(library) = library() else { return };
    alone("torch::a_native_network_plays_on_libtorch", || {
        let _server = Server::start();
        let folder = tempfile::tempdir().unwrap();
        write_wav(
            &folder.path().join("in.wav"),
            RATE,
            1,
            (0..2 * RATE).map(|n| 0.3 * (n as f32 * 0.05).sin()),
        );
        let arguments = [
            "play",
            "fuzz",
            "--input",
            "in.wav",
            "--executor",
            "torch",
            "--device",
            "cpu",
            "--host",
            "jack",
        ];
        let mut command = ondes(
            folder.path(),
            &[&arguments[..], &["--record", "take.wav"]].concat(),
        );
        let output = command
            .env("ONDES_TORCH_LIBRARY", &library)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{errors}");
        let take = crate::program::decode(&folder.path().join("take.wav"));
        assert!(take[0].iter().any(|sample| sample.abs() > 0.01), "{errors}");
    });
}

#[test]
fn a_failing_model_reports_the_reason_live() {
    let Some(library) = library() else { return };
    alone("torch::a_failing_model_reports_the_reason_live", || {
        let _server = Server::start();
        let folder = tempfile::tempdir().unwrap();
        // Fails as soon as the input is loud, after half a second.
        let body = [
            "if bool(x.abs().max() > 0.5):",
            "  return x.view([7])",
            "return x",
        ];
        let class =
            Class::default()
                .with("sr", Value::Int(48_000))
                .nn("forward", [1, 1, 1, 1], &body);
        std::fs::write(folder.path().join("program.ts"), class.bytes()).unwrap();
        let sound = (0..2 * RATE).map(|n| if n > RATE / 2 { 0.9 } else { 0.1 });
        write_wav(&folder.path().join("in.wav"), RATE, 1, sound);
        let arguments = [
            "play",
            "program.ts",
            "--input",
            "in.wav",
            "--device",
            "cpu",
            "--host",
            "jack",
        ];
        let output = ondes(folder.path(), &arguments)
            .env("ONDES_TORCH_LIBRARY", &library)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        let said = errors
            .lines()
            .find(|line| line.contains("the model failed: RuntimeError"));
        assert!(
            said.is_some_and(|line| line.contains("program: ") && line.len() < 400),
            "{errors}"
        );
        assert_eq!(errors.matches("failed").count(), 1, "{errors}");
    });
}
