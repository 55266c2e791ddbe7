//! Parts and properties of a generator.

use anyhow::{Context, ensure};
use ondes_engine::model::bars::BARS_BEFORE;
use ondes_engine::model::graph::PREVIOUS;
use ondes_engine::model::{Header, Kind, Method, Model, Node, Op, Port, Tensor, Weights};
use ondes_engine::ops::DrawMixture;

use super::conditions::{Condition, Spread};
use super::names::*;
use crate::tasks::codec::network::showing;
use crate::tasks::control::control;

/// Returns the weights of some methods, in F32.
pub(super) fn weights_of(model: &Model, methods: &[Method]) -> Weights {
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

/// Returns a generator with changed nodes of its prior.
///
/// # Errors
/// Returns an error if a changed node is not valid.
pub fn with_nodes(generator: &Model, change: impl FnMut(&mut Node)) -> anyhow::Result<Model> {
    let mut header = generator.header().clone();
    let methods = header
        .methods
        .iter_mut()
        .filter(|method| method.name == PRIOR);
    methods
        .flat_map(|method| &mut method.nodes)
        .for_each(change);
    Ok(generator.with_header(header)?)
}

/// Returns a generator with another threshold for sampling: Gaussians below this share of the
/// likeliest one's probability are not drawn (min-p).
///
/// # Errors
/// As [`with_nodes`].
pub fn with_min_p(generator: &Model, share: f32) -> anyhow::Result<Model> {
    with_nodes(generator, |node| {
        if let Op::DrawMixture(DrawMixture { least, .. }) = &mut node.op {
            *least = share;
        }
    })
}

/// Returns the node of that name.
pub(super) fn node<'a>(method: &'a Method, name: &str) -> Option<&'a Node> {
    method.nodes.iter().find(|node| node.name == name)
}

/// Returns the number of Gaussians in a prior's mixture.
///
/// # Errors
/// Returns an error if the method has no mixture.
pub fn components(prior: &Method) -> anyhow::Result<usize> {
    match node(prior, DRAWN).map(|node| &node.op) {
        Some(Op::DrawMixture(DrawMixture { components, .. })) => Ok(*components),
        _ => anyhow::bail!("its prior draws from no mixture {DRAWN:?}"),
    }
}

/// Returns the graph to train: the prior up to its mixture, whose logits, means and deviations are
/// the outputs. The previous frame is an input.
///
/// # Errors
/// Returns an error if the model is no generator of [`untrained`](super::network::untrained).
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
    if let Some(before) = known
        .nodes
        .iter()
        .position(|node| node.name == PREVIOUS_FRAME)
    {
        known.nodes.drain(..=before);
        known
            .inputs
            .retain(|port| ![INPUT_LATENTS, INPUT_SHARE].contains(&port.name.as_str()));
        known.inputs[0].name = PREVIOUS_FRAME.into();
    }
    Ok(showing(&known, &MIXTURE)?)
}

/// Returns mean and deviation of the latents of a generator, from its standardisation.
///
/// # Errors
/// Returns an error if the model is no generator of [`untrained`](super::network::untrained).
pub fn spreads(generator: &Model) -> anyhow::Result<Vec<Spread>> {
    let weight = |parameter: &str| {
        let name = format!("{OUTPUT_LATENTS}.{parameter}");
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
    let others = [
        TEMPERATURE,
        CONDITIONING,
        INPUT_LATENTS,
        INPUT_SHARE,
        MEMORY_SHARE,
    ];
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

/// Returns the distances of the remembered bars from the present one, in the order of the ports.
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

/// Checks that a generator with styles has as many as the recordings.
///
/// # Errors
/// Returns an error that states both numbers.
pub fn ensure_styles(generator: &Model, found: usize) -> anyhow::Result<()> {
    let style = control(generator, Condition::Style.control());
    let Some(known) = style.map(|control| control.max as usize + 1) else {
        return Ok(());
    };
    ensure!(
        known == found,
        "the generator knows {known} styles; the recordings are in {found} folders"
    );
    Ok(())
}

/// Tells whether a weight is trained: those of a prior, except standardisation and positional
/// encoding.
#[must_use]
pub fn is_learnt(name: &str) -> bool {
    name.starts_with("prior.")
        && ![OUTPUT_LATENTS, STANDARDIZED_INPUT, BAR_ANGLES, BAR_SNAKE]
            .iter()
            .any(|fixed| name.starts_with(fixed))
}
