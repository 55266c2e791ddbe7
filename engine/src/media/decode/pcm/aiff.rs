//! AIFF and AIFC (Apple, 1989 and 1991).

use symphonia::core::io::MediaSource;

use super::{Encoding, Layout, MAX_CHUNKS, Number, Refusal, number, read_exactly};

/// Length that a recorder did not know.
const UNKNOWN: u64 = u32::MAX as u64;

/// Sound chunk.
struct Sound {
    start: u64,
    /// `None` for all that follows.
    bytes: Option<u64>,
    /// The sound is padded to whole blocks of a disk.
    is_aligned: bool,
}

/// Finds the sound of a file that begins at `base` with `start`.
///
/// # Errors
/// The file cannot be read, has no sound, or its samples are not supported.
pub fn layout<S: MediaSource>(source: &mut S, base: u64, start: &[u8]) -> Result<Layout, Refusal> {
    let is_compressed = start[8..12] == *b"AIFC";
    let length = source.byte_len().unwrap_or(0);
    let (mut common, mut sound) = (None, None);
    let mut position = base + 12;
    for _ in 0..MAX_CHUNKS {
        let Some(header) = read_exactly(source, position, 8)? else {
            break;
        };
        let (start, size) = (position + 8, number(&header[4..], true));
        match &header[..4] {
            b"COMM" => {
                let least = if is_compressed { 22 } else { 18 };
                common = read_exactly(source, start, least)?.filter(|_| size >= least as u64);
            }
            b"SSND" if sound.is_none() => sound = read_sound(source, start, size)?,
            _ => (),
        }
        if let (Some(common), Some(sound)) = (&common, &sound) {
            return with_format(common, sound, is_compressed);
        }
        // Where the length is unknown nothing can follow.
        position = start + size + size % 2;
        if position >= length {
            break;
        }
    }
    Err(if common.is_none() {
        "the AIFF file does not describe its sound"
    } else {
        "the AIFF file has no sound"
    }
    .into())
}

fn read_sound<S: MediaSource>(
    source: &mut S,
    start: u64,
    size: u64,
) -> Result<Option<Sound>, Refusal> {
    let Some(fields) = read_exactly(source, start, 8)? else {
        return Ok(None);
    };
    let [offset, block] = [0, 4].map(|from| number(&fields[from..from + 4], true));
    let bytes =
        match size {
            // Of a recorder that crashed, or wrote to a pipe.
            0 | UNKNOWN => None,
            size => {
                let bytes = size.checked_sub(8 + offset);
                Some(bytes.ok_or_else(|| {
                    format!("the sound begins {offset} bytes into a chunk of {size}")
                })?)
            }
        };
    Ok(Some(Sound {
        start: start + 8 + offset,
        bytes,
        is_aligned: block != 0,
    }))
}

fn with_format(common: &[u8], sound: &Sound, is_compressed: bool) -> Result<Layout, Refusal> {
    let field = |from: usize, length: usize| number(&common[from..from + length], true);
    let (channels, frames, bits) = (field(0, 2), field(2, 4), field(6, 2));
    let sample_rate = extended(&common[8..18]);
    let integers = |big_endian| match bits {
        1..=32 => Ok(Encoding::signed(bits.div_ceil(8) as usize, big_endian)),
        _ => Err(Refusal::from(format!(
            "AIFF samples of {bits} bits are not supported"
        ))),
    };
    let encoding = match if is_compressed {
        &common[18..22]
    } else {
        b"NONE"
    } {
        b"NONE" | b"none" | b"twos" | b"TWOS" => integers(true)?,
        b"sowt" | b"SOWT" => integers(false)?,
        b"raw " | b"RAW " if bits <= 8 => Encoding::byte(Number::Unsigned),
        b"in16" | b"IN16" => Encoding::signed(2, true),
        b"in24" | b"IN24" => Encoding::signed(3, true),
        b"42ni" | b"42NI" => Encoding::signed(3, false),
        b"in32" | b"IN32" => Encoding::signed(4, true),
        b"23ni" | b"23NI" => Encoding::signed(4, false),
        b"fl32" | b"FL32" => Encoding::float(4, true),
        b"fl64" | b"FL64" => Encoding::float(8, true),
        b"ulaw" | b"ULAW" => Encoding::byte(Number::MuLaw),
        b"alaw" | b"ALAW" => Encoding::byte(Number::ALaw),
        name => {
            return Err(
                format!("the AIFC codec `{}` is not supported", name.escape_ascii()).into(),
            );
        }
    };
    let mut bytes = sound.bytes;
    if sound.is_aligned {
        // The padding up to the end of the last block is no sound.
        let whole = frames * channels * encoding.bytes as u64;
        bytes = Some(bytes.map_or(whole, |bytes| bytes.min(whole)));
    }
    Ok(Layout {
        encoding,
        channels: channels as u32,
        sample_rate,
        start: sound.start,
        bytes,
    })
}

/// Decodes a positive 80-bit float, rounded down.
fn extended(bytes: &[u8]) -> u64 {
    let exponent = number(&bytes[..2], true);
    // The mantissa is 1 at the exponent 16,383.
    match 16_383 + 63 - exponent as i64 {
        shift @ 0..=63 => number(&bytes[2..], true) >> shift,
        shift if shift > 63 => 0,
        _ => u64::MAX,
    }
}
