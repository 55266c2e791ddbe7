//! A method of a program, stepped for several streams.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ondes_engine::executor::Precision;
use ondes_engine::model::program::{Call, Convention};
use ondes_engine::torch::Order;
use ondes_engine::torch::description::Description;
use tch::{Device, Kind, Tensor};

use crate::call::Caller;
use crate::device;
use crate::host::Host;
use crate::script::state::{Part, Streams};
use crate::script::{Inference, Script};
use crate::step::Step;
use crate::{neutone, nn_tilde, precision};

/// What is in a program.
///
/// # Errors
/// One line: it cannot be run, it keeps to no convention that is known, or not to the one that it says.
pub fn describe(bytes: &[u8]) -> Result<Description, String> {
    let _inference = Inference::begin();
    let mut script = Script::load(bytes, None)?;
    let metadata = script.metadata();
    if !metadata.trim().is_empty() && neutone::is_one(&script)? {
        return neutone::describe(&mut script, &metadata);
    }
    let description = nn_tilde::describe(&mut script)?;
    let block = description.samples().map_err(|fault| fault.to_string())?;
    for method in &description.methods {
        // A method may leave something behind.
        let mut script = script.copy()?;
        let frames = (block / method.input.ratio) as i64;
        let silence = Tensor::zeros([1, method.input.channels as i64, frames], (Kind::Float, Device::Cpu));
        let given = script.run(&method.name, &[&silence]);
        let given = given.map_err(|why| format!("method {:?} does not run: {why}", method.name))?.size();
        let due = [1, method.output.channels as i64, (block / method.output.ratio) as i64];
        if given != due {
            let frames = format!("{frames} frames");
            return Err(format!("method {:?} makes a tensor {given:?} of {frames} where {due:?} is due", method.name));
        }
    }
    Ok(description)
}

/// A program at work.
pub struct Program {
    order: Order,
    /// What others that play it share with us.
    source: Arc<Script>,
    caller: Caller,
    input: Host,
    output: Host,
    streams: Streams,
    /// `[stream]`: seed and steps since.
    noise: Vec<(u64, u64)>,
}

impl Program {
    /// Prepares what an order says.
    ///
    /// # Errors
    /// One line: it cannot be run.
    pub fn new(order: Order, call: Call, bytes: &[u8]) -> Result<Self, String> {
        let place = device::choose(order.device);
        let _inference = Inference::begin();
        let source = shared(&order.hash, place, order.precision, bytes)?;
        let (Some(main), Some(output)) = (order.method.inputs.get(call.main), order.method.outputs.first()) else {
            return Err(format!("method {:?} has no input or no output", call.method));
        };
        let ports = (main.clone(), output.clone());
        let kind = precision::kind(order.precision);
        let caller = Caller { call, device: place, kind, block: order.method.block, ports };
        let frames = caller.block / caller.call.ratio_in * order.blocks;
        let prepared = match caller.call.convention {
            Convention::NnTilde => prepared(&source, &order)?,
            Convention::Neutone => {
                let mut source = source.copy()?;
                neutone::prepare(&mut source, order.sample_rate, caller.block)?;
                source
            }
        };
        if order.precision != Precision::F32 {
            try_out(&prepared, &caller, frames as i64).map_err(|why| format!("in {}: {why}", order.precision))?;
        }
        let streams = Streams::new(&prepared, &caller, order.streams, frames as i64)?;
        let noise = vec![(0, 0); order.streams];
        let host = |port| Host::new(port, &order, place, kind);
        let (input, output) = (host(&caller.ports.0), host(&caller.ports.1));
        Ok(Self { order, source, caller, input, output, streams, noise })
    }
}

impl Step for Program {
    fn run(
        &mut self,
        streams: &[usize],
        blocks: usize,
        inputs: &[&[f32]],
        outputs: &mut [&mut [f32]],
    ) -> Result<(), String> {
        let _inference = Inference::begin();
        let Caller { call, ports, .. } = &self.caller;
        let parts: Vec<Part> = streams
            .iter()
            .enumerate()
            .map(|(row, &stream)| {
                // Attributes come once a block; what was turned last counts.
                let value = |&port: &usize| inputs[port][(row + 1) * blocks - 1];
                let values = call.attributes.iter().map(|attribute| attribute.ports.iter().map(value).collect());
                let (seed, steps) = &mut self.noise[stream];
                *steps += 1;
                Part {
                    stream,
                    values: values.collect(),
                    seed: seed.wrapping_add(steps.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
                }
            })
            .collect();
        let input = self.input.send(inputs[call.main], streams.len())?;
        // The last sample of each group.
        let group = (call.ratio_in / ports.0.ratio) as i64;
        let input = if group > 1 {
            let (streams, channels, frames) = input.size3().map_err(|error| error.to_string())?;
            input.view([streams, channels, frames / group, group]).select(3, group - 1).contiguous()
        } else {
            input
        };
        let output = self.streams.run(&self.caller, &parts, &input)?;
        let held = (self.caller.call.ratio_out / self.caller.ports.1.ratio) as i64;
        let output = if held > 1 { output.repeat_interleave_self_int(held, 2, None) } else { output };
        self.output.receive(&output, outputs[0])
    }

    fn seed(&mut self, stream: usize, seed: u64) {
        let _inference = Inference::begin();
        self.noise[stream] = (seed, 0);
        // One that cannot be copied any more says so when it is run.
        let _ = self.streams.reset(stream);
    }

    fn bytes(&self) -> usize {
        let weights = self.source.tensors().unwrap_or_default();
        let weights: usize = weights.iter().map(|held| crate::script::state::bytes(&held.tensor)).sum();
        weights + self.streams.bytes().unwrap_or(0)
    }

    fn device(&self) -> String {
        let batch = if self.order.streams > 1 && !self.streams.is_batch() { ", a copy for each session" } else { "" };
        format!("{}{batch}", device::name(self.caller.device, self.order.precision))
    }
}

/// Plays silence with a copy: when the file was opened it ran in f32 only.
fn try_out(source: &Script, caller: &Caller, frames: i64) -> Result<(), String> {
    let silence = Tensor::zeros([1, caller.channels_in(), frames], (caller.kind, caller.device));
    caller.run(&mut source.copy()?, &Part { stream: 0, values: Vec::new(), seed: 0 }, &silence).map(drop)
}

/// A copy that knows the rate that it plays at, where it wants to.
fn prepared(source: &Script, order: &Order) -> Result<Script, String> {
    let mut script = source.copy()?;
    if script.methods()?.iter().any(|name| name == "set_sample_rate") {
        script.call("set_sample_rate", &[f64::from(order.sample_rate)])?;
    }
    Ok(script)
}

/// The program as the file has it; whoever plays the same on the same device in the same precision has the same weights.
fn shared(hash: &str, place: Device, precision: Precision, bytes: &[u8]) -> Result<Arc<Script>, String> {
    type Key = (String, Option<u8>, &'static str);
    static SHARED: Mutex<Option<HashMap<Key, Weak<Script>>>> = Mutex::new(None);
    let cuda = device::cuda(place);
    let key = (hash.to_owned(), cuda, precision.name());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = shared.get_or_insert_default();
    known.retain(|_, script| script.strong_count() > 0);
    if let Some(script) = known.get(&key).and_then(Weak::upgrade) {
        return Ok(script);
    }
    let mut script = Script::load(bytes, cuda)?;
    script.narrow(precision)?;
    let script = Arc::new(script);
    known.insert(key, Arc::downgrade(&script));
    Ok(script)
}
