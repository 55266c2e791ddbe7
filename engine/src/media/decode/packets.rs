//! Compressed sound, read with Symphonia and cut down to what the file declares.
//!
//! Symphonia 0.6 panics on a few malformed headers. Every call to it catches panics and turns them
//! into errors.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use symphonia::core::codecs::audio::well_known::{
    CODEC_ID_OPUS, CODEC_ID_PCM_F32BE, CODEC_ID_PCM_F32LE, CODEC_ID_PCM_F64BE, CODEC_ID_PCM_F64LE,
    CODEC_ID_PCM_S24BE, CODEC_ID_PCM_S24LE, CODEC_ID_PCM_S32BE, CODEC_ID_PCM_S32LE,
};
use symphonia::core::codecs::audio::{AudioCodecId, AudioDecoder, AudioDecoderOptions};
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::well_known::FORMAT_ID_CAF;
use symphonia::core::formats::{FormatOptions, FormatReader, TrackType};
use symphonia::core::io::{MediaSource, MediaSourceStream};
use symphonia::core::meta::MetadataOptions;

use super::matroska::{self, TrackDelay};
use super::mp4::{self, TrackEdits};
use super::opus::{self, OpusHead};
use super::trim::Trim;
use crate::media::{MediaError, check_limits, check_range};

/// Most frames of a packet, for which decoders reserve memory; FLAC allows 65,535.
const MAX_PACKET_FRAMES: u64 = 1 << 16;

/// A gap of at least this length between time stamps is damage, seconds. No codec has shorter
/// frames, so at least one is missing.
const GAP_S: f64 = 0.002;

/// Decodes the default audio track of a file packet by packet.
pub(super) struct PacketDecoder {
    format: Box<dyn FormatReader>,
    track: AudioTrack,
    /// Sample rate in Hz and number of channels, once a packet was decoded.
    spec: Option<(u32, usize)>,
    trim: Trim,
    /// Number of frames according to the file, after trimming.
    declared: Option<u64>,
    /// Frames by which a complete file may be shorter than that.
    slack: u64,
    /// Frames decoded so far, before trimming.
    decoded: u64,
    /// Expected time stamp of the next packet, in units of the track.
    expected_start: Option<i64>,
    truncated: bool,
}

/// Audio track of a file.
struct AudioTrack {
    id: u32,
    codec: Box<dyn AudioDecoder>,
    sample_rate: u64,
    /// Number of frames according to the file.
    declared: Option<u64>,
    /// Most frames of a packet, if known.
    packet: u64,
    /// Frames before and after the sound according to Symphonia, which only some of its decoders
    /// remove.
    padding: [u32; 2],
    /// Frames at the start that an Opus decoder discards by itself.
    discarded: u64,
    /// Length of [`GAP_S`] in units of the time stamps, if those are as fine as frames.
    gap: Option<i64>,
}

impl AudioTrack {
    /// Returns the number of frames that the decoder makes of the track: those of the file but for
    /// what Opus discards.
    fn decodable(&self) -> Option<u64> {
        self.declared
            .map(|frames| frames.saturating_sub(self.discarded))
    }
}

/// Start and end of the tracks according to the container.
struct Timing {
    edits: Vec<TrackEdits>,
    delays: Vec<TrackDelay>,
}

impl Timing {
    /// Returns how a track's sound is trimmed.
    fn trim(&self, track: &AudioTrack, is_caf: bool) -> Trim {
        let (rate, discarded) = (track.sample_rate, track.discarded);
        let from_start = |frames: u64| {
            if frames == u64::MAX {
                frames
            } else {
                frames.saturating_sub(discarded)
            }
        };
        if let Some(edits) = self.edits.iter().find(|edits| edits.id == track.id)
            && let Some(parts) = edits.frames(rate)
        {
            return Trim::to_parts(
                parts
                    .into_iter()
                    .map(|part| from_start(part.start)..from_start(part.end)),
            );
        }
        if let Some(delay) = self
            .delays
            .iter()
            .find(|delay| delay.number == u64::from(track.id))
        {
            let [start, end] =
                [delay.start_ns, delay.end_ns].map(|time| TrackDelay::frames(time, rate));
            return Trim::ends(from_start(start), end);
        }
        match track.padding {
            [start, end] if is_caf => Trim::ends(from_start(u64::from(start)), u64::from(end)),
            _ => Trim::default(),
        }
    }
}

impl PacketDecoder {
    /// Opens a file; `name` is its name in errors.
    ///
    /// # Errors
    /// The content is not supported or cannot be read.
    pub fn new(
        name: &str,
        mut source: Box<dyn MediaSource>,
        hint: &Hint,
    ) -> Result<Self, MediaError> {
        let unreadable = |source| MediaError::Unreadable {
            file: name.to_owned(),
            source,
        };
        let edits = mp4::edits(&mut source).map_err(|refusal| refusal.about(name))?;
        let timing = Timing {
            edits,
            delays: matroska::delays(&mut source).map_err(unreadable)?,
        };
        source.rewind().map_err(unreadable)?;
        let stream = MediaSourceStream::new(source, Default::default());
        let probe = symphonia::default::get_probe();
        let format = catch_panics(|| {
            probe.probe(
                hint,
                stream,
                FormatOptions::default(),
                MetadataOptions::default(),
            )
        })
        .map_err(|error| not_audio(name, error))?;
        let track = default_track(name, &*format, &timing.edits)?;
        let is_caf = format.format_info().format == FORMAT_ID_CAF;
        let trim = timing.trim(&track, is_caf);
        // The length of CAF files is without what is removed.
        let declared = if is_caf {
            track.declared
        } else {
            trim.remaining(track.decodable())
        };
        // ffmpeg counts the last packet of ALAC as a full one.
        let slack = if is_caf { track.packet } else { 0 };
        Ok(Self {
            format,
            track,
            spec: None,
            trim,
            declared,
            slack,
            decoded: 0,
            expected_start: None,
            truncated: false,
        })
    }

    /// Returns sample rate in Hz and channels, once a packet was decoded.
    pub fn format(&self) -> (u32, usize) {
        self.spec.unwrap_or_default()
    }

    /// Returns the number of frames that the file declares, if any.
    pub fn declared(&self) -> Option<u64> {
        self.declared
    }

    /// Returns the frames by which a complete file may be shorter than it declares.
    pub fn slack(&self) -> u64 {
        self.slack
    }

    /// Returns whether the file turned out to end early.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// Decodes the next sound into `block`; returns false at the end. `name` is the file's name in
    /// errors.
    ///
    /// # Errors
    /// The file is damaged here, or its sample rate or channels change.
    pub fn next(&mut self, name: &str, block: &mut Vec<Vec<f32>>) -> Result<bool, MediaError> {
        while !self.trim.is_over() && self.next_packet(name, block)? {
            self.trim.apply(block);
            if !block[0].is_empty() {
                return Ok(true);
            }
        }
        block.iter_mut().for_each(Vec::clear);
        Ok(false)
    }

    /// Decodes the next packet with sound; returns false at the end.
    fn next_packet(&mut self, name: &str, block: &mut Vec<Vec<f32>>) -> Result<bool, MediaError> {
        // Failure of the last packet: damage if another packet follows, an early end otherwise.
        let mut failure: Option<String> = None;
        loop {
            let format = &mut self.format;
            let packet = match catch_panics(|| format.next_packet()) {
                Ok(Some(packet)) => packet,
                Ok(None) => break,
                Err(Error::ResetRequired) => {
                    // Another stream follows in the same file, as in chained Ogg.
                    self.track = default_track(name, &*self.format, &[])?;
                    (self.declared, self.expected_start) = (self.track.decodable(), None);
                    continue;
                }
                Err(Error::IoError(error)) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(self.failed(name, error)),
            };
            if packet.track_id != self.track.id {
                continue;
            }
            let (start, length) = (
                packet.pts.get(),
                i64::try_from(packet.dur.get()).unwrap_or(i64::MAX),
            );
            // The first packet of a Vorbis stream has no length, wherever it starts.
            let next = (length > 0).then(|| start.saturating_add(length));
            if let (Some(expected_start), Some(gap)) = (
                std::mem::replace(&mut self.expected_start, next),
                self.track.gap,
            ) && start.saturating_sub(expected_start) >= gap
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
                Err(error) => return Err(self.failed(name, error)),
            }
            let decoded = self.track.codec.last_decoded();
            if decoded.is_empty() {
                continue;
            }
            // Anything may precede the first frame that decodes, for instance in an MP3 cut out of
            // a stream.
            if let (Some(reason), true) = (failure.take(), self.decoded > 0) {
                return Err(MediaError::Damaged {
                    file: name.to_owned(),
                    frames: self.decoded,
                    reason,
                });
            }
            let spec = (decoded.spec().rate(), decoded.spec().channels().count());
            match self.spec {
                None => check_limits(name, u64::from(spec.0), spec.1 as u64)?,
                Some(first) if spec != first => {
                    let reason = format!("it continues with {} channels at {} Hz", spec.1, spec.0);
                    return Err(MediaError::Damaged {
                        file: name.to_owned(),
                        frames: self.decoded,
                        reason,
                    });
                }
                Some(_) => (),
            }
            self.spec = Some(spec);
            decoded.copy_to_vecs_planar(block);
            self.decoded += block[0].len() as u64;
            return Ok(true);
        }
        self.truncated = failure.is_some();
        match failure {
            Some(reason) if self.decoded == 0 => Err(MediaError::NotAudio {
                file: name.to_owned(),
                reason,
            }),
            _ => Ok(false),
        }
    }

    /// Returns the error of a file that is not read on.
    fn failed(&self, name: &str, error: Error) -> MediaError {
        let file = name.to_owned();
        match error {
            Error::IoError(source) => MediaError::Unreadable { file, source },
            error if self.decoded == 0 => MediaError::NotAudio {
                file,
                reason: error.to_string(),
            },
            error => MediaError::Damaged {
                file,
                frames: self.decoded,
                reason: error.to_string(),
            },
        }
    }
}

/// Returns the default audio track with its decoder.
fn default_track(
    name: &str,
    format: &dyn FormatReader,
    edits: &[TrackEdits],
) -> Result<AudioTrack, MediaError> {
    let refuse = |reason: &str| MediaError::NotAudio {
        file: name.to_owned(),
        reason: reason.to_owned(),
    };
    let track = format
        .default_track(TrackType::Audio)
        .ok_or_else(|| refuse("there is no audio track"))?;
    let parameters = track
        .codec_params
        .as_ref()
        .and_then(|parameters| parameters.audio());
    let parameters = parameters.ok_or_else(|| refuse("the audio track has no codec parameters"))?;
    // Checked before decoding, because decoders allocate what the header claims.
    let rate = parameters.sample_rate.map_or(48_000, u64::from);
    let channels = parameters
        .channels
        .as_ref()
        .map_or(1, |channels| channels.count() as u64);
    check_limits(name, rate, channels)?;
    let packet = parameters.max_frames_per_packet.unwrap_or(0);
    check_range(
        name,
        "the number of frames in a packet",
        packet,
        0..=MAX_PACKET_FRAMES,
    )?;
    let options = AudioDecoderOptions::default().gapless(true);
    let mut parameters = parameters.clone();
    if edits
        .iter()
        .any(|edits| edits.id == track.id && edits.big_endian)
    {
        parameters.codec = big_endian(parameters.codec);
    }
    let codec = catch_panics(|| opus::codecs().make_audio_decoder(&parameters, &options))
        .map_err(|error| not_audio(name, error))?;
    let gap = track
        .time_base
        .filter(|base| u64::from(base.denom.get()) == rate * u64::from(base.numer.get()));
    let gap = gap.map(|_| (rate as f64 * GAP_S).ceil() as i64);
    let head = parameters
        .extra_data
        .as_deref()
        .filter(|_| parameters.codec == CODEC_ID_OPUS)
        .and_then(OpusHead::parse);
    let discarded = head.map_or(0, |head| head.pre_skip as u64);
    let padding = [track.delay, track.padding].map(Option::unwrap_or_default);
    Ok(AudioTrack {
        id: track.id,
        codec,
        sample_rate: rate,
        declared: track.num_frames,
        packet,
        padding,
        discarded,
        gap,
    })
}

/// Returns the codec with the bytes of each sample in the other order.
fn big_endian(codec: AudioCodecId) -> AudioCodecId {
    match codec {
        CODEC_ID_PCM_S24LE => CODEC_ID_PCM_S24BE,
        CODEC_ID_PCM_S32LE => CODEC_ID_PCM_S32BE,
        CODEC_ID_PCM_F32LE => CODEC_ID_PCM_F32BE,
        CODEC_ID_PCM_F64LE => CODEC_ID_PCM_F64BE,
        other => other,
    }
}

/// Calls Symphonia and converts a panic into an error. [`Decoder`] ends after such an error, so
/// broken state is not used again.
fn catch_panics<T>(call: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(call))
        .unwrap_or(Err(Error::Unsupported("content that crashes the decoder")))
}

fn not_audio(name: &str, error: Error) -> MediaError {
    let file = name.to_owned();
    match error {
        Error::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            MediaError::NotAudio {
                file,
                reason: "the file ends before any audio".to_owned(),
            }
        }
        Error::IoError(source) => MediaError::Unreadable { file, source },
        Error::Unsupported("aac: aac too complex") => MediaError::NotAudio {
            file,
            reason: "AAC of more than two channels, and HE-AAC, are not supported".to_owned(),
        },
        error => MediaError::NotAudio {
            file,
            reason: error.to_string(),
        },
    }
}
