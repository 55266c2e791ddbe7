//! Sample rate conversion of streams.
//!
//! Two methods ([`Resampling`]). *Low latency* is a polyphase filter that emits each sample as soon
//! as it can; its delay is below half a millisecond at 44.1 kHz. *Linear phase* wraps rubato's
//! synchronous FFT resampler in a buffer, so that it accepts blocks of any length; at audio rates
//! it passes up to about 0.95 of the lower Nyquist frequency and attenuates above it by more than
//! 100 dB.

mod block;
mod polyphase;
mod prototype;

use ondes_kernels::Kernels;
use serde::{Deserialize, Serialize};

use block::BlockResampler;
use polyphase::PolyphaseResampler;

use super::level::copy_limited;

/// Supported rates, Hz. Steinberg's validator tries up to 1,234,568 Hz.
pub(crate) const RATES_HZ: std::ops::RangeInclusive<u32> = 1_000..=2_000_000;

/// Samples that pass unchanged at a time.
const CHUNK: usize = 256;

/// Method of a rate conversion.
///
/// Low latency, by the lower of the two rates:
///
/// | lower rate | delay, each way | pass band, ±0.05 dB | stop band, below −90 dB |
/// |---|---|---|---|
/// | below 48 kHz | 21 samples, 0.48 ms at 44.1 kHz | 0.415 of the rate, 18.3 kHz at 44.1 kHz | from 22.05 kHz at 44.1 kHz |
/// | below 88.2 kHz | 14 samples, 0.29 ms at 48 kHz | 0.385 of the rate, 18.5 kHz at 48 kHz | from 24 kHz at 48 kHz |
/// | others | 7 samples, 0.08 ms at 88.2 kHz | a quarter of the rate, 22 kHz at 88.2 kHz | from 44.1 kHz at 88.2 kHz |
///
/// The phase is linear within half a degree up to the edge of the pass band; above it the gain
/// falls (by 5.5 dB at 19.8 kHz and 44.1 kHz) and the delay varies, which no mix with the dry
/// signal below 18 kHz notices. The stop band begins exactly at half the lower rate, so no image
/// and no alias falls into any part of the audible band.
///
/// Linear phase passes up to 0.95 of half the lower rate, has a stop band below −100 dB, and adds
/// 30 to 40 ms for both ways at usual rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resampling {
    /// Polyphase filters of short delay.
    #[default]
    LowLatency,
    /// Symmetrical filters, computed block by block.
    LinearPhase,
}

impl Resampling {
    /// Returns true for the default, low latency.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Error of a rate conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResampleError {
    /// A rate is not supported.
    #[error("cannot convert from {from} Hz to {to} Hz; rates must be from 1000 Hz to 2000000 Hz")]
    Rate {
        /// Input rate in Hz.
        from: u32,
        /// Output rate in Hz.
        to: u32,
    },
}

/// Converts one channel from one sample rate to another.
///
/// With `r = rate_out / rate_in`, sample `n` of the input corresponds to sample `n * r + latency`
/// of the output. Output is emitted as soon as its input is complete: sample by sample with low
/// latency, in blocks of constant length with linear phase. With equal rates samples pass unchanged
/// without latency. Samples are limited to [`SAMPLE_LIMIT`](super::level::SAMPLE_LIMIT), and
/// non-finite ones count as silence, at any rates: what enters a pipeline enters here.
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
    converter: Converter,
    /// Samples pushed and emitted since the start.
    pushed: u64,
    emitted: u64,
}

enum Converter {
    /// Equal rates.
    Identity {
        /// Delay of the input.
        delay: usize,
    },
    Polyphase(Box<PolyphaseResampler>),
    Block(Box<BlockResampler>),
}

impl StreamResampler {
    /// Creates a resampler of linear phase; rates are in Hz.
    ///
    /// Block lengths are multiples of the rates divided by their greatest common divisor. Rates
    /// with a small common divisor, such as 44 100 and 47 999, work with blocks, and thus a
    /// latency, of up to seconds.
    ///
    /// # Errors
    ///
    /// Returns [`ResampleError`] if a rate is not between 1 kHz and 2 MHz.
    pub fn new(rate_in: u32, rate_out: u32) -> Result<Self, ResampleError> {
        check(rate_in, rate_out)?;
        let converter = if rate_in == rate_out {
            Converter::Identity { delay: 0 }
        } else {
            let refused = ResampleError::Rate {
                from: rate_in,
                to: rate_out,
            };
            Converter::Block(Box::new(
                BlockResampler::new(rate_in, rate_out).ok_or(refused)?,
            ))
        };
        Ok(Self {
            rate_in,
            rate_out,
            converter,
            pushed: 0,
            emitted: 0,
        })
    }

    /// Creates a resampler of low latency; rates are in Hz. Any two rates have a table of at most 1
    /// MiB.
    ///
    /// # Errors
    ///
    /// Returns [`ResampleError`] if a rate is not between 1 kHz and 2 MHz.
    ///
    /// # Examples
    /// ```
    /// use ondes_engine::Kernels;
    /// use ondes_engine::dsp::resample::StreamResampler;
    ///
    /// let mut resampler = StreamResampler::low_latency(44_100, 48_000, Kernels::detect())?;
    /// assert_eq!(resampler.latency(), 22);
    /// let mut count = 0;
    /// resampler.push(&[0.0; 147], |samples| count += samples.len());
    /// assert_eq!(count, 160);
    /// # Ok::<(), ondes_engine::dsp::resample::ResampleError>(())
    /// ```
    pub fn low_latency(
        rate_in: u32,
        rate_out: u32,
        kernels: Kernels,
    ) -> Result<Self, ResampleError> {
        Self::low_latency_after(rate_in, rate_out, 0, kernels)
    }

    /// Creates a resampler of low latency whose input is `delay` samples late;
    /// [`latency`](Self::latency) includes them, and is exact although they may be no whole number
    /// of output samples.
    ///
    /// # Errors
    ///
    /// Returns [`ResampleError`] if a rate is not between 1 kHz and 2 MHz.
    pub(crate) fn low_latency_after(
        rate_in: u32,
        rate_out: u32,
        delay: usize,
        kernels: Kernels,
    ) -> Result<Self, ResampleError> {
        check(rate_in, rate_out)?;
        let converter = if rate_in == rate_out {
            Converter::Identity { delay }
        } else {
            Converter::Polyphase(Box::new(PolyphaseResampler::new(
                rate_in, rate_out, delay, kernels,
            )))
        };
        Ok(Self {
            rate_in,
            rate_out,
            converter,
            pushed: 0,
            emitted: 0,
        })
    }

    /// Returns the latency in output samples.
    pub fn latency(&self) -> usize {
        match &self.converter {
            Converter::Identity { delay } => *delay,
            Converter::Polyphase(polyphase) => polyphase.latency(),
            // The filter is symmetric about the middle of a block, which has an even number of
            // samples.
            Converter::Block(block) => block.output.len() / 2,
        }
    }

    /// Returns the samples per period of input and output, after which all phases and blocks begin
    /// anew; (1, 1) for equal rates.
    pub fn period(&self) -> (usize, usize) {
        match &self.converter {
            Converter::Block(block) => (block.input.len(), block.output.len()),
            _ => {
                let divisor = greatest_common_divisor(self.rate_in, self.rate_out);
                (
                    (self.rate_in / divisor) as usize,
                    (self.rate_out / divisor) as usize,
                )
            }
        }
    }

    /// Returns the largest number of samples that are emitted for `input` samples.
    pub fn max_output(&self, input: usize) -> usize {
        match &self.converter {
            Converter::Identity { .. } => input,
            Converter::Polyphase(_) => self.output_frames(input as u64) as usize + 1,
            Converter::Block(block) => (input / block.input.len() + 1) * block.output.len(),
        }
    }

    /// Returns the input samples after its own position that an output sample of low latency waits
    /// for.
    pub(crate) fn ahead(&self) -> usize {
        match &self.converter {
            Converter::Polyphase(polyphase) => polyphase.ahead(),
            Converter::Identity { .. } | Converter::Block(_) => 0,
        }
    }

    /// Returns how long a sound continues after its end, besides the latency, in output samples.
    pub fn tail(&self) -> usize {
        match &self.converter {
            Converter::Identity { .. } => 0,
            Converter::Polyphase(polyphase) => polyphase.tail(),
            // A symmetric filter rings as long as it delays.
            Converter::Block(block) => block.output.len() / 2,
        }
    }

    /// Processes any number of samples and emits what is complete, in order.
    pub fn push(&mut self, input: &[f32], mut emit: impl FnMut(&[f32])) {
        self.pushed += input.len() as u64;
        let emitted = &mut self.emitted;
        let mut emit = |samples: &[f32]| {
            *emitted += samples.len() as u64;
            emit(samples);
        };
        match &mut self.converter {
            Converter::Identity { .. } => {
                let mut limited = [0.0; CHUNK];
                for chunk in input.chunks(CHUNK) {
                    copy_limited(chunk, &mut limited);
                    emit(&limited[..chunk.len()]);
                }
            }
            Converter::Polyphase(polyphase) => polyphase.push(input, emit),
            Converter::Block(block) => block.push(input, emit),
        }
    }

    /// Emits the remaining output as if silence followed, and resets.
    ///
    /// In total, `n` input samples give `ceil(n * rate_out / rate_in) + latency` output samples.
    pub fn finish(&mut self, mut emit: impl FnMut(&[f32])) {
        const SILENCE: [f32; 64] = [0.0; 64];
        let target = self.output_frames(self.pushed) + self.latency() as u64;
        while self.emitted < target {
            let left = usize::try_from(target - self.emitted).unwrap_or(usize::MAX);
            let mut still_due = left;
            self.push(&SILENCE, |samples| {
                let length = samples.len().min(still_due);
                still_due -= length;
                if length > 0 {
                    emit(&samples[..length]);
                }
            });
        }
        self.reset();
    }

    /// Clears all state.
    pub fn reset(&mut self) {
        self.pushed = 0;
        self.emitted = 0;
        match &mut self.converter {
            Converter::Identity { .. } => {}
            Converter::Polyphase(polyphase) => polyphase.reset(),
            Converter::Block(block) => block.reset(),
        }
    }

    /// Returns the output samples for the duration of `input` samples.
    fn output_frames(&self, input: u64) -> u64 {
        let frames =
            (u128::from(input) * u128::from(self.rate_out)).div_ceil(u128::from(self.rate_in));
        u64::try_from(frames).unwrap_or(u64::MAX)
    }
}

/// Converts a whole sound with linear phase, without latency: returns
/// `ceil(input.len() * rate_out / rate_in)` samples.
///
/// # Errors
///
/// Returns [`ResampleError`] if a rate is not between 1 kHz and 2 MHz.
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

fn check(from: u32, to: u32) -> Result<(), ResampleError> {
    let is_supported = RATES_HZ.contains(&from) && RATES_HZ.contains(&to);
    if is_supported {
        Ok(())
    } else {
        Err(ResampleError::Rate { from, to })
    }
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

#[cfg(test)]
mod tests;
