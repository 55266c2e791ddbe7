//! Sample rate conversion of streams.
//!
//! Wraps rubato's synchronous FFT resampler in a buffer, so that it accepts blocks of any length. At audio rates it
//! passes up to about 0.95 of the lower Nyquist frequency and attenuates above it by more than 100 dB.

use rubato::audioadapter_buffers::direct::SequentialSlice;
use rubato::{Fft, FixedSync, Resampler, WindowFunction};

/// Supported rates, Hz.
const RATES_HZ: std::ops::RangeInclusive<u32> = 1_000..=768_000;
/// Least samples per block at the lower rate. The anti-aliasing filter is as long as a block; at this length its edge
/// is at 0.95 of the Nyquist frequency (20.9 kHz at 44.1 kHz).
const SHORTEST_BLOCK: u32 = 512;

/// Error of a rate conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResampleError {
    /// A rate is not supported.
    #[error("cannot convert from {from} Hz to {to} Hz; rates must be from 1000 Hz to 768000 Hz")]
    Rate {
        /// Input rate in Hz.
        from: u32,
        /// Output rate in Hz.
        to: u32,
    },
}

/// Converts one channel from one sample rate to another.
///
/// With `r = rate_out / rate_in`, sample `n` of the input corresponds to sample `n * r + latency` of the output. Output
/// is emitted in blocks of constant length ([`blocks`](Self::blocks)) as soon as their input is complete. Non-finite
/// samples count as silence. With equal rates samples pass unchanged without latency.
///
/// # Examples
/// ```
/// use ondes_engine::dsp::resample::{StreamResampler, resample};
///
/// let mut resampler = StreamResampler::new(44_100, 48_000)?;
/// let mut output = Vec::new();
/// resampler.push(&[0.0; 44_100], |block| output.extend_from_slice(block));
/// resampler.finish(|block| output.extend_from_slice(block));
/// assert_eq!(output.len(), 48_000 + resampler.latency());
///
/// // A whole sound at once, without latency.
/// assert_eq!(resample(&[0.0; 44_100], 44_100, 48_000)?.len(), 48_000);
/// # Ok::<(), ondes_engine::dsp::resample::ResampleError>(())
/// ```
pub struct StreamResampler {
    rate_in: u32,
    rate_out: u32,
    /// `None` for equal rates.
    block_resampler: Option<BlockResampler>,
    /// Samples pushed and emitted since the start.
    pushed: u64,
    emitted: u64,
}

struct BlockResampler {
    resampler: Fft<f32>,
    /// Input block, of which `filled` samples are present.
    input: Vec<f32>,
    filled: usize,
    output: Vec<f32>,
}

impl StreamResampler {
    /// Creates a resampler; rates are in Hz.
    ///
    /// Block lengths are multiples of the rates divided by their greatest common divisor. Rates with a small common
    /// divisor, such as 44 100 and 47 999, work with blocks, and thus a latency, of up to seconds.
    ///
    /// # Errors
    ///
    /// Returns [`ResampleError`] if a rate is not between 1 kHz and 768 kHz.
    pub fn new(rate_in: u32, rate_out: u32) -> Result<Self, ResampleError> {
        let error = ResampleError::Rate { from: rate_in, to: rate_out };
        if !RATES_HZ.contains(&rate_in) || !RATES_HZ.contains(&rate_out) {
            return Err(error);
        }
        let block_resampler =
            if rate_in == rate_out { None } else { Some(BlockResampler::new(rate_in, rate_out).ok_or(error)?) };
        Ok(Self { rate_in, rate_out, block_resampler, pushed: 0, emitted: 0 })
    }

    /// Returns the latency in output samples.
    pub fn latency(&self) -> usize {
        // The filter is symmetric about the middle of a block, which has an even number of samples.
        self.block_resampler.as_ref().map_or(0, |block_resampler| block_resampler.output.len() / 2)
    }

    /// Returns the samples per block of input and output; (1, 1) for equal rates.
    pub fn blocks(&self) -> (usize, usize) {
        self.block_resampler
            .as_ref()
            .map_or((1, 1), |block_resampler| (block_resampler.input.len(), block_resampler.output.len()))
    }

    /// Processes any number of samples and emits the completed blocks in order.
    pub fn push(&mut self, input: &[f32], mut emit: impl FnMut(&[f32])) {
        self.pushed += input.len() as u64;
        let Some(block_resampler) = &mut self.block_resampler else {
            self.emitted += input.len() as u64;
            emit(input);
            return;
        };
        let mut rest = input;
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(rest.len().min(block_resampler.input.len() - block_resampler.filled));
            block_resampler.fill(chunk);
            rest = after;
            if block_resampler.filled == block_resampler.input.len() {
                block_resampler.convert();
                self.emitted += block_resampler.output.len() as u64;
                emit(&block_resampler.output);
            }
        }
    }

    /// Emits the remaining output as if silence followed, and resets.
    ///
    /// In total, `n` input samples give `ceil(n * rate_out / rate_in) + latency` output samples.
    pub fn finish(&mut self, mut emit: impl FnMut(&[f32])) {
        let target = self.output_frames(self.pushed) + self.latency() as u64;
        if let Some(block_resampler) = &mut self.block_resampler {
            while self.emitted < target {
                block_resampler.input[block_resampler.filled..].fill(0.0);
                block_resampler.convert();
                let length = usize::try_from(target - self.emitted)
                    .map_or(block_resampler.output.len(), |left| left.min(block_resampler.output.len()));
                self.emitted += length as u64;
                emit(&block_resampler.output[..length]);
            }
        }
        self.reset();
    }

    /// Clears all state.
    pub fn reset(&mut self) {
        self.pushed = 0;
        self.emitted = 0;
        if let Some(block_resampler) = &mut self.block_resampler {
            block_resampler.resampler.reset();
            block_resampler.filled = 0;
        }
    }

    /// Returns the output samples for the duration of `input` samples.
    fn output_frames(&self, input: u64) -> u64 {
        let frames = (u128::from(input) * u128::from(self.rate_out)).div_ceil(u128::from(self.rate_in));
        u64::try_from(frames).unwrap_or(u64::MAX)
    }
}

impl BlockResampler {
    fn new(rate_in: u32, rate_out: u32) -> Option<Self> {
        let divisor = greatest_common_divisor(rate_in, rate_out);
        let lower = rate_in.min(rate_out) / divisor;
        // Even, so that half a block is a whole number of samples at both rates.
        let multiple = SHORTEST_BLOCK.div_ceil(lower).next_multiple_of(2);
        let block_in = (rate_in / divisor * multiple) as usize;
        let resampler = Fft::new_custom(
            rate_in as usize,
            rate_out as usize,
            block_in,
            1,
            1,
            WindowFunction::BlackmanHarris2,
            FixedSync::Both,
        )
        .ok()?;
        let output = vec![0.0; resampler.output_frames_max()];
        Some(Self { input: vec![0.0; resampler.input_frames_max()], filled: 0, output, resampler })
    }

    fn fill(&mut self, samples: &[f32]) {
        for (slot, &sample) in self.input[self.filled..].iter_mut().zip(samples) {
            *slot = if sample.is_finite() { sample } else { 0.0 };
        }
        self.filled += samples.len();
    }

    /// Converts the input block to an output block.
    fn convert(&mut self) {
        let (input_length, output_length) = (self.input.len(), self.output.len());
        let input = SequentialSlice::new(&self.input[..], 1, input_length).expect("one channel of that length");
        let mut output =
            SequentialSlice::new_mut(&mut self.output[..], 1, output_length).expect("one channel of that length");
        let frames = self.resampler.process_into_buffer(&input, &mut output, None);
        assert!(
            matches!(frames, Ok(frames) if frames == (input_length, output_length)),
            "blocks must have the planned lengths"
        );
        self.filled = 0;
    }
}

/// Converts a whole sound, without latency: returns `ceil(input.len() * rate_out / rate_in)` samples.
///
/// # Errors
///
/// Returns [`ResampleError`] if a rate is not between 1 kHz and 768 kHz.
pub fn resample(input: &[f32], rate_in: u32, rate_out: u32) -> Result<Vec<f32>, ResampleError> {
    let mut resampler = StreamResampler::new(rate_in, rate_out)?;
    let mut ahead = resampler.latency();
    let mut output = Vec::new();
    let mut collect = |block: &[f32]| {
        let dropped = ahead.min(block.len());
        ahead -= dropped;
        output.extend_from_slice(&block[dropped..]);
    };
    resampler.push(input, &mut collect);
    resampler.finish(&mut collect);
    Ok(output)
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use proptest::prelude::*;

    use super::*;

    fn sine(rate: u32, frequency: f64, length: usize) -> Vec<f32> {
        (0..length).map(|n| (0.5 * (TAU * frequency * n as f64 / f64::from(rate)).sin()) as f32).collect()
    }

    /// Signal-to-error ratio in dB, without `edge` samples at either end.
    fn signal_to_error_db(expected: &[f32], found: &[f32], edge: usize) -> f64 {
        let middle = edge..expected.len() - edge;
        let power = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>();
        let signal = power(&mut expected[middle.clone()].iter().map(|&value| f64::from(value)));
        let error = power(&mut middle.map(|n| f64::from(expected[n]) - f64::from(found[n])));
        10.0 * (signal / error).log10()
    }

    #[test]
    fn sines_keep_their_phase() {
        for (from, to) in
            [(44_100, 48_000), (48_000, 44_100), (48_000, 96_000), (96_000, 48_000), (48_000, 16_000), (8_000, 48_000)]
        {
            for part in [0.01, 0.3, 0.6, 0.9] {
                let frequency = part * 0.5 * f64::from(from.min(to));
                let found = resample(&sine(from, frequency, from as usize), from, to).unwrap();
                assert_eq!(found.len(), to as usize);
                let db = signal_to_error_db(&sine(to, frequency, to as usize), &found, to as usize / 10);
                assert!(db > 100.0, "{from} to {to} at {frequency} Hz: {db:.1} dB");
            }
        }
    }

    #[test]
    fn conversion_is_reversible() {
        for frequency in [100.0, 1_000.0, 10_000.0, 19_500.0] {
            let sound = sine(44_100, frequency, 44_100);
            let back = resample(&resample(&sound, 44_100, 48_000).unwrap(), 48_000, 44_100).unwrap();
            let db = signal_to_error_db(&sound, &back, 4_000);
            assert!(db > 100.0, "{frequency} Hz: {db:.1} dB");
        }
    }

    #[test]
    fn frequencies_above_nyquist_are_rejected() {
        for (frequency, from, to) in [(23_000.0, 48_000, 44_100), (9_000.0, 48_000, 16_000), (40_000.0, 96_000, 48_000)]
        {
            let found = resample(&sine(from, frequency, from as usize), from, to).unwrap();
            let middle = &found[to as usize / 10..to as usize * 9 / 10];
            let power = middle.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>() / middle.len() as f64;
            // Relative to the power of the input, 1/8.
            let db = 10.0 * (8.0 * power).log10();
            assert!(db < -100.0, "{frequency} Hz at {from} to {to}: {db:.1} dB");
        }
    }

    /// A converted click is symmetric about its position.
    #[test]
    fn latency_is_exact() {
        for (from, to) in [
            (44_100, 48_000),
            (48_000, 44_100),
            (48_000, 16_000),
            (48_000, 192_000),
            (11_025, 48_000),
            (37_800, 48_000),
        ] {
            let mut resampler = StreamResampler::new(from, to).unwrap();
            // A whole number of samples at both rates.
            let at = 3 * (from / greatest_common_divisor(from, to)) as usize;
            let centre = 3 * (to / greatest_common_divisor(from, to)) as usize + resampler.latency();
            let mut click = vec![0.0; 10 * at + 5_000];
            click[at] = 1.0;
            let mut found = Vec::new();
            resampler.push(&click, |block| found.extend_from_slice(block));
            resampler.finish(|block| found.extend_from_slice(block));
            let top = (0..found.len()).max_by(|&a, &b| found[a].abs().total_cmp(&found[b].abs()));
            assert_eq!(top, Some(centre), "{from} to {to}");
            for distance in 1..100 {
                let (before, after) = (found[centre - distance], found[centre + distance]);
                assert!((before - after).abs() < 1e-6, "{from} to {to}: {before} and {after} at {distance}");
            }
        }
    }

    #[test]
    fn equal_rates_pass_samples_unchanged() {
        let sound = sine(48_000, 1_234.0, 1_000);
        let mut resampler = StreamResampler::new(48_000, 48_000).unwrap();
        assert_eq!(resampler.latency(), 0);
        let mut found = Vec::new();
        resampler.push(&sound, |block| found.extend_from_slice(block));
        assert_eq!(found, sound);
        resampler.finish(|_| panic!("nothing is left"));
    }

    #[test]
    fn rates_without_a_common_divisor_work() {
        let found = resample(&sine(8_000, 1_000.0, 16_000), 8_000, 8_009).unwrap();
        let db = signal_to_error_db(&sine(8_009, 1_000.0, 16_018), &found, 4_000);
        assert!(db > 90.0, "{db:.1} dB");
    }

    #[test]
    fn unsupported_rates_are_refused() {
        for (from, to) in [(0, 48_000), (48_000, 0), (48_000, 999), (1_000_000, 48_000)] {
            assert_eq!(StreamResampler::new(from, to).err(), Some(ResampleError::Rate { from, to }));
        }
    }

    #[test]
    fn non_finite_samples_do_not_persist() {
        let mut resampler = StreamResampler::new(44_100, 48_000).unwrap();
        resampler.push(&[f32::NAN, f32::INFINITY], |_| ());
        resampler.push(&[0.0; 4_000], |block| assert!(block.iter().all(|&sample| sample == 0.0)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn output_does_not_depend_on_block_length(
            splits in prop::collection::vec(0_usize..1_500, 1..20),
            rates in prop::sample::select(vec![(44_100, 48_000), (48_000, 44_100), (48_000, 96_000), (48_000, 48_000)]),
        ) {
            let sound = sine(rates.0, 555.0, 7_001);
            let (mut whole, mut split) = (Vec::new(), Vec::new());
            let mut resampler = StreamResampler::new(rates.0, rates.1).unwrap();
            resampler.push(&sound, |block| whole.extend(block.iter().map(|sample| sample.to_bits())));
            resampler.finish(|block| whole.extend(block.iter().map(|sample| sample.to_bits())));
            let expected = (7_001 * u64::from(rates.1)).div_ceil(u64::from(rates.0)) as usize + resampler.latency();
            prop_assert_eq!(whole.len(), expected);
            let mut rest = sound.as_slice();
            for length in splits {
                let (block, after) = rest.split_at(length.min(rest.len()));
                resampler.push(block, |block| split.extend(block.iter().map(|sample| sample.to_bits())));
                rest = after;
            }
            resampler.push(rest, |block| split.extend(block.iter().map(|sample| sample.to_bits())));
            resampler.finish(|block| split.extend(block.iter().map(|sample| sample.to_bits())));
            prop_assert_eq!(whole, split);
        }
    }
}
