//! Converts a TorchScript program to a model: methods get ports, attributes become controls.

use std::collections::BTreeMap;
use std::path::Path;

use super::description::{
    AttributeDescription, AttributeKind, AttributeValue, MethodDescription, PortDescription,
    ProgramDescription,
};
use super::library::Library;
use super::program_runner::describe;
use crate::model::file;
use crate::model::import::ImportedModel;
use crate::model::program::{Attribute, Call, ProgramOptions};
use crate::model::{
    Card, Control, Curve, FORMAT, Header, Kind, Method, Model, ModelError, ModelFileError, Port,
    Program,
};

/// Sample rate in Hz of programs that state none: the default of the trainers of such programs.
const SAMPLE_RATE: u32 = 44_100;
/// Half of the range of an attribute, which programs do not state; at least twice the initial
/// value.
const FLOAT_RANGE: f32 = 4.0;
const INT_RANGE: f32 = 127.0;
/// Least temperature of a prior. At 0 a prior would divide by it.
const MIN_TEMPERATURE: f32 = 0.05;

/// Reads and checks a model of any format, as [`file::open`] does, and runs TorchScript programs to
/// describe them.
///
/// # Errors
/// Returns [`ModelFileError`] if the file is invalid, or needs libtorch and that is missing.
pub fn open(path: &Path) -> Result<ImportedModel, ModelFileError> {
    open_if(path, |_| true)
}

/// Reads a model as [`open`] does, but runs a program only if `may_run` returns true for its
/// content hash.
///
/// # Errors
/// Returns [`ModelFileError`] as [`open`] does; with [`ModelError::Program`] if the program may not
/// run.
pub fn open_if(
    path: &Path,
    may_run: impl FnOnce(&str) -> bool,
) -> Result<ImportedModel, ModelFileError> {
    file::open_or_run(path, |program| {
        let bytes = file::program_bytes(program)?;
        if !may_run(&blake3::hash(&bytes).to_hex()) {
            return Err(ModelError::Program);
        }
        let stem = path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default();
        let description = Library::get().and_then(|library| describe(&library, &stem, &bytes))?;
        let model = build(&description, &bytes, &stem)?;
        Ok(ImportedModel {
            model,
            notes: description.notes,
        })
    })
}

/// Builds the model of a program; `name` is for programs without one.
pub(super) fn build(
    description: &ProgramDescription,
    bytes: &[u8],
    name: &str,
) -> Result<Model, ModelError> {
    let ProgramDescription {
        convention,
        delay,
        parameters,
        ..
    } = *description;
    let mut controls: Vec<Control> = description.attributes.iter().flat_map(controls).collect();
    let attribute_controls = controls.len();
    let temperature = temperature(description, &controls);
    controls.extend(temperature.clone());
    let block = description.samples()?;
    let kind = kind(description)?;
    let mut named_methods: Vec<(String, &MethodDescription)> = description
        .methods
        .iter()
        .map(|method| (method.name.clone(), method))
        .collect();
    // An effect plays its method `forward`.
    if kind == Kind::Effect
        && !description
            .methods
            .iter()
            .any(|method| method.name == "forward")
        && let Some(first) = description.methods.first()
    {
        named_methods.push(("forward".into(), first));
    }
    let mut calls = BTreeMap::new();
    let mut methods = Vec::new();
    for (name, method) in named_methods {
        let ratios = ratios(&name, method);
        let prior_input = temperature
            .as_ref()
            .filter(|_| name == "prior")
            .map(|control| control.name.as_str());
        let main = prior_input.unwrap_or(if ratios.0 == 1 { "in" } else { "latents" });
        let mut inputs = inputs(method, ratios.0, block, &controls[..attribute_controls]);
        inputs[0].name = unused_name(
            main,
            if prior_input.is_some() {
                &[]
            } else {
                &controls
            },
        );
        let port = |flow: &PortDescription, name: &str, ratio| Port {
            name: name.into(),
            channels: flow.channels,
            ratio,
        };
        let is_used = |name: &str| inputs.iter().any(|input| input.name == name);
        let out = if ratios.1 == 1 { "out" } else { "latents" };
        let out = if is_used(out) {
            format!("{out}_out")
        } else {
            out.into()
        };
        let call = Call {
            method: method.name.clone(),
            convention,
            main: 0,
            ratio_in: method.input.ratio,
            ratio_out: method.output.ratio,
            attributes: attributes(&description.attributes, &inputs),
            delay,
            input_labels: method.input.labels.clone(),
            output_labels: method.output.labels.clone(),
            settings: Vec::new(),
        };
        calls.insert(name.clone(), call);
        let outputs = vec![port(&method.output, &out, ratios.1)];
        methods.push(Method {
            name,
            block,
            warm_up: 0,
            inputs,
            outputs,
            nodes: Vec::new(),
        });
    }
    let own_name = description.name.trim();
    let header = Header {
        format: FORMAT,
        kind,
        sample_rate: description.sample_rate.unwrap_or(SAMPLE_RATE),
        methods,
        controls,
        variants: Vec::new(),
        oversampling: 1,
        performance: None,
        card: Card {
            name: if own_name.is_empty() {
                name.into()
            } else {
                own_name.into()
            },
            description: description.description.clone(),
            author: description.author.clone(),
            ..Card::default()
        },
    };
    let program = Program {
        bytes: bytes.into(),
        parameters,
        calls,
        notes: description.notes.clone(),
        settings: description.settings.clone(),
        options: ProgramOptions::default(),
        original: None,
    };
    Model::from_program(header, program)
}

/// Derives the kind of model from a program's methods.
fn kind(description: &ProgramDescription) -> Result<Kind, ModelError> {
    let find = |name: &str| {
        description
            .methods
            .iter()
            .find(|method| method.name == name)
    };
    let fits =
        |a: &PortDescription, b: &PortDescription| (a.channels, a.ratio) == (b.channels, b.ratio);
    let decode = find("decode");
    let feeds_decode = |name: &str| {
        find(name)
            .zip(decode)
            .is_some_and(|(a, b)| fits(&a.output, &b.input))
    };
    if feeds_decode("encode") {
        return Ok(Kind::Codec);
    }
    if feeds_decode("prior") {
        return Ok(Kind::Generator);
    }
    if description.methods.is_empty() {
        return Err(ModelError::Header("the program has no methods".into()));
    }
    Ok(Kind::Effect)
}

/// Returns the samples per frame of a method's ports. Audio ports have one frame a sample; the
/// library converts to the program's own ratio.
fn ratios(name: &str, method: &MethodDescription) -> (usize, usize) {
    match name {
        "forward" => (1, 1),
        "encode" => (1, method.output.ratio),
        "decode" => (method.input.ratio, 1),
        _ => (method.input.ratio, method.output.ratio),
    }
}

/// Returns the input ports of a method: the main one, still without a name, then one for each
/// control, with one frame a block.
fn inputs(
    method: &MethodDescription,
    ratio: usize,
    block: usize,
    controls: &[Control],
) -> Vec<Port> {
    let main = Port {
        name: String::new(),
        channels: method.input.channels,
        ratio,
    };
    let control_ports = controls.iter().map(|control| Port {
        name: control.name.clone(),
        channels: 1,
        ratio: block,
    });
    std::iter::once(main).chain(control_ports).collect()
}

/// Appends underscores until no control has the name.
pub(super) fn unused_name(name: &str, controls: &[Control]) -> String {
    let mut name = name.to_owned();
    while controls.iter().any(|control| control.name == name) {
        name.push('_');
    }
    name
}

/// Returns the control of a prior's input, if that has one channel.
fn temperature(description: &ProgramDescription, controls: &[Control]) -> Option<Control> {
    description
        .methods
        .iter()
        .find(|method| method.name == "prior" && method.input.channels == 1)?;
    Some(Control {
        name: unused_name("temperature", controls),
        unit: String::new(),
        min: MIN_TEMPERATURE,
        max: FLOAT_RANGE,
        default: 1.0,
        curve: Curve::Linear,
        description: "Randomness of the prior: 1 as it was trained, less for likelier latents."
            .into(),
    })
}

/// Returns the names of an attribute's controls.
fn names(attribute: &AttributeDescription) -> Vec<String> {
    let name = |(index, value): (usize, &AttributeValue)| match attribute.values.len() {
        _ if !value.name.is_empty() => value.name.clone(),
        1 => attribute.name.clone(),
        _ => format!("{}.{}", attribute.name, index + 1),
    };
    attribute.values.iter().enumerate().map(name).collect()
}

/// Returns the controls of an attribute, one for each value.
fn controls(attribute: &AttributeDescription) -> Vec<Control> {
    let control = |(name, value): (String, &AttributeValue)| {
        let half_range = |minimum: f32| minimum.max(2.0 * value.value.abs());
        let (min, max) = match value.kind {
            AttributeKind::Bool => (0.0, 1.0),
            AttributeKind::Int => (-half_range(INT_RANGE), half_range(INT_RANGE)),
            AttributeKind::Float => (-half_range(FLOAT_RANGE), half_range(FLOAT_RANGE)),
            AttributeKind::Continuous { .. } | AttributeKind::Choice { .. } => value
                .kind
                .shared_range()
                .map_or((0.0, 1.0), |[min, max]| (min, max)),
        };
        let curve = match value.kind {
            AttributeKind::Bool | AttributeKind::Int => Curve::Steps,
            _ => Curve::Linear,
        };
        let default = value.value.clamp(min, max);
        let description = value.description.clone();
        Control {
            name,
            unit: String::new(),
            min,
            max,
            default,
            curve,
            description,
        }
    };
    names(attribute)
        .into_iter()
        .zip(&attribute.values)
        .map(control)
        .collect()
}

/// Returns the attributes with the ports that feed them.
fn attributes(described: &[AttributeDescription], inputs: &[Port]) -> Vec<Attribute> {
    let port = |name: &String| inputs.iter().position(|port| port.name == *name);
    let attribute = |attribute: &AttributeDescription| Attribute {
        name: attribute.name.clone(),
        ports: names(attribute).iter().filter_map(port).collect(),
        range: attribute
            .values
            .first()
            .and_then(|value| value.kind.shared_range()),
    };
    described.iter().map(attribute).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::model::program::Convention;

    fn flow(channels: usize, ratio: usize) -> PortDescription {
        PortDescription {
            channels,
            ratio,
            labels: Vec::new(),
        }
    }

    pub(in crate::torch) fn described(methods: &[(&str, [usize; 4])]) -> ProgramDescription {
        let methods = methods
            .iter()
            .map(|(name, [a, b, c, d])| MethodDescription {
                name: (*name).into(),
                input: flow(*a, *b),
                output: flow(*c, *d),
            });
        ProgramDescription {
            convention: Convention::NnTilde,
            name: String::new(),
            description: String::new(),
            author: String::new(),
            sample_rate: None,
            block: 0,
            delay: 0,
            parameters: 7,
            methods: methods.collect(),
            attributes: Vec::new(),
            settings: Vec::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn methods_determine_the_kind() {
        let rave = [
            ("encode", [1, 1, 8, 2048]),
            ("decode", [8, 2048, 1, 1]),
            ("forward", [1, 1, 1, 1]),
        ];
        let codec = build(&described(&rave), b"PK", "rave").unwrap();
        assert_eq!(
            (codec.header().kind, codec.header().methods[0].block),
            (Kind::Codec, 2048)
        );
        assert_eq!(
            (codec.header().card.name.as_str(), codec.parameters()),
            ("rave", 7)
        );
        let generator = build(
            &described(&[("prior", [1, 2048, 8, 2048]), rave[1]]),
            b"PK",
            "x",
        )
        .unwrap();
        assert_eq!(generator.header().kind, Kind::Generator);
        let mismatched = build(
            &described(&[("encode", [1, 1, 8, 512]), rave[1], rave[2]]),
            b"PK",
            "x",
        )
        .unwrap();
        assert_eq!(
            (mismatched.header().kind, mismatched.header().methods.len()),
            (Kind::Effect, 3)
        );
        assert!(build(&described(&[]), b"PK", "x").is_err());
    }

    #[test]
    fn blocks_are_multiples_of_all_ratios() {
        let block =
            |ratios: [usize; 2]| described(&[("forward", [1, ratios[0], 1, ratios[1]])]).samples();
        assert_eq!(block([1, 1]).unwrap(), 256);
        assert_eq!(block([4096, 1]).unwrap(), 4096);
        assert_eq!(block([3, 2]).unwrap(), 258);
        for wrong in [[0, 1], [1, 65_537], [65_521, 65_519]] {
            assert!(block(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn attributes_become_controls_that_feed_ports() {
        let turned = |kind, value| AttributeValue {
            name: String::new(),
            description: String::new(),
            kind,
            value,
        };
        let attribute = |name: &str, values: Vec<AttributeValue>| AttributeDescription {
            name: name.into(),
            values,
        };
        let mut description = described(&[("generate", [1, 1, 2, 64])]);
        description.attributes = vec![
            attribute("in", vec![turned(AttributeKind::Float, 3.0)]),
            attribute(
                "range",
                vec![
                    turned(AttributeKind::Int, 1.0),
                    turned(AttributeKind::Bool, 1.0),
                ],
            ),
        ];
        let model = build(&description, b"PK", "x").unwrap();
        let Header {
            kind,
            methods,
            controls,
            ..
        } = model.header();
        let names: Vec<&str> = controls
            .iter()
            .map(|control| control.name.as_str())
            .collect();
        assert_eq!(
            (*kind, names.as_slice()),
            (Kind::Effect, ["in", "range.1", "range.2"].as_slice())
        );
        assert_eq!(
            (controls[0].min, controls[0].max, controls[0].default),
            (-6.0, 6.0, 3.0)
        );
        // The method has its own name, and the name that an effect plays.
        assert_eq!(
            methods
                .iter()
                .map(|method| method.name.as_str())
                .collect::<Vec<_>>(),
            ["generate", "forward"]
        );
        assert_eq!(
            (
                methods[1].inputs[0].name.as_str(),
                methods[1].outputs[0].ratio
            ),
            ("in_", 1)
        );
        let call = &model.program().unwrap().calls["forward"];
        assert_eq!(
            (
                call.method.as_str(),
                call.ratio_out,
                call.attributes[1].ports.as_slice()
            ),
            ("generate", 64, [2, 3].as_slice())
        );
    }
}
