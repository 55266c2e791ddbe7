//! ALSA without a sound card: a device of its JACK plug-in plays into the server's dummy driver.

use std::sync::atomic::Ordering::SeqCst;

use ondes::devices::{Audio, AudioStatus, Drift, catalogue};
use ondes::io::AudioChoice;

use crate::audio::{Wire, assert_tone, opened, play};
use crate::peer::Peer;
use crate::server::{RATE, Server, alone_with, wait_until};

/// Two "sound cards", with floating-point and integer samples.
const CONFIGURATION: &str = r#"
</usr/share/alsa/alsa.conf>
pcm.ondes_card {
    type jack
    name "card"
    playback_ports { 0 system:playback_1 1 system:playback_2 }
    capture_ports { 0 system:capture_1 1 system:capture_2 }
    hint { show on description "Card for tests" }
}
pcm.ondes_integers {
    type lfloat
    slave { pcm ondes_card format FLOAT_LE }
    hint { show on description "Whole numbers for tests" }
}
"#;

/// Block length of these devices.
const BLOCK: usize = 512;

pub fn with_card(test: &str, body: impl FnOnce()) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("asound.conf");
    std::fs::write(&path, CONFIGURATION).unwrap();
    alone_with(test, &[("ALSA_CONFIG_PATH", &path)], body);
}

pub fn card(name: &str) -> AudioChoice {
    let block = Some(BLOCK as u32);
    AudioChoice {
        host: Some("ALSA".into()),
        output: Some(name.into()),
        block,
        ..AudioChoice::default()
    }
}

#[test]
fn the_output_is_what_was_computed() {
    with_card("alsa::the_output_is_what_was_computed", || {
        let _server = Server::start();
        let player = play(AudioChoice {
            sample_rate: Some(RATE),
            ..card("card for")
        });
        let opened = opened(&player.audio);
        assert_eq!(
            (opened.host.as_str(), opened.output.as_str()),
            ("ALSA", "Card for tests")
        );
        assert_eq!((opened.sample_rate, opened.max_block), (RATE, BLOCK));
        assert_eq!((opened.outputs, opened.inputs, opened.input), (2, 0, None));
        assert_tone("card.*out_000", &player.go, 0.0);
    });
}

#[test]
fn a_card_with_an_integer_format_plays() {
    with_card("alsa::a_card_with_an_integer_format_plays", || {
        let _server = Server::start();
        let player = play(card("ondes_integers"));
        assert_eq!(opened(&player.audio).output, "Whole numbers for tests");
        // More precise than 16 bits.
        assert_tone("card.*out_000", &player.go, 1e-6);
    });
}

#[test]
fn the_round_trip_latency_is_as_reported() {
    with_card("alsa::the_round_trip_latency_is_as_reported", || {
        let _server = Server::start();
        let choice = AudioChoice {
            input: Some("ondes_card".into()),
            ..card("ondes_card")
        };
        let audio = Audio::open(choice, Box::new(|_| Ok(Box::new(Wire))));
        let opened = opened(&audio);
        assert_eq!(
            (opened.inputs, opened.input.as_deref()),
            (2, Some("Card for tests"))
        );
        assert_eq!(opened.bridge_frames, 2 * BLOCK);
        let (_peer, recorded) = Peer::recorder("card.*out_000");
        let _timekeeper = Peer::timekeeper("card.*in_000");
        let heard = || {
            recorded
                .lock()
                .unwrap()
                .iter()
                .filter(|(sample, _)| *sample != 0.0)
                .count()
        };
        wait_until("half a second is recorded", || heard() > RATE as usize / 2);
        let recorded = recorded.lock().unwrap();
        let delays = recorded.iter().filter(|(sample, _)| *sample != 0.0);
        let delays: Vec<u32> = delays
            .map(|(sample, time)| (time % (1 << 20)).wrapping_sub(*sample as u32))
            .collect();
        // On a busy machine the two clocks may drift, which is counted.
        if audio.drift() == Drift::default() && audio.xruns() == 0 {
            assert!(
                delays.iter().all(|delay| *delay == delays[0]),
                "{:?}",
                (delays.iter().min(), delays.iter().max())
            );
            let told = opened.input_latency_frames + opened.output_latency_frames;
            // The alignment of both devices' blocks is not reported.
            assert!(
                (delays[0] as usize).abs_diff(told) <= BLOCK,
                "{} frames, told were {told}",
                delays[0]
            );
        }
    });
}

#[test]
fn a_removed_card_is_reported_as_lost() {
    with_card("alsa::a_removed_card_is_reported_as_lost", || {
        let server = Server::start();
        let player = play(card("ondes_card"));
        opened(&player.audio);
        server.kill();
        wait_until("the loss is noticed", || {
            matches!(player.audio.status(), AudioStatus::Lost { .. })
        });
        let AudioStatus::Lost { device, .. } = player.audio.status() else {
            panic!()
        };
        assert_eq!(device, "Card for tests");
        player.go.store(true, SeqCst);
    });
}

#[test]
pub fn cards_are_listed() {
    with_card("alsa::cards_are_listed", || {
        let _server = Server::start();
        let devices = catalogue::devices(Some("alsa")).unwrap();
        let card = devices
            .iter()
            .find(|device| device.id == "ondes_card")
            .unwrap();
        assert_eq!(card.name, "Card for tests");
        let output = card.output.as_ref().unwrap();
        assert_eq!(
            (output.channels, output.sample_rates.as_slice()),
            (2, [RATE].as_slice())
        );
        assert!(devices.iter().all(|device| device.id != "null"));
        let error = catalogue::devices(Some("nothing")).unwrap_err();
        assert!(error.contains("ALSA, JACK"), "{error}");
    });
}

#[test]
fn the_program_starts_without_the_libraries_of_sound_systems() {
    let program = std::fs::read(env!("CARGO_BIN_EXE_ondes")).unwrap();
    let holds = |text: &[u8]| program.windows(text.len()).any(|window| window == text);
    // The dynamic linker would look for the first, a name that ends with NUL; the program opens the
    // second by itself.
    assert!(
        holds(b"\0libc.so.6\0"),
        "names of libraries are found in this way"
    );
    assert!(!holds(b"\0libasound.so.2\0") && !holds(b"\0libjack.so.0\0"));
}
