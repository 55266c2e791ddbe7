//! Recordings as a stream of mono or stereo sound at the output rate.

use std::path::Path;

use ondes_engine::dsp::resample::StreamResampler;
use ondes_engine::media::Decoder;
use ondes_engine::pipeline::InputChannels;

use crate::standard_input;

/// A channel of a recording at the output rate.
struct Channel {
    resampler: StreamResampler,
    /// Remaining latency of the resampler, to be skipped.
    latency_left: usize,
    /// Converted sound.
    ready: Vec<f32>,
}

/// Reads a recording in blocks, in constant memory: the channels that are processed, converted to
/// another rate and aligned with the start of the recording.
///
/// The rate is converted before the model, not after it: an instrument that follows a telephone
/// call at 8 kHz can then sound up to 20 kHz.
pub struct RecordingReader {
    decoder: Decoder,
    decoded: Vec<Vec<f32>>,
    mono: Vec<f32>,
    selection: InputChannels,
    /// One or two.
    channels: Vec<Channel>,
    /// Samples that were returned of those that are ready.
    consumed: usize,
    ended: bool,
}

impl RecordingReader {
    /// Opens a recording; without a rate it is read at its own. Of more than two channels, `Stereo`
    /// selects the first two.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or its rate cannot be converted.
    pub fn open(
        path: &Path,
        sample_rate: Option<u32>,
        selection: InputChannels,
    ) -> anyhow::Result<Self> {
        let decoder = standard_input::open_recording(path)?;
        let rate = decoder.sample_rate();
        let channel = |_| {
            let resampler = StreamResampler::new(rate, sample_rate.unwrap_or(rate))
                .map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
            Ok(Channel {
                latency_left: resampler.latency(),
                resampler,
                ready: Vec::new(),
            })
        };
        let count = if selection == InputChannels::Stereo {
            decoder.channels().min(2)
        } else {
            1
        };
        let channels = (0..count).map(channel).collect::<anyhow::Result<_>>()?;
        Ok(Self {
            decoder,
            decoded: Vec::new(),
            mono: Vec::new(),
            selection,
            channels,
            consumed: 0,
            ended: false,
        })
    }

    /// Returns the number of channels to process, 1 or 2.
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Returns the recording's own sample rate, Hz.
    pub fn sample_rate(&self) -> u32 {
        self.decoder.sample_rate()
    }

    /// Returns the length that the file states, in its own frames.
    pub fn frames(&self) -> Option<u64> {
        self.decoder.frames()
    }

    /// Fills `block`, `[channel][frame]`, and returns the number of frames, which is smaller only
    /// at the end.
    ///
    /// # Errors
    /// Returns an error if the recording is damaged.
    pub fn fill(&mut self, block: &mut [Vec<f32>; 2]) -> anyhow::Result<usize> {
        let (mut filled, length) = (0, block[0].len());
        while filled < length {
            let ready = self.channels[0].ready.len();
            if self.consumed == ready && !self.refill()? {
                break;
            }
            let count = (length - filled).min(self.channels[0].ready.len() - self.consumed);
            for (side, channel) in block.iter_mut().zip(&self.channels) {
                side[filled..][..count].copy_from_slice(&channel.ready[self.consumed..][..count]);
            }
            self.consumed += count;
            filled += count;
        }
        Ok(filled)
    }

    /// Returns warnings about the recording, once it was read.
    pub fn warnings(&self) -> Vec<&'static str> {
        let truncated = self
            .decoder
            .truncated()
            .then_some("is truncated; played up to its end");
        let replaced = (self.decoder.replaced() > 0)
            .then_some("contains samples that are NaN, infinite or above +120 dBFS; limited");
        truncated.into_iter().chain(replaced).collect()
    }

    /// Converts more sound; returns false at the end.
    fn refill(&mut self) -> anyhow::Result<bool> {
        self.channels
            .iter_mut()
            .for_each(|channel| channel.ready.clear());
        self.consumed = 0;
        while self.channels[0].ready.is_empty() && !self.ended {
            if self.decoder.next(&mut self.decoded)? {
                if self.selection == InputChannels::Mono {
                    mix_to_mono(&self.decoded, &mut self.mono);
                    self.channels[0].push(&self.mono);
                } else {
                    self.channels
                        .iter_mut()
                        .zip(&self.decoded)
                        .for_each(|(channel, sound)| channel.push(sound));
                }
            } else {
                self.channels.iter_mut().for_each(Channel::finish);
                self.ended = true;
            }
        }
        Ok(!self.channels[0].ready.is_empty())
    }
}

impl Channel {
    fn push(&mut self, sound: &[f32]) {
        let Self {
            resampler,
            latency_left,
            ready,
        } = self;
        resampler.push(sound, |sound| append(sound, latency_left, ready));
    }

    fn finish(&mut self) {
        let Self {
            resampler,
            latency_left,
            ready,
        } = self;
        resampler.finish(|sound| append(sound, latency_left, ready));
    }
}

/// Appends what follows the latency.
fn append(sound: &[f32], latency_left: &mut usize, ready: &mut Vec<f32>) {
    let skipped = (*latency_left).min(sound.len());
    *latency_left -= skipped;
    ready.extend_from_slice(&sound[skipped..]);
}

/// Averages all channels.
fn mix_to_mono(channels: &[Vec<f32>], mono: &mut Vec<f32>) {
    let scale = 1.0 / channels.len() as f32;
    let frames = channels.first().map_or(0, Vec::len);
    let mean = |frame: usize| scale * channels.iter().map(|channel| channel[frame]).sum::<f32>();
    mono.clear();
    mono.extend((0..frames).map(mean));
}
