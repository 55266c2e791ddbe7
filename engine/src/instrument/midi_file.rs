//! A Standard MIDI File becomes events in seconds.

mod tempo;

use super::event::{Event, EventKind, controller};
use super::midi::MidiDecoder;
use midly::{EventIter, MetaMessage, TrackEventKind};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use tempo::{Division, TempoMap};
use thiserror::Error;

/// Limits on what a file may hold. Real files are far inside them; hostile ones must not take memory or time without end.
const MOST_BYTES: u64 = 64 << 20;
const MAX_EVENTS: usize = 4_000_000;
const MOST_HOURS: u32 = 24;
const MOST_NAME_CHARS: usize = 128;

/// A MIDI file that cannot be played: which, and why.
#[derive(Debug, Error)]
#[error("{}: {reason}", path.display())]
pub struct MidiFileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub reason: MidiError,
}

/// What is wrong with a MIDI file.
#[derive(Debug, Error)]
pub enum MidiError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// It is something else, whatever its name.
    #[error("not a MIDI file: {0}")]
    NotMidi(&'static str),
    /// Its tracks are meant to be played one after another (format 2).
    #[error("MIDI format {0} is not supported, expected 0 or 1")]
    Format(u16),
    /// It passes a limit.
    #[error("too large: more than {most} {what}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much there may be.
        most: u64,
    },
    /// There is nothing to play.
    #[error("holds no notes")]
    NoNotes,
}

/// One event of a MIDI file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimedEvent {
    /// When, in seconds from the beginning.
    pub at_s: f64,
    /// Index into [`MidiFile::tracks`].
    pub track: u16,
    /// What.
    pub kind: EventKind,
}

/// What a track is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MidiTrack {
    /// Its name, empty if it has none.
    pub name: String,
    /// How many notes begin in it.
    pub notes: usize,
    /// Bit `c` is set if a note begins on channel `c`.
    pub channels: u16,
    /// Whether the track could be read to its end. What came before the damage is there.
    pub complete: bool,
}

/// Which part of a file to play.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MidiSelection {
    /// All of it.
    #[default]
    All,
    /// One track, counted from 0.
    Track(usize),
    /// One channel, counted from 0.
    Channel(u8),
}

impl MidiSelection {
    /// Whether an event belongs to the part.
    pub fn contains(&self, event: &TimedEvent) -> bool {
        match *self {
            Self::All => true,
            Self::Track(track) => usize::from(event.track) == track,
            Self::Channel(channel) => event.kind.channel() == channel,
        }
    }
}

/// What a Standard MIDI File (format 0 or 1) plays.
#[derive(Clone, Debug, PartialEq)]
pub struct MidiFile {
    /// Everything that happens, in the order of time; at the same time, in the order of the file. Every note and pedal that
    /// goes down comes up.
    pub events: Vec<TimedEvent>,
    /// The tracks, in the order of the file.
    pub tracks: Vec<MidiTrack>,
    /// When the last track ends, in seconds.
    pub duration_s: f64,
}

/// An event before the tempo map turns its tick into a time.
struct TickEvent {
    tick: u64,
    track: u16,
    kind: EventKind,
}

/// What is gathered while tracks are read.
#[derive(Default)]
struct ParsedTrack {
    events: Vec<TickEvent>,
    tempos: Vec<(u64, u32)>,
    tracks: Vec<MidiTrack>,
    end: u64,
}

impl MidiFile {
    /// Reads a file.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, MidiFileError> {
        let path = path.as_ref();
        let read = || {
            let mut bytes = Vec::new();
            // One byte more than may be there tells that there is more; a length that lies does not matter.
            File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
            Self::parse(&bytes)
        };
        read().map_err(|reason| MidiFileError { path: path.to_owned(), reason })
    }

    /// Reads what a file holds.
    pub fn parse(bytes: &[u8]) -> Result<Self, MidiError> {
        if bytes.len() as u64 > MOST_BYTES {
            return Err(MidiError::TooLarge { what: "bytes", most: MOST_BYTES });
        }
        let mut chunks = ChunkReader(unwrap_riff(bytes));
        let division = read_header(chunks.next())?;
        let mut contents = ParsedTrack::default();
        for (id, data) in chunks {
            if id == *b"MTrk" {
                contents.read_track(data)?;
            }
        }
        contents.into_file(division)
    }

    /// The events of a part, in samples at `sample_rate` in Hz.
    pub fn events_at(&self, sample_rate: f64, part: MidiSelection) -> impl Iterator<Item = Event> + '_ {
        let of_part = self.events.iter().filter(move |event| part.contains(event));
        of_part.map(move |event| Event { at: (event.at_s * sample_rate).round() as u64, kind: event.kind })
    }

    /// Index of the first track of this name.
    pub fn track_named(&self, name: &str) -> Option<usize> {
        self.tracks.iter().position(|track| track.name == name)
    }

    /// How many notes a part has.
    pub fn notes(&self, part: MidiSelection) -> usize {
        self.keys(part).count()
    }

    /// Lowest and highest key of a part, if it has notes.
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

impl ParsedTrack {
    fn read_track(&mut self, data: &[u8]) -> Result<(), MidiError> {
        let most = MidiError::TooLarge { what: "tracks", most: u64::from(u16::MAX) };
        let index = u16::try_from(self.tracks.len()).map_err(|_| most)?;
        let mut track = MidiTrack::default();
        // One for each track: files often have every instrument on the same channel.
        let mut decoder = MidiDecoder::new();
        let mut down = SoundingKeys::default();
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
                        down.follow(&kind);
                        self.push(tick, index, kind)?;
                    }
                }
                TrackEventKind::Meta(MetaMessage::TrackName(name)) if track.name.is_empty() => {
                    let name = String::from_utf8_lossy(&name[..name.len().min(4 * MOST_NAME_CHARS)]);
                    let printable = name.trim().chars().filter(|c| !c.is_control());
                    track.name = printable.take(MOST_NAME_CHARS).collect();
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
        for kind in down.lift_all() {
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
            return Err(MidiError::TooLarge { what: "events", most: MAX_EVENTS as u64 });
        }
        Ok(())
    }

    fn into_file(mut self, division: Division) -> Result<MidiFile, MidiError> {
        if self.tracks.iter().all(|track| track.notes == 0) {
            return Err(MidiError::NoNotes);
        }
        let tempo = TempoMap::new(division, self.tempos);
        let duration_s = tempo.seconds(self.end);
        if duration_s > f64::from(MOST_HOURS) * 3_600.0 {
            return Err(MidiError::TooLarge { what: "hours", most: u64::from(MOST_HOURS) });
        }
        self.events.sort_by_key(|event| event.tick);
        let timed =
            |event: &TickEvent| TimedEvent { at_s: tempo.seconds(event.tick), track: event.track, kind: event.kind };
        Ok(MidiFile { events: self.events.iter().map(timed).collect(), tracks: self.tracks, duration_s })
    }
}

/// What is down in a track, so that it can be lifted where the track ends.
#[derive(Default)]
struct SoundingKeys {
    keys: [u128; 16],
    pedals: [bool; 16],
}

impl SoundingKeys {
    fn follow(&mut self, kind: &EventKind) {
        match *kind {
            EventKind::NoteOn { channel, key, .. } => self.keys[usize::from(channel)] |= 1 << key,
            EventKind::NoteOff { channel, key, .. } => self.keys[usize::from(channel)] &= !(1 << key),
            EventKind::Controller { channel, number: controller::SUSTAIN, value } => {
                self.pedals[usize::from(channel)] = value >= 0.5;
            }
            _ => {}
        }
    }

    fn lift_all(self) -> impl Iterator<Item = EventKind> {
        (0..16u8).flat_map(move |channel| {
            let keys = self.keys[usize::from(channel)];
            let lifted = (0..128u8).filter(move |key| keys >> key & 1 == 1);
            let lifted = lifted.map(move |key| EventKind::NoteOff { channel, key, velocity: 0.5 });
            let number = controller::SUSTAIN;
            let pedal = self.pedals[usize::from(channel)];
            lifted.chain(pedal.then_some(EventKind::Controller { channel, number, value: 0.0 }))
        })
    }
}

/// The chunks of a file. One that claims to be longer than the file ends with it.
///
/// We walk them ourselves because midly 0.5.3 overflows on a header whose frame rate is −128.
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

/// What is inside a RIFF wrapper of the kind RMID, or the bytes themselves.
fn unwrap_riff(bytes: &[u8]) -> &[u8] {
    match bytes {
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'R',
            b'M',
            b'I',
            b'D',
            b'd',
            b'a',
            b't',
            b'a',
            _,
            _,
            _,
            _,
            inner @ ..,
        ] => inner,
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
        0 | 1 => {
            Division::read(division_high, division_low).ok_or(MidiError::NotMidi("its time division has no meaning"))
        }
        format => Err(MidiError::Format(format)),
    }
}

#[cfg(test)]
mod tests;
