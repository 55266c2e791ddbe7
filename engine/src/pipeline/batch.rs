//! A model with all of its sessions, processed hop by hop: the part that all kinds of model share.

use std::ops::Range;

use super::playable::{
    CommandQueueFull, InputAnalysis, Playable, ProcessRequest, SessionStart, SlotStats,
    TimedCommand,
};
use super::timeline::{CHUNK, Timeline};

/// A session, or one channel of a stereo effect's, and its part of a model: time, input and
/// controls.
///
/// The channels of a stereo session receive the same commands, so they always step together.
pub(super) trait SessionStream: Send {
    /// Returns the session's clock.
    fn timeline(&self) -> &Timeline;

    /// Returns the session's clock.
    fn timeline_mut(&mut self) -> &mut Timeline;

    /// Resets the session.
    fn open(&mut self, start: &SessionStart);

    /// Queues a command.
    fn handle(&mut self, command: TimedCommand) -> Result<(), CommandQueueFull>;

    /// Advances by `length` host samples, at most a chunk; [`SessionStream::next_hop`] then returns
    /// the hops that this completes. Empty input counts as silence.
    fn take_input(&mut self, input: &[f32], length: usize, mute: bool);

    /// Prepares the next hop, if it is complete; [`SessionStream::deliver`] must follow.
    fn next_hop(&mut self) -> bool;

    /// Queues the hop's sound for the host.
    fn deliver(&mut self);

    /// Returns the pitch and loudness that are tracked in the input.
    fn input_analysis(&self) -> Option<InputAnalysis> {
        None
    }

    /// Returns the number of voices that sounded in the last hop.
    fn sounding(&self) -> usize {
        0
    }

    /// Returns the number of notes that got no voice, not even by stealing.
    fn notes_dropped(&self) -> u64 {
        0
    }
}

/// The network that all streams share, with a state for each.
pub(super) trait BatchNetwork<S>: Send {
    /// Resets the state of a stream.
    fn open(&mut self, stream: usize, seed: u64);

    /// Called after all streams have taken their input, before their next hops begin.
    fn advance(&mut self, _streams: &mut [S]) {}

    /// Computes one hop for each of the `ready` streams; both channels of a session are ready at
    /// once, one after the other.
    fn process_hop(&mut self, streams: &mut [S], ready: &[usize]);

    /// Returns the name of the executor.
    fn name(&self) -> String;

    /// Returns the bytes of weights, states and buffers.
    fn bytes(&self) -> usize;

    /// Returns true if a hop may allocate or wait.
    fn may_allocate(&self) -> bool {
        false
    }

    /// Returns the latents that a stream decoded last.
    fn latents(&self, _stream: usize) -> &[f32] {
        &[]
    }
}

/// A network and the sessions that play it.
pub(super) struct SessionBatch<S, N> {
    /// Those of slot `s` are `s · channels ..`.
    streams: Vec<S>,
    /// Streams per slot, 1 or 2.
    channels: usize,
    network: N,
    /// Streams with a complete hop.
    ready: Vec<usize>,
    tail_samples: usize,
}

impl<S: SessionStream, N: BatchNetwork<S>> SessionBatch<S, N> {
    /// Combines a network with `channels` streams per slot; `tail_samples` is in host samples.
    pub fn new(
        streams: Vec<S>,
        channels: usize,
        mut network: N,
        seed: u64,
        tail_samples: usize,
    ) -> Self {
        (0..streams.len()).for_each(|stream| network.open(stream, seed));
        Self {
            ready: Vec::with_capacity(streams.len()),
            streams,
            channels,
            network,
            tail_samples,
        }
    }

    /// Returns the streams of a slot.
    fn streams_of(&self, slot: usize) -> Range<usize> {
        slot * self.channels..(slot + 1) * self.channels
    }

    /// Returns the output channels of each stream.
    fn outputs(&self) -> usize {
        self.streams[0].timeline().outputs()
    }

    #[cfg(test)]
    pub fn stream_mut(&mut self, slot: usize) -> &mut S {
        &mut self.streams[slot * self.channels]
    }
}

impl<S: SessionStream, N: BatchNetwork<S>> Playable for SessionBatch<S, N> {
    fn capacity(&self) -> usize {
        self.streams.len() / self.channels
    }

    fn channels(&self) -> usize {
        self.channels * self.outputs()
    }

    fn input_channels(&self) -> usize {
        self.channels
    }

    fn latency_samples(&self) -> usize {
        self.streams[0].timeline().latency_samples()
    }

    fn tail_samples(&self) -> usize {
        self.tail_samples
    }

    fn may_allocate(&self) -> bool {
        self.network.may_allocate()
    }

    fn open(&mut self, slot: usize, start: &SessionStart) {
        for stream in self.streams_of(slot) {
            self.streams[stream].open(start);
            // Equal seeds give both channels the same noise: what is in the middle stays there.
            self.network.open(stream, start.seed);
        }
    }

    fn handle(&mut self, slot: usize, command: TimedCommand) -> Result<(), CommandQueueFull> {
        // All channels have handled the same commands, so their queues are equally full.
        self.streams_of(slot)
            .try_for_each(|stream| self.streams[stream].handle(command))
    }

    fn process(&mut self, requests: &mut [ProcessRequest<'_>]) {
        let longest = requests
            .iter()
            .map(ProcessRequest::samples)
            .max()
            .unwrap_or(0);
        for start in (0..longest).step_by(CHUNK) {
            let chunk = |request: &ProcessRequest<'_>| {
                start.min(request.samples())..(start + CHUNK).min(request.samples())
            };
            for request in requests.iter().filter(|request| !chunk(request).is_empty()) {
                for (stream, input) in self.streams_of(request.slot).zip(request.input) {
                    let input = if input.is_empty() {
                        &[]
                    } else {
                        &input[chunk(request)]
                    };
                    self.streams[stream].take_input(input, chunk(request).len(), request.mute);
                }
            }
            loop {
                self.network.advance(&mut self.streams);
                self.ready.clear();
                for request in requests.iter().filter(|request| !chunk(request).is_empty()) {
                    let streams = request.slot * self.channels..(request.slot + 1) * self.channels;
                    self.ready
                        .extend(streams.filter(|&stream| self.streams[stream].next_hop()));
                }
                if self.ready.is_empty() {
                    break;
                }
                self.network.process_hop(&mut self.streams, &self.ready);
                self.ready
                    .iter()
                    .for_each(|&stream| self.streams[stream].deliver());
            }
            for request in requests.iter_mut() {
                let (chunk, streams) = (chunk(request), self.streams_of(request.slot));
                if !chunk.is_empty() {
                    let outputs = self.outputs();
                    let channels = streams
                        .flat_map(|stream| (0..outputs).map(move |channel| (stream, channel)));
                    for ((stream, channel), output) in channels.zip(&mut request.output) {
                        self.streams[stream]
                            .timeline_mut()
                            .take_output(channel, &mut output[chunk.clone()]);
                    }
                }
            }
        }
    }

    fn input_analysis(&self, slot: usize) -> Option<InputAnalysis> {
        self.streams[slot * self.channels].input_analysis()
    }

    fn latents(&self, slot: usize) -> &[f32] {
        self.network.latents(slot * self.channels)
    }

    fn executor(&self) -> String {
        self.network.name()
    }

    fn bytes(&self) -> usize {
        self.network.bytes()
    }

    fn stats(&self, slot: usize) -> SlotStats {
        let stream = &self.streams[slot * self.channels];
        SlotStats {
            now: stream.timeline().now(),
            samples_missing: stream.timeline().samples_missing(),
            voices: stream.sounding(),
            notes_dropped: stream.notes_dropped(),
        }
    }
}
