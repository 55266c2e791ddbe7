//! Sound, pitch and loudness of one file, heard once and memory-mapped from then on.

use std::path::Path;

use anyhow::{Context, bail};
use memmap2::Mmap;
use ondes_engine::dsp::analysis::analyse;
use ondes_engine::dsp::resample::resample;
use ondes_engine::media::read_mono;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

/// Changes whenever what is heard in the same file changes.
const VERSION: u32 = 2;

/// At what rate sound is kept and how often it is described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureRate {
    /// Hz.
    pub sample_rate: u32,
    /// Samples per frame.
    pub hop: usize,
}

/// One file, heard. Frame `i` describes sample `i · hop`.
pub struct Features {
    map: Mmap,
    frames: usize,
    /// The rates at which it was heard.
    pub rate: FeatureRate,
    /// Where each value begins in the map, bytes: audio, pitch, loudness, voicing.
    offsets: [usize; 4],
}

impl Features {
    /// Maps what was heard in a file of this content before, or hears it now and keeps it in the folder `cache`.
    ///
    /// # Errors
    /// One line with the file and the reason.
    pub fn open(path: &Path, cache: &Path, rate: FeatureRate) -> anyhow::Result<Self> {
        let content = std::fs::read(path).with_context(|| format!("{}: cannot be read", path.display()))?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&content).update(format!("{VERSION} {} {}", rate.sample_rate, rate.hop).as_bytes());
        let kept = cache.join(format!("{}.safetensors", hasher.finalize().to_hex()));
        if !kept.exists() {
            hear(path, &kept, rate)?;
        }
        Self::map(&kept, rate).with_context(|| format!("{}: delete it to hear the file again", kept.display()))
    }

    fn map(path: &Path, rate: FeatureRate) -> anyhow::Result<Self> {
        let file = std::fs::File::open(path)?;
        // SAFETY: the file was written whole under another name and then renamed, and nothing of ours ever changes it; every bit
        // pattern is a valid float.
        #[expect(unsafe_code)]
        let map = unsafe { Mmap::map(&file)? };
        let tensors = SafeTensors::deserialize(&map)?;
        let start = map.as_ptr() as usize;
        let mut offsets = [0; 4];
        let mut lengths = [0; 4];
        for (index, name) in ["audio", "pitch", "loudness", "voiced"].into_iter().enumerate() {
            let view = tensors.tensor(name)?;
            offsets[index] = view.data().as_ptr() as usize - start;
            lengths[index] = view.data().len() / size_of::<f32>();
        }
        let frames = lengths[1];
        if lengths != [frames * rate.hop, frames, frames, frames] {
            bail!("its parts do not fit together");
        }
        Ok(Self { map, frames, rate, offsets })
    }

    fn values(&self, index: usize, count: usize) -> &[f32] {
        let bytes = &self.map[self.offsets[index]..][..count * size_of::<f32>()];
        bytemuck::cast_slice(bytes)
    }

    /// Number of frames.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Length in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        (self.frames * self.rate.hop) as f64 / f64::from(self.rate.sample_rate)
    }

    /// `frames · hop` samples.
    #[must_use]
    pub fn audio(&self) -> &[f32] {
        self.values(0, self.frames * self.rate.hop)
    }

    /// Semitones, 69 = 440 Hz; between voiced frames the last one is held.
    #[must_use]
    pub fn pitch(&self) -> &[f32] {
        self.values(1, self.frames)
    }

    /// A-weighted level, dB.
    #[must_use]
    pub fn loudness(&self) -> &[f32] {
        self.values(2, self.frames)
    }

    /// 1 where the frame has a pitch, else 0.
    #[must_use]
    pub fn voiced(&self) -> &[f32] {
        self.values(3, self.frames)
    }
}

/// Decodes, resamples and analyses a file and keeps the result.
fn hear(path: &Path, kept: &Path, rate: FeatureRate) -> anyhow::Result<()> {
    let (sound, file_rate) = read_mono(path)?;
    let mut audio = resample(&sound, file_rate, rate.sample_rate)?;
    audio.resize(audio.len().next_multiple_of(rate.hop), 0.0);
    let frames = analyse(&audio, f64::from(rate.sample_rate), rate.hop);
    let pitch: Vec<f32> = frames.iter().map(|frame| frame.pitch.semitones).collect();
    let loudness: Vec<f32> = frames.iter().map(|frame| frame.loudness).collect();
    let voiced: Vec<f32> = frames.iter().map(|frame| f32::from(u8::from(frame.pitch.voiced))).collect();
    let parts = [("audio", &audio), ("pitch", &pitch), ("loudness", &loudness), ("voiced", &voiced)];
    let views = parts.map(|(name, values)| {
        let view = TensorView::new(Dtype::F32, vec![values.len()], bytemuck::cast_slice(values));
        (name, view.expect("a flat tensor of its own length"))
    });
    // Two files of one content may be heard at once: each writes its own part, and the second rename replaces equal by equal.
    let part = kept.with_extension(format!("{:?}.part", std::thread::current().id()));
    let written = safetensors::serialize_to_file(views, None, &part).map_err(anyhow::Error::from);
    let written = written.and_then(|()| Ok(std::fs::rename(&part, kept)?));
    written.with_context(|| format!("{}: cannot be written", kept.display()))
}
