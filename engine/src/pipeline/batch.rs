//! A model of any kind with all of its seats, stepped hop by hop: what kinds of model have in common.

use super::cue::{Cue, CueFull};
use super::playable::{Followed, Playable, Start, Turn};
use super::stream::{CHUNK, Stream};

/// One session's own half of a model: its time, its input and its knobs.
pub(super) trait Seat: Send {
    /// Its way through time.
    fn stream(&self) -> &Stream;
    fn stream_mut(&mut self) -> &mut Stream;
    /// Begins anew.
    fn open(&mut self, start: &Start);
    /// Takes in a cue.
    fn handle(&mut self, cue: Cue) -> Result<(), CueFull>;
    /// Goes on by `length` host samples, at most a chunk: then [`Seat::next`] tells of all hops that this completes. No input
    /// counts as silence.
    fn take(&mut self, input: &[f32], length: usize, mute: bool);
    /// Whether there is one more hop to make, which [`Seat::deliver`] takes from its stream.
    fn next(&mut self) -> bool;
    /// The hop is made.
    fn deliver(&mut self);
    /// What is followed now.
    fn followed(&self) -> Option<Followed> {
        None
    }
    /// Voices that sounded in the last hop.
    fn sounding(&self) -> usize {
        0
    }
    /// Notes that found no voice, even by stealing.
    fn notes_dropped(&self) -> u64 {
        0
    }
}

/// What all seats share: a network with a state for each.
pub(super) trait Network<S>: Send {
    /// A seat is taken anew.
    fn open(&mut self, seat: usize, seed: u64);
    /// Makes one hop for each of `ready`, those of `seats` that have one to make.
    fn hop(&mut self, seats: &mut [S], ready: &[usize]);
    /// What computes it.
    fn name(&self) -> String;
    /// Bytes of weights, states and buffers.
    fn bytes(&self) -> usize;
    /// Whether a hop may take memory, or wait.
    fn may_allocate(&self) -> bool {
        false
    }
    /// The last latents of a seat.
    fn latents(&self, _seat: usize) -> &[f32] {
        &[]
    }
}

/// A network and the seats in front of it.
pub(super) struct Batch<S, N> {
    seats: Vec<S>,
    network: N,
    /// Seats with a hop to make.
    ready: Vec<usize>,
    tail: usize,
}

impl<S: Seat, N: Network<S>> Batch<S, N> {
    /// `tail` is in host samples.
    pub fn new(seats: Vec<S>, mut network: N, seed: u64, tail: usize) -> Self {
        (0..seats.len()).for_each(|seat| network.open(seat, seed));
        Self { ready: Vec::with_capacity(seats.len()), seats, network, tail }
    }

    #[cfg(test)]
    pub fn seat_mut(&mut self, seat: usize) -> &mut S {
        &mut self.seats[seat]
    }
}

/// What can be asked of a model besides playing it.
pub(super) trait Inspect: Playable {
    /// What computes the network.
    fn executor(&self) -> String;
    /// Bytes of weights, states and buffers of the executors.
    fn bytes(&self) -> usize;
    /// The present of a seat, in the host's samples.
    fn now(&self, seat: usize) -> u64;
    /// Samples of a seat that were not there when they were asked for.
    fn samples_missing(&self, seat: usize) -> u64;
    /// Voices of a seat that sounded in the last hop.
    fn sounding(&self, seat: usize) -> usize;
    /// Notes of a seat that found no voice.
    fn notes_dropped(&self, seat: usize) -> u64;
}

impl<S: Seat, N: Network<S>> Inspect for Batch<S, N> {
    fn executor(&self) -> String {
        self.network.name()
    }

    fn bytes(&self) -> usize {
        self.network.bytes()
    }

    fn now(&self, seat: usize) -> u64 {
        self.seats[seat].stream().now()
    }

    fn samples_missing(&self, seat: usize) -> u64 {
        self.seats[seat].stream().missing()
    }

    fn sounding(&self, seat: usize) -> usize {
        self.seats[seat].sounding()
    }

    fn notes_dropped(&self, seat: usize) -> u64 {
        self.seats[seat].notes_dropped()
    }
}

impl<S: Seat, N: Network<S>> Playable for Batch<S, N> {
    fn seats(&self) -> usize {
        self.seats.len()
    }

    fn latency_samples(&self) -> usize {
        self.seats[0].stream().latency_samples()
    }

    fn tail_samples(&self) -> usize {
        self.tail
    }

    fn may_allocate(&self) -> bool {
        self.network.may_allocate()
    }

    fn open(&mut self, seat: usize, start: &Start) {
        self.seats[seat].open(start);
        self.network.open(seat, start.seed);
    }

    fn handle(&mut self, seat: usize, cue: Cue) -> Result<(), CueFull> {
        self.seats[seat].handle(cue)
    }

    fn followed(&self, seat: usize) -> Option<Followed> {
        self.seats[seat].followed()
    }

    fn latents(&self, seat: usize) -> &[f32] {
        self.network.latents(seat)
    }

    fn process(&mut self, turns: &mut [Turn<'_>]) {
        let longest = turns.iter().map(|turn| turn.output.len()).max().unwrap_or(0);
        for start in (0..longest).step_by(CHUNK) {
            let piece = |turn: &Turn<'_>| start.min(turn.output.len())..(start + CHUNK).min(turn.output.len());
            for turn in turns.iter().filter(|turn| !piece(turn).is_empty()) {
                let input = if turn.input.is_empty() { &[] } else { &turn.input[piece(turn)] };
                self.seats[turn.seat].take(input, piece(turn).len(), turn.mute);
            }
            loop {
                self.ready.clear();
                let playing = turns.iter().filter(|turn| !piece(turn).is_empty()).map(|turn| turn.seat);
                self.ready.extend(playing.filter(|&seat| self.seats[seat].next()));
                if self.ready.is_empty() {
                    break;
                }
                self.network.hop(&mut self.seats, &self.ready);
                self.ready.iter().for_each(|&seat| self.seats[seat].deliver());
            }
            for turn in turns.iter_mut() {
                let piece = piece(turn);
                if !piece.is_empty() {
                    self.seats[turn.seat].stream_mut().give(&mut turn.output[piece]);
                }
            }
        }
    }
}
