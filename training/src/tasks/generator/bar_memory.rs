//! Memory of bars: inputs for the frames that a prior played at the same position some bars before.

use anyhow::Context;
use ondes_engine::model::bars::{BARS_BEFORE, Recall};
use ondes_engine::model::{Control, Method, Model, Node, Op, Port, Tensor};

use super::conditions::Condition;
use super::inspect::{conditions, recalled_bars};
use super::names::*;

/// Adds inputs for the frames that a prior played 1 to `bars` bars before. Returns the index of the
/// first new channel in [`LAYER_INPUT`], and the number of new channels; `None` if `bars` is 0.
pub(super) fn add_bar_memory(prior: &mut Method, bars: usize) -> Option<(usize, usize)> {
    let before = prior
        .nodes
        .iter()
        .position(|node| node.name == PREVIOUS_FRAME)
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
            format!("{PREVIOUS_FRAME}{BARS_BEFORE}{bars}"),
            format!("prior.recalled.{bars}"),
        ]
    };
    let ports = (1..=bars)
        .map(|bars| port(names(bars)[0].clone(), recalled))
        .chain([port(MEMORY_SHARE.into(), 1)]);
    let ports: Vec<Port> = ports.collect();
    let after = prior
        .inputs
        .iter()
        .position(|port| port.name == INPUT_SHARE)
        .map_or(0, |listen| listen + 1);
    prior.outputs.push(port(PREVIOUS_FRAME.into(), channels));
    prior.inputs.splice(after..after, ports);
    let nodes = (1..=bars).map(names).map(|[before, name]| Node {
        name,
        inputs: vec![before, MEMORY_SHARE.into()],
        op: Op::Multiply,
    });
    prior.nodes.splice(before + 1..before + 1, nodes);
    let read = prior
        .nodes
        .iter_mut()
        .find(|node| node.name == LAYER_INPUT)?;
    read.inputs
        .splice(1..1, (1..=bars).map(|bars| names(bars)[1].clone()));
    Some((channels, bars * recalled))
}

/// Returns a generator with a memory of bars. Its weights are zero, so that it plays the same until
/// it is trained. Generators that have a memory, or do not follow bars, are returned unchanged.
///
/// # Errors
/// Returns an error if the model has no prior of [`super::network`].
pub fn with_bar_memory(generator: Model, bars: usize) -> anyhow::Result<Model> {
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
    let Some((first, added)) = add_bar_memory(prior, bars) else {
        return Ok(generator);
    };
    let reader = prior
        .nodes
        .iter()
        .find(|node| node.inputs.iter().any(|input| input == LAYER_INPUT))
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
        .position(|control| control.name == CONDITIONING)
        .unwrap_or(header.controls.len());
    header.controls.insert(steer, memory_control());
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

pub(super) fn memory_control() -> Control {
    let recall = "How far the model keeps to what it played in the bars before: 1 is all the way, 0 not at all.";
    Control::linear(MEMORY_SHARE, "", (0.0, 1.0), 1.0, recall)
}
