//! WAV files that are complete after every block.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use super::header::{Header, LARGEST_RIFF};
use super::sample::SampleEncoder;
use super::{MediaError, WavBits};
use crate::media::{RATES_HZ, check_range, display_name};

/// Supported numbers of channels.
const CHANNELS: std::ops::RangeInclusive<u64> = 1..=64;

/// Writes a WAV file in place and updates its header with every block, so that the file is complete
/// even if the process is killed.
///
/// Beyond 4 GiB the file becomes RF64 (EBU Tech 3306); the header reserves space for that. Integers
/// of 16 and 24 bits are dithered. Nothing is buffered between blocks, so blocks should be at least
/// a tenth of a second long.
///
/// # Examples
/// ```
/// use ondes_engine::media::{GrowingWav, WavBits};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("take.wav");
/// let mut take = GrowingWav::create(&path, 48_000, 2, WavBits::Int24)?;
/// take.append(&[0.0, 0.1, 0.2, 0.3])?;
/// assert_eq!(take.frames(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct GrowingWav {
    name: String,
    file: File,
    header: Header,
    encoder: SampleEncoder,
    frames: u64,
    /// Longest RIFF chunk of a plain WAV, bytes; longer files become RF64.
    largest_riff: u64,
    bytes: Vec<u8>,
}

impl GrowingWav {
    /// Creates a new file.
    ///
    /// # Errors
    ///
    /// Returns [`MediaError`] if the file exists or cannot be created, or if channels (1 to 64) or
    /// sample rate (1 kHz to 768 kHz) are not supported.
    pub fn create(
        path: impl AsRef<Path>,
        sample_rate: u32,
        channels: usize,
        bits: WavBits,
    ) -> Result<Self, MediaError> {
        Self::with_largest_riff(path.as_ref(), sample_rate, channels, bits, LARGEST_RIFF)
    }

    pub(super) fn with_largest_riff(
        path: &Path,
        sample_rate: u32,
        channels: usize,
        bits: WavBits,
        largest_riff: u64,
    ) -> Result<Self, MediaError> {
        let name = display_name(path);
        check_range(
            &name,
            "the sample rate in Hz",
            u64::from(sample_rate),
            RATES_HZ,
        )?;
        check_range(&name, "the number of channels", channels as u64, CHANNELS)?;
        let header = Header {
            sample_rate,
            channels: channels as u16,
            bits,
        };
        let encoder = SampleEncoder::new(bits, true);
        let open = || {
            let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
            // A file without a header is useless.
            file.write_all(&header.growing(0, largest_riff))
                .inspect_err(|_| drop(std::fs::remove_file(path)))?;
            Ok(file)
        };
        let file = open().map_err(|source| MediaError::Unwritable {
            file: name.clone(),
            source,
        })?;
        Ok(Self {
            name,
            file,
            header,
            encoder,
            frames: 0,
            largest_riff,
            bytes: Vec::new(),
        })
    }

    /// Returns the number of frames in the file.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Returns the file, so that it can be flushed to disk.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Writes a block of interleaved samples and updates the header.
    ///
    /// # Errors
    ///
    /// Returns [`MediaError`] if the block cannot be written. The file then ends with the last
    /// frame that was written completely.
    ///
    /// # Panics
    ///
    /// If the number of samples is not a multiple of the channels.
    pub fn append(&mut self, interleaved: &[f32]) -> Result<(), MediaError> {
        let channels = usize::from(self.header.channels);
        assert_eq!(
            interleaved.len() % channels,
            0,
            "the block must consist of complete frames"
        );
        self.bytes.clear();
        for &sample in interleaved {
            self.encoder.encode(sample, &mut self.bytes);
        }
        let total = self.frames + (interleaved.len() / channels) as u64;
        if self.header.data_bytes(total) % 2 == 1 {
            // Chunks are padded to an even length; the next block overwrites the padding.
            self.bytes.push(0);
        }
        let end = self.data_start() + self.header.data_bytes(self.frames);
        let result =
            write_at(&mut self.file, end, &self.bytes).and_then(|()| self.write_header(total));
        result.map_err(|source| {
            // The first error counts. If this fails too, the previous header remains valid.
            drop(self.truncate_to_whole_frames(total));
            MediaError::Unwritable {
                file: self.name.clone(),
                source,
            }
        })
    }

    /// Updates the header to declare `frames` frames.
    fn write_header(&mut self, frames: u64) -> io::Result<()> {
        write_at(
            &mut self.file,
            0,
            &self.header.growing(frames, self.largest_riff),
        )?;
        self.frames = frames;
        Ok(())
    }

    /// Truncates the file to complete frames, at most `max_frames`, after a failed write.
    fn truncate_to_whole_frames(&mut self, max_frames: u64) -> io::Result<()> {
        let data = self
            .file
            .metadata()?
            .len()
            .saturating_sub(self.data_start());
        let mut frames = (data / self.header.data_bytes(1)).min(max_frames);
        // The disk may have no space left for the padding.
        frames -= self.header.data_bytes(frames) % 2;
        self.file
            .set_len(self.data_start() + self.header.data_bytes(frames))?;
        self.write_header(frames)
    }

    fn data_start(&self) -> u64 {
        self.header.growing(0, self.largest_riff).len() as u64
    }
}

fn write_at(file: &mut File, position: u64, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(position))?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests;
