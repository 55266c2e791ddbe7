//! A recording as a stream of mono sound at the rate of the output.

use std::path::Path;

use ondes_engine::dsp::resample::StreamResampler;
use ondes_engine::media::Decoder;

/// Reads a recording block by block, in constant memory: the mean of its channels, converted to another rate and aligned:
/// sample 0 is the recording's, and there are as many as cover its time.
///
/// The rate is converted before the model hears the sound, not after it played: an instrument that follows a telephone
/// call at 8 kHz can then still sound up to 20 kHz.
pub struct Recording {
    decoder: Decoder,
    decoded: Vec<Vec<f32>>,
    mono: Vec<f32>,
    resampler: StreamResampler,
    /// Samples that the resampler still puts in front of the sound.
    ahead: usize,
    /// Converted sound, of which `taken` samples were given away.
    ready: Vec<f32>,
    taken: usize,
    ended: bool,
}

impl Recording {
    /// Opens a recording; without a rate it is read at its own.
    ///
    /// # Errors
    /// When the file cannot be read or its rate not be converted.
    pub fn open(path: &Path, sample_rate: Option<u32>) -> anyhow::Result<Self> {
        let decoder = Decoder::open(path)?;
        let rate = decoder.sample_rate();
        let resampler = StreamResampler::new(rate, sample_rate.unwrap_or(rate))
            .map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
        let ahead = resampler.latency();
        Ok(Self {
            decoder,
            decoded: Vec::new(),
            mono: Vec::new(),
            resampler,
            ahead,
            ready: Vec::new(),
            taken: 0,
            ended: false,
        })
    }

    /// The recording's own rate, Hz.
    pub fn sample_rate(&self) -> u32 {
        self.decoder.sample_rate()
    }

    /// How long it says it is, in its own frames.
    pub fn frames(&self) -> Option<u64> {
        self.decoder.frames()
    }

    /// Fills `block` and tells how many samples there were; fewer than asked for only at the end.
    ///
    /// # Errors
    /// When the recording is damaged.
    pub fn fill(&mut self, block: &mut [f32]) -> anyhow::Result<usize> {
        let mut filled = 0;
        while filled < block.len() {
            if self.taken == self.ready.len() && !self.refill()? {
                break;
            }
            let count = (block.len() - filled).min(self.ready.len() - self.taken);
            block[filled..][..count].copy_from_slice(&self.ready[self.taken..][..count]);
            self.taken += count;
            filled += count;
        }
        Ok(filled)
    }

    /// What was not as it should be, once all was read.
    pub fn warnings(&self) -> Vec<&'static str> {
        let truncated = self.decoder.truncated().then_some("is cut short; what there is was played");
        let replaced =
            (self.decoder.replaced() > 0).then_some("holds samples that are no numbers; they were played as 0");
        truncated.into_iter().chain(replaced).collect()
    }

    /// Converts the next sound; false at the end.
    fn refill(&mut self) -> anyhow::Result<bool> {
        let Self { decoder, decoded, mono, resampler, ahead, ready, taken, ended } = self;
        ready.clear();
        *taken = 0;
        let mut emit = |sound: &[f32]| {
            let skipped = (*ahead).min(sound.len());
            *ahead -= skipped;
            ready.extend_from_slice(&sound[skipped..]);
        };
        let mut any = false;
        while !any && !*ended {
            if decoder.next(decoded)? {
                mix(decoded, mono);
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

/// The mean of all channels.
fn mix(channels: &[Vec<f32>], mono: &mut Vec<f32>) {
    let scale = 1.0 / channels.len() as f32;
    let frames = channels.first().map_or(0, Vec::len);
    let mean = |frame: usize| scale * channels.iter().map(|channel| channel[frame]).sum::<f32>();
    mono.clear();
    mono.extend((0..frames).map(mean));
}
