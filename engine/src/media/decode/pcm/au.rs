//! AU files of Sun and NeXT.

use super::{Encoding, Layout, Number, Refusal, number};

/// Length that a recorder did not know.
const UNKNOWN: u64 = u32::MAX as u64;

/// Parses the header of a file that begins at `base`.
///
/// # Errors
/// The header is incomplete, or the encoding not supported.
pub fn layout(start: &[u8], base: u64) -> Result<Layout, Refusal> {
    // DEC's files have the bytes of all numbers in the other order.
    let big_endian = start.starts_with(b".snd");
    let field = |index: usize| {
        start
            .get(4 * index..4 * index + 4)
            .map(|bytes| number(bytes, big_endian))
    };
    let [
        Some(offset),
        Some(bytes),
        Some(code),
        Some(sample_rate),
        Some(channels),
    ] = [1, 2, 3, 4, 5].map(field)
    else {
        return Err("the AU header is incomplete".into());
    };
    let encoding = match code {
        1 => Encoding::byte(Number::MuLaw),
        2..=5 => Encoding::signed(code as usize - 1, big_endian),
        6 => Encoding::float(4, big_endian),
        7 => Encoding::float(8, big_endian),
        27 => Encoding::byte(Number::ALaw),
        _ => return Err(format!("the encoding {code} of AU files is not supported").into()),
    };
    if offset < 24 {
        return Err(
            format!("the AU header says that its sound begins in it, at byte {offset}").into(),
        );
    }
    let bytes = Some(bytes).filter(|&bytes| bytes != UNKNOWN);
    Ok(Layout {
        encoding,
        channels: channels as u32,
        sample_rate,
        start: base + offset,
        bytes,
    })
}
