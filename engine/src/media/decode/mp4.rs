//! Edit lists of MP4, M4A and MOV (ISO/IEC 14496-12), and what iTunes writes instead: which part of
//! a track is sound.
//!
//! An AAC encoder adds 1,024 to 2,112 samples before the sound, and some after it.

use std::io::{self, Read, Seek};
use std::ops::Range;

use super::pcm::{Refusal, number, read_at, read_exactly};

/// Largest index of a file that is read, bytes; that of a film of hours has a tenth.
const MAX_INDEX_BYTES: u64 = 256 << 20;
/// Most boxes at the top level: fragments of a stream follow the index.
const MAX_BOXES: usize = 10_000;

/// Box of QuickTime's description of samples that are not big-endian.
const LITTLE_ENDIAN: &[u8; 6] = b"enda\x00\x01";

/// Audible parts of a track, and its byte order, which Symphonia does not report.
#[derive(Debug, PartialEq)]
pub struct TrackEdits {
    /// Identifier of the track.
    pub id: u32,
    /// Units of [`parts`](Self::parts) per second.
    timescale: u64,
    /// Ascending parts; empty for all.
    parts: Vec<Range<u64>>,
    /// Samples are big-endian; Symphonia takes those of 24 bits and more as little-endian.
    pub big_endian: bool,
}

impl TrackEdits {
    /// Returns the parts in frames at a sample rate in Hz; `None` for all.
    pub fn frames(&self, sample_rate: u64) -> Option<Vec<Range<u64>>> {
        let frame = |time: u64| match time {
            u64::MAX => u64::MAX,
            time => scaled(time, sample_rate, self.timescale),
        };
        let frames = self
            .parts
            .iter()
            .map(|part| frame(part.start)..frame(part.end))
            .collect();
        (!self.parts.is_empty()).then_some(frames)
    }
}

/// Reads the edits of all tracks; none if the file is of another kind.
///
/// # Errors
/// The file cannot be read, or a track is not played from its start to its end.
pub fn edits<S: Read + Seek>(source: &mut S) -> Result<Vec<TrackEdits>, Refusal> {
    let Some(index) = index(source)? else {
        return Ok(Vec::new());
    };
    let movie_scale = child(&index, b"mvhd").and_then(timescale).unwrap_or(1);
    let itunes =
        descend(&index, &[b"udta", b"meta"]).and_then(|meta| itunes_lengths(meta.get(4..)?));
    let tracks = boxes(&index).filter(|(name, _)| name == b"trak");
    tracks
        .filter_map(|(_, track)| track_edits(track, movie_scale, itunes).transpose())
        .collect()
}

/// Returns the index, the content of `moov`.
fn index<S: Read + Seek>(source: &mut S) -> io::Result<Option<Vec<u8>>> {
    let mut position = 0_u64;
    for count in 0..MAX_BOXES {
        let mut header = [0; 16];
        let length = read_at(source, position, &mut header)?;
        if length < 8 || (count == 0 && header[4..8] != *b"ftyp") {
            break;
        }
        let (size, header_bytes) = match number(&header[..4], true) {
            1 => (number(&header[8..], true), 16),
            size => (size, 8),
        };
        if header[4..8] == *b"moov" && (header_bytes..MAX_INDEX_BYTES).contains(&size) {
            return read_exactly(
                source,
                position + header_bytes,
                (size - header_bytes) as usize,
            );
        }
        match position.checked_add(size) {
            Some(next) if size >= header_bytes => position = next,
            _ => break,
        }
    }
    Ok(None)
}

fn track_edits(
    track: &[u8],
    movie_scale: u64,
    itunes: Option<[u64; 3]>,
) -> Result<Option<TrackEdits>, Refusal> {
    let media = child(track, b"mdia").unwrap_or_default();
    let handler = child(media, b"hdlr").and_then(|handler| handler.get(8..12));
    let identifier = child(track, b"tkhd").and_then(|header| versioned(header, 12, 20, 4));
    let timescale = child(media, b"mdhd").and_then(timescale);
    let (Some(id), Some(timescale), Some(b"soun")) = (identifier, timescale, handler) else {
        return Ok(None);
    };
    let times = descend(media, &[b"minf", b"stbl", b"stts"])
        .map(duration)
        .filter(|&total| total > 0);
    let list = descend(track, &[b"edts", b"elst"]).unwrap_or_default();
    let mut parts = parts(list, movie_scale, timescale, times)?;
    if let ([] | [Range { start: 0, .. }], Some([delay, _, length])) = (parts.as_slice(), itunes)
        && length > 0
    {
        // In samples, which are also the units of tracks with such lengths.
        parts.clear();
        parts.push(delay..delay.saturating_add(length));
    }
    let entry = descend(media, &[b"minf", b"stbl", b"stsd"]).unwrap_or_default();
    let has_order = matches!(
        entry.get(12..16),
        Some(b"in24" | b"in32" | b"fl32" | b"fl64")
    );
    let big_endian = has_order && !entry.windows(6).any(|bytes| bytes == LITTLE_ENDIAN);
    Ok(Some(TrackEdits {
        id: id as u32,
        timescale,
        parts,
        big_endian,
    }))
}

/// Returns the parts that an edit list plays, in units of the track. Durations are in units of the
/// movie, which may be coarse; `total` is the length of the track.
fn parts(
    list: &[u8],
    movie_scale: u64,
    timescale: u64,
    total: Option<u64>,
) -> Result<Vec<Range<u64>>, Refusal> {
    let is_long = list.first() == Some(&1);
    let entry_bytes = if is_long { 20 } else { 12 };
    let mut parts: Vec<Range<u64>> = Vec::new();
    for entry in list.get(8..).unwrap_or_default().chunks_exact(entry_bytes) {
        let (duration, start) = if is_long {
            (
                number(&entry[..8], true),
                number(&entry[8..16], true).cast_signed(),
            )
        } else {
            (
                number(&entry[..4], true),
                i64::from((number(&entry[4..8], true) as u32).cast_signed()),
            )
        };
        let Ok(start) = u64::try_from(start) else {
            // An empty edit: a pause before the sound is the offset to the picture.
            if parts.is_empty() {
                continue;
            }
            return Err(
                "its edit list has a pause within the sound, which is not supported".into(),
            );
        };
        let rate = number(&entry[entry_bytes - 4..], true);
        if rate != 1 << 16 {
            return Err("its edit list changes the speed, which is not supported".into());
        }
        let mut end = match duration {
            0 => u64::MAX,
            duration => start.saturating_add(scaled(duration, timescale, movie_scale)),
        };
        // The last unit of the movie is as good as the end.
        if let Some(total) =
            total.filter(|&total| end.abs_diff(total) <= timescale.div_ceil(movie_scale))
        {
            end = total;
        }
        // An edit may begin after the end.
        let end = end.max(start);
        match parts.last_mut() {
            Some(last) if start < last.end => {
                return Err(
                    "its edit list plays sound twice or out of order, which is not supported"
                        .into(),
                );
            }
            // Seamless.
            Some(last) if start == last.end => last.end = end,
            _ => parts.push(start..end),
        }
    }
    Ok(parts)
}

/// Returns delay, padding and length in samples, which iTunes writes as text.
fn itunes_lengths(meta: &[u8]) -> Option<[u64; 3]> {
    let list = child(meta, b"ilst")?;
    let is_lengths =
        |item: &&[u8]| child(item, b"name").is_some_and(|name| name.ends_with(b"iTunSMPB"));
    let item = boxes(list)
        .filter(|(name, _)| name == b"----")
        .map(|(_, item)| item)
        .find(is_lengths)?;
    let text = std::str::from_utf8(child(item, b"data")?.get(8..)?).ok()?;
    let mut fields = text
        .split_whitespace()
        .skip(1)
        .map(|field| u64::from_str_radix(field, 16));
    Some([
        fields.next()?.ok()?,
        fields.next()?.ok()?,
        fields.next()?.ok()?,
    ])
}

/// Returns the sum of the durations in a table of times.
fn duration(table: &[u8]) -> u64 {
    let entries = table.get(8..).unwrap_or_default().chunks_exact(8);
    let product =
        |entry: &[u8]| number(&entry[..4], true).saturating_mul(number(&entry[4..], true));
    entries.map(product).fold(0, u64::saturating_add)
}

/// Returns the units per second of a movie's or track's header.
fn timescale(header: &[u8]) -> Option<u64> {
    versioned(header, 12, 20, 4).filter(|&scale| scale > 0)
}

/// Returns a number whose place depends on the version of the box.
fn versioned(content: &[u8], place: usize, long_place: usize, length: usize) -> Option<u64> {
    let place = if *content.first()? == 1 {
        long_place
    } else {
        place
    };
    Some(number(content.get(place..place + length)?, true))
}

/// Converts a number of units, rounded.
fn scaled(time: u64, to: u64, from: u64) -> u64 {
    let (time, to, from) = (u128::from(time), u128::from(to), u128::from(from));
    ((time * to + from / 2) / from).min(u128::from(u64::MAX) - 1) as u64
}

fn descend<'a>(content: &'a [u8], path: &[&[u8; 4]]) -> Option<&'a [u8]> {
    path.iter()
        .try_fold(content, |content, name| child(content, name))
}

fn child<'a>(content: &'a [u8], wanted: &[u8; 4]) -> Option<&'a [u8]> {
    boxes(content)
        .find(|(name, _)| name == wanted)
        .map(|(_, content)| content)
}

/// Returns names and contents of boxes, up to the first that does not fit.
fn boxes(mut content: &[u8]) -> impl Iterator<Item = ([u8; 4], &[u8])> {
    std::iter::from_fn(move || {
        let (header, rest) = content.split_first_chunk::<8>()?;
        let size = number(&header[..4], true) as usize;
        let inner = rest.get(..size.checked_sub(8)?)?;
        content = &rest[inner.len()..];
        Some((*header.last_chunk()?, inner))
    })
}

#[cfg(test)]
#[allow(
    clippy::single_range_in_vec_init,
    reason = "lists of edits may have one"
)]
mod tests {
    use super::*;

    /// Encodes an edit list of (duration, start, speed).
    fn list(edits: &[(u32, i32, u32)]) -> Vec<u8> {
        let mut list = vec![0; 8];
        for (duration, start, speed) in edits {
            list.extend_from_slice(&duration.to_be_bytes());
            list.extend_from_slice(&start.to_be_bytes());
            list.extend_from_slice(&speed.to_be_bytes());
        }
        list
    }

    fn found(edits: &[(u32, i32, u32)], total: u64) -> Result<Vec<Range<u64>>, String> {
        parts(&list(edits), 1_000, 44_100, Some(total))
            .map_err(|refusal| refusal.about("a").to_string())
    }

    const NORMAL: u32 = 1 << 16;

    #[test]
    fn edits_are_parts_of_the_track() {
        assert_eq!(found(&[], 50_000), Ok(vec![]));
        assert_eq!(
            found(&[(0, 1_024, NORMAL)], 50_000),
            Ok(vec![1_024..u64::MAX])
        );
        assert_eq!(
            found(&[(100, 1_024, NORMAL)], 50_000),
            Ok(vec![1_024..5_434])
        );
        // Durations in milliseconds do not cut the end off.
        assert_eq!(
            found(&[(250, 1_024, NORMAL)], 12_049 + 20),
            Ok(vec![1_024..12_069])
        );
        assert_eq!(
            found(&[(250, 1_024, NORMAL)], 12_049 + 60),
            Ok(vec![1_024..12_049])
        );
        assert_eq!(
            found(&[(1, 50_030, NORMAL)], 50_040),
            Ok(vec![50_030..50_040])
        );
        assert_eq!(
            found(&[(1, 50_030, NORMAL)], 50_029),
            Ok(vec![50_030..50_030])
        );
        assert_eq!(
            found(&[(1, 50_030, NORMAL)], 50_035),
            Ok(vec![50_030..50_035])
        );
        // A pause before the sound, two parts, and two that touch.
        assert_eq!(
            found(&[(20, -1, NORMAL), (100, 1_024, NORMAL)], 50_000),
            Ok(vec![1_024..5_434])
        );
        assert_eq!(
            found(&[(100, 0, NORMAL), (100, 8_820, NORMAL)], 50_000),
            Ok(vec![0..4_410, 8_820..13_230])
        );
        assert_eq!(
            found(&[(100, 0, NORMAL), (100, 4_410, NORMAL)], 50_000),
            Ok(vec![0..8_820])
        );
    }

    #[test]
    fn edits_that_cannot_be_streamed_are_refused() {
        let refused = |edits: &[(u32, i32, u32)]| found(edits, 50_000).unwrap_err();
        assert!(
            refused(&[(100, 8_820, NORMAL), (100, 0, NORMAL)])
                .ends_with("twice or out of order, which is not supported")
        );
        assert!(
            refused(&[(100, 0, NORMAL), (100, -1, NORMAL)])
                .ends_with("a pause within the sound, which is not supported")
        );
        assert!(refused(&[(100, 0, 0)]).ends_with("changes the speed, which is not supported"));
    }
}
