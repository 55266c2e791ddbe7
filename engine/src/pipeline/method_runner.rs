//! One audio method of a model, run for all sessions as one batch.

use super::effect_stream::EffectStream;
use super::method_ports::output;
use crate::dsp::oversample::Oversampler;
use crate::executor::{ExecutorOptions, MethodExecutor};
use crate::model::{Method, Model, ModelError};

/// Feeds a method from the sessions' streams and returns its output to them.
pub(super) struct MethodRunner {
    executor: MethodExecutor,
    /// The input that no control feeds.
    main_input: usize,
    control_inputs: Vec<ControlInput>,
    /// Samples of the method's block.
    block: usize,
    channels_in: usize,
    channels_out: usize,
    /// States of the network per slot, each of which processes every `phases`-th sample; 1 without oversampling.
    phases: usize,
    streams: Vec<usize>,
    /// `[slot]`; empty without oversampling.
    oversamplers: Vec<Oversampler>,
    /// A hop of one slot at the higher rate.
    oversampled: Vec<f32>,
}

/// An input and the port of [`super::control_ports::ControlPorts`] that feeds it.
struct ControlInput {
    input: usize,
    port: usize,
    ratio: usize,
}

/// Dimensions of a [`MethodRunner`].
#[derive(Clone, Copy)]
pub(super) struct RunnerSize {
    /// Number of slots.
    pub sessions: usize,
    /// Samples per hop, a multiple of the method's block.
    pub hop: usize,
    /// Factor of oversampling: 1, 2 or 4.
    pub oversampling: usize,
}

impl MethodRunner {
    /// Prepares a method; `port_names` are those of the streams' control ports.
    ///
    /// # Errors
    /// Returns [`ModelError`] if the method cannot be run or has no output.
    pub fn new(
        model: &Model,
        method: &Method,
        port_names: &[String],
        options: ExecutorOptions,
        size: RunnerSize,
    ) -> Result<Self, ModelError> {
        let RunnerSize { sessions, hop, oversampling: phases } = size;
        let main_input = method.inputs.iter().position(|port| !port_names.contains(&port.name)).unwrap_or_default();
        let control_inputs = method.inputs.iter().enumerate().filter_map(|(input, port)| {
            let index = port_names.iter().position(|name| *name == port.name)?;
            Some(ControlInput { input, port: index, ratio: port.ratio })
        });
        Ok(Self {
            executor: options.prepare(model, method, phases * sessions, hop / method.block)?,
            main_input,
            control_inputs: control_inputs.collect(),
            block: method.block,
            channels_in: method.inputs.get(main_input).map_or(1, |port| port.channels),
            channels_out: output(method)?.channels,
            phases,
            streams: Vec::with_capacity(phases * sessions),
            oversamplers: if phases == 1 {
                Vec::new()
            } else {
                (0..sessions).map(|_| Oversampler::new(phases, hop, options.kernels)).collect()
            },
            oversampled: vec![0.0; phases * hop],
        })
    }

    /// Returns the name of the executor.
    pub fn name(&self) -> String {
        self.executor.name()
    }

    /// Returns true if a step may allocate or wait.
    pub fn may_allocate(&self) -> bool {
        self.executor.may_allocate()
    }

    /// Returns the bytes of weights, states and buffers.
    pub fn bytes(&self) -> usize {
        self.executor.bytes()
    }

    /// Returns the delay that oversampling adds, in samples at the model's rate.
    pub fn oversampling_latency(&self) -> usize {
        self.oversamplers.first().map_or(0, Oversampler::latency_samples)
    }

    /// Resets a slot.
    pub fn open(&mut self, slot: usize, seed: u64) {
        for phase in 0..self.phases {
            self.executor.seed(self.phases * slot + phase, seed);
        }
        if let Some(oversampler) = self.oversamplers.get_mut(slot) {
            oversampler.reset();
        }
    }

    /// Starts a step for the current pieces of these slots, which are equally long, and fills all control inputs.
    pub fn begin(&mut self, streams: &[EffectStream], slots: &[usize]) {
        let EffectStream { piece, .. } = &streams[slots[0]];
        self.begin_samples(streams, slots, piece.start, piece.len());
    }

    /// Starts a step of one block for these slots and fills all control inputs with the values from sample `at` of
    /// their hops on.
    pub fn begin_block(&mut self, streams: &[EffectStream], slots: &[usize], at: usize) {
        self.begin_samples(streams, slots, at, self.block);
    }

    fn begin_samples(&mut self, streams: &[EffectStream], slots: &[usize], at: usize, length: usize) {
        let phases = self.phases;
        self.streams.clear();
        self.streams.extend(slots.iter().flat_map(|slot| phases * slot..phases * (slot + 1)));
        self.executor.begin(&self.streams, length / self.block);
        for &ControlInput { input, port, ratio } in &self.control_inputs {
            for (row, stream) in self.executor.input(input).chunks_exact_mut(length / ratio).zip(&self.streams) {
                let EffectStream { ports, input: hop, .. } = &streams[stream / phases];
                let frames = hop.len() / ratio;
                for (frame, value) in row.iter_mut().enumerate() {
                    // A block may begin near the end of the hop.
                    *value = ports.at(port, (at / ratio + frame).min(frames - 1), frames);
                }
            }
        }
    }

    /// Returns the main input, `[slot][frame][channel]`; not for oversampled methods.
    pub fn input(&mut self) -> &mut [f32] {
        self.executor.input(self.main_input)
    }

    /// Returns the first output, `[slot][frame][channel]`; not for oversampled methods.
    pub fn output(&self) -> &[f32] {
        self.executor.output(0)
    }

    /// Computes the step.
    pub fn run(&mut self) {
        self.executor.run();
    }

    /// Copies the streams' input to all channels of the main input.
    pub fn copy_input(&mut self, streams: &[EffectStream], slots: &[usize]) {
        let Self { executor, main_input, channels_in, phases, oversamplers, oversampled, .. } = self;
        let input = executor.input(*main_input);
        let length = input.len() / slots.len();
        for (rows, &slot) in input.chunks_exact_mut(length).zip(slots) {
            let EffectStream { input, piece, .. } = &streams[slot];
            let sound = match oversamplers.get_mut(slot) {
                None if *channels_in == 1 => {
                    rows.copy_from_slice(&input[piece.clone()]);
                    continue;
                }
                None => &input[piece.clone()],
                Some(oversampler) => {
                    let oversampled = &mut oversampled[..*phases * piece.len()];
                    oversampler.up(&input[piece.clone()], oversampled);
                    oversampled
                }
            };
            for (phase, row) in rows.chunks_exact_mut(length / *phases).enumerate() {
                let samples = sound[phase..].iter().step_by(*phases);
                row.chunks_exact_mut(*channels_in).zip(samples).for_each(|(frame, sample)| frame.fill(*sample));
            }
        }
    }

    /// Copies the mean of the output channels to the streams.
    pub fn copy_output(&mut self, streams: &mut [EffectStream], slots: &[usize]) {
        let Self { executor, channels_out, phases, oversamplers, oversampled, .. } = self;
        let gain = 1.0 / *channels_out as f32;
        let output = executor.output(0);
        let length = output.len() / slots.len();
        for (rows, &slot) in output.chunks_exact(length).zip(slots) {
            let EffectStream { timeline, piece, .. } = &mut streams[slot];
            let sound = &mut timeline.sound[..piece.len()];
            let oversampler = oversamplers.get_mut(slot);
            if oversampler.is_none() && *channels_out == 1 {
                sound.copy_from_slice(rows);
                continue;
            }
            let mean = if oversampler.is_none() { &mut *sound } else { &mut oversampled[..*phases * piece.len()] };
            for (phase, row) in rows.chunks_exact(length / *phases).enumerate() {
                let samples = mean[phase..].iter_mut().step_by(*phases);
                for (sample, frame) in samples.zip(row.chunks_exact(*channels_out)) {
                    *sample = gain * frame.iter().sum::<f32>();
                }
            }
            if let Some(oversampler) = oversampler {
                oversampler.down(&oversampled[..*phases * piece.len()], sound);
            }
        }
    }
}

/// Collects in `active` the `ready` slots that are not muted; silences the others.
pub(super) fn select_active(streams: &mut [EffectStream], ready: &[usize], active: &mut Vec<usize>) {
    active.clear();
    for &slot in ready {
        if streams[slot].mute {
            streams[slot].timeline.sound.fill(0.0);
        } else {
            active.push(slot);
        }
    }
}
