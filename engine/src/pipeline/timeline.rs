//! One session's time: rate conversion with an exact latency, hops of the model, and the commands
//! that wait for them.
//!
//! A host sample may need input that is not there yet: the filters of the rate conversion reach
//! ahead, and a model and a block resampler make their output in blocks. As many samples of silence
//! as the longest such wait are therefore queued in front of the output. They count as latency, and
//! no host block of any size ever has to wait.

use std::collections::VecDeque;

use ondes_kernels::Kernels;

use super::options::PipelineOptions;
use super::playable::Action;
use crate::dsp::resample::{ResampleError, Resampling, StreamResampler};

/// Host samples that are processed at a time; longer blocks are split.
pub(super) const CHUNK: usize = 1024;
/// Control and transport changes that may wait for their hop.
const MAX_PENDING_COMMANDS: usize = 1024;
/// Longest past of a session, in seconds: earlier commands count as given at its beginning.
const MAX_PAST_S: u64 = 30;

/// Delays inside the model, in samples at its rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct ModelDelays {
    /// Input that the model needs beyond the instant it plays.
    pub lookahead: usize,
    /// Delay from the instant that the model plays to its output.
    pub delay: usize,
}

/// Host rate and model rate, in Hz.
#[derive(Clone, Copy)]
struct SampleRates {
    host: u64,
    model: u64,
}

impl SampleRates {
    /// Converts a duration in samples from the model's rate to the host's, rounded up.
    fn to_host(self, samples: usize) -> usize {
        (samples as u64 * self.host).div_ceil(self.model) as usize
    }
}

/// Returns the latency in host samples, with low-latency conversion, of a model whose latency at
/// its own rate is `own` samples; `with_input` says whether it processes audio input. Rates are in
/// Hz.
///
/// ```
/// use ondes_engine::pipeline::latency_at;
///
/// // A capture, at its own rate and at another.
/// assert_eq!(latency_at(48_000, 48_000, 0, true)?, 0);
/// assert_eq!(latency_at(44_100, 48_000, 0, true)?, 42);
/// # Ok::<(), ondes_engine::dsp::resample::ResampleError>(())
/// ```
///
/// # Errors
/// Returns [`ResampleError`] if the rates cannot be converted.
pub fn latency_at(
    host: u32,
    model: u32,
    own: usize,
    with_input: bool,
) -> Result<usize, ResampleError> {
    let rates = SampleRates {
        host: host.into(),
        model: model.into(),
    };
    let delays = ModelDelays {
        lookahead: own,
        delay: 0,
    };
    Ok(RateConversion::low_latency(rates, delays, with_input, Kernels::scalar())?.latency)
}

/// Clock of a session: converts between the host's samples and the model's hops.
pub(super) struct Timeline {
    rates: SampleRates,
    to_model: StreamResampler,
    /// `[channel]`
    to_host: Vec<HostOutput>,
    latency: usize,
    resampler_tail: usize,
    max_model_samples: usize,
    hop: usize,
    /// Host time minus own time, in host samples. Own time starts at 0, or later where a past
    /// precedes the start.
    origin: u64,
    /// Own time at the start of a session with a past, in host samples.
    past: u64,
    /// Hops so far; hop `i` belongs to sample `i · hop` at the model's rate.
    hops: u64,
    /// Host samples so far, in own time.
    position: u64,
    /// Commands that wait for their hop, with their times at the model's rate.
    pending: VecDeque<(u64, Action)>,
    /// True until the first hop: control changes are not smoothed.
    is_fresh: bool,
    samples_missing: u64,
    /// Set after non-finite output; the session then outputs NaN until it is reset, since
    /// non-finite input would corrupt the resampler.
    has_failed: bool,
    /// `[channel][frame]`: output of a step at the model's rate.
    pub sound: Vec<f32>,
}

/// Converts a channel of the model's output to the host's rate and queues it.
struct HostOutput {
    resampler: StreamResampler,
    queue: VecDeque<f32>,
    /// Host samples of silence in front of the output.
    initial_silence: usize,
    /// Samples at the model's rate that are dropped at the start, so that the latency is an integer
    /// number of host samples.
    dropped_at_start: usize,
    /// Samples of these still to drop.
    still_to_drop: usize,
}

/// Conversion between the rates of host and model, with its latency.
struct RateConversion {
    to_model: StreamResampler,
    to_host: StreamResampler,
    /// Delay from a command or an input sample to its effect at the output, in host samples.
    latency: usize,
    /// Host samples of silence in front of the output.
    initial_silence: usize,
    /// Samples at the model's rate that are dropped at the start, so that the latency is an integer
    /// number of host samples.
    dropped_at_start: usize,
}

impl RateConversion {
    /// Output sample `n` is made as soon as the host has delivered input sample `n`, with the least
    /// latency for which this is possible.
    ///
    /// At host sample `n`, input up to model time `(n − ahead) · model / host` is there,
    /// `lookahead` less is played, and its output sample waits for `to_host.ahead()` more.
    /// Fractions round in favour of the host, since a position between two samples needs no sample
    /// more than the one before it.
    fn low_latency(
        rates: SampleRates,
        delays: ModelDelays,
        with_input: bool,
        kernels: Kernels,
    ) -> Result<Self, ResampleError> {
        let (host, model) = (rates.host as u32, rates.model as u32);
        // Without input there is nothing to convert, and no filter.
        let to_model =
            StreamResampler::low_latency(if with_input { host } else { model }, model, kernels)?;
        let (ahead, in_latency) = (to_model.ahead(), to_model.latency());
        let to_host =
            StreamResampler::low_latency_after(model, host, delays.delay + in_latency, kernels)?;
        let wait = (delays.lookahead + delays.delay + to_host.ahead()) as u64;
        let latency = ahead + (wait * rates.host / rates.model) as usize;
        let initial_silence = latency - to_host.latency();
        Ok(Self {
            to_model,
            to_host,
            latency,
            initial_silence,
            dropped_at_start: 0,
        })
    }

    /// Both resamplers work in blocks; the wait for the first sample of a block counts as latency.
    fn linear_phase(
        rates: SampleRates,
        delays: ModelDelays,
        with_input: bool,
    ) -> Result<Self, ResampleError> {
        let (host, model) = (rates.host as u32, rates.model as u32);
        let (to_model, to_host) = (
            StreamResampler::new(host, model)?,
            StreamResampler::new(model, host)?,
        );
        let block = |length| if length == 1 { 0 } else { length };
        let (in_block, in_latency) = if with_input {
            (block(to_model.period().1), to_model.latency())
        } else {
            (0, 0)
        };
        let out_block = block(to_host.period().1);
        // Model samples that last an integer number of host samples.
        let unit = (rates.model / gcd(rates.host, rates.model)) as usize;
        let delay = delays.delay + in_latency;
        let dropped_at_start = delay % unit;
        let initial_silence =
            rates.to_host(delays.lookahead + in_block + dropped_at_start) + out_block;
        let latency = initial_silence + to_host.latency() + rates.to_host(delay - dropped_at_start);
        Ok(Self {
            to_model,
            to_host,
            latency,
            initial_silence,
            dropped_at_start,
        })
    }
}

impl Timeline {
    /// Creates a timeline for a model's rate in Hz; `with_input` says whether the model processes
    /// audio input, `hop` is in samples at the model's rate, a step has up to `hops` of them, and
    /// `outputs` is the number of output channels.
    ///
    /// # Errors
    /// Returns [`ResampleError`] if the rates cannot be converted.
    pub fn new(
        options: &PipelineOptions,
        model: u32,
        delays: ModelDelays,
        with_input: bool,
        (hop, hops): (usize, usize),
        outputs: usize,
    ) -> Result<Self, ResampleError> {
        let rates = SampleRates {
            host: options.sample_rate.into(),
            model: model.into(),
        };
        let convert = || match options.resampling {
            Resampling::LowLatency => {
                RateConversion::low_latency(rates, delays, with_input, options.kernels)
            }
            Resampling::LinearPhase => RateConversion::linear_phase(rates, delays, with_input),
        };
        let RateConversion {
            to_model,
            to_host: resampler,
            latency,
            initial_silence,
            dropped_at_start,
        } = convert()?;
        // At most the silence, two steps and what the resampler makes of them are queued at the
        // same time.
        let capacity = initial_silence + 2 * resampler.max_output(2 * hop * hops) + CHUNK;
        let in_tail = if with_input {
            rates.to_host(to_model.tail())
        } else {
            0
        };
        let output = |resampler| HostOutput {
            resampler,
            queue: VecDeque::with_capacity(capacity),
            initial_silence,
            dropped_at_start,
            still_to_drop: 0,
        };
        let mut to_host = vec![output(resampler)];
        for _ in 1..outputs {
            to_host.push(output(convert()?.to_host));
        }
        let mut timeline = Self {
            rates,
            latency,
            resampler_tail: in_tail + to_host[0].resampler.tail(),
            max_model_samples: to_model.max_output(CHUNK),
            to_model,
            to_host,
            hop,
            origin: 0,
            past: 0,
            hops: 0,
            position: 0,
            pending: VecDeque::with_capacity(MAX_PENDING_COMMANDS),
            is_fresh: true,
            samples_missing: 0,
            has_failed: false,
            sound: vec![0.0; outputs * hops * hop],
        };
        let (period, longest) = (timeline.period(), MAX_PAST_S * rates.host);
        timeline.past = if period <= longest {
            longest.next_multiple_of(period)
        } else {
            0
        };
        timeline.open(0);
        Ok(timeline)
    }

    /// Returns the host samples after which all block boundaries coincide again.
    fn period(&self) -> u64 {
        let block_in = self.to_model.period().0 as u64;
        let block_out = self.to_host[0].resampler.period().1 as u64;
        let hop_in_host_units = self.hop as u64 * self.rates.host;
        let hops = hop_in_host_units / gcd(hop_in_host_units, self.rates.model);
        [block_in, block_out, hops]
            .into_iter()
            .fold(1, |a, b| a / gcd(a, b) * b)
    }

    /// Returns the delay from a command or an input sample to its effect at the output, in host
    /// samples.
    pub fn latency_samples(&self) -> usize {
        self.latency
    }

    /// Returns how long the resamplers ring, in host samples.
    pub fn resampler_tail_samples(&self) -> usize {
        self.resampler_tail
    }

    /// Returns the largest number of samples at the model's rate that a chunk of input completes.
    pub fn max_model_samples(&self) -> usize {
        self.max_model_samples
    }

    /// Converts a duration in samples from the model's rate to the host's, rounded up.
    pub fn to_host_samples(&self, samples: usize) -> usize {
        self.rates.to_host(samples)
    }

    /// Returns the number of samples that were due before the model had made them.
    pub fn samples_missing(&self) -> u64 {
        self.samples_missing
    }

    /// Returns the number of the next host sample.
    pub fn now(&self) -> u64 {
        self.origin.wrapping_add(self.position)
    }

    /// Resets the session; its next sample is the host's sample `at`.
    pub fn open(&mut self, at: u64) {
        // A session that takes over has a past: its own time begins late enough to hold it, at a
        // multiple of all periods, where phases and block boundaries are as at 0.
        self.position = if at == 0 { 0 } else { self.past };
        self.origin = at.wrapping_sub(self.position);
        self.hops = self.position * self.rates.model / (self.rates.host * self.hop as u64);
        self.to_model.reset();
        self.to_host.iter_mut().for_each(HostOutput::reset);
        self.pending.clear();
        (self.is_fresh, self.samples_missing, self.has_failed) = (true, 0, false);
    }

    /// Converts a host time to samples at the model's rate. Rounds up: hops so far lie before the
    /// next host sample, so no command can miss its hop.
    pub fn model_time(&self, at: u64) -> u64 {
        let own = at.wrapping_sub(self.origin);
        // Times before the session's past count as its beginning.
        let own = if own > u64::MAX / 2 { 0 } else { own };
        (u128::from(own) * u128::from(self.rates.model)).div_ceil(u128::from(self.rates.host))
            as u64
    }

    /// Returns true if no further command can wait.
    pub fn is_full(&self) -> bool {
        self.pending.len() == MAX_PENDING_COMMANDS
    }

    /// Queues a command for a time at the model's rate; the caller checks [`Timeline::is_full`]
    /// first.
    pub fn push(&mut self, at: u64, action: Action) {
        debug_assert!(!self.is_full(), "the caller checks for room");
        self.pending.push_back((at, action));
    }

    /// Removes the next command that is due at the coming hop, with its time at the model's rate.
    /// All but the first hop begin `ahead` samples early, and take the commands up to then.
    pub fn next_due(&mut self, ahead: usize) -> Option<(u64, Action)> {
        let at = self.hop_start() - if self.is_fresh { 0 } else { ahead as u64 };
        self.pending.pop_front_if(|(when, _)| *when <= at)
    }

    /// Advances by `length` host samples, at most a chunk.
    pub fn advance(&mut self, length: usize) {
        self.position += length as u64;
    }

    /// Converts `length` samples of input, at most a chunk, to the model's rate. Empty input counts
    /// as silence.
    pub fn convert_input(&mut self, input: &[f32], length: usize, emit: impl FnMut(&[f32])) {
        const SILENCE: [f32; CHUNK] = [0.0; CHUNK];
        let input = if input.is_empty() {
            &SILENCE[..length]
        } else {
            input
        };
        self.to_model.push(input, emit);
    }

    /// Returns the time of the coming hop, in samples at the model's rate.
    pub fn hop_start(&self) -> u64 {
        self.hops * self.hop as u64
    }

    /// Converts samples at the model's rate to seconds.
    pub fn seconds(&self, samples: u64) -> f64 {
        samples as f64 / self.rates.model as f64
    }

    /// Returns true if the host has passed the time of the coming hop.
    pub fn is_hop_due(&self) -> bool {
        self.hop_start() * self.rates.host < self.position * self.rates.model
    }

    /// Returns true until the first hop of the session.
    pub fn is_fresh(&self) -> bool {
        self.is_fresh
    }

    /// Counts a hop.
    pub fn step(&mut self) {
        self.is_fresh = false;
        self.hops += 1;
    }

    /// Replaces non-finite output in the first `length` samples of [`Timeline::sound`] by silence
    /// and marks the session as failed. The conversion to the host's rate limits the rest.
    pub fn check_sound(&mut self, length: usize) {
        let sound = &mut self.sound[..length];
        if !all_finite(sound) {
            sound.fill(0.0);
            self.has_failed = true;
        }
    }

    /// Returns the samples per hop, at the model's rate.
    pub fn hop(&self) -> usize {
        self.hop
    }

    /// Returns the number of output channels.
    pub fn outputs(&self) -> usize {
        self.to_host.len()
    }

    /// Queues the first `length` samples of each channel of [`Timeline::sound`] for the host, after
    /// [`Timeline::check_sound`].
    pub fn deliver(&mut self, length: usize) {
        let step = self.sound.len() / self.to_host.len();
        for (output, sound) in self.to_host.iter_mut().zip(self.sound.chunks_exact(step)) {
            output.push(&sound[..length]);
        }
    }

    /// Fills `out` with the samples of a channel that are due at the host; NaN after non-finite
    /// output.
    pub fn take_output(&mut self, channel: usize, out: &mut [f32]) {
        let missing = self.to_host[channel].pull(out) as u64;
        if channel == 0 {
            self.samples_missing += missing;
        }
        if self.has_failed {
            out.fill(f32::NAN);
        }
    }
}

impl HostOutput {
    /// Drops all queued output and starts with the initial silence.
    fn reset(&mut self) {
        self.resampler.reset();
        self.still_to_drop = self.dropped_at_start;
        self.queue.clear();
        self.queue
            .extend(std::iter::repeat_n(0.0, self.initial_silence));
    }

    /// Converts and queues samples at the model's rate.
    fn push(&mut self, sound: &[f32]) {
        let dropped = self.still_to_drop.min(sound.len());
        self.still_to_drop -= dropped;
        self.resampler
            .push(&sound[dropped..], |samples| self.queue.extend(samples));
    }

    /// Fills `out` from the queue and returns how many samples were missing.
    fn pull(&mut self, out: &mut [f32]) -> usize {
        let available = out.len().min(self.queue.len());
        let (filled, missing) = out.split_at_mut(available);
        pop_slice(&mut self.queue, filled);
        missing.fill(0.0);
        missing.len()
    }
}

/// Moves the first `out.len()` samples of a queue to `out`; the queue must hold as many.
pub(super) fn pop_slice(queue: &mut VecDeque<f32>, out: &mut [f32]) {
    let (front, back) = queue.as_slices();
    let (first, second) = out.split_at_mut(front.len().min(out.len()));
    first.copy_from_slice(&front[..first.len()]);
    second.copy_from_slice(&back[..second.len()]);
    queue.drain(..out.len());
}

/// Returns true if all samples are finite; without a branch per sample, so that it is vectorised.
pub(crate) fn all_finite(samples: &[f32]) -> bool {
    samples
        .iter()
        .fold(true, |all, sample| all & sample.is_finite())
}

/// Returns the greatest common divisor.
pub(super) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
