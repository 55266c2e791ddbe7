//! Samples with fewer bits than their bytes hold.

use std::io::{self, Read, Seek, SeekFrom};

use super::{Encoding, Layout, Number};

/// Bytes that are looked at in one go.
const STEP: u64 = 1 << 16;

/// Returns the encoding of integers of `bits` bits in `sample_bytes` bytes.
///
/// Formats put the unused bits at the low end, where they do no harm. If whole bytes are unused,
/// writers disagree (ALSA's arecord puts them at the high end, Cool Edit wrote floats, some only
/// declare a wrong size), and only the samples tell.
///
/// # Errors
/// Returns the error of the source.
pub fn detect<S: Read + Seek>(
    source: &mut S,
    layout: Layout,
    sample_bytes: usize,
    bits: u32,
) -> io::Result<Encoding> {
    let big_endian = layout.encoding.big_endian;
    let full = Encoding::signed(sample_bytes, big_endian);
    let packed = bits.div_ceil(8) as usize;
    if packed >= sample_bytes || layout.channels == 0 {
        return Ok(full);
    }
    let unused = 8 * sample_bytes as u32 - bits;
    let mut seen = Seen::default();
    source.seek(SeekFrom::Start(layout.start))?;
    let mut left = source.take(layout.bytes.unwrap_or(u64::MAX));
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        (&mut left)
            .take(STEP / sample_bytes as u64 * sample_bytes as u64)
            .read_to_end(&mut buffer)?;
        if buffer.len() < sample_bytes {
            break;
        }
        for sample in buffer.chunks_exact(sample_bytes) {
            seen.add(full.bits(sample), unused, 8 * sample_bytes as u32);
        }
    }
    // Of silence at the low end and a whisper at the high end, the former is the commoner: 16 bits
    // recorded as 24.
    Ok(if seen.fits_low() {
        Encoding {
            number: Number::Signed { unused },
            ..full
        }
    } else if seen.fits_high() {
        full
    } else if sample_bytes == 4 && seen.fits_float() {
        Encoding {
            number: Number::Float {
                full_scale: f64::from(1_u32 << (bits - 1)),
            },
            ..full
        }
    } else {
        Encoding::signed(packed, big_endian)
    })
}

/// Alignments that the samples exclude.
#[derive(Default)]
struct Seen {
    /// A high end neither zero nor a repeated sign: the sound is not at the low end alone.
    high_end: bool,
    /// A low end that is not zero.
    low_end: bool,
    /// A number that no audio has as a float.
    no_float: bool,
}

impl Seen {
    /// Looks at the bits of a sample, at the high end of 64.
    fn add(&mut self, bits: u64, unused: u32, length: u32) {
        let shifted = (bits << unused).cast_signed() >> unused;
        self.high_end |= bits >> (64 - unused) != 0 && shifted.cast_unsigned() != bits;
        self.low_end |= bits << (length - unused) != 0;
        let float = f32::from_bits((bits >> 32) as u32).abs();
        self.no_float |= float != 0.0 && !(1e-6..=1e9).contains(&float);
    }

    fn fits_low(&self) -> bool {
        !self.high_end
    }

    fn fits_high(&self) -> bool {
        !self.low_end
    }

    fn fits_float(&self) -> bool {
        !self.no_float
    }
}
