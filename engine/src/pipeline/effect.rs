//! Effects: the method `forward`, or a variant of it, turns the input into the output.
//!
//! A mono session is one stream: the first two channels of the method's input receive the same
//! samples, further ones silence, and the output is the mean of its channels. A stereo session is
//! two streams, left and right. A method with several channels at its input or output has one state
//! for both: its first two inputs are left and right, further ones receive silence, and its outputs
//! are left and right in turn, each side the mean of its channels. A method with one channel has a
//! state for each stream, and both are computed in one step.
//!
//! Oversampled by 2, one state of the network processes the even samples of the input at twice the
//! rate, and another state the odd ones. All delays of the network keep their duration in seconds.

use super::batch::{BatchNetwork, SessionBatch};
use super::control_ports::ControlBinding;
use super::effect_stream::{EffectStream, EffectStreamConfig, HopStart};
use super::method_ports::{ChannelLayout, inputs, output, require_audio};
use super::method_runner::{MethodRunner, RunnerSize, select_active, take_equally_long};
use super::options::{PipelineError, PipelineOptions};
use crate::dsp::noise::stream_seed;
use crate::model::{Method, Model, limits};

/// Shortest hop, and so the interval between control updates, in samples: enough work for an
/// efficient step.
const MIN_HOP: usize = 64;

/// The method `forward`, or a variant of it, for all slots.
pub(super) struct ForwardNetwork {
    runner: MethodRunner,
    /// States that are not muted in this hop, by their first streams.
    active: Vec<usize>,
    /// Those of them whose pieces are equally long.
    group: Vec<usize>,
}

/// Returns the method of an effect that these options select, and the names of the inputs that
/// controls feed.
///
/// # Errors
/// Returns [`PipelineError`] if the model lacks what an effect needs, or the options do not fit it.
pub(super) fn check<'a>(
    model: &'a Model,
    options: &PipelineOptions,
) -> Result<(&'a Method, Vec<String>, ChannelLayout), PipelineError> {
    let header = model.header();
    let method = model.method(
        options
            .variant(header)?
            .map_or("forward", |variant| variant.method.as_str()),
    )?;
    let (port_names, input) = inputs(header, method)?;
    require_audio(method, input)?;
    require_audio(method, output(method)?)?;
    let layout = ChannelLayout::new(options.channels, input.channels, output(method)?.channels);
    let factor = options.factor(header);
    if limits::OVERSAMPLINGS.contains(&factor) {
        Ok((method, port_names, layout))
    } else {
        Err(PipelineError::Oversampling(factor))
    }
}

/// Makes an effect playable.
///
/// # Errors
/// Returns [`PipelineError`] as [`check`] does, or if the executor or the sample rate is not
/// available.
pub(super) fn build(
    model: &Model,
    options: &PipelineOptions,
) -> Result<SessionBatch<EffectStream, ForwardNetwork>, PipelineError> {
    let header = model.header();
    let (method, port_names, layout) = check(model, options)?;
    let hop = MIN_HOP.next_multiple_of(method.block);
    let streams = options.sessions * layout.channels;
    let size = RunnerSize {
        streams,
        joined: layout.joined,
        step: hop,
        oversampling: options.factor(header),
    };
    let runner = MethodRunner::new(model, method, &port_names, options.executor_options(), size)?;
    let config = EffectStreamConfig {
        sample_rate: header.sample_rate,
        block: method.block,
        start: HopStart::WithInput,
        hop,
        hops: 1,
        delay: model.latency_samples(method) + runner.oversampling_latency(),
        port_names: &port_names,
        bindings: &ControlBinding::all(&header.controls, &port_names),
    };
    let streams = EffectStream::several(&config, options, streams)?;
    // The oversampling filters are symmetric: they ring as long as they delay.
    let tail = streams[0].tail_samples(model.tail_samples(method) + runner.oversampling_latency());
    let slots = || Vec::with_capacity(streams.len());
    let network = ForwardNetwork {
        runner,
        active: slots(),
        group: slots(),
    };
    Ok(SessionBatch::new(
        streams,
        layout.channels,
        network,
        options.seed,
        tail,
    ))
}

impl BatchNetwork<EffectStream> for ForwardNetwork {
    fn open(&mut self, stream: usize, seed: u64) {
        self.runner.open(stream, stream_seed(seed, 0));
    }

    fn process_hop(&mut self, streams: &mut [EffectStream], ready: &[usize]) {
        let Self {
            runner,
            active,
            group,
        } = self;
        select_active(streams, ready, runner.joined(), active);
        while !active.is_empty() {
            take_equally_long(streams, active, group);
            runner.begin(streams, group);
            runner.copy_input(streams, group);
            runner.run();
            runner.copy_output(streams, group);
        }
    }

    fn name(&self) -> String {
        self.runner.name()
    }

    fn bytes(&self) -> usize {
        self.runner.bytes()
    }

    fn may_allocate(&self) -> bool {
        self.runner.may_allocate()
    }
}

#[cfg(test)]
mod tests;
