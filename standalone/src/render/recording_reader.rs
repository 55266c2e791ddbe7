//! Recordings as a stream of mono sound at the output rate.

use std::path::Path;

use ondes_engine::dsp::resample::StreamResampler;
use ondes_engine::media::Decoder;

/// Reads a recording in blocks, in constant memory: the mean of its channels, converted to another rate and aligned
/// with the start of the recording.
///
/// The rate is converted before the model, not after it: an instrument that follows a telephone call at 8 kHz can then
/// sound up to 20 kHz.
pub struct RecordingReader {
    decoder: Decoder,
    decoded: Vec<Vec<f32>>,
    mono: Vec<f32>,
    resampler: StreamResampler,
    /// Remaining latency of the resampler, to be skipped.
    latency_left: usize,
    /// Converted sound, of which `consumed` samples were returned.
    ready: Vec<f32>,
    consumed: usize,
    ended: bool,
}

impl RecordingReader {
    /// Opens a recording; without a rate it is read at its own.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or its rate cannot be converted.
    pub fn open(path: &Path, sample_rate: Option<u32>) -> anyhow::Result<Self> {
        let decoder = Decoder::open(path)?;
        let rate = decoder.sample_rate();
        let resampler = StreamResampler::new(rate, sample_rate.unwrap_or(rate))
            .map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
        let latency_left = resampler.latency();
        Ok(Self {
            decoder,
            decoded: Vec::new(),
            mono: Vec::new(),
            resampler,
            latency_left,
            ready: Vec::new(),
            consumed: 0,
            ended: false,
        })
    }

    /// Returns the recording's own sample rate, Hz.
    pub fn sample_rate(&self) -> u32 {
        self.decoder.sample_rate()
    }

    /// Returns the length that the file states, in its own frames.
    pub fn frames(&self) -> Option<u64> {
        self.decoder.frames()
    }

    /// Fills `block` and returns the number of samples, which is smaller only at the end.
    ///
    /// # Errors
    /// Returns an error if the recording is damaged.
    pub fn fill(&mut self, block: &mut [f32]) -> anyhow::Result<usize> {
        let mut filled = 0;
        while filled < block.len() {
            if self.consumed == self.ready.len() && !self.refill()? {
                break;
            }
            let count = (block.len() - filled).min(self.ready.len() - self.consumed);
            block[filled..][..count].copy_from_slice(&self.ready[self.consumed..][..count]);
            self.consumed += count;
            filled += count;
        }
        Ok(filled)
    }

    /// Returns warnings about the recording, once it was read.
    pub fn warnings(&self) -> Vec<&'static str> {
        let truncated = self.decoder.truncated().then_some("is truncated; played up to its end");
        let replaced =
            (self.decoder.replaced() > 0).then_some("contains NaN or infinite samples; they were replaced by 0");
        truncated.into_iter().chain(replaced).collect()
    }

    /// Converts more sound; returns false at the end.
    fn refill(&mut self) -> anyhow::Result<bool> {
        let Self { decoder, decoded, mono, resampler, latency_left, ready, consumed, ended } = self;
        ready.clear();
        *consumed = 0;
        let mut emit = |sound: &[f32]| {
            let skipped = (*latency_left).min(sound.len());
            *latency_left -= skipped;
            ready.extend_from_slice(&sound[skipped..]);
        };
        let mut any = false;
        while !any && !*ended {
            if decoder.next(decoded)? {
                mix_to_mono(decoded, mono);
                resampler.push(mono, |sound| {
                    emit(sound);
                    any = true;
                });
            } else {
                resampler.finish(&mut emit);
                *ended = true;
            }
        }
        Ok(!*ended || !self.ready.is_empty())
    }
}

/// Averages all channels.
fn mix_to_mono(channels: &[Vec<f32>], mono: &mut Vec<f32>) {
    let scale = 1.0 / channels.len() as f32;
    let frames = channels.first().map_or(0, Vec::len);
    let mean = |frame: usize| scale * channels.iter().map(|channel| channel[frame]).sum::<f32>();
    mono.clear();
    mono.extend((0..frames).map(mean));
}
