//! Monophonic pitch as a frame feature.
//!
//! Based on the normalised square difference function (NSDF) of P. McLeod and G. Wyvill, "A smarter
//! way to find pitch", ICMC 2005: `n(τ) = 2 Σ x[j] x[j+τ] / Σ (x[j]² + x[j+τ]²)`, over all pairs of
//! samples in the window that are τ apart. It is 1 at the period of a clean tone of any spectrum.
//! The pairs of every τ are symmetric about the middle of the window, so the estimate refers to one
//! instant. The numerator takes one forward and one inverse FFT.
//!
//! Four additions to the paper: the sound is smoothed first, so that a parabola fits the peaks even
//! at 2 kHz; the period is refined at its multiples, which divides the interpolation error; between
//! octaves that fit about equally well, the one near the last confident pitch is chosen; and a
//! period must show in the flattened spectrum as well.
//!
//! One strong partial, such as the fifth of a bassoon, has nearly all of the power, and so its
//! period nearly the height of the true one. In the correlation of a flattened spectrum (T. Tolonen
//! and M. Karjalainen, "A computationally efficient multipitch analysis model", IEEE Trans. Speech
//! and Audio Processing 8(6), 2000) the other partials speak against it.
//!
//! The window blurs a vibrato by several cents, so it only decides whether there is a pitch and
//! roughly which; `refiner` then measures it over a shorter stretch about the frame's instant.
//!
//! To play along, [`PitchTracker::low_latency`] looks only half as far ahead: a second window of
//! half the length, centred on the instant, decides above 94 Hz, and lower pitches lag by up to 11
//! ms.

mod refiner;

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};

use refiner::Refiner;

/// Lowest and highest frequency of the search, Hz; covers tones from the lowest of a double bass to
/// 2 kHz with vibrato.
const SEARCH_HZ: (f64, f64) = (40.0, 2200.0);
/// Lowest and highest sample rate, Hz.
const SAMPLE_RATES: (f64, f64) = (8_000.0, 768_000.0);
/// Half the window, s: 1024 samples at 48 kHz. At the longest period, 25 ms, pairs over 18 ms
/// remain.
const HALF_WINDOW_S: f64 = 1024.0 / 48_000.0;
/// Half the window about the instant with low latency, s: 509 samples at 48 kHz. With the smoothing
/// it looks as far ahead as [`super::loudness`].
const SHORT_HALF_WINDOW_S: f64 = 509.0 / 48_000.0;
/// The peak of the short window may be this much lower than that of the long one, where it covers
/// the period of the long one; where it does not, it must be this much higher.
const SHORT_DEFICIT: f32 = 0.1;
const SHORT_EXCESS: f32 = 0.05;
/// Distance of both windows' pitches in semitones up to which the difference may be noise.
const SHORT_DEVIATION_SEMITONES: f32 = 0.1;
/// Half-width of the smoothing, s: 3 samples at 48 kHz, a Hann window that is 6 dB down at 6 kHz.
const SMOOTHING_S: f64 = 3.0 / 48_000.0;
/// Corner of the first-order high-pass that removes offset and rumble, Hz.
const HIGH_PASS_HZ: f64 = 20.0;
/// Height relative to the highest peak from which the first peak is the period (k of the paper,
/// there 0.8 to 1).
const PEAK_THRESHOLD: f32 = 0.9;
/// Height in the flattened correlation from which a peak is a period, relative to the highest of
/// those from [`PEAK_THRESHOLD`] on. At the period of a partial that is no fundamental it is lower.
const FLAT_THRESHOLD: f32 = 0.6;
/// Power relative to the strongest bin below which a bin is left out of the flattened spectrum:
/// there it is noise.
const FLAT_FLOOR: f32 = 1e-4;
/// Tolerance in height for a peak that continues the last confident pitch.
const CONTINUITY: f32 = 0.05;
/// Distance in semitones within which a peak continues the last confident pitch; more than any
/// vibrato moves in a hop.
const CONTINUITY_SEMITONES: f32 = 1.0;
/// Time for which the last confident pitch counts, s.
const MEMORY_S: f64 = 0.05;
/// Peak heights at which a frame becomes voiced and stays voiced. White noise stays below 0.4.
const VOICED: (f32, f32) = (0.75, 0.6);
/// Mean square below which a frame is silent (-90 dB).
const SILENCE: f64 = 1e-9;
/// Divisor of the window up to which multiples of the period are tried; further out fewer pairs
/// remain and glides smear the peak.
const REFINE_PART: usize = 4;

/// Pitch of one frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PitchFrame {
    /// MIDI note number with fraction, 69 = 440 Hz. Unvoiced frames have the last voiced value,
    /// initially 69.
    pub semitones: f32,
    /// Periodicity, from 0 (silence, noise) to 1 (clean tone); about the share of the harmonic
    /// power.
    pub confidence: f32,
    /// True if the frame has a pitch.
    pub voiced: bool,
}

/// Peak of the NSDF, interpolated between lags.
#[derive(Debug, Clone, Copy)]
struct Peak {
    lag: f32,
    height: f32,
    /// True unless the flattened correlation speaks against it.
    is_period: bool,
}

/// Windows of a tracker, for another implementation of it. Lengths are in samples.
pub(crate) struct PitchWindows {
    /// Smoothing filter.
    pub taps: Vec<f32>,
    /// Whole window.
    pub window: usize,
    /// Newest part of it that decides with low latency.
    pub short: Option<usize>,
    /// Periods that are searched.
    pub lags: RangeInclusive<usize>,
}

/// Pitch of a monophonic sound, one frame per hop.
///
/// Frame `i` is centred on sample `i * hop` of the input; before the first sample there is silence.
/// Works from 41 Hz to 2 kHz at sample rates from 16 kHz.
///
/// # Examples
/// ```
/// use std::f32::consts::TAU;
///
/// use ondes_engine::dsp::pitch::PitchTracker;
///
/// let sine: Vec<f32> = (0..24_000).map(|n| (TAU * 220.0 * n as f32 / 48_000.0).sin()).collect();
/// let mut frames = Vec::new();
/// PitchTracker::new(48_000.0, 480).push(&sine, |frame| frames.push(frame));
/// assert!(frames[20].voiced && (frames[20].semitones - 57.0).abs() < 0.01);
/// ```
pub struct PitchTracker {
    sample_rate: f64,
    hop: usize,
    latency: usize,
    /// Samples until the first frame after a reset, and until the next.
    first_frame: usize,
    until_frame: usize,
    conditioner: Conditioner,
    /// The last samples, stored twice, so that the window starting at `position` is contiguous.
    ring: Vec<f32>,
    position: usize,
    correlator: Correlator,
    /// With low latency, the part of the window that is centred on the instant.
    short: Option<Correlator>,
    refiner: Refiner,
    /// Lag of the last voiced frame by the whole window, and the number of frames since then.
    last_lag: f32,
    frames_since: usize,
    memory_frames: usize,
    /// Frame before any sound.
    initial: PitchFrame,
    last: PitchFrame,
}

impl PitchTracker {
    /// Creates a tracker for a sample rate in Hz that emits a frame every `hop` samples.
    ///
    /// # Panics
    ///
    /// If `hop` is 0 or the rate is not between 8 kHz and 768 kHz.
    pub fn new(sample_rate: f64, hop: usize) -> Self {
        Self::with_short_window(sample_rate, hop, None)
    }

    /// Creates a tracker that emits frames after 10.7 ms instead of 21.4 ms. Above 94 Hz they
    /// describe the same instant; a lower pitch is that of up to 11 ms earlier.
    ///
    /// # Panics
    ///
    /// If `hop` is 0 or the rate is not between 8 kHz and 768 kHz.
    pub fn low_latency(sample_rate: f64, hop: usize) -> Self {
        Self::with_short_window(sample_rate, hop, Some(SHORT_HALF_WINDOW_S))
    }

    /// Creates a tracker of low latency that emits each frame with the last sample of a hop, about
    /// the instant [`latency`](Self::latency) samples before. The first frames tell of the silence
    /// before the sound, in which the pitch is [`FIRST_PITCH`]. Any sample rate is used as the
    /// nearest that is allowed.
    ///
    /// # Panics
    ///
    /// If `hop` is 0.
    pub fn in_step(sample_rate: f64, hop: usize) -> Self {
        let rate = sample_rate.clamp(SAMPLE_RATES.0, SAMPLE_RATES.1);
        let mut tracker = Self::low_latency(rate, hop);
        tracker.first_frame = hop;
        tracker.initial.semitones = FIRST_PITCH;
        tracker.reset();
        tracker
    }

    fn with_short_window(sample_rate: f64, hop: usize, short_half_s: Option<f64>) -> Self {
        assert!(hop > 0, "hop must be at least 1");
        assert!(
            (SAMPLE_RATES.0..=SAMPLE_RATES.1).contains(&sample_rate),
            "sample rate out of range: {sample_rate}"
        );
        let half = |seconds: f64| (seconds * sample_rate).round() as usize;
        let window = 2 * half(HALF_WINDOW_S) + 1;
        let lags = (sample_rate / SEARCH_HZ.1).floor() as usize
            ..(sample_rate / SEARCH_HZ.0).ceil() as usize;
        let conditioner = Conditioner::new(sample_rate);
        let short = short_half_s.map(|seconds| {
            // At its longest lag, one period of pairs remains.
            Correlator::new(2 * half(seconds) + 1, lags.start..half(seconds))
        });
        let latency = half(short_half_s.unwrap_or(HALF_WINDOW_S)) + 1 + conditioner.delay();
        Self {
            sample_rate,
            hop,
            latency,
            first_frame: latency,
            until_frame: latency,
            ring: vec![0.0; 2 * window],
            position: 0,
            correlator: Correlator::new(window, lags),
            short,
            refiner: Refiner::new(window, conditioner.correlation()),
            conditioner,
            last_lag: 0.0,
            frames_since: usize::MAX,
            memory_frames: (MEMORY_S * sample_rate / hop as f64).ceil() as usize,
            initial: INITIAL_FRAME,
            last: INITIAL_FRAME,
        }
    }

    /// Returns the latency in samples: frame `i` is emitted with sample `i * hop + latency - 1`.
    pub fn latency(&self) -> usize {
        self.latency
    }

    /// Returns what the tracker measures over.
    pub(crate) fn windows(&self) -> PitchWindows {
        PitchWindows {
            taps: self.conditioner.taps.clone(),
            window: self.correlator.window,
            short: self.short.as_ref().map(|short| short.window),
            lags: self.correlator.min_lag..=self.correlator.nsdf.len() - 2,
        }
    }

    /// Returns the samples per hop.
    pub fn hop(&self) -> usize {
        self.hop
    }

    /// Processes any number of samples and emits the completed frames in order.
    pub fn push(&mut self, input: &[f32], mut emit: impl FnMut(PitchFrame)) {
        for &sample in input {
            let (conditioned, window) = (self.conditioner.next(sample), self.ring.len() / 2);
            self.ring[self.position] = conditioned;
            self.ring[self.position + window] = conditioned;
            self.position = if self.position + 1 == window {
                0
            } else {
                self.position + 1
            };
            self.until_frame -= 1;
            if self.until_frame == 0 {
                self.until_frame = self.hop;
                emit(self.frame());
            }
        }
    }

    /// Clears all state.
    pub fn reset(&mut self) {
        self.until_frame = self.first_frame;
        self.conditioner.reset();
        self.ring.fill(0.0);
        self.position = 0;
        self.frames_since = usize::MAX;
        self.last = self.initial;
    }

    fn frame(&mut self) -> PitchFrame {
        let window = &self.ring[self.position..self.position + self.ring.len() / 2];
        self.frames_since = self.frames_since.saturating_add(1);
        let near = (self.frames_since <= self.memory_frames).then_some(self.last_lag);
        let whole = self.correlator.period(window, near);
        let recent = self
            .short
            .as_mut()
            .and_then(|short| short.period(&window[window.len() - short.window..], near));
        let (Some(Estimate { confidence, lag }), stretch) = self.combine(whole, recent) else {
            self.last = PitchFrame {
                confidence: 0.0,
                voiced: false,
                ..self.last
            };
            return self.last;
        };
        let voiced = confidence >= if self.last.voiced { VOICED.1 } else { VOICED.0 };
        let semitones = if voiced {
            (self.last_lag, self.frames_since) = (lag, 0);
            let window = &self.ring[self.position..self.position + self.ring.len() / 2];
            let period = self.refiner.period(&window[window.len() - stretch..], lag);
            let frequency = (self.sample_rate / f64::from(period)).clamp(SEARCH_HZ.0, SEARCH_HZ.1);
            (69.0 + 12.0 * (frequency / 440.0).log2()) as f32
        } else {
            self.last.semitones
        };
        self.last = PitchFrame {
            semitones,
            confidence,
            voiced,
        };
        self.last
    }

    /// Returns the period, and the length of the newest part of the window about whose middle it is
    /// to be refined.
    fn combine(
        &self,
        whole: Option<Estimate>,
        recent: Option<Estimate>,
    ) -> (Option<Estimate>, usize) {
        let Some(short) = &self.short else {
            return (whole, self.correlator.window);
        };
        let recent = recent.filter(|recent| {
            whole.is_none_or(|whole| {
                let is_visible = whole.lag < short.longest_lag();
                recent.confidence
                    >= whole.confidence
                        + if is_visible {
                            -SHORT_DEFICIT
                        } else {
                            SHORT_EXCESS
                        }
            })
        });
        let chosen = match (whole, recent) {
            // The longer window is less disturbed by noise, but late in a glide.
            (Some(whole), Some(recent))
                if distance_semitones(whole.lag, recent.lag) <= SHORT_DEVIATION_SEMITONES =>
            {
                Some(Estimate {
                    lag: whole.lag,
                    ..recent
                })
            }
            (whole, recent) => recent.or(whole),
        };
        // At least as much as the refiner needs, and an odd number, like the window.
        let needed = chosen.map_or(0, |chosen| Refiner::least_window(chosen.lag) | 1);
        (chosen, needed.clamp(short.window, self.correlator.window))
    }
}

/// Period in samples, and its height as a peak, 0 to 1.
#[derive(Debug, Clone, Copy)]
struct Estimate {
    lag: f32,
    confidence: f32,
}

fn distance_semitones(one: f32, other: f32) -> f32 {
    (one / other).log2().abs() * 12.0
}

/// Pitch of [`PitchTracker::in_step`] before any sound, semitones. It is low, since a codec that
/// gets a pitch above that of the sound may answer the first note with a crack.
pub const FIRST_PITCH: f32 = 45.0;

/// Frame before any sound.
const INITIAL_FRAME: PitchFrame = PitchFrame {
    semitones: 69.0,
    confidence: 0.0,
    voiced: false,
};

/// Finds the highest peak of each positive run that follows the first lag below zero.
fn find_peaks(nsdf: &[f32], min_lag: usize, peaks: &mut Vec<Peak>) {
    peaks.clear();
    let Some(mut lag) = nsdf.iter().position(|&value| value <= 0.0) else {
        return;
    };
    // The last lag has no right neighbour for the interpolation.
    let end = nsdf.len() - 1;
    while lag < end {
        while lag < end && nsdf[lag] <= 0.0 {
            lag += 1;
        }
        let mut highest = lag;
        while lag < end && nsdf[lag] > 0.0 {
            if nsdf[lag] > nsdf[highest] {
                highest = lag;
            }
            lag += 1;
        }
        // At the ends of the search range the function may still be rising.
        if highest >= min_lag.max(1) && highest < end && nsdf[highest] >= nsdf[highest + 1] {
            peaks.push(interpolate(nsdf, highest));
        }
    }
}

/// Returns the vertex of the parabola through a local maximum and its neighbours.
fn interpolate(nsdf: &[f32], lag: usize) -> Peak {
    let (before, at, after) = (nsdf[lag - 1], nsdf[lag], nsdf[lag + 1]);
    let curvature = before - 2.0 * at + after;
    if curvature >= 0.0 {
        return Peak {
            lag: lag as f32,
            height: at,
            is_period: true,
        };
    }
    let offset = (0.5 * (before - after) / curvature).clamp(-0.5, 0.5);
    Peak {
        lag: lag as f32 + offset,
        height: at - 0.25 * (before - after) * offset,
        is_period: true,
    }
}

/// Raises the powers of bins to the power of 5/16.
fn flatten(spectrum: &[Complex<f32>], flat: &mut [Complex<f32>]) {
    let strongest = spectrum.iter().map(|bin| bin.re).fold(0.0, f32::max);
    for (bin, flat) in spectrum.iter().zip(flat) {
        let heard = if bin.re < FLAT_FLOOR * strongest {
            0.0
        } else {
            bin.re
        };
        let fourth_root = heard.sqrt().sqrt();
        *flat = Complex::new(fourth_root * fourth_root.sqrt().sqrt(), 0.0);
    }
}

fn highest(peaks: &[Peak]) -> f32 {
    peaks.iter().map(|peak| peak.height).fold(0.0, f32::max)
}

/// Returns the peak of the period: the first that is nearly as high as the highest, unless one near
/// `last_lag` fits better.
fn choose(peaks: &[Peak], last_lag: Option<f32>) -> Option<Peak> {
    let highest = highest(peaks);
    let carries_on = |peak: &Peak| {
        last_lag.is_some_and(|last| distance_semitones(peak.lag, last) <= CONTINUITY_SEMITONES)
    };
    let threshold = PEAK_THRESHOLD * highest;
    let first = *peaks.iter().find(|peak| {
        let tolerance = if carries_on(peak) { CONTINUITY } else { 0.0 };
        peak.is_period && peak.height >= threshold - tolerance
    })?;
    // After a leap to the octave above, the old period still fits, but no better: the leap is
    // accepted. If the old period is clearly better, the shorter one is only a strong harmonic.
    let held = peaks
        .iter()
        .find(|peak| carries_on(peak) && peak.height > first.height + CONTINUITY);
    Some(*held.unwrap_or(&first))
}

/// Returns the period in samples, measured at the furthest multiple up to `reach` that is still a
/// clear peak.
fn refine(nsdf: &[f32], peak: Peak, reach: usize) -> f32 {
    let mut period = peak.lag;
    let mut multiple = 2;
    while (period * multiple as f32) < reach.min(nsdf.len() - 2) as f32 {
        let expected = period * multiple as f32;
        let mut lag = expected.round() as usize;
        // The error so far, times the factor, is below about a sample; anything further away is
        // another peak.
        for _ in 0..2 {
            if nsdf[lag + 1] > nsdf[lag] {
                lag += 1;
            } else if nsdf[lag - 1] > nsdf[lag] {
                lag -= 1;
            }
        }
        let is_peak = nsdf[lag] >= nsdf[lag - 1] && nsdf[lag] >= nsdf[lag + 1];
        if !is_peak || nsdf[lag] < PEAK_THRESHOLD * peak.height {
            break;
        }
        period = interpolate(nsdf, lag).lag / multiple as f32;
        multiple *= 2;
    }
    period
}

/// High-pass and smoothing.
struct Conditioner {
    /// Pole of the high-pass, and its state.
    pole: f64,
    previous: f64,
    high_passed: f64,
    /// Symmetric smoothing filter, an odd number of taps with sum 1.
    taps: Vec<f32>,
    /// The last samples, stored twice, so that any window is contiguous.
    delayed: Vec<f32>,
    position: usize,
}

impl Conditioner {
    fn new(sample_rate: f64) -> Self {
        let reach = (SMOOTHING_S * sample_rate).round() as usize;
        let taps = 2 * reach + 1;
        let phase = |tap: usize| std::f64::consts::TAU * (tap + 1) as f64 / (taps + 1) as f64;
        // The periodic Hann window of taps + 1 points sums to (taps + 1) / 2.
        let scale = 1.0 / (taps + 1) as f64;
        Self {
            pole: (-std::f64::consts::TAU * HIGH_PASS_HZ / sample_rate).exp(),
            previous: 0.0,
            high_passed: 0.0,
            taps: (0..taps)
                .map(|tap| (scale * (1.0 - phase(tap).cos())) as f32)
                .collect(),
            delayed: vec![0.0; 2 * taps],
            position: 0,
        }
    }

    /// Returns over how many samples the smoothing correlates white noise: the factor by which the
    /// variance of a sum exceeds that of independent samples.
    fn correlation(&self) -> f32 {
        self.taps.iter().map(|tap| tap * tap).sum::<f32>().recip()
    }

    /// Returns the delay of the smoothing in samples.
    fn delay(&self) -> usize {
        self.taps.len() / 2
    }

    fn next(&mut self, sample: f32) -> f32 {
        // A non-finite value would persist in the recursion.
        let sample = if sample.is_finite() {
            f64::from(sample)
        } else {
            0.0
        };
        self.high_passed = sample - self.previous + self.pole * self.high_passed;
        self.previous = sample;
        let length = self.taps.len();
        self.delayed[self.position] = self.high_passed as f32;
        self.delayed[self.position + length] = self.high_passed as f32;
        self.position = if self.position + 1 == length {
            0
        } else {
            self.position + 1
        };
        let run = &self.delayed[self.position..self.position + length];
        run.iter()
            .zip(&self.taps)
            .map(|(value, tap)| value * tap)
            .sum()
    }

    fn reset(&mut self) {
        self.previous = 0.0;
        self.high_passed = 0.0;
        self.delayed.fill(0.0);
        self.position = 0;
    }
}

/// Computes the NSDF of a window.
struct Correlator {
    window: usize,
    forward: Arc<dyn RealToComplex<f32>>,
    inverse: Arc<dyn ComplexToReal<f32>>,
    samples: Vec<f32>,
    spectrum: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
    correlation: Vec<f32>,
    flat_spectrum: Vec<Complex<f32>>,
    flat_correlation: Vec<f32>,
    /// NSDF, `[lag]`, from 0 to one more than the longest period.
    nsdf: Vec<f32>,
    /// Squares of the window's samples, which the forward transform overwrites.
    squares: Vec<f32>,
    /// Shortest period in samples.
    min_lag: usize,
    peaks: Vec<Peak>,
}

impl Correlator {
    /// Creates a correlator for periods of `range` samples.
    fn new(window: usize, range: Range<usize>) -> Self {
        let lags = range.end + 2;
        // Long enough that no lag of interest wraps around, and a product of small primes.
        let power = (window + lags).next_power_of_two();
        let length = [9, 10, 12, 15, 16]
            .map(|sixteenths| power / 16 * sixteenths)
            .into_iter()
            .find(|&length| length >= window + lags)
            .unwrap_or(power);
        let mut planner = RealFftPlanner::new();
        let forward = planner.plan_fft_forward(length);
        let inverse = planner.plan_fft_inverse(length);
        let scratch = forward.get_scratch_len().max(inverse.get_scratch_len());
        Self {
            window,
            samples: forward.make_input_vec(),
            spectrum: forward.make_output_vec(),
            scratch: vec![Complex::default(); scratch],
            correlation: inverse.make_output_vec(),
            flat_spectrum: forward.make_output_vec(),
            flat_correlation: inverse.make_output_vec(),
            nsdf: vec![0.0; lags],
            squares: vec![0.0; window],
            min_lag: range.start,
            // At least one lag below zero separates two peaks.
            peaks: Vec::with_capacity(range.end / 2 + 1),
            forward,
            inverse,
        }
    }

    /// Returns the longest period in samples.
    fn longest_lag(&self) -> f32 {
        (self.nsdf.len() - 2) as f32
    }

    /// Returns the period of a window, if it has one; `near` is the last confident one.
    fn period(&mut self, sound: &[f32], near: Option<f32>) -> Option<Estimate> {
        if !self.correlate(sound) {
            return None;
        }
        find_peaks(&self.nsdf, self.min_lag, &mut self.peaks);
        self.test_periods();
        let peak = choose(&self.peaks, near)?;
        let lag = refine(&self.nsdf, peak, self.window / REFINE_PART);
        Some(Estimate {
            lag,
            confidence: peak.height.clamp(0.0, 1.0),
        })
    }

    /// Marks the peaks whose partials have too little of the flattened spectrum.
    fn test_periods(&mut self) {
        let flat = &self.flat_correlation;
        let threshold = PEAK_THRESHOLD * highest(&self.peaks);
        let height = |peak: &Peak| {
            let lag = peak.lag.round() as usize;
            let around = &flat[lag - 1..=lag + 1];
            around.iter().copied().fold(0.0, f32::max)
        };
        let candidates = self.peaks.iter().filter(|peak| peak.height >= threshold);
        let least = FLAT_THRESHOLD * candidates.map(height).fold(0.0, f32::max);
        for peak in &mut self.peaks {
            peak.is_period = height(peak) >= least;
        }
    }

    /// Computes the NSDF of a window; returns false if it is silent.
    fn correlate(&mut self, sound: &[f32]) -> bool {
        let window = self.window;
        self.samples[..window].copy_from_slice(sound);
        self.samples[window..].fill(0.0);
        for (square, &sample) in self.squares.iter_mut().zip(&self.samples) {
            *square = sample * sample;
        }
        let energy: f64 = self.squares.iter().map(|&square| f64::from(square)).sum();
        // Also false if the energy is not finite.
        if !(energy > SILENCE * window as f64 && energy < f64::from(f32::MAX) / window as f64) {
            return false;
        }
        self.forward
            .process_with_scratch(&mut self.samples, &mut self.spectrum, &mut self.scratch)
            .expect("the buffers were made by the plan");
        for bin in &mut self.spectrum {
            *bin = Complex::new(bin.norm_sqr(), 0.0);
        }
        flatten(&self.spectrum, &mut self.flat_spectrum);
        for (spectrum, correlation) in [
            (&mut self.spectrum, &mut self.correlation),
            (&mut self.flat_spectrum, &mut self.flat_correlation),
        ] {
            self.inverse
                .process_with_scratch(spectrum, correlation, &mut self.scratch)
                .expect(
                    "the buffers were made by the plan, and a power spectrum is real at both ends",
                );
        }
        let scale = 2.0 / self.correlation.len() as f64;
        let mut norm = 2.0 * energy;
        for (lag, nsdf) in self.nsdf.iter_mut().enumerate() {
            // Each further lag loses the pairs of the first and the last sample.
            if lag > 0 {
                norm -= f64::from(self.squares[lag - 1]) + f64::from(self.squares[window - lag]);
            }
            // Beyond half the window, the samples in its middle are in no pair, and may be all there
            // is.
            let norm = norm.max(0.5 * energy);
            *nsdf = (scale * f64::from(self.correlation[lag]) / norm) as f32;
        }
        true
    }
}

#[cfg(test)]
mod tests;
