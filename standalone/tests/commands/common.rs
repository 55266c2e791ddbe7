//! Folder with a small instrument, and the program.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ondes_engine::instrument::Performance;
use ondes_engine::model::{
    Activation, Card, Control, Curve, FORMAT, Header, Kind, Method, Model, Node, Op, Port, Tensor,
    Weights, file,
};
use ondes_engine::ops::{Affine, Conv1d, ConvTranspose1d, Convolve, Linear, Split};
use ondes_player::library::FileReference;
use serde_json::{Value, json};

/// Harmonics and noise bands of the small instrument.
const HARMONICS: usize = 8;
const BANDS: usize = 9;
/// Length of its room, samples.
const TAPS: usize = 480;

/// Folder of a test, in which the program runs.
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// Creates a folder with `small.ondes`.
    pub fn new() -> Self {
        let folder = Self(tempfile::tempdir().expect("there is a temporary folder"));
        file::write(&instrument(48_000, 192), &folder.path("small.ondes"))
            .expect("the model is written");
        folder
    }

    /// Returns the path of a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns a command that runs the program in the folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ondes"));
        command
            .args(arguments)
            .current_dir(self.0.path())
            .stdin(Stdio::null());
        // Without a display no window can open.
        command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments)
            .output()
            .expect("the program starts")
    }

    /// Runs the program with `--json` and parses its output.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        serde_json::from_slice(&output.stdout).expect("one JSON object")
    }

    /// Runs a batch with `--json`; returns the lines about files, and the summary.
    pub fn batch(&self, arguments: &[&str]) -> (Vec<Value>, Value) {
        let output = self.run(&[arguments, &["--json"]].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        json_lines(&output.stdout)
    }

    /// Asserts that the program refuses in one line that contains all `words`, and leaves no file
    /// behind.
    pub fn refuses(&self, arguments: &[&str], words: &[&str]) {
        let before = self.files();
        let output = self.run(arguments);
        assert_refused(&output, words);
        assert_eq!(self.files(), before, "{arguments:?} left files behind");
    }

    /// Writes `a.ondes-session`: one track, which sends a recording through an effect,
    /// `half.ondes`.
    pub fn write_session(&self, recording: &str) {
        file::write(&effect(), &self.path("half.ondes")).expect("the model is written");
        let model = FileReference::to(&effect(), Some(self.path("half.ondes")));
        let track = json!({
            "product": "org.ondes.effect", "selection": { "model": model }, "input": { "file": { "path": recording } },
        });
        let session = json!({ "format": "ondes-session", "version": 1, "tracks": [track] });
        std::fs::write(self.path("a.ondes-session"), session.to_string())
            .expect("the file is written");
    }

    /// Returns the names of all files.
    pub fn files(&self) -> Vec<String> {
        self.files_in(".")
    }

    /// Returns the names of all files in a subfolder.
    pub fn files_in(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(folder)).expect("the folder can be read");
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<String> = entries
            .map(|entry| name(entry).to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// Parses one JSON object per line; returns those of files, and the summary.
pub fn json_lines(stdout: &[u8]) -> (Vec<Value>, Value) {
    let text = String::from_utf8_lossy(stdout);
    let mut lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}")))
        .collect();
    let summary = lines.pop().expect("there is a summary");
    assert_eq!(summary["status"], "summary");
    (lines, summary)
}

/// Asserts exit code 2, one line `ondes: …` that contains all `words`, and a standard output that
/// is empty or, with `--json`, the error as an object.
pub fn assert_refused(output: &Output, words: &[&str]) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    let is_error = |json: Value| json["error"]["reason"].is_string();
    assert!(output.stdout.is_empty() || serde_json::from_slice(&output.stdout).is_ok_and(is_error));
    assert!(
        errors.starts_with("ondes: ") && errors.lines().count() == 1,
        "{errors}"
    );
    for word in words {
        assert!(errors.contains(word), "{word:?} is not in {errors}");
    }
}

/// Returns the torch library if cargo has built it, with the program host beside the program;
/// `None` if only packages without libtorch are tested.
pub fn library() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_BIN_EXE_ondes"))
        .parent()
        .expect("it is in a folder");
    let path = folder.join("deps/libondes_torch.so");
    if !path.is_file() || !folder.join("ondes-program-host").is_file() {
        println!("the library around libtorch is not built here, and so nothing plays");
        return None;
    }
    Some(path)
}

/// Creates an untrained instrument: louder with the loudness input, otherwise random.
pub fn instrument(sample_rate: u32, hop: usize) -> Model {
    let port = |name: &str, ratio| Port {
        name: name.into(),
        channels: 1,
        ratio,
    };
    let node = |name: &str, inputs: &[&str], op| Node {
        name: name.into(),
        inputs: inputs.iter().map(|&input| input.into()).collect(),
        op,
    };
    let synth = Method {
        name: "synth".into(),
        block: hop,
        warm_up: 0,
        inputs: ["pitch", "loudness", "noise"]
            .map(|name| port(name, hop))
            .into(),
        outputs: vec![port("audio", 1)],
        nodes: vec![
            node(
                "level",
                &["loudness"],
                Op::Affine(Affine {
                    scale: 0.04,
                    offset: 1.8,
                }),
            ),
            node(
                "heads",
                &["level"],
                Op::Linear(Linear {
                    outputs: 1 + HARMONICS + BANDS,
                }),
            ),
            node("shaped", &["heads"], Op::Activation(Activation::ExpSigmoid)),
            node(
                "amplitude",
                &["shaped"],
                Op::Split(Split {
                    start: 0,
                    channels: 1,
                }),
            ),
            node(
                "distribution",
                &["shaped"],
                Op::Split(Split {
                    start: 1,
                    channels: HARMONICS,
                }),
            ),
            node(
                "magnitudes",
                &["shaped"],
                Op::Split(Split {
                    start: 1 + HARMONICS,
                    channels: BANDS,
                }),
            ),
            node("breath", &["magnitudes", "noise"], Op::Multiply),
            node(
                "harmonics",
                &["pitch", "amplitude", "distribution"],
                Op::Harmonic,
            ),
            node("air", &["breath"], Op::FilteredNoise),
            node("audio", &["harmonics", "air"], Op::Add),
        ],
    };
    let room = Method {
        name: "room".into(),
        block: hop,
        warm_up: 0,
        inputs: vec![port("dry", 1)],
        outputs: vec![port("room", 1)],
        nodes: vec![node(
            "room",
            &["dry"],
            Op::Convolve(Convolve { taps: TAPS }),
        )],
    };
    let control = |name: &str, unit: &str, min, max, default| Control {
        name: name.into(),
        unit: unit.into(),
        min,
        max,
        default,
        curve: Curve::Linear,
        description: format!("Turns the {name}."),
    };
    let header = Header {
        format: FORMAT,
        kind: Kind::Instrument,
        sample_rate,
        methods: vec![synth, room],
        controls: vec![
            control("noise", "", 0.0, 4.0, 1.0),
            control("brightness", "dB", -24.0, 24.0, 0.0),
        ],
        variants: Vec::new(),
        oversampling: 1,
        performance: Some(Performance {
            pitch_low: 40.0,
            pitch_high: 90.0,
            polyphony: 4,
            ..Default::default()
        }),
        card: Card {
            name: "Small".into(),
            author: "A test".into(),
            ..Default::default()
        },
    };
    Model::new(header, weights()).expect("the model is sound")
}

/// Creates a codec whose only latent is the mean of 16 samples.
pub fn codec() -> Model {
    let port = |name: &str, ratio| Port {
        name: name.into(),
        channels: 1,
        ratio,
    };
    let method = |name: &str, ratio: (usize, usize), op| Method {
        name: name.into(),
        block: 16,
        warm_up: 0,
        inputs: vec![port("in", ratio.0)],
        outputs: vec![port(&format!("{name}d"), ratio.1)],
        nodes: vec![Node {
            name: format!("{name}d"),
            inputs: vec!["in".into()],
            op,
        }],
    };
    let down = Op::Conv1d(Conv1d::new(1, 16).strided(16));
    let up = Op::ConvTranspose1d(ConvTranspose1d {
        outputs: 1,
        kernel: 16,
        stride: 16,
    });
    let mut weights = Weights::default();
    for (node, weight) in [("encoded", 1.0 / 16.0), ("decoded", 1.0)] {
        weights.insert(
            format!("{node}.weight"),
            Tensor::new(&[1, 1, 16], vec![weight; 16]),
        );
        weights.insert(format!("{node}.bias"), Tensor::new(&[1], vec![0.0]));
    }
    let header = Header {
        format: FORMAT,
        kind: Kind::Codec,
        sample_rate: 48_000,
        methods: vec![
            method("encode", (1, 16), down),
            method("decode", (16, 1), up),
        ],
        controls: Vec::new(),
        variants: Vec::new(),
        oversampling: 1,
        performance: None,
        card: Card {
            name: "Mean".into(),
            ..Default::default()
        },
    };
    Model::new(header, weights).expect("the model is sound")
}

/// Creates an effect: one linear layer that halves its input.
pub fn effect() -> Model {
    let port = |name: &str| Port {
        name: name.into(),
        channels: 1,
        ratio: 1,
    };
    let method = Method {
        name: "forward".into(),
        block: 64,
        warm_up: 0,
        inputs: vec![port("in")],
        outputs: vec![port("out")],
        nodes: vec![Node {
            name: "out".into(),
            inputs: vec!["in".into()],
            op: Op::Linear(Linear { outputs: 1 }),
        }],
    };
    let mut weights = Weights::default();
    weights.insert("out.weight", Tensor::new(&[1, 1], vec![0.5]));
    weights.insert("out.bias", Tensor::new(&[1], vec![0.0]));
    let header = Header {
        format: FORMAT,
        kind: Kind::Effect,
        sample_rate: 48_000,
        methods: vec![method],
        controls: Vec::new(),
        variants: Vec::new(),
        oversampling: 1,
        performance: None,
        card: Card {
            name: "Half".into(),
            ..Default::default()
        },
    };
    Model::new(header, weights).expect("the model is sound")
}

/// Returns a model whose output is multiplied by 1e60: infinite unless it is 0.
pub fn overflowing(model: &Model) -> Model {
    let mut header = model.header().clone();
    let first = &mut header.methods[0];
    let output = first.outputs[0].name.clone();
    for name in ["loud", "louder"] {
        let input = first.nodes.last().expect("there are nodes").name.clone();
        let op = Op::Affine(Affine {
            scale: 1e30,
            offset: 0.0,
        });
        first.nodes.push(Node {
            name: name.into(),
            inputs: vec![input],
            op,
        });
    }
    let produced = first
        .nodes
        .iter_mut()
        .find(|node| node.name == output)
        .expect("an output");
    produced.name = "finite".into();
    first
        .nodes
        .iter_mut()
        .flat_map(|node| &mut node.inputs)
        .filter(|input| **input == output)
        .for_each(|input| {
            *input = "finite".into();
        });
    first
        .nodes
        .last_mut()
        .expect("there are nodes")
        .name
        .clone_from(&output);
    let renamed = |name: &str| match name.split_once('.') {
        Some((node, weight)) if node == output => format!("finite.{weight}"),
        _ => name.to_owned(),
    };
    let mut weights = Weights::default();
    for (name, tensor) in model.weights().iter() {
        weights.insert(renamed(name), Tensor::clone(tensor));
    }
    Model::new(header, weights).expect("the model is sound")
}

fn weights() -> Weights {
    let mut state = 1_u64;
    // Knuth's MMIX generator; the upper bits are the random ones.
    let mut random = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    };
    let outputs = 1 + HARMONICS + BANDS;
    let mut slopes: Vec<f32> = (0..outputs).map(|_| random()).collect();
    let mut biases: Vec<f32> = (0..outputs).map(|_| random()).collect();
    // About −20 dB for a loud input, silence for silence; the noise behaves the same at a lower
    // level.
    (slopes[0], biases[0]) = (3.0, -4.0);
    slopes[1 + HARMONICS..].fill(2.0);
    biases[1 + HARMONICS..].fill(-6.0);
    let impulse = (0..TAPS)
        .map(|tap| 0.02 * random() * (-6.0 * tap as f32 / TAPS as f32).exp())
        .collect();
    let mut weights = Weights::default();
    weights.insert("heads.weight", Tensor::new(&[outputs, 1], slopes));
    weights.insert("heads.bias", Tensor::new(&[outputs], biases));
    weights.insert("room.impulse", Tensor::new(&[TAPS], impulse));
    weights
}

/// Note: track, channel, key, start and length in ticks, 960 per second.
pub type MidiNote = (usize, u8, u8, u32, u32);

/// Builds a MIDI file of `names.len()` tracks at 120 quarter notes per minute of 480 ticks.
pub fn midi(names: &[&str], notes: &[MidiNote]) -> Vec<u8> {
    let mut bytes = b"MThd\0\0\0\x06\0\x01".to_vec();
    bytes.extend_from_slice(&[
        0,
        names.len() as u8,
        480_u16.to_be_bytes()[0],
        480_u16.to_be_bytes()[1],
    ]);
    for (index, name) in names.iter().enumerate() {
        let of_track = notes.iter().filter(|note| note.0 == index);
        let mut events: Vec<(u32, [u8; 3])> = of_track
            .flat_map(|&(_, channel, key, start, length)| {
                [
                    (start, [0x90 | channel, key, 90]),
                    (start + length, [0x80 | channel, key, 64]),
                ]
            })
            .collect();
        events.sort_by_key(|event| event.0);
        let mut track = vec![0, 0xff, 0x03, name.len() as u8];
        track.extend_from_slice(name.as_bytes());
        let mut now = 0;
        for (tick, message) in events {
            track.extend_from_slice(&variable_length(tick - now));
            track.extend_from_slice(&message);
            now = tick;
        }
        track.extend_from_slice(&[0, 0xff, 0x2f, 0]);
        bytes.extend_from_slice(b"MTrk");
        bytes.extend_from_slice(&(track.len() as u32).to_be_bytes());
        bytes.extend_from_slice(&track);
    }
    bytes
}

/// Encodes seven bits per byte, most significant first, all but the last marked.
fn variable_length(value: u32) -> Vec<u8> {
    let groups = (0..4)
        .rev()
        .map(|group| (group, (value >> (7 * group)) as u8 & 0x7f));
    let needed = groups.skip_while(|&(group, bits)| group > 0 && bits == 0);
    needed
        .map(|(group, bits)| if group > 0 { bits | 0x80 } else { bits })
        .collect()
}

/// Builds a MIDI file of two tracks, `High` on channel 1 and `Low` on channel 2, 1.5 s long.
pub fn two_tracks() -> Vec<u8> {
    midi(
        &["High", "Low"],
        &[
            (0, 0, 69, 0, 480),
            (0, 0, 72, 480, 960),
            (1, 1, 50, 0, 480),
            (1, 1, 45, 720, 720),
        ],
    )
}

/// Returns a tone that swells twice a second.
pub fn tone(pitch_hz: f64, seconds: f64, sample_rate: u32) -> impl Iterator<Item = f32> {
    let samples = (seconds * f64::from(sample_rate)) as usize;
    (0..samples).map(move |n| {
        let at = n as f64 / f64::from(sample_rate);
        let wave = |frequency: f64| (std::f64::consts::TAU * frequency * at).sin();
        (0.3 * wave(1.0).abs() * (wave(pitch_hz) + 0.5 * wave(2.0 * pitch_hz))) as f32
    })
}

/// Writes 16-bit samples.
pub fn write_wav(path: &Path, sample_rate: u32, channels: u16, samples: impl Iterator<Item = f32>) {
    let spec = hound::WavSpec {
        channels,
        sample_rate,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut writer = hound::WavWriter::create(path, spec).expect("the file is made");
    for sample in samples {
        writer
            .write_sample((sample * 32_767.0) as i16)
            .expect("the sample is written");
    }
    writer.finalize().expect("the file is complete");
}

/// Reads a 32-bit file of one channel.
pub fn read_wav(path: &Path) -> Vec<f32> {
    let mut reader = hound::WavReader::open(path).expect("a WAV");
    assert_eq!(reader.spec().channels, 1);
    reader
        .samples::<f32>()
        .collect::<Result<_, _>>()
        .expect("whole samples")
}

/// Reads a 32-bit file as `[channel][frame]`.
pub fn read_channels(path: &Path) -> Vec<Vec<f32>> {
    let mut reader = hound::WavReader::open(path).expect("a WAV");
    let count = usize::from(reader.spec().channels);
    let samples: Vec<f32> = reader
        .samples::<f32>()
        .collect::<Result<_, _>>()
        .expect("whole samples");
    (0..count)
        .map(|channel| {
            samples
                .iter()
                .skip(channel)
                .step_by(count)
                .copied()
                .collect()
        })
        .collect()
}
