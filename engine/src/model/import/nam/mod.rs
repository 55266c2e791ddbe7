//! `.nam` files of Neural Amp Modeler, versions 0.5 to 0.7: one file for each architecture.
//!
//! An architecture adds its nodes to a sketch and says which node is heard; all weights come in one flat list. A
//! [`container`] holds whole models of several sizes, and a WaveNet may hold another one that makes its condition.

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
use super::weight_reader::WeightReader;
use super::graph_builder::{ModelInfo, GraphBuilder, BuiltMethod, model, sound_port};
use crate::model::{ModelError, Model, Variant};

/// The newest version known: major, minor, patch.
const VERSION: [u64; 3] = [0, 7, 0];
/// The oldest minor version known.
const OLDEST_MINOR: u64 = 5;
/// Rate of a file that names none, Hz.
const RATE: u32 = 48_000;
/// How deep models may lie in models.
const DEPTH: usize = 4;

/// What an architecture made.
struct OutputNode {
    /// The node that is heard.
    node: String,
    channels: usize,
}

pub(super) fn import(root: &Field<'_>, notes: &mut Vec<String>) -> Result<Model, ModelError> {
    check_version(root, notes)?;
    let rate = rate(root)?;
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
            variants.push(Variant { name: format!("{channels} channels"), method: name, room: None, up_to });
        }
    }
    model(methods, ModelInfo { rate, card: metadata::card(root), controls: Vec::new(), variants })
}

/// An error for a version that may mean other things than we think.
fn check_version(root: &Field<'_>, notes: &mut Vec<String>) -> Result<(), ModelError> {
    let field = root.need("version")?;
    let text = field.text()?;
    let parts: Vec<u64> = text.split('.').map_while(|part| part.parse().ok()).collect();
    let [major, minor, patch] = parts[..] else {
        return Err(field.error(&format!("{text:?} is no version of the form 0.7.0")));
    };
    if major != VERSION[0] || !(OLDEST_MINOR..=VERSION[1]).contains(&minor) {
        return Err(field.error(&format!("{text} is not supported, 0.{OLDEST_MINOR} to 0.{} are", VERSION[1])));
    }
    if minor == VERSION[1] && patch > VERSION[2] {
        notes.push(format!("version {text} is newer than 0.7.0: what it has brought is not known"));
    }
    Ok(())
}

fn rate(root: &Field<'_>) -> Result<u32, ModelError> {
    root.find("sample_rate").map_or(Ok(RATE), |rate| rate.rate())
}

/// A whole model as a method of that name.
fn method(root: &Field<'_>, name: &str) -> Result<BuiltMethod, ModelError> {
    // Methods whose nodes share a name would share their weights.
    let builder = name.split_once('.').map_or_else(GraphBuilder::default, |(_, variant)| GraphBuilder::named(variant));
    finish(root, name, builder, None)
}

/// The same with that many channels of its WaveNet.
fn sliced(root: &Field<'_>, name: &str, channels: usize) -> Result<BuiltMethod, ModelError> {
    finish(root, name, GraphBuilder::named(&format!("slice{channels}")), Some(channels))
}

fn finish(root: &Field<'_>, name: &str, mut builder: GraphBuilder, slice: Option<usize>) -> Result<BuiltMethod, ModelError> {
    let inputs = inputs(root)?;
    let OutputNode { node, .. } = add(root, &mut builder, slice, 0)?;
    builder.method(name, &node, vec![sound_port(inputs)], rate(root)?)
}

/// Channels of the sound that a model hears.
fn inputs(root: &Field<'_>) -> Result<usize, ModelError> {
    let config = root.need("config")?;
    let field = ["in_channels", "input_size"].iter().find_map(|name| config.find(name));
    field.map_or(Ok(1), |field| field.count())
}

/// Adds a model of any architecture that hears the sound.
fn add(root: &Field<'_>, builder: &mut GraphBuilder, slice: Option<usize>, depth: usize) -> Result<OutputNode, ModelError> {
    if depth > DEPTH {
        return Err(root.error("models lie too deep in models"));
    }
    let architecture = root.need("architecture")?;
    let config = root.need("config")?;
    let mut weights = WeightReader::new(root.need("weights")?)?;
    let heard = match architecture.text()? {
        "WaveNet" => wavenet::add(&config, &mut weights, builder, slice, depth),
        "LSTM" => lstm::add(&config, &mut weights, builder),
        "ConvNet" => convnet::add(&config, &mut weights, builder),
        "Linear" => linear::add(&config, &mut weights, builder),
        "SlimmableContainer" => Err(architecture.error("a container cannot be part of another model")),
        other => Err(architecture.error(&format!("{other:?} is not known"))),
    }?;
    weights.finish()?;
    Ok(heard)
}
