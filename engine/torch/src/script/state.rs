//! Streams that play one module, each with a state of its own.
//!
//! Modules for streaming have buffers with a row per stream, so that all streams form one batch; a
//! trial finds these buffers. The rows of inactive streams are stored and copied back when needed.
//! Any other module is copied for each stream.

use ondes_engine::Kernels;
use ondes_engine::dsp::noise;
use tch::Tensor;

use super::{NamedTensor, Script, StreamCall};
use crate::call::Caller;

/// Streams and steps of a trial: enough for the input to reach all states.
const TRIAL_STREAMS: i64 = 2;
const TRIAL_STEPS: usize = 3;

/// A module and the values of its attributes.
struct ScriptInstance {
    script: Script,
    /// `[attribute]`: the values that were set last; `None` before.
    attributes: Vec<Option<Vec<f32>>>,
}

/// The states of all streams of a method.
pub struct Streams(StreamStates);

enum StreamStates {
    BatchRows(BatchRows),
    Copies {
        source: Script,
        instances: Vec<ScriptInstance>,
    },
}

/// One module for all streams.
struct BatchRows {
    instance: ScriptInstance,
    buffers: Vec<Buffer>,
    /// `[row]`: the stream whose state the module holds.
    loaded: Vec<usize>,
}

/// A buffer with a row for each stream.
struct Buffer {
    /// The module's own tensor.
    tensor: Tensor,
    /// `[stream, …]`: states of all streams.
    stored: Tensor,
    /// A row as in the file.
    initial: Tensor,
}

impl Streams {
    /// Prepares `count` streams of a module; a step has `frames` input frames.
    ///
    /// # Errors
    /// Returns the reason in one line if the module cannot be run or copied.
    pub fn new(
        source: &Script,
        caller: &Caller,
        count: usize,
        frames: i64,
    ) -> Result<Self, String> {
        let attributes = caller.call.attributes.len();
        let instance = || {
            Ok::<_, String>(ScriptInstance {
                script: source.copy()?,
                attributes: vec![None; attributes],
            })
        };
        if count > 1
            && caller.takes_batches()
            && let Some(names) = batch_buffers(source, caller, count, frames)?
        {
            let instance = instance()?;
            let tensors = instance.script.tensors()?;
            let buffers = tensors
                .into_iter()
                .filter(|named| names.contains(&named.name))
                .map(|NamedTensor { tensor, .. }| {
                    let initial = tensor.narrow(0, 0, 1).copy();
                    let mut shape = initial.size();
                    shape[0] = count as i64;
                    let stored = initial.expand(shape.as_slice(), false).contiguous();
                    Buffer {
                        tensor,
                        stored,
                        initial,
                    }
                });
            return Ok(Self(StreamStates::BatchRows(BatchRows {
                buffers: buffers.collect(),
                instance,
                loaded: Vec::new(),
            })));
        }
        let instances = (0..count).map(|_| instance()).collect::<Result<_, _>>()?;
        Ok(Self(StreamStates::Copies {
            source: source.copy()?,
            instances,
        }))
    }

    /// Returns true if all streams form one batch.
    #[must_use]
    pub fn is_batch(&self) -> bool {
        matches!(self.0, StreamStates::BatchRows(_))
    }

    /// Resets a stream.
    ///
    /// # Errors
    /// Returns libtorch's error in one line.
    pub fn reset(&mut self, stream: usize) -> Result<(), String> {
        match &mut self.0 {
            StreamStates::BatchRows(rows) => {
                let row = rows.loaded.iter().position(|&loaded| loaded == stream);
                for Buffer {
                    tensor,
                    stored,
                    initial,
                } in &mut rows.buffers
                {
                    stored.narrow(0, stream as i64, 1).copy_(initial);
                    if let Some(row) = row {
                        tensor.narrow(0, row as i64, 1).copy_(initial);
                    }
                }
            }
            StreamStates::Copies { source, instances } => {
                let attributes = vec![None; instances[stream].attributes.len()];
                instances[stream] = ScriptInstance {
                    script: source.copy()?,
                    attributes,
                };
            }
        }
        Ok(())
    }

    /// Computes a step; `input` and the output are `[call, channel, frame]`.
    ///
    /// # Errors
    /// Returns the reason in one line if the module fails or returns another shape.
    pub fn run(
        &mut self,
        caller: &Caller,
        calls: &[StreamCall],
        input: &Tensor,
    ) -> Result<Tensor, String> {
        match &mut self.0 {
            StreamStates::BatchRows(rows) => rows.run(caller, calls, input),
            StreamStates::Copies { instances, .. } => {
                let each = calls.iter().enumerate().map(|(row, call)| {
                    let input = input.narrow(0, row as i64, 1);
                    instances[call.stream].step(caller, call, &input)
                });
                let each = each.collect::<Result<Vec<_>, _>>()?;
                Ok(Tensor::cat(&each, 0))
            }
        }
    }

    /// Returns the bytes of all states, without weights.
    ///
    /// # Errors
    /// Returns libtorch's error in one line.
    pub fn bytes(&self) -> Result<usize, String> {
        let own = |script: &Script| -> Result<usize, String> {
            Ok(script
                .tensors()?
                .iter()
                .filter(|named| !named.is_weight)
                .map(|named| bytes(&named.tensor))
                .sum())
        };
        match &self.0 {
            StreamStates::BatchRows(rows) => {
                let stored: usize = rows
                    .buffers
                    .iter()
                    .map(|buffer| bytes(&buffer.stored))
                    .sum();
                Ok(own(&rows.instance.script)? + stored)
            }
            StreamStates::Copies { instances, .. } => {
                instances.iter().map(|instance| own(&instance.script)).sum()
            }
        }
    }
}

/// Returns the bytes of a tensor's values.
pub fn bytes(tensor: &Tensor) -> usize {
    tensor.numel() * tensor.kind().elt_size_in_bytes()
}

impl BatchRows {
    fn run(
        &mut self,
        caller: &Caller,
        calls: &[StreamCall],
        input: &Tensor,
    ) -> Result<Tensor, String> {
        if calls.iter().all(|call| call.values == calls[0].values) {
            self.load_rows(calls.iter().map(|call| call.stream).collect());
            return self.instance.step(caller, &calls[0], input);
        }
        // Attributes belong to the module, so streams with different values are called one by one.
        let each = calls.iter().enumerate().map(|(row, call)| {
            self.load_rows(vec![call.stream]);
            self.instance
                .step(caller, call, &input.narrow(0, row as i64, 1))
        });
        let each = each.collect::<Result<Vec<_>, _>>()?;
        Ok(Tensor::cat(&each, 0))
    }

    /// Brings the states of these streams into the first rows, in their order.
    fn load_rows(&mut self, streams: Vec<usize>) {
        if self.loaded == streams {
            return;
        }
        let index = |streams: &[usize], device| {
            let numbers: Vec<i64> = streams.iter().map(|&stream| stream as i64).collect();
            Tensor::from_slice(&numbers).to_device(device)
        };
        for Buffer { tensor, stored, .. } in &mut self.buffers {
            if !self.loaded.is_empty() {
                let rows = tensor.narrow(0, 0, self.loaded.len() as i64);
                let _ = stored.index_copy_(0, &index(&self.loaded, stored.device()), &rows);
            }
            let rows = stored.index_select(0, &index(&streams, stored.device()));
            tensor.narrow(0, 0, streams.len() as i64).copy_(&rows);
        }
        self.loaded = streams;
    }
}

impl ScriptInstance {
    fn step(
        &mut self,
        caller: &Caller,
        call: &StreamCall,
        input: &Tensor,
    ) -> Result<Tensor, String> {
        for ((attribute, current), values) in caller
            .call
            .attributes
            .iter()
            .zip(&mut self.attributes)
            .zip(&call.values)
        {
            if current.as_ref() != Some(values) {
                caller.set(&mut self.script, attribute, values)?;
                *current = Some(values.clone());
            }
        }
        caller.run(&mut self.script, call, input)
    }
}

/// Returns the names of the buffers with a row per stream; `None` if a step changes anything else.
fn batch_buffers(
    source: &Script,
    caller: &Caller,
    count: usize,
    frames: i64,
) -> Result<Option<Vec<String>>, String> {
    let mut trial = source.copy()?;
    let scalars = trial.scalars()?;
    let before = trial.tensors()?;
    let copies: Vec<Tensor> = before.iter().map(|named| named.tensor.copy()).collect();
    let channels = caller.channels_in();
    for step in 0..TRIAL_STEPS {
        // Not from libtorch's generator, which a program may be drawing from on another thread.
        let mut noise = vec![0.0; (TRIAL_STREAMS * channels * frames) as usize];
        noise::fill(Kernels::detect(), step as u64, 0, &mut noise);
        let noise = Tensor::from_slice(&noise).to_device(caller.device).view([
            TRIAL_STREAMS,
            channels,
            frames,
        ]);
        let call = StreamCall {
            stream: 0,
            values: Vec::new(),
            seed: 0,
        };
        if caller
            .run(&mut trial, &call, &(noise * 0.1).to_kind(caller.kind))
            .is_err()
        {
            return Ok(None);
        }
    }
    let after = trial.tensors()?;
    if trial.scalars()? != scalars || after.len() != before.len() {
        return Ok(None);
    }
    let mut names = Vec::new();
    for ((named, original), copy) in after.iter().zip(&before).zip(&copies) {
        let size = named.tensor.size();
        if named.name != original.name || size != copy.size() || named.tensor.kind() != copy.kind()
        {
            return Ok(None);
        }
        if named.tensor.equal(copy) {
            continue;
        }
        // A replaced tensor would not be the one that rows are loaded into.
        let is_in_place = named.tensor.data_ptr() == original.tensor.data_ptr();
        let rows = size.first().copied().unwrap_or(0);
        let unused = rows - TRIAL_STREAMS;
        let unused_rows = |tensor: &Tensor| tensor.narrow(0, TRIAL_STREAMS, unused);
        if !is_in_place
            || unused < 1
            || rows < count as i64
            || !unused_rows(&named.tensor).equal(&unused_rows(copy))
        {
            return Ok(None);
        }
        names.push(named.name.clone());
    }
    Ok(Some(names))
}
