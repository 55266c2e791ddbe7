//! WAV files, written so that a file of that name is either the whole sound or not there.
//!
//! The format is that of Microsoft's "Multimedia Programming Interface and Data Specifications 1.0" (1991), with
//! WAVE_FORMAT_EXTENSIBLE for more than two channels. Files of more than 18 channels are valid, but [`super::Decoder`] is
//! among the readers that do not take them.

mod part;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use super::{MediaError, check_limits, display_name};
use part::PartFile;

pub use part::remove_abandoned;

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
    bits: WavBits,
    header: Header,
    frames: u64,
    promised: Option<u64>,
    /// Frames there is room for.
    most: u64,
    dither: Dither,
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
            bits,
            header,
            frames: 0,
            promised,
            most,
            dither: Dither(0x0bde_5eed),
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
                self.encode(channel.as_ref()[frame], &mut bytes);
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

    fn encode(&mut self, sample: f32, bytes: &mut Vec<u8>) {
        let sample = if sample.is_nan() { 0.0 } else { sample };
        match self.bits {
            WavBits::Int16 => {
                let value = f64::from(sample) * 32_768.0 + self.dither.next();
                bytes.extend_from_slice(&(value.round().clamp(-32_768.0, 32_767.0) as i16).to_le_bytes());
            }
            WavBits::Int24 => {
                let value = f64::from(sample) * 8_388_608.0;
                let value = value.round().clamp(-8_388_608.0, 8_388_607.0) as i32;
                bytes.extend_from_slice(&value.to_le_bytes()[..3]);
            }
            WavBits::Float32 => bytes.extend_from_slice(&sample.to_le_bytes()),
        }
    }
}

/// What a call after a failure meets.
fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "an earlier write failed")
}

/// What stands before the samples.
#[derive(Debug, Clone, Copy)]
struct Header {
    sample_rate: u32,
    channels: u16,
    bits: WavBits,
}

/// The GUID of the sub-formats of WAVE_FORMAT_EXTENSIBLE, after the format tag it begins with.
const SUB_FORMAT: [u8; 14] = [0, 0, 0, 0, 16, 0, 128, 0, 0, 170, 0, 56, 155, 113];

impl Header {
    fn frame_bytes(self) -> u16 {
        self.channels * self.bits.bytes()
    }

    fn data_bytes(self, frames: u64) -> u64 {
        frames * u64::from(self.frame_bytes())
    }

    /// The lengths are 32-bit numbers, of which the largest stands for "unknown".
    fn most_frames(self) -> u64 {
        let overhead = self.with_frames(0).len() as u64 + 1;
        (u64::from(u32::MAX) - 1 - overhead) / u64::from(self.frame_bytes())
    }

    fn unknown_length(self) -> Vec<u8> {
        self.bytes(u32::MAX, u32::MAX, None)
    }

    /// For at most [`most_frames`](Self::most_frames).
    fn with_frames(self, frames: u64) -> Vec<u8> {
        let short = |value: u64| u32::try_from(value).expect("the length was checked");
        let data = self.data_bytes(frames);
        let empty = self.bytes(0, 0, Some(0)).len() as u64 - 8;
        self.bytes(short(empty + data + data % 2), short(data), Some(short(frames)))
    }

    fn bytes(self, riff: u32, data: u32, frames: Option<u32>) -> Vec<u8> {
        let bits = 8 * self.bits.bytes();
        let tag: u16 = if self.bits == WavBits::Float32 { 3 } else { 1 };
        let extensible = self.channels > 2;
        let mut format = Vec::new();
        format.extend_from_slice(&(if extensible { 0xfffe } else { tag }).to_le_bytes());
        format.extend_from_slice(&self.channels.to_le_bytes());
        format.extend_from_slice(&self.sample_rate.to_le_bytes());
        format.extend_from_slice(&(self.sample_rate * u32::from(self.frame_bytes())).to_le_bytes());
        format.extend_from_slice(&self.frame_bytes().to_le_bytes());
        format.extend_from_slice(&bits.to_le_bytes());
        if extensible {
            format.extend_from_slice(&22_u16.to_le_bytes());
            format.extend_from_slice(&bits.to_le_bytes());
            // The loudspeaker of each channel, in the order of the standard, which knows 18. None at all is allowed, but
            // not every reader takes that.
            let loudspeakers = if self.channels <= 18 { (1_u32 << self.channels) - 1 } else { 0 };
            format.extend_from_slice(&loudspeakers.to_le_bytes());
            format.extend_from_slice(&tag.to_le_bytes());
            format.extend_from_slice(&SUB_FORMAT);
        }
        let mut bytes = Vec::new();
        let mut chunk = |name: &[u8; 4], length: u32, contents: &[u8]| {
            bytes.extend_from_slice(name);
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(contents);
        };
        chunk(b"RIFF", riff, b"WAVE");
        chunk(b"fmt ", format.len() as u32, &format);
        // What is not PCM says how long it is in this way, too.
        if let (WavBits::Float32, Some(frames)) = (self.bits, frames) {
            chunk(b"fact", 4, &frames.to_le_bytes());
        }
        chunk(b"data", data, &[]);
        bytes
    }
}

/// Triangular noise of two quantisation steps, which makes the error of rounding independent of the sound up to its variance
/// (S. P. Lipshitz, R. A. Wannamaker, J. Vanderkooy, "Quantization and dither", JAES 40(5), 1992).
struct Dither(u64);

impl Dither {
    /// In steps, -1 to 1.
    fn next(&mut self) -> f64 {
        // SplitMix64, by S. Vigna.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        let unit = |bits: u64| bits as f64 / f64::from(u32::MAX);
        unit(z >> 32) - unit(z & u64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests;
