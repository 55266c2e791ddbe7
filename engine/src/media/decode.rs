//! Audio from files of any format that Symphonia reads: WAV, AIFF, FLAC, MP3, Ogg Vorbis, AAC and ALAC in MP4, CAF and more.
//!
//! Symphonia 0.6 panics on a few malformed headers (a WAV of 32 channels without loudspeakers is enough where overflow is
//! checked). Every call to it is fenced, so that such a file is an error like any other.

use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use symphonia::core::codecs::audio::{AudioDecoder, AudioDecoderOptions};
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatOptions, FormatReader, TrackType};
use symphonia::core::io::{MediaSource, MediaSourceStream};
use symphonia::core::meta::MetadataOptions;

use super::{MediaError, check_limits, display_name};

/// Endings of names, in small letters, that files have whose format [`Decoder`] reads. It looks at contents, not at names; this
/// is for finding files in a folder.
pub const FILE_EXTENSIONS: [&str; 23] = [
    "aac", "aif", "aifc", "aiff", "caf", "flac", "m4a", "m4b", "m4r", "m4v", "mkv", "mov", "mp1", "mp2", "mp3", "mp4",
    "oga", "ogg", "ogv", "ogx", "wav", "wave", "webm",
];

/// Frames that [`read_mono`] makes room for before it has seen them: what a header says is not to be trusted further.
const TRUSTED_FRAMES: u64 = 1 << 24;

/// A gap in the time stamps this long, in seconds, is damage: no frame of any codec is shorter than that, so one is missing.
const GAP_S: f64 = 0.002;

/// Reads a file as blocks of `f32` samples, -1 to 1 for what was integer, in constant memory.
///
/// Delay and padding that an encoder noted are left out. A file that ends early gives what it has; one that is damaged in
/// the middle gives an error there. Samples that are not finite are read as 0 and counted.
pub struct Decoder {
    file: String,
    format: Box<dyn FormatReader>,
    track: AudioTrack,
    sample_rate: u32,
    channels: usize,
    /// The first block, decoded to see whether there is any.
    first: Option<Vec<Vec<f32>>>,
    decoded: u64,
    replaced: u64,
    /// Where the next packet should begin, in the units of the track.
    due: Option<i64>,
    truncated: bool,
    ended: bool,
}

/// What is read of a file.
struct AudioTrack {
    id: u32,
    codec: Box<dyn AudioDecoder>,
    /// Frames it says it has.
    announced: Option<u64>,
    /// A gap in the units of the time stamps, where those are as fine as frames.
    gap: Option<i64>,
}

impl Decoder {
    /// Opens a file and decodes its beginning. Where there are several audio tracks, the default one is read.
    ///
    /// # Errors
    ///
    /// If the file is missing, unreadable, not audio, or empty, or has other than 1 to 32 channels or a sample rate other
    /// than 1 kHz to 768 kHz.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, MediaError> {
        let path = path.as_ref();
        let name = display_name(path);
        let unreadable = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => MediaError::Missing { file: name.clone() },
            _ => MediaError::Unreadable { file: name.clone(), source },
        };
        let file = File::open(path).map_err(unreadable)?;
        // A folder opens like a file on some systems, and fails only when read.
        if file.metadata().map_err(unreadable)?.is_dir() {
            return Err(unreadable(io::ErrorKind::IsADirectory.into()));
        }
        let mut hint = Hint::new();
        if let Some(extension) = path.extension().and_then(|extension| extension.to_str()) {
            hint.with_extension(extension);
        }
        Self::begin(name, Box::new(file), &hint)
    }

    /// The same for a file that is in memory; `name` is what messages call it.
    ///
    /// # Errors
    ///
    /// Those of [`Decoder::open`].
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Self, MediaError> {
        Self::begin(name.to_owned(), Box::new(io::Cursor::new(bytes)), &Hint::new())
    }

    fn begin(name: String, source: Box<dyn MediaSource>, hint: &Hint) -> Result<Self, MediaError> {
        let stream = MediaSourceStream::new(source, Default::default());
        let probe = symphonia::default::get_probe();
        let format = fenced(|| probe.probe(hint, stream, FormatOptions::default(), MetadataOptions::default()))
            .map_err(|error| not_audio(&name, error))?;
        let track = default_track(&name, &*format)?;
        let mut decoder = Self {
            file: name,
            format,
            track,
            sample_rate: 0,
            channels: 0,
            first: None,
            decoded: 0,
            replaced: 0,
            due: None,
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

    /// Frames per second, in Hz.
    pub fn sample_rate(&self) -> u32 {
        self.sample_rate
    }

    /// Channels of every block.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// How many frames the file says it has, if it says so. It may be wrong.
    pub fn frames(&self) -> Option<u64> {
        self.track.announced
    }

    /// How many samples so far were not finite and read as 0.
    pub fn replaced(&self) -> u64 {
        self.replaced
    }

    /// Whether the file turned out, at its end, to have less than it says or to break off in the middle of a packet.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// Puts the next block into `block` as `[channel][frame]`, at least one frame long; false, and no frames, at the end.
    ///
    /// # Errors
    ///
    /// If the file is damaged here, or its sample rate or channels change.
    pub fn next(&mut self, block: &mut Vec<Vec<f32>>) -> Result<bool, MediaError> {
        if let Some(first) = self.first.take() {
            *block = first;
            return Ok(true);
        }
        block.resize(self.channels, Vec::new());
        block.iter_mut().for_each(Vec::clear);
        // What went wrong with the last packet: damage if another follows, the end of a file cut short if none does.
        let mut broken: Option<String> = None;
        while !self.ended {
            let format = &mut self.format;
            let packet = match fenced(|| format.next_packet()) {
                Ok(Some(packet)) => packet,
                Ok(None) => break,
                Err(Error::ResetRequired) => {
                    // Another stream follows in the same file, as in chained Ogg.
                    self.track = default_track(&self.file, &*self.format)?;
                    self.due = None;
                    continue;
                }
                Err(Error::IoError(error)) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(self.failed(error)),
            };
            if packet.track_id != self.track.id {
                continue;
            }
            let (start, length) = (packet.pts.get(), i64::try_from(packet.dur.get()).unwrap_or(i64::MAX));
            if let (Some(due), Some(gap)) = (self.due.replace(start.saturating_add(length)), self.track.gap)
                && start.saturating_sub(due) >= gap
            {
                broken.get_or_insert("a part is missing".to_owned());
            }
            let codec = &mut self.track.codec;
            match fenced(|| codec.decode(&packet).map(drop)) {
                Ok(()) => (),
                Err(error @ (Error::DecodeError(_) | Error::IoError(_))) => {
                    broken.get_or_insert(error.to_string());
                    continue;
                }
                Err(error) => return Err(self.failed(error)),
            }
            let decoded = self.track.codec.last_decoded();
            if decoded.is_empty() {
                continue;
            }
            // Before the first frame that decodes there may be anything: an MP3 cut out of a stream begins like that.
            if let (Some(reason), true) = (broken.take(), self.decoded > 0) {
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
                let reason = format!("it goes on with {channels} channels at {rate} Hz");
                return Err(MediaError::Damaged { file: self.file.clone(), frames: self.decoded, reason });
            }
            decoded.copy_to_vecs_planar(block);
            self.decoded += block[0].len() as u64;
            for sample in block.iter_mut().flatten().filter(|sample| !sample.is_finite()) {
                *sample = 0.0;
                self.replaced += 1;
            }
            return Ok(true);
        }
        self.ended = true;
        self.truncated = broken.is_some() || self.track.announced.is_some_and(|frames| frames > self.decoded);
        match broken {
            Some(reason) if self.decoded == 0 => Err(MediaError::NotAudio { file: self.file.clone(), reason }),
            _ => Ok(false),
        }
    }

    /// An error that ends the reading.
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

/// The whole of a file as one channel, the mean of all, and its sample rate in Hz. For use where a file fits in memory.
///
/// # Errors
///
/// Those of [`Decoder::open`] and [`Decoder::next`].
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

/// The default audio track, ready to be decoded.
fn default_track(name: &str, format: &dyn FormatReader) -> Result<AudioTrack, MediaError> {
    let refuse = |reason: &str| MediaError::NotAudio { file: name.to_owned(), reason: reason.to_owned() };
    let track = format.default_track(TrackType::Audio).ok_or_else(|| refuse("there is no audio track"))?;
    let parameters = track.codec_params.as_ref().and_then(|parameters| parameters.audio());
    let parameters = parameters.ok_or_else(|| refuse("the audio track does not say what it is"))?;
    // Checked before decoding, too: a decoder makes room for what the header claims.
    let rate = parameters.sample_rate.map_or(48_000, u64::from);
    let channels = parameters.channels.as_ref().map_or(1, |channels| channels.count() as u64);
    check_limits(name, rate, channels)?;
    let options = AudioDecoderOptions::default().gapless(true);
    let codec = fenced(|| symphonia::default::get_codecs().make_audio_decoder(parameters, &options))
        .map_err(|error| not_audio(name, error))?;
    let gap = track.time_base.filter(|base| u64::from(base.denom.get()) == rate * u64::from(base.numer.get()));
    let gap = gap.map(|_| (rate as f64 * GAP_S).ceil() as i64);
    Ok(AudioTrack { id: track.id, codec, announced: track.num_frames, gap })
}

/// Calls Symphonia, and makes a panic of it an error.
///
/// What it was called on is not used again after an error of this kind: [`Decoder`] is at its end then.
fn fenced<T>(call: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(Err(Error::Unsupported("contents that break the decoder")))
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
