//! One audio method of a model, run for all streams as one batch.
//!
//! The two streams of a stereo session (its channels) may share a state of the network. The first
//! then stands for both: it receives the control inputs, and lists of streams contain only the
//! first of each pair.

use std::ops::Range;
use std::time::Duration;

use super::effect_stream::EffectStream;
use super::method_ports::{is_fed_back, output};
use super::spread::layer_times;
use crate::dsp::oversample::Oversampler;
use crate::executor::{Execute, ExecutorOptions, MethodExecutor};
use crate::model::{Method, Model, ModelError, Port};

/// Feeds a method from the streams and returns its output to them.
pub(super) struct MethodRunner {
    executor: MethodExecutor,
    /// The input that neither a control nor the method itself feeds.
    main_input: usize,
    control_inputs: Vec<ControlInput>,
    /// Samples of the method's block.
    block: usize,
    channels_in: usize,
    channels_out: usize,
    /// States of the network, each of which processes every `phases`-th sample; 1 without
    /// oversampling.
    phases: usize,
    /// Streams that share these states: 1 or 2.
    joined: usize,
    /// States in this step.
    states: Vec<usize>,
    /// `[stream]`; empty without oversampling.
    oversamplers: Vec<Oversampler>,
    /// `[channel]`: a step of one stream at the higher rate.
    oversampled: [Vec<f32>; 2],
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
    /// Number of streams.
    pub streams: usize,
    /// Streams that share a state of the network: 1, or 2 for both channels of stereo sessions.
    pub joined: usize,
    /// Most samples per step, a multiple of the method's block.
    pub step: usize,
    /// Factor of oversampling: 1, 2, 4 or 8.
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
        let RunnerSize {
            streams,
            joined,
            step,
            oversampling: phases,
        } = size;
        let states = phases * streams / joined;
        let is_main = |port: &Port| !port_names.contains(&port.name) && !is_fed_back(method, port);
        let main_input = method.inputs.iter().position(is_main).unwrap_or_default();
        let control_inputs = method
            .inputs
            .iter()
            .enumerate()
            .filter_map(|(input, port)| {
                let index = port_names.iter().position(|name| *name == port.name)?;
                Some(ControlInput {
                    input,
                    port: index,
                    ratio: port.ratio,
                })
            });
        Ok(Self {
            executor: options.prepare(model, method, states, step / method.block)?,
            main_input,
            control_inputs: control_inputs.collect(),
            block: method.block,
            channels_in: method
                .inputs
                .get(main_input)
                .map_or(1, |port| port.channels),
            channels_out: output(method)?.channels,
            phases,
            joined,
            states: Vec::with_capacity(states),
            oversamplers: if phases == 1 {
                Vec::new()
            } else {
                (0..streams)
                    .map(|_| Oversampler::new(phases, step, options.kernels))
                    .collect()
            },
            oversampled: [1, 2]
                .map(|channel| vec![0.0; if channel <= joined { phases * step } else { 0 }]),
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
        self.oversamplers
            .first()
            .map_or(0, Oversampler::latency_samples)
    }

    /// Returns how many streams share a state of the network: 1 or 2.
    pub fn joined(&self) -> usize {
        self.joined
    }

    /// Resets a stream.
    pub fn open(&mut self, stream: usize, seed: u64) {
        if stream.is_multiple_of(self.joined) {
            self.states_of(stream)
                .for_each(|state| self.executor.seed(state, seed));
        }
        if let Some(oversampler) = self.oversamplers.get_mut(stream) {
            oversampler.reset();
        }
    }

    /// Returns the states of the network that process a stream.
    fn states_of(&self, stream: usize) -> Range<usize> {
        let first = stream / self.joined * self.phases;
        first..first + self.phases
    }

    /// Starts a step for the current pieces of these streams, which are equally long, and fills all
    /// control inputs.
    pub fn begin(&mut self, streams: &[EffectStream], active: &[usize]) {
        let EffectStream { piece, .. } = &streams[active[0]];
        self.begin_samples(streams, active, piece.start, piece.len());
    }

    /// Starts a step of one block for these streams and fills all control inputs with the values
    /// from sample `at` of their hops on.
    pub fn begin_block(&mut self, streams: &[EffectStream], active: &[usize], at: usize) {
        self.begin_samples(streams, active, at, self.block);
    }

    fn begin_samples(
        &mut self,
        streams: &[EffectStream],
        active: &[usize],
        at: usize,
        length: usize,
    ) {
        self.states.clear();
        for &stream in active {
            let states = self.states_of(stream);
            self.states.extend(states);
        }
        self.executor.begin(&self.states, length / self.block);
        for &ControlInput { input, port, ratio } in &self.control_inputs {
            let rows = self.executor.input(input).chunks_exact_mut(length / ratio);
            let states = active
                .iter()
                .flat_map(|stream| std::iter::repeat_n(*stream, self.phases));
            for (row, stream) in rows.zip(states) {
                let EffectStream {
                    ports, hop, piece, ..
                } = &streams[stream];
                let frames = hop / ratio;
                // A block may begin near the end of the hop.
                let last = piece.end.next_multiple_of(*hop) / ratio - 1;
                for (frame, value) in row.iter_mut().enumerate() {
                    *value = ports.at(port, (at / ratio + frame).min(last), frames);
                }
            }
        }
    }

    /// Returns the main input, `[stream][frame][channel]`; not for oversampled methods.
    pub fn input(&mut self) -> &mut [f32] {
        self.executor.input(self.main_input)
    }

    /// Returns the first output, `[stream][frame][channel]`; not for oversampled methods.
    pub fn output(&self) -> &[f32] {
        self.executor.output(0)
    }

    /// Returns the executor with all ports; not for oversampled methods.
    pub fn executor(&mut self) -> &mut dyn Execute {
        &mut *self.executor
    }

    /// Computes the step.
    pub fn run(&mut self) {
        self.executor.run();
    }

    /// Returns the number of layers; see [`MethodRunner::run_layer`].
    pub fn layers(&self) -> usize {
        self.executor.layer_count()
    }

    /// Returns the times of the layers in a step of one stream; see [`layer_times`].
    pub fn layer_times(&mut self, samples: usize) -> Vec<Duration> {
        layer_times(
            &mut self.executor,
            self.control_inputs.len() + 1,
            samples / self.block,
        )
    }

    /// Computes one layer of the step; [`MethodRunner::run`] is all of them in order.
    pub fn run_layer(&mut self, index: usize) {
        self.executor.run_layer(index);
    }

    /// Copies the streams' input to the main input: left and right, or a single stream as both, to
    /// the first two channels and silence to further ones; the mean of left and right to a single
    /// channel.
    pub fn copy_input(&mut self, streams: &[EffectStream], active: &[usize]) {
        let Self {
            executor,
            main_input,
            channels_in,
            phases,
            joined,
            oversamplers,
            oversampled,
            ..
        } = self;
        let input = executor.input(*main_input);
        let length = input.len() / active.len();
        for (rows, &first) in input.chunks_exact_mut(length).zip(active) {
            let piece = &streams[first].piece;
            if oversamplers.is_empty() && *channels_in == 1 && *joined == 1 {
                rows.copy_from_slice(&streams[first].input[piece.clone()]);
                continue;
            }
            let mut sounds: [&[f32]; 2] = [&[]; 2];
            for ((sound, stream), oversampled) in sounds
                .iter_mut()
                .zip(first..first + *joined)
                .zip(&mut *oversampled)
            {
                *sound = &streams[stream].input[piece.clone()];
                if let Some(oversampler) = oversamplers.get_mut(stream) {
                    let oversampled = &mut oversampled[..*phases * piece.len()];
                    oversampler.up(sound, oversampled);
                    *sound = oversampled;
                }
            }
            for (phase, row) in rows.chunks_exact_mut(length / *phases).enumerate() {
                let frames = row.chunks_exact_mut(*channels_in);
                let [left, right] = sounds.map(|sound| sound.iter().skip(phase).step_by(*phases));
                match (*joined, *channels_in) {
                    (1, 1) => frames
                        .zip(left)
                        .for_each(|(frame, sample)| frame[0] = *sample),
                    (1, _) => frames
                        .zip(left)
                        .for_each(|(frame, sample)| fill_frame(frame, *sample, *sample)),
                    (_, 1) => frames
                        .zip(left.zip(right))
                        .for_each(|(frame, (l, r))| frame[0] = 0.5 * l + 0.5 * r),
                    _ => frames
                        .zip(left.zip(right))
                        .for_each(|(frame, (l, r))| fill_frame(frame, *l, *r)),
                }
            }
        }
    }

    /// Copies the output to the streams: the mean of all channels to a single stream; the channels
    /// in turn to left and right, or a single channel to both.
    pub fn copy_output(&mut self, streams: &mut [EffectStream], active: &[usize]) {
        let Self {
            executor,
            channels_out,
            phases,
            joined,
            oversamplers,
            oversampled: [oversampled, _],
            ..
        } = self;
        let output = executor.output(0);
        let length = output.len() / active.len();
        // Stream `s` of a session receives channels `s`, `s + apart`, …
        let apart = (*joined).min(*channels_out);
        let gain = 1.0 / (*channels_out).div_ceil(apart) as f32;
        for (rows, &first) in output.chunks_exact(length).zip(active) {
            for (side, stream) in streams[first..first + *joined].iter_mut().enumerate() {
                let EffectStream {
                    timeline, piece, ..
                } = stream;
                let sound = &mut timeline.sound[..piece.len()];
                let oversampler = oversamplers.get_mut(first + side);
                if oversampler.is_none() && *channels_out == 1 {
                    sound.copy_from_slice(rows);
                    continue;
                }
                let from = side.min(apart - 1);
                let mean = if oversampler.is_none() {
                    &mut *sound
                } else {
                    &mut oversampled[..*phases * piece.len()]
                };
                for (phase, row) in rows.chunks_exact(length / *phases).enumerate() {
                    let samples = mean[phase..].iter_mut().step_by(*phases);
                    for (sample, frame) in samples.zip(row.chunks_exact(*channels_out)) {
                        *sample = gain * frame.iter().skip(from).step_by(apart).sum::<f32>();
                    }
                }
                if let Some(oversampler) = oversampler {
                    oversampler.down(&oversampled[..*phases * piece.len()], sound);
                }
            }
        }
    }
}

/// Moves the streams of `active` whose pieces are as long as that of the first to `group`.
pub(super) fn take_equally_long(
    streams: &[EffectStream],
    active: &mut Vec<usize>,
    group: &mut Vec<usize>,
) {
    group.clear();
    let Some(&first) = active.first() else { return };
    let length = streams[first].piece.len();
    active.retain(|&stream| {
        let is_equal = streams[stream].piece.len() == length;
        if is_equal {
            group.push(stream);
        }
        !is_equal
    });
}

/// Fills a frame of two channels or more.
fn fill_frame(frame: &mut [f32], left: f32, right: f32) {
    frame.fill(0.0);
    (frame[0], frame[1]) = (left, right);
}

/// Collects in `active` the first stream of each state of the network, for the `ready` streams that
/// are not muted; silences the others. `joined` streams share a state.
pub(super) fn select_active(
    streams: &mut [EffectStream],
    ready: &[usize],
    joined: usize,
    active: &mut Vec<usize>,
) {
    active.clear();
    for &stream in ready {
        if streams[stream].is_silent() {
            streams[stream].timeline.sound.fill(0.0);
        } else if stream.is_multiple_of(joined) {
            active.push(stream);
        }
    }
}
