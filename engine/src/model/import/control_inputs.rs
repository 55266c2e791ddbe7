//! Inputs besides the sound: the gear's knobs, as far as a capture has learnt them.

use super::graph_builder::{GraphBuilder, sound_port};
use crate::model::{Control, Curve, ModelError, Op, Port};

/// Most inputs of such a network: the sound and two knobs.
const MOST: usize = 3;

/// Ports and controls of a network of that many inputs, the first of which is the node or port `sound`, and the name of what
/// they are joined to.
pub(super) fn join(
    builder: &mut GraphBuilder,
    sound: &str,
    inputs: usize,
) -> Result<(Vec<Port>, Vec<Control>, String), ModelError> {
    ModelError::limit("the number of inputs", inputs, MOST)?;
    let mut ports = vec![sound_port(1)];
    let mut controls = Vec::new();
    for number in 1..inputs {
        let name = format!("param{number}");
        ports.push(Port { name: name.clone(), channels: 1, ratio: 1 });
        controls.push(Control {
            name,
            unit: String::new(),
            min: 0.0,
            max: 1.0,
            default: 0.5,
            curve: Curve::Linear,
            description: "A knob of the captured gear.".into(),
        });
    }
    if inputs == 1 {
        return Ok((ports, controls, sound.into()));
    }
    let knobs = ports[1..].iter().map(|port| port.name.as_str());
    let names: Vec<&str> = std::iter::once(sound).chain(knobs).collect();
    let joined = builder.node("inputs", &names, Op::Concat)?;
    Ok((ports, controls, joined))
}
