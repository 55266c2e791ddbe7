//! How a method of a program is called, by each convention.

use ondes_engine::model::Port;
use ondes_engine::model::program::{Attribute, Call, Convention};
use tch::{Device, Kind, Tensor};

use crate::neutone;
use crate::script::Script;
use crate::script::state::Part;

/// A method of a program, where it is computed, and what is due.
pub struct Caller {
    /// Which method, and by which convention.
    pub call: Call,
    /// Where.
    pub device: Device,
    /// Of what goes in.
    pub kind: Kind,
    /// Samples of a step of one block.
    pub block: usize,
    /// What goes in and what comes out.
    pub ports: (Port, Port),
}

impl Caller {
    /// Whether several streams may go through one call.
    #[must_use]
    pub fn takes_batches(&self) -> bool {
        self.call.convention == Convention::NnTilde
    }

    /// Channels that go in.
    #[must_use]
    pub fn channels_in(&self) -> i64 {
        self.ports.0.channels as i64
    }

    /// Sets an attribute; one that refuses a value stays as it is, as its convention has it.
    ///
    /// # Errors
    /// One line: it breaks down.
    pub fn set(&self, script: &mut Script, attribute: &Attribute, values: &[f32]) -> Result<(), String> {
        match self.call.convention {
            Convention::NnTilde => {
                let values: Vec<f64> = values.iter().copied().map(f64::from).collect();
                script.call(&format!("set_{}", attribute.name), &values).map(drop)
            }
            // They come with each call.
            Convention::Neutone => Ok(()),
        }
    }

    /// Calls it: `input` and what comes out are `[stream, channel, frame]`.
    ///
    /// # Errors
    /// One line: it breaks down, or what it gives is of another shape than what is due.
    pub fn run(&self, script: &mut Script, part: &Part, input: &Tensor) -> Result<Tensor, String> {
        let output = match self.call.convention {
            Convention::NnTilde => script.run(&self.call.method, &[input])?,
            Convention::Neutone => {
                let numbers: Vec<usize> =
                    self.call.attributes.iter().map(|attribute| neutone::number(&attribute.name)).collect();
                neutone::run(script, part, &numbers, input)?
            }
        };
        let (streams, _, frames) = input.size3().map_err(|error| error.to_string())?;
        let samples = frames * self.call.ratio_in as i64;
        let due = [streams, self.ports.1.channels as i64, samples / self.call.ratio_out as i64];
        if output.size() == due {
            return Ok(output);
        }
        Err(format!("method {:?} gives a tensor {:?} where {due:?} is due", self.call.method, output.size()))
    }
}
