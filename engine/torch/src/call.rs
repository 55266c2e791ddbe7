//! Calls a method of a program, by its calling convention.

use ondes_engine::model::Port;
use ondes_engine::model::program::{Attribute, Call, Convention};
use tch::{Device, Kind, Tensor};

use crate::neutone;
use crate::script::{Script, StreamCall};

/// A method of a program with its device and ports.
pub struct Caller {
    /// Method and convention.
    pub call: Call,
    /// Device to compute on.
    pub device: Device,
    /// Kind of input tensors.
    pub kind: Kind,
    /// Samples per block.
    pub block: usize,
    /// Input and output port.
    pub ports: (Port, Port),
}

impl Caller {
    /// Returns true if one call can process several streams.
    #[must_use]
    pub fn takes_batches(&self) -> bool {
        self.call.convention == Convention::NnTilde
    }

    /// Returns true if the input is the temperature of a prior.
    fn is_prior(&self) -> bool {
        self.call.method == "prior" && self.ports.0.channels == 1
    }

    /// Returns the number of input channels.
    #[must_use]
    pub fn channels_in(&self) -> i64 {
        self.ports.0.channels as i64
    }

    /// Sets an attribute. A program that refuses a value keeps the old one, as the convention says.
    ///
    /// # Errors
    /// Returns the reason in one line if the program fails.
    pub fn set(
        &self,
        script: &mut Script,
        attribute: &Attribute,
        values: &[f32],
    ) -> Result<(), String> {
        match self.call.convention {
            Convention::NnTilde => {
                let values: Vec<f64> = values.iter().copied().map(f64::from).collect();
                script
                    .call(&format!("set_{}", attribute.name), &values)
                    .map(drop)
            }
            // Parameters are passed with each call.
            Convention::Neutone => Ok(()),
        }
    }

    /// Calls the method; `input` and the output are `[stream, channel, frame]`.
    ///
    /// # Errors
    /// Returns the reason in one line if the program fails or returns another shape.
    pub fn run(
        &self,
        script: &mut Script,
        stream: &StreamCall,
        input: &Tensor,
    ) -> Result<Tensor, String> {
        let output = match self.call.convention {
            Convention::NnTilde if self.is_prior() => {
                script.run(&self.call.method, &[&for_softplus(input)], stream.seed)?
            }
            Convention::NnTilde => script.run(&self.call.method, &[input], stream.seed)?,
            Convention::Neutone => neutone::run(script, stream, &self.call.attributes, input)?,
        };
        let (streams, _, frames) = input.size3().map_err(|error| error.to_string())?;
        let samples = frames * self.call.ratio_in as i64;
        let expected = [
            streams,
            self.ports.1.channels as i64,
            samples / self.call.ratio_out as i64,
        ];
        if output.size() == expected {
            return Ok(output);
        }
        Err(format!(
            "method {:?} returned a tensor {:?}; expected {expected:?}",
            self.call.method,
            output.size()
        ))
    }
}

/// Returns the input with which a prior computes this temperature: it takes
/// `softplus(input) / ln 2` (acids-ircam/RAVE, `scripts/export.py`).
fn for_softplus(temperature: &Tensor) -> Tensor {
    (temperature * std::f64::consts::LN_2)
        .expm1()
        .clamp_min(1e-12)
        .log()
}
