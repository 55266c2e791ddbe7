//! Graph of an instrument: a recurrent decoder from pitch and loudness to harmonics, noise and a
//! room.
//!
//! After Engel et al., "DDSP: Differentiable Digital Signal Processing", ICLR 2020, with a smaller
//! decoder at a higher rate.

use ondes_engine::instrument::Performance;
use ondes_engine::model::{
    Activation, Control, Curve, FORMAT, Header, Kind, Method, Model, ModelError, Node, Op, Port,
    Tensor, Weights,
};
use ondes_engine::ops::{Affine, Convolve, Gru, Linear, Lstm, Split};
use ondes_engine::pipeline::INSTRUMENT_CONTROLS;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, RngExt, SeedableRng};

use crate::capture::knobs::scaling;
use crate::config::{Config, NetworkConfig};

/// Initial bias of tone and noise before their sigmoid: noise starts quiet, so that harmonics are
/// learnt first.
const TONE_BIAS: f32 = -1.0;
const NOISE_BIAS: f32 = -3.0;
/// Scale and offset from loudness (dB) to the input of [`Activation::ExpSigmoid`], which is about
/// `2 e^(x ln 10)` for negative x: a twentieth of the loudness gives `2 · 10^(dB / 20)`. The offset
/// keeps x below −3, where that holds within 5 %; [`LEVEL_GAIN`] compensates for it.
const LEVEL_SCALE: f32 = 0.05;
const LEVEL_OFFSET: f32 = -3.0;
/// Ten times the amplitude of a 1 kHz tone of that loudness, since low tones need a larger
/// amplitude to be as loud.
const LEVEL_GAIN: f32 = 5_000.0;
/// Slowest angular frequency of the pitch features, radians per two octaves. Body resonances are
/// about a semitone wide, and a network learns such detail only slowly from pitch as a single
/// number (Tancik et al., "Fourier features let networks learn high frequency functions in low
/// dimensional domains", NeurIPS 2020): the fastest is [`NetworkConfig::pitch_detail`].
const SLOWEST_PITCH_ANGLE: f32 = 1.0;
/// Magnitude of the first taps of the untrained room.
const ROOM_START: f32 = 1e-3;

/// Creates an untrained instrument.
///
/// # Errors
/// Returns an error if the sizes or the knobs of the configuration make no valid model.
pub fn untrained(config: &Config) -> anyhow::Result<Model> {
    let knobs = config.knob.iter().map(|(name, knob)| knob.control(name));
    Ok(untrained_with_knobs(
        config,
        &knobs.collect::<Result<Vec<_>, _>>()?,
    )?)
}

/// Creates an untrained instrument with given knobs instead of the configuration's.
///
/// # Errors
/// As [`untrained`].
pub fn untrained_with_knobs(config: &Config, knobs: &[Control]) -> Result<Model, ModelError> {
    let methods = vec![synth(&config.network, knobs), room(&config.network)];
    let weights = initial_weights(&methods, &config.network, config.seed)?;
    let header = Header {
        format: FORMAT,
        kind: Kind::Instrument,
        sample_rate: config.network.sample_rate,
        methods,
        controls: knobs
            .iter()
            .cloned()
            .chain(controls(&config.performance))
            .collect(),
        variants: Vec::new(),
        performance: Some(config.performance),
        card: ondes_engine::model::Card {
            name: config.name.clone(),
            description: config.description.clone(),
            author: config.author.clone(),
            licence: config.licence.clone(),
            ..Default::default()
        },
    };
    Model::new(header, weights)
}

/// Builds `synth`: one voice, from control frames to dry sound.
fn synth(network: &NetworkConfig, knobs: &[Control]) -> Method {
    let mut nodes = Nodes::default();
    let units = network.input_units;
    // Two octaves and 25 dB are one unit, around the middle of the playing range.
    nodes.add(
        "pitch_scaled",
        &["pitch"],
        Op::Affine(Affine {
            scale: 1.0 / 24.0,
            offset: -64.0 / 24.0,
        }),
    );
    nodes.add(
        "loudness_scaled",
        &["loudness"],
        Op::Affine(Affine {
            scale: 1.0 / 25.0,
            offset: 45.0 / 25.0,
        }),
    );
    nodes.add(
        "pitch_angles",
        &["pitch_scaled"],
        Op::Linear(Linear { outputs: units }),
    );
    // Snake of `x` minus `x` is the squared sine.
    nodes.add("pitch_snakes", &["pitch_angles"], Op::Snake);
    nodes.add(
        "pitch_negated",
        &["pitch_angles"],
        Op::Affine(Affine {
            scale: -1.0,
            offset: 0.0,
        }),
    );
    nodes.add("pitch_waves", &["pitch_snakes", "pitch_negated"], Op::Add);
    let pitch = nodes.dense("pitch_heard", &["pitch_waves", "pitch_scaled"], units);
    let loudness = nodes.dense("loudness_1", &["loudness_scaled"], units);
    let loudness = nodes.dense("loudness_2", &[&loudness], units);
    let positions: Vec<String> = (0..knobs.len())
        .map(|index| format!("knob_{index}"))
        .collect();
    for (position, knob) in positions.iter().zip(knobs) {
        let (scale, offset) = scaling(knob);
        nodes.add(
            position,
            &[&knob.name],
            Op::Affine(Affine { scale, offset }),
        );
    }
    let positions = || positions.iter().map(String::as_str);
    let conditions: Vec<&str> = [pitch.as_str(), &loudness]
        .into_iter()
        .chain(positions())
        .collect();
    nodes.add("conditions", &conditions, Op::Concat);
    nodes.add(
        "memory",
        &["conditions"],
        Op::Gru(Gru {
            hidden: network.recurrent_units,
            initial_state: false,
        }),
    );
    let remembered: Vec<&str> = ["memory", "pitch_scaled", "loudness_scaled"]
        .into_iter()
        .chain(positions())
        .collect();
    nodes.add("remembered", &remembered, Op::Concat);
    let decoded = nodes.dense("decoded", &["remembered"], network.output_units);
    let (harmonics, bands) = (network.harmonics, network.noise_bands);
    nodes.add(
        "heads",
        &[&decoded],
        Op::Linear(Linear {
            outputs: 1 + harmonics + bands,
        }),
    );
    nodes.add("shaped", &["heads"], Op::Activation(Activation::ExpSigmoid));
    nodes.add(
        "amplitude",
        &["shaped"],
        Op::Split(Split {
            start: 0,
            channels: 1,
        }),
    );
    nodes.add(
        "distribution",
        &["shaped"],
        Op::Split(Split {
            start: 1,
            channels: harmonics,
        }),
    );
    nodes.add(
        "magnitudes",
        &["shaped"],
        Op::Split(Split {
            start: 1 + harmonics,
            channels: bands,
        }),
    );
    // The level follows the loudness, so that only its dependence on pitch and timbre is learnt.
    nodes.add(
        "level_scaled",
        &["loudness"],
        Op::Affine(Affine {
            scale: LEVEL_SCALE,
            offset: LEVEL_OFFSET,
        }),
    );
    nodes.add(
        "level_curve",
        &["level_scaled"],
        Op::Activation(Activation::ExpSigmoid),
    );
    nodes.add(
        "level",
        &["level_curve"],
        Op::Affine(Affine {
            scale: LEVEL_GAIN,
            offset: -1e-7 * LEVEL_GAIN,
        }),
    );
    nodes.add("tone_level", &["amplitude", "level"], Op::Multiply);
    nodes.add("breath", &["magnitudes", "noise"], Op::Multiply);
    nodes.add("breath_level", &["breath", "level"], Op::Multiply);
    nodes.add(
        "harmonics",
        &["pitch", "tone_level", "distribution"],
        Op::Harmonic,
    );
    nodes.add("air", &["breath_level"], Op::FilteredNoise);
    nodes.add("audio", &["harmonics", "air"], Op::Add);
    let port = |name: &str, ratio| Port {
        name: name.into(),
        channels: 1,
        ratio,
    };
    let inputs = ["pitch", "loudness", "noise"]
        .into_iter()
        .chain(knobs.iter().map(|knob| knob.name.as_str()));
    Method {
        name: "synth".into(),
        block: network.hop,
        warm_up: 0,
        inputs: inputs.map(|name| port(name, network.hop)).collect(),
        outputs: vec![port("audio", 1)],
        nodes: nodes.0,
    }
}

/// Builds `room`: from the sum of all voices to its reverberation.
fn room(network: &NetworkConfig) -> Method {
    let taps = ((network.room_seconds() * f64::from(network.sample_rate)) as usize).max(1);
    let port = |name: &str| Port {
        name: name.into(),
        channels: 1,
        ratio: 1,
    };
    Method {
        name: "room".into(),
        block: network.hop,
        warm_up: 0,
        inputs: vec![port("dry")],
        outputs: vec![port("room")],
        nodes: vec![Node {
            name: "room".into(),
            inputs: vec!["dry".into()],
            op: Op::Convolve(Convolve { taps }),
        }],
    }
}

/// Nodes of a method under construction.
#[derive(Default)]
struct Nodes(Vec<Node>);

impl Nodes {
    fn add(&mut self, name: &str, inputs: &[&str], op: Op) {
        let inputs = inputs.iter().map(|&input| input.to_owned()).collect();
        self.0.push(Node {
            name: name.to_owned(),
            inputs,
            op,
        });
    }

    /// Adds the dense layer of DDSP: linear, layer norm, leaky ReLU. Returns the name of its
    /// output.
    fn dense(&mut self, name: &str, inputs: &[&str], outputs: usize) -> String {
        let concatenated = format!("{name}_inputs");
        let input = match inputs {
            [input] => (*input).to_owned(),
            several => {
                self.add(&concatenated, several, Op::Concat);
                concatenated
            }
        };
        let (linear, norm) = (format!("{name}_linear"), format!("{name}_norm"));
        self.add(&linear, &[&input], Op::Linear(Linear { outputs }));
        self.add(&norm, &[&linear], Op::LayerNorm);
        self.add(
            name,
            &[&norm],
            Op::Activation(Activation::LeakyRelu { slope: 0.01 }),
        );
        name.to_owned()
    }
}

/// Returns the controls of every instrument, and the noise control of this network.
pub fn controls(performance: &Performance) -> Vec<Control> {
    let noise = Control {
        name: "noise".into(),
        unit: String::new(),
        min: 0.0,
        max: 4.0,
        default: 1.0,
        curve: Curve::Linear,
        description: "How much of the breath, bow or pick noise is heard; 1 is as learnt.".into(),
    };
    std::iter::once(noise)
        .chain(
            INSTRUMENT_CONTROLS
                .iter()
                .map(|control| control.control(performance)),
        )
        .collect()
}

/// Draws initial weights as PyTorch does: uniform within `1 / √inputs`.
fn initial_weights(
    methods: &[Method],
    network: &NetworkConfig,
    seed: u64,
) -> Result<Weights, ModelError> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut weights = Weights::default();
    for method in methods {
        let shapes = method.infer()?;
        for (node, inputs) in method.nodes.iter().zip(shapes.node_inputs()) {
            let specs = node.op.weights(&inputs);
            let fan_in = match node.op {
                Op::Gru(Gru { hidden, .. }) | Op::Lstm(Lstm { hidden, .. }) => hidden,
                _ => specs
                    .first()
                    .map_or(1, |spec| spec.shape[1..].iter().product()),
            };
            let bound = 1.0 / (fan_in.max(1) as f32).sqrt();
            for spec in specs {
                let count = spec.shape.iter().product();
                let mut data: Vec<f32> = match (&node.op, spec.name) {
                    (Op::LayerNorm, "weight") => vec![1.0; count],
                    (Op::LayerNorm, _) => vec![0.0; count],
                    (Op::Convolve(_), _) => untrained_room(count, &mut random),
                    (Op::Snake, _) => vec![1.0; count],
                    _ => (0..count)
                        .map(|_| random.random_range(-bound..bound))
                        .collect(),
                };
                if node.name == "pitch_angles" {
                    let (slow, fast) = (SLOWEST_PITCH_ANGLE, network.pitch_detail() as f32);
                    let angle =
                        |index: usize| slow * (fast / slow).powf(index as f32 / count as f32);
                    data.iter_mut()
                        .enumerate()
                        .for_each(|(index, value)| match spec.name {
                            "weight" => *value = angle(index),
                            _ => *value = random.random_range(0.0..std::f32::consts::PI),
                        });
                }
                if node.name == "heads" && spec.name == "bias" {
                    data[0] = TONE_BIAS;
                    data[1 + network.harmonics..].fill(NOISE_BIAS);
                }
                weights.insert(
                    format!("{}.{}", node.name, spec.name),
                    Tensor::new(&spec.shape, data),
                );
            }
        }
    }
    Ok(weights)
}

/// Draws faint decaying noise without a direct sound.
fn untrained_room(taps: usize, random: &mut impl Rng) -> Vec<f32> {
    let decay = |tap: usize| ROOM_START * (-6.0 * tap as f32 / taps as f32).exp();
    let mut impulse: Vec<f32> = (0..taps)
        .map(|tap| decay(tap) * random.random_range(-1.0..1.0))
        .collect();
    impulse[0] = 0.0;
    impulse
}
