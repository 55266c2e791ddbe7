//! Sound through JACK and ALSA.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use ondes::devices::{Audio, AudioStatus, Opened};
use ondes::io::{AudioChoice, Callback};

use crate::peer::Peer;
use crate::server::{BLOCK, PATIENCE, RATE, Server, alone, wait_until};

/// Hums until it is told to start, then plays a cosine on the left and its negative on the right.
struct Tone {
    frame: usize,
    go: Arc<AtomicBool>,
    /// Number of live callbacks.
    alive: Arc<AtomicUsize>,
    longest: usize,
}

/// Level before the start, to detect the connection.
const HUM: f32 = 0.125;

fn tone(frame: usize) -> f32 {
    0.5 * (frame as f32 * 0.0577).cos()
}

impl Callback for Tone {
    fn process(&mut self, _: &[&[f32]], output: &mut [&mut [f32]]) {
        assert!(output[0].len() <= self.longest);
        let go = self.go.load(SeqCst);
        let frames = output[0].len();
        for (channel, samples) in output.iter_mut().enumerate() {
            let sign = if channel == 0 { 1.0 } else { -1.0 };
            for (frame, sample) in samples.iter_mut().enumerate() {
                *sample = if go {
                    sign * tone(self.frame + frame)
                } else {
                    HUM
                };
            }
        }
        self.frame += if go { frames } else { 0 };
    }
}

impl Drop for Tone {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, SeqCst);
    }
}

/// Plays its input unchanged.
pub struct Wire;

impl Callback for Wire {
    fn process(&mut self, input: &[&[f32]], output: &mut [&mut [f32]]) {
        for (output, input) in output.iter_mut().zip(input) {
            output.copy_from_slice(input);
        }
    }
}

pub struct Player {
    pub audio: Audio,
    pub go: Arc<AtomicBool>,
    alive: Arc<AtomicUsize>,
    made: Arc<AtomicUsize>,
}

pub fn play(choice: AudioChoice) -> Player {
    let (go, alive, made) = <(Arc<AtomicBool>, Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
    let (flag, living, count) = (go.clone(), alive.clone(), made.clone());
    let factory = move |opened: &Opened| {
        living.fetch_add(1, SeqCst);
        count.fetch_add(1, SeqCst);
        let tone = Tone {
            frame: 0,
            go: flag.clone(),
            alive: living.clone(),
            longest: opened.max_block,
        };
        Ok(Box::new(tone) as Box<dyn Callback>)
    };
    Player {
        audio: Audio::open(choice, Box::new(factory)),
        go,
        alive,
        made,
    }
}

pub fn jack() -> AudioChoice {
    AudioChoice {
        host: Some("jack".into()),
        ..AudioChoice::default()
    }
}

pub fn opened(audio: &Audio) -> Opened {
    match audio.settled(PATIENCE) {
        AudioStatus::Playing(opened) => opened,
        other => panic!("{other:?}"),
    }
}

/// Returns the one-line error of a choice that cannot be opened.
fn refusal(choice: AudioChoice) -> String {
    match play(choice).audio.settled(PATIENCE) {
        AudioStatus::Failed(reason) => {
            assert!(!reason.contains('\n'), "{reason}");
            reason
        }
        other => panic!("{other:?}"),
    }
}

/// Asserts that a port plays the tone from its start for half a second, within a tolerance.
pub fn assert_tone(port: &str, go: &AtomicBool, tolerance: f32) {
    let (_recorder, recorded) = Peer::recorder(port);
    let is_hum = |sample: f32| (sample - HUM).abs() <= tolerance;
    // A connection takes some cycles.
    wait_until("the recorder hears it", || {
        recorded
            .lock()
            .unwrap()
            .iter()
            .any(|(sample, _)| is_hum(*sample))
    });
    go.store(true, SeqCst);
    let half_a_second = RATE as usize / 2;
    let sounding = || {
        let recorded: Vec<f32> = recorded
            .lock()
            .unwrap()
            .iter()
            .map(|(sample, _)| *sample)
            .collect();
        let hum = recorded.iter().position(|sample| is_hum(*sample))?;
        let first = hum + recorded[hum..].iter().position(|sample| !is_hum(*sample))?;
        (recorded.len() - first >= half_a_second).then(|| recorded[first..].to_vec())
    };
    wait_until("half a second is recorded", || sounding().is_some());
    for (frame, sample) in sounding().unwrap()[..half_a_second].iter().enumerate() {
        assert!(
            (sample - tone(frame)).abs() <= tolerance,
            "frame {frame}: {sample}"
        );
    }
}

#[test]
fn the_output_is_what_was_computed() {
    alone("audio::the_output_is_what_was_computed", || {
        let _server = Server::start();
        let player = play(jack());
        let opened = opened(&player.audio);
        assert_eq!(
            (opened.host.as_str(), opened.output.as_str()),
            ("JACK", "system")
        );
        assert_eq!((opened.sample_rate, opened.max_block), (RATE, BLOCK));
        assert_eq!((opened.inputs, opened.outputs, opened.input), (0, 2, None));
        assert_tone("Ondes:out_1", &player.go, 0.0);
        let (peer, _) = Peer::recorder("Ondes:out_2");
        assert_eq!(peer.connections("Ondes:out_1"), ["system:playback_1"]);
        assert_eq!(peer.connections("Ondes:out_2")[0], "system:playback_2");
        drop(player.audio);
        assert_eq!(player.alive.load(SeqCst), 0);
    });
}

#[test]
fn a_restarted_server_is_reopened() {
    alone("audio::a_restarted_server_is_reopened", || {
        let server = Server::start();
        let player = play(jack());
        opened(&player.audio);
        server.kill();
        let before = Instant::now();
        wait_until("the loss is noticed", || {
            matches!(player.audio.status(), AudioStatus::Lost { .. })
        });
        let AudioStatus::Lost {
            device,
            reason,
            since,
        } = player.audio.status()
        else {
            panic!()
        };
        assert_eq!(
            (device.as_str(), reason.as_str()),
            ("system", "the JACK server has stopped")
        );
        assert!(since <= Instant::now() && since.elapsed() <= before.elapsed() + PATIENCE);
        wait_until("the callback is gone", || player.alive.load(SeqCst) == 0);

        // Another server at another rate: the callback is created anew.
        let _server = Server::start_at(44_100);
        wait_until("it plays again", || {
            matches!(player.audio.status(), AudioStatus::Playing(_))
        });
        assert_eq!(opened(&player.audio).sample_rate, 44_100);
        assert_eq!(
            (player.made.load(SeqCst), player.alive.load(SeqCst)),
            (2, 1)
        );
        assert_tone("Ondes:out_1", &player.go, 0.0);
    });
}

#[test]
fn a_server_can_start_later() {
    alone("audio::a_server_can_start_later", || {
        let player = play(jack());
        let failed = AudioStatus::Failed("no JACK server is running".into());
        assert_eq!(player.audio.settled(PATIENCE), failed);
        let _server = Server::start();
        wait_until("it plays", || {
            matches!(player.audio.status(), AudioStatus::Playing(_))
        });
    });
}

#[test]
fn the_round_trip_latency_is_as_reported() {
    alone("audio::the_round_trip_latency_is_as_reported", || {
        let _server = Server::start();
        let choice = AudioChoice {
            input_channels: Some(1),
            output_channels: Some(1),
            ..jack()
        };
        let audio = Audio::open(choice, Box::new(|_| Ok(Box::new(Wire))));
        let opened = opened(&audio);
        assert_eq!(
            (opened.inputs, opened.outputs, opened.input.as_deref()),
            (1, 1, Some("system"))
        );
        let (peer, recorded) = Peer::recorder("Ondes:out_1");
        let _timekeeper = Peer::timekeeper("Ondes:in_1");
        assert_eq!(
            peer.connections("Ondes:in_1"),
            ["system:capture_1", "timekeeper:out"]
        );
        let heard = || {
            recorded
                .lock()
                .unwrap()
                .iter()
                .filter(|(sample, _)| *sample != 0.0)
                .count()
        };
        wait_until("a while is recorded", || heard() > 20 * BLOCK);
        let recorded = recorded.lock().unwrap();
        let delays = recorded.iter().filter(|(sample, _)| *sample != 0.0);
        let delays: Vec<u32> = delays
            .map(|(sample, time)| (time % (1 << 20)).wrapping_sub(*sample as u32))
            .collect();
        // Cycles may be reordered while a connection is made.
        let settled = &delays[delays.len() / 2..];
        assert!(
            settled
                .iter()
                .all(|delay| *delay as usize == opened.bridge_frames),
            "{:?}",
            settled.iter().max()
        );
    });
}

#[test]
fn errors_name_the_available_choices() {
    alone("audio::errors_name_the_available_choices", || {
        let error = refusal(AudioChoice {
            host: Some("OSS".into()),
            ..AudioChoice::default()
        });
        assert_eq!(error, "unknown sound system \"OSS\"; available: ALSA, JACK");
        assert_eq!(refusal(jack()), "no JACK server is running");
        let _server = Server::start();
        let error = refusal(AudioChoice {
            output: Some("Babyface".into()),
            ..jack()
        });
        assert_eq!(
            error,
            "\"Babyface\" is not among the outputs of JACK; available: system"
        );
        let error = refusal(AudioChoice {
            input: Some("Babyface".into()),
            ..jack()
        });
        assert_eq!(
            error,
            "\"Babyface\" is not among the inputs of JACK; available: system"
        );
        let error = refusal(AudioChoice {
            sample_rate: Some(44_100),
            ..jack()
        });
        assert_eq!(error, "the JACK server runs at 48000 Hz, not at 44100 Hz");
        assert!(
            refusal(AudioChoice {
                output_channels: Some(65),
                ..jack()
            })
            .contains("1 to 64")
        );
        let alsa = AudioChoice {
            host: Some("ALSA".into()),
            output: Some("Babyface".into()),
            ..AudioChoice::default()
        };
        let error = refusal(alsa);
        assert!(
            error.starts_with("\"Babyface\" is not among the outputs of ALSA; available: "),
            "{error}"
        );
    });
}

#[test]
fn failing_callbacks_are_reported() {
    alone("audio::failing_callbacks_are_reported", || {
        struct Bomb;
        impl Callback for Bomb {
            fn process(&mut self, _: &[&[f32]], _: &mut [&mut [f32]]) {
                panic!("out of tune");
            }
        }
        let _server = Server::start();
        let audio = Audio::open(jack(), Box::new(|_| Ok(Box::new(Bomb))));
        wait_until("it is told", || {
            matches!(audio.status(), AudioStatus::Lost { .. })
        });
        let AudioStatus::Lost { device, reason, .. } = audio.status() else {
            panic!()
        };
        assert_eq!(
            (device.as_str(), reason.as_str()),
            ("system", "the audio callback failed: out of tune")
        );
        // It fails each time.
        wait_until("it is given up", || {
            matches!(audio.status(), AudioStatus::Failed(_))
        });
        assert_eq!(
            audio.status(),
            AudioStatus::Failed("the audio callback failed: out of tune".into())
        );
        audio.choose(AudioChoice {
            output_channels: Some(1),
            ..jack()
        });
        wait_until("another choice is tried", || {
            matches!(audio.status(), AudioStatus::Lost { .. })
        });
        let audio = Audio::open(
            jack(),
            Box::new(|opened| Err(format!("no model for {} Hz", opened.sample_rate))),
        );
        assert_eq!(
            audio.settled(PATIENCE),
            AudioStatus::Failed("no model for 48000 Hz".into())
        );
    });
}

#[test]
fn a_device_is_opened_again_after_a_panic() {
    alone("audio::a_device_is_opened_again_after_a_panic", || {
        struct Bomb;
        impl Callback for Bomb {
            fn process(&mut self, _: &[&[f32]], _: &mut [&mut [f32]]) {
                panic!("out of tune");
            }
        }
        let _server = Server::start();
        let mut made = 0;
        let factory = move |_: &Opened| {
            made += 1;
            assert_ne!(made, 2, "no callback");
            Ok(if made == 1 {
                Box::new(Bomb) as Box<dyn Callback>
            } else {
                Box::new(Wire)
            })
        };
        let audio = Audio::open(
            AudioChoice {
                input_channels: Some(2),
                ..jack()
            },
            Box::new(factory),
        );
        wait_until("it is told", || {
            matches!(audio.status(), AudioStatus::Lost { .. })
        });
        // The second callback cannot be created, the third one plays.
        wait_until("it plays again", || {
            matches!(audio.status(), AudioStatus::Playing(_))
        });
    });
}

/// Plays silence, and takes its time for each block.
struct Late {
    pause: Duration,
    blocks: Arc<AtomicUsize>,
}

impl Callback for Late {
    fn process(&mut self, _: &[&[f32]], output: &mut [&mut [f32]]) {
        output.iter_mut().for_each(|channel| channel.fill(0.0));
        self.blocks.fetch_add(1, SeqCst);
        std::thread::sleep(self.pause);
    }
}

/// JACK cancels the thread of a client that is closed, also in the middle of a block.
#[test]
fn a_client_can_be_closed_in_the_middle_of_a_block() {
    alone(
        "audio::a_client_can_be_closed_in_the_middle_of_a_block",
        || {
            let _server = Server::start_impatient();
            for _ in 0..10 {
                let blocks = Arc::<AtomicUsize>::default();
                let counter = blocks.clone();
                let late = move |_: &Opened| {
                    let late = Late {
                        pause: Duration::from_millis(300),
                        blocks: counter.clone(),
                    };
                    Ok(Box::new(late) as Box<dyn Callback>)
                };
                let audio = Audio::open(jack(), Box::new(late));
                wait_until("a block is late", || blocks.load(SeqCst) > 0);
                drop(audio);
            }
        },
    );
}

#[test]
fn a_client_that_does_not_answer_is_reported_and_reopened() {
    alone(
        "audio::a_client_that_does_not_answer_is_reported_and_reopened",
        || {
            let _server = Server::start_impatient();
            let blocks = Arc::<AtomicUsize>::default();
            let counter = blocks.clone();
            let mut pause = Duration::from_secs(3);
            let factory = move |_: &Opened| {
                let pause = std::mem::take(&mut pause);
                Ok(Box::new(Late {
                    pause,
                    blocks: counter.clone(),
                }) as Box<dyn Callback>)
            };
            let audio = Audio::open(jack(), Box::new(factory));
            wait_until("it is told", || {
                matches!(audio.status(), AudioStatus::Lost { .. })
            });
            let AudioStatus::Lost { reason, .. } = audio.status() else {
                panic!()
            };
            assert_eq!(reason, "it has stopped playing");
            wait_until("it plays again", || {
                matches!(audio.status(), AudioStatus::Playing(_))
            });
            let before = blocks.load(SeqCst);
            wait_until("blocks are played", || blocks.load(SeqCst) > before + 10);
        },
    );
}

#[test]
fn another_choice_replaces_the_first() {
    alone("audio::another_choice_replaces_the_first", || {
        let _server = Server::start();
        let player = play(jack());
        assert_eq!(opened(&player.audio).outputs, 2);
        player.audio.choose(AudioChoice {
            output_channels: Some(4),
            input: Some("system".into()),
            ..jack()
        });
        let now = opened(&player.audio);
        assert_eq!((now.outputs, now.inputs), (4, 2));
        assert_eq!(
            (player.made.load(SeqCst), player.alive.load(SeqCst)),
            (2, 1)
        );
        player.audio.choose(AudioChoice {
            output: Some("nowhere".into()),
            ..jack()
        });
        assert!(matches!(
            player.audio.settled(PATIENCE),
            AudioStatus::Failed(_)
        ));
        assert_eq!(player.alive.load(SeqCst), 0);
        // The last of several choices wins, whatever is being opened.
        for channels in 1..=6 {
            player.audio.choose(AudioChoice {
                output_channels: Some(channels),
                ..jack()
            });
            assert!(matches!(player.audio.status(), AudioStatus::Opening));
        }
        assert_eq!(opened(&player.audio).outputs, 6);
        // Without a named host, a running server is preferred.
        player.audio.choose(AudioChoice::default());
        assert_eq!(opened(&player.audio).host, "JACK");
    });
}
