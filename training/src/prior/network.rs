//! Graph of a prior: layers that read the frame before, recurrent ones and attention, and a mixture
//! of Gaussians from which the next is drawn.
//!
//! A generator has the methods of its codec and `prior`, which makes latents. Within it latents
//! have mean 0 and deviation 1; several frames may be drawn at once, as one with more channels.

use std::f32::consts::PI;

use anyhow::{Context, ensure};
use ondes_engine::model::graph::{BARS_BEFORE, PREVIOUS, Recall};
use ondes_engine::model::{
    Activation, Card, Control, FORMAT, Header, Kind, Method, Model, Node, Op, Port, Tensor, Weights,
};
use ondes_engine::ops::{
    Affine, Attention, CodeSum, Conv1d, DrawMixture, Gru, Interleave, Linear, Split,
};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::conditions::Condition;
use super::config::{PriorConfig, PriorNetworkConfig};
use crate::codec::network::showing;

/// Name of the method.
pub const PRIOR: &str = "prior";
/// Frames that were drawn: the output that is fed back.
pub const DRAWN: &str = "prior.drawn";
/// Control and port of the temperature.
pub const TEMPERATURE: &str = "temperature";
/// Control and port that tells how far the conditions are followed.
pub const STEER: &str = "steer";
/// Input for latents of the encoder, and the control that puts them in the place of those drawn
/// before.
const HEARD: &str = "heard";
const LISTEN: &str = "listen";
/// Control that tells how far what was played some bars before is followed.
const RECALL: &str = "recall";
/// Node that makes groups of mean 0 and deviation 1 of what is heard, and the frame before as the
/// layers read it; its weights are not learnt.
const HEARD_GROUP: &str = "prior.heard";
const BEFORE: &str = "prior.before";
/// All that the layers read.
const READ: &str = "prior.read";
/// Node that gives the latents the mean and the deviation of the recordings; its weights are not
/// learnt.
const LATENTS: &str = "prior.latents";
/// Node that turns the value of the knob for loudness into what the layers are asked for: the same
/// in training, more of it once the knob is calibrated.
pub const ASKED: &str = "prior.loudness.asked";
/// Nodes that turn the position in four bars into waves of some cycles a bar, whose weights are not
/// learnt.
const ANGLES: &str = "prior.bars.angles";
const SNAKE: &str = "prior.bars.snake";
const CYCLES: [f32; 10] = [0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0];
/// Numbers that are learnt for each style.
const STYLE_CHANNELS: usize = 8;
/// Nodes of the mixture.
const MIXTURE: [&str; 3] = ["prior.logits", "prior.means", "prior.scales"];
/// Layer that computes the mixture.
const HEADS: &str = "prior.heads";
/// Units of the layer after attention for each of its own.
const WIDER: usize = 4;
/// Least deviation of a Gaussian: training would make those of silence infinitely narrow.
const MIN_SCALE: f32 = 0.05;
/// Input of a softplus whose output is about 1.
const UNIT_SCALE: f32 = 0.46;
/// Number of the noise that draws; codecs use lower ones.
const DRAW_NUMBER: u32 = 100;

/// Mean and deviation of what a prior reads or makes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Mean.
    pub mean: f32,
    /// Standard deviation, above 0.
    pub deviation: f32,
}

/// Condition with its values in the recordings.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredCondition {
    /// Measured quantity.
    pub condition: Condition,
    /// Mean and deviation.
    pub spread: Spread,
    /// Range of the knob.
    pub range: (f32, f32),
    /// Names of its positions, if it has some.
    pub names: Vec<String>,
}

/// Creates a generator with an untrained prior for a codec.
///
/// # Errors
/// Returns an error if the codec has no latents that a method `decode` takes, or the sizes make no
/// valid model.
pub fn untrained(
    config: &PriorConfig,
    codec: &Model,
    latents: &[Spread],
    conditions: &[MeasuredCondition],
) -> anyhow::Result<Model> {
    let methods = [codec.method("encode")?, codec.method("decode")?];
    let port = methods[1]
        .inputs
        .iter()
        .find(|port| port.channels == latents.len());
    let ratio = port
        .context("its decoder does not take the latents of its encoder")?
        .ratio;
    let prior = prior(config, latents.len(), ratio, conditions);
    let mut weights = weights_of(codec, &methods.map(Clone::clone));
    for (name, weight) in initial_weights(&prior, latents, config.seed)? {
        weights.insert(name, weight);
    }
    let header = codec.header();
    let header = Header {
        format: FORMAT,
        kind: Kind::Generator,
        sample_rate: header.sample_rate,
        methods: methods.into_iter().cloned().chain([prior]).collect(),
        controls: header
            .controls
            .iter()
            .cloned()
            .chain(controls(config, conditions))
            .collect(),
        variants: Vec::new(),
        performance: None,
        card: Card {
            name: config.name.clone(),
            description: config.description.clone(),
            author: config.author.clone(),
            licence: config.licence.clone(),
            ..Card::default()
        },
    };
    Ok(Model::new(header, weights)?)
}

/// Returns the weights of some methods, in F32.
fn weights_of(model: &Model, methods: &[Method]) -> Weights {
    let mut weights = Weights::default();
    for (name, weight) in model.weights().used_by(methods) {
        weights.insert(
            name,
            Tensor::new(weight.shape(), weight.floats().into_owned()),
        );
    }
    weights
}

/// Returns the codec of a generator.
///
/// # Errors
/// Returns an error if it has no encoder or no decoder.
pub fn codec_of(generator: &Model) -> anyhow::Result<Model> {
    let methods = vec![
        generator.method("encode")?.clone(),
        generator.method("decode")?.clone(),
    ];
    let weights = weights_of(generator, &methods);
    let mut header = Header {
        kind: Kind::Codec,
        methods,
        ..generator.header().clone()
    };
    let ports: Vec<Port> = header
        .methods
        .iter()
        .flat_map(|method| method.inputs.clone())
        .collect();
    header
        .controls
        .retain(|control| ports.iter().any(|port| port.name == control.name));
    Ok(Model::new(header, weights)?)
}

fn prior(
    config: &PriorConfig,
    latents: usize,
    ratio: usize,
    conditions: &[MeasuredCondition],
) -> Method {
    let network = &config.network;
    let (channels, block) = (network.group * latents, network.group * ratio);
    let previous = format!("{DRAWN}{PREVIOUS}");
    let mut nodes: Vec<Node> = Vec::new();
    let mut add = |name: &str, inputs: &[&str], op: Op| {
        let inputs = inputs.iter().map(|&input| input.to_owned()).collect();
        nodes.push(Node {
            name: name.to_owned(),
            inputs,
            op,
        });
    };
    let port = |name: &str, channels, ratio| Port {
        name: name.into(),
        channels,
        ratio,
    };
    let mut inputs = vec![
        port(&previous, channels, block),
        port(TEMPERATURE, 1, block),
    ];
    inputs.extend([port(HEARD, latents, ratio), port(LISTEN, 1, block)]);
    let group = network.group;
    add(
        HEARD_GROUP,
        &[HEARD],
        Op::Conv1d(Conv1d::new(channels, group).strided(group)),
    );
    add(
        "prior.drawn.negative",
        &[&previous],
        Op::Affine(Affine {
            scale: -1.0,
            offset: 0.0,
        }),
    );
    add(
        "prior.heard.change",
        &[HEARD_GROUP, "prior.drawn.negative"],
        Op::Add,
    );
    add(
        "prior.heard.share",
        &["prior.heard.change", LISTEN],
        Op::Multiply,
    );
    add(BEFORE, &[&previous, "prior.heard.share"], Op::Add);
    let mut read = vec![BEFORE.to_owned()];
    if !conditions.is_empty() {
        inputs.push(port(STEER, 1, block));
        read.push(STEER.into());
    }
    for MeasuredCondition {
        condition,
        spread,
        names,
        ..
    } in conditions
    {
        let name = condition.name();
        inputs.push(port(name, 1, block));
        let (scaled, heard) = (format!("prior.{name}.scaled"), format!("prior.{name}"));
        if *condition == Condition::Bars {
            // sin² of the angles is what the activation adds to them.
            add(
                ANGLES,
                &[name],
                Op::Linear(Linear {
                    outputs: 2 * CYCLES.len(),
                }),
            );
            add(SNAKE, &[ANGLES], Op::Snake);
            add(
                "prior.bars.negative",
                &[ANGLES],
                Op::Affine(Affine {
                    scale: -1.0,
                    offset: 0.0,
                }),
            );
            add(
                "prior.bars.squares",
                &[SNAKE, "prior.bars.negative"],
                Op::Add,
            );
            add(
                &scaled,
                &["prior.bars.squares"],
                Op::Affine(Affine {
                    scale: 2.0,
                    offset: -1.0,
                }),
            );
            add(&heard, &[&scaled, STEER], Op::Multiply);
            read.push(heard);
            continue;
        }
        if *condition == Condition::Style {
            add(
                &scaled,
                &[name],
                Op::CodeSum(CodeSum {
                    codes: names.len(),
                    channels: STYLE_CHANNELS,
                }),
            );
            add(&heard, &[&scaled, STEER], Op::Multiply);
            read.push(heard);
            continue;
        }
        let mut asked = name;
        if *condition == Condition::Loudness {
            add(
                ASKED,
                &[name],
                Op::Affine(Affine {
                    scale: 1.0,
                    offset: 0.0,
                }),
            );
            asked = ASKED;
        }
        let scale = 1.0 / spread.deviation;
        add(
            &scaled,
            &[asked],
            Op::Affine(Affine {
                scale,
                offset: -scale * spread.mean,
            }),
        );
        // 0 is the mean, and together with a steer of 0: not known.
        add(&heard, &[&scaled, STEER], Op::Multiply);
        read.push(heard);
    }
    add(
        READ,
        &read.iter().map(String::as_str).collect::<Vec<_>>(),
        Op::Concat,
    );
    let mut value = READ.to_owned();
    for layer in 0..network.layers {
        let memory = format!("prior.memory.{layer}");
        add(
            &memory,
            &[&value],
            Op::Gru(Gru {
                hidden: network.units,
                initial_state: false,
            }),
        );
        if layer > 0 {
            let sum = format!("prior.sum.{layer}");
            add(&sum, &[&value, &memory], Op::Add);
            value = sum;
        } else {
            value = memory;
        }
    }
    if network.layers == 0 {
        add(
            "prior.embedded",
            &[&value],
            Op::Linear(Linear {
                outputs: network.units,
            }),
        );
        value = "prior.embedded".to_owned();
    }
    for layer in 0..network.attention_layers {
        value = attention_layer(network, layer, &value, &mut add);
    }
    // With the frame before, so that the layers need to learn only what a linear prediction misses.
    add("prior.known", &[&value, BEFORE], Op::Concat);
    let (components, gaussians) = (network.components, network.components * channels);
    add(
        HEADS,
        &["prior.known"],
        Op::Linear(Linear {
            outputs: components + 2 * gaussians,
        }),
    );
    let [logits, means, scales] = MIXTURE;
    add(
        logits,
        &[HEADS],
        Op::Split(Split {
            start: 0,
            channels: components,
        }),
    );
    add(
        means,
        &[HEADS],
        Op::Split(Split {
            start: components,
            channels: gaussians,
        }),
    );
    add(
        "prior.widths",
        &[HEADS],
        Op::Split(Split {
            start: components + gaussians,
            channels: gaussians,
        }),
    );
    add(
        "prior.widths.positive",
        &["prior.widths"],
        Op::Activation(Activation::Softplus),
    );
    add(
        scales,
        &["prior.widths.positive"],
        Op::Affine(Affine {
            scale: 1.0,
            offset: MIN_SCALE,
        }),
    );
    let least = network.least;
    add(
        DRAWN,
        &[logits, means, scales, TEMPERATURE],
        Op::DrawMixture(DrawMixture {
            components,
            least,
            number: DRAW_NUMBER,
        }),
    );
    add(
        "prior.frames",
        &[DRAWN],
        Op::Interleave(Interleave {
            factor: network.group,
        }),
    );
    add(
        LATENTS,
        &["prior.frames"],
        Op::Linear(Linear { outputs: latents }),
    );
    let outputs = vec![port(LATENTS, latents, ratio), port(DRAWN, channels, block)];
    let mut prior = Method {
        name: PRIOR.into(),
        block,
        warm_up: 0,
        inputs,
        outputs,
        nodes,
    };
    add_recall(&mut prior, recall(config, conditions));
    prior
}

/// Adds inputs for what a prior played in some bars before to one without. Returns the index of the
/// first new channel in what its layers read, and the number of new channels; `None` without such
/// bars.
fn add_recall(prior: &mut Method, bars: usize) -> Option<(usize, usize)> {
    let before = prior
        .nodes
        .iter()
        .position(|node| node.name == BEFORE)
        .filter(|_| bars > 0)?;
    let channels = prior.inputs[0].channels;
    let recalled = Recall::channels(channels);
    let port = |name: String, channels| Port {
        name,
        channels,
        ratio: prior.block,
    };
    let names = |bars: usize| {
        [
            format!("{BEFORE}{BARS_BEFORE}{bars}"),
            format!("prior.recalled.{bars}"),
        ]
    };
    let ports = (1..=bars)
        .map(|bars| port(names(bars)[0].clone(), recalled))
        .chain([port(RECALL.into(), 1)]);
    let ports: Vec<Port> = ports.collect();
    let after = prior
        .inputs
        .iter()
        .position(|port| port.name == LISTEN)
        .map_or(0, |listen| listen + 1);
    prior.outputs.push(port(BEFORE.into(), channels));
    prior.inputs.splice(after..after, ports);
    let nodes = (1..=bars).map(names).map(|[before, name]| Node {
        name,
        inputs: vec![before, RECALL.into()],
        op: Op::Multiply,
    });
    prior.nodes.splice(before + 1..before + 1, nodes);
    let read = prior.nodes.iter_mut().find(|node| node.name == READ)?;
    read.inputs
        .splice(1..1, (1..=bars).map(|bars| names(bars)[1].clone()));
    Some((channels, bars * recalled))
}

/// Lets a generator that follows bars recall some of them, unless it does; it plays the same until
/// it is trained. Returns others as they are.
///
/// # Errors
/// Returns an error if the model has no prior, or its layers do not read what those of
/// [`untrained`] do.
pub fn recalling(generator: Model, bars: usize) -> anyhow::Result<Model> {
    let known = recalled_bars(&generator)?;
    if !known.is_empty() || !conditions(&generator)?.contains(&Condition::Bars) {
        return Ok(generator);
    }
    let mut header = generator.header().clone();
    let prior = header
        .methods
        .iter_mut()
        .find(|method| method.name == PRIOR)
        .context("it has no prior")?;
    let Some((first, added)) = add_recall(prior, bars) else {
        return Ok(generator);
    };
    let reader = prior
        .nodes
        .iter()
        .find(|node| node.inputs.iter().any(|input| input == READ))
        .context("nothing is read")?;
    let weight = format!(
        "{}.{}",
        reader.name,
        if matches!(reader.op, Op::Gru(_)) {
            "weight_ih"
        } else {
            "weight"
        }
    );
    let steer = header
        .controls
        .iter()
        .position(|control| control.name == STEER)
        .unwrap_or(header.controls.len());
    header.controls.insert(steer, recall_control());
    let mut weights = generator.weights().clone();
    let old = weights
        .iter()
        .find(|(name, _)| **name == *weight)
        .with_context(|| format!("it has no weight {weight}"))?
        .1;
    let (outputs, inputs) = (old.shape()[0], old.shape()[1]);
    let floats = old.floats();
    let wider = floats.chunks_exact(inputs).flat_map(|row| {
        let (before, after) = row.split_at(first);
        [before, &vec![0.0; added], after].concat()
    });
    let wider = Tensor::new(&[outputs, inputs + added], wider.collect());
    weights.insert(weight, wider);
    Ok(Model::new(header, weights)?)
}

/// Returns a generator with changes to nodes of its prior.
///
/// # Errors
/// Returns an error if a changed node is not sound.
pub fn with_nodes(generator: &Model, change: impl FnMut(&mut Node)) -> anyhow::Result<Model> {
    let mut header = generator.header().clone();
    let methods = header
        .methods
        .iter_mut()
        .filter(|method| method.name == PRIOR);
    methods
        .flat_map(|method| &mut method.nodes)
        .for_each(change);
    Ok(Model::new(header, generator.weights().clone())?)
}

/// Returns a generator that draws no Gaussian below this share of the likeliest one's probability.
///
/// # Errors
/// As [`with_nodes`].
pub fn with_least(generator: &Model, share: f32) -> anyhow::Result<Model> {
    with_nodes(generator, |node| {
        if let Op::DrawMixture(DrawMixture { least, .. }) = &mut node.op {
            *least = share;
        }
    })
}

fn recall_control() -> Control {
    let recall = "How far the model keeps to what it played in the bars before: 1 is all the way, 0 not at all.";
    Control::linear(RECALL, "", (0.0, 1.0), 1.0, recall)
}

/// Returns the number of bars before whose latents a prior reads.
fn recall(config: &PriorConfig, conditions: &[MeasuredCondition]) -> usize {
    let follows_bars = conditions
        .iter()
        .any(|known| known.condition == Condition::Bars);
    if follows_bars {
        config.network.recall
    } else {
        0
    }
}

/// Adds a layer of attention and one of each frame by itself, both after normalisation and beside
/// what they read (Xiong et al., arXiv:2002.04745); returns the name of its value.
fn attention_layer(
    network: &PriorNetworkConfig,
    layer: usize,
    read: &str,
    add: &mut impl FnMut(&str, &[&str], Op),
) -> String {
    let &PriorNetworkConfig {
        units,
        heads,
        window,
        ..
    } = network;
    let name = |part: &str| format!("prior.attention.{layer}.{part}");
    let mut next = |part: &str, inputs: &[&str], op: Op| {
        let name = name(part);
        add(&name, inputs, op);
        name
    };
    let normal = next("norm", &[read], Op::LayerNorm);
    let [query, key, value] = ["query", "key", "value"]
        .map(|part| next(part, &[&normal], Op::Linear(Linear { outputs: units })));
    let attended = next(
        "attended",
        &[&query, &key, &value],
        Op::Attention(Attention { heads, window }),
    );
    let mixed = next("mixed", &[&attended], Op::Linear(Linear { outputs: units }));
    let sum = next("sum", &[read, &mixed], Op::Add);
    let normal = next("wide.norm", &[&sum], Op::LayerNorm);
    let wide = next(
        "wide",
        &[&normal],
        Op::Linear(Linear {
            outputs: WIDER * units,
        }),
    );
    let active = next("wide.active", &[&wide], Op::Activation(Activation::Silu));
    let narrow = next("narrow", &[&active], Op::Linear(Linear { outputs: units }));
    next("out", &[&sum, &narrow], Op::Add)
}

fn controls(config: &PriorConfig, conditions: &[MeasuredCondition]) -> Vec<Control> {
    let chance = "How much is left to chance: 1 is as learnt, 0 always the likeliest.";
    let listen =
        "How far the model goes on from the input instead of what it has played: 1 is all the way.";
    let mut controls = vec![
        Control::linear(TEMPERATURE, "", (0.0, 2.0), 1.0, chance),
        Control::linear(LISTEN, "", (0.0, 1.0), 0.0, listen),
    ];
    if recall(config, conditions) > 0 {
        controls.push(recall_control());
    }
    if !conditions.is_empty() {
        let steer =
            "How far the model follows the knobs after this one: 1 is all the way, 0 not at all.";
        controls.push(Control::linear(STEER, "", (0.0, 1.0), 1.0, steer));
    }
    controls.extend(conditions.iter().map(
        |MeasuredCondition {
             condition,
             spread,
             range,
             names,
         }| {
            let default = spread.mean.clamp(range.0, range.1);
            let control = |description: String| {
                Control::linear(
                    condition.control(),
                    condition.unit(),
                    *range,
                    default,
                    description,
                )
            };
            if names.is_empty() {
                return control(condition.description().into());
            }
            let names: Vec<String> = names
                .iter()
                .enumerate()
                .map(|(index, name)| format!("{index} {name}"))
                .collect();
            control(format!(
                "{}: {}.",
                condition.description(),
                names.join(", ")
            ))
            .in_steps()
        },
    ));
    controls
}

/// Draws initial weights: of matrices as PyTorch does, uniform within `1 / √inputs`; a mixture of
/// Gaussians of deviation 1 around different means.
fn initial_weights(
    prior: &Method,
    latents: &[Spread],
    seed: u64,
) -> anyhow::Result<Vec<(String, Tensor)>> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let shapes = prior.infer()?;
    let mut weights = Vec::new();
    for (node, inputs) in prior.nodes.iter().zip(shapes.node_inputs()) {
        for spec in node.op.weights(&inputs) {
            let count = latents.len();
            let fan_in = match node.op {
                Op::Gru(Gru { hidden, .. }) => hidden,
                _ => inputs[0].channels,
            };
            let bound = 1.0 / (fan_in as f32).sqrt();
            let mut values: Vec<f32> = (0..spec.shape.iter().product())
                .map(|_| random.random_range(-bound..bound))
                .collect();
            match (&node.op, spec.name) {
                (Op::LayerNorm, "weight") => values.fill(1.0),
                (Op::LayerNorm, _) => values.fill(0.0),
                (&Op::Attention(Attention { heads, window }), _) => {
                    values = nearness(heads, window)
                }
                _ => {}
            }
            match (node.name.as_str(), spec.name) {
                (LATENTS, "weight") => {
                    let diagonal = |index: usize| index / count == index % count;
                    let deviation = |index: usize| {
                        if diagonal(index) {
                            latents[index % count].deviation
                        } else {
                            0.0
                        }
                    };
                    values = (0..count * count).map(deviation).collect();
                }
                (HEARD_GROUP, "weight") => {
                    // `[frame][latent][heard latent][heard frame]`
                    values.fill(0.0);
                    let group = spec.shape[2];
                    for (output, taps) in values.chunks_exact_mut(count * group).enumerate() {
                        let (frame, latent) = (output / count, output % count);
                        taps[latent * group + frame] = 1.0 / latents[latent].deviation;
                    }
                }
                (HEARD_GROUP, _) => {
                    let bias = latents
                        .iter()
                        .map(|spread| -spread.mean / spread.deviation)
                        .cycle();
                    values
                        .iter_mut()
                        .zip(bias)
                        .for_each(|(value, bias)| *value = bias);
                }
                (ANGLES, "weight") => values = angles().map(|(turn, _)| turn).collect(),
                (ANGLES, _) => values = angles().map(|(_, start)| start).collect(),
                (SNAKE, _) => values.fill(1.0),
                (LATENTS, _) => values = latents.iter().map(|spread| spread.mean).collect(),
                (HEADS, "bias") => {
                    let gaussians = (values.len() - components(prior)?) / 2;
                    let end = values.len();
                    values[..end - 2 * gaussians].fill(0.0);
                    values[end - 2 * gaussians..end - gaussians]
                        .fill_with(|| random.random_range(-1.0..1.0));
                    values[end - gaussians..].fill(UNIT_SCALE);
                }
                _ => {}
            }
            weights.push((
                format!("{}.{}", node.name, spec.name),
                Tensor::new(&spec.shape, values),
            ));
        }
    }
    Ok(weights)
}

/// Returns the Gaussians of a prior's mixture.
///
/// # Errors
/// Returns an error if the method draws from none.
pub fn components(prior: &Method) -> anyhow::Result<usize> {
    let drawn = prior
        .nodes
        .iter()
        .find(|node| node.name == DRAWN)
        .map(|node| node.op.clone());
    match drawn {
        Some(Op::DrawMixture(DrawMixture { components, .. })) => Ok(components),
        _ => anyhow::bail!("its prior draws from no mixture {DRAWN:?}"),
    }
}

/// Returns the graph to train: the prior up to its mixture, whose logits, means and scales it
/// shows. Frames before are inputs.
///
/// # Errors
/// Returns an error if the model is no generator of [`untrained`].
pub fn training_graph(generator: &Model) -> anyhow::Result<Method> {
    let prior = generator.method(PRIOR)?;
    let end = prior
        .nodes
        .iter()
        .position(|node| node.name == DRAWN)
        .context("its prior draws from no mixture")?;
    let mut known = Method {
        nodes: prior.nodes[..end].to_vec(),
        outputs: Vec::new(),
        ..prior.clone()
    };
    if let Some(before) = known.nodes.iter().position(|node| node.name == BEFORE) {
        known.nodes.drain(..=before);
        known
            .inputs
            .retain(|port| ![HEARD, LISTEN].contains(&port.name.as_str()));
        known.inputs[0].name = BEFORE.into();
    }
    Ok(showing(&known, &MIXTURE)?)
}

/// Returns the spread of the latents of a generator.
///
/// # Errors
/// Returns an error if the model is no generator of [`untrained`].
pub fn spreads(generator: &Model) -> anyhow::Result<Vec<Spread>> {
    let weight = |parameter: &str| {
        let name = format!("{LATENTS}.{parameter}");
        let found = generator
            .weights()
            .iter()
            .find(|(known, _)| **known == *name);
        Ok::<_, anyhow::Error>(
            found
                .with_context(|| format!("it has no weight {name}"))?
                .1
                .floats()
                .into_owned(),
        )
    };
    let (factors, means) = (weight("weight")?, weight("bias")?);
    ensure!(
        factors.len() == means.len() * means.len(),
        "its latents are not scaled one by one"
    );
    let spread = |(index, mean): (usize, &f32)| Spread {
        mean: *mean,
        deviation: factors[index * (means.len() + 1)],
    };
    let spreads: Vec<Spread> = means.iter().enumerate().map(spread).collect();
    ensure!(
        spreads.iter().all(|spread| spread.deviation > 0.0),
        "a deviation of its latents is not above 0"
    );
    Ok(spreads)
}

/// Returns the conditions that a generator depends on, in the order of its ports.
///
/// # Errors
/// Returns an error if it has an input of another meaning.
pub fn conditions(generator: &Model) -> anyhow::Result<Vec<Condition>> {
    let ports = generator
        .method(PRIOR)?
        .inputs
        .iter()
        .map(|port| port.name.as_str());
    let others = [TEMPERATURE, STEER, HEARD, LISTEN, RECALL];
    let measured = ports.filter(|name| {
        !name.ends_with(PREVIOUS) && !name.contains(BARS_BEFORE) && !others.contains(name)
    });
    let condition = |name: &str| {
        let known = Condition::ALL
            .into_iter()
            .find(|condition| condition.name() == name);
        known.with_context(|| format!("its prior has an input {name:?}, which is not known"))
    };
    measured.map(condition).collect()
}

/// Returns an untrained generator of other sizes with the codec, the inputs and the knobs of
/// another one.
///
/// # Errors
/// Returns an error if that is no generator of [`untrained`], or the sizes make no valid model.
pub fn untrained_like(generator: &Model, config: &PriorConfig) -> anyhow::Result<Model> {
    let nodes = &generator.method(PRIOR)?.nodes;
    let measured = |condition: Condition| {
        let scaled = format!("prior.{}.scaled", condition.name());
        let spread = match nodes
            .iter()
            .find(|node| node.name == scaled)
            .map(|node| &node.op)
        {
            Some(Op::Affine(Affine { scale, offset })) if condition != Condition::Bars => Spread {
                mean: -offset / scale,
                deviation: 1.0 / scale,
            },
            _ => Spread {
                mean: 0.0,
                deviation: 1.0,
            },
        };
        let control = generator
            .header()
            .controls
            .iter()
            .find(|control| control.name == condition.control());
        let range = control.map_or((0.0, 1.0), |control| (control.min, control.max));
        let names = if condition == Condition::Style {
            1 + range.1 as usize
        } else {
            0
        };
        MeasuredCondition {
            condition,
            spread,
            range,
            names: vec![String::new(); names],
        }
    };
    let conditions: Vec<MeasuredCondition> =
        conditions(generator)?.into_iter().map(measured).collect();
    let mut config = config.clone();
    config.network.recall = recalled_bars(generator)?.into_iter().max().unwrap_or(0);
    let student = untrained(
        &config,
        &codec_of(generator)?,
        &spreads(generator)?,
        &conditions,
    )?;
    let mut header = student.header().clone();
    // Other controls would be other parameters in the player.
    header.controls.clone_from(&generator.header().controls);
    Ok(Model::new(header, student.weights().clone())?)
}

/// Returns how many bars before each input for the latents of a bar before lies, in the order of
/// the ports.
///
/// # Errors
/// Returns an error if it has no prior.
pub fn recalled_bars(generator: &Model) -> anyhow::Result<Vec<usize>> {
    Ok(generator
        .method(PRIOR)?
        .recalls()
        .map(|recall| recall.bars)
        .collect())
}

/// Returns initial biases of attention, `[head][distance]`: they fall with the distance, for each
/// head less than for the one before (Press et al., arXiv:2108.12409).
fn nearness(heads: usize, window: usize) -> Vec<f32> {
    let of_head = |head: usize| {
        let slope = (-8.0 * (head + 1) as f32 / heads as f32).exp2();
        (0..window).map(move |distance| -slope * distance as f32)
    };
    (0..heads).flat_map(of_head).collect()
}

/// Checks that a generator which knows styles knows as many as recordings have.
///
/// # Errors
/// Returns an error that states both numbers.
pub fn ensure_styles(generator: &Model, found: usize) -> anyhow::Result<()> {
    let control = generator
        .header()
        .controls
        .iter()
        .find(|control| control.name == Condition::Style.control());
    let Some(known) = control.map(|control| control.max as usize + 1) else {
        return Ok(());
    };
    ensure!(
        known == found,
        "the generator knows {known} styles; the recordings are in {found} folders"
    );
    Ok(())
}

/// Returns the angles whose squared sines tell the position in the bar: radians a bar, and those at
/// its beginning. Each number of cycles has two, an eighth of a turn apart, of which one has the
/// cosine and the other the sine.
fn angles() -> impl Iterator<Item = (f32, f32)> {
    let pair = |cycles: f32| [0.0, 0.25].map(|start| (PI * cycles, -PI * start));
    CYCLES.into_iter().flat_map(pair)
}

/// Tells whether a weight is learnt: those of a prior, except what scales its latents and what
/// tells the position in the bar.
#[must_use]
pub fn is_learnt(name: &str) -> bool {
    name.starts_with("prior.")
        && ![LATENTS, HEARD_GROUP, ANGLES, SNAKE]
            .iter()
            .any(|fixed| name.starts_with(fixed))
}
