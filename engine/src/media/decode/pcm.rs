//! Uncompressed sound: WAV of every kind, AIFF, AIFC, AU and CAF.
//!
//! Symphonia reads the usual ones of these, but refuses or misreads what others read: extra bytes
//! in the format chunk, samples with unused bits, big-endian files, aligned sound chunks, lengths
//! that were never written.

mod aiff;
mod alignment;
mod au;
mod caf;
mod encoding;
mod wave;

use std::io::{self, Read, Seek, SeekFrom};

use symphonia::core::io::MediaSource;

pub(super) use self::encoding::{Encoding, Number};
use crate::media::{MediaError, check_limits};

/// Frames of a block.
const BLOCK_FRAMES: usize = 4_096;
/// Most chunks of a file that are looked at.
const MAX_CHUNKS: usize = 10_000;

/// Content of a container.
pub(super) enum Contents {
    /// Samples.
    Pcm(Layout),
    /// Compressed sound for another reader: `header`, then a range of the file.
    Compressed {
        /// Bytes before the range.
        header: Vec<u8>,
        /// First byte of the range.
        start: u64,
        /// Length of the range; `None` for all that follows.
        bytes: Option<u64>,
    },
    /// The file as it is, for another reader.
    Whole,
}

/// Position and encoding of samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// Encoding of a sample.
    pub encoding: Encoding,
    /// Number of channels, as declared.
    pub channels: u32,
    /// Sample rate in Hz, as declared.
    pub sample_rate: u64,
    /// First byte of the sound.
    pub start: u64,
    /// Length of the sound as the file declares it, bytes; `None` for all that follows.
    pub bytes: Option<u64>,
}

/// Error of a container: of the system, or the reason why its content is not read.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The file cannot be read.
    Io(io::Error),
    /// The content is not read.
    Reason(String),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<&str> for Refusal {
    fn from(reason: &str) -> Self {
        Self::Reason(reason.to_owned())
    }
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Self::Reason(reason)
    }
}

impl Refusal {
    /// Returns the error about the file `name`.
    pub fn about(self, name: &str) -> MediaError {
        let file = name.to_owned();
        match self {
            Self::Io(source) => MediaError::Unreadable { file, source },
            Self::Reason(reason) => MediaError::NotAudio { file, reason },
        }
    }
}

/// Finds the sound of a container that begins at `base`; `None` if it is none of those that this
/// module reads.
///
/// # Errors
/// The file cannot be read, or is such a container with content that is not supported.
pub(super) fn contents<S: MediaSource>(
    source: &mut S,
    base: u64,
) -> Result<Option<Contents>, Refusal> {
    let mut start = [0; 40];
    let length = read_at(source, base, &mut start)?;
    let start = &start[..length];
    let kind = |from: usize| start.get(from..from + 4).unwrap_or_default();
    match (kind(0), kind(8)) {
        (b"RIFF" | b"RIFX" | b"RF64" | b"BW64", b"WAVE") => {
            wave::contents(source, base, start).map(Some)
        }
        (b"FORM", b"AIFF" | b"AIFC") => {
            aiff::layout(source, base, start).map(|layout| Some(Contents::Pcm(layout)))
        }
        (b".snd" | b"dns.", _) => au::layout(start, base).map(|layout| Some(Contents::Pcm(layout))),
        (b"caff", _) => caf::contents(source, base).map(Some),
        _ if wave::is_wave64(start) => wave::contents(source, base, start).map(Some),
        _ => Ok(None),
    }
}

/// Reads samples as a stream.
pub(super) struct PcmReader {
    source: Box<dyn MediaSource>,
    layout: Layout,
    channels: usize,
    sample_rate: u32,
    /// Bytes of whole frames not read yet.
    left: u64,
    buffer: Vec<u8>,
}

impl PcmReader {
    /// Creates a reader; `name` is the file's name in errors.
    ///
    /// # Errors
    /// Channels or sample rate are not supported, or the file cannot be read.
    pub fn new(
        name: &str,
        mut source: Box<dyn MediaSource>,
        layout: Layout,
    ) -> Result<Self, MediaError> {
        check_limits(name, layout.sample_rate, u64::from(layout.channels))?;
        let (channels, sample_rate) = (layout.channels as usize, layout.sample_rate as u32);
        let available = source.byte_len().unwrap_or(0).saturating_sub(layout.start);
        let frame_bytes = (channels * layout.encoding.bytes) as u64;
        let left = layout.bytes.unwrap_or(available).min(available) / frame_bytes * frame_bytes;
        let start = source.seek(SeekFrom::Start(layout.start));
        start.map_err(|source| MediaError::Unreadable {
            file: name.to_owned(),
            source,
        })?;
        Ok(Self {
            source,
            layout,
            channels,
            sample_rate,
            left,
            buffer: Vec::new(),
        })
    }

    pub fn sample_rate(&self) -> u32 {
        self.sample_rate
    }

    pub fn channels(&self) -> usize {
        self.channels
    }

    fn frame_bytes(&self) -> usize {
        self.channels * self.layout.encoding.bytes
    }

    /// Returns the number of frames that the file declares; of those without a length, that which
    /// it has.
    pub fn declared(&self) -> u64 {
        self.layout.bytes.unwrap_or(self.left) / self.frame_bytes() as u64
    }

    /// Appends the next frames to `block`; none at the end.
    ///
    /// # Errors
    /// Returns the error of the source.
    pub fn next(&mut self, block: &mut [Vec<f32>]) -> io::Result<()> {
        let frame_bytes = self.frame_bytes();
        let bytes = self.left.min((BLOCK_FRAMES * frame_bytes) as u64);
        self.buffer.clear();
        // A file may become shorter while it is read.
        (&mut self.source)
            .take(bytes)
            .read_to_end(&mut self.buffer)?;
        self.left -= bytes;
        let whole = self.buffer.len() / frame_bytes * frame_bytes;
        self.layout.encoding.decode(&self.buffer[..whole], block);
        Ok(())
    }
}

/// Reads bytes from a position until `buffer` is full or the file ends; returns their number.
pub(super) fn read_at(
    source: &mut (impl Read + Seek),
    position: u64,
    buffer: &mut [u8],
) -> io::Result<usize> {
    let bytes = read_up_to(source, position, buffer.len())?;
    buffer[..bytes.len()].copy_from_slice(&bytes);
    Ok(bytes.len())
}

/// Reads `length` bytes from a position; `None` if the file ends before.
pub(super) fn read_exactly(
    source: &mut (impl Read + Seek),
    position: u64,
    length: usize,
) -> io::Result<Option<Vec<u8>>> {
    Ok(Some(read_up_to(source, position, length)?).filter(|bytes| bytes.len() == length))
}

/// Reads at most `length` bytes from a position, and takes memory only for what is there.
fn read_up_to(
    source: &mut (impl Read + Seek),
    position: u64,
    length: usize,
) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // Systems refuse to seek further.
    if i64::try_from(position).is_ok() {
        source.seek(SeekFrom::Start(position))?;
        source.take(length as u64).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Decodes an unsigned number of at most 8 bytes.
pub(super) fn number(bytes: &[u8], big_endian: bool) -> u64 {
    let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    if big_endian {
        bytes.iter().fold(0, join)
    } else {
        bytes.iter().rev().fold(0, join)
    }
}
