//! FLAC files whose header Symphonia refuses.

use std::io::{self, Read, Seek};

use super::pcm::{number, read_exactly};

/// Least block that the format allows; encoders of live streams write 0.
const LEAST_BLOCK: u64 = 16;
/// Most blocks of metadata.
const MAX_BLOCKS: usize = 1_000;

/// Returns the first bytes of a FLAC file at `base` with a least block that is not below 16; `None`
/// if they need no repair or are of another format.
///
/// # Errors
/// Returns the error of the source.
pub fn repaired_header<S: Read + Seek>(source: &mut S, base: u64) -> io::Result<Option<Vec<u8>>> {
    let Some(mut header) = read_exactly(source, base, 12)? else {
        return Ok(None);
    };
    let [least, largest] = [8, 10].map(|from| number(&header[from..from + 2], true));
    if !header.starts_with(b"fLaC") || least >= LEAST_BLOCK || largest < LEAST_BLOCK {
        return Ok(None);
    }
    // Equal numbers stand for blocks of one length, which the first frame tells.
    let mut position = base + 4;
    for _ in 0..MAX_BLOCKS {
        let Some(start) = read_exactly(source, position, 4)? else {
            return Ok(None);
        };
        position += 4 + number(&start[1..], true);
        if start[0] & 0x80 != 0 {
            break;
        }
    }
    let Some(frame) = read_exactly(source, position, 2)? else {
        return Ok(None);
    };
    let least = if frame[1] & 1 == 0 {
        largest
    } else {
        LEAST_BLOCK
    };
    header[8..10].copy_from_slice(&(least as u16).to_be_bytes());
    Ok(Some(header))
}
