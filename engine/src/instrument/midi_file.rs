//! Standard MIDI Files.

mod tempo;

use super::event::{Event, EventKind, controller};
use super::midi::MidiDecoder;
use crate::files;
use midly::{EventIter, MetaMessage, TrackEventKind};
use std::path::{Path, PathBuf};
pub use tempo::TempoChange;
use tempo::{Division, TempoMap};
use thiserror::Error;

/// Limits of a file, which protect against excessive memory and time; real files are far below them.
const MAX_BYTES: u64 = 32 << 20;
const MAX_EVENTS: usize = 4_000_000;
const MAX_HOURS: u32 = 24;
const MAX_NAME_CHARS: usize = 128;

/// Error in a MIDI file, with its path.
#[derive(Debug, Error)]
#[error("{}: {reason}", path.display())]
pub struct MidiFileError {
    /// Path of the file.
    pub path: PathBuf,
    /// Reason.
    #[source]
    pub reason: MidiError,
}

/// Error in the content of a MIDI file.
#[derive(Debug, Error)]
pub enum MidiError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The content is not MIDI.
    #[error("not a MIDI file: {0}")]
    NotMidi(&'static str),
    /// The tracks are independent sequences (format 2).
    #[error("MIDI format {0} is not supported; expected 0 or 1")]
    Format(u16),
    /// A limit is exceeded.
    #[error("too large: more than {limit} {quantity}")]
    TooLarge {
        /// Quantity.
        quantity: &'static str,
        /// Largest allowed value.
        limit: u64,
    },
    /// There are no notes.
    #[error("contains no notes")]
    NoNotes,
}

/// Event of a MIDI file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimedEvent {
    /// Time in seconds from the start.
    pub at_s: f64,
    /// Index into [`MidiFile::tracks`].
    pub track: u16,
    /// Kind of event.
    pub kind: EventKind,
}

/// Properties of a track.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MidiTrack {
    /// Name; empty if it has none.
    pub name: String,
    /// Number of notes.
    pub notes: usize,
    /// Channels that have notes, as a bit mask.
    pub channels: u16,
    /// True if the track was read to its end. Events before damage are kept.
    pub complete: bool,
}

/// Part of a file to play.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MidiSelection {
    /// The whole file.
    #[default]
    All,
    /// One track, counted from 0.
    Track(usize),
    /// One channel, counted from 0.
    Channel(u8),
}

impl MidiSelection {
    /// Returns whether the part includes an event.
    pub fn contains(&self, event: &TimedEvent) -> bool {
        match *self {
            Self::All => true,
            Self::Track(track) => usize::from(event.track) == track,
            Self::Channel(channel) => event.kind.channel() == channel,
        }
    }
}

/// Content of a Standard MIDI File of format 0 or 1.
///
/// # Examples
/// ```
/// use ondes_engine::instrument::{MidiFile, MidiSelection};
///
/// // One track with a quarter note at 96 ticks per quarter.
/// let bytes = b"MThd\0\0\0\x06\0\0\0\x01\0\x60MTrk\0\0\0\x0c\0\x90\x3c\x64\x60\x80\x3c\0\0\xff\x2f\0";
/// let file = MidiFile::parse(bytes)?;
/// assert_eq!((file.notes(MidiSelection::All), file.duration_s), (1, 0.5));
/// assert_eq!(file.events_at(48_000.0, MidiSelection::All).last().map(|event| event.at), Some(24_000));
/// # Ok::<(), ondes_engine::instrument::MidiError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MidiFile {
    /// All events in order of time; simultaneous ones in the order of the file. Every note and pedal is released at the
    /// end of its track.
    pub events: Vec<TimedEvent>,
    /// Tracks in the order of the file.
    pub tracks: Vec<MidiTrack>,
    /// End of the last track in seconds.
    pub duration_s: f64,
    /// Changes of the tempo in order of time; empty if the file states none.
    pub tempos: Vec<TempoChange>,
}

/// Event with its time in ticks.
struct TickEvent {
    tick: u64,
    track: u16,
    kind: EventKind,
}

/// Content collected from all tracks.
#[derive(Default)]
struct FileContent {
    events: Vec<TickEvent>,
    tempos: Vec<(u64, u32)>,
    tracks: Vec<MidiTrack>,
    end: u64,
}

impl MidiFile {
    /// Reads a file.
    ///
    /// # Errors
    /// Returns [`MidiFileError`] if the file cannot be read or played.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, MidiFileError> {
        let path = path.as_ref();
        let read = || Self::parse(&files::read(path, MAX_BYTES)?);
        read().map_err(|reason| MidiFileError { path: path.to_owned(), reason })
    }

    /// Parses the bytes of a file.
    ///
    /// # Errors
    /// Returns [`MidiError`] if they are not a playable MIDI file.
    pub fn parse(bytes: &[u8]) -> Result<Self, MidiError> {
        if bytes.len() as u64 > MAX_BYTES {
            return Err(MidiError::TooLarge { quantity: "bytes", limit: MAX_BYTES });
        }
        let mut chunks = ChunkReader(unwrap_riff(bytes));
        let division = read_header(chunks.next())?;
        let mut contents = FileContent::default();
        for (id, data) in chunks {
            if id == *b"MTrk" {
                contents.read_track(data)?;
            }
        }
        contents.into_file(division)
    }

    /// Iterates over the events of a part, with times in samples at a sample rate in Hz.
    pub fn events_at(&self, sample_rate: f64, part: MidiSelection) -> impl Iterator<Item = Event> + '_ {
        let of_part = self.events.iter().filter(move |event| part.contains(event));
        of_part.map(move |event| Event { at: (event.at_s * sample_rate).round() as u64, kind: event.kind })
    }

    /// Returns the index of the first track called `name`.
    pub fn track_named(&self, name: &str) -> Option<usize> {
        self.tracks.iter().position(|track| track.name == name)
    }

    /// Returns the number of notes in a part.
    pub fn notes(&self, part: MidiSelection) -> usize {
        self.keys(part).count()
    }

    /// Returns the lowest and highest key of a part; `None` if it has no notes.
    pub fn key_range(&self, part: MidiSelection) -> Option<(u8, u8)> {
        self.keys(part).fold(None, |range, key| {
            let (low, high) = range.unwrap_or((key, key));
            Some((low.min(key), high.max(key)))
        })
    }

    fn keys(&self, part: MidiSelection) -> impl Iterator<Item = u8> + '_ {
        self.events.iter().filter(move |event| part.contains(event)).filter_map(|event| match event.kind {
            EventKind::NoteOn { key, .. } => Some(key),
            _ => None,
        })
    }
}

impl FileContent {
    fn read_track(&mut self, data: &[u8]) -> Result<(), MidiError> {
        let too_many = MidiError::TooLarge { quantity: "tracks", limit: u64::from(u16::MAX) };
        let index = u16::try_from(self.tracks.len()).map_err(|_| too_many)?;
        let mut track = MidiTrack::default();
        // One per track, because files often use the same channel for all instruments.
        let mut decoder = MidiDecoder::new();
        let mut held = SoundingKeys::default();
        let mut tick = 0u64;
        for event in EventIter::new(data).map_while(Result::ok) {
            tick += u64::from(event.delta.as_int());
            match event.kind {
                TrackEventKind::Midi { channel, message } => {
                    if let Some(kind) = decoder.decode(channel.as_int(), message) {
                        if let EventKind::NoteOn { channel, .. } = kind {
                            track.notes += 1;
                            track.channels |= 1 << channel;
                        }
                        held.record(&kind);
                        self.push(tick, index, kind)?;
                    }
                }
                TrackEventKind::Meta(MetaMessage::TrackName(name)) if track.name.is_empty() => {
                    let name = String::from_utf8_lossy(&name[..name.len().min(4 * MAX_NAME_CHARS)]);
                    let printable = name.trim().chars().filter(|c| !c.is_control());
                    track.name = printable.take(MAX_NAME_CHARS).collect();
                }
                TrackEventKind::Meta(MetaMessage::Tempo(us_per_quarter)) => {
                    self.tempos.push((tick, us_per_quarter.as_int()));
                    self.check_count()?;
                }
                TrackEventKind::Meta(MetaMessage::EndOfTrack) => {
                    track.complete = true;
                    break;
                }
                _ => {}
            }
        }
        for kind in held.release_all() {
            self.push(tick, index, kind)?;
        }
        self.end = self.end.max(tick);
        self.tracks.push(track);
        Ok(())
    }

    fn push(&mut self, tick: u64, track: u16, kind: EventKind) -> Result<(), MidiError> {
        self.events.push(TickEvent { tick, track, kind });
        self.check_count()
    }

    fn check_count(&self) -> Result<(), MidiError> {
        if self.events.len() + self.tempos.len() > MAX_EVENTS {
            return Err(MidiError::TooLarge { quantity: "events", limit: MAX_EVENTS as u64 });
        }
        Ok(())
    }

    fn into_file(mut self, division: Division) -> Result<MidiFile, MidiError> {
        if self.tracks.iter().all(|track| track.notes == 0) {
            return Err(MidiError::NoNotes);
        }
        let tempo = TempoMap::new(division, self.tempos);
        let duration_s = tempo.seconds(self.end);
        if duration_s > f64::from(MAX_HOURS) * 3_600.0 {
            return Err(MidiError::TooLarge { quantity: "hours", limit: u64::from(MAX_HOURS) });
        }
        self.events.sort_by_key(|event| event.tick);
        let timed =
            |event: &TickEvent| TimedEvent { at_s: tempo.seconds(event.tick), track: event.track, kind: event.kind };
        let events = self.events.iter().map(timed).collect();
        Ok(MidiFile { events, tracks: self.tracks, duration_s, tempos: tempo.changes() })
    }
}

/// Held keys and pedals of a track, to be released at its end.
#[derive(Default)]
struct SoundingKeys {
    keys: [u128; 16],
    pedals: [bool; 16],
}

impl SoundingKeys {
    fn record(&mut self, kind: &EventKind) {
        match *kind {
            EventKind::NoteOn { channel, key, .. } => self.keys[usize::from(channel)] |= 1 << key,
            EventKind::NoteOff { channel, key, .. } => self.keys[usize::from(channel)] &= !(1 << key),
            EventKind::Controller { channel, number: controller::SUSTAIN, value } => {
                self.pedals[usize::from(channel)] = value >= 0.5;
            }
            _ => {}
        }
    }

    fn release_all(self) -> impl Iterator<Item = EventKind> {
        (0..16u8).flat_map(move |channel| {
            let keys = self.keys[usize::from(channel)];
            let released = (0..128u8).filter(move |key| keys >> key & 1 == 1);
            let released = released.map(move |key| EventKind::NoteOff { channel, key, velocity: 0.5 });
            let number = controller::SUSTAIN;
            let pedal = self.pedals[usize::from(channel)];
            released.chain(pedal.then_some(EventKind::Controller { channel, number, value: 0.0 }))
        })
    }
}

/// Chunks of a file. A chunk that claims to be longer than the file ends with it.
///
/// midly's own reader (0.5.3) overflows on a header with a frame rate of −128.
struct ChunkReader<'a>(&'a [u8]);

impl<'a> Iterator for ChunkReader<'a> {
    type Item = ([u8; 4], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (id, rest) = self.0.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX).min(rest.len());
        let (data, rest) = rest.split_at(length);
        self.0 = rest;
        Some((*id, data))
    }
}

/// Returns the content of an RMID file, or the bytes themselves if there is no RIFF wrapper.
fn unwrap_riff(bytes: &[u8]) -> &[u8] {
    match bytes.split_first_chunk::<20>() {
        Some((header, inner)) if header.starts_with(b"RIFF") && &header[8..16] == b"RMIDdata" => inner,
        _ => bytes,
    }
}

fn read_header(chunk: Option<([u8; 4], &[u8])>) -> Result<Division, MidiError> {
    let Some((_, data)) = chunk.filter(|(id, _)| id == b"MThd") else {
        return Err(MidiError::NotMidi("it does not begin with MThd"));
    };
    let Some(&[format_high, format_low, _, _, division_high, division_low]) = data.first_chunk::<6>() else {
        return Err(MidiError::NotMidi("its header is cut short"));
    };
    match u16::from_be_bytes([format_high, format_low]) {
        0 | 1 => Division::read(division_high, division_low).ok_or(MidiError::NotMidi("its time division is invalid")),
        format => Err(MidiError::Format(format)),
    }
}

#[cfg(test)]
mod tests;
