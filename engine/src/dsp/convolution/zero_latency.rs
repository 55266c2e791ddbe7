//! Convolution in blocks of any length without latency.

use ondes_kernels::Kernels;

use super::Convolver;
use crate::dsp::level::copy_limited;

/// Samples of the response that are convolved directly, and samples per block of the rest.
const BLOCK: usize = 64;

/// Convolves one channel with an impulse response.
///
/// The head of the response is convolved directly. The rest contributes from the next block on and
/// is computed as soon as a block is complete (W. G. Gardner, "Efficient convolution without
/// input-output delay", JAES 43(3), 1995). The output does not depend on how the input is divided
/// into blocks, to the bit.
///
/// # Examples
/// ```
/// use ondes_engine::Kernels;
/// use ondes_engine::dsp::convolution::ZeroLatencyConvolver;
///
/// let mut convolver = ZeroLatencyConvolver::new(&[0.5, 0.0, 0.25], Kernels::detect());
/// let mut output = [0.0; 4];
/// convolver.process(&[1.0, 0.0, 0.0, 0.0], &mut output);
/// assert_eq!(output, [0.5, 0.0, 0.25, 0.0]);
/// ```
#[derive(Clone)]
pub struct ZeroLatencyConvolver {
    kernels: Kernels,
    /// First samples of the response, at most a block.
    head: Vec<f32>,
    rest: Option<Convolver>,
    /// The previous input block, and the current one as far as it is filled.
    window: [f32; 2 * BLOCK],
    filled: usize,
    /// Contribution of the rest to the current block.
    later: [f32; BLOCK],
}

impl ZeroLatencyConvolver {
    /// Creates a convolver. An empty response gives silence.
    pub fn new(impulse: &[f32], kernels: Kernels) -> Self {
        let (head, rest) = impulse.split_at(impulse.len().min(BLOCK));
        Self {
            kernels,
            head: head.to_vec(),
            rest: (!rest.is_empty()).then(|| Convolver::long(rest, BLOCK, kernels)),
            window: [0.0; 2 * BLOCK],
            filled: 0,
            later: [0.0; BLOCK],
        }
    }

    /// Convolves samples: `output[n]` is the sum of `impulse[k]` times the input `k` samples before
    /// `input[n]`. Non-finite input counts as silence.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    pub fn process(&mut self, input: &[f32], output: &mut [f32]) {
        assert_eq!(
            input.len(),
            output.len(),
            "input and output must have equal lengths"
        );
        let (mut input, mut output) = (input, output);
        while !input.is_empty() {
            let length = input.len().min(BLOCK - self.filled);
            let (piece, input_after) = input.split_at(length);
            let (out, output_after) = output.split_at_mut(length);
            let present = BLOCK + self.filled;
            copy_limited(piece, &mut self.window[present..]);
            out.copy_from_slice(&self.later[self.filled..][..length]);
            for (delay, &tap) in self.head.iter().enumerate() {
                self.kernels
                    .multiply_add(out, &self.window[present - delay..][..length], tap);
            }
            self.filled += length;
            if self.filled == BLOCK {
                self.complete();
            }
            (input, output) = (input_after, output_after);
        }
    }

    /// Processes the completed block and starts the next one.
    fn complete(&mut self) {
        let (last, present) = self.window.split_at_mut(BLOCK);
        if let Some(rest) = &mut self.rest {
            rest.process(present, &mut self.later);
        }
        last.copy_from_slice(present);
        self.filled = 0;
    }

    /// Takes over the state of another convolver with the same response, without allocating.
    ///
    /// # Panics
    ///
    /// If the responses differ in length.
    pub fn copy_state(&mut self, other: &Self) {
        if let (Some(rest), Some(other)) = (&mut self.rest, &other.rest) {
            rest.copy_state(other);
        }
        (self.window, self.filled, self.later) = (other.window, other.filled, other.later);
    }

    /// Clears all state.
    pub fn reset(&mut self) {
        if let Some(rest) = &mut self.rest {
            rest.reset();
        }
        self.window.fill(0.0);
        self.later.fill(0.0);
        self.filled = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::random::Lcg;

    fn noise(length: usize) -> Vec<f32> {
        let mut random = Lcg::new(1);
        (0..length).map(|_| random.next_signed() as f32).collect()
    }

    fn convolve(impulse: &[f32], input: &[f32], splits: impl Iterator<Item = usize>) -> Vec<f32> {
        let mut convolver = ZeroLatencyConvolver::new(impulse, Kernels::detect());
        let mut output = vec![0.0; input.len()];
        let mut start = 0;
        for length in splits.chain([input.len()]) {
            let end = input.len().min(start + length);
            convolver.process(&input[start..end], &mut output[start..end]);
            start = end;
        }
        output
    }

    #[test]
    fn an_impulse_at_any_position_gives_the_response() {
        for length in [1, 63, 64, 65, 1_200, 20_000] {
            let response = noise(length);
            for at in [0, 1, 63, 64, 100] {
                let mut input = vec![0.0; at + length + 50];
                input[at] = 1.0;
                let found = convolve(&response, &input, std::iter::repeat_n(37, 1_000));
                for (n, found) in found.iter().enumerate() {
                    let expected = n
                        .checked_sub(at)
                        .and_then(|n| response.get(n))
                        .copied()
                        .unwrap_or_default();
                    assert!(
                        (found - expected).abs() < 3e-6,
                        "{found} for {expected} at {n} of {length}"
                    );
                }
            }
        }
    }

    #[test]
    fn empty_responses_and_non_finite_samples_give_silence() {
        assert_eq!(convolve(&[], &noise(200), [7, 64].into_iter()), [0.0; 200]);
        let hostile = [f32::NAN, f32::INFINITY, 0.0, f32::NEG_INFINITY];
        assert_eq!(
            convolve(&noise(100), &hostile, std::iter::empty()),
            [0.0; 4]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn any_split_gives_the_same_sound(
            splits in prop::collection::vec(0_usize..700, 1..40),
            length in prop::sample::select(vec![10, 64, 500, 3_000, 12_000]),
        ) {
            let (response, input) = (noise(length), noise(9_001));
            let bits = |sound: Vec<f32>| sound.into_iter().map(f32::to_bits).collect::<Vec<_>>();
            let whole = bits(convolve(&response, &input, std::iter::empty()));
            prop_assert_eq!(&bits(convolve(&response, &input, splits.into_iter())), &whole);
            prop_assert_eq!(&bits(convolve(&response, &input, std::iter::repeat_n(1, 9_001))), &whole);
        }
    }
}
