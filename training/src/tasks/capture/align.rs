//! Alignment of a recording with the signal that was played: delay, polarity and clock drift.
//!
//! If the signal starts with the clicks of [`super::signal`], the delay is measured from these.
//! Otherwise it is the peak of the generalised cross-correlation with phase transform (Knapp &
//! Carter, "The generalized correlation method for estimation of time delay", IEEE Trans. ASSP
//! 24(4), 1976), which ignores how the device colours the sound.

use ondes_engine::dsp::level::peak;
use realfft::RealFftPlanner;
use realfft::num_complex::Complex;

use super::signal;

/// Longest detectable delay, seconds.
const LONGEST_S: f64 = 5.0;
/// Sound that the cross-correlation uses, seconds.
const ANALYSED_S: f64 = 20.0;
/// Number of segments that the clocks are compared on, and the length of each, samples.
const SEGMENTS: usize = 24;
const SEGMENT: usize = 1 << 15;
/// Largest detectable clock drift of a segment, samples.
const MAX_DRIFT: i64 = 2_000;
/// Samples subtracted from the measured delay. Sound before the first sample above the noise would
/// be acausal, which a network cannot learn; a slightly late recording is harmless.
const SAFETY_SAMPLES: i64 = 1;
/// Threshold for the arrival of a click, as a share of its peak.
const CLICK_THRESHOLD: f32 = 0.1;
/// Least correlation of a whitened segment that counts.
const MIN_CORRELATION: f64 = 0.02;

/// Relation of a recording to the signal.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Alignment {
    /// Delay of the recording, samples; negative if it is ahead.
    pub delay_samples: i64,
    /// The delay was measured from the clicks.
    pub from_clicks: bool,
    /// The recording has inverted polarity.
    pub inverted: bool,
    /// Largest absolute correlation within a millisecond of the delay, 0 to 1.
    pub correlation: f64,
    /// Additional length of the recording due to a different clock, samples.
    pub drift_samples: f64,
}

/// Measures delay, polarity and drift of `wet` against `dry`.
#[must_use]
pub fn align(dry: &[f32], wet: &[f32], rate_hz: f64) -> Alignment {
    let click_delay = signal::starts_with_clicks(dry, rate_hz)
        .then(|| delay_from_clicks(dry, wet, rate_hz))
        .flatten();
    let analysed = ((ANALYSED_S + LONGEST_S) * rate_hz) as usize;
    let delay = click_delay.unwrap_or_else(|| {
        let (dry, wet) = (
            &dry[..dry.len().min(analysed)],
            &wet[..wet.len().min(analysed)],
        );
        whitened_peak(dry, wet, (LONGEST_S * rate_hz) as i64, 0).0
    });
    let (correlation, inverted) = correlation(dry, wet, delay, (rate_hz / 1_000.0) as i64);
    Alignment {
        delay_samples: delay - SAFETY_SAMPLES,
        from_clicks: click_delay.is_some(),
        inverted,
        correlation,
        drift_samples: drift(dry, wet, delay),
    }
}

/// Returns the delay of the clicks; `None` if they are not found or disagree.
fn delay_from_clicks(dry: &[f32], wet: &[f32], rate_hz: f64) -> Option<i64> {
    let positions = signal::click_positions(rate_hz);
    // Before the first click, the recording holds nothing but noise.
    let noise = peak(wet.get(positions[0] - (0.25 * rate_hz) as usize..positions[0])?);
    let delays = positions.map(|position| {
        // The next sound is half a second later.
        let after = wet.get(position..(position + (0.45 * rate_hz) as usize).min(wet.len()))?;
        let peak = peak(after);
        if peak < 4.0 * noise || peak < 1e-4 {
            return None;
        }
        let threshold = (CLICK_THRESHOLD * peak).max(2.0 * noise);
        let arrival = after.iter().position(|x| x.abs() > threshold)?;
        let departure = dry[position..]
            .iter()
            .position(|x| x.abs() > 0.5 * signal::CLICK_LEVEL)?;
        Some(arrival as i64 - departure as i64)
    });
    match delays {
        [Some(first), Some(second)] if (first - second).abs() <= 2 => Some(first.min(second)),
        _ => None,
    }
}

/// Returns the lag of the largest whitened cross-correlation within `reach` of `around`, and its
/// value, 0 to 1.
fn whitened_peak(dry: &[f32], wet: &[f32], reach: i64, around: i64) -> (i64, f64) {
    let size = (dry.len() + wet.len()).next_power_of_two();
    let mut planner = RealFftPlanner::<f64>::new();
    let (forward, inverse) = (
        planner.plan_fft_forward(size),
        planner.plan_fft_inverse(size),
    );
    let spectrum = |sound: &[f32]| {
        let mut padded: Vec<f64> = sound.iter().map(|x| f64::from(*x)).collect();
        padded.resize(size, 0.0);
        let mut spectrum = forward.make_output_vec();
        // Cannot fail: both lengths are as planned.
        let _ = forward.process(&mut padded, &mut spectrum);
        spectrum
    };
    let mut cross: Vec<Complex<f64>> = spectrum(dry)
        .iter()
        .zip(spectrum(wet))
        .map(|(dry, wet)| wet * dry.conj())
        .collect();
    // The phase of bins below a thousandth of the mean is noise.
    let floor = 1e-3 * cross.iter().map(|x| x.norm()).sum::<f64>() / cross.len() as f64 + 1e-30;
    for value in &mut cross {
        *value /= value.norm() + floor;
    }
    // The first and last bin of a real signal's spectrum are real.
    let last = cross.len() - 1;
    cross[0].im = 0.0;
    cross[last].im = 0.0;
    let mut correlation = vec![0.0; size];
    let _ = inverse.process(&mut cross, &mut correlation);
    let reach = reach.min(size as i64 / 2 - 1 - around.abs()).max(0);
    let at = |lag: i64| correlation[lag.rem_euclid(size as i64) as usize].abs() / size as f64;
    let best = (around - reach..=around + reach)
        .max_by(|&a, &b| at(a).total_cmp(&at(b)))
        .unwrap_or(around);
    (best, at(best))
}

/// Returns the largest absolute correlation within `reach` of a delay, 0 to 1, and whether it is
/// negative.
fn correlation(dry: &[f32], wet: &[f32], delay: i64, reach: i64) -> (f64, bool) {
    let mean = |sound: &[f32]| {
        sound.iter().map(|x| f64::from(*x)).sum::<f64>() / sound.len().max(1) as f64
    };
    let correlation = |delay: i64| {
        let (dry, wet) = overlapping(dry, wet, delay);
        let (dry_mean, wet_mean) = (mean(dry), mean(wet));
        let mut sums = [0.0; 3];
        for (x, y) in dry.iter().zip(wet) {
            let (x, y) = (f64::from(*x) - dry_mean, f64::from(*y) - wet_mean);
            sums[0] += x * y;
            sums[1] += x * x;
            sums[2] += y * y;
        }
        sums[0] / (sums[1] * sums[2]).sqrt().max(1e-20)
    };
    let step = (reach / 12).max(1) as usize;
    let best = (delay - reach..=delay + reach)
        .step_by(step)
        .map(correlation);
    best.fold((0.0, false), |best, value| {
        if value.abs() > best.0 {
            (value.abs(), value < 0.0)
        } else {
            best
        }
    })
}

/// Returns the parts of both sounds that overlap if `wet` is delayed by `delay` samples.
pub(super) fn overlapping<'a>(
    dry: &'a [f32],
    wet: &'a [f32],
    delay: i64,
) -> (&'a [f32], &'a [f32]) {
    let dry = &dry[(-delay).clamp(0, dry.len() as i64) as usize..];
    let wet = &wet[delay.clamp(0, wet.len() as i64) as usize..];
    let common = dry.len().min(wet.len());
    (&dry[..common], &wet[..common])
}

/// Returns the drift over the length of the sounds, samples: the median slope between all pairs of
/// segments (Sen, "Estimates of the regression coefficient based on Kendall's tau", JASA 63, 1968),
/// times the length.
fn drift(dry: &[f32], wet: &[f32], delay: i64) -> f64 {
    let (dry, wet) = overlapping(dry, wet, delay);
    let length = dry.len();
    let segment = SEGMENT.min(length / 4);
    if segment < 4_096 {
        return 0.0;
    }
    let mut found: Vec<(f64, f64)> = Vec::new();
    for index in 0..SEGMENTS {
        let from = (length - segment) * index / (SEGMENTS - 1);
        let range = from..from + segment;
        let reach = MAX_DRIFT.min(segment as i64 / 4);
        let (lag, correlation) = whitened_peak(&dry[range.clone()], &wet[range], reach, 0);
        if correlation > MIN_CORRELATION {
            found.push((from as f64, lag as f64));
        }
    }
    let mut slopes = Vec::new();
    for (index, first) in found.iter().enumerate() {
        let later = found[index + 1..]
            .iter()
            .filter(|second| second.0 > first.0 + segment as f64);
        slopes.extend(later.map(|second| (second.1 - first.1) / (second.0 - first.0)));
    }
    slopes.sort_by(f64::total_cmp);
    slopes
        .get(slopes.len() / 2)
        .map_or(0.0, |slope| slope * length as f64)
}
