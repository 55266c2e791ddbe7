//! Levels: decibels, amplitudes, moving means and peaks.

/// Largest magnitude of a sample that enters any processing, +120 dBFS: far above any sound, also
/// above 16-bit integers that were written as floats, and far below what overflows in a square or a
/// sum.
pub const SAMPLE_LIMIT: f32 = (1 << 20) as f32;

/// Limits a sample to [`SAMPLE_LIMIT`]; NaN and infinity become 0.
///
/// # Examples
/// ```
/// use ondes_engine::dsp::level::{SAMPLE_LIMIT, limit_sample};
///
/// assert_eq!([0.5, -1e38, f32::NAN, f32::INFINITY].map(limit_sample), [0.5, -SAMPLE_LIMIT, 0.0, 0.0]);
/// ```
#[must_use]
pub fn limit_sample(sample: f32) -> f32 {
    if sample.is_finite() {
        sample.clamp(-SAMPLE_LIMIT, SAMPLE_LIMIT)
    } else {
        0.0
    }
}

/// Copies samples through [`limit_sample`], up to the end of the shorter slice.
pub fn copy_limited(from: &[f32], to: &mut [f32]) {
    to.iter_mut()
        .zip(from)
        .for_each(|(to, from)| *to = limit_sample(*from));
}

/// Converts decibels to an amplitude: 0 dB is 1, −6.02 dB is 0.5.
///
/// # Examples
/// ```
/// use ondes_engine::dsp::level::{db_to_amplitude, amplitude_to_db};
///
/// assert_eq!(db_to_amplitude(20.0), 10.0);
/// assert_eq!(amplitude_to_db(0.1), -20.0);
/// assert_eq!(amplitude_to_db(0.0), f32::NEG_INFINITY);
/// ```
#[must_use]
pub fn db_to_amplitude(db: f32) -> f32 {
    10.0_f32.powf(db / 20.0)
}

/// Converts decibels to an amplitude in double precision.
#[must_use]
pub fn db_to_amplitude_f64(db: f64) -> f64 {
    10.0_f64.powf(db / 20.0)
}

/// Converts an amplitude to decibels; silence is −∞ dB.
#[must_use]
pub fn amplitude_to_db(amplitude: f32) -> f32 {
    20.0 * amplitude.log10()
}

/// Converts an amplitude to decibels in double precision.
#[must_use]
pub fn amplitude_to_db_f64(amplitude: f64) -> f64 {
    20.0 * amplitude.log10()
}

/// Returns the mean of each value and of those up to `around / 2` before and after it, within the
/// ends.
///
/// # Examples
/// ```
/// use ondes_engine::dsp::level::moving_mean;
///
/// assert_eq!(moving_mean(&[3.0, 0.0, 0.0, 3.0], 2).collect::<Vec<_>>(), [1.5, 1.0, 1.0, 1.5]);
/// ```
pub fn moving_mean(values: &[f32], around: usize) -> impl Iterator<Item = f32> {
    let mut sums = vec![0.0_f64];
    values
        .iter()
        .for_each(|value| sums.push(sums[sums.len() - 1] + f64::from(*value)));
    let count = values.len();
    (0..count).map(move |index| {
        let (first, end) = (
            index.saturating_sub(around / 2),
            (index + around / 2 + 1).min(count),
        );
        ((sums[end] - sums[first]) / (end - first) as f64) as f32
    })
}

/// Returns the largest magnitude of some samples, 0 if there are none; a NaN is ignored.
#[must_use]
pub fn peak(samples: &[f32]) -> f32 {
    samples
        .iter()
        .fold(0.0, |peak, sample| peak.max(sample.abs()))
}

/// Returns the largest step between neighbouring samples, 0 if there are fewer than two.
///
/// # Examples
/// ```
/// assert_eq!(ondes_engine::dsp::level::max_step(&[0.0, 0.5, -0.25]), 0.75);
/// ```
#[must_use]
pub fn max_step(samples: &[f32]) -> f32 {
    samples
        .windows(2)
        .fold(0.0, |largest, pair| largest.max((pair[1] - pair[0]).abs()))
}

/// Returns the largest difference between samples at the same position, up to the end of the
/// shorter slice.
///
/// # Examples
/// ```
/// assert_eq!(ondes_engine::dsp::level::max_difference(&[1.0, 2.0], &[1.0, 2.5]), 0.5);
/// ```
#[must_use]
pub fn max_difference(a: &[f32], b: &[f32]) -> f32 {
    a.iter()
        .zip(b)
        .fold(0.0, |largest, (a, b)| largest.max((a - b).abs()))
}
