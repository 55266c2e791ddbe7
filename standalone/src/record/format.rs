//! File formats of recordings.

use std::fs::File;
use std::path::Path;

use ondes_engine::media::{GrowingWav, MediaError, WavBits};
use serde::{Deserialize, Serialize};

use crate::flac::GrowingFlac;

/// File format of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordingFormat {
    /// WAV, 32-bit float: exactly what was played. Up to 64 channels; RF64 beyond 4 GiB.
    #[default]
    Float32,
    /// WAV, 24-bit integers with triangular dither.
    Int24,
    /// WAV, 16-bit integers with triangular dither.
    Int16,
    /// FLAC, 24 bits, rounded. Up to 8 channels.
    Flac,
}

impl RecordingFormat {
    /// Returns the file name extension.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::Flac => "flac",
            Self::Float32 | Self::Int24 | Self::Int16 => "wav",
        }
    }
}

/// Sound file that is complete at every moment while it grows.
pub(super) enum SoundFile {
    Wav(GrowingWav),
    Flac(Box<GrowingFlac>),
}

impl SoundFile {
    /// Creates a new file; an existing one is an error.
    pub fn create(
        path: &Path,
        format: RecordingFormat,
        sample_rate: u32,
        channels: usize,
    ) -> Result<Self, MediaError> {
        let wav = |bits| GrowingWav::create(path, sample_rate, channels, bits).map(Self::Wav);
        match format {
            RecordingFormat::Float32 => wav(WavBits::Float32),
            RecordingFormat::Int24 => wav(WavBits::Int24),
            RecordingFormat::Int16 => wav(WavBits::Int16),
            RecordingFormat::Flac => GrowingFlac::create(path, sample_rate, channels)
                .map(|flac| Self::Flac(Box::new(flac))),
        }
    }

    /// Appends interleaved samples. On an error the file is complete up to what fitted.
    pub fn append(&mut self, interleaved: &[f32]) -> Result<(), MediaError> {
        match self {
            Self::Wav(wav) => wav.append(interleaved),
            Self::Flac(flac) => flac.append(interleaved),
        }
    }

    /// Writes what is still buffered; the last call.
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
