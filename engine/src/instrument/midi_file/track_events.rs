//! The events of a track. Damaged ones are skipped, as forgiving players do.

use super::damage::{Damage, plural};

/// Events that must be free of faults where reading resumes after damage.
const LOOK_AHEAD: usize = 8;
/// Longest pause between them, in ticks: more is a sign of misread bytes.
const MAX_LIKELY_PAUSE: u64 = 1 << 16;
/// Bytes after damage within which an event with a status byte is preferred to one without: data
/// bytes are easily mistaken for the latter.
const STATUS_WITHIN: usize = 64;
/// Most bytes of a SysEx message that is split into packets.
const MAX_JOINED_BYTES: usize = 64;
/// Bytes in which the end of a SysEx message of a wrong length is searched.
const MAX_UNMEASURED_BYTES: usize = 1_024;
/// Most bytes of a number; files with more than four have leading zeros.
const MAX_NUMBER_BYTES: usize = 8;
const END_OF_TRACK: u8 = 0x2F;

/// Content of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TrackEvent<'a> {
    /// Channel message, with its number of bytes.
    Channel([u8; 3], usize),
    /// First or only packet of a SysEx message, without the status byte.
    SysEx(&'a [u8]),
    /// Further packet of a SysEx message, or any other bytes.
    Escape(&'a [u8]),
    /// Meta event, with its type.
    Meta(u8, &'a [u8]),
    /// System message that has no meaning in a file.
    System,
}

/// Event with its place in the track.
#[derive(Clone, Copy, Debug)]
struct Parsed<'a> {
    /// Ticks since the previous event.
    pause: u64,
    event: TrackEvent<'a>,
    /// Position after the event.
    end: usize,
    /// Status byte for events without one; meta and SysEx events do not change it.
    running_status: Option<u8>,
}

impl Parsed<'_> {
    fn is_end_of_track(&self) -> bool {
        matches!(self.event, TrackEvent::Meta(END_OF_TRACK, _))
    }
}

/// Reason why bytes are not an event.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// The track ends within the event.
    CutShort,
    /// A data byte of a channel message is above 127.
    DataByte,
    /// There is no status byte, or the pause has too many bytes.
    Invalid,
}

/// Reads the events of a track, up to its end event or the end of its bytes.
pub(super) struct TrackEvents<'a> {
    bytes: &'a [u8],
    at: usize,
    running_status: Option<u8>,
    has_ended: bool,
    skipped: usize,
    skipped_at: usize,
    /// Number of data bytes above 127 whose eighth bit was ignored.
    masked: usize,
    is_cut_short: bool,
}

impl<'a> TrackEvents<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            running_status: None,
            has_ended: false,
            skipped: 0,
            skipped_at: 0,
            masked: 0,
            is_cut_short: false,
        }
    }

    /// Returns the position after the last event.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Returns whether the track's end event was read.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Records that the track is longer than its bytes.
    pub(super) fn set_cut_short(&mut self) {
        self.is_cut_short = true;
    }

    /// Returns whether nothing was skipped.
    pub(super) fn is_complete(&self) -> bool {
        self.skipped == 0 && self.masked == 0 && !self.is_cut_short
    }

    /// Adds what was skipped to the account; `number` is that of the track, from 1, and `start` its
    /// place in the file.
    pub(super) fn report(&self, number: usize, start: usize, damage: &mut Damage) {
        if self.skipped > 0 {
            let place = format!("of track {number} from byte {}", start + self.skipped_at);
            damage.skip_bytes(self.skipped, &place);
        }
        if self.masked > 0 {
            let data_bytes = plural(self.masked, "data byte");
            damage.add(|| {
                format!("{data_bytes} of track {number} above 127, read without the eighth bit")
            });
        }
        if self.is_cut_short {
            damage.add(|| format!("track {number} is cut short"));
        }
    }

    fn accept(&mut self, parsed: Parsed<'a>) -> (u64, TrackEvent<'a>) {
        (self.at, self.running_status) = (parsed.end, parsed.running_status);
        self.has_ended = parsed.is_end_of_track();
        (parsed.pause, parsed.event)
    }

    /// Moves to the next place from which events can be read.
    fn skip(&mut self, fault: Fault) {
        if self.skipped == 0 {
            self.skipped_at = self.at;
        }
        let from = self.at;
        self.at = self.resume(fault);
        self.skipped += self.at - from;
    }

    fn resume(&self, fault: Fault) -> usize {
        let mut without_status = None;
        for at in self.at + 1..self.bytes.len() {
            if self.reads_well(at, None, fault) {
                return at;
            }
            if without_status.is_none() && self.running_status.is_some() && fault != Fault::CutShort
            {
                without_status = self
                    .reads_well(at, self.running_status, fault)
                    .then_some(at);
            }
            if at - self.at >= STATUS_WITHIN
                && let Some(at) = without_status
            {
                return at;
            }
        }
        without_status.unwrap_or(self.bytes.len())
    }

    /// Returns whether several events can be read from `at` on, or all that are left.
    fn reads_well(&self, mut at: usize, mut running_status: Option<u8>, after: Fault) -> bool {
        let needs_all = running_status.is_some() || after == Fault::CutShort;
        for _ in 0..LOOK_AHEAD {
            if at == self.bytes.len() {
                return !needs_all;
            }
            match parse(self.bytes, at, running_status, false) {
                Ok(parsed)
                    if parsed.pause < MAX_LIKELY_PAUSE && parsed.event != TrackEvent::System =>
                {
                    if parsed.is_end_of_track() {
                        return true;
                    }
                    (at, running_status) = (parsed.end, parsed.running_status);
                }
                _ => return false,
            }
        }
        true
    }
}

impl<'a> Iterator for TrackEvents<'a> {
    type Item = (u64, TrackEvent<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        while !self.has_ended && self.at < self.bytes.len() {
            let fault = match parse(self.bytes, self.at, self.running_status, false) {
                Ok(Parsed {
                    event: TrackEvent::System,
                    end,
                    pause,
                    running_status,
                }) => {
                    // It has a length, but no place in a file.
                    if self.skipped == 0 {
                        self.skipped_at = self.at;
                    }
                    self.skipped += end - self.at;
                    return Some(self.accept(Parsed {
                        event: TrackEvent::System,
                        end,
                        pause,
                        running_status,
                    }));
                }
                Ok(parsed) => return Some(self.accept(parsed)),
                Err(fault) => fault,
            };
            if let Ok(parsed) = parse(self.bytes, self.at, self.running_status, true)
                && (parsed.end == self.bytes.len() || self.reads_well_after(&parsed))
            {
                if fault == Fault::DataByte {
                    self.masked += 1;
                }
                return Some(self.accept(parsed));
            }
            let is_cut = fault == Fault::CutShort;
            let before = self.at;
            self.skip(fault);
            if is_cut && self.at == self.bytes.len() {
                self.skipped -= self.at - before;
                self.is_cut_short = true;
            }
        }
        None
    }
}

impl<'a> TrackEvents<'a> {
    /// Returns whether events can be read after one whose data bytes were corrected.
    fn reads_well_after(&self, parsed: &Parsed<'a>) -> bool {
        let mut next = *parsed;
        for _ in 0..LOOK_AHEAD {
            // A further fault in a data byte alone does not tell against this one.
            match parse(self.bytes, next.end, next.running_status, true) {
                Ok(parsed) if parsed.pause < MAX_LIKELY_PAUSE => next = parsed,
                _ => return false,
            }
            if next.is_end_of_track() || next.end == self.bytes.len() {
                return true;
            }
        }
        true
    }
}

/// Parses the event at `at`. If it `is_lenient`, it ignores the eighth bit of data bytes, and a
/// SysEx message that is longer than the track ends where its end byte is.
fn parse(
    bytes: &[u8],
    at: usize,
    running_status: Option<u8>,
    is_lenient: bool,
) -> Result<Parsed<'_>, Fault> {
    let (pause, at) = variable_length(bytes, at)?;
    let &first = bytes.get(at).ok_or(Fault::CutShort)?;
    let (status, at) = match running_status {
        Some(status) if first < 0x80 => (status, at),
        _ if first >= 0x80 => (first, at + 1),
        _ => return Err(Fault::Invalid),
    };
    let data_bytes = match status {
        0xC0..=0xDF | 0xF1 | 0xF3 => 1,
        0x80..=0xBF | 0xE0..=0xEF | 0xF2 => 2,
        _ => 0,
    };
    let parsed = |event, end| Parsed {
        pause,
        event,
        end,
        running_status,
    };
    match status {
        0xF0 | 0xF7 => {
            let (data, end) = match payload(bytes, at) {
                Ok(found) => found,
                Err(fault) => {
                    let rest = bytes
                        .get(at..)
                        .filter(|_| status == 0xF0 && is_lenient)
                        .ok_or(fault)?;
                    let rest = &rest[..rest.len().min(MAX_UNMEASURED_BYTES)];
                    let length = rest
                        .iter()
                        .position(|byte| *byte == SysExJoiner::END)
                        .ok_or(fault)?;
                    (&rest[..0], at + length + 1)
                }
            };
            let event = if status == 0xF0 {
                TrackEvent::SysEx(data)
            } else {
                TrackEvent::Escape(data)
            };
            Ok(parsed(event, end))
        }
        0xFF => {
            let &kind = bytes.get(at).ok_or(Fault::CutShort)?;
            let (data, end) = payload(bytes, at + 1)?;
            Ok(parsed(TrackEvent::Meta(kind, data), end))
        }
        _ => {
            let data = bytes.get(at..at + data_bytes).ok_or(Fault::CutShort)?;
            if !is_lenient && data.iter().any(|byte| *byte > 127) {
                return Err(Fault::DataByte);
            }
            let end = at + data_bytes;
            if status >= 0xF0 {
                return Ok(parsed(TrackEvent::System, end));
            }
            let mut message = [status, 0, 0];
            message[1..]
                .iter_mut()
                .zip(data)
                .for_each(|(to, from)| *to = from & 127);
            let event = TrackEvent::Channel(message, 1 + data_bytes);
            Ok(Parsed {
                pause,
                event,
                end,
                running_status: Some(status),
            })
        }
    }
}

/// Returns a number of variable length, and the position after it.
fn variable_length(bytes: &[u8], at: usize) -> Result<(u64, usize), Fault> {
    /// Largest number: four bytes. Further ones may only be leading zeros.
    const MAX: u64 = (1 << 28) - 1;
    let mut number = 0;
    for (index, &byte) in bytes.get(at..).unwrap_or_default().iter().enumerate() {
        number = number << 7 | u64::from(byte & 127);
        if number > MAX || index == MAX_NUMBER_BYTES {
            return Err(Fault::Invalid);
        }
        if byte < 128 {
            return Ok((number, at + index + 1));
        }
    }
    Err(Fault::CutShort)
}

/// Returns bytes with their length before them, and the position after them.
fn payload(bytes: &[u8], at: usize) -> Result<(&[u8], usize), Fault> {
    let (length, at) = variable_length(bytes, at)?;
    let end = at + length as usize;
    Ok((bytes.get(at..end).ok_or(Fault::CutShort)?, end))
}

/// Joins the packets of SysEx messages.
#[derive(Default)]
pub(super) struct SysExJoiner {
    message: Vec<u8>,
}

impl SysExJoiner {
    const START: u8 = 0xF0;
    const END: u8 = 0xF7;

    /// Begins a message and returns it as it is so far; some writers leave out the end byte.
    pub(super) fn begin<'a>(&'a mut self, data: &'a [u8]) -> &'a [u8] {
        self.message.clear();
        self.message.push(Self::START);
        self.append(data)
    }

    /// Adds a packet and returns the message so far; after its end, the packet itself.
    pub(super) fn append<'a>(&'a mut self, data: &'a [u8]) -> &'a [u8] {
        if matches!(self.message.last(), None | Some(&Self::END)) {
            return data;
        }
        let room = MAX_JOINED_BYTES.saturating_sub(self.message.len());
        self.message
            .extend_from_slice(&data[..data.len().min(room)]);
        if data.last() == Some(&Self::END) && data.len() > room {
            // Longer messages are none of those that are understood.
            self.message.clear();
        }
        &self.message
    }
}
