//! Playing live equals rendering.

use std::path::Path;

use ondes_engine::dsp::level::peak;
use ondes_engine::dsp::limiter::{CEILING, Limiter};
use ondes_engine::model::file;
use ondes_engine::pipeline::{ControlSource, Pipeline, PipelineOptions};

use crate::peer::Peer;
use crate::program::{Ears, Playing, bundled, decode, midi, place, render, tone, write};
use crate::server::{RATE, Server, alone, wait_until};

/// Silence before the first sound, in which others connect, seconds.
const SILENCE_S: u32 = 3;

/// Returns the latency of a model when it is played with these options, in samples.
fn latency(model: &Path, play: &[&str]) -> usize {
    let source = if play.contains(&"--input") {
        ControlSource::AudioInput
    } else {
        ControlSource::Notes
    };
    let options = PipelineOptions {
        sample_rate: RATE,
        source,
        ..PipelineOptions::default()
    };
    let pipeline = Pipeline::new(&file::read(model).unwrap(), &options).unwrap();
    pipeline.latency_samples() + Limiter::new(RATE).latency_samples()
}

/// Attempts on a busy machine.
const ATTEMPTS: usize = 10;

/// Plays with `play` until it exits; asserts that what was heard and recorded equals a render with
/// `arguments`.
fn assert_same(play: &[&str], arguments: &[&str], folder: &Path) {
    let rendered = render(folder, arguments);
    for rendered in &rendered {
        assert!(peak(rendered) > 0.05 && peak(rendered) < CEILING);
    }
    let take = folder.join("take.wav");
    let mut attempts = 0;
    let (heard, recorded) = loop {
        let _server = Server::start();
        let playing = Playing::start(
            folder,
            &[play, &["--driver", "inline", "--record", "take.wav"]].concat(),
        );
        let ears = Ears::open();
        let said = playing.end_well();
        print!("{said}");
        let recorded = decode(&take);
        attempts += 1;
        // On a busy machine there are dropouts, which the program reports.
        if !said.contains("dropouts") || attempts == ATTEMPTS {
            break (ears.heard(), recorded);
        }
        std::fs::remove_file(&take).unwrap();
    };
    // The recording starts with the first sample.
    let late = latency(Path::new(arguments[0]), play);
    for ((heard, recorded), rendered) in heard.iter().zip(&recorded).zip(&rendered) {
        assert_eq!(place(rendered, recorded).0, late as isize);
        // Other clients connect later.
        for (sound, late) in [(heard, "heard"), (recorded, "recorded")] {
            let (_, there) = place(rendered, sound);
            assert!(
                there.start <= (SILENCE_S * RATE) as usize,
                "{late}: {}",
                there.start
            );
            assert!(peak(&rendered[there.end..]) < 1e-4, "all of it is {late}");
            assert!(
                late == "heard" || peak(&rendered[..there.start]) == 0.0,
                "its beginning is recorded"
            );
        }
    }
    assert_eq!(recorded.len(), 2);
}

#[test]
fn a_midi_file_plays_as_rendered() {
    alone("same::a_midi_file_plays_as_rendered", || {
        let folder = tempfile::tempdir().unwrap();
        let start = SILENCE_S * 960;
        midi(
            folder.path(),
            &[
                (57, start, start + 700),
                (64, start + 500, start + 1_300),
                (60, start + 1_300, start + 1_700),
            ],
        );
        let model = bundled("bowed");
        assert_same(
            &["bowed", "--midi", "notes.mid"],
            &[&model, "--midi", "notes.mid"],
            folder.path(),
        );
    });
}

#[test]
fn a_recording_is_followed_as_rendered() {
    alone("same::a_recording_is_followed_as_rendered", || {
        let folder = tempfile::tempdir().unwrap();
        tone(folder.path(), f64::from(SILENCE_S), 2.0);
        let model = bundled("wind");
        assert_same(
            &["wind", "--input", "tone.wav"],
            &[&model, "--input", "tone.wav"],
            folder.path(),
        );
    });
}

#[test]
fn the_chain_of_an_amplifier_plays_as_rendered() {
    alone("same::the_chain_of_an_amplifier_plays_as_rendered", || {
        let folder = tempfile::tempdir().unwrap();
        tone(folder.path(), f64::from(SILENCE_S), 2.0);
        let taps: Vec<f32> = (0..300).map(|n| (-(n as f32) / 60.0).exp()).collect();
        write(&folder.path().join("box.wav"), &taps);
        let model = bundled("overdrive");
        assert_same(
            &[
                "overdrive",
                "--input",
                "tone.wav",
                "--cabinet",
                "box.wav",
                "--control",
                "gate=-60",
                "--control",
                "bass=6",
            ],
            &[
                &model,
                "--input",
                "tone.wav",
                "--cabinet",
                "box.wav",
                "--gate",
                "-60",
                "--bass",
                "6",
            ],
            folder.path(),
        );
    });
}

/// Levels below this do not count, dB.
const SOFT_DB: f32 = -45.0;

/// Returns the level of every 50 ms, dB.
fn levels(sound: &[f32]) -> Vec<f32> {
    let window = RATE as usize / 20;
    let level = |window: &[f32]| {
        10.0 * (window.iter().map(|x| x * x).sum::<f32>() / window.len() as f32 + 1e-12).log10()
    };
    sound.chunks_exact(window).map(level).collect()
}

#[test]
fn a_keyboard_plays_as_rendered() {
    alone("same::a_keyboard_plays_as_rendered", || {
        let folder = tempfile::tempdir().unwrap();
        midi(folder.path(), &[(57, 0, 768), (64, 768, 1_536)]);
        let [rendered, _] = render(folder.path(), &[&bundled("bowed"), "--midi", "notes.mid"]);
        let _server = Server::start();
        let playing = Playing::start(
            folder.path(),
            &["bowed", "--midi", "keyboard", "--driver", "inline"],
        );
        let ears = Ears::open();
        let (keyboard, queue) = Peer::keyboard("keyboard");
        wait_until("it is heard", || {
            !keyboard.connections("keyboard:keys").is_empty()
        });
        let begin = |sound: &[f32]| sound.iter().position(|sample| sample.abs() > 1e-3).unwrap();
        let wanted = levels(&rendered[begin(&rendered)..]);
        assert!(wanted.iter().filter(|level| **level > SOFT_DB).count() > 28);
        // Messages are placed by their time of arrival, so the rhythm suffers on a busy machine.
        let same = (0..5).any(|_| {
            ears.listen(0.5);
            let mark = ears.heard()[0].len();
            // Three messages per cycle, fillers in between: a note lasts 150 cycles, 0.8 s.
            let pause = || std::iter::repeat_n(vec![0xFE], 3 * 150 - 2);
            let first = [vec![0x90, 57, 90], vec![0xFE]].into_iter().chain(pause());
            let second = [vec![0x80, 57, 64], vec![0x90, 64, 90]]
                .into_iter()
                .chain(pause());
            queue
                .lock()
                .unwrap()
                .extend(first.chain(second).chain([vec![0x80, 64, 64]]));
            wait_until("all is played", || queue.lock().unwrap().is_empty());
            ears.listen(2.0);
            let [left, _] = ears.heard();
            let heard = levels(&left[mark + begin(&left[mark..])..]);
            let windows = wanted
                .iter()
                .zip(&heard)
                .filter(|(wanted, _)| **wanted > SOFT_DB);
            let worst = windows
                .map(|(wanted, heard)| (wanted - heard).abs())
                .fold(0.0, f32::max);
            println!("{worst} dB");
            worst < 1.5
        });
        assert!(same, "no attempt sounds as it is rendered");
        playing.signal("INT");
        playing.end_well();
    });
}
