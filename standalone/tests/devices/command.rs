//! `ondes devices`.

use std::process::Command;

use crate::peer::Peer;
use crate::server::{Server, alone};

/// Returns standard output; asserts that nothing else was printed, not even by libraries.
fn devices(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_ondes"))
        .arg("devices")
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn missing_devices_are_reported() {
    alone("command::missing_devices_are_reported", || {
        let text = devices(&[]);
        assert!(
            text.contains("\nJACK\n  no JACK server is running\nMIDI\n"),
            "{text}"
        );
        let json: serde_json::Value = serde_json::from_str(&devices(&["--json"])).unwrap();
        assert_eq!(json["audio"][1]["name"], "JACK");
        assert_eq!(json["audio"][1]["available"], false);
        assert_eq!(json["audio"][1]["devices"].as_array().unwrap().len(), 0);
    });
}

#[test]
fn the_devices_of_a_server_are_listed() {
    alone("command::the_devices_of_a_server_are_listed", || {
        let _server = Server::start();
        let (_keyboard, _) = Peer::keyboard("keyboard");
        let text = devices(&[]);
        let expected = "\
JACK (default)
  system
    output (default): up to 2 channels; 48 kHz
    input (default): up to 2 channels; 48 kHz
MIDI
";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("\n  keyboard:keys  JACK\n"), "{text}");
        let json: serde_json::Value = serde_json::from_str(&devices(&["--json"])).unwrap();
        let system = &json["audio"][1]["devices"][0];
        assert_eq!(
            (&system["id"], &system["output"]["channels"]),
            (&"system".into(), &2.into())
        );
        assert_eq!(system["input"]["sample_rates"], serde_json::json!([48_000]));
        let ports = json["midi"]["ports"].as_array().unwrap();
        assert!(
            ports.contains(&serde_json::json!({ "system": "JACK", "name": "keyboard:keys" })),
            "{ports:?}"
        );
    });
}
