//! A WAV file that is whole at every moment, however long it grows.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use super::header::{Header, LARGEST_RIFF};
use super::sample::SampleEncoder;
use super::{MediaError, WavBits};
use crate::media::{RATES_HZ, check_range, display_name};

/// Channels it may have.
const CHANNELS: std::ops::RangeInclusive<u64> = 1..=64;

/// Writes a WAV file under its own name and rewrites the header with every block, so that what is there is a whole file even
/// where the process is killed.
///
/// Beyond 4 GiB the file becomes an RF64 (EBU Tech 3306); the room for that is left from the beginning. Integers of 16 and of
/// 24 bits are dithered. Nothing is buffered from block to block: blocks of a tenth of a second and more are cheap.
pub struct GrowingWav {
    name: String,
    file: File,
    header: Header,
    encoder: SampleEncoder,
    frames: u64,
    /// The longest RIFF chunk that stays a plain WAV, in bytes.
    largest_riff: u64,
    bytes: Vec<u8>,
}

impl GrowingWav {
    /// Starts a file where there is none.
    ///
    /// # Errors
    ///
    /// If there is a file already or none can be made, or channels (1 to 64) or rate (1 kHz to 768 kHz) are not supported.
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
        check_range(&name, "the sample rate in Hz", u64::from(sample_rate), RATES_HZ)?;
        check_range(&name, "the number of channels", channels as u64, CHANNELS)?;
        let header = Header { sample_rate, channels: channels as u16, bits };
        let encoder = SampleEncoder::new(bits, true);
        let open = || {
            let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
            // A file without its header is of no use to anybody.
            file.write_all(&header.growing(0, largest_riff)).inspect_err(|_| drop(std::fs::remove_file(path)))?;
            Ok(file)
        };
        let file = open().map_err(|source| MediaError::Unwritable { file: name.clone(), source })?;
        Ok(Self { name, file, header, encoder, frames: 0, largest_riff, bytes: Vec::new() })
    }

    /// Frames in the file.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// The file, to be synchronised with the disk.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Writes a block of interleaved samples, and the header that counts them.
    ///
    /// # Errors
    ///
    /// If the system does not take it. The file is then whole up to the last frames that found room.
    ///
    /// # Panics
    ///
    /// If the samples are not whole frames.
    pub fn append(&mut self, interleaved: &[f32]) -> Result<(), MediaError> {
        let channels = usize::from(self.header.channels);
        assert_eq!(interleaved.len() % channels, 0, "whole frames");
        self.bytes.clear();
        for &sample in interleaved {
            self.encoder.encode(sample, &mut self.bytes);
        }
        let total = self.frames + (interleaved.len() / channels) as u64;
        if self.header.data_bytes(total) % 2 == 1 {
            // Chunks are padded to an even length; the next block overwrites the pad byte.
            self.bytes.push(0);
        }
        let end = self.data_start() + self.header.data_bytes(self.frames);
        let result = write_at(&mut self.file, end, &self.bytes).and_then(|()| self.state(total));
        result.map_err(|source| {
            // What counts is the error that came first; without a new header the last one still holds.
            drop(self.settle(total));
            MediaError::Unwritable { file: self.name.clone(), source }
        })
    }

    /// Makes the file state that it has so many frames.
    fn state(&mut self, frames: u64) -> io::Result<()> {
        write_at(&mut self.file, 0, &self.header.growing(frames, self.largest_riff))?;
        self.frames = frames;
        Ok(())
    }

    /// Keeps the whole frames, at most `most`, of a write that broke off.
    fn settle(&mut self, most: u64) -> io::Result<()> {
        let data = self.file.metadata()?.len().saturating_sub(self.data_start());
        let mut frames = (data / self.header.data_bytes(1)).min(most);
        // There may be no room for the pad byte.
        frames -= self.header.data_bytes(frames) % 2;
        self.file.set_len(self.data_start() + self.header.data_bytes(frames))?;
        self.state(frames)
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
