//! A session's way through time, whatever the model: the host's samples, the model's, and the cues that wait between them.

use std::collections::VecDeque;

use super::cue::Action;
use super::rates::{Inside, Rates};
use crate::dsp::resample::ResampleError;

/// Host samples that are worked on at a time; longer blocks are taken in pieces.
pub(super) const CHUNK: usize = 1024;
/// How many turns of knobs may wait for their hop.
const DUE: usize = 1024;
/// How long before its start a stream still places what was begun earlier, seconds.
const PAST_S: u64 = 30;

/// From the host's time to hops of the model, and from hops of sound to the host.
pub(super) struct Stream {
    rates: Rates,
    ratio: Ratio,
    hop: usize,
    /// Host time minus own time, samples. Own time is 0 at the start, or later where something has begun before it.
    origin: u64,
    /// Own time to begin at where there is a past, host samples.
    past: u64,
    /// Hops made so far; hop `i` belongs to sample `i · hop` at the model's rate.
    made: u64,
    /// Host samples played so far, in own time.
    played: u64,
    /// Cues, at the model's rate, that wait for their hop.
    due: VecDeque<(u64, Action)>,
    /// Nothing was played since the start: knobs are at once where they are set.
    fresh: bool,
    missing: u64,
    /// The network gave something else than numbers: so does this stream, until it begins anew. A resampler does not stand it.
    insane: bool,
    /// One hop at the model's rate.
    pub sound: Vec<f32>,
}

/// Host and model rate, Hz.
#[derive(Clone, Copy)]
struct Ratio {
    host: u64,
    model: u64,
}

impl Stream {
    /// `host` and `model` are rates in Hz, `with_input` says whether the model hears the host's sound, and `hop` is in samples at
    /// the model's rate.
    pub fn new(host: u32, model: u32, inside: Inside, with_input: bool, hop: usize) -> Result<Self, ResampleError> {
        let rates = Rates::new(host, model, inside, with_input, hop, CHUNK)?;
        let period = rates.period(host, model, hop);
        let longest = PAST_S * u64::from(host);
        Ok(Self {
            rates,
            ratio: Ratio { host: host.into(), model: model.into() },
            hop,
            origin: 0,
            past: if period <= longest { longest.next_multiple_of(period) } else { 0 },
            made: 0,
            played: 0,
            due: VecDeque::with_capacity(DUE),
            fresh: true,
            missing: 0,
            insane: false,
            sound: vec![0.0; hop],
        })
    }

    pub fn latency_samples(&self) -> usize {
        self.rates.latency
    }

    /// Host samples that the conversions ring on.
    pub fn ring_samples(&self) -> usize {
        self.rates.ring
    }

    /// The most samples at the model's rate that a chunk of input completes.
    pub fn most_heard(&self) -> usize {
        self.rates.most_heard
    }

    /// Host samples that so many at the model's rate last.
    pub fn to_host_samples(&self, samples: usize) -> usize {
        (samples as u64 * self.ratio.host).div_ceil(self.ratio.model) as usize
    }

    /// Samples that were not there when they were asked for.
    pub fn missing(&self) -> u64 {
        self.missing
    }

    /// The present, in the host's samples.
    pub fn now(&self) -> u64 {
        self.origin.wrapping_add(self.played)
    }

    /// Begins anew at a sample of the host's.
    pub fn open(&mut self, at: u64) {
        // A session that begins has no past. One that takes over does: its own time begins late enough to hold it, at a
        // multiple of all blocks, where everything stands as it does at 0.
        self.played = if at == 0 { 0 } else { self.past };
        self.origin = at.wrapping_sub(self.played);
        self.made = self.played * self.ratio.model / (self.ratio.host * self.hop as u64);
        self.rates.reset();
        self.due.clear();
        (self.fresh, self.missing, self.insane) = (true, 0, false);
    }

    /// A time of the host's in samples at the model's rate. Rounded up: hops made so far lie before the host's present
    /// sample, so nothing can miss the hop it belongs to.
    pub fn model_time(&self, at: u64) -> u64 {
        let own = at.wrapping_sub(self.origin);
        // What lies before all that this stream can tell counts as its beginning.
        let own = if own > u64::MAX / 2 { 0 } else { own };
        (u128::from(own) * u128::from(self.ratio.model)).div_ceil(u128::from(self.ratio.host)) as u64
    }

    /// Whether there is no room for another cue to wait.
    pub fn is_full(&self) -> bool {
        self.due.len() == DUE
    }

    /// Lets a cue wait for its hop, at a time at the model's rate; there must be room for it.
    pub fn push(&mut self, at: u64, action: Action) {
        debug_assert!(!self.is_full(), "somebody must look first");
        self.due.push_back((at, action));
    }

    /// The next cue that the coming hop has to follow, and its time at the model's rate.
    pub fn next_due(&mut self) -> Option<(u64, Action)> {
        let at = self.at();
        self.due.pop_front_if(|(when, _)| *when <= at)
    }

    /// Goes on by so many host samples, at most a chunk.
    pub fn advance(&mut self, length: usize) {
        self.played += length as u64;
    }

    /// Gives the samples at the model's rate that `length` more of the host's complete, at most a chunk. No input counts as
    /// silence.
    pub fn hear(&mut self, input: &[f32], length: usize, emit: impl FnMut(&[f32])) {
        const SILENCE: [f32; CHUNK] = [0.0; CHUNK];
        let input = if input.is_empty() { &SILENCE[..length] } else { input };
        self.rates.to_model.push(input, emit);
    }

    /// The time of the coming hop, samples at the model's rate.
    pub fn at(&self) -> u64 {
        self.made * self.hop as u64
    }

    /// Seconds at the model's rate.
    pub fn seconds(&self, samples: u64) -> f64 {
        samples as f64 / self.ratio.model as f64
    }

    /// Whether the time of the coming hop has passed at the host.
    pub fn has_passed(&self) -> bool {
        self.at() * self.ratio.host < self.played * self.ratio.model
    }

    /// Whether nothing was played since the start.
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// A hop is about to be made.
    pub fn step(&mut self) {
        self.fresh = false;
        self.made += 1;
    }

    /// Makes sure that [`Stream::sound`] is sound: silence where it is none.
    pub fn check(&mut self) {
        if self.sound.iter().any(|sample| !sample.is_finite()) {
            self.sound.fill(0.0);
            self.insane = true;
        }
    }

    /// Takes the first samples in [`Stream::sound`], checked: a hop, or a piece of one.
    pub fn deliver(&mut self, length: usize) {
        self.rates.to_host.push(&self.sound[..length]);
    }

    /// Fills `out` with what is due at the host.
    pub fn give(&mut self, out: &mut [f32]) {
        self.missing += self.rates.to_host.pull(out) as u64;
        if self.insane {
            out.fill(f32::NAN);
        }
    }
}
