//! MIDI through JACK.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use ondes::devices::{Audio, AudioStatus, MidiInputs};
use ondes::io::{AudioChoice, Callback, MidiChoice, MidiPorts, MidiReceiver};

use crate::peer::Peer;
use crate::server::{Server, alone, wait_until};

/// Reports received messages with their frames.
struct Ear {
    receiver: Option<MidiReceiver>,
    frame: usize,
    heard: Sender<(usize, Vec<u8>)>,
}

impl Callback for Ear {
    fn process(&mut self, _: &[&[f32]], output: &mut [&mut [f32]]) {
        let frames = output[0].len();
        output.iter_mut().for_each(|channel| channel.fill(0.0));
        if let Some(receiver) = &mut self.receiver {
            receiver.receive(frames, |frame, message| {
                assert!(frame < frames);
                self.heard
                    .send((self.frame + frame, message.bytes().to_vec()))
                    .unwrap();
            });
        }
        self.frame += frames;
    }
}

fn listen(midi: &Arc<MidiInputs>) -> (Audio, Receiver<(usize, Vec<u8>)>) {
    let (heard, inbox) = channel();
    let lent = midi.clone();
    let choice = AudioChoice {
        host: Some("JACK".into()),
        ..AudioChoice::default()
    };
    let audio = Audio::open_with_midi(
        choice,
        midi,
        Box::new(move |opened| {
            let receiver = lent.receiver(opened.sample_rate, opened.max_block);
            assert!(receiver.is_some(), "the one before has given it back");
            Ok(Box::new(Ear {
                receiver,
                frame: 0,
                heard: heard.clone(),
            }))
        }),
    );
    (audio, inbox)
}

/// Returns note-ons and note-offs, all different, with clock and start among them.
fn tune() -> Vec<Vec<u8>> {
    let notes = (0..100).flat_map(|key| [vec![0x90, key, 64], vec![0x80, key, 0]]);
    notes
        .chain([vec![0xFA], vec![0xF8], vec![0xC0, 5], vec![0xF8]])
        .collect()
}

fn assert_tune_is_heard(inbox: &Receiver<(usize, Vec<u8>)>) {
    let heard: Vec<_> = (0..tune().len())
        .map(|_| inbox.recv_timeout(crate::server::PATIENCE).unwrap())
        .collect();
    assert!(heard.is_sorted_by_key(|(frame, _)| *frame));
    let messages: Vec<Vec<u8>> = heard.into_iter().map(|(_, message)| message).collect();
    assert_eq!(messages, tune());
}

#[test]
fn messages_reach_the_callback_in_order() {
    alone("midi::messages_reach_the_callback_in_order", || {
        let _server = Server::start();
        let midi = Arc::new(MidiInputs::open(MidiChoice::default()));
        let (audio, inbox) = listen(&midi);
        wait_until("sound is there", || {
            matches!(audio.status(), AudioStatus::Playing(_))
        });
        // It appears after the inputs were opened.
        let (keyboard, queue) = Peer::keyboard("keyboard");
        wait_until("the keyboard is heard", || {
            midi.status().connected.contains(&"keyboard:keys".into())
        });
        // System-exclusive messages are ignored.
        queue
            .lock()
            .unwrap()
            .push_back(vec![0xF0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0xF7]);
        queue.lock().unwrap().extend(tune());
        assert_tune_is_heard(&inbox);
        assert_eq!(midi.dropped_messages(), 0);
        // One client plays and listens.
        assert_eq!(keyboard.port_with("Ondes-MIDI"), None);
        assert_eq!(keyboard.connections("keyboard:keys"), ["Ondes:midi_in"]);
    });
}

#[test]
fn a_restarted_server_has_sound_and_midi() {
    alone("midi::a_restarted_server_has_sound_and_midi", || {
        let midi = Arc::new(MidiInputs::open(MidiChoice::default()));
        let (audio, inbox) = listen(&midi);
        for _ in 0..2 {
            let server = Server::start();
            wait_until("sound is there", || {
                matches!(audio.status(), AudioStatus::Playing(_))
            });
            let (keyboard, queue) = Peer::keyboard("keyboard");
            wait_until("MIDI is there", || !midi.status().connected.is_empty());
            queue.lock().unwrap().extend(tune());
            assert_tune_is_heard(&inbox);
            server.kill();
            drop(keyboard);
            wait_until("sound is lost", || {
                matches!(audio.status(), AudioStatus::Lost { .. })
            });
            wait_until("MIDI is lost", || {
                midi.status()
                    .errors
                    .contains(&"no JACK server is running".into())
            });
        }
    });
}

#[test]
fn ports_and_channels_are_selected() {
    alone("midi::ports_and_channels_are_selected", || {
        let _server = Server::start();
        let (keyboard, keys) = Peer::keyboard("Keystep");
        let (_other, pads) = Peer::keyboard("Pads");
        let names = MidiPorts::Names(vec!["keystep".into(), "Fader".into()]);
        let midi = Arc::new(MidiInputs::open(MidiChoice {
            ports: names,
            channels: 0b10,
        }));
        let (audio, inbox) = listen(&midi);
        wait_until("sound is there", || {
            matches!(audio.status(), AudioStatus::Playing(_))
        });
        wait_until("the right one is heard", || {
            midi.status().connected == ["Keystep:keys"]
        });
        assert_eq!(midi.status().missing, ["Fader"]);
        // Other clients may connect ports themselves.
        let port = keyboard.port_with("Ondes:midi_in").unwrap();
        assert_eq!(keyboard.connections(&port), ["Keystep:keys"]);
        pads.lock().unwrap().push_back(vec![0x91, 1, 1]);
        wait_until("the pad was hit", || pads.lock().unwrap().is_empty());
        keys.lock()
            .unwrap()
            .extend([vec![0x90, 2, 2], vec![0x91, 3, 3]]);
        assert_eq!(
            inbox.recv_timeout(crate::server::PATIENCE).unwrap().1,
            [0x91, 3, 3]
        );

        midi.choose(MidiChoice {
            ports: MidiPorts::Names(vec!["pads".into()]),
            channels: 0b01,
        });
        wait_until("the other is heard", || {
            midi.status().connected == ["Pads:keys"]
        });
        pads.lock()
            .unwrap()
            .extend([vec![0x91, 4, 4], vec![0x90, 5, 5]]);
        assert_eq!(
            inbox.recv_timeout(crate::server::PATIENCE).unwrap().1,
            [0x90, 5, 5]
        );
    });
}
