//! Decoding of audio files: WAV, AIFF, AU and CAF by `pcm`, everything else (FLAC, MP3, Ogg Vorbis,
//! AAC and ALAC in MP4, Matroska and more) with Symphonia in `packets`, which removes what encoders
//! add before and after the sound.

mod flac;
mod matroska;
mod mp4;
mod opus;
mod packets;
mod pcm;
mod spliced;
mod trim;

use std::io;
use std::path::Path;

use symphonia::core::formats::probe::Hint;
use symphonia::core::io::MediaSource;

use self::packets::PacketDecoder;
use self::pcm::{Contents, PcmReader};
use self::spliced::Spliced;
use super::{MediaError, display_name};
use crate::dsp::level::{SAMPLE_LIMIT, limit_sample};
use crate::files;

/// Lower-case extensions of files that [`Decoder`] can read, for finding files in a folder. The
/// decoder itself ignores names and detects the format from the content.
pub const FILE_EXTENSIONS: [&str; 30] = [
    "aac", "aif", "aifc", "aiff", "au", "bwf", "caf", "flac", "m4a", "m4b", "m4r", "m4v", "mka",
    "mkv", "mov", "mp1", "mp2", "mp3", "mp4", "oga", "ogg", "ogv", "ogx", "opus", "rf64", "snd",
    "w64", "wav", "wave", "webm",
];

/// Most frames that [`read_mono`] allocates on the word of a header.
const TRUSTED_FRAMES: u64 = 1 << 24;

/// Decodes a file as blocks of `f32` samples in constant memory; integers become −1 to 1.
///
/// Encoder delay and padding are removed if the file declares them. A file that ends early is read
/// up to there; damage in the middle is an error. Samples are limited to [`SAMPLE_LIMIT`], those
/// that are not finite become 0, and both are counted.
///
/// # Examples
/// ```
/// use ondes_engine::media::{Decoder, WavBits, WavWriter};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("ramp.wav");
/// let mut writer = WavWriter::create(&path, 48_000, 1, WavBits::Float32)?;
/// writer.write(&[[0.0, 0.25, 0.5]])?;
/// writer.finish()?;
///
/// let mut decoder = Decoder::open(&path)?;
/// let mut block = Vec::new();
/// let mut samples = Vec::new();
/// while decoder.next(&mut block)? {
///     samples.extend_from_slice(&block[0]);
/// }
/// assert_eq!((decoder.sample_rate(), samples), (48_000, vec![0.0, 0.25, 0.5]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Decoder {
    file: String,
    reader: Reader,
    sample_rate: u32,
    channels: usize,
    /// First block, decoded by the constructor.
    first: Option<Vec<Vec<f32>>>,
    decoded: u64,
    replaced: u64,
    truncated: bool,
    ended: bool,
}

/// Reader of a kind of file.
enum Reader {
    Pcm(PcmReader),
    Packets(Box<PacketDecoder>),
}

impl Decoder {
    /// Opens a file and decodes its first block. Of several audio tracks, the default one is read.
    ///
    /// # Errors
    ///
    /// Returns [`MediaError`] if the file is missing, unreadable, not audio or empty, or has other
    /// than 1 to 32 channels or a sample rate other than 1 kHz to 768 kHz.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, MediaError> {
        let path = path.as_ref();
        let name = display_name(path);
        let unreadable = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => MediaError::Missing { file: name.clone() },
            _ => MediaError::Unreadable {
                file: name.clone(),
                source,
            },
        };
        let file = files::open(path).map_err(unreadable)?;
        let mut hint = Hint::new();
        if let Some(extension) = path.extension().and_then(|extension| extension.to_str()) {
            hint.with_extension(extension);
        }
        Self::begin(name, file, &hint)
    }

    /// Decodes a file in memory; `name` is its name in errors.
    ///
    /// # Errors
    ///
    /// See [`Decoder::open`].
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Self, MediaError> {
        Self::begin(name.to_owned(), io::Cursor::new(bytes), &Hint::new())
    }

    fn begin(
        name: String,
        source: impl MediaSource + 'static,
        hint: &Hint,
    ) -> Result<Self, MediaError> {
        let reader = Reader::new(&name, source, hint)?;
        let mut decoder = Self {
            file: name,
            reader,
            sample_rate: 0,
            channels: 0,
            first: None,
            decoded: 0,
            replaced: 0,
            truncated: false,
            ended: false,
        };
        let mut first = Vec::new();
        if !decoder.next(&mut first)? {
            return Err(MediaError::Empty { file: decoder.file });
        }
        decoder.first = Some(first);
        (decoder.sample_rate, decoder.channels) = decoder.reader.format();
        Ok(decoder)
    }

    /// Returns the sample rate in Hz.
    pub fn sample_rate(&self) -> u32 {
        self.sample_rate
    }

    /// Returns the number of channels.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Returns the number of frames that the file declares, if any. It may be wrong.
    pub fn frames(&self) -> Option<u64> {
        match &self.reader {
            Reader::Pcm(reader) => Some(reader.declared()),
            Reader::Packets(decoder) => decoder.declared(),
        }
    }

    /// Returns the number of samples replaced so far because they were not finite or above
    /// [`SAMPLE_LIMIT`].
    pub fn replaced(&self) -> u64 {
        self.replaced
    }

    /// Returns whether the file turned out to end early, once its end has been reached.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// Decodes the next block into `block` as `[channel][frame]`, at least one frame. At the end it
    /// returns false and no frames.
    ///
    /// # Errors
    ///
    /// Returns [`MediaError`] if the file is damaged here, or if its sample rate or channels
    /// change.
    pub fn next(&mut self, block: &mut Vec<Vec<f32>>) -> Result<bool, MediaError> {
        if let Some(first) = self.first.take() {
            *block = first;
            return Ok(true);
        }
        block.resize(self.channels, Vec::new());
        block.iter_mut().for_each(Vec::clear);
        if !self.ended {
            let result = self.decode(block);
            self.ended = !matches!(result, Ok(true));
            result?;
        }
        let frames = block.first().map_or(0, Vec::len) as u64;
        self.decoded += frames;
        if frames == 0 {
            let declared = self
                .frames()
                .unwrap_or(0)
                .saturating_sub(self.reader.slack());
            self.truncated |= declared > self.decoded;
        }
        for sample in block
            .iter_mut()
            .flatten()
            .filter(|sample| is_invalid(**sample))
        {
            *sample = limit_sample(*sample);
            self.replaced += 1;
        }
        Ok(frames > 0)
    }

    /// Decodes a block; returns false at the end.
    fn decode(&mut self, block: &mut Vec<Vec<f32>>) -> Result<bool, MediaError> {
        match &mut self.reader {
            Reader::Pcm(reader) => {
                block.resize(reader.channels(), Vec::new());
                let unreadable = |source| MediaError::Unreadable {
                    file: self.file.clone(),
                    source,
                };
                reader.next(block).map_err(unreadable)?;
                Ok(!block[0].is_empty())
            }
            Reader::Packets(decoder) => {
                let more = decoder.next(&self.file, block)?;
                self.truncated = decoder.truncated();
                Ok(more)
            }
        }
    }
}

impl Reader {
    /// Finds out what a file is.
    fn new(
        name: &str,
        mut source: impl MediaSource + 'static,
        hint: &Hint,
    ) -> Result<Self, MediaError> {
        let unreadable = |source| MediaError::Unreadable {
            file: name.to_owned(),
            source,
        };
        let base = skip_tags(&mut source).map_err(unreadable)?;
        let (header, start, bytes) =
            match pcm::contents(&mut source, base).map_err(|refusal| refusal.about(name))? {
                Some(Contents::Pcm(layout)) => {
                    return Ok(Self::Pcm(PcmReader::new(name, Box::new(source), layout)?));
                }
                Some(Contents::Compressed {
                    header,
                    start,
                    bytes,
                }) => (header, start, bytes),
                Some(Contents::Whole) => (Vec::new(), base, None),
                None => {
                    let header = flac::repaired_header(&mut source, base)
                        .map_err(unreadable)?
                        .unwrap_or_default();
                    let start = base + header.len() as u64;
                    (header, start, None)
                }
            };
        let source = Spliced::new(header, source, start, bytes).map_err(unreadable)?;
        Ok(Self::Packets(Box::new(PacketDecoder::new(
            name,
            Box::new(source),
            hint,
        )?)))
    }

    /// Returns the frames by which a complete file may be shorter than it declares.
    fn slack(&self) -> u64 {
        match self {
            Self::Pcm(_) => 0,
            Self::Packets(decoder) => decoder.slack(),
        }
    }

    /// Returns sample rate in Hz and channels, once a block was decoded.
    fn format(&self) -> (u32, usize) {
        match self {
            Self::Pcm(reader) => (reader.sample_rate(), reader.channels()),
            Self::Packets(decoder) => decoder.format(),
        }
    }
}

/// Returns the length of the ID3 tags at the start, which some programs write before any format.
fn skip_tags(source: &mut impl MediaSource) -> io::Result<u64> {
    let file_bytes = source.byte_len().unwrap_or(0);
    let mut position = 0;
    let mut header = [0; 10];
    while pcm::read_at(source, position, &mut header)? == header.len() && header.starts_with(b"ID3")
    {
        // Seven bits a byte.
        let size = header[6..]
            .iter()
            .fold(0, |size, byte| size << 7 | u64::from(byte & 0x7f));
        let footer = if header[5] & 0x10 == 0 { 0 } else { 10 };
        let end = position + 10 + size + footer;
        if end >= file_bytes {
            break;
        }
        position = end;
    }
    Ok(position)
}

/// Reads a whole file into memory as the mean of its channels; returns it with the sample rate in
/// Hz.
///
/// # Errors
///
/// See [`Decoder::open`] and [`Decoder::next`].
pub fn read_mono(path: impl AsRef<Path>) -> Result<(Vec<f32>, u32), MediaError> {
    let mut decoder = Decoder::open(path)?;
    let room = decoder.frames().unwrap_or(0).min(TRUSTED_FRAMES);
    let mut mono = Vec::with_capacity(usize::try_from(room).unwrap_or(0));
    let mut block = Vec::new();
    let scale = 1.0 / decoder.channels() as f32;
    while decoder.next(&mut block)? {
        let sum = |frame: usize| block.iter().map(|channel| channel[frame]).sum::<f32>();
        mono.extend((0..block[0].len()).map(|frame| scale * sum(frame)));
    }
    Ok((mono, decoder.sample_rate()))
}

/// Returns whether a sample is beyond the range of samples.
fn is_invalid(sample: f32) -> bool {
    sample.is_nan() || sample.abs() > SAMPLE_LIMIT
}

#[cfg(test)]
mod tests;
