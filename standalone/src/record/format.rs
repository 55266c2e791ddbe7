//! What a recording is written as.

use std::fs::File;
use std::path::Path;

use ondes_engine::media::{GrowingWav, MediaError, WavBits};
use serde::{Deserialize, Serialize};

use super::flac::GrowingFlac;

/// What a recording is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// WAV of 32-bit floating point: exactly what was played. Up to 64 channels, and RF64 beyond 4 GiB.
    #[default]
    Float32,
    /// WAV of 24-bit integers, with triangular dither.
    Int24,
    /// WAV of 16-bit integers, with triangular dither.
    Int16,
    /// FLAC of 24 bits, rounded. Up to 8 channels.
    Flac,
}

impl Format {
    /// The extension of its files.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::Flac => "flac",
            Self::Float32 | Self::Int24 | Self::Int16 => "wav",
        }
    }
}

/// A file that is whole at every moment while it grows.
pub(super) enum SoundFile {
    Wav(GrowingWav),
    Flac(Box<GrowingFlac>),
}

impl SoundFile {
    /// Starts a file where there is none.
    pub fn create(path: &Path, format: Format, sample_rate: u32, channels: usize) -> Result<Self, MediaError> {
        let wav = |bits| GrowingWav::create(path, sample_rate, channels, bits).map(Self::Wav);
        match format {
            Format::Float32 => wav(WavBits::Float32),
            Format::Int24 => wav(WavBits::Int24),
            Format::Int16 => wav(WavBits::Int16),
            Format::Flac => GrowingFlac::create(path, sample_rate, channels).map(|flac| Self::Flac(Box::new(flac))),
        }
    }

    /// Takes interleaved samples. On an error the file is whole up to what found room.
    pub fn append(&mut self, interleaved: &[f32]) -> Result<(), MediaError> {
        match self {
            Self::Wav(wav) => wav.append(interleaved),
            Self::Flac(flac) => flac.append(interleaved),
        }
    }

    /// Writes what is held back. Nothing can follow.
    pub fn finish(&mut self) -> Result<(), MediaError> {
        match self {
            Self::Wav(_) => Ok(()),
            Self::Flac(flac) => flac.finish(),
        }
    }

    pub fn file(&self) -> &File {
        match self {
            Self::Wav(wav) => wav.file(),
            Self::Flac(flac) => flac.file(),
        }
    }
}
