//! WAV files, written so that a file of that name is either the whole sound or not there.
//!
//! The format is that of Microsoft's "Multimedia Programming Interface and Data Specifications 1.0" (1991), with
//! WAVE_FORMAT_EXTENSIBLE for more than two channels. Files of more than 18 channels are valid, but [`super::Decoder`] is
//! among the readers that do not take them.
//!
//! [`GrowingWav`] is the other way round: a recording that must outlive whatever happens to the process is a whole file from
//! its first moment on.

mod growing;
mod header;
mod part;
mod sample;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use self::header::Header;
use self::sample::SampleEncoder;
use super::{MediaError, check_limits, display_name};
use part::PartFile;

pub use part::remove_abandoned;

pub use growing::GrowingWav;

/// How a sample is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WavBits {
    /// 16-bit integers with triangular dither of two quantisation steps, the same at every run. -1 to 1, clamped.
    Int16,
    /// 24-bit integers, rounded. -1 to 1, clamped.
    Int24,
    /// 32-bit floating point, exactly as given, beyond -1 to 1 too.
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
/// A file grows under a hidden name beside the one asked for and takes that name in [`finish`](Self::finish); given up or
/// failed before, it is removed. Samples that are not a number are written as 0.
pub struct WavWriter {
    name: String,
    /// Nothing after a failure or the end.
    sink: Option<Sink>,
    channels: usize,
    encoder: SampleEncoder,
    header: Header,
    frames: u64,
    promised: Option<u64>,
    /// Frames there is room for.
    most: u64,
    bytes: Vec<u8>,
}

enum Sink {
    File(PartFile),
    Stream(Box<dyn Write + Send>),
}

impl WavWriter {
    /// Starts a file at `path`, replacing the one that is there when finished.
    ///
    /// Where `path` is no ordinary file but a device or a pipe, it is written as by [`to_writer`](Self::to_writer).
    ///
    /// # Errors
    ///
    /// If no file can be made there, or channels (1 to 32) or rate (1 kHz to 768 kHz) are not supported.
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
            // A folder is refused here.
            Sink::Stream(Box::new(OpenOptions::new().write(true).open(path).map_err(unwritable)?))
        } else {
            Sink::File(PartFile::create(path).map_err(unwritable)?)
        };
        Self::start(name, sink, sample_rate, channels, bits, None)
    }

    /// Starts a WAV stream to where one cannot go back, such as standard output; `name` is for messages.
    ///
    /// With `frames` the header states the length, and exactly so many frames must follow. Without, it states the largest
    /// there is, which readers of streams take as "to the end", and the length is not limited.
    ///
    /// # Errors
    ///
    /// If channels (1 to 32), rate (1 kHz to 768 kHz) or length (4 GiB) are not supported, or the header cannot be written.
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
        promised: Option<u64>,
    ) -> Result<Self, MediaError> {
        let header = Header { sample_rate, channels: channels as u16, bits };
        let to_the_end = matches!(sink, Sink::Stream(_)) && promised.is_none();
        let most = if to_the_end { u64::MAX } else { header.most_frames() };
        let mut writer = Self {
            name,
            sink: Some(sink),
            channels,
            // The error of 24 bits is below the noise of any converter.
            encoder: SampleEncoder::new(bits, bits == WavBits::Int16),
            header,
            frames: 0,
            promised,
            most,
            bytes: Vec::new(),
        };
        writer.check_length(promised.unwrap_or(0))?;
        let header = if to_the_end { header.unknown_length() } else { header.with_frames(promised.unwrap_or(0)) };
        writer.put(&header)?;
        Ok(writer)
    }

    /// Frames written so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Writes a block, `[channel][frame]`.
    ///
    /// # Errors
    ///
    /// If the system does not take it, or the file would grow beyond 4 GiB or the length promised. The file is then removed,
    /// and all further calls fail.
    ///
    /// # Panics
    ///
    /// If the channels are not as many as at the start, or not of one length.
    pub fn write<C: AsRef<[f32]>>(&mut self, block: &[C]) -> Result<(), MediaError> {
        assert_eq!(block.len(), self.channels, "as many channels as the file has");
        let frames = block[0].as_ref().len();
        assert!(block.iter().all(|channel| channel.as_ref().len() == frames), "channels of one length");
        let total = self.frames + frames as u64;
        self.check_length(total)?;
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        for frame in 0..frames {
            for channel in block {
                self.encoder.encode(channel.as_ref()[frame], &mut bytes);
            }
        }
        let result = self.put(&bytes);
        self.bytes = bytes;
        self.frames = total;
        result
    }

    /// Completes the header and gives the file its name.
    ///
    /// # Errors
    ///
    /// If the system does not take it, or fewer frames were written than promised. The file is then removed.
    pub fn finish(mut self) -> Result<(), MediaError> {
        if let Some(promised) = self.promised.filter(|&promised| promised != self.frames) {
            return Err(MediaError::Length { file: self.name.clone(), promised, written: self.frames });
        }
        // Chunks are padded to an even length; the pad byte is not counted. A stream to the end has nothing after it.
        let odd = self.most != u64::MAX && self.header.data_bytes(self.frames) % 2 == 1;
        let pad: &[u8] = if odd { &[0] } else { &[] };
        self.put(pad)?;
        let result = match self.sink.take() {
            None => Err(gone()),
            Some(Sink::Stream(mut stream)) => stream.flush(),
            Some(Sink::File(file)) => file.complete(&self.header.with_frames(self.frames)),
        };
        result.map_err(|source| MediaError::Unwritable { file: self.name.clone(), source })
    }

    /// Fails, and gives the file up, if it is to have more frames than it can.
    fn check_length(&mut self, frames: u64) -> Result<(), MediaError> {
        if let Some(promised) = self.promised.filter(|&promised| frames > promised) {
            self.sink = None;
            return Err(MediaError::Length { file: self.name.clone(), promised, written: frames });
        }
        if frames > self.most {
            self.sink = None;
            let what = "the length of a WAV file in frames";
            let supported = format!("0 to {} (4 GiB)", self.most);
            return Err(MediaError::Limit { file: self.name.clone(), what, found: frames, supported });
        }
        Ok(())
    }

    /// Writes bytes, and gives the file up if that fails.
    fn put(&mut self, bytes: &[u8]) -> Result<(), MediaError> {
        let result = match &mut self.sink {
            None => Err(gone()),
            Some(Sink::File(file)) => file.write_all(bytes),
            Some(Sink::Stream(stream)) => stream.write_all(bytes),
        };
        result.map_err(|source| {
            self.sink = None;
            MediaError::Unwritable { file: self.name.clone(), source }
        })
    }
}

/// What a call after a failure meets.
fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "an earlier write failed")
}

#[cfg(test)]
mod tests;
