//! Export for nn~: a TorchScript program with the methods of a model.
//!
//! Each method keeps states of its own, so it continues from call to call with any block that its
//! ratios divide, for batches of up to 64 streams. Input ports that a control feeds become an
//! attribute of the program; the channels of all other ports are those of the method. Weights are
//! written as 32-bit floats. Noise comes from libtorch's generator.

use super::node_line::{Names, NodeLine, NodeWriter, number};
use super::torchscript::{Class, Value};
use crate::model::graph::Shapes;
use crate::model::{Control, Method, Model, ModelError, Op, Port};
use crate::ops::TORCHSCRIPT_FUNCTIONS;

/// Names that the program takes besides those of its methods and weights.
const RESERVED: [&str; 6] = [
    "training",
    "sr",
    "get_sample_rate",
    "get_methods",
    "get_attributes",
    "get_buffer_attributes",
];

/// Returns the bytes of a `.ts` file with all methods of a model but those of its variants.
///
/// # Errors
/// Returns [`ModelError::Header`] if the model is a program already, or nn~ cannot feed a method.
///
/// # Examples
/// ```
/// use ondes_engine::model::{export::nn_tilde, file};
///
/// let model = file::read("../assets/models/fuzz.ondes".as_ref())?;
/// let program = nn_tilde::export(&model)?;
/// assert!(program.starts_with(b"PK"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn export(model: &Model) -> Result<Vec<u8>, ModelError> {
    if model.program().is_some() {
        return Err(ModelError::Header(
            "is a TorchScript program already".into(),
        ));
    }
    let header = model.header().without_variants();
    let mut methods = Vec::new();
    for method in &header.methods {
        methods.push(ExportedMethod::new(method, &header.controls)?);
    }
    let buffer = methods
        .iter()
        .map(|method| method.ratio_in.max(method.ratio_out))
        .max()
        .unwrap_or(1);
    methods
        .iter()
        .try_for_each(|method| method.check_buffer(buffer))?;

    let mut names = Names::new(&TORCHSCRIPT_FUNCTIONS, &RESERVED);
    let mut class = Class::default().with("sr", Value::Int(header.sample_rate.into()));
    for exported in &mut methods {
        let forms = [
            "*_params",
            "*_input_labels",
            "*_output_labels",
            "*_block",
            "*_is_warm",
        ];
        exported.name = names.identifier(&exported.method.name, &forms);
    }
    let mut attributes = Vec::new();
    for control in &header.controls {
        if methods
            .iter()
            .any(|exported| exported.controls.contains(&control))
        {
            let name = names.identifier(&control.name, &["*_params", "get_*", "set_*", "*_value"]);
            class = with_attribute(class, &name, control);
            attributes.push((control, name));
        }
    }
    let mut nodes = NodeWriter::new(model.weights(), header.sample_rate, names);
    for exported in &methods {
        class = exported.add_to(class, &mut nodes, &attributes);
    }
    let list = |names: Vec<&str>| format!("return annotate(List[str], {names:?})");
    let method_names = list(
        methods
            .iter()
            .map(|exported| exported.name.as_str())
            .collect(),
    );
    let attribute_names = list(attributes.iter().map(|(_, name)| name.as_str()).collect());
    let class = nodes
        .add_to(class)
        .method("get_methods() -> List[str]", &[&method_names])
        .method("get_attributes() -> List[str]", &[&attribute_names])
        .method("get_buffer_attributes() -> List[str]", &[&list(Vec::new())])
        .method("get_sample_rate() -> int", &["return self.sr"])
        .file(
            "card.json",
            &serde_json::to_string_pretty(&header.card).map_err(std::io::Error::from)?,
        );
    Ok(class.bytes())
}

/// Adds a control as an attribute of one number, which is kept in its range.
fn with_attribute(class: Class, name: &str, control: &Control) -> Class {
    let (min, max) = (number(control.min), number(control.max));
    class
        .with(
            &format!("{name}_params"),
            Value::Integers(vec![1], vec![FLOAT]),
        )
        .with(
            &format!("{name}_value"),
            Value::Float(control.default.into()),
        )
        .method(
            &format!("get_{name}() -> Tuple[float]"),
            &[&format!("return (self.{name}_value,)")],
        )
        .method(
            &format!("set_{name}(value: float) -> int"),
            &[
                &format!("self.{name}_value = max({min}, min(value, {max}))"),
                "return 0",
            ],
        )
}

/// nn~'s number of the type of an attribute.
const FLOAT: i64 = 2;

/// Method with the channels and ratios that nn~ sees.
struct ExportedMethod<'a> {
    method: &'a Method,
    shapes: Shapes,
    /// Identifier in the program.
    name: String,
    /// Input ports that are channels of the input.
    signals: Vec<&'a Port>,
    /// Controls that feed the other ports.
    controls: Vec<&'a Control>,
    ratio_in: usize,
    ratio_out: usize,
}

impl<'a> ExportedMethod<'a> {
    fn new(method: &'a Method, controls: &'a [Control]) -> Result<Self, ModelError> {
        let error =
            |reason: String| ModelError::Header(format!("method {:?} {reason}", method.name));
        let draws = |op: &Op| matches!(op, Op::DrawMixture(_) | Op::DrawCategories(_));
        if method.feedback().next().is_some() || method.nodes.iter().any(|node| draws(&node.op)) {
            return Err(error(
                "feeds draws back, which nn~ cannot; export the codec without it".into(),
            ));
        }
        let control = |port: &Port| controls.iter().find(|control| control.name == port.name);
        let mut signals: Vec<&Port> = method
            .inputs
            .iter()
            .filter(|port| control(port).is_none())
            .collect();
        let mut controls: Vec<&Control> = method.inputs.iter().filter_map(control).collect();
        if signals.is_empty() {
            // A generator: nn~ feeds its controls.
            signals = method.inputs.iter().collect();
            controls.clear();
        }
        let ratio = |ports: &[&Port], side: &str| match ports {
            [] => Err(error(format!("has no {side}"))),
            [first, others @ ..] => match others.iter().find(|port| port.ratio != first.ratio) {
                Some(other) => Err(error(format!(
                    "has {side}s of different ratios, {} and {}; nn~ allows one",
                    first.ratio, other.ratio
                ))),
                None => Ok(first.ratio),
            },
        };
        let ratio_in = ratio(&signals, "input")?;
        let ratio_out = ratio(&method.outputs.iter().collect::<Vec<_>>(), "output")?;
        let shapes = method.infer()?;
        if let Some(other) = shapes
            .values
            .iter()
            .find(|shape| !shape.ratio.is_power_of_two())
        {
            return Err(error(format!(
                "has a ratio of {} samples; nn~ needs powers of two",
                other.ratio
            )));
        }
        Ok(Self {
            method,
            shapes,
            name: String::new(),
            signals,
            controls,
            ratio_in,
            ratio_out,
        })
    }

    /// Checks that blocks of `buffer` samples, which nn~ chooses by the ratios of all methods, are
    /// whole frames.
    fn check_buffer(&self, buffer: usize) -> Result<(), ModelError> {
        let pairs = self.method.nodes.iter().zip(self.shapes.node_inputs());
        let pairs = pairs
            .filter(|(node, _)| node.op == Op::FlipOddBands)
            .map(|(_, inputs)| 2 * inputs[0].ratio);
        let needed = self
            .shapes
            .values
            .iter()
            .map(|shape| shape.ratio)
            .chain(pairs)
            .max()
            .unwrap_or(1);
        if needed <= buffer {
            return Ok(());
        }
        Err(ModelError::Header(format!(
            "method {:?} needs blocks of {needed} samples; nn~ sees only the ratios of inputs and outputs, up to {buffer}",
            self.method.name
        )))
    }

    /// Adds the method to a module.
    fn add_to(
        &self,
        class: Class,
        nodes: &mut NodeWriter<'_>,
        attributes: &[(&Control, String)],
    ) -> Class {
        let (method, name) = (self.method, &self.name);
        let first_state = nodes.states();
        let body = self.body(nodes, attributes);
        let body: Vec<&str> = body.iter().map(String::as_str).collect();
        let channels = |ports: &[&Port]| ports.iter().map(|port| port.channels).sum::<usize>();
        let outputs: Vec<&Port> = method.outputs.iter().collect();
        let parameters = [
            channels(&self.signals),
            self.ratio_in,
            channels(&outputs),
            self.ratio_out,
        ];
        let class = class
            .with(
                &format!("{name}_input_labels"),
                Value::Texts(labels(&self.signals)),
            )
            .with(
                &format!("{name}_output_labels"),
                Value::Texts(labels(&outputs)),
            );
        let parameters = parameters.map(|value| value as u32);
        if method.warm_up == 0 {
            return class.nn(name, parameters, &body);
        }
        let frames = method.warm_up_blocks() * method.block / self.ratio_in;
        let mut warm_up = vec![
            format!("if not self.{name}_is_warm:"),
            format!("  self.{name}_is_warm = True"),
            format!(
                "  _ = self.{name}_block(torch.new_zeros(x, [1, {}, {frames}]))",
                parameters[0]
            ),
        ];
        warm_up.extend(
            nodes
                .spread(first_state)
                .iter()
                .map(|line| format!("  {line}")),
        );
        warm_up.push(format!("return self.{name}_block(x)"));
        let warm_up: Vec<&str> = warm_up.iter().map(String::as_str).collect();
        class
            .with(&format!("{name}_is_warm"), Value::Bool(false))
            .method(&format!("{name}_block(x: Tensor) -> Tensor"), &body)
            .nn(name, parameters, &warm_up)
    }

    /// Returns the lines of the method: ports, nodes, outputs.
    fn body(&self, nodes: &mut NodeWriter<'_>, attributes: &[(&Control, String)]) -> Vec<String> {
        let method = self.method;
        let mut body = Vec::new();
        let mut values: Vec<String> = Vec::new();
        let mut channel = 0;
        for (index, port) in method.inputs.iter().enumerate() {
            let value = format!("port{index}");
            let attribute = attributes
                .iter()
                .find(|(control, _)| control.name == port.name);
            body.push(
                match attribute.filter(|(control, _)| self.controls.contains(control)) {
                    Some((_, name)) => {
                        // Both ratios are powers of two.
                        let frames = if port.ratio > self.ratio_in {
                            format!("torch.size(x, 2) // {}", port.ratio / self.ratio_in)
                        } else {
                            format!("torch.size(x, 2) * {}", self.ratio_in / port.ratio)
                        };
                        let shape = format!("[torch.size(x, 0), {}, {frames}]", port.channels);
                        format!("{value} = torch.new_ones(x, {shape}) * self.{name}_value")
                    }
                    None => {
                        channel += port.channels;
                        format!(
                            "{value} = torch.slice(x, 1, {}, {channel})",
                            channel - port.channels
                        )
                    }
                },
            );
            values.push(value);
        }
        for ((node, reads), shapes) in method
            .nodes
            .iter()
            .zip(&self.shapes.reads)
            .zip(self.shapes.node_inputs())
        {
            let read: Vec<&str> = reads.iter().map(|&value| values[value].as_str()).collect();
            let value = format!("v{}", body.len());
            let expression = node.op.operation().torchscript(&mut NodeLine {
                writer: &mut *nodes,
                method: &self.name,
                node: &node.name,
                values: &read,
                shapes: &shapes,
                value: &value,
                body: &mut body,
            });
            body.push(format!("{value} = {expression}"));
            values.push(value);
        }
        let shown: Vec<&str> = self
            .shapes
            .shown
            .iter()
            .map(|&value| values[value].as_str())
            .collect();
        body.push(match shown[..] {
            [value] => format!("return {value}"),
            _ => format!("return torch.cat([{}], 1)", shown.join(", ")),
        });
        body
    }
}

/// Returns a label for each channel.
fn labels(ports: &[&Port]) -> Vec<String> {
    let label = |port: &&Port| -> Vec<String> {
        match port.channels {
            1 => vec![port.name.clone()],
            channels => (1..=channels)
                .map(|channel| format!("{} {channel}", port.name))
                .collect(),
        }
    };
    ports.iter().flat_map(label).collect()
}
