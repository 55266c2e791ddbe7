//! Controls of an instrument.

use ondes_engine::instrument::Performance;
use ondes_engine::model::{Control, Curve};
use ondes_engine::pipeline::INSTRUMENT_CONTROLS;

/// Name of the control of the noise's level.
pub const NOISE: &str = "noise";

/// Returns the controls of every instrument, and the noise control of this network.
pub fn controls(performance: &Performance) -> Vec<Control> {
    let noise = Control {
        name: NOISE.into(),
        unit: String::new(),
        min: 0.0,
        max: 4.0,
        default: 1.0,
        curve: Curve::Linear,
        description: "How much of the breath, bow or pick noise is heard; 1 is as learnt.".into(),
    };
    std::iter::once(noise)
        .chain(
            INSTRUMENT_CONTROLS
                .iter()
                .map(|control| control.control(performance)),
        )
        .collect()
}
