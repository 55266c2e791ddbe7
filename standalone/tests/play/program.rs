//! `ondes play` as another process, and a client that records its output.

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use ondes_engine::dsp::level::peak;
use ondes_engine::media::Decoder;

use crate::peer::{Peer, Tape};
use crate::server::{RATE, wait_until};

/// Returns a command that runs the program in a folder.
pub fn ondes(folder: &Path, arguments: &[&str]) -> Command {
    // A test in the background of a shell inherits an ignored SIGINT, and so would the program.
    let mut command = Command::new("env");
    command.args(["--default-signal", env!("CARGO_BIN_EXE_ondes")]);
    command
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Returns the path of a bundled model.
pub fn bundled(name: &str) -> String {
    let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/models");
    assets
        .join(name)
        .with_extension("ondes")
        .display()
        .to_string()
}

/// Running program; killed when dropped.
pub struct Playing(Option<Child>);

impl Playing {
    /// Starts to play on JACK and waits for its ports.
    pub fn start(folder: &Path, arguments: &[&str]) -> Self {
        let playing = Self::run(ondes(
            folder,
            &[&["play"], arguments, &["--host", "jack"]].concat(),
        ));
        wait_for_ports();
        playing
    }

    /// Runs a command that plays.
    pub fn run(mut command: Command) -> Self {
        Self(Some(command.spawn().unwrap()))
    }

    /// Waits for a line on standard error that contains `words`, and returns it.
    pub fn wait_for_line(&mut self, words: &str) -> String {
        let errors = self.0.as_mut().unwrap().stderr.as_mut().unwrap();
        let (mut line, mut byte) = (Vec::new(), [0]);
        while errors.read_exact(&mut byte).is_ok() {
            if byte[0] != b'\n' {
                line.push(byte[0]);
                continue;
            }
            let text = String::from_utf8(std::mem::take(&mut line)).unwrap();
            if text.contains(words) {
                return text;
            }
        }
        panic!("it has ended without {words:?}");
    }

    /// Sends a signal by name.
    pub fn signal(&self, name: &str) {
        let id = self.0.as_ref().unwrap().id().to_string();
        assert!(
            Command::new("kill")
                .args([&format!("-{name}"), &id])
                .status()
                .unwrap()
                .success()
        );
    }

    /// Returns its resident memory in bytes, without files and memory that it shares with JACK.
    pub fn private_bytes(&self) -> u64 {
        let id = self.0.as_ref().unwrap().id();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"))
            .unwrap();
        1024 * line
            .trim()
            .strip_suffix("kB")
            .unwrap()
            .trim()
            .parse::<u64>()
            .unwrap()
    }

    /// Waits until it exits by itself.
    pub fn end(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }

    /// Same as [`Playing::end`], and asserts success.
    pub fn end_well(self) -> String {
        let output = self.end();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{errors}");
        errors
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Waits until the program's ports are in JACK's graph.
pub fn wait_for_ports() {
    let (watcher, _) = Peer::keyboard("watcher");
    wait_until("there are ports", || {
        watcher.port_with("Ondes:out_2").is_some()
    });
}

/// Recording of both channels by another client.
pub struct Ears {
    peers: [(Peer, Tape); 2],
}

impl Ears {
    pub fn open() -> Self {
        Self {
            peers: ["Ondes:out_1", "Ondes:out_2"].map(Peer::recorder),
        }
    }

    /// Returns `[channel][frame]` since both channels were recorded.
    pub fn heard(&self) -> [Vec<f32>; 2] {
        let tapes = self
            .peers
            .each_ref()
            .map(|(_, tape)| tape.lock().unwrap().clone());
        let start = tapes
            .iter()
            .filter_map(|tape| Some(tape.first()?.1))
            .max()
            .unwrap_or(0);
        tapes.map(|tape| {
            tape.iter()
                .skip_while(|(_, time)| *time < start)
                .map(|(sample, _)| *sample)
                .collect()
        })
    }

    /// Returns the number of frames recorded.
    pub fn frames(&self) -> usize {
        self.peers[0].1.lock().unwrap().len()
    }

    /// Waits until `seconds` more were recorded.
    pub fn listen(&self, seconds: f64) {
        let end = self.frames() + (seconds * f64::from(RATE)) as usize;
        wait_until("it is heard", || self.frames() >= end);
    }

    /// Waits until there is sound.
    pub fn wait_for_sound(&self) {
        wait_until("there is sound", || {
            self.heard()[0].iter().any(|sample| sample.abs() > 1e-3)
        });
    }
}

/// Decodes a sound file, `[channel][frame]`.
pub fn decode(path: &Path) -> Vec<Vec<f32>> {
    let mut decoder = Decoder::open(path).unwrap();
    let (mut all, mut block) = (Vec::<Vec<f32>>::new(), Vec::new());
    while decoder.next(&mut block).unwrap() {
        all.resize(block.len(), Vec::new());
        all.iter_mut()
            .zip(&block)
            .for_each(|(all, channel)| all.extend_from_slice(channel));
    }
    all
}

/// Returns the offset of `part` in `whole`, found by its first loud sample, and the range of `part`
/// that is in `whole`, which is its first sound to its last: a client hears zeros until it is
/// connected, and when the program has ended. The hum of an amplifier is not loud.
pub fn place(part: &[f32], whole: &[f32]) -> (isize, Range<usize>) {
    let threshold = 0.1 * peak(part);
    let loud = part
        .iter()
        .position(|sample| sample.abs() > threshold)
        .expect("it is not silent");
    let window = &part[loud..loud + 64];
    let at = whole
        .windows(64)
        .position(|there| there == window)
        .expect("it is not in it");
    let shift = at as isize - loud as isize;
    let connected = whole
        .iter()
        .position(|sample| *sample != 0.0)
        .expect("it is not silent");
    let silent = whole.iter().rev().take_while(|sample| **sample == 0.0);
    let disconnected = whole.len() - silent.count();
    let start = shift.max(connected as isize) as usize;
    let from = (start as isize - shift) as usize;
    let count = part.len().saturating_sub(from).min(disconnected - start);
    for (n, (a, b)) in part[from..from + count]
        .iter()
        .zip(&whole[start..start + count])
        .enumerate()
    {
        assert!(a == b, "sample {n} of {count}: {a} and {b}");
    }
    (shift, from..from + count)
}

/// Renders with the same program, without latency; returns both channels, which are equal in mono.
pub fn render(folder: &Path, arguments: &[&str]) -> [Vec<f32>; 2] {
    let rest = [
        "--out",
        "rendered.wav",
        "--bits",
        "32",
        "--sample-rate",
        "48000",
    ];
    let output = ondes(folder, &[&["render"], arguments, &rest].concat())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let channels = decode(&folder.join("rendered.wav"));
    [0, 1].map(|channel| channels[channel.min(channels.len() - 1)].clone())
}

/// Writes a tone that swells twice a second, after silence.
pub fn tone(folder: &Path, silence_s: f64, seconds: f64) -> PathBuf {
    let sample = |n: usize| {
        let at = n as f64 / f64::from(RATE) - silence_s;
        let wave = |hz: f64| (std::f64::consts::TAU * hz * at).sin();
        if at < 0.0 {
            0.0
        } else {
            (0.3 * wave(1.0).abs() * (wave(330.0) + 0.5 * wave(660.0))) as f32
        }
    };
    let path = folder.join("tone.wav");
    write(
        &path,
        &(0..((silence_s + seconds) * f64::from(RATE)) as usize)
            .map(sample)
            .collect::<Vec<_>>(),
    );
    path
}

/// Writes a file of one channel.
pub fn write(path: &Path, samples: &[f32]) {
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: RATE,
        bits_per_sample: 32,
        sample_format: hound::SampleFormat::Float,
    };
    let mut writer = hound::WavWriter::create(path, spec).unwrap();
    samples
        .iter()
        .for_each(|sample| writer.write_sample(*sample).unwrap());
    writer.finalize().unwrap();
}

/// Writes a MIDI file of one track, 960 ticks per second: key, start and end of each note.
pub fn midi(folder: &Path, notes: &[(u8, u32, u32)]) -> PathBuf {
    let mut events: Vec<(u32, [u8; 3])> = notes
        .iter()
        .flat_map(|&(key, start, end)| [(start, [0x90, key, 90]), (end, [0x80, key, 64])])
        .collect();
    events.sort_by_key(|event| event.0);
    let mut track = Vec::new();
    let mut now = 0;
    for (tick, message) in events {
        let delta = tick - now;
        // Two bytes are enough for all times in these tests.
        track.extend_from_slice(&[0x80 | (delta >> 7 & 0x7F) as u8, (delta & 0x7F) as u8]);
        track.extend_from_slice(&message);
        now = tick;
    }
    track.extend_from_slice(&[0, 0xFF, 0x2F, 0]);
    let mut bytes = b"MThd\0\0\0\x06\0\0\0\x01\x01\xE0MTrk".to_vec();
    bytes.extend_from_slice(&(track.len() as u32).to_be_bytes());
    bytes.extend_from_slice(&track);
    let path = folder.join("notes.mid");
    std::fs::write(&path, bytes).unwrap();
    path
}
