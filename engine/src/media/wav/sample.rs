//! Encoding of samples.

use super::WavBits;
use crate::media::Quantizer;

/// Encodes samples as bytes; NaN becomes 0.
pub(super) struct SampleEncoder {
    bits: WavBits,
    /// `None` for floats.
    quantizer: Option<Quantizer>,
}

impl SampleEncoder {
    /// Creates an encoder; `dithered` applies to integers only.
    pub fn new(bits: WavBits, dithered: bool) -> Self {
        let integer = bits != WavBits::Float32;
        let quantizer = integer.then(|| Quantizer::new(8 * u32::from(bits.bytes()), dithered));
        Self { bits, quantizer }
    }

    pub fn encode(&mut self, sample: f32, bytes: &mut Vec<u8>) {
        match &mut self.quantizer {
            Some(quantizer) => {
                let value = quantizer.quantize(sample).to_le_bytes();
                bytes.extend_from_slice(&value[..usize::from(self.bits.bytes())]);
            }
            None => {
                bytes.extend_from_slice(&if sample.is_nan() { 0.0 } else { sample }.to_le_bytes())
            }
        }
    }
}
