//! `.nam` files of Neural Amp Modeler, versions 0.5 to 0.7.
//!
//! There is one file for each architecture, which adds its nodes to a [`GraphBuilder`] and returns
//! the output node; all weights are stored in one flat list. A [`container`] contains complete
//! models of several sizes, and a WaveNet may contain another model that computes its condition.

mod activation;
mod container;
mod convnet;
mod film;
mod layer;
mod linear;
mod lstm;
mod metadata;
mod wavenet;

use super::field::Field;
use super::graph_builder::{BuiltMethod, GraphBuilder, ModelInfo, audio_port, model};
use super::weight_reader::WeightReader;
use crate::model::{Model, ModelError, Variant};

/// Newest known version: major, minor, patch.
const VERSION: [u64; 3] = [0, 7, 0];
/// Oldest known minor version.
const OLDEST_MINOR: u64 = 5;
/// Sample rate of a file that states none, Hz.
const RATE: u32 = 48_000;
/// Deepest nesting of models.
const DEPTH: usize = 4;

/// Output of an architecture.
struct OutputNode {
    /// Name of the node.
    node: String,
    channels: usize,
}

pub(super) fn import(root: &Field<'_>, notes: &mut Vec<String>) -> Result<Model, ModelError> {
    check_version(root, notes)?;
    let rate = rate(root)?;
    if let Some(stated) = root.find("sample_rate").filter(is_unknown) {
        notes.push(format!(
            "the sample rate {} means none; {rate} Hz are assumed",
            stated.number()?
        ));
    }
    let (methods, variants) = match root.need("architecture")?.text()? {
        "SlimmableContainer" => container::methods(root, notes)?,
        _ => (vec![method(root, "forward")?], Vec::new()),
    };
    let (mut methods, mut variants): (Vec<BuiltMethod>, Vec<Variant>) = (methods, variants);
    if variants.is_empty() {
        let slices = wavenet::slices(root, notes)?;
        for wavenet::ChannelSlice { channels, up_to } in slices {
            let name = format!("forward.{channels}");
            methods.push(sliced(root, &name, channels)?);
            variants.push(Variant {
                name: format!("{channels} channels"),
                method: name,
                room: None,
                up_to,
                levels: None,
            });
        }
    }
    let largest = container::largest(root);
    let card = metadata::card(&std::iter::once(root).chain(&largest).collect::<Vec<_>>());
    model(
        methods,
        ModelInfo {
            rate,
            card,
            controls: Vec::new(),
            variants,
        },
    )
}

/// Returns an error for an unsupported version.
fn check_version(root: &Field<'_>, notes: &mut Vec<String>) -> Result<(), ModelError> {
    let field = root.need("version")?;
    let text = field.text()?;
    let parts: Vec<u64> = text
        .split('.')
        .map_while(|part| part.parse().ok())
        .collect();
    let [major, minor, patch] = parts[..] else {
        return Err(field.error(&format!("{text:?} is not a version such as 0.7.0")));
    };
    if major != VERSION[0] || !(OLDEST_MINOR..=VERSION[1]).contains(&minor) {
        return Err(field.error(&format!(
            "{text} is not supported; supported are 0.{OLDEST_MINOR} to 0.{}",
            VERSION[1]
        )));
    }
    if minor == VERSION[1] && patch > VERSION[2] {
        notes.push(format!(
            "version {text} is newer than 0.7.0; features added since then are ignored"
        ));
    }
    Ok(())
}

/// Returns the sample rate in Hz, for a container that states none that of its largest model.
fn rate(root: &Field<'_>) -> Result<u32, ModelError> {
    let stated = |root: &Field<'_>| {
        root.find("sample_rate")
            .filter(|rate| !is_unknown(rate))
            .map(|rate| rate.rate())
    };
    stated(root)
        .or_else(|| stated(&container::largest(root)?))
        .unwrap_or(Ok(RATE))
}

/// Returns whether a sample rate is none: files of some programs state 0 or -1, as Neural Amp
/// Modeler does within itself.
fn is_unknown(rate: &Field<'_>) -> bool {
    rate.number().is_ok_and(|rate| rate == 0.0 || rate == -1.0)
}

/// Builds a model as the method called `name`.
fn method(root: &Field<'_>, name: &str) -> Result<BuiltMethod, ModelError> {
    // Methods whose nodes have equal names would share their weights.
    let builder = name
        .split_once('.')
        .map_or_else(GraphBuilder::default, |(_, variant)| {
            GraphBuilder::named(variant)
        });
    finish(root, name, builder, None)
}

/// Builds a model with the first `channels` channels of its WaveNet.
fn sliced(root: &Field<'_>, name: &str, channels: usize) -> Result<BuiltMethod, ModelError> {
    finish(
        root,
        name,
        GraphBuilder::named(&format!("slice{channels}")),
        Some(channels),
    )
}

fn finish(
    root: &Field<'_>,
    name: &str,
    mut builder: GraphBuilder,
    slice: Option<usize>,
) -> Result<BuiltMethod, ModelError> {
    let inputs = inputs(root)?;
    let OutputNode { node, .. } = add(root, &mut builder, slice, 0)?;
    builder.method(name, &node, vec![audio_port(inputs)], rate(root)?)
}

/// Returns the number of audio input channels.
fn inputs(root: &Field<'_>) -> Result<usize, ModelError> {
    let config = root.need("config")?;
    let field = ["in_channels", "input_size"]
        .iter()
        .find_map(|name| config.find(name));
    field.map_or(Ok(1), |field| field.count())
}

/// Adds a model of any architecture, fed by the audio input.
fn add(
    root: &Field<'_>,
    builder: &mut GraphBuilder,
    slice: Option<usize>,
    depth: usize,
) -> Result<OutputNode, ModelError> {
    if depth > DEPTH {
        return Err(root.error(&format!(
            "models are nested too deeply; the limit is {DEPTH}"
        )));
    }
    let architecture = root.need("architecture")?;
    let config = root.need("config")?;
    let mut weights = WeightReader::new(root.need("weights")?)?;
    let output = match architecture.text()? {
        "WaveNet" => wavenet::add(&config, &mut weights, builder, slice, depth),
        "LSTM" => lstm::add(&config, &mut weights, builder),
        "ConvNet" => convnet::add(&config, &mut weights, builder),
        "Linear" => linear::add(&config, &mut weights, builder),
        "SlimmableContainer" => {
            Err(architecture.error("a container cannot be part of another model"))
        }
        other => Err(architecture.error(&format!("unknown architecture {other:?}"))),
    }?;
    weights.finish()?;
    Ok(output)
}
