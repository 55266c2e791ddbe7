//! Identity of a model: a hash of what computes its sound.
//!
//! Two hashes exist. The identity covers graph, weights, rates, ranges of controls and performance
//! settings; a project finds its model by it. The [checksum](checksum) covers the whole header,
//! card included, and detects damage of a file.

use std::collections::BTreeMap;

use serde::Serialize;

use super::bars::Recall;
use super::{Attacks, FORMAT, Header, Method, ModelError, Op, Tensor, Weights};

/// Identity of a model, hexadecimal.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    /// Hash of the model with its variants.
    pub whole: String,
    /// Hash without variants; equal to `whole` if there are none.
    pub base: String,
}

/// Weights of a node: the names of the parameters and the hashes of the tensors.
type NodeWeights<'a> = Vec<(&'a str, String)>;

/// Op, inputs and weights of a node.
type SoundNode<'a> = (&'a Op, &'a [usize], &'a [(&'a str, String)]);

/// A method with neither its own name nor those of its nodes: values are named by their index,
/// input ports first.
#[derive(Serialize)]
struct Sound<'a> {
    block: usize,
    warm_up: usize,
    /// Name, channels and ratio of each input port; the name is what a control or a player feeds it
    /// by.
    inputs: Vec<(Option<&'a str>, usize, usize)>,
    /// Pairs of input and output ports, and the delay in bars; 0 is one block.
    fed_back: Vec<(usize, usize, usize)>,
    nodes: Vec<SoundNode<'a>>,
    outputs: &'a [usize],
}

impl Identity {
    /// Hashes what computes the sound of a validated model with its attacks.
    ///
    /// # Errors
    /// Returns [`ModelError`] if the header cannot be encoded.
    pub fn new(
        header: &Header,
        weights: &Weights,
        attacks: Option<&Attacks>,
    ) -> Result<Self, ModelError> {
        let mut of_nodes: BTreeMap<&str, NodeWeights<'_>> = BTreeMap::new();
        for (name, tensor) in weights.iter() {
            let (node, parameter) = name.rsplit_once('.').unwrap_or((name, ""));
            of_nodes
                .entry(node)
                .or_default()
                .push((parameter, tensor_hash(tensor)));
        }
        let method = |name: &String| {
            header
                .method(name)
                .map(|method| sound(method, &of_nodes))
                .transpose()
        };
        let base = header.without_variants();
        let mut methods: Vec<&String> = base.methods.iter().map(|method| &method.name).collect();
        methods.sort();
        let methods = methods
            .into_iter()
            .map(|name| Ok((name, method(name)?)))
            .collect::<Result<Vec<_>, ModelError>>()?;
        let control = |control: &super::Control| {
            let super::Control {
                name,
                min,
                max,
                default,
                curve,
                unit: _,
                description: _,
            } = control.clone();
            (name, [min, max, default], curve)
        };
        let controls: Vec<_> = header.controls.iter().map(control).collect();
        let mut base = hash(&(
            header.kind,
            header.sample_rate,
            &header.performance,
            controls,
            methods,
        ))?;
        if let Some(attacks) = attacks {
            let tensors = attacks.tensors().map(|(_, tensor)| tensor_hash(tensor));
            base = hash(&(base, tensors))?;
        }
        let variants = header.variants.iter().map(|variant| {
            let room = variant.room.as_ref().map(method).transpose()?;
            Ok((variant.up_to, method(&variant.method)?, room))
        });
        let variants = variants.collect::<Result<Vec<_>, ModelError>>()?;
        let whole = if variants.is_empty() {
            base.clone()
        } else {
            hash(&(&base, variants))?
        };
        Ok(Self { whole, base })
    }
}

/// Encodes a method for [`Identity`]. As text, since the order of fields in a JSON value depends on
/// features of other crates.
fn sound(method: &Method, weights: &BTreeMap<&str, NodeWeights<'_>>) -> Result<String, ModelError> {
    let shapes = method.infer()?;
    let feedback = method.feedback().map(|(input, output)| (input, output, 0));
    let recalls = method.recalls().map(
        |Recall {
             input,
             output,
             bars,
         }| (input, output, bars),
    );
    let fed_back: Vec<_> = feedback.chain(recalls).collect();
    let inputs = method.inputs.iter().enumerate().map(|(index, port)| {
        let is_own = fed_back.iter().any(|(input, ..)| *input == index);
        (
            (!is_own).then_some(port.name.as_str()),
            port.channels,
            port.ratio,
        )
    });
    let nodes = method.nodes.iter().zip(&shapes.reads).map(|(node, reads)| {
        let weights = weights
            .get(node.name.as_str())
            .map_or(&[][..], Vec::as_slice);
        (&node.op, reads.as_slice(), weights)
    });
    let sound = Sound {
        block: method.block,
        warm_up: method.warm_up,
        inputs: inputs.collect(),
        nodes: nodes.collect(),
        outputs: &shapes.shown,
        fed_back,
    };
    serde_json::to_string(&sound).map_err(|error| header_error(&error))
}

fn header_error(error: &serde_json::Error) -> ModelError {
    ModelError::Header(format!("the header: {error}"))
}

fn hash(value: &impl Serialize) -> Result<String, ModelError> {
    let json = serde_json::to_vec(value).map_err(|error| header_error(&error))?;
    Ok(blake3::hash(&json).to_hex().to_string())
}

/// Hashes a tensor's shape, storage and stored values.
fn tensor_hash(tensor: &Tensor) -> String {
    let mut hasher = blake3::Hasher::new();
    add_tensor(tensor, true, &mut |bytes| add(&mut hasher, bytes));
    hasher.finalize().to_hex().to_string()
}

/// Adds bytes after their length, so that the border between two parts counts.
fn add(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

fn add_tensor(tensor: &Tensor, with_storage: bool, part: &mut impl FnMut(&[u8])) {
    let extents = |shape: &[usize]| {
        shape
            .iter()
            .flat_map(|&extent| (extent as u64).to_le_bytes())
            .collect::<Vec<u8>>()
    };
    part(&extents(tensor.shape()));
    if with_storage {
        part(tensor.values().storage().name().as_bytes());
    }
    part(tensor.values().bytes());
    if let Some(quantized) = tensor.quantized() {
        part(&extents(&quantized.scale_shape));
        part(bytemuck::cast_slice(&quantized.scales));
        part(&[u8::from(quantized.int8_products)]);
        if !quantized.zero_points.is_empty() {
            part(bytemuck::cast_slice(&quantized.zero_points));
        }
    }
}

/// Returns the BLAKE3 hash of the whole header and of the names, shapes and stored values of all
/// weights, in hexadecimal.
///
/// # Errors
/// Returns [`ModelError`] if the header cannot be encoded.
pub(super) fn checksum<'a>(
    header: &Header,
    weights: impl Iterator<Item = (&'a str, &'a Tensor)>,
) -> Result<String, ModelError> {
    let mut hasher = blake3::Hasher::new();
    let json = serde_json::to_vec(header).map_err(|error| header_error(&error))?;
    add(&mut hasher, &json);
    for (name, tensor) in weights {
        add(&mut hasher, name.as_bytes());
        // Absent in format 1, whose checksums must not change.
        add_tensor(tensor, header.format != FORMAT, &mut |bytes| {
            add(&mut hasher, bytes)
        });
    }
    Ok(hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Card, Control, Kind, Model, Node, Port, Variant};
    use crate::ops::Linear;

    /// Model of a gain with a knob, whose nodes have this prefix, and a smaller size with its own
    /// gain.
    fn model(prefix: &str, gain: f32, edit: impl FnOnce(&mut Header)) -> Model {
        let port = |name: &str, ratio| Port {
            name: name.into(),
            channels: 1,
            ratio,
        };
        let node = |name: String, inputs: [&str; 2], op| Node {
            name,
            inputs: inputs.map(str::to_owned).into(),
            op,
        };
        let method = |name: &str, prefix: &str| {
            let (sum, gain) = (format!("{prefix}sum"), format!("{prefix}gain"));
            let linear = Node {
                inputs: vec![sum.clone()],
                ..node(gain.clone(), ["", ""], Op::Linear(Linear { outputs: 1 }))
            };
            Method {
                name: name.into(),
                block: 1,
                warm_up: 0,
                inputs: vec![port("in", 1), port("drive", 1)],
                outputs: vec![port(&gain, 1)],
                nodes: vec![node(sum, ["in", "drive"], Op::Add), linear],
            }
        };
        let small = format!("{prefix}small.");
        let mut header = Header {
            format: FORMAT,
            kind: Kind::Effect,
            sample_rate: 48_000,
            methods: vec![method("forward", prefix), method("forward.small", &small)],
            controls: vec![Control::linear("drive", "dB", (0.0, 1.0), 0.5, "Drive.")],
            variants: vec![Variant {
                name: "small".into(),
                method: "forward.small".into(),
                room: None,
                up_to: 0.5,
                levels: None,
            }],
            oversampling: 1,
            performance: None,
            card: Card {
                name: "Half".into(),
                ..Card::default()
            },
        };
        edit(&mut header);
        let mut weights = Weights::default();
        for (prefix, gain) in [(prefix, gain), (small.as_str(), 2.0 * gain)] {
            weights.insert(
                format!("{prefix}gain.weight"),
                Tensor::new(&[1, 1], vec![gain]),
            );
            weights.insert(format!("{prefix}gain.bias"), Tensor::new(&[1], vec![0.0]));
        }
        Model::new(header, weights).unwrap()
    }

    #[test]
    fn names_and_cards_are_not_part_of_it_and_sound_is() {
        let own = model("", 0.5, |_| {});
        let same = [
            model("", 0.5, |header| {
                header.card = Card {
                    name: "Other".into(),
                    author: "Me".into(),
                    ..Card::default()
                }
            }),
            model("", 0.5, |header| {
                header.controls[0].description = "More.".into()
            }),
            model("", 0.5, |header| header.variants[0].name = "lite".into()),
            model("", 0.5, |header| header.methods.swap(0, 1)),
            model("a.b.", 0.5, |_| {}),
        ];
        for other in &same {
            assert_eq!(
                (own.content_hash(), own.base_hash()),
                (other.content_hash(), other.base_hash())
            );
        }
        let others = [
            model("", 0.25, |_| {}),
            model("", 0.5, |header| header.sample_rate = 44_100),
            model("", 0.5, |header| header.controls[0].max = 2.0),
            model("", 0.5, |header| {
                header
                    .methods
                    .iter_mut()
                    .for_each(|method| method.block = 2)
            }),
        ];
        for other in &others {
            assert_ne!(own.content_hash(), other.content_hash());
            assert_ne!(own.base_hash(), other.base_hash());
        }
        // Variants change the whole, not the base.
        let later = model("", 0.5, |header| header.variants[0].up_to = 0.75);
        assert_ne!(own.content_hash(), later.content_hash());
        assert_eq!(own.base_hash(), later.base_hash());
    }

    #[test]
    fn it_never_changes() {
        // Projects hold these.
        let wind =
            crate::model::file::parse(include_bytes!("../../../assets/models/wind.ondes")).unwrap();
        assert_eq!(
            wind.base_hash(),
            "e11a4108b2f31abacf4f1b89ff180e468ce955af82f759d17860ce582a32acac"
        );
        assert_eq!(
            wind.content_hash(),
            "bc6c4744b4a31d50b1f4c2d36f7ca38b6dd2c20196e2c3cc2a284a56bcc1403f"
        );
        assert_eq!(
            wind.checksum().unwrap(),
            "2aa201760e3d9ce6b19eb4dfa39d4fe5087be1778efdb5540c2d6b6c059c0efd"
        );
    }
}
