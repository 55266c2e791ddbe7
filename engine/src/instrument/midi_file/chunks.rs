//! The container of a MIDI file: header and chunks, found also where lengths and counts are wrong.

use super::damage::Damage;
use super::tempo::Division;
use super::{MidiError, MidiFormat};
use std::ops::Range;

const HEADER: &[u8; 4] = b"MThd";
const TRACK: &[u8; 4] = b"MTrk";
/// Bytes of a header that have a meaning; longer ones are allowed.
const HEADER_BYTES: usize = 6;
/// Identifier and length of a chunk.
const CHUNK_HEADER_BYTES: usize = 8;
/// Last event of a track, without its time.
const END_OF_TRACK: &[u8] = &[0xFF, 0x2F, 0x00];

/// Chunks of a file.
pub(super) struct ChunkReader<'a> {
    bytes: &'a [u8],
    /// Position of the next chunk.
    at: usize,
    pub(super) format: MidiFormat,
    pub(super) division: Division,
    /// Number of tracks according to the header.
    pub(super) stated_tracks: usize,
    has_tracks: bool,
}

/// A track that may be longer or shorter than its chunk states.
pub(super) struct TrackChunk {
    /// Bytes of the file that may belong to the track.
    pub(super) range: Range<usize>,
    /// End of the chunk according to its length, if that is plausible.
    stated_end: Option<usize>,
}

impl TrackChunk {
    /// Returns whether the chunk ends where its length says.
    pub(super) fn has_plausible_length(&self) -> bool {
        self.stated_end.is_some()
    }
}

impl<'a> ChunkReader<'a> {
    /// Reads the header, which may follow other content such as a RIFF header.
    pub(super) fn new(file: &'a [u8], damage: &mut Damage) -> Result<Self, MidiError> {
        let Some(start) = find(file, HEADER, 0) else {
            return Err(MidiError::NotMidi("it has no header (MThd)"));
        };
        let bytes = match riff_data_length(&file[..start]) {
            Some(length) => &file[..file.len().min(start.saturating_add(length))],
            None => {
                if start > 0 {
                    damage.skip_bytes(start, "before the header");
                }
                file
            }
        };
        let header = start + CHUNK_HEADER_BYTES;
        let Some(
            &[
                format_high,
                format_low,
                tracks_high,
                tracks_low,
                division_high,
                division_low,
            ],
        ) = bytes
            .get(header..)
            .and_then(|header| header.first_chunk::<HEADER_BYTES>())
        else {
            return Err(MidiError::NotMidi("its header is cut short"));
        };
        let division = Division::read(division_high, division_low)
            .ok_or(MidiError::NotMidi("its time division is invalid"))?;
        let format = match u16::from_be_bytes([format_high, format_low]) {
            2 => MidiFormat::Sequence,
            _ => MidiFormat::Simultaneous,
        };
        let mut reader = Self {
            bytes,
            at: header + HEADER_BYTES,
            format,
            division,
            stated_tracks: usize::from(u16::from_be_bytes([tracks_high, tracks_low])),
            has_tracks: false,
        };
        // A header of another length, such as 8 bytes, or a wrong length.
        if let Some(end) = reader.plausible_end(start).filter(|end| *end >= reader.at) {
            reader.at = end;
        }
        Ok(reader)
    }

    /// Returns the next track and moves to its content.
    pub(super) fn next_track(&mut self, damage: &mut Damage) -> Option<TrackChunk> {
        loop {
            if self.bytes[self.at..].starts_with(TRACK) {
                self.has_tracks = true;
                return self.track();
            }
            // Another file, appended to this one: its tracks do not belong to this song.
            if self.has_tracks && self.bytes[self.at..].starts_with(HEADER) {
                damage.skip_bytes(self.bytes.len() - self.at, "after the tracks");
                return None;
            }
            // Other chunks, such as those of Yamaha's files, have a length as well.
            match self
                .plausible_end(self.at)
                .filter(|_| is_identifier(&self.bytes[self.at..]))
            {
                Some(end) => self.at = end,
                None => {
                    let next = find(self.bytes, TRACK, self.at);
                    let junk = &self.bytes[self.at..next.unwrap_or(self.bytes.len())];
                    // Some writers pad chunks or the file.
                    if junk
                        .iter()
                        .any(|byte| !matches!(byte, 0 | b'\r' | b'\n' | 0x1A))
                    {
                        damage.skip_bytes(
                            junk.len(),
                            if next.is_some() {
                                "between tracks"
                            } else {
                                "after the tracks"
                            },
                        );
                    }
                    self.at = next?;
                }
            }
        }
    }

    fn track(&mut self) -> Option<TrackChunk> {
        let start = (self.at + CHUNK_HEADER_BYTES).min(self.bytes.len());
        let ends_well = |end: usize| {
            self.bytes[start..end].ends_with(END_OF_TRACK)
                || self.bytes.len() - end < CHUNK_HEADER_BYTES
        };
        let stated_end = self.stated_end(self.at);
        let stated_end = self
            .plausible_end(self.at)
            .or(stated_end.filter(|&end| ends_well(end)));
        // A wrong length: the track ends before the next one at the latest.
        let end = stated_end
            .or_else(|| find(self.bytes, TRACK, start))
            .unwrap_or(self.bytes.len());
        self.at = start;
        Some(TrackChunk {
            range: start..end,
            stated_end,
        })
    }

    /// Moves behind a track whose last event ended at `end`.
    pub(super) fn leave_track(&mut self, track: &TrackChunk, end: usize) {
        let next_follows = self.bytes[end..].starts_with(TRACK);
        self.at = match track.stated_end {
            Some(stated_end) if !next_follows => stated_end,
            _ => end,
        };
    }

    /// Returns the bytes of a range.
    pub(super) fn bytes(&self, range: &Range<usize>) -> &'a [u8] {
        &self.bytes[range.clone()]
    }

    /// Returns the end of the chunk at `at` according to its length; `None` if the file ends before
    /// it.
    fn stated_end(&self, at: usize) -> Option<usize> {
        let length = self.bytes.get(at + 4..)?.first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        (at + CHUNK_HEADER_BYTES)
            .checked_add(length)
            .filter(|&end| end <= self.bytes.len())
    }

    /// Returns the end of the chunk at `at`, if the file ends or another chunk follows there,
    /// perhaps after a padding byte.
    fn plausible_end(&self, at: usize) -> Option<usize> {
        let end = self.stated_end(at)?;
        let padded = (self.bytes.get(end) == Some(&0)).then_some(end + 1);
        [Some(end), padded]
            .into_iter()
            .flatten()
            .find(|&end| self.is_boundary(end))
    }

    /// Returns whether the file or another chunk that fits into it follows at `at`.
    fn is_boundary(&self, at: usize) -> bool {
        at == self.bytes.len()
            || self.bytes[at..].starts_with(TRACK)
            || is_identifier(&self.bytes[at..]) && self.stated_end(at).is_some()
    }
}

/// Returns whether the bytes begin with four printable characters.
fn is_identifier(bytes: &[u8]) -> bool {
    bytes
        .first_chunk::<4>()
        .is_some_and(|id| id.iter().all(|byte| matches!(byte, b' '..=b'~')))
}

fn find(bytes: &[u8], pattern: &[u8; 4], from: usize) -> Option<usize> {
    bytes
        .get(from..)?
        .windows(4)
        .position(|window| window == pattern)
        .map(|index| from + index)
}

/// Returns the length of the MIDI file in a RIFF file (RMID), given what precedes it; `None` if
/// that is something else. A length that is too small for a MIDI file counts as unknown, the
/// largest number.
fn riff_data_length(before: &[u8]) -> Option<usize> {
    let data = before
        .len()
        .checked_sub(CHUNK_HEADER_BYTES)
        .map(|data| &before[data..])?;
    if !before.starts_with(b"RIFF") || !data.starts_with(b"data") {
        return None;
    }
    let length = u32::from_le_bytes(*data.last_chunk::<4>()?) as usize;
    Some(if length > 2 * CHUNK_HEADER_BYTES {
        length
    } else {
        usize::MAX
    })
}
