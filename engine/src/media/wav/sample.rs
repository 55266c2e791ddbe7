//! Samples as they stand in a WAV file.

use super::WavBits;
use crate::media::Quantizer;

/// Turns samples into bytes. What is not a number becomes 0.
pub(super) struct SampleEncoder {
    bits: WavBits,
    /// Nothing for floating point.
    quantiser: Option<Quantizer>,
}

impl SampleEncoder {
    /// `dithered` says whether integers are; floating point never is.
    pub fn new(bits: WavBits, dithered: bool) -> Self {
        let integer = bits != WavBits::Float32;
        let quantiser = integer.then(|| Quantizer::new(8 * u32::from(bits.bytes()), dithered));
        Self { bits, quantiser }
    }

    pub fn encode(&mut self, sample: f32, bytes: &mut Vec<u8>) {
        match &mut self.quantiser {
            Some(quantiser) => {
                let value = quantiser.quantize(sample).to_le_bytes();
                bytes.extend_from_slice(&value[..usize::from(self.bits.bytes())]);
            }
            None => bytes.extend_from_slice(&if sample.is_nan() { 0.0 } else { sample }.to_le_bytes()),
        }
    }
}
