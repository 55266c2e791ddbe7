//! WAV files, written atomically: a target exists only once it is complete.
//!
//! The format is that of Microsoft's "Multimedia Programming Interface and Data Specifications 1.0"
//! (1991), with WAVE_FORMAT_EXTENSIBLE for more than two channels. Files of more than 18 channels
//! are valid, but some readers refuse them.
//!
//! [`GrowingWav`] is for recordings that must survive a crash: the file is complete after every
//! block.

mod growing;
mod header;
mod sample;

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use self::header::{Header, LARGEST_RIFF};
use self::sample::SampleEncoder;
use super::{MediaError, check_limits, display_name};
use crate::files::AtomicFile;

pub use growing::GrowingWav;

/// Sample format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WavBits {
    /// 16-bit integers with triangular dither, clamped to −1 to 1.
    Int16,
    /// 24-bit integers, rounded, clamped to −1 to 1.
    Int24,
    /// 32-bit floats, unchanged, including values beyond −1 to 1.
    Float32,
}

impl WavBits {
    fn bytes(self) -> u16 {
        match self {
            Self::Int16 => 2,
            Self::Int24 => 3,
            Self::Float32 => 4,
        }
    }
}

/// Writes a WAV file block by block.
///
/// The file is written under a hidden name in the folder of the target, and renamed by
/// [`finish`](Self::finish); it is removed if the writer is dropped or fails before. NaN is written
/// as 0.
///
/// # Examples
/// ```
/// use ondes_engine::media::{WavBits, WavWriter};
///
/// let mut writer = WavWriter::to_writer(std::io::sink(), "stream", 48_000, 2, WavBits::Int16, Some(3))?;
/// writer.write(&[[0.0, 0.25, 0.5], [0.5, 0.25, 0.0]])?;
/// writer.finish()?;
/// # Ok::<(), ondes_engine::media::MediaError>(())
/// ```
pub struct WavWriter {
    name: String,
    /// `None` after a failure and at the end.
    sink: Option<Sink>,
    channels: usize,
    encoder: SampleEncoder,
    header: Header,
    lengths: Lengths,
    frames: u64,
    declared: Option<u64>,
    bytes: Vec<u8>,
}

/// Lengths in the header.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lengths {
    /// 32 bits.
    Short,
    /// 32 bits, and 64 bits (RF64) if the file exceeds 4 GiB.
    Long,
    /// None: the sound reaches to the end of the stream.
    Unknown,
}

enum Sink {
    File(BufWriter<AtomicFile>),
    Stream(Box<dyn Write + Send>),
}

impl WavWriter {
    /// Creates a file that replaces `path` when it is finished.
    ///
    /// If `path` is a device or a pipe, it is written as by [`to_writer`](Self::to_writer).
    ///
    /// # Errors
    ///
    /// Returns [`MediaError`] if the file cannot be created, or if channels (1 to 32) or sample
    /// rate (1 kHz to 768 kHz) are not supported.
    pub fn create(
        path: impl AsRef<Path>,
        sample_rate: u32,
        channels: usize,
        bits: WavBits,
    ) -> Result<Self, MediaError> {
        Self::create_file(path.as_ref(), sample_rate, channels, bits, Lengths::Short)
    }

    /// Creates a file as [`create`](Self::create) does, which may exceed 4 GiB: it is RF64 (EBU
    /// Tech 3306) then. Otherwise it is a plain WAV whose header has unused room.
    ///
    /// # Errors
    ///
    /// See [`create`](Self::create).
    pub fn create_long(
        path: impl AsRef<Path>,
        sample_rate: u32,
        channels: usize,
        bits: WavBits,
    ) -> Result<Self, MediaError> {
        Self::create_file(path.as_ref(), sample_rate, channels, bits, Lengths::Long)
    }

    fn create_file(
        path: &Path,
        sample_rate: u32,
        channels: usize,
        bits: WavBits,
        lengths: Lengths,
    ) -> Result<Self, MediaError> {
        let name = display_name(path);
        check_limits(&name, u64::from(sample_rate), channels as u64)?;
        let unwritable = |source| MediaError::Unwritable {
            file: name.clone(),
            source,
        };
        let header = Header {
            sample_rate,
            channels: channels as u16,
            bits,
        };
        let special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
        if special {
            // Fails for a folder.
            let stream = OpenOptions::new()
                .write(true)
                .open(path)
                .map_err(unwritable)?;
            return Self::start(
                name,
                Sink::Stream(Box::new(stream)),
                header,
                Lengths::Unknown,
                None,
            );
        }
        let file = AtomicFile::create(path).map_err(unwritable)?;
        Self::start(
            name,
            Sink::File(BufWriter::new(file)),
            header,
            lengths,
            None,
        )
    }

    /// Returns whether a file of `frames` frames exceeds what [`create`](Self::create) can write.
    #[must_use]
    pub fn is_long(frames: u64, channels: usize, bits: WavBits) -> bool {
        let header = Header {
            sample_rate: 48_000,
            channels: channels as u16,
            bits,
        };
        frames > header.max_frames()
    }

    /// Writes a WAV stream to an output that cannot seek, such as standard output; `name` is its
    /// name in errors.
    ///
    /// With `frames` the header declares the length, and exactly that many frames must follow.
    /// Otherwise it declares the largest length, which readers of streams take as "to the end", and
    /// the length is unlimited.
    ///
    /// # Errors
    ///
    /// Returns [`MediaError`] if channels (1 to 32), sample rate (1 kHz to 768 kHz) or length (4
    /// GiB) are not supported, or if the header cannot be written.
    pub fn to_writer(
        writer: impl Write + Send + 'static,
        name: &str,
        sample_rate: u32,
        channels: usize,
        bits: WavBits,
        frames: Option<u64>,
    ) -> Result<Self, MediaError> {
        let name = display_name(Path::new(name));
        check_limits(&name, u64::from(sample_rate), channels as u64)?;
        let header = Header {
            sample_rate,
            channels: channels as u16,
            bits,
        };
        let lengths = if frames.is_some() {
            Lengths::Short
        } else {
            Lengths::Unknown
        };
        Self::start(
            name,
            Sink::Stream(Box::new(writer)),
            header,
            lengths,
            frames,
        )
    }

    fn start(
        name: String,
        sink: Sink,
        header: Header,
        lengths: Lengths,
        declared: Option<u64>,
    ) -> Result<Self, MediaError> {
        let mut writer = Self {
            name,
            sink: Some(sink),
            channels: usize::from(header.channels),
            // The rounding error of 24 bits is below the noise of any converter.
            encoder: SampleEncoder::new(header.bits, header.bits == WavBits::Int16),
            header,
            lengths,
            frames: 0,
            declared,
            bytes: Vec::new(),
        };
        let frames = declared.unwrap_or(0);
        writer.check_length(frames)?;
        let header = writer.header_bytes(frames);
        writer.write_bytes(&header)?;
        Ok(writer)
    }

    /// Encodes the header of a file of `frames` frames.
    fn header_bytes(&self, frames: u64) -> Vec<u8> {
        match self.lengths {
            Lengths::Short => self.header.with_frames(frames),
            Lengths::Long => self.header.growing(frames, LARGEST_RIFF),
            Lengths::Unknown => self.header.unknown_length(),
        }
    }

    /// Returns the number of frames written so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Writes a block, `[channel][frame]`.
    ///
    /// # Errors
    ///
    /// Returns [`MediaError`] if the block cannot be written, or if the file would exceed 4 GiB or
    /// its declared length. The file is then removed, and all further calls fail.
    ///
    /// # Panics
    ///
    /// If the number of channels differs from that of the file, or their lengths differ.
    pub fn write<C: AsRef<[f32]>>(&mut self, block: &[C]) -> Result<(), MediaError> {
        assert_eq!(
            block.len(),
            self.channels,
            "the block must have as many channels as the file"
        );
        let frames = block[0].as_ref().len();
        assert!(
            block.iter().all(|channel| channel.as_ref().len() == frames),
            "channels must have equal lengths"
        );
        let total = self.frames + frames as u64;
        self.check_length(total)?;
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        for frame in 0..frames {
            for channel in block {
                self.encoder.encode(channel.as_ref()[frame], &mut bytes);
            }
        }
        let result = self.write_bytes(&bytes);
        self.bytes = bytes;
        self.frames = total;
        result
    }

    /// Completes the header and renames the file to its target.
    ///
    /// # Errors
    ///
    /// Returns [`MediaError`] if the file cannot be written, or if fewer frames were written than
    /// declared. The file is then removed.
    pub fn finish(mut self) -> Result<(), MediaError> {
        if let Some(declared) = self.declared.filter(|&declared| declared != self.frames) {
            return Err(MediaError::Length {
                file: self.name.clone(),
                declared,
                written: self.frames,
            });
        }
        // Chunks are padded to an even length that the header does not count. Nothing follows a
        // stream of unlimited length.
        let odd = self.lengths != Lengths::Unknown && self.header.data_bytes(self.frames) % 2 == 1;
        let pad: &[u8] = if odd { &[0] } else { &[] };
        self.write_bytes(pad)?;
        let header = self.header_bytes(self.frames);
        let result = match self.sink.take() {
            None => Err(closed()),
            Some(Sink::Stream(mut stream)) => stream.flush(),
            Some(Sink::File(file)) => complete(file, &header),
        };
        result.map_err(|source| MediaError::Unwritable {
            file: self.name.clone(),
            source,
        })
    }

    /// Fails and closes the output if `frames` exceed the limit or the declared length.
    fn check_length(&mut self, frames: u64) -> Result<(), MediaError> {
        if let Some(declared) = self.declared.filter(|&declared| frames > declared) {
            self.sink = None;
            return Err(MediaError::Length {
                file: self.name.clone(),
                declared,
                written: frames,
            });
        }
        let max_frames = self.header.max_frames();
        if self.lengths == Lengths::Short && frames > max_frames {
            self.sink = None;
            let quantity = "the length of a WAV file in frames";
            let supported = format!("0 to {max_frames} (4 GiB)");
            return Err(MediaError::Limit {
                file: self.name.clone(),
                quantity,
                found: frames,
                supported,
            });
        }
        Ok(())
    }

    /// Writes bytes; closes the output on failure.
    fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), MediaError> {
        let result = match &mut self.sink {
            None => Err(closed()),
            Some(Sink::File(file)) => file.write_all(bytes),
            Some(Sink::Stream(stream)) => stream.write_all(bytes),
        };
        result.map_err(|source| {
            self.sink = None;
            MediaError::Unwritable {
                file: self.name.clone(),
                source,
            }
        })
    }
}

/// Replaces the header and gives the file its name.
fn complete(mut file: BufWriter<AtomicFile>, header: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    file.write_all(header)?;
    file.into_inner()?.finish()
}

/// Error of a call after a failure.
fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "an earlier write failed")
}

#[cfg(test)]
mod tests;
