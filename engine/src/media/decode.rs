//! Decoding of audio files with Symphonia: WAV, AIFF, FLAC, MP3, Ogg Vorbis, AAC and ALAC in MP4, CAF and more. Opus
//! and further kinds of WAV are added here.
//!
//! Symphonia 0.6 panics on a few malformed headers, such as a WAV of 32 channels without loudspeakers in a build with
//! overflow checks. Every call to it catches panics and turns them into errors.

mod opus;
mod wave_source;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use symphonia::core::codecs::audio::{AudioDecoder, AudioDecoderOptions};
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatOptions, FormatReader, TrackType};
use symphonia::core::io::{MediaSource, MediaSourceStream};
use symphonia::core::meta::MetadataOptions;

use self::opus::OpusHead;
use super::{MediaError, check_limits, check_range, display_name};
use crate::dsp::level::{SAMPLE_LIMIT, limit_sample};
use crate::files;

/// Lower-case extensions of files that [`Decoder`] can read, for finding files in a folder. The decoder itself ignores
/// names and detects the format from the content.
pub const FILE_EXTENSIONS: [&str; 26] = [
    "aac", "aif", "aifc", "aiff", "caf", "flac", "m4a", "m4b", "m4r", "m4v", "mkv", "mov", "mp1", "mp2", "mp3", "mp4",
    "oga", "ogg", "ogv", "ogx", "opus", "rf64", "w64", "wav", "wave", "webm",
];

/// Most frames that [`read_mono`] allocates on the word of a header.
const TRUSTED_FRAMES: u64 = 1 << 24;

/// Most frames of a packet, for which decoders reserve memory; FLAC allows 65,535.
const MAX_PACKET_FRAMES: u64 = 1 << 16;

/// A gap of at least this length between time stamps is damage, seconds. No codec has shorter frames, so at least one
/// is missing.
const GAP_S: f64 = 0.002;

/// Decodes a file as blocks of `f32` samples in constant memory; integers become −1 to 1.
///
/// Encoder delay and padding are removed if the file declares them. A file that ends early is read up to there; damage
/// in the middle is an error. Samples are limited to [`SAMPLE_LIMIT`], those that are not finite become 0, and both are
/// counted.
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
    format: Box<dyn FormatReader>,
    track: AudioTrack,
    sample_rate: u32,
    channels: usize,
    /// First block, decoded by the constructor.
    first: Option<Vec<Vec<f32>>>,
    decoded: u64,
    replaced: u64,
    /// Expected time stamp of the next packet, in units of the track.
    expected_start: Option<i64>,
    truncated: bool,
    ended: bool,
}

/// Audio track of a file.
struct AudioTrack {
    id: u32,
    codec: Box<dyn AudioDecoder>,
    /// Number of frames according to the file.
    declared: Option<u64>,
    /// Length of [`GAP_S`] in units of the time stamps, if those are as fine as frames.
    gap: Option<i64>,
}

impl Decoder {
    /// Opens a file and decodes its first block. Of several audio tracks, the default one is read.
    ///
    /// # Errors
    ///
    /// Returns [`MediaError`] if the file is missing, unreadable, not audio or empty, or has other than 1 to 32
    /// channels or a sample rate other than 1 kHz to 768 kHz.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, MediaError> {
        let path = path.as_ref();
        let name = display_name(path);
        let unreadable = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => MediaError::Missing { file: name.clone() },
            _ => MediaError::Unreadable { file: name.clone(), source },
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

    fn begin(name: String, source: impl MediaSource + 'static, hint: &Hint) -> Result<Self, MediaError> {
        let unreadable = |source| MediaError::Unreadable { file: name.clone(), source };
        let (source, frames) = wave_source::present(source).map_err(unreadable)?;
        let stream = MediaSourceStream::new(source, Default::default());
        let probe = symphonia::default::get_probe();
        let format = catch_panics(|| probe.probe(hint, stream, FormatOptions::default(), MetadataOptions::default()))
            .map_err(|error| not_audio(&name, error))?;
        let mut track = default_track(&name, &*format)?;
        track.declared = frames.or(track.declared);
        let mut decoder = Self {
            file: name,
            format,
            track,
            sample_rate: 0,
            channels: 0,
            first: None,
            decoded: 0,
            replaced: 0,
            expected_start: None,
            truncated: false,
            ended: false,
        };
        let mut first = Vec::new();
        if !decoder.next(&mut first)? {
            return Err(MediaError::Empty { file: decoder.file });
        }
        decoder.first = Some(first);
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
        self.track.declared
    }

    /// Returns the number of samples replaced so far because they were not finite or above [`SAMPLE_LIMIT`].
    pub fn replaced(&self) -> u64 {
        self.replaced
    }

    /// Returns whether the file turned out to end early, once its end has been reached.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// Decodes the next block into `block` as `[channel][frame]`, at least one frame. At the end it returns false and
    /// no frames.
    ///
    /// # Errors
    ///
    /// Returns [`MediaError`] if the file is damaged here, or if its sample rate or channels change.
    pub fn next(&mut self, block: &mut Vec<Vec<f32>>) -> Result<bool, MediaError> {
        if let Some(first) = self.first.take() {
            *block = first;
            return Ok(true);
        }
        block.resize(self.channels, Vec::new());
        block.iter_mut().for_each(Vec::clear);
        // Failure of the last packet: damage if another packet follows, an early end otherwise.
        let mut failure: Option<String> = None;
        while !self.ended {
            let format = &mut self.format;
            let packet = match catch_panics(|| format.next_packet()) {
                Ok(Some(packet)) => packet,
                Ok(None) => break,
                Err(Error::ResetRequired) => {
                    // Another stream follows in the same file, as in chained Ogg.
                    self.track = default_track(&self.file, &*self.format)?;
                    self.expected_start = None;
                    continue;
                }
                Err(Error::IoError(error)) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(self.failed(error)),
            };
            if packet.track_id != self.track.id {
                continue;
            }
            let (start, length) = (packet.pts.get(), i64::try_from(packet.dur.get()).unwrap_or(i64::MAX));
            if let (Some(expected_start), Some(gap)) =
                (self.expected_start.replace(start.saturating_add(length)), self.track.gap)
                && start.saturating_sub(expected_start) >= gap
            {
                failure.get_or_insert("packets are missing".to_owned());
            }
            let codec = &mut self.track.codec;
            match catch_panics(|| codec.decode(&packet).map(drop)) {
                Ok(()) => (),
                Err(error @ (Error::DecodeError(_) | Error::IoError(_))) => {
                    failure.get_or_insert(error.to_string());
                    continue;
                }
                Err(error) => return Err(self.failed(error)),
            }
            let decoded = self.track.codec.last_decoded();
            if decoded.is_empty() {
                continue;
            }
            // Anything may precede the first frame that decodes, for instance in an MP3 cut out of a stream.
            if let (Some(reason), true) = (failure.take(), self.decoded > 0) {
                self.ended = true;
                return Err(MediaError::Damaged { file: self.file.clone(), frames: self.decoded, reason });
            }
            let spec = decoded.spec();
            let (rate, channels) = (spec.rate(), spec.channels().count());
            if self.decoded == 0 {
                check_limits(&self.file, u64::from(rate), channels as u64)?;
                (self.sample_rate, self.channels) = (rate, channels);
            } else if (rate, channels) != (self.sample_rate, self.channels) {
                self.ended = true;
                let reason = format!("it continues with {channels} channels at {rate} Hz");
                return Err(MediaError::Damaged { file: self.file.clone(), frames: self.decoded, reason });
            }
            decoded.copy_to_vecs_planar(block);
            self.decoded += block[0].len() as u64;
            for sample in block.iter_mut().flatten().filter(|sample| is_invalid(**sample)) {
                *sample = limit_sample(*sample);
                self.replaced += 1;
            }
            return Ok(true);
        }
        self.ended = true;
        self.truncated = failure.is_some() || self.track.declared.is_some_and(|frames| frames > self.decoded);
        match failure {
            Some(reason) if self.decoded == 0 => Err(MediaError::NotAudio { file: self.file.clone(), reason }),
            _ => Ok(false),
        }
    }

    /// Ends decoding and returns the error.
    fn failed(&mut self, error: Error) -> MediaError {
        self.ended = true;
        let file = self.file.clone();
        match error {
            Error::IoError(source) => MediaError::Unreadable { file, source },
            error if self.decoded == 0 => MediaError::NotAudio { file, reason: error.to_string() },
            error => MediaError::Damaged { file, frames: self.decoded, reason: error.to_string() },
        }
    }
}

/// Reads a whole file into memory as the mean of its channels; returns it with the sample rate in Hz.
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

/// Returns the default audio track with its decoder.
fn default_track(name: &str, format: &dyn FormatReader) -> Result<AudioTrack, MediaError> {
    let refuse = |reason: &str| MediaError::NotAudio { file: name.to_owned(), reason: reason.to_owned() };
    let track = format.default_track(TrackType::Audio).ok_or_else(|| refuse("there is no audio track"))?;
    let parameters = track.codec_params.as_ref().and_then(|parameters| parameters.audio());
    let parameters = parameters.ok_or_else(|| refuse("the audio track has no codec parameters"))?;
    // Checked before decoding, because decoders allocate what the header claims.
    let rate = parameters.sample_rate.map_or(48_000, u64::from);
    let channels = parameters.channels.as_ref().map_or(1, |channels| channels.count() as u64);
    check_limits(name, rate, channels)?;
    let packet = parameters.max_frames_per_packet.unwrap_or(0);
    check_range(name, "the number of frames in a packet", packet, 0..=MAX_PACKET_FRAMES)?;
    let options = AudioDecoderOptions::default().gapless(true);
    let codec = catch_panics(|| opus::codecs().make_audio_decoder(parameters, &options))
        .map_err(|error| not_audio(name, error))?;
    let gap = track.time_base.filter(|base| u64::from(base.denom.get()) == rate * u64::from(base.numer.get()));
    let gap = gap.map(|_| (rate as f64 * GAP_S).ceil() as i64);
    // Symphonia counts the frames that Opus decoders discard.
    let head = parameters.extra_data.as_deref().and_then(OpusHead::parse);
    let discarded = head.map_or(0, |head| head.pre_skip as u64);
    let declared = track.num_frames.map(|frames| frames.saturating_sub(discarded));
    Ok(AudioTrack { id: track.id, codec, declared, gap })
}

/// Returns whether a sample is beyond the range of samples.
fn is_invalid(sample: f32) -> bool {
    sample.is_nan() || sample.abs() > SAMPLE_LIMIT
}

/// Calls Symphonia and converts a panic into an error. [`Decoder`] ends after such an error, so broken state is not
/// used again.
fn catch_panics<T>(call: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(Err(Error::Unsupported("content that crashes the decoder")))
}

fn not_audio(name: &str, error: Error) -> MediaError {
    let file = name.to_owned();
    match error {
        Error::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            MediaError::NotAudio { file, reason: "the file ends before any audio".to_owned() }
        }
        Error::IoError(source) => MediaError::Unreadable { file, source },
        error => MediaError::NotAudio { file, reason: error.to_string() },
    }
}

#[cfg(test)]
mod tests;
