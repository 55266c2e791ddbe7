//! WAV files, written atomically: a target exists only once it is complete.
//!
//! The format is that of Microsoft's "Multimedia Programming Interface and Data Specifications 1.0" (1991), with
//! WAVE_FORMAT_EXTENSIBLE for more than two channels. Files of more than 18 channels are valid, but many readers,
//! [`super::Decoder`] among them, refuse them.
//!
//! [`GrowingWav`] is for recordings that must survive a crash: the file is complete after every block.

mod growing;
mod header;
mod sample;

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use self::header::Header;
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
/// The file is written under a hidden name in the folder of the target, and renamed by [`finish`](Self::finish); it is
/// removed if the writer is dropped or fails before. NaN is written as 0.
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
    frames: u64,
    declared: Option<u64>,
    /// Most frames that the header can declare.
    max_frames: u64,
    bytes: Vec<u8>,
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
    /// Returns [`MediaError`] if the file cannot be created, or if channels (1 to 32) or sample rate (1 kHz to 768 kHz)
    /// are not supported.
    pub fn create(
        path: impl AsRef<Path>,
        sample_rate: u32,
        channels: usize,
        bits: WavBits,
    ) -> Result<Self, MediaError> {
        let path = path.as_ref();
        let name = display_name(path);
        check_limits(&name, u64::from(sample_rate), channels as u64)?;
        let unwritable = |source| MediaError::Unwritable { file: name.clone(), source };
        let special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
        let sink = if special {
            // Fails for a folder.
            Sink::Stream(Box::new(OpenOptions::new().write(true).open(path).map_err(unwritable)?))
        } else {
            Sink::File(BufWriter::new(AtomicFile::create(path).map_err(unwritable)?))
        };
        Self::start(name, sink, sample_rate, channels, bits, None)
    }

    /// Writes a WAV stream to an output that cannot seek, such as standard output; `name` is its name in errors.
    ///
    /// With `frames` the header declares the length, and exactly that many frames must follow. Otherwise it declares the
    /// largest length, which readers of streams take as "to the end", and the length is unlimited.
    ///
    /// # Errors
    ///
    /// Returns [`MediaError`] if channels (1 to 32), sample rate (1 kHz to 768 kHz) or length (4 GiB) are not
    /// supported, or if the header cannot be written.
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
        Self::start(name, Sink::Stream(Box::new(writer)), sample_rate, channels, bits, frames)
    }

    fn start(
        name: String,
        sink: Sink,
        sample_rate: u32,
        channels: usize,
        bits: WavBits,
        declared: Option<u64>,
    ) -> Result<Self, MediaError> {
        let header = Header { sample_rate, channels: channels as u16, bits };
        let to_the_end = matches!(sink, Sink::Stream(_)) && declared.is_none();
        let max_frames = if to_the_end { u64::MAX } else { header.max_frames() };
        let mut writer = Self {
            name,
            sink: Some(sink),
            channels,
            // The rounding error of 24 bits is below the noise of any converter.
            encoder: SampleEncoder::new(bits, bits == WavBits::Int16),
            header,
            frames: 0,
            declared,
            max_frames,
            bytes: Vec::new(),
        };
        writer.check_length(declared.unwrap_or(0))?;
        let header = if to_the_end { header.unknown_length() } else { header.with_frames(declared.unwrap_or(0)) };
        writer.write_bytes(&header)?;
        Ok(writer)
    }

    /// Returns the number of frames written so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Writes a block, `[channel][frame]`.
    ///
    /// # Errors
    ///
    /// Returns [`MediaError`] if the block cannot be written, or if the file would exceed 4 GiB or its declared length.
    /// The file is then removed, and all further calls fail.
    ///
    /// # Panics
    ///
    /// If the number of channels differs from that of the file, or their lengths differ.
    pub fn write<C: AsRef<[f32]>>(&mut self, block: &[C]) -> Result<(), MediaError> {
        assert_eq!(block.len(), self.channels, "the block must have as many channels as the file");
        let frames = block[0].as_ref().len();
        assert!(block.iter().all(|channel| channel.as_ref().len() == frames), "channels must have equal lengths");
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
    /// Returns [`MediaError`] if the file cannot be written, or if fewer frames were written than declared. The file is
    /// then removed.
    pub fn finish(mut self) -> Result<(), MediaError> {
        if let Some(declared) = self.declared.filter(|&declared| declared != self.frames) {
            return Err(MediaError::Length { file: self.name.clone(), declared, written: self.frames });
        }
        // Chunks are padded to an even length that the header does not count. Nothing follows a stream of unlimited
        // length.
        let odd = self.max_frames != u64::MAX && self.header.data_bytes(self.frames) % 2 == 1;
        let pad: &[u8] = if odd { &[0] } else { &[] };
        self.write_bytes(pad)?;
        let result = match self.sink.take() {
            None => Err(closed()),
            Some(Sink::Stream(mut stream)) => stream.flush(),
            Some(Sink::File(file)) => complete(file, &self.header.with_frames(self.frames)),
        };
        result.map_err(|source| MediaError::Unwritable { file: self.name.clone(), source })
    }

    /// Fails and closes the output if `frames` exceed the limit or the declared length.
    fn check_length(&mut self, frames: u64) -> Result<(), MediaError> {
        if let Some(declared) = self.declared.filter(|&declared| frames > declared) {
            self.sink = None;
            return Err(MediaError::Length { file: self.name.clone(), declared, written: frames });
        }
        if frames > self.max_frames {
            self.sink = None;
            let quantity = "the length of a WAV file in frames";
            let supported = format!("0 to {} (4 GiB)", self.max_frames);
            return Err(MediaError::Limit { file: self.name.clone(), quantity, found: frames, supported });
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
            MediaError::Unwritable { file: self.name.clone(), source }
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
