//! A program as a model: its methods become methods with ports, its attributes become controls.

use std::collections::BTreeMap;
use std::path::Path;

use super::description::{Described, DescribedAttribute, Description, Flow, Turned, TurnedKind};
use super::library::Library;
use crate::model::import::Imported;
use crate::model::program::{Attribute, Call};
use crate::model::{
    Card, Control, Curve, FORMAT, Fault, Header, Kind, Method, Model, ModelError, Port, Program, file, limits,
};

/// Rate of a program that names none, Hz: the one that the trainers of such programs start from.
const SAMPLE_RATE: u32 = 44_100;
/// Programs say nothing about the range of an attribute: it goes from minus to plus this, or twice as far as it stands.
const FLOAT_REACH: f32 = 4.0;
const INT_REACH: f32 = 127.0;

/// Reads and checks a model of any format, as [`file::open`] does; what is a program is run to see what it can do.
///
/// # Errors
/// [`ModelError`] names the file and what is wrong with it, or that libtorch is not there.
pub fn open(path: &Path) -> Result<Imported, ModelError> {
    open_if(path, |_| true)
}

/// The same, where a program runs only if the hash of its content is the one that is known.
///
/// # Errors
/// As [`open`]; [`Fault::Program`] where it is another program.
pub fn open_known(path: &Path, hash: &str) -> Result<Imported, ModelError> {
    open_if(path, |bytes| *blake3::hash(bytes).to_hex() == *hash)
}

fn open_if(path: &Path, may_run: impl Fn(&[u8]) -> bool) -> Result<Imported, ModelError> {
    let at = ModelError::at(path);
    let bytes = file::bytes(path)?;
    if !file::is_program(&bytes) {
        return file::open(path);
    }
    Fault::limit("the program's size", bytes.len(), limits::PROGRAM_BYTES).map_err(&at)?;
    if !may_run(&bytes) {
        return Err(at(Fault::Program));
    }
    let described = Library::get().and_then(|library| library.describe(&bytes));
    let description = described.map_err(|error| at(error.into()))?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let model = build(&description, &bytes, &stem).map_err(at)?;
    Ok(Imported { model, notes: description.notes })
}

/// A model of a program; `name` is for one that has none.
fn build(description: &Description, bytes: &[u8], name: &str) -> Result<Model, Fault> {
    let Description { convention, delay, parameters, .. } = *description;
    let mut controls: Vec<Control> = description.attributes.iter().flat_map(controls).collect();
    let knobs = controls.len();
    let temperature = temperature(description, &controls);
    controls.extend(temperature.clone());
    let block = description.samples()?;
    let kind = kind(description)?;
    let mut described: Vec<(String, &Described)> =
        description.methods.iter().map(|method| (method.name.clone(), method)).collect();
    // What is played is named as its kind wants it.
    if kind == Kind::Effect
        && !description.methods.iter().any(|method| method.name == "forward")
        && let Some(first) = description.methods.first()
    {
        described.push(("forward".into(), first));
    }
    let mut calls = BTreeMap::new();
    let mut methods = Vec::new();
    for (name, method) in described {
        let ratios = ratios(&name, method);
        let own = temperature.as_ref().filter(|_| name == "prior").map(|control| control.name.as_str());
        let main = own.unwrap_or(if ratios.0 == 1 { "in" } else { "latents" });
        let mut inputs = inputs(method, ratios.0, block, &controls[..knobs]);
        inputs[0].name = unlike(main, if own.is_some() { &[] } else { &controls });
        let port = |flow: &Flow, name: &str, ratio| Port { name: name.into(), channels: flow.channels, ratio };
        let taken = |name: &str| inputs.iter().any(|input| input.name == name);
        let out = if ratios.1 == 1 { "out" } else { "latents" };
        let out = if taken(out) { format!("{out}_out") } else { out.into() };
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
        };
        calls.insert(name.clone(), call);
        let outputs = vec![port(&method.output, &out, ratios.1)];
        methods.push(Method { name, block, warm_up: 0, inputs, outputs, nodes: Vec::new() });
    }
    let own = description.name.trim();
    let header = Header {
        format: FORMAT,
        kind,
        sample_rate: description.sample_rate.unwrap_or(SAMPLE_RATE),
        methods,
        controls,
        variants: Vec::new(),
        performance: None,
        card: Card {
            name: if own.is_empty() { name.into() } else { own.into() },
            description: description.description.clone(),
            author: description.author.clone(),
            ..Card::default()
        },
    };
    Model::of_program(header, Program { bytes: bytes.into(), parameters, calls, notes: description.notes.clone() })
}

/// What a program is to a player, by its methods.
fn kind(description: &Description) -> Result<Kind, Fault> {
    let find = |name: &str| description.methods.iter().find(|method| method.name == name);
    let fits = |out: &Flow, into: &Flow| (out.channels, out.ratio) == (into.channels, into.ratio);
    let decode = find("decode");
    let into_decode = |name: &str| find(name).zip(decode).is_some_and(|(a, b)| fits(&a.output, &b.input));
    if into_decode("encode") {
        return Ok(Kind::Codec);
    }
    if into_decode("prior") {
        return Ok(Kind::Generator);
    }
    if description.methods.is_empty() {
        return Err(Fault::Header("the program has no methods".into()));
    }
    Ok(Kind::Effect)
}

/// Samples per frame of a method's ports: where sound is due, the library goes from one frame a sample to the program's own.
fn ratios(name: &str, method: &Described) -> (usize, usize) {
    match name {
        "forward" => (1, 1),
        "encode" => (1, method.output.ratio),
        "decode" => (method.input.ratio, 1),
        _ => (method.input.ratio, method.output.ratio),
    }
}

/// The input ports of a method: what it is about first, which has no name yet, then one for each control, a frame a block.
fn inputs(method: &Described, ratio: usize, block: usize, controls: &[Control]) -> Vec<Port> {
    let main = Port { name: String::new(), channels: method.input.channels, ratio };
    let knobs = controls.iter().map(|control| Port { name: control.name.clone(), channels: 1, ratio: block });
    std::iter::once(main).chain(knobs).collect()
}

/// A name that none of those controls has.
fn unlike(name: &str, controls: &[Control]) -> String {
    let mut name = name.to_owned();
    while controls.iter().any(|control| control.name == name) {
        name.push('_');
    }
    name
}

/// The control of a prior's input, where it has only one channel.
fn temperature(description: &Description, controls: &[Control]) -> Option<Control> {
    description.methods.iter().find(|method| method.name == "prior" && method.input.channels == 1)?;
    Some(Control {
        name: unlike("temperature", controls),
        unit: String::new(),
        min: 0.0,
        max: FLOAT_REACH,
        default: 1.0,
        curve: Curve::Linear,
        description: "What the prior is fed: how far it strays from what is likeliest.".into(),
    })
}

/// Names of the controls of an attribute.
fn names(attribute: &DescribedAttribute) -> Vec<String> {
    let name = |(index, turned): (usize, &Turned)| match attribute.values.len() {
        _ if !turned.name.is_empty() => turned.name.clone(),
        1 => attribute.name.clone(),
        _ => format!("{}.{}", attribute.name, index + 1),
    };
    attribute.values.iter().enumerate().map(name).collect()
}

fn controls(attribute: &DescribedAttribute) -> Vec<Control> {
    let control = |(name, turned): (String, &Turned)| {
        let reach = |least: f32| least.max(2.0 * turned.value.abs());
        let (min, max) = match turned.kind {
            TurnedKind::Bool | TurnedKind::Share => (0.0, 1.0),
            TurnedKind::Int => (-reach(INT_REACH), reach(INT_REACH)),
            TurnedKind::Float => (-reach(FLOAT_REACH), reach(FLOAT_REACH)),
        };
        let default = turned.value.clamp(min, max);
        let description = turned.description.clone();
        Control { name, unit: String::new(), min, max, default, curve: Curve::Linear, description }
    };
    names(attribute).into_iter().zip(&attribute.values).map(control).collect()
}

/// The attributes with the ports that feed them.
fn attributes(described: &[DescribedAttribute], inputs: &[Port]) -> Vec<Attribute> {
    let port = |name: &String| inputs.iter().position(|port| port.name == *name);
    let attribute = |attribute: &DescribedAttribute| Attribute {
        name: attribute.name.clone(),
        ports: names(attribute).iter().filter_map(port).collect(),
    };
    described.iter().map(attribute).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::program::Convention;

    fn flow(channels: usize, ratio: usize) -> Flow {
        Flow { channels, ratio, labels: Vec::new() }
    }

    fn described(methods: &[(&str, [usize; 4])]) -> Description {
        let methods = methods.iter().map(|(name, [a, b, c, d])| Described {
            name: (*name).into(),
            input: flow(*a, *b),
            output: flow(*c, *d),
        });
        Description {
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
            notes: Vec::new(),
        }
    }

    #[test]
    fn methods_say_what_a_program_is() {
        let rave = [("encode", [1, 1, 8, 2048]), ("decode", [8, 2048, 1, 1]), ("forward", [1, 1, 1, 1])];
        let codec = build(&described(&rave), b"PK", "rave").unwrap();
        assert_eq!((codec.header().kind, codec.header().methods[0].block), (Kind::Codec, 2048));
        assert_eq!((codec.header().card.name.as_str(), codec.parameters()), ("rave", 7));
        let generator = build(&described(&[("prior", [1, 2048, 8, 2048]), rave[1]]), b"PK", "x").unwrap();
        assert_eq!(generator.header().kind, Kind::Generator);
        let unfit = build(&described(&[("encode", [1, 1, 8, 512]), rave[1], rave[2]]), b"PK", "x").unwrap();
        assert_eq!((unfit.header().kind, unfit.header().methods.len()), (Kind::Effect, 3));
        assert!(build(&described(&[]), b"PK", "x").is_err());
    }

    #[test]
    fn blocks_are_multiples_of_all_ratios() {
        let block = |ratios: [usize; 2]| described(&[("forward", [1, ratios[0], 1, ratios[1]])]).samples();
        assert_eq!(block([1, 1]).unwrap(), 256);
        assert_eq!(block([4096, 1]).unwrap(), 4096);
        assert_eq!(block([3, 2]).unwrap(), 258);
        for wrong in [[0, 1], [1, 65_537], [65_521, 65_519]] {
            assert!(block(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn attributes_become_controls_that_feed_ports() {
        let turned = |kind, value| Turned { name: String::new(), description: String::new(), kind, value };
        let attribute = |name: &str, values: Vec<Turned>| DescribedAttribute { name: name.into(), values };
        let mut description = described(&[("generate", [1, 1, 2, 64])]);
        description.attributes = vec![
            attribute("in", vec![turned(TurnedKind::Float, 3.0)]),
            attribute("range", vec![turned(TurnedKind::Int, 1.0), turned(TurnedKind::Bool, 1.0)]),
        ];
        let model = build(&description, b"PK", "x").unwrap();
        let Header { kind, methods, controls, .. } = model.header();
        let names: Vec<&str> = controls.iter().map(|control| control.name.as_str()).collect();
        assert_eq!((*kind, names.as_slice()), (Kind::Effect, ["in", "range.1", "range.2"].as_slice()));
        assert_eq!((controls[0].min, controls[0].max, controls[0].default), (-6.0, 6.0, 3.0));
        // The method is there under its own name, and as what an effect plays.
        assert_eq!(methods.iter().map(|method| method.name.as_str()).collect::<Vec<_>>(), ["generate", "forward"]);
        assert_eq!((methods[1].inputs[0].name.as_str(), methods[1].outputs[0].ratio), ("in_", 1));
        let call = &model.program().unwrap().calls["forward"];
        assert_eq!(
            (call.method.as_str(), call.ratio_out, call.attributes[1].ports.as_slice()),
            ("generate", 64, [2, 3].as_slice())
        );
    }
}
