//! Part of a file behind other first bytes.

use std::io::{self, Read, Seek, SeekFrom};

use symphonia::core::io::MediaSource;

/// Source of some bytes, and then of a range of another source.
pub(super) struct Spliced<S> {
    header: Vec<u8>,
    source: S,
    /// First byte of the range.
    start: u64,
    /// Length of the range, bytes.
    bytes: u64,
    position: u64,
}

impl<S: MediaSource> Spliced<S> {
    /// Puts `header` before the bytes from `start`: at most `bytes`, or all.
    ///
    /// # Errors
    /// Returns the error of the source.
    pub fn new(header: Vec<u8>, mut source: S, start: u64, bytes: Option<u64>) -> io::Result<Self> {
        let available = source.byte_len().unwrap_or(0).saturating_sub(start);
        source.seek(SeekFrom::Start(start))?;
        Ok(Self {
            header,
            source,
            start,
            bytes: bytes.unwrap_or(available).min(available),
            position: 0,
        })
    }
}

impl<S: MediaSource> Read for Spliced<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match self.header.get(self.position as usize..) {
            Some(mut header) if !header.is_empty() => header.read(buffer)?,
            _ => {
                let left = (self.header.len() as u64 + self.bytes).saturating_sub(self.position);
                (&mut self.source).take(left).read(buffer)?
            }
        };
        self.position += count as u64;
        Ok(count)
    }
}

impl<S: MediaSource> Seek for Spliced<S> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let header = self.header.len() as u64;
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(distance) => self.position.checked_add_signed(distance),
            SeekFrom::End(distance) => (header + self.bytes).checked_add_signed(distance),
        };
        let position = position.ok_or(io::ErrorKind::InvalidInput)?;
        self.source.seek(SeekFrom::Start(
            self.start.saturating_add(position.saturating_sub(header)),
        ))?;
        self.position = position;
        Ok(position)
    }
}

impl<S: MediaSource> MediaSource for Spliced<S> {
    fn is_seekable(&self) -> bool {
        self.source.is_seekable()
    }

    fn byte_len(&self) -> Option<u64> {
        Some(self.header.len() as u64 + self.bytes)
    }
}
