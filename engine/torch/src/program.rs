//! A method of a program, stepped for several streams.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use ondes_engine::executor::Precision;
use ondes_engine::model::program::{Call, Convention};
use ondes_engine::sync::lock;
use ondes_engine::torch::PrepareRequest;
use ondes_engine::torch::description::ProgramDescription;
use tch::{Device, Kind, Tensor};

use crate::call::Caller;
use crate::device;
use crate::host::PortMemory;
use crate::script::state::Streams;
use crate::script::{Inference, Script, StreamCall};
use crate::step::MethodStep;
use crate::{neutone, nn_tilde, precision};

/// Describes a program, which it runs.
///
/// # Errors
/// Returns the reason in one line if the program fails, follows no known convention, or violates
/// its own.
pub fn describe(bytes: &[u8]) -> Result<ProgramDescription, String> {
    let _inference = Inference::begin();
    let mut script = Script::load(bytes, None)?;
    let metadata = script.metadata();
    if !metadata.trim().is_empty() && neutone::is_neutone(&script)? {
        return neutone::describe(&mut script, &metadata);
    }
    let description = nn_tilde::describe(&mut script)?;
    let block = description.samples().map_err(|fault| fault.to_string())?;
    for method in &description.methods {
        // On a copy: a method may change the state.
        let mut script = script.copy()?;
        let frames = (block / method.input.ratio) as i64;
        let silence = Tensor::zeros(
            [1, method.input.channels as i64, frames],
            (Kind::Float, Device::Cpu),
        );
        let output = script.run(&method.name, &[&silence], 0);
        let size = output
            .map_err(|error| format!("method {:?} fails: {error}", method.name))?
            .size();
        let expected = [
            1,
            method.output.channels as i64,
            (block / method.output.ratio) as i64,
        ];
        if size != expected {
            let name = &method.name;
            return Err(format!(
                "method {name:?} makes a tensor {size:?} of {frames} frames; expected {expected:?}"
            ));
        }
    }
    Ok(description)
}

/// A prepared method of a program.
pub struct ProgramStep {
    request: PrepareRequest,
    /// The module, shared by all methods of the program.
    source: Arc<Script>,
    caller: Caller,
    input: PortMemory,
    output: PortMemory,
    streams: Streams,
    /// `[stream]`: seed of the noise, and number of steps since it was set.
    noise_seeds: Vec<(u64, u64)>,
}

impl ProgramStep {
    /// Prepares the method of a request.
    ///
    /// # Errors
    /// Returns the reason in one line if the method cannot be run.
    pub fn new(request: PrepareRequest, call: Call, bytes: &[u8]) -> Result<Self, String> {
        let device = device::choose(request.device);
        let _inference = Inference::begin();
        let source = shared_module(&request.hash, device, request.precision, bytes)?;
        let (Some(main), Some(output)) = (
            request.method.inputs.get(call.main),
            request.method.outputs.first(),
        ) else {
            return Err(format!(
                "method {:?} has no input or no output",
                call.method
            ));
        };
        let ports = (main.clone(), output.clone());
        let kind = precision::kind(request.precision);
        let caller = Caller {
            call,
            device,
            kind,
            block: request.method.block,
            ports,
        };
        let frames = caller.block / caller.call.ratio_in * request.blocks;
        let prepared = match caller.call.convention {
            Convention::NnTilde => {
                let mut source = with_sample_rate(&source, &request)?;
                nn_tilde::choose(&mut source, &caller.call.settings, device)?;
                source
            }
            Convention::Neutone => {
                let mut source = source.copy()?;
                neutone::prepare(&mut source, request.sample_rate, caller.block)?;
                source
            }
        };
        if request.precision != Precision::F32 {
            try_out(&prepared, &caller, frames as i64)
                .map_err(|error| format!("in {}: {error}", request.precision))?;
        }
        let streams = Streams::new(&prepared, &caller, request.streams, frames as i64)?;
        let noise_seeds = vec![(0, 0); request.streams];
        let memory = |port| PortMemory::new(port, &request, device, kind);
        let (input, output) = (memory(&caller.ports.0), memory(&caller.ports.1));
        Ok(Self {
            request,
            source,
            caller,
            input,
            output,
            streams,
            noise_seeds,
        })
    }
}

impl MethodStep for ProgramStep {
    fn run(
        &mut self,
        streams: &[usize],
        blocks: usize,
        inputs: &[&[f32]],
        outputs: &mut [&mut [f32]],
    ) -> Result<(), String> {
        let _inference = Inference::begin();
        let Caller { call, ports, .. } = &self.caller;
        let calls: Vec<StreamCall> = streams
            .iter()
            .enumerate()
            .map(|(row, &stream)| {
                // One value per block; the last one counts.
                let value = |&port: &usize| inputs[port][(row + 1) * blocks - 1];
                let values = call
                    .attributes
                    .iter()
                    .map(|attribute| attribute.ports.iter().map(value).collect());
                let (seed, steps) = &mut self.noise_seeds[stream];
                *steps += 1;
                StreamCall {
                    stream,
                    values: values.collect(),
                    seed: seed.wrapping_add(steps.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
                }
            })
            .collect();
        let input = self.input.send(inputs[call.main], streams.len())?;
        // Takes the last sample of each group.
        let group = (call.ratio_in / ports.0.ratio) as i64;
        let input = if group > 1 {
            let (streams, channels, frames) = input.size3().map_err(|error| error.to_string())?;
            input
                .view([streams, channels, frames / group, group])
                .select(3, group - 1)
                .contiguous()
        } else {
            input
        };
        let output = self.streams.run(&self.caller, &calls, &input)?;
        let repeats = (self.caller.call.ratio_out / self.caller.ports.1.ratio) as i64;
        let output = if repeats > 1 {
            output.repeat_interleave_self_int(repeats, 2, None)
        } else {
            output
        };
        self.output.receive(&output, outputs[0])
    }

    fn seed(&mut self, stream: usize, seed: u64) {
        let _inference = Inference::begin();
        self.noise_seeds[stream] = (seed, 0);
        // An error here comes again in the next step, which reports it.
        let _ = self.streams.reset(stream);
    }

    fn bytes(&self) -> usize {
        let weights = self.source.tensors().unwrap_or_default();
        let weights: usize = weights
            .iter()
            .map(|named| crate::script::state::bytes(&named.tensor))
            .sum();
        weights + self.streams.bytes().unwrap_or(0)
    }

    fn device(&self) -> String {
        let batch = if self.request.streams > 1 && !self.streams.is_batch() {
            ", a copy for each session"
        } else {
            ""
        };
        format!(
            "{}{batch}",
            device::name(self.caller.device, self.request.precision)
        )
    }
}

/// Runs silence through a copy; when the file was opened, it ran in f32 only.
fn try_out(source: &Script, caller: &Caller, frames: i64) -> Result<(), String> {
    let silence = Tensor::zeros(
        [1, caller.channels_in(), frames],
        (caller.kind, caller.device),
    );
    caller
        .run(
            &mut source.copy()?,
            &StreamCall {
                stream: 0,
                values: Vec::new(),
                seed: 0,
            },
            &silence,
        )
        .map(drop)
}

/// Copies a module, and tells it the sample rate if it has a method for it.
fn with_sample_rate(source: &Script, request: &PrepareRequest) -> Result<Script, String> {
    let mut script = source.copy()?;
    if script
        .methods()?
        .iter()
        .any(|name| name == "set_sample_rate")
    {
        script.call("set_sample_rate", &[f64::from(request.sample_rate)])?;
    }
    Ok(script)
}

/// Returns the module of a file; methods of the same file, device and precision share its weights.
fn shared_module(
    hash: &str,
    device: Device,
    precision: Precision,
    bytes: &[u8],
) -> Result<Arc<Script>, String> {
    type Key = (String, Option<u8>, &'static str);
    static SHARED: Mutex<Option<HashMap<Key, Weak<Script>>>> = Mutex::new(None);
    let gpu = crate::device::gpu_index(device);
    let key = (hash.to_owned(), gpu, precision.name());
    let mut shared = lock(&SHARED);
    let known = shared.get_or_insert_default();
    known.retain(|_, script| script.strong_count() > 0);
    if let Some(script) = known.get(&key).and_then(Weak::upgrade) {
        return Ok(script);
    }
    let mut script = Script::load(bytes, gpu)?;
    script.convert(precision)?;
    let script = Arc::new(script);
    known.insert(key, Arc::downgrade(&script));
    Ok(script)
}
