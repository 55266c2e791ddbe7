//! Graph of an instrument: a recurrent decoder from pitch and loudness to harmonics, noise and a
//! room.
//!
//! After Engel et al., "DDSP: Differentiable Digital Signal Processing", ICLR 2020, with a smaller
//! decoder at a higher rate.

use ondes_engine::model::{
    Activation, Control, FORMAT, Header, Kind, Method, Model, ModelError, Op, Tensor, Weights,
};
use ondes_engine::ops::{Convolve, Gru, Lstm};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, RngExt, SeedableRng};

use super::config::{Config, NetworkConfig};
use super::controls::controls;
use crate::tasks::capture::knobs::scaling;
use crate::tasks::graph_builder::{GraphBuilder, port};

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
    untrained_with_knobs(config, &knobs.collect::<Result<Vec<_>, _>>()?)
}

/// Creates an untrained instrument with given knobs instead of the configuration's.
///
/// # Errors
/// As [`untrained`].
pub fn untrained_with_knobs(config: &Config, knobs: &[Control]) -> anyhow::Result<Model> {
    let performance = config.performance()?;
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
            .chain(controls(&performance))
            .collect(),
        variants: Vec::new(),
        oversampling: 1,
        performance: Some(performance),
        card: ondes_engine::model::Card {
            name: config.name.clone(),
            description: config.description.clone(),
            author: config.author.clone(),
            licence: config.licence.clone(),
            ..Default::default()
        },
    };
    Ok(Model::new(header, weights)?)
}

/// Builds `synth`: one voice, from control frames to dry sound.
fn synth(network: &NetworkConfig, knobs: &[Control]) -> Method {
    let mut graph = GraphBuilder::default();
    let units = network.input_units;
    // Two octaves and 25 dB are one unit, around the middle of the playing range.
    graph.affine("pitch_scaled", "pitch", 1.0 / 24.0, -64.0 / 24.0);
    graph.affine("loudness_scaled", "loudness", 1.0 / 25.0, 45.0 / 25.0);
    graph.linear("pitch_angles", "pitch_scaled", units);
    // Snake of `x` minus `x` is the squared sine.
    graph.add("pitch_snakes", &["pitch_angles"], Op::Snake);
    graph.affine("pitch_negated", "pitch_angles", -1.0, 0.0);
    graph.add("pitch_waves", &["pitch_snakes", "pitch_negated"], Op::Add);
    let pitch = dense(
        &mut graph,
        "pitch_heard",
        &["pitch_waves", "pitch_scaled"],
        units,
    );
    let loudness = dense(&mut graph, "loudness_1", &["loudness_scaled"], units);
    let loudness = dense(&mut graph, "loudness_2", &[&loudness], units);
    let mut positions = Vec::new();
    for (index, knob) in knobs.iter().enumerate() {
        let (scale, offset) = scaling(knob);
        positions.push(graph.affine(&format!("knob_{index}"), &knob.name, scale, offset));
    }
    graph.concat("conditions", &[&[pitch, loudness], &positions[..]].concat());
    graph.gru("memory", "conditions", network.recurrent_units);
    let remembered = ["memory", "pitch_scaled", "loudness_scaled"].map(str::to_owned);
    graph.concat("remembered", &[&remembered, &positions[..]].concat());
    let decoded = dense(&mut graph, "decoded", &["remembered"], network.output_units);
    let (harmonics, bands) = (network.harmonics, network.noise_bands);
    graph.linear("heads", &decoded, 1 + harmonics + bands);
    graph.activation("shaped", "heads", Activation::ExpSigmoid);
    graph.split("amplitude", "shaped", 0, 1);
    graph.split("distribution", "shaped", 1, harmonics);
    graph.split("magnitudes", "shaped", 1 + harmonics, bands);
    // The level follows the loudness, so that only its dependence on pitch and timbre is learnt.
    graph.affine("level_scaled", "loudness", LEVEL_SCALE, LEVEL_OFFSET);
    graph.activation("level_curve", "level_scaled", Activation::ExpSigmoid);
    graph.affine("level", "level_curve", LEVEL_GAIN, -1e-7 * LEVEL_GAIN);
    graph.add("tone_level", &["amplitude", "level"], Op::Multiply);
    graph.add("breath", &["magnitudes", "noise"], Op::Multiply);
    graph.add("breath_level", &["breath", "level"], Op::Multiply);
    let tone = ["pitch", "tone_level", "distribution"];
    graph.add("harmonics", &tone, Op::Harmonic);
    graph.add("air", &["breath_level"], Op::FilteredNoise);
    graph.add("audio", &["harmonics", "air"], Op::Add);
    let inputs = ["pitch", "loudness", "noise"]
        .into_iter()
        .chain(knobs.iter().map(|knob| knob.name.as_str()))
        .map(|name| port(name, 1, network.hop));
    let inputs = inputs.collect();
    graph.into_method("synth", network.hop, inputs, vec![port("audio", 1, 1)])
}

/// Builds `room`: from the sum of all voices to its reverberation.
fn room(network: &NetworkConfig) -> Method {
    let taps = ((network.room_seconds() * f64::from(network.sample_rate)) as usize).max(1);
    let mut graph = GraphBuilder::default();
    graph.add("room", &["dry"], Op::Convolve(Convolve { taps }));
    let (dry, room) = (port("dry", 1, 1), port("room", 1, 1));
    graph.into_method("room", network.hop, vec![dry], vec![room])
}

/// Adds the dense layer of DDSP: linear, layer norm, leaky ReLU.
fn dense(graph: &mut GraphBuilder, name: &str, inputs: &[&str], outputs: usize) -> String {
    let input = match inputs {
        [input] => (*input).to_owned(),
        several => graph.concat(&format!("{name}_inputs"), several),
    };
    let linear = graph.linear(&format!("{name}_linear"), &input, outputs);
    let norm = graph.add(&format!("{name}_norm"), &[&linear], Op::LayerNorm);
    graph.activation(name, &norm, Activation::LeakyRelu { slope: 0.01 })
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
