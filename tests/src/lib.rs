//! Helpers for tests across crates: small untrained models, the bundled ones, fake models, and
//! files of other programs.

pub mod allocation;
pub mod audio_models;
pub mod conformance;
pub mod documentation;
pub mod fake_model;
pub mod fuzz;
pub mod random_performance;
pub mod rave;
pub mod torchscript;

use std::path::PathBuf;

use ondes_engine::instrument::{Event, EventKind, Performance, controller};
use ondes_engine::model::compression::{Scaling, WeightPrecision};
use ondes_engine::model::{
    Activation, Card, FORMAT, Header, Kind, Method, Model, Node, Op, Port, Tensor, Weights,
};
use ondes_engine::ops::{Affine, Convolve, Gru, Linear, Split};
use ondes_engine::pipeline::INSTRUMENT_CONTROLS;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// Sample rate of the test models, Hz.
pub const SAMPLE_RATE: u32 = 48_000;
/// Samples per control frame of the untrained instrument.
pub const HOP: usize = 192;

/// Creates a random generator with a fixed sequence.
#[must_use]
pub fn seeded_rng(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// Creates a port.
#[must_use]
pub fn port(name: &str, channels: usize, ratio: usize) -> Port {
    Port {
        name: name.into(),
        channels,
        ratio,
    }
}

/// Creates a node.
#[must_use]
pub fn node(name: &str, inputs: &[&str], op: Op) -> Node {
    Node {
        name: name.into(),
        inputs: inputs.iter().map(|&input| input.into()).collect(),
        op,
    }
}

/// Creates a method of one node `y`, which is its output.
///
/// # Panics
/// If the op does not accept the inputs.
#[must_use]
pub fn single_node_method(op: Op, inputs: &[Port], block: usize) -> Method {
    let names: Vec<&str> = inputs.iter().map(|port| port.name.as_str()).collect();
    let nodes = vec![node("y", &names, op)];
    let mut method = Method {
        name: "forward".into(),
        block,
        warm_up: 0,
        inputs: inputs.to_vec(),
        outputs: Vec::new(),
        nodes,
    };
    let shape = *method
        .infer()
        .expect("the node fits")
        .values
        .last()
        .expect("there is a node");
    method.outputs.push(port("y", shape.channels, shape.ratio));
    method
}

/// Creates random weights for all nodes.
///
/// # Panics
/// If a method is invalid.
#[must_use]
pub fn random_weights(methods: &[Method], seed: u64) -> Weights {
    let mut random = seeded_rng(seed);
    let mut weights = Weights::default();
    for method in methods {
        let shapes = method.infer().expect("the method fits");
        for (node, inputs) in method.nodes.iter().zip(shapes.node_inputs()) {
            for spec in node.op.weights(&inputs) {
                let bound = match spec.name {
                    "impulse" => 0.02,
                    "alpha" => 2.0,
                    _ => 0.3,
                };
                let data = (0..spec.shape.iter().product())
                    .map(|_| random.random_range(-bound..bound))
                    .collect();
                weights.insert(
                    format!("{}.{}", node.name, spec.name),
                    Tensor::new(&spec.shape, data),
                );
            }
        }
    }
    weights
}

/// Creates a model with random weights.
///
/// # Panics
/// If a method is invalid.
#[must_use]
pub fn model(kind: Kind, methods: Vec<Method>, seed: u64) -> Model {
    let weights = random_weights(&methods, seed);
    Model::new(header(kind, methods), weights).expect("a random model is sound")
}

/// Returns the model with 8-bit weights, multiplied in 8 bits where that is faster.
///
/// # Panics
/// If a weight is not finite.
#[must_use]
pub fn int8_model(model: &Model) -> Model {
    model
        .compressed(Scaling::default(), |_| WeightPrecision::Computed8)
        .expect("its weights have scales")
}

/// Creates a header with the controls of instruments.
#[must_use]
pub fn header(kind: Kind, methods: Vec<Method>) -> Header {
    let performance = Performance::default();
    let controls = INSTRUMENT_CONTROLS
        .iter()
        .map(|control| control.control(&performance))
        .collect();
    let card = Card {
        name: "Untrained".into(),
        ..Card::default()
    };
    let performance = (kind == Kind::Instrument).then_some(performance);
    Header {
        format: FORMAT,
        kind,
        sample_rate: SAMPLE_RATE,
        methods,
        controls,
        variants: Vec::new(),
        oversampling: 1,
        performance,
        card,
    }
}

/// Returns the methods of a small instrument: a recurrent decoder, harmonics, noise and
/// reverberation.
#[must_use]
pub fn instrument_methods() -> Vec<Method> {
    let synth = Method {
        name: "synth".into(),
        block: HOP,
        warm_up: 0,
        inputs: vec![port("pitch", 1, HOP), port("loudness", 1, HOP)],
        outputs: vec![port("audio", 1, 1)],
        nodes: vec![
            node(
                "pitch_scaled",
                &["pitch"],
                Op::Affine(Affine {
                    scale: 1.0 / 24.0,
                    offset: -2.6,
                }),
            ),
            node(
                "loudness_scaled",
                &["loudness"],
                Op::Affine(Affine {
                    scale: 1.0 / 25.0,
                    offset: 1.8,
                }),
            ),
            node(
                "conditions",
                &["pitch_scaled", "loudness_scaled"],
                Op::Concat,
            ),
            node(
                "memory",
                &["conditions"],
                Op::Gru(Gru {
                    hidden: 24,
                    initial_state: false,
                }),
            ),
            node(
                "heads",
                &["memory"],
                Op::Linear(Linear {
                    outputs: 1 + 20 + 9,
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
                    channels: 20,
                }),
            ),
            node(
                "magnitudes",
                &["shaped"],
                Op::Split(Split {
                    start: 21,
                    channels: 9,
                }),
            ),
            node(
                "harmonics",
                &["pitch", "amplitude", "distribution"],
                Op::Harmonic,
            ),
            node("air", &["magnitudes"], Op::FilteredNoise),
            node("audio", &["harmonics", "air"], Op::Add),
        ],
    };
    let room = Method {
        name: "room".into(),
        block: HOP,
        warm_up: 0,
        inputs: vec![port("dry", 1, 1)],
        outputs: vec![port("room", 1, 1)],
        nodes: vec![node(
            "room",
            &["dry"],
            Op::Convolve(Convolve { taps: 2000 }),
        )],
    };
    vec![synth, room]
}

/// Creates a small instrument with random weights.
#[must_use]
pub fn untrained_instrument(seed: u64) -> Model {
    let methods = instrument_methods();
    let weights = random_weights(&methods, seed);
    let mut header = header(Kind::Instrument, methods);
    header.performance = Some(Performance {
        dynamic_tilt: 1.0,
        attack_tilt_db: -6.0,
        ..Performance::default()
    });
    Model::new(header, weights).expect("a random model is sound")
}

/// Returns the path of a bundled model. The checkout is found at run time, because checkouts may
/// share build output.
///
/// # Panics
/// If the test is not run by cargo.
#[must_use]
pub fn bundled_file(name: &str) -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let mut above = std::path::Path::new(&package)
        .ancestors()
        .map(|folder| folder.join("assets/models"));
    above
        .find(|folder| folder.is_dir())
        .expect("the package is in a checkout")
        .join(format!("{name}.ondes"))
}

/// Returns the paths of the bundled instruments; of those that are trained on recordings, which are
/// alike, some.
#[must_use]
pub fn bundled_models() -> Vec<PathBuf> {
    ["bowed", "wind", "plucked", "saxophone", "violin", "voice"]
        .map(bundled_file)
        .into()
}

/// Returns random notes, bends, modulation and sustain pedal within `samples` samples.
#[must_use]
pub fn random_events(seed: u64, samples: u64) -> Vec<Event> {
    let mut random = seeded_rng(seed);
    let mut events = Vec::new();
    for _ in 0..24 {
        let (at, length) = (
            random.random_range(0..samples * 3 / 4),
            random.random_range(1..samples / 4),
        );
        let (channel, key) = (0, random.random_range(45..85));
        events.push(Event {
            at,
            kind: EventKind::NoteOn {
                channel,
                key,
                velocity: random.random_range(0.1..1.0),
            },
        });
        events.push(Event {
            at: at + length,
            kind: EventKind::NoteOff {
                channel,
                key,
                velocity: 0.5,
            },
        });
        let at = random.random_range(0..samples);
        events.push(Event {
            at,
            kind: EventKind::Bend {
                channel,
                semitones: random.random_range(-2.0..2.0),
            },
        });
        let value = random.random_range(0.0..1.0);
        let number = if value < 0.2 {
            controller::SUSTAIN
        } else {
            controller::MOD_WHEEL
        };
        events.push(Event {
            at,
            kind: EventKind::Controller {
                channel,
                number,
                value,
            },
        });
    }
    events.sort_by_key(|event| event.at);
    events
}

/// Splits a length into random parts of 1 … `longest`.
#[must_use]
pub fn random_splits(seed: u64, length: usize, longest: usize) -> Vec<usize> {
    let mut random = seeded_rng(seed);
    let mut parts = Vec::new();
    let mut left = length;
    while left > 0 {
        // Short parts as often as long ones.
        let limit = random.random_range(1..=longest);
        let part = random.random_range(1..=limit).min(left);
        parts.push(part);
        left -= part;
    }
    parts
}
