//! Polyphase resampler of low latency: each output sample is a filter at its position in the input.
//!
//! The filter of each output sample depends on where it falls between two input samples. All phases
//! of the usual ratios are tabulated; others are interpolated linearly between tabulated phases,
//! with an error below −105 dB.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ondes_kernels::{FilterPosition, Kernels};

use super::greatest_common_divisor;
use super::prototype::Prototype;
use crate::dsp::level::copy_limited;

/// Most taps of a table with all phases (1 MiB).
const MAX_TAPS: usize = 1 << 18;
/// Phases per sample at the lower rate between which others are interpolated: (2π · 0.5 / 512)² / 8
/// is −107 dB.
const INTERPOLATED_PHASES: usize = 512;
/// Input samples that are stored besides the filter's past.
const BLOCK: usize = 256;
/// Output samples that are computed at a time.
const BATCH: usize = 96;

/// Converts one channel with filters at each output sample's position.
///
/// Output sample `m` lies at input sample `(m − latency) · M / L + input_delay`, where `L / M` is
/// the ratio of the rates.
pub(super) struct PolyphaseResampler {
    kernels: Kernels,
    bank: Arc<FilterBank>,
    /// The last samples of the input, of which `filled` are present.
    signal: Vec<f32>,
    filled: usize,
    cursor: Cursor,
    initial_cursor: Cursor,
    latency: usize,
    tail: usize,
    /// Phases of the bank per unit of the cursor's fraction.
    phases_per_fraction: f64,
    positions: [FilterPosition; BATCH],
    /// Shares of the following phase's filter.
    shares: [f32; BATCH],
    output: [f32; BATCH],
    next_phase: [f32; BATCH],
}

/// Filters of all phases.
struct FilterBank {
    /// `[phase][tap]`
    taps: Vec<f32>,
    /// Taps per phase, of which the last belongs to the newest sample.
    length: usize,
    /// Input samples after the centre that a filter needs.
    ahead: usize,
    /// Phases per input sample.
    phases: u64,
    /// Interpolates between two phases.
    is_interpolated: bool,
}

/// Filters in use, by input and output rate.
static BANKS: Mutex<BTreeMap<(u32, u32), Weak<FilterBank>>> = Mutex::new(BTreeMap::new());

/// Position of the next output sample.
#[derive(Clone, Copy)]
struct Cursor {
    /// First sample that the filter reads, in `signal`.
    start: usize,
    /// Position between two input samples, in units of 1 / `unit`.
    fraction: u64,
    unit: u64,
    /// Distance of two output samples.
    whole_step: usize,
    fraction_step: u64,
}

impl Cursor {
    fn advance(&mut self) {
        self.start += self.whole_step;
        self.fraction += self.fraction_step;
        if self.fraction >= self.unit {
            self.fraction -= self.unit;
            self.start += 1;
        }
    }
}

impl PolyphaseResampler {
    /// Creates a resampler for two different rates in Hz whose input is `input_delay` samples late.
    pub fn new(rate_in: u32, rate_out: u32, input_delay: usize, kernels: Kernels) -> Self {
        let prototype = Prototype::for_rate(rate_in.min(rate_out));
        let divisor = greatest_common_divisor(rate_in, rate_out);
        let (step, unit) = (u64::from(rate_in / divisor), u64::from(rate_out / divisor));
        let bank = FilterBank::shared(prototype, rate_in, rate_out);
        // The longest latency with which the first output sample needs at least the first input
        // sample.
        let reach = (bank.ahead + input_delay) as u64;
        let latency = reach * unit / step;
        // Position of output sample 0 plus `ahead`, which is not negative.
        let first = reach * unit - latency * step;
        let keep = bank.length - 1;
        let initial_cursor = Cursor {
            start: (first / unit) as usize,
            fraction: first % unit,
            unit,
            whole_step: (step / unit) as usize,
            fraction_step: step % unit,
        };
        let lower = f64::from(rate_in.min(rate_out));
        Self {
            kernels,
            signal: vec![0.0; keep + BLOCK],
            filled: keep,
            cursor: initial_cursor,
            initial_cursor,
            latency: latency as usize,
            tail: (prototype.ring * f64::from(rate_out) / lower).ceil() as usize,
            phases_per_fraction: bank.phases as f64 / unit as f64,
            positions: [FilterPosition::default(); BATCH],
            shares: [0.0; BATCH],
            output: [0.0; BATCH],
            next_phase: [0.0; BATCH],
            bank,
        }
    }

    /// Returns the latency in output samples.
    pub fn latency(&self) -> usize {
        self.latency
    }

    /// Returns the input samples after its position that an output sample needs.
    pub fn ahead(&self) -> usize {
        self.bank.ahead
    }

    /// Returns how long a sound continues after its end, besides the latency, in output samples.
    pub fn tail(&self) -> usize {
        self.tail
    }

    /// Clears all state.
    pub fn reset(&mut self) {
        self.cursor = self.initial_cursor;
        self.filled = self.bank.length - 1;
        self.signal[..self.filled].fill(0.0);
    }

    /// Processes any number of samples and emits each output sample as soon as its input is
    /// complete.
    pub fn push(&mut self, input: &[f32], mut emit: impl FnMut(&[f32])) {
        let mut rest = input;
        while !rest.is_empty() {
            if self.filled == self.signal.len() {
                self.discard_past();
            }
            let (chunk, after) = rest.split_at(rest.len().min(self.signal.len() - self.filled));
            copy_limited(chunk, &mut self.signal[self.filled..]);
            self.filled += chunk.len();
            rest = after;
            while let count @ 1.. = self.collect_positions() {
                self.filter(count);
                emit(&self.output[..count]);
            }
        }
    }

    /// Moves the samples that are still needed to the front.
    fn discard_past(&mut self) {
        let past = self.filled - (self.bank.length - 1);
        self.signal.copy_within(past..self.filled, 0);
        self.filled -= past;
        // The next output sample needs input that is not there yet.
        self.cursor.start -= past;
    }

    /// Collects the positions of the next output samples whose input is complete; returns their
    /// number.
    fn collect_positions(&mut self) -> usize {
        let mut cursor = self.cursor;
        let mut count = 0;
        while count < BATCH && cursor.start + self.bank.length <= self.filled {
            let Cursor {
                start, fraction, ..
            } = cursor;
            let start = start as u32;
            if self.bank.is_interpolated {
                let phase = fraction as f64 * self.phases_per_fraction;
                self.positions[count] = FilterPosition {
                    filter: phase as u32,
                    start,
                };
                self.shares[count] = phase.fract() as f32;
            } else {
                self.positions[count] = FilterPosition {
                    filter: fraction as u32,
                    start,
                };
            }
            cursor.advance();
            count += 1;
        }
        self.cursor = cursor;
        count
    }

    /// Computes the collected output samples.
    fn filter(&mut self, count: usize) {
        let Self {
            kernels,
            bank,
            signal,
            filled,
            positions,
            ..
        } = self;
        let (positions, output) = (&mut positions[..count], &mut self.output[..count]);
        kernels.filters(
            &bank.taps,
            bank.length,
            &signal[..*filled],
            positions,
            output,
        );
        if bank.is_interpolated {
            positions
                .iter_mut()
                .for_each(|position| position.filter += 1);
            let next_phase = &mut self.next_phase[..count];
            kernels.filters(
                &bank.taps,
                bank.length,
                &signal[..*filled],
                positions,
                next_phase,
            );
            for ((output, next), share) in output.iter_mut().zip(next_phase).zip(&self.shares) {
                *output += share * (*next - *output);
            }
        }
    }
}

impl FilterBank {
    /// Returns the filters for two rates, which all resamplers share.
    fn shared(prototype: &Prototype, rate_in: u32, rate_out: u32) -> Arc<Self> {
        let mut banks = BANKS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bank) = banks.get(&(rate_in, rate_out)).and_then(Weak::upgrade) {
            return bank;
        }
        banks.retain(|_, bank| bank.strong_count() > 0);
        let bank = Arc::new(Self::new(prototype, rate_in, rate_out));
        banks.insert((rate_in, rate_out), Arc::downgrade(&bank));
        bank
    }

    /// Samples a prototype for all phases of a ratio, or for some of them if these are too many.
    fn new(prototype: &Prototype, rate_in: u32, rate_out: u32) -> Self {
        let lower = rate_in.min(rate_out);
        let unit = u64::from(rate_out / greatest_common_divisor(rate_in, rate_out));
        // Samples at the lower rate per input sample.
        let scale = f64::from(lower) / f64::from(rate_in);
        let ahead =
            (u64::from(prototype.delay) * u64::from(rate_in)).div_ceil(lower.into()) as usize;
        let behind = (prototype.ring / scale).floor() as usize;
        let length = (ahead + 1 + behind).next_multiple_of(Kernels::FILTER_UNIT);
        let is_interpolated = unit as usize * length > MAX_TAPS;
        let phases = if is_interpolated {
            (INTERPOLATED_PHASES as f64 * scale).ceil() as u64
        } else {
            unit
        };
        let mut taps = Vec::with_capacity((phases as usize + 1) * length);
        for phase in 0..phases + u64::from(is_interpolated) {
            let centre = (length - 1 - ahead) as f64 + phase as f64 / phases as f64;
            let row: Vec<f64> = (0..length)
                .map(|tap| prototype.at((tap as f64 - centre) * scale))
                .collect();
            // Exactly 1 at 0 Hz, so that a constant has no images.
            let sum: f64 = row.iter().sum();
            taps.extend(row.into_iter().map(|tap| (tap / sum) as f32));
        }
        Self {
            taps,
            length,
            ahead,
            phases,
            is_interpolated,
        }
    }
}
