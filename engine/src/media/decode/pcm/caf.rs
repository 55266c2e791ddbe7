//! Apple's Core Audio Format.

use std::io::{Read, Seek};

use super::{
    Contents, Encoding, Layout, MAX_CHUNKS, Number, Refusal, alignment, number, read_exactly,
};

/// Length of a chunk that reaches to the end of the file.
const UNKNOWN: u64 = u64::MAX;

/// Finds the sound of a file that begins at `base`.
///
/// # Errors
/// The file cannot be read, or its samples are not supported.
pub fn contents<S: Read + Seek>(source: &mut S, base: u64) -> Result<Contents, Refusal> {
    let mut position = base + 8;
    let mut description = None;
    for _ in 0..MAX_CHUNKS {
        let header =
            read_exactly(source, position, 12)?.ok_or("there is no sound in the CAF file")?;
        let (start, size) = (position + 12, number(&header[4..], true));
        match &header[..4] {
            b"desc" => description = read_exactly(source, start, 32)?,
            b"data" => {
                let description = description.ok_or("the CAF file does not describe its sound")?;
                // The chunk begins with the number of edits, four bytes.
                let bytes = Some(size)
                    .filter(|&size| size != UNKNOWN)
                    .map(|size| size.saturating_sub(4));
                return samples(source, &description, start + 4, bytes);
            }
            _ => (),
        }
        position = start
            .checked_add(size)
            .ok_or("there is no sound in the CAF file")?;
    }
    Err("there is no sound in the CAF file".into())
}

/// Returns the samples that a description chunk describes.
fn samples<S: Read + Seek>(
    source: &mut S,
    description: &[u8],
    start: u64,
    bytes: Option<u64>,
) -> Result<Contents, Refusal> {
    let field = |index: usize| number(&description[8 + 4 * index..][..4], true);
    let [flags, packet_bytes, packet_frames, channels, bits] = [1, 2, 3, 4, 5].map(field);
    let sample_rate = f64::from_bits(number(&description[..8], true)) as u64;
    let big_endian = flags & 2 == 0;
    let mut layout = Layout {
        encoding: Encoding::signed(1, big_endian),
        channels: channels as u32,
        sample_rate,
        start,
        bytes,
    };
    layout.encoding = match &description[8..12] {
        b"lpcm" => {
            let sample_bytes = packet_bytes.checked_div(channels).unwrap_or(0);
            if packet_frames != 1
                || sample_bytes * channels != packet_bytes
                || !(1..=8).contains(&sample_bytes)
            {
                return Err(format!(
                    "linear samples in packets of {packet_bytes} bytes and {packet_frames} frames are not supported"
                )
                .into());
            }
            let sample_bytes = sample_bytes as usize;
            match (flags & 1, bits) {
                (1, 32 | 64) if bits == 8 * sample_bytes as u64 => {
                    Encoding::float(sample_bytes, big_endian)
                }
                (0, bits) if (1..=8 * sample_bytes as u64).contains(&bits) => {
                    alignment::detect(source, layout, sample_bytes, bits as u32)?
                }
                _ => {
                    return Err(format!(
                        "samples of {bits} bits in {sample_bytes} bytes are not supported"
                    )
                    .into());
                }
            }
        }
        b"ulaw" => Encoding::byte(Number::MuLaw),
        b"alaw" => Encoding::byte(Number::ALaw),
        _ => return Ok(Contents::Whole),
    };
    Ok(Contents::Pcm(layout))
}
