//! Controls of captures: inputs of a network besides audio.

use super::graph_builder::{GraphBuilder, audio_port};
use crate::model::{Control, Curve, ModelError, Op, Port};

/// Most inputs of a network: audio and two controls.
const MAX_INPUTS: usize = 3;

/// Adds the ports and controls of a network with `inputs` inputs, of which `sound` is the first.
/// Returns them with the name of the node that joins all inputs.
pub(super) fn add_inputs(
    builder: &mut GraphBuilder,
    sound: &str,
    inputs: usize,
) -> Result<(Vec<Port>, Vec<Control>, String), ModelError> {
    ModelError::limit("the number of inputs", inputs, MAX_INPUTS)?;
    let mut ports = vec![audio_port(1)];
    let mut controls = Vec::new();
    for number in 1..inputs {
        let name = format!("param{number}");
        ports.push(Port {
            name: name.clone(),
            channels: 1,
            ratio: 1,
        });
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
