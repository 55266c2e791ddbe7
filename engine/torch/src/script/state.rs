//! Streams that play one module, each with a state of its own.
//!
//! Modules for streaming hold a row for each stream in their buffers, so that all streams are one batch. Which buffers those are, a
//! trial tells. A stream keeps its rows while it rests, and they are put in place where it plays. A module that remembers otherwise
//! is copied for each stream.

use tch::{Kind, Tensor};

use super::{Held, Script};
use crate::call::Caller;

/// Streams of the batch of a trial, and its steps: enough for what goes in to be remembered everywhere.
const TRIAL_STREAMS: i64 = 2;
const TRIAL_STEPS: usize = 3;

/// A module, and how its attributes stand.
struct Instance {
    script: Script,
    /// For each attribute the values that were set last; none where it is as it was.
    set: Vec<Option<Vec<f32>>>,
}

/// What a stream plays in a step.
pub struct Part {
    /// Which stream.
    pub stream: usize,
    /// Values of each attribute.
    pub values: Vec<Vec<f32>>,
    /// Of the noise.
    pub seed: u64,
}

/// All streams of a method.
pub struct Streams(Memory);

enum Memory {
    Rows(Rows),
    Copies { source: Script, instances: Vec<Instance> },
}

/// One module for all.
struct Rows {
    instance: Instance,
    buffers: Vec<Buffer>,
    /// The stream whose state is in each row.
    loaded: Vec<usize>,
}

/// A buffer with a row for each stream.
struct Buffer {
    /// The module's own.
    tensor: Tensor,
    /// `[stream, …]`
    kept: Tensor,
    /// A row as the file has it.
    rest: Tensor,
}

impl Streams {
    /// For `count` streams of a module that is called like this; `frames` go into a step.
    ///
    /// # Errors
    /// One line: the module cannot be run, or not be copied.
    pub fn new(source: &Script, caller: &Caller, count: usize, frames: i64) -> Result<Self, String> {
        let attributes = caller.call.attributes.len();
        let instance = || Ok::<_, String>(Instance { script: source.copy()?, set: vec![None; attributes] });
        if count > 1
            && caller.takes_batches()
            && let Some(names) = rows(source, caller, count, frames)?
        {
            let instance = instance()?;
            let held = instance.script.tensors()?;
            let buffers = held.into_iter().filter(|held| names.contains(&held.name)).map(|Held { tensor, .. }| {
                let rest = tensor.narrow(0, 0, 1).copy();
                let mut shape = rest.size();
                shape[0] = count as i64;
                let kept = rest.expand(shape.as_slice(), false).contiguous();
                Buffer { tensor, kept, rest }
            });
            return Ok(Self(Memory::Rows(Rows { buffers: buffers.collect(), instance, loaded: Vec::new() })));
        }
        let instances = (0..count).map(|_| instance()).collect::<Result<_, _>>()?;
        Ok(Self(Memory::Copies { source: source.copy()?, instances }))
    }

    /// Whether all streams are one batch.
    #[must_use]
    pub fn is_batch(&self) -> bool {
        matches!(self.0, Memory::Rows(_))
    }

    /// Forgets what a stream has heard.
    ///
    /// # Errors
    /// One line: what libtorch says.
    pub fn reset(&mut self, stream: usize) -> Result<(), String> {
        match &mut self.0 {
            Memory::Rows(rows) => {
                let row = rows.loaded.iter().position(|&loaded| loaded == stream);
                for Buffer { tensor, kept, rest } in &mut rows.buffers {
                    kept.narrow(0, stream as i64, 1).copy_(rest);
                    if let Some(row) = row {
                        tensor.narrow(0, row as i64, 1).copy_(rest);
                    }
                }
            }
            Memory::Copies { source, instances } => {
                let set = vec![None; instances[stream].set.len()];
                instances[stream] = Instance { script: source.copy()?, set };
            }
        }
        Ok(())
    }

    /// A step: `input` and what comes out are `[part, channel, frame]`.
    ///
    /// # Errors
    /// One line: the module breaks down or gives something else than what is due.
    pub fn run(&mut self, caller: &Caller, parts: &[Part], input: &Tensor) -> Result<Tensor, String> {
        match &mut self.0 {
            Memory::Rows(rows) => rows.run(caller, parts, input),
            Memory::Copies { instances, .. } => {
                let each = parts.iter().enumerate().map(|(row, part)| {
                    let input = input.narrow(0, row as i64, 1);
                    instances[part.stream].step(caller, part, &input)
                });
                let each = each.collect::<Result<Vec<_>, _>>()?;
                Ok(Tensor::cat(&each, 0))
            }
        }
    }

    /// Bytes of all states; weights are elsewhere.
    ///
    /// # Errors
    /// One line: what libtorch says.
    pub fn bytes(&self) -> Result<usize, String> {
        let own = |script: &Script| -> Result<usize, String> {
            Ok(script.tensors()?.iter().filter(|held| !held.is_weight).map(|held| bytes(&held.tensor)).sum())
        };
        match &self.0 {
            Memory::Rows(rows) => {
                let kept: usize = rows.buffers.iter().map(|buffer| bytes(&buffer.kept)).sum();
                Ok(own(&rows.instance.script)? + kept)
            }
            Memory::Copies { instances, .. } => instances.iter().map(|instance| own(&instance.script)).sum(),
        }
    }
}

/// Bytes of a tensor's values.
pub fn bytes(tensor: &Tensor) -> usize {
    tensor.numel() * tensor.kind().elt_size_in_bytes()
}

impl Rows {
    fn run(&mut self, caller: &Caller, parts: &[Part], input: &Tensor) -> Result<Tensor, String> {
        if parts.iter().all(|part| part.values == parts[0].values) {
            self.put_in_place(parts.iter().map(|part| part.stream).collect());
            return self.instance.step(caller, &parts[0], input);
        }
        // Attributes are those of the whole module: who has them otherwise has a turn of his own.
        let each = parts.iter().enumerate().map(|(row, part)| {
            self.put_in_place(vec![part.stream]);
            self.instance.step(caller, part, &input.narrow(0, row as i64, 1))
        });
        let each = each.collect::<Result<Vec<_>, _>>()?;
        Ok(Tensor::cat(&each, 0))
    }

    /// Sees to it that the first rows are those of these streams, in their order.
    fn put_in_place(&mut self, streams: Vec<usize>) {
        if self.loaded == streams {
            return;
        }
        let index = |streams: &[usize], device| {
            let numbers: Vec<i64> = streams.iter().map(|&stream| stream as i64).collect();
            Tensor::from_slice(&numbers).to_device(device)
        };
        for Buffer { tensor, kept, .. } in &mut self.buffers {
            if !self.loaded.is_empty() {
                let rows = tensor.narrow(0, 0, self.loaded.len() as i64);
                let _ = kept.index_copy_(0, &index(&self.loaded, kept.device()), &rows);
            }
            let rows = kept.index_select(0, &index(&streams, kept.device()));
            tensor.narrow(0, 0, streams.len() as i64).copy_(&rows);
        }
        self.loaded = streams;
    }
}

impl Instance {
    fn step(&mut self, caller: &Caller, part: &Part, input: &Tensor) -> Result<Tensor, String> {
        for ((attribute, set), values) in caller.call.attributes.iter().zip(&mut self.set).zip(&part.values) {
            if set.as_ref() != Some(values) {
                caller.set(&mut self.script, attribute, values)?;
                *set = Some(values.clone());
            }
        }
        tch::manual_seed(part.seed as i64);
        caller.run(&mut self.script, part, input)
    }
}

/// The buffers that hold a row for each stream, where all that a step changes is such a buffer.
fn rows(source: &Script, caller: &Caller, count: usize, frames: i64) -> Result<Option<Vec<String>>, String> {
    let mut trial = source.copy()?;
    let scalars = trial.scalars()?;
    let before = trial.tensors()?;
    let copies: Vec<Tensor> = before.iter().map(|held| held.tensor.copy()).collect();
    let channels = caller.channels_in();
    for _ in 0..TRIAL_STEPS {
        let noise = Tensor::randn([TRIAL_STREAMS, channels, frames], (Kind::Float, caller.device));
        let part = Part { stream: 0, values: Vec::new(), seed: 0 };
        if caller.run(&mut trial, &part, &(noise * 0.1).to_kind(caller.kind)).is_err() {
            return Ok(None);
        }
    }
    let after = trial.tensors()?;
    if trial.scalars()? != scalars || after.len() != before.len() {
        return Ok(None);
    }
    let mut names = Vec::new();
    for ((held, own), copy) in after.iter().zip(&before).zip(&copies) {
        let size = held.tensor.size();
        if held.name != own.name || size != copy.size() || held.tensor.kind() != copy.kind() {
            return Ok(None);
        }
        if held.tensor.equal(copy) {
            continue;
        }
        // Another tensor in its place would not be the one that is filled before a step.
        let stays = held.tensor.data_ptr() == own.tensor.data_ptr();
        let rows = size.first().copied().unwrap_or(0);
        let rest = rows - TRIAL_STREAMS;
        let is_row = |tensor: &Tensor| tensor.narrow(0, TRIAL_STREAMS, rest);
        if !stays || rest < 1 || rows < count as i64 || !is_row(&held.tensor).equal(&is_row(copy)) {
            return Ok(None);
        }
        names.push(held.name.clone());
    }
    Ok(Some(names))
}
