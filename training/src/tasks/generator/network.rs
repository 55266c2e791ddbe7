//! Graph of a prior: recurrent layers and attention that read the previous frame and the
//! conditions, and a mixture of Gaussians from which the next frame is sampled.
//!
//! A generator has the methods of its codec and [`PRIOR`], which generates latents. Within it
//! latents are standardised; several frames may be sampled at once, as one with more channels (a
//! group).

use anyhow::Context;
use ondes_engine::model::graph::PREVIOUS;
use ondes_engine::model::{
    Activation, Card, Control, FORMAT, Header, Kind, Method, Model, Op, Port,
};
use ondes_engine::ops::{Affine, Attention, CodeSum, DrawMixture, Interleave};

use super::bar_memory::{add_bar_memory, memory_control};
use super::conditions::{Condition, MeasuredCondition, Spread};
use super::config::{PriorConfig, PriorNetworkConfig};
use super::initial_weights::{CYCLES_PER_BAR, initial_weights};
use super::inspect::{codec_of, conditions, node, recalled_bars, spreads, weights_of};
use super::names::*;
use crate::tasks::control::control;
use crate::tasks::graph_builder::{GraphBuilder, port};

/// Channels of the embedding of a style.
const STYLE_CHANNELS: usize = 8;
/// Units of the feed-forward layer after attention, per unit of the network.
const FEED_FORWARD_RATIO: usize = 4;
/// Least deviation of a Gaussian: training would make those of silence infinitely narrow.
const MIN_SCALE: f32 = 0.05;
/// Number of the noise for sampling; codecs use lower ones.
const DRAW_NUMBER: u32 = 100;

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
        oversampling: 1,
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

/// Sizes of the frames that a prior samples.
#[derive(Clone, Copy)]
struct FrameSize {
    /// Channels of the codec's latents.
    latents: usize,
    /// Samples per frame of the codec.
    ratio: usize,
    /// Frames of the codec that are sampled at once.
    group: usize,
}

/// Builds the method [`PRIOR`].
fn prior(
    config: &PriorConfig,
    latents: usize,
    ratio: usize,
    conditions: &[MeasuredCondition],
) -> Method {
    let network = &config.network;
    let size = FrameSize {
        latents,
        ratio,
        group: network.group,
    };
    let (channels, block) = (size.group * latents, size.group * ratio);
    let mut graph = GraphBuilder::default();
    let mut inputs = previous_frame(&mut graph, size);
    let mut read = vec![PREVIOUS_FRAME.to_owned()];
    if !conditions.is_empty() {
        inputs.push(port(CONDITIONING, 1, block));
        read.push(CONDITIONING.into());
    }
    for condition in conditions {
        inputs.push(port(condition.condition.name(), 1, block));
        read.push(conditioning(&mut graph, condition));
    }
    graph.concat(LAYER_INPUT, &read);
    let mut value = recurrent_layers(&mut graph, network);
    for layer in 0..network.attention_layers {
        value = attention_layer(&mut graph, network, layer, &value);
    }
    mixture(&mut graph, network, &value, channels);
    let factor = size.group;
    graph.add(
        "prior.frames",
        &[DRAWN],
        Op::Interleave(Interleave { factor }),
    );
    graph.linear(OUTPUT_LATENTS, "prior.frames", latents);
    let outputs = vec![
        port(OUTPUT_LATENTS, latents, ratio),
        port(DRAWN, channels, block),
    ];
    let mut prior = graph.into_method(PRIOR, block, inputs, outputs);
    add_bar_memory(&mut prior, remembered_bars(config, conditions));
    prior
}

/// Adds the previous frame: the sampled one, cross-faded to that of the input. Returns its ports
/// and that of the temperature.
fn previous_frame(graph: &mut GraphBuilder, size: FrameSize) -> Vec<Port> {
    let FrameSize {
        latents,
        ratio,
        group,
    } = size;
    let (channels, block) = (group * latents, group * ratio);
    let previous = format!("{DRAWN}{PREVIOUS}");
    graph.strided(STANDARDIZED_INPUT, INPUT_LATENTS, channels, group, group);
    let negative = graph.affine("prior.drawn.negative", &previous, -1.0, 0.0);
    let change = graph.add(
        "prior.heard.change",
        &[STANDARDIZED_INPUT, &negative],
        Op::Add,
    );
    let share = graph.add("prior.heard.share", &[&change, INPUT_SHARE], Op::Multiply);
    graph.add(PREVIOUS_FRAME, &[&previous, &share], Op::Add);
    vec![
        port(&previous, channels, block),
        port(TEMPERATURE, 1, block),
        port(INPUT_LATENTS, latents, ratio),
        port(INPUT_SHARE, 1, block),
    ]
}

/// Adds a condition, encoded and multiplied by the strength of the conditioning: zeros stand for an
/// unknown condition.
fn conditioning(graph: &mut GraphBuilder, measured: &MeasuredCondition) -> String {
    let name = measured.condition.name();
    let scaled = format!("prior.{name}.scaled");
    match measured.condition {
        Condition::Bars => {
            // Snake of `x` minus `x` is the squared sine.
            graph.linear(BAR_ANGLES, name, 2 * CYCLES_PER_BAR.len());
            graph.add(BAR_SNAKE, &[BAR_ANGLES], Op::Snake);
            let negative = graph.affine("prior.bars.negative", BAR_ANGLES, -1.0, 0.0);
            let squares = graph.add("prior.bars.squares", &[BAR_SNAKE, &negative], Op::Add);
            graph.affine(&scaled, &squares, 2.0, -1.0);
        }
        Condition::Style => {
            let embedding = Op::CodeSum(CodeSum {
                codes: measured.names.len(),
                channels: STYLE_CHANNELS,
            });
            graph.add(&scaled, &[name], embedding);
        }
        Condition::Density | Condition::Loudness => {
            let value = if measured.condition == Condition::Loudness {
                graph.affine(CALIBRATED_LOUDNESS, name, 1.0, 0.0)
            } else {
                name.to_owned()
            };
            let scale = 1.0 / measured.spread.deviation;
            graph.affine(&scaled, &value, scale, -scale * measured.spread.mean);
        }
    }
    graph.add(
        &format!("prior.{name}"),
        &[&scaled, CONDITIONING],
        Op::Multiply,
    )
}

/// Adds the recurrent layers, with residual connections from the second on, or a linear layer
/// without any.
fn recurrent_layers(graph: &mut GraphBuilder, network: &PriorNetworkConfig) -> String {
    if network.layers == 0 {
        return graph.linear("prior.embedded", LAYER_INPUT, network.units);
    }
    let mut value = graph.gru("prior.memory.0", LAYER_INPUT, network.units);
    for layer in 1..network.layers {
        let memory = graph.gru(&format!("prior.memory.{layer}"), &value, network.units);
        value = graph.add(&format!("prior.sum.{layer}"), &[&value, &memory], Op::Add);
    }
    value
}

/// Adds a pre-norm layer of attention and a feed-forward layer, both with residual connections
/// (Xiong et al., arXiv:2002.04745).
fn attention_layer(
    graph: &mut GraphBuilder,
    network: &PriorNetworkConfig,
    layer: usize,
    input: &str,
) -> String {
    let &PriorNetworkConfig {
        units,
        heads,
        window,
        ..
    } = network;
    let name = |part: &str| format!("prior.attention.{layer}.{part}");
    let normal = graph.add(&name("norm"), &[input], Op::LayerNorm);
    let [query, key, value] =
        ["query", "key", "value"].map(|part| graph.linear(&name(part), &normal, units));
    let attention = Op::Attention(Attention { heads, window });
    let attended = graph.add(&name("attended"), &[&query, &key, &value], attention);
    let mixed = graph.linear(&name("mixed"), &attended, units);
    let sum = graph.add(&name("sum"), &[input, &mixed], Op::Add);
    let normal = graph.add(&name("wide.norm"), &[&sum], Op::LayerNorm);
    let wide = graph.linear(&name("wide"), &normal, FEED_FORWARD_RATIO * units);
    let active = graph.activation(&name("wide.active"), &wide, Activation::Silu);
    let narrow = graph.linear(&name("narrow"), &active, units);
    graph.add(&name("out"), &[&sum, &narrow], Op::Add)
}

/// Adds the mixture of Gaussians and its sample.
fn mixture(graph: &mut GraphBuilder, network: &PriorNetworkConfig, value: &str, channels: usize) {
    let (components, gaussians) = (network.components, network.components * channels);
    let [logits, means, scales] = MIXTURE;
    // With the previous frame, so that the layers learn only what a linear prediction misses.
    graph.concat("prior.known", &[value, PREVIOUS_FRAME]);
    graph.linear(HEADS, "prior.known", components + 2 * gaussians);
    graph.split(logits, HEADS, 0, components);
    graph.split(means, HEADS, components, gaussians);
    let widths = graph.split("prior.widths", HEADS, components + gaussians, gaussians);
    let positive = graph.activation("prior.widths.positive", &widths, Activation::Softplus);
    graph.affine(scales, &positive, 1.0, MIN_SCALE);
    let draw = Op::DrawMixture(DrawMixture {
        components,
        least: network.least,
        number: DRAW_NUMBER,
    });
    graph.add(DRAWN, &[logits, means, scales, TEMPERATURE], draw);
}

/// Returns the number of remembered bars: none if the prior does not follow bars.
fn remembered_bars(config: &PriorConfig, conditions: &[MeasuredCondition]) -> usize {
    let follows_bars = conditions
        .iter()
        .any(|known| known.condition == Condition::Bars);
    if follows_bars {
        config.network.recall
    } else {
        0
    }
}

/// Returns the controls of the prior.
fn controls(config: &PriorConfig, conditions: &[MeasuredCondition]) -> Vec<Control> {
    let chance = "How much is left to chance: 1 is as learnt, 0 always the likeliest.";
    let listen =
        "How far the model goes on from the input instead of what it has played: 1 is all the way.";
    let mut controls = vec![
        Control::linear(TEMPERATURE, "", (0.0, 2.0), 1.0, chance),
        Control::linear(INPUT_SHARE, "", (0.0, 1.0), 0.0, listen),
    ];
    if remembered_bars(config, conditions) > 0 {
        controls.push(memory_control());
    }
    if !conditions.is_empty() {
        let steer =
            "How far the model follows the knobs after this one: 1 is all the way, 0 not at all.";
        controls.push(Control::linear(CONDITIONING, "", (0.0, 1.0), 1.0, steer));
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

/// Creates an untrained generator with the codec, the inputs and the controls of another one.
///
/// # Errors
/// Returns an error if that is no generator of [`untrained`], or the sizes make no valid model.
pub fn untrained_like(generator: &Model, config: &PriorConfig) -> anyhow::Result<Model> {
    let prior = generator.method(PRIOR)?;
    let measured = |condition: Condition| {
        let scaled = format!("prior.{}.scaled", condition.name());
        let spread = match node(prior, &scaled).map(|node| &node.op) {
            Some(Op::Affine(Affine { scale, offset })) if condition != Condition::Bars => Spread {
                mean: -offset / scale,
                deviation: 1.0 / scale,
            },
            _ => Spread::UNIT,
        };
        let range = control(generator, condition.control())
            .map_or((0.0, 1.0), |control| (control.min, control.max));
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
    Ok(student.with_header(header)?)
}
