//! File formats of the output.

use std::path::Path;

use anyhow::{bail, ensure};
use clap::ValueEnum;
use ondes_engine::media::WavBits;

/// File format of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SoundFormat {
    /// WAV, 16 or 24 bits, or 32-bit float
    #[default]
    Wav,
    /// FLAC, 16 or 24 bits
    Flac,
}

impl SoundFormat {
    /// Returns the file name extension.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Wav => "wav",
            Self::Flac => "flac",
        }
    }

    /// Returns the format of a file by its extension: FLAC, or WAV for all others.
    pub fn from_path(path: &Path) -> Self {
        let is_flac = path
            .extension()
            .is_some_and(|end| end.eq_ignore_ascii_case(Self::Flac.extension()));
        if is_flac { Self::Flac } else { Self::Wav }
    }

    /// Checks the extension of an output file: it must be that of a format which is written, and of
    /// the format `wanted` if there is one. Devices, pipes and names without an extension are WAV.
    ///
    /// # Errors
    /// Returns an error that names the file and the formats.
    pub fn check(out: &Path, wanted: Option<Self>) -> anyhow::Result<()> {
        let name = out.display();
        let is_special = out
            .metadata()
            .is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
        let format = match out
            .extension()
            .and_then(|end| end.to_str())
            .map(str::to_lowercase)
            .as_deref()
        {
            _ if is_special => Self::Wav,
            None | Some("wav" | "wave") => Self::Wav,
            Some("flac") => Self::Flac,
            Some(other) => bail!(
                "{name}: .{other} files are not written; give --out a name ending in .wav or .flac"
            ),
        };
        if let Some(wanted) = wanted {
            let (found, wanted_name) = (format.extension(), wanted.extension());
            ensure!(
                format == wanted,
                "{name}: the name means .{found}, but --format is {wanted_name}"
            );
        }
        Ok(())
    }
}

/// Sample format of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BitDepth {
    /// 16-bit integers, dithered
    #[value(name = "16")]
    Int16,
    /// 24-bit integers
    #[value(name = "24")]
    Int24,
    /// 32-bit floating point
    #[value(name = "32")]
    Float32,
}

impl BitDepth {
    /// Returns the usual sample format of a file.
    pub fn usual(format: SoundFormat) -> Self {
        match format {
            SoundFormat::Wav => Self::Float32,
            SoundFormat::Flac => Self::Int24,
        }
    }

    /// Returns the number of bits.
    pub fn count(self) -> u8 {
        match self {
            Self::Int16 => 16,
            Self::Int24 => 24,
            Self::Float32 => 32,
        }
    }

    /// Returns whether samples beyond −1 … 1 are clipped.
    pub fn clips(self) -> bool {
        self != Self::Float32
    }

    /// Converts to the format of the WAV writer.
    pub fn wav(self) -> WavBits {
        match self {
            Self::Int16 => WavBits::Int16,
            Self::Int24 => WavBits::Int24,
            Self::Float32 => WavBits::Float32,
        }
    }
}
