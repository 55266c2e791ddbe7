//! Recorded impulse responses.

use ondes_kernels::Kernels;

use crate::dsp::fourier::RealFft;
use crate::dsp::resample::{ResampleError, resample};

/// Longest response, s. A large hall fades out within 15 s.
pub const MAX_RESPONSE_S: u32 = 60;
/// Frequency band in which the level is measured, Hz.
const BAND_HZ: [f64; 2] = [80.0, 8_000.0];
/// Trailing samples below this level relative to the peak are removed: −120 dB.
pub const INAUDIBLE: f32 = 1e-6;

/// Error of an impulse response.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ResponseError {
    /// The response has an unsupported number of channels.
    #[error("an impulse response has one, two or four channels; this one has {0}")]
    Channels(usize),
    /// The response is too long; seconds.
    #[error(
        "an impulse response sounds for at most {MAX_RESPONSE_S} s; this one sounds for {0:.1} s"
    )]
    Length(f64),
    /// The response is silent.
    #[error("the impulse response is silent")]
    Silent,
    /// The samples are not finite, or the channels have different lengths.
    #[error("the impulse response has samples that are not finite numbers")]
    Damaged,
    /// The sample rate cannot be converted.
    #[error(transparent)]
    Rate(#[from] ResampleError),
}

/// Impulse response at its own sample rate: of one channel for both sides, of one for each side, or
/// of four ("true stereo"): left to left, left to right, right to left, right to right.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// Samples, `[channel][frame]`.
    channels: Vec<Vec<f32>>,
    sample_rate: u32,
}

impl Response {
    /// Creates a response from samples, `[channel][frame]`, at a rate in Hz.
    ///
    /// # Errors
    /// Returns [`ResponseError`] if the response is not valid.
    pub fn new(channels: Vec<Vec<f32>>, sample_rate: u32) -> Result<Self, ResponseError> {
        let frames = channels.first().map_or(0, Vec::len);
        if ![1, 2, 4].contains(&channels.len()) {
            return Err(ResponseError::Channels(channels.len()));
        }
        if frames > MAX_RESPONSE_S as usize * sample_rate as usize {
            return Err(ResponseError::Length(
                frames as f64 / f64::from(sample_rate),
            ));
        }
        let mut samples = channels.iter().flatten();
        if channels.iter().any(|channel| channel.len() != frames)
            || !samples.all(|sample| sample.is_finite())
        {
            return Err(ResponseError::Damaged);
        }
        if channels.iter().flatten().all(|sample| *sample == 0.0) {
            return Err(ResponseError::Silent);
        }
        Ok(Self {
            channels,
            sample_rate,
        })
    }

    /// Returns the sample rate in Hz.
    #[must_use]
    pub fn sample_rate(&self) -> u32 {
        self.sample_rate
    }

    /// Returns the duration in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.channels[0].len() as f64 / f64::from(self.sample_rate)
    }

    /// Returns filter taps, `[channel][tap]`, for a sample rate in Hz. They are normalised to unit
    /// gain for pink noise from 80 Hz to 8 kHz, which resembles the spectrum of music, as a mean
    /// over the sides of the output.
    ///
    /// # Errors
    /// Returns [`ResponseError`] if the rate cannot be converted, or the response has nothing in
    /// that band.
    pub fn taps(&self, sample_rate: u32) -> Result<Vec<Vec<f32>>, ResponseError> {
        let converted = self
            .channels
            .iter()
            .map(|channel| resample(channel, self.sample_rate, sample_rate));
        let mut taps = converted.collect::<Result<Vec<_>, _>>()?;
        let sides = taps.len().min(2) as f64;
        let power = taps
            .iter()
            .map(|taps| pink_power(taps, sample_rate))
            .sum::<f64>()
            / sides;
        let gain = power.sqrt().recip() as f32;
        // The response may have no power in the band.
        if !gain.is_finite() {
            return Err(ResponseError::Silent);
        }
        taps.iter_mut().flatten().for_each(|tap| *tap *= gain);
        let peak = taps
            .iter()
            .flatten()
            .fold(0.0_f32, |peak, tap| peak.max(tap.abs()));
        let audible_length = |taps: &Vec<f32>| {
            taps.iter()
                .rposition(|tap| tap.abs() > INAUDIBLE * peak)
                .map_or(0, |last| last + 1)
        };
        let length = taps.iter().map(audible_length).max().unwrap_or(0);
        taps.iter_mut().for_each(|taps| taps.truncate(length));
        Ok(taps)
    }
}

/// Returns the power gain for pink noise in the band.
fn pink_power(taps: &[f32], sample_rate: u32) -> f64 {
    let size = taps.len().next_power_of_two().max(1 << 15);
    let mut fft = RealFft::new(size, Kernels::detect());
    let (mut samples, mut spectrum) = (vec![0.0; size], vec![0.0; fft.spectrum()]);
    samples[..taps.len()].copy_from_slice(taps);
    fft.forward(&mut samples, &mut spectrum);
    let bin_hz = f64::from(sample_rate) / size as f64;
    let band = BAND_HZ[0].min(0.1 * f64::from(sample_rate))
        ..=BAND_HZ[1].min(0.45 * f64::from(sample_rate));
    let (mut power, mut weights) = (0.0, 0.0);
    for (bin, value) in spectrum.chunks_exact(2).enumerate().skip(1) {
        let hz = bin as f64 * bin_hz;
        if band.contains(&hz) {
            power += (f64::from(value[0]).powi(2) + f64::from(value[1]).powi(2)) / hz;
            weights += 1.0 / hz;
        }
    }
    power / weights
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;

    /// Decaying resonance.
    fn ringing(sample_rate: u32, hz: f64, seconds: f64, gain: f64) -> Vec<f32> {
        let rate = f64::from(sample_rate);
        let at =
            |n: usize| gain * (-20.0 * n as f64 / rate).exp() * (TAU * hz * n as f64 / rate).sin();
        (0..(seconds * rate) as usize)
            .map(|n| at(n) as f32)
            .collect()
    }

    #[test]
    fn invalid_responses_are_refused() {
        let refused = |channels: Vec<Vec<f32>>| Response::new(channels, 8_000).unwrap_err();
        assert_eq!(refused(vec![]), ResponseError::Channels(0));
        assert_eq!(refused(vec![vec![1.0]; 3]), ResponseError::Channels(3));
        assert_eq!(
            refused(vec![vec![1.0; 488_000]]),
            ResponseError::Length(61.0)
        );
        assert_eq!(refused(vec![vec![0.0; 9]]), ResponseError::Silent);
        assert_eq!(refused(vec![vec![]]), ResponseError::Silent);
        assert_eq!(refused(vec![vec![1.0, f32::NAN]]), ResponseError::Damaged);
        assert_eq!(
            refused(vec![vec![1.0; 3], vec![1.0; 2]]),
            ResponseError::Damaged
        );
    }

    #[test]
    fn levels_are_independent_of_recording_level_and_rate() {
        let reference = Response::new(vec![ringing(48_000, 700.0, 0.5, 1.0)], 48_000)
            .unwrap()
            .taps(48_000)
            .unwrap();
        for (rate, gain) in [(48_000, 1e-3), (44_100, 30.0), (96_000, 1.0)] {
            let response = Response::new(vec![ringing(rate, 700.0, 0.5, gain)], rate).unwrap();
            let taps = response.taps(48_000).unwrap();
            for (n, (found, expected)) in taps[0].iter().zip(&reference[0]).enumerate() {
                assert!(
                    (found - expected).abs() < 2e-4,
                    "{found} for {expected} at {n}, recorded at {rate} Hz"
                );
            }
        }
        // A unit impulse stays one.
        let nothing = Response::new(vec![vec![0.25, 0.0, 0.0]], 48_000)
            .unwrap()
            .taps(48_000)
            .unwrap();
        assert!(
            nothing[0].len() == 1 && (nothing[0][0] - 1.0).abs() < 1e-6,
            "{nothing:?}"
        );
    }

    #[test]
    fn channels_keep_their_balance_and_trailing_silence_is_removed() {
        let (left, mut right) = (
            ringing(48_000, 500.0, 0.2, 0.8),
            ringing(48_000, 500.0, 0.2, 0.2),
        );
        right.extend([0.0; 20_000]);
        let mut longer = left.clone();
        longer.extend([0.0; 20_000]);
        let response = Response::new(vec![longer, right], 48_000).unwrap();
        let taps = response.taps(48_000).unwrap();
        assert!(taps[0].len() <= left.len() && taps[0].len() == taps[1].len());
        assert!((taps[0][30] / taps[1][30] - 4.0).abs() < 1e-4);
    }
}
