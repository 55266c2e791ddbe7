//! Encodings of single samples.

/// Encoding of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Encoding {
    /// Number format of a sample.
    pub number: Number,
    /// Bytes of a sample, 1 to 8.
    pub bytes: usize,
    /// The most significant byte comes first.
    pub big_endian: bool,
}

/// Meaning of a sample's bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// Two's complement, of which the highest `unused` bits carry no sound.
    Signed {
        /// Bits above the sample: 8 for 24 bits at the low end of four bytes.
        unused: u32,
    },
    /// Integer whose middle is silence.
    Unsigned,
    /// IEEE 754 of 4 or 8 bytes; this value is full scale.
    Float {
        /// Value that becomes 1.
        full_scale: f64,
    },
    /// G.711 A-law.
    ALaw,
    /// G.711 µ-law.
    MuLaw,
}

impl Encoding {
    /// Returns the encoding of signed integers that fill their bytes.
    pub fn signed(bytes: usize, big_endian: bool) -> Self {
        Self {
            number: Number::Signed { unused: 0 },
            bytes,
            big_endian,
        }
    }

    /// Returns the encoding of floats whose full scale is 1.
    pub fn float(bytes: usize, big_endian: bool) -> Self {
        Self {
            number: Number::Float { full_scale: 1.0 },
            bytes,
            big_endian,
        }
    }

    /// Returns an encoding of one byte.
    pub fn byte(number: Number) -> Self {
        Self {
            number,
            bytes: 1,
            big_endian: false,
        }
    }

    /// Decodes whole interleaved frames into `block`, which has one vector a channel.
    pub fn decode(self, interleaved: &[u8], block: &mut [Vec<f32>]) {
        // Moves the highest bit of a sample to that of 64 bits, whose full scale is 2⁶³.
        const SCALE: f64 = 1.0 / (1_u64 << 63) as f64;
        match self.number {
            Number::Signed { unused } => {
                self.split(interleaved, block, |bits| {
                    ((bits << unused).cast_signed() as f64 * SCALE) as f32
                });
            }
            Number::Unsigned => {
                self.split(interleaved, block, |bits| {
                    ((bits ^ 1 << 63).cast_signed() as f64 * SCALE) as f32
                });
            }
            Number::Float { full_scale } if self.bytes == 4 => {
                self.split(interleaved, block, |bits| {
                    (f64::from(f32::from_bits((bits >> 32) as u32)) / full_scale) as f32
                })
            }
            Number::Float { full_scale } => {
                self.split(interleaved, block, |bits| {
                    (f64::from_bits(bits) / full_scale) as f32
                });
            }
            Number::ALaw => self.split(interleaved, block, |bits| {
                f32::from(a_law((bits >> 56) as u8)) / 32_768.0
            }),
            Number::MuLaw => self.split(interleaved, block, |bits| {
                f32::from(mu_law((bits >> 56) as u8)) / 32_768.0
            }),
        }
    }

    /// Appends each sample to its channel, converted from its bits at the high end of 64.
    fn split(self, interleaved: &[u8], block: &mut [Vec<f32>], convert: impl Fn(u64) -> f32) {
        let frame_bytes = self.bytes * block.len();
        for (channel, samples) in block.iter_mut().enumerate() {
            let bytes = |frame: &[u8]| self.bits(&frame[channel * self.bytes..][..self.bytes]);
            samples.extend(
                interleaved
                    .chunks_exact(frame_bytes)
                    .map(|frame| convert(bytes(frame))),
            );
        }
    }

    /// Returns the bits of a sample at the high end of 64.
    pub fn bits(self, sample: &[u8]) -> u64 {
        let mut word = [0; 8];
        if self.big_endian {
            word[..sample.len()].copy_from_slice(sample);
            u64::from_be_bytes(word)
        } else {
            word[8 - sample.len()..].copy_from_slice(sample);
            u64::from_le_bytes(word)
        }
    }
}

/// Decodes G.711 A-law to 16 bits.
fn a_law(code: u8) -> i16 {
    let code = code ^ 0x55;
    let mantissa = i16::from(code & 0xf) << 4;
    let magnitude = match code >> 4 & 7 {
        0 => mantissa + 8,
        segment => (mantissa + 0x108) << (segment - 1),
    };
    if code & 0x80 == 0 {
        -magnitude
    } else {
        magnitude
    }
}

/// Decodes G.711 µ-law to 16 bits.
fn mu_law(code: u8) -> i16 {
    let code = !code;
    let magnitude = (((i16::from(code & 0xf) << 3) + 0x84) << (code >> 4 & 7)) - 0x84;
    if code & 0x80 == 0 {
        magnitude
    } else {
        -magnitude
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(encoding: Encoding, bytes: &[u8]) -> Vec<f32> {
        let mut block = vec![Vec::new()];
        encoding.decode(bytes, &mut block);
        block.remove(0)
    }

    #[test]
    fn full_scale_of_every_encoding_is_one() {
        for bytes in 1..=8 {
            for big_endian in [false, true] {
                let mut half = vec![0; bytes];
                half[if big_endian { 0 } else { bytes - 1 }] = 0xc0;
                let signed = Encoding::signed(bytes, big_endian);
                assert_eq!(decode(signed, &half), [-0.5], "{bytes}");
                assert_eq!(
                    decode(
                        Encoding {
                            number: Number::Unsigned,
                            ..signed
                        },
                        &half
                    ),
                    [0.5],
                    "{bytes}"
                );
            }
        }
        assert_eq!(
            decode(Encoding::float(4, true), &(-1.5_f32).to_be_bytes()),
            [-1.5]
        );
        assert_eq!(
            decode(Encoding::float(8, false), &0.25_f64.to_le_bytes()),
            [0.25]
        );
        let scaled = Encoding {
            number: Number::Float {
                full_scale: 32_768.0,
            },
            bytes: 4,
            big_endian: false,
        };
        assert_eq!(decode(scaled, &16_384_f32.to_le_bytes()), [0.5]);
        let low = Encoding {
            number: Number::Signed { unused: 8 },
            bytes: 4,
            big_endian: false,
        };
        // The unused byte may repeat the sign or be zero.
        assert_eq!(
            decode(low, &[0, 0, 0xc0, 0xff, 0, 0, 0xc0, 0, 0, 0, 0x20, 0]),
            [-0.5, -0.5, 0.25]
        );
    }

    /// Values of the tables in ITU-T G.711: the ends of the ranges and the smallest steps.
    #[test]
    fn companded_samples_are_those_of_the_tables() {
        assert_eq!(
            [0x2a, 0xaa, 0xd5, 0x55, 0x80].map(a_law),
            [-32_256, 32_256, 8, -8, 5_504]
        );
        assert_eq!(
            [0x00, 0x80, 0xff, 0x7f, 0xfe].map(mu_law),
            [-32_124, 32_124, 0, 0, 8]
        );
    }
}
