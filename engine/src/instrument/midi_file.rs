//! Standard MIDI Files.

mod chunks;
mod damage;
mod overlaps;
mod tempo;
mod text;
mod track_events;

use super::event::{Event, EventKind, controller};
use super::midi::{MidiDecoder, MidiSettings};
use crate::files;
use chunks::{ChunkReader, TrackChunk};
use damage::{Damage, plural};
use overlaps::Overlaps;
use std::path::{Path, PathBuf};
pub use tempo::TempoChange;
use tempo::{DEFAULT_US_PER_QUARTER, Division, TempoMap};
use thiserror::Error;
use track_events::{SysExJoiner, TrackEvent, TrackEvents};

/// Limits of a file, which protect against excessive memory and time; real files are far below
/// them.
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
    /// True if nothing was skipped.
    pub complete: bool,
    /// Start in seconds: 0 unless the tracks follow each other.
    pub start_s: f64,
}

/// Arrangement of the tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MidiFormat {
    /// All begin together (formats 0 and 1).
    Simultaneous,
    /// Each is a piece of its own; they are played one after the other (format 2).
    Sequence,
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
            Self::Track(track) => {
                usize::from(event.track) == track || event.kind.channel().is_none()
            }
            Self::Channel(channel) => event
                .kind
                .channel()
                .is_none_or(|of_event| of_event == channel),
        }
    }
}

/// Content of a Standard MIDI File.
///
/// Damaged files are read as far as possible: see [`Self::warning`].
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
    /// All events in order of time; simultaneous ones in the order of the file. Every note and
    /// pedal is released at the end of its track.
    pub events: Vec<TimedEvent>,
    /// Tracks in the order of the file.
    pub tracks: Vec<MidiTrack>,
    /// End of the last track in seconds.
    pub duration_s: f64,
    /// Changes of the tempo in order of time; empty if the file states none.
    pub tempos: Vec<TempoChange>,
    /// One line that says what was skipped; `None` for a file without faults.
    pub warning: Option<String>,
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
    /// Start of the current track and end of the longest so far, in ticks.
    start: u64,
    end: u64,
    /// Start of each track in ticks.
    starts: Vec<u64>,
    damage: Damage,
}

impl MidiFile {
    /// Extensions of the names of MIDI files, in lower case.
    pub const EXTENSIONS: [&str; 5] = ["mid", "midi", "smf", "kar", "rmi"];

    /// Reads a file.
    ///
    /// # Errors
    /// Returns [`MidiFileError`] if the file cannot be read or played.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, MidiFileError> {
        Self::read_with(path, &MidiSettings::default())
    }

    /// Reads a file that is decoded with these settings.
    ///
    /// # Errors
    /// Returns [`MidiFileError`] if the file cannot be read or played.
    pub fn read_with(
        path: impl AsRef<Path>,
        settings: &MidiSettings,
    ) -> Result<Self, MidiFileError> {
        let path = path.as_ref();
        let read = || Self::parse_with(&files::read(path, MAX_BYTES)?, settings);
        read().map_err(|reason| MidiFileError {
            path: path.to_owned(),
            reason,
        })
    }

    /// Parses the bytes of a file.
    ///
    /// # Errors
    /// Returns [`MidiError`] if they are not a playable MIDI file.
    pub fn parse(bytes: &[u8]) -> Result<Self, MidiError> {
        Self::parse_with(bytes, &MidiSettings::default())
    }

    /// Parses the bytes of a file that is decoded with these settings.
    ///
    /// # Errors
    /// Returns [`MidiError`] if they are not a playable MIDI file.
    pub fn parse_with(bytes: &[u8], settings: &MidiSettings) -> Result<Self, MidiError> {
        if bytes.len() as u64 > MAX_BYTES {
            return Err(MidiError::TooLarge {
                quantity: "bytes",
                limit: MAX_BYTES,
            });
        }
        let mut contents = FileContent::default();
        let mut chunks = ChunkReader::new(bytes, &mut contents.damage)?;
        while let Some(chunk) = chunks.next_track(&mut contents.damage) {
            if chunks.format == MidiFormat::Sequence {
                contents.start = contents.end;
                contents
                    .tempos
                    .push((contents.start, DEFAULT_US_PER_QUARTER));
            }
            let length = contents.read_track(&chunk, chunks.bytes(&chunk.range), settings)?;
            chunks.leave_track(&chunk, chunk.range.start + length);
        }
        let missing = chunks.stated_tracks.saturating_sub(contents.tracks.len());
        if missing > 0 {
            contents.damage.add(|| {
                format!(
                    "{} of {} missing",
                    missing,
                    plural(chunks.stated_tracks, "track")
                )
            });
        }
        contents.into_file(chunks.division)
    }

    /// Iterates over the events of a part, with times in samples at a sample rate in Hz.
    pub fn events_at(
        &self,
        sample_rate: f64,
        part: MidiSelection,
    ) -> impl Iterator<Item = Event> + '_ {
        let start_s = match part {
            MidiSelection::Track(track) => {
                self.tracks.get(track).map_or(0.0, |track| track.start_s)
            }
            MidiSelection::All | MidiSelection::Channel(_) => 0.0,
        };
        let mut overlaps = Overlaps::new(self.events.iter().filter(|event| part.contains(event)));
        let of_part = self.events.iter().filter(move |event| part.contains(event));
        of_part
            .filter(move |event| overlaps.plays(&event.kind))
            .map(move |event| Event {
                at: ((event.at_s - start_s).max(0.0) * sample_rate).round() as u64,
                kind: event.kind,
            })
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
        self.events
            .iter()
            .filter(move |event| part.contains(event))
            .filter_map(|event| match event.kind {
                EventKind::NoteOn { key, .. } => Some(key),
                _ => None,
            })
    }
}

impl FileContent {
    /// Reads a track and returns its length in bytes.
    fn read_track(
        &mut self,
        chunk: &TrackChunk,
        bytes: &[u8],
        settings: &MidiSettings,
    ) -> Result<usize, MidiError> {
        let too_many = MidiError::TooLarge {
            quantity: "tracks",
            limit: u64::from(u16::MAX),
        };
        let index = u16::try_from(self.tracks.len()).map_err(|_| too_many)?;
        let mut track = MidiTrack::default();
        // One per track, because files often use the same channel for all instruments.
        let mut decoder = MidiDecoder::new();
        let mut held = SoundingKeys::default();
        let mut sys_ex = SysExJoiner::default();
        let mut tick = self.start;
        let mut first = Vec::new();
        decoder.set_settings(settings, |kind| first.push(kind));
        for kind in first {
            self.push(tick, index, kind)?;
        }
        let mut events = TrackEvents::new(bytes);
        for (pause, event) in &mut events {
            tick += pause;
            let message = match &event {
                TrackEvent::Channel(message, length) => &message[..*length],
                TrackEvent::SysEx(data) => sys_ex.begin(data),
                TrackEvent::Escape(data) => sys_ex.append(data),
                TrackEvent::Meta(kind, data) => {
                    self.meta(*kind, data, tick, &mut track)?;
                    continue;
                }
                TrackEvent::System => continue,
            };
            if let Some(kind) = decoder.decode_bytes(message) {
                if let EventKind::NoteOn { channel, .. } = kind {
                    track.notes += 1;
                    track.channels |= 1 << channel;
                }
                held.record(&kind);
                self.push(tick, index, kind)?;
            }
        }
        for kind in held.release_all() {
            self.push(tick, index, kind)?;
        }
        if !events.has_ended() && !chunk.has_plausible_length() {
            events.set_cut_short();
        }
        events.report(usize::from(index) + 1, chunk.range.start, &mut self.damage);
        track.complete = events.is_complete();
        self.end = self.end.max(tick);
        self.tracks.push(track);
        self.starts.push(self.start);
        Ok(events.position())
    }

    fn meta(
        &mut self,
        kind: u8,
        data: &[u8],
        tick: u64,
        track: &mut MidiTrack,
    ) -> Result<(), MidiError> {
        const TRACK_NAME: u8 = 0x03;
        const TEMPO: u8 = 0x51;
        match (kind, data) {
            (TRACK_NAME, name) if track.name.is_empty() => {
                let name = text::decode(&name[..name.len().min(4 * MAX_NAME_CHARS)]);
                let printable = name.trim().chars().filter(|c| !c.is_control());
                track.name = printable.take(MAX_NAME_CHARS).collect();
            }
            (TEMPO, &[high, middle, low, ..]) => {
                self.tempos
                    .push((tick, u32::from_be_bytes([0, high, middle, low])));
                self.check_count()?;
            }
            _ => {}
        }
        Ok(())
    }

    fn push(&mut self, tick: u64, track: u16, kind: EventKind) -> Result<(), MidiError> {
        self.events.push(TickEvent { tick, track, kind });
        self.check_count()
    }

    fn check_count(&self) -> Result<(), MidiError> {
        if self.events.len() + self.tempos.len() > MAX_EVENTS {
            return Err(MidiError::TooLarge {
                quantity: "events",
                limit: MAX_EVENTS as u64,
            });
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
            return Err(MidiError::TooLarge {
                quantity: "hours",
                limit: u64::from(MAX_HOURS),
            });
        }
        self.events.sort_by_key(|event| event.tick);
        let timed = |event: &TickEvent| TimedEvent {
            at_s: tempo.seconds(event.tick),
            track: event.track,
            kind: event.kind,
        };
        let events = self.events.iter().map(timed).collect();
        for (track, start) in self.tracks.iter_mut().zip(&self.starts) {
            track.start_s = tempo.seconds(*start);
        }
        let warning = self.damage.into_warning();
        Ok(MidiFile {
            events,
            tracks: self.tracks,
            duration_s,
            tempos: tempo.changes(),
            warning,
        })
    }
}

/// Held keys and pedals of a track, to be released at its end.
#[derive(Default)]
struct SoundingKeys {
    keys: [u128; 16],
    /// Sustain and sostenuto.
    pedals: [[bool; 2]; 16],
}

const PEDALS: [u8; 2] = [controller::SUSTAIN, controller::SOSTENUTO];

impl SoundingKeys {
    fn record(&mut self, kind: &EventKind) {
        match *kind {
            EventKind::NoteOn { channel, key, .. } => self.keys[usize::from(channel)] |= 1 << key,
            EventKind::NoteOff { channel, key, .. } => {
                self.keys[usize::from(channel)] &= !(1 << key)
            }
            EventKind::Controller {
                channel,
                number,
                value,
            } => {
                if let Some(pedal) = PEDALS.iter().position(|pedal| *pedal == number) {
                    self.pedals[usize::from(channel)][pedal] = value >= 0.5;
                }
            }
            _ => {}
        }
    }

    fn release_all(self) -> impl Iterator<Item = EventKind> {
        (0..16u8).flat_map(move |channel| {
            let keys = self.keys[usize::from(channel)];
            let released = (0..128u8).filter(move |key| keys >> key & 1 == 1);
            let released = released.map(move |key| EventKind::NoteOff {
                channel,
                key,
                velocity: 0.5,
            });
            let pedals = PEDALS
                .into_iter()
                .zip(self.pedals[usize::from(channel)])
                .filter(|(_, is_down)| *is_down);
            released.chain(pedals.map(move |(number, _)| EventKind::Controller {
                channel,
                number,
                value: 0.0,
            }))
        })
    }
}

#[cfg(test)]
mod tests;
