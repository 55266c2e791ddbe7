//! Linear-phase resampler: rubato's synchronous FFT resampler, which works in blocks of constant
//! length.

use rubato::audioadapter_buffers::direct::SequentialSlice;
use rubato::{Fft, FixedSync, Resampler, WindowFunction};

use super::greatest_common_divisor;
use crate::dsp::level::copy_limited;

/// Least samples per block at the lower rate. The anti-aliasing filter is as long as a block; at
/// this length its edge is at 0.95 of the Nyquist frequency (20.9 kHz at 44.1 kHz).
const SHORTEST_BLOCK: u32 = 512;

/// Converts one channel block by block.
pub(super) struct BlockResampler {
    resampler: Fft<f32>,
    /// Input block, of which `filled` samples are present.
    pub input: Vec<f32>,
    filled: usize,
    pub output: Vec<f32>,
}

impl BlockResampler {
    /// Creates a resampler for two different rates in Hz; `None` if rubato refuses them.
    pub fn new(rate_in: u32, rate_out: u32) -> Option<Self> {
        let divisor = greatest_common_divisor(rate_in, rate_out);
        let lower = rate_in.min(rate_out) / divisor;
        // Even, so that half a block is a whole number of samples at both rates.
        let multiple = SHORTEST_BLOCK.div_ceil(lower).next_multiple_of(2);
        let block_in = (rate_in / divisor * multiple) as usize;
        let resampler = Fft::new_custom(
            rate_in as usize,
            rate_out as usize,
            block_in,
            1,
            1,
            WindowFunction::BlackmanHarris2,
            FixedSync::Both,
        )
        .ok()?;
        let output = vec![0.0; resampler.output_frames_max()];
        Some(Self {
            input: vec![0.0; resampler.input_frames_max()],
            filled: 0,
            output,
            resampler,
        })
    }

    /// Processes any number of samples and emits the completed blocks in order.
    pub fn push(&mut self, input: &[f32], mut emit: impl FnMut(&[f32])) {
        let mut rest = input;
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(rest.len().min(self.input.len() - self.filled));
            self.fill(chunk);
            rest = after;
            if self.filled == self.input.len() {
                self.convert();
                emit(&self.output);
            }
        }
    }

    /// Clears all state.
    pub fn reset(&mut self) {
        self.resampler.reset();
        self.filled = 0;
    }

    fn fill(&mut self, samples: &[f32]) {
        copy_limited(samples, &mut self.input[self.filled..]);
        self.filled += samples.len();
    }

    /// Converts the input block to an output block.
    fn convert(&mut self) {
        let (input_length, output_length) = (self.input.len(), self.output.len());
        let input = SequentialSlice::new(&self.input[..], 1, input_length)
            .expect("one channel of that length");
        let mut output = SequentialSlice::new_mut(&mut self.output[..], 1, output_length)
            .expect("one channel of that length");
        let frames = self
            .resampler
            .process_into_buffer(&input, &mut output, None);
        assert!(
            matches!(frames, Ok(frames) if frames == (input_length, output_length)),
            "blocks must have the planned lengths"
        );
        self.filled = 0;
    }
}
