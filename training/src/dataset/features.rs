//! Sound, pitch and loudness of a file, analysed once and memory-mapped afterwards.

use std::path::Path;

use anyhow::{Context, bail};
use memmap2::Mmap;
use ondes_engine::dsp::analysis::analyse;
use ondes_engine::dsp::resample::resample;
use ondes_engine::files::{self, AtomicFile};
use ondes_engine::media::read_mono;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

/// Version of the analysis; changes whenever its result for the same file changes.
const VERSION: u32 = 2;

/// Sample rate and frame rate of the analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureRate {
    /// Sample rate, Hz.
    pub sample_rate: u32,
    /// Samples per frame.
    pub hop: usize,
}

/// Analysed file. Frame `i` describes sample `i · hop`.
pub struct Features {
    map: Mmap,
    frames: usize,
    /// Rates of the analysis.
    pub rate: FeatureRate,
    /// BLAKE3 hash of the file's content and the analysis.
    pub hash: String,
    /// Offsets of the values in the map, bytes: audio, pitch, loudness, voicing.
    offsets: [usize; 4],
}

impl Features {
    /// Opens the cached analysis of a file with this content, or analyses it and stores the result in the folder
    /// `cache`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or the result cannot be written.
    pub fn open(path: &Path, cache: &Path, rate: FeatureRate) -> anyhow::Result<Self> {
        let mut hasher = blake3::Hasher::new();
        let hashed = files::open(path).and_then(|file| hasher.update_reader(file).map(drop));
        hashed.with_context(|| format!("{}: cannot be read", path.display()))?;
        hasher.update(format!("{VERSION} {} {}", rate.sample_rate, rate.hop).as_bytes());
        let hash = hasher.finalize().to_hex().to_string();
        let cached = cache.join(format!("{hash}.safetensors"));
        if !cached.exists() {
            analyse_file(path, &cached, rate)?;
        }
        Self::map(&cached, rate, hash)
            .with_context(|| format!("{}: delete this file to repeat the analysis", cached.display()))
    }

    fn map(path: &Path, rate: FeatureRate, hash: String) -> anyhow::Result<Self> {
        let file = files::open(path)?;
        // SAFETY: every bit pattern is a valid float. Nobody else names the file: it is in the work folder of the run,
        // `analyse_file` gives it its name only when it is complete, and no part of the trainer changes it afterwards. If
        // a user truncates it during the run, the system ends the trainer, which loses nothing but the steps since the
        // last checkpoint; corpora of many hours would not fit into memory.
        #[expect(unsafe_code)]
        let map = unsafe { Mmap::map(&file)? };
        let tensors = SafeTensors::deserialize(&map)?;
        let start = map.as_ptr() as usize;
        let mut offsets = [0; 4];
        let mut lengths = [0; 4];
        for (index, name) in ["audio", "pitch", "loudness", "voiced"].into_iter().enumerate() {
            let view = tensors.tensor(name)?;
            offsets[index] = view.data().as_ptr() as usize - start;
            if view.dtype() != Dtype::F32 || !offsets[index].is_multiple_of(align_of::<f32>()) {
                bail!("{name} is not a list of aligned 32-bit floats");
            }
            lengths[index] = view.data().len() / size_of::<f32>();
        }
        let frames = lengths[1];
        if lengths != [frames * rate.hop, frames, frames, frames] {
            bail!("the lengths of its values do not match");
        }
        Ok(Self { map, frames, rate, hash, offsets })
    }

    fn values(&self, index: usize, count: usize) -> &[f32] {
        let bytes = &self.map[self.offsets[index]..][..count * size_of::<f32>()];
        bytemuck::cast_slice(bytes)
    }

    /// Returns the number of frames.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Returns the length, seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        (self.frames * self.rate.hop) as f64 / f64::from(self.rate.sample_rate)
    }

    /// Returns the sound, `frames · hop` samples.
    #[must_use]
    pub fn audio(&self) -> &[f32] {
        self.values(0, self.frames * self.rate.hop)
    }

    /// Returns the pitch, semitones (69 = 440 Hz); unvoiced frames hold the last value.
    #[must_use]
    pub fn pitch(&self) -> &[f32] {
        self.values(1, self.frames)
    }

    /// Returns the A-weighted level, dB.
    #[must_use]
    pub fn loudness(&self) -> &[f32] {
        self.values(2, self.frames)
    }

    /// Returns 1 for frames with a pitch, else 0.
    #[must_use]
    pub fn voiced(&self) -> &[f32] {
        self.values(3, self.frames)
    }
}

/// Decodes, resamples and analyses a file and writes the result.
fn analyse_file(path: &Path, cached: &Path, rate: FeatureRate) -> anyhow::Result<()> {
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
    // Two files of equal content may be analysed at once: each writes its own temporary file, and the second one
    // replaces the first, which stays mapped.
    let write = || -> anyhow::Result<()> {
        let file = AtomicFile::create(cached)?;
        safetensors::serialize_to_file(views, None, file.temporary_path())?;
        Ok(file.finish()?)
    };
    write().with_context(|| format!("{}: cannot be written", cached.display()))
}
