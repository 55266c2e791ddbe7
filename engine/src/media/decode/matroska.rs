//! Delays of codecs in Matroska and WebM files (RFC 9559): what an encoder added before and after
//! the sound.

use std::io::{self, Read, Seek, SeekFrom};

use super::pcm::{number, read_at, read_exactly};

const EBML: u64 = 0x1a45_dfa3;
const SEGMENT: u64 = 0x1853_8067;
const TRACKS: u64 = 0x1654_ae6b;
const TRACK: u64 = 0xae;
const TRACK_NUMBER: u64 = 0xd7;
const CODEC_DELAY: u64 = 0x56aa;
const CLUSTER: u64 = 0x1f43_b675;
const BLOCK_GROUP: u64 = 0xa0;
const BLOCK: u64 = 0xa1;
const DISCARD_PADDING: u64 = 0x75a2;

/// Length that a writer to a pipe does not know.
const UNKNOWN: u64 = u64::MAX;
/// Longest element that is read as a whole, bytes.
const MAX_ELEMENT_BYTES: u64 = 16 << 20;
/// Most elements of a file that are looked at.
const MAX_ELEMENTS: usize = 1 << 20;

/// Delay of a track.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrackDelay {
    /// Number of the track.
    pub number: u64,
    /// Delay before the sound, nanoseconds.
    pub start_ns: u64,
    /// Padding after the sound, nanoseconds.
    pub end_ns: u64,
}

impl TrackDelay {
    /// Converts nanoseconds to frames at a sample rate in Hz.
    pub fn frames(time_ns: u64, sample_rate: u64) -> u64 {
        ((u128::from(time_ns) * u128::from(sample_rate) + 500_000_000) / 1_000_000_000) as u64
    }
}

/// Reads the delays of all tracks; none if the file is of another kind.
///
/// # Errors
/// Returns the error of the source.
pub fn delays<S: Read + Seek>(source: &mut S) -> io::Result<Vec<TrackDelay>> {
    let mut delays = Vec::new();
    let mut last_cluster = None;
    let mut position = 0;
    for count in 0..MAX_ELEMENTS {
        let Some(element) = element(source, position)? else {
            break;
        };
        if count == 0 && element.id != EBML {
            return Ok(delays);
        }
        match element.id {
            TRACKS => {
                let content = content(source, &element)?;
                delays = elements(&content)
                    .filter(|(id, _)| *id == TRACK)
                    .map(|(_, track)| delay(track))
                    .collect();
            }
            CLUSTER if element.bytes != UNKNOWN => last_cluster = Some(element),
            BLOCK_GROUP => find_padding(&content(source, &element)?, &mut delays),
            _ => (),
        }
        let enters = element.id == SEGMENT || element.bytes == UNKNOWN;
        match element
            .start
            .checked_add(if enters { 0 } else { element.bytes })
        {
            Some(next) => position = next,
            None => break,
        }
    }
    // Only the last block of a track has padding.
    if let Some(Element { start, bytes, .. }) = last_cluster {
        let mut position = start;
        while let Some(element) = element(source, position)?.filter(|_| position - start < bytes) {
            if element.id == BLOCK_GROUP {
                find_padding(&content(source, &element)?, &mut delays);
            }
            let Some(next) = element.start.checked_add(element.bytes) else {
                break;
            };
            position = next;
        }
    }
    Ok(delays)
}

fn delay(track: &[u8]) -> TrackDelay {
    let field = |wanted| {
        elements(track)
            .find(|(id, _)| *id == wanted)
            .map_or(0, |(_, value)| unsigned(value))
    };
    TrackDelay {
        number: field(TRACK_NUMBER),
        start_ns: field(CODEC_DELAY),
        end_ns: 0,
    }
}

/// Takes the padding of a group of blocks over.
fn find_padding(group: &[u8], delays: &mut [TrackDelay]) {
    let field = |wanted| {
        elements(group)
            .find(|(id, _)| *id == wanted)
            .map(|(_, value)| value)
    };
    let (Some(block), Some(padding)) = (field(BLOCK), field(DISCARD_PADDING)) else {
        return;
    };
    let Some((number, _)) = variable(block) else {
        return;
    };
    if let Some(delay) = delays.iter_mut().find(|delay| delay.number == number) {
        // A negative number would discard sound at the start of a block.
        delay.end_ns = if padding.first().is_some_and(|byte| byte & 0x80 != 0) {
            0
        } else {
            unsigned(padding)
        };
    }
}

/// Element of a file.
#[derive(Clone, Copy)]
struct Element {
    id: u64,
    /// Position of the content.
    start: u64,
    /// Length of the content.
    bytes: u64,
}

/// Reads the header of the element at a position; `None` at the end.
fn element<S: Read + Seek>(source: &mut S, position: u64) -> io::Result<Option<Element>> {
    let mut header = [0; 12];
    let length = read_at(source, position, &mut header)?;
    Ok(
        parse_header(&header[..length]).map(|(id, bytes, length)| Element {
            id,
            start: position + length as u64,
            bytes,
        }),
    )
}

/// Reads the content of an element; nothing of what is absurdly long.
fn content<S: Read + Seek>(source: &mut S, element: &Element) -> io::Result<Vec<u8>> {
    if element.bytes > MAX_ELEMENT_BYTES {
        source.seek(SeekFrom::Start(element.start))?;
        return Ok(Vec::new());
    }
    Ok(read_exactly(source, element.start, element.bytes as usize)?.unwrap_or_default())
}

/// Returns identifiers and contents of elements, up to the first that does not fit.
fn elements(mut content: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    std::iter::from_fn(move || {
        let (id, bytes, length) = parse_header(content)?;
        let inner = content[length..].get(..usize::try_from(bytes).ok()?)?;
        content = &content[length + inner.len()..];
        Some((id, inner))
    })
}

/// Returns identifier, length of the content and length of the header.
fn parse_header(bytes: &[u8]) -> Option<(u64, u64, usize)> {
    let id_length = bytes.first()?.leading_zeros() as usize + 1;
    let id = number(bytes.get(..id_length).filter(|_| id_length <= 4)?, true);
    let (size, size_length) = variable(&bytes[id_length..])?;
    Some((id, size, id_length + size_length))
}

/// Decodes a number of variable length; returns it with its length. One of ones only is
/// [`UNKNOWN`].
fn variable(bytes: &[u8]) -> Option<(u64, usize)> {
    let length = bytes.first()?.leading_zeros() as usize + 1;
    let marked = number(bytes.get(..length).filter(|_| length <= 8)?, true);
    let mask = (1_u64 << (7 * length)) - 1;
    let value = marked & mask;
    Some((if value == mask { UNKNOWN } else { value }, length))
}

/// Decodes an unsigned number; 0 if it is too long.
fn unsigned(bytes: &[u8]) -> u64 {
    if bytes.len() <= 8 {
        number(bytes, true)
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes an element with a length of one byte.
    fn nested(id: &[u8], contents: &[&[u8]]) -> Vec<u8> {
        let content = contents.concat();
        [id, &[0x80 | content.len() as u8], &content].concat()
    }

    /// A file of one AAC track at 44.1 kHz, as ffmpeg 7 writes it; the lengths of segment and
    /// clusters may be unknown.
    fn file(is_stream: bool, padding: &[u8]) -> Vec<u8> {
        let delay = nested(&[0x56, 0xaa], &[&23_219_955_u32.to_be_bytes()]);
        let track = nested(&[0xae], &[&nested(&[0xd7], &[&[1]]), &delay]);
        let tracks = nested(&[0x16, 0x54, 0xae, 0x6b], &[&track]);
        let group = |padding: &[u8]| {
            nested(
                &[0xa0],
                &[&nested(&[0xa1], &[&[0x81, 0, 0, 0, 7, 7]]), padding],
            )
        };
        let padding = nested(&[0x75, 0xa2], &[padding]);
        let clusters = [group(&[]), group(&padding)].map(|group| {
            let contents: [&[u8]; 2] = [&nested(&[0xe7], &[&[0]]), &group];
            let id = [0x1f, 0x43, 0xb6, 0x75];
            if is_stream {
                [&id, &[0xff][..], &contents.concat()].concat()
            } else {
                nested(&id, &contents)
            }
        });
        let segment = [tracks, clusters.concat()].concat();
        [
            &nested(&[0x1a, 0x45, 0xdf, 0xa3], &[&[0xec, 0x80]]),
            &[0x18, 0x53, 0x80, 0x67, 0xff][..],
            &segment,
        ]
        .concat()
    }

    #[test]
    fn delay_and_padding_are_found() {
        for is_stream in [false, true] {
            let found =
                |padding: &[u8]| delays(&mut io::Cursor::new(file(is_stream, padding))).unwrap();
            let expected = TrackDelay {
                number: 1,
                start_ns: 23_219_955,
                end_ns: 5_419_501,
            };
            assert_eq!(
                found(&5_419_501_u32.to_be_bytes()),
                [expected],
                "{is_stream}"
            );
            assert_eq!(
                found(&[0xff]),
                [TrackDelay {
                    end_ns: 0,
                    ..expected
                }]
            );
            assert_eq!(
                [expected.start_ns, expected.end_ns].map(|time| TrackDelay::frames(time, 44_100)),
                [1_024, 239]
            );
        }
    }

    #[test]
    fn other_and_damaged_files_have_none() {
        let whole = file(false, &[0, 1]);
        for length in 0..whole.len() {
            assert!(
                delays(&mut io::Cursor::new(&whole[..length]))
                    .unwrap()
                    .len()
                    <= 1
            );
        }
        assert_eq!(delays(&mut io::Cursor::new(b"RIFF")).unwrap(), []);
    }
}
