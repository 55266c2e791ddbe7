//! A model with all of its sessions, processed hop by hop: the part that all kinds of model share.

use super::playable::{
    CommandQueueFull, InputAnalysis, Playable, ProcessRequest, SessionStart, SlotStats, TimedCommand,
};
use super::timeline::{CHUNK, Timeline};

/// One session's own part of a model: its time, its input and its controls.
pub(super) trait SessionStream: Send {
    /// Returns the session's clock.
    fn timeline(&self) -> &Timeline;

    /// Returns the session's clock.
    fn timeline_mut(&mut self) -> &mut Timeline;

    /// Resets the session.
    fn open(&mut self, start: &SessionStart);

    /// Queues a command.
    fn handle(&mut self, command: TimedCommand) -> Result<(), CommandQueueFull>;

    /// Advances by `length` host samples, at most a chunk; [`SessionStream::next_hop`] then returns the hops that this
    /// completes. Empty input counts as silence.
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

/// The network that all sessions share, with a state for each.
pub(super) trait BatchNetwork<S>: Send {
    /// Resets the state of a slot.
    fn open(&mut self, slot: usize, seed: u64);

    /// Computes one hop for each of the `ready` slots.
    fn process_hop(&mut self, streams: &mut [S], ready: &[usize]);

    /// Returns the name of the executor.
    fn name(&self) -> String;

    /// Returns the bytes of weights, states and buffers.
    fn bytes(&self) -> usize;

    /// Returns true if a hop may allocate or wait.
    fn may_allocate(&self) -> bool {
        false
    }

    /// Returns the latents that a slot decoded last.
    fn latents(&self, _slot: usize) -> &[f32] {
        &[]
    }
}

/// A network and the sessions that play it.
pub(super) struct SessionBatch<S, N> {
    streams: Vec<S>,
    network: N,
    /// Slots with a complete hop.
    ready: Vec<usize>,
    tail_samples: usize,
}

impl<S: SessionStream, N: BatchNetwork<S>> SessionBatch<S, N> {
    /// Combines a network with one stream per slot; `tail_samples` is in host samples.
    pub fn new(streams: Vec<S>, mut network: N, seed: u64, tail_samples: usize) -> Self {
        (0..streams.len()).for_each(|slot| network.open(slot, seed));
        Self { ready: Vec::with_capacity(streams.len()), streams, network, tail_samples }
    }

    #[cfg(test)]
    pub fn stream_mut(&mut self, slot: usize) -> &mut S {
        &mut self.streams[slot]
    }
}

impl<S: SessionStream, N: BatchNetwork<S>> Playable for SessionBatch<S, N> {
    fn capacity(&self) -> usize {
        self.streams.len()
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
        self.streams[slot].open(start);
        self.network.open(slot, start.seed);
    }

    fn handle(&mut self, slot: usize, command: TimedCommand) -> Result<(), CommandQueueFull> {
        self.streams[slot].handle(command)
    }

    fn process(&mut self, requests: &mut [ProcessRequest<'_>]) {
        let longest = requests.iter().map(|request| request.output.len()).max().unwrap_or(0);
        for start in (0..longest).step_by(CHUNK) {
            let chunk = |request: &ProcessRequest<'_>| {
                start.min(request.output.len())..(start + CHUNK).min(request.output.len())
            };
            for request in requests.iter().filter(|request| !chunk(request).is_empty()) {
                let input = if request.input.is_empty() { &[] } else { &request.input[chunk(request)] };
                self.streams[request.slot].take_input(input, chunk(request).len(), request.mute);
            }
            loop {
                self.ready.clear();
                let slots = requests.iter().filter(|request| !chunk(request).is_empty()).map(|request| request.slot);
                self.ready.extend(slots.filter(|&slot| self.streams[slot].next_hop()));
                if self.ready.is_empty() {
                    break;
                }
                self.network.process_hop(&mut self.streams, &self.ready);
                self.ready.iter().for_each(|&slot| self.streams[slot].deliver());
            }
            for request in requests.iter_mut() {
                let chunk = chunk(request);
                if !chunk.is_empty() {
                    self.streams[request.slot].timeline_mut().take_output(&mut request.output[chunk]);
                }
            }
        }
    }

    fn input_analysis(&self, slot: usize) -> Option<InputAnalysis> {
        self.streams[slot].input_analysis()
    }

    fn latents(&self, slot: usize) -> &[f32] {
        self.network.latents(slot)
    }

    fn executor(&self) -> String {
        self.network.name()
    }

    fn bytes(&self) -> usize {
        self.network.bytes()
    }

    fn stats(&self, slot: usize) -> SlotStats {
        let stream = &self.streams[slot];
        SlotStats {
            now: stream.timeline().now(),
            samples_missing: stream.timeline().samples_missing(),
            voices: stream.sounding(),
            notes_dropped: stream.notes_dropped(),
        }
    }
}
